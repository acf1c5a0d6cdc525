"""The gate of the task set: no task passes whose verifier was not seen to accept the right and reject the wrong.

    form     the task says what it must say, and its pictures can be drawn
    leak     neither the prompt nor anything else that the policy sees gives the answer or the tests away
    unique   no task with this identity or this prompt passed before; one answer is right, and no planted one nearly is
    oracle   the reference answer scores 1, and so does it in another form
    empty    nothing, a blank answer and the prompt sent back score 0
    trivial  what needs no solution scores 0: a constant, an argument handed back, a guess that fits every task
    wrong    every planted wrong answer and every mutant scores 0, and at least one was judged by its content

The verifier that is tried here is the one that later pays the reward. Left out: whether the task is interesting,
or as hard as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgsynth.concept import text_hash
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.mutate import apart, brisk, counts, paid, right_variants, rng_of, wrong_variants
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.validate.answers import ambiguity
from kgsynth.validate.form import fault
from kgsynth.validate.leak import leak
from kgsynth.validate.trivial import guesses, needs_no_solution
from kgsynth.verifiers import NEEDS_SANDBOX, Verdict, verify
from kgsynth.verifiers.answer import CLOSE, FORM_REASONS, OPEN, extract

# rejected before its content was looked at
UNREAD = (*FORM_REASONS, "syntax error", "no such function", "not an option", "not a number", "no span", "not JSON")
SLOW = {"picture": 2, "kernel": 1}  # variants of one task, at most, where each takes seconds


@dataclass(frozen=True, kw_only=True)
class ValidateConfig:
    """[validate]: how hard a task is tried, beyond what was planted in it. Variants are those of `kgsynth.mutate`."""

    mutations: int = 4  # wrong variants of the right answer; 0: none
    right: int = 1  # right variants


@dataclass(frozen=True, kw_only=True)
class Validation:
    """A task that passed, with every verdict it took: {"oracle": (one,), "empty": (...), "wrong": (...), ...}."""

    task: Task
    verdicts: Mapping[str, tuple[Verdict, ...]]


def validate(
    task: Task,
    sandbox: Sandbox | None,
    *,
    seen: set[str] | None = None,
    config: ValidateConfig = ValidateConfig(),
    seed: int = 0,
) -> Validation:
    """Put one task through every check. When it passes, its keys are added to `seen`.

    `seen` holds the `seen_keys` of the tasks that passed before; `seed` is that of the variants. Raises ValidationError,
    whose `check` names the check that failed; SandboxError when code could not be run and VerifierError when a sandbox
    is needed and missing: these say nothing about the task.
    """
    seen = seen if seen is not None else set()
    _check("form", fault(task))
    _check("leak", leak(task))
    _check_unique(task, seen)
    try:
        verdicts = _judged(task, sandbox, config, seed)
    except VerifierError as error:
        if sandbox is None and task.verifier.name in NEEDS_SANDBOX:
            raise  # the caller's fault, not the task's
        raise ValidationError("form", f"the verifier refuses its parameters: {error}") from error
    seen.update(seen_keys(task))
    return Validation(task=task, verdicts=verdicts)


def seen_keys(task: Task) -> tuple[str, str]:
    """What makes a task the same as another: its id, or its prompt (with its pictures) up to case and white space."""
    return task.id, prompt_key(task.prompt, *(image.source for image in task.images))


def prompt_key(prompt: str, *pictures: str) -> str:
    """A hash of the prompt's text; case and white space do not count. Pictures that belong to it do."""
    return "p_" + text_hash("\0".join([" ".join(prompt.casefold().split()), *pictures]))


def _check(name: str, fault: str) -> None:
    if fault:
        raise ValidationError(name, fault)


def _check_unique(task: Task, seen: set[str]) -> None:
    for key, what in zip(seen_keys(task), ("identity", "prompt"), strict=True):
        if key in seen:
            raise ValidationError("unique", f"a task with the same {what} passed before ({key})")
    _check("unique", ambiguity(task))


