"""Splits, unlinked edges and removed concepts."""

from __future__ import annotations

from dataclasses import replace

from kgsynth.store import Change, GraphStore, Split, TaskRecord
from tests.conformance.samples import (
    CHAIN,
    PAGE,
    SPANS,
    A,
    B,
    C,
    D,
    E,
    check,
    concept,
    dump,
    edge,
    graph,
    item,
    levels,
    pairs,
    unit,
)

PART = concept("part", aliases=("piece",))
WHOLE = concept("whole", aliases=("piece", "all", "Parts"))
STAR = Change(
    sources=(PAGE,), concepts=(A, B, WHOLE, C, D),
    edges=(edge(A, WHOLE, SPANS[0]), edge(B, WHOLE, SPANS[1]), edge(WHOLE, C, SPANS[2]), edge(WHOLE, D, SPANS[3])),
)  # fmt: skip


def test_split_moves_the_named_edges_with_their_spans_and_the_names(store: GraphStore) -> None:
    store.commit(STAR)
    result = store.commit(Change(splits=(Split(concept=WHOLE.id, into=PART, parents=(B.id,), children=(C.id,)),)))
    assert (result.op, result.added) == (2, (PART.id,))
    assert set(store.edges()) == {
        edge(A, WHOLE, SPANS[0]), edge(B, PART, SPANS[1]), edge(PART, C, SPANS[2]), edge(WHOLE, D, SPANS[3]),
    }  # fmt: skip
    assert store.concepts() == [A, B, replace(WHOLE, aliases=("all",)), C, D, PART]
    assert store.find("piece") == store.find("part") == [PART]
    record = store.decisions()[-1]
    assert (record.kind, record.subject, record.outcome) == ("split", WHOLE.id, "split")
    check(store)


def test_a_split_done_already_does_nothing(store: GraphStore) -> None:
    store.commit(STAR)
    split = Change(splits=(Split(concept=WHOLE.id, into=PART, parents=(B.id,)),))
    store.commit(split)
    before = dump(store)
    assert store.commit(split).op == 0
    assert store.commit(Change(splits=(Split(concept="c_none", into=E),))).op == 0
    assert dump(store) == before


def test_a_split_ignores_ids_that_are_no_neighbours(store: GraphStore) -> None:
    store.commit(STAR)
    split = Split(concept=WHOLE.id, into=PART, parents=(C.id, "c_none", B.id), children=(A.id, D.id, D.id))
    store.commit(Change(splits=(split,)))
    assert set(pairs(store)) == {("a", "whole"), ("b", "part"), ("whole", "c"), ("part", "d")}


def test_a_parent_that_both_should_have_is_linked_by_the_same_change(store: GraphStore) -> None:
    store.commit(STAR)
    split = Split(concept=WHOLE.id, into=PART, children=(C.id,))
    result = store.commit(Change(splits=(split,), edges=(edge(A, PART), edge(WHOLE, PART))))
    assert result.linked == (edge(A, PART).id, edge(WHOLE, PART).id)
    assert levels(store) == {"a": 0, "b": 0, "whole": 1, "part": 2, "c": 3, "d": 2}
    check(store)


def test_split_follows_redirects(store: GraphStore) -> None:
    store.commit(STAR)
    store.commit(Change(concepts=(E,), merges=((WHOLE.id, E.id), (A.id, B.id))))
    store.commit(Change(splits=(Split(concept=E.id, into=PART, parents=(B.id,)),)))
    assert set(pairs(store)) == {("a", "part"), ("whole", "c"), ("whole", "d")}
    check(store)


def test_the_levels_of_both_parts_are_exact(store: GraphStore) -> None:
    store.commit(replace(CHAIN, concepts=(A, B, C, D, E), edges=(*CHAIN.edges, edge(C, D), edge(B, E))))
    store.commit(Change(splits=(Split(concept=B.id, into=PART, parents=(A.id,), children=(E.id,)),)))
    assert levels(store) == {"a": 0, "b": 0, "c": 1, "d": 2, "part": 1, "e": 2}
    check(store)


def test_unlink_removes_edges_and_only_those(store: GraphStore) -> None:
    store.commit(STAR)
    wanted = ((A.id, WHOLE.id), (WHOLE.id, A.id), (A.id, C.id), ("c_none", C.id), (A.id, WHOLE.id))
    result = store.commit(Change(unlink=wanted))
    assert result.unlinked == (edge(A, WHOLE).id,)
    assert pairs(store) == [("b", "whole"), ("whole", "c"), ("whole", "d")]
    assert store.commit(Change(unlink=wanted)).op == 0


def test_an_unlinked_edge_may_be_turned_round_in_the_same_change(store: GraphStore) -> None:
    store.commit(CHAIN)
    result = store.commit(Change(unlink=((A.id, B.id),), edges=(edge(C, A),)))
    assert (result.linked, result.refused) == ((edge(C, A).id,), ())
    assert levels(store) == {"b": 0, "c": 1, "a": 2}
    check(store)


def test_an_edge_that_comes_back_has_a_new_place_in_the_order(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(unlink=((A.id, B.id),), edges=(edge(A, B),)))
    assert pairs(store) == [("b", "c"), ("a", "b")]


def test_remove_takes_edges_frontier_item_names_and_vector(store: GraphStore) -> None:
    store.commit(replace(STAR, enqueue=(item(WHOLE), item(C))))
    store.put_embeddings("m", [WHOLE.id, C.id], unit(0, 1))
    result = store.commit(Change(remove=(WHOLE.id, "c_none", WHOLE.id)))
    assert result.removed == (WHOLE.id,)
    assert (store.concepts(), store.edges()) == ([A, B, C, D], [])
    assert store.concept(WHOLE.id) is None
    assert store.find("piece") == store.find("whole") == []
    assert store.frontier()["waiting"] == 1
    assert store.embeddings()[1] == [C.id]
    assert [i for i, _ in store.nearest(unit(0)[0], 5)] == [C.id]
    assert levels(store) == dict.fromkeys("abcd", 0)
    assert store.commit(Change(remove=(WHOLE.id,))).op == 0
    check(store)


def test_a_removed_concept_may_come_again_as_another(store: GraphStore) -> None:
    store.commit(STAR)
    store.commit(Change(remove=(WHOLE.id,)))
    again = concept("whole", definition="anew")
    assert store.commit(Change(concepts=(again,), edges=(edge(again, A),))).refused == ()
    assert store.concept(WHOLE.id) == again
    assert store.concepts() == [A, B, C, D, again]
    check(store)


def test_what_a_change_both_adds_and_removes_is_not_there(store: GraphStore) -> None:
    store.commit(CHAIN)
    before = graph(store)
    change = Change(concepts=(D,), edges=(edge(C, D), edge(D, E)), remove=(D.id,), enqueue=(item(D),))
    assert store.commit(change).op == store.commit(change).op == 0
    assert graph(store) == before
    check(store)


def test_tasks_stay_when_their_concept_goes(store: GraphStore) -> None:
    store.commit(STAR)
    task = TaskRecord(id="t1", type="cloze", domain="test", granularity="fine", prompt="?", concepts=(C.id,))
    store.put_tasks([task])
    store.commit(Change(remove=(C.id,)))
    assert [t.id for t in store.tasks()] == ["t1"]
