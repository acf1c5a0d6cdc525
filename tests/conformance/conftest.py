"""The store under test: every case runs against each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgsynth.store import GraphStore
from kgsynth.store.embedded import EmbeddedStore
from tests.bolt import bolt_url  # noqa: F401

Connect = Callable[..., GraphStore]


@pytest.fixture(params=["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    return f"sqlite:{tmp_path / 'graph.sqlite'}" if request.param == "embedded" else request.getfixturevalue("bolt_url")


@pytest.fixture
def connect(url: str) -> Iterator[Connect]:
    """Opens the store under test; each call is a connection of its own."""
    opened: list[GraphStore] = []

    def connect(**options: Any) -> GraphStore:
        if url.startswith("sqlite:"):
            opened.append(EmbeddedStore(url.removeprefix("sqlite:"), **options))
        else:
            from kgsynth.store.neo4j import Neo4jStore

            opened.append(Neo4jStore(url, **options))
        return opened[-1]

    yield connect
    for store in opened:
        store.close()


@pytest.fixture
def store(connect: Connect) -> GraphStore:
    return connect()


@pytest.fixture
def fresh(url: str) -> Iterator[Callable[[], GraphStore]]:
    """Opens an empty store at each call, in place of the one before."""
    opened: list[GraphStore] = []

    def fresh() -> GraphStore:
        while opened:
            opened.pop().close()
        opened.append(EmbeddedStore(":memory:") if url.startswith("sqlite:") else _emptied(url))
        return opened[0]

    yield fresh
    while opened:
        opened.pop().close()


def _emptied(url: str) -> GraphStore:
    from neo4j import GraphDatabase

    from kgsynth.store.neo4j import Neo4jStore

    with GraphDatabase.driver(url, notifications_min_severity="OFF") as driver:
        driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
    return Neo4jStore(url)
