"""Taking operations back: each kind, in any order that is possible, and what stands in the way otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kgsynth.errors import CycleError, StoreError, UndoError
from kgsynth.store import Change, GraphStore, Split
from tests.conformance.samples import (
    CHAIN,
    PAGE,
    SPANS,
    A,
    B,
    C,
    D,
    E,
    F,
    check,
    concept,
    edge,
    graph,
    item,
    levels,
    pairs,
    undo_all,
    undo_with_what_hinders,
    unit,
)

BASE = Change(
    sources=(PAGE,), concepts=(A, B, C, D), enqueue=(item(B, 3), item(C)), done=(C.id,),
    edges=(edge(A, B, SPANS[0]), edge(B, C, SPANS[1]), edge(A, D, *SPANS[:3])),
)  # fmt: skip
OPERATIONS = {
    "add": Change(concepts=(E, F), edges=(edge(D, E), edge(E, F))),
    "learn": Change(concepts=(replace(B, definition="D.", aliases=("bee",), atomic=True, atomic_reason="r"),)),
    "link": Change(edges=(edge(D, B, SPANS[2]),)),
    "quote": Change(edges=(edge(A, B, SPANS[5]),)),
    "merge": Change(merges=((D.id, B.id),)),
    "merge upwards": Change(merges=((A.id, B.id),)),
    "two merges": Change(concepts=(E,), merges=((D.id, B.id), (E.id, D.id))),
    "split": Change(splits=(Split(concept=B.id, into=E, parents=(A.id,), children=(C.id,)),)),
    "unlink": Change(unlink=((A.id, B.id), (A.id, D.id))),
    "remove": Change(remove=(B.id,)),
    "enqueue": Change(enqueue=(item(A), item(D))),
    "finish": Change(done=(B.id,)),
    "much": Change(concepts=(E, replace(A, keywords=("k",))), merges=((D.id, B.id),), unlink=((A.id, D.id),), edges=(edge(C, E),), remove=(A.id,), enqueue=(item(E),), done=(B.id,)),
}  # fmt: skip


def vectors(store: GraphStore) -> None:
    store.put_embeddings("m", [A.id, B.id, C.id, D.id], unit(0, 1, 2, 3))


@pytest.mark.parametrize("kind", OPERATIONS)
def test_every_kind_of_operation_is_taken_back_whole_and_done_again(store: GraphStore, kind: str) -> None:
    store.commit(BASE)
    vectors(store)
    before = graph(store)
    op = store.commit(OPERATIONS[kind]).op
    after = graph(store)
    assert op == 2
    assert after != before
    check(store)
    assert store.undo(op).op == 3
    assert graph(store) == before
    check(store)
    store.undo(3)
    assert graph(store) == after
    check(store)
    store.undo(4)
    assert graph(store) == before
    undo_all(store)


def test_undoing_all_newest_first_empties_the_graph(store: GraphStore) -> None:
    states = [graph(store)]
    for change in (BASE, *OPERATIONS.values()):
        if store.commit(change).op:
            states.append(graph(store))
    for op in range(store.version(), 0, -1):
        assert graph(store) == states[op]
        store.undo(op)
        check(store)
    assert graph(store) == states[0]
    assert store.version() == 2 * (len(states) - 1)


def test_the_result_says_what_came_back_and_what_went(store: GraphStore) -> None:
    store.commit(CHAIN)
    op = store.commit(replace(Change(concepts=(D,), edges=(edge(C, D),)), remove=(B.id,))).op
    result = store.undo(op)
    assert (result.op, result.added, result.removed) == (3, (B.id,), (D.id,))
    assert set(result.linked) == {edge(A, B).id, edge(B, C).id}
    assert result.unlinked == (edge(C, D).id,)


def test_an_operation_in_the_middle_is_taken_back_alone(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(concepts=(D,), edges=(edge(A, D),)))
    store.commit(Change(concepts=(E,), edges=(edge(C, E),)))
    store.commit(Change(unlink=((A.id, B.id),)))
    store.undo(2)
    assert pairs(store) == [("b", "c"), ("c", "e")]
    store.undo(4)
    assert pairs(store) == [("a", "b"), ("b", "c"), ("c", "e")]
    store.undo(3)
    assert pairs(store) == [("a", "b"), ("b", "c")]
    check(store)


def test_concepts_and_edges_come_back_in_their_old_places(store: GraphStore) -> None:
    store.commit(replace(CHAIN, edges=(edge(A, B), edge(A, C), edge(B, C))))
    store.commit(Change(remove=(B.id,)))
    store.commit(Change(concepts=(D,), edges=(edge(A, D),)))
    store.undo(2)
    assert [c.name for c in store.concepts()] == ["a", "b", "c", "d"]
    assert pairs(store) == [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d")]
    assert [e.child for e in store.edges_of(A.id)] == [B.id, C.id, D.id]


def test_undo_of_a_merge_restores_names_edges_spans_redirect_frontier_and_vector(store: GraphStore) -> None:
    keep, fold = concept("keep", aliases=("k1",)), concept("fold", aliases=("f1",), definition="F.", atomic=True)
    edges = (edge(A, keep, SPANS[0]), edge(A, fold, SPANS[1]), edge(B, fold, SPANS[2]), edge(fold, C), edge(keep, fold))
    store.commit(Change(sources=(PAGE,), concepts=(A, B, keep, fold, C), edges=edges, enqueue=(item(fold, 2),)))
    store.put_embeddings("m", [keep.id, fold.id], unit(0, 1))
    op = store.commit(Change(merges=((keep.id, fold.id),))).op
    store.undo(op)
    assert store.concepts() == [A, B, keep, fold, C]
    assert store.edges() == list(edges)
    assert store.concept(fold.id) == fold
    assert store.find("f1") == store.find("fold") == [fold]
    assert store.find("k1") == [keep]
    assert [i.concept for i in store.lease(5, "me", 60)] == [fold.id]
    assert store.embeddings()[1] == [keep.id, fold.id]
    assert store.nearest(unit(1)[0], 1) == [(fold.id, pytest.approx(1.0))]
    assert store.commit(Change(edges=(edge(fold, D),), concepts=(D,))).linked == (edge(fold, D).id,)
    assert store.edges_of(fold.id)[-1] == edge(fold, D)
    check(store)


def test_undo_of_a_chain_of_merges_restores_each_redirect(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B, C, D)))
    for keep, fold in ((B, C), (A, B), (D, A)):
        store.commit(Change(merges=((keep.id, fold.id),)))
    seen = []
    for op in (4, 3, 2):
        seen.append([getattr(store.concept(c.id), "name", None) for c in (A, B, C, D)])
        store.undo(op)
        check(store)
    assert seen == [["d", "d", "d", "d"], ["a", "a", "a", "d"], ["a", "b", "b", "d"]]
    assert store.concepts() == [A, B, C, D]


def test_a_conflict_names_the_operation_to_undo_first(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(concepts=(replace(B, definition="D."),)))
    store.commit(Change(concepts=(D,), edges=(edge(C, D),)))
    store.commit(Change(merges=((A.id, B.id),)))
    before, version = graph(store), store.version()
    with pytest.raises(UndoError, match="undo operation 4 first") as caught:
        store.undo(2)
    assert caught.value.later == 4
    with pytest.raises(UndoError, match="cannot be undone"):
        store.undo(1)
    assert (graph(store), store.version()) == (before, version), "a refused undo changes nothing"
    store.undo(4)
    store.undo(2)
    assert store.concepts() == [A, B, C, D]


def test_what_was_added_stays_while_something_hangs_on_it(store: GraphStore) -> None:
    store.commit(Change(concepts=(A,)))
    store.commit(Change(concepts=(B,), edges=(edge(A, B),)))
    with pytest.raises(UndoError, match="undo operation 2 first"):
        store.undo(1)
    assert undo_with_what_hinders(store, 1) == [2, 1]
    assert store.concepts() == []


def test_following_the_advice_gets_there_past_what_was_undone_and_redone(store: GraphStore) -> None:
    """Operations that were taken back, and those that took them back, are in nobody's way."""
    store.commit(Change(concepts=(A, B)))
    store.commit(Change(concepts=(replace(A, definition="2"),)))
    store.commit(Change(concepts=(replace(A, keywords=("3",)),)))
    store.undo(3)  # 4
    store.undo(4)  # 5: 3 is in force
    store.undo(5)  # 6: it is not
    with pytest.raises(UndoError, match="undo operation 2 first"):
        store.undo(1)
    assert undo_with_what_hinders(store, 1) == [2, 1]
    assert store.concepts() == []


