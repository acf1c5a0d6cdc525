"""Where 50,000 concepts go on a page: each domain is a round tree, its roots in the middle, one ring of area per level.

A subtree has a wedge as wide as its share of the leaves (radial drawing, P. Eades: Drawing free trees, 1992), a ring is
as thick as its dots need, and neighbours in a ring stand at depths that follow the golden ratio, which spreads them
evenly. So a concept is close to its children, distance from the middle is level, and the density is about the same
everywhere. A concept with several parents stands in the wedge of the deepest one of its own domain; one that has none of
its domain gets a wedge of its own. The same graph always gives the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgsynth.store import Skeleton

LEAF, SHRINK = 1.0, 0.5  # radius of the finest dots, and what remains of the excess of a root's per level
ROOM = 3.4  # area that a dot has to itself, in squares of its radius plus the gap around it
GOLDEN = (5**0.5 - 1) / 2
MARGIN = 1.08  # of a domain's radius: how close its neighbours may come
ANGLES, LAST, WIDE = 180, 24, 1.4  # where domains are tried

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """Places in the plane; one unit is the radius of the finest dots."""

    x: Floats  # [N]
    y: Floats  # [N]
    size: Floats  # [N] radius of the dot
    tree: Rows  # [N] row of the parent in whose wedge it stands, -1 for none
    domains: dict[str, tuple[float, float, float]]  # centre x, y and radius of each domain, in order of insertion


def radial(graph: Skeleton) -> Layout:
    """Lay a graph out in O(N log N); under a second for 50,000 concepts."""
    levels = graph.levels.astype(np.int64)
    root, gap = _scale(len(levels))
    size: Floats = (LEAF + (root - LEAF) * SHRINK**levels).astype(np.float64)
    domains = list(dict.fromkeys(graph.domains))
    number = {domain: i for i, domain in enumerate(domains)}
    domain = np.array([number[d] for d in graph.domains], np.int64)
    tree = _tree(graph, domain)
    turn = _turns(tree, levels, domain, len(domains))
    depth, reach = _depths(turn, levels, domain, ROOM * (size + gap) ** 2, len(domains))
    middles = _beside(reach * MARGIN)
    at = middles[domain] + depth * np.exp(2j * np.pi * turn)
    xs, ys, radii = middles.real.tolist(), middles.imag.tolist(), reach.tolist()
    discs = {domains[i]: (xs[i], ys[i], radii[i]) for i in range(len(domains))}
    return Layout(x=at.real, y=at.imag, size=size, tree=tree, domains=discs)


def _scale(n: int) -> tuple[float, float]:
    """Radius of a root's dot, and the gap around every dot: a page with fewer dots has them smaller and further apart."""
    doublings = float(np.log2(max(n, 1)))
    return min(8.0, max(2.0, doublings / 2)), max(0.6, 6.0 - doublings / 3)


def _tree(graph: Skeleton, domain: Rows) -> Rows:
    """For every row the deepest parent of its own domain, the first one of several, -1 for none."""
    within = np.flatnonzero(domain[graph.parents] == domain[graph.children])
    parents, children = graph.parents[within], graph.children[within]
    best_last = np.lexsort((-np.arange(len(parents)), graph.levels[parents]))
    tree = np.full(len(domain), -1, np.int64)
    tree[children[best_last]] = parents[best_last]
    return tree


def _turns(tree: Rows, levels: Rows, domain: Rows, domains: int) -> Floats:
    """[N] The middle of every concept's wedge, in turns about its domain. Siblings follow each other as inserted."""
    width = np.where(np.bincount(tree[tree >= 0], minlength=len(tree)) > 0, 0.0, 1.0)  # in leaves
    layers = _groups(levels)
    for rows in reversed(layers):
        inner = rows[tree[rows] >= 0]
        np.add.at(width, tree[inner], width[inner])
    tops = np.flatnonzero(tree < 0)
    tops = tops[np.argsort(domain[tops], kind="stable")]
    start = np.zeros(len(tree))
    start[tops] = _running(width[tops], domain[tops])
    for rows in layers:
        rows = rows[tree[rows] >= 0]
        rows = rows[np.argsort(tree[rows], kind="stable")]
        start[rows] = start[tree[rows]] + _running(width[rows], tree[rows])
    return (start + width / 2) / np.bincount(domain[tops], width[tops], domains)[domain]


def _depths(turn: Floats, levels: Rows, domain: Rows, room: Floats, domains: int) -> tuple[Floats, Floats]:
    """[N] distance of every concept from the middle of its domain, and [D] how far out each domain reaches.

    `room` [N] is the area that each concept takes up.
    """
    rings = int(levels.max(initial=0)) + 1
    ring = domain * rings + levels
    area = np.bincount(ring, room, domains * rings).reshape(domains, rings)
    outer = np.sqrt(np.cumsum(area, axis=1) / np.pi).ravel()
    inner = np.sqrt(np.maximum(outer**2 - area.ravel() / np.pi, 0.0))
    order = np.lexsort((turn, ring))
    place = np.empty(len(turn), np.int64)
    place[order] = _running(np.ones(len(turn)), ring[order])
    share = np.modf(place * GOLDEN + 0.5)[0]
    depth = np.sqrt(inner[ring] ** 2 + share * (outer[ring] ** 2 - inner[ring] ** 2))
    alone = np.bincount(ring, minlength=domains * rings)[ring] == 1
    depth[alone & (inner[ring] == 0)] = 0.0  # a single root is the middle
    return depth, outer.reshape(domains, rings)[:, -1]


def _beside(radii: Floats) -> NDArray[np.complex128]:
    """Centres of discs that do not overlap: the largest in the middle, each next one at the nearest free place that touches
    one of the last few. Places to the sides count as nearer, as a page is wider than high."""
    centres = np.zeros(len(radii), np.complex128)
    order = np.argsort(-radii, kind="stable")
    around = np.exp(2j * np.pi * np.arange(ANGLES) / ANGLES)
    for n, i in enumerate(order.tolist()):
        placed = order[:n]
        if n:
            touching = [centres[j] + (radii[j] + radii[i]) * around for j in placed[-LAST:]]
            outside = ((np.abs(centres[placed]) + radii[placed]).max() + radii[i]) * around
            spots = np.concatenate([*touching, outside])
            free = (np.abs(spots[:, None] - centres[placed]) >= (radii[placed] + radii[i]) * (1 - 1e-9)).all(axis=1)
            spots = spots[free]
            centres[i] = spots[np.hypot(spots.real / WIDE, spots.imag).argmin()]
    return centres


def _groups(keys: Rows) -> list[Rows]:
    """The rows of each key, in ascending order of keys."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(keys) else []


def _running(values: Floats, groups: Rows) -> Floats:
    """Sums of the values before each one within its group; rows of a group stand together."""
    before = np.cumsum(values) - values
    first = np.flatnonzero(np.r_[True, np.diff(groups) != 0]) if len(groups) else np.zeros(0, np.int64)
    return before - np.repeat(before[first], np.diff(np.r_[first, len(groups)]))
