"""The words of two rendered pages against each other: text, place, size and colour.

After Design2Code (Si, Zhang, Li, Yang, Liu, Yang, arXiv 2403.03163), which matches blocks of text and scores them for text,
position and colour. Here the unit is the word, so that markup that cuts a sentence differently does not count, and
places come from the browser's layout instead of optical recognition. Invisible text is for the pixels to find out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from skimage.color import deltaE_ciede2000, rgb2lab

NEAR, FAR = 8.0, 40.0  # pixels between centres: fully right, fully wrong
ALIKE, UNLIKE = 8.0, 25.0  # CIEDE2000, likewise
FONT_ALIKE, FONT_UNLIKE = 1.1, 1.5  # ratio of font sizes, likewise
TOUCHING = 0.5  # pixels between the halves of a word
MAX_WORDS = 3000


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of a page. Lengths in CSS pixels."""

    text: str
    left: float  # along a line by its share of the characters
    right: float
    y: float  # of its centre
    size: float  # of the font
    colour: tuple[float, float, float] | None  # sRGB in [0, 1]; None: not a plain colour


def words(lines: Sequence[Mapping[str, Any]]) -> list[Word]:
    """The visible words of the lines that the renderer reports ({"text", "box": [x, y, w, h], "colour", "size"})."""
    found: list[Word] = []
    for line in lines:
        for word in _of_line(line):
            if found and _continues(found[-1], word):
                found[-1] = _joined(found[-1], word)
            else:
                found.append(word)
    return found


def wrong_words(mine: Sequence[Word], theirs: Sequence[Word]) -> float:
    """How many words are missing, too many or wrong in the best pairing of equal words; a word may be partly wrong."""
    by_text: dict[str, tuple[list[Word], list[Word]]] = defaultdict(lambda: ([], []))
    for side, page in enumerate((mine, theirs)):
        for word in page:
            by_text[word.text][side].append(word)
    return max(len(mine), len(theirs)) - sum(_best(a, b) for a, b in by_text.values() if a and b)


def _best(mine: Sequence[Word], theirs: Sequence[Word]) -> float:
    quality = np.array([[_quality(a, b) for b in theirs] for a in mine])
    rows, columns = linear_sum_assignment(quality, maximize=True)
    return float(quality[rows, columns].sum())


def _quality(a: Word, b: Word) -> float:
    place = _fade(max(abs(a.left + a.right - b.left - b.right) / 2, abs(a.y - b.y)), NEAR, FAR)
    size = _fade(max(a.size, b.size) / max(min(a.size, b.size), 1e-3), FONT_ALIKE, FONT_UNLIKE)
    return place * size * _fade(_apart(a.colour, b.colour), ALIKE, UNLIKE)


def _apart(a: tuple[float, float, float] | None, b: tuple[float, float, float] | None) -> float:
    if a is None or b is None or a == b:
        return 0.0
    return float(deltaE_ciede2000(rgb2lab(np.array(a, float)), rgb2lab(np.array(b, float))))


def _fade(value: float, good: float, bad: float) -> float:
    return min(1.0, max(0.0, (bad - value) / (bad - good)))


def _of_line(line: Mapping[str, Any]) -> Iterator[Word]:
    text, (x, y, width, height) = line["text"], line["box"]
    colour, visible = _parsed(line["colour"])
    if not visible or not text or width <= 0 or height <= 0:
        return
    for found in re.finditer(r"\S+", text):
        left, right = (x + width * at / len(text) for at in found.span())
        yield Word(text=found.group(), left=left, right=right, y=y + height / 2, size=line["size"], colour=colour)


def _continues(word: Word, following: Word) -> bool:
    """Whether markup cut a word in two: they touch, on one line."""
    return abs(following.left - word.right) < TOUCHING and abs(following.y - word.y) < word.size / 2


def _joined(word: Word, following: Word) -> Word:
    return replace(word, text=word.text + following.text, right=following.right)


def _parsed(colour: str) -> tuple[tuple[float, float, float] | None, bool]:
    """(sRGB or None, whether it is visible) of a computed CSS colour."""
    found = re.fullmatch(r"rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)", colour)
    if not found:
        return None, True
    red, green, blue = (int(part) / 255 for part in found.groups()[:3])
    return (red, green, blue), found.group(4) is None or float(found.group(4)) > 0
