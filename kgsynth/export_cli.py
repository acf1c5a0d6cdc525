"""`kgsynth export TASKS.jsonl FOLDER --to FORMAT` and `kgsynth import FILE --from FORMAT OUT.jsonl`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from kgsynth.errors import RunError, TaskError
from kgsynth.sandbox import BACKENDS
from kgsynth.verify_cli import see_writable

FORMATS = ("trl", "verl", "verifiers", "harbor", "huggingface", "pairs")
READABLE = ("trl", "verl", "verifiers")

EXPORT = """\
Write a task set in the format of a trainer or an evaluator, into a folder that appears whole or not at all.

  trl          JSONL for GRPOTrainer, with the reward function kgsynth.export.trl.reward
  verl         parquet for verl, with reward.py, its custom reward function
  verifiers    a package that `pip install` and `vf-eval` take
  harbor       a folder for each task: instruction, image, tests that are uploaded at grading only, solution
  huggingface  parquet with a card, for `datasets.load_dataset` and the Hub
  pairs        pictures and the code that draws them, as data

What verifies a task is in private columns or files; licences and sources are in all of them. Stopped or killed, the same command
goes on. A folder that holds anything else is left alone.
"""
EXPORT_EXAMPLES = """\
examples:
  kgsynth export runs/demo/tasks.jsonl out/trl --to trl
  kgsynth export runs/demo/tasks.jsonl out/env --to verifiers --name python-docs
  kgsynth export runs/demo/tasks.jsonl out/harbor --to harbor --image python:3.11-slim-bookworm
  kgsynth export runs/demo/tasks.jsonl out/hub --to huggingface --held-out 0.2 --audit audit.json
"""
IMPORT = """\
Read tasks back, or make tasks of other people's rows.

What `kgsynth export` wrote (a file of it, or the folder) gives the very tasks that went in. Of other rows, a prompt and a plain answer
are taken (prompt, question, problem; answer, ground_truth, solution, reward_model.ground_truth; after #### if that is there);
--verifier says what decides, --licence under which they are. A task is kept when its verifier pays the answer and refuses planted
wrong ones.
"""
IMPORT_EXAMPLES = """\
examples:
  kgsynth import out/verl/train.parquet --from verl tasks.jsonl
  kgsynth import gsm8k.parquet --from verl gsm8k.jsonl --verifier mathematics --licence MIT --domain mathematics
"""


def add_export_commands(commands: Any) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    sub = commands.add_parser(
        "export", help="write a task set for TRL, verl, verifiers, Harbor or the Hugging Face Hub",
        description=EXPORT, epilog=EXPORT_EXAMPLES, formatter_class=raw,
    )  # fmt: skip
    sub.add_argument("tasks", metavar="TASKS.jsonl", type=Path, help="a task set, e.g. runs/demo/tasks.jsonl")
    sub.add_argument("folder", metavar="FOLDER", type=Path, help="where to; it must not be there, or be empty")
    sub.add_argument("--to", choices=FORMATS, required=True)
    sub.add_argument("--name", help="of the data set or package (default: the folder's)")
    sub.add_argument("--held-out", type=float, default=0.1, metavar="SHARE", help="of concepts in the split test (default: %(default)s)")  # fmt: skip
    sub.add_argument("--seed", type=int, default=0, help="of the split (default: %(default)s)")
    sub.add_argument("--prompt", choices=("messages", "text"), default="messages", help="trl: its form (default: %(default)s)")  # fmt: skip
    sub.add_argument("--image", help="harbor: what containers start from (default: a slim image of this Python)")
    sub.add_argument(
        "--shared", action="store_true", help="harbor: grade in the agent's container, not in one of its own"
    )
    sub.add_argument("--organisation", default="kgsynth", help="harbor: tasks are ORGANISATION/ID (default: %(default)s)")  # fmt: skip
    sub.add_argument("--audit", type=Path, metavar="FILE.json", help="huggingface: figures of an audit, for the card")
    sub.add_argument("--sandbox", choices=BACKENDS, default="bubblewrap", help="where pictures are rendered (default: %(default)s)")  # fmt: skip
    sub.set_defaults(command=export_command)
    sub = commands.add_parser(
        "import", help="make a task set of exported tasks, or of other people's rows",
        description=IMPORT, epilog=IMPORT_EXAMPLES, formatter_class=raw,
    )  # fmt: skip
    sub.add_argument("file", metavar="FILE", type=Path, help="a JSONL or parquet file, or a folder of them")
    sub.add_argument("out", metavar="OUT.jsonl", type=Path, help="the task set; it must not be there")
    sub.add_argument("--from", dest="format", choices=READABLE, required=True)
    sub.add_argument("--verifier", help="foreign rows: what decides, e.g. mathematics, text, number, choice, literal")
    sub.add_argument("--licence", help="foreign rows: their licence, e.g. MIT")
    sub.add_argument("--domain", default="imported", help="foreign rows: their domain (default: %(default)s)")
    sub.set_defaults(command=import_command)


def export_command(args: argparse.Namespace) -> int:
    """Raises TaskError for a bad task set, RunError for a folder in use, SandboxError when pictures cannot be rendered."""
    from kgsynth.export import IMAGE, Options, export
    from kgsynth.show import checking
    from kgsynth.task import TaskSet

    tasks = TaskSet.load(args.tasks)
    options = Options(
        name=args.name or args.folder.resolve().name, held_out=args.held_out, seed=args.seed, prompt=args.prompt,
        image=IMAGE if args.image is None else args.image, shared=args.shared, organisation=args.organisation, audit=_audit(args.audit),
    )  # fmt: skip
    with checking(f"export {args.to}", len(tasks)) as show:
        figures = export(tasks, args.folder, args.to, options, sandbox=args.sandbox, show=show)
    print(json.dumps(figures, ensure_ascii=False))
    return 0


def _audit(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
    except (OSError, ValueError) as error:
        raise TaskError(f"--audit {path} is not a file of JSON: {error}") from error


def import_command(args: argparse.Namespace) -> int:
    """Raises TaskError for rows that cannot be read, RunError when OUT holds something else."""
    from kgsynth.export.foreign import Foreign, read_tasks
    from kgsynth.files import write_atomically
    from kgsynth.show import checking

    see_writable(args.out)
    foreign = Foreign(verifier=args.verifier, licence=args.licence, domain=args.domain)
    with checking("import", 0) as show:
        tasks, left_out = read_tasks(args.file, args.format, foreign, show)
    text = "".join(task.to_json() + "\n" for task in tasks)
    if args.out.exists() and args.out.read_text(encoding="utf-8", errors="replace") != text:
        raise RunError(f"{args.out} is there and holds something else; choose another name, or delete it first")
    write_atomically(args.out, text)
    print(json.dumps({"tasks": len(tasks), "file": str(args.out), "left_out": left_out}, ensure_ascii=False))
    return 0
