"""What the model cost, and what it answered: one line per request in `ledger.jsonl`.

A line holds both the tokens of a request and its reply, so money and answer become durable in the same append: a run
killed at any instruction either has both or neither, and a resumed run asks nothing again that was answered.
Caps are checked against spent + reserved before a request leaves. Not covered: requests in flight when the process is
killed with -9. An endpoint may bill them; no line exists for them, and at most `concurrency` of them are lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import BudgetError, RunError


@dataclass(frozen=True, kw_only=True)
class Spend:
    """A number of requests, their tokens, and US dollars."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Spend) -> Spend:
        return Spend(**{key: value + getattr(other, key) for key, value in asdict(self).items()})

    def __sub__(self, other: Spend) -> Spend:
        return Spend(**{key: value - getattr(other, key) for key, value in asdict(self).items()})


@dataclass(frozen=True, kw_only=True)
class Caps:
    """What a run may spend in all, resumed or not. None: no cap."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None

    def broken_by(self, spend: Spend) -> str | None:
        """The first cap that `spend` would exceed, as "max_calls = 10"; None when it fits."""
        for name, used in (("max_calls", spend.calls), ("max_tokens", spend.tokens), ("max_usd", spend.usd)):
            cap = getattr(self, name)
            if cap is not None and used > cap + 1e-9:
                return f"{name} = {cap}"
        return None


class Ledger:
    """The requests of one run. `path` None keeps them in memory only. One process at a time may write a ledger."""

    def __init__(self, path: Path | None = None, *, caps: Caps = Caps()) -> None:
        """Reads what an earlier process wrote; a torn last line is cut off. Raises RunError on any other bad line."""
        self.path = path
        self.caps = caps
        self.stages: dict[str, Spend] = {}
        self.reserved = Spend()
        self._replies: dict[str, str] = {}
        for row in _read(path) if path else ():
            self._count(row)

    @property
    def total(self) -> Spend:
        return sum(self.stages.values(), Spend())

    def reply(self, key: str) -> str | None:
        """The answer that the request with this key got, in this process or an earlier one."""
        return self._replies.get(key)

    def reserve(self, expected: Spend) -> bool:
        """Set `expected` aside. False: it fits only if requests in flight cost less than reserved, so wait for them.

        Raises BudgetError when it does not fit even then.
        """
        if cap := self.caps.broken_by(self.total + expected):
            raise BudgetError(
                f"[llm] {cap} is reached: {_in_words(self.total)} are spent and the next call may take "
                f"{_in_words(expected)}; raise the cap and resume, answered questions are not asked again"
            )
        if self.caps.broken_by(self.total + self.reserved + expected):
            return False
        self.reserved += expected
        return True

    def settle(self, expected: Spend, row: dict[str, Any]) -> None:
        """Replace a reservation by what happened.

        Keys of row: time (unix s), stage, model, outcome, prompt_tokens, completion_tokens, usd; with an answer also
        key and reply. "estimated" marks tokens that the endpoint did not report.
        """
        self.reserved -= expected
        self._append({"calls": 1, **row})

    def forget(self, keys: Iterable[str], *, stage: str) -> None:
        """Drop replies that led nowhere, so that asking again is a new request and not the same failure replayed."""
        if known := [key for key in keys if key in self._replies]:
            self._append({"calls": 0, "stage": stage, "outcome": "forgotten", "forget": known})

    def _append(self, row: dict[str, Any]) -> None:
        if self.path:
            line = json.dumps(row, ensure_ascii=True).encode() + b"\n"
            with self.path.open("ab", buffering=0) as file:
                file.write(line)
                os.fsync(file.fileno())
        self._count(row)

    def _count(self, row: dict[str, Any]) -> None:
        stage = row["stage"]
        spend = Spend(**{key: row.get(key, 0) for key in Spend.__dataclass_fields__})
        self.stages[stage] = self.stages.get(stage, Spend()) + spend
        if "reply" in row:
            self._replies[row["key"]] = row["reply"]
        for key in row.get("forget", ()):
            self._replies.pop(key, None)


def _in_words(spend: Spend) -> str:
    return f"{spend.calls} calls, {spend.tokens} tokens, ${spend.usd:.4f}"


def _read(path: Path) -> list[dict[str, Any]]:
    """The rows of a ledger. Cuts off what follows the last newline: an append that a kill tore."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = path.read_bytes() if path.exists() else b""
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(path, whole)
    rows = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            row = json.loads(line)
            row["stage"]
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{path}:{number} is not a ledger line ({error}); remove that line to go on") from error
        rows.append(row)
    return rows
