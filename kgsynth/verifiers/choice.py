"""`choice`: one letter out of a few, or several where the task says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.verifiers import Verdict, register
from kgsynth.verifiers.answer import extract, unwrap
from kgsynth.verifiers.params import only_known
from kgsynth.verifiers.text import normalise

LABEL = re.compile(r"[A-Za-z0-9]{1,3}", re.ASCII)
PICK = re.compile(
    r"(?:(?:option|choice|answer)\s{1,4}|[-*•]\s{1,4})?(\*{0,2})"
    r"(?:\(\s?([a-z0-9]{1,3})\s?\)|\[\s?([a-z0-9]{1,3})\s?\]|([a-z0-9]{1,3}))[.):]?\1[.:)]?(?:\s{1,4}(?:[-–—:=]\s)?(.+))?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
AND = re.compile(r",\s{0,4}and\s|[,;&]|\sand\s", re.IGNORECASE)


@register("choice")
def choice(answer: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
    """params: {"correct": "B", "options": ["A", "B", "C", "D"], "texts": {"A": "a list", "B": "a heap", ...}}.

    "b", "(B)", "B.", "**B**", "Option B", "\\boxed{B}" are B, with "texts" also "B) a heap", "B (a heap)" and "a heap". "A or B",
    "not B" and "B) a list" are nothing. A list as "correct" asks for that set: "A, C", "C and A", "AC", one a line.
    Raises VerifierError when `correct` is not among `options`, or the texts do not tell them apart.
    """
    options, correct, texts = _checked(params)
    given, missing = extract(answer)
    if missing:
        return Verdict(score=0.0, reason=missing)
    parts = _parts(given, options) if isinstance(params["correct"], (list, tuple)) else [given]
    picked = {_pick(part, options, texts) for part in parts}
    if "" in picked:
        return Verdict(score=0.0, reason="not an option")
    return Verdict(score=float(picked == correct), reason="right" if picked == correct else "wrong")


def _checked(params: Mapping[str, Any]) -> tuple[list[str], set[str], dict[str, str]]:
    only_known("choice", params, ("correct", "options", "texts"))
    options, correct, texts = params.get("options"), params.get("correct"), params.get("texts", {})
    if not isinstance(options, (list, tuple)) or not all(isinstance(o, str) and LABEL.fullmatch(o) for o in options):
        raise VerifierError(f"choice: 'options' must be letters such as ['A', 'B'], not {options!r}")
    if len({option.casefold() for option in options}) < len(options):
        raise VerifierError(f"choice: two of the 'options' {options!r} are the same")
    wanted: list[Any] = list(correct) if isinstance(correct, (list, tuple)) else [correct]
    if not wanted or any(letter not in options for letter in wanted):
        raise VerifierError(
            f"choice: 'correct' must be one of the letters in 'options', not {correct!r} in {options!r}"
        )
    if texts and (not isinstance(texts, Mapping) or set(texts) != set(options)):
        raise VerifierError(f"choice: 'texts' must have a text for every option in {options!r}, not {texts!r}")
    if not all(isinstance(t, str) and t.strip() for t in texts.values()) or len(set(texts.values())) < len(texts):
        raise VerifierError(f"choice: the 'texts' must be different strings, not {texts!r}")
    return list(options), set(wanted), {letter: normalise(text) for letter, text in texts.items()}


def _pick(text: str, options: list[str], texts: Mapping[str, str]) -> str:
    """The option that the text names, or "". What follows the letter must be the text of that option."""
    text = unwrap(text)
    if match := PICK.fullmatch(text):
        label = (match[2] or match[3] or match[4]).casefold()
        picked = next((option for option in options if option.casefold() == label), "")
        said = match[5] and normalise(match[5])
        if picked and (said is None or said in (texts.get(picked), f"({texts.get(picked)})")):
            return picked
    named = [option for option, spelling in texts.items() if spelling == normalise(text)]
    return named[0] if len(named) == 1 else ""


def _parts(text: str, options: list[str]) -> list[str]:
    """What a multiple choice picks, each still to be read: by line, else by comma and "and", else letter by letter."""
    text = unwrap(text).replace("\\{", "{").replace("\\}", "}")
    if text[:1] + text[-1:] in ("[]", "{}"):
        text = text[1:-1].strip()
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1:
        return lines
    if re.fullmatch(r"[A-Z]+(?: [A-Z])*", text) and max(map(len, options)) == 1:
        return list(text.replace(" ", ""))
    return AND.split(text)
