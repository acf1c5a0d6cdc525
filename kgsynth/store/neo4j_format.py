"""How a Neo4j database is opened: constraints before the first write, a graph of an older format brought to this one.

format 1   no levels, no log, redirects without numbers, edges without the list of their pages
format 2   as `queries.py` describes

The Guard node says which. A database with :Concept nodes and no Guard belongs to another program and is left as it is.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from kgsynth.errors import StoreError
from kgsynth.store import Row, queries
from kgsynth.store.dag import levels_of
from kgsynth.store.labels import concept_labels
from kgsynth.store.neo4j_driver import Server, Session, batches

FORMAT = 2
BATCH = 5000  # rows per transaction of an upgrade


def prepare(server: Server, as_is: bool = False) -> None:
    """Raises StoreError for another program's database or a newer kgsynth's, and when rows are in the way of a constraint
    (as_is: it is missing then)."""
    found = _found(server)
    if found == 1:
        for statement in queries.OLD_INDEXES:
            server.write(lambda session, statement=statement: session.run(statement))
    try:
        make_indexes(server)
    except StoreError:
        if not (as_is and found == FORMAT):
            raise
    if found == 0:
        server.write(lambda session: session.run(queries.CREATE_GUARD, graph=uuid.uuid4().hex, format=FORMAT))
    elif found < FORMAT:
        _from_format_1(server)


def _found(server: Server) -> int:
    """The format of the graph in the database, 0 for an empty one."""
    row = server.read(queries.GUARD)[0]
    found = (row["format"] or 1) if row["ours"] else 0
    if found > FORMAT:
        raise StoreError(
            f"graph store {server.url}: the graph has format {found}, this kgsynth reads up to {FORMAT};"
            " use the kgsynth that wrote it, or another database (NEO4J_DATABASE)"
        )
    if not row["ours"] and row["concepts"]:
        raise StoreError(
            f"graph store {server.url}: the database {server.database!r} holds :Concept nodes but no (:Guard {{id: 'graph'}}):"
            " another program wrote it, or its guard was deleted; use an empty database (NEO4J_DATABASE)"
        )
    return found


def make_indexes(server: Server) -> None:
    """Constraints and indexes that are missing; waits until they can be used."""
    if missing := _missing(server):
        for name, statement in missing.items():
            _make(server, name, statement)
        server.read(queries.AWAIT_INDEXES)


def _make(server: Server, name: str, statement: str, **given: Any) -> None:
    try:
        server.write(lambda session: session.run(statement, **given))
    except StoreError:
        if name not in {row["name"] for row in server.read(queries.SHOW_INDEXES)}:  # nobody else was making it
            raise


def make_vector_index(server: Server, dim: int) -> None:
    """The index for vectors of this width, in place of one for another, if it is not there; waits until it can be used. What
    is written later is in it when the transaction ends."""
    there = {row["name"]: row["dim"] for row in server.read(queries.SHOW_INDEXES)}
    name = "concept_embedding"
    if there.get(name) == dim:
        return
    if name in there:
        server.write(lambda session: session.run(queries.DROP_VECTOR_INDEX))
    config = {"vector.dimensions": dim, "vector.similarity_function": "cosine"}
    _make(server, name, queries.VECTOR_INDEX, options={"indexConfig": config})
    server.read(queries.AWAIT_INDEXES)


def faults(server: Server) -> list[str]:
    """The constraints and indexes that are missing, a sentence each."""
    return [
        f"the {'constraint' if name in queries.CONSTRAINTS else 'index'} {name} is missing" for name in _missing(server)
    ]


def _missing(server: Server) -> dict[str, str]:
    there = {row["name"] for row in server.read(queries.SHOW_INDEXES) if row["state"] != "FAILED"}
    wanted = queries.CONSTRAINTS | queries.INDEXES
    return {name: statement for name, statement in wanted.items() if name not in there}


def _from_format_1(server: Server) -> None:
    """Batch by batch, so that it needs little of the server's memory. Each batch may be written again, by us after a crash or by
    another process that opens the graph at the same time; the last step says that it is done, and nobody writes after it."""
    concepts = [record.data() for record in server.read(queries.OLD_CONCEPTS)]
    edges = [record.data() for record in server.read(queries.OLD_EDGES)]
    levels = levels_of([c["id"] for c in concepts], [(e["parent"], e["child"]) for e in edges])
    _upgrade(server, queries.UPGRADE_CONCEPTS, [_concept(row, levels[row["id"]]) for row in concepts])
    _upgrade(server, queries.UPGRADE_EDGES, [_edge(row) for row in edges])
    server.write(_finish)


def _upgrade(server: Server, query: str, rows: Sequence[Row]) -> None:
    for batch in batches(rows, BATCH):
        server.write(lambda session, batch=batch: session.run(query, rows=batch) if _is_old(session) else None)


def _finish(session: Session) -> None:
    if _is_old(session):
        session.run(queries.UPGRADE_FRONTIER)
        session.run(queries.UPGRADE_MERGED)
        session.run(queries.UPGRADE_GUARD, graph=uuid.uuid4().hex, format=FORMAT)


def _is_old(session: Session) -> bool:
    """Whether nobody else has finished the upgrade, asked under the lock."""
    return "format" not in session.run(queries.LOCK)[0]["guard"]


def _concept(row: Row, level: int) -> Row:
    labels = concept_labels(level=level, atomic=row["atomic"], domain=row["domain"])
    return {"id": row["id"], "level": level, "labels": labels}


def _edge(row: Row) -> Row:
    sources = list(dict.fromkeys(span["source"] for span in json.loads(row["spans"])))
    return {"parent": row["parent"], "child": row["child"], "sources": sources}