def test_an_operation_is_taken_back_once(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(concepts=(D,), enqueue=(item(A),)))
    store.undo(2)
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    store.commit(Change(done=(A.id,)))
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 0}
    store.undo(3)
    assert store.frontier()["waiting"] == 1


def test_an_unknown_operation_is_named(store: GraphStore) -> None:
    with pytest.raises(UndoError, match="log is empty"):
        store.undo(1)
    store.commit(CHAIN)
    for op in (0, 2, -1):
        with pytest.raises(UndoError, match=f"no operation {op}: the log has the operations 1 to 1"):
            store.undo(op)
    assert issubclass(UndoError, StoreError)


def test_later_edges_can_forbid_an_undo(store: GraphStore) -> None:
    store.commit(replace(CHAIN, concepts=(A, B, C, D)))
    store.commit(Change(unlink=((A.id, B.id),)))
    store.commit(Change(edges=(edge(C, D), edge(D, A))))
    before = graph(store)
    with pytest.raises(CycleError) as caught:
        store.undo(2)
    assert (caught.value.parent, caught.value.child) == (A.id, B.id)
    assert caught.value.path[0] == B.id
    assert caught.value.path[-1] == A.id
    assert graph(store) == before
    store.undo(3)
    store.undo(2)
    assert levels(store) == {"a": 0, "b": 1, "c": 2, "d": 0}


