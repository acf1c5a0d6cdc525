"""What both stores do alike: commit, undo, rewrite, the log and its readers, over the transactions that each of them has."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kgsynth.errors import StoreError, UndoError
from kgsynth.store import KINDS, Change, CommitResult, ConceptVersion, Operation, Row, Touched, commit, rows
from kgsynth.store.draft import Draft, Reader, State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


class Tx(Reader, Protocol):
    """One transaction of a store."""

    def write(self, draft: Draft, at: float, token: str, result: CommitResult) -> None:
        """Write what the draft changed, its operation (if it is one) and the counters."""
        ...

    def result(self, token: str) -> CommitResult | None:
        """What the commit of this token did, when it is done already: a server may have died after it, before saying so."""
        ...

    def operation(self, op: int) -> tuple[Operation, Mapping[str, Any]] | None:
        """An entry of the log with its `before`."""
        ...

    def operations(self, since: int, limit: int | None = None) -> list[Operation]: ...

    def rows(self, kind: str, numbers: Collection[int]) -> list[Row]:
        """Raw rows by number, ascending."""
        ...

    def drop(self, kind: str, numbers: Collection[int]) -> None:
        """Remove raw rows, with what hangs on them (names, links to pages)."""
        ...

    def put(self, kind: str, rows: Sequence[Row]) -> None:
        """Write raw rows, with what hangs on them; one whose number is taken is replaced."""
        ...

    def put_state(self, state: State) -> None:
        """Write the counters; the count of concepts is taken anew from what is stored."""
        ...


class LoggedStore(ABC):
    """The part of a GraphStore that is the same everywhere."""

    _clock: Callable[[], float] = staticmethod(time.time)

    @abstractmethod
    def _write(self, work: Callable[[Any], T]) -> T:
        """Run work(tx) in a transaction that holds the write lock; all of it is written or nothing. May run it again."""

    @abstractmethod
    def _look(self, work: Callable[[Any], T]) -> T:
        """Run work(tx), which only reads, in one snapshot."""

    def commit(self, change: Change) -> CommitResult:
        token, at = uuid.uuid4().hex, self._clock()

        def work(tx: Tx) -> CommitResult:
            if (done := tx.result(token)) is not None:
                return done
            self._expect(tx, change)
            draft = Draft(tx, note=change.note)
            result = commit.apply(draft, change)
            tx.write(draft, at, token, result)
            return result

        return self._write(work)

    def _expect(self, tx: Any, change: Change) -> None:
        """Called before a change is applied: a store behind a network may read in one go what that will need."""
        return

    def undo(self, op: int, note: str = "") -> CommitResult:
        token, at = uuid.uuid4().hex, self._clock()

        def work(tx: Tx) -> CommitResult:
            if (done := tx.result(token)) is not None:
                return done
            operation, before = _operation(tx, op)
            later = tx.operations(op)
            if "rows" in before:
                return _undo_rewrite(tx, operation, before["rows"], later, note, at)
            draft = Draft(tx, kind="undo", note=note or f"undo {op}", undoes=op)
            result = commit.undo(draft, operation, later, lambda op: _operation(tx, op)[1])
            tx.write(draft, at, token, result)
            return result

        return self._write(work)

    def rewrite(
        self, remove: Sequence[tuple[str, int]], insert: Sequence[tuple[str, Row]], *, note: str, kind: str = "repair",
        as_of: int | None = None,
    ) -> int:  # fmt: skip
        def work(tx: Tx) -> int:
            if as_of not in (None, now := tx.state().op):
                raise StoreError(f"the graph was changed meanwhile (operation {now}); stop its writers and try again")
            return _rewrite(tx, remove, insert, {"kind": kind, "note": note, "at": self._clock()})

        return self._write(work)

    def operations(self, since: int = 0, limit: int | None = None) -> list[Operation]:
        return self._look(lambda tx: tx.operations(since, limit))

    def touched(self, since: int) -> Touched:
        found = self.operations(since)
        concepts = frozenset(i for operation in found for i in operation.concepts)
        edges = frozenset(pair for operation in found for pair in operation.edges)
        return Touched(op=found[-1].op if found else since, concepts=concepts, edges=edges)

    def history(self, concept_id: str) -> list[ConceptVersion]:
        return self._look(lambda tx: _history(tx, concept_id))


def checked_vectors(ids: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors [N, dim], one per id. Raises StoreError when one is missing, zero or not finite."""
    import numpy as np

    from kgsynth.nearest import Nearest

    matrix = np.asarray(vectors, np.float32)
    if matrix.ndim != 2 or len(matrix) != len(ids) or not matrix.shape[1]:
        raise StoreError(f"vectors have the shape {matrix.shape} for {len(ids)} concepts; give [{len(ids)}, dim]")
    return Nearest(matrix.shape[1]).checked(matrix)[0]


def _operation(tx: Tx, op: int) -> tuple[Operation, Mapping[str, Any]]:
    last = tx.state().op
    found = tx.operation(op) if 0 < op <= last else None
    if found is None:
        first = tx.operations(0, 1)  # a graph of an older format came without its log
        there = f"the log has the operations {first[0].op} to {last}" if first else "the log is empty"
        raise UndoError(f"there is no operation {op}: {there}; `kgsynth log` lists them")
    return found


