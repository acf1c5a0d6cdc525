"""Is a verdict the same every time? Answers of all verifiers' cases, each judged many times, shuffled, in threads.

    python benchmarks/verdicts_repeat.py [--times 1000] [--answers 2] [--threads 8] [--seed 0] [--modules text number]

Of each module of tests/fair, `--answers` right and as many wrong ones are drawn; every one is judged `--times` times among
the others. A verdict is a score and a reason. `SandboxError` (could not be judged) counts as a flake too. The last line
is one line of JSON; the exit code is 1 when any answer got two verdicts.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Sandbox, open_sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.fair import Case, judged, load

Row = tuple[str, Case, str]  # module, case, answer


def drawn(answers: int, rng: random.Random, modules: Collection[str] = ()) -> list[Row]:
    rows: list[Row] = []
    for module, cases in load().items():
        if modules and module not in modules:
            continue
        for side in ("right", "wrong"):
            pool = [(module, case, answer) for case in cases for answer in getattr(case, side)]
            rows += rng.sample(pool, min(answers, len(pool)))
    return rows


def verdict(row: Row, sandbox: Sandbox) -> tuple[float, str]:
    _, case, answer = row
    try:
        found = judged(case, answer, sandbox)
    except SandboxError as error:
        return -1.0, f"could not be judged: {error}"
    return found.score, found.reason


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=2, help="right ones and wrong ones, per module")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument(
        "--modules", nargs="+", default=(), help="of tests/fair, for example text number; all by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    rows = drawn(arguments.answers, rng, arguments.modules)
    order = [i for i in range(len(rows)) for _ in range(arguments.times)]
    rng.shuffle(order)
    sandbox, start = open_sandbox(), time.perf_counter()
    try:
        with ThreadPoolExecutor(arguments.threads) as pool:
            verdicts = list(pool.map(lambda i: verdict(rows[i], sandbox), order))
    finally:
        sandbox.close()
    seconds = time.perf_counter() - start
    seen: dict[int, Counter[tuple[float, str]]] = defaultdict(Counter)
    for i, found in zip(order, verdicts, strict=True):
        seen[i][found] += 1
    flaky = {i: counts for i, counts in seen.items() if len(counts) > 1}
    for module in dict.fromkeys(row[0] for row in rows):
        mine = [i for i, row in enumerate(rows) if row[0] == module]
        print(
            f"{module:<18}{len(mine):>4} answers, {len(mine) * arguments.times:>7} verdicts, {sum(i in flaky for i in mine)} flaky"
        )
    for i, counts in flaky.items():
        print(f"  {rows[i][0]}: {rows[i][2][:80]!r} got {dict(counts)}")
    print(
        json.dumps(
            {
                "answers": len(rows),
                "verdicts": len(order),
                "flaky": len(flaky),
                "seconds": round(seconds, 1),
                "threads": arguments.threads,
            }
        )
    )
    sys.exit(bool(flaky))


if __name__ == "__main__":
    main()
