"""Neo4j from its official image, where Docker's daemon and its compose plugin answer. `graph_schemas/compose.yaml` is what runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from kgsynth.errors import StoreError
from kgsynth.store.maven import parse_version


def missing() -> str | None:
    """What keeps Docker from being used here, or None."""
    for command, what in (
        (["docker", "version", "--format", "{{.Server.Version}}"], "Docker's daemon does not answer"),
        (["docker", "compose", "version"], "Docker has no compose plugin"),
    ):
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
        except FileNotFoundError:
            return "there is no docker command"
        except subprocess.TimeoutExpired:
            return what
        if done.returncode:
            return f"{what} ({' '.join(done.stderr.split())[:200]})"
    return None


def up(home: Path, *, version: str, bolt_port: int, http_port: int, password: str | None, heap: str) -> None:
    """Start the container and wait until it is healthy; its data are in `home`/data. Raises StoreError."""
    parse_version(version)
    (home / "data").mkdir(parents=True, exist_ok=True)
    given = variables(
        home, version=version, bolt_port=bolt_port, http_port=http_port, password=password, heap=heap
    )  # fmt: skip
    _compose(home, "up", "--detach", "--wait", given=given)


def down(home: Path) -> bool:
    """Stop and remove the container; the data stay. Raises StoreError."""
    _compose(home, "down")
    return True


def running(home: Path) -> bool:
    """Whether the container of this home runs; False where Docker does not answer."""
    try:
        return bool(_compose(home, "ps", "--quiet", "--status", "running").strip())
    except StoreError:
        return False


def variables(
    home: Path, *, version: str, bolt_port: int, http_port: int, password: str | None, heap: str
) -> dict[str, str]:
    """What compose.yaml is filled in with."""
    return {
        "NEO4J_VERSION": version,
        "NEO4J_RUN_AS": f"{os.getuid()}:{os.getgid()}",
        "NEO4J_BOLT_PORT": str(bolt_port),
        "NEO4J_HTTP_PORT": str(http_port),
        "NEO4J_AUTH": f"neo4j/{password}" if password is not None else "none",
        "NEO4J_HEAP": heap,
        "NEO4J_DATA": str(home / "data"),
    }


def command(compose_file: Path, home: Path, *arguments: str) -> list[str]:
    """The docker command line; a home has a project of its own."""
    project = "kgsynth-" + hashlib.sha256(str(home).encode()).hexdigest()[:8]
    return ["docker", "compose", "--file", str(compose_file), "--project-name", project, *arguments]


def _compose(home: Path, *arguments: str, given: Mapping[str, str] | None = None) -> str:
    with as_file(files("graph_schemas").joinpath("compose.yaml")) as compose_file:
        line = command(compose_file, home, *arguments)
        environment = {**os.environ, **(given or {})}
        try:
            done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
        except FileNotFoundError as error:
            raise StoreError("there is no docker command; install Docker, or use --maven") from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-500:]
        raise StoreError(
            f"`{' '.join(line[:2])} {arguments[0]}` failed: {said}; `kgsynth neo4j up --maven` needs no Docker"
        )
    return done.stdout
