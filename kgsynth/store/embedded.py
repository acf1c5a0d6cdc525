"""The default store: one SQLite file in WAL mode, safe for several processes and for kill -9.

A commit is one `BEGIN IMMEDIATE` transaction, so writers take turns, and each sees all that the others wrote: nothing of the
graph is kept in memory between commits. Checks walk the edges in the file, which levels keep short (`dag.py`).
`synchronous=FULL` makes every acknowledged commit durable.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import StoreError
from kgsynth.store import KINDS, FrontierItem, Row, Skeleton, TaskRecord, rows, schema, tables, unfinished
from kgsynth.store.base import LoggedStore, checked_vectors
from kgsynth.store.draft import Pair
from kgsynth.store.embedded_tx import CONCEPT, GIVEN, EmbeddedTx, as_json, to_concept

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kgsynth.nearest import Nearest

T = TypeVar("T")

KEPT = "coalesce((SELECT keep FROM merged WHERE fold = :id), :id)"  # the id a concept id means after merges
TASKS_OF = f"""
SELECT * FROM task WHERE n IN (
    SELECT t.task FROM concept c JOIN tests t ON t.concept = c.id OR t.concept IN (SELECT fold FROM merged WHERE keep = c.id)
    WHERE c.id = {KEPT}
) ORDER BY n"""
EDGE = """
SELECT p.id AS parent, c.id AS child, e.spans AS spans
FROM edge e JOIN concept p ON p.n = e.parent JOIN concept c ON c.n = e.child"""


class EmbeddedStore(LoggedStore):
    """A GraphStore in one SQLite file (`:memory:` for a private one). Threads may share it, a forked child may not.

    `clock` returns seconds since the epoch; leases are measured by it.
    """

    far = False

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock, self._pid = str(path), clock, os.getpid()
        self._lock = threading.RLock()
        self._db = schema.open_file(self.path)
        self._near: _Near | None = None

    # reading

    def version(self) -> int:
        return self._read("SELECT op FROM state")[0][0]

    def concept(self, concept_id: str) -> Concept | None:
        found = self._read(f"SELECT {CONCEPT} FROM concept c WHERE c.id = {KEPT}", {"id": concept_id})
        return to_concept(found[0]) if found else None

    def concepts(self, ids: Iterable[str] | None = None) -> list[Concept]:
        chosen, given = ("", ()) if ids is None else (f"WHERE c.id IN {GIVEN}", (as_json(ids),))
        return [to_concept(row) for row in self._read(f"SELECT {CONCEPT} FROM concept c {chosen} ORDER BY c.n", given)]

    def edges(self, pairs: Iterable[Pair] | None = None) -> list[Edge]:
        if pairs is None:
            return [_edge(row) for row in self._read(f"{EDGE} ORDER BY e.n")]
        chosen = "json_each(?) j ON p.id = j.value ->> 0 AND c.id = j.value ->> 1"
        return [_edge(row) for row in self._read(f"{EDGE} JOIN {chosen} ORDER BY e.n", (as_json(set(pairs)),))]

    def edges_of(self, concept_id: str) -> list[Edge]:
        chosen = f"(SELECT n FROM concept WHERE id = {KEPT})"
        sql = f"{EDGE} WHERE e.parent = {chosen} OR e.child = {chosen} ORDER BY e.n"
        return [_edge(row) for row in self._read(sql, {"id": concept_id})]

    def levels(self, ids: Iterable[str] | None = None) -> dict[str, int]:
        chosen, given = ("", ()) if ids is None else (f"WHERE id IN {GIVEN}", (as_json(ids),))
        return {row[0]: row[1] for row in self._read(f"SELECT id, level FROM concept {chosen} ORDER BY n", given)}

    def skeleton(self) -> Skeleton:
        return self._look(lambda tx: tx.skeleton())

    def find(self, key: str) -> list[Concept]:
        chosen = "c.n IN (SELECT concept FROM name WHERE key = ?)"
        return [
            to_concept(r) for r in self._read(f"SELECT {CONCEPT} FROM concept c WHERE {chosen} ORDER BY c.n", (key,))
        ]

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]:
        chosen, given = ("", ()) if ids is None else (f"WHERE id IN {GIVEN}", (as_json(ids),))
        return [rows.to_source(dict(row)) for row in self._read(f"SELECT * FROM source {chosen} ORDER BY n", given)]

    def decisions(self) -> list[Decision]:
        return [rows.to_decision(dict(row)) for row in self._read("SELECT * FROM decision ORDER BY n")]

    # the frontier

    def lease(self, n: int, owner: str, seconds: float, among: Sequence[str] | None = None) -> list[FrontierItem]:
        now = self._clock()
        given = {"owner": owner, "until": now + seconds, "now": now, "n": max(n, 0), "among": as_json(among or ())}
        with self._transaction() as db:
            found = db.execute(WAITING if among is None else AMONG, given).fetchall()
            first = db.execute("SELECT tokens FROM state").fetchone()[0] + 1
            leased = [{**given, "seq": row[0], "token": token} for token, row in enumerate(found, first)]
            db.executemany(LEASE, leased)
            db.execute("UPDATE state SET tokens = tokens + ?", (len(leased),))
            items = db.execute(f"{ITEM} WHERE n IN {GIVEN} ORDER BY n", (as_json(row[0] for row in found),)).fetchall()
        return [FrontierItem(**dict(row)) for row in items]

    def waiting(self) -> list[FrontierItem]:
        return [
            FrontierItem(**dict(row)) for row in self._read(f"{ITEM} WHERE {OPEN} ORDER BY n", {"now": self._clock()})
        ]

    def release(self, owner: str, *, workers: bool = False) -> int:
        with self._transaction() as db:
            return db.execute(RELEASE, {"owner": owner, "workers": workers}).rowcount

    def frontier(self) -> Mapping[str, int]:
        found = self._read(FRONTIER, {"now": self._clock()})
        return {"waiting": 0, "leased": 0, "done": 0} | {row["state"]: row["items"] for row in found}

    # vectors and tasks

    def put_embeddings(self, model: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        import numpy as np

        matrix = checked_vectors(ids, vectors)
        with self._transaction() as db:
            numbers = dict(db.execute(f"SELECT id, n FROM concept WHERE id IN {GIVEN}", (as_json(ids),)).fetchall())
            known = db.execute("SELECT model FROM state").fetchone()[0]
            width = db.execute("SELECT length(vector) / 4 FROM embedding LIMIT 1").fetchone()
            wide = width[0] if width else matrix.shape[1]  # none is left: the log may still bring some back
            if known and (known, wide) != (model, matrix.shape[1]):
                raise StoreError(
                    f"the graph's vectors are from {known!r} ({wide} wide), these from {model!r} ({matrix.shape[1]} wide);"
                    " use that model, or a new graph"
                )
            db.execute("UPDATE state SET model = ?", (model,))
            data = matrix.astype(np.dtype("<f4"))
            tables.put_vectors(
                db, [(numbers[i], row.tobytes()) for i, row in zip(ids, data, strict=True) if i in numbers]
            )

    def embeddings(self) -> tuple[str, list[str], NDArray[np.float32]]:
        import numpy as np

        found = self._read("SELECT c.id, v.vector FROM embedding v JOIN concept c ON c.n = v.concept ORDER BY c.n")
        if not found:
            return "", [], np.zeros((0, 0), np.float32)
        matrix = np.frombuffer(b"".join(row[1] for row in found), np.dtype("<f4")).reshape(len(found), -1)
        return self._read("SELECT model FROM state")[0][0], [row[0] for row in found], matrix.astype(np.float32)

    def nearest(self, vector: NDArray[np.float32], k: int = 10) -> list[tuple[str, float]]:
        with self._usable():
            self._near = self._near or _Near()
            return self._near.query(self._db, vector, k)

    def put_tasks(self, tasks: Iterable[TaskRecord]) -> None:
        new = {task.id: task for task in tasks}
        with self._transaction() as db:
            known = dict(db.execute(f"SELECT id, n FROM task WHERE id IN {GIVEN}", (as_json(new),)).fetchall())
            n = db.execute("SELECT n FROM state").fetchone()[0]
            numbers = known | {i: n + k for k, i in enumerate((i for i in new if i not in known), 1)}
            tables.put(db, "task", [{"n": numbers[i], **rows.task_fields(task)} for i, task in new.items()])
            db.execute("UPDATE state SET n = ?", (n + len(new) - len(known),))

    def tasks(self, concept_id: str | None = None) -> list[TaskRecord]:
        if concept_id is None:
            found = self._read("SELECT * FROM task ORDER BY n")
        else:
            found = self._read(TASKS_OF, {"id": concept_id})
        return [rows.to_task({**dict(row), "concepts": json.loads(row["concepts"])}) for row in found]

    # raw rows

    def state(self) -> Row:
        row = dict(self._read("SELECT * FROM state")[0])
        kept = ("graph", "n", "op", "concepts", "tokens", "model")
        copying = {"copying": row["copying"]} if row["copying"] else {}
        return {name: row[name] for name in kept} | {"format": schema.FORMAT} | copying

    def export(self, kind: str, after: int = -1, limit: int = 10_000) -> list[Row]:
        with self._usable():
            return tables.read(self._db, kind, after, limit)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction("BEGIN", copying=True):
            yield

    def load(
        self, rows: Mapping[str, Sequence[Row]], state: Row, remove: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        with self._transaction(copying=True) as db:
            for kind, numbers in (remove or {}).items():
                tables.drop(db, kind, numbers)
            for kind in KINDS:
                if new := rows.get(kind):
                    tables.put(db, kind, new)
            values = {
                name: state[name] for name in ("graph", "n", "op", "concepts", "tokens", "model") if name in state
            }
            values["copying"] = state.get("copying", "")
            db.execute(f"UPDATE state SET {', '.join(f'{name} = ?' for name in values)}", tuple(values.values()))

    def spellings(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._read(SPELLINGS)]

    def schema_faults(self) -> list[str]:
        with self._usable():
            return schema.faults(self._db)

    def mend_schema(self) -> None:
        with self._transaction() as db:
            schema.mend(db)

    # connection

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> EmbeddedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, work: Callable[[EmbeddedTx], T]) -> T:
        with self._transaction() as db:
            return work(EmbeddedTx(db))

    def _look(self, work: Callable[[EmbeddedTx], T]) -> T:
        with self._usable():
            if self._db.in_transaction:  # of a snapshot
                return work(EmbeddedTx(self._db))
            with self._transaction("BEGIN", copying=True) as db:
                return work(EmbeddedTx(db))

    def _read(self, sql: str, given: Any = ()) -> list[sqlite3.Row]:
        with self._usable():
            return self._db.execute(sql, given).fetchall()

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE", *, copying: bool = False) -> Iterator[sqlite3.Connection]:
        with self._usable():
            self._db.execute(begin)
            try:
                if not copying:
                    _refuse_unfinished(self._db, self.path)
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
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
                raise schema.explained(error, self.path) from error


WAITING = """
SELECT n FROM (SELECT n FROM frontier WHERE state = 'waiting' ORDER BY n LIMIT :n)
UNION ALL SELECT n FROM (SELECT n FROM frontier WHERE state = 'leased' AND until <= :now ORDER BY n LIMIT :n)
ORDER BY n LIMIT :n"""

OPEN = "(state = 'waiting' OR state = 'leased' AND until <= :now)"

# The + keeps SQLite from walking along all that waits, where a few are named.
AMONG = f"""
SELECT n FROM frontier WHERE concept IN (SELECT value FROM json_each(:among)) AND {OPEN.replace("state", "+state")}
ORDER BY n LIMIT :n"""

LEASE = """
UPDATE frontier SET owner = :owner, until = :until, token = :token, attempts = attempts + (state = 'leased'), state = 'leased'
WHERE n = :seq"""

ITEM = "SELECT concept, depth, n AS seq, attempts, token FROM frontier"

RELEASE = """
UPDATE frontier SET state = 'waiting', owner = '', until = 0, attempts = attempts + 1
WHERE state = 'leased' AND (owner = :owner OR :workers AND substr(owner, 1, length(:owner) + 1) = :owner || '/')"""

FRONTIER = """
SELECT CASE WHEN state = 'leased' AND until <= :now THEN 'waiting' ELSE state END AS state, count(*) AS items
FROM frontier GROUP BY 1"""


class _Near:
    """The vectors in memory for `nearest`, brought up to date before each query."""

    def __init__(self) -> None:
        self.seen, self.lost = 0, -1
        self.index: Nearest | None = None

    def query(self, db: sqlite3.Connection, vector: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        self._catch_up(db)
        return self.index.query(vector, k) if self.index is not None else []

    def _catch_up(self, db: sqlite3.Connection) -> None:
        import numpy as np

        from kgsynth.nearest import Nearest

        seen, lost = db.execute("SELECT vectors, lost_vectors FROM state").fetchone()
        if lost != self.lost:
            self.seen, self.lost, self.index = 0, lost, None
        if seen == self.seen:
            return
        new = db.execute(NEW_VECTORS, (self.seen,)).fetchall()
        if new:
            matrix = np.frombuffer(b"".join(row[1] for row in new), np.dtype("<f4")).reshape(len(new), -1)
            self.index = self.index or Nearest(matrix.shape[1])
            self.index.add([row[0] for row in new], matrix)
        self.seen = seen


NEW_VECTORS = """
SELECT c.id, v.vector FROM embedding v JOIN concept c ON c.n = v.concept WHERE v.version > ? ORDER BY c.n"""


SPELLINGS = "SELECT key, coalesce(c.id, 'missing:' || concept) FROM name LEFT JOIN concept c ON c.n = concept"


def _refuse_unfinished(db: sqlite3.Connection, path: str) -> None:
    copying = db.execute("SELECT copying FROM state").fetchone()[0]
    if copying:
        raise StoreError(unfinished(path, copying))


def _edge(row: sqlite3.Row) -> Edge:
    return Edge(parent=row["parent"], child=row["child"], spans=rows.spans_from_json(row["spans"]))
