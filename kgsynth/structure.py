"""Who is above and below whom: a whole graph's edges in memory, in about 60 bytes per concept.

The edges of a `Skeleton` as compressed sparse rows, once by parent and once by child; ids are found by bisection. What changed
since is kept beside them, as whole lists of neighbours, so that nothing large is ever rebuilt for a small change.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kgsynth.errors import StoreError

if TYPE_CHECKING:
    from kgsynth.store import Skeleton

Pair = tuple[str, str]  # (parent, child)
Rows = NDArray[np.int32]
LONG = 100  # neighbours that are read again as a whole
LITTLE = 1000  # changes that are kept beside the arrays of even the smallest graph


class Structure:
    """A directed graph of ids. Neighbours keep the order in which their edges were inserted."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.op = skeleton.op
        self.edges = len(skeleton.parents)  # how many there are
        self._up = Neighbours(len(skeleton.ids), skeleton.children, skeleton.parents)
        self._down = Neighbours(len(skeleton.ids), skeleton.parents, skeleton.children)
        self._ids = np.array(skeleton.ids, "S")  # row -> id
        self._sorted = np.argsort(self._ids)  # rows, by id
        self._new: dict[str, int] = {}  # ids that came later -> row
        self._new_ids: list[str] = []
        self._gone: set[int] = set()  # rows of concepts that are no more
        self.long = LONG
        self._heights: dict[int, int] = {}  # row -> longest path to a leaf, as far as it was asked for

    def __len__(self) -> int:
        return len(self._ids) + len(self._new) - len(self._gone)

    def __contains__(self, concept_id: str) -> bool:
        row = self._row(concept_id)
        return row is not None and row not in self._gone

    def parents(self, concept_id: str) -> list[str]:
        return self._near(concept_id, self._up)

    def children(self, concept_id: str) -> list[str]:
        return self._near(concept_id, self._down)

    def ancestors(self, concept_id: str) -> list[str]:
        """Every id above, nearest first, each once."""
        return self._reached(concept_id, self._up)

    def descendants(self, concept_id: str) -> list[str]:
        """Every id below, nearest first, each once."""
        return self._reached(concept_id, self._down)

    def path(self, start: str, goal: str, *, direct: bool = True) -> tuple[str, ...]:
        """A shortest way start -> ... -> goal, or () when there is none; (start,) when they are one.

        direct: whether the edge start -> goal itself counts.
        """
        first, last = self._row(start), self._row(goal)
        if first is None or last is None or first == last:
            return (start,) if start == goal else ()
        below: dict[int, int] = {}  # row -> the next one on its way to the goal
        rim = [last]
        while rim and first not in below:
            steps = [(above, here) for here in rim for above in self._up.of(here)]
            steps = [step for step in steps if step[0] not in below and (direct or step != (first, last))]
            below |= dict(reversed(steps))
            rim = list(dict.fromkeys(above for above, _ in steps))
        way = [first] if first in below else []
        while way and way[-1] != last:
            way.append(below[way[-1]])
        return tuple(map(self._id, way))

    def roots(self) -> list[str]:
        rows = self._up.without(len(self._ids) + len(self._new))
        return [self._id(row) for row in rows if row not in self._gone]

    def height(self, concept_id: str) -> int:
        """Longest path to a leaf, in edges. Raises StoreError when it would never end."""
        heights, row = self._heights, self._row(concept_id)
        path, todo = set[int](), [row] if row is not None else []
        while todo:
            here = todo[-1]
            below = self._down.of(here)
            if unknown := [there for there in below if there not in heights]:
                path.add(here)
                if not path.isdisjoint(unknown):
                    raise StoreError(f"{concept_id} is above a cycle, so it has no height; run `kgsynth doctor`")
                todo += unknown
            else:
                heights[here] = max((heights[there] + 1 for there in below), default=0)
                path.discard(todo.pop())
        return heights[row] if row is not None else 0

    # what changed

    def around(self, changed: Iterable[Pair], *, whole: bool = False) -> set[Pair]:
        """Changed edges with those that tell their place: all others out of the same parents and into the same children, or,
        unless `whole`, just the ones next to them and the last one where there are more than LONG.
        """
        asked = set(changed)
        down = _grouped((self._known(p), self._known(c)) for p, c in asked)
        up = _grouped((self._known(c), self._known(p)) for p, c in asked)
        most = self.long if not whole else 1 << 60
        asked |= {(self._id(p), self._id(c)) for p, some in down.items() for c in _beside(self._down.of(p), some, most)}
        asked |= {(self._id(p), self._id(c)) for c, some in up.items() for p in _beside(self._up.of(c), some, most)}
        return asked

    def take(
        self,
        changed: Iterable[Pair],
        asked: Iterable[Pair],
        there: Iterable[Pair],
        *,
        gone: Iterable[str] = (),
        came: Iterable[str] = (),
    ) -> bool:
        """Follow a change of the graph. changed: edges that were inserted, altered or removed; asked: `around` them; there:
        those of `asked` that exist, in the order of insertion; gone and came: altered concepts, by whether they exist now.

        Returns False, with nothing done, when what was asked does not tell where an edge belongs: ask for `whole` lists.
        """
        pairs = [[(self._known(p), self._known(c)) for p, c in some] for some in (changed, asked, there)]
        down = _replaced(self._down, *pairs)
        up = _replaced(self._up, *([(c, p) for p, c in some] for some in pairs))
        if down is None or up is None:
            return False
        self.edges += sum(len(now) - len(self._down.of(row)) for row, now in down.items())
        self._down.changed |= down
        self._up.changed |= up
        self._gone |= {row for i in gone if (row := self._row(i)) is not None}
        self._gone -= {self._known(i) for i in came}
        self._heights.clear()
        return True

    def is_worn(self, more: int = 0) -> bool:
        """Whether so much is kept beside the arrays, or would be with `more`, that they are better read anew."""
        kept = len(self._down.changed) + len(self._up.changed) + len(self._new)
        return kept + more > max(LITTLE, len(self) // 4)

    # rows

    def _reached(self, concept_id: str, side: Neighbours) -> list[str]:
        start = self._row(concept_id)
        rim = [start] if start is not None else []
        found = dict.fromkeys(rim)
        while rim:
            rim = [row for row in dict.fromkeys(chain.from_iterable(map(side.of, rim))) if row not in found]
            found |= dict.fromkeys(rim)
        return [self._id(row) for row in found if row != start]

    def _near(self, concept_id: str, side: Neighbours) -> list[str]:
        row = self._row(concept_id)
        return [self._id(there) for there in side.of(row)] if row is not None else []

    def _row(self, concept_id: str) -> int | None:
        if (row := self._new.get(concept_id)) is not None or not len(self._ids):
            return row
        key = concept_id.encode()
        at = int(np.searchsorted(self._ids, key, sorter=self._sorted))
        return row if at < len(self._ids) and self._ids[row := int(self._sorted[at])] == key else None

    def _known(self, concept_id: str) -> int:
        """The row of an id; a new one, of no concept until it is said that one came, if need be."""
        if (row := self._row(concept_id)) is None:
            row = self._new[concept_id] = len(self._ids) + len(self._new_ids)
            self._new_ids.append(concept_id)
            self._gone.add(row)
        return row

    def _id(self, row: int) -> str:
        return self._ids[row].decode() if row < len(self._ids) else self._new_ids[row - len(self._ids)]


class Neighbours:
    """One direction of the edges, from row to rows."""

    def __init__(self, rows: int, start: Rows, end: Rows) -> None:
        self._ends = end[np.argsort(start, kind="stable")].astype(np.int32)  # by start, then in the order of insertion
        self._first = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=rows))]).astype(np.int32)
        self.changed: dict[int, list[int]] = {}  # rows whose neighbours are these instead

    def of(self, row: int) -> list[int]:
        if (found := self.changed.get(row)) is None:
            found = self._ends[self._first[row] : self._first[row + 1]].tolist() if row < len(self._first) - 1 else []
        return found

    def without(self, rows: int) -> list[int]:
        """Those of the first `rows` rows that have no neighbours."""
        none = np.ones(rows, bool)
        none[: len(self._first) - 1] = np.diff(self._first) == 0
        none[list(self.changed)] = [not found for found in self.changed.values()]
        return np.flatnonzero(none).tolist()


