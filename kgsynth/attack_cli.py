"""`kgsynth attack TASKS.jsonl`: send every known trick to a task set, and say which were paid."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import TaskError
from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.verify_cli import UNJUDGED, WRONG, add_tasks_and_sandbox, kept, opened

if TYPE_CHECKING:
    from rich.text import Text

    from kgsynth.attack import Attack
    from kgsynth.attack.campaign import Assault
    from kgsynth.task import Task

EACH = 20  # tasks of a type that an attack on the grader is tried on
SHOWN = 5  # paid replies that are printed

ABOUT = """\
Send hostile answers to every task of a set, and print what was paid. A reward that can be had without the solution will be.

A cell of the table is "paid/tried", counted in replies; "-" where the attack does not apply to that type of task.

  oracle            the reference answer: must be paid, always
  no-op, blank, echo, planted       must never be paid, as everything below them
  each letter       a guess at each option of a choice: one in n is right; shown is the level of chance

Tricks with a task (its prompt, its tests, constants, what was planted) are tried on every task. Tricks with the grader and its box, or
with the form of replies that take a box to judge, do the same on all tasks of a type: each is tried on --each of them, other
ones for every trick, so that most tasks meet some; a quarter as many where a reply takes a second or more; --all tries all.

In red is what should not be: a trick that was paid, an oracle that was not, a verifier that a reply brought down (!).

Code in the replies runs in the sandbox and nowhere else. With --out every result is on disk when it is counted; stopped or
killed, the same command goes on.

exit codes: 0 nothing was paid that should not be, 3 something was, 4 something could not be judged (no sandbox, a task whose
parameters are refused).
"""
EXAMPLES = """\
examples:
  kgsynth attack runs/demo/tasks.jsonl --limit 5                five tasks of each type, every attack
  kgsynth attack runs/demo/tasks.jsonl --out attacks.jsonl      all of it, to be gone on with after a stop
  kgsynth attack runs/demo/tasks.jsonl --type implement --attack "equal to everything" --attack frames
  kgsynth attack --list                                         the catalogue, with sources
