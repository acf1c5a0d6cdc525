"""What a run paid for, and what it was answered: one row per request to a model or a paid search, from before it leaves.

A row is reserved with the most that the request may cost, and settled with what it did cost and the answer, in one
transaction. So a run killed at any instruction has both or neither, and a resumed one asks nothing again that was
answered. Many processes share the file `ledger.sqlite`; caps are checked against spent + reserved over all of them.
A reservation names its process: when that one is gone, the row counts as spent, at what was reserved, as "lost in
flight". What a power loss may cost is said in sqlite.py.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import BudgetError, RunError
from kgsynth.sqlite import SharedFile

POLL_S = 0.1  # how often a reservation that must wait for those of other processes is tried again
LOST = "lost in flight"
CHARGED_TO: ContextVar[str] = ContextVar("charged_to", default="")  # id of the concept that is researched


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

    @property
    def numbers(self) -> tuple[int, int, int, float]:
        return self.calls, self.prompt_tokens, self.completion_tokens, self.usd

    def __add__(self, other: Spend) -> Spend:
        return spend(a + b for a, b in zip(self.numbers, other.numbers, strict=True))

    def __str__(self) -> str:
        return f"{self.calls} calls, {self.tokens} tokens, ${self.usd:.4f}"


def spend(numbers: Iterable[Any]) -> Spend:
    """From (calls, prompt_tokens, completion_tokens, usd)."""
    calls, prompt_tokens, completion_tokens, usd = numbers
    return Spend(calls=calls, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, usd=usd)


@dataclass(frozen=True, kw_only=True)
class Caps:
    """What a run may spend in all, resumed or not. Calls and tokens are a model's; dollars are everybody's. None: no cap."""

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
    """The requests of one run. `path` None keeps them in memory. Threads may share it, a forked child may not."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        caps: Caps = Caps(),
        readonly: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Makes the file if there is none, from a `ledger.jsonl` of an earlier version where one lies beside it.

        readonly: look only, also while a run is at work; nothing is changed on disk. Raises RunError when the file cannot
        be used, or a line of the old one is bad (a torn last line is left out).
        """
        self.path, self.caps, self._clock = path, caps, clock
        self._file = SharedFile(
            path, functools.partial(_create, old=path and path.with_suffix(".jsonl")), readonly=readonly
        )
        if not readonly:
            self._count_lost()

    # paying

    def reserve(self, most: Spend, *, stage: str, model: str, concept: str = "", kind: str = "llm") -> int | None:
        """Set aside what a request may cost at most; gives its number, to settle it by.

        None: it fits only if requests in flight, here or in other processes, cost less than reserved: wait, try again.
        Raises BudgetError when it does not fit even then. kind: "llm", or "search" with the provider as `model`.
        """
        row = (self._clock(), _me(), stage, concept, kind, model, *most.numbers)
        counted = most if kind == "llm" else Spend(usd=most.usd)
        number = self._insert(row, counted)
        if number is None and self._count_lost():
            number = self._insert(row, counted)
        return number

    def settle(
        self,
        number: int,
        spent: Spend,
        outcome: str,
        *,
        estimated: bool = False,
        key: str = "",
        reply: str | None = None,
    ) -> None:
        """Replace a reservation by what happened: "ok" with a reply, or what went wrong.

        estimated: the tokens are not the endpoint's own count. Right also when others took this process for dead meanwhile.
        """
        with self._file.transaction() as db:
            db.execute(_SETTLE, (outcome, *spent.numbers, estimated, key, reply, number))

    def record(
        self, outcome: str, *, stage: str, model: str, concept: str = "", key: str = "", reply: str = ""
    ) -> None:
        """An answer that cost nothing, such as one from the reply cache. It is taken whatever the caps say."""
        row = (self._clock(), _me(), stage, concept, "llm", model, *Spend().numbers)
        with self._file.transaction() as db:
            db.execute(_SETTLE, (outcome, *Spend().numbers, False, key, reply, db.execute(_RESERVE, row).lastrowid))

    @asynccontextmanager
    async def charge(
        self, price: Spend, *, stage: str, model: str, concept: str = "", kind: str = "search"
    ) -> AsyncIterator[None]:
        """Around one request of a known price: reserved, then settled at that price, as an estimate if it raises.

        Waits while the price fits only if requests in flight cost less than reserved. Raises BudgetError.
        """
        while (number := self.reserve(price, stage=stage, model=model, concept=concept, kind=kind)) is None:
            await asyncio.sleep(POLL_S)
        outcome = "ok"
        try:
            yield
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"[:300]
            raise
        finally:
            self.settle(number, price, outcome, estimated=outcome != "ok")

    # answers

    def reply(self, key: str) -> str | None:
        """The answer that the request with this key got, in any process."""
        found = self._file.read(
            "SELECT reply FROM request WHERE key = ? AND reply IS NOT NULL ORDER BY id DESC LIMIT 1", [key]
        )
        return found[0][0] if found else None

    def forget(self, keys: Iterable[str]) -> None:
        """Drop replies that led nowhere, so that asking again is a new request and not the same failure replayed."""
        with self._file.transaction() as db:
            db.executemany(
                "UPDATE request SET reply = NULL WHERE key = ? AND reply IS NOT NULL", [(key,) for key in keys]
            )

    # sums

    @property
    def total(self) -> Spend:
        """Everything settled and lost; not what is in flight."""
        return sum(self.by_stage().values(), Spend())

    @property
    def spent(self) -> Spend:
        """What caps are checked against, beside `reserved`: calls and tokens of models, everybody's dollars."""
        return self._running("spent")

    @property
    def reserved(self) -> Spend:
        """What requests in flight may cost at most."""
        return self._running("reserved")

    def by_stage(self) -> dict[str, Spend]:
        return self._sums("stage")

    def by_concept(self) -> dict[str, Spend]:
        """Concept id -> what was spent on it; "" for requests that serve no single concept."""
        return self._sums("concept")

    def by_model(self) -> dict[str, Spend]:
        """Model, or provider of paid searches -> what was spent there."""
        return self._sums("model")

    def rows(self) -> list[dict[str, Any]]:
        """Every request that is not in flight, oldest first, without its reply.

        Keys: id, time (unix s, when it left), stage, concept, kind, model, outcome, calls, prompt_tokens,
        completion_tokens, usd, estimated.
        """
        lost = self._lost()
        found = self._file.read(f"SELECT {', '.join(_SHOWN)} FROM request WHERE outcome IS NOT NULL")
        rows = {row["id"]: row for row in [*lost, *(dict(zip(_SHOWN, row, strict=True)) for row in found)]}
        return [rows[number] for number in sorted(rows)]

    def _sums(self, by: str) -> dict[str, Spend]:
        """One look into the table of totals, and at the few rows of processes that died since."""
        found = self._file.read(
            f"SELECT name, {_NUMBERS} FROM total WHERE by = ? AND calls + usd + {_TOKENS} > 0", [by]
        )
        sums = {name: spend(numbers) for name, *numbers in found}
        for row in self._lost():
            sums[row[by]] = sums.get(row[by], Spend()) + spend(row[name] for name in Spend.__dataclass_fields__)
        return sums

    def _running(self, what: str) -> Spend:
        found = self._file.read(f"SELECT {_NUMBERS} FROM total WHERE by = ? AND name = ''", [what])
        return spend(found[0]) if found else Spend()

    def _insert(self, row: tuple[Any, ...], counted: Spend) -> int | None:
        with self._file.transaction() as db:
            with_it = self.spent + counted
            if cap := self.caps.broken_by(with_it):
                raise BudgetError(
                    f"[llm] {cap} is reached: {self.spent} are spent and the next call may take "
                    f"{counted}; raise the cap and resume, answered questions are not asked again"
                )
            if self.caps.broken_by(with_it + self.reserved):
                return None
            return db.execute(_RESERVE, row).lastrowid

    def _lost(self) -> list[dict[str, Any]]:
        """Rows in flight whose process is gone, as they will be counted."""
        found = self._file.read(f"SELECT owner, {', '.join(_SHOWN)} FROM request WHERE outcome IS NULL")
        dead = {owner for owner in {row[0] for row in found} if not _is_alive(owner)}
        rows = [dict(zip(_SHOWN, row[1:], strict=True)) for row in found if row[0] in dead]
        return [{**row, "outcome": LOST, "estimated": 1} for row in rows]

    def _count_lost(self) -> bool:
        """Count what processes that are gone had in flight; whether there was any."""
        lost = [(LOST, row["id"]) for row in self._lost()]
        if lost:
            with self._file.transaction() as db:
                db.executemany("UPDATE request SET outcome = ?, estimated = 1 WHERE id = ? AND outcome IS NULL", lost)
        return bool(lost)


