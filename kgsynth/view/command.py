"""`kgsynth view GRAPH`: the graph in a web page."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgsynth.where import GRAPH_HELP, find_graph

PORT = 7575
LARGE = 200_000  # concepts


def add_view_command(commands: Any) -> None:
    text = "open the graph in a web page on this machine: search it, follow it, see where it came from"
    sub = commands.add_parser("view", help=text, description=f"{text}.")
    sub.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    sub.add_argument("--port", type=int, default=PORT, help="of 127.0.0.1; 0 for any free one (default: %(default)s)")
    sub.add_argument("--no-open", action="store_true", help="only print the address, do not open a browser")
    sub.set_defaults(command=view_command)


def view_command(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    from kgsynth.store import open_store
    from kgsynth.view.answers import Answers
    from kgsynth.view.server import PageServer

    url = find_graph(args.graph)
    store = open_store(url)
    try:
        answers = Answers(store, title(url))
        if answers.size > LARGE:
            print(f"view: {answers.size:,} concepts: browsers grow slow beyond {LARGE:,}", file=sys.stderr)
        with PageServer(answers, port=args.port) as server:
            print(f"view: {title(url)} at {server.url} (Ctrl-C ends it)", flush=True)
            if not args.no_open:
                webbrowser.open(server.url)
            server.wait()
    except KeyboardInterrupt:
        print("view: ended", file=sys.stderr)
    finally:
        store.close()


def title(url: str) -> str:
    """What the page calls a graph: its run, its file, or its server.

    >>> title("sqlite:runs/demo/graph.sqlite"), title("sqlite:big.sqlite"), title("bolt://me@localhost:7687")
    ('demo', 'big', 'localhost:7687')
    """
    if url.startswith("sqlite:"):
        path = Path(url.removeprefix("sqlite:")).resolve()
        return path.parent.name if path.name == "graph.sqlite" else path.stem
    return urlsplit(url).netloc.rpartition("@")[2]
