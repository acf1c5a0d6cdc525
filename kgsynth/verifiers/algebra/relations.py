"""Equations and inequalities. Equal when one is the other times a number: 2x - y = 1 and y = 2x - 1.

Times a positive number, or turned round, for inequalities. What is true of everything (x = x) equals nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from kgsynth.verifiers.algebra.equality import CLOSE, POINTS, points, value, worked_out
from kgsynth.verifiers.algebra.form import fits
from kgsynth.verifiers.algebra.leaf import Rules, read_leaf
from kgsynth.verifiers.algebra.rejection import Rejection
from kgsynth.verifiers.algebra.shapes import split

SIGNS = {"=": "=", r"\ne": r"\ne", "<": "<", ">": "<", r"\le": r"\le", r"\ge": r"\le"}  # turned to point left
SIGN = re.compile(r"=|<|>|\\(?:ne|le|ge)(?![a-zA-Z])")


@dataclass(frozen=True, kw_only=True)
class Relation:
    """`difference sign 0`, where the sign is =, \\ne, < or \\le."""

    sign: str
    difference: sympy.Expr
    sides: tuple[tuple[str, sympy.Expr], tuple[str, sympy.Expr]]


def signs(text: str) -> list[str]:
    """The signs of relation that are in no bracket, in order."""
    sides = split(text, SIGN.pattern)
    found, at = [], 0
    for side in sides[:-1]:
        match = SIGN.search(text, text.index(side, at) + len(side))
        assert match
        found.append(match[0])
        at = match.end()
    return found


def read_relation(text: str, rules: Rules) -> Relation:
    sides, found = split(text, SIGN.pattern), signs(text)
    if len(found) != 1:
        raise Rejection("several answers" if found else "other kind")
    left, right = (read_leaf(side, rules) for side in sides)
    difference: Any = left.expression - right.expression
    difference = -difference if found[0] in (">", r"\ge") else difference
    names = {call: sympy.Symbol(str(call)) for call in difference.atoms(AppliedUndef)}
    written = ((left.text, left.expression), (right.text, right.expression))
    return Relation(sign=SIGNS[found[0]], difference=worked_out(difference.xreplace(names)), sides=written)


def compare_relations(text: str, expected: Relation, rules: Rules) -> None:
    given = read_relation(text, rules)
    if given.difference.free_symbols - expected.difference.free_symbols:
        raise Rejection("other variables")
    if given.sign != expected.sign or not _proportional(given, expected, rules):
        raise Rejection("wrong")
    pairs = zip(given.sides, expected.sides, strict=True)
    if not all(fits(rules.form or "any", a, x, b, y) for (a, x), (b, y) in pairs):
        raise Rejection("wrong form")


def _proportional(given: Relation, expected: Relation, rules: Rules) -> bool:
    """Their ratio is the same number, not zero, at every point where what is expected has a value."""
    ratios = []
    for point in points(sorted(expected.difference.free_symbols, key=str), rules.domain):
        below = value(expected.difference, point)
        if below is None or below == 0 or (rules.domain != "complex" and not below.is_real):
            continue
        above = value(given.difference, point)
        if above is None or above == 0:
            return False
        ratios.append(above / below)
        if abs(ratios[-1] - ratios[0]) > CLOSE * abs(ratios[0]):
            return False
        if len(ratios) == POINTS:
            break
    signed = expected.sign in ("<", r"\le")
    return bool(ratios) and not (signed and not ratios[0].is_positive)
