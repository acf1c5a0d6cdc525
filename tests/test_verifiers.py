"""Verifiers: what is right, what is wrong, and that no answer whatever makes one raise."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.task import Provenance, Task, VerifierSpec
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, Verdict, register, runner, verify
from kgsynth.verifiers.answer import extract, strip_fence
from kgsynth.verifiers.function_tests import Call, Outcome, decode, encode, expectation, run_calls
from kgsynth.verifiers.source import problem
from kgsynth.verifiers.text import normalise
from kgsynth.verifiers.values import same


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


def score(name: str, params: dict[str, Any], answer: str, sandbox: Sandbox | None = None) -> Verdict:
    task = Task(
        type="t",
        domain="d",
        granularity="atomic",
        prompt="p",
        verifier=VerifierSpec(name=name, params=params),
        reference="",
        wrong=(),
        provenance=Provenance(concepts=("c",), names=("c",), spans=(), licences=(), author="test"),
    )
    return verify(answer, task, sandbox)


def tagged(text: str) -> str:
    return f"<answer>{text}</answer>"


# ------------------------------------------------------------------------------------------------ registry and answers


def test_four_verifiers_are_registered() -> None:
    assert {"choice", "text", "literal", "function_tests"} <= set(REGISTRY)
    assert {"function_tests"} == NEEDS_SANDBOX & {"choice", "text", "literal", "function_tests"}


def test_misuse_is_an_error_and_says_so() -> None:
    with pytest.raises(VerifierError, match=r"known: .*choice"):
        score("no such verifier", {}, "")
    with pytest.raises(VerifierError, match="open_sandbox"):
        score("function_tests", {}, "")
    with pytest.raises(VerifierError, match="twice"):
        register("choice")(REGISTRY["choice"])


BAD_PARAMS: list[tuple[str, dict[str, Any]]] = [
    ("choice", {"correct": "E", "options": ["A", "B"]}),
    ("choice", {"correct": "A"}),
    ("text", {"answers": []}),
    ("text", {"answers": ["ok", " "]}),
    ("text", {"answers": "ok"}),
    ("literal", {}),
    ("literal", {"value": " "}),
    ("function_tests", {"name": "f", "tests": []}),
    ("function_tests", {"name": "not a name", "tests": [{"args": ["list"], "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"]}]}),
    ("function_tests", {"name": "f", "tests": [{"args": 3, "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["lisp"], "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "forbidden": "math"}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "seconds": 0}),
]


@pytest.mark.parametrize(("name", "params"), BAD_PARAMS)
def test_unusable_parameters_are_an_error(name: str, params: dict[str, Any], sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError, match=name):
        score(name, params, tagged("A"), sandbox)


@pytest.mark.parametrize(
    ("reply", "text", "reason"),
    [
        ("thinking <answer> 42 </answer> done", " 42 ", ""),
        ("", "", "no answer tag"),
        ("42", "", "no answer tag"),
        ("<answer>42", "", "no answer tag"),
        ("42</answer>", "", "no answer tag"),
        ("</answer>42<answer>", "", "no answer tag"),
        ("<answer></answer>", "", "empty"),
        ("<answer> \n\t </answer>", "", "empty"),
        ("<answer>```\n \n```</answer>", "", "empty"),
        ("<answer>1</answer><answer>2</answer>", "", "several answers"),
        ("<answer>1</answer> or 2</answer>", "", "several answers"),
        ("<answer><answer>1</answer>", "", "several answers"),
        (tagged("x" * 10_001), "", "too long"),
    ],
)
def test_extract(reply: str, text: str, reason: str) -> None:
    assert extract(reply) == (text, reason)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```python\ndef f():\n    pass\n```", "def f():\n    pass"),
        ("\n```\n  x\n```\n", "  x"),
        ("x = '''```'''", "x = '''```'''"),
        ("```x```", "```x```"),
        ("```\nx", "```\nx"),
    ],
)
def test_strip_fence(text: str, inside: str) -> None:
    assert strip_fence(text) == inside


# ---------------------------------------------------------------------------------------------- choice, text, literal


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        *[(given, "right") for given in ("B", "b", " B ", "(B)", "B.", "B)", "(b).", "B:", "```\nB\n```")],
        *[(given, "wrong") for given in ("A", "(d)")],
        *[(given, "not an option") for given in ("A or B", "AB", "E", "(B", "B. because", "B!", "1", "ß", "Ｂ")],
    ],
)
def test_choice(answer: str, reason: str) -> None:
    verdict = score("choice", {"correct": "B", "options": list("ABCD")}, tagged(answer))
    assert (verdict.reason, verdict.score) == (reason, float(reason == "right"))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        *[
            (given, True)
            for given in ("Hash table", " hash\n TABLE ", '"hash table".', "`Hash Table`", "“hash map.”", "HASH MAP")
        ],
        *[(given, False) for given in ("hash", "a hash table", "hash table or list", "hashtable", "hash tables", ".")],
    ],
)
def test_text(answer: str, right: bool) -> None:
    assert (score("text", {"answers": ["hash table", "Hash map"]}, tagged(answer)).score == 1) is right


def test_text_compares_characters_not_code_points() -> None:
    assert score("text", {"answers": ["Café"]}, tagged("CAFE\u0301")).score == 1
    assert score("text", {"answers": ["STRASSE"]}, tagged("straße")).score == 1
    assert score("text", {"answers": ["..."]}, tagged("...")).score == 1
    assert score("text", {"answers": ["..."]}, tagged(".")).score == 0


@settings(deadline=None)
@given(st.text())
def test_normalise_is_idempotent_and_never_empties_an_answer(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)
    assert bool(normalise(text)) == bool(text.strip())


LITERALS = [
    ("[1, 2]", "[1,2]", True),
    ("[1, 2]", "(1, 2)", False),
    ("[1, 2]", "[1.0, 2]", False),
    ("[1, 2]", "[True, 2]", False),
    ("True", "1", False),
    ("1", "True", False),
    ("1", "1.0", False),
    ("255", "0xff", False),
    ("[255, 1000]", "[0o377, 1_000]", False),
    ("'0xff'", '"0xff"', True),
    ("1.5", "1.50", True),
    ("0.1", "0.10000000000000001", True),  # the same float
    ("0.1", "0.1000000001", False),
    ("0.0", "-0.0", False),
    ("{1: 'a', 2: 'b'}", '{2: "b", 1: "a"}', True),
    ("{1, 2}", "{2, 1}", True),
    ("{1}", "{True}", False),
    ("'a'", '"a"', True),
    ("'1'", "1", False),
    ("b'a'", "'a'", False),
    ("1+2j", "1 + 2j", True),
    ("None", "none", False),
    ("hello world", "hello world\n", True),
    ("hello world", "'hello world'", False),
    ("a\nb", "a\nb", True),
    ("<class 'int'>", "<class 'int'>", True),
]


@pytest.mark.parametrize(("value", "answer", "right"), LITERALS)
def test_literal(value: str, answer: str, right: bool) -> None:
    assert (score("literal", {"value": value}, tagged(answer)).score == 1) is right


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(st.characters()) | st.binary()
    | st.fractions() | st.decimals()
)  # fmt: skip
hashable = st.recursive(
    scalars.filter(lambda v: not (isinstance(v, Decimal) and v.is_snan())), lambda s: st.tuples(s, s)
)
values = st.recursive(
    scalars | st.sets(hashable, max_size=4) | st.frozensets(hashable, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(hashable, inner, max_size=4),
    max_leaves=12,
)
literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.integers(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(literals, literals)
def test_literal_agrees_with_python_on_values_and_types(a: Any, b: Any) -> None:
    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return "dict", {key: typed(item) for key, item in value.items()}
        inner = [typed(item) for item in value] if isinstance(value, (list, tuple)) else repr(value)
        return type(value), inner

    def tags(text: str) -> bool:
        return "answer>" in text

    if tags(repr(a)) or tags(repr(b)):
        return
    assert score("literal", {"value": repr(a)}, tagged(repr(a))).score == 1
    assert score("literal", {"value": repr(a)}, tagged(repr(b))).score == (typed(a) == typed(b))


# --------------------------------------------------------------------------------------------------------- the codec


@settings(deadline=None)
@given(values)
def test_codec_is_exact_and_is_json(value: Any) -> None:
    form = encode(value)
    assert json.loads(json.dumps(form)) == form
    json.dumps(form, ensure_ascii=False).encode()  # what a task file does with it
    assert json.loads(runner.to_json(form)) == form
    back = decode(form)
    assert type(back) is type(value)
    assert encode(back) == form
    assert same(form, encode(back), tolerance=0.0)


@settings(deadline=None)
@given(values, values)
def test_codec_tells_values_apart(a: Any, b: Any) -> None:
    """Equal forms only for values that print the same, which for these types means the same."""
    if encode(a) == encode(b) and not _has_set(a):
        assert repr(a) == repr(b)


def _has_set(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_set, (*value, *value.values())))
    return isinstance(value, (set, frozenset)) or (isinstance(value, (list, tuple)) and any(map(_has_set, value)))


DIFFERENT = [
    True,
    1,
    1.0,
    1 + 0j,
    "1",
    b"1",
    Fraction(1),
    Decimal(1),
    Decimal("1.0"),
    [1],
    (1,),
    {1},
    frozenset({1}),
    {1: 1},
]
DIFFERENT += [
    None,
    False,
    0,
    0.0,
    -0.0,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    b"",
    [],
    (),
    set(),
    {},
    2**53,
    "\ud800",
]


def test_values_of_different_types_are_never_the_same() -> None:
    for i, a in enumerate(DIFFERENT):
        for j, b in enumerate(DIFFERENT):
            assert same(encode(a), encode(b)) is (i == j), (a, b)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-10), True),
        (1.0, 1.0 + 1e-8, False),
        (1e-300, 0.0, False),
        (float("nan"), float("nan"), True),
        (float("inf"), 1e308, False),
        ([0.1 + 0.2, 1], [0.3, 1], True),
        ({"a": (0.1 + 0.2,)}, {"a": (0.3,)}, True),
        ({0.1 + 0.2}, {0.3}, False),  # members of sets are compared exactly
        ({1: 2, 3: 4}, {3: 4, 1: 2}, True),
        (complex(0.1 + 0.2, 1), complex(0.3, 1), True),
    ],
)
def test_floats_have_a_relative_tolerance(a: Any, b: Any, equal: bool) -> None:
    assert same(encode(a), encode(b)) is equal
    assert same(encode(b), encode(a)) is equal


class Sly(str):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class SlyInt(int):
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value", [object(), Sly("x"), SlyInt(1), [SlyInt(1)], {Sly("k"): 1}, range(3), len, int, CYCLE, bytearray()]
)
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(VerifierError, match="cannot encode"):
        encode(value)


@pytest.mark.parametrize(
    "form", [["lisp"], [], [1], ["int"], ["int", "x"], ["set", ["list"]], ["dict", 1], ["Decimal", "x"]]
)
def test_malformed_forms_are_refused(form: Any) -> None:
    with pytest.raises(VerifierError, match="not an encoded value"):
        decode(form)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x, max_size=4), max_leaves=10
)
tags = st.sampled_from(["float", "complex", "list", "set", "dict", "int"])
forms = plain | st.builds(lambda tag, rest: [tag, *rest], tags, st.lists(plain, max_size=4))


@settings(deadline=None)
@given(forms, forms)
def test_comparing_forged_forms_never_raises(a: Any, b: Any) -> None:
    assert same(a, b) in (True, False)


def test_the_runner_loads_nothing_that_a_bare_interpreter_has_not() -> None:
    """Modules found loaded could be reached by a solution that may not import them."""
    code = "import sys; before = set(sys.modules); exec(compile(open(sys.argv[1]).read(), 'r', 'exec'), {'__name__': 'r'}); print(set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-I", "-S", "-c", code, runner.__file__], capture_output=True, text=True)
    assert out.stdout == "{'__future__'}\n", out


# ------------------------------------------------------------------------------------------------------- function tests

GCD = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return abs(a)"
CALLS = [
    Call(args=(12, 18)),
    Call(args=(0, 0)),
    Call(args=(2**70, 2**65)),
    Call(kwargs={"a": -4, "b": 6}),
    Call(args=("x", 1)),
]


@pytest.fixture(scope="module")
def gcd(sandbox: Sandbox) -> dict[str, Any]:
    """Parameters whose expected values come from math.gcd itself, without a banned module and with one."""
    calls = [call for call in CALLS if not call.kwargs]
    outcomes = run_calls("from math import gcd", "gcd", calls, sandbox)
    tests = [expectation(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    return {"name": "gcd", "tests": tests, "forbidden": ["math"], "seconds": 2}


def test_run_calls_reports_values_and_exceptions(sandbox: Sandbox) -> None:
    outcomes = run_calls(GCD, "gcd", CALLS, sandbox)
    values = [decode(outcome.value) for outcome in outcomes[:4]]
    assert values == [6, 0, 2**65, 2]
    assert outcomes[4] == Outcome(kind="raised", detail="TypeError")


def test_every_type_passes_through_the_box(sandbox: Sandbox) -> None:
    calls = [Call(args=(value,)) for value in DIFFERENT]
    outcomes = run_calls("def same(x):\n    return x", "same", calls, sandbox)
    assert [outcome.value for outcome in outcomes] == [encode(value) for value in DIFFERENT]


def test_the_right_solution_scores_one(sandbox: Sandbox, gcd: dict[str, Any]) -> None:
    solution = GCD.replace("return abs(a)", "return abs(a + 0)") + "\n"
    verdict = score("function_tests", gcd, f"Euclid.\n<answer>\n```python\n{solution}```\n</answer>", sandbox)
    assert (verdict.score, verdict.reason) == (1.0, "right")
    assert verdict.evidence == {"passed": 4, "total": 4}
    json_params = json.loads(json.dumps(gcd))
    assert score("function_tests", json_params, tagged(solution), sandbox).score == 1


def test_a_solution_may_be_indented_and_print(sandbox: Sandbox, gcd: dict[str, Any]) -> None:
    noisy = GCD.replace("return", "print('x' * 10**6)\n    return")
    indented = "\n".join("    " + line for line in noisy.split("\n"))
    assert score("function_tests", gcd, tagged("\n" + indented + "\n"), sandbox).score == 1


WRONG = {
    "wrong": "def gcd(a, b): return 6 if isinstance(a, int) else a % b",
    "error": "def gcd(a, b): raise ValueError('no')",
    "syntax error": "def gcd(a, b)\n    return 1",
    "no such function": "def GCD(a, b): return 1",
    "load error": "def gcd(a, b): return 1\n1 / 0",
    "timeout": "def gcd(a, b):\n    while True: pass",
    "crashed": "def gcd(a, b):\n    import faulthandler\n    faulthandler._sigsegv()",
    "not encodable": "def gcd(a, b): return object()",
    "result too large": "def gcd(a, b): return 'x' * 10**6",
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_solution_scores_zero_with_its_reason(reason: str, sandbox: Sandbox, gcd: dict[str, Any]) -> None:
    verdict = score("function_tests", {**gcd, "seconds": 1}, tagged(WRONG[reason]), sandbox)
    assert (verdict.score, verdict.reason) == (0.0, reason)
    assert verdict.evidence["total"] == 4
    assert verdict.evidence["passed"] == (1 if reason == "wrong" else 0) + (reason == "wrong")
    assert verdict.evidence["first_failing"] == (1 if reason == "wrong" else 0)


def test_other_ways_of_not_answering(sandbox: Sandbox, gcd: dict[str, Any]) -> None:
    reasons = {
        "return 1\ndef gcd(a, b): return 1": "syntax error",
        "gcd = 3": "no such function",
        "import sys\ngcd = len\nsys.exit(0)": "load error",
        "def gcd(a, b):\n    import os\n    os._exit(0)": "crashed",
        "def gcd(a, b):\n    try:\n        while True: pass\n    except BaseException:\n        while True: pass": "timeout",
        "import time\ndef gcd(a, b): time.sleep(100)": "timeout",
        "import time\ntime.sleep(100)\ndef gcd(a, b): return 1": "timeout",
    }
    params = {**gcd, "forbidden": [], "seconds": 1}
    assert {source: score("function_tests", params, tagged(source), sandbox).reason for source in reasons} == reasons


def test_the_expected_value_is_nowhere_in_the_box_nor_in_the_evidence(sandbox: Sandbox) -> None:
    """A solution that reads every file it can and all of its own memory finds its inputs, and not the output."""
    secret = "planted" + "-expected-value"
    tests = [{"args": ["list", "an-input"], "kwargs": ["dict"], "expect": secret}]
    source = """
