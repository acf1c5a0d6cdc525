"""The gate: each check refuses the task it is there for, and a good task of every verifier passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kgsynth.concept import Source
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.validate import prompt_key, seen_keys, validate
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict, register
from kgsynth.verifiers.function_tests import Call, expectation, run_calls
from tests.scoring import tagged

SOURCE = Source(
    url="https://example.org/x", title="X", text="gcd(a, b): the greatest common divisor.", licence="PSF-2.0"
)
PROVENANCE = Provenance(
    concepts=("c_1",), names=("gcd",), spans=(SOURCE.span(0, 9),), licences=("PSF-2.0",), author="programmatic"
)


def made(name: str, params: Mapping[str, Any], prompt: str, right: str, *wrong: str) -> Task:
    return Task(
        type=name,
        domain="python",
        granularity="atomic",
        prompt=prompt,
        verifier=VerifierSpec(name=name, params=params),
        reference=tagged(right),
        wrong=tuple(map(tagged, wrong)),
        provenance=PROVENANCE,
    )


CHOICE = made(
    "choice", {"correct": "B", "options": ["A", "B"]}, "Which? A. lcm B. gcd\nAnswer with a letter.", "B", "A"
)
TEXT = made("text", {"answers": ["divisor", "factor"]}, "gcd is the greatest common what?", "divisor", "multiple")
LITERAL = made("literal", {"value": "[1, 2]"}, "What does print(sorted([2, 1])) print?", "[1,2]", "[2, 1]", "(1, 2)")
NUMBER = made(
    "number", {"value": 299792458, "unit": "m/s"}, "How fast is light?", "299,792,458 m/s", "3e8 m/s", "299792458 km/s"
)
LISTED = made(
    "listed", {"items": ["lcm", "gcd"], "ordered": True}, "Sort by value for 4, 6, largest first: gcd lcm.",
    "lcm, gcd", "gcd, lcm", "lcm, lcm",
)  # fmt: skip
JSON = made(
    "json_schema", {"expected": {"": {"gcd": 2, "lcm": 12}}}, "gcd and lcm of 4, 6 as JSON?",
    '{"lcm": 12, "gcd": 2}', '{"lcm": 2, "gcd": 12}', "{}",
)  # fmt: skip
SPAN = made(
    "span", {"source": "gcd is a divisor", "spans": [[9, 16]]}, "Quote what it is: gcd is a divisor", "divisor", "gcd"
)


@pytest.fixture(scope="module")
def implement(sandbox: Sandbox) -> Task:
    calls = [Call(args=(12, 18)), Call(args=(7, 0))]
    outcomes = run_calls("from math import gcd", "gcd", calls, sandbox)
    tests = [expectation(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    right = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a"
    params = {"name": "gcd", "tests": tests, "forbidden": ["math"], "seconds": 2}
    return made(
        "function_tests", params, "Write gcd(a, b).", right, right.replace("return a", "return b"), "def gcd(a, b): x("
    )


@pytest.fixture
def accepts_nothing() -> Iterator[str]:
    """A broken verifier: it takes any answer without a mistake in it, also one with nothing in it."""
    name = "planted: no mistake found"

    @register(name)
    def lenient(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
        return Verdict(score=float("mistake" not in answer), reason="right")

    yield name
    del REGISTRY[name]


def refused(task: Task, sandbox: Sandbox | None = None, **more: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        validate(task, sandbox, **more)
    return caught.value


@pytest.mark.parametrize("task", [CHOICE, TEXT, LITERAL, NUMBER, LISTED, JSON, SPAN], ids=lambda task: task.type)
def test_a_good_task_passes_without_a_sandbox(task: Task) -> None:
    passed = validate(task, None)
    assert passed.task is task
    assert [verdict.reason for verdict in passed.verdicts["oracle"]] == ["right"]
    assert len(passed.verdicts["empty"]) == 5
    assert [verdict.reason for verdict in passed.verdicts["wrong"]] == ["wrong"] * len(task.wrong)


def test_a_good_code_task_passes(implement: Task, sandbox: Sandbox) -> None:
    verdicts = validate(implement, sandbox).verdicts
    assert [verdict.score for group in ("oracle", "empty", "wrong") for verdict in verdicts[group]] == [1.0] + [0.0] * 7
    assert [verdict.reason for verdict in verdicts["wrong"]] == ["wrong", "syntax error"]
    assert verdicts["oracle"][0].evidence == {"passed": 2, "total": 2}


def test_a_reference_that_is_wrong(implement: Task, sandbox: Sandbox) -> None:
    assert refused(replace(TEXT, reference=tagged("multiple"))).check == "oracle"
    assert refused(replace(TEXT, reference="divisor")).check == "oracle"  # a right answer that forgets the tag
    error = refused(replace(implement, reference=implement.wrong[0]), sandbox)
    assert error.check == "oracle"
    assert "first_failing" in str(error)


def test_a_verifier_that_accepts_the_empty_answer(accepts_nothing: str) -> None:
    task = made(accepts_nothing, {}, "Say something.", "fine", "mistake")
    error = refused(task)
    assert error.check == "empty"
    assert "gives 1 to ''" in str(error)


def test_a_prompt_that_is_its_own_answer() -> None:
    echo = replace(CHOICE, prompt="Which? A. lcm B. gcd\nReply like this: <answer>B</answer>")
    assert refused(echo).check == "empty"


def test_wrong_answers_that_are_accepted(implement: Task, sandbox: Sandbox) -> None:
    assert refused(replace(LITERAL, wrong=(tagged("[2, 1]"), tagged("[1,  2]")))).check == "wrong"
    assert refused(replace(implement, wrong=(implement.reference,)), sandbox).check == "wrong"


def test_wrong_answers_that_test_nothing(implement: Task, sandbox: Sandbox) -> None:
    assert "no wrong answer is planted" in str(refused(replace(TEXT, wrong=())))
    for nothing in ("multiple", "", tagged(" "), tagged("a") + tagged("b")):
        error = refused(replace(TEXT, wrong=(tagged("multiple"), nothing)))
        assert error.check == "wrong"
        assert "tests nothing" in str(error)
    unread = refused(
        replace(implement, wrong=(tagged("def gcd(a, b): x("), tagged("def lcm(a, b): return 1"))), sandbox
    )
    assert unread.check == "wrong"
    assert "no such function, syntax error" in str(unread)
    for task, nothing, reason in (
        (CHOICE, "A or B", "not an option"), (NUMBER, "fast", "not a number"), (JSON, "lcm: 12", "not JSON"),
    ):  # fmt: skip
        assert reason in str(refused(replace(task, wrong=(tagged(nothing),))))


def test_a_task_passes_once() -> None:
    seen: set[str] = set()
    validate(TEXT, None, seen=seen)
    assert seen == set(seen_keys(TEXT)) == {TEXT.id, prompt_key(TEXT.prompt)}
    assert refused(TEXT, seen=seen).check == "unique"
    spaced = replace(TEXT, prompt=f"  {TEXT.prompt.upper()}\n")
    assert spaced.id != TEXT.id
    assert refused(spaced, seen=seen).check == "unique"
    validate(LITERAL, None, seen=seen)


def test_a_refused_task_is_not_seen() -> None:
    seen: set[str] = set()
    refused(replace(TEXT, reference=tagged("multiple")), seen=seen)
    assert seen == set()
    validate(TEXT, None, seen=seen)


FORM_FAULTS = {
    "prompt is blank": replace(TEXT, prompt=" \n"),
    "granularity 'fine'": replace(TEXT, granularity="fine"),
    "no verifier 'guess'": replace(TEXT, verifier=VerifierSpec(name="guess")),
    "no concept": replace(TEXT, provenance=replace(PROVENANCE, concepts=())),
    "no source span": replace(TEXT, provenance=replace(PROVENANCE, spans=(), licences=())),
    "has no text": replace(TEXT, provenance=replace(PROVENANCE, spans=(replace(PROVENANCE.spans[0], text=" "),))),
    "do not pair up": replace(TEXT, provenance=replace(PROVENANCE, licences=())),
    "reference is blank": replace(TEXT, reference=""),
    "refuses its parameters": replace(TEXT, verifier=VerifierSpec(name="text", params={"answers": []})),
    "written as JSON": replace(TEXT, prompt="\ud800"),
}


@pytest.mark.parametrize("fault", FORM_FAULTS)
def test_malformed_tasks(fault: str) -> None:
    error = refused(FORM_FAULTS[fault])
    assert error.check == "form"
    assert fault in str(error)


@pytest.mark.parametrize(
    ("task", "prompt"),
    [
        (TEXT, "Complete: the greatest common ____ (a Divisor)."),
        (TEXT, "Complete: the greatest common ____, also called factor."),
        (
            replace(LITERAL, verifier=VerifierSpec(name="literal", params={"value": "['a', 'b', 'c']"})),
            "print(['a', 'b', 'c'])",
        ),
        (NUMBER, "Light covers 299,792,458 m in a second. How fast is it?"),
        (LISTED, "Sort them as in: LCM, gcd."),
        (JSON, 'Write {"gcd":2,"lcm":12} as JSON.'),
    ],
)
def test_a_prompt_that_contains_its_answer(task: Task, prompt: str) -> None:
    error = refused(replace(task, prompt=prompt))
    assert (error.check, "contains its answer" in str(error)) == ("form", True)


@pytest.mark.parametrize(
    ("task", "prompt"),
    [
        (TEXT, "The greatest common ____: not divisors, not factorial, one of them."),
        (LITERAL, "What does print([1, 2]) print?"),  # short values turn up by chance
        (CHOICE, "A. lcm B. gcd. Is it A or B?"),
    ],
)
def test_a_prompt_may_contain_less_than_its_answer(task: Task, prompt: str) -> None:
    validate(replace(task, prompt=prompt), None)


def test_a_code_task_needs_a_sandbox(implement: Task) -> None:
    assert implement.verifier.name in NEEDS_SANDBOX
    with pytest.raises(VerifierError, match="open_sandbox"):
        validate(implement, None)
