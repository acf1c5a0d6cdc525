"""What is found, and what a repair makes of the rows concerned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kgsynth.store import GraphStore, Row

Ref = tuple[str, int]  # (kind of row, its number)
FEW = 200  # rows that are read one by one; more are read with all of their kind


class Patch:
    """Rows as they will be. Reads those of `refs` in advance; others when they are asked for."""

    def __init__(self, store: GraphStore, refs: Iterable[Ref]) -> None:
        self.store = store
        self._rows: dict[Ref, Row | None] = {}
        self._changed: dict[Ref, None] = {}
        self._new: list[tuple[str, Row]] = []
        numbers: dict[str, set[int]] = defaultdict(set)
        for kind, n in refs:
            numbers[kind].add(n)
        for kind, wanted in numbers.items():
            self._rows |= {(kind, n): None for n in wanted} | {
                (kind, row["n"]): row for row in self._read(kind, wanted)
            }

    def row(self, ref: Ref) -> Row | None:
        if ref not in self._rows:
            self._rows[ref] = next(self._read(ref[0], {ref[1]}), None)
        return self._rows[ref]

    def change(self, ref: Ref, **values: Any) -> None:
        """Set fields of a row; none: it is written again as it is, with what hangs on it."""
        if row := self.row(ref):
            self._put(ref, {**row, **values})

    def remove(self, ref: Ref) -> None:
        self._put(ref, None)

    def add(self, kind: str, row: Row) -> None:
        """A row that gets the next number."""
        self._new.append((kind, {**row, "n": -1}))

    def add_numbered(self, kind: str, row: Row) -> None:
        self._put((kind, row["n"]), row)

    def changes(self) -> tuple[list[Ref], list[tuple[str, Row]]]:
        """What `GraphStore.rewrite` takes: rows to remove, and rows to write."""
        now = [(ref, self._rows[ref]) for ref in self._changed]
        return [ref for ref, row in now if row is None], [(ref[0], row) for ref, row in now if row] + self._new

    def _put(self, ref: Ref, row: Row | None) -> None:
        self._rows[ref] = row
        self._changed[ref] = None

    def _read(self, kind: str, numbers: set[int]) -> Iterator[Row]:
        if len(numbers) > FEW:
            yield from (row for row in stream(self.store, kind) if row["n"] in numbers)
        else:
            yield from (row for n in sorted(numbers) for row in self.store.export(kind, n - 1, 1) if row["n"] == n)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: str  # "cycle", "wrong-level", ...
    what: str  # a sentence that names the concepts concerned
    rows: tuple[Ref, ...] = ()
    repair: str = ""  # what `repair` does about findings like this; empty: it cannot
    fix: Callable[[Patch], None] = field(default=lambda _: None, repr=False, compare=False)


def removing(*refs: Ref) -> Callable[[Patch], None]:
    def fix(patch: Patch) -> None:
        for ref in refs:
            patch.remove(ref)

    return fix


def changing(ref: Ref, **values: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.change(ref, **values)


def stream(store: GraphStore, kind: str, batch: int = 5_000) -> Iterator[Row]:
    """All rows of a kind, ascending."""
    after = -1
    while rows := store.export(kind, after, batch):
        yield from rows
        after = rows[-1]["n"]
