"""A real Neo4j Community server on this machine, for those who have Java and no server: started, watched, stopped by pid.

It is a process of its own (see `maven.py`), listens on 127.0.0.1 only, asks for no password unless told to, and keeps its
data in its home folder. Neo4j Browser is served at `http_url`, and brings up our style and guide (see `browse.py`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import ConfigError, StoreError
from kgsynth.files import hold, write_atomically
from kgsynth.store import browse, docker
from kgsynth.store.maven import LTS, browser_jar, fetch, find_java, main_class, parse_version

OPENS = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")  # of java.base, as in the shipped neo4j.conf
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # to start; slower after a minute
USER = "neo4j"

CONF = """server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt_port}
server.bolt.advertised_address=127.0.0.1:{bolt_port}
server.http.listen_address=127.0.0.1:{http_port}
server.http.advertised_address=127.0.0.1:{http_port}
server.https.enabled=false
dbms.security.auth_enabled={auth}
dbms.usage_report.enabled=false
client.allow_telemetry=false
server.memory.pagecache.size={pagecache}
internal.dbms.bolt.netty_server_shutdown_quiet_period=0
browser.post_connect_cmd={commands}
browser.remote_content_hostname_whitelist=127.0.0.1,localhost
"""


@dataclass(frozen=True, kw_only=True)
class LocalServer:
    """A running server. `stop` ends it; it outlives the Python process otherwise."""

    home: Path
    pid: int
    bolt_port: int
    http_port: int
    version: str
    auth: bool = False  # whether it asks for the password of the user "neo4j"
    by: str = "maven"  # or "docker"; then pid is 0

    @property
    def url(self) -> str:
        return f"bolt://127.0.0.1:{self.bolt_port}"

    @property
    def http_url(self) -> str:
        """Neo4j Browser, connected to this server at once if no password is needed."""
        method = "" if self.auth else "&preselectAuthMethod=NO_AUTH"
        return f"http://127.0.0.1:{self.http_port}/browser/?dbms={self.url}{method}"

    @property
    def browser_files(self) -> Path:
        """The folder of our files for the Browser; it serves them itself when it runs from Maven's jars."""
        return self.home / "web" / browse.FOLDER

    def stop(self, seconds: float = 30.0) -> None:
        stop(self.home, seconds)


