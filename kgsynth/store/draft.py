"""One transaction's unit of work: what was read of the graph, what it becomes, and what takes it back.

A Draft reads through a `Reader` (a store, inside a transaction that holds the write lock) and remembers what it read, so that
nothing is asked for twice. Changes are made to the draft; the first change of anything notes what it was before. At the end
the store writes what `written` lists, and `before` becomes the operation's entry in the log:

    {"concept": {id: row}, "edge": {"parent child": row}, "embedding": {id: base64},    as they were; absent: were not there
                                                                                        (spans of an edge: their JSON text)
     "merged": {fold: row or null}, "frontier": {concept: row or null},
     "gone": [ids of removed concepts], "cut": ["parent child" of removed edges],
     "version": {id or "parent child": its version afterwards, where that is not the operation's number},
     "queued": {concept: its frontier item afterwards, see `membership`}}
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from kgsynth.concept import Concept, Decision, Source, SourceSpan
from kgsynth.store import Row, rows
from kgsynth.store.dag import Ids, lower_levels, raise_levels

Pair = tuple[str, str]  # (parent, child)
Neighbours = dict[str, dict[str, int]]  # id -> neighbour id -> its level, in the order of insertion of the edges


@dataclass(slots=True)
class Node:
    """A concept as it is stored. Its level is in `Draft.level`."""

    concept: Concept
    n: int
    version: int


class Link:
    """An edge as it is stored. Its spans stay text until they are looked at: most edges are only moved or removed."""

    __slots__ = ("json", "n", "version")

    def __init__(self, spans: tuple[SourceSpan, ...] | str, n: int, version: int) -> None:
        self.json = spans if isinstance(spans, str) else rows.spans_to_json(spans)
        self.n, self.version = n, version

    @property
    def spans(self) -> tuple[SourceSpan, ...]:
        return rows.spans_from_json(self.json)


@dataclass(slots=True)
class Queued:
    """A frontier item as it is stored."""

    n: int  # its seq
    depth: int
    state: str  # "waiting", "leased" or "done"
    attempts: int
    token: int  # of its last lease
    owner: str = ""  # who holds that lease
    until: float = 0.0  # when it ends


@dataclass
class State:
    """The counters of a graph."""

    graph: str  # uuid
    n: int  # last number given
    op: int  # last operation
    concepts: int  # how many there are


class Reader(Protocol):
    """What a draft asks a store for. Ids that are not there are left out of the answers; nothing follows redirects."""

    def state(self) -> State: ...

    def kept(self, ids: Collection[str]) -> dict[str, str]:
        """Folded id -> the id it means now."""
        ...

    def redirects(self, fold_ids: Collection[str], keep_ids: Collection[str]) -> dict[str, tuple[str, int]]:
        """Folded id -> (kept id, n): the redirects of these folded ids, and those that lead to these kept ones."""
        ...

    def nodes(self, ids: Collection[str]) -> dict[str, tuple[Node, int]]:
        """id -> (node, level)."""
        ...

    def levels(self, ids: Collection[str]) -> dict[str, int]: ...

    def links(self, pairs: Collection[Pair]) -> dict[Pair, Link]: ...

    def children(self, ids: Collection[str]) -> Neighbours:
        """An entry for every id, empty where there are none."""
        ...

    def parents(self, ids: Collection[str]) -> Neighbours: ...

    def queued(self, ids: Collection[str]) -> dict[str, Queued]: ...

    def vectors(self, ids: Collection[str]) -> dict[str, bytes]: ...

    def known_sources(self, ids: Collection[str]) -> set[str]: ...

    def known_decisions(self, ids: Collection[str]) -> set[str]: ...


class Draft:
    """The graph as one operation leaves it. Implements `dag.Ordered`."""

    def __init__(self, reader: Reader, *, kind: str = "commit", note: str = "", undoes: int | None = None) -> None:
        self.reader, self.state = reader, reader.state()
        self.op = self.state.op + 1
        self.kind, self.note, self.undoes = kind, note, undoes
        self.level: dict[str, int] = {}  # of every concept seen
        self.children: dict[str, Ids] = {}
        self.parents: dict[str, Ids] = {}
        self._unread_children: dict[str, dict[str, bool]] = {}  # changes beside neighbours that were not read
        self._unread_parents: dict[str, dict[str, bool]] = {}
        self.nodes: dict[str, Node | None] = {}
        self._gone: set[str] = set()  # removed in this draft
        self.links: dict[Pair, Link | None] = {}
        self.queue: dict[str, Queued | None] = {}
        self.merged: dict[str, tuple[str, int]] = {}  # folded id -> (kept id, n), as far as it was read
        self._folded_into: dict[str, Ids] = {}  # the same, from the kept id
        self.kept: dict[str, str] = {}
        self.written = Written()
        self._before: dict[str, dict[Any, Any]] = {"concept": {}, "edge": {}, "merged": {}, "frontier": {}}
        self._vectors: dict[str, bytes | None] = {}  # of concepts that may go

    # reading

    def need_kept(self, ids: Iterable[str]) -> None:
        if missing := {i for i in ids if i not in self.kept}:
            self.kept |= dict(zip(missing, missing, strict=True)) | self.reader.kept(missing)

    def need_levels(self, ids: Iterable[str]) -> None:
        """After this, an id without a level is of no concept."""
        if missing := {i for i in ids if i not in self.level and i not in self._gone}:
            self.level |= self.reader.levels(missing)

    def need_nodes(self, ids: Iterable[str]) -> None:
        if missing := {i for i in ids if i not in self.nodes}:
            found = self.reader.nodes(missing)
            for i in missing:
                self.nodes[i] = found[i][0] if i in found else None
                if i in found:
                    self.level.setdefault(i, found[i][1])

    def need_links(self, pairs: Iterable[Pair]) -> None:
        if missing := {pair for pair in pairs if pair not in self.links}:
            found = self.reader.links(missing)
            self.links |= {pair: found.get(pair) for pair in missing}

    def need_queued(self, ids: Iterable[str]) -> None:
        if missing := {i for i in ids if i not in self.queue}:
            found = self.reader.queued(missing)
            self.queue |= {i: found.get(i) for i in missing}

    def need_children(self, ids: Collection[str]) -> None:
        if missing := [i for i in ids if i not in self.children]:
            self._found(self.reader.children(missing), self.children, self._unread_children)

    def need_parents(self, ids: Collection[str]) -> None:
        if missing := [i for i in ids if i not in self.parents]:
            self._found(self.reader.parents(missing), self.parents, self._unread_parents)

    def _found(self, found: Neighbours, side: dict[str, Ids], unread: dict[str, dict[str, bool]]) -> None:
        for here, neighbours in found.items():
            side[here] = dict.fromkeys(neighbours)
            for there, level in neighbours.items():
                if there not in self._gone:
                    self.level.setdefault(there, level)
            for there, added in unread.pop(here, {}).items():
                _set(side[here], there, added)

    def need_vectors(self, ids: Iterable[str]) -> None:
        if missing := {i for i in ids if i not in self._vectors}:
            found = self.reader.vectors(missing)
            self._vectors |= {i: found.get(i) for i in missing}

    def need_redirects(self, fold_ids: Collection[str], keep_ids: Collection[str]) -> None:
        """The redirects of these folded ids, and those that lead to these kept ones."""
        for fold, to in (self.reader.redirects(fold_ids, keep_ids) if fold_ids or keep_ids else {}).items():
            if fold not in self.written.merged:
                self.merged[fold] = to
                self._folded_into.setdefault(to[0], {})[fold] = None

    def folded_into(self, keep: str) -> list[str]:
        return list(self._folded_into.get(keep, ()))

    def node(self, concept_id: str) -> Node | None:
        self.need_nodes((concept_id,))
        return self.nodes[concept_id]

    # changing. What is changed must have been read

    def next_n(self) -> int:
        self.state.n += 1
        return self.state.n

    def set_level(self, concept_id: str, level: int) -> None:
        self.level[concept_id] = level
        self.written.levels[concept_id] = level

    def insert(self, concept_id: str, node: Node) -> None:
        """A concept that is not there."""
        self._note_concept(concept_id)
        self._gone.discard(concept_id)
        self.nodes[concept_id] = node
        self.children[concept_id], self.parents[concept_id] = {}, {}
        self.set_level(concept_id, 0)
        self.state.concepts += 1
        self.written.concepts[concept_id] = node

    def rewrite(self, concept_id: str, node: Node) -> None:
        """A concept that is there."""
        self._note_concept(concept_id)
        self.nodes[concept_id] = self.written.concepts[concept_id] = node

    def delete(self, concept_id: str) -> None:
        """A concept whose edges are gone already."""
        self._note_concept(concept_id)
        self.need_vectors((concept_id,))
        self.nodes[concept_id] = self.written.concepts[concept_id] = None
        self._gone.add(concept_id)
        self.level.pop(concept_id, None)
        self.written.levels.pop(concept_id, None)
        self.state.concepts -= 1

    def add_link(self, pair: Pair, link: Link) -> None:
        """An edge that is not there and closes no cycle. Levels below it follow."""
        self._note_edge(pair)
        self.links[pair] = self.written.edges[pair] = link
        self._mark(pair, True)
        raise_levels(self, *pair)

    def set_link(self, pair: Pair, link: Link) -> None:
        """An edge that is there."""
        self._note_edge(pair)
        self.links[pair] = self.written.edges[pair] = link

    def cut_link(self, pair: Pair) -> None:
        """An edge that is there. Levels below it follow."""
        self._note_edge(pair)
        self.links[pair] = self.written.edges[pair] = None
        self._mark(pair, False)
        lower_levels(self, self.level[pair[0]], pair[1])

    def _mark(self, pair: Pair, added: bool) -> None:
        """Among the neighbours; where these are not read yet, when they are."""
        ends = ((self.children, self._unread_children, *pair), (self.parents, self._unread_parents, pair[1], pair[0]))
        for side, unread, here, there in ends:
            if here in side:
                _set(side[here], there, added)
            else:
                unread.setdefault(here, {})[there] = added

    def redirect(self, fold: str, keep: tuple[str, int] | None) -> None:
        """`fold` means keep[0] from now on, or itself again. The present redirect must have been read."""
        old = self.merged.pop(fold, None)
        self._before["merged"].setdefault(fold, old and {"n": old[1], "fold": fold, "keep": old[0]})
        if old:
            self._folded_into[old[0]].pop(fold)
        if keep:
            self.merged[fold] = keep
            self._folded_into.setdefault(keep[0], {})[fold] = None
        self.written.merged[fold] = keep
        self.kept[fold] = keep[0] if keep else fold

    def enqueue(self, concept_id: str, item: Queued | None) -> None:
        """Insert, replace or take out a frontier item."""
        old = self.queue[concept_id]
        self._before["frontier"].setdefault(concept_id, old and _frontier_row(concept_id, old))
        self.queue[concept_id] = self.written.frontier[concept_id] = item

    def restore_vector(self, concept_id: str, vector: str) -> None:
        """vector: base64 of the log."""
        self.written.vectors[concept_id] = base64.b64decode(vector)

    def add_sources(self, sources: Iterable[Source]) -> None:
        new: dict[str, Source] = {}
        for source in sources:
            new.setdefault(source.id, source)
        known = self.reader.known_sources(new) if new else set()
        self.written.sources += [
            {"n": self.next_n(), **rows.source_fields(source)} for i, source in new.items() if i not in known
        ]

    def add_decisions(self, decisions: Iterable[tuple[str, str, Decision]]) -> None:
        """(id, evidence as JSON, decision)."""
        new = {i: (evidence, decision) for i, evidence, decision in decisions}
        known = self.reader.known_decisions(new) if new else set()
        for i, (evidence, d) in new.items():
            if i not in known:
                row = {"kind": d.kind, "subject": d.subject, "outcome": d.outcome, "reason": d.reason}
                self.written.decisions.append({"n": self.next_n(), "id": i, **row, "evidence": evidence})

    def _note_concept(self, concept_id: str) -> None:
        if concept_id not in self._before["concept"]:
            old = self.nodes[concept_id]
            self._before["concept"][concept_id] = old and concept_row(concept_id, old, self.level[concept_id])

    def _note_edge(self, pair: Pair) -> None:
        if pair not in self._before["edge"]:
            old = self.links[pair]
            self._before["edge"][pair] = old and edge_row(pair, old)

    # the log

    def settle(self) -> None:
        """Forget what is again as it was: added and removed, or told one thing and the other, within the draft."""
        w = self.written
        kinds = ((self.nodes, w.concepts), (self.links, w.edges), (self.merged, w.merged), (self.queue, w.frontier))
        for before, (now, out) in zip(self._before.values(), kinds, strict=True):
            for key in [key for key, old in before.items() if _is_same(old, now.get(key))]:
                del before[key], out[key]

    @property
    def altered(self) -> bool:
        """Whether this is an operation at all: sources, decisions and leases make none."""
        return any(self._before.values())

    def is_new(self, concept_id: str) -> bool:
        """Whether a written concept is not in the store yet."""
        return self._before["concept"][concept_id] is None

    def had_vector(self, concept_id: str) -> bool:
        """Whether a removed concept has a vector to be removed."""
        return bool(self._vectors.get(concept_id))

    def is_stored(self, pair: Pair) -> bool:
        """Whether a written edge is in the store already, under the number it has now."""
        old, link = self._before["edge"][pair], self.written.edges[pair]
        return old is not None and link is not None and old["n"] == link.n

    def cut_numbers(self) -> list[int]:
        """The numbers under which written edges are stored that are no more, or that have another number now."""
        before = self._before["edge"]
        return [before[pair]["n"] for pair in self.written.edges if before[pair] and not self.is_stored(pair)]

    def operation(self, at: float) -> Row:
        """The log's row, with `before` as a mapping for the store to serialise."""
        concepts, pairs = self._before["concept"], self._before["edge"]
        touched = [*concepts, *self._passing()]
        return {
            "n": self.op, "at": at, "kind": self.kind, "note": self.note, "undoes": self.undoes,
            "concepts": touched, "edges": [f"{p} {c}" for p, c in pairs],
            "before": {
                "concept": {i: row for i, row in concepts.items() if row},
                "edge": {f"{p} {c}": row for (p, c), row in pairs.items() if row},
                "embedding": self._lost_vectors(),
                "merged": self._before["merged"],
                "frontier": self._before["frontier"],
                "gone": [i for i in touched if self.nodes.get(i) is None],
                "cut": [f"{p} {c}" for p, c in pairs if self.links[p, c] is None],
                "queued": {i: membership(self.queue[i]) for i in self._before["frontier"]},
                "version": self._old_versions(),
            },
        }  # fmt: skip

    def _passing(self) -> list[str]:
        """Concepts that were added and folded in this very operation: all that is left of them is what their ids mean now."""
        return [i for i, old in self._before["merged"].items() if not old and i not in self._before["concept"]]

    def _old_versions(self) -> dict[str, int]:
        """Of what an undo brought back: it bears the number of the operation that once wrote it, as if nothing had been."""
        nodes = ((i, self.nodes[i]) for i in self._before["concept"])
        links = ((f"{pair[0]} {pair[1]}", self.links[pair]) for pair in self._before["edge"])
        return {key: it.version for key, it in (*nodes, *links) if it and it.version != self.op}

    def _lost_vectors(self) -> dict[str, str]:
        lost = ((i, vector) for i, vector in self._vectors.items() if vector and self.nodes.get(i) is None)
        return {i: base64.b64encode(vector).decode("ascii") for i, vector in lost}


