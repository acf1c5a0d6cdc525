"""Who is above and below whom in memory, against networkx on random graphs."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.errors import StoreError
from kgsynth.store import Skeleton
from kgsynth.structure import LITTLE, Structure, count_cycles

IDS = [f"c_{chr(97 + (7 * i) % 10)}" for i in range(10)]  # not in alphabetical order
ENDS = st.tuples(st.sampled_from(IDS), st.sampled_from(IDS))
EDGES = st.lists(ENDS, max_size=40, unique=True)
ONE = st.sampled_from(IDS)


def skeleton(edges: list[tuple[str, str]], ids: list[str] = IDS) -> Skeleton:
    row = {i: n for n, i in enumerate(ids)}
    ends = np.array([(row[p], row[c]) for p, c in edges], np.int32).reshape(-1, 2)
    return Skeleton(
        op=1, ids=ids, names=ids, domains=ids, levels=np.zeros(len(ids), np.int32), atomic=np.full(len(ids), -1, np.int8),
        parents=ends[:, 0], children=ends[:, 1],
    )  # fmt: skip


def oracle(edges: list[tuple[str, str]]) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(IDS)
    graph.add_edges_from(edges)
    return graph


def downwards(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(p, c) for p, c in edges if IDS.index(p) < IDS.index(c)]


def check(ours: Structure, edges: list[tuple[str, str]]) -> None:
    """Every answer about a graph with these edges, in the order of insertion."""
    theirs = oracle(edges)
    assert (len(ours), ours.edges) == (len(IDS), len(edges))
    assert ours.roots() == [i for i in IDS if theirs.in_degree(i) == 0]
    for i in IDS:
        assert ours.children(i) == [c for p, c in edges if p == i]
        assert ours.parents(i) == [p for p, c in edges if c == i]
        for found, distance in (
            (ours.descendants(i), nx.single_source_shortest_path_length(theirs, i)),
            (ours.ancestors(i), nx.single_source_shortest_path_length(theirs.reverse(), i)),
        ):
            assert sorted(found) == sorted(distance.keys() - {i})
            assert [distance[j] for j in found] == sorted(distance[j] for j in found), "nearest first"


@settings(max_examples=100, deadline=None)
@given(EDGES)
def test_answers_are_those_of_networkx(edges: list[tuple[str, str]]) -> None:
    """Also on graphs with cycles: nothing may loop on them."""
    check(Structure(skeleton(edges)), edges)
    theirs = oracle(edges)
    groups = sum(len(group) > 1 for group in nx.strongly_connected_components(theirs))
    assert count_cycles(skeleton(edges)) == groups + nx.number_of_selfloops(theirs)


def follow(ours: Structure, changed: list[tuple[str, str]], now: list[tuple[str, str]]) -> int:
    """Bring `ours` up to date with the edges as they are now, as a graph does. Returns how often it had to ask."""
    for times, whole in enumerate((False, True), 1):
        asked = ours.around(changed, whole=whole)
        if ours.take(changed, asked, [pair for pair in now if pair in asked]):
            return times
    raise AssertionError("asked for everything, and still not sure")


@pytest.mark.parametrize("long", [0, 2, 100])
@settings(max_examples=100, deadline=None)
@given(EDGES, st.lists(st.lists(st.tuples(ENDS, st.booleans()), max_size=4), max_size=8))
def test_changes_beside_the_arrays_read_like_arrays(
    long: int, edges: list[tuple[str, str]], changes: list[list[tuple[tuple[str, str], bool]]]
) -> None:
    """Edges are put to the end or removed, some at a time, and it is all taken back, so that they are at their old places."""
    ours, known = Structure(skeleton(edges)), list(edges)
    ours.long = long
    for some in changes:
        before, changed = known, [pair for pair, _ in some]
        for pair, at_the_end in some:
            known = [other for other in known if other != pair] + ([pair] if at_the_end else [])
        for now in (known, before, known):
            follow(ours, changed, now)
            check(ours, now)


def test_of_many_neighbours_few_are_asked_for() -> None:
    hub, below = IDS[0], [f"c_{i:04}" for i in range(1000)]
    edges = [(hub, child) for child in below]
    ours = Structure(skeleton(edges, [*IDS, *below]))
    new, old = (hub, IDS[1]), edges[500]
    assert len(ours.around([new])) == 2
    assert len(ours.around([new, old])) == 5
    assert follow(ours, [new, old], [*edges, new]) == 1
    assert ours.children(hub) == [*below, IDS[1]]
    assert follow(ours, [old], [pair for pair in edges if pair != old] + [new]) == 1
    assert follow(ours, [old], [*edges, new]) == 2, "back at its place, which only the whole list tells"
    assert ours.children(hub) == [*below, IDS[1]]


@settings(max_examples=150, deadline=None)
@given(EDGES, ONE, ONE)
def test_paths_are_shortest_paths(edges: list[tuple[str, str]], start: str, goal: str) -> None:
    theirs = oracle(edges)
    path = Structure(skeleton(edges)).path(start, goal)
    assert bool(path) == nx.has_path(theirs, start, goal)
    if path:
        assert nx.is_path(theirs, path)
        assert (path[0], path[-1]) == (start, goal)
        assert len(path) - 1 == nx.shortest_path_length(theirs, start, goal)


@settings(max_examples=150, deadline=None)
@given(EDGES.map(downwards), ONE, ONE)
def test_a_way_with_something_in_between_is_the_cycle_that_merging_would_close(
    edges: list[tuple[str, str]], a: str, b: str
) -> None:
    contracted = nx.DiGraph([(a if p == b else p, a if c == b else c) for p, c in edges])
    contracted.remove_edges_from(list(nx.selfloop_edges(contracted)))
    closes = a != b and not nx.is_directed_acyclic_graph(contracted)
    ours = Structure(skeleton(edges))
    assert (a != b and bool(ours.path(a, b, direct=False) or ours.path(b, a, direct=False))) == closes


@settings(max_examples=100, deadline=None)
@given(EDGES.map(downwards))
def test_heights_are_longest_paths_to_a_leaf(edges: list[tuple[str, str]]) -> None:
    ours = Structure(skeleton(edges))
    for height, generation in enumerate(nx.topological_generations(oracle(edges).reverse())):
        assert {ours.height(i) for i in generation} == {height}


def test_a_height_above_a_cycle_is_refused() -> None:
    a, b, c, d = IDS[:4]
    ours = Structure(skeleton([(a, b), (b, c), (c, b), (a, d)]))
    assert ours.height(d) == 0
    with pytest.raises(StoreError, match="doctor"):
        ours.height(a)
    assert Structure(skeleton([(a, b), (c, d), (d, d)])).height(a) == 1


def test_concepts_come_and_go_and_come_back() -> None:
    a, b = IDS[:2]
    ours = Structure(skeleton([(a, b)]))
    ours.take([(a, "c_new")], [(a, b), (a, "c_new")], [(a, b), (a, "c_new")], came=["c_new"])
    assert ours.children(a) == [b, "c_new"]
    assert ("c_new" in ours, len(ours), ours.edges) == (True, 11, 2)
    ours.take([(a, "c_new"), (a, b)], [(a, "c_new"), (a, b)], [], gone=["c_new", b])
    assert ("c_new" in ours, b in ours, len(ours), ours.edges) == (False, False, 9, 0)
    assert b not in ours.roots()
    ours.take([(a, b)], [(a, b)], [(a, b)], came=[b])
    assert (b in ours, len(ours), ours.children(a)) == (True, 10, [b])


def test_an_empty_one_and_unknown_ids() -> None:
    ours = Structure(skeleton([], []))
    assert (len(ours), ours.edges, ours.roots(), count_cycles(skeleton([], []))) == (0, 0, [], 0)
    for known in (ours, Structure(skeleton([]))):
        for unknown in ("c_", "c_zz", "a", "z", "c_é"):
            assert unknown not in known
            assert (known.children(unknown), known.ancestors(unknown), known.path(unknown, IDS[0])) == ([], [], ())
    ours.take([("x", "y")], [("x", "y")], [("x", "y")], came=["x", "y"])
    assert (ours.children("x"), ours.roots(), ours.height("x")) == (["y"], ["x"], 1)


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    ids = [f"c_{i:05}" for i in range(20_000)]
    ours = Structure(skeleton(list(pairwise(ids)), ids))
    assert ours.height(ids[0]) == len(ids) - 1
    assert len(ours.path(ids[0], ids[-1])) == len(ids)


def test_it_is_worn_when_much_lies_beside_the_arrays() -> None:
    ours = Structure(skeleton([]))
    assert not ours.is_worn(LITTLE)
    assert ours.is_worn(LITTLE + 1)
    pairs = [(IDS[0], f"c_{i}") for i in range(LITTLE)]
    ours.take(pairs, pairs, pairs, came=[c for _, c in pairs])
    assert ours.is_worn()
