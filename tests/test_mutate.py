"""Variants of right answers are right, near misses are wrong, and what comes to the same is told from what does not."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from kgsynth.errors import VerifierError
from kgsynth.mutate import (
    REGISTRY,
    Mutator,
    Variant,
    apart,
    brisk,
    inside,
    paid,
    partly,
    python_code,
    register,
    right_variants,
    rng_of,
    wrong_variants,
)
from kgsynth.mutate.inputs import fresh
from kgsynth.mutate.numbers import plain
from kgsynth.mutate.pictures import apart_by_pixels
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task
from kgsynth.verifiers import NEEDS_SANDBOX, verify
from kgsynth.verifiers import REGISTRY as VERIFIERS
from kgsynth.verifiers.function_tests import encode
from kgsynth.verifiers.pictures.shown import can_render
from tests.fair import load
from tests.hackable import FUNCTION, of_case
from tests.scoring import task

CASES = load()
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("picture", "kernel")]
FEW = {
    "mathematics": 3,
    "function_tests": 3,
    "programs": 1,
    "properties": 1,
    "world": 1,
    "picture": 1,
    "kernel": 1,
}  # cases
N = {
    "picture": 1,
    "kernel": 1,
    "world": 2,
    "programs": 2,
    "properties": 2,
    "function_tests": 5,
    "mathematics": 3,
    "listed": 6,
}
TASKS = {module: [of_case(case) for case in CASES[module]] for module in CASES}


def test_every_verifier_has_a_mutator() -> None:
    assert set(REGISTRY) == set(VERIFIERS)
    with pytest.raises(VerifierError, match="has a mutator already"):
        register(Mutator(verifier="text", right=lambda task, rng: [], wrong=lambda task, rng: []))


@pytest.mark.parametrize("module", [*(module for module in CASES if module not in ("picture", "kernel")), *SLOW])
def test_right_variants_are_paid_and_near_misses_are_not(module: str, sandbox: Sandbox) -> None:
    """On the fair cases, whose verifiers and tests are sound: so a verdict that differs is the mutator's fault."""
    n = N.get(module, 12)

    def misjudged(task: Task) -> list[str]:
        box = sandbox if module in NEEDS_SANDBOX else None
        right = [v for v in right_variants(task, rng_of(task, 0, "right"), n) if verify(v.answer, task, box).score < 1]
        near = wrong_variants(task, rng_of(task, 0, "wrong"), 2 * n)
        assert near, task.verifier.params
        quick = brisk(task, 0.1)
        wrong = [v for v in near if paid(task, verify(v.answer, quick, box)) and apart(task, v, sandbox)]
        return [f"{kind} {v.how}: {v.answer!r:.300}" for kind, vs in (("refused", right), ("paid", wrong)) for v in vs]

    with ThreadPoolExecutor(2) as pool:
        found = [line for lines in pool.map(misjudged, TASKS[module][: FEW.get(module)]) for line in lines]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("module", CASES)
def test_variants_depend_on_the_task_and_the_seed_only(module: str) -> None:
    case = TASKS[module][0]
    for make in (right_variants, wrong_variants):
        random.seed(5)
        one = make(case, rng_of(case, 3, "x"), 8)
        assert one == make(case, rng_of(case, 3, "x"), 8)
        assert len({v.answer for v in one}) == len(one) > 0


def test_other_seeds_give_other_near_misses() -> None:
    for case in (FUNCTION, TASKS["text"][0], TASKS["number"][0], TASKS["world"][0]):
        assert wrong_variants(case, rng_of(case, 0, "x"), 5) != wrong_variants(case, rng_of(case, 1, "x"), 5)


def test_near_misses_are_new() -> None:
    for case in TASKS["text"]:
        known = {inside(answer).strip() for answer in (case.reference, *case.wrong)}
        made = [inside(v.answer).strip() for v in wrong_variants(case, rng_of(case, 0, "wrong"), 20)]
        assert not known & set(made)


def test_a_verifier_nobody_has_heard_of_has_other_forms_of_replies_only() -> None:
    case = replace(TASKS["text"][0], verifier=replace(TASKS["text"][0].verifier, name="new"))
    assert wrong_variants(case, rng_of(case, 0, "wrong"), 5) == []
    assert {v.how.split(":")[0] for v in right_variants(case, rng_of(case, 0, "right"), 5)} == {"reply"}


def test_near_misses_of_a_text_are_terms_of_the_prompt_and_slips() -> None:
    prompt = "A structure that maps keys to values by hashing, unlike a balanced tree, is a ____."
    case = task("text", {"answers": ["hash table", "hash map"]}, "hash table", ["heap"], prompt=prompt)
    made = {inside(v.answer) for v in wrong_variants(case, rng_of(case, 0, "wrong"), 60)}
    assert {"balanced tree", "hash", "table", "hash tables", "not hash table", "hash tabl"} <= made
    assert not {"hash map", "Hash-Table", "hashtable"} & made


