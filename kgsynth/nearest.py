"""Nearest neighbours by cosine: exact in memory up to 100,000 vectors, an inverted-file index beyond.

A query first finds candidates, then orders them by cosines that are computed anew from the stored float32 rows. So what is
returned never depends on how a candidate was found, nor on the block in which its row happened to be multiplied.

    exact   one matrix-vector product (BLAS); every row within its rounding error of the k-th is a candidate
    index   faiss IVF (Jegou, Douze, Schmid: Product quantization for nearest neighbor search, 2011) over 8-bit codes:
            a quarter of the lists is scanned, at least 4 k candidates are fetched

Graph indexes (HNSW) were measured beside it: no better recall, and built about ten times as slowly, which counts because
each process builds its own. The numbers are in docs/graph.md.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgsynth.errors import StoreError

EXACT_UP_TO = 100_000
BLOCK = 1 << 22  # numbers worked on at a time, where there may be many


class Nearest:
    """Vectors [dim] under ids, searched by cosine. Threads may share one; every call is done at once.

    What it answers depends only on what was added and removed in which order. Equal cosines come in the order in which
    the ids were first added. Beyond `exact_up_to` vectors a neighbour may be missed, but no cosine is approximate; without
    faiss (the extra `ann`) it stays exact there, and says once that this is slow.
    """

    def __init__(self, dim: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        if dim < 1:
            raise StoreError(f"vectors cannot be {dim} numbers wide; give the width of the embedding model")
        self.dim, self.exact_up_to = dim, exact_up_to
        self._ids: list[str] = []  # row -> id
        self._rows: dict[str, int] = {}  # id -> row
        self._seq: list[int] = []  # row -> number of its id in the order of insertion
        self._next = 0
        self._unit = np.zeros((0, dim), np.float32)  # rows of length 1, and room to grow
        self._index: _Inverted | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, concept_id: str) -> bool:
        return concept_id in self._rows

    def add(self, ids: Sequence[str], vectors: ArrayLike) -> None:
        """Take one vector [N, dim] per id. A known id keeps its place in the order and gets the new vector.

        Raises StoreError, with nothing added, when a vector is zero, not finite or of another width, or one is missing.
        """
        given, norms = self.checked(vectors)
        if len(given) != len(ids):
            raise StoreError(f"{len(given)} vectors were given for {len(ids)} ids; give one for each")
        with self._lock:
            rows = np.array([self._row(i) for i in ids], np.int64)
            self._reserve(len(self._ids))
            for part in _blocks(len(rows), self.dim):
                self._unit[rows[part]] = given[part] / norms[part, None]
            self._changed(rows.tolist())

    def remove(self, ids: Iterable[str]) -> None:
        """Forget vectors; ids that have none are passed over. The last row moves into the gap."""
        with self._lock:
            for row in (self._rows.pop(i) for i in dict.fromkeys(ids) if i in self._rows):
                last = len(self._ids) - 1
                moved, seq = self._ids.pop(), self._seq.pop()
                if row != last:
                    self._ids[row], self._seq[row], self._rows[moved] = moved, seq, row
                    self._unit[row] = self._unit[last]
                self._changed((row, last))

    def vector(self, concept_id: str) -> NDArray[np.float32]:
        """The vector [dim] of an id, of length 1. Raises StoreError when it has none."""
        with self._lock:
            if concept_id not in self._rows:
                raise StoreError(f"{concept_id} has no vector; add it first")
            return self._unit[self._rows[concept_id]].copy()

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """All ids and their vectors [N, dim], of length 1, in the order in which the ids were first added."""
        with self._lock:
            order = np.argsort(self._seq)
            return [self._ids[row] for row in order], self._unit[order]

    def query(self, vector: ArrayLike, k: int = 10) -> list[tuple[str, float]]:
        """The k nearest as (id, cosine), nearest first; all when there are fewer. Raises StoreError as `add` does."""
        return self.query_many(np.asarray(vector)[None], k)[0]

    def query_many(self, vectors: ArrayLike, k: int = 10) -> list[list[tuple[str, float]]]:
        """`query` for each of [N, dim]."""
        if k < 1:
            raise StoreError(f"{k} neighbours were asked for; ask for at least 1")
        given, norms = self.checked(vectors)
        queries = given / norms[:, None]
        with self._lock:
            candidates = self._candidates(queries.astype(np.float32), k)
            return [self._ranked(query, rows, k) for query, rows in zip(queries, candidates, strict=True)]

    def checked(self, vectors: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Vectors [N, dim] and their lengths [N]. Raises StoreError as `add` does."""
        try:
            with np.errstate(over="ignore"):
                given = np.asarray(vectors, np.float32)
        except (TypeError, ValueError) as error:
            raise StoreError(f"these are not vectors of numbers: {error}; give [N, {self.dim}]") from error
        if given.size == 0 and len(given) == 0:
            given = given.reshape(0, self.dim)
        if given.ndim != 2 or given.shape[1] != self.dim:
            raise StoreError(f"vectors have the shape {given.shape}, not [N, {self.dim}]; are they of another model?")
        norms = np.sqrt(np.einsum("nd,nd->n", given, given, dtype=np.float64))
        if bad := np.flatnonzero(~np.isfinite(norms) | (norms == 0)).tolist():
            what = "zero" if norms[bad[0]] == 0 else "not finite"
            raise StoreError(f"vector {bad[0]} is {what}, so that it has no direction; leave it out or embed it again")
        return given, norms

    # rows

    def _row(self, concept_id: str) -> int:
        """The row of an id, the next free one if it is new."""
        row = self._rows.setdefault(concept_id, len(self._ids))
        if row == len(self._ids):
            self._ids.append(concept_id)
            self._seq.append(self._next)
            self._next += 1
        return row

    def _reserve(self, rows: int) -> None:
        """Room for that many rows. Grown in place: nobody else holds a view, as every use is under the lock."""
        if rows > len(self._unit):
            self._unit.resize((max(rows, len(self._unit) * 5 // 4), self.dim), refcheck=False)

    def _changed(self, rows: Iterable[int]) -> None:
        if self._index:
            self._index.stale.update(rows)

    # search

    def _candidates(self, queries: NDArray[np.float32], k: int) -> Iterator[NDArray[np.int64]]:
        """For each query the rows among which its k nearest are."""
        if len(self) <= self.exact_up_to or (faiss := _faiss()) is None:
            self._index = None
            yield from self._scanned(queries, k)
            return
        if self._index is None or len(self) > 2 * self._index.trained_on:
            self._index = _Inverted(faiss, self._unit[: len(self)])
        for query, rows in zip(queries, self._index.search(queries, self._unit[: len(self)], k), strict=True):
            yield rows if len(rows) >= min(k, len(self)) else next(self._scanned(query[None], k))

    def _scanned(self, queries: NDArray[np.float32], k: int) -> Iterator[NDArray[np.int64]]:
        slack = (
            2 * self.dim * np.finfo(np.float32).eps
        )  # a float32 dot product of unit vectors is surer than half of it
        for part in _blocks(len(queries), len(self)):
            for cosines in queries[part] @ self._unit[: len(self)].T:
                least = np.partition(cosines, -k)[-k] - slack if len(cosines) > k else -np.inf
                yield np.flatnonzero(cosines >= least)

    def _ranked(self, query: NDArray[np.float64], rows: NDArray[np.int64], k: int) -> list[tuple[str, float]]:
        """The best k of these rows. Each sum is one row's alone, in one order, so that equal rows have equal cosines."""
        parts = [(self._unit[rows[part]] * query).sum(axis=1) for part in _blocks(len(rows), self.dim)]
        cosines = np.clip(np.concatenate([*parts, np.zeros(0)]), -1, 1)
        best = np.lexsort(([self._seq[row] for row in rows], -cosines))[:k]
        return [(self._ids[rows[i]], float(cosines[i])) for i in best]


class _Inverted:
    """A faiss index over row numbers, trained once; rows are 8 bits per number, in the list of their nearest centroid."""

    def __init__(self, faiss: Any, unit: NDArray[np.float32]) -> None:
        self.trained_on = len(unit)
        self.stale = set(range(len(unit)))  # rows that the index has not seen as they are
        lists = max(1, int(2 * len(unit) ** 0.5))
        cells = faiss.IndexFlatIP(unit.shape[1])
        self._ivf = faiss.IndexIVFScalarQuantizer(
            cells, unit.shape[1], lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        )
        self._ivf.nprobe = max(16, lists // 4)
        self._ivf.cp.niter, self._ivf.cp.min_points_per_centroid, self._ivf.cp.max_points_per_centroid = 10, 1, 64
        self._ivf.set_direct_map_type(faiss.DirectMap.Hashtable)
        self._ivf.train(unit)

    def search(self, queries: NDArray[np.float32], unit: NDArray[np.float32], k: int) -> Iterator[NDArray[np.int64]]:
        if self.stale:
            rows = np.array(sorted(self.stale), np.int64)
            self._ivf.remove_ids(rows)
            for part in _blocks(len(live := rows[rows < len(unit)]), unit.shape[1]):
                self._ivf.add_with_ids(unit[live[part]], live[part])
            self.stale.clear()
        _, found = self._ivf.search(np.ascontiguousarray(queries), max(4 * k, 64))
        return (rows[rows >= 0] for rows in found)


@cache
def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        warnings.warn(
            f"nearest neighbours among more than {EXACT_UP_TO:,} vectors are searched one by one, which is slow;"
            " install the index: pip install 'kgsynth[ann]'",
            stacklevel=2,
        )
        return None
    return faiss


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Slices of up to BLOCK numbers each."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))