def _history(tx: Tx, concept_id: str) -> list[ConceptVersion]:
    """Back along the log: every old row names the operation that wrote it."""
    now = tx.nodes((concept_id,)).get(concept_id)
    if now:
        found = [ConceptVersion(op=now[0].version, concept=now[0].concept)]
    else:
        found = _absent(tx, concept_id, tx.state().op)
    while found and (entry := tx.operation(found[-1].op)):
        row = _row_before(entry[1], concept_id)
        if row:
            found.append(ConceptVersion(op=row["version"], concept=rows.to_concept(row)))
        elif gone := _absent(tx, concept_id, found[-1].op - 1):
            found += gone
        else:
            break
    return found[::-1]


def _absent(tx: Tx, concept_id: str, op: int) -> list[ConceptVersion]:
    """The version of a concept that is not there after operation `op`: that of the one which removed it, if it ever was."""
    touching = [o.op for o in tx.operations(0, op) if concept_id in o.concepts]
    return [ConceptVersion(op=touching[-1], concept=None)] if touching else []


def _row_before(before: Mapping[str, Any], concept_id: str) -> Row | None:
    if "rows" in before:
        removed = (row for kind, row in before["rows"]["removed"] if kind == "concept")
        return next((row for row in removed if row["id"] == concept_id), None)
    return before["concept"].get(concept_id)


# raw rows, as operations


def _rewrite(
    tx: Tx, remove: Sequence[tuple[str, int]], insert: Sequence[tuple[str, Row]], fields: Mapping[str, Any]
) -> int:
    """The rows that go are kept in the log, so that the same function takes it back."""
    state = tx.state()
    state.op += 1
    insert = list(_numbered(insert, state))
    replaced = {*remove, *((kind, row["n"]) for kind, row in insert)}
    by_kind = {kind: sorted(n for k, n in replaced if k == kind) for kind in KINDS}
    removed = [(kind, _plain(row)) for kind, numbers in by_kind.items() if numbers for row in tx.rows(kind, numbers)]
    put = {(kind, row["n"]) for kind, row in insert}
    for kind, numbers in reversed(by_kind.items()):
        if gone := [n for n in numbers if (kind, n) not in put]:  # what is put over keeps what hangs on it
            tx.drop(kind, gone)
    for kind in KINDS:
        version = state.op if fields.get("undoes") is None else None
        if new := [_stamped(kind, _binary(row), version) for k, row in insert if k == kind]:
            tx.put(kind, new)
            state.n = max(state.n, *(row["n"] for row in new))
    both = [*removed, *insert]
    operation: Row = {
        "n": state.op, "undoes": None, **fields,
        "concepts": sorted({row["id"] for kind, row in both if kind == "concept"}),
        "edges": sorted({f"{row['parent']} {row['child']}" for kind, row in both if kind == "edge"}),
        "before": {"rows": {"removed": removed, "inserted": [(kind, row["n"]) for kind, row in insert]}},
    }  # fmt: skip
    tx.put("operation", [operation])
    tx.put_state(state)
    return state.op


def _numbered(insert: Sequence[tuple[str, Row]], state: State) -> Iterator[tuple[str, Row]]:
    for kind, row in insert:
        if row["n"] < 0:
            state.n += 1
            row = {**row, "n": state.n}
        yield kind, row


def _undo_rewrite(
    tx: Tx, operation: Operation, changed: Mapping[str, Any], later: Sequence[Operation], note: str, at: float
) -> CommitResult:
    for other in reversed(commit.in_force(later)):
        if {*other.concepts} & {*operation.concepts} or {*other.edges} & {*operation.edges}:
            raise UndoError(
                f"operation {operation.op} cannot be undone: what it wrote was altered since;"
                f" undo operation {other.op} first", other.op,
            )  # fmt: skip
    remove = [(kind, n) for kind, n in changed["inserted"]]
    insert = [(kind, row) for kind, row in changed["removed"]]
    _refuse_twins(tx, operation, remove, [row for kind, row in insert if kind == "concept"])
    fields = {"kind": "undo", "note": note or f"undo {operation.op}", "at": at, "undoes": operation.op}
    return CommitResult(op=_rewrite(tx, remove, insert, fields))


def _refuse_twins(tx: Tx, operation: Operation, remove: Sequence[tuple[str, int]], back: Sequence[Row]) -> None:
    """What was repaired may have been two concepts of one id, which a sound store cannot hold."""
    ids = [row["id"] for row in back]
    gone = {n for kind, n in remove if kind == "concept"} | {row["n"] for row in back}
    stay = [i for i, (node, _) in tx.nodes(ids).items() if node.n not in gone]
    if twins := [i for i, times in Counter([*ids, *stay]).items() if times > 1]:
        raise UndoError(
            f"operation {operation.op} cannot be undone: concept {twins[0]} would be there twice, which it was until"
            " that operation; restore the backup that was made before it, if you need that state"
        )


def _stamped(kind: str, row: Row, version: int | None) -> Row:
    return {**row, "version": version} if kind in {"concept", "edge"} and version is not None else row


def _plain(row: Row) -> Row:
    """A row as JSON can hold it."""
    return {**row, "vector": row["vector"].hex()} if isinstance(row.get("vector"), bytes) else row


def _binary(row: Row) -> Row:
    return {**row, "vector": bytes.fromhex(row["vector"])} if isinstance(row.get("vector"), str) else row
