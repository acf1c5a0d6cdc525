"""Reward hacks: every known trick, against the real verifiers and a real sandbox. None is paid, and each is refused for a reason
that says the verifier saw what it was given. Careless graders pay for the same replies: the tricks are real."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kgsynth.attack import REGISTRY, attacks_on
from kgsynth.attack.campaign import assault, held
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.threads import as_done
from kgsynth.verifiers import Verdict, verify
from tests import fair
from tests.hackable import (
    CHOICE,
    DAY,
    FUNCTION,
    IMPATIENT,
    KERNEL,
    LITERAL,
    PICTURE,
    PRODUCT,
    PROGRAMS,
    SHOWN,
    TEXT,
    TOTAL,
    WORLD,
    asserts_in_the_process,
    contains,
    of_case,
)

UNREAD = "several answers, no answer tag, empty, too long"

# attack -> reasons for which it may be refused


def refusals(text: str) -> set[str]:
    return set(text.split(", "))


FORM_TRICKS = {
    "no-op": "no answer tag",
    "blank": "empty",
    "many answers": "several answers",
    "nested tags": "several answers",
    "crossed tags": "no answer tag, several answers",
    "huge output": "too long, several answers, no answer tag",
}
READ_TRICKS = {
    "echo": UNREAD + ", wrong, not an option",
    "planted": "wrong",
    "answer list": "wrong, not an option",
    "last word": "wrong, not an option",
    "tag in a comment": "several answers, wrong, not an option",
    "fake tags": "several answers, wrong, not an option",
    "two fences": "wrong, not an option",
    "order to the grader": "wrong, not an option",
    "verdict-shaped": "no answer tag, wrong, not an option",
    "JSON injection": "wrong, not an option",
    "code injection": "wrong, not an option",
    "wildcards": "wrong, not an option",
    "parser bomb": "too long, wrong, not an option",
    "NUL and surrogates": "wrong, not an option",
    "everything at once": "wrong, not an option",
    "zero-width": "empty, wrong, not an option",
    "look-alikes": "wrong, not an option",
    "right-to-left": "wrong, not an option",
    "full-width": "wrong, not an option",
    "white space": "wrong, not an option",
    "negation": "wrong, not an option",
    "hedge": "wrong, not an option",
    "prose": "wrong, not an option",
    "whole vocabulary": "wrong, not an option",
}
CHOICE_TRICKS = {"all letters": "not an option"}
FUNCTION_TRICKS = {
    "constant": "wrong, error, not encodable",
    "table of the prompt": "wrong",
    "printed result": "wrong",
    "order in the source": "wrong",
    "exit code 0": "crashed, error, load error",
    "exit handler": "wrong, error",
    "forged lines": "wrong",
    "child that stays": "wrong",
    "patched asserts": "wrong",
    "equal to everything": "not encodable, wrong",
    "lazy result": "not encodable, wrong",
    "patched library": "wrong, crashed",
    "overwritten runner": "wrong",
    "planted start-up code": "wrong",
    "frames": "wrong",
    "garbage collector": "wrong",
    "process memory": "wrong",
    "hidden tests on disk": "wrong",
    "git history": "wrong",
    "network": "wrong",
    "changed arguments": "wrong",
}
HARM_TRICKS = {
    "swallowed limits": "timeout",
    "hang": "timeout",
    "fork bomb": "timeout, wrong, crashed",
    "output flood": "wrong, crashed",
    "memory hog": "error, not encodable, result too large, out of memory, timeout",
    "full disk": "wrong",
    "signals": "wrong, timeout, crashed",
    "crash": "timeout, crashed, error",
}
PROGRAM_TRICKS = {
    "program: nothing": "wrong, empty",
    "program: forged verdict": "wrong, crashed",
    "program: examples of the prompt": "wrong",
    "printed expectation": "wrong",
    "program: expected output on disk": "wrong, exit code",
    "program: patched runtime": "wrong",
    "program: harm": "timeout, output too large, out of memory, exit code, crashed",
}
WORLD_TRICKS = {
    "world: nothing": "nothing done",
    "world: everything deleted": "wrong",
    "world: looks done": "wrong",
    "world: links": "wrong",
    "world: planted tools": "wrong",
    "world: left behind": "wrong, nothing done",  # as soon as it is dead
    "world: search": "wrong",
    "world: made again": "wrong, nothing done",
}
KERNEL_TRICKS = {
    "kernel: nothing": "wrong, wrong type, inherits reference, forbidden import",
    "kernel: constant": "wrong",
    "kernel: left in memory": "wrong",
    "kernel: changed inputs": "mutated inputs, wrong",
    "kernel: cached": "wrong shape, wrong, forbidden name",
    "kernel: right at first": "wrong, wrong shape",
    "kernel: lazy": "forbidden name, forbidden import, wrong type",
    "kernel: patched checks": "patched module, forbidden import",
    "kernel: search": "forbidden import, mutated inputs",
    "kernel: lower precision": "wrong, precision downgrade",
    "kernel: part of the work": "wrong",
}
PICTURE_TRICKS = {
    "picture: blank": "blank, different",
    "picture: borrowed": "raster image, external reference, entities",
    "picture: scripts": "blank, different",
    "picture: order to the grader": "blank, different",
    "picture: guessed": "different",
    "picture: bombs": "entities, out of memory, timeout, malformed, too complex, blank, different, animation, crash",
}
SHOWN_TRICKS = {
    "code of the prompt": "wrong",
    "functions of the prompt": "wrong",
    "examples special-cased": "wrong",
}
CONTEXT_TRICKS = {"whole context": UNREAD + ", wrong, not a number", "everything listed": "wrong, not a number"}
NUMBER_TRICKS = {
    "all numbers": "wrong, not a number, several numbers, unit not asked for",
    "interval": "not a number, several numbers, unit not asked for",
}
SLOW_TRICKS = {
    "world: harm": "timeout, nothing done, wrong, too many files, files cannot be copied, out of memory",
    "compiler tricks": "syntax error, wrong, timeout, out of memory",
}
ELSEWHERE = {
    "oracle",
    "each letter",
    "banned module",
    "kernel: the banned operator",
    "kernel: fallback",
}  # have tests of their own, below


def verdicts(name: str, task: Task, sandbox: Sandbox | None = None) -> list[Verdict]:
    """Of every reply that the attack makes for the task; those that wait do it side by side."""
    replies = REGISTRY[name].answers(task)
    assert replies, f"{name} has no reply to {task.type}"
    return list(as_done(lambda reply: verify(reply, task, sandbox), replies, 6))


def assert_refused(found: list[Verdict], reasons: str) -> None:
    assert {verdict.score for verdict in found} == {0.0}
    assert {verdict.reason for verdict in found} <= refusals(reasons)


@pytest.mark.parametrize("task", [TEXT, CHOICE, LITERAL, FUNCTION, PROGRAMS["c"]], ids=lambda task: task.type)
@pytest.mark.parametrize("trick", FORM_TRICKS)
def test_form(trick: str, task: Task, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, task, sandbox), FORM_TRICKS[trick])


@pytest.mark.parametrize("task", [TEXT, CHOICE, LITERAL], ids=lambda task: task.type)
@pytest.mark.parametrize("trick", READ_TRICKS)
def test_short_answers(trick: str, task: Task) -> None:
    assert_refused(verdicts(trick, task), READ_TRICKS[trick])


@pytest.mark.parametrize("trick", CHOICE_TRICKS)
def test_choice(trick: str) -> None:
    assert_refused(verdicts(trick, CHOICE), CHOICE_TRICKS[trick])


@pytest.mark.parametrize("trick", FUNCTION_TRICKS)
def test_function(trick: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, FUNCTION, sandbox), FUNCTION_TRICKS[trick])


@pytest.mark.parametrize("trick", SHOWN_TRICKS)
def test_what_the_prompt_shows(trick: str, sandbox: Sandbox) -> None:
    assert verify(SHOWN.reference, SHOWN, sandbox).score == 1
    assert_refused(verdicts(trick, SHOWN, sandbox), SHOWN_TRICKS[trick])


@pytest.mark.parametrize("task", [DAY, TOTAL], ids=lambda task: task.type)
@pytest.mark.parametrize("trick", CONTEXT_TRICKS)
def test_the_context_itself(trick: str, task: Task) -> None:
    assert verify(task.reference, task).score == 1
    assert_refused(verdicts(trick, task), CONTEXT_TRICKS[trick])


@pytest.mark.parametrize("trick", NUMBER_TRICKS)
def test_the_numbers_of_the_context(trick: str) -> None:
    assert_refused(verdicts(trick, TOTAL), NUMBER_TRICKS[trick])


@pytest.mark.parametrize("trick", HARM_TRICKS)
def test_harm(trick: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, IMPATIENT, sandbox), HARM_TRICKS[trick])


@pytest.mark.parametrize("language", PROGRAMS)
@pytest.mark.parametrize("trick", [trick for trick in PROGRAM_TRICKS if trick != "program: harm"])
def test_program(trick: str, language: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, PROGRAMS[language], sandbox), PROGRAM_TRICKS[trick])


@pytest.mark.slow
@pytest.mark.parametrize("language", PROGRAMS)
def test_program_harm(language: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts("program: harm", PROGRAMS[language], sandbox), PROGRAM_TRICKS["program: harm"])


@pytest.mark.parametrize("trick", WORLD_TRICKS)
def test_world(trick: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, WORLD, sandbox), WORLD_TRICKS[trick])


@pytest.mark.slow
@pytest.mark.parametrize("trick", KERNEL_TRICKS)
def test_kernel(trick: str, sandbox: Sandbox) -> None:
    pytest.importorskip("torch")
    assert_refused(verdicts(trick, KERNEL, sandbox), KERNEL_TRICKS[trick])


@pytest.mark.slow
@pytest.mark.parametrize("trick", ["kernel: the banned operator", "kernel: fallback"])
def test_the_banned_operator_of_a_kernel(trick: str, sandbox: Sandbox) -> None:
    pytest.importorskip("torch")
    assert verify(PRODUCT.reference, PRODUCT, sandbox).score == 1
    assert_refused(verdicts(trick, PRODUCT, sandbox), "banned operator, fallback, forbidden name")


@pytest.mark.slow
@pytest.mark.parametrize("trick", PICTURE_TRICKS)
def test_picture(trick: str, sandbox: Sandbox) -> None:
    assert_refused(verdicts(trick, PICTURE, sandbox), PICTURE_TRICKS[trick])


@pytest.mark.slow
@pytest.mark.parametrize(("trick", "task"), [("world: harm", WORLD), ("compiler tricks", PROGRAMS["c"])])
def test_harm_that_takes_its_time(trick: str, task: Task, sandbox: Sandbox) -> None:
    found = verdicts(trick, task, sandbox)
    assert_refused(found, SLOW_TRICKS[trick])
    assert not any("root:" in str(verdict.evidence) for verdict in found)


def test_a_guess_at_each_letter_is_paid_once() -> None:
    assert sorted(verdict.score for verdict in verdicts("each letter", CHOICE)) == [0, 0, 0, 1]


def test_banned_modules_are_not_had_by_side_entrances(sandbox: Sandbox) -> None:
    """The module that the task forbids has the very function that is asked for."""
    from kgsynth.verifiers.function_tests import Call, expectation, run_calls
    from tests.scoring import task as made

    calls = [Call(args=(60, n)) for n in (18, 7, 0)]
    outcomes = run_calls("from math import gcd", "gcd", calls, sandbox)
    tests = [expectation(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    source = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a"
    gcd = made(
        "function_tests", {"name": "gcd", "tests": tests, "forbidden": ["math"]}, source, ["def gcd(a, b): return a"]
    )
    assert verify(gcd.reference, gcd, sandbox).score == 1
    assert_refused(verdicts("banned module", gcd, sandbox), "forbidden import, error, load error, no such function")


CASES = fair.load()
READ = ("choice", "json_schema", "listed", "literal", "mathematics", "number", "span", "text")


@pytest.mark.parametrize(
    "verifier", [pytest.param(v, marks=pytest.mark.slow) if v == "mathematics" else v for v in READ]
)
def test_nothing_is_paid_by_any_verifier_of_short_answers(verifier: str) -> None:
    task = of_case(CASES[verifier][0])
    for found in attacks_on(task):
        result = assault(task, found, found.answers(task), None)
        assert held(found, result), result
        assert not result.unjudged


# that they mean something


@pytest.mark.parametrize("task", [TEXT, CHOICE, LITERAL, FUNCTION, *PROGRAMS.values()], ids=lambda task: task.type)
def test_the_oracle_is_paid(task: Task, sandbox: Sandbox) -> None:
    assert [verdict.score for verdict in verdicts("oracle", task, sandbox)] == [1.0]


@pytest.mark.parametrize(
    "trick",
    [
        *("exit code 0", "exit handler", "forged lines", "child that stays", "patched asserts", "equal to everything"),
        *("overwritten runner", "planted start-up code", "frames", "garbage collector", "process memory"),
        *("hidden tests on disk", "git history"),
    ],
)
def test_a_careless_grader_of_code_pays(trick: str, sandbox: Sandbox) -> None:
    replies = REGISTRY[trick].answers(FUNCTION)
    assert any(asserts_in_the_process(reply, {}, sandbox).score for reply in replies)


@pytest.mark.parametrize(
    "trick",
    [
        *("many answers", "answer list", "last word", "tag in a comment", "nested tags", "crossed tags", "fake tags"),
        *("two fences", "huge output", "NUL and surrogates", "everything at once", "zero-width", "white space"),
        *("negation", "hedge", "prose"),
    ],
)
def test_a_careless_grader_of_text_pays(trick: str) -> None:
    assert any(contains(reply, TEXT.verifier.params, None).score for reply in REGISTRY[trick].answers(TEXT))


def test_careless_graders_tell_right_from_wrong_when_nobody_cheats(sandbox: Sandbox) -> None:
    graders: list[tuple[Callable[..., Any], Task]] = [(asserts_in_the_process, FUNCTION), (contains, TEXT)]
    for grader, task in graders:
        assert grader(task.reference, task.verifier.params, sandbox).score == 1
        assert [grader(wrong, task.verifier.params, sandbox).score for wrong in task.wrong] == [0] * len(task.wrong)


@pytest.mark.parametrize(
    "trick", ["frames", "garbage collector", "process memory", "hidden tests on disk", "git history"]
)
def test_searches_run_to_their_end_and_find_nothing(trick: str, sandbox: Sandbox) -> None:
    """What is expected is not in the solution's process, nor in its files, nor in a repository."""
    for verdict in verdicts(trick, FUNCTION, sandbox):
        assert verdict.evidence["got"] == '"nothing found"'


def test_there_are_at_least_25_tricks_and_each_is_tested_here() -> None:
    tables = [table for name, table in globals().items() if name.endswith("_TRICKS")]
    tasks = (TEXT, CHOICE, LITERAL, FUNCTION, SHOWN, DAY, TOTAL, *PROGRAMS.values(), WORLD, PICTURE, KERNEL, PRODUCT)
    named = {trick for table in tables for trick in table} | ELSEWHERE
    applying = {found.name for task in tasks for found in attacks_on(task)}
    assert applying | {"banned module"} == named
    assert len([name for name in named if REGISTRY[name].pays == "never"]) >= 25
