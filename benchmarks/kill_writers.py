"""Sixteen writers in four processes change one graph in overlapping ways, and are killed with -9 at random, over and over.

    python benchmarks/kill_writers.py --embedded
    python benchmarks/kill_writers.py --neo4j --restart-server        # a server of its own, stopped and started in the middle
    python benchmarks/kill_writers.py bolt://host:7687                # an empty database

They add the same concepts, merge, split, remove them, add edges that would close cycles, work off the frontier under short leases,
and take their own operations back. Afterwards the log is replayed from their diaries (`writer.py`), one operation after the
other, and must give the graph; then operations are undone. Ends with one JSON line; exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx

from kgsynth.errors import CycleError, UndoError
from kgsynth.store import GraphStore, local, open_store
from kgsynth.store.embedded import EmbeddedStore

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from benchmarks.writer import Intent, read_intent  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="of an empty store")
    parser.add_argument("--embedded", action="store_true", help="a new SQLite file")
    parser.add_argument("--neo4j", action="store_true", help="a new local server")
    parser.add_argument(
        "--restart-server", action="store_true", help="with --neo4j: stop it and start it again in the middle"
    )
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0, help="of writing, about")
    parser.add_argument("--concepts", type=int, default=60, help="names to write about; few make many conflicts")
    parser.add_argument("--undo", type=int, default=1000, help="operations to take back at the end, newest first")
    parser.add_argument("--sample", type=int, default=200, help="operations in the middle to take back and do again")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    if (args.url is not None) + args.embedded + args.neo4j != 1:
        parser.error("give one of: URL, --embedded, --neo4j")
    with tempfile.TemporaryDirectory(prefix="kgsynth-writers-") as folder:
        return run(args, Path(folder))


def run(args: argparse.Namespace, folder: Path) -> int:
    server = local.start(folder / "neo4j") if args.neo4j else None
    try:
        url = args.url or (server.url if server else f"sqlite:{folder / 'graph.sqlite'}")
        store = open_store(url)
        if store.version():
            raise SystemExit(f"{url} is not empty; give an empty store")
        found = {"store": url.partition(":")[0], **write(args, folder, url, server), **inspect(store, folder)}
        found |= take_back(store, args, folder, random.Random(args.seed))
        store.close()
    finally:
        if server:
            local.stop(server.home, seconds=5)
    wrong = sorted(key for key in WRONG if found[key])
    print(json.dumps({**found, "wrong": wrong}))
    return int(bool(wrong))


WRONG = (
    "cycles", "double_ids", "double_edges", "wrong_levels", "lost", "committed_twice", "finished_twice", "bad_redirects",
    "bad_frontier", "unlike_replay", "unlike_before", "failed_writers",
)  # fmt: skip


# writing


def write(args: argparse.Namespace, folder: Path, url: str, server: local.LocalServer | None) -> dict[str, Any]:
    """Start the processes, kill and start them again, and let the last ones end by themselves."""
    dice, begun, restarted = random.Random(args.seed), time.monotonic(), None
    started = iter(range(1_000_000))
    alive = [start(args, folder, url, next(started)) for _ in range(args.processes)]
    for kill in range(args.kills):
        time.sleep(dice.uniform(0.2, 1.8) * args.seconds / max(args.kills, 1))
        if server and args.restart_server and kill == args.kills // 2:
            restarted = restart(server, url)
        victim = dice.randrange(args.processes)
        os.kill(alive[victim].pid, signal.SIGKILL)
        alive[victim].wait()
        alive[victim] = start(args, folder, url, next(started))
        print(f"kill {kill + 1} of {args.kills}", file=sys.stderr)
    time.sleep(args.seconds / (args.kills + 1))
    (folder / "stop").touch()
    failed = sum(process.wait() != 0 for process in alive)
    seconds = time.monotonic() - begun
    return {
        "writers": args.writers, "processes": args.processes, "kills": args.kills, "failed_writers": failed,
        "seconds": round(seconds, 1), "operations_before_restart": restarted,
    }  # fmt: skip


def start(args: argparse.Namespace, folder: Path, url: str, seed: int) -> subprocess.Popen[bytes]:
    """A process that has opened the store. `seed`: its number."""
    threads = str(args.writers // args.processes)
    given = [url, str(folder), str(args.concepts), threads, str(seed)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.writer", *given], cwd=ROOT)
    while not (folder / f"ready-{seed}").exists():
        if process.poll() is not None:
            raise SystemExit(f"a writer ended at once with {process.returncode}")
        time.sleep(0.02)
    return process


def restart(server: local.LocalServer, url: str) -> int:
    """Stop the server under the writers' feet, and start it again after a while. Returns the last operation before."""
    store = open_store(url)
    last = store.version()
    store.close()
    local.stop(server.home)
    time.sleep(2)
    local.start(server.home, bolt_port=server.bolt_port, http_port=server.http_port)
    print(f"the server was away after operation {last}", file=sys.stderr)
    return last


# reading


def diaries(folder: Path) -> tuple[dict[str, Intent], dict[str, int], Counter[str]]:
    """What was meant (by note), what was acknowledged with an operation (note -> op), and how often what was refused."""
    intents, promised, refused = {}, {}, Counter()
    for diary in folder.glob("diary-*.jsonl"):
        for line in diary.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue  # killed while writing it
            entry = json.loads(line)
            if "intent" in entry:
                intents[entry["intent"]["note"]] = read_intent(entry["intent"])
            elif "op" in entry:
                promised |= {entry["note"]: entry["op"]} if entry["op"] else {}
            else:
                refused[entry["refused"]] += 1
    return intents, promised, refused


