"""How many tasks of each kind: from wanted shares and what the material allows to whole numbers, and to an order.

The wanted numbers form a table over (domain, type, granularity, scope, difficulty). `solve` finds the table nearest to it
that can be made:

1. `nearest.py`: a linear program (HiGHS, by scipy) says how near the totals of each axis can come, in the order of PRIORITY;
   each further 5 % off costs more than the last, so that a shortage is spread, not dumped on one value. Proportional fitting
   with limits then finds the table with these totals that is nearest to the wanted one in relative entropy.
2. `level.py` makes it whole, totals first, then pairs of axes, then cells; and puts the tasks in order.
3. `stock.py` gives every task a concept, the least used first, within all caps.
4. `flow.py`: where that fails, a maximum flow from cells over concepts to sources moves tasks to other concepts. If there is
   no way, its minimum cut names the cells that ask too much together: one more limit for step 1 (Benders, Numerische
   Mathematik 4, 1962). The same cut says why a wanted number cannot be made.

Plain arrays: of kgsynth nothing is imported. scipy is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.flow import Flow, bottlenecks
from kgsynth.quota.level import Leveller, in_order, round_off
from kgsynth.quota.nearest import nearest
from kgsynth.quota.stock import Stock
from kgsynth.quota.table import AXES, DIFFICULTY, PRIORITY, SCOPE, Ints, Limit, Lots, Table, marginal

CUTS = 40  # rounds of step 4 at most: then tasks without a concept are left out


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What can be made. shares: the nearest table, not rounded; whole: the same in whole tasks; order [tasks]: (cell, lot) of
    each, cells as flat indices; every prefix is as near to the shares as whole tasks allow."""

    open_cells: NDArray[np.bool_]
    shares: Table
    whole: Ints
    order: list[tuple[int, int]]


def solve(wanted: Table, offered: NDArray[np.bool_], lots: Lots, tie: Table) -> Solution:
    """The table nearest to `wanted` that the lots can give. Cells that are not `offered` or not wanted stay empty.

    Lots are drawn in the order they are given in, cells that are equally good in the order of `tie`, one number for each.
    """
    shape = wanted.shape
    open_cells = offered & (wanted > 0) & (lots.room(shape) > 0)[..., None]
    limits = _first_limits(shape, lots)
    for _ in range(CUTS):
        shares = nearest(wanted, open_cells, limits)
        whole = round_off(shares, open_cells, limits, tie)
        cells = in_order(whole, tie)
        drawn, flow = _draw(cells, lots, whole)
        if flow is None or not flow.missing:
            break
        limits.append(flow.cut())
    order = [(cell, lot) for cell, lot in zip(cells, drawn, strict=True) if lot >= 0]
    return Solution(open_cells=open_cells, shares=shares, whole=whole, order=order)


def further(solved: Solution, lots: Lots, tie: Table) -> Iterator[tuple[int, int]]:
    """What comes after `order`, in the same shares, until everything is used up: (cell, lot)."""
    shape = solved.shares.shape
    stock, leveller = Stock(lots, shape), Leveller(solved.shares, tie)
    for cell, lot in solved.order:
        stock.use(lot)
        leveller.add(cell)
    alive = solved.open_cells.ravel().copy()
    scopes = shape[DIFFICULTY]
    while alive.any():
        cell = leveller.pick(alive)
        lot = stock.take(row := cell // scopes)
        if lot < 0:
            alive[row * scopes : (row + 1) * scopes] = False
        else:
            leveller.add(cell)
            yield cell, lot


def _first_limits(shape: tuple[int, ...], lots: Lots) -> list[Limit]:
    """Per (domain, type, granularity), and per scope of these."""
    together = np.zeros(int(np.prod(shape[:3])), np.int64)
    np.add.at(together, lots.rows(shape), lots.size)
    cells = np.arange(int(np.prod(shape)))
    return [
        Limit(cells // (shape[SCOPE] * shape[DIFFICULTY]), together),
        Limit(cells // shape[DIFFICULTY], lots.room(shape).ravel()),
    ]


def _draw(cells: list[int], lots: Lots, whole: Ints) -> tuple[list[int], Flow | None]:
    """A lot for each cell, -1 where there is none: one after the other, and where that does not serve all, by a flow."""
    stock, rows = Stock(lots, whole.shape), [cell // whole.shape[DIFFICULTY] for cell in cells]
    drawn = [stock.take(row) for row in rows]
    if -1 not in drawn:
        return drawn, None
    served = [(row, lot) for row, lot in zip(rows, drawn, strict=True) if lot >= 0]
    flow = Flow(lots, whole.shape, whole.sum(axis=DIFFICULTY), served)
    piles = {row: iter(dealt) for row, dealt in flow.drawn().items()}
    return [next(piles.get(row, iter(())), -1) for row in rows], flow


__all__ = [
    "AXES",
    "PRIORITY",
    "Ints",
    "Leveller",
    "Lots",
    "Solution",
    "Table",
    "bottlenecks",
    "further",
    "marginal",
    "nearest",
    "solve",
]
