"""What is particular to the embedded store. What it shares with Neo4j is in tests/conformance/."""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from kgsynth.errors import ConfigError, StoreError, UndoError
from kgsynth.store import Change, open_store
from kgsynth.store.embedded import EmbeddedStore
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, check, edge, levels, undo_all

ROOT = Path(__file__).resolve().parents[1]

KILLED = """
import sys
from kgsynth.concept import Concept, Decision, Edge
from kgsynth.store import Change, FrontierItem, open_store
store, start = open_store(sys.argv[1]), int(sys.argv[2])
root = Concept(name="root", domain="test")
store.commit(Change(concepts=(root,)))
for i in range(start, start + 10_000):
    new = Concept(name=f"n{i}", domain="test")
    decision = Decision(kind="dedup", subject=new.name, outcome="new", reason="test")
    store.commit(Change(concepts=(new,), edges=(Edge(parent=root.id, child=new.id),), decisions=(decision,),
                        enqueue=(FrontierItem(concept=new.id, depth=1),)))
    print(i, flush=True)
"""


def test_kill_9_loses_no_acknowledged_commit_and_leaves_no_half(tmp_path: Path) -> None:
    path, dice, acknowledged = tmp_path / "graph.sqlite", random.Random(0), []
    for round_ in range(6):
        command = [sys.executable, "-c", KILLED, str(path), str(round_ * 10_000)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        for _ in range(dice.randrange(1, 40)):
            acknowledged.append(int(process.stdout.readline()))
        os.kill(process.pid, signal.SIGKILL)
        rest, _ = process.communicate()
        acknowledged += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    with EmbeddedStore(path) as store:
        names = {c.name for c in store.concepts()}
        assert {f"n{i}" for i in acknowledged} <= names
        assert len(names) - 1 <= len(acknowledged) + 6, "at most one unacknowledged commit for each kill"
        assert len(store.edges()) == len(store.decisions()) == store.frontier()["waiting"] == len(names) - 1
        check(store)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_damaged_or_foreign_files_are_named_and_left_alone(tmp_path: Path) -> None:
    text, other, newer, torn = (tmp_path / name for name in ("text", "other.sqlite", "newer.sqlite", "torn.sqlite"))
    text.write_text("not a database, but long enough to have a header of one hundred bytes " * 4)
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE concept (x)")
    EmbeddedStore(newer).close()
    with closing(sqlite3.connect(newer)) as db:
        db.execute("PRAGMA user_version = 99")
    cases = ((text, "choose a new path"), (other, "another program"), (newer, "format 99"), (tmp_path, "check that"))
    for path, message in cases:
        before = path.read_bytes() if path.is_file() else b""
        with pytest.raises(StoreError, match=message):
            EmbeddedStore(path)
        assert (path.read_bytes() if path.is_file() else b"") == before
    with EmbeddedStore(torn) as store:
        store.commit(CHAIN)
    torn.write_bytes(torn.read_bytes()[:4096] + b"\xff" * 4096)
    with pytest.raises(StoreError, match=re.escape(str(torn))):
        EmbeddedStore(torn).concepts()


def test_open_store_takes_paths_and_urls(tmp_path: Path) -> None:
    for url in (f"sqlite:{tmp_path / 'new' / 'a.sqlite'}", str(tmp_path / "b.sqlite"), ":memory:"):
        store = open_store(url)
        assert store.commit(CHAIN).added == (A.id, B.id, C.id)
        store.close()
    assert (tmp_path / "new" / "a.sqlite").exists()
    with pytest.raises(ConfigError, match="use sqlite:PATH"):
        open_store("mysql://localhost")


FORMAT_1 = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), merges INTEGER NOT NULL, changes INTEGER NOT NULL) STRICT;
CREATE TABLE concept (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    name TEXT NOT NULL, domain TEXT NOT NULL, definition TEXT NOT NULL, aliases TEXT NOT NULL, keywords TEXT NOT NULL,
    sense TEXT NOT NULL, atomic INTEGER, atomic_reason TEXT NOT NULL) STRICT;