import os
def f(x):
    word = b"-expected-" + b"value"
    seen = {"input": False, "expected": False}
    def look(data):
        seen["expected"] |= b"planted" + word in data
        seen["input"] |= b"an-inp" + b"ut" in data
    for folder in ("/work", "/proc/self", "/proc/1", "/etc"):
        for name in os.listdir(folder) if os.access(folder, os.R_OK) else ():
            try:
                look(open(f"{folder}/{name}", "rb").read(1 << 20))
            except OSError:
                pass
    with open("/proc/self/mem", "rb") as memory:
        for line in open("/proc/self/maps"):
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw"):
                try:
                    memory.seek(start)
                    look(memory.read(end - start))
                except (OSError, ValueError, OverflowError):
                    pass
    return [seen["input"], seen["expected"]]
"""
    params = {"name": "f", "tests": tests, "seconds": 10}
    verdict = score("function_tests", params, tagged(source), sandbox)
    assert verdict.score == 0
    assert verdict.evidence["got"] == '["list",true,false]'
    assert secret not in json.dumps(dict(verdict.evidence))


def test_forged_reports_are_only_answers(sandbox: Sandbox, gcd: dict[str, Any]) -> None:
    """The runner's pipe can be found; what is written there is compared like any other value."""
    source = """
def gcd(a, b):
    import os, sys
    frame = sys._getframe()
    while frame and "report" not in frame.f_locals:
        frame = frame.f_back
    for text in ('[0,"returned",6]', '[1,"returned",{"a":1}]', '[1,"failed","right"]', '[1]', '[' * 10**5, '["x","returned",1]'):
        os.write(frame.f_locals["report"], (text + chr(10)).encode())
    os._exit(0)
"""
    params = {**gcd, "forbidden": []}
    verdict = score("function_tests", params, tagged(source), sandbox)
    assert (verdict.score, verdict.reason) == (0.0, "crashed")
    assert verdict.evidence["passed"] == 1


