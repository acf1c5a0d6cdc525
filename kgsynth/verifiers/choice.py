"""`choice`: one letter out of a few."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract

LETTER = re.compile(r"\(([A-Za-z])\)\.?|([A-Za-z])[.):]?")


@register("choice")
def choice(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"correct": "B", "options": ["A", "B", "C", "D"]}. "(B)", "B.", "B)" and "b" are B; "A or B" is nothing."""
    correct, options = params.get("correct"), params.get("options")
    if not isinstance(options, (list, tuple)) or correct not in options:
        raise VerifierError(
            f"choice: 'correct' must be one of the letters in 'options', not {correct!r} in {options!r}"
        )
    text, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    match = LETTER.fullmatch(text.strip())
    letter = (match[1] or match[2]).upper() if match else ""
    if letter not in options:
        return Verdict(score=0.0, reason="not an option")
    return Verdict(score=float(letter == correct), reason="right" if letter == correct else "wrong")