CREATE TABLE name (key TEXT NOT NULL, concept TEXT NOT NULL, PRIMARY KEY (key, concept)) STRICT, WITHOUT ROWID;
CREATE TABLE merged (fold TEXT PRIMARY KEY, keep TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE edge (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    parent TEXT NOT NULL REFERENCES concept (id), child TEXT NOT NULL REFERENCES concept (id)) STRICT;
CREATE TABLE span (edge TEXT NOT NULL REFERENCES edge (id) ON DELETE CASCADE, place INTEGER NOT NULL,
    source TEXT NOT NULL, url TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (edge, place)) STRICT, WITHOUT ROWID;
CREATE TABLE source (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, url TEXT NOT NULL, title TEXT NOT NULL,
    text TEXT NOT NULL, licence TEXT NOT NULL, retrieved_at TEXT NOT NULL) STRICT;
CREATE TABLE decision (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    subject TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, evidence TEXT NOT NULL) STRICT;
CREATE TABLE frontier (seq INTEGER PRIMARY KEY AUTOINCREMENT, concept TEXT NOT NULL UNIQUE REFERENCES concept (id),
    depth INTEGER NOT NULL, state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done')),
    owner TEXT NOT NULL DEFAULT '', lease_until REAL NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0) STRICT;
PRAGMA application_id = 1262965593;
PRAGMA user_version = 1;
"""


def old_graph(path: Path) -> None:
    """a -> b -> c with a page, an old name folded into b, and a frontier, as format 1 kept them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(FORMAT_1)
        db.execute("INSERT INTO state VALUES (1, 1, 4)")
        for n, c in enumerate((A, B, C), 1):
            row = (n, c.id, n, c.name, c.domain, "", '["x"]' if c == B else "[]", "[]", "", int(c == C) or None, "")
            db.execute("INSERT INTO concept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        for n, e in enumerate((edge(A, B), edge(B, C)), 1):
            db.execute("INSERT INTO edge VALUES (?, ?, ?, ?, ?)", (n, e.id, 4, e.parent, e.child))
        span = SPANS[2]
        db.execute("INSERT INTO span VALUES (?, 0, ?, ?, ?, ?, ?)", (edge(A, B).id, span.source, span.url, span.start, span.end, span.text))  # fmt: skip
        db.execute("INSERT INTO source VALUES (1, ?, ?, ?, ?, ?, '')", (PAGE.id, PAGE.url, PAGE.title, PAGE.text, PAGE.licence))  # fmt: skip
        db.execute("INSERT INTO decision VALUES (1, 'd_1', 'atomic', ?, 'atomic', 'r', '[[\"n\", 1]]')", (C.id,))
        db.execute("INSERT INTO merged VALUES ('c_old', ?)", (B.id,))
        db.execute("INSERT INTO frontier VALUES (1, ?, 0, 'done', '', 0, 0), (2, ?, 1, 'leased', 'me', 9e9, 1)", (A.id, B.id))  # fmt: skip


def test_a_graph_of_format_1_is_brought_to_this_one(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    old_graph(path)
    with EmbeddedStore(path) as store:
        assert [c.name for c in store.concepts()] == ["a", "b", "c"]
        assert (store.concepts()[1].aliases, store.concepts()[2].atomic) == (("x",), True)
        assert store.edges() == [edge(A, B, SPANS[2]), edge(B, C)]
        assert levels(store) == {"a": 0, "b": 1, "c": 2}
        assert (store.sources(), len(store.decisions())) == ([PAGE], 1)
        assert store.concept("c_old") == store.find("x")[0] == store.concepts()[1]
        assert store.operations() == []
        with pytest.raises(UndoError, match="the log is empty"):
            store.undo(store.version())
        assert store.frontier() == {"waiting": 1, "leased": 0, "done": 1}
        start = store.version()
        assert store.commit(CHAIN).op == 0
        op = store.commit(Change(edges=(edge(C, A), edge(A, C)))).op
        assert op == start + 1
        store.undo(op)
        assert len(store.edges()) == 2
    copy = Path(f"{path}.format-1")
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM concept").fetchone() == (3,)
    with EmbeddedStore(path) as again:
        assert len(again.concepts()) == 3


def test_what_a_killed_migration_left_of_the_old_file_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    old_graph(path)
    Path(f"{path}.format-1.part").write_bytes(path.read_bytes()[:4096])
    EmbeddedStore(path).close()
    with closing(sqlite3.connect(f"{path}.format-1")) as db:
        assert db.execute("SELECT count(*) FROM concept").fetchone() == (3,)
    assert sorted(os.listdir(tmp_path)) == ["graph.sqlite", "graph.sqlite.format-1"]


def test_memory_stores_are_private() -> None:
    with EmbeddedStore(":memory:") as one, EmbeddedStore(":memory:") as two:
        one.commit(CHAIN)
        assert two.concepts() == []
        undo_all(one)
