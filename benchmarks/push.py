"""`kgsynth push` of a large graph into a real Neo4j and back: the rate of each way, and whether what comes back is the same.

    python benchmarks/push.py --concepts 50000 --kills 2

Starts a server of its own, makes a graph with three edges, quotes, a vector of 384 numbers and a log, pushes it there and back
with the command itself, then once more both ways with the command killed at random moments. Prints one line of JSON per part.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from kgsynth.concept import Concept, Edge, Source
from kgsynth.push import stream
from kgsynth.store import KINDS, Change, FrontierItem, GraphStore, TaskRecord, local, open_store

STEP = 500  # concepts per operation
WIDTH = 384


def make(url: str, concepts: int, seed: int = 0) -> None:
    draw, pages = random.Random(seed), [_page(i) for i in range(1 + concepts // 50)]
    made = [_concept(i) for i in range(concepts)]
    with closing(open_store(url)) as store:
        for low in range(0, concepts, STEP):
            some = range(low, min(low + STEP, concepts))
            parents = ((i, p) for i in some for p in {draw.randrange(i) for _ in range(3) if i})
            edges = tuple(
                Edge(parent=made[p].id, child=made[i].id, spans=(pages[i // 50].span(p % 99, 150),)) for i, p in parents
            )
            waiting = tuple(FrontierItem(concept=made[i].id, depth=1) for i in some if i % 4 == 0)
            store.commit(
                Change(
                    sources=tuple(pages[low // 50 : some.stop // 50 + 1]),
                    concepts=tuple(made[low : some.stop]),
                    edges=edges,
                    enqueue=waiting,
                )
            )
            store.commit(Change(merges=((made[low].id, made[some.stop - 1].id),), remove=(made[low + 3].id,)))
            store.undo(store.version())
        there = list(store.levels())
        vectors = np.random.default_rng(seed).normal(size=(len(there), WIDTH)).astype(np.float32)
        store.put_embeddings("random", there, vectors)
        store.put_tasks(_task(i, there[i]) for i in range(0, len(there), 50))


def _page(i: int) -> Source:
    text = " ".join(f"Sentence {k} of page {i} says something about it." for k in range(80))
    return Source(url=f"https://example.org/{i}", title=f"Page {i}", text=text, licence="CC0-1.0")


def _concept(i: int) -> Concept:
    return Concept(
        name=f"concept number {i}", domain=f"domain {i % 9}", definition=f"It is number {i}.", aliases=(f"no. {i}",)
    )


def _task(i: int, concept_id: str) -> TaskRecord:
    return TaskRecord(
        id=f"t_{i}", type="cloze", domain="d", granularity="atomic", prompt=f"What is number {i}?", concepts=(concept_id,),
        pass_rate=i % 7 / 7, attempts=7, policy="rl",
    )  # fmt: skip


def push(src: str, dst: str, kill_after: float | None = None) -> dict[str, Any]:
    """The command as a process of its own; killed after some seconds if it still runs. Returns what it printed."""
    command = [sys.executable, "-m", "kgsynth.cli", "push", src, dst]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            said, _ = child.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            child.kill()
            return {"killed_after": round(kill_after or 0, 1)}
    if child.returncode:
        sys.exit(f"push from {src} to {dst} ended with {child.returncode}")
    return json.loads(said.splitlines()[-1])


def same(one: str, other: str) -> bool:
    with closing(open_store(one)) as first, closing(open_store(other)) as second:
        return all(_rows(first, kind) == _rows(second, kind) for kind in KINDS) and _state(first) == _state(second)


def _rows(store: GraphStore, kind: str) -> list[Any]:
    return list(stream(store, kind))


def _state(store: GraphStore) -> dict[str, Any]:
    return {name: value for name, value in store.state().items() if name != "format"}


def there_and_back(folder: Path, start: str, kills: int, seconds: Sequence[float]) -> list[dict[str, Any]]:
    """Into an empty server and back. `seconds` is about how long each way takes."""
    draw, told = random.Random(kills), []
    server = local.start(folder / f"neo4j-{kills}", heap="2g")
    try:
        end = f"sqlite:{folder / f'back-{kills}.sqlite'}"
        ways = (("embedded -> Neo4j", start, server.url), ("Neo4j -> embedded", server.url, end))
        for (way, src, dst), long in zip(ways, seconds, strict=True):
            for kill in range(kills):
                told.append({"way": way} | push(src, dst, kill_after=draw.uniform(0.1, 0.2) * long * (1 + kill)))
            told.append({"way": way} | push(src, dst))
        told.append({"kills": kills, "identical": same(start, end)})
    finally:
        server.stop()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concepts", type=int, default=50_000)
    parser.add_argument("--kills", type=int, default=2, help="on each way of the second round")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgsynth-push-") as name:
        folder, started = Path(name), time.monotonic()
        start = f"sqlite:{folder / 'start.sqlite'}"
        make(start, args.concepts)
        print(json.dumps({"made": args.concepts, "seconds": round(time.monotonic() - started, 1)}), flush=True)
        whole = there_and_back(folder, start, 0, (0, 0))
        lasted = [row["seconds"] for row in whole if "way" in row]
        interrupted = there_and_back(folder, start, args.kills, lasted) if args.kills else []
        for row in (*whole, *interrupted):
            print(json.dumps(row))


if __name__ == "__main__":
    main()
