"""JSON (RFC 8259) from strangers, without what parsers read in different ways, and JSON Pointers into it (RFC 6901)."""

from __future__ import annotations

import json
import math
import re
from typing import Any

MAX_DEPTH = 100
MISSING = object()


def loads(text: str) -> Any:
    """The document. Raises ValueError also for a repeated key, NaN, an infinity, and nesting deeper than MAX_DEPTH."""
    try:
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if _depth(document) > MAX_DEPTH:
        raise ValueError("nested too deep")
    return document


def is_pointer(text: Any) -> bool:
    """ "" is the whole document, "/a/0" the first item of its member a."""
    return isinstance(text, str) and (not text or text.startswith("/"))


def at(document: Any, pointer: str) -> Any:
    """The value at a JSON Pointer, MISSING when there is none."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key, MISSING)
        elif isinstance(document, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", key) and int(key) < len(document):
            document = document[int(key)]
        else:
            return MISSING
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key is repeated")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    if math.isfinite(value := float(digits)):
        return value
    raise ValueError("a number is too large")


def _depth(document: Any) -> int:
    """Of the deepest array or object; level by level, so that no depth is too deep for it."""
    depth, level = 0, [document]
    while level := [value for value in level if isinstance(value, (list, dict))]:
        depth, level = depth + 1, [item for value in level for item in _items(value)]
    return depth


def _items(value: list[Any] | dict[str, Any]) -> Any:
    return value.values() if isinstance(value, dict) else value
