"""Which items of a benchmark share hashes with a text, and how much of each that is; and what texts of one kind all share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kgsynth.screen.text import Hashes

FIRST = 8  # texts of a kind after which its template is learned for the first time
SHARED_BY = 0.1  # of the texts of a kind: what more of them have in common is its template
Floats = NDArray[np.float64]


class Postings:
    """An inverted index over sets of hashes. A hash weighs log(N / df), scaled to 1 for one that a single set has."""

    def __init__(self, sets: Sequence[Hashes], *, most: int = 0) -> None:
        """most: sets that may share a hash before it says nothing at all (Brown et al. 2020 drop 13-grams seen over ten times)."""
        self.size = len(sets)
        owners = np.repeat(np.arange(self.size), [len(one) for one in sets])
        hashes = np.concatenate([*sets, np.zeros(0, np.uint64)])
        order = np.argsort(hashes, kind="stable")
        self._owners = owners[order]
        self._hashes, self._starts, df = np.unique(hashes[order], return_index=True, return_counts=True)
        self._df = df
        self._weights = np.log((self.size + 1) / np.maximum(df, 1)) / np.log(self.size + 1) if self.size else df * 0.0
        if most:
            self._weights = np.where(df > most, 0.0, 1.0)
        self.mass = self.shared(self._hashes)

    def shared(self, hashes: Hashes) -> Floats:
        """For every set the weight of what it has of these hashes, [N]. The hashes must be there once each."""
        at = self._found(hashes)
        counts = self._df[at]
        total = int(counts.sum())
        if not total:
            return np.zeros(self.size)
        starts = np.repeat(self._starts[at] - (np.cumsum(counts) - counts), counts)
        owners = self._owners[starts + np.arange(total)]
        return np.bincount(owners, np.repeat(self._weights[at], counts), minlength=self.size).astype(np.float64)

    def weight(self, hashes: Hashes) -> float:
        """Of all these; one that no set has weighs 1."""
        at = self._found(hashes)
        return float(self._weights[at].sum()) + len(hashes) - len(at)

    def _found(self, hashes: Hashes) -> NDArray[np.intp]:
        if not len(self._hashes) or not len(hashes):
            return np.zeros(0, np.intp)
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return at[self._hashes[at] == hashes]


class Templates:
    """What the texts of a kind share, learned from those seen so far: anew whenever there are twice as many."""

    def __init__(self) -> None:
        self._seen: dict[str, Counter[int]] = defaultdict(Counter)
        self._texts: Counter[str] = Counter()
        self._learned: dict[str, Hashes] = {}

    def add(self, kind: str, hashes: Hashes) -> bool:
        """Count a text's hashes; True when the template has been learned anew."""
        self._seen[kind].update(hashes.tolist())
        self._texts[kind] += 1
        texts = self._texts[kind]
        if texts < FIRST or texts & (texts - 1):
            return False
        least = max(FIRST // 2, SHARED_BY * texts)
        self._learned[kind] = np.array(sorted(h for h, n in self._seen[kind].items() if n >= least), np.uint64)
        return True

    def of(self, kind: str) -> Hashes:
        """Sorted; empty while it is unknown."""
        return self._learned.get(kind, np.zeros(0, np.uint64))


def without(hashes: Hashes, others: Hashes) -> Hashes:
    """Both sorted."""
    return np.setdiff1d(hashes, others, assume_unique=True) if len(others) else hashes


def both(hashes: Hashes, others: Hashes) -> Hashes:
    return np.intersect1d(hashes, others, assume_unique=True)
