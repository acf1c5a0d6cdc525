"""`properties`: inputs from a seed, relations judged outside, and no pay for a function that does nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.code import generated
from kgsynth.verifiers.code.relations import RELATIONS, Failed, Trial
from kgsynth.verifiers.code.values import encode
from tests.scoring import score, tagged

INTEGER = {"kind": "integer", "min": -50, "max": 50}
LIST = {"kind": "list", "of": INTEGER}
SORTING = {"inputs": [LIST], "properties": [{"relation": "sorted"}, {"relation": "permutation"}]}
RUNS = {
    "inputs": [{"kind": "text", "alphabet": "ab", "max_length": 30}],
    "properties": [{"relation": "round trip", "inverse": "back"}, {"relation": "type", "type": "list"}],
}


def judged(source: str, sandbox: Sandbox, **params: Any) -> Verdict:
    return score("properties", {"name": "f", "seed": 7, "cases": 20, **params}, tagged(source), sandbox)


RIGHT = [
    ("def f(xs): return sorted(xs)", SORTING),
    (
        "def f(xs):\n    out = []\n    for x in xs:\n        i = 0\n        while i < len(out) and out[i] < x: i += 1\n        out.insert(i, x)\n    return out",
        SORTING,
    ),
    (
        "from itertools import groupby\ndef f(s): return [(c, len(list(g))) for c, g in groupby(s)]\ndef back(x): return ''.join(c * n for c, n in x)",
        RUNS,
    ),
    (
        "def f(a, b):\n    while b: a, b = b, a % b\n    return abs(a)",
        {
            "inputs": [INTEGER, INTEGER],
            "properties": [{"relation": "commutative"}, {"relation": "equals", "reference": "from math import gcd as f"}],
        },
    ),
    (
        "def f(s): return ' '.join(s.split())",
        {
            "inputs": [{"kind": "text", "alphabet": "ab  \n"}],
            "properties": [
                {"relation": "idempotent"},
                {"relation": "checker", "source": "def check(args, r): return r.split() == args[0].split() and '  ' not in r and r == r.strip() and '\\n' not in r"},
            ],
        },
    ),
    (
        "def f(n): return n // 3",
        {"inputs": [INTEGER], "properties": [{"relation": "monotone"}, {"relation": "bounds", "min": -17, "max": 16}, {"relation": "checker", "source": "def check(args, r): return 0 <= args[0] - 3 * r < 3"}]},
    ),
    (
        "def f(t): return None if t is None else [t[0], f(t[2]), f(t[1])]",
        {"inputs": [{"kind": "tree", "of": INTEGER}], "properties": [{"relation": "involution"}, {"relation": "checker", "source": "def check(args, r): return args[0] is None or r[1:] != args[0][1:] or r[1] == r[2]"}]},
    ),
    ("def f(xs): return [x * 2 for x in xs]", {"inputs": [LIST], "properties": [{"relation": "length"}, {"relation": "equals", "reference": "def f(xs): return [x + x for x in xs]"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("source", "params"), RIGHT)
def test_right(source: str, params: dict[str, Any], sandbox: Sandbox) -> None:
    verdict = judged(source, sandbox, **params)
    assert (verdict.score, verdict.reason) == (1.0, "right"), verdict
    assert judged(source, sandbox, **json.loads(json.dumps(params))).score == 1


WRONG = [
    ("def f(xs): return sorted(set(xs))", SORTING, "permutation"),
    ("def f(xs): return xs", SORTING, "sorted"),
    ("def f(xs): return None", SORTING, "sorted"),
    ("def f(xs): return sorted(map(float, xs))", SORTING, "permutation"),
    ("def f(xs): return sorted(xs, reverse=True)", SORTING, "sorted"),
    ("def f(xs): return sorted(xs)[:10]", SORTING, "permutation"),
    ("def f(s): return list(s)\ndef back(x): return ''.join(x)[:20]", RUNS, "round trip"),
    ("kept = {}\ndef f(s):\n    kept[len(kept)] = s\n    return [len(kept) - 1]\ndef back(x): return kept[x[0]]", RUNS, "round trip"),
    ("def f(s): return list(s)", RUNS, "round trip"),
    ("def f(n): return n + 1", {"inputs": [INTEGER], "properties": [{"relation": "involution"}, {"relation": "checker", "source": "def check(args, r): return args[0] != r"}]}, "involution"),
    ("def f(n): return -n", {"inputs": [INTEGER], "properties": [{"relation": "monotone"}, {"relation": "type", "type": "int"}, {"relation": "checker", "source": "def check(args, r): return r != args[0]"}]}, "monotone"),
    ("def f(s): return s.strip()", {"inputs": [{"kind": "text", "alphabet": "a "}], "properties": [{"relation": "type", "type": "str"}, {"relation": "equals", "reference": "def f(s): return s.replace(' ', '')"}]}, "equals"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "params", "broken"), WRONG)
def test_wrong(source: str, params: dict[str, Any], broken: str, sandbox: Sandbox) -> None:
    verdict = judged(source, sandbox, **params)
    assert (verdict.score, verdict.reason, verdict.evidence["broken"]) == (0.0, "wrong", broken), verdict


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def f(xs): raise ValueError", "error"),
        ("def f(xs): return iter(xs)", "not encodable"),
        ("def f(xs):\n    while True: pass", "timeout"),
        ("def g(xs): return xs", "no such function"),
        ("def f(xs", "syntax error"),
        ("import os\ndef f(xs): os._exit(0)", "crashed"),
        (" ", "empty"),
    ],
)
def test_reasons(source: str, reason: str, sandbox: Sandbox) -> None:
    verdict = judged(source, sandbox, **SORTING, seconds=0.5)
    assert (verdict.score, verdict.reason) == (0.0, reason)


TRIVIAL = [
    ([LIST], [{"relation": "sorted"}], "always returns"),
    ([LIST], [{"relation": "idempotent"}, {"relation": "length"}], "argument 0"),
    ([LIST], [{"relation": "permutation"}], "argument 0"),
    ([INTEGER, INTEGER], [{"relation": "commutative"}, {"relation": "type", "type": "int"}], "always returns 0"),
    ([INTEGER], [{"relation": "bounds", "min": 17, "max": 19}], "always returns 17"),
    ([INTEGER], [{"relation": "monotone"}], "argument 0"),
    ([INTEGER], [{"relation": "round trip", "inverse": "g"}], "argument 0"),
    ([INTEGER], [{"relation": "checker", "source": "def check(args, r): return True"}], "argument 0"),
    ([{"kind": "choice", "of": [[3, 1]]}], [{"relation": "equals", "outputs": [["list", 1, 3]]}], "always returns"),
]


@pytest.mark.parametrize(("inputs", "wanted", "told"), TRIVIAL)
def test_what_a_stub_passes_is_refused(inputs: list[Any], wanted: list[Any], told: str, sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError, match=told):
        judged("def f(*args): return args[0]", sandbox, inputs=inputs, properties=wanted)


BAD: list[dict[str, Any]] = [
    {"name": "1"},
    {"seed": "x"},
    {"seed": None},
    {"cases": 0},
    {"inputs": []},
    {"inputs": [{"kind": "integers"}]},
    {"inputs": [{"kind": []}]},
    {"properties": [{"relation": []}]},
    {"inputs": [{"kind": "integer", "least": 0}]},
    {"inputs": [{"kind": "integer", "min": 3, "max": 2}]},
    {"inputs": [{"kind": "integer", "min": 0.5}]},
    {"inputs": [{"kind": "float", "max": float("inf")}]},
    {"inputs": [{"kind": "list"}]},
    {"inputs": [{"kind": "list", "of": INTEGER, "max_length": 10**9}]},
    {"inputs": [{"kind": "list", "of": {"kind": "list", "of": INTEGER, "max_length": 900}, "max_length": 900}]},
    {"inputs": [{"kind": "list", "of": LIST, "sorted": True}]},
    {"inputs": [{"kind": "dict", "keys": LIST, "values": INTEGER}]},
    {"inputs": [{"kind": "choice", "of": []}]},
    {"inputs": [{"kind": "text", "alphabet": ""}]},
    {"properties": []},
    {"properties": [{"relation": "nice"}]},
    {"properties": ["sorted"]},
    {"properties": [{"relation": "sorted", "of": 1}]},
    {"properties": [{"relation": "permutation", "of": 1}]},
    {"properties": [{"relation": "commutative"}]},
    {"properties": [{"relation": "bounds"}]},
    {"properties": [{"relation": "equals"}]},
    {"properties": [{"relation": "sorted"}], "property": []},
    {"properties": [{"relation": "equals", "outputs": [1]}]},
    {"properties": [{"relation": "equals", "outputs": [["lisp"]]}]},
    {"properties": [{"relation": "equals", "reference": "def f(x): raise ValueError"}]},
    {"properties": [{"relation": "checker", "source": "def check(args, r) return"}]},
    {"properties": [{"relation": "checker", "source": "def verify(args, r): return True"}]},
    {"properties": [{"relation": "round trip", "inverse": "not a name"}]},
    {"properties": [{"relation": "monotone"}], "inputs": [LIST]},
    {"examples": [3]},
    {"examples": [["tuple", 1, 2]]},
    {"language": "c"},
    {"language": "javascript", "inputs": [{"kind": "bytes"}]},
]


@pytest.mark.parametrize("params", BAD)
def test_unusable_parameters_are_an_error(params: dict[str, Any], sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError):
        judged("def f(x): return sorted(x)", sandbox, **{**SORTING, **params})


def test_examples_come_first(sandbox: Sandbox) -> None:
    examples = [encode(([9, 1, 7],))]
    verdict = judged("def f(xs): return xs if 9 in xs[:1] else sorted(xs)", sandbox, **SORTING, examples=examples)
    assert (verdict.evidence["broken"], verdict.evidence["case"]) == ("sorted", 0)


@pytest.mark.parametrize(
    ("language", "right", "wrong", "more"),
    [
        ("javascript", "const f = (xs) => [...xs].sort((a, b) => a - b)", "const f = (xs) => xs.sort()", {}),
        (
            "c",
            "int f(int a, int b) { return a > b ? a : b; }",
            "int f(int a, int b) { return a > 40 ? b : a > b ? a : b; }",
            {
                "signature": {"arguments": ["int", "int"], "returns": "int"},
                "inputs": [INTEGER, INTEGER],
                "properties": [{"relation": "commutative"}, {"relation": "equals", "reference": "f = max"}],
            },
        ),
    ],
)
def test_other_languages(language: str, right: str, wrong: str, more: dict[str, Any], sandbox: Sandbox) -> None:
    params = {**SORTING, "language": language, **more}
    assert judged(right, sandbox, **params).score == 1
    assert judged(wrong, sandbox, **params).reason == "wrong"


def test_a_second_call_sees_nothing_of_the_first(sandbox: Sandbox) -> None:
    """Neither memory nor files: an encoder that leaves a note for its decoder has not encoded anything."""
    note = """
