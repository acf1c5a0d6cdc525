"""A real Neo4j Community server on this machine, for those who have a JDK and no server: started, watched, stopped by pid.

Neo4j (GPLv3) is not part of this package: Maven fetches it once into the user's cache and it runs as a process of its own.
It listens on 127.0.0.1 only and asks for no password. The Browser is served at `http_url`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kgsynth.errors import StoreError

VERSION = "5.26.30"  # the long-term support line; needs Java 17 or 21
BROWSER_VERSION = "5.24.0"
JAVA = (17, 21)
MAIN = "org.neo4j.server.CommunityEntryPoint"
OPENS = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")  # of java.base, as in the shipped neo4j.conf

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kgsynth</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version></dependency>
    <dependency>
      <groupId>org.neo4j.client</groupId><artifactId>neo4j-browser</artifactId><version>{BROWSER_VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

CONF = """server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{bolt}
server.bolt.advertised_address=127.0.0.1:{bolt}
server.http.listen_address=127.0.0.1:{http}
server.http.advertised_address=127.0.0.1:{http}
server.https.enabled=false
dbms.security.auth_enabled=false
dbms.usage_report.enabled=false
server.memory.pagecache.size=64m
"""


@dataclass(frozen=True, kw_only=True)
class LocalServer:
    """A running server. `stop` ends it; it outlives the Python process otherwise."""

    home: Path
    pid: int
    bolt_port: int
    http_port: int

    @property
    def url(self) -> str:
        return f"bolt://127.0.0.1:{self.bolt_port}"

    @property
    def http_url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}/browser/"

    def stop(self, seconds: float = 30.0) -> None:
        stop(self.home, seconds)


def start(
    home: str | Path, *, bolt_port: int = 0, http_port: int = 0, heap: str = "512m", seconds: float = 120.0
) -> LocalServer:
    """Start a server whose data is in `home` and wait until it answers a query. Port 0: any free one.

    Raises StoreError when Java or Maven are missing, a server runs in `home` already, or it does not come up.
    """
    home = Path(home).resolve()
    if pid := running(home):
        raise StoreError(f"a Neo4j server (process {pid}) runs in {home} already; use it, or stop it first")
    java, lib = find_java(), fetch()
    bolt_port, http_port = bolt_port or _free_port(), http_port or _free_port()
    for folder in ("conf", "data", "logs", "run", "plugins", "import"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "conf" / "neo4j.conf").write_text(CONF.format(bolt=bolt_port, http=http_port))
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS]
    memory = ["-Xms128m", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]  # quick to start
    paths = [f"--home-dir={home}", f"--config-dir={home / 'conf'}"]
    with (home / "logs" / "console.log").open("wb") as log:
        process = subprocess.Popen(
            [java, *memory, *opens, "-cp", f"{lib}/*", MAIN, *paths],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    _pid_file(home).write_text(str(process.pid))
    server = LocalServer(home=home, pid=process.pid, bolt_port=bolt_port, http_port=http_port)
    try:
        _wait(server, process, seconds)
    except BaseException:
        stop(home)
        raise
    return server


def running(home: str | Path) -> int | None:
    """The pid of the server in `home`, or None. A pid that now belongs to another program does not count."""
    home = Path(home).resolve()
    try:
        pid = int(_pid_file(home).read_text())
        return pid if f"--home-dir={home}" in Path(f"/proc/{pid}/cmdline").read_text().split("\0") else None
    except (OSError, ValueError):
        return None


def stop(home: str | Path, seconds: float = 30.0) -> bool:
    """End the server in `home`: asked first, killed after `seconds`. False when none runs."""
    home = Path(home).resolve()
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
    _pid_file(home).unlink(missing_ok=True)
    return True


def find_java() -> str:
    """A Java that this Neo4j runs on: $JAVA_HOME, the PATH, /usr/lib/jvm. Raises StoreError."""
    homes = [os.environ.get("JAVA_HOME"), *sorted(map(str, Path("/usr/lib/jvm").glob("*")))]
    candidates = [shutil.which("java"), *(f"{home}/bin/java" for home in homes if home)]
    for java in dict.fromkeys(candidates):
        if java and os.access(java, os.X_OK) and _java_version(java) in JAVA:
            return java
    raise StoreError(
        f"Neo4j {VERSION} needs Java {' or '.join(map(str, JAVA))} and none was found;"
        " install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )


def fetch() -> Path:
    """The folder of Neo4j's jars (137 MB), fetched by Maven when they are not in the cache. Raises StoreError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgsynth"
    lib = cache / f"neo4j-{VERSION}"
    if lib.is_dir():
        return lib
    maven = shutil.which("mvn")
    if maven is None:
        raise StoreError(f"Neo4j {VERSION} is not in {cache} and Maven, which fetches it, is missing: install `mvn`")
    part = cache / f"neo4j-{VERSION}.part-{os.getpid()}"
    part.mkdir(parents=True, exist_ok=True)
    (part / "pom.xml").write_text(POM)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=part, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(part)
        raise StoreError(f"Maven could not fetch Neo4j {VERSION}: {done.stdout.strip()[-500:]}; check the network")
    try:
        part.rename(lib)
    except OSError:  # another process was faster
        shutil.rmtree(part)
    return lib


def _wait(server: LocalServer, process: subprocess.Popen[bytes], seconds: float) -> None:
    from neo4j import GraphDatabase
    from neo4j.exceptions import DriverError, Neo4jError

    deadline = time.monotonic() + seconds
    while True:
        try:
            with GraphDatabase.driver(server.url, connection_timeout=2) as driver, driver.session() as session:
                session.run("RETURN 1").consume()
                return
        except (DriverError, Neo4jError, OSError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                log = (server.home / "logs" / "console.log").read_text(errors="replace")[-500:]
                raise StoreError(f"Neo4j did not come up in {server.home}: {error}; its log ends: {log}") from error
            time.sleep(0.2)


def _java_version(java: str) -> int:
    """The major version, 0 when it cannot be told."""
    told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr.split('"')
    digits = told[1].split(".")[0] if len(told) > 1 else ""
    return int(digits) if digits.isdigit() else 0


def _alive(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # collect it if it is our child
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _pid_file(home: Path) -> Path:
    return home / "run" / "kgsynth.pid"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
