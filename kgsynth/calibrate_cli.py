"""`kgsynth calibrate TASKS.jsonl`: how hard the tasks are for a policy, written into the set."""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import RunError, TaskError
from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.verify_cli import UNJUDGED, add_tasks_and_sandbox, given_answers, kept, opened, see_writable, some_tasks

if TYPE_CHECKING:
    from kgsynth.calibrate import Attempt
    from kgsynth.sandbox import Sandbox
    from kgsynth.task import Task, TaskSet
    from kgsynth.verify_cli import Kept

NEEDS = ("policy", "task", "number", "given", "score")

ABOUT = """\
Try a policy on every task and write into the set how often it was right: pass rate with its 95 % interval, a label of difficulty,
and b0, the tokens of its right replies (median). The file is updated in place, whole or not at all; ids do not change.

The replies come from an OpenAI-compatible endpoint (--model, --base-url), or from a file of lines like

  {"task": "t_1f3c...", "answer": "I think <answer>42</answer>", "tokens": 17}

as `trainer eval --replies` writes them. Every judged reply is kept in TASKS.attempts.jsonl: stopped or killed, the same command goes on, and
pays no reply twice; more --attempts later add to those that are there.

labels: unsolved (none right), hard (under 1/3), medium (under 2/3), easy, mastered (all right).
exit codes: 0 done, 4 some replies could not be judged (they count for nothing).
"""
EXAMPLES = """\
examples:
  kgsynth calibrate tasks.jsonl --model Qwen3-32B --base-url http://localhost:8000/v1 --attempts 8
  kgsynth calibrate tasks.jsonl --replies replies.jsonl --policy sft-500
  kgsynth calibrate tasks.jsonl --replies replies.jsonl --policy sft-500 --pools pools     one set for each label
"""


