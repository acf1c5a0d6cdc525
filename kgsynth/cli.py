"""The command line: `kgsynth run RECIPE` does everything up to the task set; every command can be stopped and repeated.

Exit codes: 0 done; 1 an error of ours, printed in one line; 2 wrong usage; 3 what was checked is not right (the doctor found what it
has not repaired, an answer is wrong, an attack was paid); 4 it could not be judged; 130 stopped by Ctrl-C (run it again to go on).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth import __version__
from kgsynth.attack_cli import add_attack_command
from kgsynth.calibrate_cli import add_calibrate_command
from kgsynth.dedup_cli import add_dedup_command
from kgsynth.errors import KgsynthError
from kgsynth.export_cli import add_export_commands
from kgsynth.feedback_cli import add_feedback_command
from kgsynth.graph_cli import add_graph_commands
from kgsynth.neo4j_cli import add_neo4j_commands
from kgsynth.rephrase_cli import add_rephrase_command
from kgsynth.screen_cli import add_screen_command
from kgsynth.stats_cli import add_stats_commands
from kgsynth.tasks_cli import add_validate_command
from kgsynth.verify_cli import add_verify_command
from kgsynth.view.command import add_view_command

if TYPE_CHECKING:
    from kgsynth.recipe import Recipe
    from kgsynth.stages import Run

RECIPE_HELP = "a TOML file with the tables [run] [corpus] [web] [embed] [llm] [store] [grow] [sample] [synthesize] [feedback] [trainer]"
EXAMPLES = """\
examples:
  kgsynth run recipes/demo.toml                          grow a graph and make tasks, here and offline
  kgsynth run recipes/demo.toml run.name=big grow.max_concepts=2000
  kgsynth grow recipes/demo.toml store.url=bolt://localhost:7687     the same graph, in Neo4j
  kgsynth run recipes/demo.toml run.name=llm llm.kind=openai llm.model=Qwen3-32B llm.base_url=http://localhost:8000/v1
  kgsynth grow recipes/web.toml --dry-run                the plan of a growth from the web, and its price
  kgsynth grow recipes/web.toml run.name=again --offline            what was grown before, from the caches
  kgsynth report recipes/demo.toml                       runs/demo/report.html, and a line of JSON
  kgsynth attack runs/demo/tasks.jsonl --limit 5         try to be paid without the solution
  kgsynth validate runs/demo/tasks.jsonl --audit         check the tasks again, and try their verifiers
  kgsynth calibrate runs/demo/tasks.jsonl --model Qwen3-32B --base-url http://localhost:8000/v1
  trainer run recipes/demo.toml                          train on the tasks

