"""Mutation testing of verifiers: right answers in other forms, which must be paid, and near misses, which must not.

    Variant        a whole reply, and what was done to make it
    right_variants what a fair reader accepts as well: other notation, white space, order where none is asked for, code rewritten
    wrong_variants what is nearly right: one step, digit, item or operator off (DeMillo, Lipton and Sayward, 1978)
    apart          for a wrong variant that was paid: what tells it from the right answer, "" when nothing does

One file per family of verifiers. Variants depend on the task and the generator only. A wrong variant of a text, number or
list is wrong by what it says. A mutant of code may be the same function in other words: one that is paid is run against the
reference on inputs that no test has (`apart`); when no input tells them apart it is equivalent and does not count, else the
task's tests are weak.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.answer import CLOSE, OPEN, extract

LONGEST = 1 << 30  # no limit, for `extract`: references are ours
UNREAD_CODE = ("syntax error", "no such function", "load error", "malformed")  # a mutant that cannot be run is none

Named = tuple[str, str]  # (what was done, the inside of an answer)
Maker = Callable[[Task, random.Random], Iterable[Named]]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A reply made from a task's right answer."""

    answer: str  # whole, with its tags
    how: str  # what was done, in words: "one item missing"


Apart = Callable[[Task, Variant, Sandbox], str]


@dataclass(frozen=True, kw_only=True)
class Mutator:
    """How answers to the tasks of one verifier are varied."""

    verifier: str
    right: Maker
    wrong: Maker
    apart: Apart | None = None  # None: a wrong variant is wrong by what it says
    most: int = 1000  # wrong variants of one task worth their time, for verifiers that are slow


REGISTRY: dict[str, Mutator] = {}


def register(mutator: Mutator) -> None:
    """Raises VerifierError when the verifier has one."""
    if mutator.verifier in REGISTRY:
        raise VerifierError(f"verifier {mutator.verifier!r} has a mutator already")
    REGISTRY[mutator.verifier] = mutator


def rng_of(task: Task, seed: int, purpose: str) -> random.Random:
    """A generator that depends on (task, seed, purpose) only."""
    return random.Random(f"{seed}:{task.id}:{purpose}")


def right_variants(task: Task, rng: random.Random, n: int) -> list[Variant]:
    """Up to n replies that are as right as the reference: rewritten ones and other forms of a reply in turn."""
    maker = REGISTRY.get(task.verifier.name)
    rewritten = (Variant(answer=tagged(text), how=how) for how, text in (maker.right(task, rng) if maker else ()))
    return list(islice(_new(_in_turn(rewritten, forms.replies(task, rng)), {task.reference}), n))


def wrong_variants(task: Task, rng: random.Random, n: int) -> list[Variant]:
    """Up to n replies that are nearly right, none of them planted in the task, the most plausible first."""
    maker = REGISTRY.get(task.verifier.name)
    if maker is None:
        return []
    made = (Variant(answer=tagged(text), how=how) for how, text in maker.wrong(task, rng))
    return list(islice(_new(made, {task.reference, *task.wrong}), min(n, maker.most)))


def apart(task: Task, variant: Variant, sandbox: Sandbox | None) -> str:
    """What tells a wrong variant that was paid from the right answer; "" when nothing does, and it is as good.

    Raises SandboxError when code could not be run.
    """
    maker = REGISTRY[task.verifier.name]
    if maker.apart is None:
        return variant.how
    if sandbox is None:
        raise VerifierError(f"answers to {task.verifier.name!r} are compared by running them: pass a sandbox")
    return maker.apart(task, variant, sandbox)


def counts(verdict: Verdict) -> bool:
    """Whether a wrong variant was judged: one that does not parse says nothing about the verifier."""
    return verdict.reason not in UNREAD_CODE


def partly(task: Task) -> bool:
    """Whether a nearly right answer to this task is paid in part, by its author's will."""
    params = task.verifier.params
    return params.get("partial") not in (None, False, "no") or bool(params.get("graded") or params.get("speed"))


def paid(task: Task, verdict: Verdict) -> bool:
    """Whether a wrong answer got what it must not get: anything, or where parts are paid, all of it."""
    return verdict.score >= 1 if partly(task) else verdict.score > 0


def brisk(task: Task, seconds: float) -> Task:
    """The same task with less patience, for answers that are expected to be wrong: a mutant may hang. `seconds` is what the
    right answer took; it would still pass. For verifiers whose limit is per call or per test."""
    if task.verifier.name not in ("function_tests", "properties", "programs"):
        return task
    limit = min(float(task.verifier.params.get("seconds", 5)), max(2.0, 8 * seconds))
    return replace(task, verifier=replace(task.verifier, params={**task.verifier.params, "seconds": limit}))


def tagged(text: str) -> str:
    return f"{OPEN}{text}{CLOSE}"


def inside(reply: str) -> str:
    """What a reply of ours has between its tags."""
    return extract(reply, LONGEST)[0]


def in_turn(groups: dict[str, list[str]], rng: random.Random) -> Iterator[Named]:
    """(group, member) of shuffled groups, one of each group after the other, so that the first few differ in kind."""
    queues = [(how, rng.sample(members, len(members))) for how, members in groups.items() if members]
    rng.shuffle(queues)
    for round in range(max((len(members) for _, members in queues), default=0)):
        yield from ((how, members[round]) for how, members in queues if round < len(members))


def _in_turn(a: Iterator[Variant], b: Iterator[Variant]) -> Iterator[Variant]:
    while pair := [*islice(a, 1), *islice(b, 1)]:
        yield from pair


def _new(variants: Iterable[Variant], known: set[str]) -> Iterator[Variant]:
    seen = {inside(answer).strip() or answer for answer in known}
    for variant in variants:
        key = inside(variant.answer).strip() or variant.answer
        if variant.answer not in known and (key not in seen or variant.how.startswith("reply:")):
            seen.add(key)
            known.add(variant.answer)
            yield variant


from kgsynth.mutate import forms  # noqa: E402

for _part in ("texts", "numbers", "literals", "lists", "documents", "formulas", "functions", "programs", "kernels", "worlds", "pictures"):  # fmt: skip
    importlib.import_module(f"{__name__}.{_part}")
