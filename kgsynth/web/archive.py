"""What the web answered, kept in one file, so that a run can be repeated without it.

This is on purpose not an HTTP cache in the sense of RFC 9111. Such a cache may answer only while the origin would give
the same answer, must forget what is marked `no-store` or `private`, and keeps no failures. A replay needs the opposite:
the bytes the run saw, at their old time of retrieval, whatever their age and headers, with every refusal and failure in
its place. What it takes from HTTP is revalidation: an entry past its time is asked for again by its ETag or
Last-Modified (RFC 9110, 13.1), and 304 keeps it. It belongs to one user and is shared with nobody.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgsynth.errors import WebError
from kgsynth.web.vectors import cache_folder

_SCHEMA = """
CREATE TABLE IF NOT EXISTS kept (
    n INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, head TEXT NOT NULL, body BLOB NOT NULL,
    checked_at REAL NOT NULL, UNIQUE (kind, key));
CREATE INDEX IF NOT EXISTS kept_age ON kept (checked_at);
CREATE TABLE IF NOT EXISTS turn (host TEXT PRIMARY KEY, next REAL NOT NULL, held REAL NOT NULL) WITHOUT ROWID;
"""
_FORMAT = 1  # PRAGMA user_version
_LOOK_EVERY = 64  # entries written between two looks at the size of the file
_PATIENCE = 30.0  # seconds to wait for another process that writes
_LONG = 3600.0  # seconds; no turn is further away, whatever a server or a clock said


@dataclass(frozen=True, kw_only=True)
class Kept:
    """One entry: `head` is what is known of the answer (any JSON), `body` its bytes."""

    head: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""
    checked_at: float = 0.0  # seconds since the epoch: when it was written or last found unchanged


class Archive:
    """Entries by kind ("page", "robots", "search wikipedia", ...) and key, in one SQLite file; by default in the cache folder.

    Any number of threads and processes may use the file at once (write-ahead log, every entry its own transaction): one
    killed while it writes loses that entry alone. It is also where processes agree on turns at hosts (`reserve`, `hold`).
    When the file outgrows `max_mb`, the entries unused for longest in
    terms of `checked_at` go first. Raises WebError when the file cannot be used.
    """

    def __init__(self, path: str | Path | None = None, *, max_mb: int = 4096, clock: Callable[[], float] = time.time):
        self.path = Path(path) if path else cache_folder() / "web.sqlite"
        self.max_mb, self._clock = max_mb, clock
        self._lock = threading.RLock()
        self._written = 0
        self._open()

    def get(self, kind: str, key: str) -> Kept | None:
        """The entry, or None."""
        with self._using() as db:
            row = db.execute(
                "SELECT head, body, checked_at FROM kept WHERE kind = ? AND key = ?", (kind, key)
            ).fetchone()
            return Kept(head=json.loads(row[0]), body=zlib.decompress(row[1]), checked_at=row[2]) if row else None

    def put(self, kind: str, key: str, *, head: dict[str, Any] | None = None, body: bytes = b"") -> Kept:
        """Keep an entry, in place of an older one. Returns it as `get` would."""
        kept = Kept(head=head or {}, body=body, checked_at=self._clock())
        row = (kind, key, json.dumps(kept.head, ensure_ascii=False), zlib.compress(body, 1), kept.checked_at)
        with self._using() as db:
            db.execute("INSERT OR REPLACE INTO kept (kind, key, head, body, checked_at) VALUES (?, ?, ?, ?, ?)", row)
            self._written += 1
            if self._written % _LOOK_EVERY == 0:
                self._make_room(db)
        return kept

    def confirm(self, kind: str, key: str) -> None:
        """The entry was found unchanged just now: it is as new as if written again."""
        with self._using() as db:
            db.execute("UPDATE kept SET checked_at = ? WHERE kind = ? AND key = ?", (self._clock(), kind, key))

    def reserve(self, host: str, interval: float, patience: float) -> float:
        """Take the next turn at a host, `interval` seconds before the one after it. Returns the seconds to wait for it.

        All processes that share the file take turns. When it is more than `patience` away nothing is taken.
        """
        if interval <= 0:  # nothing to write: the common case in front of a server of one's own
            return self.held(host)
        with self._using() as db:
            db.execute("BEGIN IMMEDIATE")
            now = self._clock()
            found = db.execute("SELECT next, held FROM turn WHERE host = ?", (host,)).fetchone() or (0.0, 0.0)
            turn = max(now, *(at for at in found if at <= now + _LONG))
            if turn - now <= patience:
                db.execute("INSERT OR REPLACE INTO turn VALUES (?, ?, ?)", (host, turn + interval, found[1]))
            db.execute("COMMIT")
        return turn - now

    def hold(self, host: str, seconds: float) -> None:
        """Nobody has a turn at the host for so long (at most an hour)."""
        until = self._clock() + min(seconds, _LONG)
        with self._using() as db:
            db.execute(
                "INSERT INTO turn VALUES (?, 0, ?) ON CONFLICT (host) DO UPDATE SET held = max(held, excluded.held)",
                (host, until),
            )

    def held(self, host: str) -> float:
        """How many seconds a host is still to be left alone."""
        with self._using() as db:
            found = db.execute("SELECT held FROM turn WHERE host = ?", (host,)).fetchone()
        left = found[0] - self._clock() if found else 0.0
        return left if 0 < left <= _LONG else 0.0

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _open(self) -> None:
        self._pid = os.getpid()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            _use_write_ahead_log(self._db)
            found = self._db.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, _FORMAT):
                raise WebError(
                    f"{self.path}: an archive of format {found}, this is kgsynth for format {_FORMAT}: delete it"
                )
            if not found:
                self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT;")
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    @contextmanager
    def _using(self):
        """The connection, to one thread at a time; a forked child opens its own."""
        with self._lock:
            if os.getpid() != self._pid:
                self._inherited = self._db  # closing it here would write to the parent's file
                self._open()
            try:
                yield self._db
            except (sqlite3.Error, zlib.error, ValueError) as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> WebError:
        return WebError(
            f"{self.path}: the archive of fetched pages cannot be used: {error}; if it is damaged, delete it"
        )

    def _make_room(self, db: sqlite3.Connection) -> None:
        """Drop the oldest tenth until the pages in use fit; SQLite fills the room again."""
        page, free, pages = (
            db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_size", "freelist_count", "page_count")
        )
        while (pages - free) * page > self.max_mb * 2**20 and db.execute("SELECT count(*) FROM kept").fetchone()[0] > 1:
            db.execute(
                "DELETE FROM kept WHERE n IN "
                "(SELECT n FROM kept ORDER BY checked_at LIMIT (SELECT (count(*) + 9) / 10 FROM kept))"
            )
            free = db.execute("PRAGMA freelist_count").fetchone()[0]


def _use_write_ahead_log(db: sqlite3.Connection) -> None:
    """SQLite does not wait for its lock when two processes change the journal at once, so we do."""
    deadline = time.monotonic() + _PATIENCE
    db.execute("PRAGMA synchronous = NORMAL")
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
