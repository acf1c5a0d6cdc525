"""How the concept graph keeps its speed: 10^4, 10^5 and 10^6 concepts of three edges each, side by side.

    python benchmarks/graph_scale.py                              # plants the graphs once (10^6 takes minutes), then measures
    python benchmarks/graph_scale.py --sizes 10000 100000 --quick
    python benchmarks/graph_scale.py --neo4j --plot docs/img/graph-scale.png

The graphs and the edits are those of `grown.py`. Planted files are kept in --workdir and never altered: what is measured is a
copy. The sizes take turns, so that a busy moment of the machine meets them all, and medians are compared. Every edit is
durable when its time is taken (`synchronous=FULL`); all but the single edges are taken back at the end of their round, so that
the graphs stay as large as they are. Rivals get edges of the same kind, in memory. At the end each graph is checked: no cycle
(scipy), exactly the edges that it should have, and levels as they come out from scratch.

CPU is what this process spent; wall time is also what the disk and other programs took. The garbage collector is off while
something is timed, as in timeit. Ends with one JSON line; exit code 1 when a check fails.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import grown
import numpy as np
import rivals
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kgsynth.graph import ConceptGraph
from kgsynth.nearest import Nearest
from kgsynth.push import push
from kgsynth.store import Change, GraphStore, Skeleton, commit, local, schema
from kgsynth.store.dag import levels_of
from kgsynth.store.draft import Draft
from kgsynth.store.embedded import EmbeddedStore

EDGES, MERGES, SINGLES = 500, 200, 20  # edits of a round: the first two kinds in one commit each, the last in one each
LEAST, MOST = 5, 40  # rounds
LEVELS_UP_TO = 100_000  # concepts, for levels to be worked out from scratch
PUSHED = (10_000, 50_000)  # concepts, into Neo4j
VECTORS = (100_000, 300_000)  # of DIM numbers
DIM = 384  # as all-MiniLM-L6-v2 has
SCREEN = Console(stderr=True, width=None if sys.stderr.isatty() else 150)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], help="concepts")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each size in each section, about")
    parser.add_argument("--quick", action="store_true", help="commits a tenth as large, few rounds, few vectors")
    parser.add_argument("--neo4j", action="store_true", help="start a Neo4j server and measure it as well")
    parser.add_argument("--workdir", type=Path, default=Path.home() / ".cache" / "kgsynth" / "bench")
    parser.add_argument("--plot", type=Path, help="write a picture of the result (needs matplotlib)")
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.probe:
        print(json.dumps(probe(args.probe)))
        return 0
    args.workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.workdir) as scratch:
        result = Bench(args, Path(scratch)).run()
    for table in tables(result):
        SCREEN.print(table)
    if args.plot:
        import scale_plot

        scale_plot.draw(result, args.plot)
    print(json.dumps(result))
    return int(any(check["faults"] for check in result["checks"].values()))


class Samples:
    """Microseconds for each item, wall and CPU; one sample for each time that something was timed."""

    def __init__(self) -> None:
        self.taken: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)

    @contextmanager
    def timed(self, measure: str, size: int, items: int) -> Iterator[None]:
        gc.collect(0)
        gc.disable()
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
            spent = (time.perf_counter() - wall, time.process_time() - cpu)
        finally:
            gc.enable()
        self.taken[measure, size].append((spent[0] / items * 1e6, spent[1] / items * 1e6))

    def summary(self) -> dict[str, dict[str, dict[str, float]]]:
        """measure -> size -> medians and 95th percentiles."""
        found: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
        for (measure, size), taken in self.taken.items():
            (wall, cpu), (wall95, cpu95) = (np.percentile(taken, q, axis=0).round(1).tolist() for q in (50, 95))
            times = {"wall": wall, "cpu": cpu, "wall_p95": wall95, "cpu_p95": cpu95}
            found[measure][str(size)] = {**times, "samples": len(taken)}
        return dict(found)


class Bench:
    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        self.args, self.sizes, self.scratch = args, sorted(args.sizes), scratch
        self.samples = Samples()

    def run(self) -> dict[str, Any]:
        planted = {size: self._planted(size) for size in self.sizes}
        opened = {str(size): self._probed(path) for size, path in planted.items()}
        graphs = [
            Measured(self.samples, self.args.quick, EmbeddedStore(self._copied(path))) for path in planted.values()
        ]
        self._in_turn(graphs)
        checks = {str(graph.size): graph.check() for graph in graphs}
        pushed = self._neo4j(checks) if self.args.neo4j else []
        self._rivals([graph.planted for graph in graphs])
        return {
            "sizes": self.sizes, "edges_per_commit": graphs[0].edges, "merges_per_commit": graphs[0].merges,
            "open": opened, "checks": checks, "pushed": pushed,
            "times": self.samples.summary(), "nearest": [nearest(n) for n in ((3_000,) if self.args.quick else VECTORS)],
            "load": round(os.getloadavg()[0], 1), "cores": os.cpu_count(),
        }  # fmt: skip

    def _planted(self, size: int) -> Path:
        """The file of a graph, planted now if it is not there."""
        layout = sha256("".join((schema.TABLES, *schema.INDEXES.values(), str(grown.VERSION))).encode()).hexdigest()
        path = self.args.workdir / f"grown-{size}-{layout[:8]}.sqlite"
        if not path.exists():
            part = path.with_suffix(".part")
            for stale in self.args.workdir.glob(f"{part.name}*"):
                stale.unlink()
            with Progress(console=SCREEN) as progress, EmbeddedStore(part) as store:
                bar = progress.add_task(f"planting {size:,} concepts", total=size)
                grown.plant(store, size, show=lambda done: progress.update(bar, completed=done))
            part.rename(path)
        return path

    def _copied(self, path: Path) -> Path:
        return Path(shutil.copyfile(path, self.scratch / path.name))

    def _probed(self, path: Path) -> dict[str, float]:
        command = [sys.executable, __file__, "--probe", str(path)]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def _in_turn(self, graphs: Sequence[Measured]) -> None:
        """A round on each, again and again, until the time is spent."""
        least, most = (2, 4) if self.args.quick else (LEAST, MOST)
        deadline, done = time.monotonic() + self.args.seconds * len(graphs), 0
        while done < least or (done < most and time.monotonic() < deadline):
            for graph in graphs:
                graph.round()
            done += 1
        SCREEN.log(f"{done} rounds of edits on {len(graphs)} graphs")

    def _neo4j(self, checks: dict[str, dict[str, Any]]) -> list[dict[str, float]]:
        """Push graphs into a server of our own, and edit them there. Returns the rates; times are added to the samples."""
        from kgsynth.store.neo4j import Neo4jStore

        pushed = []
        server = local.start(self.scratch / "neo4j", heap="2g", pagecache="512m", quick=False, say=SCREEN.log)
        try:
            for size in self.sizes[:1] if self.args.quick else PUSHED:
                with closing(EmbeddedStore(self._planted(size))) as src, closing(Neo4jStore(server.url)) as dst:
                    done = push(src, dst, replace=True)
                    rows = sum(done.rows.values())
                    pushed.append(
                        {"concepts": size, "edges": done.rows["edge"], "rows": rows, "seconds": round(done.seconds, 1)}
                    )
                    graph = Measured(self.samples, self.args.quick, dst, where="Neo4j: ")
                    self._in_turn([graph])
                    checks[f"Neo4j {size}"] = graph.check()
        finally:
            server.stop()
        return pushed

    def _rivals(self, planted: Sequence[Skeleton]) -> None:
        for rival in rivals.ALL:
            few = [_first(planted[0], 1000)] if rival is rivals.WholeGraph and self.sizes[0] > 1000 else []
            for skeleton in (*few, *planted):
                if len(skeleton.ids) <= rival.up_to:
                    self._rival(rival(skeleton), grown.Edits(skeleton, seed=1))
                    gc.collect()
                    SCREEN.log(f"{rival.name} at {len(skeleton.ids):,}")

    def _rival(self, held: Any, edits: grown.Edits) -> None:
        size, seconds = len(edits.ids), self.args.seconds / 4
        for edge in _until(seconds, edits.edges(EDGES // 10 if self.args.quick else EDGES).edges):
            with self.samples.timed(f"{held.name}: edge", size, 1):
                held.link(edge)
        if type(held) is rivals.Networkx:
            twins, pairs = edits.duplicates(MERGES // 10 if self.args.quick else MERGES)
            held.insert(twins.edges)
            for keep, fold in _until(seconds, pairs):
                with self.samples.timed(f"{held.name}: merge", size, 1):
                    held.merge(keep, fold)


def _until(seconds: float, given: Sequence[Any]) -> Iterator[Any]:
    """At least three of them."""
    deadline = time.monotonic() + seconds
    return (it for done, it in enumerate(given) if done < 3 or time.monotonic() < deadline)


def _first(skeleton: Skeleton, rows: int) -> Skeleton:
    """The graph as it was when it had so many concepts, or about so: later links among them are in it as well."""
    inside = skeleton.children < rows
    return Skeleton(
        op=skeleton.op, ids=skeleton.ids[:rows], names=skeleton.names[:rows], domains=skeleton.domains[:rows],
        levels=skeleton.levels[:rows], atomic=skeleton.atomic[:rows],
        parents=skeleton.parents[inside], children=skeleton.children[inside],
    )  # fmt: skip


class Measured:
    """One graph, and what is measured on it."""

    def __init__(self, samples: Samples, quick: bool, store: GraphStore, where: str = "") -> None:
        self.samples, self.store, self.where = samples, store, where
        small = 10 if quick else 1
        self.edges, self.merges, self.singles = EDGES // small, MERGES // small, SINGLES // small
        self.planted = store.skeleton()
        self.size = len(self.planted.ids)
        self.edits = grown.Edits(self.planted)
        self.linked: set[tuple[str, str]] = set()  # by edits that stay
        self.faults: list[str] = []

    def round(self) -> None:
        if isinstance(self.store, EmbeddedStore):
            self._guard(self.store)
        self._edges()
        self._merges()
        self._unlink()
        self._singles()

    def timed(self, measure: str, items: int) -> AbstractContextManager[None]:
        return self.samples.timed(self.where + measure, self.size, items)

    def _guard(self, store: EmbeddedStore) -> None:
        """A commit without its end: edges are read, checked, and levels worked out; nothing is written."""
        change = Change(edges=self.edits.edges(self.edges).edges)
        with self.timed("guard alone", len(change.edges)):
            store._look(lambda tx: commit.apply(Draft(tx), change))

    def _edges(self) -> None:
        proposed = self.edits.edges(self.edges)
        with self.timed("edge", len(proposed.edges)):
            result = self.store.commit(Change(edges=proposed.edges))
        self._expect("refused edges", len(result.refused), proposed.cyclic)
        self._undo("undo of an edge", result.op, len(result.linked))

    def _merges(self) -> None:
        twins, pairs = self.edits.duplicates(self.merges)
        with self.timed("concept with its edges", len(pairs)):
            inserted = self.store.commit(twins)
        with self.timed("merge", len(pairs)):
            result = self.store.commit(Change(merges=pairs))
        self._expect("merged twins", len(result.merged), len(pairs))
        self._undo("undo of a merge", result.op, len(pairs))
        self.store.undo(inserted.op)

    def _unlink(self) -> None:
        pairs = self.edits.there(self.edges)
        with self.timed("unlink", len(pairs)):
            result = self.store.commit(Change(unlink=pairs))
        self.store.undo(result.op)

    def _singles(self) -> None:
        for edge in self.edits.edges(self.singles).edges:
            with self.timed("edge, a commit each", 1):
                result = self.store.commit(Change(edges=(edge,)))
            self.linked |= {(edge.parent, edge.child)} if result.linked else set()

    def _undo(self, measure: str, op: int, items: int) -> None:
        with self.timed(measure, items):
            self.store.undo(op)

    def _expect(self, what: str, found: int, wanted: int) -> None:
        if found != wanted:
            self.faults.append(f"{found} {what}, not {wanted}")

    def check(self) -> dict[str, Any]:
        """The graph as it is after all of that."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        now, n = self.store.skeleton(), self.size
        matrix = coo_array((np.ones(len(now.parents), bool), (now.parents, now.children)), shape=(n, n))
        groups = connected_components(matrix, connection="strong", return_labels=False)
        self._expect("groups of concepts that reach each other", groups, n)
        there = set(rivals.pairs_of(now))
        self._expect("edges that should not be there, or are missing", len(there ^ {*rivals.pairs_of(self.planted), *self.linked}), 0)  # fmt: skip
        if n <= LEVELS_UP_TO:
            afresh = levels_of(now.ids, there)
            self._expect("wrong levels", sum(afresh[i] != level for i, level in zip(now.ids, now.levels.tolist(), strict=True)), 0)  # fmt: skip
        self.store.close()
        return {"edges": len(there), "cycles": n - groups, "levels_checked": n <= LEVELS_UP_TO, "faults": self.faults}


