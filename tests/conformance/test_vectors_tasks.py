"""Embeddings, the nearest of them, and tasks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kgsynth.errors import StoreError
from kgsynth.store import Change, GraphStore, TaskRecord
from tests.conformance.conftest import Connect
from tests.conformance.samples import CHAIN, DIM, A, B, C, D, concept, unit


def many(n: int, seed: int = 0) -> tuple[Change, list[str], np.ndarray]:
    concepts = [concept(f"v{i}") for i in range(n)]
    vectors = np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)
    return Change(concepts=tuple(concepts)), [c.id for c in concepts], vectors


def test_vectors_come_back_to_the_bit_in_the_order_of_concepts(store: GraphStore) -> None:
    change, ids, vectors = many(50)
    store.commit(change)
    order = np.random.default_rng(1).permutation(50)
    store.put_embeddings("m", [ids[i] for i in order], vectors[order])
    model, found, matrix = store.embeddings()
    assert (model, found) == ("m", ids)
    assert matrix.dtype == np.float32
    assert np.array_equal(matrix, vectors)


def test_no_vectors(store: GraphStore) -> None:
    store.commit(CHAIN)
    model, ids, matrix = store.embeddings()
    assert (model, ids, matrix.shape, matrix.dtype) == ("", [], (0, 0), np.float32)
    assert store.nearest(unit(0)[0], 3) == []


def test_vectors_of_concepts_that_are_not_there_are_skipped(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_embeddings("m", [D.id, A.id, "c_none"], unit(0, 1, 2))
    assert store.embeddings()[1] == [A.id]
    assert np.array_equal(store.embeddings()[2], unit(1))


def test_a_vector_is_replaced(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_embeddings("m", [A.id, B.id], unit(0, 1))
    assert store.nearest(unit(2)[0], 1)[0][1] == pytest.approx(0.0)
    store.put_embeddings("m", [B.id], unit(2))
    assert store.nearest(unit(2)[0], 1) == [(B.id, pytest.approx(1.0))]
    assert np.array_equal(store.embeddings()[2], unit(0, 2))


def test_the_nearest_are_exact_and_in_order(store: GraphStore) -> None:
    change, ids, vectors = many(200)
    store.commit(change)
    store.put_embeddings("m", ids, vectors)
    for seed in range(5):
        query = np.random.default_rng(100 + seed).standard_normal(DIM).astype(np.float32) * 7
        cosine = (vectors @ query) / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(query))
        best = np.argsort(-cosine)[:10]
        found = store.nearest(query, 10)
        assert [i for i, _ in found] == [ids[i] for i in best]
        assert [c for _, c in found] == pytest.approx([float(cosine[i]) for i in best], abs=1e-5)


def test_k_is_a_bound(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_embeddings("m", [A.id, B.id, C.id], unit(0, 1, 2))
    assert len(store.nearest(unit(0)[0], 2)) == 2
    assert len(store.nearest(unit(0)[0], 50)) == 3


def test_what_was_removed_or_folded_is_not_found(store: GraphStore) -> None:
    store.commit(replace(CHAIN, concepts=(A, B, C, D)))
    store.put_embeddings("m", [A.id, B.id, C.id, D.id], unit(0, 1, 2, 3))
    assert store.nearest(unit(3)[0], 1)[0][0] == D.id
    store.commit(Change(remove=(D.id,), merges=((A.id, B.id),)))
    assert {i for i, _ in store.nearest(unit(3)[0], 9)} == {A.id, C.id}
    store.undo(2)
    assert store.nearest(unit(3)[0], 1)[0][0] == D.id
    assert len(store.nearest(unit(3)[0], 9)) == 4


def test_nearest_sees_what_others_put(connect: Connect) -> None:
    one, two = connect(), connect()
    one.commit(CHAIN)
    one.put_embeddings("m", [A.id], unit(0))
    assert [i for i, _ in two.nearest(unit(1)[0], 5)] == [A.id]
    one.put_embeddings("m", [B.id], unit(1))
    assert two.nearest(unit(1)[0], 1) == [(B.id, pytest.approx(1.0))]
    one.commit(Change(remove=(B.id,)))
    assert [i for i, _ in two.nearest(unit(1)[0], 5)] == [A.id]


def test_a_graph_has_the_vectors_of_one_model(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_embeddings("m", [A.id], unit(0))
    with pytest.raises(StoreError, match="'m'"):
        store.put_embeddings("another", [B.id], unit(1))
    with pytest.raises(StoreError, match=str(DIM)):
        store.put_embeddings("m", [B.id], np.ones((1, DIM + 1), np.float32))
    assert store.embeddings()[1] == [A.id]


def test_a_vector_that_comes_back_is_of_the_same_model_as_the_others(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_embeddings("m", [A.id], unit(0))
    gone = store.commit(Change(remove=(A.id,))).op
    with pytest.raises(StoreError, match="'m'"):
        store.put_embeddings("another", [B.id], np.ones((1, DIM + 1), np.float32))
    store.put_embeddings("m", [B.id], unit(1))
    store.undo(gone)
    model, ids, matrix = store.embeddings()
    assert (model, {*ids}, matrix.shape) == ("m", {A.id, B.id}, (2, DIM))


@pytest.mark.parametrize("bad", [np.zeros((1, DIM)), np.full((1, DIM), np.nan), np.ones((2, DIM)), np.ones(DIM)])
def test_vectors_that_have_no_direction_or_no_concept_are_refused(store: GraphStore, bad: np.ndarray) -> None:
    store.commit(CHAIN)
    with pytest.raises(StoreError):
        store.put_embeddings("m", [A.id], bad.astype(np.float32))
    assert store.embeddings()[1] == []


# tasks


def task(i: int, *concepts: str, **fields: object) -> TaskRecord:
    values = {"type": "cloze", "domain": "test", "granularity": "fine", "prompt": f"{i}?", **fields}
    return TaskRecord(id=f"t{i}", concepts=concepts, **values)  # type: ignore[arg-type]


def test_tasks_are_found_by_what_they_test(store: GraphStore) -> None:
    store.commit(CHAIN)
    tasks = [task(1, A.id, B.id), task(2, B.id), task(3, C.id, "c_none"), task(4)]
    store.put_tasks(tasks)
    assert store.tasks() == tasks
    assert store.tasks(A.id) == tasks[:1]
    assert store.tasks(B.id) == tasks[:2]
    assert store.tasks(C.id) == [tasks[2]]
    assert store.tasks(D.id) == store.tasks("c_none") == []


def test_tasks_follow_the_concepts_they_test(store: GraphStore) -> None:
    """Through a merge, its undo, and the removal and return of a concept."""
    store.commit(CHAIN)
    tasks = [task(1, A.id), task(2, B.id), task(3, B.id, A.id)]
    store.put_tasks(tasks)
    op = store.commit(Change(merges=((A.id, B.id),))).op
    assert store.tasks(A.id) == store.tasks(B.id) == tasks
    store.put_tasks([task(4, B.id)])
    assert store.tasks(A.id) == [*tasks, task(4, B.id)]
    store.undo(op)
    assert (store.tasks(A.id), store.tasks(B.id)) == ([tasks[0], tasks[2]], [*tasks[1:], task(4, B.id)])
    op = store.commit(Change(remove=(A.id,))).op
    assert store.tasks(A.id) == []
    assert len(store.tasks()) == 4
    store.undo(op)
    assert store.tasks(A.id) == [tasks[0], tasks[2]]


def test_what_is_known_of_a_task_is_replaced_in_its_place(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_tasks([task(1, A.id), task(2, A.id)])
    tried = task(1, B.id, pass_rate=0.25, attempts=8, policy="step-100")
    store.put_tasks([tried, task(3, A.id)])
    assert store.tasks() == [tried, task(2, A.id), task(3, A.id)]
    assert store.tasks(A.id) == [task(2, A.id), task(3, A.id)]
    assert store.tasks(B.id) == [tried]


def test_pass_rates_are_none_zero_and_one(store: GraphStore) -> None:
    rates = [None, 0.0, 1.0, 1 / 3]
    store.put_tasks([task(i, pass_rate=rate) for i, rate in enumerate(rates)])
    assert [t.pass_rate for t in store.tasks()] == rates


def test_tasks_are_no_operation_and_their_numbers_are_their_own(store: GraphStore) -> None:
    store.commit(CHAIN)
    store.put_tasks([task(i) for i in range(5)])
    store.commit(Change(concepts=(D,)))
    assert store.version() == 2
    numbers = [row["n"] for kind in ("concept", "edge", "task") for row in store.export(kind)]
    assert len(set(numbers)) == len(numbers)
    assert store.state()["n"] == max(numbers)
