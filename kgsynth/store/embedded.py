"""The default store: one SQLite file in WAL mode, safe for several processes and for kill -9.

A commit is one `BEGIN IMMEDIATE` transaction, so writers take turns; each first catches up with the edges the others
wrote, then checks for cycles in memory and writes. `synchronous=FULL` makes every acknowledged commit durable.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

from kgsynth.concept import Concept, Decision, Edge, Source, SourceSpan
from kgsynth.errors import StoreError
from kgsynth.store import Change, CommitResult, FrontierItem
from kgsynth.store.adjacency import Adjacency
from kgsynth.store.change import (
    absorb,
    bounded_spans,
    dropped_concept,
    dropped_edge,
    evidence_from_json,
    evidence_to_json,
    folded_edges,
    merged_concept,
    refused_edge,
    refused_merge,
)

APPLICATION_ID = 0x4B475359  # "KGSY": tells our files from other programs'
FORMAT = 1  # PRAGMA user_version
BUSY_SECONDS = 60.0  # how long a writer waits for its turn

SCHEMA = f"""
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), merges INTEGER NOT NULL, changes INTEGER NOT NULL) STRICT;
INSERT INTO state VALUES (1, 0, 0);
CREATE TABLE concept (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, name TEXT NOT NULL,
    domain TEXT NOT NULL, definition TEXT NOT NULL, aliases TEXT NOT NULL, keywords TEXT NOT NULL, sense TEXT NOT NULL,
    atomic INTEGER, atomic_reason TEXT NOT NULL) STRICT;
CREATE INDEX concept_version ON concept (version);
CREATE TABLE name (key TEXT NOT NULL, concept TEXT NOT NULL, PRIMARY KEY (key, concept)) STRICT, WITHOUT ROWID;
CREATE TABLE merged (fold TEXT PRIMARY KEY, keep TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE edge (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    parent TEXT NOT NULL REFERENCES concept (id), child TEXT NOT NULL REFERENCES concept (id)) STRICT;
CREATE INDEX edge_version ON edge (version);
CREATE INDEX edge_parent ON edge (parent);
CREATE INDEX edge_child ON edge (child);
CREATE TABLE span (
    edge TEXT NOT NULL REFERENCES edge (id) ON DELETE CASCADE, place INTEGER NOT NULL, source TEXT NOT NULL,
    url TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (edge, place)) STRICT, WITHOUT ROWID;
CREATE TABLE source (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, url TEXT NOT NULL, title TEXT NOT NULL,
    text TEXT NOT NULL, licence TEXT NOT NULL, retrieved_at TEXT NOT NULL) STRICT;
CREATE TABLE decision (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, subject TEXT NOT NULL,
    outcome TEXT NOT NULL, reason TEXT NOT NULL, evidence TEXT NOT NULL) STRICT;
CREATE TABLE frontier (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, concept TEXT NOT NULL UNIQUE REFERENCES concept (id), depth INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'leased', 'done')), owner TEXT NOT NULL DEFAULT '',
    lease_until REAL NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX frontier_state ON frontier (state, seq);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""

CONCEPT = "id, name, domain, definition, aliases, keywords, sense, atomic, atomic_reason"
SOURCE = ", ".join(f.name for f in fields(Source))
DECISION = "kind, subject, outcome, reason, evidence"
KEPT = "coalesce((SELECT keep FROM merged WHERE fold = :id), :id)"  # the id a concept id means after merges


