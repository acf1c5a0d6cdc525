"""Argument values to try on a function whose types nobody declared: seeded pools, guided by parameter names.

A `Kind` makes values of one shape from a random generator. `call_plans` proposes which kinds to try for a signature,
the likely ones first; which of them a function accepts is found out by running it (see `oracle.py`), not guessed here.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgsynth.verifiers.code.source import tree_of
from kgsynth.verifiers.function_tests import Call

Make = Callable[[random.Random], Any]

WORDS = (
    "apple bridge cloud delta ember flint grove haze iris jade kite lemon maple north ocean pearl quartz river stone"
    " tulip umber violet willow yarrow zinc"
).split()
PATHS = [
    "/",
    ".",
    "a",
    "a/b",
    "/a/b/c.txt",
    "a//b/../c",
    "./x",
    "../up/two",
    "/usr/lib/x.tar.gz",
    "dir/",
    ".hidden",
    "",
]
URLS = [
    "https://example.org/a/b?x=1&y=2#top",
    "http://user@host.net:8080/p;q?k=v",
    "//cdn.site/x.js",
    "mailto:ann@example.org",
    "/rel/path?q=a+b",
    "",
]
TEXTS = ["", "  two  spaces ", "a,b;c", "Hello, World!", "x = 'y'", "<b>&amp;</b>", "tab\tand\nline\n", "don't", "ÄÖ é"]
PATTERNS = ["*", "*.txt", "a?c", "[ab]*", "[!x]y", "data*", "*.t[ax]*"]


def _int(rng: random.Random) -> int:
    return rng.choice([0, 1, 2, -1, rng.randint(-9, 9), rng.randint(2, 30), rng.randint(1, 2100)])


def _small(rng: random.Random) -> int:
    return rng.randint(0, 6)


def _float(rng: random.Random) -> float:
    return rng.choice(
        [0.0, 1.0, 0.5, -1.5, round(rng.uniform(-9, 9), 2), round(rng.random(), 2), round(rng.random(), 1)]
    )


def _word(rng: random.Random) -> str:
    return rng.choice(["", "a", "b", rng.choice(WORDS), rng.choice(WORDS)])


def _text(rng: random.Random) -> str:
    joined = rng.choice([" ", ", ", "\n", "  "]).join(rng.choice(WORDS) for _ in range(rng.randint(1, 7)))
    return rng.choice([joined, joined, joined.title(), rng.choice(TEXTS), "  " + joined.replace("\n", "\n  ")])


def _bytes(rng: random.Random) -> bytes:
    return rng.choice([b"", b"a", _word(rng).encode(), bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))])


def _coded(rng: random.Random) -> bytes:
    import base64

    encode = rng.choice([base64.b64encode, base64.b16encode, base64.b32encode, base64.b85encode, base64.encodebytes])
    return encode(_bytes(rng))


def _many(make: Make, most: int = 6) -> Make:
    return lambda rng: [make(rng) for _ in range(rng.choice([0, 1, 2, *range(2, most + 1)]))]


def _sorted_ints(rng: random.Random) -> list[int]:
    return sorted(rng.randint(-5, 20) for _ in range(rng.randint(0, 6)))


def _pairs(rng: random.Random) -> list[tuple[str, int]]:
    return [(rng.choice(WORDS), rng.randint(0, 9)) for _ in range(rng.randint(0, 4))]


KINDS: Mapping[str, Make] = {
    "int": _int,
    "small": _small,
    "char": lambda rng: rng.choice("aZ5 _é½ß√中"),
    "float": _float,
    "word": _word,
    "text": _text,
    "bytes": _bytes,
    "coded": _coded,
    "path": lambda rng: rng.choice(PATHS),
    "url": lambda rng: rng.choice(URLS),
    "pattern": lambda rng: rng.choice(PATTERNS),
    "ints": _many(_int),
    "sorted": _sorted_ints,
    "floats": _many(_float),
    "words": _many(_word, 5),
    "paths": _many(lambda rng: rng.choice(PATHS[:-1]), 3),
    "pairs": _pairs,
    "tuple": lambda rng: tuple(_many(_int, 4)(rng)),
    "dict": lambda rng: dict(_pairs(rng)),
    "bool": lambda rng: rng.random() < 0.5,
    "none": lambda rng: None,
}
NUMERIC = frozenset({"int", "small", "float", "ints", "sorted", "floats", "tuple", "bool", "none"})
BROAD = ("int", "word", "float", "ints", "words", "bytes", "tuple", "dict", "text")  # tried for any parameter

# What a parameter's name suggests; the first matching row counts.
HINTS: Sequence[tuple[str, tuple[str, ...]]] = (
    (
        r"^(year|month|day|hour|minute|width|n|k|r|count|size|start|stop|lo|hi|i|j|index|indent|tabsize)$",
        ("small", "int"),
    ),
    (r"^(chr|char|unichr|ch|c)$", ("char",)),
    (r"path|^(p|file|filename|fn|dir|root|start)$", ("path", "word", "text")),
    (r"url|uri|^(base|location|address)$", ("url", "path", "word")),
    (r"^(pat|pattern)s?$", ("pattern", "word")),
    (r"^(names|paths|filenames)$", ("paths", "words")),
    (r"^(heap|sorted)$", ("sorted", "words")),
    (r"^iterables?$", ("ints", "words", "word", "pairs")),
    (r"^(a|seq|sequence|list|l|values|items|word|possibilities)$", ("sorted", "words", "ints", "word", "int", "float")),
    (r"^(data|x|y|xs|ys|weights|m|n_data)$", ("floats", "ints", "int", "float", "bytes", "word")),
    (
        r"^(s|string|str|text|line|lines|sep|prefix|suffix|chars|tag|name|msg|value|word)$",
        ("text", "word", "coded"),
    ),
    (r"^(b|bytes|buf|input|encoded|blob)$", ("bytes", "coded", "int", "float")),
    (r"^(h|l|s|v|r|g|q|hue|sat|ratio|cutoff|percent|p|mu|sigma|alpha)$", ("float", "int", "word")),
    (r"^(d|mapping|mapper|kwargs|attrs|quote_attrs)$", ("dict", "pairs", "text")),
    (r"^(pairs|query|table)$", ("pairs", "dict", "text")),
)


ECHO = 0.3  # share of calls whose last argument is the first one, or an item of it: equality and membership need that


@dataclass(frozen=True)
class Shape:
    """Kinds for the positional arguments, and fixed keyword-only settings."""

    kinds: tuple[str, ...]
    settings: tuple[tuple[str, Any], ...] = ()

    def call(self, rng: random.Random, *, in_order: bool = False) -> Call:
        """A call; `in_order` sorts its sequences, strings too, for functions that presuppose it."""
        args = [KINDS[kind](rng) for kind in self.kinds]
        if len(args) > 1 and rng.random() < ECHO:
            same_kind, first = self.kinds[0] == self.kinds[-1], args[0]
            if same_kind or (isinstance(first, list | str | tuple) and len(first)):
                args[-1] = first if same_kind else rng.choice(first)
        return Call(args=tuple(map(_in_order, args) if in_order else args), kwargs=dict(self.settings))


def constants_of(source: str) -> list[Any]:
    """The numbers and texts that a source compares with or looks for, in order, each once."""
    values = [node.value for node in ast.walk(tree_of(source)) if isinstance(node, ast.Constant)]
    usable = [v for v in values if type(v) in (int, float) or (isinstance(v, str | bytes) and 0 < len(v) < 20)]
    return list({(type(v), v): v for v in usable}.values())


def spiced(args: Sequence[Any], constants: Sequence[Any], rng: random.Random) -> tuple[Any, ...]:
    """The arguments with a constant of the function's in one of them: what a fuzzer calls a dictionary (Zalewski, AFL)."""
    order = rng.sample(range(len(args)), len(args))
    for i in order:
        alike = [c for c in constants if type(c) is type(_first_leaf(args[i]))]
        if alike:
            return (*args[:i], _with(args[i], rng.choice(alike), rng), *args[i + 1 :])
    return tuple(args)