def inspect(store: GraphStore, folder: Path) -> dict[str, Any]:
    """Counts of what there is and of what must not be there."""
    intents, promised, refused = diaries(folder)
    log = store.operations()
    notes = {operation.op: operation.note for operation in log}
    ids, ends = [c.id for c in store.concepts()], [(e.parent, e.child) for e in store.edges()]
    kept = {row["fold"]: row["keep"] for row in every_row(store, "merged")}
    queued = [row["concept"] for row in every_row(store, "frontier")]
    with EmbeddedStore(":memory:") as again:
        twice = replay(again, [(operation.op, intents[operation.note]) for operation in log], folder)
        unlike = contents(store) != contents(again)
    return {
        "concepts": len(ids), "edges": len(ends), "operations": len(log), "acknowledged": len(promised),
        "not_acknowledged": len(set(notes.values()) - promised.keys()), "refused": dict(refused), "redirects": len(kept),
        "undone": sum(operation.undoes is not None for operation in log), "frontier": dict(store.frontier()),
        "cycles": sum(1 for part in nx.strongly_connected_components(nx.DiGraph(ends)) if len(part) > 1),
        "double_ids": len(ids) - len(set(ids)), "double_edges": len(ends) - len(set(ends)),
        "wrong_levels": wrong_levels(store, ids, ends),
        "lost": sum(notes.get(op) != note for note, op in promised.items()),
        "committed_twice": len(notes) - len(set(notes.values())), "finished_twice": twice,
        "bad_redirects": sum(keep not in ids or fold in ids for fold, keep in kept.items()),
        "bad_frontier": len(queued) - len(set(queued)) + len(set(queued) - set(ids)), "unlike_replay": unlike,
    }  # fmt: skip


def wrong_levels(store: GraphStore, ids: list[str], ends: list[tuple[str, str]]) -> int:
    """How many levels are not the longest path from a root; all, when there is no such path."""
    whole, level = nx.DiGraph(ends), {}
    whole.add_nodes_from(ids)
    try:
        for node in nx.topological_sort(whole):
            level[node] = max((level[above] + 1 for above in whole.predecessors(node)), default=0)
    except nx.NetworkXUnfeasible:
        return len(ids)
    return sum(level[i] != stored for i, stored in store.levels().items()) + abs(len(level) - len(store.levels()))


def replay(again: GraphStore, log: list[tuple[int, Intent]], folder: Path) -> int:
    """Do in an empty store what was done, in the order of the log, and note the digest of every state on the way. Returns how
    often an item was finished that was finished already."""
    twice = 0
    with (folder / "digests").open("w") as digests:
        digests.write(digest(again) + "\n")
        for op, intent in log:
            if intent.undo is not None:
                done = again.undo(intent.undo).op
            else:
                if intent.done:
                    finished = {row["concept"] for row in every_row(again, "frontier") if row["state"] == "done"}
                    meant = {row["fold"]: row["keep"] for row in every_row(again, "merged")}
                    twice += sum(meant.get(i, i) in finished for i in intent.done)
                done = again.commit(intent.change()).op
            if done != op:
                raise SystemExit(f"operation {op} of the log is {done} when it is done again: {intent}")
            digests.write(digest(again) + "\n")
    return twice


def contents(store: GraphStore) -> dict[str, Any]:
    """The graph, in order, without what a replay cannot know: numbers, versions, leases."""
    frontier = [(row["concept"], row["depth"], row["state"]) for row in every_row(store, "frontier")]
    merged = sorted((row["fold"], row["keep"]) for row in every_row(store, "merged"))
    return {"concepts": store.concepts(), "edges": store.edges(), "merged": merged, "frontier": frontier}


def digest(store: GraphStore) -> str:
    return hashlib.sha256(repr(contents(store)).encode()).hexdigest()


def every_row(store: GraphStore, kind: str) -> Iterator[dict[str, Any]]:
    after = -1
    while found := store.export(kind, after):
        yield from found
        after = found[-1]["n"]


# taking back


def take_back(store: GraphStore, args: argparse.Namespace, folder: Path, dice: random.Random) -> dict[str, Any]:
    """Undo some operations in the middle and do them again; then undo the last ones, newest first. The graph must each time be
    what it was."""
    digests = (folder / "digests").read_text().split()
    last, unlike = store.version(), 0
    half = min(args.sample, last) // 2
    chosen = [
        *dice.sample(range(1, last + 1), half),
        *range(last, last - half, -1),
    ]  # the last ones are in nobody's way yet
    sample = Counter(middle(store, op, digests[-1]) for op in chosen)
    here = store.version()
    for op in range(here, last, -1):
        store.undo(op)
    first = max(last - args.undo, 0)
    for op in range(last, first, -1):
        store.undo(op)
        if op % 10 == 0 or op - 1 == first:
            unlike += digest(store) != digests[op - 1]
    return {
        "sampled_undone": sample["undone"], "sampled_refused": sample["refused"], "taken_back": last - first,
        "empty_afterwards": not store.concepts(), "unlike_before": unlike + sample["unlike"],
    }  # fmt: skip


def middle(store: GraphStore, op: int, before: str) -> str:
    """Undo one operation and do it again: "undone", "refused", or "unlike" when the graph is not the same afterwards."""
    try:
        undone = store.undo(op)
    except (UndoError, CycleError) as error:
        return "refused" if isinstance(error, CycleError) or error.later else "unlike"
    store.undo(undone.op)
    return "undone" if digest(store) == before else "unlike"


if __name__ == "__main__":
    sys.exit(main())
