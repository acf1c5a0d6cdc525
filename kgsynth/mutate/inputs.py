"""Inputs that no test of a task has, made from those that one has, within what all of them have in common.

What a function may be given is not written down in its tests, so it is inferred, as Daikon does (Ernst et al., 2001): types, the
range of numbers, the letters of texts, lengths, and whether sequences are sorted or without repeats. An input outside of that
proves nothing.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

Given = tuple[tuple[Any, ...], dict[str, Any]]


def fresh(known: Sequence[Given], rng: random.Random, n: int) -> list[Given]:
    """Up to n other arguments, each argument taken from a known call or varied within its column."""
    columns = _columns(known)
    seen, found = {repr(call) for call in known}, list[Given]()
    for _ in range(6 * n):
        args, kwargs = rng.choice(known)
        tied = _tied(known)
        made = tuple(_argument(value, columns[i], rng, mix=not tied) for i, value in enumerate(args))
        named = {name: _argument(value, columns[name], rng, mix=not tied) for name, value in kwargs.items()}
        call = (made, named)
        if repr(call) not in seen and (not tied or _lengths(made) == _lengths(args)):
            seen.add(repr(call))
            found.append(call)
        if len(found) == n:
            break
    return found


def _columns(known: Sequence[Given]) -> dict[int | str, list[Any]]:
    """Argument -> every value that it has."""
    columns: dict[int | str, list[Any]] = {}
    for args, kwargs in known:
        for place, value in (*enumerate(args), *kwargs.items()):
            columns.setdefault(place, []).append(value)
    return columns


def _tied(known: Sequence[Given]) -> bool:
    """Whether two sequences of every call are as long as each other."""
    lengths = [_lengths(args) for args, _ in known]
    return all(len(each) > 1 and len(set(each)) == 1 for each in lengths) and len({each[0] for each in lengths}) > 1


def _lengths(args: Sequence[Any]) -> list[int]:
    return [len(arg) for arg in args if isinstance(arg, (list, tuple, str))]


def _argument(value: Any, column: Sequence[Any], rng: random.Random, *, mix: bool) -> Any:
    chance = rng.random()
    if chance < 0.3:
        return value
    alike = [other for other in column if type(other) is type(value)]
    if chance < 0.5 and mix:
        return rng.choice(alike)
    return vary(value, alike, rng)


def vary(value: Any, column: Sequence[Any], rng: random.Random) -> Any:
    """Another value of the same type, within what those of the column have in common."""
    match value:
        case bool():
            return rng.choice(column)
        case int():
            low, high = min(column), max(column)
            return rng.choice(
                [rng.choice(column), rng.randint(low, high), *(v for v in (value - 1, value + 1) if low <= v <= high)]
            )
        case float():
            finite = [v for v in column if abs(v) < 1e300]
            return round(rng.uniform(min(finite), max(finite)), 3) if finite and value in finite else rng.choice(column)
        case str() | bytes():
            return _text(value, column, rng)
        case list() | tuple():
            return type(value)(_sequence(list(value), column, rng))
        case dict():
            return _dict(value, column, rng)
        case set() | frozenset():
            pool = sorted((item for other in column for item in other), key=repr)
            return type(value)(rng.sample(pool, min(len(pool), rng.randint(*_span(column)))))
    return rng.choice(column)


def _span(column: Sequence[Any]) -> tuple[int, int]:
    return min(map(len, column)), max(map(len, column))


def _text(value: Any, column: Sequence[Any], rng: random.Random) -> Any:
    """A letter doubled, dropped, moved or taken from another text of the column; or two texts cut and joined."""
    low, high = _span(column)
    letters = [other[i : i + 1] for other in column for i in range(len(other))]
    at = rng.randrange(len(value) + 1)
    other = rng.choice(column)
    cut = rng.randrange(len(other) + 1)
    made = [value[:at] + value[at + 1 :], value[:at] + value[max(0, at - 1) :], value[:at] + other[cut:]]
    if letters:
        letter = rng.choice(letters)
        made += [value[:at] + letter + value[at:], value[:at] + letter + value[at + 1 :]]
    fits = [text for text in made if low <= len(text) <= high]
    return rng.choice(fits or [other])


def _sequence(value: list[Any], column: Sequence[Any], rng: random.Random) -> list[Any]:
    low, high = _span(column)
    pool = [item for other in column for item in other]
    if not pool:
        return value
    at = rng.randrange(len(value) + 1)
    alike = [item for item in pool if type(item) is type(value[at])] if at < len(value) else pool
    made = [value[:at] + value[at + 1 :], [*value[:at], rng.choice(pool), *value[at:]], rng.sample(value, len(value))]
    if at < len(value):
        made.append([*value[:at], vary(value[at], alike, rng), *value[at + 1 :]])
    fits = [items for items in made if low <= len(items) <= high]
    chosen = rng.choice(fits or [list(rng.choice(column))])
    return _arranged(chosen, column)


def _arranged(items: list[Any], column: Sequence[Any]) -> list[Any]:
    """Sorted where every sequence of the column is, and without repeats where none has any."""
    long = [other for other in column if len(other) > 1]
    if long and all(len(set(map(repr, other))) == len(other) for other in long):
        items = [item for i, item in enumerate(items) if repr(item) not in set(map(repr, items[:i]))]
    if len(long) > 1 and all(_is_sorted(other) for other in long):
        try:
            return sorted(items)
        except TypeError:
            return list(long[0])
    return items


def _is_sorted(items: Sequence[Any]) -> bool:
    try:
        return all(a <= b for a, b in itertools.pairwise(items))
    except TypeError:
        return False


def _dict(value: Mapping[Any, Any], column: Sequence[Any], rng: random.Random) -> dict[Any, Any]:
    items = [pair for other in column for pair in other.items()]
    if not items or not value:
        return dict(rng.choice(column))
    key, new = rng.choice(items)
    dropped = rng.choice(list(value))
    made = [
        {k: v for k, v in value.items() if k != dropped},
        {**value, key: new},
        {**value, dropped: vary(value[dropped], [v for _, v in items if type(v) is type(value[dropped])], rng)},
    ]
    low, high = _span(column)
    return rng.choice([m for m in made if low <= len(m) <= high] or [dict(value)])
