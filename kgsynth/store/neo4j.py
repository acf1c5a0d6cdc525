"""The graph in Neo4j, so that it can be browsed while it grows. Same meaning as the embedded store, over Bolt.

Neo4j isolates transactions by read-committed only: two writers could each find no cycle and together close one. So every
transaction that writes first takes the write lock of one Guard node, then checks, then writes; the driver repeats
it as a whole when the server asks for that. One database holds one graph.

    queries.py        the statements
    neo4j_driver.py   connection, repeats, errors
    neo4j_format.py   opening a database, older formats
    neo4j_tx.py       reading for and writing of a Draft
    neo4j_rows.py     raw rows
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import StoreError
from kgsynth.store import KINDS, Change, FrontierItem, Row, Skeleton, TaskRecord, neo4j_rows, queries, rows, unfinished
from kgsynth.store.base import LoggedStore, checked_vectors
from kgsynth.store.draft import Pair
from kgsynth.store.neo4j_driver import Server, Session, batches
from kgsynth.store.neo4j_format import FORMAT, faults, make_indexes, make_vector_index, prepare
from kgsynth.store.neo4j_tx import Neo4jTx

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

VECTORS = 1000  # vectors per statement: they are large
STATE = ("graph", "n", "op", "concepts", "tokens", "model")


class Neo4jStore(LoggedStore):
    """A GraphStore in a Neo4j database. Threads may share it; a forked process must open its own.

    Name, password and database come from NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE unless given; without a
    password no authentication is tried. A server that goes away is waited for (`neo4j_driver.PATIENCE`). `clock` returns seconds
    since the epoch; writers on several machines need clocks that agree to well within a lease.
    """

    far = True

    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        clock: Callable[[], float] = time.time,
        as_is: bool = False,
    ) -> None:
        """Connect and prepare the database (as_is: even if a constraint cannot be made). Raises ConfigError without the
        driver, StoreError without a server."""
        self.url, self._clock = url, clock
        self._server = Server(url, auth, database)
        self._search = list(queries.NEAREST.values())  # the forms of a vector query that may work here
        self._indexed = 0  # the width for which the vector index is known to be there
        try:
            prepare(self._server, as_is)
        except BaseException:
            self._server.close()
            raise

    # reading

    def version(self) -> int:
        return self._guard()["op"]

    def concept(self, concept_id: str) -> Concept | None:
        found = self._server.read(queries.CONCEPT, id=concept_id)
        return rows.to_concept(found[0]["row"]) if found else None

    def concepts(self, ids: Iterable[str] | None = None) -> list[Concept]:
        return [rows.to_concept(row["row"]) for row in self._chosen(queries.CONCEPTS, queries.CONCEPTS_BY_ID, ids)]

    def edges(self, pairs: Iterable[Pair] | None = None) -> list[Edge]:
        if pairs is None:
            return _edges(self._server.read(queries.EDGES))
        return _edges(self._server.read(queries.EDGES_BETWEEN, pairs=list(dict.fromkeys(pairs))))

    def edges_of(self, concept_id: str) -> list[Edge]:
        return _edges(self._server.read(queries.EDGES_OF, id=concept_id))

    def levels(self, ids: Iterable[str] | None = None) -> dict[str, int]:
        return {row["id"]: row["level"] for row in self._chosen(queries.LEVELS, queries.LEVELS_BY_ID, ids)}

    def skeleton(self) -> Skeleton:
        return self._look(lambda tx: tx.skeleton())

    def find(self, key: str) -> list[Concept]:
        return [rows.to_concept(row["row"]) for row in self._server.read(queries.FIND, key=neo4j_rows.name_key(key))]

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]:
        return [rows.to_source(row["s"]) for row in self._chosen(queries.SOURCES, queries.SOURCES_BY_ID, ids)]

    def decisions(self) -> list[Decision]:
        return [rows.to_decision(row["d"]) for row in self._server.read(queries.DECISIONS)]

    def _chosen(self, everything: str, by_id: str, ids: Iterable[str] | None) -> list[Any]:
        if ids is None:
            return self._server.read(everything)
        return self._server.read(by_id, ids=list(dict.fromkeys(ids)))

    def _guard(self) -> Row:
        found = self._server.read(queries.STATE)
        if not found:
            raise StoreError(
                f"graph store {self.url}: the database was emptied since it was opened; open the store again"
            )
        return found[0]["guard"]

    # the frontier

    def lease(self, n: int, owner: str, seconds: float, among: Sequence[str] | None = None) -> list[FrontierItem]:
        now, lease = self._clock(), uuid.uuid4().hex
        given = {"n": max(n, 0), "owner": owner, "now": now, "until": now + seconds, "lease": lease}
        if among is not None:
            given["among"] = list(among)
        query = queries.LEASE if among is None else queries.LEASE_AMONG

        def take(tx: Neo4jTx) -> list[FrontierItem]:
            taken = tx.session.run(queries.LEASED, lease=lease) if tx.session.again else []
            return [FrontierItem(**row.data()) for row in taken or tx.session.run(query, **given)]

        return self._write(take)

    def waiting(self) -> list[FrontierItem]:
        return [FrontierItem(**row) for row in self._server.read(queries.WAITING, now=self._clock())]

    def release(self, owner: str, *, workers: bool = False) -> int:
        return self._write(lambda tx: tx.session.run(queries.RELEASE, owner=owner, workers=workers)[0]["n"])

    def frontier(self) -> Mapping[str, int]:
        counts = {"waiting": 0, "leased": 0, "done": 0}
        for row in self._server.read(queries.FRONTIER, now=self._clock()):
            counts[row["state"]] += row["n"]
        return counts

    # vectors and tasks

    def put_embeddings(self, model: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        matrix = checked_vectors(ids, vectors)
        dim = matrix.shape[1]
        new = [{"id": i, "vector": row} for i, row in zip(ids, matrix.astype(float).tolist(), strict=True)]

        def put(tx: Neo4jTx) -> None:
            _one_model(tx, model, dim)
            for batch in batches(new, VECTORS):
                tx.session.run(queries.PUT_EMBEDDINGS, rows=batch)

        self._write(put)
        make_vector_index(self._server, dim)

    def embeddings(self) -> tuple[str, list[str], NDArray[np.float32]]:
        import numpy as np

        ids, parts, after = [], [], -1
        while found := self._server.read(queries.EMBEDDINGS, after=after, limit=VECTORS):
            ids += [row["id"] for row in found]
            parts.append(np.array([row["vector"] for row in found], np.float32))
            after = found[-1]["n"]
        if not ids:
            return "", [], np.zeros((0, 0), np.float32)
        return self._guard()["model"], ids, np.concatenate(parts)

    def nearest(self, vector: NDArray[np.float32], k: int = 10) -> list[tuple[str, float]]:
        """The index is approximate and works on rounded vectors, so many candidates are asked for, ordered by the server, and
        the best of them ordered again here by exact cosines."""
        import numpy as np

        from kgsynth.nearest import Nearest

        dim = self._guard()["dim"]
        if not dim:
            return []
        if dim != self._indexed:
            make_vector_index(self._server, dim)
            self._indexed = dim
        exact = Nearest(dim)
        query = exact.checked(np.asarray(vector)[None])[0][0]
        found = self._candidates(query.astype(float).tolist(), max(k, 1))
        if found:
            exact.add([row["id"] for row in found], np.array([row["vector"] for row in found], np.float32))
        return exact.query(query, k)

    def _candidates(self, vector: list[float], k: int) -> list[Any]:
        given = {"vector": vector, "k": max(10 * k, 100), "best": 2 * k + 10}
        refused: StoreError | None = None
        for form in self._search:
            try:
                found = self._server.read(form, **given)
            except StoreError as error:
                refused = refused or error
            else:
                self._search = [form]
                return found
        raise StoreError(f"{refused}; nearest() needs the vector index of Neo4j 5.26 or later") from refused

    def put_tasks(self, tasks: Iterable[TaskRecord]) -> None:
        new = {task.id: task for task in tasks}

        def put(tx: Neo4jTx) -> None:
            known = {row["id"]: row["n"] for row in tx.session.run(queries.TASK_NUMBERS, ids=list(new))}
            n = tx.guard["n"]
            numbers = known | {i: n + k for k, i in enumerate((i for i in new if i not in known), 1)}
            neo4j_rows.put(tx.session, "task", [{"n": numbers[i], **rows.task_fields(task)} for i, task in new.items()])
            tx.session.run(queries.SET_STATE, state={"n": n + len(new) - len(known)})

        self._write(put)

    def tasks(self, concept_id: str | None = None) -> list[TaskRecord]:
        query = queries.TASKS if concept_id is None else queries.TASKS_OF
        return [rows.to_task({"pass_rate": None, **row["t"]}) for row in self._server.read(query, id=concept_id)]

    # raw rows

    def state(self) -> Row:
        guard = self._guard()
        copying = {"copying": guard["copying"]} if guard["copying"] else {}
        return {name: guard[name] for name in STATE} | {"format": FORMAT} | copying

    def export(self, kind: str, after: int = -1, limit: int = 10_000) -> list[Row]:
        return neo4j_rows.read(self._server.read(queries.EXPORT[kind], after=after, limit=limit), kind)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        yield  # Neo4j has none

    def load(
        self, rows: Mapping[str, Sequence[Row]], state: Row, remove: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        values = {name: state[name] for name in STATE if name in state} | {"copying": state.get("copying", "")}
        vectors = rows.get("embedding")
        dim = len(vectors[0]["vector"]) // 4 if vectors else 0

        def put(tx: Neo4jTx) -> None:
            for kind, numbers in (remove or {}).items():
                tx.drop(kind, numbers)
            for kind in KINDS:
                if new := rows.get(kind):
                    tx.put(kind, new)
            tx.session.run(queries.SET_STATE, state={**values, "dim": tx.guard["dim"] or dim})

        if not values["copying"] and (width := self._guard()["dim"] or dim):
            make_vector_index(self._server, width)  # of a copy once, when all vectors are there: faster than one by one
        self._write(put, copying=True)

    def spellings(self) -> list[tuple[str, str]]:
        return [(row["key"], row["concept"]) for row in self._server.read(queries.SPELLINGS)]

    def schema_faults(self) -> list[str]:
        return faults(self._server)

    def mend_schema(self) -> None:
        make_indexes(self._server)

    # connection

    def close(self) -> None:
        self._server.close()

    def __enter__(self) -> Neo4jStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, work: Callable[[Neo4jTx], T], *, copying: bool = False) -> T:
        def run(session: Session) -> T:
            tx = Neo4jTx(session, self.url)
            if not copying and tx.guard["copying"]:
                raise StoreError(unfinished(self.url, tx.guard["copying"]))
            return work(tx)

        return self._server.write(run)

    def _look(self, work: Callable[[Neo4jTx], T]) -> T:
        """Under the lock, as Neo4j has no snapshots: without it one could see the second of two commits and not the first, or half
        of one. Nothing is written, so that this costs no more than a read."""
        return self._write(work, copying=True)

    def _expect(self, tx: Neo4jTx, change: Change) -> None:
        tx.expect(change)


def _edges(found: Iterable[Any]) -> list[Edge]:
    return [Edge(parent=row["parent"], child=row["child"], spans=rows.spans_from_json(row["spans"])) for row in found]


def _one_model(tx: Neo4jTx, model: str, dim: int) -> None:
    known = tx.guard["model"]
    if (known, tx.guard["dim"]) == (model, dim):
        return
    found = tx.session.run(queries.EMBEDDING_WIDTH)
    wide = found[0]["dim"] if found else dim  # none is left: the log may still bring some back
    if known and (known, wide) != (model, dim):
        raise StoreError(
            f"the graph's vectors are from {known!r} ({wide} wide), these from {model!r} ({dim} wide);"
            " use that model, or a new graph"
        )
    tx.session.run(queries.SET_STATE, state={"model": model, "dim": dim})