def f(s):
    open("/tmp/note", "a").write(s + ",")
    return [len(open("/tmp/note").read().split(",")) - 2]
def back(x):
    return open("/tmp/note").read().split(",")[x[0]]
"""
    assert judged(note, sandbox, **RUNS).evidence["broken"] == "round trip"


# ----------------------------------------------------------------------------------------------------------- inputs

SPECS = [
    INTEGER,
    {"kind": "float", "min": -1, "max": 1, "special": True},
    {"kind": "boolean"},
    {"kind": "choice", "of": ["a", None, [1]]},
    {"kind": "text", "min_length": 2},
    {"kind": "bytes"},
    {"kind": "list", "of": INTEGER, "min_length": 1, "max_length": 5, "unique": True, "sorted": True},
    {"kind": "tuple", "of": [INTEGER, {"kind": "text"}]},
    {"kind": "dict", "keys": {"kind": "text"}, "values": LIST},
    {"kind": "optional", "of": INTEGER},
    {"kind": "tree", "of": {"kind": "text"}, "depth": 3},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_inputs_depend_on_the_seed_alone_and_begin_with_edges(spec: dict[str, Any]) -> None:
    generated.check("x", spec)
    made = generated.inputs([spec], 3, 30)
    assert made == generated.inputs([spec], 3, 30) or spec.get("special")  # NaN is not equal to itself
    assert repr(made) == repr(generated.inputs([json.loads(json.dumps(spec))], 3, 30))
    assert len({repr(args) for args in made}) == len(made) <= 30
    if spec["kind"] not in ("boolean", "choice"):
        assert repr(made) != repr(generated.inputs([spec], 4, 30))
        assert len(made) == 30
    for args in made:
        encode(args)


def test_the_same_inputs_on_every_machine() -> None:
    assert generated.inputs([LIST], 1, 8)[:5] == [
        ([],),
        ([0],),
        ([0, 0],),
        ([0, 1, -1, -50],),
        ([-50, -1, 1, 0],),
    ]
    assert generated.inputs([INTEGER, INTEGER], 1, 12)[:3] == [(0, 0), (1, -1), (-1, 50)]


def test_inputs_keep_to_their_bounds() -> None:
    bounded = {"kind": "list", "of": {"kind": "integer", "min": 5, "max": 9}, "min_length": 2, "max_length": 4}
    for (value,) in generated.inputs([bounded], 5, 100):
        assert 2 <= len(value) <= 4
        assert all(5 <= item <= 9 for item in value)
    for (value,) in generated.inputs([{"kind": "float", "min": 0.25, "max": 0.75}], 5, 100):
        assert 0.25 <= value <= 0.75


# -------------------------------------------------------------------------------------------------------- totality

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda x: st.lists(x, max_size=4) | st.builds(lambda tag, r: [tag, *r], st.sampled_from(["list", "tuple", "float", "Decimal", "dict", "set"]), st.lists(x, max_size=3)),
    max_leaves=8,
)  # fmt: skip
WANTED = {
    "type": {"type": "list"},
    "bounds": {"min": 0},
    "equals": {"outputs": [["list", 1], ["list"]]},
    "round trip": {"inverse": "g"},
}


@settings(deadline=None, max_examples=200)
@given(results=st.lists(junk, min_size=2, max_size=2), again=st.lists(junk | st.builds(Failed), min_size=2, max_size=2))
def test_no_result_makes_a_relation_raise(results: list[Any], again: list[Any]) -> None:
    args = [["tuple", ["list", 2, 1]], ["tuple", ["list"]]]
    pairs = [["tuple", 1, 2], ["tuple", 3, 4]]
    for name, relation in RELATIONS.items():
        if name == "checker":
            continue  # runs in a box
        given = pairs if name in ("commutative", "monotone") else args
        trial = Trial(name="f", args=given, results=results, apply=lambda *_: again, trusted=lambda *_: [])
        assert relation(WANTED.get(name, {}), trial) in (None, 0, 1)
