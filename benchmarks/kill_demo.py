"""Kill the demo with -9 at random moments, over and over; then let it finish and count what is there twice.

    python benchmarks/kill_demo.py --kills 20                  # of `make demo`, in runs/demo
    python benchmarks/kill_demo.py --kills 20 --same-as /elsewhere/runs/demo

The whole process group dies each time. With --same-as, graph and tasks must equal those of a run that was left alone. Ends
with one JSON line; exit code 1 when anything is lost, doubled or different.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from kgsynth.graph import ConceptGraph
from kgsynth.run import RunFolder
from kgsynth.stages import load_kept
from kgsynth.store import open_store


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="make demo")
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=30.0, help="seconds between a start and its kill, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--same-as", type=Path, help="a run folder with the same recipe that was not interrupted")
    args = parser.parse_args()
    stages = kill_often(shlex.split(args.command), args.kills, args.longest, random.Random(args.seed), args.run)
    subprocess.run(shlex.split(args.command), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = inspect(args.run)
    same = None if args.same_as is None else contents(args.run) == contents(args.same_as)
    print(json.dumps({"kills": len(stages), "killed_in": stages, **found, "same_as_undisturbed": same}))
    return int(same is False or any(found[key] for key in ("cycles", "double_concepts", "double_tasks")))


def kill_often(command: list[str], kills: int, longest: float, rng: random.Random, run: Path) -> list[str]:
    """Start and kill; returns how far the run was at each kill. Ends early when a start finishes the job."""
    seen: list[str] = []
    while len(seen) < kills:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(rng.uniform(0.5, longest))
            return seen
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seen.append(progress(run))
        print(f"kill {len(seen)}: {seen[-1]}", file=sys.stderr)
    return seen


def progress(run: Path) -> str:
    """The stage a run is in, by its files."""
    if list((run / "train" / "checkpoints").glob("rl-*")):
        return "rl"
    if (run / "train").exists():
        return "sft"
    return "synthesize" if (run / "tasks.jsonl").exists() else "grow" if (run / "graph.sqlite").exists() else "start"


def inspect(run: Path) -> dict[str, Any]:
    """Counts of what must not be there."""
    store = open_store(f"sqlite:{run / 'graph.sqlite'}")
    stats = ConceptGraph(store).stats()
    ids = [concept.id for concept in store.concepts()]
    store.close()
    lines = [json.loads(line)["id"] for line in (run / "tasks.jsonl").read_text().splitlines()]
    return {
        "concepts": len(ids),
        "double_concepts": len(ids) - len(set(ids)) + stats.duplicate_names,
        "cycles": stats.cycles,
        "tasks": len(lines),
        "double_tasks": len(lines) - len(set(lines)),
        "trained": (run / "train" / "result.json").exists(),
    }


def contents(run: Path) -> tuple[Any, ...]:
    """Graph and tasks."""
    store = open_store(f"sqlite:{run / 'graph.sqlite'}")
    graph = [c.id for c in store.concepts()], [(e.parent, e.child) for e in store.edges()]
    store.close()
    return graph, [task.id for task in load_kept(RunFolder(run))]


if __name__ == "__main__":
    sys.exit(main())
