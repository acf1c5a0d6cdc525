"""Whether two printed texts are the same, in one of four ways. White space at the end of a line, and blank lines at the
end of the text, never count.

    exact     line by line
    tokens    word by word; how they are spread over lines does not count
    lines     the same lines in any order
    numbers   as tokens, but numbers may differ by `tolerance`, absolute or relative to the expected one; two integers
              may not differ, NaN is never a number
"""

from __future__ import annotations

import math
import re
from collections import Counter

COMPARE = ("exact", "tokens", "lines", "numbers")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
LONGEST = 400  # characters of a number; what is longer is compared as text


def printed_same(got: str, wanted: str, compare: str, tolerance: float) -> bool:
    """`compare` is one of COMPARE. Linear in the length of the texts, whatever is in them."""
    if compare == "exact":
        return lines_of(got) == lines_of(wanted)
    if compare == "lines":
        return Counter(filter(None, lines_of(got))) == Counter(filter(None, lines_of(wanted)))
    mine, theirs = got.split(), wanted.split()
    if compare == "tokens":
        return mine == theirs
    return len(mine) == len(theirs) and all(_near(a, b, tolerance) for a, b in zip(mine, theirs, strict=True))


def lines_of(text: str) -> list[str]:
    """Its lines without white space at their ends, and without blank ones at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")] if text.strip() else []


def _near(got: str, wanted: str, tolerance: float) -> bool:
    if got == wanted:
        return True
    if max(len(got), len(wanted)) > LONGEST or not (NUMBER.fullmatch(got) and NUMBER.fullmatch(wanted)):
        return False
    if INTEGER.fullmatch(got) and INTEGER.fullmatch(wanted):
        return int(got) == int(wanted)
    a, b = float(got), float(wanted)
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(1.0, abs(b))
