"""Who is above and below whom, in memory: what the cycle check and the read views walk over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain


class Adjacency:
    """A directed graph of ids. `children[a]` and `parents[b]` keep the order of insertion (dicts used as ordered sets)."""

    def __init__(self, edges: Iterable[tuple[str, str]] = ()) -> None:
        self.children: dict[str, dict[str, None]] = {}
        self.parents: dict[str, dict[str, None]] = {}
        for parent, child in edges:
            self.add(parent, child)

    def add(self, parent: str, child: str) -> None:
        self.children.setdefault(parent, {})[child] = None
        self.parents.setdefault(child, {})[parent] = None

    def remove(self, parent: str, child: str) -> None:
        self.children[parent].pop(child)
        self.parents[child].pop(parent)

    def path(self, start: str, goal: str) -> tuple[str, ...]:
        """A shortest path start -> ... -> goal along children, or () when there is none; (start,) when they are one.

        Searches from both ends and always grows the smaller rim, so a leaf or a root at either end settles it at once.
        """
        if start == goal:
            return (start,)
        below: dict[str, str | None] = {start: None}  # id -> the id it was reached from, towards start
        above: dict[str, str | None] = {goal: None}  # the same, towards goal
        down, up = [start], [goal]
        while down and up:
            if len(down) <= len(up):
                down, met = _step(down, self.children, below, above)
            else:
                up, met = _step(up, self.parents, above, below)
            if met is not None:
                return (*reversed([*_trail(below, met)]), *_trail(above, above[met]))
        return ()

    def merge_path(self, keep: str, fold: str) -> tuple[str, ...]:
        """A path between the two with something in between, in either direction: the cycle that folding would close."""
        for start, goal in ((keep, fold), (fold, keep)):
            for child in self.children.get(start, ()):
                if child != goal and (path := self.path(child, goal)):
                    return (start, *path)
        return ()

    def reachable(self, start: str, neighbours: dict[str, dict[str, None]]) -> Iterator[str]:
        """Every id reached from start along `neighbours` (children or parents), without start, nearest first."""
        seen, rim = {start}, [start]
        while rim:
            rim = [n for n in dict.fromkeys(chain.from_iterable(neighbours.get(i, ()) for i in rim)) if n not in seen]
            seen.update(rim)
            yield from rim


def _step(
    rim: list[str], neighbours: dict[str, dict[str, None]], mine: dict[str, str | None], other: dict[str, str | None]
) -> tuple[list[str], str | None]:
    """Grow a rim by one edge. Returns the next rim, and the id where the two searches met, if they did."""
    grown = []
    for here in rim:
        for there in neighbours.get(here, ()):
            if there not in mine:
                mine[there] = here
                grown.append(there)
                if there in other:
                    return grown, there
    return grown, None


def _trail(came_from: dict[str, str | None], here: str | None) -> Iterator[str]:
    while here is not None:
        yield here
        here = came_from[here]
