"""`listed`: several short answers, in order or not, each read as a text or as a number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract, unwrap
from kgsynth.verifiers.matching import all_met
from kgsynth.verifiers.number import judge, wanted
from kgsynth.verifiers.params import one_of, only_known, spellings
from kgsynth.verifiers.text import fold, normalise

MAX_ITEMS = 200
BULLET = re.compile(r"\s{0,20}[-*•–·‣◦+]\s+(?=\S)")
NUMBERED = re.compile(r"\s{0,20}\(?([0-9]{1,3})[.):]\s+(?=\S)")
BRACKETS = ("[]", "()", "{}", "⟨⟩", "<>")
AND = re.compile(r"\s(?:and|&)\s", re.IGNORECASE)
SEPARATORS = ("\n", ";", "->", ", ", ",")
Matches = Callable[[str], bool]


@register("listed")
def listed(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"items": ["red", ["gray", "grey"], ...], "ordered": False, "kind": "text"}; with "kind": "number" an item
    is a value and the other params are those of `number` ("unit", "relative", ...).

    As many as asked for, each matching another one; a subset, a surplus or a repeated item is wrong. Forms: a JSON
    array; one a line, with bullets or numbers 1, 2, ...; separated by ";", "->", ", " or ",", with "and" before the
    last, in brackets or not. The first separator of this order that is there counts, unless one of the `items` has
    it inside. Raises VerifierError for other params.
    """
    ordered, items = one_of("listed", params, "ordered", (False, True)), _items(params)
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    readings = _readings(given, _inside(params["items"]))
    if not any(len(reading) == len(items) for reading in readings):
        many = all(len(reading) > len(items) for reading in readings)
        return Verdict(score=0.0, reason="too many" if many else "too few")
    match = _same_order if ordered else _any_order
    right = any(match(reading, items) for reading in readings if len(reading) == len(items))
    return Verdict(score=float(right), reason="right" if right else "wrong")


def _items(params: Mapping[str, Any]) -> list[Matches]:
    kind, items = one_of("listed", params, "kind", ("text", "number")), params.get("items")
    if not isinstance(items, (list, tuple)) or not 1 <= len(items) <= MAX_ITEMS:
        raise VerifierError(f"listed: 'items' must be a list of 1 to {MAX_ITEMS} items, not {repr(items)[:200]}")
    if kind == "number":
        rest = {key: value for key, value in params.items() if key not in ("items", "ordered", "kind")}
        try:
            return [_is_number({**rest, "value": item}) for item in items]
        except VerifierError as error:
            raise VerifierError(f"listed: an item is unusable: {error}") from error
    only_known("listed", params, ("items", "ordered", "kind"))
    return [_is_text(spellings("listed", "items", [item] if isinstance(item, str) else item)) for item in items]


def _is_text(accepted: Sequence[str]) -> Matches:
    forms = set(map(normalise, accepted))
    return lambda given: normalise(given) in forms


def _is_number(params: Mapping[str, Any]) -> Matches:
    asked = wanted(params)
    return lambda given: judge(given, asked) == "right"


def _inside(items: Sequence[Any]) -> set[str]:
    """The separators that occur within an item, which therefore separate nothing."""
    texts = [text for item in items for text in (item if isinstance(item, (list, tuple)) else [item])]
    return {mark for mark in SEPARATORS if any(mark.strip(" ") in str(text).strip() for text in texts)}


def _readings(text: str, inside: set[str]) -> list[list[str]]:
    """The items that a text lists: one way to read it, or two where its last part has an "and" in it."""
    if (array := _json_array(text)) is not None:
        return [array]
    text = _bare(text)
    mark = next((mark for mark in SEPARATORS if mark in text and mark not in inside), "")
    parts = text.split(mark) if mark else [text]
    if mark == "\n":
        parts = _unmarked([part for part in parts if part.strip()])
    elif parts[-1].lstrip().lower().startswith("and "):
        parts[-1] = parts[-1].lstrip()[4:]
    if not all(part.strip() for part in parts):
        return [[]]
    last = AND.split(parts[-1], maxsplit=1 if mark else 0)
    return [parts, [*parts[:-1], *last]] if len(last) > 1 and mark != "\n" else [parts]


def _json_array(text: str) -> list[str] | None:
    """The items of a JSON array of strings and numbers, as they are written; None for anything else."""
    if not text.strip().startswith("["):
        return None
    try:
        array = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    return array if all(isinstance(item, str) for item in array) else None


def _bare(text: str) -> str:
    """Without what is around the list: emphasis, a label, one pair of brackets, a comma after the last."""
    text = unwrap(fold(text)).replace("\\{", "{").replace("\\}", "}").replace("→", "->")
    if text[:1] + text[-1:] in BRACKETS and not set(text[1:-1]) & set(text[0] + text[-1]):
        text = text[1:-1]
    return text.strip().removesuffix(",")


def _unmarked(lines: list[str]) -> list[str]:
    """Lines without their bullets, or without their numbers when these are 1, 2, ..., and without a comma at the end."""
    for form in (BULLET, NUMBERED):
        marks = [form.match(line) for line in lines]
        if all(marks) and (
            form is BULLET or [int(mark[1]) for mark in marks if mark] == list(range(1, len(lines) + 1))
        ):
            lines = [line[mark.end() :] for line, mark in zip(lines, marks, strict=True) if mark]
    return [line.strip().removesuffix(",").removesuffix(";") for line in lines]


def _same_order(given: Sequence[str], items: Sequence[Matches]) -> bool:
    return all(matches(text) for text, matches in zip(given, items, strict=True))


def _any_order(given: Sequence[str], items: Sequence[Matches]) -> bool:
    return all_met(len(items), lambda i, j: items[i](given[j]))
