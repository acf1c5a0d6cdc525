"""Verifiers: what is right, what is wrong, and that no answer whatever makes one raise."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import NEEDS_SANDBOX, REGISTRY, register
from kgsynth.verifiers.answer import extract, strip_fence
from kgsynth.verifiers.code.source import problem
from kgsynth.verifiers.text import normalise
from tests.scoring import score, tagged

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
    ("literal", {"value": "1", "type": "int"}),
    ("function_tests", {"name": "f", "tests": []}),
    ("function_tests", {"name": "f", "language": [], "tests": [{"args": ["list"], "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1.5}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": {"a": 1}}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": ["float", "xx"]}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "raises": 5}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1, "unknown": 5}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "kwargs": ["dict", [1, 2]], "expect": 1}]}),
    ("function_tests", {"name": "not a name", "tests": [{"args": ["list"], "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"]}]}),
    ("function_tests", {"name": "f", "tests": [{"args": 3, "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["lisp"], "expect": 1}]}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "forbidden": "math"}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "seconds": 0}),
    ("function_tests", {"name": "f", "tests": [{"args": ["list"], "expect": 1}], "second": 5}),
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
    "programs": {"language": "python", "tests": [{"stdin": "1", "stdout": "one"}]},
    "properties": {
        "name": "f",
        "inputs": [{"kind": "list", "of": {"kind": "integer"}}],
        "seed": 1,
        "cases": 5,
        "properties": [{"relation": "sorted"}, {"relation": "permutation"}],
    },
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
