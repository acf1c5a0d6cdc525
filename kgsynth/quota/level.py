"""Whole tasks out of fractions, and an order of them whose every prefix is near the shares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.table import AXES, DOMAIN, GRANULARITY, TYPE, Ints, Limit, Table, marginal


class Leveller:
    """Picks cells one by one so that all sums stay near their shares (goal chasing: Monden, Toyota Production System, 1983).

    The next cell is the one that lessens the squared distance most, over the sums of each axis, of pairs of axes, of (domain,
    type, granularity), and the cells themselves.
    """

    SUMS = (
        *((subset, 4.0) for subset in itertools.combinations(AXES, 1)),
        *((subset, 1.0) for subset in itertools.combinations(AXES, 2)),
        ((DOMAIN, TYPE, GRANULARITY), 1.0),
        (AXES, 1.0),
    )

    def __init__(self, shares: NDArray[Any], tie: Table) -> None:
        """shares: any multiple of the wanted table; tie: numbers in [0, 1) that decide between equals."""
        self.shape, self.picked = shares.shape, 0
        self.tie = tie.ravel() * 4e-7
        self.pull = sum(weight * marginal(shares, subset) for subset, weight in self.SUMS) / max(shares.sum(), 1e-9)
        self.load = np.zeros(self.shape)

    def pick(self, among: NDArray[np.bool_], size: float | None = None) -> int:
        """The best of these flat cells; as if `size` cells were to be picked, by default one more than are."""
        score = (self.picked + 1 if size is None else size) * self.pull - self.load
        score = np.where(among, np.round(score.ravel(), 6) + self.tie, -np.inf)
        return int(np.argmax(score))

    def add(self, cell: int) -> None:
        at = np.unravel_index(cell, self.shape)
        self.picked += 1
        for subset, weight in self.SUMS:
            self.load[tuple(at[a] if a in subset else slice(None) for a in AXES)] += weight


def round_off(shares: Table, open_cells: NDArray[np.bool_], limits: Sequence[Limit], tie: Table) -> Ints:
    """Whole numbers: each cell's share rounded down or up so that the sum is right and all totals are near, within the limits."""
    whole = np.floor(shares + 1e-5).astype(np.int64).ravel()
    leveller, size = Leveller(shares, tie), shares.sum()
    leveller.load = sum(w * marginal(whole.reshape(shares.shape), s) for s, w in Leveller.SUMS) + np.zeros(shares.shape)
    up, free = (whole < shares.ravel() - 1e-5), open_cells.ravel().copy()
    counts = [limit.sums(whole).astype(np.int64) for limit in limits]
    for limit, count in zip(limits, counts, strict=True):
        free &= np.append(count < limit.most, True)[limit.label]
    for _ in range(round(size) - int(whole.sum())):
        if not free.any():
            break
        cell = leveller.pick(up & free if (up & free).any() else free, size)
        leveller.add(cell)
        whole[cell] += 1
        up[cell] = False
        for limit, count in zip(limits, counts, strict=True):
            if (group := limit.label[cell]) >= 0:
                count[group] += 1
                if count[group] >= limit.most[group]:
                    free &= limit.label != group
    return whole.reshape(shares.shape)


def in_order(whole: Ints, tie: Table) -> list[int]:
    """The cells of a table, each as often as it says, evenly mixed."""
    left, leveller = whole.ravel().copy(), Leveller(whole, tie)
    order = []
    for _ in range(int(left.sum())):
        cell = leveller.pick(left > 0)
        leveller.add(cell)
        left[cell] -= 1
        order.append(cell)
    return order
