"""`kgsynth validate TASKS.jsonl`: every task through its checks again, and with --audit its verifier through mutation testing."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import RunError, TaskError
from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.verify_cli import UNJUDGED, WRONG, add_tasks_and_sandbox, kept, opened, see_writable, some_tasks

if TYPE_CHECKING:
    from rich.text import Text

    from kgsynth.audit import Audited, Tally
    from kgsynth.task import Task

SHOWN = 8  # tasks that are printed

ABOUT = """\
Put every task of a set through the checks that it passed when it was made: it says what it must, gives nothing away, has one
answer; its reference is paid; nothing, a blank, the prompt sent back, constants and every planted wrong answer are not.

With --audit its verifier is tried as well: on near misses of the right answer (a mutant of the code, a digit, an item, a step off),
none of which may be paid, and on the right answer in other forms, all of which must be. A mutant of code that is paid counts when
an input that no test has tells it from the reference. Of pictures and kernels a third is tried, of worlds half: they take long.

A row of the table is a type of task:

  oracle            references accepted; must be 100 %
  empty             empty, blank and guessed answers that are paid; must be 0 %
  wrong             planted and mutated answers rejected, of how many; and of the tasks those that reject at least 95 %
  right             other forms of right answers accepted, of how many

With --out every result is on disk when it is counted; stopped or killed, the same command goes on. --keep writes the tasks that pass.

exit codes: 0 all tasks pass, 3 some do not, 4 some could not be tried (no sandbox, no browser; that says nothing about them).
"""
EXAMPLES = """\
examples:
  kgsynth validate runs/demo/tasks.jsonl                             the checks of each task, again
  kgsynth validate runs/demo/tasks.jsonl --audit --out audit.jsonl   with near misses and other forms, to be gone on with
  kgsynth validate tasks.jsonl --audit --limit 20 --type implement   twenty tasks of one type
  kgsynth validate tasks.jsonl --audit --keep sound.jsonl            the tasks that pass, in a set of their own
