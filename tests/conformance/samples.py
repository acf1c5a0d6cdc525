"""What the cases write, and what they look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, Edge, Source, SourceSpan
from kgsynth.errors import UndoError
from kgsynth.store import KINDS, Change, FrontierItem, GraphStore, Row


def concept(name: str, **fields: Any) -> Concept:
    return Concept(name=name, domain="test", **fields)


def edge(parent: Concept, child: Concept, *spans: SourceSpan) -> Edge:
    return Edge(parent=parent.id, child=child.id, spans=spans)


def item(of: Concept, depth: int = 1) -> FrontierItem:
    return FrontierItem(concept=of.id, depth=depth)


A, B, C, D, E, F = map(concept, "abcdef")
PAGE = Source(url="https://example.org/ä", title="Bäume 🌳", text="Every tree is a graph. " * 40, licence="CC0-1.0")
SPANS = [PAGE.span(i, i + 5) for i in range(12)]
CHAIN = Change(concepts=(A, B, C), edges=(edge(A, B), edge(B, C)))
ODD_TEXTS = [
    "Binärbaum 二叉树 🌳", "nul \0 inside", "line\nbreak\r\nand\ttab", "“quotes” ' \" ` \\ \\n", "e\u0301 ≠ é", "\u202eright to left",
    "$parameter {map: 1} [list] // comment", "'; DROP TABLE concept; --", "x" * 20_000, "C++", "  spaced  out  ", "\U0010ffff",
]  # fmt: skip


DIM = 8  # of all vectors: another width is another index, for which Neo4j makes all its plans anew


def unit(*at: int) -> NDArray[np.float32]:
    """Unit vectors [len(at), DIM] along these axes."""
    return np.eye(DIM, dtype=np.float32)[list(at)]


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def items(*names: str) -> Change:
    """Concepts, each waiting in the frontier."""
    concepts = tuple(map(concept, names))
    return Change(concepts=concepts, enqueue=tuple(map(item, concepts)))


def pairs(store: GraphStore) -> list[tuple[str, str]]:
    """The edges by the names of their ends, in order."""
    name = {c.id: c.name for c in store.concepts()}
    return [(name[e.parent], name[e.child]) for e in store.edges()]


def levels(store: GraphStore) -> dict[str, int]:
    """By name."""
    found = store.levels()
    return {c.name: found[c.id] for c in store.concepts()}


def graph(store: GraphStore) -> dict[str, list[Row]]:
    """All that undo restores, with the order of insertion, without the versions."""
    kinds = ("concept", "edge", "merged", "frontier", "embedding")
    return {
        kind: [{k: v for k, v in row.items() if k not in {"version", "token"}} for row in every_row(store, kind)]
        for kind in kinds
    }


def dump(store: GraphStore) -> dict[str, Any]:
    """All there is."""
    return {"state": store.state(), **{kind: list(every_row(store, kind)) for kind in KINDS}}


def every_row(store: GraphStore, kind: str, limit: int = 1000) -> Iterator[Row]:
    after = -1
    while found := store.export(kind, after, limit):
        yield from found
        after = found[-1]["n"]


def longest_paths(ids: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Levels from scratch: the longest path from a root to every node. Raises NetworkXUnfeasible when there is a cycle."""
    import networkx as nx  # here: processes that only write import this module as well

    whole = nx.DiGraph()
    whole.add_nodes_from(ids)
    whole.add_edges_from(edges)
    level: dict[str, int] = {}
    for node in nx.topological_sort(whole):
        level[node] = max((level[above] + 1 for above in whole.predecessors(node)), default=0)
    return level


def check(store: GraphStore) -> None:
    """What holds of every graph, however many wrote it."""
    ids, ends = [c.id for c in store.concepts()], [(e.parent, e.child) for e in store.edges()]
    assert len(set(ids)) == len(ids)
    assert len(set(ends)) == len(ends)
    assert {end for pair in ends for end in pair} <= set(ids), "an edge without an end"
    assert store.levels() == longest_paths(ids, ends)
    rows = [row for kind in ("source", "concept", "edge", "merged", "decision", "frontier") for row in every_row(store, kind)]  # fmt: skip
    assert len({row["n"] for row in rows}) == len(rows), "a number was given twice"
    assert max((row["n"] for row in rows), default=0) <= store.state()["n"]
    kept = {row["fold"]: row["keep"] for row in every_row(store, "merged")}
    assert set(kept.values()) <= set(ids), "a redirect to nothing"
    assert not kept.keys() & set(ids), "a concept that means another"
    queued = [row["concept"] for row in every_row(store, "frontier")]
    assert len(set(queued)) == len(queued)
    assert set(queued) <= set(ids), "a frontier item of no concept"
    assert store.state()["concepts"] == len(ids)
    assert [o.op for o in store.operations()] == list(range(1, store.version() + 1))


def undo_with_what_hinders(store: GraphStore, op: int) -> list[int]:
    """Undo an operation, undoing first whatever the error names; returns the operations undone, in order."""
    todo, undone = [op], []
    while todo:
        assert len(todo) < 1000, "the advice leads nowhere"
        if first := hinders(store, todo[-1]):
            assert first > todo[-1]
            todo.append(first)
        else:
            undone.append(todo.pop())
    return undone


def hinders(store: GraphStore, op: int) -> int | None:
    """Undo an operation; the one to undo first when that is refused."""
    try:
        store.undo(op)
    except UndoError as error:
        return error.later
    return None


def undo_all(store: GraphStore) -> None:
    """Take back every operation, newest first: the graph is empty afterwards."""
    for op in range(store.version(), 0, -1):
        store.undo(op)
    assert {kind: rows for kind, rows in graph(store).items() if rows} == {}
