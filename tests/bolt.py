"""A real Neo4j Community server for tests: started once per session on loopback, stopped by pid, its data thrown away.

Import `bolt_url` into the test module that needs it. Where the server cannot be had the tests are skipped with the reason.
KGSYNTH_TEST_NEO4J_VERSION=2026.09.0 runs the tests against that release instead of the long-term support one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache

import pytest

from kgsynth.errors import StoreError
from kgsynth.store import local


@cache
def _server() -> local.LocalServer | str:
    """The server, or why there is none."""
    home = tempfile.mkdtemp(prefix="kgsynth-neo4j-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    try:
        pytest.importorskip("neo4j")
        server = local.start(home, version=os.environ.get("KGSYNTH_TEST_NEO4J_VERSION"))
    except StoreError as error:
        return str(error)
    atexit.register(server.stop, seconds=0)  # nothing of it is worth a clean shutdown
    return server


@pytest.fixture
def neo4j_server(monkeypatch: pytest.MonkeyPatch) -> local.LocalServer:
    """A running server whose database is empty."""
    return _emptied(monkeypatch)


@pytest.fixture
def bolt_url(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a running server whose database is empty."""
    return _emptied(monkeypatch).url


def _emptied(monkeypatch: pytest.MonkeyPatch) -> local.LocalServer:
    server = _server()
    if isinstance(server, str):
        pytest.skip(server)
    for name in ("NEO4J_USERNAME", "NEO4J_PASSWORD", "NEO4J_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    from neo4j import GraphDatabase

    with GraphDatabase.driver(server.url, notifications_min_severity="OFF") as driver:
        with driver.session(database="neo4j") as session:
            session.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 10000 ROWS").consume()
            # indexes stay: the store makes those it needs, and the server would make all its plans anew
    return server