def start(
    home: str | Path,
    *,
    version: str | None = None,
    bolt_port: int = 0,
    http_port: int = 0,
    password: str | None = None,
    heap: str = "512m",
    pagecache: str = "64m",
    quick: bool = True,
    seconds: float = 300.0,
    say: Callable[[str], None] = lambda _: None,
) -> LocalServer:
    """Start a server whose data is in `home` and wait until it answers a query.

    Version: the one that wrote `home`, or the long-term support release. Port 0: any free one. With a password (of at
    least 8 characters) the server asks for it; it is set when `home` is new. Raises StoreError when Java or Maven are missing, a
    port is taken, a server runs in `home` already, its data are of a later version, or it does not come up.
    """
    home = Path(home).resolve()
    _check(password)
    version = _checked_version(home, version)
    bolt, http = _port(bolt_port), _port(http_port)
    java, lib = find_java(version), fetch(version, say)
    for folder in ("conf", "data", "logs", "run", "plugins", "import"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    with hold(home / "starting", lambda pid: say(f"process {pid} is starting a server in {home}: waiting")):
        if pid := running(home):
            raise StoreError(f"a Neo4j server (process {pid}) runs in {home} already; use it, or stop it first")
        files = browse.serve(home / "web", browser_jar(lib))
        conf = CONF.format(
            bolt_port=bolt, http_port=http, auth=str(password is not None).lower(), pagecache=pagecache,
            commands=browse.commands(f"http://127.0.0.1:{http}/{files}"),
        )  # fmt: skip
        (home / "conf" / "neo4j.conf").write_text(conf)
        say(f"starting Neo4j {version} in {home}")
        process = _launch(home, [java, f"-Xmx{heap}", *(QUICK if quick else ())], lib, version)
        auth = password is not None
        server = LocalServer(home=home, pid=process.pid, version=version, auth=auth, bolt_port=bolt, http_port=http)
        _keep(server)
        try:
            _wait(server, process, password, seconds)
        except BaseException:
            stop(home)
            raise
    return server


def start_in_docker(
    home: str | Path,
    *,
    version: str | None = None,
    bolt_port: int = 0,
    http_port: int = 0,
    password: str | None = None,
    heap: str = "512m",
    say: Callable[[str], None] = lambda _: None,
) -> LocalServer:
    """The same from the official image, where Docker answers. Raises StoreError."""
    home = Path(home).resolve()
    _check(password)
    version = _checked_version(home, version)
    bolt, http = _port(bolt_port), _port(http_port)
    say(f"starting Neo4j {version} in Docker, data in {home / 'data'}")
    docker.up(home, version=version, bolt_port=bolt, http_port=http, password=password, heap=heap)
    auth = password is not None
    server = LocalServer(home=home, pid=0, version=version, auth=auth, bolt_port=bolt, http_port=http, by="docker")
    _keep(server)
    return server


def find(home: str | Path) -> LocalServer | None:
    """The server that runs in `home`, or None."""
    home = Path(home).resolve()
    said = recorded(home)
    if said is None or not (docker.running(home) if said.get("by") == "docker" else running(home)):
        return None
    return LocalServer(**{**said, "home": home})


def domains(server: LocalServer, password: str | None = None) -> list[str]:
    """The domains of the server's graph, in the order in which they came. Raises StoreError."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import DriverError, Neo4jError

    auth = (USER, password) if password is not None else None
    query = "MATCH (c:Concept) WITH c.domain AS domain, min(c.n) AS first RETURN domain ORDER BY first"
    try:
        with GraphDatabase.driver(server.url, auth=auth, notifications_min_severity="OFF") as driver:
            return [row["domain"] for row in driver.execute_query(query, database_="neo4j").records]
    except (DriverError, Neo4jError, OSError) as error:
        raise StoreError(f"{server.url}: {error}; if it asks for a password, set NEO4J_PASSWORD") from error


def recorded(home: str | Path) -> dict[str, Any] | None:
    """What is known of the last server in `home`: pid, ports, version. None when there never was one."""
    try:
        said = json.loads(_record(Path(home).resolve()).read_text())
        return said if {"pid", "bolt_port", "http_port", "version"} <= set(said) else None
    except (OSError, ValueError, TypeError):
        return None


def running(home: str | Path) -> int | None:
    """The pid of the server in `home`, or None. A pid that now belongs to another program does not count."""
    home = Path(home).resolve()
    said = recorded(home)
    try:
        arguments = Path(f"/proc/{said['pid']}/cmdline").read_text().split("\0") if said else []
    except OSError:
        return None
    return said["pid"] if said and f"--home-dir={home}" in arguments else None


def stop(home: str | Path, seconds: float = 30.0) -> bool:
    """End the server in `home`: asked first, killed after `seconds`. False when none runs."""
    if (recorded(home) or {}).get("by") == "docker":
        home = Path(home).resolve()
        return docker.running(home) and docker.down(home)
    pid = running(home)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + seconds
    while _alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.05)
    return True


def _keep(server: LocalServer) -> None:
    write_atomically(_record(server.home), json.dumps({**asdict(server), "home": str(server.home)}))


def _check(password: str | None) -> None:
    if importlib.util.find_spec("neo4j") is None:
        raise ConfigError("a Neo4j server is waited for with its driver: pip install 'kgsynth[neo4j]'")
    if password is not None and len(password) < 8:
        raise StoreError("Neo4j takes no password of fewer than 8 characters; set a longer NEO4J_PASSWORD")


def _checked_version(home: Path, version: str | None) -> str:
    last: str | None = (recorded(home) or {}).get("version")
    version = version or last or LTS
    if last and parse_version(version) < parse_version(last):
        raise StoreError(
            f"the data in {home} were last written by Neo4j {last}, which {version} cannot read; use {last} or later,"
            " or another home"
        )
    return version


def _launch(home: Path, java: list[str], lib: Path, version: str) -> subprocess.Popen[bytes]:
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]
    paths = [f"--home-dir={home}", f"--config-dir={home / 'conf'}"]
    jars = f"{home / 'web'}:{lib}/*"  # the first folder called `browser` on it is the one that is served
    with (home / "logs" / "console.log").open("wb") as log:
        return subprocess.Popen(
            [*java, *opens, "-cp", jars, main_class(lib, version), *paths],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _wait(server: LocalServer, process: subprocess.Popen[bytes], password: str | None, seconds: float) -> None:
    from neo4j.exceptions import DriverError, Neo4jError

    deadline = time.monotonic() + seconds
    while True:
        try:
            return _greet(server, password)
        except (DriverError, Neo4jError, OSError) as error:
            if isinstance(error, Neo4jError) and "Unauthorized" in (error.code or ""):
                raise StoreError(
                    f"the data in {server.home} have another password; set NEO4J_PASSWORD to it"
                ) from error
            if process.poll() is not None or time.monotonic() > deadline:
                log = (server.home / "logs" / "console.log").read_text(errors="replace")[-500:]
                raise StoreError(f"Neo4j did not come up in {server.home}: {error}; its log ends: {log}") from error
            time.sleep(0.2)


def _greet(server: LocalServer, password: str | None) -> None:
    """A first query, after which the database is there. A new home still has Neo4j's own first password: replaced."""
    from neo4j import GraphDatabase
    from neo4j.exceptions import AuthError

    once: dict[str, Any] = {"connection_timeout": 2.0, "max_transaction_retry_time": 0.0}
    try:
        auth = (USER, password) if password is not None else None
        with GraphDatabase.driver(server.url, auth=auth, **once) as driver:
            driver.execute_query("RETURN 1", database_="neo4j")
    except AuthError:
        if password is None:
            raise
        change = "ALTER CURRENT USER SET PASSWORD FROM $old TO $new"
        with GraphDatabase.driver(server.url, auth=(USER, "neo4j"), **once) as driver:
            driver.execute_query(change, old="neo4j", new=password, database_="system")


def _alive(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # collect it if it is our child
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _record(home: Path) -> Path:
    return home / "kgsynth.json"


def _port(wanted: int) -> int:
    """A port that is free now: the wanted one, or any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise StoreError(
                f"port {wanted} is in use, by another Neo4j perhaps; stop that one, or choose other ports"
                " (--bolt-port, --http-port)"
            ) from error
        return probe.getsockname()[1]