def probe(path: Path) -> dict[str, float]:
    """In a fresh process: how long it takes until a graph can be used, and what it keeps in memory. Seconds and bytes."""
    found: dict[str, float] = {"file_bytes": path.stat().st_size}
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # not in the operating system's cache
    used, start = anonymous_bytes(), time.perf_counter()

    def done(step: str) -> None:
        nonlocal used, start
        found[f"{step}_s"], found[f"{step}_bytes"] = time.perf_counter() - start, anonymous_bytes() - used
        used, start = anonymous_bytes(), time.perf_counter()

    store = EmbeddedStore(path)
    first = store.export("concept", limit=1)[0]["id"]
    store.edges_of(first)
    done("store")
    graph = ConceptGraph(store)
    graph.children(first)
    graph.level(first)
    done("graph")
    skeleton = store.skeleton()
    done("skeleton")
    rival = rivals.Networkx(skeleton)
    done("networkx")
    del graph, rival
    return found | {"concepts": len(skeleton.ids), "edges": len(skeleton.parents), "levels": int(skeleton.levels.max())}


def anonymous_bytes() -> int:
    """Memory of this process that is no file's; 0 where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon")), 0)


def nearest(n: int, k: int = 10, queries: int = 100) -> dict[str, float]:
    """n vectors in clusters of about twenty, as names lie among their near-synonyms; queries lie near one of them."""
    dice = np.random.default_rng(0)
    centres = dice.standard_normal((n // 20, DIM), np.float32)
    near = np.float32(0.3) * dice.standard_normal((n, DIM), np.float32)
    vectors = centres[dice.integers(0, len(centres), n)] + near
    asked = vectors[dice.choice(n, queries)] + np.float32(0.1) * dice.standard_normal((queries, DIM), np.float32)
    start = time.perf_counter()
    index = Nearest(DIM)
    index.add([f"c{row}" for row in range(n)], vectors)
    index.query(asked[0], k)
    ready, samples, found = time.perf_counter() - start, Samples(), []
    for vector in asked:
        with samples.timed("query", n, 1):
            found.append({row for row, _ in index.query(vector, k)})
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    truth = ({f"c{row}" for row in np.argsort(unit @ vector)[-k:]} for vector in asked)
    recall = sum(len(a & b) for a, b in zip(found, truth, strict=True)) / (k * queries)
    times = samples.summary()["query"][str(n)]
    return {"vectors": n, "dim": DIM, "k": k, "recall": round(recall, 4), "first_query_s": round(ready, 2), **times}


# what is shown


def tables(result: dict[str, Any]) -> Iterator[Table | str]:
    sizes = [str(size) for size in result["sizes"]]
    yield _times_table(result)
    yield _open_table(result, sizes)
    for row in result["pushed"]:
        per = (row["concepts"] / row["seconds"], row["edges"] / row["seconds"])
        what = f"{per[0]:,.0f} concepts and {per[1]:,.0f} edges a second"
        yield f"push of {row['concepts']:,} concepts into Neo4j: {what}"
    table = Table(
        "vectors", "median", "p95", "CPU", "recall at 10", "first query", title="nearest neighbours, 384 wide"
    )
    for row in result["nearest"]:
        times = (f"{row[name] / 1000:.1f} ms" for name in ("wall", "wall_p95", "cpu"))
        table.add_row(f"{row['vectors']:,}", *times, f"{row['recall']:.3f}", f"{row['first_query_s']:.1f} s")
    yield table


def _times_table(result: dict[str, Any]) -> Table:
    sizes = sorted({size for by_size in result["times"].values() for size in by_size}, key=int)
    title = f"microseconds for each, median of wall | CPU ({result['cores']} cores, load {result['load']})"
    table = Table("", *(f"{int(size):,}" for size in sizes), "largest / smallest, CPU", title=title)
    for measure, by_size in result["times"].items():
        cells = [f"{by_size[s]['wall']:,.0f} | {by_size[s]['cpu']:,.0f}" if s in by_size else "" for s in sizes]
        if measure == f"{rivals.WholeGraph.name}: edge":
            cells = [cell or f"~{_extrapolated(by_size, s):,.0f}" for cell, s in zip(cells, sizes, strict=True)]
        ends = [by_size[size]["cpu"] for size in sizes if size in by_size]
        table.add_row(measure, *cells, f"{ends[-1] / max(ends[0], 0.1):.1f}" if len(ends) > 1 else "")
    table.caption = "~ extrapolated in proportion to the size"
    return table


def _extrapolated(by_size: dict[str, dict[str, float]], size: str) -> float:
    largest = max(by_size, key=int)
    return by_size[largest]["wall"] * int(size) / int(largest)


def _open_table(result: dict[str, Any], sizes: Sequence[str]) -> Table:
    table = Table("", *(f"{int(size):,}" for size in sizes), title="opening a file that is not in memory, and its size")
    opened = [result["open"][size] for size in sizes]
    for label, name in (
        ("store", "store"),
        ("ConceptGraph, first children and level", "graph"),
        ("skeleton()", "skeleton"),
    ):
        table.add_row(f"{label}, s", *(f"{found[f'{name}_s']:.2f}" for found in opened))
    table.add_row(
        "file, bytes for each concept", *(f"{found['file_bytes'] / found['concepts']:,.0f}" for found in opened)
    )
    for label, name in (("ConceptGraph", "graph"), ("a networkx DiGraph of the ids", "networkx")):
        per = (found[f"{name}_bytes"] / found["concepts"] for found in opened)
        table.add_row(f"{label} in memory, bytes for each concept", *(f"{used:,.0f}" for used in per))
    table.add_row("levels", *(str(found["levels"]) for found in opened))
    return table


if __name__ == "__main__":
    sys.exit(main())
