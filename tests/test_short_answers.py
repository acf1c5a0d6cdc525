"""Verifiers of short answers: parameters they refuse, properties, and answers made to break or to hang them.

What is right and wrong, case by case, is in `tests/fair/`.
"""

from __future__ import annotations

import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import VerifierError
from kgsynth.verifiers import REGISTRY, Verdict, units
from kgsynth.verifiers.json_schema import _validator
from kgsynth.verifiers.number import read
from kgsynth.verifiers.text import fold, normalise
from kgsynth.verifiers.units import UnitError
from tests.fair import Case, load, reply

NAMES = ("text", "choice", "number", "span", "listed", "json_schema", "literal")


def judged(name: str, params: dict[str, Any], answer: str) -> Verdict:
    return REGISTRY[name](f"<answer>{answer}</answer>", params, None)


def is_right(name: str, params: dict[str, Any], answer: str) -> bool:
    return judged(name, params, answer).score == 1


# --------------------------------------------------------------------------------------------------------- parameters

SPANS = {"source": "abc def", "spans": [[0, 3]]}
CLOSED = {"type": "object", "additionalProperties": False}
BAD_PARAMS: list[tuple[str, dict[str, Any], str]] = [
    ("text", {"answers": ["x"], "mode": "fuzzy"}, "mode"),
    ("text", {"answers": ["x"], "articles": "no"}, "articles"),
    ("text", {"answers": ["x"], "aliases": ["y"]}, "unknown parameter 'aliases'"),
    ("choice", {"correct": [], "options": ["A", "B"]}, "correct"),
    ("choice", {"correct": ["A", "Z"], "options": ["A", "B"]}, "correct"),
    ("choice", {"correct": "A", "options": ["A", "a"]}, "the same"),
    ("choice", {"correct": "A", "options": ["A", "(B)"]}, "letters"),
    ("choice", {"correct": "A", "options": ["A", "B"], "texts": {"A": "x"}}, "texts"),
    ("choice", {"correct": "A", "options": ["A", "B"], "texts": {"A": "x", "B": "x"}}, "different"),
    ("choice", {"correct": "A", "options": ["A", "B"], "texts": {"A": "x", "B": " "}}, "different"),
    ("choice", {"correct": "A", "options": ["A", "B"], "texts": ["x", "y"]}, "texts"),
    ("number", {}, "value"),
    ("number", {"value": "about 5"}, "value"),
    ("number", {"value": True}, "value"),
    ("number", {"value": float("nan")}, "value"),
    ("number", {"value": float("inf")}, "value"),
    ("number", {"value": "5 m"}, "belongs into 'unit'"),
    ("number", {"value": 5, "unit": "bananas"}, "unit"),
    ("number", {"value": 5, "unit": 3}, "unit"),
    ("number", {"value": 5, "unit_use": "maybe"}, "unit_use"),
    ("number", {"value": 5, "absolute": -1}, "absolute"),
    ("number", {"value": 5, "relative": float("nan")}, "relative"),
    ("number", {"value": 5, "relative": 1}, "0 is within"),
    ("number", {"value": 5, "absolute": 5}, "0 is within"),
    ("number", {"value": 5, "figures": 0}, "figures"),
    ("number", {"value": 0, "figures": 2}, "figures"),
    ("number", {"value": 5, "decimal": ";"}, "decimal"),
    ("number", {"value": 5, "nouns": "edges"}, "nouns"),
    ("number", {"value": 5, "tolerance": 0.1}, "unknown parameter 'tolerance'"),
    ("span", {"source": "abc", "spans": []}, "spans"),
    ("span", {"source": "abc", "spans": [[0, 4]]}, "within"),
    ("span", {"source": "abc", "spans": [[2, 2]]}, "within"),
    ("span", {"source": "abc", "spans": [[0, 3]]}, "all of"),
    ("span", {"source": "a  c", "spans": [[1, 3]]}, "blank"),
    ("span", {**SPANS, "by": "bytes"}, "by"),
    ("span", {**SPANS, "partial": "f2"}, "partial"),
    ("span", {**SPANS, "partial": "f1", "least": 0}, "least"),
    ("span", {**SPANS, "partial": "f1", "least": 0.5}, "whole source"),
    ("listed", {"items": []}, "items"),
    ("listed", {"items": "a, b"}, "items"),
    ("listed", {"items": ["a", []]}, "items"),
    ("listed", {"items": ["a", " "]}, "items"),
    ("listed", {"items": ["a"] * 201}, "items"),
    ("listed", {"items": ["a"], "kind": "regex"}, "kind"),
    ("listed", {"items": ["a"], "kind": "number"}, "value"),
    ("listed", {"items": ["a"], "relative": 0.1}, "unknown parameter 'relative'"),
    ("listed", {"items": ["a"], "ordered": "yes"}, "ordered"),
    ("json_schema", {"schema": {"type": "object"}}, "expected"),
    ("json_schema", {"expected": {}, "schema": CLOSED}, "expected"),
    ("json_schema", {"expected": {"": {}}}, "empty document"),
    ("json_schema", {"expected": {"": []}}, "empty document"),
    ("json_schema", {"expected": {"a": 1}, "schema": CLOSED}, "Pointers"),
    ("json_schema", {"expected": {"/a": 1}, "schema": {}}, "close the 'schema'"),
    ("json_schema", {"expected": {"/a": float("nan")}, "schema": CLOSED}, "unusable"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": {"type": "strange"}}, "unusable"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": {"type": "array"}}, "does not fit"),
    ("json_schema", {"expected": {"": {"a": "x"}}, "schema": {"properties": {"a": {"pattern": "(a+)+$"}}}}, "pattern"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": {"patternProperties": {"(a|a)*": {}}}}, "patternProp"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": {"$ref": "https://example.org/schema"}}, "ref"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": {"allOf": [{"not": {"$ref": "#"}}]}}, "ref"),
    ("json_schema", {"expected": {"": {"a": 1}}, "schema": True}, "object"),
    ("json_schema", {"expected": {"": {"a": 1}}, "unordered": "/a"}, "unordered"),
    ("json_schema", {"expected": {"": {"a": 1}}, "relative": 1}, "relative"),
]


