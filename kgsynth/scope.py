"""Which concepts a task is about together: a chain of ancestors, children of one parent, or two branches of the graph.

A branch is what lies below a child of the roots: two concepts are of different branches when nothing but roots is above both
and neither is above the other. Everything chosen here depends on the graph, the seed and the sample's index only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from kgsynth.concept import Concept, content_id
from kgsynth.graph import ConceptGraph

Ids = frozenset[str]


class Kinship:
    """Granularity, parents, children and branches of every concept of a graph, by id."""

    def __init__(self, graph: ConceptGraph) -> None:
        self.concepts: list[Concept] = list(graph)
        self.granularity = {c.id: graph.granularity(c) for c in self.concepts}
        self.parents = {c.id: [p.id for p in graph.parents(c)] for c in self.concepts}
        self.children: dict[str, list[str]] = {c.id: [x.id for x in graph.children(c)] for c in self.concepts}

    def has_path(self, concept: str) -> bool:
        return bool(self.parents[concept])

    def has_siblings(self, concept: str) -> bool:
        return any(len(self.children[parent]) > 1 for parent in self.parents[concept])

    def have_pairs(self, able: Sequence[str]) -> set[str]:
        """Those of `able` for which another of `able` is of another branch."""
        kinds: dict[tuple[Ids, Ids], list[str]] = {}
        for concept in able:
            kinds.setdefault((self.roots[concept], self.branches[concept]), []).append(concept)
        return {c for mine, some in kinds.items() if any(_apart(mine, other) for other in kinds) for c in some}

    def are_apart(self, a: str, b: str) -> bool:
        """Whether two concepts are of different branches."""
        return a != b and _apart((self.roots[a], self.branches[a]), (self.roots[b], self.branches[b]))

    @cached_property
    def branches(self) -> dict[str, Ids]:
        """The children of roots that a concept is, or is below; none for a root. Each has roots above it only."""
        found: dict[str, Ids] = {}
        for concept in self._downwards:
            above = [found[p] for p in self.parents[concept] if self.parents[p]]
            found[concept] = frozenset().union(*above) if above else frozenset([concept][: len(self.parents[concept])])
        return found

    @cached_property
    def roots(self) -> dict[str, Ids]:
        """The roots that a concept is, or is below."""
        found: dict[str, Ids] = {}
        for concept in self._downwards:
            found[concept] = frozenset([concept] if not self.parents[concept] else []).union(
                *(found[p] for p in self.parents[concept])
            )
        return found

    @property
    def _downwards(self) -> list[str]:
        """Every concept after all of its parents."""
        waiting = {concept: len(above) for concept, above in self.parents.items()}
        order = [concept for concept, n in waiting.items() if not n]
        for concept in order:
            for child in self.children[concept]:
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        return order

    # what goes with a concept

    def neighbours(self, concept: str, key: Callable[[str], str], most: int) -> list[str]:
        """Siblings, parents and children."""
        parents = self.parents[concept]
        siblings = [child for parent in parents for child in self.children[parent] if child != concept]
        return sorted(dict.fromkeys((*siblings, *parents, *self.children[concept])), key=key)[:most]

    def path(self, concept: str, key: Callable[[str], str], hops: int) -> list[str]:
        """A chain of parents upwards, nearest first."""
        chain: list[str] = []
        while len(chain) < hops and (above := self.parents[chain[-1] if chain else concept]):
            chain.append(min(above, key=key))
        return chain

    def siblings(self, concept: str, key: Callable[[str], str], most: int, able: Callable[[str], bool]) -> list[str]:
        """Other children of one parent, those that are `able` first."""
        families = [p for p in self.parents[concept] if len(self.children[p]) > 1]
        parent = min(families, key=lambda p: (not any(able(c) for c in self.children[p] if c != concept), key(p)))
        others = [child for child in self.children[parent] if child != concept]
        return sorted(others, key=lambda c: (not able(c), key(c)))[:most]

    def pair(self, concept: str, start: str, able: Sequence[str]) -> list[str]:
        """The first of `able` after a random place (a content_id) that is of another branch. able: ids, in order."""
        first = int(start[-16:], 16) % max(1, len(able))
        around = (able[(first + i) % len(able)] for i in range(len(able)))
        return next(([other] for other in around if self.are_apart(concept, other)), [])


def _apart(mine: tuple[Ids, Ids], other: tuple[Ids, Ids]) -> bool:
    """By their roots and branches. A root is its own only root, and above all that has it among theirs."""
    if mine[1] and other[1]:
        return not mine[1] & other[1]
    return not mine[0] & other[0]


def chooser(purpose: str, seed: int, index: int) -> Callable[[str], str]:
    """A random order of ids that depends on (seed, index) only."""
    return lambda concept: content_id(purpose, str(seed), str(index), concept)
