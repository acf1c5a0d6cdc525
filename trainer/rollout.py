"""K rollouts per prompt, scored: what advantages are computed from. The sampled ids are kept, never re-tokenised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.chat import decode_reply
from trainer.env import TaskEnv
from trainer.generate import Prompt, Sample
from trainer.policy import Policy
from trainer.reward import Rewarder, Score


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One reply and its score. `reward` is None when verification failed; `reason` says why it is what it is."""

    sample: Sample
    reward: float | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class RolloutGroup:
    """The rollouts of one prompt."""

    env: TaskEnv
    rollouts: tuple[Rollout, ...]

    @property
    def rewards(self) -> list[float | None]:
        return [rollout.reward for rollout in self.rollouts]

    @property
    def mean(self) -> float | None:
        """Mean reward over the rollouts that could be verified; None when none could."""
        scored = [reward for reward in self.rewards if reward is not None]
        return sum(scored) / len(scored) if scored else None


def collect(
    policy: Policy,
    envs: Sequence[TaskEnv],
    rewarder: Rewarder,
    *,
    samples: int,
    temperature: float,
    seed: tuple[int, ...],
) -> list[RolloutGroup]:
    """Sample and score `samples` replies to each prompt. Replies to env i depend on (seed, env.index) only."""
    prompts = [Prompt(ids=env.prompt, budget=env.budget, seed=(*seed, env.index)) for env in envs]
    replies = policy.generate(prompts, samples=samples, temperature=temperature)
    pairs = [
        (env.task, decode_reply(sample.ids, policy.tokenizer))
        for env, group in zip(envs, replies, strict=True)
        for sample in group
    ]
    scores = iter(rewarder.score(pairs))
    return [
        RolloutGroup(env=env, rollouts=tuple(_rollout(sample, next(scores)) for sample in group))
        for env, group in zip(envs, replies, strict=True)
    ]


def _rollout(sample: Sample, score: Score) -> Rollout:
    return Rollout(sample=sample, reward=score.reward, reason=score.reason)
