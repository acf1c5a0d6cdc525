"""Tasks as a flow: from rows (domain, type, granularity, scope) over lots, concepts and sources to the sink.

Every cap is the capacity of an edge, so a maximum flow tells whether all caps can be kept, and the minimum cut which of them
stand in the way (Ford & Fulkerson, Canadian Journal of Mathematics 8, 1956).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.table import DIFFICULTY, SCOPE, Ints, Limit, Lots, Table

ENDLESS = 1 << 28  # no limit: the sum of a few still fits into the flow's 32 bits
FINE = 100  # parts of a task in which fractions flow
CAPS = ("material", "per_concept", "per_concept_total", "per_source")


class Flow:
    """A maximum flow for a demand per row, begun from lots that were drawn already."""

    def __init__(
        self, lots: Lots, shape: tuple[int, ...], demand: Ints, drawn: Sequence[tuple[int, int]] = (), scale: int = 1
    ) -> None:
        """demand [domains, types, granularities, scopes]: in 1/scale tasks; drawn: (row, lot), tasks."""
        self.scale, self._shape = scale, shape
        self._demand = np.minimum(demand.ravel(), ENDLESS).astype(np.int64)
        self._build(lots)
        self._run(self._begun(lots, drawn))

    @classmethod
    def of_shares(cls, lots: Lots, table: Table) -> Flow:
        """Of numbers that need not be whole."""
        return cls(lots, table.shape, np.floor(table.sum(axis=DIFFICULTY) * FINE).astype(np.int64), scale=FINE)

    def _build(self, lots: Lots) -> None:
        """Nodes: 0, then rows, lots, concepts, sources, and the sink. Edges: from, to, capacity, and which cap it stands for."""
        rows, scopes = lots.rows(self._shape), self._shape[SCOPE]
        concepts, sources = len(lots.source), int(lots.source.max(initial=-1)) + 1
        self._lot0 = 1 + len(self._demand)
        concept0 = self._lot0 + len(rows)
        source0 = concept0 + concepts
        self._sink = source0 + sources
        lot, scope = np.nonzero(lots.scopes)
        asked = np.arange(len(self._demand))
        total, source = (limit * self.scale or ENDLESS for limit in (lots.per_concept_total, lots.per_source))
        parts = [
            (np.zeros(len(asked)), 1 + asked, self._demand, -1),
            (1 + rows[lot] * scopes + scope, self._lot0 + lot, ENDLESS, -1),
            (self._lot0 + np.arange(len(rows)), concept0 + lots.concept, lots.size * self.scale, lots.raw > lots.size),
            (concept0 + np.arange(concepts), np.where(lots.source < 0, self._sink, source0 + lots.source), total, 2),
            (source0 + np.arange(sources), self._sink, source, 3),
        ]
        self._from, self._to, self._most, self._cap = (
            np.concatenate([np.broadcast_to(part[k], len(part[0])) for part in parts]).astype(np.int64)
            for k in range(4)
        )

    def _begun(self, lots: Lots, drawn: Sequence[tuple[int, int]]) -> Ints:
        """The flow on each edge that drawn lots are."""
        row, lot = np.array(drawn, np.int64).reshape(-1, 2).T
        key, size = self._from * (self._sink + 1) + self._to, self._sink + 1
        order = np.argsort(key)
        concept = lots.concept[lot]
        cited = lots.source[concept]
        nodes = [np.zeros(len(row), np.int64), 1 + row, self._lot0 + lot, self._lot0 + len(lots.size) + concept]
        nodes.append(np.where(cited < 0, self._sink, self._lot0 + len(lots.size) + len(lots.source) + cited))
        steps = [a * size + b for a, b in itertools.pairwise(nodes)]
        steps.append((nodes[-1] * size + self._sink)[cited >= 0])
        edges = order[np.searchsorted(key, np.concatenate(steps), sorter=order)]
        return np.bincount(edges, minlength=len(key))

    def _run(self, begun: Ints) -> None:
        from scipy.sparse import coo_array

        both = (np.concatenate([self._from, self._to]), np.concatenate([self._to, self._from]))
        free = np.concatenate([self._most - begun, begun]).astype(np.int32)
        self._left = coo_array((free, both), shape=(self._sink + 1, self._sink + 1)).tocsr()  # what may flow yet
        self._flow = begun + self._more()
        self.missing = int(self._demand.sum() - self._flow[self._from == 0].sum())

    def _more(self) -> Ints:
        """Augment; returns what that adds to each edge."""
        from scipy.sparse.csgraph import maximum_flow

        self._left.eliminate_zeros()
        more = maximum_flow(self._left, 0, self._sink).flow
        self._left = (self._left - more).tocsr()
        self._left.eliminate_zeros()
        return np.asarray(more[self._from, self._to]).ravel().astype(np.int64)

    def able(self) -> NDArray[np.bool_]:
        """[rows]: which could have one more."""
        return self._reached(self._left.T.tocsr(), self._sink)[1 : self._lot0]

    def raise_one(self, row: int) -> None:
        """One more task of a row that is able."""
        from scipy.sparse import coo_array

        self._left.data[: self._left.indptr[1]] = 0  # what else was asked for and cannot be had
        one = coo_array((np.ones(1, np.int32), ([0], [1 + row])), shape=self._left.shape)
        self._left = (self._left + one).tocsr()
        self._flow = self._flow + self._more()

    def drawn(self) -> dict[int, list[int]]:
        """Row -> its lots, each once before any twice."""
        found: dict[int, list[tuple[int, int]]] = {}
        for k in np.flatnonzero((self._flow > 0) & (self._from > 0) & (self._from < self._lot0)):
            times = [(n, int(self._to[k]) - self._lot0) for n in range(self._flow[k])]
            found.setdefault(int(self._from[k]) - 1, []).extend(times)
        return {row: [lot for _, lot in sorted(pairs)] for row, pairs in found.items()}

    def cut(self) -> Limit:
        """The rows that ask for too much together, in independent groups, and how much each group can have; of cells."""
        short, group = self._groups()
        label = np.where(short, group[1 : self._lot0], -1)
        served = self._flow[: len(self._demand)]  # as much as the caps of the cut, which are whole tasks
        most = np.bincount(label[short], served[short], minlength=group.max(initial=-1) + 1) / self.scale
        return Limit(np.repeat(label, self._shape[DIFFICULTY]), np.rint(most).astype(np.int64))

    def caps(self) -> dict[int, dict[str, float]]:
        """Row in need -> which caps stand in the way of its group, and how many tasks each lets through, largest first."""
        short, group = self._groups()
        found: dict[int, Counter[str]] = {}
        for k in np.flatnonzero((self._cap >= 0) & (group[self._from] >= 0) & (group[self._to] < 0)):
            found.setdefault(int(group[self._from[k]]), Counter())[CAPS[self._cap[k]]] += int(self._most[k])
        ordered = {g: {cap: n / self.scale for cap, n in caps.most_common()} for g, caps in found.items()}
        return {int(row): ordered.get(int(group[1 + row]), {}) for row in np.flatnonzero(short)}

    def _groups(self) -> tuple[NDArray[np.bool_], Ints]:
        """Which rows compete for what is short, and the connected group of every such node, -1 for all others."""
        from scipy.sparse.csgraph import connected_components

        reached = self._reached(self._left, 0)
        reached[[0, self._sink]] = False
        nodes, group = np.flatnonzero(reached), np.full(self._sink + 1, -1)
        group[nodes] = connected_components(self._left[nodes][:, nodes], directed=False)[1]
        return reached[1 : self._lot0], group

    def _reached(self, edges: object, start: int) -> NDArray[np.bool_]:
        from scipy.sparse.csgraph import breadth_first_order

        reached = np.zeros(self._sink + 1, bool)
        reached[breadth_first_order(edges, start, return_predecessors=False)] = True
        return reached


def bottlenecks(wanted: Table, lots: Lots) -> dict[int, dict[str, float]]:
    """Row (domain, type, granularity, scope) that cannot have what is wanted -> the caps that are in its way, and how many
    tasks each lets through to all the rows that compete there."""
    return Flow.of_shares(lots, wanted).caps()
