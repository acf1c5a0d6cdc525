"""`function_tests`: what passes, what does not and why, and that a ban on modules holds."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers.code.source import problem
from kgsynth.verifiers.function_tests import Call, Outcome, decode, encode, expectation, run_calls
from tests.scoring import score, tagged
from tests.test_values import DIFFERENT

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