@pytest.mark.parametrize(("name", "params", "says"), BAD_PARAMS)
def test_unusable_parameters_are_an_error(name: str, params: dict[str, Any], says: str) -> None:
    with pytest.raises(VerifierError, match=says) as caught:
        judged(name, params, "x")
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "library", "loaded", "params"),
    [
        ("number", "pint", units.registry, {"value": 1, "unit": "m"}),
        ("json_schema", "jsonschema", _validator, {"expected": {"": 1}}),
    ],
)
def test_a_missing_library_is_an_error_with_the_command(
    name: str, library: str, loaded: Any, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, library, None)
        with pytest.raises(VerifierError, match=r"pip install 'kgsynth\[verify\]'"):
            judged(name, params, "1 m")
        assert judged("number", {"value": 1}, "1 m").reason == "unit not asked for"
    assert judged(name, params, "1 m").reason in ("right", "not JSON")


def test_names_of_properties_are_not_keywords() -> None:
    schema = {"properties": {"pattern": {"const": {"$ref": 1}}, "$ref": {"type": "integer"}}}
    assert is_right("json_schema", {"expected": {"": {"$ref": 1}}, "schema": schema}, '{"$ref": 1}')


# --------------------------------------------------------------------------------------------------------- properties


@settings(deadline=None)
@given(st.integers(-(10**15), 10**15), st.integers(0, 6))
def test_a_number_is_read_the_same_in_every_form(digits: int, places: int) -> None:
    value = Decimal(digits).scaleb(-places)
    plain = f"{value:f}"
    whole, _, fraction = plain.partition(".")
    grouped = [f"{int(whole or 0):,}".replace(",", mark) for mark in ", _'"]
    grouped = [("-" if whole.startswith("-") and not form.startswith("-") else "") + form for form in grouped]
    forms = [plain, f"{value:e}", *(f"{form}.{fraction}" if fraction else form for form in grouped)]
    forms += [plain.replace("-", "−"), f"**{plain}**", f"${plain}$", f"{value * 100:f}%", f"{plain} × 10^0"]
    assert [read(form)[0] for form in forms if "%" not in form] == [Fraction(value)] * (len(forms) - 1)
    assert all(is_right("number", {"value": plain}, form) for form in forms)
    assert not is_right("number", {"value": plain}, f"{value + 1:f}")


