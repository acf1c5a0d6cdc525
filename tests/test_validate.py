"""The gate: each check refuses the task it is there for, and a good task of every verifier passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kgsynth.concept import Source
from kgsynth.errors import ValidationError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Image, Provenance, Task, VerifierSpec
from kgsynth.validate import ValidateConfig, prompt_key, seen_keys, validate
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict, register
from kgsynth.verifiers.function_tests import Call, encode, expectation, run_calls
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


PICTURE = Image(
    source='<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="9" height="9"/></svg>',
    format="svg",
    width=40,
    height=40,
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
    calls = [Call(args=args) for args in ((12, 18), (7, 0), (0, 5), (9, 28), (100, 75), (17, 17), (75, 100))]
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
    assert len(passed.verdicts["right"]) == 1
    assert {verdict.score for kind in ("trivial", "mutated") for verdict in passed.verdicts[kind]} == {0.0}
    assert [verdict.reason for verdict in passed.verdicts["wrong"]] == ["wrong"] * len(task.wrong)


def test_a_good_code_task_passes(implement: Task, sandbox: Sandbox) -> None:
    verdicts = validate(implement, sandbox).verdicts
    assert [verdict.score for group in ("oracle", "empty", "wrong") for verdict in verdicts[group]] == [1.0] + [0.0] * 7
    assert [verdict.reason for verdict in verdicts["wrong"]] == ["wrong", "syntax error"]
    assert verdicts["oracle"][0].evidence == {"passed": 7, "total": 7}
    assert [verdict.score for verdict in verdicts["mutated"]] == [0.0] * 4


def test_how_hard_a_task_is_tried_is_said(implement: Task, sandbox: Sandbox) -> None:
    verdicts = validate(implement, sandbox, config=ValidateConfig(mutations=0, right=0)).verdicts
    assert set(verdicts) == {"oracle", "empty", "wrong"}
    assert len(validate(TEXT, None, config=ValidateConfig(mutations=9, right=3)).verdicts["mutated"]) == 9


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


def test_two_tasks_with_one_question_about_two_pictures() -> None:
    seen: set[str] = set()
    shown = replace(TEXT, images=(PICTURE,))
    other = replace(TEXT, images=(replace(PICTURE, source=PICTURE.source.replace("9", "8")),))
    validate(shown, None, seen=seen)
    validate(other, None, seen=seen)
    assert refused(replace(shown, type="other"), seen=seen).check == "unique"


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
    "spans and dates": replace(TEXT, provenance=replace(PROVENANCE, dates=("2025-01-01", "2025-01-02"))),
    "scope 'all'": replace(TEXT, scope="all"),
    "difficulty 'very'": replace(TEXT, difficulty="very"),
    "format is 'png'": replace(TEXT, images=(replace(PICTURE, format="png"),)),
    "sides are whole": replace(TEXT, images=(replace(PICTURE, width=0),)),
    "picture is blank": replace(TEXT, images=(replace(PICTURE, source=" "),)),
    "is no SVG": replace(TEXT, images=(replace(PICTURE, source="<svg"),)),
    "is <html>": replace(TEXT, images=(replace(PICTURE, source="<html></html>"),)),
    "defines entities": replace(TEXT, images=(replace(PICTURE, source="<!DOCTYPE x [<!ENTITY a 'b'>]><svg/>"),)),
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
    assert (error.check, "contains its answer" in str(error)) == ("leak", True)


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


# what gives the answer away, and where


def call_tests(*pairs: tuple[tuple[Any, ...], Any]) -> list[dict[str, Any]]:
    return [{"args": encode(args), "expect": encode(value)} for args, value in pairs]


DOUBLE = call_tests(((2,), 4), ((3,), 6), ((-5,), -10), ((0,), 0))
TWICE = made(
    "function_tests",
    {"name": "f", "tests": DOUBLE},
    "f(n) is twice n.",
    "def f(n):\n    return n + n",
    "def f(n): return n",
)
LONG = "def f(number):\n    doubled = number + number\n    return doubled"
FORMULA = made("mathematics", {"expected": "\\frac{x}{2} + 1"}, "Half of x, and one?", "\\frac{x}{2} + 1", "x + 1")
SPEED = made("number", {"value": "9.81", "unit": "m/s^2"}, "How fast do things fall?", "9.81 m/s^2", "9 m/s^2")
DRAWN = made(
    "picture", {"format": "svg", "reference": {"source": PICTURE.source}, "width": 40, "height": 40}, "Draw it.", PICTURE.source, "<svg/>",
)  # fmt: skip
MOVE = "import shutil\nshutil.move('old/name.txt', 'new/name.txt')  # into the new folder"
WORLD = made(
    "world", {"language": "python", "files": {"old/name.txt": "x"}, "checks": [{"check": "absent", "path": "old/name.txt"}]}, "Move it.", MOVE, "pass",
)  # fmt: skip


def words(*texts: str) -> tuple[Image, ...]:
    drawn = "".join(f"<text>{text}</text>" for text in texts)
    return (replace(PICTURE, source=f'<svg xmlns="http://www.w3.org/2000/svg"><title>divisor</title>{drawn}</svg>'),)


LEAKS = {
    "tests in the prompt": replace(TWICE, prompt="f(2) == 4, f(3) == 6, f(0) returns 0. Write f."),
    "solution in the prompt": replace(
        TWICE, reference=tagged(LONG), prompt=f"Improve this:\n\n{LONG.replace('    ', '  ')}\n"
    ),
    "the letter is said": replace(CHOICE, prompt="Which?\nA. lcm\nB. gcd\nHint: the correct answer is B."),
    "the option is marked": replace(CHOICE, prompt="Which?\nA. lcm\nB. gcd (correct)\n"),
    "formula": replace(FORMULA, prompt="Is it $\\frac{x}{2}+1$ or $x + 1$?"),
    "long number as mathematics": replace(
        FORMULA, verifier=VerifierSpec(name="mathematics", params={"expected": "1234567"}), prompt="1,234,567 = ?"
    ),
    "a quantity with its unit": replace(SPEED, prompt="Things fall at 9.81 m/s^2. How fast?"),
    "the only word of a picture": replace(TEXT, images=words("Divisor", "of")),
    "the document of a picture": replace(DRAWN, prompt=f"Draw this: {PICTURE.source}"),
    "a file with the script": replace(
        WORLD, verifier=replace(WORLD.verifier, params={**WORLD.verifier.params, "files": {"todo.py": f"# notes\n{MOVE}\n"}})
    ),
    "a figure": replace(NUMBER, hints={"light": 299792458.0}),
}  # fmt: skip


@pytest.mark.parametrize("where", LEAKS)
def test_a_task_that_gives_itself_away(where: str) -> None:
    assert refused(LEAKS[where], None).check == "leak"


@pytest.mark.parametrize(
    "task",
    [
        replace(TEXT, images=words("multiple", "divisor", "prime", "power")),  # one of several labels
        replace(TEXT, images=words("multiple", "prime")),  # nobody sees a title
        replace(CHOICE, prompt="Which?\nA. lcm\nB. gcd\nIs the answer A or B?"),
        replace(SPEED, prompt="Things fall at 9.81 ft/s on the model. How fast in truth, in m/s^2?"),
        replace(FORMULA, prompt="Take x + 1, and x + 1 again. What is half of x, and one?"),
        replace(TEXT, prompt="divisor " * 2000 + "\n\n" + "What is asked for? " * 90),  # to be found in a long context
    ],
)
def test_what_is_no_leak(task: Task) -> None:
    validate(task, None)


# more than one right answer


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (replace(CHOICE, prompt="Which?\nA. a  GCD\nB. A gcd."), "options A and B read the same"),
        (
            made("choice", {"correct": "B", "options": ["A", "B", "C"]}, "Which?\nA. lcm\nB. gcd", "B", "A"),
            "has no option C",
        ),
        (replace(TEXT, wrong=(tagged("multiple"), tagged("Divi-sor"))), "in another spelling"),
        (made("listed", {"items": ["red", ["grey", "Red."]]}, "Name two colours.", "red, grey", "red, blue"), "two items"),
    ],
)  # fmt: skip
def test_two_answers_are_right(task: Task, told: str) -> None:
    error = refused(task)
    assert error.check == "unique"
    assert told in str(error)


# tests that say nothing (marin 7784: a public set paid every trial)


def functions(*pairs: tuple[tuple[Any, ...], Any]) -> Task:
    return replace(
        TWICE, verifier=VerifierSpec(name="function_tests", params={"name": "f", "tests": call_tests(*pairs)})
    )


def programs(*pairs: tuple[str, str]) -> Task:
    tests = [{"stdin": given, "stdout": printed} for given, printed in pairs]
    return made(
        "programs", {"language": "python", "tests": tests}, "Write it.", "print(2 * int(input()))", "print('no')"
    )


RAISING = [{"args": encode((n,)), "raises": "ValueError"} for n in ("a", "b")]


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (functions(((0,), 0), ((0.0,), 0)), "always returns 0"),
        (functions(((0,), 0), ((-0.0,), -0.0)), "returns its argument 1"),
        (replace(TWICE, verifier=VerifierSpec(name="function_tests", params={"name": "f", "tests": RAISING})), "always raises ValueError"),
        (programs(("1", "2\n"), ("1 ", "2")), "always prints"),
        (programs(("0", "0"), ("00", "00")), "prints its input"),
    ],
)  # fmt: skip
def test_tests_that_need_no_solution(task: Task, told: str, sandbox: Sandbox) -> None:
    right = {
        "always returns 0": "def f(n):\n    return 0",
        "always raises ValueError": "def f(n):\n    raise ValueError",
    }
    reference = right.get(told) or (
        "def f(n):\n    return n" if task.verifier.name == "function_tests" else "print(input())"
    )
    error = refused(replace(task, reference=tagged("print(2)" if told == "always prints" else reference)), sandbox)
    assert error.check == "trivial"
    assert told in str(error)


def test_a_function_that_the_prompt_shows_is_no_solution(sandbox: Sandbox) -> None:
    """Of a wrapper that only calls what stands above it."""
    shown = "Complete the file.\n```python\ndef double(n):\n    return n + n\n\ndef f(n):\n    ...\n```"
    wrapper = replace(TWICE, prompt=shown, reference=tagged("def f(n):\n    return n * 2"))
    error = refused(wrapper, sandbox)
    assert error.check == "trivial"
    assert "double" in str(error)


def test_a_tolerance_within_which_a_common_guess_is_right() -> None:
    wide = replace(NUMBER, verifier=VerifierSpec(name="number", params={"value": "1.5", "absolute": 0.6}))
    error = refused(replace(wide, reference=tagged("1.5"), wrong=(tagged("7"),), prompt="How often?"))
    assert error.check == "trivial"
    assert "<answer>1</answer>" in str(error)


def test_one_weak_test(sandbox: Sandbox) -> None:
    """The tests never ask where the numbers are equal, so that > passes for >=."""
    tests = call_tests(((1, 2), False), ((5, 3), True), ((2, 4), False), ((4, 1), True))
    task = made(
        "function_tests", {"name": "ge", "tests": tests}, "ge(a, b): whether a is at least b.", "def ge(a, b):\n    return a >= b",
        "def ge(a, b):\n    return True",
    )  # fmt: skip
    error = refused(task, sandbox)
    assert error.check == "wrong"
    assert "near miss" in str(error)
    validate(task, sandbox, config=ValidateConfig(mutations=0))
    more = [*tests, *call_tests(((2, 2), True), ((-1, -1), True))]
    validate(replace(task, verifier=VerifierSpec(name="function_tests", params={"name": "ge", "tests": more})), sandbox)


@pytest.fixture
def too_strict() -> Iterator[str]:
    """A verifier that takes the reference letter by letter only."""
    name = "planted: letter by letter"

    @register(name)
    def strict(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
        return Verdict(score=float(answer == params["is"]), reason="right" if answer == params["is"] else "wrong")

    yield name
    del REGISTRY[name]


def test_a_verifier_that_refuses_a_right_answer_in_another_form(too_strict: str) -> None:
    error = refused(made(too_strict, {"is": tagged("fine")}, "How?", "fine", "bad"))
    assert error.check == "oracle"
    assert "in another form (reply: " in str(error)


def test_a_verifier_that_takes_everything(too_strict: str) -> None:
    """marin 7784: a checker that is paid whatever comes."""
    name = "planted: everything"

    @register(name)
    def everything(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
        return Verdict(score=1.0, reason="right")

    try:
        assert refused(made(name, {}, "How?", "fine", "bad")).check == "empty"
    finally:
        del REGISTRY[name]
