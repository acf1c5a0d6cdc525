"""`kgsynth verify TASKS.jsonl`: judge one answer, or a file of them."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import RunError, SandboxError, TaskError, VerifierError
from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.sandbox import BACKENDS

if TYPE_CHECKING:
    from kgsynth.run import RunFolder
    from kgsynth.sandbox import Sandbox
    from kgsynth.task import Task, TaskSet
    from kgsynth.verifiers import Verdict

WRONG, UNJUDGED = 3, 4  # exit codes
LARGEST = 64 << 20  # bytes of an answer that are read

ABOUT = """\
Judge answers as training does: by the verifier that a task names, in a sandbox where it runs code.

An answer is a model's whole reply, with its <answer>...</answer>. It comes from a file, from standard input (-), or many come from a
file of lines like

  {"task": "t_1f3c...", "answer": "I think <answer>42</answer>"}

With --out every verdict is on disk when it is counted. Stopped or killed, the same command goes on: no line is judged twice.

exit codes: 0 all right, 3 something is wrong, 4 something could not be judged (that is not a zero: put the cause right, and repeat).
"""
EXAMPLES = """\
examples:
  kgsynth verify runs/demo/tasks.jsonl --task t_1f3c --answer reply.txt
  echo '<answer>B</answer>' | kgsynth verify runs/demo/tasks.jsonl --task t_1f3c --answer - --json
  kgsynth verify runs/demo/tasks.jsonl --answers replies.jsonl --out verdicts.jsonl
