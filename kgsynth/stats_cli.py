"""`kgsynth stats` and `kgsynth show`: what a task set or a run holds, as tables; and tasks, as a person wants to read them."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import RunError, TaskError
from kgsynth.files import write_atomically
from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.sandbox import BACKENDS
from kgsynth.verify_cli import named

if TYPE_CHECKING:
    from rich.console import Console

    from kgsynth.recipe import Recipe
    from kgsynth.task import Task, TaskSet

LONG = 2000  # characters of a text that is shown whole without --full
VALUES = 12  # of an axis that are named
CELLS = 10  # that miss
QUOTE = 300  # characters of a passage
FEW = 5  # wrong answers, passages and concepts that are shown without --full

ABOUT_STATS = """\
Print what a task set holds: types by difficulty, granularity, scopes, domains, verifiers, licences, authors, lengths of prompts,
labels of a calibration. Of a run (a recipe, with settings that replace its own) also what was wanted of each axis, the cells that
miss and why, what samples were lost to, and what a kept task cost. The last line is one line of JSON.
"""
EXAMPLES_STATS = """\
examples:
  kgsynth stats runs/demo/tasks.jsonl
  kgsynth stats recipes/demo.toml run.name=mine
  kgsynth stats recipes/demo.toml --json | python -m json.tool
"""
ABOUT_SHOW = """\
Show tasks as a person wants to read them: prompt, answer format, verifier in words, sources with licence and date. Answers stay
hidden without --answers. Long texts are cut in the middle without --full. Which tasks are shown is drawn with --seed, evenly over
the types.
"""
EXAMPLES_SHOW = """\
examples:
  kgsynth show runs/demo/tasks.jsonl                          three tasks
  kgsynth show runs/demo/tasks.jsonl --type repair --n 1 --seed 7 --answers
  kgsynth show runs/demo/tasks.jsonl --task t_1f3c --full     one task, whole
  kgsynth show runs/demo/tasks.jsonl --type chart --png pictures
