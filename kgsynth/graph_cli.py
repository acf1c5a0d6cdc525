"""The commands that care for a graph: push, backup, restore, doctor, log, undo, history. Each takes any graph (`where.py`)."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import StoreError
from kgsynth.where import GRAPH_HELP, find_graph

if TYPE_CHECKING:
    from rich.table import Table

    from kgsynth.concept import Concept
    from kgsynth.doctor import Finding, Repair
    from kgsynth.push import Pushed
    from kgsynth.store import GraphStore, Operation

LEFT = 3  # exit code of the doctor when something is wrong and stays so
SHOWN = 10  # findings of a kind that are printed; --json has them all


def add_graph_commands(commands: Any) -> None:
    push = _add(commands, "push", push_command, "copy a graph into another store, or bring an older copy up to date")
    push.add_argument("source", metavar="SRC", help=GRAPH_HELP)
    push.add_argument("target", metavar="DST", help="the same; a file may be new")
    backup = _add(commands, "backup", backup_command, "write a graph into one new file, whoever may be at work on it")
    backup.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    backup.add_argument("file", metavar="FILE.sqlite", type=Path)
    restore = _add(commands, "restore", restore_command, "fill a new or empty store from a backup")
    restore.add_argument("file", metavar="FILE.sqlite", type=Path)
    restore.add_argument("graph", metavar="GRAPH", help=f"{GRAPH_HELP}; a file may be new")
    restore.add_argument("--replace", action="store_true", help="the store's graph gives way; it is backed up first")
    doctor = _add(
        commands, "doctor", doctor_command, "check every invariant of a graph (exit code 3: something is wrong)"
    )
    doctor.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    doctor.add_argument("--repair", action="store_true", help="repair what can be; `kgsynth undo` takes it back")
    doctor.add_argument("--json", action="store_true", help="one line of JSON with all findings")
    log = _add(commands, "log", log_command, "list what was done to a graph, the last operation last")
    log.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    log.add_argument(
        "--last", type=positive, default=20, metavar="N", help="how many operations (default: %(default)s)"
    )
    undo = _add(commands, "undo", undo_command, "take one operation back; done twice, it is there again")
    undo.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    undo.add_argument("op", metavar="OP", type=int, nargs="?", help="number of the operation (default: the last one)")
    undo.add_argument("--dry-run", action="store_true", help="only say what would be undone, and what is in the way")
    history = _add(commands, "history", history_command, "list the versions of a concept, and what changed in each")
    history.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    history.add_argument("name", metavar="NAME", help="any spelling of the concept, or its id")


def positive(text: str) -> int:
    """An argument that is a whole number above 0."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a number above 0")
    return number


def _add(commands: Any, name: str, command: Any, text: str) -> argparse.ArgumentParser:
    sub = commands.add_parser(name, help=text, description=f"{text}.")
    sub.set_defaults(command=command)
    return sub


# copies


def push_command(args: argparse.Namespace) -> None:
    from kgsynth.push import push
    from kgsynth.show import reading
    from kgsynth.store import open_store

    names = find_graph(args.source), find_graph(args.target, new=True)
    if _same(*names):
        raise StoreError(f"{args.source} and {args.target} are the same graph; name another destination")
    with closing(open_store(names[0])) as src, closing(open_store(names[1], as_is=True)) as dst:
        with reading("push") as show:
            done = push(src, dst, names=names, on_progress=show)
    print(f"push: {names[0]} -> {names[1]}: {_told(done)}")
    _print_json(_figures(done))


def backup_command(args: argparse.Namespace) -> None:
    from kgsynth.backup import backup
    from kgsynth.show import reading

    url = find_graph(args.graph)
    with reading("backup") as show:
        state = backup(url, args.file, show)
    print(
        f"backup: {url} at operation {state['op']} ({state['concepts']} concepts) is in {args.file}, and was read back"
    )


def restore_command(args: argparse.Namespace) -> None:
    from kgsynth.backup import restore
    from kgsynth.show import reading

    find_graph(f"sqlite:{args.file}")
    url = find_graph(args.graph, new=True)
    with reading("restore") as show:
        done, kept = restore(args.file, url, replace=args.replace, on_progress=show)
    print(f"restore: {args.file} -> {url}: {_told(done)}" + (f"; what it held before is in {kept}" if kept else ""))
    _print_json(_figures(done) | ({"kept": str(kept)} if kept else {}))


def _same(one: str, other: str) -> bool:
    files = [url.startswith("sqlite:") for url in (one, other)]
    if all(files):
        return Path(one.removeprefix("sqlite:")).resolve() == Path(other.removeprefix("sqlite:")).resolve()
    return one.rstrip("/") == other.rstrip("/")


