"""Every task of a set through its checks again, and its verifier through mutation testing: what a buyer may ask to see.

Audited   what came of one task: counts of replies by kind, the check that failed, the replies that prove it
audit     one task; it goes on where `kgsynth.validate` would stop
Tally     one type of task, all together: a row of the table
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kgsynth.errors import SandboxError, TaskError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.validate import Trial, ValidateConfig, faults, seen_keys, trials, unread
from kgsynth.verifiers import NEEDS_SANDBOX

SHOWN = 400  # characters of a reply that are kept as proof
MOST_SHOWN = 5  # of a task
ENOUGH = 0.95  # of the wrong answers to a task that must be rejected
WRONG = ("wrong", "mutated")


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What came of one task."""

    task: str  # Task.id
    type: str
    asked: str  # how hard it was tried; another audit has other rows
    check: str = ""  # the first check that failed; "" when it passes
    message: str = ""
    tried: Mapping[str, int] = field(default_factory=dict)  # replies by kind, as in `Trial`
    bad: Mapping[str, int] = field(default_factory=dict)  # those with a fault
    examples: tuple[Mapping[str, str], ...] = ()  # {"kind", "how", "why", "answer"} of those
    unjudged: str = ""  # why it could not be tried; that says nothing about the task
    seconds: float = 0.0

    @property
    def wrong(self) -> tuple[int, int]:
        """(rejected, tried) of the planted and mutated answers."""
        tried = sum(self.tried.get(kind, 0) for kind in WRONG)
        return tried - sum(self.bad.get(kind, 0) for kind in WRONG), tried

    def to_row(self) -> dict[str, Any]:
        return {**asdict(self), "tried": dict(self.tried), "bad": dict(self.bad)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Audited:
        """Inverse of to_row. Raises TaskError when it is none."""
        try:
            return cls(**{**row, "examples": tuple(row["examples"])})
        except (TypeError, KeyError) as error:
            raise TaskError(f"not a row of an audit: {error}; delete the file, or choose another --out") from error


def asked(*, deep: bool, wrong: int, right: int, seed: int) -> str:
    return f"{wrong} wrong, {right} right, seed {seed}" if deep else "as planted"


def audit(
    task: Task, sandbox: Sandbox | None, *, deep: bool = True, wrong: int = 10, right: int = 5, seed: int = 0
) -> Audited:
    """Put a task through every check, without stopping at the first that fails. Uniqueness within a set is the set's matter.

    deep: besides what was planted, near misses up to `wrong` wrong answers, at least half of them fresh, and up to `right` other
    forms of the right answer (fewer of pictures, kernels and worlds). Never raises because of a task.
    """
    label, start = asked(deep=deep, wrong=wrong, right=right, seed=seed), time.perf_counter()
    fresh = max(wrong - len(task.wrong), -(-wrong // 2)) if deep else 0
    found, tried = list(faults(task)), list[Trial]()
    failed = ""
    if not any(check == "form" for check, _ in found):
        try:
            tried.extend(trials(task, sandbox, ValidateConfig(mutations=fresh, right=right if deep else 0), seed))
            found += [(trial.check, trial.fault) for trial in tried if trial.fault]
            if tried[0].verdict.score >= 1 and (what := unread(tuple(t.verdict for t in tried if t.kind == "wrong"))):
                found.append(("wrong", what))
        except VerifierError as error:
            if sandbox is None and task.verifier.name in NEEDS_SANDBOX:
                failed = f"{type(error).__name__}: {error}"
            else:
                found.append(("form", f"the verifier refuses its parameters: {error}"))
        except SandboxError as error:
            failed = f"{type(error).__name__}: {error}"
    check, message = found[0] if found else ("", "")
    return Audited(
        task=task.id, type=task.type, asked=label, check=check, message=message[: 2 * SHOWN],
        tried=dict(Counter(trial.kind for trial in tried)), bad=dict(Counter(trial.kind for trial in tried if trial.fault)),
        examples=tuple(map(_example, [trial for trial in tried if trial.fault][:MOST_SHOWN])), unjudged=failed[:SHOWN],
        seconds=round(time.perf_counter() - start, 4),
    )  # fmt: skip


def _example(trial: Trial) -> dict[str, str]:
    return {"kind": trial.kind, "how": trial.how, "why": trial.fault[:SHOWN], "answer": trial.answer[:SHOWN]}


def repeated(tasks: Iterable[Task]) -> dict[str, str]:
    """Task.id -> that of an earlier task with the same prompt and pictures."""
    first: dict[str, str] = {}
    twice: dict[str, str] = {}
    for task in tasks:
        key = seen_keys(task)[1]
        if key in first:
            twice[task.id] = first[key]
        first.setdefault(key, task.id)
    return twice


@dataclass(frozen=True, kw_only=True)
class Tally:
    """The tasks of one type. Shares are in [0, 1], and 1 where nothing was tried."""

    type: str
    tasks: int
    passed: int
    oracle: float  # of the references are accepted
    empty: float  # of the empty, blank and guessed answers are paid
    wrong: float  # of the wrong answers are rejected
    wrong_tried: int
    enough: float  # of the tasks reject at least ENOUGH of them
    right: float  # of the other forms of right answers are accepted
    right_tried: int
    checks: Mapping[str, int]  # tasks by the check that failed
    unjudged: int
    seconds: float  # of work, in all threads


def tally(name: str, results: Sequence[Audited]) -> Tally:
    judged = [result for result in results if not result.unjudged]
    tried, bad = Counter[str](), Counter[str]()
    for result in judged:
        tried.update(result.tried)
        bad.update(result.bad)
    sound = [result.wrong for result in judged if result.wrong[1]]
    wrong = sum(tried[kind] for kind in WRONG)
    return Tally(
        type=name, tasks=len(results), passed=sum(not result.check for result in judged),
        oracle=1 - _share(bad["oracle"], tried["oracle"]),
        empty=_share(bad["empty"] + bad["trivial"], tried["empty"] + tried["trivial"]),
        wrong=1 - _share(sum(bad[kind] for kind in WRONG), wrong), wrong_tried=wrong,
        enough=1 - _share(sum(rejected < ENOUGH * total for rejected, total in sound), len(sound)),
        right=1 - _share(bad["right"], tried["right"]), right_tried=tried["right"],
        checks=dict(Counter(result.check for result in judged if result.check).most_common()),
        unjudged=len(results) - len(judged), seconds=round(sum(result.seconds for result in results), 2),
    )  # fmt: skip


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
