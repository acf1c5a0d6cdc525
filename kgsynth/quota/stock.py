"""Which concept a task is about: the one that was used least, within all caps."""

from __future__ import annotations

import heapq
from collections import Counter

from kgsynth.quota.table import SCOPE, Ints, Lots


class Stock:
    """What is left of the lots. Hands out the lot of a row (domain, type, granularity, scope) that was used least."""

    def __init__(self, lots: Lots, shape: tuple[int, ...]) -> None:
        self.lots, self.scopes = lots, shape[SCOPE]
        self._size, self._concept = lots.size.tolist(), lots.concept.tolist()
        self._source = lots.source[lots.concept].tolist() if len(lots.concept) else []
        self._lots_of = _grouped(lots.rows(shape))
        self.used, self._told, self._cited = [0] * len(self._size), Counter[int](), Counter[int]()
        self._heaps: dict[int, list[tuple[int, int, int]]] = {}

    def take(self, row: int) -> int:
        """The lot, which is used by this; -1 when there is none left."""
        if row not in self._heaps:
            place, scope = divmod(row, self.scopes)
            able = [lot for lot in self._lots_of.get(place, ()) if self.lots.scopes[lot, scope]]
            self._heaps[row] = sorted(map(self._key, able))
        heap = self._heaps[row]
        while heap:
            if not self._left(lot := heap[0][2]):
                heapq.heappop(heap)
            elif heap[0] != (now := self._key(lot)):
                heapq.heapreplace(heap, now)
            else:
                self.use(lot)
                return lot
        return -1

    def use(self, lot: int) -> None:
        self.used[lot] += 1
        self._told[self._concept[lot]] += 1
        self._cited[self._source[lot]] += 1

    def _key(self, lot: int) -> tuple[int, int, int]:
        return self.used[lot], self._told[self._concept[lot]], lot

    def _left(self, lot: int) -> bool:
        concept, source = self.lots.per_concept_total, self.lots.per_source if self._source[lot] >= 0 else 0
        return (
            self.used[lot] < self._size[lot]
            and not (concept and self._told[self._concept[lot]] >= concept)
            and not (source and self._cited[self._source[lot]] >= source)
        )


def _grouped(rows: Ints) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for lot, row in enumerate(rows.tolist()):
        found.setdefault(row, []).append(lot)
    return found
