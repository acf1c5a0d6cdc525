"""One question: is the answer what was expected, as the kind of thing that was asked for?

A question is {"kind", "expected", "answer"} and, where wanted, "tolerance", "variables", "form", "domain", "units". The
reply is {"reason": "right"} or another of `rejection.REASONS`, or {"fault": why the task cannot be used}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from kgsynth.verifiers.algebra import intervals, relations
from kgsynth.verifiers.algebra.leaf import Leaf, Rules, check_name, compare, in_form, read_leaf, values
from kgsynth.verifiers.algebra.notation import normalise
from kgsynth.verifiers.algebra.rejection import Rejection
from kgsynth.verifiers.algebra.shapes import (
    NAME,
    NOTHING,
    inside,
    is_name,
    join_thousands,
    listed,
    rows,
    split,
    unframe,
)

MAX_MEMBERS = 200
BRACES = [(r"\{", r"\}"), ("{", "}")]
BRACKETS = [("(", ")"), ("[", "]"), (r"\langle", r"\rangle"), ("<", ">")]
Row = list[Leaf]


def judge(question: Mapping[str, Any], begun: Callable[[], None] = lambda: None) -> dict[str, str]:
    """`begun` is called once what is expected has been read: what goes wrong from there on is the answer's doing."""
    rules = Rules.of(question)
    read, compare_all = KINDS[rules.kind]
    try:
        expected = read(prepared(question["expected"], rules), rules)
    except Rejection as rejection:
        return {"fault": f"{rejection.reason}: no {rules.kind} is in {question['expected']!r}"}
    begun()
    try:
        compare_all(prepared(question["answer"], rules), expected, rules)
    except Rejection as rejection:
        return {"reason": rejection.reason}
    except (ArithmeticError, AttributeError, NotImplementedError, PermissionError, TypeError, ValueError):
        return {"reason": "unreadable"}  # the library gave up: what it cannot judge is no answer
    return {"reason": "right"}


def prepared(text: str, rules: Rules) -> str:
    framed = unframe(text, many=rules.kind in ("set", "tuple"))
    return r"\emptyset" if NOTHING.fullmatch(framed.replace(r"\text{", "").strip("{} ")) else normalise(framed)


# ------------------------------------------------------------------------------------------------- number, expression


def read_value(text: str, rules: Rules) -> Leaf:
    sides = values(_one(join_thousands(text)), rules)
    if rules.kind == "number" and sides[-1][1].expression.free_symbols:
        raise Rejection("other kind")
    return sides[-1][1]


def compare_value(text: str, expected: Leaf, rules: Rules) -> None:
    """Every side of `a = b = c` must be equal, one of them in form; what follows an "about" must be its rounding."""
    sides = values(_one(join_thousands(text)), rules, expected)
    exact = [side for relation, side in sides if relation != r"\approx" or rules.tolerance]
    for side in exact:
        compare(side, expected, rules, formed=False)
    if not all(_rounds(side, expected) for relation, side in sides if relation == r"\approx" and not rules.tolerance):
        raise Rejection("wrong")
    if not any(in_form(side, expected, rules) for side in exact):
        raise Rejection("wrong form")


def _one(text: str) -> str:
    if len(listed(text)) != 1:
        raise Rejection("several answers" if text.strip() else "unreadable")
    return text


def _rounds(given: Leaf, expected: Leaf) -> bool:
    digits = len(given.text.partition(".")[2])
    number = given.expression
    if not number.is_Rational or expected.expression.free_symbols:
        return False
    return bool(abs((number - expected.expression).evalf(30)) <= sympy.Rational(51, 100) / 10**digits)


# ------------------------------------------------------------------------------------------------- set, tuple, matrix


def read_set(text: str, rules: Rules) -> list[Row]:
    """Members, each a row of one value, or of several for a point."""
    parts = split(text, r"\\cup(?![a-zA-Z])")
    members = [member for part in parts for member in _members(part, rules)]
    if len(members) > MAX_MEMBERS:
        raise Rejection("too large")
    return [_row(member, rules) for member in members]


def _members(text: str, rules: Rules) -> list[str]:
    """`x = 1 or x = 2`, `x \\in \\{1, 2\\}`, `\\pm 2`, `\\{1, 2\\}`, `1, 2`, the empty set."""
    sides = split(text, r"\\in(?![a-zA-Z])|=")
    if len(sides) == 2 and is_name(sides[0]) and (body := inside(sides[1], BRACES)) is not None:
        check_name(sides[0], rules)
        text = sides[1]
    if text in (r"\emptyset", r"\{\}", "{}", r"\{ \}", "{ }", r"\{\emptyset\}"):
        return [] if text != r"\{\emptyset\}" else _reject("wrong")
    body = inside(text, BRACES)
    members = listed(text if body is None else body)
    if not members:
        raise Rejection("unreadable")
    names = {_base(_name(member)) for member in members} - {""}
    if len(names) > 1:
        raise Rejection("other kind")
    for member in members:
        if _name(member):
            check_name(_name(member), rules)
    bare = [member.partition("=")[2].strip() if _name(member) else member for member in members]
    return [signed for member in bare for signed in _both_signs(member)]


