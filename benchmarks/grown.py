"""The graph that `graph_scale.py` measures, and the edits it makes to it.

The graph looks like a grown one. Three hubs in each of eight domains come first. Concepts are then found below those that
are waiting, in their order (so about six generations at 10^6), and are linked to 1 to 3 parents: the one they were found
below, most often another one near it, sometimes any earlier one, sometimes a hub. Just under half of all concepts are ever
expanded. Links between concepts that are there already come later, until there are three edges for each concept. Every
edge quotes a page; every concept has a definition, an alias and two keywords.

Row numbers are in the order of insertion, and every edge leads from a lower row to a higher one, so that which proposed
edges close a cycle is known without asking the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import Concept, Edge, Source, SourceSpan
from kgsynth.store import Change, GraphStore, Skeleton

VERSION = 1  # of what is planted
DOMAINS = "algorithms databases networks cryptography statistics geometry biology music".split()
HUBS = 3 * len(DOMAINS)  # the first rows
BATCH = 2_000  # concepts in a commit, while planting
CYCLIC = 0.1  # share of the proposed edges that would close a cycle
ANY_ORDER = 0.2  # share that goes from an earlier concept to any later one; the rest from a lower level to a higher one
WORDS = """adaptive balanced binary cached cyclic dense directed discrete dynamic exact finite greedy hashed hidden index
iterator join kernel lattice ledger linear lock matrix measure model nested operator optimal packet parallel path planar
pointer policy prime protocol query queue random record reduced regular relation ring robust route sampled schedule schema
search secure sequence shared signal sparse stable static stream symmetric table tensor thread token tree uniform""".split()

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Links:
    """Edges as rows: edge e goes from parents[e] to children[e]. Ordered by children, which are the later ends."""

    parents: Rows
    children: Rows

    def before(self, row: int) -> int:
        """How many edges end in the rows before this one."""
        return int(np.searchsorted(self.children, row))


def arrivals(n: int, dice: np.random.Generator) -> Links:
    """1 to 3 parents for each of n concepts but the hubs."""
    rows = np.arange(HUBS, n)
    expanded = dice.random(n) < 0.45
    expanded[:HUBS] = True
    open_row = np.maximum.accumulate(np.where(expanded, np.arange(n), 0))  # the last expanded one up to each row
    first = open_row[(rows * dice.uniform(0.05, 0.35, len(rows))).astype(np.int64)]
    near = first + dice.integers(-20, 21, len(rows)) * (1 + len(DOMAINS))
    kinds = dice.random((2, len(rows)))
    others = [
        np.select([kind < 0.7, kind < 0.95], [near, dice.integers(0, rows)], dice.integers(0, HUBS, len(rows)))
        for kind in kinds
    ]
    count = dice.choice([1, 2, 3], len(rows), p=[0.35, 0.35, 0.3])
    found = [open_row[np.clip(other, 0, rows - 1)][count > i] for i, other in enumerate(others, 1)]
    return _sorted(np.concatenate([first, *found]), np.concatenate([rows, *(rows[count > i] for i in (1, 2))]))


def later_links(n: int, edges: int, levels: NDArray[np.int32], dice: np.random.Generator) -> Links:
    """`edges` links or a few less between concepts that are there: nearly all from a lower level to a higher one."""
    ends = np.sort(dice.integers(0, n, (2 * edges, 2)), axis=1)
    legal = (ends[:, 0] < ends[:, 1]) & ((levels[ends[:, 0]] < levels[ends[:, 1]]) | (dice.random(len(ends)) < 0.1))
    return _sorted(*ends[legal][:edges].T)


def levels_of(n: int, links: Links) -> NDArray[np.int32]:
    """Longest path from a root. Rows are a topological order."""
    level = [0] * n
    for parent, child in zip(links.parents.tolist(), links.children.tolist(), strict=True):
        level[child] = max(level[child], level[parent] + 1)
    return np.array(level, np.int32)


def _sorted(parents: Rows, children: Rows) -> Links:
    pairs = np.unique(np.stack([children, parents], axis=1), axis=0)
    return Links(parents=pairs[:, 1], children=pairs[:, 0])


def plant(store: GraphStore, n: int, *, seed: int = 0, show: Callable[[int], None] = lambda _: None) -> None:
    """Fill an empty store. show: told how many concepts are in."""
    dice = np.random.default_rng(seed)
    found = arrivals(n, dice)
    later = later_links(n, 3 * n - len(found.parents), levels_of(n, found), dice)
    names, ids = list(_names(n)), list[str]()
    for start in range(0, n, BATCH):
        stop = min(n, start + BATCH)
        concepts = tuple(_concept(names[row], row) for row in range(start, stop))
        ids += [concept.id for concept in concepts]
        page = Page(start)
        pairs = [
            (ids[p], ids[c])
            for links in (found, later)
            for p, c in zip(*(side[links.before(start) : links.before(stop)].tolist() for side in (links.parents, links.children)), strict=True)
        ]  # fmt: skip
        store.commit(Change(sources=(page.source,), concepts=concepts, edges=tuple(map(page.edge, pairs))))
        show(stop)


def _names(n: int) -> Iterator[str]:
    """Different ones, of two words and a number."""
    for row in range(n):
        rest, first = divmod(row * 7919, len(WORDS))
        yield f"{WORDS[first]} {WORDS[rest % len(WORDS)]} {row}"


def _concept(name: str, row: int) -> Concept:
    domain = DOMAINS[row % len(DOMAINS)]
    text = f"A {name} is what one learns of {domain} next, once the concepts above it are understood well."
    return Concept(name=name, domain=domain, definition=text, aliases=(f"{name} of {domain}",), keywords=(domain, name))


class Page:
    """A source, of which every edge quotes a sentence."""

    def __init__(self, number: int) -> None:
        sentence = "The broader of these two notions is explained first, since the narrower one builds on it. "
        self.source = Source(url=f"https://example.org/{number}", title=f"Page {number}", text=sentence * 20)
        self.span = SourceSpan(
            source=self.source.id, url=self.source.url, start=0, end=len(sentence), text=sentence
        )  # shared: their ids are hashes of the whole page

    def edge(self, pair: tuple[str, str]) -> Edge:
        return Edge(parent=pair[0], child=pair[1], spans=(self.span,))


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """Edges to insert, and how many of them must be refused."""

    edges: tuple[Edge, ...]
    cyclic: int


class Edits:
    """Random edits of a planted graph, everywhere in it alike. Nothing here is timed."""

    def __init__(self, skeleton: Skeleton, seed: int = 0) -> None:
        self.ids, self.names, self.levels = skeleton.ids, skeleton.names, skeleton.levels.tolist()
        self.dice = np.random.default_rng(seed)
        self.page = Page(-1 - seed)
        by_child = np.argsort(skeleton.children, kind="stable")
        self._parents = skeleton.parents[by_child]
        self._first = np.searchsorted(skeleton.children[by_child], np.arange(len(self.ids) + 1))
        self._pairs = (skeleton.parents, skeleton.children)
        self._made = 0

    def parents(self, row: int) -> list[int]:
        return self._parents[self._first[row] : self._first[row + 1]].tolist()

    def edges(self, n: int) -> Proposed:
        """Different edges that are not there."""
        found: dict[tuple[int, int], bool] = {}
        while len(found) < n:
            (a, b), kind = sorted(self.dice.integers(0, len(self.ids), 2).tolist()), self.dice.random()
            if kind < CYCLIC:
                if above := self._ancestor(b):
                    found[b, above] = True
            elif a < b and a not in self.parents(b) and (kind < CYCLIC + ANY_ORDER or self.levels[a] < self.levels[b]):
                found[a, b] = False
        return Proposed(
            edges=tuple(self.page.edge((self.ids[p], self.ids[c])) for p, c in found), cyclic=sum(found.values())
        )

    def _ancestor(self, row: int) -> int | None:
        """One to four steps up."""
        here = row
        for _ in range(self.dice.integers(1, 5)):
            if above := self.parents(here):
                here = int(self.dice.choice(above))
        return here if here != row else None

    def duplicates(self, n: int) -> tuple[Change, tuple[tuple[str, str], ...]]:
        """What inserts n concepts that are others by another name, below the same parents and with 0 to 3 children of their
        own; and the (keep, fold) pairs that merge them."""
        concepts, edges, pairs = list[Concept](), list[Edge](), list[tuple[str, str]]()
        for row in self.dice.choice(np.arange(HUBS, len(self.ids)), n, replace=False).tolist():
            self._made += 1
            twin = _concept(f"{self.names[row]} or variant {self._made}", row)
            pairs.append((self.ids[row], twin_id := twin.id))
            concepts.append(twin)
            later = np.unique(self.dice.integers(row, len(self.ids), self.dice.integers(0, 4))).tolist()
            above = [(self.ids[parent], twin_id) for parent in self.parents(row)]
            below = [(twin_id, self.ids[child]) for child in later if child > row]
            edges += map(self.page.edge, [*above, *below])
        return Change(concepts=tuple(concepts), edges=tuple(edges)), tuple(pairs)

    def there(self, n: int) -> tuple[tuple[str, str], ...]:
        """Edges to remove."""
        starts, ends = self._pairs
        chosen = self.dice.choice(len(starts), n, replace=False).tolist()
        return tuple((self.ids[starts[e]], self.ids[ends[e]]) for e in chosen)
