"""A grown graph against the truth.

Which true concept a grown one means is found by `Names`: its name with its sense, its name, else its aliases, as label, as a name the noise has used, or
as synonym; where that leaves several, by definition, by the names of its parents, and by domain. It never depends on what
dedup decided. Then, with grown concepts G, true ones T and the mapping m:

    nodes          right: true concepts that are meant at all. precision right/|G|, recall right/|T|
    duplicates     grown concepts that mean a true one which an earlier grown concept means already, per |G|
    edges          right: distinct true edges (m(a), m(b)). precision right/|edges of G|, recall right/|edges of T|
    reachability   the same over (ancestor, descendant) pairs, each counted once
    atomicity      leaves of the truth among the concepts held to be atomic, and the reverse, both over concepts in both graphs
    cycles         strongly connected groups and self-loops, by networkx, on the edges as they are stored
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import networkx as nx

from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.truth import Taxonomy
from kgsynth.concept import Concept

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What is right, of what was grown and of what is true."""

    right: int
    grown: int
    true: int

    @property
    def precision(self) -> float:
        return self.right / self.grown if self.grown else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.true if self.true else 1.0

    @property
    def f1(self) -> float:
        both = self.grown + self.true
        return 2 * self.right / both if both else 1.0

    def row(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 4) for name in ("precision", "recall", "f1")}


@dataclass(frozen=True, kw_only=True)
class Score:
    """All of it, with the mapping it rests on."""

    nodes: Rates
    edges: Rates
    reachability: Rates
    atomicity: Rates
    cycles: int
    meaning: dict[str, str] = field(repr=False)  # grown concept -> true one; one that means nothing true is not in it
    duplicates: dict[str, str] = field(repr=False)  # grown concept -> the earlier one of the same meaning

    @property
    def duplicate_rate(self) -> float:
        return len(self.duplicates) / self.nodes.grown if self.nodes.grown else 0.0


def score(concepts: Sequence[Concept], edges: Sequence[Pair], taxonomy: Taxonomy, names: Names) -> Score:
    """`concepts` in the order in which they were grown, `edges` as (parent, child) of their ids."""
    meaning = meanings(concepts, edges, names)
    first: dict[str, str] = {}
    for concept in concepts:
        if concept.id in meaning:
            first.setdefault(meaning[concept.id], concept.id)
    doubles = {g: first[t] for g, t in meaning.items() if first[t] != g}
    pairs = {(meaning[a], meaning[b]) for a, b in edges if a in meaning and b in meaning}
    return Score(
        nodes=Rates(right=len(first), grown=len(concepts), true=len(taxonomy)),
        edges=Rates(right=len(pairs & set(taxonomy.edges)), grown=len(edges), true=len(taxonomy.edges)),
        reachability=_reachability(concepts, edges, taxonomy, meaning),
        atomicity=_atomicity(concepts, taxonomy, meaning),
        cycles=count_cycles(edges),
        meaning=meaning,
        duplicates=doubles,
    )


def meanings(concepts: Iterable[Concept], edges: Iterable[Pair], names: Names) -> dict[str, str]:
    """Grown concept -> true concept."""
    grown = {c.id: c for c in concepts}
    above: dict[str, list[str]] = {}
    for parent, child in edges:
        if parent in grown:
            above.setdefault(child, []).append(grown[parent].name)
    found: dict[str, str] = {}
    for concept in grown.values():
        spellings = f"{concept.name} ({concept.sense})", concept.name, *concept.aliases
        spelling = next((s for s in spellings if names.owners(s)), concept.name)
        meant = names.meant(spelling, concept.definition, above.get(concept.id, ()), concept.domain)
        if meant is not None:
            found[concept.id] = meant
    return found


def count_cycles(edges: Iterable[Pair]) -> int:
    """Strongly connected groups of several concepts, and self-loops."""
    graph: nx.DiGraph = nx.DiGraph(list(edges))
    return sum(len(g) > 1 for g in nx.strongly_connected_components(graph)) + nx.number_of_selfloops(graph)


def _atomicity(concepts: Iterable[Concept], taxonomy: Taxonomy, meaning: dict[str, str]) -> Rates:
    both = [(bool(c.atomic), taxonomy.is_leaf(meaning[c.id])) for c in concepts if c.id in meaning]
    return Rates(right=sum(a and t for a, t in both), grown=sum(a for a, _ in both), true=sum(t for _, t in both))


def _reachability(
    concepts: Sequence[Concept], edges: Sequence[Pair], taxonomy: Taxonomy, meaning: dict[str, str]
) -> Rates:
    """Sets of descendants are integers, one bit per true concept: leaves have the lowest, so that most sets are short."""
    bits = {concept: 1 << place for place, concept in enumerate(taxonomy.from_the_leaves)}
    true = _descendants(taxonomy.concepts, taxonomy.edges, bits)
    unknown = (c.id for c in concepts if c.id not in meaning)
    own = {g: 1 << place for place, g in enumerate(unknown, len(bits))}
    grown = _descendants([c.id for c in concepts], edges, own | {g: bits[t] for g, t in meaning.items()})
    merged: dict[str, int] = {}
    for concept, below in grown.items():
        meant = meaning.get(concept, concept)
        merged[meant] = merged.get(meant, 0) | below
    right = sum((below & true.get(concept, 0)).bit_count() for concept, below in merged.items())
    count = {name: sum(map(int.bit_count, sets.values())) for name, sets in (("grown", merged), ("true", true))}
    return Rates(right=right, **count)


def _descendants(nodes: Iterable[str], edges: Iterable[Pair], bits: dict[str, int]) -> dict[str, int]:
    """Node -> the bits of all that is below it. Components come from the leaves upwards (Nuutila 1994, in networkx)."""
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b) for a, b in edges if a in bits and b in bits)
    below: dict[str, int] = {}
    for group in nx.strongly_connected_components(graph):
        reached = 0
        for node in group:
            for child in graph.successors(node):
                reached |= bits[child] | below.get(child, 0)
        below |= dict.fromkeys(group, reached)
    return below