# --- the file -------------------------------------------------------------------------------------------------------

_NUMBERS = "calls, prompt_tokens, completion_tokens, usd"
_TOKENS = "prompt_tokens + completion_tokens"
_SHOWN = ("id", "time", "stage", "concept", "kind", "model", "outcome", *_NUMBERS.split(", "), "estimated")
_RESERVE = f"INSERT INTO request (time, owner, stage, concept, kind, model, {_NUMBERS}) VALUES ({', '.join('?' * 10)})"
_SETTLE = """
UPDATE request SET outcome = ?, calls = ?, prompt_tokens = ?, completion_tokens = ?, usd = ?, estimated = ?, key = ?, reply = ?
WHERE id = ?"""

# `total` follows `request` by triggers, so that no sum is ever taken over the rows: by stage, concept and model, and the
# two that caps are checked against, "spent" and "reserved", in which calls and tokens are those of models only.
_TABLES = """
CREATE TABLE request (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, owner TEXT NOT NULL,
    stage TEXT NOT NULL, concept TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL,
    outcome TEXT, -- NULL: in flight, and the numbers are what is reserved
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usd REAL NOT NULL,
    estimated INTEGER NOT NULL DEFAULT 0, key TEXT, reply TEXT,
    is_llm INTEGER AS (kind = 'llm')
);
CREATE INDEX in_flight ON request (owner) WHERE outcome IS NULL;
CREATE INDEX answered ON request (key) WHERE reply IS NOT NULL;
CREATE TABLE total (
    by TEXT, name TEXT,
    calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, usd REAL NOT NULL,
    PRIMARY KEY (by, name)
) WITHOUT ROWID;
"""


