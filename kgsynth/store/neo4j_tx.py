"""One transaction on a Neo4j database: what a Draft reads, and how it is written (`base.Tx`).

A round trip costs more than what it asks for. So what a change will need is read at once (`expect`), and what became of it is
written at once, unless there is too much of it for one statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kgsynth.concept import Edge
from kgsynth.errors import StoreError
from kgsynth.store import Change, CommitResult, Operation, Row, Skeleton, neo4j_rows, queries, rows
from kgsynth.store.draft import Draft, Link, Neighbours, Node, Pair, Queued, State
from kgsynth.store.labels import concept_labels
from kgsynth.store.neo4j_driver import Session, batches

BATCH = 5000  # rows per statement


class Neo4jTx:
    """Made when the transaction holds the guard's lock; until it writes, nobody else does, so that what was read stays true."""

    def __init__(self, session: Session, url: str) -> None:
        self.session = session
        found = session.run(queries.LOCK)
        if not found:
            raise StoreError(f"graph store {url}: the database was emptied since it was opened; open the store again")
        self.guard: Row = found[0]["guard"]
        self._known: dict[str, dict[Any, Any]] = {kind: {} for kind in queries.READ}

    def state(self) -> State:
        return State(*(self.guard[name] for name in ("graph", "n", "op", "concepts")))

    # reading. What was asked for once is not asked for again

    def expect(self, change: Change) -> None:
        """Read all that such a change usually needs, if that is one statement's worth."""
        wanted = _needs(change)
        if sum(map(len, wanted.values())) <= BATCH:
            self._found(wanted, queries.EXPECTED, {kind: list(keys) for kind, keys in wanted.items()})

    def kept(self, ids: Collection[str]) -> dict[str, str]:
        return self._ask("kept", ids)

    def redirects(self, fold_ids: Collection[str], keep_ids: Collection[str]) -> dict[str, tuple[str, int]]:
        found = self.session.run(queries.REDIRECTS, fold=list(fold_ids), keep=list(keep_ids))
        return {row["m"]["fold"]: (row["m"]["keep"], row["m"]["n"]) for row in found}

    def nodes(self, ids: Collection[str]) -> dict[str, tuple[Node, int]]:
        return self._ask("node", ids)

    def levels(self, ids: Collection[str]) -> dict[str, int]:
        known = self._known["node"]
        read = {i: known[i] and known[i][1] for i in ids if i in known}
        self._known["level"] |= read
        return self._ask("level", ids)

    def links(self, pairs: Collection[Pair]) -> dict[Pair, Link]:
        return self._ask("link", pairs)

    def children(self, ids: Collection[str]) -> Neighbours:
        return {key: {} for key in ids} | self._ask("children", ids)

    def parents(self, ids: Collection[str]) -> Neighbours:
        return {key: {} for key in ids} | self._ask("parents", ids)

    def queued(self, ids: Collection[str]) -> dict[str, Queued]:
        return self._ask("queued", ids)

    def vectors(self, ids: Collection[str]) -> dict[str, bytes]:
        return self._ask("vector", ids)

    def known_sources(self, ids: Collection[str]) -> set[str]:
        return set(self._ask("source", ids))

    def known_decisions(self, ids: Collection[str]) -> set[str]:
        return set(self._ask("decision", ids))

    def _ask(self, kind: str, keys: Collection[Any]) -> dict[Any, Any]:
        """What is there under these keys."""
        known = self._known[kind]
        for batch in batches([key for key in dict.fromkeys(keys) if key not in known], BATCH):
            self._found({kind: batch}, queries.READ[kind], {kind: batch})
        return {key: known[key] for key in keys if known[key] is not None}

    def _found(self, asked: Mapping[str, Collection[Any]], query: str, given: Mapping[str, Any]) -> None:
        for kind, keys in asked.items():
            self._known[kind] |= dict.fromkeys(keys)
        for record in self.session.run(query, asked=dict(given)):
            key, value = _READERS[record["kind"]](record["row"])
            self._known[record["kind"]][key] = value

    # writing

    def result(self, token: str) -> CommitResult | None:
        found = self.session.run(queries.RESULT, token=token) if self.session.again else []
        return _to_result(found[0]["result"]) if found else None

    def write(self, draft: Draft, at: float, token: str, result: CommitResult) -> None:
        log = [_operation(draft.operation(at), token, result)] if draft.altered else []
        parts = _parts(draft, self.guard["loose"]) | {"operation": log}
        folded = {row["fold"] for row in parts["retold"]}
        loose = self.guard["loose"] or not folded.issuperset(parts["gone"])
        op = draft.op if draft.altered else draft.state.op
        parts["state"] = [{"n": draft.state.n, "op": op, "concepts": draft.state.concepts, "loose": loose}]
        assert parts.keys() == queries.WRITE.keys()
        if sum(map(len, parts.values())) <= BATCH:
            self.session.run(queries.WRITE_ALL, w=parts)
            return
        for name, query in queries.WRITE.items():
            for batch in batches(parts[name], BATCH):
                self.session.run(query, w={name: batch})

    # raw rows and the log

    def rows(self, kind: str, numbers: Collection[int]) -> list[Row]:
        return neo4j_rows.pick(self.session, kind, numbers)

    def drop(self, kind: str, numbers: Collection[int]) -> None:
        neo4j_rows.drop(self.session, kind, numbers)

    def put(self, kind: str, rows: Sequence[Row]) -> None:
        neo4j_rows.put(self.session, kind, rows)

    def put_state(self, state: State) -> None:
        self.session.run(queries.RECOUNT, state={"n": state.n, "op": state.op})

    def operation(self, op: int) -> tuple[Operation, Mapping[str, Any]] | None:
        found = self.session.run(queries.OPERATION, op=op)
        return (rows.to_operation(found[0]["row"]), json.loads(found[0]["before"])) if found else None

    def operations(self, since: int, limit: int | None = None) -> list[Operation]:
        most = (1 << 62) if limit is None else limit
        return [rows.to_operation(r["row"]) for r in self.session.run(queries.OPERATIONS, since=since, limit=most)]

    def skeleton(self) -> Skeleton:
        import numpy as np

        found = [record.values() for record in self.session.run(queries.SKELETON_NODES)]
        numbers, ids, names, domains, levels, atomic = zip(*found, strict=True) if found else ((),) * 6
        ends = [record.values() for record in self.session.run(queries.SKELETON_EDGES)]
        table = np.searchsorted(np.array(numbers, np.int64), np.array(ends, np.int64).reshape(-1, 2)).astype(np.int32)
        shared: dict[str, str] = {}
        return Skeleton(
            op=self.guard["op"], ids=list(ids), names=list(names), domains=[shared.setdefault(d, d) for d in domains],
            levels=np.array(levels, np.int32), atomic=np.array(atomic, np.int8),
            parents=table[:, 0].copy(), children=table[:, 1].copy(),
        )  # fmt: skip


