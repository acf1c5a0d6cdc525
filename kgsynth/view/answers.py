"""What the page asks of a store, as JSON-ready rows. Nothing is written.

The whole graph goes over once, as columns without texts; texts follow for the concept that is looked at.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kgsynth.concept import Concept, Edge, name_key
from kgsynth.errors import ViewError
from kgsynth.store import GraphStore, Operation, Skeleton
from kgsynth.view.layout import radial

Row = dict[str, Any]

SUGGESTIONS = 12
TASKS, OPERATIONS, QUERY = 100, 12, 200  # tasks and operations shown, characters of a query that count


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """The graph as of one operation."""

    graph: Skeleton

    @cached_property
    def spellings(self) -> list[str]:
        return [name.casefold() for name in self.graph.names]

    @cached_property
    def rows(self) -> dict[str, int]:
        return {concept_id: row for row, concept_id in enumerate(self.graph.ids)}

    @cached_property
    def payload(self) -> Row:
        """Columns of all concepts and links. Places are in tenths of the layout's unit."""
        graph, layout = self.graph, radial(self.graph)
        number = {domain: i for i, domain in enumerate(layout.domains)}
        return {
            "op": graph.op,
            "domains": [
                {"name": domain, "x": round(x, 1), "y": round(y, 1), "radius": round(radius, 1)}
                for domain, (x, y, radius) in layout.domains.items()
            ],
            "id": graph.ids,
            "name": graph.names,
            "domain": [number[domain] for domain in graph.domains],
            "level": graph.levels.tolist(),
            "atomic": graph.atomic.tolist(),
            "x": np.rint(layout.x * 10).astype(int).tolist(),
            "y": np.rint(layout.y * 10).astype(int).tolist(),
            "size": np.round(layout.size, 2).tolist(),
            "tree": layout.tree.tolist(),
            "parents": graph.parents.tolist(),
            "children": graph.children.tolist(),
        }


class Answers:
    """Answers from one store; any number of threads may ask. Every method may raise StoreError."""

    def __init__(self, store: GraphStore, name: str) -> None:
        """`name` is what the page calls the graph. Raises ViewError when it holds no concept."""
        self.store, self.name = store, name
        self._lock = threading.Lock()
        self._seen = _Seen(graph=store.skeleton())
        if not self._seen.graph.ids:
            raise ViewError(f"the graph {name} has no concepts yet; grow it first: kgsynth grow RECIPE")

    @property
    def size(self) -> int:
        """Concepts in the graph, as last read."""
        return len(self._seen.graph.ids)

    def version(self) -> Row:
        return {"op": self.store.version()}

    def graph(self) -> Row:
        return {"title": self.name, **self._now().payload}

    def search(self, query: str) -> list[Row]:
        """Concepts whose name has the query in it, best first, then those that have it as an alias, spelt in full."""
        words = " ".join(query[:QUERY].casefold().split())
        if not words:
            return []
        seen = self._now()
        known = [seen.rows[c.id] for c in self.store.find(name_key(query[:QUERY])) if c.id in seen.rows]
        within = [row for row, spelling in enumerate(seen.spellings) if words in spelling]
        levels = seen.graph.levels
        best = sorted({*within, *known}, key=lambda row: (*_fit(seen.spellings[row], words), levels[row], row))
        return [self._named(seen, row) for row in best[:SUGGESTIONS]]

    def concept(self, concept_id: str) -> Row | None:
        """All that is known of a concept; None when there is none of that id. A folded id means what it was folded into."""
        concept = self.store.concept(concept_id)
        if concept is None:
            return None
        edges = self.store.edges_of(concept.id)
        coming = [edge for edge in edges if edge.child == concept.id]
        tasks = self.store.tasks(concept.id)
        return {
            **_described(concept),
            "level": self.store.levels([concept.id]).get(concept.id, 0),
            "parents": [edge.parent for edge in coming],
            "children": [edge.child for edge in edges if edge.parent == concept.id],
            "sources": self._sources(coming),
            "tasks": [asdict(task) for task in tasks[:TASKS]],
            "tasks_in_all": len(tasks),
        }

    def operations(self) -> list[Row]:
        """The last entries of the log, newest first, with counts in place of the ids they touched."""
        last = self.store.operations(since=max(0, self.store.version() - OPERATIONS))
        return [_counted(operation) for operation in reversed(last)]

    def _now(self) -> _Seen:
        """The graph as it stands, read again only when it has changed."""
        with self._lock:
            if self.store.version() != self._seen.graph.op:
                self._seen = _Seen(graph=self.store.skeleton())
            return self._seen

    def _sources(self, edges: Iterable[Edge]) -> list[Row]:
        """Pages that justify a concept's place, each with what is quoted of it and for which parent."""
        quotes: dict[str, list[Row]] = {}
        urls: dict[str, str] = {}
        for edge in edges:
            for span in edge.spans:
                urls[span.source] = span.url
                quote = {"text": span.text, "start": span.start, "end": span.end, "parent": edge.parent}
                quotes.setdefault(span.source, []).append(quote)
        pages = {source.id: source for source in self.store.sources(quotes)}
        return [
            {
                "url": urls[source],
                "title": page.title if (page := pages.get(source)) else "",
                "licence": page.licence if page else "unknown",
                "retrieved_at": page.retrieved_at if page else "",
                "quotes": quoted,
            }
            for source, quoted in quotes.items()
        ]

    @staticmethod
    def _named(seen: _Seen, row: int) -> Row:
        graph = seen.graph
        return {"id": graph.ids[row], "name": graph.names[row], "domain": graph.domains[row], "level": int(graph.levels[row])}  # fmt: skip


def _described(concept: Concept) -> Row:
    return {"id": concept.id, **asdict(concept)}


def _counted(operation: Operation) -> Row:
    return {**asdict(operation), "concepts": len(operation.concepts), "edges": len(operation.edges)}


def _fit(spelling: str, words: str) -> tuple[int, int]:
    """How well a name answers a query, smaller is better: it is that, starts with it, has a word that starts so, has it, not."""
    at = f" {spelling}".find(f" {words}")
    kind = 0 if spelling == words else 1 if at == 0 else 2 if at > 0 else 3 if words in spelling else 4
    return (0 if kind == 4 else kind, len(spelling))
