"""Units of measurement as people write them, and exact conversion between them (by `pint`, in fractions).

A unit is a product of names with small whole exponents: `m/s^2`, `m s⁻²`, `kg·m²`, `J/(kg·K)`, `square metres`,
`meters per second`, `°C`, `%`, `$`. All after the first slash is below the line, as in `J/kg·K`. Nothing is evaluated:
names are looked up one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from kgsynth.errors import VerifierError

MAX_LENGTH = 80
NAME = r"[A-Za-zµμΩΩÅå°℃℉%‰€£¥$_]+"
FACTOR = re.compile(rf"({NAME})(?:\^?\(?([+-]?[0-9])\)?)?")
WORDS = (
    (re.compile(r"\b(?:square|sq\.?) ([A-Za-z]+)"), r"\1^2"),
    (re.compile(r"\b(?:cubic|cu\.?) ([A-Za-z]+)"), r"\1^3"),
    (re.compile(r" squared\b"), "^2"),
    (re.compile(r" cubed\b"), "^3"),
    (re.compile(r"\bper\b"), "/"),
    (re.compile(r"(?:°|\bdeg(?:rees?)?) ?(?:C(?:elsius)?|celsius|centigrade)\b"), "degC"),
    (re.compile(r"(?:°|\bdeg(?:rees?)?) ?(?:F(?:ahrenheit)?|fahrenheit)\b"), "degF"),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"(?<=[A-Za-z])-(?=[A-Za-z])"), " "),  # newton-metres
    (re.compile(r"^1 ?/"), "/"),
)
ALIASES = {
    "℃": "degC", "Celsius": "degC", "℉": "degF", "Fahrenheit": "degF", "$": "USD", "US$": "USD", "€": "EUR", "£": "GBP",
    "¥": "JPY", "kmph": "kph", "Mbps": "Mbit_per_s", "kbps": "kbit_per_s", "Gbps": "Gbit_per_s", "bps": "bit_per_s", "kmh": "kph", "KG": "kg", "Kg": "kg", "kgs": "kg", "hz": "Hz",
}  # fmt: skip
DEFINITIONS = (
    "newton_meter = newton * meter = Nm",
    "USD = [currency_USD] = USD = dollar = dollars", "EUR = [currency_EUR] = EUR = euro = euros",
    "GBP = [currency_GBP] = GBP", "JPY = [currency_JPY] = JPY = yen", "CNY = [currency_CNY] = CNY = yuan",
    "CHF = [currency_CHF] = CHF", "INR = [currency_INR] = INR = rupee = rupees", "US_cent = USD / 100 = cents",
    "bit_per_s = bit / second", "kbit_per_s = 1000 bit / second", "Mbit_per_s = 1000000 bit / second",
    "Gbit_per_s = 1000000000 bit / second",
)  # fmt: skip
OFFSETS = {"degree_Celsius", "degree_Fahrenheit", "degree_Reaumur"}
TEMPERATURES = {*OFFSETS, "kelvin", "delta_degree_Celsius", "delta_degree_Fahrenheit"}
LETTERS = {"coulomb": "degree_Celsius", "farad": "degree_Fahrenheit"}
Unit = Mapping[str, int]  # name in the registry -> exponent


class UnitError(ValueError):
    """A text is no unit, or a quantity cannot be converted. The message is a reason code."""


@lru_cache(maxsize=1)
def registry() -> Any:
    """pint's units in exact fractions, and a few currencies. Raises VerifierError when pint is missing."""
    try:
        import pint
    except ImportError as error:
        raise VerifierError("number: units need pint: pip install 'kgsynth[verify]'") from error
    units: Any = pint.UnitRegistry(non_int_type=cast(Any, Fraction))
    for definition in DEFINITIONS:
        units.define(definition)
    return units


def parse(text: str) -> Unit:
    """The unit a text names; an empty one for no text. Raises UnitError: "not a number" when the text has not the form
    of a unit, "unknown unit" when it has, with a name that nobody defined."""
    if len(text) > MAX_LENGTH:
        raise UnitError("not a number")
    for pattern, plain in WORDS:
        text = pattern.sub(plain, text)
    above, slash, below = text.strip().partition("/")
    unit: dict[str, int] = {}
    for side, sign in ((above, 1), (below, -1)):
        for name, exponent in _factors(side, required=bool(slash) and sign < 0):
            unit[name] = unit.get(name, 0) + sign * exponent
    return _with_differences({name: exponent for name, exponent in unit.items() if exponent})


def convert(value: Fraction, unit: Unit, to: Unit) -> Fraction:
    """A value in another unit, exactly; temperatures with their offsets. Raises UnitError("wrong unit")."""
    units = registry()
    if len(to) == len(unit) == 1 and set(to) <= TEMPERATURES:
        unit = {LETTERS.get(name, name): exponent for name, exponent in unit.items()}  # "25 C"
    if any(name.startswith("delta_") for name in to):
        unit = _with_differences(unit, always=True)
    try:
        source, target = (units.UnitsContainer(dict(side)) for side in (unit, to))
        return Fraction(units.Quantity(value, units.Unit(source)).to(units.Unit(target)).magnitude)
    except (ArithmeticError, ValueError, TypeError, AttributeError) as error:  # pint's errors are of these
        raise UnitError("wrong unit") from error


def _factors(text: str, required: bool) -> list[tuple[str, int]]:
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1]
    parts = [part for part in re.split(r"[ *·⋅×/]", text) if part]
    found = [FACTOR.fullmatch(part) for part in parts]
    if required and not found:
        raise UnitError("not a number")
    if whole := _known("_".join(parts)) if len(parts) > 1 else "":
        return [(whole, 1)]  # light years, nautical miles
    return [_factor(match) for match in found]


def _factor(match: re.Match[str] | None) -> tuple[str, int]:
    if match is None:
        raise UnitError("not a number")
    name = ALIASES.get(match[1], match[1])
    known = _known(name) or (_known(name.lower()) if len(name) > 3 else "")
    if not known:
        raise UnitError("unknown unit")
    return known, int(match[2] or 1)


def _known(name: str) -> str:
    """The registry's own name of a unit, or ""."""
    if not re.fullmatch(NAME, name):
        return ""
    units = registry()
    try:
        powers = dict(units.parse_units(name)._units)
    except Exception:  # whatever pint's tokenizer thinks of it, it is not a unit
        return ""
    return next(iter(powers)) if list(powers.values()) == [1] else ""


def _with_differences(unit: dict[str, int] | Unit, always: bool = False) -> Unit:
    """In a product, and where a difference is asked for, degrees are differences: J/°C is J per delta_degC."""
    if len(unit) < 2 and set(unit.values()) <= {1} and not always:
        return unit
    return {f"delta_{name}" if name in OFFSETS else name: exponent for name, exponent in unit.items()}
