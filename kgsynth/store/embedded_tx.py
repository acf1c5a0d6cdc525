"""One transaction on the embedded store's file: what a Draft reads, and how it is written (`base.Tx`)."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from kgsynth.concept import Concept
from kgsynth.store import CommitResult, Operation, Row, Skeleton, rows, tables
from kgsynth.store.draft import Draft, Link, Neighbours, Node, Pair, Queued, State

CONCEPT = "c.n, c.id, c.version, c.level, " + ", ".join(f"c.{name}" for name in rows.CONCEPT_FIELDS)
GIVEN = "(SELECT value FROM json_each(?))"


class EmbeddedTx:
    """What a Draft reads, and how it is written. Numbers of concepts are remembered: edges are stored by them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._plain = db.cursor()
        self._plain.row_factory = None  # tuples: what is read by the thousand
        self.number: dict[str, int] = {}

    def state(self) -> State:
        row = self.db.execute("SELECT graph, n, op, concepts FROM state").fetchone()
        return State(*row)

    def kept(self, ids: Collection[str]) -> dict[str, str]:
        return dict(self._given("SELECT fold, keep FROM merged WHERE fold IN", ids))

    def redirects(self, fold_ids: Collection[str], keep_ids: Collection[str]) -> dict[str, tuple[str, int]]:
        found = self._given("SELECT fold, keep, n FROM merged WHERE fold IN", fold_ids)
        found += self._given("SELECT fold, keep, n FROM merged WHERE keep IN", keep_ids)
        return {fold: (keep, n) for fold, keep, n in found}

    def nodes(self, ids: Collection[str]) -> dict[str, tuple[Node, int]]:
        found = self._given(f"SELECT {CONCEPT} FROM concept c WHERE c.id IN", ids)
        self.number |= {row[1]: row[0] for row in found}
        return {row[1]: (Node(to_concept(row), row[0], row[2]), row[3]) for row in found}

    def levels(self, ids: Collection[str]) -> dict[str, int]:
        found = self._given("SELECT n, id, level FROM concept WHERE id IN", ids)
        self.number |= {concept_id: n for n, concept_id, _ in found}
        return {concept_id: level for _, concept_id, level in found}

    def links(self, pairs: Collection[Pair]) -> dict[Pair, Link]:
        number = self.number
        self.levels({end for pair in pairs for end in pair if end not in number})
        there = [pair for pair in pairs if pair[0] in number and pair[1] in number]
        found = self._plain.execute(LINKS, (as_json(map(self._ends, there)),))
        return {there[at]: Link(spans, n, version) for at, n, version, spans in found}

    def children(self, ids: Collection[str]) -> Neighbours:
        return self._around(CHILDREN, ids)

    def parents(self, ids: Collection[str]) -> Neighbours:
        return self._around(PARENTS, ids)

    def _around(self, sql: str, ids: Collection[str]) -> Neighbours:
        found: Neighbours = {i: {} for i in ids}
        for here, there, n, level in self._plain.execute(sql, (as_json(ids),)):
            found[here][there] = level
            self.number[there] = n
        return found

    def queued(self, ids: Collection[str]) -> dict[str, Queued]:
        found = self._given(f"SELECT concept, {', '.join(QUEUED)} FROM frontier WHERE concept IN", ids)
        return {row[0]: Queued(*row[1:]) for row in found}

    def vectors(self, ids: Collection[str]) -> dict[str, bytes]:
        sql = "SELECT c.id, v.vector FROM concept c JOIN embedding v ON v.concept = c.n WHERE c.id IN"
        return {row[0]: row[1] for row in self._given(sql, ids)}

    def known_sources(self, ids: Collection[str]) -> set[str]:
        return {row[0] for row in self._given("SELECT id FROM source WHERE id IN", ids)}

    def known_decisions(self, ids: Collection[str]) -> set[str]:
        return {row[0] for row in self._given("SELECT id FROM decision WHERE id IN", ids)}

    def _given(self, sql: str, ids: Collection[str]) -> list[tuple[Any, ...]]:
        return self._plain.execute(f"{sql} {GIVEN}", (as_json(ids),)).fetchall() if ids else []

    # writing

    def result(self, token: str) -> CommitResult | None:
        return None  # a commit to a file is acknowledged or not done

    def write(self, draft: Draft, at: float, token: str, result: CommitResult) -> None:
        written = draft.written
        tables.put(self.db, "source", written.sources)
        self._write_concepts(draft)
        self._write_edges(draft)
        self._write_merged(written.merged)
        self._write_frontier(written.frontier)
        tables.put_vectors(self.db, [(self.number[i], vector) for i, vector in written.vectors.items()])
        tables.put(self.db, "decision", written.decisions)
        if draft.altered:
            tables.put(self.db, "operation", [draft.operation(at)])
            draft.state.op = draft.op
        self.db.execute(
            "UPDATE state SET n = ?, op = ?, concepts = ?", (draft.state.n, draft.state.op, draft.state.concepts)
        )

    def _write_concepts(self, draft: Draft) -> None:
        """Removed ones first, then the others; levels of those that changed in nothing else last."""
        gone = [i for i, node in draft.written.concepts.items() if node is None and not draft.is_new(i)]
        tables.drop(self.db, "concept", [self.number[i] for i in gone])
        vectors = [self.number[i] for i in gone if draft.had_vector(i)]
        tables.drop(self.db, "embedding", vectors)
        there = {i: node for i, node in draft.written.concepts.items() if node is not None}
        new = {i: node for i, node in there.items() if draft.is_new(i)}
        old = {i: node for i, node in there.items() if i not in new}
        self.db.executemany(OLD_NAMES, [(node.n, as_json(node.concept.keys)) for node in old.values()])
        self.db.executemany(ALTER, [(*_columns(node, draft.level[i]), node.n) for i, node in old.items()])
        self.db.executemany(INSERT, [(*_columns(node, draft.level[i]), node.n, i) for i, node in new.items()])
        tables.put_names(self.db, [(node.n, node.concept) for node in there.values()])
        self.number |= {i: node.n for i, node in there.items()}
        moved = [(level, i) for i, level in draft.written.levels.items() if i not in there]
        self.db.executemany("UPDATE concept SET level = ? WHERE id = ?", moved)

    def _write_edges(self, draft: Draft) -> None:
        edges = draft.written.edges
        self.db.executemany("DELETE FROM edge WHERE n = ?", [(n,) for n in draft.cut_numbers()])
        there = [(pair, (link.version, link.json, link.n)) for pair, link in edges.items() if link]
        old = [fields for pair, fields in there if draft.is_stored(pair)]
        new = [(*fields, *self._ends(pair)) for pair, fields in there if not draft.is_stored(pair)]
        self.db.executemany("UPDATE edge SET version = ?, spans = ? WHERE n = ?", old)
        self.db.executemany("INSERT INTO edge (version, spans, n, parent, child) VALUES (?, ?, ?, ?, ?)", new)

    def _ends(self, pair: Pair) -> tuple[int, int]:
        return self.number[pair[0]], self.number[pair[1]]

    def _write_merged(self, merged: Mapping[str, tuple[str, int] | None]) -> None:
        self.db.executemany("DELETE FROM merged WHERE fold = ?", [(fold,) for fold in merged])
        kept = [(to[1], fold, to[0]) for fold, to in merged.items() if to]
        self.db.executemany("INSERT INTO merged VALUES (?, ?, ?)", kept)

    def _write_frontier(self, frontier: Mapping[str, Queued | None]) -> None:
        self.db.executemany("DELETE FROM frontier WHERE concept = ?", [(i,) for i in frontier])
        items = [(q.n, i, q.depth, q.state, q.attempts, q.token, q.owner, q.until) for i, q in frontier.items() if q]
        self.db.executemany("INSERT INTO frontier VALUES (?, ?, ?, ?, ?, ?, ?, ?)", items)

    # raw rows and the log

    def rows(self, kind: str, numbers: Collection[int]) -> list[Row]:
        return tables.pick(self.db, kind, numbers)

    def drop(self, kind: str, numbers: Collection[int]) -> None:
        tables.drop(self.db, kind, numbers)

    def put(self, kind: str, rows: Sequence[Row]) -> None:
        tables.put(self.db, kind, rows)

    def put_state(self, state: State) -> None:
        self.db.execute(
            "UPDATE state SET n = ?, op = ?, concepts = (SELECT count(*) FROM concept)", (state.n, state.op)
        )

    def operation(self, op: int) -> tuple[Operation, Mapping[str, Any]] | None:
        found = tables.pick(self.db, "operation", [op])
        return (rows.to_operation(found[0]), json.loads(found[0]["before"])) if found else None

    def operations(self, since: int, limit: int | None = None) -> list[Operation]:
        sql = "SELECT n, at, kind, note, undoes, concepts, edges FROM operation WHERE n > ? ORDER BY n LIMIT ?"
        found = self.db.execute(sql, (since, -1 if limit is None else limit)).fetchall()
        lists = ("concepts", "edges")
        return [rows.to_operation({**dict(row), **{name: json.loads(row[name]) for name in lists}}) for row in found]

    def skeleton(self) -> Skeleton:
        """Read row by row into what is returned, as a list of all rows would need three times the memory."""
        import numpy as np

        numbers, levels, atomic = array("q"), array("i"), array("b")
        ids, names, domains, shared = list[str](), list[str](), list[str](), dict[str, str]()
        for n, concept_id, name, domain, level, judged in self._plain.execute(NODES):
            for values, value in ((numbers, n), (levels, level), (atomic, judged)):
                values.append(value)
            ids.append(concept_id)
            names.append(name)
            domains.append(shared.setdefault(domain, domain))
        ends = np.fromiter(chain.from_iterable(self._plain.execute(ENDS)), np.int64).reshape(-1, 2)
        table = np.searchsorted(np.array(numbers, np.int64), ends).astype(np.int32)
        return Skeleton(
            op=self.state().op, ids=ids, names=names, domains=domains, levels=np.array(levels, np.int32),
            atomic=np.array(atomic, np.int8), parents=table[:, 0].copy(), children=table[:, 1].copy(),
        )  # fmt: skip


