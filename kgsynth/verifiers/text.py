"""`text`: a short answer that equals one of several spellings.

Two texts are the same when they read the same: case, white space, Unicode form, typographic quotes, dashes and
apostrophes, full-width letters, ligatures, invisible characters, and what `answer.unwrap` takes off do not count.
Letters of another alphabet that only look alike (homoglyphs), bidirectional overrides and every other word do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract, unwrap
from kgsynth.verifiers.params import one_of, only_known, spellings

INVISIBLE = "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
ALIKE = str.maketrans(
    {
        **dict.fromkeys(INVISIBLE),
        **dict.fromkeys("‘’‚‛′ʼ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−﹘﹣", "-"),
        **dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎", "0123456789+-=()", strict=True)),
        "…": "...",
        "⁄": "/",
    }
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ", "0123456789+-()ni")
RAISED_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿⁱ]+")
VULGAR = re.compile("([0-9]?)([¼-¾⅐-⅞↉])")
COMPATIBLE = re.compile(r"[\u00a0\u2000-\u200a\u202f\u3000\ufb00-\ufb06\uff01-\uffee\U0001d400-\U0001d7ff]")
ARTICLE = re.compile(r"(?:an?|the) (?=.)")


@register("text")
def text(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"answers": ["canonical", "alias", ...], "mode": "normalised", "articles": True}.

    Equality, not similarity. "mode": "exact" takes the very characters, up to white space around them. "articles":
    False ignores a, an and the before the answer. Raises VerifierError for other params.
    """
    only_known("text", params, ("answers", "mode", "articles"))
    answers = spellings("text", "answers", params.get("answers"))
    mode = one_of("text", params, "mode", ("normalised", "exact"))
    articles = one_of("text", params, "articles", (True, False))
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    form = str.strip if mode == "exact" else normalise if articles else without_article
    right = form(given) in map(form, answers)
    return Verdict(score=float(right), reason="right" if right else "wrong")


def normalise(spelling: str) -> str:
    """Caseless and folded, white space collapsed, unwrapped, until nothing changes. Never made empty; "..." stays.

    >>> normalise('  "Binary  Search". ')
    'binary search'
    """
    seen, form = "", spelling.strip()
    while form and form != seen:
        seen, form = form, unwrap(" ".join(fold(form).casefold().split()))
    return seen


def without_article(spelling: str) -> str:
    """`normalise`, and no a, an or the in front."""
    return ARTICLE.sub("", normalise(spelling), count=1)


def fold(spelling: str) -> str:
    """The characters in their plainest form, in NFC, case kept: of NFKC only what does not change how a text reads.

    ½ becomes 1/2, ² becomes ^2 (NFKC would make x² into x2), ₂ becomes 2, 𝑥 and ｘ become x.
    """
    if spelling.isascii():
        return spelling
    folded = COMPATIBLE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), spelling)
    folded = RAISED_RUN.sub(lambda run: "^" + run[0].translate(RAISED), folded)
    folded = VULGAR.sub(_fraction, folded).translate(ALIKE)
    return unicodedata.normalize("NFC", folded) if folded.strip() else spelling


def _fraction(found: re.Match[str]) -> str:
    return f"{found[1]} {unicodedata.normalize('NFKC', found[2])}".lstrip()
