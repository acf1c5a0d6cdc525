"""`number`: the same quantity in other notation and units; and one digit, power of ten, sign or unit off.

All arithmetic is in exact fractions. What counts as off is worked out from the task's own tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from kgsynth.mutate import Mutator, Named, register
from kgsynth.task import Task
from kgsynth.verifiers import units
from kgsynth.verifiers.number import Wanted, wanted
from kgsynth.verifiers.units import UnitError

PREFIXES = ("k", "m", "c", "M", "µ")
SYSTEMS = (("m", "ft"), ("kg", "lb"), ("s", "min"), ("km/h", "m/s"), ("degC", "K"), ("J", "kWh"), ("Pa", "bar"))


def right_number(task: Task, rng: random.Random) -> Iterator[Named]:
    params = task.verifier.params
    asked, unit = wanted(params), str(params.get("unit") or "")
    text, tail = plain(asked.value), f" {unit}" if unit and asked.unit_use != "forbidden" else ""
    made = {"bold": f"**{text}{tail}**", "full stop": f"{text}{tail}.", "a variable": f"x = {text}{tail}"}
    if not tail:
        made["formula"] = f"${text}$"
    if "/" not in text and asked.decimal == ".":
        made |= {
            "zeros at the end": f"{text}{'00' if '.' in text else '.0'}{tail}",
            "plus sign": f"{'' if text[0] == '-' else '+'}{text}{tail}",
        }
        made |= {"powers of ten": _scientific(text) + tail}
        if len(text.partition(".")[0].lstrip("-")) > 3:
            made |= {"groups": f"{asked.value.numerator:,}{tail}" if asked.value.denominator == 1 else f"{text}{tail}"}
    if asked.tolerance:
        near = asked.value + asked.tolerance / 3
        made["within the tolerance"] = f"{float(near):.12g}{tail}"
    made |= {f"in {other}": f"{plain(value)} {other}" for other, value in _converted(asked, unit)}
    made |= {f"with {noun}": f"{text} {noun}" for noun in asked.nouns if not unit}
    yield from ((how, made[how]) for how in rng.sample(list(made), len(made)))


def plain(value: Fraction) -> str:
    """Decimal where that ends, else a fraction."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or value.denominator > 10**18:
        return f"{value.numerator}/{value.denominator}"
    places = next(n for n in range(200) if 10**n % value.denominator == 0)
    digits = str(abs(value.numerator) * (10**places // value.denominator)).rjust(places + 1, "0")
    body = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{body}" if value < 0 else body


def _scientific(text: str) -> str:
    """1234.5 -> 1.2345e3"""
    digits = text.lstrip("-").replace(".", "").lstrip("0") or "0"
    whole = text.lstrip("-").partition(".")[0]
    first = (
        len(whole) - 1
        if whole.strip("0")
        else -(len(text.partition(".")[2]) - len(text.partition(".")[2].lstrip("0"))) - 1
    )
    if digits == "0":
        return "0e0"
    return f"{'-' if text[0] == '-' else ''}{digits[0]}.{digits[1:] or '0'}e{first}"


def _converted(asked: Wanted, unit: str) -> Iterator[tuple[str, Fraction]]:
    """(another unit, the value in it)"""
    if not unit or asked.unit_use == "forbidden":
        return
    others = [f"{prefix}{unit}" for prefix in PREFIXES] + [b if unit == a else a for a, b in SYSTEMS if unit in (a, b)]
    for other in others:
        try:
            factor = units.convert(asked.value, asked.unit, units.parse(other))
            if units.convert(factor, units.parse(other), asked.unit) == asked.value:
                yield other, factor
        except (UnitError, ValueError, ZeroDivisionError):
            continue


def wrong_number(task: Task, rng: random.Random) -> Iterator[Named]:
    asked, params = wanted(task.verifier.params), task.verifier.params
    tail = f" {params['unit']}" if params.get("unit") and asked.unit_use != "forbidden" else ""
    made = [(how, plain(value) + tail) for how, value in off(asked.value, asked.tolerance)]
    made += [(how, text) for how, text in _wrong_units(asked, params)]
    rng.shuffle(made)
    first = ("a digit off", "just outside of the tolerance", "a power of ten too much", "another sign")
    yield from sorted(made, key=lambda one: first.index(one[0]) if one[0] in first else len(first))
    yield "a range", f"{plain(asked.value - 1)} to {plain(asked.value + 1)}{tail}"


def off(value: Fraction, tolerance: Fraction) -> Iterator[tuple[str, Fraction]]:
    """Values that are certainly outside of the tolerance, as slips make them."""
    step = _last_digit(value)
    made = {
        "a digit off": value + step * max(1, int(tolerance / step) + 1),
        "a digit less": value - step * max(1, int(tolerance / step) + 1),
        "just outside of the tolerance": value + tolerance * Fraction(21, 20) if tolerance else value + step,
        "a power of ten too much": value * 10, "a power of ten too little": value / 10, "another sign": -value,
        "off by one": value + 1, "off by one the other way": value - 1, "twice": value * 2, "half": value / 2,
        "digits swapped": _swapped(value), "a thousand times": value * 1000, "rounded": Fraction(round(value)),
        "the reciprocal": 1 / value if value else value + 2, "squared": value * value, "nothing": Fraction(0), "a hundred times": value * 100,
    }  # fmt: skip
    yield from ((how, one) for how, one in made.items() if abs(one - value) > tolerance)


def _last_digit(value: Fraction) -> Fraction:
    """A unit of the last decimal of a value that is written out; of the sixth significant one where that never ends."""
    text = plain(value)
    if "/" in text:
        return abs(value) / 10**5 or Fraction(1)
    return Fraction(1, 10 ** len(text.partition(".")[2]))


def _swapped(value: Fraction) -> Fraction:
    """Two neighbouring digits exchanged."""
    text = plain(value)
    for i in range(len(text) - 1):
        a, b = text[i], text[i + 1]
        if a.isdigit() and b.isdigit() and a != b and "/" not in text:
            return Fraction(text[:i] + b + a + text[i + 2 :])
    return value + 9


def _wrong_units(asked: Wanted, params: Mapping[str, Any]) -> Iterator[Named]:
    text, unit = plain(asked.value), str(params.get("unit") or "")
    if not unit:
        yield "a unit that nobody asked for", f"{text} kg"
        if abs(asked.value / 100 - asked.value) > asked.tolerance:
            yield "for hundredths", f"{text} %"
        return
    if asked.unit_use == "required":
        yield "no unit", text
    if asked.unit_use != "forbidden":
        if asked.value:
            yield from (
                ("the unit not converted", f"{text} {other}")
                for other, value in _converted(asked, unit)
                if abs(value - asked.value) > abs(value) / 10
            )
        yield "another dimension", f"{text} {'kg' if 'kg' not in unit and unit != 'g' else 'm'}^3"
    elif asked.unit_use == "forbidden":
        yield "a unit that is refused", f"{text} {unit}"


register(Mutator(verifier="number", right=right_number, wrong=wrong_number))
