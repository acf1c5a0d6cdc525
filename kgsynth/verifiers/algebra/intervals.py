"""Sets of real numbers: intervals, unions of them, solved inequalities, all but a few points.

An inequality counts only when it is solved: the variable alone on one side (or in the middle), numbers on the other.
"""

from __future__ import annotations

import re

import sympy
from sympy import Interval, S

from kgsynth.verifiers.algebra.form import fits
from kgsynth.verifiers.algebra.leaf import Leaf, Rules, check_name, read_leaf
from kgsynth.verifiers.algebra.rejection import Rejection
from kgsynth.verifiers.algebra.relations import SIGN, signs
from kgsynth.verifiers.algebra.shapes import closing, inside, is_name, listed, split

REALS = re.compile(
    r"\\mathbb\s*\{\s*R\s*\}|all real numbers|all reals|every real number|R|\\text\{all (?:real numbers|reals)\}"
)
BUILDER = re.compile(r"^\\?\{\s*([a-zA-Z])\s*(?:\\in\s*\\mathbb\s*\{R\}\s*)?[|:](.*?)\\?\}$")
INTERVAL = re.compile(r"^([\[\]()])(.*)([\[\]()])$")
OPEN_LEFT, OPEN_RIGHT = "(]", ")["


def read_interval(text: str, rules: Rules) -> tuple[sympy.Set, list[Leaf]]:
    """(the set, its numbers as written)."""
    leaves: list[Leaf] = []
    names: set[str] = set()
    found = _union(text, rules, leaves, names)
    if len(names) > 1:
        raise Rejection("other variables")
    return found, leaves


def compare_intervals(text: str, expected: tuple[sympy.Set, list[Leaf]], rules: Rules) -> None:
    given, leaves = read_interval(text, rules)
    if given != expected[0] and given.symmetric_difference(expected[0]) != S.EmptySet:
        raise Rejection("wrong")
    left_undone = [leaf for leaf in leaves if not _in_form(leaf, expected[1], rules)]
    if left_undone:
        raise Rejection("wrong form")


def _in_form(leaf: Leaf, expected: list[Leaf], rules: Rules) -> bool:
    form = rules.form or "value"
    plain = [("0", sympy.Integer(0)), *((other.text, other.expression) for other in expected)]
    return any(fits(form, leaf.text, leaf.expression, text, expression) for text, expression in plain)


def _union(text: str, rules: Rules, leaves: list[Leaf], names: set[str]) -> sympy.Set:
    parts = split(text, r"\\cup(?![a-zA-Z])|(?<![\\a-zA-Z])(?:or|U)(?![a-zA-Z])")
    return sympy.Union(*[_intersection(part.strip(" ,"), rules, leaves, names) for part in parts])


def _intersection(text: str, rules: Rules, leaves: list[Leaf], names: set[str]) -> sympy.Set:
    parts = split(text, r"\\cap(?![a-zA-Z])|,|(?<![\\a-zA-Z])and(?![a-zA-Z])")
    parts = [part for part in parts if part]
    if len(parts) > 1 and all(SIGN.search(part) or r"\in" in part or r"\cap" in text for part in parts):
        return sympy.Intersection(*[_piece(part, rules, leaves, names) for part in parts])
    return _piece(text, rules, leaves, names)