# what is read


def _needs(change: Change) -> dict[str, dict[Any, None]]:
    """The keys of what `commit.apply` will read, as far as the change names them."""
    ends = [end for edge in change.edges for end in (edge.parent, edge.child)]
    merged = [i for pair in change.merges for i in pair]
    folds = [fold for _, fold in change.merges]
    queue = [item.concept for item in (*change.leases, *change.enqueue)] + [*change.done, *merged]
    around = [*merged, *change.remove, *(split.concept for split in change.splits)]
    cut = [i for pair in change.unlink for i in pair]
    nodes = [concept.id for concept in change.concepts] + around + [split.into.id for split in change.splits]
    wanted: dict[str, Iterable[Any]] = {
        "kept": [*nodes, *ends, *cut, *queue],
        "node": nodes,
        "level": [*ends, *cut, *(item.concept for item in change.enqueue)],
        "link": [*((edge.parent, edge.child) for edge in change.edges), *change.unlink],
        "children": around,
        "parents": [*around, *(edge.parent for edge in change.edges)],
        "queued": [*queue, *change.remove],
        "vector": [*folds, *change.remove],
        "source": [source.id for source in change.sources],
        "decision": [decision.id for decision in change.decisions],
    }
    return {kind: dict.fromkeys(keys) for kind, keys in wanted.items()}


