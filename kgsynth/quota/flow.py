"""Tasks as a flow: from rows (domain, type, granularity, scope) over lots, concepts and sources to the sink.

Every cap is the capacity of an edge, so a maximum flow tells whether all caps can be kept, and the minimum cut which of them
stand in the way (Ford & Fulkerson, Canadian Journal of Mathematics 8, 1956).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.table import DIFFICULTY, SCOPE, Ints, Limit, Lots, Table

ENDLESS = 1 << 28  # no limit: the sum of a few still fits into the flow's 32 bits
FINE = 100  # parts of a task in which `bottlenecks` counts
MATERIAL, PER_CONCEPT, PER_CONCEPT_TOTAL, PER_SOURCE = CAPS = (
    "material",
    "per_concept",
    "per_concept_total",
    "per_source",
)


class Flow:
    """A maximum flow for a demand per row, begun from lots that were drawn already."""

    def __init__(
        self, lots: Lots, shape: tuple[int, ...], demand: Ints, drawn: Sequence[tuple[int, int]] = (), scale: int = 1
    ) -> None:
        """demand [domains, types, granularities, scopes]: in 1/scale tasks; drawn: (row, lot), tasks."""
        self._demand = np.minimum(demand.ravel(), ENDLESS).astype(np.int64)
        self._shape = shape
        self._build(lots, scale)
        self._run(lots, drawn)

    def _build(self, lots: Lots, scale: int) -> None:
        """Nodes: 0, then rows, lots, concepts, sources, and the sink. Edges: from, to, capacity, and which cap it stands for."""
        rows, scopes = lots.rows(self._shape), self._shape[SCOPE]
        concepts, sources = len(lots.source), int(lots.source.max(initial=-1)) + 1
        self._lot0 = 1 + len(self._demand)
        concept0 = self._lot0 + len(rows)
        source0 = concept0 + concepts
        self._sink = source0 + sources
        lot, scope = np.nonzero(lots.scopes & (self._demand.reshape(-1, scopes)[rows] > 0))
        row = np.flatnonzero(self._demand)
        cited = lots.source >= 0
        limits = [lots.per_concept_total, lots.per_source]
        total, source = (np.int64(limit * scale if limit else ENDLESS) for limit in limits)
        parts = [
            (np.zeros(len(row)), 1 + row, self._demand[row], -1),
            (1 + rows[lot] * scopes + scope, self._lot0 + lot, np.full(len(lot), ENDLESS), -1),
            (self._lot0 + np.arange(len(rows)), concept0 + lots.concept, lots.size * scale, lots.raw > lots.size),
            (concept0 + np.arange(concepts), np.where(cited, source0 + lots.source, self._sink), total, 2),
            (source0 + np.arange(sources), np.full(sources, self._sink), source, 3),
        ]
        self._from, self._to, self._most, self._cap = (
            np.concatenate([np.broadcast_to(part[k], len(part[0])) for part in parts]).astype(np.int64)
            for k in range(4)
        )

    def _run(self, lots: Lots, drawn: Sequence[tuple[int, int]]) -> None:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import maximum_flow

        start = self._start(lots, drawn)
        both = (np.concatenate([self._from, self._to]), np.concatenate([self._to, self._from]))
        size = (self._sink + 1, self._sink + 1)
        free = coo_array((np.concatenate([self._most - start, start]).astype(np.int32), both), shape=size).tocsr()
        free.eliminate_zeros()
        more = maximum_flow(free, 0, self._sink).flow
        self._left = (free - more).tocsr()  # residual capacities
        self._left.eliminate_zeros()
        self._flow = start + np.asarray(more[self._from, self._to]).ravel()
        self.missing = int(self._demand.sum() - self._flow[self._from == 0].sum())

    def _start(self, lots: Lots, drawn: Sequence[tuple[int, int]]) -> Ints:
        """The flow on each edge that drawn lots are."""
        start = np.zeros(len(self._from), np.int64)
        edge = (
            {pair: k for k, pair in enumerate(zip(self._from.tolist(), self._to.tolist(), strict=True))}
            if drawn
            else {}
        )
        out = {int(self._from[k]): k for k in np.flatnonzero(self._cap >= 0)}
        for row, lot in drawn:
            start[edge[0, 1 + row]] += 1
            start[edge[1 + row, self._lot0 + lot]] += 1
            node = self._lot0 + lot
            while node != self._sink:
                start[k := out[node]] += 1
                node = int(self._to[k])
        return start

    def drawn(self) -> dict[int, list[int]]:
        """Row -> its lots, each once before any twice."""
        found: dict[int, list[tuple[int, int]]] = {}
        for k in np.flatnonzero((self._flow > 0) & (self._from > 0) & (self._from < self._lot0)):
            times = [(n, int(self._to[k]) - self._lot0) for n in range(self._flow[k])]
            found.setdefault(int(self._from[k]) - 1, []).extend(times)
        return {row: [lot for _, lot in sorted(pairs)] for row, pairs in found.items()}

    def cut(self) -> Limit:
        """The rows that ask for too much together, in independent groups, and how much each group can have; of cells."""
        rows, group = self._groups()
        difficulties = self._shape[DIFFICULTY]
        label = np.repeat(np.where(rows, group[1 : self._lot0], -1), difficulties)
        got = np.zeros(group.max(initial=-1) + 1, np.int64)
        served = self._from == 0
        inside = rows[self._to[served] - 1]
        np.add.at(got, group[self._to[served]][inside], self._flow[served][inside])
        return Limit(label, got)

    def caps(self) -> dict[int, Counter[str]]:
        """Row in need -> which caps stand in the way of its group, and how much they let through. Empty: nothing is there."""
        rows, group = self._groups()
        at = np.flatnonzero((self._cap >= 0) & (group[self._from] >= 0) & (group[self._to] < 0))
        found: dict[int, Counter[str]] = {}
        for k in at:
            found.setdefault(int(group[self._from[k]]), Counter())[CAPS[self._cap[k]]] += int(self._most[k])
        return {int(row): found.get(int(group[1 + row]), Counter()) for row in np.flatnonzero(rows)}

    def _groups(self) -> tuple[NDArray[np.bool_], Ints]:
        """Which rows can still reach what is short, and the connected group of every such node, -1 for all others."""
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        reached = np.zeros(self._sink + 1, bool)
        reached[breadth_first_order(self._left, 0, return_predecessors=False)] = True
        reached[[0, self._sink]] = False
        nodes = np.flatnonzero(reached)
        group = np.full(self._sink + 1, -1)
        group[nodes] = connected_components(self._left[nodes][:, nodes], directed=False)[1]
        return reached[1 : self._lot0], group


def bottlenecks(wanted: Table, lots: Lots) -> dict[int, dict[str, float]]:
    """Row (domain, type, granularity, scope) that cannot have what is wanted -> the caps that are in its way, and how many
    tasks each lets through to the rows that compete for them, the largest first.
    """
    demand = np.floor(wanted.sum(axis=DIFFICULTY) * FINE).astype(np.int64)
    found = Flow(lots, wanted.shape, demand, scale=FINE).caps()
    return {row: {cap: n / FINE for cap, n in caps.most_common()} for row, caps in found.items()}
