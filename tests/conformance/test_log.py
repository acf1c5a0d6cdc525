"""The log: operations, what they touched, and the versions of a concept."""

from __future__ import annotations

import time
from dataclasses import replace

from kgsynth.store import Change, ConceptVersion, GraphStore, Split
from tests.conformance.samples import CHAIN, PAGE, SPANS, A, B, C, D, E, F, concept, edge, item


def test_every_operation_is_in_the_log(store: GraphStore) -> None:
    start = time.time()
    store.commit(replace(CHAIN, note="“first” \0 🌳"))
    store.commit(Change(concepts=(A,)))
    store.commit(Change(enqueue=(item(A),), note="queue"))
    store.commit(Change(unlink=((A.id, B.id),)))
    store.undo(3)
    first, queue, cut, undone = store.operations()
    assert [o.op for o in (first, queue, cut, undone)] == [1, 2, 3, 4]
    assert (first.kind, first.note, first.undoes) == ("commit", "“first” \0 🌳", None)
    assert (set(first.concepts), set(first.edges)) == ({A.id, B.id, C.id}, {(A.id, B.id), (B.id, C.id)})
    assert (queue.note, queue.concepts, queue.edges) == ("queue", (), ())
    assert (cut.concepts, cut.edges) == ((), ((A.id, B.id),))
    assert (undone.kind, undone.note, undone.undoes, undone.edges) == ("undo", "undo 3", 3, ((A.id, B.id),))
    times = [o.at for o in (first, queue, cut, undone)]
    assert start - 1 <= times[0] <= times[1] <= times[2] <= times[3] <= time.time() + 1


def test_the_log_is_read_from_anywhere(store: GraphStore) -> None:
    for i in range(7):
        store.commit(Change(concepts=(concept(f"n{i}"),), note=str(i)))
    assert [o.op for o in store.operations(3)] == [4, 5, 6, 7]
    assert [o.op for o in store.operations(3, 2)] == [4, 5]
    assert [o.note for o in store.operations(limit=1)] == ["0"]
    assert store.operations(7) == store.operations(99) == store.operations(0, 0) == []


def test_touched_tells_what_to_read_again(store: GraphStore) -> None:
    assert (store.touched(0).op, store.touched(0).concepts) == (0, frozenset())
    store.commit(CHAIN)
    store.commit(Change(sources=(PAGE,), concepts=(D, replace(B, keywords=("new",))), edges=(edge(C, D), edge(A, B, SPANS[0]))))  # fmt: skip
    seen = store.touched(1)
    assert seen.op == store.version() == 2
    assert seen.concepts == {D.id, B.id}
    assert seen.edges == {(C.id, D.id), (A.id, B.id)}
    assert store.concepts(seen.concepts) == [replace(B, keywords=("new",)), D]
    assert store.edges(seen.edges) == [edge(A, B, SPANS[0]), edge(C, D)]
    assert (store.touched(2).op, store.touched(2).concepts, store.touched(2).edges) == (2, frozenset(), frozenset())


def test_a_copy_kept_by_touched_stays_the_same(store: GraphStore) -> None:
    """What the readers of the package do: read again just what was touched; what is not there any more is gone."""
    changes = [
        CHAIN,
        Change(concepts=(D, E), edges=(edge(C, D), edge(A, E))),
        Change(merges=((D.id, E.id),)),
        Change(splits=(Split(concept=D.id, into=F, parents=(A.id,)),)),
        Change(unlink=((B.id, C.id),), remove=(A.id,)),
        5,
        4,
        7,
        Change(concepts=(replace(B, definition="D."),), edges=(edge(B, D, SPANS[0]),), sources=(PAGE,)),
    ]
    concepts, edges, seen = {}, {}, 0
    for change in changes:
        _ = store.commit(change) if isinstance(change, Change) else store.undo(change)
        touched = store.touched(seen)
        seen = touched.op
        concepts = {i: c for i, c in concepts.items() if i not in touched.concepts}
        edges = {pair: e for pair, e in edges.items() if pair not in touched.edges}
        concepts |= {c.id: c for c in store.concepts(touched.concepts)}
        edges |= {(e.parent, e.child): e for e in store.edges(touched.edges)}
        assert concepts == {c.id: c for c in store.concepts()}
        assert edges == {(e.parent, e.child): e for e in store.edges()}


def test_history_has_every_version(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(concepts=(replace(B, definition="D."),)))
    store.commit(Change(edges=(edge(A, C),)))
    store.commit(Change(concepts=(replace(B, atomic=True, atomic_reason="r"),)))
    second = replace(B, definition="D.")
    third = replace(second, atomic=True, atomic_reason="r")
    assert store.history(B.id) == [
        ConceptVersion(op=1, concept=B),
        ConceptVersion(op=2, concept=second),
        ConceptVersion(op=4, concept=third),
    ]
    assert store.history(A.id) == [ConceptVersion(op=1, concept=A)]
    assert store.history("c_none") == []


def test_history_of_a_removed_concept_ends_with_nothing(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(remove=(B.id,)))
    assert store.history(B.id) == [ConceptVersion(op=1, concept=B), ConceptVersion(op=2, concept=None)]
    again = replace(B, definition="anew")
    store.commit(Change(concepts=(again,)))
    assert store.history(B.id) == [
        ConceptVersion(op=1, concept=B),
        ConceptVersion(op=2, concept=None),
        ConceptVersion(op=3, concept=again),
    ]


def test_history_of_both_sides_of_a_merge(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(merges=((A.id, B.id),)))
    merged = replace(A, aliases=("b",))
    assert store.history(A.id) == [ConceptVersion(op=1, concept=A), ConceptVersion(op=2, concept=merged)]
    assert store.history(B.id) == [ConceptVersion(op=1, concept=B), ConceptVersion(op=2, concept=None)]


def test_history_after_undo_ends_as_it_stands(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(concepts=(replace(B, definition="D."),)))
    store.undo(2)
    versions = store.history(B.id)
    assert versions[0] == ConceptVersion(op=1, concept=B)
    assert versions[-1].concept == B
    store.undo(1)
    assert store.history(B.id)[-1].concept is None


def test_the_version_counts_operations_only(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.commit(Change(sources=(PAGE,)))
    store.lease(1, "me", 60)
    store.commit(Change(edges=(edge(C, A),)))
    assert store.version() == 1
