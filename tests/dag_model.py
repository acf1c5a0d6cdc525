"""What a graph store means, written down naively: a networkx graph, checked as a whole for every edge.

Shares no rule with the package but the ids of things. Slow on purpose: acyclicity by looking at everything, levels as longest paths from
scratch, merges by contraction, and an undo that puts back values noted before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from kgsynth.concept import Concept, SourceSpan, name_key
from kgsynth.store import Change, Split

Key = tuple[str, Any]  # ("concept", id), ("edge", (parent, child)), ("meant", id), ("queue", id)
MAX_SPANS = 8


class Refused(Exception):
    """The model refuses an undo. `later`: operations that are in the way; `cycle`: whether restored edges close one."""

    def __init__(self, later: Iterable[int] = (), *, cycle: bool = False) -> None:
        self.later, self.cycle = set(later), cycle
        super().__init__(f"later: {sorted(self.later)}, cycle: {cycle}")


@dataclass
class Done:
    """An operation: what it changed, from what to what."""

    op: int
    undoes: int | None
    before: dict[Key, Any]


@dataclass
class Outcome:
    """What a commit did, as CommitResult says it."""

    op: int = 0
    added: list[str] = field(default_factory=list)
    linked: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    unlinked: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


class DagModel:
    """The whole state is one mapping, so that any two states can be compared and any part of one put back."""

    def __init__(self) -> None:
        self.state: dict[Key, Any] = {}
        self.log: list[Done] = []
        self._count = 0

    # looking

    def ids(self) -> list[str]:
        return [key for _, key in sorted((value[0], key) for key, value in self._all("concept"))]

    def concepts(self) -> list[Concept]:
        return [self.state["concept", i][1] for i in self.ids()]

    def edges(self) -> list[tuple[tuple[str, str], tuple[SourceSpan, ...]]]:
        found = sorted((value[0], pair) for pair, value in self._all("edge"))
        return [(pair, self.state["edge", pair][1]) for _, pair in found]

    def queue(self) -> list[tuple[str, int, str]]:
        """(concept, depth, "waiting" or "done"), first come first."""
        found = sorted((value[0], i) for i, value in self._all("queue"))
        return [(i, *self.state["queue", i][1:]) for _, i in found]

    def meant(self, i: str) -> str:
        while ("meant", i) in self.state:
            i = self.state["meant", i]
        return i

    def redirects(self) -> dict[str, str]:
        return {i: self.meant(i) for i, _ in self._all("meant")}

    def whole(self) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from(self.ids())
        graph.add_edges_from(pair for pair, _ in self._all("edge"))
        return graph

    def levels(self) -> dict[str, int]:
        graph, level = self.whole(), {}
        for node in nx.topological_sort(graph):
            level[node] = 1 + max((level[above] for above in graph.predecessors(node)), default=-1)
        return level

    def _all(self, kind: str) -> Iterator[tuple[Any, Any]]:
        return ((key, value) for (of, key), value in list(self.state.items()) if of == kind)

    def _next(self) -> int:
        self._count += 1
        return self._count

    # changing

    def commit(self, change: Change) -> Outcome:
        before, out = dict(self.state), Outcome()
        for concept in change.concepts:
            self._add(concept, change.max_concepts, out)
        for keep, fold in change.merges:
            self._merge(self.meant(keep), self.meant(fold), out)
        for split in change.splits:
            self._split(split, out)
        for parent, child in change.unlink:
            pair = self.meant(parent), self.meant(child)
            if self.state.pop(("edge", pair), None):
                out.unlinked.append(pair)
        self._link_all(change, out)
        for i in change.remove:
            self._remove(self.meant(i), out)
        for item in change.enqueue:
            i = self.meant(item.concept)
            if ("concept", i) in self.state and ("queue", i) not in self.state:
                self.state["queue", i] = (self._next(), item.depth, "waiting")
        for i in map(self.meant, change.done):
            if ("queue", i) in self.state:
                self.state["queue", i] = (*self.state["queue", i][:2], "done")
        out.op = self._log(before, None)
        return out

    def _log(self, before: dict[Key, Any], undoes: int | None) -> int:
        changed = {key for key in before.keys() | self.state.keys() if before.get(key) != self.state.get(key)}
        if not changed:
            return 0
        self.log.append(Done(len(self.log) + 1, undoes, {key: before.get(key) for key in changed}))
        return len(self.log)

    def _add(self, concept: Concept, cap: int | None, out: Outcome) -> None:
        i = self.meant(concept.id)
        if ("concept", i) in self.state:
            n, known = self.state["concept", i]
            self.state["concept", i] = (n, _told(known, concept))
        elif cap is not None and len(self.ids()) >= cap:
            out.dropped.append(i)
        else:
            self.state["concept", i] = (self._next(), _once(concept))
            out.added.append(i)

    def _link_all(self, change: Change, out: Outcome) -> None:
        """An edge that is given more than once counts where it was first given, with all its spans."""
        wanted: dict[tuple[str, str], list[SourceSpan]] = {}
        for edge in change.edges:
            wanted.setdefault((self.meant(edge.parent), self.meant(edge.child)), []).extend(edge.spans)
        for pair, spans in wanted.items():
            if ("edge", pair) in self.state:
                n, known = self.state["edge", pair]
                self.state["edge", pair] = (n, _spans([*known, *spans]))
            elif set(pair) & set(out.dropped):
                continue
            elif self._may_link(*pair):
                self.state["edge", pair] = (self._next(), _spans(spans))
                out.linked.append(pair)
            else:
                out.refused.append(pair)

    def _may_link(self, parent: str, child: str) -> bool:
        graph = self.whole()
        if parent not in graph or child not in graph:
            return False
        graph.add_edge(parent, child)
        return nx.is_directed_acyclic_graph(graph)

    def _merge(self, keep: str, fold: str, out: Outcome) -> None:
        graph = self.whole()
        if keep == fold or keep not in graph or fold not in graph:
            return
        if not nx.is_directed_acyclic_graph(nx.contracted_nodes(graph, keep, fold, self_loops=False)):
            return
        here = [(pair, spans) for pair, spans in self.edges() if fold in pair]
        for pair, spans in sorted(here, key=lambda both: both[0][1] != fold):  # those into it first
            moved = (keep if pair[0] == fold else pair[0], keep if pair[1] == fold else pair[1])
            del self.state["edge", pair]
            if ("edge", moved) in self.state:
                n, known = self.state["edge", moved]
                self.state["edge", moved] = (n, _spans([*known, *spans]))
            elif keep not in pair:
                self.state["edge", moved] = (self._next(), spans)
        n, known = self.state["concept", keep]
        self.state["concept", keep] = (n, _told(known, self.state.pop(("concept", fold))[1]))
        if item := self.state.pop(("queue", fold), None):
            self.state.setdefault(("queue", keep), item)
        self.state["meant", fold] = keep
        out.merged.append(fold)

    def _split(self, split: Split, out: Outcome) -> None:
        old, new = self.meant(split.concept), self.meant(split.into.id)
        if ("concept", old) not in self.state or ("concept", new) in self.state:
            return
        n, known = self.state["concept", old]
        self.state["concept", new] = (self._next(), _once(split.into))
        out.added.append(new)
        taken = {name_key(name) for name in (split.into.name, *split.into.aliases)} - {name_key(known.name)}
        rest = tuple(alias for alias in known.aliases if name_key(alias) not in taken)
        self.state["concept", old] = (n, replace(known, aliases=rest))
        moves = [((self.meant(i), old), (self.meant(i), new)) for i in split.parents]
        moves += [((old, self.meant(i)), (new, self.meant(i))) for i in split.children]
        for pair, moved in moves:
            if edge := self.state.pop(("edge", pair), None):
                self.state["edge", moved] = (self._next(), edge[1])

    def _remove(self, i: str, out: Outcome) -> None:
        if not self.state.pop(("concept", i), None):
            return
        out.removed.append(i)
        for key in [key for key in self.state if _hangs_on(key, i)]:
            del self.state[key]
        for folded in [folded for folded, _ in self._all("meant") if self.meant(folded) == i]:
            del self.state["meant", folded]

    # taking back

    def undo(self, op: int) -> int:
        """Raises Refused, and KeyError for an operation that is not in the log."""
        done = next((done for done in self.log if done.op == op), None)
        if done is None:
            raise KeyError(op)
        if later := {other.op for other in self._standing(op) if _related(other.before, done.before)}:
            raise Refused(later)
        back = dict(self.state)
        for key, value in done.before.items():
            back.pop(key, None)
            if value is not None:
                back[key] = value
        lost = {key for of, key in self.state if of == "concept" and ("concept", key) not in back}
        for i in lost:
            back.pop(("queue", i), None)
        ends = {end for of, key in back if of == "edge" for end in key}
        if missing := {end for end in ends if ("concept", end) not in back}:
            raise Refused(
                other.op for other in self._standing(op) if any(_about(key) & missing for key in other.before)
            )
        if not nx.is_directed_acyclic_graph(nx.DiGraph(key for of, key in back if of == "edge")):
            raise Refused(cycle=True)
        before, self.state = self.state, back
        return self._log(before, op)

    def _standing(self, op: int) -> list[Done]:
        """The operations after `op` that left something: not those taken back since, nor what took them back."""
        return [o for o in self.log if o.op > op and self._in_force(o.op) and not (o.undoes and o.undoes > op)]

    def _in_force(self, op: int) -> bool:
        return not any(self._in_force(other.op) for other in self.log if other.undoes == op)


def _told(known: Concept, new: Concept) -> Concept:
    """What is known of a concept after hearing of it again."""
    names = [*known.aliases]
    for name in ([new.name] if name_key(new.name) != name_key(known.name) else []) + list(new.aliases):
        if name not in names:
            names.append(name)
    judged = {"atomic": new.atomic, "atomic_reason": new.atomic_reason} if new.atomic is not None else {}
    keywords = list(dict.fromkeys((*known.keywords, *new.keywords)))
    definition = known.definition or new.definition
    return replace(known, aliases=tuple(names), keywords=tuple(keywords), definition=definition, **judged)


def _once(concept: Concept) -> Concept:
    aliases, keywords = tuple(dict.fromkeys(concept.aliases)), tuple(dict.fromkeys(concept.keywords))
    return replace(concept, aliases=aliases, keywords=keywords)


def _spans(spans: Iterable[SourceSpan]) -> tuple[SourceSpan, ...]:
    kept: list[SourceSpan] = []
    for span in spans:
        if span not in kept and len(kept) < MAX_SPANS:
            kept.append(span)
    return tuple(kept)


def _hangs_on(key: Key, i: str) -> bool:
    return (key[0] == "edge" and i in key[1]) or key == ("queue", i)


def _about(key: Key) -> set[str]:
    return set(key[1]) if key[0] == "edge" else {key[1]}


def _related(later: dict[Key, Any], done: dict[Key, Any]) -> bool:
    """Whether both altered one thing. A redirect is a thing of the concept that was folded."""
    return bool({_thing(key) for key in later} & {_thing(key) for key in done})


def _thing(key: Key) -> Key:
    return ("concept", key[1]) if key[0] == "meant" else key
