"""What a task is tried with, one reply after the other: the reference, nothing, guesses, what was planted, variants of the right answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kgsynth.mutate import apart, brisk, counts, paid, right_variants, rng_of, wrong_variants
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.validate.answers import ambiguity
from kgsynth.validate.form import fault
from kgsynth.validate.leak import leak
from kgsynth.validate.trivial import borrowed, guesses, needs_no_solution
from kgsynth.verifiers import Verdict, verify
from kgsynth.verifiers.answer import CLOSE, OPEN, extract

CHECKS = {"mutated": "wrong", "right": "oracle"}  # kinds of replies whose check has another name
SLOW = {"picture": 3, "kernel": 3, "world": 2}  # each variant takes long: a third, or half, of them is tried


@dataclass(frozen=True, kw_only=True)
class ValidateConfig:
    """[validate]: how hard a task is tried, beyond what was planted in it. Variants are those of `kgsynth.mutate`."""

    mutations: int = 4  # near misses of the right answer; 0: none. Of pictures and kernels a third, of worlds half.
    right: int = 1  # the right answer in other forms


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One reply and what came of it."""

    kind: str  # "oracle", "empty", "trivial", "wrong" (planted), "right" or "mutated"
    how: str  # what the reply is, in words
    answer: str  # whole
    verdict: Verdict
    fault: str = ""  # why this must not be

    @property
    def check(self) -> str:
        """The check that fails when there is a fault."""
        return CHECKS.get(self.kind, self.kind)


def faults(task: Task) -> Iterator[tuple[str, str]]:
    """(check, what is wrong), as far as that can be seen without judging an answer. What is malformed is not looked into."""
    if what := fault(task):
        yield "form", what
        return
    for check, find in (("leak", leak), ("unique", ambiguity), ("trivial", needs_no_solution)):
        if what := find(task):
            yield check, what


def trials(task: Task, sandbox: Sandbox | None, config: ValidateConfig, seed: int = 0) -> Iterator[Trial]:
    """Every reply and its verdict. Without a reference that scores 1 nothing else is tried.

    A mutant that is paid, and that nothing tells from the right answer, is left out; so is one that cannot be run. Raises
    SandboxError when code could not be run, VerifierError for parameters that cannot be used.
    """
    oracle = verify(task.reference, task, sandbox)
    right = oracle.score >= 1
    yield Trial(
        kind="oracle", how="the reference", answer=task.reference, verdict=oracle,
        fault="" if right else f"the reference answer scores {oracle.score:g}: {told(oracle)}",
    )  # fmt: skip
    if right:
        quick, every = brisk(task, oracle.seconds), SLOW.get(task.verifier.name, 1)
        yield from _given("empty", task, nothings(task), sandbox)
        yield from _given("trivial", task, dict.fromkeys(guesses(task), "a guess"), sandbox)
        yield from _given("trivial", quick, dict.fromkeys(borrowed(task), "a function of the prompt"), sandbox)
        yield from _given("wrong", quick, dict.fromkeys(task.wrong, "planted"), sandbox)
        yield from _right(task, sandbox, -(-config.right // every), seed)
        yield from _mutated(task, quick, sandbox, -(-config.mutations // every), seed)


def nothings(task: Task) -> dict[str, str]:
    """Reply -> what it is, of replies without an answer."""
    return {
        "": "nothing", OPEN + CLOSE: "an empty answer", f"{OPEN} {CLOSE}": "a blank answer",
        task.prompt: "the prompt", OPEN + task.prompt + CLOSE: "the prompt as an answer",
    }  # fmt: skip


def _given(kind: str, task: Task, replies: dict[str, str], sandbox: Sandbox | None) -> Iterator[Trial]:
    """Replies that must score 0."""
    for answer, how in replies.items():
        verdict = verify(answer, task, sandbox)
        what = f"the verifier gives {verdict.score:g} to {answer[:80]!r}: {told(verdict)}" if verdict.score else ""
        if kind == "wrong" and (missing := extract(answer, len(answer))[1]):
            what = f"a planted answer tests nothing ({missing}): {answer[:80]!r}"
        yield Trial(kind=kind, how=how, answer=answer, verdict=verdict, fault=what)


def _right(task: Task, sandbox: Sandbox | None, n: int, seed: int) -> Iterator[Trial]:
    for variant in right_variants(task, rng_of(task, seed, "right"), n):
        verdict = verify(variant.answer, task, sandbox)
        what = f"a right answer in another form ({variant.how}) scores {verdict.score:g}: {told(verdict)}: {variant.answer[:80]!r}"
        yield Trial(
            kind="right",
            how=variant.how,
            answer=variant.answer,
            verdict=verdict,
            fault=what if verdict.score < 1 else "",
        )


def _mutated(task: Task, quick: Task, sandbox: Sandbox | None, n: int, seed: int) -> Iterator[Trial]:
    for variant in wrong_variants(task, rng_of(task, seed, "wrong"), n):
        verdict, what = verify(variant.answer, quick, sandbox), ""
        if paid(task, verdict):
            if not (why := apart(task, variant, sandbox)):
                continue
            what = (
                f"the verifier gives {verdict.score:g} to a near miss ({variant.how}; {why}): {variant.answer[:200]!r}"
            )
        if counts(verdict):
            yield Trial(kind="mutated", how=variant.how, answer=variant.answer, verdict=verdict, fault=what)


def told(verdict: Verdict) -> str:
    return f"{verdict.reason} {dict(verdict.evidence)}" if verdict.evidence else verdict.reason