NODES = "SELECT n, id, name, domain, level, coalesce(atomic, -1) FROM concept ORDER BY n"

ENDS = "SELECT parent, child FROM edge ORDER BY n"

LINKS = """
SELECT j.key, e.n, e.version, e.spans FROM json_each(?) j JOIN edge e ON e.parent = j.value ->> 0 AND e.child = j.value ->> 1"""

CHILDREN = """
SELECT p.id, c.id, c.n, c.level FROM json_each(?) j JOIN concept p ON p.id = j.value
JOIN edge e ON e.parent = p.n JOIN concept c ON c.n = e.child ORDER BY e.n"""

PARENTS = """
SELECT c.id, p.id, p.n, p.level FROM json_each(?) j JOIN concept c ON c.id = j.value
JOIN edge e ON e.child = c.n JOIN concept p ON p.n = e.parent ORDER BY e.n"""

QUEUED = ("n", "depth", "state", "attempts", "token", "owner", "until")

OLD_NAMES = "DELETE FROM name WHERE concept = ? AND key NOT IN (SELECT value FROM json_each(?))"

_WRITTEN = ("version", "level", *rows.CONCEPT_FIELDS)
ALTER = f"UPDATE concept SET {', '.join(f'{name} = ?' for name in _WRITTEN)} WHERE n = ?"
INSERT = f"INSERT INTO concept ({', '.join(_WRITTEN)}, n, id) VALUES ({', '.join('?' * len(_WRITTEN))}, ?, ?)"


def as_json(ids: Iterable[Any]) -> str:
    return rows.to_json(list(ids))


def _columns(node: Node, level: int) -> tuple[Any, ...]:
    c = node.concept
    lists = (tables.dumps(c.aliases), tables.dumps(c.keywords))
    atomic = None if c.atomic is None else int(c.atomic)
    return node.version, level, c.name, c.domain, c.definition, *lists, c.sense, atomic, c.atomic_reason


def to_concept(row: Sequence[Any]) -> Concept:
    """From a row of the columns CONCEPT."""
    _, _, _, _, name, domain, definition, aliases, keywords, sense, atomic, reason = row
    return Concept(
        name=name, domain=domain, definition=definition, aliases=_names(aliases), keywords=_names(keywords),
        sense=sense, atomic=None if atomic is None else bool(atomic), atomic_reason=reason,
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))
