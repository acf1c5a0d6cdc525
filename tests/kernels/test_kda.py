"""KDA against the recurrence in fp64: outputs, final states and every gradient, over the shapes and gates that hurt."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import kernels
from kernels.testing import assert_close, errors

GATES: dict[str, tuple[Callable[..., Tensor], float | None]] = {
    "moderate": (lambda z: F.logsigmoid(z), None),
    "bounded": (lambda z: -5 * torch.sigmoid(z), -5.0),
    "bounded, seen as any gate": (lambda z: -5 * torch.sigmoid(z), None),
    "all at -5": (lambda z: torch.full_like(z, -5.0), -5.0),
    "none decays": (lambda z: torch.zeros_like(z), -5.0),
    "softplus, A=16": (lambda z: -16 * F.softplus(z), None),
    "resets": (lambda z: torch.where(z > 1.5, -300.0, -0.01).to(z.dtype), None),
}
NAMES = ("o", "state", "dq", "dk", "dv", "dg", "dbeta", "dstate")


def _inputs(gate: str, B: int = 2, T: int = 37, H: int = 2, HV: int = 2, K: int = 16, V: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    q, k, v = normal(B, T, H, K), normal(B, T, H, K), normal(B, T, HV, V)
    return [q, k, v, GATES[gate][0](normal(B, T, HV, K)), normal(B, T, HV).sigmoid(), normal(B, HV, K, V)]


def _run(inputs: list[Tensor], dtype: torch.dtype, **options) -> list[Tensor]:
    """o, final state and the gradients of all six inputs, for a fixed random cotangent of both outputs."""
    leaves = [x.detach().to(dtype, copy=True).requires_grad_() for x in inputs]
    *qkvgb, initial = leaves
    o, state = kernels.kda(*qkvgb, initial_state=initial, output_final_state=True, l2norm=True, **options)
    assert state is not None
    generator = torch.Generator().manual_seed(1)
    cotangents = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(dtype) for x in (o, state)]
    return [o.detach(), state.detach(), *torch.autograd.grad([o, state], leaves, cotangents)]


@pytest.mark.parametrize(("T", "H", "HV"), [(1, 2, 2), (16, 2, 2), (37, 2, 4), (130, 1, 3)])
@pytest.mark.parametrize("gate", GATES)
def test_chunks_equal_the_recurrence(gate: str, T: int, H: int, HV: int) -> None:
    inputs, lower_bound = _inputs(gate, T=T, H=H, HV=HV), GATES[gate][1]
    expected = _run(inputs, torch.float64, backend="reference")
    for dtype, factor in ((torch.float64, 1e-9), (torch.float32, 1.0)):
        actual = _run(inputs, dtype, lower_bound=lower_bound)
        for name, a, e in zip(NAMES, actual, expected, strict=True):
            # factored decays of e^-40 .. e^40 cost digits; dg is there a small difference of large terms
            bound = 2e-5 if lower_bound is None else 2e-3 if name == "dg" else 1e-4
            assert_close(f"{name} ({dtype})", a, e, max_error=bound * factor, rms_error=bound / 4 * factor)


def test_reference_itself_has_the_right_gradient() -> None:
    inputs = [x.requires_grad_() for x in _inputs("bounded", B=1, T=3, K=3, V=2)]
    assert torch.autograd.gradcheck(lambda *x: kernels.kda(*x[:5], initial_state=x[5], backend="reference")[0], inputs)


def test_scale_and_default_state() -> None:
    q, k, v, g, beta, state = _inputs("moderate")
    default, _ = kernels.kda(q, k, v, g, beta)
    explicit, _ = kernels.kda(q, k, v, g, beta, scale=16**-0.5, initial_state=torch.zeros_like(state))
    doubled, none = kernels.kda(q, k, v, g, beta, scale=2 * 16**-0.5)
    assert torch.equal(default, explicit)
    assert torch.allclose(doubled, 2 * default)
    assert none is None


@pytest.mark.parametrize("lower_bound", [None, -5.0])
def test_raw_gates(lower_bound: float | None) -> None:
    q, k, v, z, beta, _ = _inputs("moderate")
    A_log, dt_bias = torch.tensor([0.0, 1.0]).double(), torch.linspace(-3, 1, 32).double()
    biased = z + dt_bias.view(2, 16)
    rate = A_log.exp()[:, None]
    g = -rate * F.softplus(biased) if lower_bound is None else lower_bound * (rate * biased).sigmoid()
    expected, _ = kernels.kda(q, k, v, g, beta, backend="reference")
    actual, _ = kernels.kda(q, k, v, z, beta, A_log=A_log.view(1, 1, 2, 1), dt_bias=dt_bias, lower_bound=lower_bound)
    assert_close("o", actual, expected, max_error=1e-12, rms_error=1e-12)


@pytest.mark.parametrize("gate", ["bounded", "softplus, A=16"])
@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_padding_cannot_matter(gate: str, backend: str) -> None:
    """NaN in the padding reaches neither outputs nor states nor gradients, and each row equals its own short run."""
    inputs, lengths = _inputs(gate, B=4), torch.tensor([37, 20, 1, 0])
    for x in inputs[:5]:
        for row, length in enumerate(lengths):
            x[row, length:] = torch.nan
    options = {"lower_bound": GATES[gate][1], "backend": backend}
    padded = _run(inputs, torch.float64, lengths=lengths, **options)
    assert all(bool(x.isfinite().all()) for x in padded)
    assert not padded[0][1, 20:].any()
    o, state, *_ = padded
    for row in range(3):
        short = [x[row : row + 1, : lengths[row]] if x.ndim != 4 or i < 5 else x for i, x in enumerate(inputs[:5])]
        alone, last = kernels.kda(
            *short, initial_state=inputs[5][row : row + 1], output_final_state=True, l2norm=True, **options
        )
        assert last is not None
        assert_close("o", o[row : row + 1, : lengths[row]], alone, max_error=1e-9, rms_error=1e-9)
        assert_close("state", state[row : row + 1], last, max_error=1e-9, rms_error=1e-9)
    assert torch.equal(state[3], inputs[5][3])


def test_packed_sequences_equal_their_own_runs() -> None:
    lengths = [5, 16, 1, 15]
    q, k, v, g, beta, _ = _inputs("bounded", B=1, T=37)
    initial = torch.randn(4, 2, 16, 8, dtype=torch.float64)
    bounds = torch.tensor([0, 5, 21, 22, 37])
    o, state = kernels.kda(
        q, k, v, g, beta, cu_seqlens=bounds, initial_state=initial, output_final_state=True, lower_bound=-5.0
    )
    assert state is not None
    for n, (start, length) in enumerate(zip(bounds.tolist(), lengths, strict=False)):
        piece = slice(start, start + length)
        alone, last = kernels.kda(
            *(x[:, piece] for x in (q, k, v, g, beta)), initial_state=initial[n : n + 1],
            output_final_state=True, backend="reference",
        )  # fmt: skip
        assert last is not None
        assert_close("o", o[:, piece], alone, max_error=1e-10, rms_error=1e-10)
        assert_close("state", state[n : n + 1], last, max_error=1e-10, rms_error=1e-10)


@pytest.mark.parametrize("gate", ["bounded", "softplus, A=16"])
def test_a_prefix_never_depends_on_what_follows(gate: str) -> None:
    """Bit for bit: replayed log-probabilities of a rollout must not move with the tokens after them."""
    inputs = [x.float() for x in _inputs(gate, T=50)[:5]]
    other = [x.float().flip(0).flip(1) for x in _inputs(gate, T=50)[:5]]
    mixed = [torch.cat([a[:, :23], b[:, 23:]], 1) for a, b in zip(inputs, other, strict=True)]
    first, _ = kernels.kda(*inputs, lower_bound=GATES[gate][1])
    second, _ = kernels.kda(*mixed, lower_bound=GATES[gate][1])
    assert torch.equal(first[:, :23], second[:, :23])
    assert not torch.equal(first[:, 23:], second[:, 23:])


@pytest.mark.parametrize("gate", ["bounded", "softplus, A=16"])
def test_decoding_continues_a_prefill(gate: str) -> None:
    inputs = [x.float() for x in _inputs(gate, HV=4)]
    *sequence, initial = inputs
    whole, last = kernels.kda(*sequence, initial_state=initial, output_final_state=True, lower_bound=GATES[gate][1])
    o, state = kernels.kda(
        *(x[:, :30] for x in sequence), initial_state=initial, output_final_state=True, lower_bound=GATES[gate][1]
    )
    assert last is not None
    assert state is not None
    pieces, kept = [o], state.clone()
    for start, end in ((30, 31), (31, 32), (32, 37)):
        before = state
        q, k, v, g, beta = (x[:, start:end] for x in sequence)
        o, state = kernels.kda_decode(q, k, v, g, beta, state)
        pieces.append(o)
        assert torch.equal(before, kept), "decoding must not change the state it is given"
        kept = state.clone()
    assert_close("o", torch.cat(pieces, 1), whole, max_error=1e-4, rms_error=1e-5)
    assert_close("state", state, last, max_error=1e-4, rms_error=1e-5)


def test_low_precision_inputs_compute_in_fp32() -> None:
    inputs = [x.bfloat16() for x in _inputs("bounded")]
    q, k, v, g, beta = (x.double() for x in inputs[:5])
    expected, _ = kernels.kda(q, k, v, g, beta, backend="reference")
    o, state = kernels.kda(*inputs[:5], lower_bound=-5.0, output_final_state=True)
    assert state is not None
    assert (o.dtype, state.dtype) == (torch.bfloat16, torch.float32)
    assert errors(o, expected)[1] < 4e-3  # one rounding of the output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": torch.zeros(2, 8, 3, 4)}, "g has shape"),
        ({"beta": torch.zeros(2, 7, 2)}, "beta has shape"),
        ({"initial_state": torch.zeros(2, 2, 4, 4)}, "the state has shape"),
        ({"cu_seqlens": torch.tensor([0, 8])}, "over a batch of one"),
        ({"cu_seqlens": torch.tensor([0, 8]), "lengths": torch.tensor([8, 8])}, "not both"),
    ],
)
def test_bad_shapes_are_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "q": torch.zeros(2, 8, 2, 3), "k": torch.zeros(2, 8, 2, 3), "v": torch.zeros(2, 8, 2, 4),
        "g": torch.zeros(2, 8, 2, 3), "beta": torch.zeros(2, 8, 2),
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        kernels.kda(**(arguments | change))


def test_value_heads_must_divide() -> None:
    q, v = torch.zeros(1, 4, 2, 3), torch.zeros(1, 4, 3, 4)
    with pytest.raises(ValueError, match="not a multiple"):
        kernels.kda(q, q, v, torch.zeros(1, 4, 3, 3), torch.zeros(1, 4, 3))


@pytest.mark.parametrize("gate", ["moderate", "softplus, A=16"])
def test_agrees_with_transformers(gate: str) -> None:
    theirs = pytest.importorskip("transformers.models.kimi_linear.modeling_kimi_linear")
    q, k, v, g, beta, state = (x.float() for x in _inputs(gate))
    for function in (theirs.chunk_kimi_delta_attention, theirs.recurrent_kimi_delta_attention):
        expected, last = function(
            q, k, v, g=g, beta=beta, initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True
        )
        actual, ours = kernels.kda(q, k, v, g, beta, initial_state=state, output_final_state=True, l2norm=True)
        assert ours is not None
        assert_close("o", actual, expected, max_error=2e-4, rms_error=2e-5)
        assert_close("state", ours, last, max_error=2e-4, rms_error=2e-5)


def test_package_is_callable_and_browsable() -> None:
    assert kernels.kda is importlib.import_module("kernels.kda")
    assert (
        importlib.import_module("kernels.kda.reference").recurrent_kda
        is importlib.import_module("kernels.kda").recurrent_kda
    )
    with pytest.raises(AttributeError, match="flash"):
        kernels.flash  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
