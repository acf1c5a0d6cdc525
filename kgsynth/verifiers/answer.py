"""What counts in a model's reply: the text inside exactly one `<answer>...</answer>`."""

from __future__ import annotations

OPEN, CLOSE = "<answer>", "</answer>"
MAX_LENGTH = 10_000
FORM_REASONS = ("no answer tag", "several answers", "empty", "too long")  # there was nothing to judge


def extract(reply: str, limit: int = MAX_LENGTH) -> tuple[str, str]:
    """(text between the tags, without a fence, "") or ("", the reason why there is none: one of FORM_REASONS)."""
    opened, closed = reply.count(OPEN), reply.count(CLOSE)
    start, end = reply.find(OPEN) + len(OPEN), reply.find(CLOSE)
    if not opened or end < start:
        return "", "no answer tag"
    if opened > 1 or closed > 1:
        return "", "several answers"
    if end - start > limit:
        return "", "too long"
    text = strip_fence(reply[start:end])
    return (text, "") if text.strip() else ("", "empty")


def strip_fence(text: str) -> str:
    """The text without one ``` fence around all of it. Lines inside keep their indentation."""
    lines = text.strip().split("\n")
    if len(lines) >= 2 and lines[0].startswith("```") and "`" not in lines[0][3:] and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text
