"""What the web answered, kept in one file, so that a run can be repeated without it.

This is on purpose not an HTTP cache in the sense of RFC 9111. Such a cache may answer only while the origin would give
the same answer, must forget what is marked `no-store` or `private`, and keeps no failures. A replay needs the opposite:
the bytes the run saw, at their old time of retrieval, whatever their age and headers, with every refusal and failure in
its place. What it takes from HTTP is revalidation: an entry past its time is asked for again by its ETag or
Last-Modified (RFC 9110, 13.1), and 304 keeps it. It belongs to one user and is shared with nobody.
"""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgsynth.files import cache_folder
from kgsynth.sqlite import SharedFile

_SCHEMA = (
    "CREATE TABLE kept (n INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, head TEXT NOT NULL,"
    " body BLOB NOT NULL, checked_at REAL NOT NULL, UNIQUE (kind, key))",
    "CREATE INDEX kept_age ON kept (checked_at)",
    "CREATE TABLE turn (host TEXT PRIMARY KEY, next REAL NOT NULL, held REAL NOT NULL) WITHOUT ROWID",
)
_LOOK_EVERY = 64  # entries written between two looks at the size of the file
_LONG = 3600.0  # seconds; no turn is further away, whatever a server or a clock said


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One entry: `head` is what is known of the answer (any JSON), `body` its bytes."""

    head: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    checked_at: float = 0.0  # seconds since the epoch: when it was written or last found unchanged


class Archive:
    """Entries by kind ("page", "robots", "search wikipedia", ...) and key, in one SQLite file; by default in the cache folder.

    Any number of threads and processes may use the file at once; one killed while it writes loses the entry it was
    writing, no other. It is also where processes agree on turns at hosts (`reserve`, `hold`). When the file outgrows
    `max_mb`, the entries that were written or found unchanged longest ago go. ":memory:" is an archive of this process
    alone. Raises RunError when the file cannot be used.
    """

    def __init__(self, path: str | Path | None = None, *, max_mb: int = 4096, clock: Callable[[], float] = time.time):
        self.path = Path(path) if path else cache_folder() / "web.sqlite"
        self.max_mb, self._clock = max_mb, clock
        self._file = SharedFile(None if str(path) == ":memory:" else self.path, _create)
        self._written = 0

    def get(self, kind: str, key: str) -> Kept | None:
        """The entry, or None."""
        found = self._file.read("SELECT head, body, checked_at FROM kept WHERE kind = ? AND key = ?", (kind, key))
        return (
            Kept(head=json.loads(found[0][0]), body=zlib.decompress(found[0][1]), checked_at=found[0][2])
            if found
            else None
        )

    def put(self, kind: str, key: str, *, head: dict[str, Any] | None = None, body: bytes = b"") -> Kept:
        """Keep an entry, in place of an older one. Returns it as `get` would."""
        kept = Kept(head=head or {}, body=body, checked_at=self._clock())
        row = (kind, key, json.dumps(kept.head, ensure_ascii=False), zlib.compress(body, 1), kept.checked_at)
        with self._file.transaction() as db:
            db.execute("INSERT OR REPLACE INTO kept (kind, key, head, body, checked_at) VALUES (?, ?, ?, ?, ?)", row)
            self._written += 1
            if self._written % _LOOK_EVERY == 0:
                self._make_room(db)
        return kept

    def confirm(self, kind: str, key: str) -> None:
        """The entry was found unchanged just now: it is as new as if written again."""
        with self._file.transaction() as db:
            db.execute("UPDATE kept SET checked_at = ? WHERE kind = ? AND key = ?", (self._clock(), kind, key))

    def reserve(self, host: str, interval: float, patience: float) -> float:
        """Take the next turn at a host, `interval` seconds before the one after it. Returns the seconds to wait for it.

        All processes that share the file take turns. When it is more than `patience` away nothing is taken.
        """
        if interval <= 0:  # nothing to write: the common case in front of a server of one's own
            return self.held(host)
        with self._file.transaction() as db:
            now = self._clock()
            known = db.execute("SELECT next, held FROM turn WHERE host = ?", (host,)).fetchone() or (0.0, 0.0)
            turn = max([now, *(at for at in known if at <= now + _LONG)])
            if turn - now <= patience:
                db.execute("INSERT OR REPLACE INTO turn VALUES (?, ?, ?)", (host, turn + interval, known[1]))
        return turn - now

    def hold(self, host: str, seconds: float) -> None:
        """Nobody has a turn at the host for so long (at most an hour)."""
        with self._file.transaction() as db:
            until = self._clock() + max(min(seconds, _LONG), self.held(host))
            db.execute(
                "INSERT INTO turn VALUES (?, 0, ?) ON CONFLICT (host) DO UPDATE SET held = excluded.held", (host, until)
            )

    def held(self, host: str) -> float:
        """How many seconds a host is still to be left alone."""
        found = self._file.read("SELECT held FROM turn WHERE host = ?", (host,))
        left = found[0][0] - self._clock() if found else 0.0
        return left if 0 < left <= _LONG else 0.0

    def close(self) -> None:
        self._file.close()

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Drop the oldest tenth until what is in use fits; SQLite fills the room again."""
        while (
            _used_bytes(db) > self.max_mb * 2**20
            and (entries := db.execute("SELECT count(*) FROM kept").fetchone()[0]) > 1
        ):
            oldest = "SELECT n FROM kept ORDER BY checked_at LIMIT ?"
            db.execute(f"DELETE FROM kept WHERE n IN ({oldest})", ((entries + 9) // 10,))


def _create(db: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        db.execute(statement)


def _used_bytes(db: sqlite3.Connection) -> int:
    page, free, pages = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_size", "freelist_count", "page_count"))
    return (pages - free) * page
