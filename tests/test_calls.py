"""Calls of functions in JavaScript and C, limits of single calls, and values that languages write differently."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers.code.values import same
from kgsynth.verifiers.function_tests import Call, Outcome, decode, encode, expectation, run_calls
from tests.scoring import score, tagged

JSON_LIKE = [None, True, False, 0, 1, -7, 2**53 - 1, 1.5, 1e300, math.inf, -math.inf, "", 'é\n"\\', "\ud800x"]
JSON_LIKE += [[], [1, [2, ["x"]]], {}, {"a": {"b": [None]}, "__proto__": 1, "": 2}]


def test_values_pass_through_javascript(sandbox: Sandbox) -> None:
    calls = [Call(args=(value,)) for value in JSON_LIKE]
    outcomes = run_calls("const f = (x) => x", "f", calls, sandbox, language="javascript")
    assert [outcome.value for outcome in outcomes[:3]] == [None, True, False]
    for value, outcome in zip(JSON_LIKE, outcomes, strict=True):
        assert same(outcome.value, encode(value), loose=True), (value, outcome)
    (nan, minus) = run_calls(
        "f = (x) => x", "f", [Call(args=(x,)) for x in (math.nan, -0.0)], sandbox, language="javascript"
    )
    assert (math.isnan(decode(nan.value)), minus.value) == (True, 0)


@pytest.mark.parametrize(
    "source",
    [
        "function f(x) { return x + 1 }",
        "const f = x => x + 1",
        "let f = function (x) { return x + 1 }",
        "export function f(x) { return x + 1 }",
        "export default function f(x) { return x + 1 }",
        "export const f = (x) => x + 1",
        "module.exports = { f: (x) => x + 1 }",
        "exports.f = (x) => x + 1",
        "'use strict'\nclass A { static g(x) { return x + 1 } }\nfunction f(x) { return A.g(x) }",
        "function f(x) { console.log('x'.repeat(100)); console.error(x); return x + 1 }",
        "const { max } = Math; const fs = require('fs'); const f = (x) => max(x + 1, 0)",
    ],
)
def test_ways_to_define_a_function_in_javascript(source: str, sandbox: Sandbox) -> None:
    (outcome,) = run_calls(source, "f", [Call(args=(1,))], sandbox, language="javascript")
    assert outcome == Outcome(kind="returned", value=2)


JS_FAILURES = {
    "function f(x) { throw new RangeError('no') }": Outcome(kind="raised", detail="RangeError"),
    "class Own extends Error {}; function f(x) { throw new Own() }": Outcome(kind="raised", detail="Own"),
    "function f(x) { throw 'text' }": Outcome(kind="raised", detail="String"),
    "function f(x) { return f(x) }": Outcome(kind="raised", detail="RangeError"),
    "function f(x) { }": Outcome(kind="failed", detail="not encodable"),
    "function f(x) { return [1, , 2] }": Outcome(kind="failed", detail="not encodable"),
    "function f(x) { return new Map() }": Outcome(kind="failed", detail="not encodable"),
    "function f(x) { return 5n }": Outcome(kind="failed", detail="not encodable"),
    "function f(x) { const a = []; a.push(a); return a }": Outcome(kind="failed", detail="not encodable"),
    "function f(x) { return 'x'.repeat(1e6) }": Outcome(kind="failed", detail="result too large"),
    "function f(x) {": Outcome(kind="failed", detail="syntax error"),
    "undefined.x; function f(x) {}": Outcome(kind="failed", detail="load error: TypeError"),
    "const f = 3": Outcome(kind="failed", detail="no such function"),
    "function g(x) {}": Outcome(kind="failed", detail="no such function"),
}


@pytest.mark.parametrize("source", JS_FAILURES)
def test_failures_in_javascript(source: str, sandbox: Sandbox) -> None:
    assert run_calls(source, "f", [Call(args=(1,))], sandbox, language="javascript") == [JS_FAILURES[source]]


C_VALUES: list[tuple[str, str, Any, list[tuple[Any, ...]], list[Any]]] = [
    ("long f(long x) { return x; }", "long", "long", [(2**63 - 1,), (-(2**63),), (2**53,), (-5,)], [2**63 - 1, -(2**63), 2**53, -5]),
    ("int f(int x) { return -x; }", "int", "int", [(7,), (-(2**31) + 1,)], [-7, 2**31 - 1]),
    ("double f(double x) { return x / 2; }", "double", "double", [(3,), (math.inf,), (0.2,)], [1.5, math.inf, 0.1]),
    ("#include <stdbool.h>\nbool f(bool x) { return !x; }", "bool", "bool", [(True,), (False,)], [False, True]),
    ("char *f(char *s) { return s + 1; }", "char*", "char*", [("aé\n\"\\?01",), ("a",)], ["é\n\"\\?01", ""]),
    ("char *f(char *s) { return 0; }", "char*", "char*", [("a",)], [None]),
    ("void f(char *s) { if (*s) *s = 'X'; }", "char*", 0, [("abc",), ("",)], ["Xbc", ""]),
    ("void f(int *a, int n) { for (int i = 0; i < n; i++) a[i] *= 2; }", "int[],int", 0, [([1, 2], 2), ([], 0)], [[2, 4], []]),
    ("double f(const double *a, long n) { double s = 0; while (n) s += a[--n]; return s; }", "double[],long", "double", [([1, 2.5], 2)], [3.5]),
    ("static long g(long *a) { return a[1]; }\nlong f(long *a) { return g(a); }\nint main(void) { return 3; }", "long[]", "long", [([1, 2**62],)], [2**62]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "types", "returns", "args", "results"), C_VALUES)
def test_values_pass_through_c(
    source: str, types: str, returns: Any, args: list[tuple[Any, ...]], results: list[Any], sandbox: Sandbox
) -> None:
    signature = {"arguments": types.split(","), "returns": returns}
    outcomes = run_calls(source, "f", [Call(args=a) for a in args], sandbox, language="c", signature=signature)
    assert [same(o.value, encode(r), loose=True) for o, r in zip(outcomes, results, strict=True)] == [True] * len(
        args
    ), outcomes


def test_text_that_is_not_unicode_is_no_text(sandbox: Sandbox) -> None:
    signature = {"arguments": ["char*"], "returns": "char*"}
    source = 'char *f(char *s) { return "\\xff"; }'
    (outcome,) = run_calls(source, "f", [Call(args=("a",))], sandbox, language="c", signature=signature)
    assert outcome.value == ["bytes", "ff"]


def test_a_signal_ends_the_calls_of_its_box_only(sandbox: Sandbox) -> None:
    source = "long f(long x) { if (x == 1) for (;;); if (x == 2) *(volatile int *)0 = 1; return x; }"
    signature = {"arguments": ["long"], "returns": "long"}
    calls = [
        Call(args=(5,)),
        Call(args=(1,), seconds=0.2),
        Call(args=(2,), seconds=0.2),
        Call(args=(6,)),
        Call(args=(2,)),
        Call(args=(7,)),
    ]
    outcomes = run_calls(source, "f", calls, sandbox, language="c", signature=signature)
    assert [o.value if o.kind == "returned" else o.detail for o in outcomes] == [
        5,
        "timeout",
        "crashed",
        6,
        "crashed",
        "crashed",
    ]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "def f(n):\n    while n == 1: pass\n    return n"),
        ("javascript", "function f(n) { while (n === 1); return n }"),
    ],
)
def test_a_limit_of_a_single_call(language: str, source: str, sandbox: Sandbox) -> None:
    """The call with a limit of its own is late, and costs the others nothing."""
    calls = [Call(args=(0,)), Call(args=(1,), seconds=0.2), Call(args=(2,))]
    outcomes = run_calls(source, "f", calls, sandbox, language=language)
    assert [o.value if o.kind == "returned" else o.detail for o in outcomes] == [0, "timeout", 2]


def test_a_limit_of_a_single_test(sandbox: Sandbox) -> None:
    source = "import time\ndef f(n):\n    time.sleep(n)\n    return n"
    tests = [expectation(Call(args=(n,), seconds=s), Outcome(kind="returned", value=n)) for n, s in ((0, None), (1, 3))]
    assert tests[1]["seconds"] == 3
    params = {"name": "f", "tests": tests, "seconds": 1}
    assert score("function_tests", params, tagged(source), sandbox).score == 1
    late = {**params, "tests": [tests[0], {**tests[1], "seconds": 0.1}]}
    assert score("function_tests", late, tagged(source), sandbox).reason == "timeout"


def test_boxes_after_a_failed_test_are_not_started(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty tests with limits of their own cost a solution that fails them one, not all."""
    tests = [expectation(Call(args=(n,), seconds=1), Outcome(kind="returned", value=n)) for n in range(20)]
    gone = tagged("import os\ndef f(n): os._exit(1)")
    runs, run = [], sandbox.run
    monkeypatch.setattr(sandbox, "run", lambda *args, **kwargs: runs.append(args) or run(*args, **kwargs))
    verdict = score("function_tests", {"name": "f", "tests": tests}, gone, sandbox)
    assert (verdict.score, verdict.reason, verdict.evidence["first_failing"]) == (0, "crashed", 0)
    assert len(runs) == 1


