"""One-to-one matching, where the order of answers does not count."""

from __future__ import annotations

from collections.abc import Callable


def all_met(n: int, meets: Callable[[int, int], bool]) -> bool:
    """Whether n wanted and n given things pair up, each with one that `meets(wanted, given)`: Hopcroft and Karp 1973."""
    from networkx import Graph
    from networkx.algorithms.bipartite import hopcroft_karp_matching

    edges = [[j for j in range(n) if meets(i, j)] for i in range(n)]
    if not all(edges):
        return False
    graph = Graph((i, -1 - j) for i, row in enumerate(edges) for j in row)
    return len(hopcroft_karp_matching(graph, range(n))) == 2 * n
