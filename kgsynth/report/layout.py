"""Where the nodes of a layered graph go: barycenter sweeps (Sugiyama, Tagawa and Toda, 1981), deterministic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

PER_ROW = 28  # nodes side by side, more in large graphs; a level with more is wrapped into several rows of one band
BAND = 1.0  # distance between bands
SWEEPS = 12  # even, so that the last one puts parents above their children

Neighbours = dict[str, list[str]]


def layered(levels: Mapping[str, int], edges: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """(x, y) of every node; y grows downwards with the level. Edges lead from lower to higher levels."""
    parents, children = _neighbours(levels, edges)
    layers: list[list[str]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for node in _depth_first(levels, children):
        layers[levels[node]].append(node)
    per_row = max(PER_ROW, math.isqrt(5 * max(map(len, layers), default=0)))
    rows = [max(1, math.ceil(len(layer) / per_row)) for layer in layers]
    x = {node: k / n for layer, n in zip(layers, rows, strict=True) for k, node in enumerate(layer)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near, order = (parents, range(1, len(layers))) if down else (children, range(len(layers) - 2, -1, -1))
        for level in order:
            _place(layers[level], x, near, gap=1 / rows[level])
    return {node: (x[node], y) for node, y in _depths(layers, rows)}


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """The positions nearest to `wanted` (ascending) that lie at least `gap` apart, in least squares.

    Isotonic regression of wanted[i] - i * gap, by pooling adjacent violators (Barlow et al., 1972).
    """
    blocks: list[tuple[float, int]] = []  # mean, size
    for i, value in enumerate(wanted):
        mean, size = value - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean, size = (before * n + mean * size) / (n + size), n + size
        blocks.append((mean, size))
    pooled = [mean for mean, size in blocks for _ in range(size)]
    return [value + i * gap for i, value in enumerate(pooled)]


def _place(layer: list[str], x: dict[str, float], near: Neighbours, *, gap: float) -> None:
    """Order a layer by the mean position of its neighbours, and put it there as closely as the gap allows."""
    wanted = {n: sum(x[m] for m in near[n]) / len(near[n]) if near[n] else x[n] for n in layer}
    layer.sort(key=wanted.__getitem__)
    x.update(zip(layer, spread([wanted[n] for n in layer], gap), strict=True))


def _depths(layers: list[list[str]], rows: list[int]) -> Iterable[tuple[str, float]]:
    """Bands below each other. Rows within bands get at most about half of the height, the rest is for the edges."""
    row, top = min(0.4, BAND * len(rows) / max(1, sum(rows) - len(rows))), 0.0
    for layer, n in zip(layers, rows, strict=True):
        yield from ((node, top + k % n * row) for k, node in enumerate(layer))
        top += (n - 1) * row + BAND


def _neighbours(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[Neighbours, Neighbours]:
    parents: Neighbours = {node: [] for node in nodes}
    children: Neighbours = {node: [] for node in parents}
    for parent, child in edges:
        parents[child].append(parent)
        children[parent].append(child)
    return parents, children


def _depth_first(nodes: Iterable[str], children: Neighbours) -> list[str]:
    """All nodes, each after one of its parents and next to its siblings."""
    seen: dict[str, None] = {}
    for start in nodes:
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen[node] = None
                stack += reversed(children[node])
    return list(seen)
