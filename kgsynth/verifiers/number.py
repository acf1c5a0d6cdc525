"""`number`: one number, with a unit where the task asks for one, within a stated tolerance.

How a number may be written (everything is read in exact fractions):

    12, -12, +12, −12, 12., .5, 1.5e3, 1.5 × 10^3, 1.5·10³, 10^-3, 3/4, 1 3/4, ½, \\frac{3}{4}, 25 %, 2 million
    1,234,567.8   1 234 567   1_234   1'234   1{,}234   1\\,234      groups of three, the first without a leading zero
    1.234.567   1.234,5   1,5   0,234                                a decimal comma where nothing else makes sense

"1,234" is 1234 and "1.234" is 1 + 234/1000; with the parameter "decimal": "," it is the other way round. A variable
("v = 3 m/s") and whatever `answer.unwrap` takes off may stand around. Ranges, bounds, "about", ±, NaN, infinities,
words, other bases and expressions are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register, units
from kgsynth.verifiers.answer import extract, unwrap
from kgsynth.verifiers.params import is_number, one_of, only_known, real, texts, whole
from kgsynth.verifiers.text import fold
from kgsynth.verifiers.units import Unit, UnitError

MAX_CHARACTERS = 300
NOTATION = (
    (re.compile(r"\^\s?\{?\s?\\circ\s?\}?|\\degree\b|\\textdegree\b"), "°"),
    (re.compile(r"\^\s?\{\s?([+-]?[0-9]{1,4})\s?\}"), r"^\1"),
    (re.compile(r"\\[dt]?frac\s{0,4}\{([^{}]{1,60})\}\s{0,4}\{([^{}]{1,60})\}"), r" \1/\2"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\[,;:! ]|(?<=[0-9A-Za-z])~(?=[0-9A-Za-z])"), " "),
    (re.compile(r"\\([%$])"), r"\1"),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\\mu\s?"), "µ"),
    (re.compile(r"\\Omega\b"), "Ω"),
    (re.compile(r"(?<=[0-9]) 1\s?/\s?(?=[A-Za-z])"), " /"),  # 50 1/s
)
VARIABLE = re.compile(r"[A-Za-zΑ-Ωα-ω](?:_\{?\w{1,12}\}?)?\s?=\s?")
HEAD = re.compile(r"([+-]?)\s?((?:US\$|[$€£¥]|(?:USD|EUR|GBP|JPY|CNY|CHF|INR)\b)?)\s?([+-]?)\s?")
FRACTION = re.compile(r"(?:([0-9]{1,50})\s)?([0-9]{1,50})\s?/\s?([0-9]{1,50})(?![0-9.,])")
DIGITS = re.compile(r"[0-9.,_' ]*[0-9]\.?")
TEN = r"10\s?(?:\^|\*\*)\s?\(?([+-]?\s?[0-9]{1,3})\)?(?![0-9])"
POWER = re.compile(TEN)
EXPONENT = re.compile(rf"\s?[x×*·⋅]\s?{TEN}|[eE]([+-]?[0-9]{{1,3}})(?![0-9])")
SCALE = re.compile(r"\s?(thousand|million|billion|trillion)\b")
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
HUNDREDTH, THOUSANDTH = Fraction(1, 100), Fraction(1, 1000)
PARTS = {"": 1, "%": HUNDREDTH, "percent": HUNDREDTH, "per cent": HUNDREDTH, "‰": THOUSANDTH}  # no units, only a scale


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a task asks for: a value in `unit` and how far off an answer may be, in the same unit."""

    value: Fraction
    tolerance: Fraction
    unit: Unit = field(default_factory=dict)
    unit_use: str = "required"  # or "optional": a bare number is in `unit`; or "forbidden": only a bare number
    decimal: str = "."
    nouns: tuple[str, ...] = ()


