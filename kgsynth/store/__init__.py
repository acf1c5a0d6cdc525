"""Where the graph lives. Two stores, one meaning: `embedded` (SQLite, the default) and `neo4j`.

A store keeps concepts, edges, sources, decisions, embeddings, tasks, the frontier (the queue of concepts still to research) and
the log of operations, and changes the graph only through `commit` and `undo`: each is one transaction, all of it is there
afterwards or nothing is. What a Change means is written once, in `commit.py`, for both.

    change.py    pure rules: how concepts absorb each other, what a refusal says
    draft.py     one transaction's unit of work: what was read, what it becomes, what undoes it
    dag.py       levels as an online topological order: cycle refusal without looking at the whole graph
    commit.py    Change -> Draft, undo
    embedded.py  neo4j.py (with queries.py)    reading for and writing of a Draft
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import ConfigError, StoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Row = dict[str, Any]
KINDS = ("source", "concept", "edge", "merged", "decision", "frontier", "embedding", "task", "operation")


@dataclass(frozen=True, kw_only=True)
class FrontierItem:
    """A concept waiting to be researched. Items are leased in the order of `seq`, which the store assigns."""

    concept: str  # Concept.id
    depth: int  # edges from the nearest seed
    seq: int = -1  # -1 until the store has assigned it
    attempts: int = 0  # leases so far that ended without a commit
    token: int = 0  # of the lease under which it is held: grows with every lease of the graph; 0 when it is not held


@dataclass(frozen=True, kw_only=True)
class Split:
    """Take a part out of a concept: `into` is inserted, and the named parents and children move from `concept` to it.

    Aliases of `into` that `concept` had are taken from it. A parent that both should have is linked by an edge of the same
    change. No split can close a cycle, as its edges only follow those of `concept`.
    """

    concept: str  # Concept.id
    into: Concept  # must not exist yet; if it does, the split is done already and nothing happens
    parents: tuple[str, ...] = ()  # concept ids; those that are no parents of `concept` are ignored
    children: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskRecord:
    """A task as the graph knows it: which concepts it tests, and how often a policy solved it. The task itself is in a TaskSet."""

    id: str  # Task.id
    type: str
    domain: str
    granularity: str
    prompt: str
    concepts: tuple[str, ...]  # Concept.id, the one tested first
    pass_rate: float | None = None  # share of `attempts` that were right; None: not tried
    attempts: int = 0
    policy: str = ""  # whose pass rate


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one agent wants to write. Applied in the order: sources, concepts, merges, splits, unlink, edges, remove,
    decisions, frontier.

    * A concept whose id exists is not inserted again: its aliases and keywords are merged in, a missing
      definition is filled, and `atomic` is set if it was None before or is given now.
    * An edge whose ends do not both exist, or that would close a cycle (self-loops too), is refused and recorded as a Decision;
      an edge that exists gains the new spans.
    * `enqueue` items whose concept is already in the frontier (waiting, leased or done) are ignored.
    * `done` marks frontier items as finished; committing the same change twice changes nothing.
    * `reopen` lets finished frontier items wait again, as if they had never been tried.
    * `leases` are the frontier items this change was worked out under. When one of them is held by another worker
      by now (its lease had expired), or was finished by another, nothing is written and LeaseError is raised.
    * `as_of` is the operation as of which the concepts were compared with the graph. When the change would insert one of them
      and there is a later operation, nothing is written and StaleError is raised: so no two writers insert one concept twice.
    * `max_concepts` caps the number of concepts in the store: further new ones (and their edges) are dropped and recorded.
      A frontier item whose concept is not in the store is not queued.
    * `merges` are (keep, fold) pairs: everything of `fold` (names, edges in both directions, frontier item) moves to `keep`,
      double edges are folded, self-loops dropped, and the id `fold` means `keep` from then on, in every later change and
      lookup. A merge that would close a cycle is refused; done and refused ones are both recorded as Decisions.
    * `splits` take parts out of concepts, `unlink` removes edges, `remove` removes concepts with their edges, frontier items
      and embeddings. What is not there is not removed.
    * `note` is kept with the operation in the log.
    """

    sources: tuple[Source, ...] = ()
    concepts: tuple[Concept, ...] = ()
    merges: tuple[tuple[str, str], ...] = ()  # (keep, fold), concept ids
    splits: tuple[Split, ...] = ()
    unlink: tuple[tuple[str, str], ...] = ()  # (parent, child), concept ids
    edges: tuple[Edge, ...] = ()
    remove: tuple[str, ...] = ()  # concept ids
    decisions: tuple[Decision, ...] = ()
    enqueue: tuple[FrontierItem, ...] = ()
    done: tuple[str, ...] = ()  # concept ids
    reopen: tuple[str, ...] = ()  # concept ids
    leases: tuple[FrontierItem, ...] = ()
    as_of: int | None = None
    max_concepts: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class CommitResult:
    """What a commit really did."""

    op: int = 0  # of the operation in the log that undoes it; 0 when the graph was not changed
    added: tuple[str, ...] = ()  # concept ids inserted, those of splits too
    linked: tuple[str, ...] = ()  # edge ids inserted
    refused: tuple[Edge, ...] = ()  # edges that would have closed a cycle, or whose ends do not both exist
    dropped: tuple[str, ...] = ()  # concept ids over the cap
    merged: tuple[str, ...] = ()  # concept ids folded into another
    unlinked: tuple[str, ...] = ()  # edge ids removed by `unlink`
    removed: tuple[str, ...] = ()  # concept ids removed by `remove`


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One entry of the log. Every change of a concept, an edge, a redirect or the frontier's membership has one."""

    op: int  # 1, 2, 3, ... in the order in which they were committed
    at: float  # seconds since the epoch
    kind: str  # "commit", "undo", "repair"
    note: str = ""
    undoes: int | None = None  # the operation that this one took back
    concepts: tuple[str, ...] = ()  # ids of concepts it inserted, altered or removed
    edges: tuple[tuple[str, str], ...] = ()  # (parent, child) of edges it inserted, altered or removed