def _judged(task: Task, sandbox: Sandbox | None, config: ValidateConfig, seed: int) -> dict[str, tuple[Verdict, ...]]:
    oracle = _oracle(task, sandbox)
    _check("trivial", needs_no_solution(task))
    quick, most = brisk(task, oracle.seconds), SLOW.get(task.verifier.name, 1000)
    return {
        "oracle": (oracle,),
        "empty": _empty(task, sandbox),
        "trivial": tuple(_rejected("trivial", answer, task, sandbox) for answer in guesses(task)),
        "wrong": _wrong(quick, task, sandbox),
        "right": _right(task, sandbox, min(config.right, most), seed),
        "mutated": _mutated(quick, sandbox, min(config.mutations, most), seed),
    }


def _oracle(task: Task, sandbox: Sandbox | None) -> Verdict:
    verdict = verify(task.reference, task, sandbox)
    if verdict.score != 1:
        raise ValidationError("oracle", f"the reference answer scores {verdict.score:g}: {told(verdict)}")
    return verdict


def _empty(task: Task, sandbox: Sandbox | None) -> tuple[Verdict, ...]:
    nothings = ("", OPEN + CLOSE, f"{OPEN} {CLOSE}", task.prompt, OPEN + task.prompt + CLOSE)
    return tuple(_rejected("empty", answer, task, sandbox) for answer in nothings)


def _wrong(quick: Task, task: Task, sandbox: Sandbox | None) -> tuple[Verdict, ...]:
    if not task.wrong:
        raise ValidationError("wrong", "no wrong answer is planted")
    for answer in task.wrong:
        if missing := extract(answer, len(answer))[1]:
            raise ValidationError("wrong", f"a planted answer tests nothing ({missing}): {answer[:80]!r}")
    verdicts = tuple(_rejected("wrong", answer, quick, sandbox) for answer in task.wrong)
    if all(verdict.reason in UNREAD for verdict in verdicts):
        reasons = ", ".join(sorted({verdict.reason for verdict in verdicts}))
        raise ValidationError(
            "wrong", f"every planted answer is rejected unread ({reasons}); plant one that can be judged"
        )
    return verdicts


def _right(task: Task, sandbox: Sandbox | None, n: int, seed: int) -> tuple[Verdict, ...]:
    verdicts = []
    for variant in right_variants(task, rng_of(task, seed, "right"), n):
        verdicts.append(verdict := verify(variant.answer, task, sandbox))
        if verdict.score < 1:
            raise ValidationError(
                "oracle",
                f"a right answer in another form ({variant.how}) scores {verdict.score:g}: {told(verdict)}: {variant.answer[:80]!r}",
            )
    return tuple(verdicts)


def _mutated(quick: Task, sandbox: Sandbox | None, n: int, seed: int) -> tuple[Verdict, ...]:
    """The verdicts on mutants. One that is paid is a fault, unless nothing tells it from the right answer."""
    verdicts = []
    for variant in wrong_variants(quick, rng_of(quick, seed, "wrong"), n):
        verdict = verify(variant.answer, quick, sandbox)
        if counts(verdict):
            verdicts.append(verdict)
        if paid(quick, verdict) and (why := apart(quick, variant, sandbox)):
            raise ValidationError(
                "wrong",
                f"the verifier gives {verdict.score:g} to a near miss ({variant.how}; {why}): {variant.answer[:200]!r}",
            )
    return tuple(verdicts)


def _rejected(check: str, answer: str, task: Task, sandbox: Sandbox | None) -> Verdict:
    verdict = verify(answer, task, sandbox)
    if verdict.score != 0:
        raise ValidationError(check, f"the verifier gives {verdict.score:g} to {answer[:80]!r}: {told(verdict)}")
    return verdict


def told(verdict: Verdict) -> str:
    return f"{verdict.reason} {dict(verdict.evidence)}" if verdict.evidence else verdict.reason
