"""Routing and the grouped experts against a loop over experts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import kernels
from kernels.moe import reference_moe
from kernels.testing import assert_close

T, D, INNER, E, K = 33, 16, 8, 6, 2


def _weights(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((T, D), (T, E), (E, INNER, D), (E, INNER, D), (E, D, INNER))
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes]


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("loss", ["sum", "random"])
def test_experts_equal_the_loop_with_every_gradient(dtype: torch.dtype, bound: float, loss: str) -> None:
    results = []
    for function, kind in ((kernels.moe, dtype), (reference_moe, torch.float64)):
        x, logits, w1, w3, w2 = leaves = _weights(kind)
        logits = logits - 100 * (torch.arange(E) == 3)  # an expert nobody chooses
        y = function(x, kernels.route(logits, top_k=K, scaling=2.446), w1, w3, w2)
        cotangent = torch.randn(T, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(kind)
        # the gradient of a plain sum is an expanded scalar, which grouped_mm's backward does not take as it is
        value = y.sum() if loss == "sum" else (y * cotangent).sum()
        results.append([y.detach(), *torch.autograd.grad(value, leaves)])
    for name, a, e in zip(("y", "dx", "dlogits", "dw1", "dw3", "dw2"), *results, strict=True):
        assert_close(name, a, e, max_error=10 * bound, rms_error=bound)
    assert not results[0][3][3].any(), "the empty expert's gradient is exactly zero"


def test_every_expert_but_one_empty() -> None:
    x, logits, w1, w3, w2 = _weights()
    routing = kernels.route(logits, top_k=1, replay_TK=torch.full((T, 1), 4))
    assert_close(
        "y",
        kernels.moe(x, routing, w1, w3, w2),
        reference_moe(x, routing, w1, w3, w2),
        max_error=1e-12,
        rms_error=1e-12,
    )
    assert routing.loads_E(E).tolist() == [0, 0, 0, 0, T, 0]


def test_bias_selects_but_never_weighs() -> None:
    logits = _weights()[1]
    bias = torch.zeros(E).double()
    bias[5] = 10
    plain, biased = kernels.route(logits, top_k=K), kernels.route(logits, top_k=K, bias_E=bias, renormalize=False)
    assert bool((biased.indices_TK == 5).any(1).all())
    assert not bool((plain.indices_TK == 5).any(1).all())
    assert torch.equal(biased.weights_TK, logits.sigmoid().gather(1, biased.indices_TK))


def test_weights_are_renormalised_and_scaled() -> None:
    for score in ("sigmoid", "softmax"):
        weights = kernels.route(_weights()[1], top_k=K, score=score, scaling=2.5).weights_TK
        assert torch.allclose(weights.sum(1), torch.full((T,), 2.5).double())


def test_groups_close_all_others() -> None:
    logits = torch.tensor([[9.0, -9.0, -9.0, 2.0, 2.0, 0.0]])
    # groups of two: their two best sum to the most in the group of experts 2 and 3? no: 4 and 5
    routing = kernels.route(logits, top_k=2, groups=3, top_groups=1)
    assert sorted(routing.indices_TK[0].tolist()) == [4, 5]


def test_replayed_routes_keep_the_router_gradient() -> None:
    """The replayed indices are followed exactly, and the weights still differentiate through the live scores."""
    _, logits, *_ = _weights()
    replay = (kernels.route(logits, top_k=K).indices_TK + 1) % E
    routing = kernels.route(logits, top_k=K, replay_TK=replay.to(torch.uint8))
    assert torch.equal(routing.indices_TK, replay)
    (gradient,) = torch.autograd.grad(routing.weights_TK[:, 0].sum(), logits)
    assert bool((gradient.gather(1, replay) != 0).all())
    untouched = torch.ones(T, E, dtype=torch.bool).scatter(1, replay, False)
    assert not gradient[untouched].any()


def test_order_is_a_stable_sort_with_cumulative_ends() -> None:
    routing = kernels.Routing(indices_TK=torch.tensor([[2, 0], [0, 2], [2, 3]]), weights_TK=torch.ones(3, 2))
    order, ends = routing.order(5)
    assert order.tolist() == [1, 2, 0, 3, 4, 5]
    assert ends.tolist() == [2, 2, 5, 6, 6]


@pytest.mark.parametrize(
    "options",
    [{"top_k": 7}, {"top_k": 2, "groups": 4}, {"top_k": 3, "groups": 3}, {"top_k": 2, "groups": 2, "top_groups": 3}],
)
def test_impossible_choices_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="cannot choose"):
        kernels.route(torch.zeros(T, E), **options)  # pyright: ignore[reportArgumentType]


def test_misfits_are_refused() -> None:
    x, logits, w1, w3, w2 = _weights()
    with pytest.raises(ValueError, match="do not fit"):
        kernels.moe(x[1:], kernels.route(logits, top_k=K), w1, w3, w2)
    with pytest.raises(ValueError, match="replayed routes"):
        kernels.route(logits, top_k=K, replay_TK=torch.zeros(T, K + 1))
