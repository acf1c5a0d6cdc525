"""Measure a policy: the mean reward of sampled replies, overall and by task type. Nothing is trained here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainer.config import EvalConfig
from trainer.env import TaskEnv
from trainer.policy import Policy
from trainer.reward import Rewarder
from trainer.rollout import RolloutGroup, collect


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Reward is the mean over tasks of the mean over a task's verified replies; failed replies count nowhere."""

    reward: float  # NaN without tasks
    stderr: float  # over tasks
    by_type: dict[str, float]
    pass_rates: dict[str, float]  # by task id
    attempts: dict[str, int]  # verified replies, by task id
    tasks: int
    failed: int  # replies that could not be verified
    truncated: float  # share of replies that ran out of tokens
    reply_tokens: float  # mean length


def evaluate(
    policy: Policy, envs: Sequence[TaskEnv], rewarder: Rewarder, config: EvalConfig, *, seed: tuple[int, ...]
) -> Evaluation:
    """Sample `config.samples` replies per task at `config.temperature` and score them."""
    return summarise(sampled(policy, envs, rewarder, config, seed=seed))


def sampled(
    policy: Policy, envs: Sequence[TaskEnv], rewarder: Rewarder, config: EvalConfig, *, seed: tuple[int, ...]
) -> list[RolloutGroup]:
    """The replies that an evaluation looks at."""
    return collect(policy, envs, rewarder, samples=config.samples, temperature=config.temperature, seed=seed)


def summarise(groups: Sequence[RolloutGroup]) -> Evaluation:
    rates = {group.env.task.id: group.mean for group in groups if group.mean is not None}
    types = sorted({group.env.task.type for group in groups})
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    mean = _mean(rates.values())
    spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates.values())) / max(1, len(rates))
    return Evaluation(
        reward=mean,
        stderr=spread,
        by_type={
            kind: _mean(g.mean for g in groups if g.env.task.type == kind and g.mean is not None) for kind in types
        },
        pass_rates=rates,
        attempts={g.env.task.id: sum(r.reward is not None for r in g.rollouts) for g in groups},
        tasks=len(groups),
        failed=sum(rollout.reward is None for rollout in rollouts),
        truncated=_mean(not rollout.sample.finished for rollout in rollouts),
        reply_tokens=_mean(len(rollout.sample.ids) for rollout in rollouts),
    )


def _mean(values: Iterable[float]) -> float:
    items = [float(v) for v in values]
    return sum(items) / len(items) if items else math.nan
