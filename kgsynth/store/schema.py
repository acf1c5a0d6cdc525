"""The embedded store's file: its tables, how it is opened, and how a file of an older format becomes one of this.

format 1   text ids in every table, spans in a table of their own, no levels, no log
format 2   numbers as keys inside, levels, redirects with numbers, fenced leases, embeddings, tasks, the log
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

from kgsynth.errors import StoreError
from kgsynth.sqlite import BUSY_S, patiently
from kgsynth.store import Row, tables
from kgsynth.store.dag import levels_of

APPLICATION_ID = 0x4B475359  # "KGSY": tells our files from other programs'
FORMAT = 2  # PRAGMA user_version
CHECKPOINT = 8_192  # pages of 4 KiB in the write-ahead log before they are put in their places, many of them once for several commits
CACHE_KIB = 131_072  # of pages, per connection: a graph of 10^6 concepts is read from memory, not from the file

TABLES = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1), graph TEXT NOT NULL, n INTEGER NOT NULL DEFAULT 0, op INTEGER NOT NULL DEFAULT 0,
    concepts INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '',
    vectors INTEGER NOT NULL DEFAULT 0, lost_vectors INTEGER NOT NULL DEFAULT 0, copying TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE concept (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, level INTEGER NOT NULL, name TEXT NOT NULL,
    domain TEXT NOT NULL, definition TEXT NOT NULL, aliases TEXT NOT NULL, keywords TEXT NOT NULL, sense TEXT NOT NULL,
    atomic INTEGER, atomic_reason TEXT NOT NULL) STRICT;
CREATE TABLE name (key TEXT NOT NULL, concept INTEGER NOT NULL, PRIMARY KEY (key, concept)) STRICT, WITHOUT ROWID;
CREATE TABLE edge (
    n INTEGER PRIMARY KEY, parent INTEGER NOT NULL, child INTEGER NOT NULL, version INTEGER NOT NULL,
    spans TEXT NOT NULL) STRICT;
CREATE TABLE merged (n INTEGER PRIMARY KEY, fold TEXT NOT NULL, keep TEXT NOT NULL) STRICT;
CREATE TABLE source (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    licence TEXT NOT NULL, retrieved_at TEXT NOT NULL) STRICT;
CREATE TABLE decision (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, outcome TEXT NOT NULL,
    reason TEXT NOT NULL, evidence TEXT NOT NULL) STRICT;
CREATE TABLE frontier (
    n INTEGER PRIMARY KEY, concept TEXT NOT NULL, depth INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done')), attempts INTEGER NOT NULL, token INTEGER NOT NULL,
    owner TEXT NOT NULL, until REAL NOT NULL) STRICT;
CREATE TABLE embedding (concept INTEGER PRIMARY KEY, version INTEGER NOT NULL, vector BLOB NOT NULL) STRICT;
CREATE TABLE task (
    n INTEGER PRIMARY KEY, id TEXT NOT NULL, type TEXT NOT NULL, domain TEXT NOT NULL, granularity TEXT NOT NULL,
    prompt TEXT NOT NULL, concepts TEXT NOT NULL, pass_rate REAL, attempts INTEGER NOT NULL, policy TEXT NOT NULL) STRICT;
CREATE TABLE tests (concept TEXT NOT NULL, task INTEGER NOT NULL, PRIMARY KEY (concept, task)) STRICT, WITHOUT ROWID;
CREATE TABLE operation (
    n INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, note TEXT NOT NULL, undoes INTEGER, concepts TEXT NOT NULL,
    edges TEXT NOT NULL, before TEXT NOT NULL) STRICT;
"""

INDEXES = {
    "concept_id": "CREATE UNIQUE INDEX concept_id ON concept (id)",
    "name_concept": "CREATE INDEX name_concept ON name (concept)",
    "edge_ends": "CREATE UNIQUE INDEX edge_ends ON edge (parent, child)",
    "edge_up": "CREATE INDEX edge_up ON edge (child, parent)",
    "merged_fold": "CREATE UNIQUE INDEX merged_fold ON merged (fold)",
    "merged_keep": "CREATE INDEX merged_keep ON merged (keep)",
    "source_id": "CREATE UNIQUE INDEX source_id ON source (id)",
    "decision_id": "CREATE UNIQUE INDEX decision_id ON decision (id)",
    "frontier_concept": "CREATE UNIQUE INDEX frontier_concept ON frontier (concept)",
    "frontier_state": "CREATE INDEX frontier_state ON frontier (state, n)",
    "embedding_version": "CREATE INDEX embedding_version ON embedding (version)",
    "task_id": "CREATE UNIQUE INDEX task_id ON task (id)",
    "tests_task": "CREATE INDEX tests_task ON tests (task)",
}


def open_file(path: str) -> sqlite3.Connection:
    """Connect, make the tables in a new file, bring an old one to this format. Raises StoreError."""
    try:
        if path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db
    except (sqlite3.Error, OSError) as error:
        raise explained(error, path) from error


def _prepare(db: sqlite3.Connection, path: str) -> None:
    if _found(db, path) == 0:  # before anything is written: another program's file is left as it is
        patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))
    if _found(db, path) != FORMAT:
        db.execute("BEGIN IMMEDIATE")
        try:
            _bring_up(db, path, _found(db, path))  # nobody was faster?
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
    db.execute("PRAGMA mmap_size = 8589934592")