def _to_node(row: Row) -> tuple[str, tuple[Node, int]]:
    return row["id"], (Node(rows.to_concept(row), row["n"], row["version"]), row["level"])


def _to_link(row: Row) -> tuple[Pair, Link]:
    return (row["parent"], row["child"]), Link(row["spans"], row["n"], row["version"])


def _to_neighbours(row: Row) -> tuple[str, dict[str, int]]:
    return row["id"], dict(row["there"])


def _to_queued(row: Row) -> tuple[str, Queued]:
    fields = ("seq", "depth", "state", "attempts", "token", "owner", "lease_until")
    return row["concept"], Queued(*(row[name] for name in fields))


_READERS: Mapping[str, Callable[[Row], tuple[Any, Any]]] = {
    "kept": lambda row: (row["id"], row["keep"]),
    "node": _to_node,
    "level": lambda row: (row["id"], row["level"]),
    "link": _to_link,
    "children": _to_neighbours,
    "parents": _to_neighbours,
    "queued": _to_queued,
    "vector": lambda row: (row["id"], neo4j_rows.to_bytes(row["vector"])),
    "source": lambda row: (row["id"], True),
    "decision": lambda row: (row["id"], True),
}


def _to_result(text: str) -> CommitResult:
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()}
    refused = tuple(
        Edge(parent=e["parent"], child=e["child"], spans=rows.to_spans(e["spans"])) for e in found["refused"]
    )
    return CommitResult(**{**found, "refused": refused})


# what is written


def _parts(draft: Draft, loose: bool) -> dict[str, list[Any]]:
    """The rows of each statement in `queries.WRITE`, but for the log and the counters."""
    written = draft.written
    there = {i: node for i, node in written.concepts.items() if node is not None}
    gone = [i for i, node in written.concepts.items() if node is None and not draft.is_new(i)]
    links = {pair: link for pair, link in written.edges.items() if link is not None}
    created, altered = ([i for i in there if draft.is_new(i) is new] for new in (True, False))
    children = dict.fromkeys(child for _, child in written.edges)
    return {
        "sources": written.sources,
        "cut": [pair for pair, link in written.edges.items() if link is None],
        "retold": [{"fold": fold, "keep": keep[0]} for fold, keep in written.merged.items() if keep and fold in gone],
        "gone": gone,
        "created": [neo4j_rows.concept(i, there[i], draft.level[i]) for i in created],
        "altered": [neo4j_rows.concept(i, there[i], draft.level[i]) for i in altered],
        "levels": [_level(i, level) for i, level in written.levels.items() if i not in there],
        "edges": [neo4j_rows.edge(pair, link) for pair, link in links.items()],
        "stale": [i for i in children if i not in there or not draft.is_new(i)],
        "pages": neo4j_rows.pages(links),
        "unmerged": list(written.merged),
        "merged": [{"n": to[1], "fold": fold, "keep": to[0]} for fold, to in written.merged.items() if to],
        "dequeued": list(written.frontier),
        "queued": [_item(i, item) for i, item in written.frontier.items() if item],
        "vectors": [{"id": i, "vector": neo4j_rows.to_floats(vector)} for i, vector in written.vectors.items()],
        "decisions": written.decisions,
        "retested": list(there) if draft.undoes is not None else created if loose else [],
    }


def _level(concept_id: str, level: int) -> Row:
    return {"id": concept_id, "level": level, "label": concept_labels(level=level, atomic=None, domain="")[0]}


def _item(concept_id: str, item: Queued) -> Row:
    return {
        "concept": concept_id, "seq": item.n, "depth": item.depth, "state": item.state, "attempts": item.attempts,
        "token": item.token, "owner": item.owner, "lease_until": item.until,
    }  # fmt: skip


def _operation(row: Row, token: str, result: CommitResult) -> Row:
    refused = [{"parent": e.parent, "child": e.child, "spans": rows.spans_to_rows(e.spans)} for e in result.refused]
    said = json.dumps({**asdict(result), "refused": refused}, ensure_ascii=False)
    before = json.dumps(row["before"], ensure_ascii=False)
    return neo4j_rows.stored("operation", {**row, "before": before}) | {"token": token, "result": said}
