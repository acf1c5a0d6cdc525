"""Policy losses on per-token log-probabilities. Pure functions of same-shaped tensors.

    rho     = exp(policy_logprob - rollout_logprob): the policy against the sampler that produced the token
    mask    True where a token was sampled by the policy and counts
    tokens  the number of counted tokens in the whole batch: sums are divided by it, so that splitting a batch into
            micro-batches and adding up their losses changes nothing

Out-of-range log-ratios are replaced *before* `exp`: exp(89) is inf in float32, and inf times a zero mask is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

LARGEST_LOG_RATIO = 20.0  # exp(20) = 5e8: far outside any clip range, far inside float32


@dataclass(frozen=True)
class PolicyLoss:
    """`loss` is differentiable; the rest are detached sums over the counted tokens, to be divided by `tokens`."""

    loss: Tensor
    clipped: Tensor  # tokens outside the range, weighted
    kl: Tensor  # k3 estimate of KL(rollout || policy): rho - 1 - log rho, in nats


def _log_ratio(policy_logprobs: Tensor, rollout_logprobs: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, policy_logprobs - rollout_logprobs, 0.0)


def _k3(log_ratio: Tensor) -> Tensor:
    bounded = log_ratio.detach().clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return bounded.exp() - 1 - bounded


def k25_loss(
    policy_logprobs: Tensor,
    rollout_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    tokens: float,
    weights: Tensor | float = 1.0,
    low: float = -1.0,
    high: float = 1.0,
    tau: float = 0.01,
    regularise_masked: bool = True,
) -> PolicyLoss:
    """(1/tokens) sum_t w_t [ -1(low <= log rho_t <= high) rho_t A_t + tau (log rho_t)^2 ].

    After the Kimi K2.5 report: a token keeps its policy gradient only while its log-ratio is in range,
    whatever the sign of its advantage; the squared log-ratio pulls every token back towards the sampler, those out
    of range too unless `regularise_masked` is off. All tensors [...]; `weights` counts a token several times.
    """
    log_ratio = _log_ratio(policy_logprobs, rollout_logprobs, mask)
    inside = mask & (log_ratio.detach() >= low) & (log_ratio.detach() <= high)
    ratio = torch.where(inside, log_ratio, 0.0).exp()
    gain = torch.where(inside, ratio * advantages, 0.0)
    pull = log_ratio.square() if regularise_masked else torch.where(inside, log_ratio, 0.0).square()
    loss = (weights * (tau * pull - gain)).sum() / tokens
    return PolicyLoss(loss, (weights * (mask & ~inside)).sum(), (weights * _k3(log_ratio)).sum())


def dapo_loss(
    policy_logprobs: Tensor,
    rollout_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    *,
    tokens: float,
    weights: Tensor | float = 1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
) -> PolicyLoss:
    """-(1/tokens) sum_t w_t min(rho_t A_t, clip(rho_t, 1 - clip_low, 1 + clip_high) A_t).

    PPO's clip with DAPO's higher upper end and token mean (arXiv 2503.14476); equal ends give GRPO's clip.
    """
    log_ratio = _log_ratio(policy_logprobs, rollout_logprobs, mask)
    ratio = log_ratio.clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp()
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    gain = torch.where(mask, torch.minimum(ratio * advantages, clipped * advantages), 0.0)
    bound = mask & (clipped * advantages < ratio * advantages).detach()
    return PolicyLoss(-(weights * gain).sum() / tokens, (weights * bound).sum(), (weights * _k3(log_ratio)).sum())


def cross_entropy(logprobs: Tensor, mask: Tensor, *, tokens: float, weights: Tensor | float = 1.0) -> Tensor:
    """-(1/tokens) sum_t w_t of the targets' log-probabilities, for supervised training."""
    return -(weights * torch.where(mask, logprobs, 0.0)).sum() / tokens


def policy_loss(name: str, *, low: float, high: float, tau: float) -> Callable[..., PolicyLoss]:
    """The loss called `name` with its range set. "k2.5": low and high bound log rho. "dapo": they are 1-rho and rho-1."""
    if name == "k2.5":
        return partial(k25_loss, low=low, high=high, tau=tau)
    return partial(dapo_loss, clip_low=low, clip_high=high)
