"""Raw rows (`rows.py`) as Neo4j stores them: reading, writing and removing them by number, unchecked.

Two things differ inside: a Frontier's number is called `seq` and an Operation's `op`, as the Browser shows them; spans are a
JSON text, with the ids of their pages beside it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kgsynth.concept import text_hash
from kgsynth.errors import StoreError
from kgsynth.store import Row, queries, rows
from kgsynth.store.commit import edge_id
from kgsynth.store.draft import Link, Node, Pair, concept_row
from kgsynth.store.labels import concept_labels
from kgsynth.store.neo4j_driver import Session, batches

BATCH = 5000  # rows per statement
LONGEST_KEY = 1900  # characters, of at most 4 bytes each


def read(found: Iterable[Any], kind: str) -> list[Row]:
    """From the records of `queries.EXPORT` or `queries.PICK`."""
    return [_row(kind, record["row"]) for record in found]


def pick(session: Session, kind: str, numbers: Collection[int]) -> list[Row]:
    """The rows of these numbers, ascending."""
    parts = (session.run(queries.PICK[kind], numbers=batch) for batch in batches(sorted(numbers), BATCH))
    return [row for part in parts for row in read(part, kind)]


def drop(session: Session, kind: str, numbers: Collection[int]) -> None:
    """Remove rows with what hangs on them: names, links to pages and tasks. Neo4j holds no edge without ends, so that the edges of
    a concept go with it."""
    query = queries.DROP_CONCEPTS if kind == "concept" else queries.DROP[kind]
    if kind == "concept":
        session.run(queries.SET_STATE, state={"loose": True})
    for batch in batches(sorted(numbers), BATCH):
        found = session.run(query, numbers=batch)
        if kind == "edge":
            session.run(queries.WRITE["stale"], w={"stale": [record["child"] for record in found]})


def put(session: Session, kind: str, new: Sequence[Row]) -> None:
    """Write rows with what hangs on them; one whose number is taken is replaced."""
    numbers = [row["n"] for row in new]
    asked = (session.run(queries.TAKEN[kind], numbers=batch) for batch in batches(numbers, BATCH))
    taken = {record["n"] for found in asked for record in found}
    for batch in batches(new, BATCH):
        if kind == "concept":
            _put_concepts(session, batch, taken)
        elif kind == "edge":
            _put_edges(session, batch, taken)
        else:
            _put_nodes(session, kind, batch, taken)


def _put_nodes(session: Session, kind: str, new: Sequence[Row], taken: Collection[int]) -> None:
    fresh = [stored(kind, row) for row in new if row["n"] not in taken]
    if fresh and kind != "embedding":  # which is no node of its own
        session.run(queries.INSERT[kind], rows=fresh)
    if old := {str(row["n"]): stored(kind, row) for row in new if row["n"] in taken}:
        session.run(queries.REPLACE[kind], rows=old, numbers=[int(n) for n in old])
    if kind == "task":
        link_tasks(session, [row["id"] for row in new])


def link_tasks(session: Session, ids: Sequence[str]) -> None:
    """The links from tasks to what they test, as their lists of concepts say. Those of the others are left for when such a concept comes."""
    session.run(queries.UNLINK_TASKS, ids=ids)
    if session.run(queries.LINK_TASKS, ids=ids)[0]["loose"]:
        session.run(queries.SET_STATE, state={"loose": True})


def _put_concepts(session: Session, new: Sequence[Row], taken: Collection[int]) -> None:
    if renamed := {str(row["n"]): row["id"] for row in new if row["n"] in taken}:
        session.run(queries.RENAME_CONCEPTS, ids=renamed, numbers=[int(n) for n in renamed])
    for part, there in (("created", False), ("altered", True)):
        chosen = [
            concept(row["id"], Node(rows.to_concept(row), row["n"], row["version"]), row["level"])
            for row in new
            if (row["n"] in taken) is there
        ]
        if chosen:
            session.run(queries.WRITE[part], w={part: chosen})
    if session.run(queries.STATE)[0]["guard"]["loose"]:
        session.run(queries.WRITE["retested"], w={"retested": [row["id"] for row in new]})


def _put_edges(session: Session, new: Sequence[Row], taken: Collection[int]) -> None:
    drop(session, "edge", [row["n"] for row in new if row["n"] in taken])
    links = {(row["parent"], row["child"]): Link(rows.to_json(row["spans"]), row["n"], row["version"]) for row in new}
    made = session.run(queries.INSERT["edge"], rows=[edge(*both) for both in links.items()])
    if made[0]["written"] < len(links):
        raise _without_ends(session, links)
    session.run(queries.WRITE["pages"], w={"pages": pages(links)})


def _without_ends(session: Session, links: Mapping[Pair, Link]) -> StoreError:
    ends = [end for pair in links for end in pair]
    there = {record["id"] for record in session.run(queries.LEVELS_BY_ID, ids=ends)}
    parent, child = next(pair for pair in links if not there.issuperset(pair))
    return StoreError(
        f"edge {links[parent, child].n} leads from {parent} to {child}, which are not both in the graph, and Neo4j holds no edge"
        " without ends; run `kgsynth doctor` on the graph it came from"
    )


# one row


def concept(concept_id: str, node: Node, level: int) -> Row:
    """A concept for the statements "created" and "altered" of `queries.WRITE`."""
    labels = concept_labels(level=level, atomic=node.concept.atomic, domain=node.concept.domain)
    keys = [{"key": name_key(key), "whole": key if len(key) > LONGEST_KEY else None} for key in node.concept.keys]
    return {"fields": concept_row(concept_id, node, level), "labels": labels, "keys": keys}


def name_key(key: str) -> str:
    """A spelling as it is indexed: Neo4j takes some 8,000 bytes, so that a long one is cut and told apart by its hash."""
    return key if len(key) <= LONGEST_KEY else f"{key[:100]}... {text_hash(key)}"


def edge(pair: Pair, link: Link) -> Row:
    fields = {
        "id": edge_id(pair), "n": link.n, "version": link.version, "spans": link.json,
        "sources": _sources(link),
    }  # fmt: skip
    return {"parent": pair[0], "child": pair[1], "fields": fields}


def pages(links: Mapping[Pair, Link]) -> list[Row]:
    """The pages that edges quote, one row for each child."""
    found: dict[str, dict[str, None]] = {}
    for (_, child), link in links.items():
        found.setdefault(child, {}).update(dict.fromkeys(_sources(link)))
    return [{"child": child, "sources": list(sources)} for child, sources in found.items() if sources]


def _sources(link: Link) -> list[str]:
    return list(dict.fromkeys(span["source"] for span in json.loads(link.json)))


def stored(kind: str, row: Row) -> Row:
    """A row as the properties of its node."""
    if kind == "frontier":
        return {"seq": row["n"], **_without_n(row), "owner": "", "lease_until": 0.0}
    if kind == "operation":
        before = row["before"] if isinstance(row["before"], str) else json.dumps(row["before"], ensure_ascii=False)
        return {"op": row["n"], **_without_n(row), "before": before}
    if kind == "embedding":
        return {"vector": to_floats(row["vector"])}
    return row


def _without_n(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "n"}


def _row(kind: str, row: Row) -> Row:
    if kind == "edge":
        return {**row, "spans": json.loads(row["spans"])}
    if kind == "embedding":
        return {**row, "vector": to_bytes(row["vector"])}
    return row


def to_bytes(vector: Sequence[float]) -> bytes:
    """Little-endian float32, as in a raw row. What was float32 comes back bit by bit."""
    import numpy as np

    return np.array(vector, np.dtype("<f4")).tobytes()


def to_floats(vector: bytes) -> list[float]:
    import numpy as np

    return np.frombuffer(vector, np.dtype("<f4")).astype(np.float64).tolist()
