"""ConceptGraph: the concept DAG as one reads and edits it, over any store.

Opening one reads nothing. What lies above and below what is read at once when it is first asked for, as arrays
(`structure.py`); concepts and edges are fetched when they are looked at. All of it is as of the last `refresh`, which asks the
store's log what has changed and reads only that again; a read after an own edit refreshes by itself. Iterating, `find`,
`edges` and `stats` go to the store itself.

The store alone decides whether an edit is legal: check and write are one transaction there.

Levels: a root is at level 0, any other concept one below its deepest parent (longest path from a root). Height is the
same towards the leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import networkx as nx

from kgsynth.concept import Concept, Edge, Source, SourceSpan, name_key
from kgsynth.errors import CycleError, DuplicateError, StoreError, UndoError
from kgsynth.store import Change, CommitResult, ConceptVersion, GraphStore, Operation, Row, Split, Touched, rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from kgsynth.embed import Embedder
    from kgsynth.structure import Structure

K = TypeVar("K")
V = TypeVar("V")

CACHE = 50_000  # concepts, edges and levels kept, each; then they are fetched anew


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
    """Read views and DAG operations. A concept is given as a Concept or its id; an unknown one raises StoreError.

    The id of a folded concept means the one it was folded into.
    """

    def __init__(self, store: GraphStore, *, embedder: Embedder | None = None) -> None:
        self.store = store
        self._embedder = embedder
        self._op = store.version()  # what is kept here is at least as new as this operation
        self._stale = False  # an edit came after it
        self._structure: Structure | None = None
        self._concepts: dict[str, Concept] = {}
        self._edges: dict[tuple[str, str], Edge] = {}
        self._levels: dict[str, int] = {}

    # reading

    def refresh(self) -> None:
        """Catch up with the store: what other processes committed, only what is new."""
        touched = self.store.touched(self._op)
        self._stale = False
        if touched.op == self._op:
            return
        self._op = touched.op
        for concept_id in touched.concepts:
            self._concepts.pop(concept_id, None)
        for pair in touched.edges:
            self._edges.pop(pair, None)
        self._levels.clear()
        if self._structure is not None:
            self._structure = self._caught_up(self._structure, touched)

    def __len__(self) -> int:
        return len(self._arrays())

    def number_of_edges(self) -> int:
        return self._arrays().edges

    def __iter__(self) -> Iterator[Concept]:
        """Concepts in the order of insertion, a page at a time."""
        for page in self._pages("concept"):
            yield from self._keep(self._concepts, {row["id"]: rows.to_concept(row) for row in page}).values()

    def __contains__(self, concept: Concept | str) -> bool:
        """Whether it is there under this very id."""
        return bool(self._many([_id(concept)]))

    def __getitem__(self, concept: Concept | str) -> Concept:
        """The stored concept of that id, or the one it was folded into."""
        self._fresh()
        found = self._concepts.get(_id(concept)) or self.store.concept(_id(concept))
        if found is None:
            raise StoreError(f"there is no concept {_id(concept)!r} in the graph; add it first")
        self._keep(self._concepts, {found.id: found})
        return found

    def edges(self) -> list[Edge]:
        """All edges in the order of insertion."""
        return self.store.edges()

    def edge(self, parent: Concept | str, child: Concept | str) -> Edge | None:
        self._fresh()
        pair = (_id(parent), _id(child))
        if pair not in self._edges:
            self._keep(self._edges, {(e.parent, e.child): e for e in self.store.edges([pair])})
        return self._edges.get(pair)

    def children(self, concept: Concept | str) -> list[Concept]:
        structure, concept_id = self._at(concept)
        return self._many(structure.children(concept_id))

    def parents(self, concept: Concept | str) -> list[Concept]:
        structure, concept_id = self._at(concept)
        return self._many(structure.parents(concept_id))

    def ancestors(self, concept: Concept | str) -> list[Concept]:
        """Every coarser concept, nearest first, each once."""
        structure, concept_id = self._at(concept)
        return self._many(structure.ancestors(concept_id))

    def descendants(self, concept: Concept | str) -> list[Concept]:
        """Every finer concept, nearest first, each once."""
        structure, concept_id = self._at(concept)
        return self._many(structure.descendants(concept_id))

    def roots(self) -> list[Concept]:
        return self.store.concepts(self._arrays().roots())

    def lineage(self, concept: Concept | str) -> tuple[Concept, ...]:
        """The chain of first parents, root first: the way on which a concept was found."""
        structure, concept_id = self._at(concept)
        chain: dict[str, None] = {}
        while (parents := structure.parents(concept_id)) and parents[0] not in chain:
            concept_id = parents[0]
            chain[concept_id] = None
        return tuple(self._many(reversed(chain)))

    def context(self, concept: Concept | str) -> str:
        """Where a concept stands, in words: "root > ... > parent"; empty for a root."""
        return " > ".join(above.name for above in self.lineage(concept))

    def level(self, concept: Concept | str) -> int:
        """From the store, which keeps levels up to date. Those of a small graph are read at once."""
        concept_id = self[concept].id
        if concept_id not in self._levels:
            self._keep(self._levels, self.store.levels(None if len(self) <= CACHE else [concept_id]))
        return self._levels[concept_id]

    def height(self, concept: Concept | str) -> int:
        structure, concept_id = self._at(concept)
        return structure.height(concept_id)

    def granularity(self, concept: Concept | str) -> str:
        """ "atomic": judged so, or nothing is below it. "broad": nearer to the roots than to the leaves. Else "middle"."""
        level, height = self.level(concept), self.height(concept)
        if self[concept].atomic or height == 0:
            return "atomic"
        return "broad" if level < height else "middle"

    def find(self, name: str) -> list[Concept]:
        """Concepts that answer to a name in any spelling."""
        return self.store.find(name_key(name))

    def nearest(self, what: str | ArrayLike, k: int = 10) -> list[tuple[Concept, float]]:
        """The k concepts whose embeddings are nearest to a text's, or to a vector [dim], with the cosine; nearest first.

        A text is embedded by the model that the graph's own embeddings are from. Raises StoreError when there are none.
        """
        import numpy as np

        vector = self._embedded(what) if isinstance(what, str) else what
        found = self.store.nearest(np.asarray(vector, np.float32), k)
        concepts = {concept.id: concept for concept in self._many([i for i, _ in found])}
        return [(concepts[i], cosine) for i, cosine in found if i in concepts]

    def to_networkx(self) -> nx.DiGraph:
        """Nodes are ids with the concept's fields and its level; edges carry `spans`."""
        graph, levels = nx.DiGraph(), self.store.levels()
        for concept in self:
            graph.add_node(
                concept.id, **{f.name: getattr(concept, f.name) for f in fields(Concept)}, level=levels[concept.id]
            )
        for edge in self.edges():
            graph.add_edge(edge.parent, edge.child, spans=edge.spans)
        return graph

    def stats(self) -> GraphStats:
        """Counted anew, on the edges as they are stored."""
        import numpy as np

        from kgsynth.structure import count_cycles

        skeleton = self.store.skeleton()
        parents = np.bincount(skeleton.children, minlength=len(skeleton.ids))
        return GraphStats(
            concepts=len(skeleton.ids),
            edges=len(skeleton.children),
            roots=int((parents == 0).sum()),
            atomic=int((skeleton.atomic == 1).sum()),
            cycles=count_cycles(skeleton),
            max_level=int(skeleton.levels.max(initial=0)),
            multi_parent_share=int((parents > 1).sum()) / max(1, int((parents > 0).sum())),
            unsupported_edges=sum(not row["spans"] for page in self._pages("edge") for row in page),
            duplicate_names=_duplicate_names(self),
        )

    # editing

    def commit(self, change: Change) -> CommitResult:
        """Write a change. What is read from now on shows it."""
        result = self.store.commit(change)
        self._stale = True
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
        return self[concept]

    def link(self, parent: Concept | str, child: Concept | str, *, spans: Iterable[SourceSpan] = ()) -> Edge:
        """Add an edge, or spans to the edge that is there. Raises CycleError (nothing but the refusal is written)."""
        edge = Edge(parent=_id(parent), child=_id(child), spans=tuple(spans))
        self._raise_refused(self.commit(Change(edges=(edge,))).refused)
        return self.edge(self[parent], self[child]) or edge

    def unlink(self, parent: Concept | str, child: Concept | str) -> None:
        """Remove an edge. Raises StoreError when there is none."""
        pair = (self[parent].id, self[child].id)
        if not self.commit(Change(unlink=(pair,))).unlinked:
            raise StoreError(f"there is no edge {pair[0]} -> {pair[1]} to remove; `children` says which there are")

    def merge(self, keep: Concept | str, fold: Concept | str) -> Concept:
        """Fold one concept into another: names, edges both ways, its place in the frontier. Returns what `keep` became.

        Raises CycleError, with nothing changed, when something lies between the two.
        """
        keep_id, fold_id = self[keep].id, self[fold].id
        if keep_id == fold_id:
            raise StoreError(f"{self[keep].name!r} cannot be merged into itself; name two concepts")
        if not self.commit(Change(merges=((keep_id, fold_id),))).merged:
            raise CycleError(keep_id, fold_id, self._between(keep_id, fold_id))
        return self[keep_id]

    def split(
        self,
        concept: Concept | str,
        into: Concept,
        *,
        parents: Iterable[Concept | str] = (),
        children: Iterable[Concept | str] = (),
    ) -> Concept:
        """Take a part out of a concept: `into` is inserted, these of its parents and children move there. Returns `into`.

        Raises DuplicateError, with nothing changed, when `into` is in the graph already.
        """
        split = Split(
            concept=self[concept].id, into=into, parents=tuple(map(_id, parents)), children=tuple(map(_id, children))
        )
        if into.id not in self.commit(Change(splits=(split,))).added:
            raise DuplicateError(f"{into.name!r} is in the graph already; link and unlink move edges between concepts")
        return self[into]

    def remove(self, concept: Concept | str) -> None:
        """Remove a concept with its edges, its place in the frontier and its embedding."""
        self.commit(Change(remove=(self[concept].id,)))

    # the log

    def undo(self, op: int | None = None, note: str = "") -> CommitResult:
        """Take an operation back; by default the last one that was not taken back yet.

        Raises UndoError when there is none, or later ones altered the same things; CycleError as the store does.
        """
        result = self.store.undo(self._last_edit() if op is None else op, note)
        self._stale = True
        return result

    def operations(self, since: int = 0, limit: int | None = None) -> list[Operation]:
        """The log after operation `since`, oldest first."""
        return self.store.operations(since, limit)

    def history(self, concept: Concept | str) -> list[ConceptVersion]:
        """Every version of a concept, oldest first; also of one that was removed or folded."""
        return self.store.history(_id(concept))

    def _last_edit(self) -> int:
        undone: set[int] = set()
        for operation in self._log_backwards():
            if operation.op in undone:
                continue
            if not self._takes_back(operation):
                return operation.op
            undone.add(operation.undoes or 0)
        raise UndoError("there is nothing to undo: every operation of the log was taken back")

    def _takes_back(self, operation: Operation) -> bool:
        """Whether it undoes an edit. Undoing an undo does an edit again."""
        if operation.undoes is None:
            return False
        (undone,) = self.store.operations(operation.undoes - 1, 1)
        return not self._takes_back(undone)

    def _log_backwards(self, page: int = 100) -> Iterator[Operation]:
        last = self.store.version()
        for start in range(last, 0, -page):
            since = max(0, start - page)
            yield from reversed(self.store.operations(since, start - since))

    # what is kept

    def _fresh(self) -> None:
        if self._stale:
            self.refresh()

    def _arrays(self) -> Structure:
        from kgsynth.structure import Structure

        self._fresh()
        if self._structure is None:
            self._structure = Structure(self.store.skeleton())
        return self._structure

    def _at(self, concept: Concept | str) -> tuple[Structure, str]:
        """The structure, which has the concept in it, and the concept's id."""
        concept_id = self[concept].id
        if concept_id not in self._arrays():
            self.refresh()  # it came from elsewhere
        return self._arrays(), concept_id

    def _caught_up(self, structure: Structure, touched: Touched) -> Structure | None:
        """None: so much has changed that it is better read anew."""
        if structure.is_worn(len(touched.edges) + len(touched.concepts)):
            return None
        there = {concept.id for concept in self._many(touched.concepts)}
        for whole in (False, True):
            asked = structure.around(touched.edges, whole=whole)
            edges = [(edge.parent, edge.child) for edge in (self.store.edges(asked) if asked else ())]
            if structure.take(touched.edges, asked, edges, gone=touched.concepts - there, came=there):
                break
        return structure

    def _many(self, ids: Iterable[str]) -> list[Concept]:
        """Concepts by id, in this order; those that are no more are left out."""
        self._fresh()
        ids = list(ids)
        found = {i: self._concepts[i] for i in ids if i in self._concepts}
        if missing := [i for i in ids if i not in found]:
            found |= self._keep(self._concepts, {c.id: c for c in self.store.concepts(missing)})
        return [found[i] for i in ids if i in found]

    def _keep(self, cache: dict[K, V], new: dict[K, V]) -> dict[K, V]:
        if len(cache) + len(new) > CACHE:
            cache.clear()
        cache.update(new)
        return new

    def _pages(self, kind: str) -> Iterator[list[Row]]:
        after = -1
        while page := self.store.export(kind, after):
            yield page
            after = page[-1]["n"]

    def _embedded(self, text: str) -> Any:
        from kgsynth.embed import open_embedder

        if not (model := self.store.state()["model"]):
            raise StoreError("the graph has no embeddings to compare a text with; store some with `put_embeddings`")
        if self._embedder is None or self._embedder.name != model:
            self._embedder = open_embedder(model)
        return self._embedder.embed([text])[0]

    # refusals

    def _raise_refused(self, refused: tuple[Edge, ...]) -> None:
        for edge in refused:
            for end in (edge.parent, edge.child):
                self[end]
            raise CycleError(edge.parent, edge.child, self._arrays().path(edge.child, edge.parent))

    def _between(self, a: str, b: str) -> tuple[str, ...]:
        """A way between the two with something in between, in either direction: the cycle that folding would close."""
        structure = self._arrays()
        return structure.path(a, b, direct=False) or structure.path(b, a, direct=False)


def _id(concept: Concept | str) -> str:
    return concept if isinstance(concept, str) else concept.id


def _duplicate_names(concepts: Iterable[Concept]) -> int:
    answers: Counter[tuple[str, str]] = Counter()
    own: list[tuple[str, str]] = []
    for concept in concepts:
        answers.update((key, concept.sense) for key in concept.keys)
        own.append((name_key(concept.name), concept.sense))
    return sum(answers[name] > 1 for name in own)
