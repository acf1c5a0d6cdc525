"""ConceptGraph: the concept DAG as one reads and edits it, over any store.

Reads come from a copy in memory, as of the last `refresh`; own edits refresh it, and so does reading what others wrote
when `refresh` is called. The store alone decides whether an edit is legal: check and write are one transaction there.

Levels: a root is at level 0, any other concept one below its deepest parent (longest path from a root). Height is the
same towards the leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from kgsynth.concept import Concept, Edge, Source, SourceSpan, name_key
from kgsynth.errors import CycleError, StoreError
from kgsynth.store import Change, CommitResult, GraphStore
from kgsynth.store.adjacency import Adjacency


@dataclass(frozen=True, kw_only=True)
class GraphStats:
    """What a graph measures up to. All are counts except the share."""

    concepts: int
    edges: int
    roots: int
    atomic: int  # concepts judged atomic
    cycles: int  # strongly connected groups and self-loops, by an independent check: must be 0
    max_level: int
    multi_parent_share: float  # of the concepts that are not roots, those with two parents or more
    unsupported_edges: int  # edges without a source span
    duplicate_names: int  # spellings to which two concepts of the same sense answer, one of them by its own name


class ConceptGraph:
    """Read views and DAG operations. A concept is given as a Concept or its id; an unknown one raises StoreError."""

    def __init__(self, store: GraphStore) -> None:
        self.store = store
        self._view = _View()
        self.refresh()

    # reading

    def refresh(self) -> None:
        """Catch up with the store: what other processes committed, only what is new."""
        merges, changes = self.store.version()
        if merges != self._view.merges:
            self._view = _View(merges=merges)
        if changes != self._view.changes:
            since = self._view.changes
            self._view.take(self.store.concepts(since), self.store.edges(since))
            self._view.changes = changes

    def __len__(self) -> int:
        return len(self._view.concepts)

    def __iter__(self) -> Iterator[Concept]:
        """Concepts in the order of insertion."""
        return iter(self._view.concepts.values())

    def __contains__(self, concept: Concept | str) -> bool:
        return _id(concept) in self._view.concepts

    def __getitem__(self, concept: Concept | str) -> Concept:
        """The stored concept of that id, or the one it was folded into. Looks into the store for one it has not seen yet."""
        found = self._view.concepts.get(_id(concept))
        if found is None and (stored := self.store.concept(_id(concept))):
            self.refresh()
            found = self._view.concepts.get(stored.id)
        if found is None:
            raise StoreError(f"no concept {_id(concept)} in the graph; add it first")
        return found

    def edges(self) -> list[Edge]:
        return list(self._view.edges.values())

    def edge(self, parent: Concept | str, child: Concept | str) -> Edge | None:
        return self._view.edges.get((_id(parent), _id(child)))

    def children(self, concept: Concept | str) -> list[Concept]:
        return self._near(concept, self._view.adjacency.children)

    def parents(self, concept: Concept | str) -> list[Concept]:
        return self._near(concept, self._view.adjacency.parents)

    def ancestors(self, concept: Concept | str) -> list[Concept]:
        """Every coarser concept, nearest first, each once."""
        return self._far(concept, self._view.adjacency.parents)

    def descendants(self, concept: Concept | str) -> list[Concept]:
        """Every finer concept, nearest first, each once."""
        return self._far(concept, self._view.adjacency.children)

    def roots(self) -> list[Concept]:
        return [concept for concept in self if not self._view.adjacency.parents.get(concept.id)]

    def level(self, concept: Concept | str) -> int:
        return self._view.levels[self[concept].id]

    def height(self, concept: Concept | str) -> int:
        return self._view.heights[self[concept].id]

    def granularity(self, concept: Concept | str) -> str:
        """ "atomic": judged so, or nothing is below it. "broad": nearer to the roots than to the leaves. Else "middle"."""
        level, height = self.level(concept), self.height(concept)
        if self[concept].atomic or height == 0:
            return "atomic"
        return "broad" if level < height else "middle"

    def find(self, name: str) -> list[Concept]:
        """Concepts that answer to a name in any spelling, from the store itself."""
        return self.store.find(name_key(name))

    def to_networkx(self) -> nx.DiGraph:
        """Nodes are ids with the concept's fields and its level; edges carry `spans`."""
        graph = nx.DiGraph()
        for concept in self:
            graph.add_node(concept.id, **vars(concept), level=self.level(concept))
        for edge in self.edges():
            graph.add_edge(edge.parent, edge.child, spans=edge.spans)
        return graph

    def stats(self) -> GraphStats:
        view = self._view
        parents = [len(view.adjacency.parents.get(i, ())) for i in view.concepts]
        return GraphStats(
            concepts=len(view.concepts),
            edges=len(view.edges),
            roots=parents.count(0),
            atomic=sum(concept.atomic is True for concept in self),
            cycles=_cycles(view.edges),
            max_level=max(view.levels.values(), default=0),
            multi_parent_share=sum(n > 1 for n in parents) / max(1, sum(n > 0 for n in parents)),
            unsupported_edges=sum(not edge.spans for edge in view.edges.values()),
            duplicate_names=_duplicate_names(self),
        )

    # editing

    def commit(self, change: Change) -> CommitResult:
        """Write a change, then refresh."""
        result = self.store.commit(change)
        self.refresh()
        return result

    def add(
        self,
        concept: Concept,
        parents: Iterable[Concept | str] = (),
        *,
        spans: Iterable[SourceSpan] = (),
        sources: Iterable[Source] = (),
    ) -> Concept:
        """Insert a concept (or what is new about it) below its parents. All or nothing, except that:

        Raises CycleError when it exists already and stands above a parent, StoreError when a parent is unknown; the
        other edges are written then.
        """
        edges = tuple(Edge(parent=self[p].id, child=concept.id, spans=tuple(spans)) for p in parents)
        result = self.commit(Change(sources=tuple(sources), concepts=(concept,), edges=edges))
        self._raise_refused(result.refused)
        stored = self.store.concept(concept.id)
        assert stored is not None, "a committed concept can be read"
        return stored

    def link(self, parent: Concept | str, child: Concept | str, *, spans: Iterable[SourceSpan] = ()) -> Edge:
        """Add an edge, or spans to the edge that is there. Raises CycleError (nothing but the refusal is written)."""
        edge = Edge(parent=_id(parent), child=_id(child), spans=tuple(spans))
        self._raise_refused(self.commit(Change(edges=(edge,))).refused)
        return self._view.edges.get((edge.parent, edge.child), edge)

    def merge(self, keep: Concept | str, fold: Concept | str) -> Concept:
        """Fold one concept into another: names, edges both ways, its place in the frontier. Returns what `keep` became.

        Raises CycleError, with nothing changed, when something lies between the two. The folded concept's own edges
        are kept in a "merge" Decision.
        """
        keep_id, fold_id = self[keep].id, self[fold].id
        if keep_id == fold_id:
            raise StoreError(f"{self[keep].name!r} cannot be merged into itself; name two concepts")
        if not self.commit(Change(merges=((keep_id, fold_id),))).merged:
            raise CycleError(keep_id, fold_id, self._view.adjacency.merge_path(keep_id, fold_id))
        return self[keep_id]

    def _raise_refused(self, refused: tuple[Edge, ...]) -> None:
        for edge in refused:
            for end in (edge.parent, edge.child):
                self[end]
            raise CycleError(edge.parent, edge.child, self._view.adjacency.path(edge.child, edge.parent))

    def _near(self, concept: Concept | str, neighbours: dict[str, dict[str, None]]) -> list[Concept]:
        return [self._view.concepts[i] for i in neighbours.get(self[concept].id, ())]

    def _far(self, concept: Concept | str, neighbours: dict[str, dict[str, None]]) -> list[Concept]:
        return [self._view.concepts[i] for i in self._view.adjacency.reachable(self[concept].id, neighbours)]


