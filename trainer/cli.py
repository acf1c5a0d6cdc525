"""Command line: `trainer run RECIPE.toml`. Torch is imported only when there is something to train."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from kgsynth.errors import KgsynthError

HELP = """\
Train a policy on verified tasks: a tokenizer, a supervised cold start, then reinforcement learning.

  kgsynth run recipes/demo.toml      makes runs/demo/tasks.jsonl
  trainer run recipes/demo.toml      trains on it and ends with one line of JSON

The recipe is the same TOML file. The trainer reads [run] name and dir, and its own tables:

  [trainer]        seed, vocab_size, held_out (share of concepts), max_prompt_tokens, max_new_tokens
  [trainer.model]  size of the policy
  [trainer.sft]    steps, batch_size          [trainer.sft.optimizer]  name, lr, ...
  [trainer.rl]     steps, prompts, samples, loss ("k2.5" or "dapo"), low, high, tau
  [trainer.eval]   samples, temperature

Killed at any moment, the same command goes on where it stopped; a finished stage is not repeated.
Results: runs/<name>/train/result.json, runs/<name>/metrics.jsonl, `tensorboard --logdir runs/<name>/tb`.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0; 2 with one clear message when the recipe, the tasks or the run folder are at fault; 130 on Ctrl-C."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch loads: idle threads must not spin
    warnings.filterwarnings("ignore", category=SyntaxWarning)  # verifiers parse whatever the policy wrote
    console = Console(stderr=True)
    try:
        with _bars(console) as progress:
            result = _command(arguments, progress)
    except KgsynthError as error:
        console.print(f"[bold red]{type(error).__name__}[/]: ", end="")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("trainer: stopped; the same command goes on from the last checkpoint")
        return 130
    print(json.dumps(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("trainer", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{run,sft,rl,eval}")
    helps = {
        "run": "cold start, evaluation, RL, evaluation",
        "sft": "the cold start and its evaluation only",
        "rl": "RL and its evaluation, from a finished cold start",
        "eval": "measure the newest checkpoint of a stage",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("recipe", metavar="RECIPE.toml")
        command.add_argument("overrides", nargs="*", metavar="table.key=value", help="e.g. trainer.rl.steps=20")
        if name == "eval":
            command.add_argument("--stage", choices=("sft", "rl"), default="rl", help="default: %(default)s")
            command.add_argument("--replies", metavar="FILE.jsonl", type=Path, help="write the replies there, for `kgsynth calibrate`")  # fmt: skip
    return parser


def _command(arguments: argparse.Namespace, progress: Callable[[str, int, int, str], None]) -> dict[str, Any]:
    from trainer.config import load_recipe

    recipe = load_recipe(arguments.recipe, arguments.overrides)
    from trainer import stages

    if arguments.command == "eval":
        return _without_tasks(
            stages.evaluate(recipe, stage=arguments.stage, replies=arguments.replies, progress=progress)
        )
    if arguments.command == "sft":
        return _without_tasks(stages.run(recipe, until="sft", progress=progress))
    if arguments.command == "rl":
        stages.require_stage(recipe, "sft")
    return stages.run(recipe, progress=progress)


def _without_tasks(report: dict[str, Any]) -> dict[str, Any]:
    """An evaluation without what it says of each task, which is in the run folder."""
    return {
        key: {k: v for k, v in value.items() if k not in ("pass_rates", "attempts")}
        if isinstance(value, dict)
        else value
        for key, value in report.items()
    }


class _bars:
    """One progress bar per stage on stderr; plain lines where it is no terminal."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description:>5}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
        self._bar = Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[text]}"), console=console)
        self._console, self._tasks = console, dict[str, TaskID]()

    def __enter__(self) -> Callable[[str, int, int, str], None]:
        if self._console.is_terminal:
            self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def _show(self, stage: str, step: int, steps: int, text: str) -> None:
        if not self._console.is_terminal:
            if stage == "wait" or step == steps or step % 10 == 0:
                print(f"{stage} {step}/{steps} {text}", file=sys.stderr, flush=True)
            return
        if stage not in self._tasks:
            self._tasks[stage] = self._bar.add_task(stage, text="")
        self._bar.update(self._tasks[stage], completed=step, total=steps, text=text)


if __name__ == "__main__":
    sys.exit(main())
