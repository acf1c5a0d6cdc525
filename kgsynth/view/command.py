"""`kgsynth view GRAPH`: the graph in a web page."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any

from kgsynth.errors import ViewError

GRAPH = "a recipe (.toml), a run folder, a graph.sqlite, or the address of a store (sqlite:PATH, bolt://HOST:PORT)"
PORT = 7575


def add_view_command(commands: Any) -> None:
    text = "open the graph in a web page on this machine: search it, follow it, see where it came from"
    sub = commands.add_parser("view", help=text, description=f"{text}.")
    sub.add_argument("graph", help=GRAPH)
    sub.add_argument("--port", type=int, default=PORT, help="of 127.0.0.1; 0 for any free one (default: %(default)s)")
    sub.add_argument("--no-open", action="store_true", help="only print the address, do not open a browser")
    sub.set_defaults(command=view_command)


def view_command(args: argparse.Namespace) -> None:
    from kgsynth.store import open_store
    from kgsynth.view.answers import Answers
    from kgsynth.view.server import PageServer

    url, name = locate(args.graph)
    store = open_store(url)
    try:
        with PageServer(Answers(store, name), port=args.port) as server:
            print(f"view: {name} at {server.url} (Ctrl-C ends it)", flush=True)
            if not args.no_open:
                webbrowser.open(server.url)
            server.wait()
    except KeyboardInterrupt:
        print("view: ended", file=sys.stderr)
    finally:
        store.close()


def locate(graph: str) -> tuple[str, str]:
    """(store URL, what to call it) of what the user named. Raises ViewError when there is no such graph."""
    if "://" in graph:
        return graph, graph
    path = Path(graph.removeprefix("sqlite:"))
    if path.suffix == ".toml":
        return _of_recipe(path)
    if path.is_dir():
        path = path / "graph.sqlite"
    if not path.is_file():
        raise ViewError(f"there is no graph at {path}; name {GRAPH}; `kgsynth grow RECIPE` makes one")
    return f"sqlite:{path}", path.parent.name if path.name == "graph.sqlite" and path.parent.name else path.name


def _of_recipe(path: Path) -> tuple[str, str]:
    from kgsynth.stages import load_recipe

    recipe = load_recipe(path)
    if recipe.store.url and not recipe.store.url.startswith("sqlite:"):
        return recipe.store.url, recipe.run.name
    file = Path(recipe.store.url.removeprefix("sqlite:") or recipe.run.folder / "graph.sqlite")
    if not file.is_file():
        raise ViewError(f"the run of {path} has no graph yet ({file} is missing); grow it first: kgsynth grow {path}")
    return f"sqlite:{file}", recipe.run.name
