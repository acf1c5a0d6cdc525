"""The connection to a Neo4j server: one driver, managed transactions, patience while the server restarts, errors with a fix.

The driver repeats a transaction for a few seconds when the server asks for that (deadlock, change of leader). What outlasts that is
waited for here, up to PATIENCE: a server that is restarted, and a commit whose acknowledgement was lost, which the driver
leaves alone because it may be done. It is run again with `again` set, so that the work can look.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kgsynth.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Record

T = TypeVar("T")

PATIENCE = 120.0  # seconds for which reads and writes wait for a server that is away
PAUSE = 0.5  # seconds between two attempts
DRIVER_RETRIES = 5.0  # seconds for which the driver itself repeats a transaction
LONGEST = 600.0  # seconds after which the server ends a transaction: a client that hangs, or whose host is gone, holds the lock
WRITERS = 4  # transactions of one store that may write at once: they take turns at the lock, and waiting there holds a connection
CONNECTIONS = 16
STOPPED = (
    "Transaction.LockClientStopped",
    "Transaction.Terminated",
)  # by a server that shuts down; to the driver, final
FETCH = 10_000  # records per round trip


class Session:
    """One transaction."""

    def __init__(self, tx: ManagedTransaction, again: bool) -> None:
        self._tx = tx
        self.again = again  # whether it was begun before, and may have been done without our being told

    def run(self, query: str, **given: Any) -> list[Record]:
        return list(self._tx.run(query, given))  # type: ignore[arg-type]


class Server:
    """A database on a server. Threads may share it; a forked process must open its own.

    Name, password and database come from NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE unless given; without a
    password no authentication is tried. Everything raises StoreError, or ConfigError without the driver.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None, database: str | None) -> None:
        self.url, self._pid = url, os.getpid()
        self.database = database or os.environ.get("NEO4J_DATABASE") or "neo4j"
        self._turns = threading.BoundedSemaphore(WRITERS)
        self._driver = _driver(url, auth or _auth())
        try:
            with self._explained():
                self._driver.verify_connectivity()
        except StoreError:
            self._driver.close()
            raise
        except ValueError as error:  # of a port that is none
            self._driver.close()
            raise _misspelt(url, error) from error

    def read(self, query: str, **given: Any) -> list[Record]:
        return self._patiently(lambda session: session.execute_read(lambda tx: Session(tx, False).run(query, **given)))

    def write(self, work: Callable[[Session], T]) -> T:
        """Run work(session) in one transaction, more than once if need be; its last run counts."""
        from neo4j import unit_of_work

        begun = False

        @unit_of_work(timeout=LONGEST)
        def run(tx: ManagedTransaction) -> T:
            nonlocal begun
            again, begun = begun, True
            return work(Session(tx, again))

        with self._turns:
            return self._patiently(lambda session: session.execute_write(run))

    def _patiently(self, act: Callable[[Any], T]) -> T:
        if os.getpid() != self._pid:
            raise StoreError(f"{self.url} was opened before a fork; open the store again in the new process")
        deadline = time.monotonic() + PATIENCE
        with self._explained():
            while True:
                try:
                    bookmarks = (
                        self._driver.execute_query_bookmark_manager
                    )  # reads see the writes before them, on a cluster too
                    with self._driver.session(
                        database=self.database, bookmark_manager=bookmarks, fetch_size=FETCH
                    ) as session:
                        return act(session)
                except Exception as error:
                    if not _passing(error) or time.monotonic() > deadline:
                        raise
                time.sleep(PAUSE)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        from neo4j.exceptions import DriverError, Neo4jError

        try:
            yield
        except (DriverError, Neo4jError, OSError) as error:
            said = getattr(error, "message", None) or error
            raise StoreError(f"graph store {self.url}: {said}; {_fix(error, self.database)}") from error

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._driver.close()


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _passing(error: Exception) -> bool:
    """Whether waiting may help. A lost acknowledgement is a ServiceUnavailable that the driver itself does not retry."""
    from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable

    if isinstance(error, ServiceUnavailable | OSError) or _code(error).endswith(STOPPED):
        return True
    return isinstance(error, DriverError | Neo4jError) and error.is_retryable() and "OutOfMemory" not in _code(error)


def _code(error: Exception) -> str:
    return getattr(error, "code", None) or ""


def _auth() -> tuple[str, str] | None:
    password = os.environ.get("NEO4J_PASSWORD")
    return (os.environ.get("NEO4J_USERNAME") or "neo4j", password) if password else None


def _driver(url: str, auth: tuple[str, str] | None) -> Driver:
    if "@" in url:
        raise StoreError(
            "the graph store's address holds a user or password; put them into NEO4J_USERNAME, NEO4J_PASSWORD"
        )
    try:
        from neo4j import GraphDatabase
        from neo4j.exceptions import ConfigurationError
    except ImportError as error:
        raise ConfigError("the Neo4j store needs the driver: pip install 'kgsynth[neo4j]'") from error
    logging.getLogger("neo4j").addHandler(
        logging.NullHandler()
    )  # each retry is logged; not to the terminal unless asked for
    try:
        return GraphDatabase.driver(
            url, auth=auth, connection_timeout=10, connection_acquisition_timeout=PATIENCE, liveness_check_timeout=30,
            max_connection_pool_size=CONNECTIONS, max_transaction_retry_time=DRIVER_RETRIES,
            notifications_min_severity="OFF", telemetry_disabled=True,
        )  # fmt: skip
    except (ConfigurationError, ValueError) as error:
        raise _misspelt(url, error) from error


def _misspelt(url: str, error: Exception) -> StoreError:
    return StoreError(f"graph store {url}: {error}; write it as bolt://HOST:PORT or neo4j+s://HOST")


def _fix(error: Exception, database: str) -> str:
    from neo4j.exceptions import ServiceUnavailable

    code = _code(error)
    if "Security" in code:
        return "set NEO4J_USERNAME and NEO4J_PASSWORD to a user of that server"
    if isinstance(error, ServiceUnavailable | OSError):
        return "check the address and that the server runs (`kgsynth neo4j up` starts one here)"
    if "DatabaseNotFound" in code:
        return f"set NEO4J_DATABASE to a database that exists (now {database!r})"
    if "OutOfMemory" in code:
        return "write in smaller changes, or give the server more memory (dbms.memory.transaction.total.max)"
    if "ConstraintCreation" in code:
        return "something is in the graph twice; run `kgsynth doctor --repair` on it"
    if "ConstraintValidation" in code:
        return "the database holds another row of that id: it is of another graph, use an empty database"
    if "too large to index" in str(error):
        return "a name or domain is longer than Neo4j can look up (some 32,000 bytes); shorten it"
    if "closed" in str(error).casefold():
        return "the store was closed; open it again with open_store"
    return "nothing of this was written; the message above is the server's"