def test_a_mutated_argument_does_not_reach_other_calls(sandbox: Sandbox) -> None:
    shared = [3, 1, 2]
    source = "def take(xs, n=[0]):\n    xs.sort()\n    return xs.pop(0)"
    outcomes = run_calls(source, "take", [Call(args=(shared,))] * 3, sandbox)
    assert [outcome.value for outcome in outcomes] == [1, 1, 1]
    assert shared == [3, 1, 2]


def test_what_follows_a_timeout_is_not_run(sandbox: Sandbox) -> None:
    source = "def f(n):\n    while n: pass\n    return n"
    outcomes = run_calls(source, "f", [Call(args=(n,)) for n in (0, 1, 0)], sandbox, seconds=0.6)
    assert [outcome.kind for outcome in outcomes] == ["returned", "failed", "failed"]
    assert {outcome.detail for outcome in outcomes[1:]} == {"timeout"}


def test_an_oracle_that_fails_makes_no_test(sandbox: Sandbox) -> None:
    call = Call(args=(1,))
    (outcome,) = run_calls("def f(x): return iter([x])", "f", [call], sandbox)
    with pytest.raises(VerifierError, match="not encodable"):
        expectation(call, outcome)
    with pytest.raises(VerifierError, match="cannot encode"):
        run_calls("def f(x): return x", "f", [Call(args=(object(),))], sandbox)