def add_calibrate_command(commands: Any) -> None:
    sub = commands.add_parser(
        "calibrate", help="measure a policy's pass rates on a task set, and write them into it",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_tasks_and_sandbox(sub)
    source = sub.add_mutually_exclusive_group(required=True)
    source.add_argument("--replies", metavar="FILE.jsonl", type=Path, help="replies that are there already")
    source.add_argument("--model", help="ask this model of --base-url")
    sub.add_argument("--base-url", default="https://api.openai.com/v1", metavar="URL", help="of the endpoint (default: %(default)s)")  # fmt: skip
    sub.add_argument("--api-key-env", default="OPENAI_API_KEY", metavar="VAR", help="variable that holds its key (default: %(default)s)")  # fmt: skip
    sub.add_argument("--attempts", type=positive, default=8, metavar="N", help="replies per task (default: %(default)s)")  # fmt: skip
    sub.add_argument("--temperature", type=float, default=1.0, metavar="T", help="(default: %(default)s)")
    sub.add_argument("--max-tokens", type=positive, default=4096, metavar="N", help="of a reply (default: %(default)s)")
    sub.add_argument("--concurrency", type=positive, default=8, metavar="N", help="requests at once (default: %(default)s)")  # fmt: skip
    sub.add_argument("--max-calls", type=positive, metavar="N", help="stop after so many requests, over all starts")
    sub.add_argument("--policy", metavar="NAME", help="who is tried (default: the model; needed with --replies)")
    sub.add_argument("--out", metavar="FILE.jsonl", type=Path, help="write the calibrated set there, not over the old one")  # fmt: skip
    sub.add_argument("--pools", metavar="FOLDER", type=Path, help="write one set for each label there, too")
    sub.set_defaults(command=calibrate_command)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A reply to be judged, or to be asked for first (`answer` is None)."""

    task: Task
    number: int  # line of the file, or number of the sample
    answer: str | None = None
    tokens: int | None = None
    given: str = ""  # a hash of the reply that is there already, so that another one in its place is judged


def calibrate_command(args: argparse.Namespace) -> int:
    """Raises TaskError for tasks or replies that are none, LLMError and BudgetError when the endpoint is given up, RunError for a bad --out."""
    from kgsynth.calibrate import Attempt, calibrated

    tasks, policy = some_tasks(args.tasks), args.policy or args.model
    if not policy:
        raise TaskError("--replies do not say whose they are; name the policy with --policy NAME")
    see_writable(args.out or args.tasks)
    _make_folder(args.pools)
    log_path = args.tasks.with_name(f"{args.tasks.stem}.attempts.jsonl")
    with ExitStack() as stack:
        log = stack.enter_context(kept(log_path, NEEDS))
        done = {(row["task"], row["number"], row["given"]) for row in log.rows if row["policy"] == policy}
        todo = [one for one in _asked(args, tasks) if (one.task.id, one.number, one.given) not in done]
        sandbox = stack.enter_context(opened(args.sandbox, [one.task for one in todo]))
        rows = [row for row in log.rows if row["policy"] == policy] + list(_judged(args, todo, policy, sandbox, log))
    attempts = [Attempt(task=row["task"], score=row["score"], tokens=row["tokens"]) for row in rows]
    found = calibrated(tasks, attempts, policy=policy)
    found.save(args.out or args.tasks)
    if args.pools:
        _save_pools(found, args.pools)
    return _summed(args, found, policy, attempts)


def _asked(args: argparse.Namespace, tasks: TaskSet) -> Iterable[Asked]:
    if args.replies:
        for one in given_answers(args.replies, tasks):
            yield Asked(task=one.task, number=one.line, answer=one.answer, tokens=one.tokens, given=one.key[2])
        return
    blind = [task for task in tasks if task.images]
    if blind:
        print(f"calibrate: {len(blind)} tasks show pictures and are left out; judge replies to them with --replies", file=sys.stderr)  # fmt: skip
    for number in range(args.attempts):  # every task once before any task twice
        yield from (Asked(task=task, number=number) for task in tasks if not task.images)


def _judged(
    args: argparse.Namespace, todo: Sequence[Asked], policy: str, sandbox: Sandbox | None, log: Kept
) -> Iterable[dict[str, Any]]:
    """A row for each, in the log when it is given. What could not be judged is not kept: the next start tries it again."""
    from kgsynth.calibrate import attempt
    from kgsynth.show import checking

    rows: list[dict[str, Any]] = []

    def take(one: Asked, reply: str, tokens: int | None) -> Attempt:
        return attempt(one.task, reply, tokens, sandbox)

    with checking("calibrate", len(todo)) as show:

        def record(one: Asked, found: Attempt, reply: str) -> None:
            row = {"policy": policy, "number": one.number, "given": one.given, **asdict(found)}
            if found.score is not None:
                log.append(row if args.replies else {**row, "reply": reply})
            rows.append(row)
            right = sum((row["score"] or 0) >= 1 for row in rows)
            show(len(rows), f"{right} right")

        if args.replies:
            _from_file(todo, take, record, args.workers)
        else:
            asyncio.run(_from_endpoint(args, todo, take, record))
    return rows


Take = Callable[[Asked, str, int | None], "Attempt"]
Record = Callable[[Asked, "Attempt", str], None]


def _from_file(todo: Sequence[Asked], take: Take, record: Record, workers: int) -> None:
    from kgsynth.threads import as_done

    for one, found in as_done(lambda one: (one, take(one, one.answer or "", one.tokens)), todo, workers):
        record(one, found, one.answer or "")


async def _from_endpoint(args: argparse.Namespace, todo: Sequence[Asked], take: Take, record: Record) -> None:
    from kgsynth.llm import Prompt
    from kgsynth.llm.openai import LLMConfig, OpenAIChat

    config = LLMConfig(
        kind="openai", model=args.model, base_url=args.base_url, api_key_env=args.api_key_env, temperature=args.temperature,
        max_reply_tokens=args.max_tokens, concurrency=args.concurrency, max_calls=args.max_calls, cache=False,
    )  # fmt: skip
    folder = args.tasks.with_name(f"{args.tasks.stem}.calibration")
    folder.mkdir(exist_ok=True)
    llm, rest = OpenAIChat(config, folder), iter(todo)

    async def work() -> None:
        for one in rest:
            text, tokens = await llm.sample(Prompt(text=one.task.prompt, number=one.number))
            record(one, await asyncio.to_thread(take, one, text, tokens), text)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(args.concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    finally:
        await llm.close()


def _make_folder(folder: Path | None) -> None:
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            see_writable(folder / "easy.jsonl")
    except OSError as error:
        raise RunError(f"cannot make the folder {folder}: {error.strerror}; choose another --pools") from error


def _save_pools(tasks: TaskSet, folder: Path) -> None:
    from kgsynth.calibrate import by_label

    for name, pool in by_label(tasks).items():
        pool.save(folder / f"{name}.jsonl")


def _summed(args: argparse.Namespace, tasks: TaskSet, policy: str, attempts: Sequence[Attempt]) -> int:
    from kgsynth.calibrate import LABELS, by_label

    table = table_of(f"{policy} on {args.tasks}", "type", "tried", "pass rate", *LABELS, "b0")
    for kind in sorted({task.type for task in tasks}):
        tried = [t.calibration for t in tasks if t.type == kind and t.calibration and t.calibration.policy == policy]
        if not tried:
            continue
        labels, b0 = Counter(c.label for c in tried), [c.b0 for c in tried if c.b0 is not None]
        rate = statistics.mean(c.pass_rate for c in tried)
        table.add_row(kind, str(len(tried)), f"{rate:.3f}", *(str(labels[name]) for name in LABELS), f"{statistics.median(b0):g}" if b0 else "")  # fmt: skip
    print_table(table)
    unjudged = sum(one.score is None for one in attempts)
    print(json.dumps({
        "policy": policy, "tasks": len(tasks), "attempts": len(attempts), "unjudged": unjudged,
        "right": sum((one.score or 0) >= 1 for one in attempts), "labels": {name: len(pool) for name, pool in by_label(tasks).items()},
        "out": str(args.out or args.tasks),
    }))  # fmt: skip
    return UNJUDGED if unjudged else 0
