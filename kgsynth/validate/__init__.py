"""The gate of the task set: no task passes whose verifier was not seen to accept the right and reject the wrong.

    form     the task says what it must say, and its pictures can be drawn
    leak     neither the prompt nor anything else that the policy sees gives the answer or the tests away
    unique   no task with this identity or this prompt passed before; one answer is right, and no planted one nearly is
    oracle   the reference answer scores 1, and so does it in another form
    empty    nothing, a blank answer and the prompt sent back score 0
    trivial  what needs no solution scores 0: a constant, an argument handed back, a guess that fits every task, another
             function of the prompt under the name that is asked for
    wrong    every planted wrong answer and every mutant scores 0, and at least one was judged by its content

The verifier that is tried here is the one that later pays the reward. Left out: whether the task is interesting,
or as hard as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgsynth.concept import text_hash
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.validate.trials import Trial, ValidateConfig, faults, trials
from kgsynth.verifiers import NEEDS_SANDBOX, Verdict
from kgsynth.verifiers.answer import FORM_REASONS

__all__ = [
    "UNREAD",
    "Trial",
    "ValidateConfig",
    "Validation",
    "faults",
    "prompt_key",
    "seen_keys",
    "trials",
    "unread",
    "validate",
]

# rejected before its content was looked at
UNREAD = (*FORM_REASONS, "syntax error", "no such function", "not an option", "not a number", "no span", "not JSON")


@dataclass(frozen=True, kw_only=True)
class Validation:
    """A task that passed, with every verdict it took: {"oracle": (one,), "empty": (...), "wrong": (...), ...}."""

    task: Task
    verdicts: Mapping[str, tuple[Verdict, ...]]  # kind of reply, as in `Trial`


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
    for check, what in faults(task):
        raise ValidationError(check, what)
    for key, what in zip(seen_keys(task), ("identity", "prompt"), strict=True):
        if key in seen:
            raise ValidationError("unique", f"a task with the same {what} passed before ({key})")
    try:
        verdicts = _verdicts(task, sandbox, config, seed)
    except VerifierError as error:
        if sandbox is None and task.verifier.name in NEEDS_SANDBOX:
            raise  # the caller's fault, not the task's
        raise ValidationError("form", f"the verifier refuses its parameters: {error}") from error
    seen.update(seen_keys(task))
    return Validation(task=task, verdicts=verdicts)


def _verdicts(task: Task, sandbox: Sandbox | None, config: ValidateConfig, seed: int) -> dict[str, tuple[Verdict, ...]]:
    found: dict[str, tuple[Verdict, ...]] = {}
    for trial in trials(task, sandbox, config, seed):
        if trial.fault:
            raise ValidationError(trial.check, trial.fault)
        found[trial.kind] = (*found.get(trial.kind, ()), trial.verdict)
    if what := unread(found.get("wrong", ())):
        raise ValidationError("wrong", what)
    return found


def unread(planted: tuple[Verdict, ...]) -> str:
    """Why the planted answers prove nothing; "" when one of them was judged by its content."""
    if not planted:
        return "no wrong answer is planted"
    if all(verdict.reason in UNREAD for verdict in planted):
        reasons = ", ".join(sorted({verdict.reason for verdict in planted}))
        return f"every planted answer is rejected unread ({reasons}); plant one that can be judged"
    return ""


def seen_keys(task: Task) -> tuple[str, str]:
    """What makes a task the same as another: its id, or its prompt (with its pictures) up to case and white space."""
    return task.id, prompt_key(task.prompt, *(image.source for image in task.images))


def prompt_key(prompt: str, *pictures: str) -> str:
    """A hash of the prompt's text; case and white space do not count. Pictures that belong to it do."""
    return "p_" + text_hash("\0".join([" ".join(prompt.casefold().split()), *pictures]))