def _reject(reason: str) -> Any:
    raise Rejection(reason)


def _name(member: str) -> str:
    """x of `x = 1`."""
    sides = split(member, "=")
    return sides[0] if len(sides) == 2 and is_name(sides[0]) else ""


def _base(name: str) -> str:
    return name.split("_")[0]


def _both_signs(text: str) -> list[str]:
    if text.count(r"\pm") != 1:
        return [text]
    return [text.replace(r"\pm", "+").lstrip(" +"), text.replace(r"\pm", "-")]


def _row(text: str, rules: Rules) -> Row:
    body = inside(text, [("(", ")")])
    parts = split(body, ",|;") if body is not None else [text]
    return [read_leaf(part, rules) for part in (parts if len(parts) > 1 else [text])]


def compare_sets(text: str, expected: list[Row], rules: Rules) -> None:
    """Every given member is an expected one, and every expected one is given. Order and repetition do not count."""
    given = read_set(text, rules)
    if rules.tolerance and len(given) != len(expected):  # several tries at one member would each be near enough
        raise Rejection("wrong")
    hits = [_hits(row, expected, rules) for row in given]
    if not all(hits) or set().union(*hits) != set(range(len(expected))):
        raise Rejection("wrong")


def _hits(row: Row, expected: Sequence[Row], rules: Rules) -> set[int]:
    """Which of the expected rows it is. Raises Rejection when it is one, but not in form."""
    found, faults = set(), {"wrong": None}
    for i, other in enumerate(expected):
        try:
            _compare_row(row, other, rules)
            found.add(i)
        except Rejection as rejection:
            faults[rejection.reason] = None
    if not found and "wrong form" in faults:
        raise Rejection("wrong form")
    return found


def _compare_row(given: Row, expected: Row, rules: Rules) -> None:
    if len(given) != len(expected):
        raise Rejection("wrong")
    for a, b in zip(given, expected, strict=True):
        compare(a, b, rules)


def read_tuple(text: str, rules: Rules) -> list[Row]:
    sides = split(text, "=")
    if len(sides) == 2 and NAME.fullmatch(sides[0]):
        text = sides[1]
    elif len(sides) == 2 and (names := inside(sides[0], BRACKETS)) is not None:
        if not all(is_name(name) for name in split(names, ",")) or rules.variables not in (
            (),
            tuple(split(names, ",")),
        ):
            raise Rejection("other variables")
        text = sides[1]
    if r"\begin" in text:
        body = read_matrix(text, rules)
        if 1 not in (len(body), len(body[0])):
            raise Rejection("other kind")
        return [[leaf for row in body for leaf in row]]
    body_text = inside(text, BRACKETS)
    parts = split(body_text, ",|;") if body_text is not None else listed(text)
    if body_text is None and any(map(_name, parts)):
        parts = _by_name(parts, rules)
    return [[read_leaf(part, rules) for part in parts]]


def _by_name(parts: list[str], rules: Rules) -> list[str]:
    """`y = 2, x = 1` in the order of the task's variables, else of the alphabet."""
    named = {_name(part): part.partition("=")[2].strip() for part in parts}
    if len(named) != len(parts) or "" in named or set(rules.variables) - set(named):
        raise Rejection("several answers" if len(named) != len(parts) else "other variables")
    for name in named:
        check_name(name, rules)
    return [named[name] for name in (rules.variables or sorted(named))]


def read_matrix(text: str, rules: Rules) -> list[Row]:
    sides = split(text, "=")
    if len(sides) == 2 and is_name(sides[0]):
        text = sides[1]
    factor, body = rows(text)
    if not body or len({len(row) for row in body}) != 1 or len(body) * len(body[0]) > MAX_MEMBERS:
        raise Rejection("unreadable")
    return [[_entry(factor, cell, rules) for cell in row] for row in body]


def _entry(factor: str, cell: str, rules: Rules) -> Leaf:
    leaf = read_leaf(cell, rules)
    if not factor:
        return leaf
    scaled = sympy.Integer(-1) if factor == "-" else read_leaf(factor, rules).expression
    return Leaf(text=cell, expression=(scaled * leaf.expression).doit(), unit=leaf.unit)


def compare_tuples(text: str, expected: list[Row], rules: Rules) -> None:
    _compare_table(read_tuple(text, rules), expected, rules)


def compare_matrices(text: str, expected: list[Row], rules: Rules) -> None:
    _compare_table(read_matrix(text, rules), expected, rules)


def _compare_table(given: list[Row], expected: list[Row], rules: Rules) -> None:
    if len(given) != len(expected):
        raise Rejection("wrong")
    for row, other in zip(given, expected, strict=True):
        _compare_row(row, other, rules)


# kind -> (reads what is expected, compares a text with it)
KINDS: dict[str, tuple[Callable[[str, Rules], Any], Callable[[str, Any, Rules], None]]] = {
    "number": (read_value, compare_value),
    "expression": (read_value, compare_value),
    "set": (read_set, compare_sets),
    "tuple": (read_tuple, compare_tuples),
    "matrix": (read_matrix, compare_matrices),
    "interval": (intervals.read_interval, intervals.compare_intervals),
    "equation": (relations.read_relation, relations.compare_relations),
}