Stopped by Ctrl-C or a kill, the same command goes on where it was.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `kgsynth` script."""
    args = _parsed(argv)
    try:
        return args.command(args) or 0
    except KgsynthError as error:
        print(f"kgsynth: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(
            f"kgsynth: {error}; put that right (space, rights), and the same command goes on from here", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("kgsynth: stopped; the same command goes on from here", file=sys.stderr)
        return 130


def _parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """Settings may stand before and after flags, which argparse alone does not take."""
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if rest and hasattr(args, "overrides") and all("=" in word and not word.startswith("-") for word in rest):
        args.overrides = [*args.overrides, *rest]
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="kgsynth", formatter_class=raw, epilog=EXAMPLES,
        description="Grow a concept DAG from real documents and make tasks with verifiable rewards from it.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"kgsynth {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    return parser


def add_recipe_commands(commands: Any) -> None:
    """The commands that take a recipe and settings that replace its own."""
    for name, command, text in RECIPE_COMMANDS:
        sub = commands.add_parser(
            name,
            help=text,
            description=f"{text}.",
            epilog=EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("recipe", type=Path, help=RECIPE_HELP)
        sub.add_argument("overrides", nargs="*", metavar="table.key=value", help="settings that replace the recipe's")
        for flag in FLAGS.get(name, ()):
            sub.add_argument(flag, action="store_true", help=FLAG_HELP[flag])
        sub.set_defaults(command=command)


FLAGS = {"run": ("--offline",), "grow": ("--dry-run", "--offline"), "synthesize": ("--offline",)}
FLAG_HELP = {
    "--dry-run": "show the plan and its price, and do nothing",
    "--offline": "let nothing out: pages, searches and replies come from the caches, and what is missing there is an error",
}


def run_command(args: argparse.Namespace) -> None:
    with _open(args) as run:
        _grow(run)
        _synthesize(run)
        _print_json(_summary(run.recipe))


def grow_command(args: argparse.Namespace) -> None:
    if args.dry_run:
        _plan(args)
        return
    with _open(args) as run:
        _grow(run)
        _print_json(_summary(run.recipe))


def _plan(args: argparse.Namespace) -> None:
    from kgsynth.dry_run import plan_of

    plan = plan_of(_recipe(args))
    print(plan.describe())
    _print_json(plan.to_json())


def synthesize_command(args: argparse.Namespace) -> None:
    with _open(args) as run:
        _synthesize(run)
        _print_json(_summary(run.recipe))


def annotate_command(args: argparse.Namespace) -> None:
    from kgsynth.stages import annotate_graph

    _print_json(annotate_graph(_recipe(args)))


def report_command(args: argparse.Namespace) -> None:
    from kgsynth.report import write_report
    from kgsynth.stages import annotate_graph

    recipe = _recipe(args)
    path = write_report(recipe.run.folder)
    print(f"report: {path}")
    try:
        annotate_graph(recipe)
    except KgsynthError as error:
        print(f"report: the graph has not been told of tasks and pass rates: {error}", file=sys.stderr)
    _print_json({**_summary(recipe), "report": str(path)})


RECIPE_COMMANDS: list[tuple[str, Callable[[argparse.Namespace], None], str]] = [
    ("run", run_command, "grow the graph, then make the task set"),
    ("grow", grow_command, "grow the graph only"),
    ("synthesize", synthesize_command, "make the task set from a grown graph"),
    ("annotate", annotate_command, "put a run's tasks and their pass rates into its graph, as `run` and `report` do"),
    ("report", report_command, "write the run's report.html, and print its figures as one line of JSON"),
]

# Each is given the subparsers and adds its commands, with `set_defaults(command=...)`. Their modules are light to import.
COMMANDS: list[Callable[[Any], None]] = [
    add_recipe_commands,
    add_feedback_command,
    add_graph_commands,
    add_dedup_command,
    add_neo4j_commands,
    add_view_command,
    add_verify_command,
    add_attack_command,
    add_validate_command,
    add_screen_command,
    add_rephrase_command,
    add_export_commands,
    add_calibrate_command,
    add_stats_commands,
]


def _recipe(args: argparse.Namespace) -> Recipe:
    from kgsynth.recipe import load_recipe

    return load_recipe(args.recipe, args.overrides)


def _open(args: argparse.Namespace) -> Any:
    from kgsynth.stages import open_run

    return open_run(_recipe(args), lambda text: print(f"kgsynth: {text}", file=sys.stderr), offline=args.offline)


def _grow(run: Run) -> None:
    from kgsynth.show import growing
    from kgsynth.stages import grow_graph

    print(f"grow: brain is {run.llm.name}, graph in {run.recipe.store.url or run.folder / 'graph.sqlite'}")
    paid = run.recipe.llm.kind == "openai" or run.recipe.web.providers
    money = (lambda: run.ledger.spent) if paid else None
    with growing(run.recipe.grow.max_concepts, money=money, caps=run.recipe.llm.caps) as show:
        report = grow_graph(run, show)
    print("grow: " + ("was finished before" if report is None else report.describe()))


def _synthesize(run: Run) -> None:
    from kgsynth.show import synthesizing
    from kgsynth.stages import make_tasks

    with synthesizing(run.recipe.sample.tasks) as show:
        tasks = make_tasks(run, show)
    fewer = (
        "; no more could be made from this graph, rejected.jsonl says why"
        if len(tasks) < run.recipe.sample.tasks
        else ""
    )
    print(f"synthesize: {tasks!r}{fewer}")


def _summary(recipe: Recipe) -> dict[str, Any]:
    from kgsynth.summary import summarize

    return summarize(recipe)


def _print_json(row: dict[str, Any]) -> None:
    print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