@register("number")
def number(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"value": "9.81", "unit": "m/s^2", "unit_use": "required", "absolute": 0, "relative": 0.01, "figures": 3,
    "decimal": ".", "nouns": ["edge", "edges"]}, all but "value" optional.

    "value" is a number or its text ("1/3"). Units convert: 981 cm/s² is right. Without tolerance the value is exact;
    "absolute" (in `unit`) and "relative" bound the difference, "figures": n allows half a unit of the n-th significant
    figure; the largest counts. "nouns" may follow the number ("12 edges"). Raises VerifierError for other params and
    for a tolerance within which 0, the commonest guess, is right.
    """
    asked = wanted(params)
    given, missing = extract(answer)
    reason = missing or judge(given, asked)
    return Verdict(score=float(reason == "right"), reason=reason)


def judge(text: str, asked: Wanted) -> str:
    """ "right", "wrong", "not a number", "unknown unit", "no unit", "unit not asked for" or "wrong unit"."""
    try:
        value, unit = read(text, asked.decimal)
        value = _in_unit(value, "" if unit.casefold() in asked.nouns else unit, asked)
    except UnitError as error:
        return str(error)
    return "right" if abs(value - asked.value) <= asked.tolerance else "wrong"


def _in_unit(value: Fraction, unit: str, asked: Wanted) -> Fraction:
    """The value in the unit that the task asks for. Raises UnitError."""
    if not asked.unit and unit in PARTS:
        return value * PARTS[unit]
    if unit and (not asked.unit or asked.unit_use == "forbidden"):
        raise UnitError("unit not asked for" if units.FACTOR.match(unit) else "not a number")
    if not unit and asked.unit_use == "required":
        raise UnitError("no unit")
    return units.convert(value, units.parse(unit), asked.unit) if unit else value


def read(text: str, decimal: str = ".") -> tuple[Fraction, str]:
    """The value and the unit, as text, that an answer writes. Raises UnitError("not a number")."""
    text = _plain(text)
    head = HEAD.match(text)
    if len(text) > MAX_CHARACTERS or not head or (head[1] and head[3]):
        raise UnitError("not a number")
    value, end = _magnitude(text, head.end(), decimal)
    if scale := SCALE.match(text, end):
        value, end = value * SCALES[scale[1]], scale.end()
    return (-value if "-" in head[1] + head[3] else value), f"{head[2]} {text[end:]}".strip()


def _plain(text: str) -> str:
    """Without LaTeX, typographic characters, what only dresses it up, and a variable before it."""
    if len(text) > 10 * MAX_CHARACTERS:
        raise UnitError("not a number")
    text = unwrap(text)
    for pattern, plain in NOTATION:
        text = pattern.sub(plain, text)
    text = " ".join(fold(text).split())
    return VARIABLE.sub("", text, count=1) if VARIABLE.match(text) else text


def _magnitude(text: str, start: int, decimal: str) -> tuple[Fraction, int]:
    """The value without sign of the number that starts there, and where it ends."""
    if power := POWER.match(text, start):
        return _ten_to(power[1]), power.end()
    if (parts := FRACTION.match(text, start)) and int(parts[3]):
        return int(parts[1] or 0) + Fraction(int(parts[2]), int(parts[3])), parts.end()
    digits = DIGITS.match(text, start)
    if not digits or parts:
        raise UnitError("not a number")
    value, end = _decimal(digits[0].strip(), decimal), digits.end()
    if exponent := EXPONENT.match(text, end):
        value, end = value * _ten_to(exponent[1] or exponent[2]), exponent.end()
    return value, end


def _ten_to(exponent: str) -> Fraction:
    return Fraction(10) ** int(exponent.replace(" ", ""))


def _decimal(digits: str, mark: str) -> Fraction:
    """Digits with separators, `mark` being the decimal sign unless only the other one makes sense."""
    other = "," if mark == "." else "."
    m, o = re.escape(mark), re.escape(other)
    group = r"[1-9][0-9]{{0,2}}(?:([{0}])[0-9]{{3}})(?:\1[0-9]{{3}})*"
    usual = rf"(?:[0-9]+|{group.format(' _' + chr(39) + o)})(?:{m}[0-9]*)?|{m}[0-9]+"
    swapped = rf"(?:[0-9]+|{group.format(' _' + chr(39) + m)}){o}[0-9]+|[1-9][0-9]{{0,2}}(?:{m}[0-9]{{3}}){{2,}}"
    sign = mark if re.fullmatch(usual, digits) else other if re.fullmatch(swapped, digits) else ""
    if not sign:
        raise UnitError("not a number")
    whole, _, fraction = digits.partition(sign) if digits.count(sign) == 1 else (digits, "", "")
    return Fraction(f"{re.sub('[^0-9]', '', whole) or 0}.{fraction or 0}")


def wanted(params: Mapping[str, Any]) -> Wanted:
    """The parameters, checked. Raises VerifierError."""
    known = ("value", "unit", "unit_use", "absolute", "relative", "figures", "decimal", "nouns")
    only_known("number", params, known)
    decimal = one_of("number", params, "decimal", (".", ","))
    unit_use = one_of("number", params, "unit_use", ("required", "optional", "forbidden"))
    value = _value(params.get("value"))
    tolerance = max(_bound(params, "absolute"), _bound(params, "relative") * abs(value), _figures(params, value))
    if value and tolerance >= abs(value):
        raise VerifierError(f"number: 0 is within the tolerance {float(tolerance):g} of {params['value']!r}; narrow it")
    return Wanted(
        value=value,
        tolerance=tolerance,
        unit=_unit(params.get("unit", "")),
        unit_use=unit_use,
        decimal=decimal,
        nouns=tuple(noun.casefold() for noun in texts("number", params, "nouns")),
    )


def _value(value: Any) -> Fraction:
    try:
        if not is_number(value) and not isinstance(value, str):
            raise ValueError("it is none")
        amount, unit = read(value if isinstance(value, str) else repr(value))
    except (UnitError, ValueError) as error:
        raise VerifierError(
            f"number: 'value' must be a number or its text, not {repr(value)[:100]}: {error}"
        ) from error
    if unit:
        raise VerifierError(f"number: the unit of 'value' {value!r} belongs into 'unit'")
    return amount


def _unit(unit: Any) -> Unit:
    if unit in ("", None):
        return {}
    try:
        parsed = units.parse(unit) if isinstance(unit, str) else {}
    except UnitError as error:
        raise VerifierError(f"number: 'unit' must be one that pint knows, not {unit!r}: {error}") from error
    if not parsed:
        raise VerifierError(f"number: 'unit' must be a unit such as 'm/s^2', not {unit!r}")
    return parsed


def _bound(params: Mapping[str, Any], name: str) -> Fraction:
    return Fraction(repr(real("number", params, name, 0, 0)))


def _figures(params: Mapping[str, Any], value: Fraction) -> Fraction:
    """Half a unit of the last significant figure."""
    if params.get("figures") is None:
        return Fraction(0)
    figures = whole("number", params, "figures", None, 1, 30)
    if not value:
        raise VerifierError("number: 'figures' are of a value other than 0; give 'absolute' instead")
    leading = (Decimal(abs(value.numerator)) / Decimal(value.denominator)).adjusted()
    return Fraction(10) ** (leading - figures + 1) / 2
