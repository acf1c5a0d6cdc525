"""Tables over the five axes, what there is to fill them with, and limits on groups of their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Table = NDArray[np.float64]  # [domains, types, granularities, scopes, difficulties], tasks

DOMAIN, TYPE, GRANULARITY, SCOPE, DIFFICULTY = AXES = (0, 1, 2, 3, 4)
PRIORITY = (TYPE, GRANULARITY, DOMAIN, SCOPE, DIFFICULTY)  # whose totals are met first where not all can be


@dataclass(frozen=True, kw_only=True)
class Lots:
    """What there is to make tasks of. A lot is a concept's material for one type.

    place [lots, 3]: domain, type, granularity; scopes [lots, scopes]: which of them the concept can take part in; size [lots]:
    tasks; raw [lots]: the same before the cap per concept; concept [lots] and source [concepts]: row numbers, -1 for no source.
    """

    place: Ints
    scopes: NDArray[np.bool_]
    size: Ints
    raw: Ints
    concept: Ints
    source: Ints
    per_concept_total: int = 0  # tasks of all types; 0: no cap
    per_source: int = 0

    def rows(self, shape: tuple[int, ...]) -> Ints:
        """[lots]: number of the (domain, type, granularity) of each."""
        return np.asarray(np.ravel_multi_index(tuple(self.place.T), shape[:3]), np.int64)

    def room(self, shape: tuple[int, ...], *, raw: bool = False) -> Ints:
        """[domains, types, granularities, scopes]: tasks that could be made if no other scope wanted any."""
        found = np.zeros((int(np.prod(shape[:3])), shape[SCOPE]), np.int64)
        np.add.at(found, self.rows(shape), self.scopes * (self.raw if raw else self.size)[:, None])
        return found.reshape(shape[:4])


class Limit(NamedTuple):
    """Disjoint groups of cells, and how many tasks each group can have together. label [cells]: group, -1 for none."""

    label: Ints
    most: Ints

    def sums(self, cells: NDArray[Any]) -> NDArray[Any]:
        inside = self.label >= 0
        return np.bincount(self.label[inside], cells[inside], minlength=len(self.most))


def marginal(table: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    """Sums over all other axes, which are kept with length 1."""
    return table.sum(axis=tuple(a for a in AXES if a not in axes), keepdims=True)
