"""`listed`: the same items in other notation and, where none is asked for, in another order; one item off."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kgsynth.mutate import Mutator, Named, in_turn, register
from kgsynth.mutate.numbers import off, plain
from kgsynth.mutate.texts import WORD, key
from kgsynth.task import Task
from kgsynth.verifiers.number import wanted

DECOYS = ("quokka", "marzipan", "zeppelin")
Join = Callable[[Sequence[str]], str]


def _items(params: Mapping[str, Any]) -> list[list[str]]:
    """The accepted spellings of each item."""
    if params.get("kind") == "number":
        unit = params.get("unit") if params.get("unit_use") != "forbidden" else ""
        return [[f"{plain(_asked(params, item).value)}{f' {unit}' if unit else ''}"] for item in params["items"]]
    return [[item] if isinstance(item, str) else list(item) for item in params["items"]]


def _asked(params: Mapping[str, Any], item: Any) -> Any:
    return wanted({**{k: v for k, v in params.items() if k not in ("items", "ordered", "kind")}, "value": item})


def _notations(items: Sequence[Sequence[str]]) -> dict[str, Join]:
    """Ways to write a list of these that cannot be read in another way."""
    every = "\n".join(text for item in items for text in item)
    lines: dict[str, Join] = {
        "one a line": "\n".join,
        "bullets": lambda texts: "\n".join(f"- {text}" for text in texts),
        "numbered": lambda texts: "\n".join(f"{i}. {text}" for i, text in enumerate(texts, 1)),
        "JSON": lambda texts: json.dumps(list(texts), ensure_ascii=False),
    }
    short: dict[str, Join] = {
        "semicolons": "; ".join,
        "commas": ", ".join,
        "brackets": lambda texts: f"[{', '.join(texts)}]",
    }
    return lines if any(mark in every for mark in ",;[]{}()>") or len(items) < 2 else {**lines, **short}


def right_listed(task: Task, rng: random.Random) -> Iterator[Named]:
    params = task.verifier.params
    items, ordered = _items(params), bool(params.get("ordered"))
    notations = _notations(items)
    for how in rng.sample(list(notations), len(notations)):
        chosen = [rng.choice(spellings) for spellings in items]
        if not ordered:
            rng.shuffle(chosen)
        yield f"{how}{'' if ordered else ', in another order'}", notations[how](chosen)


def wrong_listed(task: Task, rng: random.Random) -> Iterator[Named]:
    params = task.verifier.params
    items, ordered = _items(params), bool(params.get("ordered"))
    join = next(iter(_notations(items).values())) if len(items) > 1 else "\n".join
    texts = [spellings[0] for spellings in items]
    groups: dict[str, list[str]] = {}
    for how, made in _off(texts, params, ordered, task.prompt, rng):
        if made and not _same(made, items, ordered):
            groups.setdefault(how, []).append(join(made))
    yield from in_turn(groups, rng)


def _same(made: Sequence[str], items: Sequence[Sequence[str]], ordered: bool) -> bool:
    """Whether somebody may take one list for the other."""
    keys = [{key(text) for text in spellings} for spellings in items]
    given = list(map(key, made))
    if len(given) != len(keys):
        return False
    if ordered:
        return all(one in accepted for one, accepted in zip(given, keys, strict=True))
    rest = list(given)
    for accepted in keys:
        if not (met := next((one for one in rest if one in accepted), None)):
            return False
        rest.remove(met)
    return True


def _off(
    texts: list[str], params: Mapping[str, Any], ordered: bool, prompt: str, rng: random.Random
) -> Iterator[tuple[str, list[str]]]:
    places = rng.sample(range(len(texts)), min(4, len(texts)))
    extra = _others(texts, params, prompt, rng)
    for i in places:
        rest = [*texts[:i], *texts[i + 1 :]]
        yield "one missing", rest
        yield from (("one exchanged", [*texts[:i], other, *texts[i + 1 :]]) for other in extra[:2])
        if len(rest) and rest[0] != texts[i]:
            yield "one twice, one missing", [*texts[:i], rest[0], *texts[i + 1 :]]
    yield from (("one too many", [*texts, other]) for other in extra[:3])
    yield "one repeated", [*texts, texts[0]]
    if ordered:
        yield "reversed", texts[::-1]
        yield from (
            ("two swapped", [*texts[:i], texts[i + 1], texts[i], *texts[i + 2 :]]) for i in range(len(texts) - 1)
        )
        yield "rotated", [*texts[1:], texts[0]]


def _others(texts: list[str], params: Mapping[str, Any], prompt: str, rng: random.Random) -> list[str]:
    """What might stand in the list and does not belong there."""
    if params.get("kind") == "number":
        asked = _asked(params, params["items"][0])
        values = [plain(value) for _, value in off(asked.value, asked.tolerance)]
        all_asked = [_asked(params, item) for item in params["items"]]
        unit = texts[0].partition(" ")[2]
        kept = [v for v in values if all(abs(_asked(params, v).value - a.value) > a.tolerance for a in all_asked)]
        return [f"{value} {unit}".strip() for value in rng.sample(kept, len(kept))]
    taken = set(map(key, texts))
    words = [w for w in dict.fromkeys(m[0] for m in WORD.finditer(prompt)) if len(w) > 3 and w != "answer"]
    words = [w for w in words if key(w) not in taken]
    return [*rng.sample(words, min(4, len(words))), *DECOYS]


register(Mutator(verifier="listed", right=right_listed, wrong=wrong_listed))