def test_near_misses_of_a_number_are_outside_of_its_tolerance() -> None:
    case = task("number", {"value": "9.81", "unit": "m/s^2", "relative": 0.01}, "9.81 m/s^2", ["9 m/s^2"])
    made = [inside(v.answer) for v in wrong_variants(case, rng_of(case, 0, "wrong"), 60)]
    assert {"98.1 m/s^2", "-9.81 m/s^2", "9.81"} <= set(made)
    bare = [
        float(text.split()[0])
        for text in made
        if text.endswith(" m/s^2") and "/" not in text.split()[0] and " to " not in text
    ]
    assert all(abs(value - 9.81) > 0.0981 for value in bare)
    assert any(abs(value - 9.81) < 0.11 for value in bare)  # and one is just outside
    right = {inside(v.answer) for v in right_variants(case, rng_of(case, 0, "right"), 60)}
    assert "9810 mm/s^2" in right


def test_values_are_written_exactly() -> None:
    from fractions import Fraction

    assert [plain(Fraction(x)) for x in ("0", "-3", "9.810", "1/3", "0.05", "1/1024")] == [
        "0",
        "-3",
        "9.81",
        "1/3",
        "0.05",
        "0.0009765625",
    ]


# Python


SORT = """import bisect
def rank(xs, x, low=0):
    found = 0
    for y in xs:
        if y < x and y >= low:
            found += 1
    while found > len(xs):
        found -= 1
    return found + 1 if xs[1:] else found"""


def namespace(source: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(source, "mutant", "exec"), space)  # ours
    return space


def test_rewritten_python_does_the_same() -> None:
    made = dict(python_code.rewritten(SORT, "rank", random.Random(0)))
    assert set(made) == {
        "reformatted", "comments added", "locals renamed", "type annotations", "docstrings", "a statement that does nothing", "a function around it",
    }  # fmt: skip
    assert "my_found" in made["locals renamed"]
    for source in made.values():
        rank = namespace(source)["rank"]
        assert [rank([3, 1, 2], 3), rank([], 1), rank([1], 5), rank([1, 5], 9, low=2)] == [3, 0, 1, 2]


def test_names_that_are_seen_from_outside_are_not_renamed() -> None:
    source = "total = 0\ndef add(x):\n    global total\n    total += x\n    return [t for t in [total]][0]\n\ndef show(y):\n    z = y\n    return locals()['z']"
    space = namespace(dict(python_code.rewritten(source, "add", random.Random(0)))["locals renamed"])
    assert (space["add"](2), space["add"](3), space["show"](7)) == (2, 5, 7)


def test_mutants_of_python_are_of_every_kind_and_parse() -> None:
    made = list(python_code.mutants(SORT, "rank", random.Random(0)))
    kinds = Counter(how for how, _ in made)
    assert {
        "another comparison", "another operator", "and for or", "a condition negated", "a constant off", "a statement left out", "a bound left out",
        "returns nothing", "a branch never taken",
    } <= set(kinds)  # fmt: skip
    assert len({how for how, _ in made[: len(kinds)]}) == len(kinds)  # in turn
    for _, source in made:
        compile(source, "mutant", "exec")
        assert "while found > len(xs):" in source  # conditions of loops stay
    assert len({source for _, source in made}) == len(made)


def test_fresh_inputs_are_like_the_known_ones() -> None:
    known = [
        ((([1, 4, 9]), 3, "ab"), {"key": 1.5}),
        (([2, 2, 8, 11], 7, "ba"), {"key": 0.5}),
        (([0, 5], 5, "aab"), {"key": 1.0}),
    ]
    made = fresh(known, random.Random(0), 60)
    assert len({repr(call) for call in [*known, *made]}) == len(made) + 3 > 40
    for (xs, n, text), kwargs in made:
        assert xs == sorted(xs)
        assert 2 <= len(xs) <= 4
        assert 3 <= n <= 7
        assert set(text) <= {"a", "b"}
        assert 0.5 <= kwargs["key"] <= 1.5


def weak(*calls: tuple[Any, ...]) -> Task:
    """A task whose tests are too few: they never ask where two numbers are equal."""
    tests = [{"args": encode(args), "expect": args[0] >= args[1]} for args in calls]
    return task("function_tests", {"name": "ge", "tests": tests}, "def ge(a, b):\n    return a >= b", [])


