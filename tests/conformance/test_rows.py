"""Raw rows: a copy is the same to the last bit, whichever kind of store it goes to; rows can be rewritten and put back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kgsynth.errors import StoreError, UndoError
from kgsynth.store import KINDS, Change, GraphStore, Split, TaskRecord
from kgsynth.store.embedded import EmbeddedStore
from tests.conformance.samples import (
    CHAIN,
    DIM,
    ODD_TEXTS,
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
    every_row,
    graph,
    item,
    undo_all,
)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[GraphStore]:
    with EmbeddedStore(tmp_path / "other.sqlite") as other:
        yield other


def fill(store: GraphStore) -> None:
    """Something of every kind."""
    odd = [concept(f"odd {i}", definition=text, aliases=(text[:5000],)) for i, text in enumerate(ODD_TEXTS)]
    change = Change(
        sources=(PAGE,), concepts=(A, B, C, D, *odd), enqueue=(item(A, 0), item(B), item(C)), done=(A.id,),
        edges=(edge(A, B, *SPANS[:3]), edge(B, C), edge(C, A), edge(A, D, SPANS[5])), note="“fill” \0",
    )  # fmt: skip
    store.commit(change)
    store.put_embeddings("m", [A.id, B.id, D.id], np.random.default_rng(0).standard_normal((3, DIM)).astype(np.float32))
    store.put_tasks([TaskRecord(id="t1", type="cloze", domain="d", granularity="g", prompt="?", concepts=(A.id, "c_none"), pass_rate=0.5)])  # fmt: skip
    store.lease(1, "me", 600)
    store.commit(Change(merges=((D.id, C.id),), remove=(odd[3].id,)))
    store.commit(Change(splits=(Split(concept=D.id, into=E, parents=(A.id,)),)))
    store.commit(Change(concepts=(replace(B, atomic=False),)))
    store.undo(4)


def copy(source: GraphStore, target: GraphStore) -> None:
    target.load({kind: list(every_row(source, kind)) for kind in KINDS}, source.state())


def test_a_copy_into_another_store_and_back_is_the_same(store: GraphStore, other: GraphStore) -> None:
    fill(store)
    copy(store, other)
    assert dump(other) == dump(store)
    assert {kind: len(dump(store)[kind]) > 0 for kind in KINDS} == dict.fromkeys(KINDS, True)
    check(other)
    undo_all(other)


def test_a_copy_from_another_store_is_the_same_and_lives_on(store: GraphStore, other: GraphStore) -> None:
    fill(other)
    copy(other, store)
    assert dump(store) == dump(other)
    assert store.concepts() == other.concepts()
    assert store.edges() == other.edges()
    assert store.decisions() == other.decisions()
    assert store.tasks(A.id) == other.tasks(A.id)
    assert store.find("nul \0 inside") == other.find("nul \0 inside") != []
    assert store.concept(C.id) == other.concept(C.id)
    assert dict(store.nearest(np.ones(DIM, np.float32))) == pytest.approx(dict(other.nearest(np.ones(DIM, np.float32))))
    assert store.history(B.id) == other.history(B.id)
    for both in (store, other):
        both.commit(Change(concepts=(concept("new"),), edges=(edge(C, concept("new")), edge(B, A))))
    assert graph(store) == graph(other)
    check(store)
    undo_all(store)


def test_rows_are_read_in_pages_by_number(store: GraphStore) -> None:
    fill(store)
    for kind in KINDS:
        whole = store.export(kind)
        assert [row["n"] for row in whole] == sorted(row["n"] for row in whole)
        assert list(every_row(store, kind, limit=2)) == whole
        assert store.export(kind, after=whole[-1]["n"]) == []


def test_loading_in_parts_and_again_is_the_same(store: GraphStore, other: GraphStore) -> None:
    fill(other)
    for kind in KINDS:
        found = other.export(kind)
        for part in (found[: len(found) // 2], found[len(found) // 3 :]):
            store.load({kind: part}, other.state())
    assert dump(store) == dump(other)


def test_loaded_rows_replace_and_are_removed(store: GraphStore) -> None:
    fill(store)
    first = store.export("concept")[0]
    store.load({"concept": [{**first, "definition": "new", "aliases": ["newest"]}]}, store.state())
    assert store.export("concept")[0]["definition"] == "new"
    assert [c.name for c in store.find("newest")] == ["a"]
    (task,) = store.export("task")
    store.load({}, store.state(), {"task": [task["n"]]})
    assert store.tasks() == []


def test_rewritten_rows_are_an_operation_that_undo_takes_back(store: GraphStore) -> None:
    store.commit(CHAIN)
    before = graph(store)
    a, _, c = store.export("concept")
    first, _ = store.export("edge")
    op = store.rewrite([("edge", first["n"])], [("concept", {**c, "definition": "mended", "level": 1})], note="mend")
    assert (op, store.version()) == (2, 2)
    assert store.edges() == [edge(B, C)]
    assert store.concept(C.id) == replace(C, definition="mended")
    (operation,) = store.operations(1)
    assert (operation.kind, operation.note, operation.concepts, operation.edges) == (
        "repair",
        "mend",
        (C.id,),
        ((A.id, B.id),),
    )
    assert store.history(C.id)[-1].op == 2
    store.undo(op)
    assert graph(store) == before
    assert [row["version"] for row in store.export("concept")] == [1, 1, 1]
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(op)
    store.undo(3)
    assert store.edges() == [edge(B, C)]
    assert a in store.export("concept")


def test_a_rewrite_that_later_changes_build_on_is_undone_after_them(store: GraphStore) -> None:
    store.commit(CHAIN)
    c = store.export("concept")[2]
    op = store.rewrite([], [("concept", {**c, "definition": "mended"})], note="mend")
    store.commit(Change(concepts=(replace(C, keywords=("k",)),)))
    with pytest.raises(UndoError, match="undo operation 3 first"):
        store.undo(op)
    store.undo(3)
    store.undo(op)
    assert store.concept(C.id) == C


def test_a_rewrite_of_what_others_changed_meanwhile_is_refused(store: GraphStore) -> None:
    store.commit(CHAIN)
    first = store.export("edge")[0]
    with pytest.raises(StoreError, match="changed meanwhile"):
        store.rewrite([("edge", first["n"])], [], note="late", as_of=0)
    assert store.edges() == list(CHAIN.edges)
    assert store.rewrite([("edge", first["n"])], [("frontier", {"n": -1, "concept": A.id, "depth": 0, "state": "waiting", "attempts": 0, "token": 0})], note="in time", as_of=1) == 2  # fmt: skip
    assert [i.concept for i in store.lease(1, "me", 60)] == [A.id]


def test_the_state_counts_what_there_is(store: GraphStore) -> None:
    empty = store.state()
    assert (empty["n"], empty["op"], empty["concepts"], empty["tokens"], empty["model"]) == (0, 0, 0, 0, "")
    fill(store)
    state = store.state()
    assert state["graph"] == empty["graph"]
    assert state["op"] == store.version()
    assert state["concepts"] == len(store.concepts())
    assert (state["tokens"], state["model"]) == (1, "m")
    assert "copying" not in state


def test_the_index_of_names_is_that_of_the_concepts(store: GraphStore) -> None:
    fill(store)
    store.undo(3)
    assert sorted(store.spellings()) == sorted((key, c.id) for c in store.concepts() for key in c.keys)
    assert store.schema_faults() == []
