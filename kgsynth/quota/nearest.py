"""The table nearest to a wanted one that a set of limits allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.quota.table import AXES, PRIORITY, Ints, Limit, Table, marginal

SWEEPS = 200  # of proportional fitting at most
CLOSE = 1e-4  # tasks: when no cell moves more in a sweep, they fit
STEP, GROWTH, STEPS = 0.005, 1.12, 40  # of a total: costs rise with each step away from it, and steps grow


def nearest(wanted: Table, open_cells: NDArray[np.bool_], limits: Sequence[Limit]) -> tuple[Table, int]:
    """The table that is nearest to `wanted` on open cells and within the limits; and how many whole tasks that can be."""
    cells = np.flatnonzero(open_cells)
    within = [Limit(limit.label[cells], limit.most) for limit in limits]
    start = wanted.ravel()[cells]
    found, size = np.zeros(wanted.size), 0.0
    if np.isclose(start.sum(), wanted.sum()) and all((li.sums(start) <= li.most + 1e-9).all() for li in within):
        found[cells], size = start, wanted.sum()
    elif len(cells):
        where = np.unravel_index(cells, wanted.shape)
        labels = [where[axis].astype(np.int64) for axis in AXES]
        totals = attainable_totals([marginal(wanted, (axis,)).ravel() for axis in AXES], labels, within)
        found[cells], size = fit(start, labels, totals, within), totals[0].sum()
    return np.round(found, 6).reshape(wanted.shape), math.floor(size + 1e-3)


def attainable_totals(goals: list[Table], labels: list[Ints], limits: Sequence[Limit]) -> list[Table]:
    """The totals of each axis that are nearest to `goals`, earlier ones of PRIORITY first. labels [cells], per axis: key."""
    from scipy.optimize import linprog
    from scipy.sparse import block_array, csr_array, eye_array, kron

    n, goal = len(labels[0]), np.concatenate(goals)
    steps = len(goal) * (STEPS + 1)
    sums = _sums(labels, [len(axis) for axis in goals])
    off = kron(eye_array(len(goal)), np.ones((1, STEPS + 1)), format="csr")  # each goal's steps under it, and over it
    everything, short = csr_array(np.ones((1, n))), csr_array(np.ones((1, 1)))
    width = np.outer(goal, STEP * GROWTH ** np.arange(STEPS + 1))
    width[:, -1] = np.inf
    weight = np.concatenate([np.full(len(axis), 8.0 ** -PRIORITY.index(a)) for a, axis in enumerate(goals)])
    cost = np.outer(weight, np.linspace(1, 2, STEPS + 1)).ravel()
    most = np.concatenate([li.most for li in limits])
    solved = linprog(
        np.concatenate([np.zeros(n), cost, cost, [100.0]]),
        A_ub=block_array(
            [[_sums([li.label for li in limits], [len(li.most) for li in limits]), _none(most, 2 * steps + 1)]]
        ),
        b_ub=most,
        A_eq=block_array([[sums, off, -off, None], [everything, None, None, short]], format="csr"),
        b_eq=np.append(goal, goals[0].sum()),
        bounds=np.column_stack(
            [np.zeros(n + 2 * steps + 1), np.concatenate([np.full(n, np.inf), *[width.ravel()] * 2, [np.inf]])]
        ),
        method="highs",
    )
    cells = np.maximum(solved.x[:n], 0)
    return [
        np.bincount(label, cells, minlength=len(axis)).round(6).astype(float)
        for label, axis in zip(labels, goals, strict=True)
    ]


def _none(rows: NDArray[Any], columns: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array((len(rows), columns))


def _sums(labels: Sequence[Ints], groups: Sequence[int]) -> Any:
    """Sparse [all groups, cells] of ones: which cells each group has. Label -1 is in none."""
    from scipy.sparse import csr_array

    first = np.cumsum([0, *groups])
    row = np.concatenate([np.where(label >= 0, label + start, -1) for label, start in zip(labels, first, strict=False)])
    column = np.tile(np.arange(len(labels[0])), len(labels))
    inside = row >= 0
    return csr_array((np.ones(inside.sum()), (row[inside], column[inside])), shape=(int(first[-1]), len(labels[0])))


def fit(start: Table, labels: list[Ints], totals: list[Table], limits: Sequence[Limit]) -> Table:
    """The cells nearest to `start` in relative entropy with these totals of the axes, within the limits; all flat [cells].

    Each step scales groups of cells, so that their sum is right. A limit's factor is at most 1 and is taken back as far as
    it is no longer needed.
    """
    groups = [limit.label + 1 for limit in limits]  # 0: in none
    most = [np.append(np.inf, limit.most) for limit in limits]
    cells, factors = start, [np.ones(len(bound)) for bound in most]
    for _ in range(SWEEPS):
        before = cells
        for axis in reversed(PRIORITY):
            have = np.bincount(labels[axis], cells, minlength=len(totals[axis]))
            cells = cells * _ratio(totals[axis], have)[labels[axis]]
        for k, (group, bound) in enumerate(zip(groups, most, strict=True)):
            ratio = _ratio(bound, np.bincount(group, cells, minlength=len(bound)))
            now = np.clip(factors[k] * ratio, 1e-12, 1.0)
            cells, factors[k] = cells * (now / factors[k])[group], now
        if np.abs(cells - before).max() < CLOSE:
            break
    return cells


def _ratio(wanted: NDArray[Any], have: NDArray[Any]) -> Table:
    return wanted / np.maximum(have, 1e-300)
