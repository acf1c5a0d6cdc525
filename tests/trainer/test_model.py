"""The model: cached decoding, padding, batches, routes and gradients; and transformers' Kimi-Linear on the same weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from kernels.testing import assert_close
from kgsynth.errors import ConfigError
from trainer.model import KimiLinear, ModelConfig, count_parameters, router_metrics, tiny, update_router_bias
from trainer.model.moe import SparseMoE

SMALL = {
    "hidden_size": 32, "kda_heads": 2, "kda_head_dim": 16, "mla_heads": 2, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4, "v_head_dim": 16, "dense_inner": 48, "experts": 4, "moe_inner": 16,
}  # fmt: skip
VOCAB = 61


def _model(**changes) -> KimiLinear:
    return KimiLinear(tiny(VOCAB, **(SMALL | changes)), seed=3).double()


def _tokens(B: int, T: int, seed: int = 0) -> Tensor:
    return torch.randint(0, VOCAB, (B, T), generator=torch.Generator().manual_seed(seed))


def _close(name: str, actual: Tensor, expected: Tensor) -> None:
    # fp64 throughout, but for the router and the recurrent state, which the cache keeps in fp32
    assert_close(name, actual, expected, max_error=1e-5, rms_error=1e-6)


@pytest.mark.parametrize("changes", [{}, {"gate": "softplus", "mla_output_gate": False}, {"full_attn_layers": (1, 2)}])
@torch.no_grad()
def test_decoding_equals_the_full_forward(changes: dict) -> None:
    """Right-padded prompts of different lengths, forked, decoded one token at a time, some rows finishing early."""
    model, tokens, prompt = _model(**changes), _tokens(3, 40), torch.tensor([20, 7, 1])
    expected = model(tokens)
    cache = model.new_cache(3)
    logits = model(tokens[:, :20], lengths_B=prompt, cache=cache)
    for row, length in enumerate(prompt):
        _close("prefill", logits[row, :length], expected[row, :length])
    cache, row_of = cache.repeat(2), torch.arange(3).repeat_interleave(2)
    for step in range(20):
        if step == 8:  # rows 1 and 4 have finished
            kept = torch.tensor([0, 2, 3, 5])
            cache, row_of = cache.select(kept), row_of[kept]
        at = prompt[row_of] + step
        logits = model(tokens[row_of, at][:, None], cache=cache)
        _close(f"step {step}", logits[:, 0], expected[row_of, at])
    assert cache.lengths_B.tolist() == (prompt[row_of] + 20).tolist()


@torch.no_grad()
def test_forked_rows_are_independent() -> None:
    model, tokens = _model(), _tokens(1, 10)
    cache = model.new_cache(1)
    model(tokens, cache=cache)
    forks, untouched = cache.repeat(2), cache.select(torch.tensor([True]))
    model(_tokens(2, 5, seed=1), cache=forks)
    follow = _tokens(1, 1, seed=2)
    _close("parent", model(follow, cache=untouched), model(torch.cat([tokens, follow], 1))[:, -1:])
    both = torch.cat([tokens.expand(2, -1), _tokens(2, 5, seed=1), follow.expand(2, -1)], 1)
    _close("forks", model(follow.expand(2, -1), cache=forks), model(both)[:, -1:])


@torch.no_grad()
def test_several_tokens_continue_a_cache() -> None:
    """A second padded prefill, such as a tool's output, on rows of different length."""
    model, tokens = _model(), _tokens(2, 30)
    expected, cache = model(tokens), None
    cache = model.new_cache(2)
    model(tokens[:, :12], lengths_B=torch.tensor([12, 5]), cache=cache)
    second = torch.stack([tokens[0, 12:20], tokens[1, 5:13]])
    logits = model(second, lengths_B=torch.tensor([8, 3]), cache=cache)
    _close("row 0", logits[0], expected[0, 12:20])
    _close("row 1", logits[1, :3], expected[1, 5:8])
    logits = model(torch.stack([tokens[0, 20:21], tokens[1, 8:9]]), cache=cache)
    _close("after", logits[:, 0], torch.stack([expected[0, 20], expected[1, 8]]))