# ------------------------------------------------------------------------------------------------------ banned modules

STATIC = [
    "import math as m\ngcd = m.gcd",
    "from math import gcd",
    "try:\n    from math import gcd\nexcept ImportError:\n    gcd = None",
    "def gcd(a, b):\n    import math\n    return math.gcd(a, b)",
    "gcd = __import__('math').gcd",
    "import importlib\ngcd = importlib.import_module('math').gcd",
    "import sys\ngcd = sys.modules['math'].gcd",
    "import _math\ngcd = 1",
    "gcd = print.__self__.__import__('math').gcd",
    "gcd = (lambda: 0).__globals__['x']",
    "gcd = ().__class__.__base__.__subclasses__()",
    "import subprocess\ngcd = 1",
    "match print:\n    case object(__self__=found):\n        gcd = found",
    "import string\ngcd = eval(\"string.capwords.__globals__['__builtins__']\")",
    "import string\ngcd = type(string.capwords).__dict__['__globals__'].__get__(string.capwords)",
    "import string\ngcd = string.Formatter().get_field('0.get_field.__globals__', (string.Formatter(),), {})",
    "import timeit\ngcd = timeit.Timer",
]


@pytest.mark.parametrize("source", STATIC)
def test_a_ban_is_seen_in_the_source(source: str) -> None:
    assert problem(source, "gcd", ["math"]) == "forbidden import"


