"""`kgsynth neo4j`: a real server started, looked at, killed and started again; and what is said when it cannot be."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kgsynth.cli import main
from kgsynth.errors import StoreError
from kgsynth.store import docker, local, maven

ANY = ("--bolt-port=0", "--http-port=0", "--maven")


def neo4j(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What a command that must succeed prints as its last line."""
    assert main(["neo4j", *map(str, arguments)]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command that must fail says in its last line."""
    assert main(["neo4j", *map(str, arguments)]) == 1
    return capsys.readouterr().err.splitlines()[-1]


def ask(url: str, query: Any, password: str | None = None, **given: Any) -> list[Any]:
    from neo4j import GraphDatabase

    auth = ("neo4j", password) if password else None
    with GraphDatabase.driver(url, auth=auth, max_transaction_retry_time=0) as driver:
        return [row.values()[0] for row in driver.execute_query(query, given, database_="neo4j").records]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a server may be started; skipped where none can be."""
    pytest.importorskip("neo4j")
    monkeypatch.delenv("NEO4J_PASSWORD", raising=False)
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")  # half the time to start
    try:
        maven.find_java()
        maven.fetch()
    except StoreError as error:
        pytest.skip(str(error))
    yield tmp_path / "neo4j"
    local.stop(tmp_path / "neo4j", seconds=0)


@pytest.mark.neo4j
@pytest.mark.slow
def test_a_killed_server_comes_up_where_it_was_with_all_that_was_committed(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert neo4j(capsys, "status", "--home", home) == {"home": str(home), "running": False}
    first = neo4j(capsys, "up", "--home", home, *ANY)
    assert neo4j(capsys, "status", "--home", home) == first
    for n in range(50):
        ask(first["url"], "CREATE (:Concept {n: $n, domain: 'kept ' + $n})", n=n)
    os.kill(first["pid"], signal.SIGKILL)
    os.waitpid(first["pid"], 0)
    assert not neo4j(capsys, "status", "--home", home)["running"]

    again = neo4j(capsys, "up", "--home", home, "--maven")
    assert {**again, "pid": first["pid"]} == first, "the same ports as before"
    assert sorted(ask(again["url"], "MATCH (c:Concept) RETURN c.n")) == list(range(50))
    assert neo4j(capsys, "up", "--home", home)["pid"] == again["pid"], "a second `up` starts no second server"
    assert "node.Domain_kept_49 {" in (home / "web/browser/kgsynth/style.grass").read_text()
    assert neo4j(capsys, "down", "--home", home)["stopped"]
    assert not neo4j(capsys, "down", "--home", home)["stopped"]


@pytest.mark.neo4j
@pytest.mark.slow
def test_a_server_with_a_password_lets_nobody_in_without_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from neo4j.exceptions import Neo4jError

    up = neo4j(capsys, "up", "--home", home, *ANY, "--password")
    assert ask(up["url"], "RETURN 1", up["password"]) == [1]
    for wrong in (None, "neo4j", "not the password"):
        with pytest.raises(Neo4jError, match=r"[Uu]nauthorized|authentication"):
            ask(up["url"], "RETURN 1", wrong)
    neo4j(capsys, "down", "--home", home)

    assert "set NEO4J_PASSWORD" in refused(capsys, "up", "--home", home, "--maven")
    monkeypatch.setenv("NEO4J_PASSWORD", "not the password")
    assert "another password" in refused(capsys, "up", "--home", home, "--maven")
    assert not neo4j(capsys, "status", "--home", home)["running"]


@pytest.mark.neo4j
@pytest.mark.slow
def test_two_that_start_at_once_in_one_home_start_one_server(home: Path) -> None:
    with ThreadPoolExecutor(2) as both:
        tries = [both.submit(local.start, home) for _ in range(2)]
    failed = [error for error in (t.exception() for t in tries) if error]
    assert len(failed) == 1
    assert "runs in" in str(failed[0])
    assert local.find(home) in [t.result() for t in tries if not t.exception()]


@pytest.mark.neo4j
def test_a_taken_port_is_named_before_anything_is_started(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(capsys, "up", "--home", home, "--maven", f"--bolt-port={port}", "--http-port=0")
    assert f"port {port} is in use" in said
    assert "--bolt-port" in said
    assert not home.exists()


def test_data_of_a_later_release_are_not_opened_by_an_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"pid": 1, "bolt_port": 0, "http_port": 0, "version": maven.CURRENT}
    (tmp_path / "kgsynth.json").write_text(json.dumps(record))
    said = refused(capsys, "up", "--home", tmp_path, "--maven", f"--version={maven.LTS}")
    assert f"last written by Neo4j {maven.CURRENT}" in said


def test_a_process_that_has_the_pid_of_a_dead_server_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        record = {"pid": other.pid, "bolt_port": 1, "http_port": 1, "version": maven.LTS}
        (tmp_path / "kgsynth.json").write_text(json.dumps(record))
        assert not neo4j(capsys, "down", "--home", tmp_path)["stopped"]
        assert other.poll() is None
        other.kill()


@pytest.mark.parametrize(
    ("version", "java"),
    [("5.26.0", (17, 21)), ("5.26.30", (17, 21)), ("2025.01.0", (21,)), ("2025.10.1", (21, 25)), ("2026.09.0", (21, 25))],
)  # fmt: skip
def test_each_release_needs_its_java(version: str, java: tuple[int, ...]) -> None:
    assert maven.java_versions(version) == java


@pytest.mark.parametrize("version", ["5.25.1", "4.4.0", "latest", "2026", "5.26.0; rm -rf /", ""])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(StoreError, match=r"is no Neo4j release that can be used; give 5\.26"):
        maven.parse_version(version)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_an_old_java_is_named_and_so_is_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(tmp_path / "jdk-11/bin/java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    monkeypatch.setattr(maven, "JVMS", tmp_path / "none")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk-11"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match=r"needs Java 17 or 21, but .* is Java 11; install one .*openjdk-17") as raised:
        maven.find_java(maven.LTS)
    assert str(old) in str(raised.value)
    monkeypatch.setenv("JAVA_HOME", "")
    with pytest.raises(StoreError, match=r"there is no Java at all|Java 25"):
        maven.find_java("2025.01.0")


def test_without_maven_or_the_jars_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="Maven, which fetches it, is missing: install `mvn`"):
        maven.fetch()


def test_when_maven_fails_nothing_half_fetched_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin/mvn", "echo '[ERROR] Could not find artifact org.neo4j:neo4j:jar:5.26.77 (x)'; exit 1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(
        StoreError, match=r"could not fetch Neo4j 5\.26\.77: Could not find artifact .*check the network"
    ):
        maven.fetch("5.26.77")
    assert [path.name for path in (tmp_path / "cache/kgsynth").iterdir()] == ["neo4j-5.26.77.lock"]


# Docker: what its command is given, recorded by a program of that name

RECORD = """for a in "$@"; do printf '%s\\n' "$a" >> LOG; done
case "$*" in *up*) env | grep ^NEO4J_ | sort >> LOG;; *ps*) echo 0123456789ab;; esac"""


@pytest.fixture
def docker_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program(tmp_path / "bin/docker", RECORD.replace("LOG", str(tmp_path / "log")))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "log"


def test_docker_is_given_the_compose_file_and_its_variables(docker_log: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert docker.missing() is None
    docker_log.unlink()
    docker.up(home, version=maven.LTS, bolt_port=7001, http_port=7002, password="correct horse", heap="2g")
    said = docker_log.read_text().splitlines()
    assert said[:2] == ["compose", "--file"]
    assert Path(said[2]).name == "compose.yaml"
    assert said[3] == "--project-name"
    assert said[5:8] == ["up", "--detach", "--wait"]
    assert set(said[8:]) >= {
        f"NEO4J_VERSION={maven.LTS}", "NEO4J_BOLT_PORT=7001", "NEO4J_HTTP_PORT=7002", "NEO4J_HEAP=2g",
        "NEO4J_AUTH=neo4j/correct horse", f"NEO4J_DATA={home}/data", f"NEO4J_RUN_AS={os.getuid()}:{os.getgid()}",
    }  # fmt: skip
    assert docker.running(home)
    assert (home / "data").is_dir()


def test_the_compose_file_uses_every_variable_and_listens_on_loopback_only(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "graph_schemas/compose.yaml").read_text()
    given = docker.variables(tmp_path, version="5.26.30", bolt_port=1, http_port=2, password=None, heap="1g")
    assert all(f"${{{name}:-" in text for name in given)
    ports = text.split("ports:")[1].split("environment:")[0].split()
    assert all(port.startswith("127.0.0.1:") for port in ports if port != "-")


def test_docker_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program(tmp_path / "bin/docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    said = refused(capsys, "up", "--docker", "--home", tmp_path / "home", "--bolt-port=0", "--http-port=0")
    assert "daemon does not answer (Cannot connect to the Docker daemon); start Docker, or use --maven" in said
