"""Every attack on every task: what was paid, what was refused and why, what brought the verifier down.

An assault is one attack on one task. Assaults are independent of one another and may run in threads; a row for each is what
is kept on disk, so that a killed campaign goes on where it was.
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kgsynth.attack import Attack, attacks_on
from kgsynth.attack.forms import PWNED
from kgsynth.errors import SandboxError, TaskError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.threads import as_done
from kgsynth.verifiers import NEEDS_SANDBOX, verify

SLOW = NEEDS_SANDBOX | {"mathematics"}  # verifiers that start something for each reply
SLOWEST = ("picture", "kernel", "world")
PATIENT = ("function_tests", "properties", "programs", "world")  # verifiers that take `seconds`
SECONDS = 1.0
SHOWN = 300  # characters of a paid reply that are kept
Key = tuple[str, str, str]
EXECUTED = "the answer was executed in the grader"


@dataclass(frozen=True, kw_only=True)
class Assault:
    """What came of one attack on one task: counts of replies, and the verdicts' reasons."""

    task: str  # Task.id
    type: str
    attack: str
    replies: str  # a hash of them: rows of another version of the attack are not taken for this one's
    tried: int
    paid: int = 0  # with a score above 0
    unjudged: int = 0  # no box could be made, or the task's parameters are refused: says nothing
    broken: int = 0  # the verifier raised what it must not, or executed the reply
    reasons: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()  # of replies that were paid, cut; and what the verifier raised

    @property
    def key(self) -> Key:
        return self.task, self.attack, self.replies

    def to_row(self) -> dict[str, Any]:
        return {**asdict(self), "reasons": dict(self.reasons)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Assault:
        """Inverse of to_row. Raises TaskError when it is none."""
        try:
            return cls(**{**row, "examples": tuple(row["examples"])})
        except (TypeError, KeyError) as error:
            raise TaskError(f"not a row of an attack: {error}; delete the file, or choose another --out") from error


def held(attack: Attack, result: Assault) -> bool:
    """Whether the verifier behaved: nothing paid for a trick, one option in n for a guess, everything for the oracle."""
    most = {"never": 0, "once": 1, "always": result.tried}[attack.pays]
    least = result.tried - result.unjudged if attack.pays == "always" else 0
    return least <= result.paid <= most and not result.broken


def campaign(
    tasks: Sequence[Task],
    attacks: Mapping[str, Attack],
    sandbox: Sandbox | None,
    *,
    seed: int = 0,
    workers: int = 1,
    each: int | None = None,
    known: Callable[[Key], bool] = lambda key: False,
) -> Iterator[Assault]:
    """Each assault as it ends, in any order. Those whose key is `known` are left out. `each`: see `planned`."""
    jobs = planned(tasks, attacks, each=each, seed=seed)

    def fought(job: tuple[Task, Attack]) -> Assault | None:
        task, found = job
        answers = found.answers(task, seed)
        return None if known(key_of(task, found, answers)) else assault(task, found, answers, sandbox)

    yield from (result for result in as_done(fought, jobs, workers) if result)


def planned(
    tasks: Sequence[Task], attacks: Mapping[str, Attack], *, each: int | None = None, seed: int = 0
) -> list[tuple[Task, Attack]]:
    """Which attacks are made on which tasks, in the order of the tasks.

    What is about a task is tried on every task. What is about the grader, or about the form of replies that take time to judge, does
    the same on all tasks of a type: with `each` it is tried on so many of them, other ones for every attack, so that most
    tasks meet some; on a quarter as many where a reply takes a second or more.
    """
    spared: dict[str, set[str]] = {}
    for found in attacks.values() if each else ():
        of: dict[str, list[Task]] = {}
        for task in tasks:
            if found.applies(task) and _alike(found, task):
                of.setdefault(task.type, []).append(task)
        for alike in of.values():
            slow = found.slow or alike[0].verifier.name in SLOWEST
            most = -(-(each or 0) // 4) if slow else each
            alike.sort(key=lambda task: hashlib.sha256(f"{seed}:{found.name}:{task.id}".encode()).digest())
            spared.setdefault(found.name, set()).update(task.id for task in alike[most:])
    return [
        (task, found)
        for task in tasks
        for found in attacks_on(task)
        if found.name in attacks and task.id not in spared.get(found.name, ())
    ]


def _alike(attack: Attack, task: Task) -> bool:
    """Whether an attack does the same on other tasks of this type, at a price."""
    return attack.about == "grader" or (attack.about == "reply" and task.verifier.name in SLOW)


def _impatient(task: Task) -> Task:
    """The same task with short limits, for replies that run into them: who is late is late."""
    if task.verifier.name not in PATIENT:
        return task
    seconds = min(float(task.verifier.params.get("seconds", SECONDS)), SECONDS)
    return replace(task, verifier=replace(task.verifier, params={**task.verifier.params, "seconds": seconds}))


def assault(task: Task, attack: Attack, answers: Iterable[str], sandbox: Sandbox | None) -> Assault:
    """Send the replies one by one and count what happens to them."""
    counts, reasons, examples, answers = Counter[str](), Counter[str](), [], list(answers)
    judge = _impatient(task) if attack.slow else task
    verdicts: dict[str, tuple[str, str]] = {}
    for answer in answers:
        kind, reason = verdicts[answer] = verdicts.get(answer) or _sent(
            answer, judge, sandbox, least=1.0 if attack.pays == "always" else sys.float_info.min
        )
        counts[kind] += 1
        reasons[reason] += 1
        if kind in ("paid", "broken") and attack.pays == "never":
            examples.append(f"{reason}: {answer[:SHOWN]}")
    told = {kind: counts[kind] for kind in ("paid", "unjudged", "broken")}
    return Assault(
        task=task.id, type=task.type, attack=attack.name, replies=key_of(task, attack, answers)[2], tried=len(answers),
        reasons=dict(reasons), examples=tuple(examples[:3]), **told,
    )  # fmt: skip


def key_of(task: Task, attack: Attack, answers: Iterable[str]) -> Key:
    """What makes an assault the same as another: the task, the attack and its replies."""
    digest = hashlib.sha256()
    for answer in answers:
        digest.update(hashlib.sha256(answer.encode("utf-8", "surrogatepass")).digest())
    return task.id, attack.name, digest.hexdigest()[:16]


def _sent(answer: str, task: Task, sandbox: Sandbox | None, *, least: float) -> tuple[str, str]:
    """(what happened: paid, refused, unjudged or broken; the reason). `least`: the score that counts as paid."""
    try:
        verdict = verify(answer, task, sandbox)
    except (SandboxError, VerifierError) as error:
        return "unjudged", f"{type(error).__name__}: {str(error)[:SHOWN]}"
    except Exception as error:  # the verifier's fault, whatever it is: told with the others
        return "broken", f"raised {type(error).__name__}: {str(error)[:SHOWN]}"
    if sys.modules.pop(PWNED, None):
        return "broken", EXECUTED
    if not 0 <= verdict.score <= 1:
        return "broken", f"scored {verdict.score}"
    return ("paid" if verdict.score >= least else "refused"), verdict.reason