def test_gradients_pass_through_a_forked_cache() -> None:
    """Two continuations of one prompt, each in two calls: the gradients of reading every sequence as a whole."""
    model, prompt, rest = _model(), _tokens(2, 12), _tokens(4, 9, seed=1)
    lengths, row_of = torch.tensor([12, 5]), torch.tensor([0, 0, 1, 1])

    def gradients(logits: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(logits.logsumexp(-1).sum(), list(model.parameters())))

    cache = model.new_cache(2)
    model(prompt, lengths_B=lengths, cache=cache)
    forks = cache.select(row_of)
    pieces = [model(piece, cache=forks) for piece in (rest[:, :5], rest[:, 5:6], rest[:, 6:])]
    whole = [torch.cat([prompt[p, : lengths[p]], rest[r]])[None] for r, p in enumerate(row_of)]
    expected = gradients(torch.cat([model(sequence)[:, -9:] for sequence in whole]))
    for (name, _), a, e in zip(model.named_parameters(), gradients(torch.cat(pieces, 1)), expected, strict=True):
        _close(name, a, e)


def test_padding_changes_neither_results_nor_gradients() -> None:
    model, tokens, lengths = _model(), _tokens(3, 24), torch.tensor([24, 11, 2])
    valid = torch.arange(24) < lengths[:, None]
    grads = []
    for filler in (0, 5):
        model.zero_grad()
        hidden = model.hidden(tokens.where(valid, filler), lengths_B=lengths)
        model.head(hidden[valid]).logsumexp(-1).sum().backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for a, b in zip(*grads, strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-8)
    alone = model(tokens[1:2, :11])
    _close("row 1", model(tokens, lengths_B=lengths)[1:2, :11], alone)


@torch.no_grad()
def test_a_row_does_not_depend_on_its_batch_nor_a_prefix_on_its_suffix() -> None:
    model, tokens = _model(), _tokens(8, 33)
    whole = model(tokens)
    _close("alone", whole[2:3], model(tokens[2:3]))
    _close("shuffled", whole.flip(0), model(tokens.flip(0)))
    _close("prefix", whole[:, :17], model(tokens[:, :17]))


@pytest.mark.parametrize("changes", [{}, {"gate": "softplus"}, {"expert_groups": 2, "top_groups": 1}])
def test_every_parameter_gets_a_finite_gradient(changes: dict) -> None:
    model = KimiLinear(tiny(VOCAB, **(SMALL | changes)))
    hidden = model.hidden(_tokens(4, 50))
    assert hidden.shape == (4, 50, 32)
    torch.nn.functional.cross_entropy(model.head(hidden[:, -7:]).flatten(0, 1), _tokens(4, 7).flatten()).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert bool(p.grad.isfinite().all()), name
        assert bool(p.grad.any()), f"{name} does not influence the loss"


def test_overfits_a_batch() -> None:
    model, tokens = KimiLinear(tiny(VOCAB, **SMALL)), _tokens(4, 24)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        update_router_bias(model)
        losses.append(float(loss.detach()))
    assert losses[0] > 3.5
    assert losses[-1] < 0.5


def test_replaying_the_routes_taken_changes_nothing_and_other_routes_do() -> None:
    model, tokens = _model(), _tokens(2, 9)
    routes: list[Tensor] = []
    free = model.hidden(tokens, routes=routes)
    assert [tuple(r.shape) for r in routes] == [(2, 9, 2)] * 3
    assert torch.equal(model.hidden(tokens, replay=[r.to(torch.uint8) for r in routes]), free)
    assert not torch.allclose(model.hidden(tokens, replay=[(r + 1) % 4 for r in routes]), free)


def test_router_bias_moves_towards_balance_and_counts_only_valid_tokens() -> None:
    model = _model()
    lengths = torch.tensor([9, 4])
    model.hidden(_tokens(2, 9), lengths_B=lengths)
    layers = [m for m in model.modules() if isinstance(m, SparseMoE)]
    loads = [layer.loads_E.clone() for layer in layers]
    assert [int(load.sum()) for load in loads] == [13 * 2] * 3
    metrics = router_metrics(model)
    assert metrics["router_max_load"] == pytest.approx(sum(float(x.max()) / 6.5 for x in loads) / 3)
    update_router_bias(model, rate=0.25)
    for layer, load in zip(layers, loads, strict=True):
        assert layer.gate.e_score_correction_bias.tolist() == (0.25 * (6.5 - load).sign()).tolist()
    assert router_metrics(model) == {}
    model.eval()
    model.hidden(_tokens(2, 9))
    assert router_metrics(model) == {}, "nothing is counted outside training"


