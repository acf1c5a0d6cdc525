"""Reinforcement learning with verifiable rewards: sample K replies to each of some prompts, score them, push the
policy towards those better than their group's mean. One loop, on-policy by default; after Kimi K1.5/K2.5.

Left out: a value model, a KL term against a reference model, partial rollouts, several machines.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kgsynth.errors import RunError, SandboxError
from trainer import checkpoint
from trainer.advantage import group_advantages
from trainer.config import RLConfig
from trainer.env import TaskEnv
from trainer.loss import PolicyLoss, policy_loss
from trainer.metrics import Metrics
from trainer.model import update_router_bias
from trainer.optimizer import Optimizer
from trainer.policy import Replies, TinyPolicy, micro_batches
from trainer.reward import Rewarder
from trainer.rollout import Rollout, RolloutGroup, collect
from trainer.sft import Progress

UNSEEN = 0.5  # the pass rate assumed of a task that was never sampled: the most uncertain one


def train(
    policy: TinyPolicy,
    envs: Sequence[TaskEnv],
    rewarder: Rewarder,
    config: RLConfig,
    *,
    run_dir: Path,
    seed: int,
    temperature: float = 1.0,
    pass_rates: Mapping[str, float] | None = None,
    progress: Progress = lambda *_: None,
) -> float:
    """Train in place up to `config.steps`, from the newest checkpoint on. Returns the seconds it took in all.

    `pass_rates` by task id, from an evaluation, tell which tasks to start with. Raises RunError without tasks,
    SandboxError when no rollout of a step could be verified.
    """
    if not envs:
        raise RunError("no training task fits: raise [trainer] max_prompt_tokens or max_new_tokens, or make more tasks")
    folder = run_dir / "train" / "checkpoints"
    optimizer = Optimizer(policy.model, config.optimizer, steps=config.steps * config.epochs)
    rates = torch.tensor([(pass_rates or {}).get(env.task.id, UNSEEN) for env in envs], dtype=torch.float64)
    start, before = checkpoint.resume(folder, "rl", policy, optimizer, rates=rates)
    clock = time.monotonic() - before
    with Metrics(run_dir, "rl", resume_at=start) as metrics:
        for step in range(start, config.steps):
            chosen = pick(rates, config, seed, step)
            groups = collect(
                policy, [envs[i] for i in chosen], rewarder,
                samples=config.samples, temperature=temperature, seed=(seed, 2, step),
            )  # fmt: skip
            for i, group in zip(chosen, groups, strict=True):
                rates[i] = rates[i] if group.mean is None else group.mean
            numbers = describe(groups)
            lessons = [lesson for group in groups if (lesson := to_lesson(group, config)) is not None]
            for _ in range(config.epochs if lessons else 0):
                numbers |= _update(policy, optimizer, lessons, config, temperature)
            policy.version += 1
            metrics.log(step + 1, **numbers, seconds=time.monotonic() - clock)
            progress(step + 1, config.steps, f"reward {numbers['reward']:.3f}")
            if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
                seconds = time.monotonic() - clock
                checkpoint.save_training(folder, "rl", step + 1, policy, optimizer, seconds=seconds, rates=rates)
    return time.monotonic() - clock


def pick(rates: torch.Tensor, config: RLConfig, seed: int, step: int) -> list[int]:
    """Distinct tasks for one step, drawn with weight p(1-p) + explore: those the policy sometimes solves come first.

    Weighted sampling without replacement by keys u^(1/w) (Efraimidis and Spirakis, 2006), with one u per task from
    (seed, step).
    """
    uniform = np.random.default_rng([seed, 3, step]).random(len(rates))
    p = rates.numpy()
    keys = np.log(uniform) / (p * (1 - p) + config.explore)
    return np.argsort(-keys, kind="stable")[: config.prompts].tolist()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A group that teaches: distinct replies, how often each was drawn, and their per-token training data."""

    replies: Replies
    rollout_logprobs: tuple[float, ...]  # flat over the replies' tokens, like the next two
    advantages: tuple[float, ...]
    weights: tuple[float, ...]


def to_lesson(group: RolloutGroup, config: RLConfig) -> Lesson | None:
    """None when all verified rollouts scored the same. Failed rollouts are left out.

    Equal replies are computed once and counted as often as they were drawn, which is the same loss.
    """
    advantages = group_advantages(group.rewards, leave_one_out=config.leave_one_out)
    if advantages is None:
        return None
    kept = [(r, a) for r, a in zip(group.rollouts, advantages, strict=True) if a is not None]
    counts = Counter(rollout.sample.ids for rollout, _ in kept)
    distinct = {rollout.sample.ids: (rollout, advantage) for rollout, advantage in kept}
    flat = [(r, a, float(counts[ids]), t) for ids, (r, a) in distinct.items() for t in range(len(ids))]
    return Lesson(
        replies=Replies(prompt=group.env.prompt, replies=tuple(distinct)),
        rollout_logprobs=tuple(r.sample.rollout_logprobs[t] for r, _, _, t in flat),
        advantages=tuple(a for _, a, _, _ in flat),
        weights=tuple(n for _, _, n, _ in flat),
    )


def _update(
    policy: TinyPolicy, optimizer: Optimizer, lessons: list[Lesson], config: RLConfig, temperature: float
) -> dict[str, float]:
    """One optimizer step on the token-mean loss over all lessons. Returns its numbers."""
    loss_of = policy_loss(config.loss, low=config.low, high=config.high, tau=config.tau)
    tokens = sum(sum(lesson.weights) for lesson in lessons)
    sums: Counter[str] = Counter()
    for chosen in micro_batches([lesson.replies for lesson in lessons], max_tokens=16384):
        part = [lessons[i] for i in chosen]
        logprobs_N, entropy_N = policy.logprobs([lesson.replies for lesson in part], temperature=temperature)
        weights_N = torch.tensor([w for lesson in part for w in lesson.weights])
        result = loss_of(
            logprobs_N,
            torch.tensor([x for lesson in part for x in lesson.rollout_logprobs]),
            torch.tensor([a for lesson in part for a in lesson.advantages]),
            torch.ones_like(logprobs_N, dtype=torch.bool),
            tokens=tokens,
            weights=weights_N,
        )
        result.loss.backward()
        sums.update(_sums(result, float((entropy_N * weights_N).sum())))
    norm = optimizer.step()
    update_router_bias(policy.model)
    means = {name: sums[name] / tokens for name in ("clipped", "mismatch_kl", "entropy")}
    return {"loss": sums["loss"], "grad_norm": norm, "tokens": tokens, **means}


def _sums(result: PolicyLoss, entropy: float) -> dict[str, float]:
    loss, clipped, kl = result.loss.item(), float(result.clipped), float(result.kl)
    return {"loss": loss, "clipped": clipped, "mismatch_kl": kl, "entropy": entropy}


def describe(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """What the rollouts of one step look like. Raises SandboxError when none could be verified."""
    rollouts: list[Rollout] = [rollout for group in groups for rollout in group.rollouts]
    rewards = [rollout.reward for rollout in rollouts if rollout.reward is not None]
    if not rewards:
        raise SandboxError(f"no rollout of this step could be verified; the first: {rollouts[0].reason}")
    lengths = [len(rollout.sample.ids) for rollout in rollouts]
    return {
        "reward": float(np.mean(rewards)),
        "unanimous": float(np.mean([group_advantages(group.rewards) is None for group in groups])),
        "failed": float(len(rollouts) - len(rewards)),
        "reply_tokens": float(np.mean(lengths)),
        "truncated": float(np.mean([not rollout.sample.finished for rollout in rollouts])),
    }
