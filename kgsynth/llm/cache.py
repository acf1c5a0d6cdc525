"""What models answered, kept between runs: `$XDG_CACHE_HOME/kgsynth/replies.sqlite`, shared by all processes.

The same question to the same model at the same address gets the same answer without a request. A cache that cannot be
used (a read-only home, a damaged file) costs requests, never a run.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kgsynth.errors import RunError
from kgsynth.sqlite import SharedFile

_TABLE = """
CREATE TABLE reply (
    key TEXT PRIMARY KEY, time REAL NOT NULL, model TEXT NOT NULL, text TEXT NOT NULL,
    prompt_tokens INTEGER, completion_tokens INTEGER, -- NULL: not known
    failed INTEGER NOT NULL DEFAULT 0 -- the question it belongs to never got a valid reply
)"""
_PUT = """
INSERT INTO reply (key, time, model, text, prompt_tokens, completion_tokens) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET text = excluded.text, time = excluded.time, failed = 0,
    prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens
WHERE failed OR text != excluded.text"""


class ReplyCache:
    """key -> reply. Keys are those of requests, made different by address with `at`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: SharedFile | None = None
        with suppress(RunError):
            self._file = SharedFile(path, _create)

    @staticmethod
    def at(base_url: str, key: str) -> str:
        """Two servers may serve different models under one name, so an address has answers of its own."""
        return hashlib.sha256(f"{base_url} {key}".encode()).hexdigest()

    def get(self, key: str, *, failed: bool = False) -> str | None:
        """The reply, or None. `failed`: also one that led nowhere, which only a replay wants."""
        with suppress(RunError):
            if self._file and (found := self._file.read("SELECT text, failed FROM reply WHERE key = ?", [key])):
                return found[0][0] if failed or not found[0][1] else None
        return None

    def put(self, key: str, text: str, *, model: str, tokens: tuple[int, int] | None = None) -> None:
        """tokens: of prompt and completion, where they are known."""
        with suppress(RunError):
            if self._file:
                with self._file.transaction() as db:
                    db.execute(_PUT, (key, time.time(), model, text, *(tokens or (None, None))))

    def forget(self, keys: Iterable[str]) -> None:
        """These replies led to no valid answer: only a replay gets them from now on."""
        with suppress(RunError):
            if self._file:
                with self._file.transaction() as db:
                    db.executemany("UPDATE reply SET failed = 1 WHERE key = ?", [(key,) for key in keys])


def _create(db: sqlite3.Connection) -> None:
    db.execute(_TABLE)
