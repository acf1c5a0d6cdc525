"""What of a text is compared: its content without the words on how to reply, cut into words, units and shingles.

A shingle (Broder 1997, "On the resemblance and containment of documents") is a run of three tokens inside one unit: a
sentence or a line. So shingles do not change when sentences, lines of code or options change places. A text is kept as
the 64-bit hashes of its shingles, which are the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"  # scripts in which a word has no space around it
WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")
TOKEN = re.compile(  # words, literals without a word, and the symbols that mean something in code
    rf"[{_SINGLE}]|[^\W{_SINGLE}]+|'[^\w\s']{{0,4}}'|\"[^\w\s\"]{{0,4}}\"|[^\w\s.,;:'\"`?!‘’“”]"
)
NUMBER = re.compile(r"(?<![^\W\d])\d+(?:[.,]\d+)*(?![^\W\d])")  # not the 256 of sha256
NUMBER_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    r"|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand)\b"
)
_TELLING = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\w+(?:\.\w+)+|\w*[\d_]\w*|[A-Za-z][a-z]+[A-Z]\w*""")
_UNIT = re.compile(r"\n+|(?<=[.?!])\s+(?=[^\s])|\s+(?=\(?[a-h][.)]\s)")  # also before an option in a line of them
_LABEL = re.compile(r"^\s*(?:>>>|\.\.\.|[-*+•#]+|\(?(?:[A-Za-z]|\d{1,2})[.):])(?:\s+|$)")
_REPLY = re.compile(r"[^.?!\n]*</?answer>[^.?!\n]*[.?!]?", re.IGNORECASE)
_WEIGHTS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)  # odd: they lose no bit
_EDGE = "\x02"  # before and after a unit


def content(prompt: str) -> str:
    """A prompt without the sentences on how to reply, which name the tags of an answer."""
    return _REPLY.sub("", prompt).strip()


def units(text: str) -> Iterator[str]:
    """Sentences and lines in lower case, without bullets, prompts of a session and letters of options."""
    for part in _UNIT.split(text.casefold()):
        if unit := _LABEL.sub("", part, count=1).strip():
            yield unit


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def telling(text: str) -> frozenset[str]:
    """Numbers, literals and names of code: what a rewording keeps, and no embedding tells apart."""
    return frozenset(_TELLING.findall(text))


def numberless(text: str) -> str:
    """Every number, also one of two and more that is spelled out, as 0. The text must be in lower case."""
    return NUMBER_WORDS.sub("0", NUMBER.sub("0", text))


def shingles(text: str, *, numbers: bool = True) -> Hashes:
    """Hashes of every three tokens in a row of every unit, sorted, each once. Without numbers they are all the same one."""
    found = [_three(TOKEN.findall(unit if numbers else numberless(unit))) for unit in units(text)]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.uint64)


def stems(text: str) -> Hashes:
    """Hashes of its words of three letters and more, by their first six, sorted, each once."""
    return np.unique(np.array([word_hash(w[:6]) for w in words(text) if len(w) > 2 and not w.isdigit()], np.uint64))


def _three(tokens: Sequence[str]) -> Hashes:
    if not tokens:
        return np.zeros(0, np.uint64)
    return runs(np.array([word_hash(t) for t in (_EDGE, *tokens, _EDGE)], np.uint64), 3)


def runs(hashes: Hashes, n: int) -> Hashes:
    """A hash of every n words in a row, in order; of all of them where there are fewer."""
    n = min(n, len(hashes))
    total = np.zeros(len(hashes) - n + 1 if n else 0, np.uint64)
    for at in range(n):
        total = total * _WEIGHTS[0] + (hashes[at : len(hashes) - n + 1 + at] ^ _WEIGHTS[at % 3])
    return total


@lru_cache(maxsize=1 << 18)
def word_hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def word_hashes(text: str) -> Hashes:
    """One hash a word, in order."""
    return np.array([word_hash(word) for word in words(text)], np.uint64)