def _piece(text: str, rules: Rules, leaves: list[Leaf], names: set[str]) -> sympy.Set:
    """One interval, inequality, set of points, or a set without another."""
    text = text.strip()
    if match := BUILDER.match(text):
        names.add(match[1])
        return _union(match[2].strip(), rules, leaves, names)
    if len(sides := split(text, r"\\in(?![a-zA-Z])")) == 2 and is_name(sides[0]):
        check_name(sides[0], rules)
        names.add(sides[0])
        return _union(sides[1], rules, leaves, names)
    if len(sides := split(text, r"\\setminus(?![a-zA-Z])|except|-\s*(?=\\\{)|\\(?=\\\{)")) == 2:
        return sympy.Complement(_piece(sides[0], rules, leaves, names), _points(sides[1], rules, leaves))
    if REALS.fullmatch(text):
        return S.Reals
    if text in (r"\emptyset", r"\{\}", r"\{ \}", "{}"):
        return S.EmptySet
    if signs(text):
        return _inequality(text, rules, leaves, names)
    if inside(text, [(r"\{", r"\}"), ("{", "}")]) is not None:
        return _points(text, rules, leaves)
    if text.startswith("(") and closing(text, 0) == len(text) - 1 and len(split(text[1:-1], ",|;")) == 1:
        return _union(text[1:-1], rules, leaves, names)
    return _bounds(text, rules, leaves)


def _points(text: str, rules: Rules, leaves: list[Leaf]) -> sympy.Set:
    body = inside(text, [(r"\{", r"\}"), ("{", "}")])
    return sympy.FiniteSet(*[_number(part, rules, leaves) for part in listed(text if body is None else body)])


def _bounds(text: str, rules: Rules, leaves: list[Leaf]) -> sympy.Set:
    match = INTERVAL.match(text)
    ends = split(match[2], ",|;") if match else []
    if not match or len(ends) != 2:
        raise Rejection("several answers" if len(listed(text)) > 1 else "other kind")
    low, high = (_number(end, rules, leaves) for end in ends)
    return _between(low, high, match[1] in OPEN_LEFT, match[3] in OPEN_RIGHT)


def _between(low: sympy.Expr, high: sympy.Expr, open_left: bool, open_right: bool) -> sympy.Set:
    """Raises Rejection when the ends are in the wrong order: that is a slip, not the empty set."""
    if (low - high).is_positive or low == sympy.oo or high == -sympy.oo:
        raise Rejection("wrong")
    if (low == -sympy.oo and not open_left) or (high == sympy.oo and not open_right):
        raise Rejection("wrong")
    return Interval(low, high, open_left, open_right)


def _number(text: str, rules: Rules, leaves: list[Leaf]) -> sympy.Expr:
    leaf = read_leaf(text, rules)
    number = leaf.expression.doit()
    if not number.is_extended_real or number.has(sympy.nan, sympy.zoo):
        raise Rejection("other variables" if number.free_symbols else "undefined")
    leaves.append(leaf)
    return number


def _inequality(text: str, rules: Rules, leaves: list[Leaf], names: set[str]) -> sympy.Set:
    """`a < x \\le b` and `x \\ge a`, either way round."""
    sides, found = split(text, SIGN.pattern), signs(text)
    at = [i for i, side in enumerate(sides) if is_name(side)]
    if len(sides) not in (2, 3) or len(at) != 1 or (len(sides) == 3 and at != [1]):
        raise Rejection("wrong form")
    check_name(sides[at[0]], rules)
    names.add(sides[at[0]])
    turned = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
    bounds = [
        (sign if i < at[0] else turned.get(sign, sign), sides[i if i < at[0] else i + 1])
        for i, sign in enumerate(found)
    ]
    return sympy.Intersection(*[_half(sign, _number(side, rules, leaves)) for sign, side in bounds])


def _half(sign: str, bound: sympy.Expr) -> sympy.Set:
    """All x with `bound sign x`."""
    if bound in (sympy.oo, -sympy.oo):
        below = sign == "<" and bound == -sympy.oo
        return S.Reals if below or (sign == ">" and bound == sympy.oo) else S.EmptySet
    halves = {
        "<": Interval.open(bound, sympy.oo),
        r"\le": Interval(bound, sympy.oo),
        ">": Interval.open(-sympy.oo, bound),
        r"\ge": Interval(-sympy.oo, bound),
        "=": sympy.FiniteSet(bound),
        r"\ne": sympy.Complement(S.Reals, sympy.FiniteSet(bound)),
    }
    return halves[sign]