@pytest.mark.parametrize(
    ("source", "banned"),
    [
        ("from _heapq import heappush as f", "heapq"),
        ("from xml.etree import ElementTree as f", "xml"),
        ("import posixpath\nf = posixpath.join", "os.path"),
        ("from collections.abc import Mapping as f", "collections.abc"),
        ("from collections import abc\nf = abc.Mapping", "collections.abc"),
    ],
)
def test_twins_and_submodules_are_banned_too(source: str, banned: str) -> None:
    assert problem(source, "f", [banned]) == "forbidden import"
    assert problem(source, "f") == ""


DYNAMIC = [
    "gcd = __import__('ma' + 'th').gcd",
    "exec('from ma' + 'th import gcd')",
    "space = {}\nexec('import ma' + 'th', space)\ngcd = space['ma' + 'th'].gcd",
    "import fractions\ngcd = getattr(fractions, 'ma' + 'th').gcd",
    "import statistics\ngcd = statistics.gcd",
    "from fractions import math\ngcd = math.gcd",
    "from statistics import *\ngcd(1, 2)",
    "import fractions\ngcd = getattr(fractions.Fraction.__add__, '__glob' + 'als__')['math'].gcd",
    "import sys\ngcd = getattr(sys, 'mod' + 'ules')['math'].gcd",
    "import operator\ngcd = operator.attrgetter('__se' + 'lf__')(print).__dict__['__imp' + 'ort__']('math').gcd",
    "__import__('impor' + 'tlib').import_module('math')\ngcd = 1",
    "import string\nname = 'string.capwords.__glo' + 'bals__'\ngcd = eval(name)['__built' + 'ins__']['__imp' + 'ort__']('math').gcd",
    "import typing\nhint = '__imp' + 'ort__(\"math\").gcd'\ngcd = typing.ForwardRef(hint)._evaluate({}, {}, frozenset())",
    "import typing\nclass A:\n    a: '__imp' + 'ort__(\"math\").gcd'\ngcd = typing.get_type_hints(A)['a']",
    "import string as s\nf = s.Formatter()\ngcd = f.get_field('0.get_field.__glo' + 'bals__', (f,), {})[0]['__built' + 'ins__']['__imp' + 'ort__']('math').gcd",
]


