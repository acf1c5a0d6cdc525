"""What `graph_scale.py` compares with: other ways to keep the same graph acyclic. All in memory, with nothing made durable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import networkx as nx

from kgsynth.concept import Edge
from kgsynth.store import Skeleton, dag

Pair = tuple[str, str]


def pairs_of(skeleton: Skeleton) -> Iterator[Pair]:
    ids = skeleton.ids
    return ((ids[p], ids[c]) for p, c in zip(skeleton.parents.tolist(), skeleton.children.tolist(), strict=True))


class Guard:
    """Our own check and levels (`kgsynth/store/dag.py`) over dicts, to tell what they cost from what a store does."""

    name, up_to = "our guard on dicts", 1_000_000

    def __init__(self, skeleton: Skeleton) -> None:
        self.level = dict(zip(skeleton.ids, skeleton.levels.tolist(), strict=True))
        self.children: dict[str, dag.Ids] = {i: {} for i in skeleton.ids}
        self.parents: dict[str, dag.Ids] = {i: {} for i in skeleton.ids}
        for parent, child in pairs_of(skeleton):
            self.children[parent][child] = self.parents[child][parent] = None

    def need_children(self, ids: Collection[str]) -> None: ...

    def need_parents(self, ids: Collection[str]) -> None: ...

    def set_level(self, concept_id: str, level: int) -> None:
        self.level[concept_id] = level

    def link(self, edge: Edge) -> bool:
        if dag.closes(self, edge.parent, edge.child):
            return False
        self.children[edge.parent][edge.child] = self.parents[edge.child][edge.parent] = None
        dag.raise_levels(self, edge.parent, edge.child)
        return True


class Networkx:
    """networkx alone: a DiGraph that is asked for a path before each edge. It knows no levels."""

    name, up_to = "networkx, has_path", 1_000_000

    def __init__(self, skeleton: Skeleton) -> None:
        self.graph = nx.DiGraph(pairs_of(skeleton))

    def link(self, edge: Edge) -> bool:
        if nx.has_path(self.graph, edge.child, edge.parent):
            return False
        self.graph.add_edge(edge.parent, edge.child)
        return True

    def insert(self, edges: Iterable[Edge]) -> None:
        self.graph.add_edges_from((edge.parent, edge.child) for edge in edges)

    def merge(self, keep: str, fold: str) -> bool:
        """Fold one node into another unless something is between the two."""
        ways = ((there, goal) for here, goal in ((keep, fold), (fold, keep)) for there in self.graph.successors(here))
        if any(there != goal and nx.has_path(self.graph, there, goal) for there, goal in ways):
            return False
        nx.contracted_nodes(self.graph, keep, fold, self_loops=False, copy=False)
        return True


class NetworkxChecked(Networkx):
    """The same with the whole graph checked after each edge, which is taken out again if it must be."""

    name, up_to = "networkx, is_directed_acyclic_graph", 100_000

    def link(self, edge: Edge) -> bool:
        self.graph.add_edge(edge.parent, edge.child)
        if nx.is_directed_acyclic_graph(self.graph):
            return True
        self.graph.remove_edge(edge.parent, edge.child)
        return False


class WholeGraph:
    """For every edge a view is built of all edges, must be acyclic as a whole, and depths are the shortest paths from ten
    roots: the pattern of the open KGTS (github.com/lawsonX/kgts). The code is ours."""

    name, up_to = "whole-graph check", 10_000

    def __init__(self, skeleton: Skeleton) -> None:
        self.pairs = list(pairs_of(skeleton))

    def link(self, edge: Edge) -> bool:
        view = nx.DiGraph([*self.pairs, (edge.parent, edge.child)])
        if not nx.is_directed_acyclic_graph(view):
            return False
        self.pairs.append((edge.parent, edge.child))
        for root in [node for node, above in view.in_degree() if above == 0][:10]:
            nx.single_source_shortest_path_length(view, root)
        return True


ALL = (Guard, Networkx, NetworkxChecked, WholeGraph)