class EmbeddedStore:
    """A GraphStore in one SQLite file (`:memory:` for a private one). Threads may share it, a forked child may not.

    `clock` returns seconds since the epoch; leases are measured by it.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock, self._pid = str(path), clock, os.getpid()
        self._lock = threading.RLock()
        self._graph = _Graph()
        self._db = _open(self.path)

    def commit(self, change: Change) -> CommitResult:
        with self._transaction() as db:
            self._graph.catch_up(db)
            return _Commit(db, self._graph).apply(change)

    def version(self) -> tuple[int, int]:
        row = self._read("SELECT merges, changes FROM state")[0]
        return row[0], row[1]

    def concept(self, concept_id: str) -> Concept | None:
        rows = self._read(f"SELECT {CONCEPT} FROM concept WHERE id = {KEPT}", {"id": concept_id})
        return _concept(rows[0]) if rows else None

    def concepts(self, since: int = 0) -> list[Concept]:
        rows = self._read(f"SELECT {CONCEPT} FROM concept WHERE version > ? ORDER BY n", (since,))
        return [_concept(row) for row in rows]

    def edges(self, since: int = 0) -> list[Edge]:
        return _edges(self._read(f"{EDGES} WHERE e.version > ? ORDER BY e.n, s.place", (since,)))

    def find(self, key: str) -> list[Concept]:
        chosen = "id IN (SELECT concept FROM name WHERE key = ?)"
        return [_concept(row) for row in self._read(f"SELECT {CONCEPT} FROM concept WHERE {chosen} ORDER BY n", (key,))]

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]:
        chosen = "" if ids is None else "WHERE id IN (SELECT value FROM json_each(?))"
        given = () if ids is None else (json.dumps(list(ids)),)
        rows = self._read(f"SELECT {SOURCE} FROM source {chosen} ORDER BY n", given)
        return [Source(**dict(row)) for row in rows]

    def decisions(self) -> list[Decision]:
        rows = self._read(f"SELECT {DECISION} FROM decision ORDER BY n")
        return [Decision(**{**dict(row), "evidence": evidence_from_json(row["evidence"])}) for row in rows]

    def lease(self, n: int, owner: str, seconds: float) -> list[FrontierItem]:
        now = self._clock()
        with self._transaction() as db:
            rows = db.execute(LEASE, {"owner": owner, "until": now + seconds, "now": now, "n": max(n, 0)}).fetchall()
        return sorted((FrontierItem(**dict(row)) for row in rows), key=lambda item: item.seq)

    def release(self, owner: str) -> int:
        with self._transaction() as db:
            return db.execute(RELEASE, (owner,)).rowcount

    def frontier(self) -> Mapping[str, int]:
        rows = self._read(FRONTIER, {"now": self._clock()})
        return {"waiting": 0, "leased": 0, "done": 0} | {row["state"]: row["items"] for row in rows}

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, sql: str, given: Any = ()) -> list[sqlite3.Row]:
        with self._usable():
            return self._db.execute(sql, given).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._usable():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                self._graph = _Graph()  # it may hold what is now rolled back
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _usable(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise StoreError(f"{self.path} was opened before a fork; open the store again in the new process")
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise _explained(error, self.path) from error


EDGES = """
SELECT e.id, e.parent, e.child, s.source, s.url, s.start, s.stop, s.text FROM edge e LEFT JOIN span s ON s.edge = e.id"""

LEASE = """
UPDATE frontier SET state = 'leased', owner = :owner, lease_until = :until, attempts = attempts + (state = 'leased')
WHERE seq IN (
    SELECT seq FROM frontier WHERE state = 'waiting' OR (state = 'leased' AND lease_until <= :now) ORDER BY seq LIMIT :n)