@pytest.mark.parametrize("source", DYNAMIC)
def test_a_ban_holds_at_run_time(source: str, sandbox: Sandbox) -> None:
    """None of these reaches math.gcd; the same text without a ban is another matter."""
    assert problem(source, "gcd", ["math"]) in ("", "no such function")
    (outcome,) = run_calls(source + "\ngcd = gcd", "gcd", [Call(args=(12, 18))], sandbox, forbidden=["math"])
    assert outcome.kind != "returned"
    if source in DYNAMIC[:3]:
        assert outcome.detail == "forbidden import"


def test_the_dynamic_tricks_work_without_a_ban(sandbox: Sandbox) -> None:
    """Otherwise the test above would prove nothing."""
    for source in DYNAMIC[:4]:
        (outcome,) = run_calls(source + "\ngcd = gcd", "gcd", [Call(args=(12, 18))], sandbox)
        assert outcome.value == 6, source


def test_other_modules_stay_usable_under_a_ban(sandbox: Sandbox) -> None:
    """Also those that use the banned ones themselves."""
    source = """
from __future__ import annotations
import collections, enum, re, string, sys
import collections.abc
from dataclasses import dataclass, field
from typing import List, NamedTuple, Optional

@dataclass
class Point:
    x: "int" = 3
    tags: List[str] = field(default_factory=list)

class Pair(NamedTuple):
    a: int

class Colour(enum.Enum):
    RED = 1

def f(xs: Optional[list]):
    counted = collections.Counter(xs).most_common(1)
    return [Point(4).x, Pair(1).a, Colour.RED.value, counted, re.sub("a", "b", "a"), isinstance(xs, collections.abc.Sized)]
"""
    for banned in ("itertools", "functools", "operator", "heapq", "math", "json"):
        (outcome,) = run_calls(source, "f", [Call(args=([1, 1, 2],))], sandbox, forbidden=[banned])
        assert decode(outcome.value) == [4, 1, 1, [(1, 2)], "b", True], (banned, outcome)


