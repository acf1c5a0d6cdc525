"""The taxonomy: concepts with a label, synonyms, a definition and their parents. Always a DAG, whatever the file says."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class TrueConcept:
    """One row of a taxonomy."""

    id: str
    label: str
    synonyms: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()  # ids
    definition: str = ""

    @property
    def spellings(self) -> tuple[str, ...]:
        return (self.label, *self.synonyms)


class Taxonomy:
    """Concepts by id, in the order of the file, with edges from parent to child.

    Parents that are no concept, self-loops, and edges that close a cycle are left out; `notes` says how many.
    """

    def __init__(self, concepts: Iterable[TrueConcept], notes: Iterable[str] = ()) -> None:
        found = {concept.id: concept for concept in concepts}
        self.notes = list(notes)
        unknown = sum(p not in found for c in found.values() for p in c.parents)
        loops = sum(p == c.id for c in found.values() for p in c.parents)
        known = {c.id: tuple(dict.fromkeys(p for p in c.parents if p in found and p != c.id)) for c in found.values()}
        closing = _closing(known)
        for count, what in ((unknown, "parents are not in the file"), (loops, "concepts are their own parent"),
                            (len(closing), "edges would close a cycle")):  # fmt: skip
            if count:
                self.notes.append(f"{count} {what}: left out")
        parents = {i: tuple(p for p in above if (p, i) not in closing) for i, above in known.items()}
        self.concepts = {c.id: replace(c, parents=parents[c.id]) for c in found.values()}

    def __len__(self) -> int:
        return len(self.concepts)

    def __getitem__(self, concept: str) -> TrueConcept:
        return self.concepts[concept]

    def __iter__(self) -> Iterator[TrueConcept]:
        return iter(self.concepts.values())

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """Parent -> children, in the order of the file; a leaf is not in it."""
        below: dict[str, list[str]] = defaultdict(list)
        for concept in self:
            for parent in concept.parents:
                below[parent].append(concept.id)
        return dict(below)

    @property
    def roots(self) -> list[TrueConcept]:
        return [concept for concept in self if not concept.parents]

    @property
    def edges(self) -> list[tuple[str, str]]:
        """(parent, child)."""
        return [(parent, concept.id) for concept in self for parent in concept.parents]

    def is_leaf(self, concept: str) -> bool:
        return concept not in self.children

    @cached_property
    def depths(self) -> dict[str, int]:
        """Edges from the nearest root, in the order of breadth-first search."""
        depths = {root.id: 0 for root in self.roots}
        queue = deque(depths)
        while queue:
            here = queue.popleft()
            for child in self.children.get(here, ()):
                if child not in depths:
                    depths[child] = depths[here] + 1
                    queue.append(child)
        return depths

    @cached_property
    def from_the_leaves(self) -> list[str]:
        """Ids, every child before its parents."""
        left = {concept.id: len(self.children.get(concept.id, ())) for concept in self}
        order = [i for i, count in left.items() if not count]
        for here in order:
            for parent in self[here].parents:
                left[parent] -= 1
                if not left[parent]:
                    order.append(parent)
        return order

    @cached_property
    def domains(self) -> dict[str, str]:
        """Concept -> label of the first root above it: the domain in which it is grown."""
        domains: dict[str, str] = {}
        for here in reversed(self.from_the_leaves):
            above = self[here].parents
            domains[here] = domains[above[0]] if above else self[here].label
        return domains

    def ancestors(self, concept: str) -> list[str]:
        """Every coarser concept, nearest first, each once."""
        found = dict.fromkeys(self[concept].parents)
        queue = deque(found)
        while queue:
            for parent in self[queue.popleft()].parents:
                if parent not in found:
                    found[parent] = None
                    queue.append(parent)
        return list(found)

    def first(self, count: int) -> Taxonomy:
        """The first so many concepts by breadth, each with those of its parents that are among them."""
        kept = set(list(self.depths)[:count])
        parts = [replace(c, parents=tuple(p for p in c.parents if p in kept)) for c in self if c.id in kept]
        return Taxonomy(parts, self.notes)


def _closing(parents: dict[str, tuple[str, ...]]) -> set[tuple[str, str]]:
    """Edges (parent, child) whose removal leaves no cycle: those on which a depth-first walk down from the roots meets its own way."""
    below: dict[str, list[str]] = defaultdict(list)
    for child, above in parents.items():
        for parent in above:
            below[parent].append(child)
    done: set[str] = set()
    back: set[tuple[str, str]] = set()
    for start in sorted(parents, key=lambda c: bool(parents[c])):  # roots first, else in the order of the file
        way: dict[str, Iterator[str]] = {} if start in done else {start: iter(below[start])}
        while way:
            here, children = next(reversed(way.items()))
            child = next(children, None)
            if child is None:
                done.add(here)
                del way[here]
            elif child in way:
                back.add((here, child))
            elif child not in done:
                way[child] = iter(below[child])
    return back