"""


def add_validate_command(commands: Any) -> None:
    sub = commands.add_parser(
        "validate", help="check a task set again, and with --audit try its verifiers",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_tasks_and_sandbox(sub)
    sub.add_argument("--audit", action="store_true", help="try near misses and other forms of the right answer too")
    sub.add_argument("--wrong", type=positive, default=10, metavar="N", help="wrong answers a task, with those planted; at least half of N are fresh (default: %(default)s)")  # fmt: skip
    sub.add_argument("--right", type=positive, default=5, metavar="N", help="forms of the right answer (default: %(default)s)")  # fmt: skip
    sub.add_argument("--limit", type=positive, metavar="N", help="the first N tasks of each type (default: all)")
    sub.add_argument("--type", action="append", metavar="T", help="only tasks of this type; may be given again")
    sub.add_argument("--seed", type=int, default=1, help="of the variants (default: %(default)s; tasks are admitted with 0)")  # fmt: skip
    sub.add_argument("--out", metavar="FILE.jsonl", type=Path, help="keep the results there; go on where it ends")
    sub.add_argument("--keep", metavar="FILE.jsonl", type=Path, help="write the tasks that pass there; a file that is there is replaced")  # fmt: skip
    sub.add_argument("--json", action="store_true", help="only one line of JSON")
    sub.set_defaults(command=validate_command)


def validate_command(args: argparse.Namespace) -> int:
    """Raises TaskError for a task set that is none or empty and a type that is not there, RunError for a file in the way."""
    from kgsynth.audit import tally
    from kgsynth.task import TaskSet

    tasks = _chosen(args, some_tasks(args.tasks))
    _see_free(args)
    started = time.monotonic()
    results, before = _audited(args, tasks)
    rows = [tally(kind, [r for r in results if r.type == kind]) for kind in sorted({r.type for r in results})]
    if args.keep:
        sound = {result.task for result in results if not result.check and not result.unjudged}
        TaskSet(task for task in tasks if task.id in sound).save(args.keep)
    if not args.json:
        _print(args, rows, results)
    print(json.dumps({**_row(rows, results), "done_before": before, "seconds": round(time.monotonic() - started, 2)}))
    return WRONG if any(r.check for r in results) else UNJUDGED if any(r.unjudged for r in results) else 0


def _chosen(args: argparse.Namespace, tasks: Sequence[Task]) -> list[Task]:
    types = sorted({task.type for task in tasks})
    for word in args.type or ():
        if word not in types:
            raise TaskError(f"{args.tasks} has no task of type {word!r}; there are: {', '.join(types)}")
    of = {kind: [task for task in tasks if task.type == kind] for kind in args.type or types}
    return [task for found in of.values() for task in found[: args.limit]]


def _see_free(args: argparse.Namespace) -> None:
    """A set is never replaced by a part of itself, nor by the results; and what cannot be written is no surprise at the end."""
    named = [path.resolve() for path in (args.tasks, args.out, args.keep) if path]
    if len(set(named)) < len(named):
        raise RunError("the task set, --out and --keep must be different files")
    see_writable(args.keep)


def _audited(args: argparse.Namespace, tasks: list[Task]) -> tuple[list[Audited], int]:
    """(results in the order of the tasks, how many of them are of an earlier call)."""
    from kgsynth.audit import Audited, asked, audit, repeated
    from kgsynth.show import checking
    from kgsynth.threads import as_done

    how = {"deep": args.audit, "wrong": args.wrong, "right": args.right, "seed": args.seed}
    with ExitStack() as stack:
        log = stack.enter_context(kept(args.out, tuple(field.name for field in fields(Audited))))
        rows = map(Audited.from_row, log.rows)
        done = {result.task: result for result in rows if result.asked == asked(**how)}
        rest = [task for task in tasks if task.id not in done]
        before = len(tasks) - len(rest)
        sandbox = stack.enter_context(opened(args.sandbox, rest))
        show = stack.enter_context(checking("validate", len(tasks)))
        for fresh, result in enumerate(as_done(lambda task: audit(task, sandbox, **how), rest, args.workers), 1):
            if not result.unjudged:
                log.append(result.to_row())
            done[result.task] = result
            show(before + fresh, f"{sum(bool(r.check) for r in done.values())} fail")
    twice = repeated(tasks)
    return [_unique(done[task.id], twice.get(task.id)) for task in tasks], before


def _unique(result: Audited, earlier: str | None) -> Audited:
    if earlier is None or result.check:
        return result
    return replace(result, check="unique", message=f"it has the same prompt as {earlier}")


# what came of it


def _print(args: argparse.Namespace, rows: Sequence[Tally], results: Sequence[Audited]) -> None:
    columns = ("type", "tasks", "pass", "oracle", "empty", "wrong", "tasks >= 95 %", "right", "fail", "seconds")
    table = table_of(f"{len(results)} tasks of {args.tasks}", *columns)
    for row in rows:
        table.add_row(*_cells(row))
    print_table(table)
    failed = [result for result in results if result.check]
    for result in sorted(failed, key=lambda r: -sum(r.bad.values()))[:SHOWN]:
        print(f"validate: {result.task} ({result.type}) {result.check}: {' '.join(result.message.split())[:400]}")
        for example in result.examples[1:3]:
            print(f"validate:     also {example['kind']}, {example['how']}: {example['answer'][:160]!r}")
    if len(failed) > SHOWN:
        print(f"validate: ... and {len(failed) - SHOWN} more" + ("" if args.out else "; --out keeps all of them"))
    for reason in sorted({result.unjudged for result in results if result.unjudged})[:3]:
        print(f"validate: could not be tried: {reason}", file=sys.stderr)


def _cells(row: Tally) -> list[Text]:
    from rich.text import Text

    def cell(text: str, good: bool = True) -> Text:
        return Text(text, "" if good else "bold red")

    checks = ", ".join(f"{count} {check}" for check, count in row.checks.items())
    checks += f"{', ' if checks else ''}{row.unjudged} not tried" if row.unjudged else ""
    return [
        cell(row.type), cell(str(row.tasks)), cell(str(row.passed), row.passed == row.tasks), cell(_percent(row.oracle), row.oracle == 1),
        cell(_percent(row.empty), row.empty == 0), cell(f"{_percent(row.wrong)} of {row.wrong_tried}", row.wrong >= 0.95),
        cell(_percent(row.enough), row.enough == 1), cell(f"{_percent(row.right)} of {row.right_tried}" if row.right_tried else "-", row.right == 1),
        cell(checks or "-", not row.checks), cell(f"{row.seconds:.1f}"),
    ]  # fmt: skip


def _percent(share: float) -> str:
    """Never rounded to what it is not: 99.96 % is not 100 %."""
    text = f"{100 * share:.1f}"
    return f"{text.removesuffix('.0')} %" if text not in ("100.0", "0.0") or share in (0, 1) else f"{100 * share:.2f} %"


def _row(rows: Sequence[Tally], results: Sequence[Audited]) -> dict[str, Any]:
    return {
        "tasks": len(results), "passed": sum(row.passed for row in rows), "failed": sum(bool(r.check) for r in results),
        "unjudged": sum(row.unjudged for row in rows),
        "types": {row.type: {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(row).items() if k != "type"} for row in rows},
    }  # fmt: skip