def test_a_banned_number_type_still_arrives_as_argument(sandbox: Sandbox) -> None:
    source = "def double(x):\n    return x + x"
    (outcome,) = run_calls(source, "double", [Call(args=(Fraction(1, 3),))], sandbox, forbidden=["fractions"])
    assert decode(outcome.value) == Fraction(2, 3)


# ------------------------------------------------------------------------------------------------------------ totality

MONSTERS = [
    "\0",
    "\ud800",
    "(" * 10**5,
    "[" * 9_000 + "]" * 900,
    "-" * 9_999 + "1",
    "not " * 2_400 + "1",
    "1 if a else " * 800 + "1",
    "9" * 9_999,
    "x" * 10**7,
    "lambda:" * 1_400 + "1",
    "'" * 9_999,
    '"' + "`'" * 4_000 + '"',
    "{[]: 1}",
    "{**{}}",
    "f'{" * 3_000,
    "\\N{",
    "...",
    "\u202e\u0000\ufeff",
    "elif a: p\n" * 900,
    "<answer>",
    "</answer>",
]
PARAMS: dict[str, dict[str, Any]] = {
    "choice": {"correct": "B", "options": list("ABCD")},
    "text": {"answers": ["hash table"]},
    "literal": {"value": "[1, {'a': 2}]"},
    "function_tests": {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "forbidden": ["math"]},
}


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("monster", MONSTERS, ids=range(len(MONSTERS)))
def test_no_answer_makes_a_verifier_raise(name: str, monster: str, sandbox: Sandbox) -> None:
    for answer in (monster, tagged(monster), tagged(f"```python\n{monster}\n```")):
        verdict = score(name, PARAMS[name], answer, sandbox)
        assert (verdict.score, bool(verdict.reason)) == (0.0, True)


@pytest.mark.parametrize(("times", "right"), [(1, True), (99, False)])
def test_the_parser_failing_for_its_own_reasons_is_no_verdict(
    times: int, right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython 3.11.7: "AST constructor recursion depth mismatch", from a counter that all threads share."""
    real, left = ast.parse, iter(range(times))

    def flaky(*args: Any, **kwargs: Any) -> ast.AST:
        if next(left, None) is not None:
            raise SystemError("AST constructor recursion depth mismatch (before=135, after=-1105)")
        return real(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", flaky)
    assert (score("literal", {"value": "[1, 2]"}, tagged("[1,2]")).score == 1) is right
    left = iter(range(times))
    assert problem("def f(): pass", "f") == ("" if right else "syntax error")


pieces = st.sampled_from(
    ["<answer>", "</answer>", "```", "\n", "B", "[1]", "def f():", "import math", "(", "'", '"', ".", "\0"]
)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(sorted(PARAMS)),
    answer=st.lists(pieces | st.text(st.characters(), max_size=5), max_size=12).map("".join),
)
def test_random_answers_get_a_verdict(sandbox: Sandbox, name: str, answer: str) -> None:
    verdict = score(name, PARAMS[name], answer, sandbox)
    assert verdict.score in (0.0, 1.0)
    assert verdict.reason
