"""Does RL raise the verified reward? Train on one task file with several seeds and report every one of them.

    python benchmarks/rl_seeds.py runs/demo/tasks.jsonl --recipe recipes/demo.toml --seeds 0 1 2

Each seed gets a fresh run folder; it decides the split, the first weights and all sampling. Reward is the mean over
tasks of sampled replies, with the same settings before (end of SFT) and after (end of RL). Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch: see docs/training.md


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", type=Path, help="a tasks.jsonl")
    parser.add_argument("--recipe", type=Path, help="whose [trainer] tables to use; the defaults without one")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rl-seeds-") as folder:
        runs = [train(arguments, seed, Path(folder) / f"seed-{seed}") for seed in arguments.seeds]
    print(json.dumps({**summary(runs), "runs": runs}))


def train(arguments: argparse.Namespace, seed: int, run_dir: Path) -> dict[str, Any]:
    """One seed in a fresh folder: the numbers of its result.json."""
    import trainer
    from trainer.config import Recipe, load_recipe

    if arguments.recipe is None:
        arguments.recipe = run_dir.parent / "defaults.toml"
        arguments.recipe.write_text("")
    config = load_recipe(arguments.recipe, arguments.overrides).trainer
    run_dir.mkdir()
    shutil.copy(arguments.tasks, run_dir / "tasks.jsonl")
    recipe = Recipe(run_dir=run_dir, trainer=dataclasses.replace(config, seed=seed))
    result = trainer.run(recipe, progress=_say)
    print(f"seed {seed}: {result['reward_before']:.3f} -> {result['reward_after']:.3f}", file=sys.stderr)
    return result


def _say(stage: str, step: int, steps: int, text: str) -> None:
    if step == steps or step % 10 == 0:
        print(f"  {stage} {step}/{steps} {text}", file=sys.stderr, flush=True)


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, and the worst gain."""
    gains = [run["reward_after"] - run["reward_before"] for run in runs]
    held_out = [run["heldout_after"] - run["heldout_before"] for run in runs]
    return {
        "mean_gain": mean(gains),
        "least_gain": min(gains),
        "mean_heldout_gain": mean(held_out),
        "mean_before": mean(run["reward_before"] for run in runs),
        "mean_after": mean(run["reward_after"] for run in runs),
        "mean_seconds": mean(run["seconds"] for run in runs),
    }


if __name__ == "__main__":
    main()