RETURNING concept, depth, seq, attempts"""

RELEASE = """
UPDATE frontier SET state = 'waiting', owner = '', lease_until = 0, attempts = attempts + 1
WHERE state = 'leased' AND owner = ?"""

FRONTIER = """
SELECT CASE WHEN state = 'leased' AND lease_until <= :now THEN 'waiting' ELSE state END AS state, count(*) AS items
FROM frontier GROUP BY 1"""


class _Graph:
    """The edges in memory, with what tells how far they are up to date."""

    def __init__(self) -> None:
        self.adjacency, self.last_edge, self.merges = Adjacency(), 0, 0
        self.kept: dict[str, str] = {}  # folded id -> the id it means now

    def catch_up(self, db: sqlite3.Connection) -> None:
        """Add the edges that other connections wrote since; a merge anywhere means reading all of them again."""
        merges = db.execute("SELECT merges FROM state").fetchone()[0]
        if merges != self.merges:
            self.adjacency, self.last_edge, self.merges = Adjacency(), 0, merges
            self.kept = dict(db.execute("SELECT fold, keep FROM merged").fetchall())
        for row in db.execute("SELECT n, parent, child FROM edge WHERE n > ? ORDER BY n", (self.last_edge,)):
            self.adjacency.add(row["parent"], row["child"])
            self.last_edge = row["n"]


class _Commit:
    """One change on its way into the database, inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, graph: _Graph) -> None:
        self.db, self.graph = db, graph
        self.version = db.execute("SELECT changes FROM state").fetchone()[0] + 1
        self.altered = False
        self.count = db.execute("SELECT count(*) FROM concept").fetchone()[0]
        self.result: dict[str, list[Any]] = {f.name: [] for f in fields(CommitResult)}

    def apply(self, change: Change) -> CommitResult:
        for source in change.sources:
            self._insert("source", id=source.id, **{f.name: getattr(source, f.name) for f in fields(Source)})
        for concept in change.concepts:
            self._concept(concept, change.max_concepts)
        for keep, fold in change.merges:
            self._merge(self._kept(keep), self._kept(fold))
        for edge in folded_edges(change.edges, self.graph.kept):
            self._edge(edge, change.max_concepts)
        for decision in change.decisions:
            self._decide(decision)
        for item in change.enqueue:
            self._enqueue(item)
        for concept_id in change.done:
            self._finish(self._kept(concept_id))
        if self.altered:
            self.db.execute("UPDATE state SET changes = ?", (self.version,))
        return CommitResult(**{name: tuple(dict.fromkeys(value)) for name, value in self.result.items()})

    def _kept(self, concept_id: str) -> str:
        return self.graph.kept.get(concept_id, concept_id)

    def _known(self, concept_id: str) -> bool:
        return bool(self.db.execute("SELECT 1 FROM concept WHERE id = ?", (concept_id,)).fetchone())

    def _get(self, concept_id: str) -> Concept | None:
        row = self.db.execute(f"SELECT {CONCEPT} FROM concept WHERE id = ?", (concept_id,)).fetchone()
        return _concept(row) if row else None

    def _insert(self, table: str, **row: Any) -> bool:
        """Insert unless its id is there already; True when a row was written."""
        columns, marks = ", ".join(row), ", ".join("?" * len(row))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        return self.db.execute(sql, tuple(row.values())).rowcount > 0

    def _concept(self, concept: Concept, cap: int | None) -> None:
        concept_id = self._kept(concept.id)
        if old := self._get(concept_id):
            self._rewrite(concept_id, old, absorb(old, concept))
        elif cap is not None and self.count >= cap:
            self.result["dropped"].append(concept_id)
            self._decide(dropped_concept(concept, cap))
        else:
            self._insert("concept", id=concept_id, version=self.version, **_columns(concept))
            self._names(concept_id, concept)
            self.result["added"].append(concept_id)
            self.count += 1
            self.altered = True

    def _rewrite(self, concept_id: str, old: Concept, new: Concept) -> None:
        if new != old:
            row = _columns(new) | {"version": self.version}
            marks = ", ".join(f"{column} = ?" for column in row)
            self.db.execute(f"UPDATE concept SET {marks} WHERE id = ?", (*row.values(), concept_id))
            self._names(concept_id, new)
            self.altered = True

    def _names(self, concept_id: str, concept: Concept) -> None:
        for key in concept.keys:
            self._insert("name", key=key, concept=concept_id)

    def _edge(self, edge: Edge, cap: int | None) -> None:
        ends = (edge.parent, edge.child)
        if edge.child in self.graph.adjacency.children.get(edge.parent, ()):
            self._add_spans(edge)
        elif cap is not None and set(ends) & set(self.result["dropped"]):
            self._decide(dropped_edge(edge, cap))
        elif not all(map(self._known, ends)):
            self._refuse(edge, "missing end")
        elif self.graph.adjacency.path(edge.child, edge.parent):
            self._refuse(edge, "cycle")
        else:
            self._link(edge)
            self.result["linked"].append(edge.id)

    def _refuse(self, edge: Edge, reason: str) -> None:
        self.result["refused"].append(edge)
        self._decide(refused_edge(edge, reason))

    def _link(self, edge: Edge) -> None:
        self._insert("edge", id=edge.id, version=self.version, parent=edge.parent, child=edge.child)
        self.graph.last_edge = self.db.execute("SELECT last_insert_rowid()").fetchone()[0]
        self.graph.adjacency.add(edge.parent, edge.child)
        self._add_spans(edge)
        self.altered = True

    def _add_spans(self, edge: Edge) -> None:
        old = self._spans(edge.id)
        for place, span in enumerate(spans := bounded_spans(old, edge.spans)):
            if place >= len(old):
                row = {"source": span.source, "url": span.url, "start": span.start, "stop": span.end, "text": span.text}
                self._insert("span", edge=edge.id, place=place, **row)
        if len(spans) > len(old):
            self.db.execute("UPDATE edge SET version = ? WHERE id = ?", (self.version, edge.id))
            self.altered = True

    def _spans(self, edge_id: str) -> tuple[SourceSpan, ...]:
        rows = self.db.execute(f"{EDGES} WHERE e.id = ? ORDER BY s.place", (edge_id,)).fetchall()
        return _edges(rows)[0].spans if rows else ()

    def _merge(self, keep: str, fold: str) -> None:
        kept, folded = self._get(keep), self._get(fold)
        if keep == fold or not kept or not folded:
            return  # done already, or nothing to fold
        if self.graph.adjacency.merge_path(keep, fold):
            self._decide(refused_merge(keep, fold))
            return
        parents, children = (
            tuple(side.get(fold, ())) for side in (self.graph.adjacency.parents, self.graph.adjacency.children)
        )
        self._repoint(keep, fold, parents, children)
        self.db.execute("UPDATE OR REPLACE name SET concept = ? WHERE concept = ?", (keep, fold))
        self._rewrite(keep, kept, absorb(kept, folded))
        self._insert("merged", fold=fold, keep=keep)
        self.db.execute("UPDATE merged SET keep = ? WHERE keep = ?", (keep, fold))
        self.db.execute("UPDATE OR IGNORE frontier SET concept = ? WHERE concept = ?", (keep, fold))
        self.db.execute("DELETE FROM frontier WHERE concept = ?", (fold,))
        self.db.execute("DELETE FROM concept WHERE id = ?", (fold,))
        self.db.execute("UPDATE state SET merges = merges + 1")
        self._decide(merged_concept(keep, folded, parents, children))
        self.graph.catch_up(self.db)
        self.result["merged"].append(fold)
        self.count -= 1
        self.altered = True

    def _repoint(self, keep: str, fold: str, parents: Iterable[str], children: Iterable[str]) -> None:
        """Move the edges of `fold` to `keep`: those that exist there gain the spans, those between the two go."""
        old = [(parent, fold) for parent in parents] + [(fold, child) for child in children]
        for parent, child in old:
            gone = Edge(parent=parent, child=child)
            moved = Edge(
                parent=keep if parent == fold else parent,
                child=keep if child == fold else child,
                spans=self._spans(gone.id),
            )
            self.db.execute("DELETE FROM edge WHERE id = ?", (gone.id,))
            if moved.child in self.graph.adjacency.children.get(moved.parent, ()):
                self._add_spans(moved)
            elif moved.parent != moved.child:
                self._link(moved)

    def _decide(self, decision: Decision) -> None:
        row = {name: getattr(decision, name) for name in ("kind", "subject", "outcome", "reason")}
        self._insert("decision", id=decision.id, **row, evidence=evidence_to_json(decision))

    def _enqueue(self, item: FrontierItem) -> None:
        concept_id = self._kept(item.concept)
        if self._known(concept_id):
            self._insert("frontier", concept=concept_id, depth=item.depth, state="waiting", attempts=item.attempts)

    def _finish(self, concept_id: str) -> None:
        self.db.execute("UPDATE frontier SET state = 'done', owner = '' WHERE concept = ?", (concept_id,))


