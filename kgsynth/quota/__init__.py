"""How many tasks of each kind: from wanted shares and what the material allows to whole numbers, and to an order.

The wanted numbers form a table over (domain, type, granularity, scope, difficulty). `solve` finds the table nearest to it
that can be made:

1. `nearest.py`: a linear program (HiGHS, by scipy) says how near the totals of each axis can come, in the order of PRIORITY;
   each further step off costs more than the last, so that a shortage is spread, not dumped on one value. Proportional fitting
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
from kgsynth.quota.table import (
    AXES,
    DIFFICULTY,
    DOMAIN,
    GRANULARITY,
    PRIORITY,
    SCOPE,
    Ints,
    Limit,
    Lots,
    Table,
    marginal,
)

CUTS = 40  # rounds of step 4 at most: then tasks without a concept are left out


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What can be made. shares: the nearest table, not rounded; order [tasks]: (cell, lot) of each whole task, cells as flat
    indices; every prefix is as near to the shares as whole tasks allow."""

    open_cells: NDArray[np.bool_]
    shares: Table
    order: list[tuple[int, int]]


def solve(wanted: Table, offered: NDArray[np.bool_], lots: Lots, tie: Table) -> Solution:
    """The table nearest to `wanted` that the lots can give. Cells that are not `offered` or not wanted stay empty.

    Lots are drawn in the order they are given in, cells that are equally good in the order of `tie`, one number for each.
    """
    shape = wanted.shape
    open_cells = offered & (wanted > 0) & (lots.room(shape) > 0)[..., None]
    limits = _first_limits(shape, lots)
    shares, size = nearest(wanted, open_cells, limits)
    order, rest = _draw(whole := round_off(shares, size, open_cells, limits, tie), lots, tie)
    if rest:
        shares, size = _within_caps(wanted, open_cells, lots, limits)
        order, rest = _draw(whole := round_off(shares, size, open_cells, limits, tie), lots, tie)
    if rest:
        whole, piles = _redeal(whole, order, shares, open_cells, lots, tie)
        order = [(cell, next(piles[cell // shape[DIFFICULTY]])) for cell in in_order(whole, tie)]
    return Solution(open_cells=open_cells, shares=shares, order=order)


def _within_caps(wanted: Table, open_cells: NDArray[np.bool_], lots: Lots, limits: list[Limit]) -> tuple[Table, int]:
    """The nearest table for whose fractions there are concepts; what was too much together is added to the limits."""
    found = nearest(wanted, open_cells, limits)
    for _ in range(CUTS):
        if not (flow := Flow.of_shares(lots, found[0])).missing:
            break
        limits.append(flow.cut())
        found = nearest(wanted, open_cells, limits)
    return found


def _draw(whole: Ints, lots: Lots, tie: Table) -> tuple[list[tuple[int, int]], int]:
    """(cell, lot) in order, one after the other, each the least used; and how many cells got none."""
    stock, cells = Stock(lots, whole.shape), in_order(whole, tie)
    drawn = [(cell, stock.take(cell // whole.shape[DIFFICULTY])) for cell in cells]
    order = [(cell, lot) for cell, lot in drawn if lot >= 0]
    return order, len(cells) - len(order)


def _redeal(
    whole: Ints, order: list[tuple[int, int]], shares: Table, open_cells: NDArray[np.bool_], lots: Lots, tie: Table
) -> tuple[Ints, dict[int, Iterator[int]]]:
    """Move tasks to other concepts, so that all have one, and those for which there is none to the cells next due.

    Returns the table in whole tasks, and the lots of each row.
    """
    difficulties = whole.shape[DIFFICULTY]
    flow = Flow(lots, whole.shape, whole.sum(axis=DIFFICULTY), [(cell // difficulties, lot) for cell, lot in order])
    left = {row: len(piled) for row, piled in flow.drawn().items()}
    kept, size = np.zeros(whole.size, np.int64), int(whole.sum())
    for cell in in_order(whole, tie):
        if left.get(row := cell // difficulties, 0):
            left[row] -= 1
            kept[cell] += 1
    leveller = Leveller(shares, np.flatnonzero(open_cells), tie)
    leveller.begin_with(kept.reshape(whole.shape))
    rows = leveller.cells // difficulties
    while leveller.picked < size and (able := flow.able()[rows]).any():
        leveller.add(k := leveller.pick(able, size))
        kept[leveller.cells[k]] += 1
        flow.raise_one(int(rows[k]))
    return kept.reshape(whole.shape), {row: iter(piled) for row, piled in flow.drawn().items()}


def further(solved: Solution, lots: Lots, tie: Table) -> Iterator[tuple[int, int]]:
    """What comes after `order`, in the same shares, until everything is used up: (cell, lot)."""
    shape, scopes = solved.shares.shape, solved.shares.shape[DIFFICULTY]
    stock, leveller = Stock(lots, shape), Leveller(solved.shares, np.flatnonzero(solved.open_cells), tie)
    done = np.zeros(solved.shares.size, np.int64)
    for cell, lot in solved.order:
        stock.use(lot)
        done[cell] += 1
    leveller.begin_with(done.reshape(shape))
    rows = leveller.cells // scopes
    alive = np.ones(len(rows), bool)
    while alive.any():
        k = leveller.pick(alive)
        lot = stock.take(int(rows[k]))
        if lot < 0:
            alive &= rows != rows[k]
        else:
            leveller.add(k)
            yield int(leveller.cells[k]), lot


def _first_limits(shape: tuple[int, ...], lots: Lots) -> list[Limit]:
    """Per (domain, type, granularity), per scope of these, and per (domain, granularity): the latter for all types together."""
    cells, rows = np.arange(int(np.prod(shape))), lots.rows(shape)
    domain, kind, granularity = np.unravel_index(np.arange(int(np.prod(shape[:3]))), shape[:3])
    by_type = np.bincount(rows, lots.size, minlength=len(kind)).astype(np.int64)
    place = domain * shape[GRANULARITY] + granularity
    by_place = np.zeros(shape[DOMAIN] * shape[GRANULARITY], np.int64)
    told = np.bincount(lots.concept, lots.size).astype(np.int64)
    home = np.zeros(len(told), np.int64)
    home[lots.concept] = place[rows]
    np.add.at(by_place, home, np.minimum(told, lots.per_concept_total or told))
    of_row = cells // (shape[SCOPE] * shape[DIFFICULTY])
    return [
        Limit(of_row, by_type),
        Limit(cells // shape[DIFFICULTY], lots.room(shape).ravel()),
        Limit(place[of_row], by_place),
    ]


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