def test_an_edge_does_not_come_back_without_its_ends(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(unlink=((A.id, B.id),)))
    store.commit(Change(merges=((C.id, B.id),)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    assert undo_with_what_hinders(store, 2) == [3, 2]
    assert store.edges() == list(CHAIN.edges)


def test_a_concept_that_came_anew_is_not_overwritten(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(remove=(B.id,)))
    store.commit(Change(concepts=(replace(B, definition="anew"),)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    assert undo_with_what_hinders(store, 2) == [3, 2]
    assert store.concepts() == [A, B, C]


def test_what_came_and_went_again_was_altered_too(store: GraphStore) -> None:
    store.commit(CHAIN)
    for change in (Change(remove=(B.id,)), Change(concepts=(B,)), Change(remove=(B.id,))):
        store.commit(change)
    with pytest.raises(UndoError, match="undo operation 4 first"):
        store.undo(2)
    assert undo_with_what_hinders(store, 2) == [4, 3, 2]
    assert store.edges() == list(CHAIN.edges)


def test_a_redirect_does_not_come_back_over_a_concept(store: GraphStore) -> None:
    """b was folded into a, a was removed, b came anew: a may not come back with what it meant then."""
    store.commit(Change(concepts=(A, B), merges=((A.id, B.id),)))
    store.commit(Change(remove=(A.id,)))
    store.commit(Change(concepts=(B,)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    store.undo(3)
    store.undo(2)
    assert store.concept(B.id) == store.concept(A.id) == replace(A, aliases=("b",))
    check(store)


def test_redirects_to_what_two_merges_of_one_change_fold_are_followed_to_the_end(store: GraphStore) -> None:
    """e means a; b is folded into a, then into d, which is a into d: e means d."""
    store.commit(Change(concepts=(A, B, D, E), merges=((A.id, E.id),)))
    before = graph(store)
    store.commit(Change(merges=((A.id, B.id), (D.id, B.id))))
    assert {getattr(store.concept(c.id), "name", None) for c in (A, B, D, E)} == {"d"}
    check(store)
    store.undo(2)
    assert graph(store) == before


def test_frontier_membership_is_restored_and_guarded(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(enqueue=(item(A), item(B))))
    store.commit(Change(done=(A.id,)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    store.undo(3)
    assert store.frontier() == {"waiting": 2, "leased": 0, "done": 0}
    store.undo(2)
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 0}
    check(store)


def test_no_frontier_item_comes_back_without_its_concept(store: GraphStore) -> None:
    store.commit(Change(concepts=(A,), enqueue=(item(A),)))
    store.commit(Change(done=(A.id,)))
    store.commit(Change(remove=(A.id,)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(2)
    check(store)
    assert undo_with_what_hinders(store, 1) == [3, 2, 1]
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 0}


def test_an_item_that_came_and_went_again_was_altered_too(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.undo(store.commit(Change(enqueue=(item(B),))).op)
    store.commit(Change(enqueue=(item(B),)))
    store.commit(Change(merges=((A.id, B.id),)))
    with pytest.raises(UndoError, match="undo operation 5 first"):
        store.undo(3)
    check(store)


def test_a_finished_item_that_waits_again_can_be_finished_again(store: GraphStore) -> None:
    store.commit(Change(concepts=(A,), enqueue=(item(A),)))
    (lease,) = store.lease(1, "me", 60)
    store.undo(store.commit(Change(leases=(lease,), done=(A.id,))).op)
    assert store.frontier() == {"waiting": 1, "leased": 0, "done": 0}
    (again,) = store.lease(1, "me", 60)
    assert again.token > lease.token
    store.commit(Change(leases=(again,), done=(A.id,)))
    assert store.frontier()["done"] == 1


def test_undo_keeps_sources_decisions_and_the_log(store: GraphStore) -> None:
    store.commit(replace(BASE, edges=(*BASE.edges, edge(B, A)), note="all"))
    decisions, sources = store.decisions(), store.sources()
    store.undo(1, note="a mistake")
    assert (store.decisions(), store.sources()) == (decisions, sources)
    assert [(o.op, o.kind, o.note, o.undoes) for o in store.operations()] == [
        (1, "commit", "all", None),
        (2, "undo", "a mistake", 1),
    ]


def test_removed_again_after_new_vectors(store: GraphStore) -> None:
    """The vector that comes back is the last one the concept had."""
    store.commit(CHAIN)
    store.put_embeddings("m", [A.id], unit(0))
    store.undo(store.commit(Change(remove=(A.id,))).op)
    store.put_embeddings("m", [A.id], unit(1))
    store.undo(store.commit(Change(remove=(A.id,))).op)
    assert np.array_equal(store.embeddings()[2], unit(1))