"""


def add_stats_commands(commands: Any) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    sub = commands.add_parser(
        "stats", help="print what a task set or a run holds, as tables and one line of JSON",
        description=ABOUT_STATS, epilog=EXAMPLES_STATS, formatter_class=raw,
    )  # fmt: skip
    sub.add_argument("of", metavar="RECIPE.toml|TASKS.jsonl", type=Path, help="a run's recipe, or a task set")
    sub.add_argument("overrides", nargs="*", metavar="table.key=value", help="settings that replace the recipe's")
    sub.add_argument("--json", action="store_true", help="only the line of JSON")
    sub.set_defaults(command=stats_command)

    sub = commands.add_parser(
        "show", help="show tasks as a person wants to read them",
        description=ABOUT_SHOW, epilog=EXAMPLES_SHOW, formatter_class=raw,
    )  # fmt: skip
    sub.add_argument("tasks", metavar="TASKS.jsonl", type=Path, help="a task set, e.g. runs/demo/tasks.jsonl")
    sub.add_argument("--task", metavar="ID", help="the id of one task, or the beginning of it")
    sub.add_argument("--type", action="append", metavar="T", help="only tasks of this type; may be given again")
    sub.add_argument("--n", type=positive, default=3, metavar="N", help="how many (default: %(default)s)")
    sub.add_argument("--seed", type=int, default=0, metavar="S", help="of the choice (default: %(default)s)")
    sub.add_argument("--answers", action="store_true", help="show the reference and the planted wrong answers too")
    sub.add_argument("--full", action="store_true", help="cut nothing")
    sub.add_argument("--png", metavar="FOLDER", type=Path, help="render their pictures there, as ID-1.png, ...")
    sub.add_argument("--sandbox", choices=BACKENDS, default="bubblewrap", help="where pictures are rendered (default: %(default)s)")  # fmt: skip
    sub.set_defaults(command=show_command)


# --- stats -------------------------------------------------------------------------------------------------------


def stats_command(args: argparse.Namespace) -> None:
    """Raises TaskError for a set that is none or empty, RunError where there is no run, ConfigError for a recipe that is none."""
    print(json.dumps(_of_run(args) if args.of.suffix != ".jsonl" else _of_set(args), ensure_ascii=False))


def _of_set(args: argparse.Namespace) -> dict[str, Any]:
    from kgsynth.report.tasks import figures

    if args.overrides:
        raise TaskError(f"{args.of} is a task set, which has no settings; leave {args.overrides[0]!r} out, or name a recipe")  # fmt: skip
    tasks = _loaded(args.of)
    found = figures(tasks)
    if not args.json:
        _print_set(str(args.of), found)
    return {"set": str(args.of), **found}


def _loaded(path: Path) -> TaskSet:
    from kgsynth.task import TaskSet

    tasks = TaskSet.load(path)
    if not tasks:
        raise TaskError(f"{path} has no tasks; make some with `kgsynth run RECIPE.toml`")
    return tasks


def _of_run(args: argparse.Namespace) -> dict[str, Any]:
    from kgsynth.recipe import load_recipe
    from kgsynth.summary import summarize

    recipe = load_recipe(args.of, args.overrides)
    row = summarize(recipe)
    if not args.json:
        _print_run(recipe)
    return row


def _print_set(title: str, found: Mapping[str, Any]) -> None:
    from kgsynth.task import DIFFICULTIES

    columns = ("type", *DIFFICULTIES, "tasks", "share", "prompt chars", "quartiles")
    table = _numbers(table_of(f"{found['tasks']} tasks of {title}", *columns), 1)
    for kind, row in found["types"].items():
        counts = [str(row[name] or "-") for name in DIFFICULTIES]
        least, low, middle, high, most = row["prompt_chars"]
        share = f"{row['tasks'] / found['tasks']:.1%}"
        table.add_row(kind, *counts, str(row["tasks"]), share, f"{least} to {most}", f"{low} | {middle} | {high}")
    print_table(table)
    table = table_of("", "", "tasks")
    table.columns[1].overflow = "fold"
    for name in ("granularity", "scopes", "domains", "verifiers", "licences", "authors", "labels"):
        table.add_row(name, _counts(found[name]) or "not calibrated yet")
    about = (
        f"{found['concepts']} concepts, {found['sources']} documents cited, {found['pictures']} prompts with pictures"
    )
    table.add_row("about", f"{about}, {found['calibrated']} tasks calibrated")
    print_table(table)


def _counts(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count}" for name, count in list(counts.items())[:VALUES]]
    return ", ".join(shown) + (f", and {len(counts) - VALUES} more" if len(counts) > VALUES else "")


def _numbers(table: Any, first: int) -> Any:
    for column in table.columns[first:]:
        column.justify = "right"
    return table


def _print_run(recipe: Recipe) -> None:
    from kgsynth.report.data import read_run
    from kgsynth.report.tasks import cost_by_type, figures, funnel

    run = read_run(recipe.run.folder)
    tasks = run.tasks or []
    if tasks:
        _print_set(str(run.path / "tasks.jsonl"), figures(tasks))
    if run.coverage:
        _print_coverage(run.coverage, tasks)
    if run.rejected:
        table = _numbers(table_of("from samples to tasks", "step", "samples", "lost on the way to it, by check"), 1)
        table.columns[2].justify = "left"
        for row in funnel(len(tasks), run.rejected):
            table.add_row(row["step"], str(row["count"]), ", ".join(f"{n} {check}" for check, n in row["lost"]) or "-")
        print_table(table)
    if costs := cost_by_type(run.ledger, tasks, run.rejected or []):
        table = _numbers(table_of("what models cost", "type", "kept", "calls", "tokens", "USD", "USD per kept"), 1)
        for row in costs:
            each = "-" if row["usd_per_kept"] is None else f"{row['usd_per_kept']:.4g}"
            table.add_row(row["type"], str(row["kept"]), str(row["calls"]), str(row["tokens"]), f"{row['usd']:.4g}", each)  # fmt: skip
        print_table(table)


def _print_coverage(coverage: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    from kgsynth.report.tasks import axes, misses

    table = _numbers(table_of("wanted and made", "axis", "value", "target", "achieved"), 2)
    for axis, rows in axes(coverage, tasks).items():
        for number, row in enumerate(rows[:VALUES]):
            target = "-" if row["target"] is None else f"{row['target']:.1f}"
            table.add_row("" if number else axis, row["value"], target, str(row["achieved"]))
    print_table(table)
    found = misses(coverage)
    if found is None or not found["missed"]:
        return
    table = _numbers(table_of(f"{found['missed']} of {found['cells']} cells miss", "cause", "cells", "tasks", "for example"), 1)  # fmt: skip
    table.columns[3].justify, table.columns[3].overflow = "left", "fold"
    for row in found["by_cause"]:
        tasks_off = [f"{sign}{row[key]:.0f}" for key, sign in (("short", "-"), ("over", "+")) if row[key] >= 0.5]
        table.add_row(row["cause"], str(row["cells"]), " ".join(tasks_off) or "0", row["why"])
    print_table(table)
    table = _numbers(table_of("the worst of them", "cell", "target", "achieved", "why"), 1)
    table.columns[3].justify, table.columns[3].overflow = "left", "fold"
    for row in found["worst"][:CELLS]:
        cell = " / ".join(str(row.get(axis, "?")) for axis in ("domain", "type", "granularity", "scope", "difficulty"))
        table.add_row(cell, f"{row.get('target', 0):.1f}", str(row.get("achieved", 0)), str(row.get("why", "")))
    print_table(table)


# --- show --------------------------------------------------------------------------------------------------------


def show_command(args: argparse.Namespace) -> None:
    """Raises TaskError for a set that is none or empty, an id that is of no task or several, a type that is not there;
    SandboxError when pictures cannot be rendered; RunError for a folder that cannot be made."""
    from rich.console import Console

    tasks = _loaded(args.tasks)
    chosen = [named(args.tasks, tasks, args.task)] if args.task else _drawn(args, tasks)
    files = _rendered(args, chosen) if args.png else {}
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=120)
    for task in chosen:
        _print_task(console, task, args, files.get(task.id, []))
    if not args.task:
        console.print(f"{len(chosen)} of {len(tasks)} tasks; another --seed shows others", style="dim")


def _drawn(args: argparse.Namespace, tasks: TaskSet) -> list[Task]:
    """One of each type in turn, in an order that the seed decides."""
    rng = random.Random(args.seed)
    types = sorted({task.type for task in tasks})
    for word in args.type or ():
        if word not in types:
            raise TaskError(f"{args.tasks} has no task of type {word!r}; there are: {', '.join(types)}")
    piles = [[task for task in tasks if task.type == kind] for kind in dict.fromkeys(args.type or types)]
    for pile in piles:
        rng.shuffle(pile)
    rng.shuffle(piles)
    turns = (pile[turn] for turn in range(max(map(len, piles))) for pile in piles if turn < len(pile))
    return [task for task, _ in zip(turns, range(args.n), strict=False)]


def _rendered(args: argparse.Namespace, tasks: Sequence[Task]) -> dict[str, list[Path]]:
    """Files of the pictures, by task. A picture of this name is replaced: it is the same."""
    from kgsynth.sandbox import open_sandbox
    from kgsynth.verifiers.pictures.shown import render_png

    pictured = [task for task in tasks if task.images]
    if not pictured:
        return {}
    try:
        args.png.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot make the folder {args.png}: {error.strerror}; choose another --png") from error
    files: dict[str, list[Path]] = {}
    with closing(open_sandbox(args.sandbox)) as sandbox:
        for task in pictured:
            for number, image in enumerate(task.images, 1):
                path = args.png / f"{task.id}-{number}.png"
                write_atomically(path, render_png(image, sandbox))
                files.setdefault(task.id, []).append(path)
    return files


def _print_task(console: Console, task: Task, args: argparse.Namespace, files: Sequence[Path]) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from kgsynth.report.forms import form_of, in_words

    def part(name: str, lines: Iterable[str]) -> None:
        console.print(Text(f"\n{name}", "bold cyan"))
        for line in lines:
            console.print(Text(_safe(line)), soft_wrap=not console.is_terminal)

    console.print(Rule(Text(f"{task.type} · {task.id}", "bold"), align="left"))
    origin = task.provenance
    about = f"{' -> '.join(_few(origin.names, args.full))} · {task.domain} · {task.granularity} · {task.scope} · {task.difficulty} · by {origin.author}"  # fmt: skip
    console.print(Text(_safe(about)), style="dim")
    part(f"Prompt, {len(task.prompt):,} characters", [_cut(task.prompt, args.full)])
    if task.images:
        part("Pictures", _pictures(task, files))
    part("Answer", [f"{form_of(task.verifier)}, inside <answer>...</answer>"])
    part("Verifier", [in_words(task.verifier)])
    if args.answers:
        part("Reference", [_cut(task.reference, args.full)])
        part(f"Planted wrong answers, {len(task.wrong)}", _few((_cut(w, args.full) for w in task.wrong), args.full))
    part("Sources", _few(_sources(task, args.full), args.full))
    if found := task.calibration:
        tokens = "" if found.b0 is None else f"; a right reply takes {found.b0} tokens"
        part("Calibration", [f"{found.label}: {found.policy} is right in {found.pass_rate:.0%} of {found.attempts} attempts (95 %: {found.low:.0%} to {found.high:.0%}){tokens}"])  # fmt: skip
    console.print()


def _pictures(task: Task, files: Sequence[Path]) -> Iterator[str]:
    for number, image in enumerate(task.images):
        where = str(files[number]) if files else "--png FOLDER renders it; `kgsynth report` shows it"
        yield f"{image.format.upper()}, {image.width} x {image.height} pixels: {where}"


def _sources(task: Task, full: bool) -> Iterator[str]:
    """Every passage once, with where, under which licence and when."""
    origin, seen = task.provenance, set[tuple[str, str]]()
    for number, span in enumerate(origin.spans):
        if (span.url, span.text) in seen:
            continue
        seen.add((span.url, span.text))
        licence = origin.licences[number] if number < len(origin.licences) else "unknown"
        date = origin.dates[number] if number < len(origin.dates) else ""
        when = f"fetched {date}" if date else "a document on this machine"
        yield f"{span.url} · {licence} · {when}\n    {_cut(' '.join(span.text.split()), full, QUOTE)}"


def _few(texts: Iterable[str], full: bool) -> Iterator[str]:
    for number, text in enumerate(texts := list(texts)):
        if number == FEW and not full:
            yield f"... and {len(texts) - FEW} more; --full shows them"
            return
        yield text


def _cut(text: str, full: bool, most: int = LONG) -> str:
    """The text, or its two ends with how much is left out between them."""
    if full or len(text) <= most:
        return text
    head = most * 2 // 3
    left_out = len(text) - most
    return f"{text[:head]}\n... [{left_out:,} characters left out; --full shows them] ...\n{text[head + left_out :]}"


def _safe(text: str) -> str:
    """Text of strangers for a terminal: control characters are shown, not obeyed."""
    return "".join(
        c if c in "\n\t" or c.isprintable() or (c.isspace() and ord(c) > 0x9F) else repr(c)[1:-1] for c in text
    )
