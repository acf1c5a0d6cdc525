"""The one exception of this package: an answer is rejected, and why."""

from __future__ import annotations

REASONS = (
    "wrong",
    "unreadable",  # not mathematics, or no kind of it that is known here
    "several answers",  # a list, a choice or two boxes where one thing was asked for
    "other kind",  # a set for a number, a number for an equation, ...
    "wrong form",  # equal, but not worked out, not factored, ...
    "other variables",  # contains letters that what was expected has not
    "undefined",  # division by zero, infinity minus infinity
    "too large",
    "timeout",
)


class Rejection(Exception):
    """`reason` is one of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
