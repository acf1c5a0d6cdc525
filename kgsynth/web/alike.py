"""Near-duplicate pages: mirrors, print versions and copies under another header are dropped before anyone pays to read them.

Two pages are alike when their sets of five-word shingles overlap by `threshold` or more (Jaccard; Broder 1997, "On the
resemblance and containment of documents"). Exact sets, no sketches: a search brings a handful of pages, not millions.
Boilerplate that many pages share costs little, because a shingle with one own word in it is an own shingle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgsynth.web import Page

THRESHOLD = 0.7
WORDS = 5  # in a shingle
_SINGLE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"  # scripts in which a word has no space around it
_WORD = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+")


def unlike(pages: Sequence[Page], threshold: float = THRESHOLD) -> tuple[list[Page], list[tuple[Page, Page, float]]]:
    """(kept, dropped): of pages that are alike the first stays. Order is kept.

    `dropped` has (the page, the kept page it is most like, their Jaccard similarity). Raises ValueError unless
    0 < threshold <= 1.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, not {threshold}")
    kept: list[tuple[Page, frozenset[int]]] = []
    dropped = []
    for page in pages:
        own = shingles(page.source.text)
        nearest, most = max(((other, jaccard(own, theirs)) for other, theirs in kept), default=(page, 0.0), key=_second)
        if most >= threshold:
            dropped.append((page, nearest, most))
        else:
            kept.append((page, own))
    return [page for page, _ in kept], dropped


def shingles(text: str) -> frozenset[int]:
    """Hashes (64 bits, of this process) of every run of five words, case and punctuation aside; one of a shorter text."""
    words = _WORD.findall(text.lower())
    if len(words) <= WORDS:
        return frozenset([hash(tuple(words))]) if words else frozenset()
    return frozenset(map(hash, zip(*(words[at:] for at in range(WORDS)), strict=False)))


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Shared shingles as a part of all; 0 when one has none."""
    if not one or not other:
        return 0.0
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def _second(pair: tuple[Page, float]) -> float:
    return pair[1]
