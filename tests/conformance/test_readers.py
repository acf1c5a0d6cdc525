"""Reading parts of the graph, and reading it while others write."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kgsynth.store import Change, GraphStore
from tests.conformance.conftest import Connect
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, D, check, concept, edge, item, longest_paths


def test_the_skeleton_is_the_graph_without_its_texts(store: GraphStore) -> None:
    concepts = (replace(A, atomic=False), B, replace(C, atomic=True), replace(D, domain="other"))
    store.commit(Change(concepts=concepts, edges=(edge(A, B), edge(D, C), edge(B, C), edge(A, D))))
    store.commit(Change(remove=(B.id,)))
    found = store.skeleton()
    assert found.op == 2
    assert found.ids == [A.id, C.id, D.id]
    assert (found.names, found.domains) == (["a", "c", "d"], ["test", "test", "other"])
    assert (found.levels.tolist(), found.atomic.tolist()) == ([0, 2, 1], [0, 1, -1])
    assert (found.parents.tolist(), found.children.tolist()) == ([2, 0], [1, 2])
    assert (found.levels.dtype, found.atomic.dtype, found.parents.dtype) == (np.int32, np.int8, np.int32)


def test_the_skeleton_of_nothing(store: GraphStore) -> None:
    found = store.skeleton()
    assert (found.op, found.ids, found.names) == (0, [], [])
    assert [len(a) for a in (found.levels, found.atomic, found.parents, found.children)] == [0, 0, 0, 0]


def test_concepts_and_edges_by_key_come_in_order_and_once(store: GraphStore) -> None:
    store.commit(replace(CHAIN, sources=(PAGE,), edges=(*CHAIN.edges, edge(A, C, SPANS[0]))))
    assert store.concepts([C.id, A.id, C.id, "c_none"]) == [A, C]
    assert store.concepts([]) == []
    assert store.edges([(A.id, C.id), (A.id, B.id), (A.id, C.id), (C.id, A.id)]) == [edge(A, B), edge(A, C, SPANS[0])]
    assert store.edges([]) == []
    assert store.levels([C.id, "c_none"]) == {C.id: 2}
    assert store.levels([]) == {}


def test_many_keys_at_once(store: GraphStore) -> None:
    concepts = [concept(f"n{i}") for i in range(1500)]
    links = [edge(concepts[i // 2], concepts[i]) for i in range(1, 1500)]
    store.commit(Change(concepts=tuple(concepts), edges=tuple(links)))
    assert store.concepts([c.id for c in reversed(concepts)]) == concepts
    assert store.edges([(e.parent, e.child) for e in links]) == links
    assert store.levels([c.id for c in concepts]) == longest_paths(
        [c.id for c in concepts], [(e.parent, e.child) for e in links]
    )


def test_the_edges_of_a_concept_are_both_ways(store: GraphStore) -> None:
    store.commit(replace(CHAIN, concepts=(A, B, C, D), edges=(edge(B, C), edge(A, B), edge(B, D))))
    assert store.edges_of(B.id) == [edge(B, C), edge(A, B), edge(B, D)]
    assert store.edges_of(D.id) == [edge(B, D)]
    assert store.edges_of("c_none") == []


def test_two_connections_see_each_others_commits(connect: Connect) -> None:
    one, two = connect(), connect()
    one.commit(Change(concepts=(A, B, C), edges=(edge(A, B),)))
    assert two.concepts() == [A, B, C]
    two.commit(Change(edges=(edge(B, C),)))
    assert one.levels()[C.id] == 2
    assert one.commit(Change(edges=(edge(C, A),))).refused == (edge(C, A),)
    two.commit(Change(merges=((A.id, B.id),)))
    assert one.commit(Change(edges=(edge(C, B),))).refused == (edge(C, A),)
    assert one.edges() == two.edges() == [edge(A, C)]
    one.undo(3)
    assert two.concept(B.id) == B
    assert two.version() == one.version() == 4
    check(two)


def test_two_connections_share_the_frontier_and_the_numbers(connect: Connect) -> None:
    one, two = connect(), connect()
    for i in range(6):
        (one, two)[i % 2].commit(Change(concepts=(concept(f"n{i}"),), enqueue=(item(concept(f"n{i}")),)))
    (first,) = one.lease(1, "one", 60)
    (second,) = two.lease(1, "two", 60)
    assert (first.concept, second.concept) == (concept("n0").id, concept("n1").id)
    assert second.token > first.token
    assert one.release("two") == 1
    assert [c.name for c in two.concepts()] == [f"n{i}" for i in range(6)]
    check(one)


def test_a_store_opened_again_goes_on(connect: Connect) -> None:
    one = connect()
    one.commit(replace(CHAIN, enqueue=(item(A),)))
    graph = one.state()["graph"]
    one.lease(1, "me", 60)
    one.close()
    two = connect()
    assert (two.version(), two.state()["graph"]) == (1, graph)
    assert two.concepts() == [A, B, C]
    assert two.commit(Change(edges=(edge(C, A),))).refused == (edge(C, A),)
    assert two.release("me") == 1
    two.undo(1)
    assert two.concepts() == []
