"""Copy a graph from one store into another, whole: rows as they are, with their numbers, the log and the counters.

Both sides are read in the order of their numbers and only what differs is written, a batch at a time, so that the same
code makes a copy, goes on with one that was killed, brings an older copy up to date, and checks one that is whole.
Until the last batch is in, the state of the destination says `copying`: it refuses commits, and `open_store` refuses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kgsynth.errors import StoreError
from kgsynth.store import KINDS, GraphStore, Row

BATCH = 1_000  # rows read or written at once
PASSES = 5  # over a source that is being written to and cannot hold still for a reader

Progress = Callable[[str, int, int], None]  # kind, rows looked at so far, about how many there are in all


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What a push found and did."""

    rows: dict[str, int]  # by kind, as both stores hold them now
    written: int  # rows that were not there, or not the same
    removed: int
    seconds: float


def push(
    src: GraphStore, dst: GraphStore, *, names: tuple[str, str] = ("SRC", "DST"), replace: bool = False,
    on_progress: Progress = lambda *_: None,
) -> Pushed:  # fmt: skip
    """Make `dst` what `src` is. `names` are how messages call the two.

    Raises StoreError when the destination holds another graph or a newer state of this one (unless `replace`: what it
    holds is lost then), when the source is an unfinished copy itself, or when it is never the same before and after.
    """
    started, copied, removed = time.monotonic(), None, 0
    for _ in range(PASSES):
        with src.snapshot():
            state = src.state()
            if copied is None and not replace:
                _check(src, state, dst, names)
            _refuse_copy(state, names[0])
            copied = _Copy(src, dst, state, f"of {names[0]}", on_progress)
            copied.run()
            removed += copied.removed
            if src.state() == state:
                copied.finish()
                return Pushed(
                    rows=copied.rows, written=copied.written, removed=removed, seconds=time.monotonic() - started
                )
    raise StoreError(
        f"{names[0]} was changed during each of {PASSES} passes; stop its writers, and run the same command again"
    )


class _Copy:
    """One pass over all rows."""

    def __init__(self, src: GraphStore, dst: GraphStore, state: Row, mark: str, show: Progress) -> None:
        self.src, self.dst, self.state, self.show = src, dst, state, show
        self.marked = {**state, "copying": mark}
        self.rows: dict[str, int] = {}
        self.written = self.removed = 0

    def run(self) -> None:
        if not is_empty(self.dst.state()):
            for kind in reversed(KINDS):
                self._remove(kind)
        for kind in KINDS:
            self._write(kind)

    def finish(self) -> None:
        if self.dst.state() != self.state:
            self.dst.load({}, self.state)

    def _remove(self, kind: str) -> None:
        """What is not in the source, and what could be in the way: all that differs but a concept, which edges hang on."""
        wrong = (
            there["n"] for wanted, there in self._compared(kind)
            if there and wanted != there and not (wanted and kind == "concept" and wanted["id"] == there["id"])
        )  # fmt: skip
        for numbers in batches(wrong):
            self.dst.load({}, self.marked, remove={kind: numbers})
            self.removed += len(numbers)

    def _write(self, kind: str) -> None:
        self.rows[kind] = 0
        missing = (wanted for wanted, there in self._counted(kind) if wanted and wanted != there)
        for rows in batches(missing):
            self.dst.load({kind: rows}, self.marked)
            self.written += len(rows)

    def _counted(self, kind: str) -> Iterator[tuple[Row | None, Row | None]]:
        total = self.state["n"] + self.state["op"] + (self.state["concepts"] if self.state["model"] else 0)
        for pair in self._compared(kind):
            self.rows[kind] += pair[0] is not None
            if self.rows[kind] % 100 == 0:
                self.show(kind, sum(self.rows.values()), total)
            yield pair

    def _compared(self, kind: str) -> Iterator[tuple[Row | None, Row | None]]:
        return side_by_side(stream(self.src, kind), stream(self.dst, kind))


def is_empty(state: Row) -> bool:
    """Whether a store has never held anything."""
    return not state["n"] and not state["op"] and not state.get("copying")


def stream(store: GraphStore, kind: str, batch: int = BATCH) -> Iterator[Row]:
    """All rows of a kind, ascending, read a batch at a time."""
    after = -1
    while rows := store.export(kind, after, batch):
        yield from rows
        if len(rows) < batch:
            return
        after = rows[-1]["n"]


def side_by_side(wanted: Iterator[Row], there: Iterator[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Rows of the same number together, None where one side has none; ascending."""
    a, b = next(wanted, None), next(there, None)
    while a or b:
        if a and (b is None or a["n"] < b["n"]):
            yield a, None
            a = next(wanted, None)
        elif b and (a is None or b["n"] < a["n"]):
            yield None, b
            b = next(there, None)
        else:
            yield a, b
            a, b = next(wanted, None), next(there, None)


def batches(items: Iterator, size: int = BATCH) -> Iterator[list]:
    found: list = []
    for item in items:
        found.append(item)
        if len(found) == size:
            yield found
            found = []
    if found:
        yield found


def _check(src: GraphStore, state: Row, dst: GraphStore, names: Sequence[str]) -> None:
    """Nothing is lost that only the destination knows."""
    found = dst.state()
    if is_empty(found):
        return
    if found["graph"] != state["graph"]:
        raise StoreError(
            f"{names[1]} holds {_told(found)}, which is not that of {names[0]} ({_told(state)}); push into an empty"
            " store, or put one in place of the other with `kgsynth backup` and `kgsynth restore --replace`"
        )
    if found.get("copying"):
        return
    if found["op"] > state["op"]:
        raise StoreError(
            f"{names[1]} is newer than {names[0]}: {_told(found)}, against {_told(state)}; push the other way round, or"
            " throw the newer operations away with `kgsynth backup` and `kgsynth restore --replace`"
        )
    if (last := dst.export("operation", found["op"] - 1, 1)) != src.export("operation", found["op"] - 1, 1)[
        : len(last)
    ]:
        raise StoreError(
            f"{names[0]} and {names[1]} were both changed since one was copied from the other: their operations"
            f" {found['op']} differ; undo those of one side (`kgsynth log`, `kgsynth undo`), or replace it with"
            " `kgsynth backup` and `kgsynth restore --replace`"
        )


def _refuse_copy(state: Row, name: str) -> None:
    if copying := state.get("copying"):
        raise StoreError(f"{name} is itself an unfinished copy ({copying}); finish that one first")


def _told(state: Row) -> str:
    what = "an unfinished copy of graph" if state.get("copying") else "graph"
    return f"{what} {state['graph'][:8]} at operation {state['op']}"
