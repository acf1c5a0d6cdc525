"""Losses against their formulas written out token by token in float64, and the ways in which such losses went wrong."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from trainer.loss import cross_entropy, dapo_loss, k25_loss

N = 64


def _tokens(seed: int = 0, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    rollout = -torch.rand(N, generator=generator, dtype=torch.float64) * 3
    policy = (rollout + spread * torch.randn(N, generator=generator, dtype=torch.float64)).requires_grad_()
    advantages = torch.randn(N, generator=generator, dtype=torch.float64)
    mask = torch.rand(N, generator=generator) < 0.8
    return policy, rollout, advantages, mask


def test_k25_gradient_is_the_formulas() -> None:
    """d/dp [ -1(a <= l <= b) e^l A + tau l^2 ] = -1(...) e^l A + 2 tau l, with l = p - q, over the token count."""
    policy, rollout, advantages, mask = _tokens()
    k25_loss(policy, rollout, advantages, mask, tokens=50, low=-0.7, high=0.4, tau=0.3).loss.backward()
    for i in range(N):
        ratio_log = float(policy[i].detach() - rollout[i])
        inside = -0.7 <= ratio_log <= 0.4
        wanted = (-math.exp(ratio_log) * float(advantages[i]) if inside else 0.0) + 2 * 0.3 * ratio_log
        assert policy.grad is not None
        assert float(policy.grad[i]) == pytest.approx(wanted / 50 if mask[i] else 0.0, abs=1e-14)


def test_k25_keeps_or_drops_a_token_whatever_the_sign_of_its_advantage() -> None:
    for advantage in (1.0, -1.0):
        policy = torch.tensor([-1.0, -1.0], requires_grad=True)
        rollout = torch.tensor([-1.2, -3.0])  # inside, outside
        ones = torch.ones(2, dtype=torch.bool)
        k25_loss(
            policy, rollout, torch.full((2,), advantage), ones, tokens=1, low=-0.5, high=0.5, tau=0.0
        ).loss.backward()
        assert policy.grad is not None
        assert policy.grad[0] != 0
        assert policy.grad[1] == 0


def test_k25_regulariser_can_leave_masked_tokens_alone() -> None:
    policy = torch.tensor([0.0], requires_grad=True)
    arguments = (policy, torch.tensor([-3.0]), torch.tensor([1.0]), torch.tensor([True]))
    assert k25_loss(*arguments, tokens=1, tau=1.0).loss.item() == pytest.approx(9.0)
    assert k25_loss(*arguments, tokens=1, tau=1.0, regularise_masked=False).loss.item() == 0.0


def test_dapo_gradient_is_the_formulas() -> None:
    policy, rollout, advantages, mask = _tokens(1, spread=0.4)
    dapo_loss(policy, rollout, advantages, mask, tokens=50, clip_low=0.2, clip_high=0.28).loss.backward()
    assert policy.grad is not None
    for i in range(N):
        ratio, advantage = math.exp(float(policy[i].detach() - rollout[i])), float(advantages[i])
        clipped = ratio > 1.28 if advantage > 0 else ratio < 0.8
        wanted = 0.0 if clipped or not mask[i] else -ratio * advantage / 50
        assert float(policy.grad[i]) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("loss", [k25_loss, dapo_loss])
def test_unchanged_weights_give_ratio_one(loss) -> None:
    """Then the gradient is plain REINFORCE, -A/tokens, nothing is clipped and the mismatch is zero."""
    policy, _, advantages, mask = _tokens(2)
    result = loss(policy, policy.detach().clone(), advantages, mask, tokens=N)
    result.loss.backward()
    assert policy.grad is not None
    assert torch.equal(policy.grad, torch.where(mask, -advantages / N, 0.0))
    assert (result.clipped, result.kl) == (0, 0)


@pytest.mark.parametrize("loss", [k25_loss, dapo_loss])
@pytest.mark.parametrize("gap", [89.0, -89.0, 1e4, math.inf])
def test_a_ratio_that_overflows_cannot_poison_the_batch(loss, gap: float) -> None:
    """exp(89) is inf in float32 and 0 * inf is NaN: masks must be applied before exp."""
    policy = torch.tensor([-1.0, 0.0, -2.0], requires_grad=True)
    rollout = torch.tensor([-1.0, -gap, -2.0])
    mask = torch.tensor([True, False, True])
    result = loss(policy, rollout, torch.tensor([1.0, 1.0, -1.0]), mask, tokens=2)
    result.loss.backward()
    assert torch.isfinite(result.loss)
    assert result.kl == 0
    assert policy.grad is not None
    assert torch.equal(policy.grad, torch.tensor([-0.5, 0.0, 0.5]))


def test_a_counted_token_far_out_of_range_has_a_finite_gradient() -> None:
    policy = torch.tensor([0.0, -1.0], requires_grad=True)
    ones = torch.ones(2, dtype=torch.bool)
    result = k25_loss(policy, torch.tensor([-100.0, -1.0]), torch.ones(2), ones, tokens=2, tau=0.01)
    result.loss.backward()
    assert policy.grad is not None
    assert torch.isfinite(policy.grad).all()
    assert result.clipped == 1


@pytest.mark.parametrize("cut", [1, 13, 40])
def test_token_mean_does_not_depend_on_the_split_into_micro_batches(cut: int) -> None:
    whole, rollout, advantages, mask = _tokens(3)
    split = whole.detach().clone().requires_grad_()
    tokens = int(mask.sum())
    k25_loss(whole, rollout, advantages, mask, tokens=tokens).loss.backward()
    for part in (slice(0, cut), slice(cut, N)):
        k25_loss(split[part], rollout[part], advantages[part], mask[part], tokens=tokens).loss.backward()
    torch.testing.assert_close(split.grad, whole.grad, rtol=0, atol=0)


def test_a_weight_counts_a_token_as_often_as_it_was_drawn() -> None:
    policy, rollout, advantages, _ = _tokens(4)
    ones, twice = torch.ones(N, dtype=torch.bool), torch.ones(2 * N, dtype=torch.bool)
    weighted = k25_loss(policy, rollout, advantages, ones, tokens=2 * N, weights=torch.full((N,), 2.0))
    repeated = k25_loss(policy.repeat(2), rollout.repeat(2), advantages.repeat(2), twice, tokens=2 * N)
    torch.testing.assert_close(weighted.loss, repeated.loss)
    torch.testing.assert_close(weighted.kl, repeated.kl)


def test_cross_entropy_is_a_mean_over_counted_targets_only() -> None:
    logprobs = torch.tensor([-1.0, -math.inf, -3.0], requires_grad=True)
    loss = cross_entropy(logprobs, torch.tensor([True, False, True]), tokens=2)
    loss.backward()
    assert loss.item() == 2.0
    assert torch.equal(logprobs.grad, torch.tensor([-0.5, 0.0, -0.5]))  # type: ignore[arg-type]