def test_strings_hash_as_asked(sandbox: Sandbox) -> None:
    source = "def f(): return [hash('x'), list({'a', 'b', 'c', 'd', 'e'})]"
    seen = [run_calls(source, "f", [Call()], sandbox, hash_seed=seed)[0].value for seed in (1, 2, 1, None, None)]
    assert seen[0] == seen[2] != seen[1]
    assert seen[3] == seen[4]


BAD: list[tuple[str, dict[str, Any]]] = [
    ("language", {"language": "cobol"}),
    ("signature", {"language": "c"}),
    ("unknown type", {"language": "c", "signature": {"arguments": ["float"], "returns": "int"}}),
    ("'returns'", {"language": "c", "signature": {"arguments": ["int"], "returns": 0}}),
    ("'returns'", {"language": "c", "signature": {"arguments": ["int[]"], "returns": "int[]"}}),
    ("1 arguments, not 2", {"language": "c", "signature": {"arguments": ["int"], "returns": "int"}, "args": (1, 2)}),
    ("no int", {"language": "c", "signature": {"arguments": ["int"], "returns": "int"}, "args": (2**31,)}),
    ("no int", {"language": "c", "signature": {"arguments": ["int"], "returns": "int"}, "args": (True,)}),
    ("NUL", {"language": "c", "signature": {"arguments": ["char*"], "returns": "int"}, "args": ("a\0",)}),
    ("no list", {"language": "c", "signature": {"arguments": ["int[]"], "returns": "int"}, "args": (1,)}),
    ("javascript has no int", {"language": "javascript", "args": (2**53,)}),
    ("javascript has no bytes", {"language": "javascript", "args": ([b"x"],)}),
    ("text as keys", {"language": "javascript", "args": ({1: 2},)}),
    ("python only", {"language": "javascript", "forbidden": ["fs"]}),
    ("seconds", {"seconds": 0}),
]


@pytest.mark.parametrize(("told", "more"), BAD)
def test_unusable_parameters_are_an_error(told: str, more: dict[str, Any], sandbox: Sandbox) -> None:
    args = encode(tuple(more.get("args", (1,))))
    params = {"name": "f", "tests": [{"args": args, "expect": 1}], **{k: v for k, v in more.items() if k != "args"}}
    with pytest.raises(VerifierError, match=told):
        score("function_tests", params, "no answer", sandbox)


@pytest.mark.parametrize(
    ("a", "b", "strict", "loose"),
    [
        (1, 1.0, False, True),
        ((1, 2), [1, 2], False, True),
        ({"a": (1,)}, {"a": [1.0]}, False, True),
        (True, 1, False, False),
        (1, 2.0, False, False),
        (10**12, 10**12 + 1, False, False),
        (3, 3.0000000001, False, True),
        ("1", 1, False, False),
        (None, 0, False, False),
    ],
)
def test_languages_with_fewer_types(a: Any, b: Any, strict: bool, loose: bool) -> None:
    for x, y in ((a, b), (b, a)):
        assert same(encode(x), encode(y)) is strict
        assert same(encode(x), encode(y), loose=True) is loose
