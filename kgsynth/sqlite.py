"""A small SQLite file that many threads and processes write at once: the ledger of a run, the cache of replies.

WAL with `synchronous=NORMAL`: what was committed survives kill -9 at any instruction, because it is in the kernel's hands.
A power loss can take the last transactions, those since the last checkpoint (about 4 MB of log), newest first and each
whole or not at all; it cannot damage the file (https://www.sqlite.org/pragma.html#pragma_synchronous). The graph's own store
pays for more (store/embedded.py).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kgsynth.errors import RunError

BUSY_S = 60.0  # how long a writer waits for the others; a transaction takes far below a millisecond


class SharedFile:
    """A connection that threads may share and a forked child may not."""

    def __init__(
        self, path: Path | None, create: Callable[[sqlite3.Connection], None], *, readonly: bool = False
    ) -> None:
        """`create` fills a new file, in the transaction that makes it. `path` None: in memory. Raises RunError."""
        self.path, self._pid, self._lock = path, os.getpid(), threading.RLock()
        with self._explained():
            if path and not readonly:
                path.parent.mkdir(parents=True, exist_ok=True)
            name = f"{path.resolve().as_uri()}{'?mode=ro' if readonly else ''}" if path else ":memory:"
            self._db = sqlite3.connect(name, BUSY_S, isolation_level=None, check_same_thread=False, uri=bool(path))
            if not readonly:
                patiently(lambda: self._db.execute("PRAGMA journal_mode = WAL"))
                self._db.execute("PRAGMA synchronous = NORMAL")
        if not readonly and not self._is_filled():
            with self.transaction() as db:
                if not self._is_filled():  # nobody was faster
                    create(db)
                    db.execute("PRAGMA user_version = 1")

    def read(self, sql: str, given: Sequence[Any] = ()) -> list[Any]:
        """The rows of one SELECT. Raises RunError."""
        with self._explained():
            return self._db.execute(sql, given).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside happens at once or not at all, and nobody else writes meanwhile. Raises RunError."""
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """The file is let go; nothing can be read or written through this any more."""
        with self._lock:
            self._db.close()

    def _is_filled(self) -> bool:
        return bool(self.read("PRAGMA user_version")[0][0])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise RunError(f"{self.path} was opened before a fork; open it again in the new process")
        with self._lock:
            try:
                yield
            except (sqlite3.Error, OSError) as error:
                raise RunError(f"{self.path}: {error}; {_fix(str(error))}") from error


def _fix(problem: str) -> str:
    if "not a database" in problem or "malformed" in problem:
        return "the file is damaged or of another program; move it away to go on without what it holds"
    if "locked" in problem:
        return f"another process has held it for {BUSY_S:.0f} s; stop that one, and the same command goes on"
    if "full" in problem:
        return "free some disk space, and the same command goes on: what was written is safe"
    return "check that its folder exists, is on a local disk and can be written"


def patiently(work: Callable[[], object]) -> None:
    """Do what SQLite does not wait for: a change of the journal mode, while several processes open a new file at once."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            work()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.005)