def _counted(row: str, sign: str) -> str:
    """The statement of a trigger that adds a row, OLD or NEW, to the totals, or takes it out."""
    own = ", ".join(f"{sign}{row}.{name}" for name in _NUMBERS.split(", "))
    of_models = own.replace("tokens", f"tokens * {row}.is_llm").replace("calls", f"calls * {row}.is_llm")
    settled = [
        f"SELECT '{by}', {row}.{by}, {own} WHERE {row}.outcome IS NOT NULL" for by in ("stage", "concept", "model")
    ]
    running = f"SELECT iif({row}.outcome IS NULL, 'reserved', 'spent'), '', {of_models} WHERE true"
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _NUMBERS.split(", "))
    return f"INSERT INTO total {' UNION ALL '.join([*settled, running])} ON CONFLICT (by, name) DO UPDATE SET {added};"


_TRIGGERS = (
    f"CREATE TRIGGER counted AFTER INSERT ON request BEGIN {_counted('NEW', '+')} END",
    "CREATE TRIGGER recounted AFTER UPDATE OF outcome, calls, prompt_tokens, completion_tokens, usd ON request "
    f"BEGIN {_counted('OLD', '-')} {_counted('NEW', '+')} END",
)


def _create(db: sqlite3.Connection, old: Path | None) -> None:
    for statement in (*_TABLES.split(";\n"), *_TRIGGERS):
        db.execute(statement)
    for row in _read(old) if old and old.exists() else ():
        if forgotten := row.get("forget"):
            db.executemany("UPDATE request SET reply = NULL WHERE key = ?", [(key,) for key in forgotten])
        else:
            numbers = [
                row.get(name, default) for name, default in zip(_NUMBERS.split(", "), (1, 0, 0, 0.0), strict=True)
            ]
            reserved = (row.get("time", 0.0), "", row["stage"], "", "llm", row.get("model", ""), *numbers)
            number = db.execute(_RESERVE, reserved).lastrowid
            outcome, estimated = str(row.get("outcome", "?")), bool(row.get("estimated"))
            db.execute(_SETTLE, (outcome, *numbers, estimated, row.get("key"), row.get("reply"), number))


def _read(path: Path) -> list[dict[str, Any]]:
    """The rows of the JSONL that earlier versions wrote, without what follows the last newline: an append that a kill tore."""
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            row = json.loads(line)
            row["stage"]
        except (ValueError, TypeError, KeyError) as error:
            raise RunError(f"{path}:{number} is not a ledger line ({error}); remove that line to go on") from error
        rows.append(row)
    return rows


# --- whose reservation ----------------------------------------------------------------------------------------------


def _me() -> str:
    pid = os.getpid()
    return f"{pid} {_birth(pid)}"


def _is_alive(owner: str) -> bool:
    pid, _, birth = owner.partition(" ")
    return pid.isdigit() and _process_birth(int(pid)) == birth


@functools.lru_cache(maxsize=1)
def _birth(pid: int) -> str:
    return _process_birth(pid)


def _process_birth(pid: int) -> str:
    """When a process began, in words that tell it from an earlier one of the same number; "" when it is gone.

    Linux: boot id and clock ticks since the boot (proc(5), fields 3 and 22); a zombie is gone. Elsewhere: what ps says.
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else f"{_boot()} {rest[18]}"
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return ""
    found = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True).stdout.split()
    return "" if not found or found[0].startswith("Z") else " ".join(found[1:])


@functools.cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
