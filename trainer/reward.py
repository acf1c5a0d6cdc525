"""Replies -> rewards, by the verifier that admitted the task. Nothing else is rewarded: no shaping, no length bonus.

Verifiers are pure, so equal (task, reply) pairs are verified once. When the sandbox itself fails, that rollout has
no reward: it is recorded with its cause and stays out of every mean and every gradient. It is never a zero.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.task import Task
from kgsynth.verifiers import NEEDS_SANDBOX, verify


@dataclass(frozen=True, kw_only=True)
class Score:
    """`reward` in [0, 1], or None when verification failed; `reason` is the verdict's code or the failure."""

    reward: float | None
    reason: str


class Rewarder:
    """Scores replies, several at a time. Open one with `for_tasks`, which starts a sandbox only where one is needed."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self._sandbox = sandbox
        self._known: dict[tuple[str, str], Score] = {}
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="verify")

    @classmethod
    def for_tasks(cls, tasks: Sequence[Task], backend: str = "bubblewrap") -> Rewarder:
        """Raises SandboxError when a task runs code and that sandbox does not work here."""
        return cls(open_sandbox(backend) if any(task.verifier.name in NEEDS_SANDBOX for task in tasks) else None)

    def score(self, pairs: Sequence[tuple[Task, str]]) -> list[Score]:
        """One score per (task, reply), in order. Raises VerifierError for a misconfigured task."""
        keys = [(task.id, reply) for task, reply in pairs]
        new = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._known}
        scores = dict(zip(new, self._pool.map(self._verify, new.values()), strict=True))
        self._known |= {key: score for key, score in scores.items() if score.reward is not None}
        return [self._known.get(key) or scores[key] for key in keys]

    def _verify(self, pair: tuple[Task, str]) -> Score:
        task, reply = pair
        try:
            verdict = verify(reply, task, self._sandbox)
        except SandboxError as error:
            return Score(reward=None, reason=f"sandbox: {error}")
        return Score(reward=verdict.score, reason=verdict.reason)
