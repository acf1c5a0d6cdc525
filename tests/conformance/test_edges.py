"""Edges: no cycle is ever closed, levels are the longest paths after every operation, provenance is kept and bounded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgsynth.concept import Edge
from kgsynth.store import Change, GraphStore
from kgsynth.store.change import MAX_SPANS
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, D, E, F, check, concept, edge, levels, pairs


def test_edges_that_would_close_a_cycle_are_refused_and_recorded(store: GraphStore) -> None:
    result = store.commit(replace(CHAIN, edges=(*CHAIN.edges, edge(C, A), edge(A, A), edge(A, C))))
    assert result.refused == (edge(C, A), edge(A, A))
    assert result.linked == tuple(e.id for e in (*CHAIN.edges, edge(A, C)))
    assert store.edges() == [*CHAIN.edges, edge(A, C)]
    assert [(d.kind, d.subject, d.outcome) for d in store.decisions()] == [
        ("cycle", edge(C, A).id, "refused"),
        ("cycle", edge(A, A).id, "refused"),
    ]
    assert store.commit(Change(edges=(edge(B, A),))).refused == (edge(B, A),)


def test_an_edge_without_both_ends_is_refused_and_recorded(store: GraphStore) -> None:
    result = store.commit(Change(concepts=(A,), edges=(edge(A, B), edge(B, C), edge(C, C))))
    assert result.refused == (edge(A, B), edge(B, C), edge(C, C))
    assert store.edges() == []
    assert all("ends" in decision.reason for decision in store.decisions())


def test_the_first_of_two_edges_that_exclude_each_other_wins(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B)))
    result = store.commit(Change(edges=(edge(B, A), edge(A, B))))
    assert (pairs(store), result.refused) == ([("b", "a")], (edge(A, B),))


def test_a_cycle_over_many_edges_of_one_change_is_seen(store: GraphStore) -> None:
    """Each edge is legal for itself, and none of the concepts is new in the change."""
    ring = [concept(f"ring {i}") for i in range(30)]
    store.commit(Change(concepts=tuple(ring)))
    turn = [edge(ring[i], ring[(i + 1) % 30]) for i in range(30)]
    result = store.commit(Change(edges=tuple(turn[1::2] + turn[::2])))
    assert len(result.refused) == 1
    check(store)


def test_an_edge_seen_only_in_the_same_change_counts(store: GraphStore) -> None:
    """y -> p -> c: p -> c leads to a higher level and needs no search; raising y must still push c, and c -> y is a cycle."""
    y, p, c, z = (concept(name) for name in "ypcz")
    roots = [concept(f"root {i}") for i in range(8)]
    chain = [edge(roots[i], roots[i + 1]) for i in range(7)]
    store.commit(
        Change(concepts=(y, p, c, z, *roots), edges=(*chain, edge(y, p), edge(roots[1], c), edge(roots[6], z)))
    )
    assert levels(store)["c"] == 2
    result = store.commit(Change(edges=(edge(p, c), edge(z, y), edge(c, y))))
    assert result.refused == (edge(c, y),)
    assert levels(store) == {**{f"root {i}": i for i in range(8)}, "z": 7, "y": 8, "p": 9, "c": 10}
    check(store)


def test_a_diamond_is_no_cycle(store: GraphStore) -> None:
    result = store.commit(Change(concepts=(A, B, C, D), edges=(edge(A, B), edge(A, C), edge(B, D), edge(C, D))))
    assert result.refused == ()
    assert store.commit(Change(edges=(edge(D, A),))).refused == (edge(D, A),)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1, "f": 0}),
        ((edge(C, D),), {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 0}),
        ((edge(F, A),), {"f": 0, "a": 1, "b": 2, "c": 3, "d": 0, "e": 1}),
        ((edge(F, D), edge(D, A)), {"f": 0, "d": 1, "a": 2, "e": 2, "b": 3, "c": 4}),
        ((edge(E, A), edge(C, F)), {"d": 0, "e": 1, "a": 2, "b": 3, "c": 4, "f": 5}),
        ((edge(A, C), edge(A, E), edge(D, C)), {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1, "f": 0}),
    ],
)
def test_levels_are_longest_paths(store: GraphStore, more: tuple[Edge, ...], expected: dict[str, int]) -> None:
    store.commit(Change(concepts=(A, B, C, D, E, F), edges=(edge(A, B), edge(B, C), edge(D, E))))
    store.commit(Change(edges=more))
    assert levels(store) == expected
    check(store)


def test_levels_fall_when_the_long_way_goes(store: GraphStore) -> None:
    """By unlink, by remove, by undo and by merge."""
    long = (edge(A, B), edge(B, C), edge(C, D), edge(D, E), edge(A, D))
    store.commit(Change(concepts=(A, B, C, D, E), edges=long))
    assert levels(store) == {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4}
    cut = store.commit(Change(unlink=((C.id, D.id),)))
    assert cut.unlinked == (edge(C, D).id,)
    assert levels(store) == {"a": 0, "b": 1, "c": 2, "d": 1, "e": 2}
    store.undo(cut.op)
    assert levels(store)["e"] == 4
    gone = store.commit(Change(remove=(B.id,)))
    assert levels(store) == {"a": 0, "c": 0, "d": 1, "e": 2}
    store.undo(gone.op)
    store.commit(Change(merges=((A.id, B.id),)))
    assert levels(store) == {"a": 0, "c": 1, "d": 2, "e": 3}
    check(store)


def test_a_new_root_above_a_long_chain_moves_all_of_it(store: GraphStore) -> None:
    chain = [concept(f"n{i}") for i in range(120)]
    store.commit(Change(concepts=tuple(chain), edges=tuple(map(edge, chain, chain[1:]))))
    top = store.commit(Change(concepts=(A,), edges=(edge(A, chain[0]),)))
    assert store.levels([chain[0].id, chain[119].id, "c_none"]) == {chain[0].id: 1, chain[119].id: 120}
    store.undo(top.op)
    assert store.levels([chain[119].id]) == {chain[119].id: 119}
    check(store)


def test_spans_are_added_once_and_bounded(store: GraphStore) -> None:
    store.commit(Change(sources=(PAGE,), concepts=(A, B), edges=(edge(A, B, SPANS[0]), edge(A, B, SPANS[1]))))
    assert store.commit(Change(edges=(edge(A, B, SPANS[1], SPANS[2]),))).linked == ()
    assert store.edges() == [edge(A, B, *SPANS[:3])]
    store.commit(Change(edges=(edge(A, B, *reversed(SPANS)),)))
    (stored,) = store.edges()
    assert stored.spans == (*SPANS[:3], *SPANS[: -MAX_SPANS + 2 : -1])
    assert len(stored.spans) == MAX_SPANS
    version = store.version()
    store.commit(Change(edges=(edge(A, B, *SPANS),)))
    assert store.version() == version, "a full edge learns nothing more"


def test_a_new_edge_keeps_no_more_spans_than_the_bound(store: GraphStore) -> None:
    store.commit(Change(sources=(PAGE,), concepts=(A, B), edges=(edge(A, B, *SPANS, *SPANS),)))
    assert store.edges() == [edge(A, B, *SPANS[:MAX_SPANS])]


def test_a_refused_edge_adds_no_spans_to_another(store: GraphStore) -> None:
    store.commit(Change(sources=(PAGE,), concepts=(A, B), edges=(edge(A, B, SPANS[0]),)))
    assert store.commit(Change(edges=(edge(B, A, SPANS[1]),))).refused == (edge(B, A, SPANS[1]),)
    assert store.edges() == [edge(A, B, SPANS[0])]
