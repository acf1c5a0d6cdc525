"""Families of mathematical problems: each poses a problem in words and solves it twice, by two ways that share nothing.

@family("committees", r"ways to choose k items")          # asked about a concept whose page says this
def committees(rng, level): return Problem(text=..., answer=..., again=..., slips=(...))

`answer` is worked out by a formula, `again` by the documented function or by counting every case. A problem on which they
differ is never asked (`Problem.agrees`). `slips` are what the usual mistakes give: forgotten order, off by one,
population for sample, a lost sign.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A question in words and its answer: an int, a Fraction, a sympy number, a frozenset or a tuple of these, or, for
    an interval, its notation."""

    text: str
    answer: Any
    again: Any  # a float may differ by rounding; anything else must be equal
    slips: Sequence[Any]
    kind: str = "number"  # of the `mathematics` verifier

    @property
    def agrees(self) -> bool:
        return same(self.answer, self.again)

    def mistakes(self, most: int = 10) -> list[Any]:
        """Slips that are wrong indeed, the likeliest first, then near misses of whole numbers and fractions."""
        near = _near(self.answer) if self.kind == "number" else ()
        found: list[Any] = []
        for slip in (*self.slips, *near):
            if not any(same(slip, known) for known in (self.answer, *found)):
                found.append(slip)
        return found[:most]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Problems of one kind. `says` is what a page must say for them to be asked about its concept."""

    name: str
    says: re.Pattern[str]
    pose: Callable[[random.Random, int], Problem]  # level 0 (easy), 1, 2 (hard)


FAMILIES: dict[str, Family] = {}


def family(name: str, says: str) -> Callable[[Callable[[random.Random, int], Problem]], Callable[..., Problem]]:
    """Register what poses the problems of a family."""

    def add(pose: Callable[[random.Random, int], Problem]) -> Callable[..., Problem]:
        FAMILIES[name] = Family(name=name, says=re.compile(says), pose=pose)
        return pose

    return add


def same(a: Any, b: Any) -> bool:
    """Are two answers equal? A float equals what it is the nearest double of, up to a relative 1e-9.

    >>> same(Fraction(1, 2), 0.5), same(3, 4), same((1, 2), (1, 2.0))
    (True, False, True)
    """
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    if isinstance(a, tuple) or isinstance(b, tuple):
        return (
            isinstance(a, tuple)
            and isinstance(b, tuple)
            and len(a) == len(b)
            and all(same(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, frozenset) or isinstance(b, frozenset):
        return a == b
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        return a == b
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)


def written(value: Any) -> str:
    """An answer in the notation of the `mathematics` verifier.

    >>> written(Fraction(-3, 4)), written(frozenset({2, 1})), written((1, Fraction(1, 2)))
    ('-3/4', '\\\\{1, 2\\\\}', '(1, 1/2)')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, frozenset):
        return "\\{" + ", ".join(map(written, sorted(value))) + "\\}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(written, value)) + ")"
    if isinstance(value, (int, Fraction)):
        return str(value)
    import sympy

    return sympy.latex(value)


def _near(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, int):
        return answer + 1, answer - 1, 2 * answer, answer + 10
    if isinstance(answer, Fraction):
        return 1 / answer if answer else Fraction(1), 1 - answer, 2 * answer, answer + 1
    return 2 * answer, -answer, answer + 1, answer / 2


def at(level: int, *choices: T) -> T:
    """The choice of a level."""
    return choices[level]


def listed(values: Sequence[Any]) -> str:
    """ "1, 2 and 3"."""
    texts = [str(v) for v in values]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]


def signed(n: int) -> str:
    """ "+ 3" or "- 3"."""
    return f"+ {n}" if n >= 0 else f"- {-n}"


def load() -> dict[str, Family]:
    """Every family, in the order of the modules' names."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        importlib.import_module(f"{__name__}.{module.name}")
    return FAMILIES