@settings(deadline=None)
@given(st.fractions(max_denominator=999).filter(lambda f: abs(f) < 10**6))
def test_fractions(value: Fraction) -> None:
    assert read(str(value)) == (value, "")
    assert is_right("number", {"value": str(value)}, f"$\\frac{{{value.numerator}}}{{{value.denominator}}}$")


@settings(deadline=None, max_examples=50)
@given(
    st.decimals(-(10**6), 10**6, places=3).filter(bool),
    st.sampled_from(["m", "kg", "s", "J", "°C", "m/s", "mol/L", "USD", "kWh"]),
)
def test_units_with_prefixes_are_exact(value: Decimal, unit: str) -> None:
    params = {"value": str(value), "unit": unit}
    assert is_right("number", params, f"{value} {unit}")
    assert not is_right("number", params, f"{value} cd")
    assert not is_right("number", params, str(value))
    if unit in ("m", "s", "J"):
        assert is_right("number", params, f"{value * 1000:f} m{unit}")
        assert not is_right("number", params, f"{value} m{unit}")


@settings(deadline=None)
@given(st.integers(1, 10**9), st.integers(1, 9))
def test_significant_figures(value: int, figures: int) -> None:
    rounded = f"{value:.{figures - 1}e}"
    assert is_right("number", {"value": value, "figures": figures}, rounded)
    off = Fraction(Decimal(rounded)) + 2 * Fraction(10) ** (len(str(value)) - figures)
    assert not is_right("number", {"value": value, "figures": figures}, str(off))


@settings(deadline=None)
@given(st.text())
def test_nothing_but_a_number_is_a_number(text: str) -> None:
    try:
        value, _ = read(text)
    except UnitError:
        return
    assert any(char.isnumeric() for char in text)
    assert isinstance(value, Fraction)


words = st.text("abcdefg", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(words, min_size=2, max_size=6, unique=True), st.randoms(use_true_random=False), st.data())
def test_lists_in_any_form_and_order(items: list[str], rng: random.Random, data: st.DataObject) -> None:
    shuffled = rng.sample(items, len(items))
    numbered = "\n".join(f"{i}. {item}" for i, item in enumerate(shuffled, 1))
    forms = [", ".join(shuffled), "; ".join(shuffled), "\n- ".join(["", *shuffled]), numbered, json.dumps(shuffled)]
    for form in forms:
        assert is_right("listed", {"items": items}, form)
        assert is_right("listed", {"items": items, "ordered": True}, form) is (shuffled == items)
    dropped = data.draw(st.sampled_from(items))
    fewer = [item for item in shuffled if item != dropped]
    for wrong in (fewer, [*fewer, fewer[0]], [*shuffled, "h"], [*shuffled, shuffled[0]], [*fewer, "h"]):
        assert not is_right("listed", {"items": items}, ", ".join(wrong))


def test_each_item_is_met_by_an_answer_of_its_own() -> None:
    """1.0 is within the tolerance of both, 1.4 of the second only: taking 1.0 for the first found would fail."""
    params = {"items": [1.2, 0.8], "kind": "number", "absolute": 0.25}
    assert is_right("listed", params, "1.0, 1.4")
    assert not is_right("listed", params, "1.4, 1.3")


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("aé", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: value not in ({}, [], "", None))  # fmt: skip


