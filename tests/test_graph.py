"""ConceptGraph: views, levels, operations; adjacency against networkx on random graphs."""

from __future__ import annotations

import random
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.concept import Concept, Edge, Source
from kgsynth.errors import CycleError, StoreError
from kgsynth.graph import ConceptGraph
from kgsynth.store import Change
from kgsynth.store.adjacency import Adjacency
from kgsynth.store.embedded import EmbeddedStore

PAGE = Source(url="https://example.org/", title="Trees", text="A heap is a tree. " * 9)


def concept(name: str, *, atomic: bool | None = None, aliases: tuple[str, ...] = (), sense: str = "") -> Concept:
    return Concept(name=name, domain="test", atomic=atomic, aliases=aliases, sense=sense)


ROOT, TREE, LIST, HEAP, LEAF = map(concept, ("structure", "tree", "list", "heap", "d-ary heap"))


@pytest.fixture
def graph() -> ConceptGraph:
    """structure -> tree -> heap -> d-ary heap, structure -> list -> heap, and structure -> d-ary heap."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    graph.add(ROOT)
    graph.add(TREE, [ROOT], sources=[PAGE], spans=[PAGE.span(0, 17)])
    graph.add(LIST, [ROOT.id])
    graph.add(HEAP, [TREE, LIST])
    graph.add(LEAF, [HEAP, ROOT])
    return graph


def names(concepts: list[Concept]) -> list[str]:
    return [c.name for c in concepts]


def test_views(graph: ConceptGraph) -> None:
    assert names(list(graph)) == ["structure", "tree", "list", "heap", "d-ary heap"]
    assert names(graph.children(ROOT)) == ["tree", "list", "d-ary heap"]
    assert names(graph.parents(HEAP.id)) == ["tree", "list"]
    assert names(graph.ancestors(LEAF)) == ["heap", "structure", "tree", "list"]
    assert names(graph.descendants(TREE)) == ["heap", "d-ary heap"]
    assert names(graph.roots()) == ["structure"]
    assert names(graph.find("Heaps")) == ["heap"]
    assert len(graph) == 5
    assert HEAP in graph
    assert HEAP.id in graph
    assert concept("other") not in graph
    edge = graph.edge(ROOT, TREE)
    assert edge is not None
    assert edge.spans == (PAGE.span(0, 17),)
    assert graph.edge(TREE, ROOT) is None


def test_levels_are_longest_paths(graph: ConceptGraph) -> None:
    assert [graph.level(c) for c in graph] == [0, 1, 1, 2, 3]
    assert [graph.height(c) for c in graph] == [3, 2, 2, 1, 0]
    graph.link(TREE, LIST)
    assert [graph.level(c) for c in graph] == [0, 1, 2, 3, 4]


def test_granularity(graph: ConceptGraph) -> None:
    assert [graph.granularity(c) for c in graph] == ["broad", "broad", "broad", "middle", "atomic"]
    graph.add(concept("list", atomic=True))
    assert graph.granularity(LIST) == "atomic", "judged so"


def test_an_unknown_concept_is_named(graph: ConceptGraph) -> None:
    for act in (graph.children, graph.level, graph.granularity, graph.ancestors):
        with pytest.raises(StoreError, match="c_nowhere"):
            act("c_nowhere")
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.link(ROOT, "c_nowhere")
    with pytest.raises(StoreError, match="c_nowhere"):
        graph.add(concept("new"), ["c_nowhere"])
    assert concept("new") not in graph


def test_cycles_are_refused_with_the_path(graph: ConceptGraph) -> None:
    before = graph.edges()
    with pytest.raises(CycleError) as caught:
        graph.link(LEAF, TREE)
    assert caught.value.path == (TREE.id, HEAP.id, LEAF.id)
    for parents in ([HEAP], [ROOT]):
        with pytest.raises(CycleError):
            graph.add(ROOT, parents)
    assert graph.edges() == before
    assert graph.stats().cycles == 0


def test_link_adds_spans_to_a_known_edge(graph: ConceptGraph) -> None:
    edge = graph.link(ROOT, TREE, spans=[PAGE.span(0, 17), PAGE.span(18, 20)])
    assert len(edge.spans) == 2
    assert len(graph.edges()) == 6
    assert graph.link(ROOT, HEAP).spans == ()


def test_merge(graph: ConceptGraph) -> None:
    double = graph.add(concept("heaps of trees"), [TREE])
    extra = graph.add(concept("pairing heap"), [double])
    kept = graph.merge(HEAP, double)
    assert kept.aliases == ("heaps of trees",)
    assert double not in graph
    assert graph[double] == kept
    assert names(graph.children(HEAP)) == ["d-ary heap", "pairing heap"]
    assert graph.level(extra) == 3
    with pytest.raises(CycleError):
        graph.merge(ROOT, HEAP)
    with pytest.raises(StoreError, match="itself"):
        graph.merge(HEAP, HEAP)
    assert graph.stats().cycles == 0


def test_folding_a_child_into_its_parent_drops_the_self_loop(graph: ConceptGraph) -> None:
    graph.merge(LIST, TREE)
    assert [(e.parent, e.child) for e in graph.edges()] == [
        (ROOT.id, LIST.id), (LIST.id, HEAP.id), (HEAP.id, LEAF.id), (ROOT.id, LEAF.id),
    ]  # fmt: skip
    graph.merge(LIST, HEAP)
    assert names(graph.children(LIST)) == ["d-ary heap"]
    assert graph.level(LEAF) == 2


def test_stats(graph: ConceptGraph) -> None:
    graph.add(concept("alone", atomic=True, aliases=("heap",)))
    graph.add(concept("heap", sense="memory"))
    stats = graph.stats()
    assert (stats.concepts, stats.edges, stats.roots, stats.atomic, stats.max_level) == (7, 6, 3, 1, 3)
    assert (stats.cycles, stats.unsupported_edges) == (0, 5)
    assert stats.multi_parent_share == 0.5
    assert stats.duplicate_names == 1, "heap, also an alias of another concept; the other sense does not count"


def test_stats_find_a_cycle_by_themselves(tmp_path: Path) -> None:
    """The check must not trust the store: an edge is written behind its back."""
    store = EmbeddedStore(tmp_path / "graph.sqlite")
    graph = ConceptGraph(store)
    graph.add(ROOT)
    graph.add(TREE, [ROOT])
    back = Edge(parent=TREE.id, child=ROOT.id)
    with store._transaction() as db:
        db.execute(
            "INSERT INTO edge (id, version, parent, child) VALUES (?, 99, ?, ?)", (back.id, back.parent, back.child)
        )
    assert ConceptGraph(store).stats().cycles == 1


def test_empty_graph() -> None:
    stats = ConceptGraph(EmbeddedStore(":memory:")).stats()
    assert (stats.concepts, stats.max_level, stats.multi_parent_share) == (0, 0, 0)


def test_refresh_sees_what_others_wrote(tmp_path: Path) -> None:
    ours, theirs = (ConceptGraph(EmbeddedStore(tmp_path / "graph.sqlite")) for _ in range(2))
    theirs.add(ROOT)
    theirs.add(TREE, [ROOT])
    assert len(ours) == 0
    ours.refresh()
    assert names(ours.children(ROOT)) == ["tree"]
    theirs.add(HEAP, [TREE])
    theirs.add(concept("tree", aliases=("arbor",)))
    theirs.merge(TREE, HEAP)
    ours.add(LEAF, [HEAP])  # a stale id: it means the kept concept
    assert names(ours.parents(LEAF)) == ["tree"]
    assert names(list(ours)) == [*names(list(theirs)), "d-ary heap"]
    assert ours[TREE].aliases == ("arbor", "heap")


def test_to_networkx(graph: ConceptGraph) -> None:
    digraph = graph.to_networkx()
    assert nx.dag_longest_path(digraph) in ([c.id for c in (ROOT, x, HEAP, LEAF)] for x in (TREE, LIST))
    assert digraph.nodes[HEAP.id]["name"] == "heap"
    assert digraph.nodes[HEAP.id]["level"] == 2
    assert digraph.edges[ROOT.id, TREE.id]["spans"] == (PAGE.span(0, 17),)


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


@settings(max_examples=150, deadline=None)
@given(PAIRS, st.integers(0, 9), st.integers(0, 9))
def test_paths_are_shortest_paths(pairs: list[tuple[int, int]], start: int, goal: int) -> None:
    """Also on graphs with cycles, since nothing here should loop on them."""
    edges = [(str(a), str(b)) for a, b in pairs]
    ours, theirs = Adjacency(edges), nx.DiGraph(edges)
    theirs.add_nodes_from(map(str, range(10)))
    path = ours.path(str(start), str(goal))
    assert bool(path) == nx.has_path(theirs, str(start), str(goal))
    if path:
        assert nx.is_path(theirs, path)
        assert (path[0], path[-1]) == (str(start), str(goal))
        assert len(path) - 1 == nx.shortest_path_length(theirs, str(start), str(goal))
    assert set(ours.reachable(str(start), ours.children)) == nx.descendants(theirs, str(start))


@settings(max_examples=150, deadline=None)
@given(PAIRS, st.integers(0, 9), st.integers(0, 9))
def test_a_merge_path_exists_exactly_when_contracting_closes_a_cycle(
    pairs: list[tuple[int, int]], a: int, b: int
) -> None:
    edges = [(str(x), str(y)) for x, y in pairs if x < y]
    contracted = nx.DiGraph()
    contracted.add_edges_from((str(a) if x == str(b) else x, str(a) if y == str(b) else y) for x, y in edges)
    contracted.remove_edges_from(list(nx.selfloop_edges(contracted)))
    closes = a != b and not nx.is_directed_acyclic_graph(contracted)
    assert (a != b and bool(Adjacency(edges).merge_path(str(a), str(b)))) == closes


def test_levels_equal_longest_paths_on_a_random_dag() -> None:
    dice = random.Random(0)
    concepts = [concept(f"n{i}") for i in range(200)]
    pairs = [(dice.randrange(i), i) for i in range(1, 200) for _ in range(2) if dice.random() < 0.8]
    edges = tuple(Edge(parent=concepts[p].id, child=concepts[c].id) for p, c in pairs)
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    graph.commit(Change(concepts=tuple(concepts), edges=edges))
    for level, generation in enumerate(nx.topological_generations(graph.to_networkx())):
        assert {graph.level(i) for i in generation} == {level}
