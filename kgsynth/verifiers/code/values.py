"""Python values as typed JSON: exact there and back, and compared without building them.

The codec itself is in `runner.py`, because the same text runs inside the box; the forms are listed there.
"""

from __future__ import annotations

import math
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.verifiers.code import runner

TOLERANCE = 1e-9  # relative, for floats


def encode(value: Any) -> Any:
    """The JSON form of a value built of None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset,
    dict, Fraction and Decimal; a value of a subclass is taken for what it extends. Raises VerifierError for any other,
    and for one that is too deep or too large."""
    try:
        return runner.encode(value)
    except runner.NotEncodable as error:
        raise VerifierError(f"cannot encode this {type(value).__name__}: {error}; use plain Python values") from error


def decode(form: Any) -> Any:
    """The value of a form. Raises VerifierError when `encode` did not make it."""
    try:
        return runner.decode(form)
    except (ValueError, TypeError, LookupError, RecursionError, ArithmeticError) as error:
        raise VerifierError(f"not an encoded value: {repr(form)[:80]}: {error}") from error


def checked(label: str, form: Any) -> Any:
    """The value of a form that somebody wrote by hand. Raises VerifierError, saying how it is written, for another text."""
    try:
        value = decode(form)
    except VerifierError as error:
        raise VerifierError(f"{label}: {error}") from error
    if not same(written := encode(value), form):
        raise VerifierError(f"{label}: {form!r:.80} is not the form of a value; it would be {written!r:.80}")
    return value


def same(a: Any, b: Any, tolerance: float = TOLERANCE, *, loose: bool = False) -> bool:
    """Whether two forms mean the same value: equal types all the way down (True is not 1, 1 is not 1.0).

    Finite floats may differ by `tolerance`, relative to the larger; NaN equals NaN, 0.0 is not -0.0. The order of a
    dict's keys and of a set does not count; dict keys and the items of sets are compared exactly. `loose` is for
    languages with fewer types: 1 is 1.0, and a list is a tuple. Total: any JSON may come in, nested as deep as the
    codec goes.
    """
    if loose:
        a, b = _loosened(a, b), _loosened(b, a)
    if type(a) is not type(b):
        return False
    if not isinstance(a, list):
        return a == b
    if not a or not b or a[0] != b[0]:
        return a == b
    match a[0]:
        case "float" | "complex":
            return len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a[1:], b[1:], strict=True))
        case "list" | "tuple":
            pairs = zip(a[1:], b[1:], strict=False)
            return len(a) == len(b) and all(same(x, y, tolerance, loose=loose) for x, y in pairs)
        case "dict":
            return _same_items(a[1:], b[1:], tolerance, loose)
        case "set" | "frozenset":
            return _keys(a[1:]) == _keys(b[1:])
    return a == b


def _loosened(form: Any, other: Any) -> Any:
    """An int as a float when it is compared with one, a tuple as a list; anything else as it is."""
    if type(form) is int and isinstance(other, list) and other[:1] == ["float"]:
        return ["float", repr(float(form)) if abs(form) < 2**53 else str(form)]
    return ["list", *form[1:]] if isinstance(form, list) and form[:1] == ["tuple"] else form


def _close(a: Any, b: Any, tolerance: float) -> bool:
    """Two floats as repr texts."""
    try:
        x, y = float(a), float(b)
    except (ValueError, TypeError):
        return False
    if not (x and y and math.isfinite(x) and math.isfinite(y)):
        return repr(x) == repr(y)
    return abs(x - y) <= tolerance * max(abs(x), abs(y))


def _same_items(a: list[Any], b: list[Any], tolerance: float, loose: bool) -> bool:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in (*a, *b)):
        return False
    left, right = ({runner.to_json(key): value for key, value in pairs} for pairs in (a, b))
    keys = left.keys() == right.keys()
    return keys and all(same(value, right[key], tolerance, loose=loose) for key, value in left.items())


def _keys(items: list[Any]) -> list[str]:
    return sorted(map(runner.to_json, items))
