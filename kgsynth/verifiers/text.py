"""`text`: a short answer that equals one of several spellings, up to case, white space and quotes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract

QUOTES = ('""', "''", "``", "“”", "‘’", "«»", "„“")


@register("text")
def text(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"answers": ["canonical", "alias", ...]}. Equality of normalised texts, not similarity."""
    answers = params.get("answers")
    if (
        not isinstance(answers, (list, tuple))
        or not answers
        or not all(isinstance(a, str) and a.strip() for a in answers)
    ):
        raise VerifierError(f"text: 'answers' must be a list of non-blank strings, not {answers!r}")
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    right = normalise(given) in map(normalise, answers)
    return Verdict(score=float(right), reason="right" if right else "wrong")


def normalise(spelling: str) -> str:
    """Caseless Unicode form (NFC of the folded NFC), white space collapsed, then peeled until nothing comes off:
    a pair of quotes or backticks around it, a full stop after it. Never peeled to nothing; "..." stays.

    >>> normalise('  "Binary  Search". ')
    'binary search'
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", spelling).casefold())
    peeled = " ".join(folded.split())
    while (shorter := _peel(peeled)) and shorter != peeled:
        peeled = shorter
    return peeled


def _peel(spelling: str) -> str:
    if len(spelling) > 2 and spelling[0] + spelling[-1] in QUOTES:
        return spelling[1:-1].strip()
    return spelling[:-1].strip() if spelling.endswith(".") and not spelling.endswith("..") else spelling