class _View:
    """The copy in memory. Levels and heights are worked out when they are asked for, once per change."""

    def __init__(self, *, merges: int = 0) -> None:
        self.merges, self.changes = merges, 0
        self.concepts: dict[str, Concept] = {}
        self.edges: dict[tuple[str, str], Edge] = {}
        self.adjacency = Adjacency()

    def take(self, concepts: Iterable[Concept], edges: Iterable[Edge]) -> None:
        self.concepts |= {concept.id: concept for concept in concepts}
        for edge in edges:
            if edge.parent in self.concepts and edge.child in self.concepts:  # else: committed since, comes next time
                self.edges[edge.parent, edge.child] = edge
                self.adjacency.add(edge.parent, edge.child)
        for name in ("order", "levels", "heights"):
            self.__dict__.pop(name, None)

    @cached_property
    def order(self) -> list[str]:
        """Ids, each after all of its parents (Kahn 1962)."""
        left = {i: len(self.adjacency.parents.get(i, ())) for i in self.concepts}
        order = [i for i, n in left.items() if n == 0]
        for i in order:
            for child in self.adjacency.children.get(i, ()):
                left[child] -= 1
                if left[child] == 0:
                    order.append(child)
        return order

    @cached_property
    def levels(self) -> dict[str, int]:
        return _longest(self.order, self.adjacency.parents)

    @cached_property
    def heights(self) -> dict[str, int]:
        return _longest(reversed(self.order), self.adjacency.children)


def _longest(order: Iterable[str], before: dict[str, dict[str, None]]) -> dict[str, int]:
    length: dict[str, int] = {}
    for i in order:
        length[i] = max((length[j] + 1 for j in before.get(i, ())), default=0)
    return length


def _id(concept: Concept | str) -> str:
    return concept if isinstance(concept, str) else concept.id


def _cycles(edges: Iterable[tuple[str, str]]) -> int:
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_edges_from(edges)
    groups = sum(len(group) > 1 for group in nx.strongly_connected_components(graph))
    return groups + nx.number_of_selfloops(graph)


def _duplicate_names(concepts: Iterable[Concept]) -> int:
    concepts = list(concepts)
    answers = Counter((key, concept.sense) for concept in concepts for key in concept.keys)
    return sum(answers[name_key(concept.name), concept.sense] > 1 for concept in concepts)
