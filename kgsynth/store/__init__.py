"""Where the graph lives. Two stores, one meaning: `embedded` (SQLite, the default) and `neo4j`.

A store keeps concepts, edges, sources, decisions and the frontier (the queue of concepts still to research), and changes
them only through `commit`, which is one transaction: all of a change is there afterwards, or nothing is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kgsynth.concept import Concept, Decision, Edge, Source
from kgsynth.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class FrontierItem:
    """A concept waiting to be researched. Items are leased in the order of `seq`, which the store assigns."""

    concept: str  # Concept.id
    depth: int  # edges from the nearest seed
    seq: int = -1  # -1 until the store has assigned it
    attempts: int = 0  # leases so far that ended without a commit


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one agent wants to write. Applied in the order: sources, concepts, merges, edges, decisions, frontier.

    * A concept whose id exists is not inserted again: its aliases and keywords are merged in, a missing
      definition is filled, and `atomic` is set if it was None before or is given now.
    * An edge whose ends do not both exist, or that would close a cycle (self-loops too), is refused and recorded as a Decision;
      an edge that exists gains the new spans.
    * `enqueue` items whose concept is already in the frontier (waiting, leased or done) are ignored.
    * `done` marks frontier items as finished; committing the same change twice changes nothing.
    * `max_concepts` caps the number of concepts in the store: further new ones (and their edges) are dropped and recorded.
      A frontier item whose concept is not in the store is not queued.
    * `merges` are (keep, fold) pairs: everything of `fold` (names, edges in both directions, frontier item) moves to `keep`,
      double edges are folded, self-loops dropped, and the id `fold` means `keep` from then on, in every later change and
      lookup. A merge that would close a cycle is refused; done and refused ones are both recorded as Decisions.
    """

    sources: tuple[Source, ...] = ()
    concepts: tuple[Concept, ...] = ()
    merges: tuple[tuple[str, str], ...] = ()  # (keep, fold), concept ids
    edges: tuple[Edge, ...] = ()
    decisions: tuple[Decision, ...] = ()
    enqueue: tuple[FrontierItem, ...] = ()
    done: tuple[str, ...] = ()  # concept ids
    max_concepts: int | None = None


@dataclass(frozen=True, kw_only=True)
class CommitResult:
    """What a commit really did."""

    added: tuple[str, ...] = ()  # concept ids inserted
    linked: tuple[str, ...] = ()  # edge ids inserted
    refused: tuple[Edge, ...] = ()  # edges that would have closed a cycle, or whose ends do not both exist
    dropped: tuple[str, ...] = ()  # concept ids over the cap
    merged: tuple[str, ...] = ()  # concept ids folded into another


@runtime_checkable
class GraphStore(Protocol):
    """The protocol both stores implement; `tests/test_store.py` runs the same suite against each.

    Every method may raise StoreError. Reads see all commits so far, from whichever process they came.
    """

    def commit(self, change: Change) -> CommitResult: ...

    def version(self) -> tuple[int, int]:
        """(merges, changes) so far. `changes` grows with every commit that altered a concept or an edge. A reader that
        keeps a copy asks for what is new `since` its `changes`, and reads all again when `merges` has grown."""
        ...

    def concept(self, concept_id: str) -> Concept | None: ...

    def concepts(self, since: int = 0) -> list[Concept]:
        """All concepts (altered after `since`), in the order in which they were inserted."""
        ...

    def edges(self, since: int = 0) -> list[Edge]:
        """All edges (altered after `since`), in the order in which they were inserted."""
        ...

    def find(self, key: str) -> list[Concept]:
        """Concepts that answer to a normalised spelling (`concept.name_key`), by name or alias."""
        ...

    def sources(self, ids: Iterable[str] | None = None) -> list[Source]: ...

    def decisions(self) -> list[Decision]: ...

    def lease(self, n: int, owner: str, seconds: float) -> list[FrontierItem]:
        """Up to n waiting items in order of seq, now leased to owner; expired leases count as waiting."""
        ...

    def release(self, owner: str) -> int:
        """Give back every lease of this owner (a clean stop, or the restart of a killed single run)."""
        ...

    def frontier(self) -> Mapping[str, int]:
        """Counts by state: {"waiting": ..., "leased": ..., "done": ...}."""
        ...

    def close(self) -> None: ...


def open_store(url: str) -> GraphStore:
    """`sqlite:PATH` (or a bare path) opens the embedded store; `bolt://` or `neo4j://` (with `+s`, `+ssc`) the Neo4j one.

    Credentials come from the environment: `NEO4J_USERNAME`, `NEO4J_PASSWORD`; the database from `NEO4J_DATABASE`.
    Raises ConfigError for any other scheme, StoreError when the store cannot be opened.
    """
    scheme, slashes, _ = url.partition("://")
    server = scheme.split("+")[0] in {"bolt", "neo4j"}
    if slashes and not server:
        raise ConfigError(
            f"[store] url {url!r} is of no known kind; use sqlite:PATH, bolt://HOST:PORT or neo4j://HOST:PORT"
        )
    if server:
        from kgsynth.store.neo4j import Neo4jStore

        return Neo4jStore(url)
    from kgsynth.store.embedded import EmbeddedStore

    return EmbeddedStore(url.removeprefix("sqlite:"))