def _first_leaf(value: Any) -> Any:
    return _first_leaf(value[0]) if isinstance(value, list | tuple) and value else value


def _with(value: Any, constant: Any, rng: random.Random) -> Any:
    if isinstance(value, list | tuple):
        at = rng.randrange(len(value))
        return type(value)([*value[:at], _with(value[at], constant, rng), *value[at + 1 :]])
    if isinstance(value, str | bytes):
        at, one = rng.randrange(len(value) + 1), rng.randrange(len(constant))
        return value[:at] + rng.choice([constant, constant[one : one + 1]]) + value[at:]
    return rng.choice([constant, constant, constant + 1, constant - 1, 2 * constant, -constant, value + constant])


def _in_order(value: Any) -> Any:
    """The same kind of sequence with its items in ascending order; anything else, and what has no order, as it is."""
    try:
        if isinstance(value, str):
            return "".join(sorted(value))
        return type(value)(sorted(value)) if isinstance(value, list | tuple | bytes) else value
    except TypeError:
        return value


def shapes(arguments: ast.arguments, rng: random.Random, most: int = 160) -> list[Shape]:
    """Shapes to try for a signature: likely ones first, then a seeded selection of the rest, at most `most`."""
    found: dict[Shape, None] = {}
    for kinds in _arities(arguments):
        found |= dict.fromkeys(map(Shape, itertools.islice(itertools.product(*kinds), 40)))
        free = [kind if len(kind) == 1 else BROAD for kind in kinds]
        broad = list(itertools.product(*free)) if len(kinds) < 4 else []
        found |= dict.fromkeys(map(Shape, rng.sample(broad, min(32, len(broad)))))
    chosen = list(found)[:most]
    return [*chosen, *(Shape(s.kinds, setting) for setting in _settings(arguments) for s in chosen[:8])]


def _arities(arguments: ast.arguments) -> Iterator[list[tuple[str, ...]]]:
    """The kinds for each argument, for every number tried: the required ones, then up to two optional ones."""
    parameters = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(parameters) - len(arguments.defaults)) + list(arguments.defaults)
    kinds = [likely_kinds(p.arg, default) for p, default in zip(parameters, defaults, strict=True)]
    required = len(parameters) - len(arguments.defaults)
    for n in range(required, min(len(kinds), required + 2) + 1):
        if 0 < n <= 4:
            yield kinds[:n]
    if arguments.vararg:
        more = likely_kinds(arguments.vararg.arg, None)
        yield from ([*kinds, *[more] * n] for n in (1, 2, 3) if len(kinds) + n <= 4)


def likely_kinds(name: str, default: ast.expr | None) -> tuple[str, ...]:
    """What the default value says, else what the name suggests."""
    value = default.value if isinstance(default, ast.Constant) else None
    if type(value) in (bool, int, float):
        return {bool: ("bool",), int: ("small",), float: ("float",)}[type(value)]
    for pattern, kinds in HINTS:
        if re.search(pattern, name.lower()):
            return kinds
    return BROAD[:5]


def _settings(arguments: ast.arguments) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Keyword-only parameters with a plain default, each set to something else."""
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, bool):
            yield ((parameter.arg, not value),)
        elif isinstance(value, int):
            yield ((parameter.arg, value + 1),)
