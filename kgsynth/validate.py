"""The gate of the task set: no task passes whose verifier was not seen to accept the right and reject the wrong.

    form     the task says what it must say, and does not give its answer away
    unique   no task with this identity or this prompt passed before
    oracle   the reference answer scores 1
    empty    nothing, a blank answer and the prompt sent back score 0
    wrong    every planted wrong answer scores 0, and at least one was judged by its content

The verifier that is tried here is the one that later pays the reward. Left out: whether the task is interesting,
or as hard as it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.concept import text_hash
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import GRANULARITIES, Task
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict, verify
from kgsynth.verifiers.answer import CLOSE, FORM_REASONS, OPEN, extract
from kgsynth.verifiers.text import normalise

# rejected before its content was looked at
UNREAD = (*FORM_REASONS, "syntax error", "no such function", "not an option", "not a number", "no span", "not JSON")
LONG_LITERAL = 12  # characters; a shorter printed value turns up in a prompt by chance
LONG_NUMBER = 6  # digits; a shorter number does


@dataclass(frozen=True, kw_only=True)
class Validation:
    """A task that passed, with every verdict it took: {"oracle": (one,), "empty": (...), "wrong": (...)}."""

    task: Task
    verdicts: Mapping[str, tuple[Verdict, ...]]


def validate(task: Task, sandbox: Sandbox | None, *, seen: set[str] | None = None) -> Validation:
    """Put one task through every check. When it passes, its keys are added to `seen`.

    `seen` holds the `seen_keys` of the tasks that passed before. Raises ValidationError, whose `check` names the
    check that failed; SandboxError when code could not be run and VerifierError when a sandbox is needed and missing:
    these say nothing about the task.
    """
    seen = seen if seen is not None else set()
    _check_form(task)
    _check_unique(task, seen)
    try:
        verdicts = {
            "oracle": _check_oracle(task, sandbox),
            "empty": _check_empty(task, sandbox),
            "wrong": _check_wrong(task, sandbox),
        }
    except VerifierError as error:
        if sandbox is None and task.verifier.name in NEEDS_SANDBOX:
            raise  # the caller's fault, not the task's
        raise ValidationError("form", f"the verifier refuses its parameters: {error}") from error
    seen.update(seen_keys(task))
    return Validation(task=task, verdicts=verdicts)


def seen_keys(task: Task) -> tuple[str, str]:
    """What makes a task the same as another: its id, or its prompt up to case and white space."""
    return task.id, prompt_key(task.prompt)


def prompt_key(prompt: str) -> str:
    """A hash of the prompt's text; case and white space do not count."""
    return "p_" + text_hash(" ".join(prompt.casefold().split()))


def _check_form(task: Task) -> None:
    try:
        task.to_json().encode()
    except (ValueError, TypeError) as error:
        raise ValidationError("form", f"it cannot be written as JSON: {error}") from error
    provenance = task.provenance
    faults = {
        "the prompt is blank": not task.prompt.strip(),
        f"granularity {task.granularity!r} is none of {', '.join(GRANULARITIES)}": task.granularity
        not in GRANULARITIES,
        f"there is no verifier {task.verifier.name!r}": task.verifier.name not in REGISTRY,
        "it names no concept": not provenance.concepts,
        "it has no source span": not provenance.spans,
        "a source span has no text": not all(span.text.strip() for span in provenance.spans),
        "spans and licences do not pair up": len(provenance.spans) != len(provenance.licences),
        "the reference is blank": not task.reference.strip(),
        "the prompt contains its answer": _gives_itself_away(task),
    }
    for fault, found in faults.items():
        if found:
            raise ValidationError("form", fault)


def _gives_itself_away(task: Task) -> bool:
    """Whether the answer can be copied from the prompt: any accepted spelling of a `text` or all of an ordered list, as
    whole words; a long printed value, number or JSON document. Letters of a choice, names of functions, the words of a
    span and the items of an unordered list have to be in the prompt."""
    params, prompt = task.verifier.params, task.prompt
    match task.verifier.name:
        case "text":
            return any(_says(prompt, str(answer)) for answer in _listed(params.get("answers")))
        case "listed" if params.get("ordered") and params.get("kind", "text") == "text":
            items = [str([*_listed(item), item][0]) for item in _listed(params.get("items"))]
            return len(items) > 1 and any(_says(prompt, mark.join(items)) for mark in (", ", " ", "; "))
        case "literal":
            value = str(params.get("value", "")).strip()
            return len(value) >= LONG_LITERAL and value in prompt
        case "number":
            value = str(params.get("value", "")).strip()
            return sum(map(str.isdigit, value)) >= LONG_NUMBER and _says(prompt.replace(",", ""), value)
        case "json_schema":
            expected = params.get("expected")
            document = expected.get("", "") if isinstance(expected, Mapping) else ""
            value = _spaceless(json.dumps(document, ensure_ascii=False))
            return len(value) >= LONG_LITERAL and value in _spaceless(prompt)
    return False


def _listed(value: Any) -> Sequence[Any]:
    """The value if it is a list; the verifier itself refuses what is none."""
    return value if isinstance(value, (list, tuple)) else ()


def _says(prompt: str, answer: str) -> bool:
    """Whether the answer stands in the prompt as whole words."""
    return bool(re.search(rf"(?<!\w){re.escape(normalise(answer))}(?!\w)", normalise(prompt)))


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _check_unique(task: Task, seen: set[str]) -> None:
    for key, what in zip(seen_keys(task), ("identity", "prompt"), strict=True):
        if key in seen:
            raise ValidationError("unique", f"a task with the same {what} passed before ({key})")


def _check_oracle(task: Task, sandbox: Sandbox | None) -> tuple[Verdict, ...]:
    verdict = verify(task.reference, task, sandbox)
    if verdict.score != 1:
        raise ValidationError("oracle", f"the reference answer scores {verdict.score:g}: {_told(verdict)}")
    return (verdict,)


def _check_empty(task: Task, sandbox: Sandbox | None) -> tuple[Verdict, ...]:
    nothings = ("", OPEN + CLOSE, f"{OPEN} {CLOSE}", task.prompt, OPEN + task.prompt + CLOSE)
    return tuple(_rejected("empty", answer, task, sandbox) for answer in nothings)


def _check_wrong(task: Task, sandbox: Sandbox | None) -> tuple[Verdict, ...]:
    if not task.wrong:
        raise ValidationError("wrong", "no wrong answer is planted; plant at least one that is nearly right")
    for answer in task.wrong:
        if missing := extract(answer, len(answer))[1]:
            raise ValidationError("wrong", f"a planted answer tests nothing ({missing}): {answer[:80]!r}")
    verdicts = tuple(_rejected("wrong", answer, task, sandbox) for answer in task.wrong)
    if all(verdict.reason in UNREAD for verdict in verdicts):
        reasons = ", ".join(sorted({verdict.reason for verdict in verdicts}))
        raise ValidationError(
            "wrong", f"every planted answer is rejected unread ({reasons}); plant one that can be judged"
        )
    return verdicts


def _rejected(check: str, answer: str, task: Task, sandbox: Sandbox | None) -> Verdict:
    verdict = verify(answer, task, sandbox)
    if verdict.score != 0:
        raise ValidationError(check, f"the verifier gives {verdict.score:g} to {answer[:80]!r}: {_told(verdict)}")
    return verdict


def _told(verdict: Verdict) -> str:
    return f"{verdict.reason} {dict(verdict.evidence)}" if verdict.evidence else verdict.reason
