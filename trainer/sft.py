"""Supervised cold start: cross-entropy on the reference replies of training tasks, so that the policy knows the form
of an answer and some answers. Left out: packing, curricula, validation loss.

Gate on `trainer.eval`, not on this loss: a low loss with no task solved is common in small models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from kgsynth.errors import RunError
from trainer import checkpoint
from trainer.config import SFTConfig
from trainer.env import TaskEnv
from trainer.loss import cross_entropy
from trainer.metrics import Metrics
from trainer.model import update_router_bias
from trainer.optimizer import Optimizer
from trainer.policy import Replies, TinyPolicy, micro_batches

Progress = Callable[[int, int, str], None]  # step, steps, a few words


def train(
    policy: TinyPolicy,
    envs: Sequence[TaskEnv],
    config: SFTConfig,
    *,
    run_dir: Path,
    seed: int,
    progress: Progress = lambda *_: None,
) -> float:
    """Train in place up to `config.steps`, from the newest checkpoint on. Returns the seconds it took in all.

    Raises RunError when there is no task to learn from.
    """
    if not envs:
        raise RunError("no training task fits: raise [trainer] max_prompt_tokens or max_new_tokens, or make more tasks")
    folder = run_dir / "train" / "checkpoints"
    optimizer = Optimizer(policy.model, config.optimizer, steps=config.steps)
    start, before = checkpoint.resume(folder, "sft", policy, optimizer)
    clock = time.monotonic() - before
    with Metrics(run_dir, "sft", resume_at=start) as metrics:
        for step in range(start, config.steps):
            batch = [Replies(prompt=env.prompt, replies=(env.reference,)) for env in pick(envs, config, seed, step)]
            loss, tokens = _backward(policy, batch, config)
            norm = optimizer.step()
            update_router_bias(policy.model)
            policy.version += 1
            metrics.log(step + 1, loss=loss, grad_norm=norm, tokens=tokens, seconds=time.monotonic() - clock)
            progress(step + 1, config.steps, f"loss {loss:.3f}")
            if (step + 1) % config.checkpoint_every == 0 or step + 1 == config.steps:
                checkpoint.save_training(folder, "sft", step + 1, policy, optimizer, seconds=time.monotonic() - clock)
    return time.monotonic() - clock


def pick(envs: Sequence[TaskEnv], config: SFTConfig, seed: int, step: int) -> list[TaskEnv]:
    """The tasks of one step: the next `batch_size` of an endless list of seeded permutations, one per epoch."""
    places = range(step * config.batch_size, (step + 1) * config.batch_size)
    orders = {p // len(envs): np.random.default_rng([seed, 1, p // len(envs)]).permutation(len(envs)) for p in places}
    return [envs[orders[place // len(envs)][place % len(envs)]] for place in places]


def _backward(
    policy: TinyPolicy, batch: list[Replies], config: SFTConfig, *, max_tokens: int = 16384
) -> tuple[float, int]:
    """Add up the gradients of the batch's mean loss over micro-batches. Returns that loss in nats and the targets.

    A token of a reply of n tokens weighs n^-length_power: 0 is the mean over tokens, 1 the mean over tasks.
    """
    lengths = [len(reply) for item in batch for reply in item.replies]
    weight, total = sum(n ** (1 - config.length_power) for n in lengths), 0.0
    for chosen in micro_batches(batch, max_tokens=max_tokens):
        part = [batch[i] for i in chosen]
        logprobs_N, _ = policy.logprobs(part)
        lengths_N = torch.tensor([float(len(reply)) for item in part for reply in item.replies for _ in reply])
        counted_N = torch.ones_like(logprobs_N, dtype=torch.bool)
        loss = cross_entropy(logprobs_N, counted_N, tokens=weight, weights=lengths_N**-config.length_power)
        loss.backward()
        total += loss.item()
    return total, sum(lengths)
