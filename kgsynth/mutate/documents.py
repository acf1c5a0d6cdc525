"""`json_schema`: the same document serialised otherwise; one value, type, key or place off where something is expected."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from kgsynth.mutate import Mutator, Named, in_turn, inside, register
from kgsynth.task import Task
from kgsynth.verifiers import strict_json


def _document(task: Task) -> Any:
    return strict_json.loads(inside(task.reference))


def right_document(task: Task, rng: random.Random) -> Iterator[Named]:
    document, unordered = _document(task), task.verifier.params.get("unordered", ())
    made = {
        "indented": json.dumps(document, indent=2, ensure_ascii=False),
        "compact": json.dumps(document, separators=(",", ":"), ensure_ascii=False),
        "escaped": json.dumps(document, ensure_ascii=True),
        "keys in another order": json.dumps(_turned(document), ensure_ascii=False),
        "tabs": json.dumps(document, indent="\t", ensure_ascii=False),
    }
    for pointer in unordered:
        again = copy.deepcopy(document)
        if isinstance(found := strict_json.at(again, pointer), list):
            rng.shuffle(found)
            made[f"another order in {pointer or 'the array'}"] = json.dumps(again, ensure_ascii=False)
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return list(map(_turned, value)) if isinstance(value, list) else value


def wrong_document(task: Task, rng: random.Random) -> Iterator[Named]:
    params, groups = task.verifier.params, dict[str, list[str]]()
    for pointer, wanted in params["expected"].items():
        for how, other in near(wanted, pointer, set(params.get("unordered", ()))):
            if json.dumps(other, sort_keys=True) == json.dumps(wanted, sort_keys=True):
                continue
            groups.setdefault(how, []).append(json.dumps(_put(_document(task), pointer, other), ensure_ascii=False))
    yield from in_turn(groups, rng)


def near(value: Any, pointer: str, unordered: set[str], depth: int = 3) -> Iterator[tuple[str, Any]]:
    """(what is wrong, a value that is not it), the inner ones after the outer ones."""
    match value:
        case bool():
            yield from (("the opposite", not value), ("another type", int(value)), ("as text", str(value).lower()))
        case None:
            yield from (("another nothing", False), ("another nothing", ""), ("another nothing", 0))
        case int() | float():
            step = 2 * abs(value) + 1
            yield from (
                ("more", value + step),
                ("less", value - step),
                ("as text", str(value)),
                ("in an array", [value]),
            )
        case str():
            yield from (
                ("cut short", value[:-1]),
                ("one too many", value + "s"),
                ("another text", value[::-1] + "x"),
                ("in an array", [value]),
            )
            yield "nothing there", None
        case list():
            yield from _near_array(value, pointer, unordered, depth)
        case dict():
            yield from (("a key missing", {k: v for k, v in value.items() if k != key}) for key in value)
            yield from (
                ("a key misspelt", {(f"{k}_" if k == key else k): v for k, v in value.items()})
                for key in list(value)[:2]
            )
            yield "a key too many", {**value, "note": "none"}
            for key, inner in value.items() if depth else ():
                deeper = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
                yield from ((how, {**value, key: other}) for how, other in near(inner, deeper, unordered, depth - 1))


def _near_array(value: list[Any], pointer: str, unordered: set[str], depth: int) -> Iterator[tuple[str, Any]]:
    yield from (("an item missing", [*value[:i], *value[i + 1 :]]) for i in dict.fromkeys((0, len(value) - 1)) if value)
    yield "an item too many", [*value, value[-1] if value else 0]
    if pointer not in unordered and value[::-1] != value:
        yield "another order", value[::-1]
    for i, inner in enumerate(value[:3]) if depth and pointer not in unordered else ():
        yield from (
            (how, [*value[:i], other, *value[i + 1 :]])
            for how, other in near(inner, f"{pointer}/{i}", unordered, depth - 1)
        )


def _put(document: Any, pointer: str, value: Any) -> Any:
    """The document with another value at a pointer."""
    if not pointer:
        return value
    parent, _, last = pointer.rpartition("/")
    holder, key = strict_json.at(document, parent), last.replace("~1", "/").replace("~0", "~")
    if isinstance(holder, list):
        holder[int(key)] = value
    else:
        holder[key] = value
    return document


register(Mutator(verifier="json_schema", right=right_document, wrong=wrong_document))
