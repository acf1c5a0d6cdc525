"""Answers as texts, taken apart: frames around them, lists, chains of equalities, units, rows of a matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgsynth.verifiers.algebra.notation import CLOSERS, OPENERS, closing
from kgsynth.verifiers.algebra.rejection import Rejection

PHRASE = re.compile(
    r"^(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?(?:final\s+|correct\s+)?"
    r"(?:answers?(?:\s*(?:is|are|:|=))?|(?:results?|solutions?|solution set|values?)\s*(?:is|are|:|=))(?![a-zA-Z])\s*:?\s*",
    re.IGNORECASE,
)
NOTHING = re.compile(r"(?:there (?:is|are) )?no (?:real )?solutions?|(?:the )?empty set|none", re.IGNORECASE)
EVERYTHING = re.compile(r"all (?:real numbers|reals)|every real number", re.IGNORECASE)
BOXES = re.compile(r"\\f?boxed(?![a-zA-Z])\s*")
NAME = re.compile(r"(?:[a-zA-Z]|\\[a-zA-Z]+)(?:_\{[^{}]*\})?'?")
CALL = re.compile(r"[a-zA-Z](?:_\{[^{}]*\})?\s*(?:\^\{-1\})?\s*\(\s*[a-zA-Z](?:\s*,\s*[a-zA-Z])*\s*\)")
POINT = re.compile(rf"\(\s*{NAME.pattern}(?:\s*,\s*{NAME.pattern})+\s*\)")
UNITS = (
    "mm cm dm km m in ft yd mi inch inches foot feet yard yards mile miles meter meters metre metres centimeters centimetres "
    "kilometers kilometres mg g kg gram grams kilograms lb lbs oz tons s sec seconds second min minutes minute h hr hours hour day "
    "days weeks months years year L l ml mL liters litres N J W V A Hz Pa K C F mol rad radians units unit dollars dollar cents euros "
    "points people students mph km/h m/s m/s^2 kg/m^3 rpm"
).split()
PLAIN_UNIT = re.compile(
    rf"(?<=[\d)}}])\s*(?:(?:square|sq|cubic|cu)\.?\s+)?(?:{'|'.join(map(re.escape, sorted(UNITS, key=len, reverse=True)))})(?:\^\{{[23]\}})?$"
)
TEXT_UNIT = re.compile(r"\s*/?\s*\\text\s*\{((?:[^{}]|\^\{-?\d\})*)\}(?:\^\{-?[123]\})?$")
UNIT_WORDS = re.compile(r"\s*[A-Za-z]+(?:[ /*.-]+[A-Za-z]+|\^?\{?-?[123]\}?)*\.?\s*")
NO_UNIT = frozenset(
    "or and not no about approximately roughly hundred thousand million billion trillion dozen half double twice times plus minus to is "
    "if less more than at least most undefined infinity any all none nan true false e i ln log sin cos tan x y z".split()
)
PERCENT = re.compile(r"\s*(?:\\?%|(?:\\text\s*\{\s*)?(?:percentage|percent|per cent|pct)(?:\s*\})?)$")
DEGREES = re.compile(r"\s*(?:\^?\s*\{?\s*\\circ\s*\}?|(?:\\text\s*\{\s*)?\b(?:degrees?|deg)(?:\s*\})?)$")


def unframe(text: str, *, many: bool = False) -> str:
    """Without boxes, math delimiters, bold marks, a leading phrase and a full stop. Raises Rejection for two boxes unless
    `many` things are asked for."""
    text = _unbox(text.strip(), many)
    for mark in ("**", "`"):
        if text.startswith(mark) and text.endswith(mark) and len(text) > 2 * len(mark):
            text = text[len(mark) : -len(mark)]
    text = re.sub(r"\\\$|^[$€£](?=\s*[\d.])(?!.*\$)", "", text.strip())
    text = re.sub(r"(?<!\\)\$|(?<!\\)\\[()\[\]]", " ", text).strip()
    text = PHRASE.sub("", text).strip()
    text = re.sub(r"\\[;,] *$", "", text).rstrip()
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def _unbox(text: str, many: bool) -> str:
    """The text with what is in a box in its place; with `many`, in boxes."""
    boxes = list(BOXES.finditer(text))
    if len(boxes) > 1 and not many:
        raise Rejection("several answers")
    for box in reversed(boxes):
        end = closing(text, box.end()) if text[box.end() : box.end() + 1] == "{" else None
        if end is None:
            raise Rejection("unreadable")
        text = f"{text[: box.start()]} {text[box.end() + 1 : end]} {text[end + 1 :]}"
    return text.strip()


def join_thousands(text: str) -> str:
    """`1,000,000` and `1 000 000` as one number; a comma of decimals as a point, if it cannot be anything else."""
    text = re.sub(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])", lambda m: m[0].replace(",", ""), text)
    return re.sub(r"^([+-]?\s*\d+),(\d+)$", r"\1.\2", text)


def split(text: str, separators: str) -> list[str]:
    """The parts of a text between separators (a regular expression) that are in no bracket."""
    parts, start, depth, skip = [], 0, 0, 0
    pattern = re.compile(separators)
    for at, char in enumerate(text):
        if at < skip:
            continue
        if depth == 0 and (match := pattern.match(text, at)):
            parts.append(text[start:at].strip())
            start = skip = match.end()
            continue
        depth += (char in OPENERS) - (char in CLOSERS)
    return [*parts, text[start:].strip()]


LIST = r",|;|(?<![\\a-zA-Z])(?:or|and)(?![a-zA-Z])"
CHAIN = r"=|\\approx(?![a-zA-Z])"


def listed(text: str) -> list[str]:
    """The members of a list written with commas, semicolons, "and" or "or". Blank ones ("1, and 2") do not count."""
    if re.search(r",\s|;|and|or", text):  # other separators than a bare comma: that one groups digits
        text = re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)", lambda m: m[0].replace(",", ""), text)
    return [part for part in split(text, LIST) if part]


def chain(text: str) -> list[tuple[str, str]]:
    """(relation, side) of `a = b \\approx c`: ("", a), ("=", b), ("\\approx", c). Raises Rejection for a blank side."""
    sides = split(text, CHAIN)
    relations = ["", *(r"\approx" if match[0] != "=" else "=" for match in re.finditer(CHAIN, _outside(text)))]
    if not all(sides) or len(sides) != len(relations):
        raise Rejection("unreadable")
    return list(zip(relations, sides, strict=True))


def _outside(text: str) -> str:
    """The text with everything in brackets blanked."""
    shown, depth = [], 0
    for char in text:
        depth += char in OPENERS
        shown.append(" " if depth else char)
        depth -= char in CLOSERS
    return "".join(shown)


def is_name(text: str) -> bool:
    """A letter, perhaps with a subscript, a function of letters or a point of letters: what a value is assigned to."""
    return bool(NAME.fullmatch(text) or CALL.fullmatch(text) or POINT.fullmatch(text)) and text not in (
        r"\pi",
        r"\infty",
        r"\emptyset",
        "e",
        "i",
    )


def unit(text: str, *, plain: bool) -> tuple[str, str]:
    """(text without its unit, the unit): "%", "°", the unit's letters or "" for none. `plain`: outside of `\\text{}` too,
    where letters are no variables. Raises Rejection for words that are no unit because they change the value."""
    for pattern, mark in ((PERCENT, "%"), (DEGREES, "°")):
        if (match := pattern.search(text)) and match.start():
            return text[: match.start()].strip(), mark
    found = ""
    while match := TEXT_UNIT.search(text) or (PLAIN_UNIT.search(text) if plain else None):
        if match.re is TEXT_UNIT and (
            not UNIT_WORDS.fullmatch(match[1]) or NO_UNIT & set(re.findall("[a-z]+", match[1].lower()))
        ):
            raise Rejection("unreadable")
        text, found = text[: match.start()].strip(), match[0] + found
    return text, re.sub(r"\\text|[\s{}^.\\]", "", found)


def inside(text: str, pairs: Sequence[tuple[str, str]]) -> str | None:
    """What is between one of the pairs of brackets when it is around the whole text."""
    for opening, end in pairs:
        if text.startswith(opening) and text.endswith(end) and len(text) >= len(opening) + len(end):
            at = closing(text, len(opening) - 1) if opening[-1] in OPENERS else len(text) - 1
            if at == len(text) - 1:
                return text[len(opening) : len(text) - len(end)].strip()
    return None


MATRIX = re.compile(
    r"^(.*?)\\begin\s*\{([bpvBV]?matrix|array)\}(?:\s*\{[lcr| ]*\})?(.*)\\end\s*\{\2\}(\^\{T\}|\^\{\\top\})?$",
    re.DOTALL,
)


def rows(text: str) -> tuple[str, list[list[str]]]:
    """(factor before it, its entries) of a matrix in LaTeX or as nested lists. Raises Rejection when it is none."""
    text = text.strip()
    if text[:1] in ("[", "(") and text[1:].lstrip().startswith(r"\begin") and text[-1] in ")]":
        text = text[1:-1].strip()
    if match := MATRIX.match(text):
        if match[2] in ("vmatrix", "Vmatrix"):
            raise Rejection("other kind")  # a determinant
        body = [
            [cell.strip() for cell in row.split("&")]
            for row in re.split(r"\\\\(?:\s*\[[^\]]*\])?", match[3])
            if row.strip()
        ]
        body = [list(column) for column in zip(*body, strict=True)] if match[4] else body
        return match[1].strip().removesuffix(r"\cdot").strip(), body
    body_text = inside(text, [("[", "]")])
    if body_text is None or not body_text.startswith("["):
        raise Rejection("other kind")
    lists = [inside(row, [("[", "]")]) for row in split(body_text, ",")]
    if None in lists:
        raise Rejection("unreadable")
    return "", [split(row or "", ",") for row in lists]