def _grouped(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for here, there in pairs:
        found.setdefault(here, []).append(there)
    return found


def _beside(neighbours: list[int], some: list[int], most: int) -> list[int]:
    """All neighbours if they are at most so many, else the last and those next to `some`."""
    if len(neighbours) <= most:
        return neighbours
    at = [neighbours.index(row) for row in set(some).intersection(neighbours)]
    return [neighbours[-1], *(neighbours[i] for k in at for i in (k - 1, k + 1) if 0 <= i < len(neighbours))]


def _replaced(
    side: Neighbours, changed: list[tuple[int, int]], asked: list[tuple[int, int]], there: list[tuple[int, int]]
) -> dict[int, list[int]] | None:
    """Row -> its neighbours now, for the starts of changed edges; None when the order cannot be told."""
    all_asked, all_there, found = _grouped(asked), _grouped(there), dict[int, list[int]]()
    for row in dict.fromkeys(here for here, _ in changed):
        order, old = all_there.get(row, []), side.of(row)
        exist, unsure = set(order), set(all_asked[row])
        kept = [other for other in old if other in exist or other not in unsure]
        known = exist.intersection(kept)
        now = kept + [other for other in order if other not in known]
        if unsure.issuperset(kept):
            now = order
        elif [other for other in now if other in exist] != order:
            return None
        found[row] = now
    return found


def count_cycles(skeleton: Skeleton) -> int:
    """Strongly connected groups of several concepts, and self-loops: 0 exactly when the graph is acyclic.

    From the edges alone. What has no parent left is taken away again and again (Kahn 1962); networkx looks at the rest.
    """
    start, end = skeleton.parents, skeleton.children
    down, above = Neighbours(len(skeleton.ids), start, end), np.bincount(end, minlength=len(skeleton.ids))
    free = np.flatnonzero(above == 0).tolist()
    left = above.tolist()
    for here in free:
        for there in down.of(here):
            left[there] -= 1
            if left[there] == 0:
                free.append(there)
    inside = np.ones(len(skeleton.ids), bool)
    inside[free] = False
    on = inside[start] & inside[end]
    rest: nx.DiGraph = nx.DiGraph()
    rest.add_edges_from(zip(start[on].tolist(), end[on].tolist(), strict=True))
    groups = sum(len(group) > 1 for group in nx.strongly_connected_components(rest))
    return groups + nx.number_of_selfloops(rest)
