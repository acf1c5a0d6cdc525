"""`kgsynth neo4j up|down|status|files`: a Neo4j server at hand, with its Browser set up for a concept graph."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import ConfigError

if TYPE_CHECKING:
    from kgsynth.store.local import LocalServer

BOLT, HTTP = 7687, 7474  # Neo4j's own
EXAMPLES = """\
examples:
  kgsynth neo4j up                                  5.26 LTS, from Docker if it answers, else from Maven Central
  kgsynth neo4j up --version 2026.09.0 --home big   a current release, with data of its own
  NEO4J_PASSWORD=... kgsynth neo4j up --password    one that asks for a password
  kgsynth neo4j down                                the data stay: `up` goes on with them
"""


def add_neo4j_commands(commands: Any) -> None:
    """Add `neo4j` with its subcommands."""
    raw = argparse.RawDescriptionHelpFormatter
    text = "start, stop and look at a Neo4j server on this machine"
    parser = commands.add_parser("neo4j", help=text, description=f"{text}.", epilog=EXAMPLES, formatter_class=raw)
    parts = parser.add_subparsers(metavar="up|down|status|files", required=True)
    for name, command, text in (
        ("up", up_command, "start a server, or set up the Browser of the one that runs"),
        ("down", down_command, "stop the server; its data stay"),
        ("status", status_command, "say whether it runs, and where"),
        ("files", files_command, "write style, guide and saved queries for the Browser of any server"),
    ):
        sub = parts.add_parser(name, help=text, description=f"{text}.", epilog=EXAMPLES, formatter_class=raw)
        if name == "files":
            sub.add_argument("folder", type=Path, help="where to")
        else:
            sub.add_argument("--home", type=Path, default=_home(), help="folder of its data (default: %(default)s)")
        if name == "up":
            _add_up_arguments(sub)
        sub.set_defaults(command=command)


def _add_up_arguments(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--version", help="5.26.x (the default is the last of them), 2025.x or 2026.x, three numbers")
    sub.add_argument("--bolt-port", type=int, help=f"default: that of the last time, or {BOLT}; 0: any free one")
    sub.add_argument("--http-port", type=int, help=f"default: that of the last time, or {HTTP}; 0: any free one")
    sub.add_argument("--heap", default="1g", help="memory for queries (default: %(default)s)")
    sub.add_argument("--password", action="store_true", help="ask clients for $NEO4J_PASSWORD; unset: one is made up")
    how = sub.add_mutually_exclusive_group()
    how.add_argument("--docker", action="store_true", help="run the official image")
    how.add_argument("--maven", action="store_true", help="run the jars from Maven Central, with Java")


def up_command(args: argparse.Namespace) -> None:
    from kgsynth.store import browse, local

    home = args.home.resolve()
    server = local.find(home)
    password = os.environ.get("NEO4J_PASSWORD") or None
    if server is None:
        password = _password(home, args.password)
        server = _start(home, args, password)
    else:
        print(f"it runs already; its Browser is set up anew. To change it, first: kgsynth neo4j down --home {home}")
    browse.write_files(server.browser_files, local.domains(server, password))
    _print_server(server)
    if password is not None and not os.environ.get("NEO4J_PASSWORD"):
        print(f"  Password   {password}   (made up now; export NEO4J_PASSWORD={password})")
    print(f"Next:\n  kgsynth push runs/demo {server.url}\n  kgsynth grow recipes/demo.toml store.url={server.url}")
    print(
        f"  kgsynth neo4j up{_option(home)}      once more, when new domains want colours\n  kgsynth neo4j down{_option(home)}"
    )
    _print_json(_facts(server) | ({"password": password} if server.auth else {}))


def down_command(args: argparse.Namespace) -> None:
    from kgsynth.store import local

    stopped = local.stop(args.home)
    print(f"stopped; the data stay in {args.home}" if stopped else f"no server runs in {args.home}")
    _print_json({"home": str(args.home), "running": False, "stopped": stopped})


def status_command(args: argparse.Namespace) -> None:
    from kgsynth.store import local

    server = local.find(args.home)
    if server is None:
        print(f"no server runs in {args.home}; start one: kgsynth neo4j up{_option(args.home)}")
        _print_json({"home": str(args.home), "running": False})
        return
    _print_server(server)
    _print_json(_facts(server))


def files_command(args: argparse.Namespace) -> None:
    from kgsynth.store import browse

    browse.write_files(args.folder)
    print(f"drop {args.folder / browse.STYLE} and {args.folder / browse.SAVED} on the window of Neo4j Browser")
    _print_json({name: str(args.folder / name) for name in (browse.STYLE, browse.GUIDE, browse.SAVED)})


def _start(home: Path, args: argparse.Namespace, password: str | None) -> LocalServer:
    from kgsynth.store import docker, local

    last = local.recorded(home) or {}
    ports = {
        "bolt_port": args.bolt_port if args.bolt_port is not None else last.get("bolt_port", BOLT),
        "http_port": args.http_port if args.http_port is not None else last.get("http_port", HTTP),
    }
    reason = None if args.maven else docker.missing()
    if args.docker and reason:
        raise ConfigError(f"--docker: {reason}; start Docker, or use --maven")
    with_docker = not args.maven and reason is None
    if reason:
        _say(f"without Docker: {reason}")
    start = local.start_in_docker if with_docker else local.start
    more = {} if with_docker else {"quick": False, "pagecache": "256m"}
    return start(home, version=args.version, password=password, heap=args.heap, say=_say, **ports, **more)


def _password(home: Path, wanted: bool) -> str | None:
    from kgsynth.store import local

    had = (local.recorded(home) or {}).get("auth", False)
    if not wanted and not had:
        return None
    given = os.environ.get("NEO4J_PASSWORD")
    if had and not given:
        raise ConfigError(f"the server of {home} asks for a password: set NEO4J_PASSWORD to it")
    return given or secrets.token_urlsafe(12)


def _print_server(server: LocalServer) -> None:
    how = "in Docker" if server.by == "docker" else f"process {server.pid}"
    print(f"Neo4j {server.version} runs ({how}), data in {server.home}")
    print(f"  Bolt       {server.url}" + ("   user neo4j, password in NEO4J_PASSWORD" if server.auth else ""))
    print(f"  Browser    {server.http_url}")
    if server.by == "docker":
        print(f"             drop {server.browser_files}/style.grass and saved-queries.zip on its window")


def _facts(server: LocalServer) -> dict[str, Any]:
    return {
        "running": True, "url": server.url, "browser": server.http_url, "version": server.version,
        "home": str(server.home), "pid": server.pid, "by": server.by, "auth": server.auth,
    }  # fmt: skip


def _home() -> Path:
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "kgsynth" / "neo4j"


def _option(home: Path) -> str:
    return "" if home == _home().resolve() else f" --home {home}"


def _say(text: str) -> None:
    print(f"kgsynth: {text}", file=sys.stderr)


def _print_json(row: dict[str, Any]) -> None:
    print(json.dumps(row, ensure_ascii=False))
