"""Cycles and levels, worked out from the edges alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from kgsynth.doctor.patch import Finding, changing, removing
from kgsynth.doctor.survey import Survey

Edge = tuple[int, int, int]  # (parent, child, position in the survey's columns)
SHOWN = 12  # concepts of a cycle that are named


def cycles(survey: Survey) -> Iterator[Finding]:
    """One finding per group of concepts that reach each other. Each of its cycles is opened at the edge with the fewest
    quotes, of these the newest."""
    for group in _groups(survey):
        way, cut = _opened(survey, group)
        names = [survey.name(survey.ids[place]) for place in (*way[:SHOWN], way[0])]
        more = f" (a group of {len(group)} concepts that reach each other)" if len(group) > len(way) else ""
        refs = tuple(("edge", survey.edge_n[e]) for e in cut)
        yield Finding(
            kind="cycle", what=f"{' -> '.join(names)} is a cycle{more}", rows=refs,
            repair="the edge of each cycle with the fewest quotes, of these the newest, is removed", fix=removing(*refs),
        )  # fmt: skip


def levels(survey: Survey) -> Iterator[Finding]:
    """As they are without the edges that close cycles."""
    cut = {e for group in _groups(survey) for e in _opened(survey, group)[1]}
    right = _levels(survey, cut)
    for place, (found, wanted) in enumerate(zip(survey.level, right, strict=True)):
        if wanted not in (found, None):
            ref = survey.ref(survey.ids[place])
            yield Finding(
                kind="wrong-level", what=f"{survey.name(survey.ids[place])} is on level {wanted}, not {found}",
                rows=(ref,), repair="levels are worked out again from the edges", fix=changing(ref, level=wanted),
            )  # fmt: skip


def _groups(survey: Survey) -> list[nx.DiGraph]:
    """Strongly connected parts of more than one concept, with the position of every edge as `e`."""
    left = {place for place, level in enumerate(_levels(survey, set())) if level is None}
    graph: nx.DiGraph = nx.DiGraph()
    for e, (parent, child) in enumerate(zip(survey.parent, survey.child, strict=True)):
        if parent in left and child in left and parent != child:
            graph.add_edge(parent, child, e=e)
    return [graph.subgraph(part).copy() for part in nx.strongly_connected_components(graph) if len(part) > 1]


def _opened(survey: Survey, group: nx.DiGraph) -> tuple[list[int], list[int]]:
    """(the places of one cycle, the edges without which there is none left)."""
    group, first, cut = group.copy(), [], []
    while way := _cycle(group):
        first = first or [parent for parent, _ in way]
        parent, child = min(way, key=lambda ends: _strength(survey, group.edges[ends]["e"]))
        cut.append(group.edges[parent, child]["e"])
        group.remove_edge(parent, child)
    return first, cut


def _cycle(graph: nx.DiGraph) -> list[tuple[int, int]]:
    try:
        return nx.find_cycle(graph)
    except nx.NetworkXNoCycle:
        return []


def _strength(survey: Survey, e: int) -> tuple[int, int]:
    return survey.spans[e], -survey.edge_n[e]


def _levels(survey: Survey, without: set[int]) -> Sequence[int | None]:
    """The longest path from a root to each place (Kahn 1962); None on a cycle and below one."""
    below: list[list[int]] = [[] for _ in survey.ids]
    above = [0] * len(survey.ids)
    for e, (parent, child) in enumerate(zip(survey.parent, survey.child, strict=True)):
        if parent != child and e not in without:
            below[parent].append(child)
            above[child] += 1
    level = [0] * len(survey.ids)
    ready = [place for place, count in enumerate(above) if not count]
    for place in ready:
        for child in below[place]:
            level[child] = max(level[child], level[place] + 1)
            above[child] -= 1
            if not above[child]:
                ready.append(child)
    return [None if above[place] else level[place] for place in range(len(level))]