"""


def add_attack_command(commands: Any) -> None:
    sub = commands.add_parser(
        "attack", help="send every known reward hack to a task set, and say which were paid",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_tasks_and_sandbox(sub, optional=True)
    sub.add_argument("--list", action="store_true", help="show the catalogue of attacks, and do nothing")
    sub.add_argument("--limit", type=positive, metavar="N", help="the first N tasks of each type (default: all)")
    sub.add_argument("--attack", action="append", metavar="NAME", help="only this attack; may be given again")
    sub.add_argument("--type", action="append", metavar="T", help="only tasks of this type; may be given again")
    sub.add_argument("--each", type=positive, default=EACH, metavar="N", help="try what is the same for all tasks of a type on N of them (default: %(default)s)")  # fmt: skip
    sub.add_argument("--all", action="store_true", help="try everything on every task")
    sub.add_argument("--seed", type=int, default=0, help="of the replies (default: %(default)s)")
    sub.add_argument("--out", metavar="FILE.jsonl", type=Path, help="keep the results there; go on where it ends")
    sub.add_argument("--json", action="store_true", help="only one line of JSON")
    sub.set_defaults(command=attack_command)


def attack_command(args: argparse.Namespace) -> int:
    """Raises TaskError for a task set that is none or empty, and for a type or an attack that is not there."""
    from kgsynth.attack import REGISTRY
    from kgsynth.task import TaskSet

    if args.list:
        print(markdown(REGISTRY.values()))
        return 0
    if args.tasks is None:
        raise TaskError(
            "no task set is given; e.g. `kgsynth attack runs/demo/tasks.jsonl`, or --list for the catalogue"
        )
    attacks = {name: REGISTRY[name] for name in _known(args.attack, REGISTRY, "attack")}
    tasks = _chosen(args, TaskSet.load(args.tasks))
    started = time.monotonic()
    results, before = _fought(args, tasks, attacks)
    tally = Tally(attacks=list(attacks.values()), results=results, types=sorted({task.type for task in tasks}))
    if not args.json:
        _print(args, tally)
    print(json.dumps({**_row(tally, tasks), "done_before": before, "seconds": round(time.monotonic() - started, 2)}))
    return WRONG if tally.failed else UNJUDGED if tally.unjudged else 0


def _known(asked: Sequence[str] | None, there: Iterable[str], kind: str) -> list[str]:
    """What was asked for, or all. Raises TaskError for what is not there."""
    there = list(there)
    for word in asked or ():
        if word not in there:
            raise TaskError(f"no {kind} {word!r}; there are: {', '.join(there)}")
    return [word for word in there if not asked or word in asked]


def _chosen(args: argparse.Namespace, tasks: Sequence[Task]) -> list[Task]:
    if not tasks:
        raise TaskError(f"{args.tasks} has no tasks; make some with `kgsynth run`")
    types = _known(args.type, sorted({task.type for task in tasks}), "task type")
    of = {kind: [task for task in tasks if task.type == kind] for kind in types}
    return [task for found in of.values() for task in found[: args.limit]]


def _fought(args: argparse.Namespace, tasks: list[Task], attacks: dict[str, Attack]) -> tuple[list[Assault], int]:
    """(results, how many of them are of an earlier call)."""
    from kgsynth.attack.campaign import Assault, campaign, held, planned
    from kgsynth.show import checking

    each = None if args.all else args.each
    total = len(planned(tasks, attacks, each=each, seed=args.seed))
    with ExitStack() as stack:
        log = stack.enter_context(kept(args.out, tuple(field.name for field in fields(Assault))))
        done = {result.key: result for result in map(Assault.from_row, log.rows)}
        results: list[Assault] = []

        def known(key: tuple[str, str, str]) -> bool:
            if key in done:
                results.append(done[key])
            return key in done

        sandbox = stack.enter_context(opened(args.sandbox, tasks))
        show = stack.enter_context(checking("attack", total))
        fresh = wrong = 0
        for result in campaign(tasks, attacks, sandbox, seed=args.seed, workers=args.workers, each=each, known=known):
            if not result.unjudged:
                log.append(result.to_row())
            results.append(result)
            fresh, wrong = fresh + 1, wrong + (not held(attacks[result.attack], result))
            show(len(results), f"{wrong} paid that should not be, or broken")
    return results, len(results) - fresh


# what came of it


@dataclass(kw_only=True)
class Tally:
    """Counts of replies, by attack and task type."""

    attacks: list[Attack]
    results: list[Assault]
    types: list[str]

    def __post_init__(self) -> None:
        from kgsynth.attack.campaign import held

        by_name = {attack.name: attack for attack in self.attacks}
        self.failed = [result for result in self.results if not held(by_name[result.attack], result)]
        self.unjudged = sum(result.unjudged for result in self.results)
        self.cells: dict[tuple[str, str], Counter[str]] = {}
        for result in self.results:
            cell = self.cells.setdefault((result.attack, result.type), Counter())
            for kind in ("tried", "paid", "unjudged", "broken"):
                cell[kind] += getattr(result, kind)
            cell["failed"] += not held(by_name[result.attack], result)


def _print(args: argparse.Namespace, tally: Tally) -> None:
    from rich.text import Text

    table = table_of(f"paid/tried replies, {args.tasks}", "attack", *tally.types)
    for attack in tally.attacks:
        cells = [_cell(attack, tally.cells.get((attack.name, kind))) for kind in tally.types]
        if any(cell.plain != "-" for cell in cells):
            table.add_row(Text(attack.name), *cells)
    print_table(table)
    for result in tally.failed[:SHOWN]:
        why = (
            repr(result.examples[0]) if result.examples else f"{result.paid} of {result.tried}: {dict(result.reasons)}"
        )
        print(f"attack: {result.attack} on {result.task} ({result.type}): {why}")
    if len(tally.failed) > SHOWN:
        print(f"attack: ... and {len(tally.failed) - SHOWN} more")
    for reason in sorted({reason for result in tally.results if result.unjudged for reason in result.reasons})[:SHOWN]:
        print(f"attack: could not be judged: {reason}", file=sys.stderr)


def _cell(attack: Attack, counts: Counter[str] | None) -> Text:
    from rich.text import Text

    if counts is None:
        return Text("-", "dim")
    text = f"{counts['paid']}/{counts['tried']}"
    if attack.pays != "never":
        text += f" {counts['paid'] / max(counts['tried'], 1):.0%}"
    text += f" !{counts['broken']}" if counts["broken"] else ""
    text += f" ?{counts['unjudged']}" if counts["unjudged"] else ""
    return Text(text, "bold red" if counts["failed"] else "yellow" if counts["unjudged"] else "")


def _row(tally: Tally, tasks: list[Task]) -> dict[str, Any]:
    total = Counter[str]()
    for cell in tally.cells.values():
        total.update(cell)
    oracle = Counter[str]()
    for (name, _), cell in tally.cells.items():
        oracle.update(cell if name == "oracle" else {})
    return {
        "tasks": len(tasks), "attacks": len({result.attack for result in tally.results}), "replies": total["tried"],
        "failed": [{"attack": r.attack, "task": r.task, "type": r.type, "paid": r.paid, "broken": r.broken} for r in tally.failed],
        "oracle": {"paid": oracle["paid"], "tried": oracle["tried"]}, "unjudged": tally.unjudged,
    }  # fmt: skip


def markdown(attacks: Iterable[Attack]) -> str:
    """The catalogue as the table in docs/attacks.md."""
    lines = ["| attack | what it does | seen by | No. |", "|---|---|---|---|"]
    for attack in attacks:
        knows = " (knows the answer)" if attack.knows_reference and attack.pays == "never" else ""
        lines.append(f"| {attack.name} | {attack.trick}{knows} | {attack.source} | {attack.number or ''} |")
    return "\n".join(lines)
