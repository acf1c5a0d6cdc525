"""Whole tasks out of fractions, and an order of them whose every prefix is near the shares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.table import AXES, DOMAIN, GRANULARITY, TYPE, Ints, Limit, Table, marginal

NEAR = 1e-5  # so near to a whole number is one


class Leveller:
    """Picks cells one by one so that all sums stay near their shares (goal chasing: Monden, Toyota Production System, 1983).

    The next cell is the one that lessens the squared distance most, over the sums of each axis, of pairs of axes, of (domain,
    type, granularity), and the cells themselves. Cells are positions in `cells`.
    """

    SUMS = (
        *((subset, 8.0) for subset in itertools.combinations(AXES, 1)),
        *((subset, 1.0) for subset in itertools.combinations(AXES, 2)),
        ((DOMAIN, TYPE, GRANULARITY), 4.0),
        (AXES, 2.0),
    )
    OWN = sum(weight for _, weight in SUMS)  # what picking a cell takes off its own score

    def __init__(self, shares: NDArray[Any], cells: Ints, tie: Table) -> None:
        """shares: any multiple of the wanted table; cells: flat indices; tie: numbers in [0, 1) that decide between equals."""
        self.cells, self.picked, self.load = cells, 0, np.zeros(len(cells))
        self._tie = tie.ravel()[cells] * 4e-7
        self._pull = self._sums_of(shares) / max(shares.sum(), 1e-9)
        where = np.unravel_index(cells, shares.shape)
        self._where = np.stack(where).astype(np.int32)
        self._weight = np.array([self._shared(pattern) for pattern in range(1 << len(AXES))])

    def begin_with(self, table: NDArray[Any]) -> None:
        """Count a whole table as picked."""
        self.load += self._sums_of(table)
        self.picked += int(table.sum())

    def score(self, size: float) -> Table:
        """[cells]: how much each is due when `size` cells are to be picked in all."""
        return np.round(size * self._pull - self.load, 6) + self._tie

    def pick(self, among: NDArray[np.bool_], size: float | None = None) -> int:
        """The best of these cells; as the next one, unless it is said how many there will be."""
        return int(np.argmax(np.where(among, self.score(self.picked + 1 if size is None else size), -np.inf)))

    def add(self, cell: int, times: int = 1) -> None:
        self.picked += times
        same = self._where == self._where[:, cell, None]
        pattern = same[0].view(np.uint8).copy()
        for axis in AXES[1:]:
            pattern |= same[axis].view(np.uint8) << axis
        self.load += times * self._weight[pattern]

    def _sums_of(self, table: NDArray[Any]) -> Table:
        sums = sum(weight * marginal(table, subset) for subset, weight in self.SUMS)
        return np.broadcast_to(sums, table.shape).ravel()[self.cells].astype(float)

    def _shared(self, pattern: int) -> float:
        """What picking a cell takes off one that is equal on these axes (bits)."""
        return sum(weight for subset, weight in self.SUMS if all(pattern >> axis & 1 for axis in subset))


def round_off(shares: Table, size: int, open_cells: NDArray[np.bool_], limits: Sequence[Limit], tie: Table) -> Ints:
    """Whole numbers: each cell's share rounded down or up so that the sum is `size` and all totals are near, within the limits."""
    rounding = _Rounding(shares, size, open_cells, limits, tie)
    while rounding.missing > 0 and rounding.raise_one():
        pass
    while rounding.swap(rounding.up & rounding.free, rounding.down):
        pass
    for group in np.flatnonzero(
        rounding.counts[0] >= rounding.limits[0].most
    ):  # what is full can only swap within itself
        inside = rounding.limits[0].label == group
        while rounding.swap(rounding.up & inside, rounding.down & inside):
            pass
    whole = np.zeros(shares.size, np.int64)
    whole[rounding.leveller.cells] = rounding.whole
    return whole.reshape(shares.shape)


class _Rounding:
    """Open cells on their way to whole numbers: begun from all shares rounded down."""

    def __init__(
        self, shares: Table, size: int, open_cells: NDArray[np.bool_], limits: Sequence[Limit], tie: Table
    ) -> None:
        cells = np.flatnonzero(open_cells)
        floor = np.floor(shares + NEAR).astype(np.int64)
        self.leveller, self.size = Leveller(shares, cells, tie), size
        self.leveller.begin_with(floor)
        self.floor = floor.ravel()[cells]
        self.whole, self.missing = self.floor.copy(), size - int(floor.sum())
        self._broken = shares.ravel()[cells] - self.floor > NEAR  # not whole
        self.limits = [Limit(limit.label[cells], limit.most) for limit in limits]
        self.counts = [limit.sums(self.whole).astype(np.int64) for limit in self.limits]
        self._full = np.zeros(len(cells), np.int64)  # groups of each cell that are full
        for limit, count in zip(self.limits, self.counts, strict=True):
            self._full += np.append(count >= limit.most, False)[limit.label]

    @property
    def up(self) -> NDArray[np.bool_]:
        """Cells that may be rounded up yet."""
        return self._broken & (self.whole == self.floor)

    @property
    def down(self) -> NDArray[np.bool_]:
        """Cells that are above their share rounded down."""
        return self.whole > self.floor

    @property
    def free(self) -> NDArray[np.bool_]:
        """Cells whose groups are not full."""
        return self._full == 0

    def raise_one(self) -> bool:
        """Round up the cell that is most due; one above its share when all are rounded up. False: everything is full."""
        free, up = self.free, self.up & self.free
        among = up if up.any() else free
        if among.any():
            self._add(self.leveller.pick(among, self.size), 1)
        return bool(among.any())

    def swap(self, up: NDArray[np.bool_], down: NDArray[np.bool_]) -> bool:
        """Take from the cell that is least due what the most due one then gets. False, and nothing done: no gain."""
        if not up.any() or not down.any():
            return False
        scores = np.where(up, self.leveller.score(self.size), -np.inf)
        self._add(more := int(np.argmax(scores)), 1)
        after = np.where(down, self.leveller.score(self.size), np.inf)
        self._add(less := int(np.argmin(after)), -1)
        within = all((n <= limit.most).all() for n, limit in zip(self.counts, self.limits, strict=True))
        if better := within and scores[more] - after[less] > Leveller.OWN + 1e-4:
            return bool(better)
        self._add(more, -1)
        self._add(less, 1)
        return False

    def _add(self, cell: int, times: int) -> None:
        self.leveller.add(cell, times)
        self.whole[cell] += times
        self.missing -= times
        for limit, count in zip(self.limits, self.counts, strict=True):
            if (group := limit.label[cell]) >= 0:
                was = count[group] >= limit.most[group]
                count[group] += times
                if was != (now := count[group] >= limit.most[group]):
                    self._full[limit.label == group] += 1 if now else -1


def in_order(whole: Ints, tie: Table) -> list[int]:
    """The cells of a table as flat indices, each as often as it says, evenly mixed."""
    cells = np.flatnonzero(whole)
    left, leveller = whole.ravel()[cells], Leveller(whole, cells, tie)
    order = []
    for _ in range(int(left.sum())):
        k = leveller.pick(left > 0)
        leveller.add(k)
        left[k] -= 1
        order.append(int(cells[k]))
    return order