@dataclass
class Written:
    """What the store has to write, each thing once, as it is at the end. None: remove it (if it was ever there)."""

    sources: list[Row] = field(default_factory=list)
    concepts: dict[str, Node | None] = field(default_factory=dict)
    edges: dict[Pair, Link | None] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)  # of inserted concepts too
    merged: dict[str, tuple[str, int] | None] = field(default_factory=dict)
    frontier: dict[str, Queued | None] = field(default_factory=dict)
    vectors: dict[str, bytes] = field(default_factory=dict)
    decisions: list[Row] = field(default_factory=list)


def _set(ids: Ids, there: str, added: bool) -> None:
    if added:
        ids[there] = None
    else:
        ids.pop(there, None)


def _is_same(old: Row | None, now: Any) -> bool:
    if old is None or now is None:
        return old is now
    if isinstance(now, Node):
        return old["n"] == now.n and rows.to_concept(old) == now.concept
    return isinstance(now, Link) and (old["n"], old["spans"]) == (now.n, now.json)


def concept_row(concept_id: str, node: Node, level: int) -> Row:
    where = {"n": node.n, "id": concept_id, "version": node.version, "level": level}
    return where | rows.concept_fields(node.concept)


def edge_row(pair: Pair, link: Link) -> Row:
    return {"n": link.n, "parent": pair[0], "child": pair[1], "version": link.version, "spans": link.json}


def _frontier_row(concept_id: str, item: Queued) -> Row:
    state = "done" if item.state == "done" else "waiting"
    return {
        "n": item.n, "concept": concept_id, "depth": item.depth, "state": state, "attempts": item.attempts,
        "token": item.token,
    }  # fmt: skip


def to_queued(row: Mapping[str, Any]) -> Queued:
    return Queued(row["n"], row["depth"], row["state"], row["attempts"], row["token"])


def membership(item: Queued | None) -> list[Any] | None:
    """What operations decide of a frontier item, as JSON keeps it: [its number, whether it is done]. Leases are not theirs."""
    return [item.n, item.state == "done"] if item else None


def moved(item: Queued, **changes: Any) -> Queued:
    return replace(item, **changes)
