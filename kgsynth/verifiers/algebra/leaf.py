"""Single values: reading one, and comparing two under the rules of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from kgsynth.verifiers.algebra.equality import equal
from kgsynth.verifiers.algebra.form import fits
from kgsynth.verifiers.algebra.reading import letters, read
from kgsynth.verifiers.algebra.rejection import Rejection
from kgsynth.verifiers.algebra.shapes import chain, is_name, unit

RADIANS = sympy.pi / 180


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a task wants answers to be judged."""

    kind: str
    tolerance: float = 0.0  # relative
    variables: tuple[str, ...] = ()  # the names that values may be given to, in the order of a tuple
    form: str = ""  # one of form.FORMS; blank: "value" for numbers, "any" for what has variables
    domain: str = "real"  # of the variables, one of equality.DOMAINS
    units: tuple[str, ...] = ()  # spellings of the unit, which may be left out; none: whatever unit is dropped
    log_base_10: bool = False

    @classmethod
    def of(cls, question: Mapping[str, Any]) -> Rules:
        names = ("kind", "tolerance", "form", "domain")
        chosen: dict[str, Any] = {name: question[name] for name in names if question.get(name)}
        chosen |= {name: tuple(question.get(name) or ()) for name in ("variables", "units")}
        base_10 = r"\log_{10}" in str(question["expected"]) or r"\log_10" in str(question["expected"])
        return cls(**chosen, log_base_10=base_10)


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A value as written: its text, its expression (not evaluated) and its unit."""

    text: str
    expression: sympy.Expr
    unit: str = ""

    def in_ratio(self) -> sympy.Expr:
        """The value that a unit of ratio or angle stands for: 50 % is 1/2, 180° is pi."""
        return self.expression * {"%": sympy.Rational(1, 100), "°": RADIANS}.get(self.unit, sympy.Integer(1))


def read_leaf(text: str, rules: Rules) -> Leaf:
    """Raises Rejection."""
    core, mark = unit(text, plain=rules.kind == "number")
    return Leaf(text=core, expression=read(core, log_base_10=rules.log_base_10), unit=mark)


def compare(given: Leaf, expected: Leaf, rules: Rules, *, formed: bool = True) -> None:
    """Raises Rejection unless they are equal and, if wanted, the given one is in form."""
    if letters(given.expression) - letters(expected.expression):
        raise Rejection("other variables")
    if not any(
        equal(a, b, domain=rules.domain, tolerance=rules.tolerance) for a, b in _readings(given, expected, rules)
    ):
        raise Rejection("wrong")
    if formed and not in_form(given, expected, rules):
        raise Rejection("wrong form")


def in_form(given: Leaf, expected: Leaf, rules: Rules) -> bool:
    form = rules.form or ("any" if expected.expression.free_symbols else "value")
    return fits(form, given.text, given.expression, expected.text, expected.expression)


def _readings(given: Leaf, expected: Leaf, rules: Rules) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """Pairs of which one must be equal. A unit may be left out; a per cent and a degree may be worked out instead."""
    a, b = given.expression, expected.expression
    named = [name for name in (*rules.units, expected.unit) if name]
    if given.unit in ("", *named):
        worked_out = not given.unit and expected.unit in ("%", "°")
        return [(a, b), (a, expected.in_ratio())] if worked_out else [(a, b)]
    if given.unit == "%":
        return [(given.in_ratio(), b)] if not named else []
    if given.unit == "°":
        return [(a, b), (given.in_ratio(), b)] if not named else []
    return [(a, b)] if not named else []


def values(text: str, rules: Rules, expected: Leaf | None = None) -> list[tuple[str, Leaf]]:
    """(relation, value) of the sides of `x = a = b`, without the names at its ends that values are given to."""
    sides = chain(text)
    used = letters(expected.expression) if expected else set()
    for end in (0, -1):
        if len(sides) > 1 and is_name(sides[end][1]) and sides[end][1].lstrip("\\") not in used:
            check_name(sides.pop(end)[1], rules)
    return [(relation, read_leaf(side, rules)) for relation, side in sides]


def check_name(name: str, rules: Rules) -> None:
    """Raises Rejection when the task says what its variables are, and this is none of them."""
    for part in name.strip("()").split(","):
        spellings = {part.strip(), part.strip().lstrip("\\"), part.strip().split("_")[0]}
        if rules.variables and not spellings & set(rules.variables):
            raise Rejection("other variables")
