"""Inputs made from a description and a seed: edge cases first, then random values that grow.

    {"kind": "integer", "min": -100, "max": 100}        {"kind": "float", "min": -1.0, "max": 1.0, "special": true}
    {"kind": "boolean"}                                 {"kind": "choice", "of": ["a", "b"]}
    {"kind": "text", "alphabet": "ab ", "max_length": 20}   {"kind": "bytes", "max_length": 20}
    {"kind": "list", "of": {...}, "min_length": 0, "max_length": 12, "unique": false, "sorted": false}
    {"kind": "tuple", "of": [{...}, {...}]}             {"kind": "dict", "keys": {...}, "values": {...}, "max_length": 8}
    {"kind": "optional", "of": {...}}                   None as well
    {"kind": "tree", "of": {...}, "depth": 4}           None, or [value, left tree, right tree]

`special` adds NaN, the infinities and -0.0. The same description, seed and number give the same inputs on every
machine: only `random.Random` seeded with text is used, no hash.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.verifiers.code.values import encode
from kgsynth.verifiers.params import only_known, whole

MOST_LENGTH, MOST_DEPTH, MOST_ITEMS, MOST_NUMBER = 1000, 8, 20_000, 10**300
ALPHABET = "abcxyzABC019 _-.,\n\té€\u4e2d"
SMALL = 0.4  # share of random values that are drawn near the edges

Spec = Mapping[str, Any]


def inputs(specs: Sequence[Spec], seed: int, count: int) -> list[tuple[Any, ...]]:
    """`count` tuples of arguments, one value per description. Raises VerifierError for a bad description."""
    rng = random.Random(f"properties {seed}")
    edges = [list(islice(_edges(spec, 0), 16)) for spec in specs]
    first = max(map(len, edges), default=0)
    made = [
        tuple(
            edge[(i + j * (i % 3)) % len(edge)] if i < first and edge else draw(spec, rng, min(1.0, (i + 1) / count))
            for j, (spec, edge) in enumerate(zip(specs, edges, strict=True))
        )
        for i in range(2 * count)
    ]
    distinct = {repr(args): args for args in made}
    return list(distinct.values())[:count]


def draw(spec: Spec, rng: random.Random, size: float) -> Any:
    """One random value; `size` in (0, 1] bounds how long it is."""
    return _kind(spec).draw(spec, rng, size)


def check(label: str, spec: Any, depth: int = 0) -> None:
    """Raises VerifierError unless this describes values."""
    if not isinstance(spec, Mapping) or str(spec.get("kind")) not in KINDS:
        raise VerifierError(
            f"{label}: an input is described by {{'kind': one of {', '.join(KINDS)}}}, not {spec!r:.80}"
        )
    if depth > MOST_DEPTH:
        raise VerifierError(f"{label}: inputs are nested more than {MOST_DEPTH} deep")
    only_known(f"{label} ({spec['kind']})", spec, ("kind", *_kind(spec).keys))
    for inner in _inner(label, spec):
        check(label, inner, depth + 1)
    _check_numbers(label, spec)
    if spec["kind"] == "dict" and spec["keys"]["kind"] not in SIMPLE:
        raise VerifierError(f"{label}: keys of a dict must be one of {', '.join(SIMPLE)}")
    if spec.get("sorted") and spec["of"]["kind"] not in SIMPLE:
        raise VerifierError(f"{label}: only {', '.join(SIMPLE)} can be sorted")
    if _most(spec) > MOST_ITEMS:
        raise VerifierError(f"{label}: one value may have {_most(spec)} items; the most is {MOST_ITEMS}")


def _inner(label: str, spec: Spec) -> list[Any]:
    """The descriptions inside one."""
    kind = spec["kind"]
    if kind == "tuple" and not isinstance(spec.get("of"), (list, tuple)):
        raise VerifierError(f"{label}: tuple needs 'of', a list of descriptions")
    if kind == "choice" and not (isinstance(spec.get("of"), (list, tuple)) and spec["of"]):
        raise VerifierError(f"{label}: choice needs 'of', a list of at least one value")
    if kind == "choice":
        encode(list(spec["of"]))
        return []
    if kind == "tuple":
        return list(spec["of"])
    return [spec.get(key) for key in ("of", "keys", "values") if key in _kind(spec).keys]


def _most(spec: Spec) -> int:
    """How many items a value can have."""
    kind = spec["kind"]
    if kind == "list":
        return 1 + _longest(spec) * _most(spec["of"])
    if kind == "dict":
        return 1 + _longest(spec) * (_most(spec["keys"]) + _most(spec["values"]))
    if kind == "tuple":
        return 1 + sum(map(_most, spec["of"]))
    if kind == "tree":
        return 2 ** spec.get("depth", 4) * (3 + _most(spec["of"]))
    return _most(spec["of"]) if kind == "optional" else 1


def _check_numbers(label: str, spec: Spec) -> None:
    for key in ("min", "max"):
        value = spec.get(key, 0)
        fits = (int,) if spec["kind"] == "integer" else (int, float)
        if type(value) not in fits or not -MOST_NUMBER < value < MOST_NUMBER:
            raise VerifierError(f"{label}: {key!r} must be a number below 1e300, not {value!r:.80}")
    for key, most in (("min_length", MOST_LENGTH), ("max_length", MOST_LENGTH), ("depth", MOST_DEPTH)):
        whole(label, spec, key, 0, 0, most)
    for low, high in ((_low(spec), _high(spec)), (_shortest(spec), _longest(spec))):
        if low > high:
            raise VerifierError(f"{label}: the least, {low}, is above the most, {high}")
    if not isinstance(spec.get("alphabet", ALPHABET), str) or not spec.get("alphabet", ALPHABET):
        raise VerifierError(f"{label}: 'alphabet' must be text, not {spec['alphabet']!r:.80}")


# ------------------------------------------------------------------------------------------------------------ kinds


class Kind:
    """How values of one kind are drawn, which are its edge cases, and what its description may say."""

    def __init__(
        self,
        keys: Sequence[str],
        draw: Callable[[Spec, random.Random, float], Any],
        edges: Callable[[Spec, int], Iterator[Any]],
    ) -> None:
        self.keys, self.draw, self.edges = keys, draw, edges


def _kind(spec: Spec) -> Kind:
    return KINDS[spec["kind"]]


def _edges(spec: Spec, depth: int) -> Iterator[Any]:
    yield from _kind(spec).edges(spec, depth)


def _low(spec: Spec) -> Any:
    return spec.get("min", -1000 if spec.get("max", 0) >= -1000 else spec["max"])


def _high(spec: Spec) -> Any:
    return spec.get("max", max(1000, _low(spec)))


def _shortest(spec: Spec) -> int:
    return spec.get("min_length", 0)


def _longest(spec: Spec) -> int:
    return spec.get("max_length", max(12, _shortest(spec)))


def _integer(spec: Spec, rng: random.Random, size: float) -> int:
    low, high = _low(spec), _high(spec)
    near = min(max(0, low), high)
    if rng.random() < SMALL:
        low, high = max(low, near - 5), min(high, near + 5)
    return rng.randint(low, high)


def _integer_edges(spec: Spec, depth: int) -> Iterator[int]:
    low, high = _low(spec), _high(spec)
    candidates = (0, 1, -1, low, high, 2, low + 1, high - 1)
    yield from dict.fromkeys(value for value in candidates if low <= value <= high)


def _float(spec: Spec, rng: random.Random, size: float) -> float:
    low, high = float(_low(spec)), float(_high(spec))
    value = low + (high - low) * rng.random()
    return min(max(round(value, rng.randint(0, 3)), low), high) if rng.random() < SMALL else value


def _float_edges(spec: Spec, depth: int) -> Iterator[float]:
    low, high = float(_low(spec)), float(_high(spec))
    yield from dict.fromkeys(value for value in (0.0, 1.0, -1.0, 0.5, low, high, 1e-9) if low <= value <= high)
    if spec.get("special"):
        yield from (-0.0, float("nan"), float("inf"), float("-inf"))


def _length(spec: Spec, rng: random.Random, size: float) -> int:
    shortest = _shortest(spec)
    return rng.randint(shortest, shortest + math.ceil((_longest(spec) - shortest) * size))


def _text(spec: Spec, rng: random.Random, size: float) -> str:
    alphabet = spec.get("alphabet", ALPHABET)
    few = rng.sample(alphabet, min(len(alphabet), rng.choice([2, 4, len(alphabet)])))
    return "".join(rng.choice(few) for _ in range(_length(spec, rng, size)))


def _text_edges(spec: Spec, depth: int) -> Iterator[str]:
    alphabet, longest = spec.get("alphabet", ALPHABET), _longest(spec)
    candidates = ("", alphabet[0], alphabet[-1], alphabet[0] * 2, alphabet[:longest], alphabet[0] * longest)
    yield from dict.fromkeys(text for text in candidates if _shortest(spec) <= len(text) <= longest)


def _bytes(spec: Spec, rng: random.Random, size: float) -> bytes:
    return bytes(rng.choice([0, 255, rng.randrange(256)]) for _ in range(_length(spec, rng, size)))


def _bytes_edges(spec: Spec, depth: int) -> Iterator[bytes]:
    candidates = (b"", b"\0", b"\xff", b"aa", b"a" * _longest(spec))
    yield from dict.fromkeys(data for data in candidates if _shortest(spec) <= len(data) <= _longest(spec))


def _list(spec: Spec, rng: random.Random, size: float) -> list[Any]:
    return _shaped(spec, [draw(spec["of"], rng, size) for _ in range(_length(spec, rng, size))])


def _list_edges(spec: Spec, depth: int) -> Iterator[list[Any]]:
    inner = list(islice(_edges(spec["of"], depth + 1), 4)) or [draw(spec["of"], random.Random("edge"), 0.5)]
    rng = random.Random("edge")
    longest = [draw(spec["of"], rng, 1.0) for _ in range(_longest(spec))]
    candidates = [[], [inner[0]], [inner[0]] * 2, inner, inner[::-1], longest, *([item] for item in inner[1:])]
    for items in candidates:
        made = _shaped(spec, items)
        if _shortest(spec) <= len(made) <= _longest(spec):
            yield made


def _shaped(spec: Spec, items: list[Any]) -> list[Any]:
    """As `unique` and `sorted` want it. Too few different items make a shorter list."""
    if spec.get("unique"):
        items = list({repr(item): item for item in items}.values())
    return sorted(items) if spec.get("sorted") else items


def _tuple(spec: Spec, rng: random.Random, size: float) -> tuple[Any, ...]:
    return tuple(draw(inner, rng, size) for inner in spec["of"])


def _tuple_edges(spec: Spec, depth: int) -> Iterator[tuple[Any, ...]]:
    inner = [list(islice(_edges(each, depth + 1), 4)) or [None] for each in spec["of"]]
    for i in range(max(map(len, inner), default=1)):
        yield tuple(values[i % len(values)] for values in inner)


def _dict(spec: Spec, rng: random.Random, size: float) -> dict[Any, Any]:
    keys = [draw(spec["keys"], rng, size) for _ in range(_length(spec, rng, size))]
    return {key: draw(spec["values"], rng, size) for key in keys}


def _dict_edges(spec: Spec, depth: int) -> Iterator[dict[Any, Any]]:
    keys, values = (list(islice(_edges(spec[key], depth + 1), 3)) for key in ("keys", "values"))
    if not _shortest(spec):
        yield {}
    if keys and values and _shortest(spec) <= len(keys) <= _longest(spec):
        yield {key: values[i % len(values)] for i, key in enumerate(keys)}


def _optional(spec: Spec, rng: random.Random, size: float) -> Any:
    return None if rng.random() < 0.2 else draw(spec["of"], rng, size)


def _optional_edges(spec: Spec, depth: int) -> Iterator[Any]:
    yield None
    yield from _edges(spec["of"], depth + 1)


def _tree(spec: Spec, rng: random.Random, size: float) -> list[Any] | None:
    depth = spec.get("depth", 4)
    if depth == 0 or rng.random() > 0.3 + 0.6 * size:
        return None
    below = {**spec, "depth": depth - 1}
    return [draw(spec["of"], rng, size), _tree(below, rng, size), _tree(below, rng, size)]


def _tree_edges(spec: Spec, depth: int) -> Iterator[list[Any] | None]:
    yield None
    for value in islice(_edges(spec["of"], depth + 1), 2 if spec.get("depth", 4) else 0):
        yield [value, None, None]
        if spec.get("depth", 4) > 1:
            yield [value, [value, None, None], None]
            yield [value, None, [value, None, None]]


SIMPLE = ("integer", "float", "text", "bytes", "boolean")
KINDS: dict[str, Kind] = {
    "integer": Kind(("min", "max"), _integer, _integer_edges),
    "float": Kind(("min", "max", "special"), _float, _float_edges),
    "boolean": Kind((), lambda spec, rng, size: rng.random() < 0.5, lambda spec, depth: iter((False, True))),
    "choice": Kind(("of",), lambda spec, rng, size: rng.choice(spec["of"]), lambda spec, depth: iter(spec["of"])),
    "text": Kind(("alphabet", "min_length", "max_length"), _text, _text_edges),
    "bytes": Kind(("min_length", "max_length"), _bytes, _bytes_edges),
    "list": Kind(("of", "min_length", "max_length", "unique", "sorted"), _list, _list_edges),
    "tuple": Kind(("of",), _tuple, _tuple_edges),
    "dict": Kind(("keys", "values", "min_length", "max_length"), _dict, _dict_edges),
    "optional": Kind(("of",), _optional, _optional_edges),
    "tree": Kind(("of", "depth"), _tree, _tree_edges),
}
