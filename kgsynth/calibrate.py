"""How hard the tasks of a set are for a policy, from replies that their own verifiers judged.

    attempts = [attempt(task, reply, tokens, sandbox) for ...]
    tasks = calibrated(tasks, attempts, policy="sft-step-500")
    pools = by_label(tasks)["medium"]

A pass is a score of 1. The interval is Wilson's (1927), which holds for few attempts and for rates of 0 and 1. The label is
that of the rate itself; how sure it is says the interval. The effort budget b0 is what the policy spends when it is right
(Kimi K2.5's and K3's token budgets start from it): the median number of tokens of its right replies. Attempts that could
not be judged count for nothing.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Calibration, Task, TaskSet
from kgsynth.verifiers import verify

Z = 1.959964  # of a 95 % interval
LABELS = ("unsolved", "hard", "medium", "easy", "mastered")
BOUNDS = (1 / 3, 2 / 3)  # pass rates from which a task is medium, and easy


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One judged reply. `score` is None when it could not be judged; `tokens` when nobody counted them."""

    task: str  # Task.id
    score: float | None
    tokens: int | None = None
    reason: str = ""


def attempt(task: Task, reply: str, tokens: int | None, sandbox: Sandbox | None) -> Attempt:
    """Judge one reply by the verifier that pays it. Raises VerifierError for a task that is wrong, never for the reply."""
    try:
        verdict = verify(reply, task, sandbox)
    except SandboxError as error:
        return Attempt(task=task.id, score=None, tokens=tokens, reason=f"sandbox: {error}")
    return Attempt(task=task.id, score=verdict.score, tokens=tokens, reason=verdict.reason)


def calibrated(tasks: Sequence[Task], attempts: Iterable[Attempt], *, policy: str) -> TaskSet:
    """The tasks with what the attempts say about them; tasks without a judged attempt stay as they are."""
    found: Mapping[str, list[Attempt]] = defaultdict(list)
    for one in attempts:
        if one.score is not None:
            found[one.task].append(one)
    return TaskSet(
        replace(task, calibration=calibration(found[task.id], policy)) if task.id in found else task for task in tasks
    )


def calibration(attempts: Sequence[Attempt], policy: str) -> Calibration:
    """Of at least one attempt, all of them judged."""
    right = [one for one in attempts if one.score is not None and one.score >= 1]
    low, high = wilson(len(right), len(attempts))
    tokens = [one.tokens for one in right if one.tokens is not None]
    return Calibration(
        policy=policy,
        attempts=len(attempts),
        pass_rate=len(right) / len(attempts),
        low=low,
        high=high,
        label=label(len(right), len(attempts)),
        b0=round(statistics.median(tokens)) if tokens else None,
    )


def wilson(right: int, n: int, z: float = Z) -> tuple[float, float]:
    """The interval of a rate of which `right` of n were seen (Wilson, 1927, J. Am. Stat. Assoc. 22).

    >>> [round(bound, 3) for bound in wilson(0, 8)], [round(bound, 3) for bound in wilson(4, 8)]
    ([0.0, 0.324], [0.215, 0.785])
    """
    rate, spread = right / n, z * z / n
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / n + spread / (4 * n)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def label(right: int, n: int) -> str:
    """One of LABELS: "unsolved" and "mastered" when none and all of the attempts passed, else by the rate."""
    if right in (0, n):
        return LABELS[-1] if right else LABELS[0]
    return LABELS[1 + sum(right / n >= bound for bound in BOUNDS)]


def by_label(tasks: Iterable[Task]) -> dict[str, TaskSet]:
    """Pools of equal difficulty, in the order of LABELS; tasks that nobody has tried are in "untried"."""
    pools: dict[str, list[Task]] = {name: [] for name in (*LABELS, "untried")}
    for task in tasks:
        pools[task.calibration.label if task.calibration else "untried"].append(task)
    return {name: TaskSet(pool) for name, pool in pools.items() if pool}
