"""The checks of a world's final state, on states made here; the lints of its params; databases from strangers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import VerifierError
from kgsynth.verifiers.world import grade
from kgsynth.verifiers.worlds import database
from kgsynth.verifiers.worlds.checks import holds
from kgsynth.verifiers.worlds.state import Entry, State, built, of_files

BEFORE = {"a.txt": b"one\n", "log": b"start\n", "d/x": b"1", "d/y": b"2"}
ORDERS = "CREATE TABLE orders(id INTEGER PRIMARY KEY, status TEXT); INSERT INTO orders VALUES (1, 'open'), (2, 'done');"


def code(check: dict[str, Any], **changed: bytes | None) -> str:
    """What a check says of BEFORE with some files changed (None: deleted); names with / are given as a__b."""
    after = {**BEFORE, **{name.replace("__", "/").replace("_DOT_", "."): data for name, data in changed.items()}}
    final = of_files({path: data for path, data in after.items() if data is not None})
    return holds(check, final, of_files(BEFORE))


JSON = {"check": "json", "path": "v", "at": "/a/1", "value": 2}
ROWS = {"check": "csv", "path": "v", "rows": [["x", 1.5], ["y", 2]], "columns": ["name", "n"]}
LOG = {"check": "log", "path": "log", "contains": [{"event": "paid", "id": 7}, "bye"]}


@pytest.mark.parametrize(
    ("check", "content", "expected"),
    [
        ({"check": "equals", "path": "v", "text": "hi"}, b"hi\n", ""),
        ({"check": "equals", "path": "v", "text": "hi\n"}, b"hi", ""),
        ({"check": "equals", "path": "v", "text": "hi"}, b"hi\n\n", "different"),
        ({"check": "equals", "path": "v", "text": "hi"}, b" hi", "different"),
        ({"check": "equals", "path": "v", "base64": "AAE="}, b"\0\1", ""),
        ({"check": "equals", "path": "v", "text": ""}, None, "absent"),
        ({"check": "absent", "path": "v"}, b"", "present"),
        ({"check": "absent", "path": "v"}, None, ""),
        (JSON, b'{"a": [1, 2.0]}', ""),
        (JSON, b'\xef\xbb\xbf{"a": [1, 2]}', ""),
        (JSON, b'{"a": [1, "2"]}', "different"),
        (JSON, b'{"a": [1]}', "no such value"),
        (JSON, b'{"a": {"1": 2}}', ""),
        (JSON, b'{"a": [1, 3], "a": [1, 2]}', "malformed"),
        (JSON, b'{"a": [1, 2], "b": NaN}', "malformed"),
        (JSON, b"[" * 100_000, "malformed"),
        (JSON, b"[" * 150 + b"]" * 150, "malformed"),
        (JSON, b'{"a": [1, ' + b"9" * 5000 + b"]}", "malformed"),
        (JSON, b"\xff", "not text"),
        ({**JSON, "at": "", "value": True}, b"1", "different"),
        ({**JSON, "at": "", "value": {"b": None, "a": []}}, b'{"a": [], "b": null}', ""),
        ({**JSON, "at": "/a~1b/~0", "value": 1}, b'{"a/b": {"~": 1}}', ""),
        (ROWS, b"name,n\nx,1.5\ny,2\n", ""),
        (ROWS, b'n,name\r\n2.0,"y"\r\n1.50,x\r\n', ""),
        (ROWS, b"name,n\nx,1.5\ny,2\ny,2\n", "different"),
        (ROWS, b"name,n\nx,1.5\n", "different"),
        (ROWS, b"name,n,more\nx,1.5,\ny,2,\n", "other columns"),
        (ROWS, b"name,n\nx,1.5,7\ny,2\n", "different"),
        (ROWS, b'name,n\n"x,1.5\ny,2\n', "malformed"),
        (ROWS, b"", "other columns"),
    ],
)
def test_files(check: dict[str, Any], content: bytes | None, expected: str) -> None:
    assert code(check, v=content) == expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (b'{"event": "paid", "id": 7, "at": 1}\nbye\n', ""),
        (b'\n{"id": 7.0, "event": "paid"}\nnoise\n  bye', ""),
        (b'bye\n{"event": "paid", "id": 7}\n', "no such entry"),
        (b'{"event": "paid", "id": "7"}\nbye\n', "no such entry"),
        (b'"event": "paid", "id": 7\nbye\n', "no such entry"),
        (b"", "no such entry"),
    ],
)
def test_log_is_appended_to(added: bytes, expected: str) -> None:
    assert code(LOG, log=BEFORE["log"] + added) == expected


def test_log_is_not_rewritten() -> None:
    entries = b'{"event": "paid", "id": 7}\nbye\n'
    assert code(LOG, log=entries) == "rewritten"
    assert code(LOG, log=entries + BEFORE["log"]) == "rewritten"
    assert code({**LOG, "exactly": True}, log=b"start\n" + entries) == ""
    assert code({**LOG, "exactly": True}, log=b"start\n" + entries + b"more\n") == "other entries"


def test_unchanged_sees_collateral_damage() -> None:
    check = {"check": "unchanged", "except": ["out", "new/*", "s.db"]}
    assert code(check, out=b"", new__x=b"") == ""
    assert code({"check": "unchanged"}) == ""
    assert code(check, a_DOT_txt=b"one") == "changed"
    assert code(check, a_DOT_txt=None) == "changed"
    assert code(check, other=b"") == "new files"
    assert code(check, **{"s.db-wal": b"", "s.db-shm": b""}) == ""


def test_tree_is_whole() -> None:
    check = {"check": "tree", "path": "d", "files": {"x": "1", "y": "3"}}
    assert code(check, d__y=b"3\n") == ""
    assert code(check, d__y=b"4") == "different"
    assert code(check, d__y=b"3", d__z=b"") == "other files"
    assert code(check, d__x=None, d__y=b"3") == "other files"


@pytest.mark.parametrize(("kind", "readable", "expected"), [("l", True, "not a file"), ("p", True, "not a file"), ("f", False, "unreadable")])  # fmt: skip
def test_what_is_no_plain_file_is_nothing(kind: str, readable: bool, expected: str) -> None:
    entries = {"a.txt": Entry(kind=kind, size=4, readable=readable)}
    final = State(entries=entries, fetch=lambda path: b"two\n")
    assert holds({"check": "equals", "path": "a.txt", "text": "two"}, final, of_files(BEFORE)) == expected
    assert holds({"check": "absent", "path": "a.txt"}, final, of_files(BEFORE)) == "present"


def test_large_files_are_not_read() -> None:
    final = State(entries={"v": Entry(kind="f", size=1 << 40)}, fetch=lambda path: pytest.fail("read"))
    assert holds({"check": "equals", "path": "v", "text": "x"}, final, of_files({})) == "too large"


GOAL = {"check": "equals", "path": "out", "text": "42"}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"checks": []}, "at least one"),
        ({"checks": [{"check": "unchanged"}]}, "doing nothing would be paid"),
        ({"checks": [{"check": "equals", "path": "in", "text": "x"}]}, "doing nothing would be paid"),
        ({"checks": [{"check": "absent", "path": "in"}]}, "deleting everything would be paid"),
        ({"checks": [GOAL, {"check": "absent", "path": "in"}], "partial": True}, "deleting everything would be paid"),
        ({"checks": [{"check": "log", "path": "out", "contains": []}]}, "'contains' must be"),
        ({"checks": [{"check": "log", "path": "out", "contains": [{}]}]}, "'contains' must be"),
        ({"checks": [{"check": "equals", "path": "out"}]}, "must be a text or have one of"),
        ({"checks": [{"check": "equals", "text": "x"}]}, "lacks path"),
        ({"checks": [{**GOAL, "mode": 1}]}, "unknown mode"),
        ({"checks": [{"check": "exists", "path": "out"}]}, "must have"),
        ({"checks": ["out"]}, "must have"),
        ({"checks": [{"check": "csv", "path": "out", "rows": [["a"], ["b", "c"]]}]}, "all of one length"),
        ({"checks": [{"check": "json", "path": "out", "at": "a.b", "value": 1}]}, "JSON pointer"),
        ({"checks": [GOAL, {"check": "unchanged", "except": ["*"]}]}, "not of all"),
        ({"checks": [{"check": "script", "python": "print(1)", "expect": None}]}, "not empty or false"),
        ({"checks": [{**GOAL, "path": "../out"}]}, "plain relative path"),
        ({"checks": [{**GOAL, "path": "/out"}]}, "plain relative path"),
        ({"checks": [GOAL], "files": {"a": "x", "a/b": "y"}}, "cannot be a file and the folder"),
        ({"checks": [GOAL], "files": {"a": {"base64": "!"}}}, "is no base64"),
        ({"checks": [GOAL], "files": {"a": {"sqlite": "CREATE"}}}, "is no sqlite"),
        ({"checks": [GOAL], "files": {"a": {"sqlite": ""}}}, "is no sqlite"),
        ({"checks": [GOAL], "files": {"a": 1}}, "must be a text"),
        ({"checks": [GOAL], "language": "perl"}, "'language'"),
        ({"checks": [GOAL], "seconds": 0}, "'seconds'"),
        ({"checks": [GOAL], "partial": 1}, "'partial'"),
        ({"checks": [GOAL], "max_chars": 10**9}, "'max_chars'"),
        ({"checks": [GOAL], "extra": 1}, "unknown parameter 'extra'"),
        ({"checks": [GOAL], "files": {"a": b"x"}}, "plain JSON"),
        ({"checks": [{"check": "script", "python": "print(1)", "expect": 1}]}, "pass a sandbox"),
    ],
)
def test_params_are_refused(params: dict[str, Any], said: str) -> None:
    with pytest.raises(VerifierError, match=said):
        grade(None, {"files": {"in": "x"}, "language": "sh", **params})  # type: ignore[arg-type]


def orders(path: Path, *statements: str) -> bytes:
    """A database with ORDERS, altered by SQLite itself."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(ORDERS)
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