"""


def add_verify_command(commands: Any) -> None:
    sub = commands.add_parser(
        "verify", help="judge one answer to a task, or a file of answers, as training does",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_tasks_and_sandbox(sub)
    what = sub.add_mutually_exclusive_group(required=True)
    what.add_argument("--answer", metavar="FILE|-", help="one answer to --task; - is standard input")
    what.add_argument("--answers", metavar="FILE.jsonl", type=Path, help="lines with the keys task and answer")
    sub.add_argument("--task", metavar="ID", help="the id of the task that --answer answers, or the beginning of it")
    sub.add_argument("--out", metavar="FILE.jsonl", type=Path, help="keep the verdicts there; go on where it ends")
    sub.add_argument("--json", action="store_true", help="only one line of JSON")
    sub.set_defaults(command=verify_command)


def add_tasks_and_sandbox(sub: argparse.ArgumentParser, *, optional: bool = False) -> None:
    sub.add_argument(
        "tasks", metavar="TASKS.jsonl", type=Path, nargs="?" if optional else None,
        help="a task set, e.g. runs/demo/tasks.jsonl",
    )  # fmt: skip
    sub.add_argument("--sandbox", choices=BACKENDS, default="bubblewrap", help="where code runs (default: %(default)s)")
    sub.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N", help="threads (default: %(default)s)"
    )


def verify_command(args: argparse.Namespace) -> int:
    """Raises TaskError for a task set or answers that are none, RunError for an --out that is of something else."""
    from kgsynth.task import TaskSet

    tasks = TaskSet.load(args.tasks)
    return _one(args, tasks) if args.answer else _many(args, tasks)


# one answer


def _one(args: argparse.Namespace, tasks: TaskSet) -> int:
    from kgsynth.verifiers import verify

    if args.out:
        raise TaskError("--out goes with --answers; one verdict is printed")
    task = named(args.tasks, tasks, args.task)
    answer = _read(args.answer)
    try:
        with opened(args.sandbox, [task]) as sandbox:
            verdict = verify(answer, task, sandbox)
    except (SandboxError, VerifierError) as error:
        print(f"kgsynth: could not be judged: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return UNJUDGED
    if not args.json:
        _print_verdict(task, verdict)
    print(json.dumps({"task": task.id, **told(verdict)}))
    return _code(verdict.score)


def named(path: Path, tasks: TaskSet, word: str | None) -> Task:
    """The task that an id or the beginning of one means. Raises TaskError for none and for several."""
    if not word and len(tasks) != 1:
        raise TaskError(f"{path} has {len(tasks)} tasks: say which with --task ID, e.g. --task {tasks[0].id[:8] if tasks else 't_...'}")  # fmt: skip
    found = [task for task in tasks if task.id.startswith(word or "")]
    if len(found) == 1 or any(task.id == word for task in found):
        return next((task for task in found if task.id == word), found[0])
    shown = ", ".join(task.id for task in (found or list(tasks))[:3])
    told = f"{len(found)} tasks begin with {word!r}: {shown}, ...; give more of it" if found else f"no task begins with {word!r}; there are {len(tasks)}, e.g. {shown}"  # fmt: skip
    raise TaskError(f"{path}: {told}")


def _read(where: str) -> str:
    """An answer whole. Raises TaskError when there is no such file, or it is larger than LARGEST."""
    try:
        data = sys.stdin.buffer.read(LARGEST + 1) if where == "-" else _head(Path(where))
    except OSError as error:
        raise TaskError(f"cannot read the answer from {where}: {error.strerror}; - is standard input") from error
    if len(data) > LARGEST:
        raise TaskError(f"the answer in {where} is over {LARGEST >> 20} MB; no model writes that")
    return data.decode("utf-8", "replace")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST + 1)


def told(verdict: Verdict) -> dict[str, Any]:
    return {
        "score": verdict.score, "reason": verdict.reason, "evidence": dict(verdict.evidence),
        "seconds": round(verdict.seconds, 4),
    }  # fmt: skip


def _code(score: float) -> int:
    return 0 if score >= 1 else WRONG


def _print_verdict(task: Task, verdict: Verdict) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    word, style = ("right", "bold green") if verdict.score >= 1 else ("wrong" if verdict.score <= 0 else "partly right", "bold red")  # fmt: skip
    console.print(Text.assemble((word, style), f"  score {verdict.score:g}, {verdict.reason}, {verdict.seconds:.3f} s"))
    console.print(Text(f"task  {task.id}, {task.type}, verified by {task.verifier.name}"))
    for key, value in verdict.evidence.items():
        console.print(Text(f"{key}  {value}"))


# many answers


@dataclass(frozen=True, kw_only=True)
class Given:
    """A line of the answers."""

    line: int
    task: Task
    answer: str
    tokens: int | None = None  # of the reply, where whoever made it counted them

    @property
    def key(self) -> tuple[int, str, str]:
        return self.line, self.task.id, hashlib.sha256(self.answer.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _many(args: argparse.Namespace, tasks: TaskSet) -> int:
    from kgsynth.show import checking

    if args.task:
        raise TaskError("--task goes with --answer; in --answers each line names its task")
    given = list(given_answers(args.answers, tasks))
    with ExitStack() as stack:
        log = stack.enter_context(kept(args.out, ("line", "task", "answer", "score", "reason")))
        done = {(row["line"], row["task"], row["answer"]): row for row in log.rows}
        sandbox = stack.enter_context(opened(args.sandbox, [one.task for one in given]))
        rows = [done[one.key] for one in given if one.key in done]
        before, counts = len(rows), Counter(map(_kind, rows))
        show = stack.enter_context(checking("verify", len(given)))
        for row in _judged([one for one in given if one.key not in done], sandbox, args.workers):
            if "error" not in row:
                log.append(row)
            rows.append(row)
            counts[_kind(row)] += 1
            show(len(rows), ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return _summed(args, rows, before)


def given_answers(path: Path, tasks: TaskSet) -> Iterator[Given]:
    """Raises TaskError naming file and line of what is no answer to a task of the set."""
    known = {task.id: task for task in tasks}
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TaskError(f"cannot read answers from {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
                task, answer = row["task"], row["answer"]
                if not isinstance(answer, str):
                    raise TypeError(f"the answer is a {type(answer).__name__}, not a text")
                tokens = row.get("tokens")
                if tokens is not None and (type(tokens) is not int or tokens < 0):
                    raise TypeError(f"tokens must be a number of tokens, not {tokens!r:.40}")
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise TaskError(f'{path}:{number}: not {{"task": id, "answer": text}}: {error}') from error
            if task not in known:
                raise TaskError(f"{path}:{number}: no task {task!r} in the task set; were they made for another one?")
            yield Given(line=number, task=known[task], answer=answer, tokens=tokens)


def _judged(given: list[Given], sandbox: Sandbox | None, workers: int) -> Iterator[dict[str, Any]]:
    """A row for each as it is judged; with "error" where it could not be."""
    from kgsynth.threads import as_done
    from kgsynth.verifiers import verify

    def judge(one: Given) -> dict[str, Any]:
        line, task, answer = one.key
        row = {"line": line, "task": task, "answer": answer}
        try:
            return {**row, **told(verify(one.answer, one.task, sandbox))}
        except (SandboxError, VerifierError) as error:
            return {**row, "error": f"{type(error).__name__}: {error}"}

    yield from as_done(judge, given, workers)


def _kind(row: Mapping[str, Any]) -> str:
    return "unjudged" if "error" in row else "right" if row["score"] >= 1 else "wrong"


def _summed(args: argparse.Namespace, rows: list[dict[str, Any]], before: int) -> int:
    failed = [row for row in rows if "error" in row]
    reasons = Counter(row["reason"] for row in rows if "error" not in row)
    counts = Counter(map(_kind, rows))
    if not args.json:
        table = table_of(f"{len(rows)} answers of {args.answers}", "reason", "answers")
        for reason, count in reasons.most_common():
            table.add_row(reason, str(count))
        print_table(table)
    for row in failed[:3]:
        print(f"kgsynth: {args.answers}:{row['line']} could not be judged: {row['error']}", file=sys.stderr)
    print(json.dumps({
        "answers": len(rows), **{kind: counts[kind] for kind in ("right", "wrong", "unjudged")},
        "judged_before": before, "reasons": dict(reasons),
    }))  # fmt: skip
    return UNJUDGED if failed else WRONG if counts["wrong"] else 0


# for other commands


def some_tasks(path: Path) -> TaskSet:
    """Raises TaskError for a file that is no task set, and for one without tasks."""
    from kgsynth.task import TaskSet

    tasks = TaskSet.load(path)
    if not len(tasks):
        raise TaskError(f"{path} has no tasks; make some with `kgsynth run`")
    return tasks


def see_writable(*paths: Path | None) -> None:
    """Before work that takes long. Raises RunError for a file that cannot be written where it is asked for."""
    for path in filter(None, paths):
        if path.is_dir():
            raise RunError(f"cannot write {path}: it is a folder; name a file")
        if not path.parent.is_dir():
            raise RunError(f"cannot write {path}: there is no folder {path.parent}; make it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise RunError(f"cannot write {path}: the folder {path.parent} is not writable; choose another one")


class Kept:
    """A JSONL file of results, or none: rows that are there, and an `append` that is on disk when it returns."""

    def __init__(self, folder: RunFolder | None, name: str, needs: tuple[str, ...]) -> None:
        self._folder, self._name = folder, name
        if folder:
            folder.mend(name)
        self.rows = folder.rows(name, needs) if folder else []

    def append(self, row: Mapping[str, Any]) -> None:
        if self._folder:
            self._folder.append(self._name, json.dumps(row))  # ASCII: replies may hold lone surrogates


@contextmanager
def kept(path: Path | None, needs: tuple[str, ...]) -> Iterator[Kept]:
    """The file, for one process at a time. Raises RunError when it cannot be written or holds other rows."""
    from kgsynth.files import hold
    from kgsynth.run import RunFolder

    if path is None:
        yield Kept(None, "", needs)
        return
    folder, lock = RunFolder(path.parent), path.with_name(f".{path.name}.lock")
    with ExitStack() as stack:
        try:
            folder.create()
            stack.enter_context(hold(lock, lambda pid: print(f"kgsynth: {path} is in use by process {pid}; waiting", file=sys.stderr)))  # fmt: skip
            rows = Kept(folder, path.name, needs)
        except OSError as error:
            raise RunError(f"cannot write {path}: {error.strerror}; choose another --out") from error
        yield rows


@contextmanager
def opened(backend: str, tasks: list[Task]) -> Iterator[Sandbox | None]:
    """The sandbox, if a task needs one."""
    from kgsynth.sandbox import open_sandbox
    from kgsynth.verifiers import NEEDS_SANDBOX

    if not any(task.verifier.name in NEEDS_SANDBOX for task in tasks):
        yield None
        return
    with closing(open_sandbox(backend)) as sandbox:
        yield sandbox