def test_a_mutant_that_tests_do_not_tell_is_told_by_other_inputs(sandbox: Sandbox) -> None:
    found = weak((1, 2), (5, 3), (2, 4), (4, 1))
    mutant = Variant(answer="<answer>def ge(a, b):\n    return a > b</answer>", how="another comparison")
    assert verify(mutant.answer, found, sandbox).score == 1
    assert apart(found, mutant, sandbox).startswith("ge(")


def test_a_mutant_that_does_the_same_is_equivalent(sandbox: Sandbox) -> None:
    same = Variant(answer="<answer>def ge(a, b):\n    return not a < b</answer>", how="another operator")
    assert apart(weak((1, 2), (5, 3), (2, 4), (4, 1)), same, sandbox) == ""


def test_what_an_answer_may_do_with_inputs_that_the_reference_refuses_proves_nothing(sandbox: Sandbox) -> None:
    tests = [{"args": encode((x, d)), "expect": x // d} for x, d in ((7, 2), (9, -3), (8, 5))]
    case = task("function_tests", {"name": "div", "tests": tests}, "def div(x, d):\n    return x // d", [])
    lenient = Variant(answer="<answer>def div(x, d):\n    return x // d if d else 0</answer>", how="more lenient")
    assert apart(case, lenient, sandbox) == ""


def test_a_mutant_behind_a_prelude_is_run_behind_it(sandbox: Sandbox) -> None:
    params = {
        "name": "area", "prelude": "def area(r):\n    return 3 * square(r)\n",
        "tests": [{"args": encode((n,)), "expect": 3 * n * n} for n in (0, 2)],
    }  # fmt: skip
    case = task("function_tests", params, "def square(x):\n    return x * x", [])
    twice = Variant(answer="<answer>def square(x):\n    return x + x</answer>", how="another operator")
    assert verify(case.reference, case, sandbox).score == verify(twice.answer, case, sandbox).score == 1
    assert apart(case, twice, sandbox) == "area(1) is another"


def test_a_hanging_mutant_costs_little(sandbox: Sandbox) -> None:
    quick = brisk(FUNCTION, 0.05)
    assert quick.verifier.params["seconds"] == 2.0
    assert (
        verify("<answer>def digit_sum(n, base=10):\n    while True: pass</answer>", quick, sandbox).reason == "timeout"
    )
    assert brisk(TASKS["text"][0], 1.0) == TASKS["text"][0]


def test_parts_are_paid_by_their_authors_will_only() -> None:
    spans = task("span", {"source": "a b c", "spans": [[0, 1]], "partial": "f1"}, "a", [])
    assert partly(spans)
    assert not partly(replace(spans, verifier=replace(spans.verifier, params={"source": "a b", "spans": [[0, 1]]})))


def test_a_world_that_is_spoilt_is_another_and_one_in_other_words_is_not(sandbox: Sandbox) -> None:
    config = TASKS["world"][1]
    script = inside(config.reference)
    left_behind = Variant(answer=f"<answer>{script}\nprintf x > zz.tmp\n</answer>", how="a file left behind")
    assert apart(config, left_behind, sandbox)
    spaced = Variant(answer=f"<answer>{script.replace('8080', ' 8080')}</answer>", how="another value")
    assert apart(config, spaced, sandbox) == ""
    other = Variant(answer=f"<answer>{script.replace('8080', '8081')}</answer>", how="another value")
    assert apart(config, other, sandbox) == "config.json is another"


def _drawn(*shapes: str) -> str:
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60">{"".join(shapes)}</svg>'


DISC = '<circle cx="40" cy="30" r="20" fill="#2980b9"/>'
WHITE = '<rect width="80" height="60" fill="#fff"/>'


@pytest.mark.parametrize("params", [{}, {"alpha": True}, {"shift": 0}], ids=str)
def test_pictures_are_told_apart_as_the_verifier_sees_them(params: dict[str, Any], sandbox: Sandbox) -> None:
    """Over white; where transparency counts, over black too."""
    if not can_render(sandbox):
        pytest.skip("no Chromium (apt-get install chromium)")
    known = {"format": "svg", "reference": {"source": _drawn(DISC)}, "width": 80, "height": 60, **params}
    drawn = task("picture", known, _drawn(DISC))
    told = {
        how: bool(apart_by_pixels(drawn, Variant(answer=f"<answer>{_drawn(*shapes)}</answer>", how=how), sandbox))
        for how, shapes in {"white": (WHITE, DISC), "same": (DISC,), "gone": ()}.items()
    }
    assert told == {"white": "alpha" in params, "same": False, "gone": True}
    for how, shapes in {"white": (WHITE, DISC), "same": (DISC,)}.items():
        assert (verify(f"<answer>{_drawn(*shapes)}</answer>", drawn, sandbox).score < 1) == told[how]
