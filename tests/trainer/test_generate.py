from __future__ import annotations

import pytest
import torch

from trainer.generate import Prompt, draw, generate, sampling_logprobs
from trainer.policy import Replies, TinyPolicy

PROMPTS = [Prompt(ids=tuple(range(40, 40 + n)), budget=12, seed=(0, n)) for n in (3, 17, 9)]


def _generate(policy: TinyPolicy, prompts: list[Prompt], **settings):
    return generate(policy.model.eval(), prompts, samples=4, end=policy.tokenizer.end, **settings)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_stored_logprobs_are_of_the_distribution_really_sampled(policy: TinyPolicy, temperature: float) -> None:
    """A temperature that sampling applies and training forgets (or the other way round) breaks every ratio."""
    groups = _generate(policy, PROMPTS, temperature=temperature)
    batch = [Replies(prompt=p.ids, replies=tuple(s.ids for s in g)) for p, g in zip(PROMPTS, groups, strict=True)]
    logprobs, _ = policy.logprobs(batch, temperature=temperature)
    stored = torch.tensor([x for group in groups for sample in group for x in sample.rollout_logprobs])
    torch.testing.assert_close(logprobs.detach(), stored, rtol=1e-4, atol=1e-4)
    other, _ = policy.logprobs(batch, temperature=temperature * 1.5)
    assert (other.detach() - stored).abs().max() > 0.05


def test_a_prompts_samples_do_not_depend_on_its_company(policy: TinyPolicy) -> None:
    together = _generate(policy, PROMPTS)
    assert _generate(policy, PROMPTS[::-1])[::-1] == together or [
        [s.ids for s in g] for g in _generate(policy, PROMPTS[::-1])[::-1]
    ] == [[s.ids for s in g] for g in together]
    alone = [_generate(policy, [prompt])[0] for prompt in PROMPTS]
    assert [[s.ids for s in g] for g in alone] == [[s.ids for s in g] for g in together]
    few_rows = _generate(policy, PROMPTS, rows=4)
    assert [[s.ids for s in g] for g in few_rows] == [[s.ids for s in g] for g in together]


def test_another_seed_gives_other_samples(policy: TinyPolicy) -> None:
    other = [Prompt(ids=p.ids, budget=p.budget, seed=(1, *p.seed[1:])) for p in PROMPTS]
    assert [s.ids for g in _generate(policy, other) for s in g] != [
        s.ids for g in _generate(policy, PROMPTS) for s in g
    ]


def test_samples_end_at_the_end_token_or_at_the_budget(policy: TinyPolicy) -> None:
    with torch.no_grad():  # make the end likely
        policy.model.model.embed_tokens.weight[policy.tokenizer.end] = (
            policy.model.model.embed_tokens.weight.mean(0) * 30
        )
    end, seen = policy.tokenizer.end, set()
    prompts = [Prompt(ids=tuple(range(i, i + 5)), budget=4 + i % 3, seed=(i,)) for i in range(40)]
    for prompt, group in zip(prompts, _generate(policy, prompts, temperature=2.0), strict=True):
        for sample in group:
            assert end not in sample.ids[:-1]
            assert sample.finished == (sample.ids[-1] == end)
            assert len(sample.ids) == prompt.budget or sample.finished
            assert len(sample.ids) == len(sample.rollout_logprobs) == len(sample.policy_version)
            seen.add(sample.finished)
    assert seen == {True, False}


def test_every_token_says_which_weights_drew_it(policy: TinyPolicy) -> None:
    policy.version = 7
    sample = policy.generate(PROMPTS[:1], samples=1, temperature=1.0)[0][0]
    assert set(sample.policy_version) == {7}


def test_draw_follows_the_distribution_and_never_picks_what_is_impossible() -> None:
    probabilities = torch.tensor([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    uniform = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    drawn = draw(probabilities.log().expand(10_000, -1), uniform)
    assert torch.bincount(drawn, minlength=6).tolist() == [0, 2000, 0, 5000, 3000, 0]
    ends = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert draw(probabilities.log().expand(2, -1), ends).tolist() == [1, 4]


def test_top_p_keeps_the_nucleus_and_renormalises_its_logprobs() -> None:
    logits = torch.tensor([[0.5, 0.2, 0.2, 0.1]]).log()
    kept = sampling_logprobs(logits, 1.0, 0.7).exp()
    torch.testing.assert_close(kept, torch.tensor([[0.5, 0.2, 0.0, 0.0]]) / 0.7)
    torch.testing.assert_close(sampling_logprobs(logits, 1.0, 0.01).exp(), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    torch.testing.assert_close(sampling_logprobs(logits, 1.0, 1.0), logits)
