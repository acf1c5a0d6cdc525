"""The types of values that all three languages have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class CannotPort(ValueError):
    """The source is outside the subset; the message says why. Handled where ports are asked for, never shown raw."""


@dataclass(frozen=True)
class Kind:
    """`name` is int, float, bool, char (a text of length one), str, list, tuple, none, optional, or any (of an empty list)."""

    name: str
    items: tuple[Kind, ...] = ()

    @property
    def item(self) -> Kind:
        """Of a sequence."""
        if self.name in ("str", "char"):
            return CHAR
        if self.name == "list":
            return self.items[0]
        if self.name == "tuple" and self.items:
            return joined(*self.items)
        raise CannotPort(f"a {self.name} has no items")

    @property
    def is_open(self) -> bool:
        """Is there an empty list in it, whose items may be anything?"""
        return self.name == "any" or any(item.is_open for item in self.items)

    @property
    def is_number(self) -> bool:
        return self.name in ("int", "float", "bool")

    @property
    def is_text(self) -> bool:
        return self.name in ("str", "char")


INT, FLOAT, BOOL, CHAR, STR, NONE, ANY = map(Kind, ("int", "float", "bool", "char", "str", "none", "any"))


def listed(item: Kind) -> Kind:
    return Kind("list", (item,))


def joined(*kinds: Kind) -> Kind:
    """The type of something that has one of these types. Raises CannotPort when no language would say so."""
    first, *rest = kinds
    for other in rest:
        first = _both(first, other)
    return first


def _both(a: Kind, b: Kind) -> Kind:
    if a == b or b == ANY:
        return a
    if a == ANY:
        return b
    if {a.name, b.name} == {"int", "float"}:
        return FLOAT
    if a.is_text and b.is_text:
        return STR
    if NONE in (a, b) or "optional" in (a.name, b.name):
        items = [i for k in (a, b) for i in (k.items if k.name == "optional" else () if k == NONE else (k,))]
        return Kind("optional", (joined(*items),))
    if a.name == b.name and len(a.items) == len(b.items):
        return Kind(a.name, tuple(map(_both, a.items, b.items)))
    raise CannotPort(f"a value is a {in_words(a)} here and a {in_words(b)} there")


def kind_of(value: Any) -> Kind:
    """The type of a Python value. Raises CannotPort for any other."""
    if value is None:
        return NONE
    if isinstance(value, list):
        return listed(joined(ANY, *map(kind_of, value)))
    if isinstance(value, tuple) and type(value) is tuple:
        return Kind("tuple", tuple(map(kind_of, value)))
    if type(value) in (int, float, bool, str):
        return Kind(type(value).__name__)
    raise CannotPort(f"a {type(value).__name__} is outside the subset")


def in_words(kind: Kind) -> str:
    """As a Python annotation: list[int]."""
    if kind.name == "optional":
        return f"{in_words(kind.items[0])} | None"
    name = {"char": "str", "none": "None", "any": "int"}.get(kind.name, kind.name)
    return f"{name}[{', '.join(map(in_words, kind.items))}]" if kind.items else name
