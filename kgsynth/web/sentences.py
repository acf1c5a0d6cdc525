"""Where a sentence ends: enough for documentation prose (abbreviations, dotted names, versions, brackets)."""

from __future__ import annotations

import re

_END = re.compile(r"[.!?][)\"'”’`*]*(?=\s+[A-Z0-9“\"'(`*\[]|\s*$)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|a\.k\.a|cf|etc|vs|approx|resp|incl|Dr|Mr|Mrs|St|No|Fig|Sec|Vol|pp|al)|\b[A-Z]|^\s*\d+)\.$"
)


def first_sentence(text: str) -> str:
    """The first sentence of the first paragraph, whitespace collapsed; all of the paragraph when it has no end.

    >>> first_sentence("Push an item, e.g. a tuple, onto\\nthe heap. Then wait.")
    'Push an item, e.g. a tuple, onto the heap.'
    """
    paragraph = " ".join(text.strip().split("\n\n", 1)[0].split())
    return paragraph[: sentence_end(paragraph)]


def sentence_end(text: str, start: int = 0) -> int:
    """Offset just behind the sentence that begins at `start`; len(text) when no end is found."""
    for match in _END.finditer(text, start):
        if not _ABBREVIATION.search(text, max(start, match.start() - 12), match.start() + 1):
            return match.end()
    return len(text)
