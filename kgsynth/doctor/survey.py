"""A graph's rows, read once, as what the checks need of them: columns of numbers in place of texts.

About 1 kB per concept with its edges; texts are looked at in passing.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from kgsynth.doctor.patch import Ref, stream
from kgsynth.store import GraphStore, Row
from kgsynth.store.rows import to_concept

Progress = Callable[[str, int, int], None]


@dataclass
class Column:
    """Rows of one kind that have an id, the first of each; `again` are later rows of an id that was there already."""

    number: dict[str, int] = field(default_factory=dict)  # id -> n
    again: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: str, n: int) -> bool:
        """Whether it is the first of its id."""
        if key in self.number:
            self.again[key].append(n)
            return False
        self.number[key] = n
        return True


class Survey:
    """All of a graph that the checks look at. A concept's place is its position in `ids`."""

    def __init__(self, store: GraphStore, on_progress: Progress) -> None:
        self.store, self.state, self._show = store, store.state(), on_progress
        self.ids: list[str] = []
        self.names: list[str] = []
        self.place: dict[str, int] = {}
        self.level = array("q")
        self.misnamed: list[tuple[int, str]] = []  # (place, the id that follows from its name)
        self.spellings: dict[int, int] = {}  # hash of (key, id) -> place
        self.columns = {kind: Column() for kind in ("concept", "source", "decision", "task", "frontier", "merged")}
        self.last = {"n": 0, "op": 0, "tokens": 0}  # the highest numbers in use
        self.count = 0  # rows of concepts
        self._read = 0
        self._merged()
        self._concepts()
        self._edges()
        self._sources()
        self._vectors()
        self._others()
        self._log()

    def rows(self, kind: str) -> Iterator[Row]:
        total = self.state["n"] + self.state["op"] + (self.state["concepts"] if self.state["model"] else 0)
        counter = "op" if kind == "operation" else "n"
        for row in stream(self.store, kind):
            self._read += 1
            if self._read % 1000 == 0:
                self._show(kind, self._read, total)
            if kind != "embedding":  # whose number is a concept's
                self.last[counter] = max(self.last[counter], row["n"])
            yield row

    def number(self, kind: str, key: str) -> int:
        return self.columns[kind].number[key]

    def name(self, concept_id: str) -> str:
        """How a sentence calls a concept."""
        place = self.place.get(concept_id)
        return repr(self.names[place]) if place is not None else concept_id

    def ref(self, concept_id: str) -> Ref:
        return "concept", self.number("concept", concept_id)

    # reading

    def _merged(self) -> None:
        self.keep: dict[str, str] = {}  # folded id -> the id it means
        for row in self.rows("merged"):
            if self.columns["merged"].add(row["fold"], row["n"]):
                self.keep[row["fold"]] = row["keep"]

    def _concepts(self) -> None:
        for row in self.rows("concept"):
            self.count += 1
            self.last["op"] = max(self.last["op"], row["version"])
            if self.columns["concept"].add(row["id"], row["n"]):
                self.place[row["id"]] = len(self.ids)
                self.ids.append(row["id"])
                self.names.append(row["name"])
                self.level.append(row["level"])
            self._look_at_names(row)

    def _look_at_names(self, row: Row) -> None:
        concept, place = to_concept(row), self.place[row["id"]]
        if concept.id not in (row["id"], *(fold for fold in (concept.id,) if self.keep.get(fold) == row["id"])):
            self.misnamed.append((place, concept.id))
        for key in concept.keys:
            self.spellings[hash((key, row["id"]))] = place

    def _edges(self) -> None:
        """Edges between known places; those without are in `dangling`."""
        self.edge_n, self.parent, self.child, self.spans = array("q"), array("q"), array("q"), array("q")
        self.dangling: list[tuple[int, str, str]] = []
        self.parallel: dict[int, list[int]] = defaultdict(list)  # number of the first -> those of the others
        self.quotes: dict[str, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        first: dict[tuple[int, int], int] = {}
        for row in self.rows("edge"):
            self.last["op"] = max(self.last["op"], row["version"])
            ends = self.place.get(row["parent"], -1), self.place.get(row["child"], -1)
            if -1 in ends:
                self.dangling.append((row["n"], row["parent"], row["child"]))
            elif ends in first:
                self.parallel[first[ends]].append(row["n"])
            else:
                first[ends] = row["n"]
                self._keep_edge(row, *ends)

    def _keep_edge(self, row: Row, parent: int, child: int) -> None:
        for column, value in (
            (self.edge_n, row["n"]), (self.parent, parent), (self.child, child), (self.spans, len(row["spans"]))
        ):  # fmt: skip
            column.append(value)
        for at, span in enumerate(row["spans"]):
            quote = (row["n"], at, span["start"], span["end"], hash(span["text"]))
            self.quotes[span["source"]].append(quote)

    def _sources(self) -> None:
        """Quotes are compared with the texts in passing."""
        self.misquoted: dict[int, list[int]] = defaultdict(list)  # number of the edge -> places of the spans
        known = self.columns["source"]
        for row in self.rows("source"):
            if known.add(row["id"], row["n"]):
                for n, at, start, end, text in self.quotes.get(row["id"], ()):
                    if not 0 <= start < end or hash(row["text"][start:end]) != text:
                        self.misquoted[n].append(at)
        self.unsourced: dict[int, list[int]] = defaultdict(list)
        for source, quotes in self.quotes.items():
            if source not in known.number:
                for n, at, *_ in quotes:
                    self.unsourced[n].append(at)
        del self.quotes

    def _vectors(self) -> None:
        self.widths: dict[int, list[int]] = defaultdict(list)  # bytes -> numbers
        self.not_finite: list[int] = []
        self.stray_vectors: list[tuple[int, str]] = []
        for row in self.rows("embedding"):
            n, vector, concepts = row["n"], row["vector"], self.columns["concept"]
            if concepts.number.get(row["concept"]) != n and n not in concepts.again.get(row["concept"], ()):
                self.stray_vectors.append((n, row["concept"]))
            elif len(vector) % 4 == 0 and not np.isfinite(np.frombuffer(vector, "<f4")).all():
                self.not_finite.append(n)
            else:
                self.widths[len(vector)].append(n)

    def _others(self) -> None:
        self.tested: dict[int, tuple[str, ...]] = {}  # number of a task -> ids of concepts
        self.judged: list[tuple[int, str, str]] = []  # (n, id, outcome) of decisions on concepts
        for row in self.rows("frontier"):
            self.columns["frontier"].add(row["concept"], row["n"])
            self.last["tokens"] = max(self.last["tokens"], row["token"])
        for row in self.rows("task"):
            if self.columns["task"].add(row["id"], row["n"]):
                self.tested[row["n"]] = tuple(row["concepts"])
        for row in self.rows("decision"):
            if self.columns["decision"].add(row["id"], row["n"]) and row["subject"].startswith("c_"):
                self.judged.append((row["n"], row["subject"], row["outcome"]))

    def _log(self) -> None:
        self.operations = array("q")
        self.ever: set[str] = set()  # ids of concepts that the log speaks of
        for row in self.rows("operation"):
            self.operations.append(row["n"])
            self.ever.update(row["concepts"])