def test_bias_balances_a_skewed_router() -> None:
    model, tokens = _model(experts=8, top_k=1), _tokens(16, 32)
    layer = next(m for m in model.modules() if isinstance(m, SparseMoE))
    layer.gate.e_score_correction_bias[0] = 1.0
    before = None
    for _ in range(80):
        with torch.no_grad():
            model.hidden(tokens)
        before = before or float(layer.loads_E.max() / layer.loads_E.double().mean())
        after = float(layer.loads_E.max() / layer.loads_E.double().mean())
        update_router_bias(model, rate=0.02)
    assert before is not None
    assert before > 6
    assert after < 1.5


def test_tiny_is_about_a_million_parameters() -> None:
    model = KimiLinear(tiny())
    total, active = count_parameters(model), count_parameters(model, active=True)
    assert 0.8e6 < total < 1.5e6
    assert active == total - 3 * 6 * 3 * 64 * 128  # three layers, six of eight experts idle, three matrices each
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_seed_decides_the_weights() -> None:
    a, b, c = (KimiLinear(tiny(VOCAB, **SMALL), seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["model.embed_tokens.weight"], c["model.embed_tokens.weight"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"full_attn_layers": (0,)}, "numbered from 1 to 4"),
        ({"top_k": 9}, "top_k 9 of 8"),
        ({"gate": "hard"}, "model.gate"),
        ({"gate_lower_bound": 1.0}, "must be negative"),
        ({"hidden_size": 0}, "model.hidden_size"),
    ],
)
def test_impossible_configurations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny(**changes)


def _with_packed_experts(state: dict[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Released checkpoints hold each expert's matrices apart; ours are stacked. They call layer 0's dense MLP `mlp`;
    transformers writes it under the name of the experts."""
    packed = {
        name.replace("layers.0.block_sparse_moe.", "layers.0.mlp."): x
        for name, x in state.items()
        if ".experts." not in name
    }
    for layer in range(config.first_dense_layers, config.layers):
        prefix = f"model.layers.{layer}.block_sparse_moe.experts."
        for w in ("w1", "w2", "w3"):
            packed[prefix + w] = torch.stack([state[f"{prefix}{e}.{w}.weight"] for e in range(config.experts)])
    return packed


def test_a_transformers_checkpoint_loads_by_name_and_gives_the_same_logits(tmp_path: Path) -> None:
    theirs = pytest.importorskip("transformers.models.kimi_linear")
    load_file = pytest.importorskip("safetensors.torch").load_file
    config = tiny(
        VOCAB, **SMALL, gate="softplus", mla_output_gate=False, tie_embeddings=False, routed_scaling=2.446,
        full_attn_layers=(2, 4),
    )  # fmt: skip
    kinds = ["full_attention" if config.uses_mla(layer) else "linear_attention" for layer in range(4)]
    torch.manual_seed(0)
    reference = theirs.KimiLinearForCausalLM(
        theirs.KimiLinearConfig(
            vocab_size=VOCAB, hidden_size=32, intermediate_size=48, moe_intermediate_size=16, num_hidden_layers=4,
            num_attention_heads=2, num_key_value_heads=2, kv_lora_rank=16, qk_rope_head_dim=4, v_head_dim=16,
            qk_nope_head_dim=12, num_experts_per_tok=2, num_local_experts=4, layer_types=kinds, linear_head_dim=16,
            linear_num_heads=2, initializer_range=0.2, pad_token_id=0, bos_token_id=0, eos_token_id=0,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        for name, buffer in reference.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.normal_(0, 0.1)
    reference.save_pretrained(tmp_path)
    model = KimiLinear(config)
    model.load_state_dict(_with_packed_experts(load_file(tmp_path / "model.safetensors"), config))
    tokens = _tokens(2, 70)
    with torch.no_grad():
        assert_close("logits", model(tokens), reference(tokens).logits, max_error=1e-3, rms_error=1e-4)
