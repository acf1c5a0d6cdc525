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
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path

from kgsynth.sandbox import open_sandbox

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.fair import Case, load, repeated

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


def main() -> None:
    arguments = _arguments()
    rng = random.Random(arguments.seed)
    rows = drawn(arguments.answers, rng, arguments.modules)
    start = time.perf_counter()
    with closing(open_sandbox()) as sandbox:
        seen = repeated([row[1:] for row in rows], arguments.times, arguments.threads, sandbox, rng)
    figures = {
        "answers": len(rows),
        "verdicts": len(rows) * arguments.times,
        "flaky": sum(len(kinds) > 1 for kinds in seen),
        "seconds": round(time.perf_counter() - start, 1),
        "threads": arguments.threads,
    }
    _print(rows, seen)
    print(json.dumps(figures))
    sys.exit(bool(figures["flaky"]))


def _print(rows: Sequence[Row], seen: Sequence[Counter[tuple[float, str]]]) -> None:
    for module in dict.fromkeys(row[0] for row in rows):
        mine = [kinds for row, kinds in zip(rows, seen, strict=True) if row[0] == module]
        flaky = sum(len(kinds) > 1 for kinds in mine)
        print(f"{module:<18}{len(mine):>4} answers, {sum(map(Counter.total, mine)):>7} verdicts, {flaky} flaky")
    for (module, _, answer), kinds in zip(rows, seen, strict=True):
        if len(kinds) > 1:
            print(f"  {module}: {answer[:80]!r} got {dict(kinds)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=2, help="right ones and wrong ones, per module")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument(
        "--modules", nargs="+", default=(), help="of tests/fair, for example text number; all by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
