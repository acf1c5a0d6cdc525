"""How the graph stays a DAG without being looked at as a whole: exact levels, kept up to date, are its topological order.

A concept's level is the longest path from a root to it, so every edge leads to a higher level. Hence:

* an edge whose parent is on a lower level than its child cannot close a cycle: accepted at once, no level changes;
* any other edge is searched for a way child -> ... -> parent from both ends in turn, the rim that promises less work, and
  only between the levels of the two: nothing outside can be on such a way;
* an accepted edge raises the levels below it, a removed one lowers them. Concepts are visited in the order of their old
  levels, which is a topological order of all that changes, so each is visited once.

The order is that of M. A. Bender, J. T. Fineman, S. Gilbert, R. E. Tarjan, "A new approach to incremental cycle detection and related
problems" (ACM Trans. Algorithms 12(2), 2016: searches bounded by levels), with exact levels in place of their capped ones, because
the graph shows them; these are maintained after I. Katriel, L. Michel, P. Van Hentenryck, "Maintaining longest paths
incrementally" (Constraints 10(2), 2005). Two-way search: B. Haeupler et al., "Incremental cycle detection, topological ordering, and strong
component maintenance" (ACM Trans. Algorithms 8(1), 2012). The price of exact levels: a new root above a large graph alters every level.

Neighbours are asked for in batches, one per step of a search: over a network a step is one round trip.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from kgsynth.errors import StoreError

Ids = dict[str, None]  # an ordered set
WIDER = 8  # so much wider than the lower rim of a search may the upper one get: few parents, but sometimes thousands of children


class Ordered(Protocol):
    """A graph with levels. `children[i]` may be read after `need_children` was called with i, and so on; so may the
    `level` of every id that was named or found."""

    level: dict[str, int]
    children: dict[str, Ids]
    parents: dict[str, Ids]

    def need_children(self, ids: Collection[str]) -> None: ...

    def need_parents(self, ids: Collection[str]) -> None: ...

    def set_level(self, concept_id: str, level: int) -> None: ...


def path(graph: Ordered, start: str, goal: str, *, direct: bool = True) -> tuple[str, ...]:
    """A shortest way start -> ... -> goal, or () when there is none; (start,) when they are one.

    direct: whether the edge start -> goal itself counts.
    """
    if start == goal:
        return (start,)
    level, top, bottom = graph.level, graph.level[start], graph.level[goal]
    if top >= bottom or not graph.children.get(start, True):  # a new concept has nothing below it
        return ()
    below: dict[str, str | None] = {start: None}  # id -> the id it was reached from, towards start
    above: dict[str, str | None] = {goal: None}  # the same, towards goal
    down, up = [start], [goal]
    while down and up:
        if WIDER * len(down) < len(up):
            graph.need_children(down)
            steps = ((here, there) for here in down for there in graph.children[here])
            inside = ((here, there) for here, there in steps if level[there] < bottom or there == goal)
            mine, other = below, above
        else:
            graph.need_parents(up)
            steps = ((here, there) for here in up for there in graph.parents[here])
            inside = ((here, there) for here, there in steps if level[there] > top or there == start)
            mine, other = above, below
        rim, met = [], None
        for here, there in inside:
            if there in mine or (not direct and {here, there} == {start, goal}):
                continue
            mine[there] = here
            rim.append(there)
            if there in other:
                met = there
                break
        if met is not None:
            return (*reversed([*_trail(below, met)]), *_trail(above, above[met]))
        down, up = (rim, up) if mine is below else (down, rim)
    return ()


def merge_path(graph: Ordered, a: str, b: str) -> tuple[str, ...]:
    """A way between the two with something in between, in either direction: the cycle that folding them would close."""
    return path(graph, a, b, direct=False) or path(graph, b, a, direct=False)


def closes(graph: Ordered, parent: str, child: str) -> tuple[str, ...]:
    """The way child -> ... -> parent that makes an edge parent -> child illegal; () when it is legal."""
    return path(graph, child, parent)


def raise_levels(graph: Ordered, parent: str, child: str) -> None:
    """After parent -> child was added: the child and what is below it go down as far as the edge demands."""
    level = graph.level
    if level[child] > level[parent]:
        return
    todo = {level[child]: {child: level[parent] + 1}}  # old level -> id -> new level
    while todo:
        group = todo.pop(min(todo))
        graph.need_children(group)
        for here, new in group.items():
            for there in graph.children[here]:
                if level[there] <= new:
                    wanted = todo.setdefault(level[there], {})
                    wanted[there] = max(new + 1, wanted.get(there, 0))
        for here, new in group.items():
            graph.set_level(here, new)


def lower_levels(graph: Ordered, parent_level: int, child: str) -> None:
    """After an edge from a parent on `parent_level` to child was removed: what only it held down comes up."""
    level = graph.level
    if level[child] != parent_level + 1:
        return
    todo = {level[child]: {child: None}}  # old level -> ids
    while todo:
        old = min(todo)
        group = todo.pop(old)
        graph.need_parents(group)
        new = {here: max((level[up] + 1 for up in graph.parents[here]), default=0) for here in group}
        risen = [here for here in group if new[here] < old]
        graph.need_children(risen)
        for here in risen:
            graph.set_level(here, new[here])
            for there in graph.children[here]:
                if level[there] == old + 1:
                    todo.setdefault(old + 1, {})[there] = None


def levels_of(ids: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The levels of a whole graph, from scratch (Kahn 1962). Raises StoreError when a cycle keeps some from having one."""
    children: dict[str, list[str]] = {i: [] for i in ids}
    above = dict.fromkeys(children, 0)
    for parent, child in edges:
        children[parent].append(child)
        above[child] += 1
    level = {i: 0 for i, n in above.items() if n == 0}
    order = list(level)
    for here in order:
        for there in children[here]:
            level[there] = max(level.get(there, 0), level[here] + 1)
            above[there] -= 1
            if above[there] == 0:
                order.append(there)
    if len(order) < len(children):
        raise StoreError(
            f"{len(children) - len(order)} concepts are on a cycle or below one; run `kgsynth doctor` on the graph"
        )
    return level


def _trail(came_from: dict[str, str | None], here: str | None) -> Iterator[str]:
    while here is not None:
        yield here
        here = came_from[here]
