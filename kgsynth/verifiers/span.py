"""`span`: a piece of a given source text, by its words or by its offsets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract, unwrap
from kgsynth.verifiers.params import one_of, only_known, real
from kgsynth.verifiers.text import normalise

OFFSETS = re.compile(r"([0-9]{1,9})\s?(?:,|:|;|-|–|\.\.|\sto\s)\s?([0-9]{1,9})")
WORD = re.compile(r"\w+|[^\w\s]")
Span = tuple[int, int]


@register("span")
def span(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"source": "...", "spans": [[12, 27], [40, 55]], "by": "text", "partial": "no", "least": 0.5}.

    `spans` are the accepted ones, each [start, end) in characters of `source`. By "text" the words are compared as in
    `text`: white space and case do not count, and where they occur twice either place is meant. By "offsets" the answer
    is "12-27", "[12, 27]" or {"start": 12, "end": 27}. "partial": "f1" pays the F1 of the longest run of words (or of
    the characters) shared with the best span (as SQuAD, Rajpurkar et al. 2016, but contiguous), when at least `least`.
    Raises VerifierError for other params.
    """
    source, spans = _checked(params)
    by_offsets = one_of("span", params, "by", ("text", "offsets")) == "offsets"
    least = 1.0
    if one_of("span", params, "partial", ("no", "f1")) == "f1":
        least = _least(params, max(_share(source, source[start:end]) for start, end in spans))
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    right, f1, reason = (_by_offsets if by_offsets else _by_text)(given, source, spans, least)
    if right:
        return Verdict(score=1.0, reason="right")
    return Verdict(score=f1, reason="partly right") if least <= f1 < 1 else Verdict(score=0.0, reason=reason)


def _by_text(given: str, source: str, spans: Sequence[Span], least: float) -> tuple[bool, float, str]:
    given = normalise(given)
    texts = [normalise(source[start:end]) for start, end in spans]
    if given in texts:
        return True, 1.0, "right"
    if given not in normalise(source):
        return False, 0.0, "not in the source"
    return False, max(_shared_words(given, text) for text in texts) if least < 1 else 0.0, "wrong"


def _by_offsets(given: str, source: str, spans: Sequence[Span], least: float) -> tuple[bool, float, str]:
    asked = _offsets(given)
    if not asked or not asked[0] < asked[1] <= len(source):
        return False, 0.0, "no span"
    return asked in spans, max(_shared_characters(asked, one) for one in spans), "wrong"


def _offsets(text: str) -> Span | None:
    text = unwrap(text)
    try:
        if match := OFFSETS.fullmatch(text.strip("[]() ")):
            return int(match[1]), int(match[2])
        row = json.loads(text) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return None
    start, end = (row.get(key) for key in ("start", "end"))
    return (start, end) if len(row) == 2 and type(start) is int and type(end) is int and start >= 0 else None


def _shared_words(a: str, b: str) -> float:
    left, right = WORD.findall(a), WORD.findall(b)
    if not left or not right:
        return 0.0
    run = SequenceMatcher(None, left, right, autojunk=False).find_longest_match().size
    return 2 * run / (len(left) + len(right))


def _shared_characters(a: Span, b: Span) -> float:
    return 2 * max(0, min(a[1], b[1]) - max(a[0], b[0])) / (a[1] - a[0] + b[1] - b[0])


def _checked(params: Mapping[str, Any]) -> tuple[str, list[Span]]:
    only_known("span", params, ("source", "spans", "by", "partial", "least"))
    source, spans = params.get("source"), params.get("spans")
    if not isinstance(source, str) or not isinstance(spans, (list, tuple)) or not spans:
        raise VerifierError("span: give 'source', a text, and 'spans', a list of [start, end)")
    for one in spans:
        ends = list(one) if isinstance(one, (list, tuple)) else []
        if [type(end) for end in ends] != [int, int] or not 0 <= ends[0] < ends[1] <= len(source):
            raise VerifierError(f"span: {one!r} is no [start, end) within the {len(source)} characters of 'source'")
        if not source[ends[0] : ends[1]].strip() or ends[1] - ends[0] == len(source):
            raise VerifierError(f"span: {one!r} is blank or all of 'source': there is nothing to find")
    return source, [(start, end) for start, end in spans]


def _share(source: str, piece: str) -> float:
    """How much of the source a piece is, in characters or in words, whichever is more."""
    return max(len(piece) / len(source), len(WORD.findall(piece)) / len(WORD.findall(source)))


def _least(params: Mapping[str, Any], share: float) -> float:
    """The least F1 that is paid: more than the whole source, sent back, would have for a span of this share of it."""
    least, whole = real("span", params, "least", 0.5, 0.1, 1, excluded=1), 2 * share / (1 + share)
    if whole >= least:
        raise VerifierError(f"span: the whole source has an F1 of {whole:.2f} and would be paid; raise 'least' {least}")
    return float(least)
