"""What counts in a model's reply: the text inside exactly one `<answer>...</answer>`. This is the one format of answers.

    tags       in any case, with white space inside the angle brackets: `<Answer>`, `< /answer >`; no attributes
    around     any text before and after, markdown around the tags; none of it counts
    reasoning  `<think>...</think>` (or `thinking`) is left out, with every tag in it: the place for drafts. When the
               prompt had opened it, the reply's first `</think>` ends it. Never closed, it leaves no answer.
    otherwise  a second pair, a nested or a crossed one is "several answers", also inside a code block or a comment
    inside     one ``` or ~~~ fence around all of it is taken off; lines keep their indentation

Verifiers of short answers also use `unwrap`, which takes off what only dresses an answer up.
"""

from __future__ import annotations

import re

OPEN, CLOSE = "<answer>", "</answer>"
MAX_LENGTH = 10_000
FORM_REASONS = ("no answer tag", "several answers", "empty", "too long")  # there was nothing to judge

TAG = re.compile(r"<\s{0,4}(/?)\s{0,4}(answer|think|thinking)\s{0,4}>", re.IGNORECASE | re.ASCII)
FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
DELIMITERS = ("```", "***", "**", "*", "`", "$$", "$", '"', "'")
BRACKETS = (("\\(", "\\)"), ("\\[", "\\]"), ("“", "”"), ("‘", "’"), ("«", "»"), ("„", "“"), ("「", "」"))
MACRO = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf|normal)?|math(?:rm|bf|it|tt|sf|normal)|operatorname|emph|underline|fbox|boxed)\s{0,4}"
    r"\{((?:[^{}]|\{[^{}]*+\})++)\}"
)
LABEL = re.compile(
    r"(\*{0,3})(?:the\s{1,4})?(?:final\s{1,4}|correct\s{1,4}|right\s{1,4})?(?:answer|option|choice)"
    r"(?:(?:\s{1,4}is\b\s{0,4}:?|\s{0,4}[:=])\1|\1\s{0,4}[:=])",
    re.IGNORECASE,
)


def extract(reply: str, limit: int = MAX_LENGTH) -> tuple[str, str]:
    """(text between the tags, without a fence, "") or ("", the reason why there is none: one of FORM_REASONS)."""
    tags = _answer_tags(reply)
    opening, closing = ([tag for tag in tags if bool(tag[1]) is closes] for closes in (False, True))
    if not opening or not closing or closing[0].start() < opening[0].end():
        return "", "no answer tag"
    if len(tags) > 2:
        return "", "several answers"
    start, end = opening[0].end(), closing[0].start()
    if end - start > limit:
        return "", "too long"
    text = strip_fence(reply[start:end])
    return (text, "") if text.strip() else ("", "empty")


def _answer_tags(reply: str) -> list[re.Match[str]]:
    """The answer tags outside of reasoning. Inside an answer, `<think>` is text like any other."""
    kept: list[re.Match[str]] = []
    reasoning, reasoned = False, False
    found = list(TAG.finditer(reply))
    for i, tag in enumerate(found):
        closes, is_answer = bool(tag[1]), tag[2].lower() == "answer"
        if is_answer:
            kept += [] if reasoning else [tag]
        elif closes:
            if not reasoned and not _is_inside_an_answer(kept, found, i):
                kept.clear()  # the prompt had opened the reasoning
            reasoning, reasoned = False, True
        elif reasoning or not kept or kept[-1][1]:
            reasoning = reasoned = True
    return [] if reasoning and not kept else kept


def _is_inside_an_answer(kept: list[re.Match[str]], found: list[re.Match[str]], i: int) -> bool:
    """Whether an answer is open before tag i and the next answer tag after it closes one."""
    if not kept or kept[-1][1]:
        return False
    later = next((tag for tag in found[i + 1 :] if tag[2].lower() == "answer"), None)
    return later is not None and bool(later[1])


def strip_fence(text: str) -> str:
    """The text without one ``` or ~~~ fence around all of it. Lines inside keep their indentation."""
    lines = text.strip().split("\n")
    fence = FENCE.fullmatch(lines[0]) if len(lines) >= 2 else None
    return "\n".join(lines[1:-1]) if fence and lines[-1].strip() == fence[1] else text


def unwrap(text: str) -> str:
    """A short answer without what only dresses it up, taken off until nothing comes off, but never down to nothing:

    white space, emphasis (`*`), code marks, quotes and formula signs (`$`, `\\(`) around all of it, `\\text{}`,
    `\\mathrm{}`, `\\boxed{}` anywhere, a label ("Answer:", "The correct option is") before it and a full stop after it.

    >>> unwrap(' **Answer:** "Binary search". ')
    'Binary search'
    """
    text = text.strip()
    while (shorter := _peel(text)) and shorter != text:
        text = shorter
    return text


def _peel(text: str) -> str:
    for mark in DELIMITERS:
        if _is_around(text, mark, mark):
            return text[len(mark) : -len(mark)].strip()
    for left, right in BRACKETS:
        if _is_around(text, left, right):
            return text[len(left) : -len(right)].strip()
    if "\\" in text and (plain := MACRO.sub(r"\1", text)) != text:
        return plain.strip()
    if label := LABEL.match(text):
        return text[label.end() :].strip()
    return text[:-1].strip() if text.endswith((".", "。")) and not text.endswith("..") else text


def _is_around(text: str, left: str, right: str) -> bool:
    """Whether one pair of marks is around all of the text: `"a", "b"` is not one quoted text, `'don't'` is."""
    inner = text[len(left) : -len(right)]
    if not (text.startswith(left) and text.endswith(right) and inner.strip()):
        return False
    marks = "|".join(map(re.escape, {left, right}))
    return not re.search(rf"(?<!\w)(?:{marks})|(?:{marks})(?!\w)", inner)