def _told(done: Pushed) -> str:
    if not done.written + done.removed:
        return "both hold the same, nothing was to do"
    return (
        f"{done.written} rows written, {done.removed} removed; {done.rows['concept']} concepts in {done.seconds:.1f} s,"
        f" {done.rows['concept'] / done.seconds:,.0f} a second"
    )


def _figures(done: Pushed) -> dict[str, Any]:
    counts = {f"{kind}s": n for kind, n in done.rows.items() if kind not in ("merged", "frontier")}
    return counts | {
        "merged": done.rows["merged"], "frontier": done.rows["frontier"], "written": done.written, "removed": done.removed,
        "seconds": round(done.seconds, 3), "concepts_per_second": round(done.rows["concept"] / done.seconds, 1),
        "rows_per_second": round(sum(done.rows.values()) / done.seconds, 1),
    }  # fmt: skip


# the doctor


def doctor_command(args: argparse.Namespace) -> int:
    from kgsynth.doctor import examine, repair
    from kgsynth.show import reading
    from kgsynth.store import open_store

    started, url, kept = time.monotonic(), find_graph(args.graph), list[Path]()
    with closing(open_store(url, as_is=True)) as store, reading("doctor") as show:
        found = examine(store, show)
        done: list[Repair] = []
        left = found
        if args.repair and any(finding.repair for finding in found):
            done, left = repair(store, before=lambda: kept.extend(_kept(url, store)), on_progress=show)
    report = {
        "graph": url, "findings": [_row(f) for f in found], "repaired": [vars(r) for r in done],
        "left": [_row(f) for f in left], "backup": str(kept[0]) if kept else None,
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip
    if args.json:
        _print_json(report)
    else:
        _print_report(url, found, done, left if args.repair else [], kept)
    return LEFT if left else 0


def _kept(url: str, store: GraphStore) -> Iterator[Path]:
    """A graph in a file is copied before the first repair; one in a server is a backup of its own's business."""
    from kgsynth.backup import backup, beside

    if url.startswith("sqlite:"):
        path = beside(url, store.state(), "repair")
        backup(url, path)
        yield path


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind, "what": finding.what, "rows": [list(ref) for ref in finding.rows], "repair": finding.repair
    }  # fmt: skip


def _print_report(
    url: str, found: Sequence[Finding], done: Sequence[Repair], left: Sequence[Finding], kept: Sequence[Path]
) -> None:
    if not found:
        print(f"doctor: {url} is sound")
        return
    _print_findings(f"{_count(len(found), 'finding')} in {url}", found)
    for path in kept:
        print(f"doctor: what the graph was before is in {path}")
    for repaired in done:
        undo = f" (kgsynth undo {url} {repaired.op} takes it back)" if repaired.op else ""
        print(f"doctor: {repaired.kind}, {_count(repaired.findings, 'finding')}: {repaired.done}{undo}")
    if left:
        _print_findings(f"left: {_count(len(left), 'finding')}", left)
    elif done:
        print("doctor: the graph is sound now")
    elif any(finding.repair for finding in found):
        print("doctor: nothing was changed; add --repair for what the last column says")


def _print_findings(title: str, findings: Sequence[Finding]) -> None:
    table = table_of(title, "kind", "what", "rows", "repair")
    shown: Counter[str] = Counter()
    for finding in findings:
        shown[finding.kind] += 1
        if shown[finding.kind] <= SHOWN:
            rows = ", ".join(f"{kind} {n}" for kind, n in finding.rows[:3]) + (" ..." if len(finding.rows) > 3 else "")
            table.add_row(finding.kind, finding.what, rows, finding.repair or "none: see what")
    for kind, times in shown.items():
        if times > SHOWN:
            table.add_row(kind, f"... and {times - SHOWN} more like these", "", "")
    print_table(table)


# the log


def log_command(args: argparse.Namespace) -> None:
    from kgsynth.store import open_store

    url = find_graph(args.graph)
    with closing(open_store(url)) as store:
        operations = store.operations(since=max(0, store.version() - args.last))
        last = store.version()
    if not operations:
        print(f"log: {url} has no operations" + (f" in its log; it is at operation {last}" if last else " yet"))
        return
    table = table_of(f"{url}, operations {operations[0].op} to {operations[-1].op}", "op", "when", "kind", "note")
    for title in ("concepts", "edges"):
        table.add_column(title, justify="right")
    for o in operations:
        kind = f"undo of {o.undoes}" if o.undoes else o.kind
        table.add_row(str(o.op), _when(o.at), kind, o.note, str(len(o.concepts)), str(len(o.edges)))
    print_table(table)


