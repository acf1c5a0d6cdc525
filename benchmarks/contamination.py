"""How well the screen finds benchmark items in a task set: planted copies of four kinds, honest tasks, hard negatives.

    python benchmarks/contamination.py TASKS.jsonl [--each 50] [--items 10000] [--embed hashing] [--seed 0]

TASKS.jsonl is a set of over 2,000 tasks that `kgsynth synthesize` made. Near-duplicates are dropped first, then a tenth is held
out: these tasks, of the same templates and concepts but with other questions, are in the benchmark and must not be found in
the others. Copies of `--each` tasks of a kind go in too, and questions of reasoning-gym until there are `--items`.
Prints recall by kind, false alarms, and CPU seconds; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from kgsynth.embed import open_embedder
from kgsynth.rephrase import reworded
from kgsynth.screen import Screen, ScreenConfig
from kgsynth.screen.text import content, numberless
from kgsynth.task import Task, TaskSet

NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]\d)")
GAMES = (
    "leg_counting", "chain_sum", "basic_arithmetic", "gsm_symbolic", "word_sorting", "spell_backward", "family_relationships",
    "knights_knaves", "calendar_arithmetic", "time_intervals", "syllogism", "propositional_logic", "letter_counting",
    "number_sorting", "lcm", "gcd", "fraction_simplification", "base_conversion", "caesar_cipher", "coin_flip",
)  # fmt: skip


def reordered(text: str, rng: random.Random) -> str:
    """Sentences, lines and options in another order."""
    parts = re.split(r"\n+|(?<=[.?!])\s+(?=[A-Z])", text)
    rng.shuffle(parts)
    return "\n".join(parts)


def renumbered(text: str, rng: random.Random) -> str:
    return NUMBER.sub(lambda match: str(int(match[0]) + rng.randint(1, 60)), text)


COPIES: dict[str, Callable[[str, random.Random], str]] = {
    "verbatim": lambda text, rng: text,
    "reordered": reordered,
    "renumbered": renumbered,
    "paraphrased": lambda text, rng: reworded(text, rng.randrange(1 << 30)),
}


def distinct(tasks: TaskSet) -> list[Task]:
    """Without near-duplicates, and without tasks that differ in numbers only: the one is a renumbered copy of the other."""
    screen, kept, seen = Screen(ScreenConfig()), [], set()
    for task in tasks:
        key = numberless(task.prompt.casefold())
        if key not in seen and screen.finding(task) is None:
            screen.add(task)
            kept.append(task)
        seen.add(key)
    return kept


def questions(count: int, seed: int) -> Iterator[str]:
    """Of reasoning-gym, the same number of each game."""
    import reasoning_gym

    each = -(-count // len(GAMES))
    asked = (row["question"] for game in GAMES for row in reasoning_gym.create_dataset(game, size=each, seed=seed))
    yield from (question for question, _ in zip(asked, range(count), strict=False))


def planted(tasks: list[Task], each: int, rng: random.Random) -> tuple[dict[str, str], list[str]]:
    """(task id -> kind, the copies)."""
    kinds: dict[str, str] = {}
    rows: list[str] = []
    for kind, copy in COPIES.items():
        able = [t for t in tasks if t.id not in kinds and (kind != "renumbered" or NUMBER.search(content(t.prompt)))]
        for task in rng.sample(able, each):
            kinds[task.id] = kind
            rows.append(copy(task.prompt, rng))
    return kinds, rows


def measure(
    tasks: list[Task], kinds: dict[str, str], file: Path, model: str
) -> tuple[Counter[str], Counter[str], float]:
    """(found by kind, false alarms by measure, CPU seconds)."""
    start = time.process_time()
    config = ScreenConfig(benchmarks=(f"{file}:question",))
    screen = Screen(config, open_embedder(model) if model else None)
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for task in tasks:
        finding = screen.finding(task)
        if finding is None:
            screen.add(task)
        elif finding.check == "contaminated":
            found[kinds.get(task.id, "honest")] += 1
            if task.id not in kinds:
                false[finding.evidence["measure"]] += 1
    return found, false, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--embed", default="hashing")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    kept = distinct(TaskSet.load(args.tasks))
    rng.shuffle(kept)
    held, ours = kept[: len(kept) // 10], kept[len(kept) // 10 :]
    kinds, rows = planted(ours, args.each, rng)
    rows += [task.prompt for task in held]
    rows += questions(args.items - len(rows), args.seed)
    rng.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.jsonl"
        file.write_text("".join(json.dumps({"question": row}) + "\n" for row in rows), encoding="utf-8")
        found, false, seconds = measure(ours, kinds, file, args.embed)
    honest = len(ours) - len(kinds)
    for kind in COPIES:
        print(f"{kind:12} {found[kind]:3} of {args.each} found")
    print(f"{'honest':12} {found['honest']:3} of {honest} found ({found['honest'] / honest:.2%}): {dict(false)}")
    print(json.dumps({
        "tasks": len(ours), "items": len(rows), "hard_negatives": len(held), "embed": args.embed,
        "recall": {kind: found[kind] / args.each for kind in COPIES}, "false_alarms": found["honest"] / honest,
        "cpu_seconds": round(seconds, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