def _bring_up(db: sqlite3.Connection, path: str, found: int) -> None:
    if found == 0:
        _create(db)
    elif found == 1:
        _keep_copy(path)
        _from_format_1(db)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")


def _create(db: sqlite3.Connection) -> None:
    for statement in TABLES.strip().split(";\n"):
        db.execute(statement)
    for statement in INDEXES.values():
        db.execute(statement)
    db.execute("INSERT INTO state (one, graph) VALUES (1, ?)", (uuid.uuid4().hex,))


# One statement, so that nobody creates the file between one look and the next.
LOOK = """SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) AS tables
FROM pragma_application_id, pragma_user_version"""


def _found(db: sqlite3.Connection, path: str) -> int:
    """The format of a file, 0 for an empty one. Raises StoreError for another program's or a newer kgsynth's."""
    owner, found, tables = db.execute(LOOK).fetchone()
    if owner == APPLICATION_ID:
        if found > FORMAT:
            raise StoreError(
                f"{path} has format {found}, this kgsynth reads up to {FORMAT}; use the kgsynth that wrote it, or a new path"
            )
        return found
    if owner or found or tables:
        raise StoreError(f"{path} is a database of another program; choose another path for the graph")
    return 0


def _keep_copy(path: str) -> None:
    """The old file beside the new one, so that the older kgsynth can still read it."""
    copy, part = Path(f"{path}.format-1"), Path(f"{path}.format-1.part")
    if path != ":memory:" and not copy.exists():
        part.unlink(missing_ok=True)  # of a migration that was killed
        with closing(sqlite3.connect(path)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
        part.replace(copy)


def _from_format_1(db: sqlite3.Connection) -> None:
    """Numbers keep the order of insertion within each table; levels are worked out; the log starts empty."""
    found = _rows_of_format_1(db)
    merges, changes = db.execute("SELECT merges, changes FROM state").fetchone()
    for (table,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    ).fetchall():
        db.execute(f"DROP TABLE {table}")
    _create(db)
    for kind, new in found.items():
        tables.put(db, kind, new)
    n = max((row["n"] for new in found.values() for row in new), default=0)
    db.execute("UPDATE state SET n = ?, op = ?, concepts = ?", (n, changes + merges, len(found["concept"])))


def _rows_of_format_1(db: sqlite3.Connection) -> dict[str, list[Row]]:
    def read(sql: str) -> list[Row]:
        return [dict(row) for row in db.execute(sql).fetchall()]

    spans: dict[str, list[Row]] = {}
    for span in read("SELECT edge, source, url, start, stop AS end, text FROM span ORDER BY edge, place"):
        spans.setdefault(span.pop("edge"), []).append(span)
    edges = [{**edge, "spans": spans.get(edge.pop("id"), [])} for edge in read("SELECT * FROM edge ORDER BY n")]
    concepts = read("SELECT * FROM concept ORDER BY n")
    levels = levels_of([c["id"] for c in concepts], [(e["parent"], e["child"]) for e in edges])
    for concept in concepts:
        lists = {key: json.loads(concept[key]) for key in ("aliases", "keywords")}
        concept |= lists | {
            "level": levels[concept["id"]],
            "atomic": None if concept["atomic"] is None else bool(concept["atomic"]),
        }
    return {
        "source": read("SELECT * FROM source ORDER BY n"),
        "concept": concepts,
        "edge": edges,
        "merged": read("SELECT row_number() OVER (ORDER BY fold) AS n, fold, keep FROM merged"),
        "decision": read("SELECT * FROM decision ORDER BY n"),
        "frontier": read(
            "SELECT seq AS n, concept, depth, iif(state = 'done', state, 'waiting') AS state, attempts, 0 AS token FROM frontier"
        ),
    }


def faults(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the file, and the indexes that are missing or not what they should be; a sentence each."""
    damage = [row[0] for row in db.execute("PRAGMA quick_check(5)").fetchall() if row[0] != "ok"]
    return [f"the file is damaged: {text}" for text in damage] + [
        f"the index {name} is missing" for name in _missing(db)
    ]


def mend(db: sqlite3.Connection) -> None:
    for name in _missing(db):
        db.execute(f"DROP INDEX IF EXISTS {name}")
        db.execute(INDEXES[name])


def _missing(db: sqlite3.Connection) -> list[str]:
    there = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall())
    return [name for name, sql in INDEXES.items() if there.get(name) != sql]


def explained(error: Exception, path: str) -> StoreError:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        fix = "the file is damaged or of another program; restore it from a backup, or choose a new path"
    elif "locked" in text:
        fix = f"another process has held it for {BUSY_S:.0f} s; stop that one, or try again"
    elif "closed database" in text:
        fix = "the store was closed; open it again with open_store"
    elif "UNIQUE" in text:
        fix = "something is in it twice; run `kgsynth doctor --repair` on the graph"
    elif "full" in text:
        fix = "free some disk space and run again: what was committed is safe"
    else:
        fix = "check that the folder exists, is a local disk and can be written"
    return StoreError(f"graph store {path}: {text}; {fix}")