def undo_command(args: argparse.Namespace) -> None:
    from kgsynth.store import open_store

    url = find_graph(args.graph)
    with closing(open_store(url)) as store:
        op = store.version() if args.op is None else args.op
        found = store.operations(since=op - 1, limit=1) if 0 < op <= store.version() else []
        if args.dry_run and found and found[0].op == op:
            _print_plan(store, found[0])
            return
        result = store.undo(op)  # which says so when there is none
    print(
        f"undo: operation {op} ({_words(found[0])}) is taken back, as operation {result.op};"
        f" `kgsynth undo {args.graph} {result.op}` does it again"
    )


def _print_plan(store: GraphStore, operation: Operation) -> None:
    print(f"undo: would take back operation {operation.op} of {_when(operation.at)} ({_words(operation)})")
    for concept_id in operation.concepts[:SHOWN]:
        print(f"  concept {_called(store, concept_id)}")
    for parent, child in operation.edges[:SHOWN]:
        print(f"  edge {_called(store, parent)} -> {_called(store, child)}")
    more = len(operation.concepts[SHOWN:]) + len(operation.edges[SHOWN:])
    if more:
        print(f"  and {more} more")
    for later in _in_the_way(store, operation):
        print(f"  in the way: operation {later.op} ({_words(later)}) altered the same since; undo that first")


def _in_the_way(store: GraphStore, operation: Operation) -> list[Operation]:
    """Later operations on the same things, newest first: in this order they can be undone."""
    from kgsynth.store.commit import in_force

    mine, edges = {*operation.concepts}, {*operation.edges}
    later = in_force(store.operations(since=operation.op))
    return [o for o in reversed(later) if mine & {*o.concepts} or edges & {*o.edges}]


def _called(store: GraphStore, concept_id: str) -> str:
    """The last name of a concept, be it there or not."""
    names = [version.concept.name for version in store.history(concept_id) if version.concept]
    return names[-1] if names else concept_id


def _words(operation: Operation) -> str:
    size = f"{_count(len(operation.concepts), 'concept')}, {_count(len(operation.edges), 'edge')}"
    return f"{operation.kind}, {size}" + (f": {operation.note}" if operation.note else "")


def history_command(args: argparse.Namespace) -> None:
    from kgsynth.store import open_store

    with closing(open_store(find_graph(args.graph))) as store:
        found = _named(store, args.name)
        if not found:
            raise StoreError(
                f"no concept has ever answered to {args.name!r} in this graph; give another spelling, or its id"
            )
        for concept_id in found:
            _print_versions(store, concept_id)


def _named(store: GraphStore, name: str) -> list[str]:
    """Ids of concepts that answer to a name now, or that were called so when they were removed or folded."""
    from kgsynth.concept import content_id, name_key

    then = content_id("c", name_key(name), "")
    now = [concept.id for concept in store.find(name_key(name))]
    return [i for i in dict.fromkeys((*now, then, name)) if i in now or store.history(i)]


def _print_versions(store: GraphStore, concept_id: str) -> None:
    versions = store.history(concept_id)
    kept = store.concept(concept_id)
    folded = f", folded into {kept.name!r} ({kept.id})" if kept and kept.id != concept_id else ""
    table = table_of(f"{concept_id}{folded}", "op", "when", "note", "what changed")
    before: Concept | None = None
    for version in versions:
        operation = next(iter(store.operations(since=version.op - 1, limit=1)), None)
        known = operation is not None and operation.op == version.op
        when, note = (_when(operation.at), operation.note or operation.kind) if operation and known else ("", "")
        table.add_row(str(version.op), when, note, "\n".join(_changes(before, version.concept)) or "as before")
        before = version.concept
    print_table(table)


def _changes(before: Concept | None, after: Concept | None) -> Iterator[str]:
    """What became different, a line per field: + and - for what a list gained and lost."""
    if after is None:
        yield "removed"
        return
    for name in (f.name for f in fields(after)):
        old, new = getattr(before, name, None), getattr(after, name)
        if old == new or (before is None and not new and new is not False):
            continue
        if isinstance(new, tuple):
            gained = [f"+{item}" for item in new if item not in (old or ())]
            yield f"{name}: {', '.join(gained + [f'-{item}' for item in old or () if item not in new])}"
        else:
            yield f"{name}: {new}" if before is None or old in ("", None) else f"{name}: {old} -> {new}"


# printing


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + ("" if n == 1 else "s")


def table_of(title: str, *columns: str) -> Table:
    from rich.table import Table

    return Table(*columns, title=title, title_justify="left")


def print_table(table: Table) -> None:
    """On a terminal as wide as that; else as wide as it needs, for `grep`."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=200)
    console.print(table)


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at)) if at else "unknown"


def _print_json(row: dict[str, Any]) -> None:
    print(json.dumps(row, ensure_ascii=False))
