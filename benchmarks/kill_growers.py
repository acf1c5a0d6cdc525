"""Sixteen agents in four processes grow one graph through `kgsynth grow`, and are killed with -9 at random, over and over.

    python benchmarks/kill_growers.py --store sqlite --kills 20
    python benchmarks/kill_growers.py --store both --kills 20 --concepts 400     # also into a Neo4j server of its own

The world is a made-up taxonomy: a model that answers from it, with noise, a search engine and pages, all over HTTP, each answer taking
a random time. A first run grows it undisturbed in one process; then, for each store, a run is killed: a worker, which its parent must
replace; the parent, whose workers must end by themselves; all at once; sometimes at once after another kill. The same command is
then started again, until it says that it is done. Half of the way it has a cap on calls, which is then lifted.

What must be 0 afterwards is printed as a table. Ends with one line of JSON; exit code 1 when anything is wrong. See `growers/`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).resolve().parents[1]))
from benchmarks.growers import checks
from benchmarks.growers.killing import Killer, grow_calmly
from benchmarks.growers.world import Meaning, World, make_world
from kgsynth.store import local

SCREEN = Console(stderr=True, width=None if sys.stderr.isatty() else 150)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="kgsynth-growers-") as scratch:
        folder = args.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        there = make_world(folder, args.concepts, args.seed, args.delay)
        expected, calm = undisturbed(there, args)
        stores = ("sqlite", "neo4j") if args.store == "both" else (args.store,)
        found = {store: disturbed(there, args, store, expected, calm) for store in stores}
    must_be_0 = {"undisturbed": checks.of_the_meaning(calm, there), **{s: r["must be 0"] for s, r in found.items()}}
    wrong = {f"{run}: {name}": n for run, counts in must_be_0.items() for name, n in counts.items() if n}
    SCREEN.print(table(found))
    print(json.dumps({"concepts": args.concepts, "undisturbed_calls": expected, **found, "wrong": wrong}))
    return int(bool(wrong))


def undisturbed(there: World, args: argparse.Namespace) -> tuple[int, Meaning]:
    """(requests to the model, the graph) of a run in one process that nobody disturbs."""
    say(f"growing {args.concepts} concepts undisturbed")
    with there.served() as asked:
        recipe = there.recipe("undisturbed", asked.site, agents=args.agents * args.processes, processes=1)
        grow_calmly(recipe)
        with recipe.store() as store:
            return asked.seen, there.meaning(store)


def disturbed(there: World, args: argparse.Namespace, kind: str, expected: int, calm: Meaning) -> dict[str, Any]:
    """Grow under kills into a store of that kind, then count."""
    dice = random.Random(f"{args.seed} {kind}")
    with _place(there.folder, kind) as url, there.served() as asked:
        recipe = there.recipe(kind, asked.site, store=url, agents=args.agents, processes=args.processes)
        killer = Killer(asked, recipe, dice, expected=expected, cap=expected // 2, patience=args.patience, say=say)
        story = killer.run(args.kills)
        of_ledger, told = checks.of_the_ledger(recipe.ledger, asked.seen, asked.again)
        with recipe.store() as store:
            of_graph, size = checks.of_the_graph(store, there, calm), store.state()["concepts"]
    return {
        "must be 0": {**of_graph, **of_ledger, **checks.of_the_story(story, args.kills)},
        "concepts": size, "kills": dict(story.kills), "starts": story.starts, "failures": story.failures,
        "tracebacks": story.tracebacks,  # of workers that were killed or stopped in the middle of something
        "cap": story.cap, "calls_at_cap": story.calls_at_cap, **told,
        "longest_orphan_seconds": round(story.outlived, 2), "seconds": round(story.seconds, 1),
    }  # fmt: skip


@contextmanager
def _place(folder: Path, kind: str) -> Iterator[str]:
    """The URL of an empty store; "" for the embedded one of a run's folder."""
    if kind == "sqlite":
        yield ""
        return
    server = local.start(folder / "server")
    try:
        yield server.url
    finally:
        local.stop(server.home, seconds=5)


def table(found: dict[str, dict[str, Any]]) -> Table:
    """A column per store: first what must be 0, then what is told."""
    shown = Table(title="growing under kills")
    shown.add_column("")
    for store in found:
        shown.add_column(store, justify="right")
    first = next(iter(found.values()))
    for name in first["must be 0"]:
        counts = [result["must be 0"][name] for result in found.values()]
        shown.add_row(name, *(f"[bold red]{n}[/]" if n else "0" for n in counts))
    shown.add_section()
    for name in first:
        if name != "must be 0":
            shown.add_row(name, *(_words(result.get(name)) for result in found.values()))
    return shown


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{n} {name}" for name, n in value.items())
    if isinstance(value, list):
        return "; ".join(value) or "none"
    return "0" if value is None else str(value)


def say(text: str) -> None:
    SCREEN.print(text, markup=False, highlight=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=("sqlite", "neo4j", "both"), default="sqlite")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--agents", type=int, default=4, help="at work in each process (default 4)")
    parser.add_argument("--concepts", type=int, default=300)
    parser.add_argument("--delay", type=float, default=0.3, help="seconds that an answer takes at most (default 0.3)")
    parser.add_argument("--patience", type=float, default=1200.0, help="seconds after which a run is taken to hang")
    parser.add_argument("--seed", type=int, default=0, help="of the world, its noise and the kills")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep runs, logs and the taxonomy in this new folder"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