DONE = {"check": "sqlite", "path": "s.db", "query": "SELECT id, status FROM orders", "rows": [[2, "done"], [1, "done"]]}


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["UPDATE orders SET status = 'done'"], ""),
        ([], "different"),
        (["UPDATE orders SET status = 'done'", "INSERT INTO orders VALUES (3, 'done')"], "different"),
        (["UPDATE orders SET status = 'Done'"], "different"),
        (["DROP TABLE orders"], "no such data"),
        (["DROP TABLE orders", "CREATE VIEW orders AS SELECT 1 AS id, 'done' AS status UNION SELECT 2, 'done'"], "refused"),
        (["DROP TABLE orders", "CREATE VIRTUAL TABLE orders USING fts5(id, status)"], "refused"),
        (["DROP TABLE orders", "CREATE VIEW orders AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) SELECT id, 'done' AS status FROM c"], "refused"),
        (["UPDATE orders SET status = 'done'", "CREATE TRIGGER t AFTER UPDATE ON orders BEGIN DELETE FROM orders; END"], ""),
    ],
)  # fmt: skip
def test_databases(statements: list[str], expected: str, tmp_path: Path) -> None:
    before = of_files({"s.db": database.build(ORDERS)})
    assert holds(DONE, of_files({"s.db": orders(tmp_path / "s.db", *statements)}), before) == expected