def _columns(concept: Concept) -> dict[str, Any]:
    row = {f.name: getattr(concept, f.name) for f in fields(Concept)}
    lists = {name: json.dumps(row[name], ensure_ascii=False) for name in ("aliases", "keywords")}
    return row | lists | {"atomic": None if concept.atomic is None else int(concept.atomic)}


def _concept(row: sqlite3.Row) -> Concept:
    values: dict[str, Any] = dict(row)
    del values["id"]
    for name in ("aliases", "keywords"):
        values[name] = tuple(json.loads(values[name]))
    values["atomic"] = None if values["atomic"] is None else bool(values["atomic"])
    return Concept(**values)


def _edges(rows: Iterable[sqlite3.Row]) -> list[Edge]:
    found = []
    for (parent, child), group in groupby(rows, key=lambda row: (row["parent"], row["child"])):
        spans = tuple(
            SourceSpan(source=r["source"], url=r["url"], start=r["start"], end=r["stop"], text=r["text"])
            for r in group
            if r["source"] is not None
        )
        found.append(Edge(parent=parent, child=child, spans=spans))
    return found


def _open(path: str) -> sqlite3.Connection:
    """Connect, make the tables in a new file, check the format of an old one. Raises StoreError."""
    try:
        if path != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
        return db
    except (sqlite3.Error, OSError) as error:
        raise _explained(error, path) from error


def _prepare(db: sqlite3.Connection, path: str) -> None:
    if not _ours(db, path):  # before anything is written: another program's file is left as it is
        _patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))
        db.execute("BEGIN IMMEDIATE")
        if not _ours(db, path):  # nobody was faster
            for statement in SCHEMA.split(";\n"):
                db.execute(statement)
        db.execute("COMMIT")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")


def _ours(db: sqlite3.Connection, path: str) -> bool:
    """False for an empty file. Raises StoreError for another program's or another format's."""
    found = tuple(db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if found == (APPLICATION_ID, FORMAT):
        return True
    if found[0] == APPLICATION_ID:
        raise StoreError(
            f"{path} has format {found[1]}, this kgsynth reads {FORMAT}; use the kgsynth that wrote it, or a new path"
        )
    if found != (0, 0) or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise StoreError(f"{path} is a database of another program; choose another path for the graph")
    return False


def _patiently(act: Callable[[], object]) -> None:
    """Changing the journal mode does not wait for its turn as other statements do, so that we wait."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            act()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _explained(error: Exception, path: str) -> StoreError:
    text = str(error)
    if "not a database" in text or "malformed" in text:
        fix = "the file is damaged or of another program; restore it from a copy, or choose a new path"
    elif "locked" in text:
        fix = f"another process has held it for {BUSY_SECONDS:.0f} s; stop that one, or try again"
    elif "closed database" in text:
        fix = "the store was closed; open it again with open_store"
    elif "full" in text:
        fix = "free some disk space and run again: what was committed is safe"
    else:
        fix = "check that the folder exists, is a local disk and can be written"
    return StoreError(f"graph store {path}: {text}; {fix}")