@settings(deadline=None)
@given(documents, documents)
def test_json_values_are_equal_only_to_themselves(a: Any, b: Any) -> None:
    params = {"expected": {"": a}}
    assert is_right("json_schema", params, json.dumps(a, indent=2))
    assert is_right("json_schema", params, json.dumps(a, ensure_ascii=False, separators=(",", ":")))
    assert is_right("json_schema", params, json.dumps(b)) is (_typed(a) == _typed(b))


def _typed(value: Any) -> Any:
    """Python's equality takes True for 1 and 1.0 for 1; JSON's only the latter."""
    if isinstance(value, dict):
        return "object", {key: _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return "array", [_typed(item) for item in value]
    return isinstance(value, bool), isinstance(value, str), value


@settings(deadline=None)
@given(st.lists(documents, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_unordered_places(items: list[Any], rng: random.Random) -> None:
    shuffled = rng.sample(items, len(items))
    params = {"expected": {"": {"a/b": items, "c": items}}, "unordered": ["/a~1b"]}
    assert is_right("json_schema", params, json.dumps({"c": items, "a/b": shuffled}))
    same = list(map(_typed, shuffled)) == list(map(_typed, items))
    assert is_right("json_schema", params, json.dumps({"c": shuffled, "a/b": items})) is same


@settings(deadline=None)
@given(st.text("ab c.", min_size=2, max_size=30), st.data())
def test_spans_by_offsets(source: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(source) - 1))
    end = data.draw(st.integers(start + 1, len(source)))
    if not source[start:end].strip() or end - start == len(source):
        return
    params = {"source": source, "spans": [[start, end]]}
    assert is_right("span", {**params, "by": "offsets"}, f"[{start}, {end}]")
    assert not is_right("span", {**params, "by": "offsets"}, f"[{start}, {end + 1}]")
    assert is_right("span", params, source[start:end]) or normalise(source[start:end]) in ("", ".")


def test_partial_spans_are_paid_by_what_they_share() -> None:
    source = "The quick brown fox jumps over the lazy dog"
    params = {"source": source, "spans": [[4, 19]], "partial": "f1", "least": 0.52}
    assert judged("span", params, "the quick brown fox").score == pytest.approx(6 / 7)
    assert judged("span", params, "quick brown").score == pytest.approx(4 / 5)
    assert [judged("span", params, text).score for text in ("brown", source)] == [0, 0]
    assert judged("span", params, "fox brown quick").reason == "not in the source"
    assert judged("span", {**params, "by": "offsets"}, "[4, 15]").score == pytest.approx(22 / 26)
    assert judged("span", {**params, "by": "offsets"}, "[4, 43]").score == pytest.approx(30 / 54)
    assert judged("span", {**params, "by": "offsets"}, "[16, 43]").score == 0


def test_folding_keeps_what_changes_the_reading() -> None:
    assert fold("x² H₂O ½ 1½ ﬁ Ａ 𝑥 – ’ ” …") == "x^2 H2O 1/2 1 1/2 fi A x - ' \" ..."
    assert fold("ℝ ™ ① а ß") == "ℝ ™ ① а ß"


# ------------------------------------------------------------------------------------------- answers made to break it

BOMBS = [
    "", " ", "\x00", "\ud800", "\udfff" * 100, "\u202e" * 100, "\u0301" * 9_999, "a" + "\u0323\u0301" * 4_999,
    *(mark * 9_999 for mark in "([{\"'`*$\\.,;-_0123^/%\u200b½²"),
    "\\text{" * 1_600 + "x" + "}" * 1_600, "\\frac{" * 1_600, "\\frac{1}{" * 1_000, "Answer: " * 1_200, "option is " * 999,
    "1," * 4_999, "1, " * 3_333, "a and " * 1_600, "- a\n" * 2_400, "1. a\n" * 1_900, "\n" * 9_998 + "a", " " * 9_998 + "a",
    "9**9**9", "10^999", "1e999", "1e-999", "1e9999999999", "9" * 9_999, "0." + "0" * 9_000 + "1", "1/" + "9" * 9_000,
    "5 m^9^9^9", "5 " + "m·" * 4_000, "5 " + "k" * 70, "5 kg m s K A mol cd", "5 __import__('os').system('x')", "5 nan", "5 e",
    "nan", "NaN", "inf", "-inf", "∞", "None", "null", "true", '"x"', "[[[[1]]]]", "[" * 9_000, "[" * 4_000 + "]" * 4_000,
    '{"a":' * 1_600 + "1" + "}" * 1_600, "[" + "1," * 4_900 + "1]", "[" + "[]," * 3_000 + "[]]", "1" * 5_000 + ".5",
    '{"a": 1e400}', '{"a": ' + "9" * 5_000 + "}", '{"\\ud800": "\\udfff"}', '["\\u0000"]', '{"__proto__": {"a": 1}}',
    "0-9999999999999999", "[1, 99999999999999999999]", "4-4", '{"start": 1e3, "end": true}', "a" * 5_000 + "!" * 4_999,
]  # fmt: skip
PARAMS: list[tuple[str, dict[str, Any]]] = [
    ("text", {"answers": ["x y"]}),
    ("text", {"answers": ["the x"], "mode": "exact"}),
    ("choice", {"correct": "B", "options": ["A", "B"], "texts": {"A": "x", "B": "y"}}),
    ("choice", {"correct": ["A", "B"], "options": ["A", "B", "C"]}),
    ("number", {"value": "12.5"}),
    ("number", {"value": "12.5", "unit": "kg*m/s^2", "relative": 0.01}),
    ("span", {"source": "a b. " * 500 + "x y z", "spans": [[2500, 2505], [0, 700]], "partial": "f1"}),
    ("span", {"source": "some source", "spans": [[0, 4]], "by": "offsets"}),
    ("listed", {"items": ["xx", "yy"]}),
    ("listed", {"items": [10, 20, 30], "kind": "number", "unit": "m", "ordered": True}),
    ("json_schema", {"expected": {"/a": 2}, "schema": {**CLOSED, "properties": {"a": {"multipleOf": 0.5}}}}),
    ("json_schema", {"expected": {"": [5]}, "schema": {"uniqueItems": True, "items": {"multipleOf": 0.1}}}),
    ("literal", {"value": "[10, 20]"}),
]


@pytest.mark.parametrize(("name", "params"), PARAMS, ids=lambda value: value if isinstance(value, str) else "")
def test_bombs_are_wrong_and_nothing_else(name: str, params: dict[str, Any]) -> None:
    for bomb in BOMBS:
        verdict = judged(name, params, bomb)
        assert (verdict.score, verdict.reason) != (1, "right"), ascii(bomb[:50])
        assert 1 < len(verdict.reason) < 25


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([bomb[:20] for bomb in BOMBS]) | st.text(), max_size=6).map("".join))
def test_no_answer_makes_a_verifier_raise(answer: str) -> None:
    for name, params in PARAMS:
        assert 0 <= judged(name, params, answer).score < 1


def test_ten_megabytes_are_too_long() -> None:
    for name, params in PARAMS:
        assert judged(name, params, "x" * 10_000_000).reason == "too long"


# --------------------------------------------------------------------------------------------------------- the same


def test_the_same_answer_has_the_same_verdict_in_any_order_and_in_threads() -> None:
    modules = load()
    cases: list[Case] = [case for name in NAMES for case in modules[name]]
    answers = [(case, text) for case in cases for text in (case.reference, *case.right, *case.wrong)]
    asked = random.Random(5).sample(answers * 3, 3 * len(answers))

    def verdict(item: tuple[Case, str]) -> tuple[float, str]:
        found = REGISTRY[item[0].verifier](reply(item[1]), item[0].params, None)
        return found.score, found.reason

    alone = {(id(case), text): verdict((case, text)) for case, text in answers}
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(verdict, asked)) == [alone[id(case), text] for case, text in asked]


def test_evidence_never_shows_what_was_expected() -> None:
    modules = load()
    for case in (case for name in NAMES for case in modules[name]):
        for text in case.wrong:
            shown = json.dumps(dict(REGISTRY[case.verifier](reply(text), case.params, None).evidence))
            assert case.reference not in shown
