"""The graph in Neo4j, so that it can be browsed while it grows. Same meaning as the embedded store, over Bolt.

Neo4j isolates transactions by read-committed only: two writers could each find no cycle and together close one. So every
transaction that writes first takes the write lock of one Guard node, then checks, then writes; the driver repeats
it as a whole when the server asks for that. One database holds one graph; `queries.py` says how.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from kgsynth.concept import Concept, Decision, Edge, Source, SourceSpan
from kgsynth.errors import ConfigError, StoreError
from kgsynth.store import Change, CommitResult, FrontierItem, queries
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

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record

BATCH = 5000  # rows per UNWIND


class Neo4jStore:
    """A GraphStore in a Neo4j database. Threads may share it; a forked process must open its own.

    Name, password and database come from NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE unless given; without a
    password no authentication is tried. `clock` returns seconds since the epoch; writers on several machines need
    clocks that agree to well within a lease.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | None = None,
        database: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Connect and make constraints and indexes. Raises ConfigError without the driver, StoreError without a server."""
        self.url, self._clock = url, clock
        self._database = database or os.environ.get("NEO4J_DATABASE") or "neo4j"
        self._driver = _driver(url, auth or _auth())
        try:
            with self._explained():
                self._driver.verify_connectivity()
                for statement in (*queries.CONSTRAINTS, *queries.INDEXES, queries.CREATE_GUARD):
                    self._driver.execute_query(statement, database_=self._database)
        except StoreError:
            self._driver.close()
            raise

    def commit(self, change: Change) -> CommitResult:
        return self._write(lambda tx: _Commit(tx).apply(change))

    def version(self) -> tuple[int, int]:
        row = self._read(queries.VERSION)[0]
        return row["merges"], row["changes"]

    def concept(self, concept_id: str) -> Concept | None:
        kept = self._read(queries.KEPT, ids=[concept_id])
        rows = self._read(queries.CONCEPTS_BY_ID, ids=[kept[0]["keep"] if kept else concept_id])
        return _concept(rows[0]["c"]) if rows else None

    def concepts(self, since: int = 0) -> list[Concept]:
        return [_concept(row["c"]) for row in self._read(queries.CONCEPTS, since=since)]

    def edges(self, since: int = 0) -> list[Edge]:
        return [_edge(row) for row in self._read(queries.EDGES, since=since)]

    def find(self, key: str) -> list[Concept]:
        return [_concept(row["c"]) for row in self._read(queries.FIND, key=key)]

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]:
        rows = self._read(queries.SOURCES) if ids is None else self._read(queries.SOURCES_BY_ID, ids=list(ids))
        return [Source(**{f.name: row["s"][f.name] for f in fields(Source)}) for row in rows]

    def decisions(self) -> list[Decision]:
        return [_decision(row["d"]) for row in self._read(queries.DECISIONS)]

    def lease(self, n: int, owner: str, seconds: float) -> list[FrontierItem]:
        now = self._clock()
        given = {"n": max(n, 0), "owner": owner, "now": now, "until": now + seconds}

        def take(tx: ManagedTransaction) -> list[FrontierItem]:
            _run(tx, queries.LOCK)
            return [FrontierItem(**row.data()) for row in _run(tx, queries.LEASE, **given)]

        return self._write(take)

    def release(self, owner: str) -> int:
        def give_back(tx: ManagedTransaction) -> int:
            _run(tx, queries.LOCK)
            return _run(tx, queries.RELEASE, owner=owner)[0]["n"]

        return self._write(give_back)

    def frontier(self) -> Mapping[str, int]:
        counts = {"waiting": 0, "leased": 0, "done": 0}
        for row in self._read(queries.FRONTIER, now=self._clock()):
            counts[row["state"]] += row["n"]
        return counts

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Neo4jStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, query: str, **given: Any) -> list[Record]:
        with self._explained():
            return self._driver.execute_query(query, given, database_=self._database, routing_="r").records

    def _write(self, work: Callable[[ManagedTransaction], Any]) -> Any:
        with self._explained():
            bookmarks = self._driver.execute_query_bookmark_manager  # so that reads see this write, on a cluster too
            with self._driver.session(database=self._database, bookmark_manager=bookmarks) as session:
                return session.execute_write(work)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            yield
        except (DriverError, Neo4jError, OSError) as error:
            raise StoreError(f"graph store {self.url}: {error}; {_fix(error, self._database)}") from error


class _Commit:
    """One change on its way into the database, inside one managed transaction (which may run more than once)."""

    def __init__(self, tx: ManagedTransaction) -> None:
        self.tx = tx
        guard = _run(tx, queries.LOCK)[0]
        self.n, self.merges, self.version = guard["n"], guard["merges"], guard["changes"] + 1
        self.altered = False
        self.decided: list[Decision] = []
        self.result: dict[str, list[Any]] = {f.name: [] for f in fields(CommitResult)}

    def apply(self, change: Change) -> CommitResult:
        self._write_rows(queries.ADD_SOURCES, [{**asdict(s), "id": s.id, "n": self._next()} for s in change.sources])
        self._concepts(change.concepts, change.max_concepts)
        for keep, fold in change.merges:
            kept = self._kept([keep, fold])
            self._merge(kept[keep], kept[fold])
        self._edges(change.edges, change.max_concepts)
        self._decide([*self.decided, *change.decisions])
        self._frontier(change)
        changes = self.version if self.altered else self.version - 1
        _run(self.tx, queries.COUNT, n=self.n, merges=self.merges, changes=changes)
        return CommitResult(**{name: tuple(dict.fromkeys(value)) for name, value in self.result.items()})

    def _next(self) -> int:
        self.n += 1
        return self.n

    def _write_rows(self, query: str, rows: Sequence[Any], name: str = "rows") -> list[Record]:
        batches = (rows[i : i + BATCH] for i in range(0, len(rows), BATCH))
        return [record for batch in batches for record in _run(self.tx, query, **{name: batch})]

    def _kept(self, ids: Iterable[str]) -> dict[str, str]:
        """What each id means after the merges so far."""
        kept = {i: i for i in ids}
        return kept | {r["id"]: r["keep"] for r in self._write_rows(queries.KEPT, list(kept), "ids")}

    def _known(self, ids: Iterable[str]) -> dict[str, Concept]:
        rows = self._write_rows(queries.CONCEPTS_BY_ID, list(dict.fromkeys(ids)), "ids")
        return {row["c"]["id"]: _concept(row["c"]) for row in rows}

    def _concepts(self, concepts: Sequence[Concept], cap: int | None) -> None:
        kept = self._kept(c.id for c in concepts)
        known = self._known(kept.values())
        count = _run(self.tx, queries.CONCEPT_COUNT)[0]["n"]
        altered: dict[str, Concept] = {}
        for concept in concepts:
            concept_id = kept[concept.id]
            if old := altered.get(concept_id) or known.get(concept_id):
                if (new := absorb(old, concept)) != old:
                    altered[concept_id] = new
            elif cap is not None and count >= cap:
                self.result["dropped"].append(concept_id)
                self.decided.append(dropped_concept(concept, cap))
            else:
                altered[concept_id] = concept
                self.result["added"].append(concept_id)
                count += 1
        self._write_concepts(altered)

    def _write_concepts(self, concepts: Mapping[str, Concept]) -> None:
        rows = []
        for concept_id, concept in concepts.items():
            stored = {**asdict(concept), "aliases": list(concept.aliases), "keywords": list(concept.keywords)}
            stored["version"] = self.version
            rows.append({"id": concept_id, "n": self._next(), "fields": stored, "keys": list(concept.keys)})
        self._write_rows(queries.WRITE_CONCEPTS, rows)
        self.altered |= bool(rows)

    def _edges(self, edges: Sequence[Edge], cap: int | None) -> None:
        edges = folded_edges(edges, self._kept(end for edge in edges for end in (edge.parent, edge.child)))
        known, old = self._known(end for edge in edges for end in (edge.parent, edge.child)), self._between(edges)
        new: list[Edge] = []
        against: dict[str, str] = {}  # edge id -> the reason it is refused for, if it is
        for edge in edges:
            ends = {edge.parent, edge.child}
            if (edge.parent, edge.child) in old:
                self._add_spans(old[edge.parent, edge.child], edge.spans)
            elif cap is not None and ends & set(self.result["dropped"]):
                against[edge.id] = "cap"
            elif not ends <= set(known):
                against[edge.id] = "missing end"
            else:
                against[edge.id] = "cycle"
                new += [edge] if len(ends) == 2 else []
        linked = self._link(new)
        for edge in edges:
            if edge.id in linked:
                self.result["linked"].append(edge.id)
            elif edge.id in against:
                self._refuse(edge, against[edge.id], cap)

    def _between(self, edges: Iterable[Edge]) -> dict[tuple[str, str], Edge]:
        pairs = [{"parent": edge.parent, "child": edge.child} for edge in edges]
        return {(r["parent"], r["child"]): _edge(r) for r in self._write_rows(queries.EDGES_BETWEEN, pairs, "pairs")}

    def _refuse(self, edge: Edge, reason: str, cap: int | None) -> None:
        if reason == "cap" and cap is not None:
            self.decided.append(dropped_edge(edge, cap))
        else:
            self.result["refused"].append(edge)
            self.decided.append(refused_edge(edge, reason))

    def _row(self, edge: Edge) -> dict[str, Any]:
        spans = json.dumps([asdict(span) for span in edge.spans], ensure_ascii=False)
        row = {"id": edge.id, "parent": edge.parent, "child": edge.child, "spans": spans}
        return row | {"n": self._next(), "version": self.version}

    def _link(self, edges: Sequence[Edge]) -> set[str]:
        edges = [replace(edge, spans=bounded_spans((), edge.spans)) for edge in edges]
        linked = {record["id"] for record in self._write_rows(queries.LINK, [self._row(edge) for edge in edges])}
        self._found_in(edge for edge in edges if edge.id in linked)
        self.altered |= bool(linked)
        return linked

    def _add_spans(self, edge: Edge, spans: Iterable[SourceSpan]) -> None:
        wider = replace(edge, spans=bounded_spans(edge.spans, spans))
        if wider != edge:
            self._write_rows(queries.ADD_SPANS, [self._row(wider)])
            self._found_in([wider])
            self.altered = True

    def _found_in(self, edges: Iterable[Edge]) -> None:
        rows = [{"concept": edge.child, "source": span.source} for edge in edges for span in edge.spans]
        self._write_rows(queries.FOUND_IN, rows)

    def _merge(self, keep: str, fold: str) -> None:
        known = self._known([keep, fold])
        if len(known) < 2:
            return  # done already, or nothing to fold
        if any(_run(self.tx, queries.WAY_BETWEEN, start=a, goal=b) for a, b in ((keep, fold), (fold, keep))):
            self.decided.append(refused_merge(keep, fold))
            return
        edges = [_edge(row) for row in _run(self.tx, queries.EDGES_OF, id=fold)]
        self._repoint(keep, fold, edges)
        self._write_concepts({keep: absorb(known[keep], known[fold])})
        _run(self.tx, queries.MOVE_SOURCES, keep=keep, fold=fold)
        _run(self.tx, queries.REDIRECT, keep=keep, fold=fold)
        _run(self.tx, queries.MOVE_FRONTIER, keep=keep, fold=fold)
        _run(self.tx, queries.REMOVE, id=fold)
        parents, children = [e.parent for e in edges if e.child == fold], [e.child for e in edges if e.parent == fold]
        self.decided.append(merged_concept(keep, known[fold], parents, children))
        self.result["merged"].append(fold)
        self.merges += 1

    def _repoint(self, keep: str, fold: str, edges: Sequence[Edge]) -> None:
        """Move the edges of `fold` to `keep`: those that exist there gain the spans, those between the two go."""
        _run(self.tx, queries.UNLINK, id=fold)
        parents_first = sorted(edges, key=lambda edge: edge.parent == fold)
        moved = [e for e in folded_edges(parents_first, {fold: keep}) if e.parent != e.child]
        old = self._between(moved)
        for edge in moved:
            if (edge.parent, edge.child) in old:
                self._add_spans(old[edge.parent, edge.child], edge.spans)
        self._link([edge for edge in moved if (edge.parent, edge.child) not in old])

    def _decide(self, decisions: Iterable[Decision]) -> None:
        rows = []
        for decision in decisions:
            row = {**asdict(decision), "evidence": evidence_to_json(decision)}
            rows.append({**row, "id": decision.id, "n": self._next()})
        self._write_rows(queries.ADD_DECISIONS, rows)

    def _frontier(self, change: Change) -> None:
        kept = self._kept([*(item.concept for item in change.enqueue), *change.done])
        rows = [
            {"concept": kept[i.concept], "depth": i.depth, "attempts": i.attempts, "seq": self._next()}
            for i in change.enqueue
        ]
        self._write_rows(queries.ENQUEUE, rows)
        self._write_rows(queries.FINISH, [kept[concept_id] for concept_id in change.done], "ids")


def _run(tx: ManagedTransaction, query: Any, **given: Any) -> list[Record]:
    return list(tx.run(query, given))


def _concept(node: Mapping[str, Any]) -> Concept:
    values: dict[str, Any] = {f.name: node.get(f.name) for f in fields(Concept)}
    for name in ("aliases", "keywords"):
        values[name] = tuple(values[name])
    return Concept(**values)


def _edge(row: Record) -> Edge:
    spans = tuple(SourceSpan(**span) for span in json.loads(row["spans"]))
    return Edge(parent=row["parent"], child=row["child"], spans=spans)


def _decision(node: Mapping[str, Any]) -> Decision:
    values = {f.name: node[f.name] for f in fields(Decision)}
    return Decision(**{**values, "evidence": evidence_from_json(node["evidence"])})


def _auth() -> tuple[str, str] | None:
    password = os.environ.get("NEO4J_PASSWORD")
    return (os.environ.get("NEO4J_USERNAME") or "neo4j", password) if password else None


def _driver(url: str, auth: tuple[str, str] | None) -> Any:
    if "@" in url:
        raise StoreError(
            "the graph store's address holds a user or password; put them into NEO4J_USERNAME, NEO4J_PASSWORD"
        )
    try:
        from neo4j import GraphDatabase
        from neo4j.exceptions import ConfigurationError
    except ImportError as error:
        raise ConfigError("the Neo4j store needs the driver: pip install 'kgsynth[neo4j]'") from error
    try:
        return GraphDatabase.driver(
            url, auth=auth, connection_timeout=10, max_transaction_retry_time=60, notifications_min_severity="OFF"
        )
    except (ConfigurationError, ValueError) as error:
        raise StoreError(f"graph store {url}: {error}; write it as bolt://HOST:PORT or neo4j+s://HOST") from error


def _fix(error: Exception, database: str) -> str:
    from neo4j.exceptions import ServiceUnavailable

    code = getattr(error, "code", "") or ""
    if "Security" in code:
        return "set NEO4J_USERNAME and NEO4J_PASSWORD to a user of that server"
    if isinstance(error, ServiceUnavailable | OSError):
        return "check the address and that the server runs (docs/neo4j.md says how to start one here)"
    if "DatabaseNotFound" in code:
        return f"set NEO4J_DATABASE to a database that exists (now {database!r})"
    return "nothing of this change was written; the message above is the server's"
