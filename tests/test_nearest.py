"""Nearest neighbours: the exact search against plain numpy, the index by its recall, both through changes."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kgsynth.errors import StoreError
from kgsynth.nearest import Nearest

DIM = 24
IDS = st.integers(0, 12).map("c{}".format)
VECTOR = st.tuples(st.integers(0, 3), st.sampled_from([-2.0, 1.0, 4.0])).map(lambda at: at[1] * np.eye(4)[at[0]])
ADDED = st.lists(st.tuples(IDS, VECTOR), max_size=6)  # along an axis: many exact ties
STEPS = st.lists(st.one_of(ADDED, st.lists(IDS, max_size=4)), max_size=12)  # pairs are added, plain ids removed


def clustered(n: int, seed: int = 0) -> NDArray[np.float32]:
    """[n, DIM] in clusters of about 20, like names among their near-synonyms."""
    dice = np.random.default_rng(seed)
    centres = dice.standard_normal((n // 20, DIM))
    return (centres[dice.integers(0, len(centres), n)] + 0.3 * dice.standard_normal((n, DIM))).astype(np.float32)


def oracle(known: dict[str, Any], vector: Any, k: int) -> list[tuple[str, float]]:
    def cosine(other: Any) -> float:
        return float(np.dot(vector, other) / (np.linalg.norm(vector) * np.linalg.norm(other)))

    return sorted(((i, cosine(v)) for i, v in known.items()), key=lambda found: -found[1])[:k]


def filled(vectors: NDArray[np.float32], exact_up_to: int = 100_000) -> Nearest:
    nearest = Nearest(vectors.shape[1], exact_up_to=exact_up_to)
    nearest.add([f"c{i}" for i in range(len(vectors))], vectors)
    return nearest


def recall(nearest: Nearest, queries: NDArray[np.float32], k: int = 10) -> float:
    """Share of the true k nearest that were found; the truth is the same object made to search exactly."""
    found = nearest.query_many(queries, k)
    limit, nearest.exact_up_to = nearest.exact_up_to, len(nearest)
    truth = nearest.query_many(queries, k)
    nearest.exact_up_to = limit
    return float(np.mean([len(dict(a).keys() & dict(b).keys()) / k for a, b in zip(found, truth, strict=True)]))


@pytest.mark.parametrize("exact_up_to", [100_000, 3])
@settings(max_examples=150, deadline=None)
@given(steps=STEPS, axis=st.permutations([0.1, 0.2, 0.7, 2.0]), k=st.integers(1, 15))
def test_after_any_changes_answers_are_those_of_sorting_all(
    exact_up_to: int, steps: list[list[Any]], axis: list[float], k: int
) -> None:
    """Ids in order of insertion among equals. An index of this size is scanned whole, so it must answer the same."""
    nearest, known, query = Nearest(4, exact_up_to=exact_up_to), {}, np.array(axis)
    for step in steps:
        if step and isinstance(step[0], tuple):
            nearest.add([i for i, _ in step], [v for _, v in step])
            known |= dict(step)
        else:
            nearest.remove(step)
            known = {i: v for i, v in known.items() if i not in step}
        found, expected = nearest.query(query, k), oracle(known, query, k)
        assert [i for i, _ in found] == [i for i, _ in expected]
        assert [c for _, c in found] == pytest.approx([c for _, c in expected], abs=1e-6)
    assert len(nearest) == len(known)
    assert all(i in nearest for i in known)
    ids, vectors = nearest.vectors()
    assert ids == list(known)
    assert vectors.shape == (len(known), 4)
    assert all((vector == known[i] / np.linalg.norm(known[i])).all() for i, vector in zip(ids, vectors, strict=True))


def test_many_queries_equal_single_ones_and_the_oracle() -> None:
    vectors, queries = clustered(3000), clustered(40, seed=1)
    nearest, known = filled(vectors), {f"c{i}": v for i, v in enumerate(vectors.astype(float))}
    found = nearest.query_many(queries, 7)
    for query, one in zip(queries, found, strict=True):
        assert nearest.query(query, 7) == one
        expected = oracle(known, query.astype(float), 7)
        assert [i for i, _ in one] == [i for i, _ in expected]
        assert [c for _, c in one] == pytest.approx([c for _, c in expected], abs=1e-6)


def test_equal_vectors_have_one_cosine_wherever_their_rows_are() -> None:
    """BLAS adds up in another order near the end of a block: that must not show in the answer."""
    vectors = np.random.default_rng(0).standard_normal((1013, 384)).astype(np.float32)
    same = [*range(3, 1013, 101), 1012]
    vectors[same] = vectors[0]
    found = filled(vectors).query(vectors[5] + vectors[0], k=len(same) + 2)
    twins = [(i, c) for i, c in found if int(i[1:]) in {0, *same}]
    assert [i for i, _ in twins] == [f"c{i}" for i in (0, *same)]
    assert len({c for _, c in twins}) == 1


def test_a_vector_is_its_own_nearest_with_cosine_one() -> None:
    vectors = clustered(500) * np.float32(1e30)  # their squares are beyond float32
    nearest = filled(vectors)
    (found,) = nearest.query(vectors[7], k=1)
    assert found == ("c7", pytest.approx(1, abs=1e-6))
    assert found[1] <= 1
    assert np.linalg.norm(nearest.vector("c7")) == pytest.approx(1)


@pytest.mark.parametrize("n", [1500, 12_000])
def test_the_index_recalls_nearly_all_and_its_cosines_are_exact(n: int) -> None:
    pytest.importorskip("faiss")
    nearest = filled(clustered(n), exact_up_to=1000)
    queries = (clustered(n)[:100] + 0.1 * clustered(n, seed=2)[:100]).astype(np.float32)
    assert recall(nearest, queries) >= 0.95
    for query, found in zip(queries, nearest.query_many(queries), strict=True):
        unit = query.astype(float) / np.linalg.norm(query.astype(float))
        exact = [float(nearest.vector(i).astype(float) @ unit) for i, _ in found]
        assert [c for _, c in found] == pytest.approx(exact, abs=1e-12)
        assert exact == sorted(exact, reverse=True)


def test_the_index_follows_additions_replacements_and_removals() -> None:
    pytest.importorskip("faiss")
    vectors = clustered(4000)
    nearest = filled(vectors[:1500], exact_up_to=1000)
    assert recall(nearest, vectors[:50]) >= 0.95
    nearest.add([f"c{i}" for i in range(1500, 4000)], vectors[1500:])  # past twice the size it was trained on
    nearest.add([f"c{i}" for i in range(100)], -vectors[:100])
    nearest.remove(f"c{i}" for i in range(100, 1200))
    assert len(nearest) == 2900
    assert recall(nearest, vectors[1200:1260]) >= 0.95
    assert not {f"c{i}" for i in range(100, 1200)} & {
        i for found in nearest.query_many(vectors[100:200]) for i, _ in found
    }
    for i in range(0, 100, 9):
        assert nearest.query(-vectors[i], k=1) == [(f"c{i}", pytest.approx(1, abs=1e-6))]
    nearest.remove(f"c{i}" for i in range(1200, 3800))
    assert len(nearest.query(vectors[0], k=500)) == 300, "small again: exact again"


def test_as_many_as_asked_for_also_when_the_scanned_lists_hold_fewer() -> None:
    pytest.importorskip("faiss")
    nearest = filled(clustered(3000), exact_up_to=1000)
    assert len(nearest.query(clustered(1 * 20)[0], k=2900)) == 2900


def test_without_the_index_library_it_stays_exact_and_says_so_once() -> None:
    code = (
        "import sys, warnings; sys.modules['faiss'] = None\n"
        "import numpy as np; from kgsynth.nearest import Nearest\n"
        "n = Nearest(3, exact_up_to=10); n.add([str(i) for i in range(50)], np.eye(3)[[i % 3 for i in range(50)]])\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always'); a = n.query([0, 2, 0], 2); b = n.query([0, 2, 0], 2)\n"
        "assert a == b == [('1', 1.0), ('4', 1.0)], a\n"
        "assert len(caught) == 1 and 'kgsynth[ann]' in str(caught[0].message), caught\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("ids", "vectors", "says"),
    [
        (["a"], [[0.0, 0.0]], "zero"),
        (["a", "b"], [[1.0, 0.0], [float("nan"), 1.0]], "vector 1 is not finite"),
        (["a"], [[float("inf"), 1.0]], "not finite"),
        (["a"], [[1e300, 1.0]], "not finite"),
        (["a"], [[1.0, 2.0, 3.0]], r"shape \(1, 3\), not \[N, 2\]"),
        (["a"], [1.0, 2.0], "shape"),
        (["a"], [["x", "y"]], "not vectors"),
        (["a"], [[1.0], [1.0, 2.0]], "not vectors"),
        (["a", "b"], [[1.0, 0.0]], "1 vectors were given for 2 ids"),
        ([], [[1.0, 0.0]], "for 0 ids"),
    ],
)
def test_what_is_no_vector_is_refused_and_nothing_is_added(ids: list[str], vectors: Any, says: str) -> None:
    nearest = Nearest(2)
    nearest.add(["a"], [[3.0, 4.0]])
    with pytest.raises(StoreError, match=says):
        nearest.add(ids, vectors)
    assert len(nearest) == 1
    assert nearest.vector("a").tolist() == pytest.approx([0.6, 0.8])


def test_bad_questions_are_refused() -> None:
    nearest = filled(clustered(20))
    for vector, k, says in (
        (np.zeros(DIM), 1, "zero"),
        (np.full(DIM, np.nan), 1, "not finite"),
        (np.ones(DIM + 1), 1, "shape"),
        (np.ones(DIM), 0, "at least 1"),
    ):
        with pytest.raises(StoreError, match=says):
            nearest.query(vector, k)
    with pytest.raises(StoreError, match="c_nowhere"):
        nearest.vector("c_nowhere")
    with pytest.raises(StoreError, match="0 numbers wide"):
        Nearest(0)


def test_empty_things() -> None:
    nearest = Nearest(2)
    assert nearest.query([1.0, 0.0]) == []
    nearest.add([], [])
    nearest.remove(["a"])
    assert nearest.query_many([]) == []
    assert len(nearest) == 0


def test_threads_share_one() -> None:
    """Rows grow in place while others search."""
    vectors = clustered(6000)
    nearest = filled(vectors[:1000], exact_up_to=2000)

    def add(start: int) -> None:
        nearest.add([f"c{i}" for i in range(start, start + 10)], vectors[start : start + 10])

    def ask(i: int) -> float:
        return nearest.query(vectors[i % 1000], k=1)[0][1]

    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(ask, range(300))
        list(pool.map(add, range(1000, 6000, 10)))
        assert min(asked) == pytest.approx(1, abs=1e-6)
    assert len(nearest) == 6000