@pytest.mark.parametrize("length", [0, 10, 100, 600, 4096, 5000])
def test_broken_databases_are_malformed(length: int, tmp_path: Path) -> None:
    whole = orders(tmp_path / "s.db", "UPDATE orders SET status = 'done'", "CREATE INDEX i ON orders(status)")
    broken = whole[:length] + b"\xff" * (len(whole) - length if length else 0)
    assert holds(DONE, of_files({"s.db": broken}), of_files({})) in ("malformed", "refused", "no such data")


def test_an_index_cannot_tell_what_the_table_does_not(tmp_path: Path) -> None:
    """An index that was swapped for another table's answers queries in its table's place; its table tells otherwise."""
    swap = "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'j') WHERE name = 'i'"
    index = "CREATE INDEX i ON orders(status)"
    other = ("CREATE TABLE other AS SELECT id, 'done' AS status FROM orders", "CREATE INDEX j ON other(status)")
    query = "SELECT id FROM orders WHERE status = 'done'"
    path = tmp_path / "s.db"
    lying = orders(path, index, *other, "PRAGMA writable_schema = ON", swap)
    with closing(sqlite3.connect(path)) as connection:
        assert sorted(connection.execute(query)) == [(1,), (2,)]
    assert holds({**DONE, "query": query, "rows": [[1], [2]]}, of_files({"s.db": lying}), of_files({})) == "malformed"


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c",
        "SELECT hex(zeroblob(1000000000))",
    ],
)
def test_queries_that_never_end_are_cut(query: str) -> None:
    with pytest.raises(database.BadDatabase, match="too much work"):
        database.query(database.build(ORDERS), query)


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM orders",
        "ATTACH '/etc/passwd' AS p",
        "PRAGMA user_version = 1",
        "SELECT load_extension('x')",
        "VACUUM INTO '{tmp}/copy'",
        "SELECT 1; SELECT 2",
    ],
)
def test_only_reading_is_allowed(query: str, tmp_path: Path) -> None:
    with pytest.raises(database.BadDatabase, match=r"refused|no such data"):
        database.query(database.build(ORDERS), query.format(tmp=tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sql", ["ATTACH '{tmp}/x' AS p; CREATE TABLE p.t(a)", "VACUUM INTO '{tmp}/copy'"])
def test_making_a_database_writes_no_file(sql: str, tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match="is no sqlite"):
        built({"s.db": {"sqlite": ORDERS + sql.format(tmp=tmp_path)}}, "files")
    assert not list(tmp_path.iterdir())


def test_the_write_ahead_log_counts_as_sqlite_counts_it(tmp_path: Path) -> None:
    """A process that was killed leaves what it committed in the log, and what it did not commit does not count."""
    path = tmp_path / "s.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;" + ORDERS)
        connection.execute("UPDATE orders SET status = 'done'")
        connection.executescript("CREATE TABLE filler(a); INSERT INTO filler VALUES (hex(randomblob(20000)))")
        data, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
        assert database.query(data, DONE["query"], log=log) == connection.execute(DONE["query"]).fetchall()
        assert holds(DONE, of_files({"s.db": data, "s.db-wal": log}), of_files({})) == ""
        assert holds(DONE, of_files({"s.db": data}), of_files({})) != ""
        assert holds(DONE, of_files({"s.db": data, "s.db-wal": log[:-100]}), of_files({})) == ""
        torn = log[:32] + bytes([log[32] ^ 1]) + log[33:]
        assert holds(DONE, of_files({"s.db": data, "s.db-wal": torn}), of_files({})) != ""


def test_a_transaction_that_was_cut_off_is_not_trusted(tmp_path: Path) -> None:
    """A hot journal would undo what the main file shows, and may name any file of this machine."""
    data = orders(tmp_path / "s.db", "UPDATE orders SET status = 'done'")
    journal = database.JOURNAL_MAGIC + b"\0" * 500 + b"/etc/passwd"
    assert holds(DONE, of_files({"s.db": data, "s.db-journal": journal}), of_files({})) == "unfinished transaction"
    assert holds(DONE, of_files({"s.db": data, "s.db-journal": b"\0" * 512}), of_files({})) == ""


def test_files_are_made_of_text_json_csv_and_sql() -> None:
    files = built(
        {"t": "x", "j": {"json": {"a": 1}}, "c": {"csv": [["a", 1], ["b,c", 2]]}, "d": {"sqlite": ORDERS}}, "files"
    )
    assert files["t"] == b"x"
    assert json.loads(files["j"]) == {"a": 1}
    assert files["c"] == b'a,1\n"b,c",2\n'
    assert database.query(files["d"], "SELECT count(*) FROM orders") == [(2,)]
