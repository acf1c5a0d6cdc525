"""`literal`: what a snippet prints. The same value in other notation; and values or types that are nearly it."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from typing import Any

from kgsynth.mutate import Mutator, Named, in_turn, register
from kgsynth.task import Task
from kgsynth.verifiers.code.source import parse

NONE = object()


def read(text: str) -> Any:
    """The value of a Python literal, NONE for any other text."""
    try:
        return ast.literal_eval(parse(text.strip(), "eval"))
    except (ValueError, TypeError, MemoryError, RecursionError):
        return NONE


def same(a: Any, b: Any) -> bool:
    """Equal in value and in all types within."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and same(v, b[k]) for k, v in a.items()) and same(set(a), set(b))
    if isinstance(a, (set, frozenset)):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return repr(a) == repr(b)


def right_literal(task: Task, rng: random.Random) -> Iterator[Named]:
    text = str(task.verifier.params["value"]).strip()
    value = read(text)
    made = {"white space around": f" \n{text}\n "}
    if "\n" not in text and "`" not in text:
        made["code marks"] = f"`{text}`"
    if value is not NONE:
        made |= _rewritten(value)
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)) if made[how] != text)


def _rewritten(value: Any) -> dict[str, str]:
    spaced = repr(value)
    made = {"other quotes": _requoted(value)}
    if not _has_text(value):
        made |= {"no spaces": spaced.replace(" ", ""), "more spaces": spaced.replace(",", " ,").replace("(", "( ")}
        made["on several lines"] = spaced.replace(", ", ",\n ") if spaced[:1] in "[{(" else spaced
    if isinstance(value, dict) and len(value) > 1:
        made["keys in another order"] = repr(dict(reversed(value.items())))
    if isinstance(value, (set, frozenset)) and len(value) > 1:
        made["members in another order"] = (
            "{" + ", ".join(sorted(map(repr, value), reverse=True)) + "}" if isinstance(value, set) else spaced
        )
    if isinstance(value, list) and value:
        made["a comma at the end"] = repr(value)[:-1] + ",]"
    return {how: text for how, text in made.items() if (again := read(text)) is not NONE and same(again, value)}


def _has_text(value: Any) -> bool:
    return bool(re.search("['\"]", repr(value)))


def _requoted(value: Any) -> str:
    """The same with double quotes, where no text within has quotes or escapes of its own."""
    text = repr(value)
    return text if '"' in text or "\\" in text else text.replace("'", '"')


def wrong_literal(task: Task, rng: random.Random) -> Iterator[Named]:
    text = str(task.verifier.params["value"]).strip()
    value = read(text)
    groups: dict[str, list[str]] = {}
    for how, made in (*_values(value), *_texts(text)):
        groups.setdefault(how, []).append(made)
    for how, made in in_turn(groups, rng):
        again = read(made)
        if (
            made.strip()
            and made.strip() != text
            and not (value is not NONE and again is not NONE and same(again, value))
        ):
            yield how, made.strip()


def _values(value: Any) -> Iterator[Named]:
    if value is not NONE:
        yield from ((how, repr(other)) for how, other in near(value))


def near(value: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """(what is wrong, a value like it)"""
    match value:
        case bool():
            yield from (("the opposite", not value), ("another type", int(value)), ("as text", str(value)))
        case None:
            yield from (("another nothing", False), ("another nothing", 0), ("another nothing", ""))
        case int():
            yield from (
                ("off by one", value + 1),
                ("off by one", value - 1),
                ("another type", float(value)),
                ("as text", str(value)),
            )
            yield from (
                ("another sign", -value),
                ("ten times", value * 10),
                ("off by two", value + 2),
                ("off by two", value - 2),
            )
            yield from (("another nothing", None), ("in a list", [value]))
        case float() | complex():
            yield from (("off a little", value * 1.01 + 0.01), ("another sign", -value), ("as text", str(value)))
            if isinstance(value, float) and value == value and abs(value) < 1e15:
                yield from (("another type", int(value)), ("rounded", round(value, 1)))
        case str() | bytes():
            longer: Any = [value, value[-1:]]
            yield from (
                ("reversed", value[::-1]),
                ("cut short", value[:-1]),
                ("other case", value.swapcase()),
                ("one too many", type(value)().join(longer)),
            )
            yield "another type", value.encode() if isinstance(value, str) else value.decode("latin-1")
        case list() | tuple():
            yield from _near_sequence(value, depth)
        case dict():
            yield from (("another type", list(value)), ("another type", list(value.items())))
            yield from (("one missing", {k: v for k, v in value.items() if k != key}) for key in list(value)[:3])
            if depth:
                yield from (
                    (f"inside: {how}", {**value, k: other})
                    for k, v in list(value.items())[:3]
                    for how, other in near(v, depth - 1)
                )
        case set() | frozenset():
            yield "another type", sorted(value, key=repr)
            yield from (("one missing", value - {item}) for item in sorted(value, key=repr)[:2])


def _near_sequence(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    yield "another type", tuple(value) if kind is list else list(value)
    yield from (("reversed", value[::-1]), ("nested", kind([value])))
    yield from (
        ("one missing", kind([*value[:i], *value[i + 1 :]]))
        for i in dict.fromkeys((0, len(value) // 2, len(value) - 1))
        if value
    )
    yield from (("one too many", kind([*value, item])) for item in value[-1:])
    yield from (
        ("two swapped", kind([*value[:i], value[i + 1], value[i], *value[i + 2 :]]))
        for i in range(min(2, len(value) - 1))
    )
    if depth:
        changed = ((i, how, other) for i, item in enumerate(value[:3]) for how, other in near(item, depth - 1))
        yield from ((f"inside: {how}", kind([*value[:i], other, *value[i + 1 :]])) for i, how, other in changed)


def _texts(text: str) -> Iterator[Named]:
    yield from (
        ("cut short", text[:-1]),
        ("cut short", text[1:]),
        ("one too many", text + text[-1]),
        ("quoted", repr(text)),
    )
    yield "other case", text.swapcase()
    for digits in list(re.finditer(r"\d+", text))[:3]:
        yield "another number", text[: digits.start()] + str(int(digits[0]) + 1) + text[digits.end() :]
    if "\n" in text:
        yield "a line missing", text.rpartition("\n")[0]
        yield "on one line", text.replace("\n", " ")
    if len(words := text.split()) > 1:
        yield "a word missing", text.replace(words[-1], "", 1)


register(Mutator(verifier="literal", right=right_literal, wrong=wrong_literal))