@dataclass(frozen=True, kw_only=True)
class ConceptVersion:
    """A concept as one operation left it. `concept` is None where that operation removed it."""

    op: int
    concept: Concept | None


@dataclass(frozen=True, kw_only=True)
class Touched:
    """What has changed since some operation, to be read again."""

    op: int  # up to and with this one
    concepts: frozenset[str]
    edges: frozenset[tuple[str, str]]  # (parent, child)


@dataclass(frozen=True, kw_only=True, eq=False)
class Skeleton:
    """The whole graph without its texts, as arrays. Row i is the concept `ids[i]`; rows and edges in the order of insertion."""

    op: int  # as of this operation
    ids: list[str]  # [N]
    names: list[str]  # [N]
    domains: list[str]  # [N]
    levels: NDArray[np.int32]  # [N] longest path from a root, in edges
    atomic: NDArray[np.int8]  # [N] 1 yes, 0 no, -1 not judged
    parents: NDArray[np.int32]  # [E] edge e goes from row parents[e] to row children[e]
    children: NDArray[np.int32]  # [E]


@runtime_checkable
class GraphStore(Protocol):
    """The protocol both stores implement; `tests/conformance/` runs the same suite against each.

    Every method may raise StoreError. Reads see all commits so far, from whichever process they came. `kept` ids (of folded
    concepts) are followed where a concept is asked for by id. `far`: behind a network, so that calls are better made from a
    thread.
    """

    far: bool

    # writing

    def commit(self, change: Change) -> CommitResult: ...

    def undo(self, op: int, note: str = "") -> CommitResult:
        """Take one operation back: concepts, edges, redirects and frontier membership become what they were before it.

        It is an operation itself, so that undoing the undo does it again. Sources, decisions and the log only ever grow.
        Raises UndoError when there is no such operation, or a later one altered the same things: its message names that
        one, to be undone first. Raises CycleError when later edges made the restored ones close a cycle.
        """
        ...

    # reading

    def version(self) -> int:
        """The number of the last operation; 0 for a graph that was never changed."""
        ...

    def touched(self, since: int) -> Touched:
        """What operations after `since` altered. A reader that keeps a copy reads just that again."""
        ...

    def operations(self, since: int = 0, limit: int | None = None) -> list[Operation]:
        """The log after `since`, oldest first."""
        ...

    def history(self, concept_id: str) -> list[ConceptVersion]:
        """Every version of a concept, oldest first, the last one as it stands."""
        ...

    def concept(self, concept_id: str) -> Concept | None: ...

    def concepts(self, ids: Iterable[str] | None = None) -> list[Concept]:
        """All concepts, or those of these ids (redirects are not followed), in the order in which they were inserted."""
        ...

    def edges(self, pairs: Iterable[tuple[str, str]] | None = None) -> list[Edge]:
        """All edges, or those of these (parent, child), in the order in which they were inserted."""
        ...

    def edges_of(self, concept_id: str) -> list[Edge]:
        """The edges into and out of a concept, in the order in which they were inserted."""
        ...

    def levels(self, ids: Iterable[str] | None = None) -> dict[str, int]:
        """Concept id -> longest path from a root, in edges; kept up to date by every commit."""
        ...

    def skeleton(self) -> Skeleton: ...

    def find(self, key: str) -> list[Concept]:
        """Concepts that answer to a normalised spelling (`concept.name_key`), by name or alias."""
        ...

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]: ...

    def decisions(self) -> list[Decision]: ...

    # the frontier

    def lease(self, n: int, owner: str, seconds: float, among: Sequence[str] | None = None) -> list[FrontierItem]:
        """Up to n waiting items in order of seq, now leased to owner; expired leases count as waiting.

        With `among` (concept ids), only those of them that wait."""
        ...

    def waiting(self) -> list[FrontierItem]:
        """All waiting items in order of seq; expired leases count as waiting. For policies that choose among them."""
        ...

    def release(self, owner: str, *, workers: bool = False) -> int:
        """Give back every lease of this owner (a clean stop, or the restart of a killed run); how many there were.

        workers: also those of its workers, "OWNER/0", "OWNER/1" and so on, however many it had.
        """
        ...

    def frontier(self) -> Mapping[str, int]:
        """Counts by state: {"waiting": ..., "leased": ..., "done": ...}."""
        ...

    # beside the graph: vectors and tasks. They are not part of its history, except that a removed concept's vector comes back

    def put_embeddings(self, model: str, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Store one vector [N, dim] per concept, replacing what it had; ids that are not in the graph are skipped.

        A graph has the vectors of one model: raises StoreError for another name or width than the first.
        """
        ...

    def embeddings(self) -> tuple[str, list[str], NDArray[np.float32]]:
        """(model, ids, [N, dim]) in the order in which the concepts were inserted; ("", [], [0, 0]) when there are none."""
        ...

    def nearest(self, vector: NDArray[np.float32], k: int = 10) -> list[tuple[str, float]]:
        """The k concepts whose vectors are nearest by cosine, nearest first, with the exact cosine."""
        ...

    def put_tasks(self, tasks: Iterable[TaskRecord]) -> None:
        """Insert tasks, or replace what is known of them; concepts that are not in the graph are not linked."""
        ...

    def tasks(self, concept_id: str | None = None) -> list[TaskRecord]:
        """All tasks, or those that test a concept, in the order in which they were inserted."""
        ...

    # raw rows: for copies, backups and the doctor. Formats in `rows.py`

    def state(self) -> Row:
        """{"graph": its uuid, "format", "n": last number given, "op": last operation, "concepts": how many there are,
        "tokens": leases so far, "model": of the vectors}, and while a copy is not whole "copying": of what it is one."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Inside, this thread's reads see the graph as of one moment, where the store can do that. Neo4j cannot: its readers
        compare `state` before and after."""
        ...

    def export(self, kind: str, after: int = -1, limit: int = 10_000) -> list[Row]:
        """Rows of one of KINDS in ascending order of their number `n`, those after `after`."""
        ...

    def load(
        self, rows: Mapping[str, Sequence[Row]], state: Row, remove: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        """Write raw rows (by kind) and the state as they are, in one transaction, unchecked and unlogged. A row that is there
        already is replaced; those of the numbers in `remove` (by kind) are taken out first."""
        ...

    def rewrite(
        self, remove: Sequence[tuple[str, int]], insert: Sequence[tuple[str, Row]], *, note: str, kind: str = "repair",
        as_of: int | None = None,
    ) -> int:  # fmt: skip
        """Remove rows (kind, n) and write others, in one transaction and as one operation that `undo` takes back.

        A row whose n is -1 is given the next number. Raises StoreError when `as_of` is not the last operation any more.
        """
        ...

    def spellings(self) -> list[tuple[str, str]]:
        """The index of names as it is stored: (normalised spelling, concept id), in no order."""
        ...

    def schema_faults(self) -> list[str]:
        """What is wrong with the store itself, a sentence each: missing constraints and indexes, a damaged file."""
        ...

    def mend_schema(self) -> None:
        """Make the constraints and indexes that are missing. Raises StoreError when rows are in the way."""
        ...

    def close(self) -> None: ...


def open_store(url: str, *, as_is: bool = False) -> GraphStore:
    """`sqlite:PATH` (or a bare path) opens the embedded store; `bolt://` or `neo4j://` (with `+s`, `+ssc`) the Neo4j one.

    Credentials come from the environment: `NEO4J_USERNAME`, `NEO4J_PASSWORD`; the database from `NEO4J_DATABASE`.
    Raises ConfigError for any other scheme, StoreError when the store cannot be opened. One that holds a copy that is not
    whole yet, or rows in the way of a constraint, is opened `as_is` only: to finish or to repair it.
    """
    store = _opened(url, as_is)
    if not as_is and (copying := store.state().get("copying")):
        store.close()
        raise StoreError(unfinished(url, copying))
    return store


def unfinished(name: str, copying: str) -> str:
    """What is said of a store that cannot be used yet; copying: as in its state."""
    return f"{name} is an unfinished copy ({copying}); run the same `kgsynth push` again to finish it"


def _opened(url: str, as_is: bool) -> GraphStore:
    scheme, slashes, _ = url.partition("://")
    server = scheme.split("+")[0] in {"bolt", "neo4j"}
    if slashes and not server:
        raise ConfigError(
            f"[store] url {url!r} is of no known kind; use sqlite:PATH, bolt://HOST:PORT or neo4j://HOST:PORT"
        )
    if server:
        from kgsynth.store.neo4j import Neo4jStore

        return Neo4jStore(url, as_is=as_is)
    from kgsynth.store.embedded import EmbeddedStore

    return EmbeddedStore(url.removeprefix("sqlite:"))
