"""SQLite databases from strangers, read without opening a file.

A database is loaded from its bytes into memory, after what its write-ahead log has committed is put in: no path of
this machine is ever opened, so that journals that name other files, ATTACH and extensions have nothing to hold on to.
Only SELECT is allowed, work is bounded by a count of steps (not by time: the verdict must not depend on the machine),
and views and virtual tables that the world did not have are refused: a view can look like the table it replaced.
Recommendations for hostile files: https://www.sqlite.org/security.html, section "Untrusted SQLite Database Files".
The log's format: https://www.sqlite.org/fileformat2.html, section "The Write-Ahead Log".
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from typing import Any

STEP = 1000  # instructions of SQLite's virtual machine between looks at the count
MAX_STEPS = 20_000  # of them, for one query or check
MAX_ROWS = 100_000
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
NO_FUNCTIONS = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 16 << 20,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 10,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
MAGIC = b"SQLite format 3\0"
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
WAL_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}  # byte order of its check sums


class BadDatabase(Exception):
    """The file cannot be used as a database, or the query cannot be answered. The message is a short code."""


def build(script: str) -> bytes:
    """A database made by SQL statements, which cannot reach any file. Raises ValueError for SQL that fails."""
    with closing(_bounded()) as connection:
        connection.set_authorizer(
            lambda action, *_: _allow(action not in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH))
        )
        try:
            connection.executescript(script)
            data = connection.serialize()
        except sqlite3.Error as error:
            raise ValueError(str(error)) from error
    if not data:
        raise ValueError("the SQL makes no table")
    return data


def query(data: bytes, sql: str, *, log: bytes = b"", known: frozenset[str] = frozenset()) -> list[tuple[Any, ...]]:
    """The rows of a SELECT. `log`: its write-ahead log. `known`: the `derived` of the world at its start.

    Raises BadDatabase: "malformed", "refused" (it uses what `known` does not have, or is no SELECT), "too much work".
    """
    with closing(_opened(data, log)) as connection:
        if _derived(connection) - known:
            raise BadDatabase("refused")
        if _all(connection, "PRAGMA integrity_check") != [("ok",)]:
            raise BadDatabase("malformed")
        connection.set_authorizer(_only_reading)
        return _all(connection, sql)


def derived(data: bytes) -> frozenset[str]:
    """The SQL of its views and virtual tables. Raises BadDatabase."""
    with closing(_opened(data, b"")) as connection:
        return _derived(connection)


def is_hot(journal: bytes) -> bool:
    """Whether a rollback journal holds a transaction that was cut off."""
    return journal.startswith(JOURNAL_MAGIC)


def _derived(connection: sqlite3.Connection) -> frozenset[str]:
    rows = _all(connection, "SELECT type, sql FROM sqlite_master")
    return frozenset(sql for kind, sql in rows if kind == "view" or str(sql).lstrip()[:14].lower() == "create virtual")


def _opened(data: bytes, log: bytes) -> sqlite3.Connection:
    if len(data) < 512 or not data.startswith(MAGIC):
        raise BadDatabase("malformed")
    data = _with_log(data, log)
    connection = _bounded()
    try:
        connection.deserialize(data[:18] + b"\1\1" + data[20:])  # memory has no write-ahead log
        for pragma in (
            "trusted_schema=OFF",
            "cell_size_check=ON",
            "mmap_size=0",
            "query_only=ON",
            "recursive_triggers=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except (sqlite3.Error, OverflowError, MemoryError) as error:
        connection.close()
        raise BadDatabase("malformed") from error
    return connection


def _bounded() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    steps = iter(range(MAX_STEPS))
    connection.set_progress_handler(lambda: next(steps, None) is None, STEP)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _all(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    try:
        rows = connection.execute(sql).fetchmany(MAX_ROWS + 1)
    except sqlite3.Error as error:
        raise BadDatabase(_code(error)) from error
    except (sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        raise BadDatabase("refused") from error
    if len(rows) > MAX_ROWS:
        raise BadDatabase("too much work")
    return rows


def _code(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM):
        return "too much work"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return "malformed"
    return "refused" if code == sqlite3.SQLITE_AUTH else "no such data"


def _only_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    refused = action == sqlite3.SQLITE_FUNCTION and str(second).lower() in NO_FUNCTIONS
    return _allow(action in READING and not refused)


def _allow(allowed: bool) -> int:
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _with_log(data: bytes, log: bytes) -> bytes:
    """The database after the transactions that its write-ahead log has committed."""
    size, pages = 0, {}
    pending: dict[int, bytes] = {}
    for number, total, page in _frames(log):
        pending[number] = page
        if total:
            size, pages = total, pages | pending
            pending = {}
    if not pages:
        return data
    length = len(next(iter(pages.values())))
    whole = bytearray(data[: size * length].ljust(size * length, b"\0"))
    for number, page in pages.items():
        if 1 <= number <= size:
            whole[(number - 1) * length : number * length] = page
    return bytes(whole)


def _frames(log: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(page number, pages of the database if this commits else 0, page) up to the first frame that is not valid."""
    if len(log) < 32:
        return
    magic, _, length = struct.unpack(">III", log[:12])
    order = WAL_MAGICS.get(magic)
    if order is None or length not in {512 << i for i in range(8)}:
        return
    sums = _check_sums(log[:24], order, (0, 0))
    if struct.unpack(">II", log[24:32]) != sums:
        return
    for start in range(32, len(log) - 24 - length + 1, 24 + length):
        head, page = log[start : start + 24], log[start + 24 : start + 24 + length]
        sums = _check_sums(head[:8] + page, order, sums)
        if head[8:16] != log[16:24] or struct.unpack(">II", head[16:]) != sums:
            return
        yield (*struct.unpack(">II", head[:8]), page)


def _check_sums(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for even, odd in struct.iter_unpack(f"{order}II", data):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
