"""`mathematics`: an equal formula in other notation; and sign, factor, bound or term off.

The text of what is expected is changed, never evaluated here. A change of one constant or operator of a formula that is worked out
gives another value, but for rare cases such as a factor of nothing; these are left out by their look.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fractions import Fraction

from kgsynth.mutate import Mutator, Named, in_turn, inside, register
from kgsynth.mutate.numbers import off, plain
from kgsynth.task import Task

SIMPLE = re.compile(r"[+-]?\d{1,12}(?:\.\d{1,12})?")
RATIO = re.compile(r"([+-]?)(?:\\d?frac\{(\d{1,9})\}\{(\d{1,9})\}|(\d{1,9})\s?/\s?(\d{1,9}))")
CONSTANT = re.compile(r"(?<![\d.\w\\])\d{1,6}(?![\d.])")
SIGN = re.compile(r"(?<=[\w)}\]]) ?([+-]) ?(?=[\w\\({])")
FUNCTIONS = (
    ("\\sin", "\\cos"),
    ("\\cos", "\\sin"),
    ("sin", "cos"),
    ("\\sqrt", ""),
    ("sqrt", ""),
    ("\\ln", "\\exp"),
    ("\\pi", "e"),
    ("pi", "3"),
)
ITEMS = re.compile(r"\s*,\s*(?![^{(\[]*[})\]])")


def number_of(text: str) -> Fraction | None:
    """The value of an integer, a decimal or a fraction; None for any other text."""
    text = text.strip().strip("$").strip()
    if SIMPLE.fullmatch(text):
        return Fraction(text)
    if (match := RATIO.fullmatch(text)) and int(match[3] or match[5]):
        value = Fraction(int(match[2] or match[4]), int(match[3] or match[5]))
        return -value if match[1] == "-" else value
    return None


def right_formula(task: Task, rng: random.Random) -> Iterator[Named]:
    text = inside(task.reference).strip()
    bare = text.strip("$").strip()
    made = {
        "formula signs": f"${bare}$",
        "brackets of a formula": f"\\({bare}\\)",
        "said": f"The answer is ${bare}$",
        "full stop": f"${bare}$.",
    }
    if "boxed" not in bare:
        made["boxed"] = f"\\boxed{{{bare}}}"
    if "\\frac" in bare:
        made["display fractions"] = bare.replace("\\frac", "\\dfrac")
    if "\\left" not in bare and (bare[:1], bare[-1:]) == ("(", ")"):
        made["stretched brackets"] = f"\\left{bare[:-1]}\\right)"
    if (value := number_of(bare)) is not None:
        made |= _numbers(value)
    if task.verifier.params.get("kind") == "set" and (items := _members(bare)):
        made["another order"] = "\\{" + ", ".join(reversed(items)) + "\\}"
    if (
        task.verifier.params.get("kind", "expression") == "expression"
        and task.verifier.params.get("form", "any") == "any"
    ):
        made |= {"in brackets": f"({bare})", "nothing added": f"({bare}) + 0"}
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def _numbers(value: Fraction) -> dict[str, str]:
    sign, size = ("-", abs(value)) if value < 0 else ("", value)
    made = {"plain": plain(value)}
    if size.denominator > 1:
        made |= {
            "a fraction": f"{sign}{size.numerator}/{size.denominator}",
            "LaTeX": f"{sign}\\frac{{{size.numerator}}}{{{size.denominator}}}",
        }
    return made


def wrong_formula(task: Task, rng: random.Random) -> Iterator[Named]:
    params = task.verifier.params
    text = str(params["expected"]).strip().strip("$").strip()
    value = number_of(text)
    if value is not None and params.get("kind", "expression") in ("number", "expression"):
        tolerance = Fraction(str(params.get("tolerance") or 0)) * abs(value)
        made = [(how, _written(one)) for how, one in off(value, tolerance)]
        yield from rng.sample(made, len(made))
        return
    groups: dict[str, list[str]] = {}
    for how, other in _changed(text, str(params.get("kind", "expression"))):
        if other.strip() and "".join(other.split()) != "".join(text.split()):
            groups.setdefault(how, []).append(other)
    yield from in_turn(groups, rng)


def _written(value: Fraction) -> str:
    text = plain(value)
    return (
        text
        if "/" not in text
        else f"{'-' if value < 0 else ''}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    )


def _changed(text: str, kind: str) -> Iterator[Named]:
    if kind in ("set", "tuple"):
        yield from _members_off(text, kind)
    if kind == "interval":
        yield from _bounds_off(text)
    if kind == "equation":
        yield from (
            ("the other relation", text.replace(a, b, 1))
            for a, b in (("<", ">"), (">", "<"), ("\\le", "\\ge"), ("≤", "≥"), ("\\ge", "\\le"))
            if a in text
        )
    yield from _constants_off(text)
    if kind not in ("set", "tuple", "interval", "matrix", "equation") and not re.search(r"[=,∞]|infty|\boo\b", text):
        sign = text[1:].strip() if text.startswith("-") and not SIGN.search(text[1:]) else f"-({text})"
        yield from (
            ("another sign", sign),
            ("twice", f"2({text})"),
            ("one more", f"{text} + 1"),
            ("one less", f"{text} - 1"),
        )


def _constants_off(text: str) -> Iterator[Named]:
    """One constant, sign or function of it is another."""
    if not re.search(r"(?<![\d.])0(?![\d.])", text):
        for found in CONSTANT.finditer(text):
            yield "a constant off", f"{text[: found.start()]}{int(found[0]) + 1}{text[found.end() :]}"
            if int(found[0]) > 2:
                yield "a constant less", f"{text[: found.start()]}{int(found[0]) - 1}{text[found.end() :]}"
    for found in SIGN.finditer(text):
        yield "a sign off", f"{text[: found.start(1)]}{'-' if found[1] == '+' else '+'}{text[found.end(1) :]}"
    yield from (("another function", text.replace(a, b, 1)) for a, b in FUNCTIONS if a in text)


def _members(text: str) -> list[str]:
    inner = re.fullmatch(r"\\?\\?[{(]\s*(.+?)\s*\\?\\?[})]", text)
    parts = ITEMS.split(inner[1]) if inner else []
    return parts if len(parts) > 1 else []


def _members_off(text: str, kind: str) -> Iterator[Named]:
    if not (items := _members(text)):
        return
    left, right = ("\\{", "\\}") if kind == "set" else ("(", ")")
    yield from (("one missing", f"{left}{', '.join(items[:i] + items[i + 1 :])}{right}") for i in range(len(items)))
    yield "one too many", f"{left}{', '.join([*items, '7919'])}{right}"
    yield "one exchanged", f"{left}{', '.join([*items[:-1], '7919'])}{right}"
    if kind == "tuple" and items[::-1] != items:
        yield "another order", f"{left}{', '.join(items[::-1])}{right}"


def _bounds_off(text: str) -> Iterator[Named]:
    for a, b in (("[", "("), ("(", "["), ("]", ")"), (")", "]")):
        place = text.find(a) if a in "[(" else text.rfind(a)
        if (
            place >= 0
            and "\\infty" not in text[max(0, place - 8) : place + 8]
            and "∞" not in text[max(0, place - 3) : place + 3]
        ):
            yield "another kind of bound", text[:place] + b + text[place + 1 :]


register(Mutator(verifier="mathematics", right=right_formula, wrong=wrong_formula))
