"""`json_schema`: a JSON document that fits a schema and has the expected values in the stated places."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import starmap
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register, strict_json
from kgsynth.verifiers.answer import extract
from kgsynth.verifiers.matching import all_met
from kgsynth.verifiers.params import is_number, only_known, real

MAX_SCHEMA = 20_000  # characters
NOT_RUN = {"pattern", "patternProperties", "$ref", "$dynamicRef", "$recursiveRef"}  # their cost has no bound
NAMES = {"properties", "$defs", "definitions", "dependentSchemas"}  # their keys are the author's, not the schema's
DATA = {"const", "enum", "default", "examples", "required"}


@register("json_schema")
def json_schema(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"expected": {"/name": "Ada", "/born/year": 1815, "/tags": ["x", "y"]}, "schema": {...},
    "unordered": ["/tags"], "relative": 0}.

    `expected` maps JSON Pointers (RFC 6901; "" is the whole document) to values that must be equal: the order of keys
    and how a number is written (1, 1.0, 1e0) do not count; types, keys and the order of arrays do, unless their pointer
    is in `unordered`. `relative` is a tolerance for numbers. What `expected` leaves open is up to the schema (draft
    2020-12), which must then be closed: {"additionalProperties": false}. The answer is strict JSON: no comment, no
    repeated key, no NaN. Raises VerifierError for other params, for a schema alone, and for keywords whose cost has no
    bound (patterns and references).
    """
    expected, schema, unordered, relative = _checked(params)
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    try:
        document = strict_json.loads(given)
    except ValueError as error:
        return Verdict(score=0.0, reason="not JSON", evidence={"error": str(error)[:200]})
    if not _fits(document, schema):
        return Verdict(score=0.0, reason="not in the schema")
    places = Places(unordered=unordered, relative=relative)
    right = all(places.same(strict_json.at(document, pointer), value, pointer) for pointer, value in expected.items())
    return Verdict(score=float(right), reason="right" if right else "wrong")


@dataclass(frozen=True, kw_only=True)
class Places:
    """How values are compared: arrays at these pointers in any order, numbers within a tolerance."""

    unordered: frozenset[str] = frozenset()
    relative: Fraction = Fraction(0)

    def same(self, given: Any, wanted: Any, pointer: str = "") -> bool:
        """Equal JSON values of equal types (an integer is a number; true is not 1)."""
        if is_number(wanted):
            return is_number(given) and self._near(Fraction(given), Fraction(wanted))
        if type(given) is not type(wanted):
            return False
        match wanted:
            case str():
                return unicodedata.normalize("NFC", given) == unicodedata.normalize("NFC", wanted)
            case dict():
                pairs = ((given[key], wanted[key], f"{pointer}/{_escaped(key)}") for key in wanted if key in given)
                return given.keys() == wanted.keys() and all(starmap(self.same, pairs))
            case list():
                return len(given) == len(wanted) and self._same_items(given, wanted, pointer)
        return given == wanted

    def _near(self, given: Fraction, wanted: Fraction) -> bool:
        return abs(given - wanted) <= self.relative * abs(wanted)

    def _same_items(self, given: list[Any], wanted: list[Any], pointer: str) -> bool:
        if pointer in self.unordered:
            return all_met(len(wanted), lambda i, j: self.same(given[j], wanted[i], f"{pointer}/{i}"))
        return all(self.same(a, b, f"{pointer}/{i}") for i, (a, b) in enumerate(zip(given, wanted, strict=True)))


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _fits(document: Any, schema: Mapping[str, Any]) -> bool:
    try:
        return _validator()(schema).is_valid(document)
    except (ArithmeticError, RecursionError, ValueError, TypeError):  # such as a number of 4,000 digits by multipleOf
        return False


@lru_cache(maxsize=1)
def _validator() -> Any:
    """Draft 2020-12, its `uniqueItems` in linear time. Raises VerifierError when jsonschema is missing."""
    try:
        from jsonschema import Draft202012Validator, ValidationError
        from jsonschema.validators import extend
    except ImportError as error:
        raise VerifierError("json_schema needs jsonschema: pip install 'kgsynth[verify]'") from error

    def unique(validator: Any, wanted: bool, items: Any, schema: Any) -> Iterator[ValidationError]:
        if wanted and isinstance(items, list) and len(set(map(_canonical, items))) < len(items):
            yield ValidationError("an item is repeated")

    return extend(Draft202012Validator, {"uniqueItems": unique})


def _canonical(value: Any) -> str:
    """A text that equal values share; 1 and 1.0 are equal."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return list(map(_plain, value))
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


Checked = tuple[Mapping[str, Any], Mapping[str, Any], frozenset[str], Fraction]


def _checked(params: Mapping[str, Any]) -> Checked:
    only_known("json_schema", params, ("expected", "schema", "unordered", "relative"))
    expected, schema = params.get("expected"), params.get("schema", {})
    unordered, relative = params.get("unordered", ()), real("json_schema", params, "relative", 0, 0, 0.5)
    if not isinstance(expected, Mapping) or not expected or not all(map(strict_json.is_pointer, expected)):
        raise VerifierError("json_schema: 'expected' must map JSON Pointers ('' or '/name') to the values wanted there")
    if expected.get("", True) in ({}, [], "", None):
        raise VerifierError("json_schema: an empty document is nothing to ask for")
    if not isinstance(unordered, (list, tuple)) or not all(map(strict_json.is_pointer, unordered)):
        raise VerifierError(f"json_schema: 'unordered' must be a list of JSON Pointers, not {unordered!r}")
    _check_schema(schema, expected)
    return expected, schema, frozenset(unordered), Fraction(repr(relative))


def _check_schema(schema: Any, expected: Mapping[str, Any]) -> None:
    validator = _validator()
    from jsonschema.exceptions import SchemaError

    try:
        if not isinstance(schema, Mapping) or len(json.dumps(schema, allow_nan=False)) > MAX_SCHEMA:
            raise VerifierError(f"json_schema: 'schema' must be an object of at most {MAX_SCHEMA} characters")
        if refused := next((word for word in _keywords(schema) if word in NOT_RUN), ""):
            raise VerifierError(f"json_schema: {refused!r} has no bound in time; inline it, or use enum and const")
        validator.check_schema(schema)
        strict_json.loads(json.dumps(dict(expected), allow_nan=False))
    except (SchemaError, ValueError, TypeError, RecursionError) as error:
        raise VerifierError(f"json_schema: unusable 'schema' or 'expected': {str(error)[:200]}") from error
    closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
    if "" not in expected and not closed:
        raise VerifierError("json_schema: close the 'schema' with \"additionalProperties\": false, or expect all of it")
    if "" in expected and not _fits(expected[""], schema):
        raise VerifierError("json_schema: the expected document does not fit the 'schema'")


def _keywords(schema: Any) -> Iterator[str]:
    """Every keyword of a schema, not the names of its properties nor the data in it."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            yield key
            if key not in DATA:
                yield from _keywords(list(value.values()) if key in NAMES and isinstance(value, Mapping) else value)
    elif isinstance(schema, (list, tuple)):
        for one in schema:
            yield from _keywords(one)
