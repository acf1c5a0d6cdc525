"""Small Python checks in bubblewrap boxes: how many a second, and whether hostile ones disturb the others.

    python benchmarks/sandbox_checks.py                       2,000 checks for the rates, then 10,000 among hostile ones
    python benchmarks/sandbox_checks.py --checks 2000 --hang spin

A check is one `function_tests` verdict of ten calls. The rates compare waiting interpreters with the peer that everybody can build:
bubblewrap and Python started for each check (`Bubblewrap(waiting=0)`), in alternating rounds of one run. Then the same checks run
twice more, clean and with 1 % hanging, 1 % crashing and 1 % flooding their output; the verdicts of all others must be the same.
`--hang block` (default): they sleep or wait for a lock; `spin`: they burn CPU until their limit, and the share of the machine
that they may burn is told. At the end nothing may be left: no process, mount, control group or file. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.progress import track

from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.sandbox.freezer import own_group
from kgsynth.sandbox.supervise import descendants
from kgsynth.verifiers import REGISTRY, Verdict

SECONDS = 1.0  # for all calls of a check, half of it for one
PARAMS = {
    "name": "gcd",
    "seconds": SECONDS,
    "tests": [{"args": ["tuple", 6 * i, 4 * i + 2], "expect": math.gcd(6 * i, 4 * i + 2)} for i in range(10)],
}
RIGHT = "def gcd(a, b):\n    while b:\n        a, b = b, a % b\n    return a"
WRONG = "def gcd(a, b):\n    return min(a, b)"
HOSTILE = {
    "hang": {
        "block": "import threading, time\ndef gcd(a, b):\n    lock = threading.Lock()\n    while True: lock.acquire() and time.sleep(1e6)",
        "spin": "def gcd(a, b):\n    while True: pass",
    },
    "crash": {"": "import ctypes\ndef gcd(a, b):\n    ctypes.string_at(0)"},
    "flood": {
        "": "import os\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)\ndef gcd(a, b): return 1"
    },
}
Check = tuple[str, str]  # what it is, and the answer


def main() -> None:
    options = _options()
    before = leftovers()
    rates = compare_rates(options.checks // 5, options.threads)
    clean = [("right", RIGHT) if i % 4 else ("wrong", WRONG) for i in range(options.checks)]
    hostile = with_hostile(clean, options.hang)
    sandbox = Bubblewrap(waiting=options.threads)
    calm, seconds = run(sandbox, clean, options.threads, "clean")
    disturbed, disturbed_seconds = run(sandbox, hostile, options.threads, "1 % hang, 1 % crash, 1 % flood")
    sandbox.close()
    changed = [i for i, (kind, _) in enumerate(hostile) if kind in ("right", "wrong") and calm[i] != disturbed[i]]
    figures = {
        **rates,
        "checks": options.checks,
        "clean_per_second": round(options.checks / seconds, 1),
        "hostile_per_second": round(options.checks / disturbed_seconds, 1),
        "hostile_to_clean": round(seconds / disturbed_seconds, 3),
        "hang": options.hang,
        "cpu_that_hangs_may_burn": round(options.checks / 100 * SECONDS / 2 / (os.cpu_count() or 1) / seconds, 3) if options.hang == "spin" else 0.0,
        "verdicts_changed": len(changed),
        "hostile_accepted": sum(v.score > 0 for (kind, _), v in zip(hostile, disturbed, strict=True) if kind in HOSTILE),
        "left_behind": sorted(leftovers() - before),
    }  # fmt: skip
    print(json.dumps(figures))


def compare_rates(checks: int, threads: int, rounds: int = 4) -> dict[str, float]:
    """Checks per second, warm and with one fresh process a check: medians of alternating rounds, and their ratio."""
    warm, fresh = Bubblewrap(waiting=threads), Bubblewrap(waiting=0)
    answers = [("right", RIGHT)] * (checks // rounds)
    run(warm, [("right", RIGHT)] * threads, threads, "warming up")
    seconds = [
        (run(warm, answers, threads, "warm")[1], run(fresh, answers, threads, "fresh")[1]) for _ in range(rounds)
    ]
    warm.close()
    fresh.close()
    ratio = statistics.median(b / a for a, b in seconds)

    def per_second(column: int) -> float:
        return len(answers) / statistics.median(row[column] for row in seconds)

    print(
        f"waiting interpreters {per_second(0):.0f} checks/s, a fresh process each {per_second(1):.0f}/s, ratio {ratio:.2f}"
    )
    return {
        "warm_per_second": round(per_second(0), 1),
        "fresh_per_second": round(per_second(1), 1),
        "warm_to_fresh": round(ratio, 2),
    }


def with_hostile(clean: Sequence[Check], hang: str) -> list[Check]:
    """One per cent of each kind in the place of others, by a fixed seed."""
    checks = list(clean)
    places = random.Random(0).sample(range(len(checks)), 3 * (len(checks) // 100))
    for n, place in enumerate(places):
        kind = list(HOSTILE)[n % 3]
        checks[place] = (kind, HOSTILE[kind].get(hang) or HOSTILE[kind][""])
    return checks


def run(sandbox: Bubblewrap, checks: Sequence[Check], threads: int, what: str) -> tuple[list[Verdict], float]:
    """Every verdict in order, and the seconds all took."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        verdicts = pool.map(lambda check: judge(sandbox, check), checks)
        found = list(track(verdicts, what, total=len(checks)))
    return found, time.perf_counter() - start


def judge(sandbox: Bubblewrap, check: Check) -> Verdict:
    return REGISTRY["function_tests"](f"<answer>\n{check[1]}\n</answer>", PARAMS, sandbox)


def leftovers() -> set[str]:
    """What a box of ours could leave: processes, mounts, control groups, files, descriptors."""
    found = {f"mount {line.split()[4]}" for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    found |= {f"process {pid}" for pid in descendants(os.getpid())}
    if group := own_group():
        found |= {f"control group {path}" for path in group.glob(f"kgsynth-{os.getpid()}-*")}
    boxes = Path(tempfile.gettempdir()) / f"kgsynth-boxes-{os.geteuid()}"
    found |= {f"file {path}" for path in boxes.glob(f"{os.getpid()}-*/**/*")}
    return found | {f"descriptor {fd}" for fd in os.listdir("/proc/self/fd")}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--hang", choices=("block", "spin"), default="block")
    return parser.parse_args()


if __name__ == "__main__":
    main()
