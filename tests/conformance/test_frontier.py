"""The frontier: who works on what, and that what comes too late is not written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgsynth.errors import LeaseError, StaleError
from kgsynth.store import Change, GraphStore
from tests.conformance.conftest import Connect
from tests.conformance.samples import CHAIN, PAGE, A, B, C, Clock, D, concept, dump, edge, item, items


def test_leases_in_order_and_finishes(store: GraphStore) -> None:
    store.commit(items("a", "b", "c"))
    first = store.lease(2, "one", 60)
    assert [i.concept for i in first] == [A.id, B.id]
    assert first[0].seq < first[1].seq
    assert [i.concept for i in store.lease(5, "two", 60)] == [C.id]
    assert store.lease(5, "three", 60) == store.lease(0, "three", 60) == []
    assert store.frontier() == {"waiting": 0, "leased": 3, "done": 0}
    store.commit(replace(items("a", "d"), done=(A.id,)))
    assert store.frontier() == {"waiting": 1, "leased": 2, "done": 1}
    store.commit(items("a"))
    assert store.frontier()["done"] == 1, "done stays done"
    assert [i.concept for i in store.lease(5, "three", 60)] == [D.id]


def test_an_item_says_where_it_is_and_how_often_it_was_tried(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B), enqueue=(item(A, 0), item(B, 4))))
    one, two = store.lease(9, "me", 60)
    assert (one.depth, two.depth, one.attempts, two.attempts) == (0, 4, 0, 0)
    assert 0 < one.token < two.token
    store.release("me")
    again = store.lease(9, "me", 60)
    assert [(i.concept, i.depth, i.seq, i.attempts) for i in again] == [
        (A.id, 0, one.seq, 1),
        (B.id, 4, two.seq, 1),
    ]
    assert again[0].token > two.token


def test_release_gives_back_own_leases_only(store: GraphStore) -> None:
    store.commit(items("a", "b", "c"))
    store.lease(2, "one", 60)
    store.lease(1, "two", 60)
    assert store.release("one") == 2
    assert store.release("one") == store.release("nobody") == 0
    again = store.lease(5, "two", 60)
    assert [(i.concept, i.attempts) for i in again] == [(A.id, 1), (B.id, 1)]


def test_release_with_all_workers_of_an_owner(store: GraphStore) -> None:
    store.commit(items("a", "b", "c"))
    for owner in ("run", "run/0", "run/11"):
        assert store.lease(1, owner, 60)
    assert store.release("run") == 1
    assert store.release("ru", workers=True) == store.release("run/1", workers=True) == 0
    assert store.release("run", workers=True) == 2
    assert store.frontier() == {"waiting": 3, "leased": 0, "done": 0}


def test_expired_leases_count_as_waiting(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a", "b"))
    store.lease(1, "slow", 10)
    clock.now += 9.9
    assert [i.concept for i in store.lease(5, "fast", 100)] == [B.id]
    clock.now += 0.2
    assert store.frontier() == {"waiting": 1, "leased": 1, "done": 0}
    (again,) = store.lease(5, "fast", 100)
    assert (again.concept, again.attempts) == (A.id, 1)
    store.commit(Change(done=(A.id,)))
    assert store.frontier() == {"waiting": 0, "leased": 1, "done": 1}


def test_a_late_worker_writes_nothing_when_another_holds_the_item(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a"))
    (late,) = store.lease(1, "slow", 10)
    clock.now += 11
    (held,) = store.lease(1, "fast", 10)
    before = dump(store)
    work = Change(sources=(PAGE,), concepts=(B,), edges=(edge(A, B),), enqueue=(item(B),), done=(A.id,))
    with pytest.raises(LeaseError, match="nothing was written"):
        store.commit(replace(work, leases=(late,)))
    assert dump(store) == before
    assert store.commit(replace(work, leases=(held,))).added == (B.id,)
    assert store.frontier() == {"waiting": 1, "leased": 0, "done": 1}


def test_a_late_worker_writes_nothing_when_another_finished_the_item(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a"))
    (late,) = store.lease(1, "slow", 10)
    clock.now += 11
    (held,) = store.lease(1, "fast", 10)
    store.commit(Change(leases=(held,), done=(A.id,)))
    with pytest.raises(LeaseError):
        store.commit(Change(concepts=(B,), leases=(late,), done=(A.id,)))
    assert store.concepts() == [A]


def test_an_expired_lease_that_nobody_took_is_still_good(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a"))
    (mine,) = store.lease(1, "slow", 10)
    clock.now += 1000
    assert store.commit(Change(concepts=(B,), leases=(mine,), done=(A.id,))).added == (B.id,)


def test_one_bad_lease_of_several_refuses_all(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a", "b"))
    one, two = store.lease(2, "me", 10)
    clock.now += 11
    store.lease(1, "another", 10)
    with pytest.raises(LeaseError, match=one.concept):
        store.commit(Change(concepts=(C,), leases=(two, one), done=(B.id, A.id)))
    assert store.commit(Change(concepts=(C,), leases=(two,), done=(B.id,))).added == (C.id,)


def test_a_committed_change_may_be_committed_again_under_its_own_lease(store: GraphStore) -> None:
    store.commit(items("a"))
    (mine,) = store.lease(1, "me", 60)
    change = Change(concepts=(B,), edges=(edge(A, B),), leases=(mine,), done=(A.id,))
    store.commit(change)
    before = dump(store)
    assert store.commit(change).op == 0
    assert dump(store) == before


def test_a_lease_on_what_an_undo_finished_again_is_no_good(store: GraphStore) -> None:
    """One finishes it, that is undone, another takes it, and the undo is undone."""
    store.commit(items("a"))
    (first,) = store.lease(1, "one", 60)
    work = Change(concepts=(B,), leases=(first,), done=(A.id,))
    undone = store.undo(store.commit(work).op).op
    (second,) = store.lease(1, "two", 60)
    store.undo(undone)
    with pytest.raises(LeaseError):
        store.commit(Change(concepts=(C,), leases=(second,), done=(A.id,)))
    assert store.commit(work).op == 0, "the one who finished it may say so again"
    assert store.concepts() == [A, B]


def test_a_lease_on_what_was_removed_is_no_good(store: GraphStore) -> None:
    store.commit(items("a"))
    (mine,) = store.lease(1, "me", 60)
    store.commit(Change(remove=(A.id,)))
    with pytest.raises(LeaseError, match="left the frontier"):
        store.commit(Change(concepts=(B,), leases=(mine,), done=(A.id,)))
    assert store.concepts() == []


def test_an_item_that_is_known_is_not_queued_again(store: GraphStore) -> None:
    store.commit(Change(concepts=(A, B), enqueue=(item(A, 5), item(A, 1))))
    store.commit(Change(enqueue=(item(A, 2), item(B, 2))))
    assert [(i.concept, i.depth) for i in store.lease(9, "me", 60)] == [(A.id, 5), (B.id, 2)]
    store.commit(Change(enqueue=(item(A), item(B)), done=(A.id,)))
    assert store.frontier() == {"waiting": 0, "leased": 1, "done": 1}


def test_what_is_not_in_the_graph_is_not_queued(store: GraphStore) -> None:
    assert store.commit(Change(enqueue=(item(A),), done=(B.id,))).op == 0
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 0}


def test_queued_and_finished_by_one_change(store: GraphStore) -> None:
    store.commit(Change(concepts=(A,), enqueue=(item(A),), done=(A.id,)))
    assert store.frontier() == {"waiting": 0, "leased": 0, "done": 1}
    assert store.lease(1, "me", 60) == []


def test_items_are_leased_in_the_order_in_which_they_were_queued(store: GraphStore) -> None:
    names = [f"n{i}" for i in range(30)]
    store.commit(Change(concepts=tuple(map(concept, names))))
    for name in reversed(names):
        store.commit(Change(enqueue=(item(concept(name)),)))
    taken = [i.concept for _ in range(10) for i in store.lease(3, "me", 60)]
    assert taken == [concept(name).id for name in reversed(names)]


def test_leases_are_no_part_of_the_history(store: GraphStore) -> None:
    store.commit(replace(CHAIN, enqueue=(item(A),)))
    store.lease(1, "me", 60)
    store.release("me")
    assert store.version() == 1
    (mine,) = store.lease(1, "me", 60)
    store.commit(Change(concepts=(D,), leases=(mine,)))
    assert store.operations()[-1].concepts == (D.id,)


def test_a_lease_can_be_had_among_some_only(connect: Connect) -> None:
    clock = Clock()
    store = connect(clock=clock)
    store.commit(items("a", "b", "c", "d"))
    (held,) = store.lease(1, "other", 10, among=[B.id])
    assert held.concept == B.id
    assert [i.concept for i in store.waiting()] == [A.id, C.id, D.id]
    assert [i.concept for i in store.lease(2, "me", 60, among=[D.id, B.id, C.id, "c_unknown", C.id])] == [C.id, D.id]
    assert store.lease(5, "me", 60, among=[]) == []
    clock.now += 11
    assert [(i.concept, i.attempts) for i in store.waiting()] == [(A.id, 0), (B.id, 0)]
    assert [(i.concept, i.attempts) for i in store.lease(5, "me", 60, among=[B.id])] == [(B.id, 1)]


def test_a_finished_item_can_wait_again_and_undo_knows(store: GraphStore) -> None:
    store.commit(items("a", "b"))
    store.commit(Change(done=(A.id,)))
    op = store.commit(Change(reopen=(A.id, B.id, "c_unknown"))).op
    assert store.frontier() == {"waiting": 2, "leased": 0, "done": 0}
    assert store.commit(Change(reopen=(A.id,))).op == 0, "it waits already"
    store.undo(op)
    assert store.frontier() == {"waiting": 1, "leased": 0, "done": 1}


def test_new_concepts_that_were_compared_with_an_older_graph_are_not_inserted(store: GraphStore) -> None:
    store.commit(items("a"))
    seen = store.version()
    store.commit(Change(concepts=(B,), as_of=seen))
    before = dump(store)
    with pytest.raises(StaleError, match="compare them again"):
        store.commit(Change(sources=(PAGE,), concepts=(C,), edges=(edge(A, C),), done=(A.id,), as_of=seen))
    assert dump(store) == before
    known = replace(B, aliases=("second letter",))
    store.commit(Change(concepts=(known,), edges=(edge(A, B),), as_of=seen))  # inserts nothing
    store.commit(Change(concepts=(C,), as_of=store.version()))
    assert len(store.concepts()) == 3
