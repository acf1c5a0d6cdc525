"""How long each operation of a sandbox takes, per backend: median and 95th percentile in milliseconds.

    python benchmarks/sandbox_latency.py                              bubblewrap and gVisor, 20 times each
    python benchmarks/sandbox_latency.py e2b-bubblewrap --n 50        the E2B client against a local server

The box holds 200 files of 50 kB and, in the background, a sleeping Python with 50 MB: what a snapshot has to keep. Forks
are of a running box; `resume` ends when a first command has run; `restore` likewise. A box is killed with all it holds.
The last line is JSON: {"backend": {"operation": [median, p95]}, "n": ..., "cores": ..., "load": ...}.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from rich.progress import track

from kgsynth.sandbox import Box, Limits, Sandbox, open_sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.e2b_server import serve

LIMITS = Limits(seconds=60, memory_mb=1024, processes=64)
FILL = "import os\nos.mkdir('data')\nfor n in range(200): open(f'data/{n}', 'wb').write(os.urandom(50_000))"
HOLD = "x = bytearray(range(256)) * 200_000; import time; time.sleep(3600)"
T = TypeVar("T")


class Times:
    """Milliseconds by operation."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = defaultdict(list)

    def __call__(self, operation: str, act: Callable[..., T], *args: Any) -> T:
        start = time.perf_counter()
        result = act(*args)
        self.of[operation].append(1000 * (time.perf_counter() - start))
        return result

    def table(self) -> dict[str, list[float]]:
        return {name: [round(statistics.median(ms), 1), round(percentile(ms, 0.95), 1)] for name, ms in self.of.items()}


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def opened(name: str) -> Iterator[Sandbox]:
    client, _, behind = name.partition("-")
    sandbox = open_sandbox(behind or client)
    try:
        if behind:
            with serve(sandbox) as remote:
                yield cast(Sandbox, remote)
        else:
            yield sandbox
    finally:
        sandbox.close()


def boxes(children: list[Box | Exception]) -> list[Box]:
    for child in children:
        if isinstance(child, Exception):
            raise child
    return [child for child in children if not isinstance(child, Exception)]


def once(sandbox: Sandbox, times: Times) -> None:
    """Every operation one time."""

    def run(box: Box, *argv: str) -> None:
        result = box.exec(argv)
        assert result.ok, result

    def back(make: Callable[[], Box | None]) -> Box | None:
        box = make()
        run(box or full, "true")
        return box

    full = times("create", sandbox.create, LIMITS)
    run(full, *sandbox.python, "-S", "-c", FILL)
    run(full, "sh", "-c", f"{' '.join(sandbox.python)} -S -c '{HOLD}' >/dev/null 2>&1 &")
    times("exec true", run, full, "true")
    times("exec python", run, full, *sandbox.python, "-S", "-c", "pass")
    times("write 1 kB", full.write, "file", b"x" * 1000)
    times("read 1 kB", full.read, "file")
    snapshot = times("snapshot", full.snapshot)
    copy = times("restore", back, lambda: sandbox.restore(snapshot))
    times("pause", full.pause)
    times("resume", back, full.resume)
    one = boxes(times("fork(1)", full.fork, 1))
    four = boxes(times("fork(4)", full.fork, 4))
    snapshot.delete()
    for box in [*one, *four]:
        box.kill()
    times("kill", full.kill)
    if copy:
        copy.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("backends", nargs="*", default=["bubblewrap", "gvisor"])
    parser.add_argument("--n", type=int, default=20)
    options = parser.parse_args()
    report: dict[str, Any] = {}
    for name in options.backends:
        times = Times()
        with opened(name) as sandbox:
            for _ in track(range(options.n), description=name):
                once(sandbox, times)
        report[name] = times.table()
    print(f"\n{'ms: median / p95':16}" + "".join(f"{name:>22}" for name in report))
    for operation in next(iter(report.values())):
        print(f"{operation:16}" + "".join("{:>14.1f} /{:6.1f}".format(*table[operation]) for table in report.values()))
    print(json.dumps({**report, "n": options.n, "cores": os.cpu_count(), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
