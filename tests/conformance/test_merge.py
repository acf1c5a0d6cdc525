"""Merges: everything moves to the kept concept, no cycle is closed, and the folded id means the kept one from then on."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kgsynth.store import Change, GraphStore
from kgsynth.store.change import MAX_SPANS
from tests.conformance.samples import (
    CHAIN,
    PAGE,
    SPANS,
    A,
    B,
    C,
    D,
    check,
    concept,
    dump,
    edge,
    item,
    levels,
    pairs,
    unit,
)

KEEP = concept("merge sort", definition="Sorts.")
FOLD = concept("mergesort", aliases=("msort",), keywords=("k",))
MERGED = replace(KEEP, aliases=("mergesort", "msort"), keywords=("k",))


def test_merge_moves_everything_and_the_old_id_means_the_kept_one(store: GraphStore) -> None:
    edges = (edge(A, KEEP, SPANS[0]), edge(A, FOLD, SPANS[1]), edge(B, FOLD, SPANS[2]), edge(FOLD, C), edge(KEEP, FOLD))
    store.commit(Change(sources=(PAGE,), concepts=(A, B, KEEP, FOLD, C), edges=edges, enqueue=(item(FOLD, 2),)))
    assert store.commit(Change(merges=((KEEP.id, FOLD.id),))).merged == (FOLD.id,)
    assert store.concepts() == [A, B, MERGED, C]
    assert store.edges() == [edge(A, KEEP, *SPANS[:2]), edge(B, KEEP, SPANS[2]), edge(KEEP, C)]
    assert store.concept(FOLD.id) == MERGED
    assert store.concepts([FOLD.id]) == []
    assert store.find("msort") == store.find("mergesort") == [MERGED]
    record = store.decisions()[-1]
    assert (record.kind, record.outcome, dict(record.evidence)["children"]) == ("merge", "merged", (C.id,))
    assert [item.concept for item in store.lease(9, "me", 60)] == [KEEP.id]
    before = dump(store)
    assert store.commit(Change(merges=((KEEP.id, FOLD.id),))).merged == ()
    assert dump(store) == before
    late = store.commit(Change(concepts=(FOLD, D), edges=(edge(FOLD, D), edge(C, FOLD)), done=(FOLD.id,)))
    assert late.added == (D.id,)
    assert late.linked == (edge(KEEP, D).id,)
    assert late.refused == (edge(C, KEEP),)
    assert store.frontier()["done"] == 1
    check(store)


def test_redirects_are_followed_by_every_part_of_a_change_and_every_lookup(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C, KEEP, FOLD), merges=((KEEP.id, FOLD.id),)))
    store.commit(Change(edges=(edge(A, FOLD), edge(FOLD, B)), enqueue=(item(FOLD),)))
    assert store.edges_of(FOLD.id) == store.edges_of(KEEP.id) == [edge(A, KEEP), edge(KEEP, B)]
    assert store.commit(Change(unlink=((A.id, FOLD.id),))).unlinked == (edge(A, KEEP).id,)
    assert store.commit(Change(merges=((FOLD.id, C.id),))).merged == (C.id,)
    assert [c.name for c in store.find("c")] == [KEEP.name]
    assert store.commit(Change(done=(C.id,))).op
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 1}
    assert store.commit(Change(remove=(C.id,))).removed == (KEEP.id,)
    assert store.concepts() == [A, B]
    check(store)


def test_a_folded_concept_may_come_anew_when_what_it_meant_is_removed(store: GraphStore) -> None:
    store.commit(Change(concepts=(KEEP, FOLD, A), merges=((KEEP.id, FOLD.id), (KEEP.id, A.id))))
    store.commit(Change(remove=(KEEP.id,)))
    assert store.concept(FOLD.id) is None
    assert store.commit(Change(concepts=(FOLD,))).added == (FOLD.id,)
    assert store.concept(FOLD.id) == FOLD
    check(store)


@pytest.mark.parametrize("between", [1, 2, 5])
@pytest.mark.parametrize("upwards", [False, True])
def test_a_merge_that_would_close_a_cycle_is_refused(store: GraphStore, between: int, upwards: bool) -> None:
    """Ends of a path, one or more concepts between, folded into either end."""
    chain = [concept(f"n{i}") for i in range(between + 2)]
    store.commit(Change(concepts=tuple(chain), edges=tuple(edge(*ends) for ends in pairwise(chain))))
    before, version = store.edges(), store.version()
    keep, fold = (chain[-1], chain[0]) if upwards else (chain[0], chain[-1])
    result = store.commit(Change(merges=((keep.id, fold.id),)))
    assert (result.merged, result.op) == ((), 0)
    assert (store.edges(), store.version()) == (before, version)
    assert [(d.kind, d.subject, d.outcome) for d in store.decisions()] == [("merge", fold.id, "refused")]


def test_a_merge_with_both_a_direct_and_a_longer_way_is_refused(store: GraphStore) -> None:
    store.commit(replace(CHAIN, edges=(*CHAIN.edges, edge(A, C))))
    assert store.commit(Change(merges=((A.id, C.id),))).merged == ()
    assert pairs(store) == [("a", "b"), ("b", "c"), ("a", "c")]


@pytest.mark.parametrize("downwards", [False, True])
def test_an_edge_between_the_two_goes(store: GraphStore, downwards: bool) -> None:
    store.commit(CHAIN)
    keep, fold = (A, B) if downwards else (B, A)
    assert store.commit(Change(merges=((keep.id, fold.id),))).merged == (fold.id,)
    assert pairs(store) == [(keep.name, "c")]
    assert levels(store) == {keep.name: 0, "c": 1}


@pytest.mark.parametrize("order", [((B, C), (A, B)), ((A, B), (B, C)), ((A, B), (A, C)), ((A, C), (A, B))])
def test_merges_chain_in_every_order(store: GraphStore, order: tuple) -> None:
    store.commit(Change(concepts=(A, B, C, D), edges=(edge(D, C),)))
    merges = tuple((keep.id, fold.id) for keep, fold in order)
    result = store.commit(Change(merges=merges, edges=(edge(C, D),)))
    assert set(result.merged) == {B.id, C.id}
    assert store.edges() == [edge(D, A)]
    assert result.refused == (edge(A, D),)
    (kept,) = {store.concept(c.id) for c in (A, B, C)}
    assert kept is not None
    assert (kept.name, set(kept.aliases)) == ("a", {"b", "c"})
    check(store)


def test_merges_chain_over_several_commits(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C, D), edges=(edge(D, C),)))
    for keep, fold in ((B, C), (A, B)):
        store.commit(Change(merges=((keep.id, fold.id),)))
    assert store.concept(C.id) == store.concept(B.id) == store.concept(A.id) == replace(A, aliases=("b", "c"))
    assert store.edges_of(C.id) == [edge(D, A)]
    check(store)


def test_the_second_merge_of_a_change_sees_what_the_first_did(store: GraphStore) -> None:
    """After a and c are one, d is above b is above a: d and a may not be one."""
    store.commit(Change(concepts=(A, B, C, D), edges=(edge(B, C), edge(D, B))))
    result = store.commit(Change(merges=((A.id, C.id), (A.id, D.id))))
    assert result.merged == (C.id,)
    assert pairs(store) == [("d", "b"), ("b", "a")]
    check(store)


def test_merges_of_what_is_not_there_and_of_one_with_itself_do_nothing(store: GraphStore) -> None:
    store.commit(CHAIN)
    before = dump(store)
    assert store.commit(Change(merges=((A.id, A.id), (A.id, "c_none"), ("c_none", B.id)))).op == 0
    assert dump(store) == before


def test_double_edges_are_folded_within_the_bound(store: GraphStore) -> None:
    store.commit(Change(sources=(PAGE,), concepts=(A, KEEP, FOLD, C)))
    up = (edge(A, KEEP, *SPANS[:6]), edge(A, FOLD, *SPANS[4:12]))
    down = (edge(KEEP, C, SPANS[0]), edge(FOLD, C, SPANS[0], SPANS[1]))
    store.commit(Change(edges=(*up, *down), merges=()))
    store.commit(Change(merges=((KEEP.id, FOLD.id),)))
    assert store.edges() == [edge(A, KEEP, *SPANS[:MAX_SPANS]), edge(KEEP, C, *SPANS[:2])]


def test_levels_after_a_merge(store: GraphStore) -> None:
    """The kept one goes as deep as the deeper of the two, and so does what is below."""
    deep = [concept(f"n{i}") for i in range(4)]
    edges = (*(edge(*ends) for ends in pairwise((*deep, FOLD))), edge(A, KEEP), edge(KEEP, B), edge(FOLD, C))
    store.commit(Change(concepts=(A, B, C, *deep, KEEP, FOLD), edges=edges))
    store.commit(Change(merges=((KEEP.id, FOLD.id),)))
    assert levels(store) == {"a": 0, "n0": 0, "n1": 1, "n2": 2, "n3": 3, KEEP.name: 4, "b": 5, "c": 5}
    check(store)


def test_the_frontier_item_moves_unless_the_kept_one_has_its_own(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C, D), enqueue=(item(B, 3), item(C, 1), item(D, 2)), done=(C.id,)))
    store.commit(Change(merges=((A.id, B.id), (C.id, D.id))))
    assert store.frontier() == {"waiting": 1, "leased": 0, "done": 1}
    assert [(i.concept, i.depth) for i in store.lease(9, "me", 60)] == [(A.id, 3)]


def test_the_worker_on_a_folded_concept_may_still_finish_it(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B), enqueue=(item(B),)))
    (mine,) = store.lease(1, "me", 60)
    store.commit(Change(merges=((A.id, B.id),)))
    assert store.lease(1, "another", 60) == [], "the lease moved with the item"
    assert store.commit(Change(leases=(mine,), done=(B.id,))).op
    assert store.frontier()["done"] == 1


def test_the_vector_of_a_folded_concept_goes(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B)))
    store.put_embeddings("m", [A.id, B.id], unit(0, 1))
    store.commit(Change(merges=((A.id, B.id),)))
    assert store.embeddings()[1] == [A.id]
    assert [i for i, _ in store.nearest(unit(1)[0], 5)] == [A.id]


def test_senses_of_one_name_can_be_folded(store: GraphStore) -> None:
    senses = (concept("set", sense="type"), concept("set", sense="command", definition="Of a shell."))
    store.commit(Change(concepts=senses, merges=((senses[0].id, senses[1].id),)))
    assert store.find("set") == [replace(senses[0], definition="Of a shell.")]
