"""How well `Dedup` tells known concepts from new ones, on pairs from EDAM, from WordNet and written by hand.

Each pair is a candidate and a concept of the graph, which holds thousands of others besides: what counts is what `align`
answers there. A match with anything but the concept of the pair is wrong. Definitions come in three variants:

    same     both sides have the same definition (the hand-written pairs: each its own)
    altered  the candidate's is altered: clauses in another order, a sixth of the words dropped, the first clause only
    without  one side, by lot, has none

The judge, when it is on, answers from the labels. Pairs with even numbers were used to choose thresholds, odd ones are reported.

    python benchmarks/dedup_quality.py                 # two minutes, of which most is embedding, which is kept
    python benchmarks/dedup_quality.py --model hashing # spelling and words only
    python benchmarks/dedup_quality.py --show 20       # the first wrong answers of each variant
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.dedup_sets import Labelled, Pair, labelled
from kgsynth.concept import Concept, text_hash
from kgsynth.dedup import Alignment, Dedup, DedupConfig
from kgsynth.embed import PACKAGED, Embedder, open_embedder
from kgsynth.web.vectors import PageVectors, cache_folder

VARIANTS = ("same", "altered", "without")


class Kept:
    """An embedder whose vectors are kept on disk from one run to the next."""

    def __init__(self, embedder: Embedder) -> None:
        self.name, self.dim = embedder.name, embedder.dim
        self._vectors = PageVectors(embedder, cache_folder() / "bench")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._vectors.embed(".", texts)[1] if texts else np.zeros((0, self.dim), np.float32)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was said about one pair. judged: what a truthful judge of the uncertain neighbours would have made of it."""

    pair: Pair
    matched: str | None
    judged: str | None
    calls: int
    alignment: Alignment


def variant_of(pairs: Sequence[Pair], variant: str) -> list[Pair]:
    """The pairs with the definitions of a variant, the same ones each time."""
    return [
        _varied(pair, variant, random.Random(int(text_hash(f"{n} {variant}")[:8], 16))) for n, pair in enumerate(pairs)
    ]


def _varied(pair: Pair, variant: str, dice: random.Random) -> Pair:
    if variant == "altered":
        return replace(pair, candidate=replace(pair.candidate, definition=altered(pair.candidate.definition, dice)))
    if variant == "without":
        if int(pair.known.id[-1], 16) % 2:
            return replace(pair, known=replace(pair.known, definition=""))
        return replace(pair, candidate=replace(pair.candidate, definition=""))
    return pair


def altered(text: str, dice: random.Random) -> str:
    """Another page's version of a definition."""
    clauses = re.split(r"(?<=[,;.])\s+", text)
    how = dice.choice(("order", "drop", "first"))
    if how == "order" and len(clauses) > 1:
        return " ".join(dice.sample(clauses, len(clauses)))
    if how == "first" and len(clauses) > 1 and len(clauses[0].split()) >= 4:
        return clauses[0].rstrip(",;")
    words = text.split()
    gone = set(dice.sample(range(len(words)), max(1, len(words) // 6))) if len(words) > 1 else set()
    return " ".join(word for n, word in enumerate(words) if n not in gone)


def ask(embedder: Embedder, pairs: Sequence[Pair], distractors: Iterable[Concept], config: DedupConfig) -> list[Answer]:
    """`align` every candidate in a graph of all known sides and the distractors."""
    graph = {pair.known.id: pair.known for pair in pairs}
    graph |= {c.id: c for c in distractors if c.id not in graph}
    dedup = Dedup(embedder, config)
    dedup.add(*graph.values())
    dedup.prepare(pair.candidate for pair in pairs)
    return [_answer(pair, dedup.align(pair.candidate)) for pair in pairs]


def _answer(pair: Pair, aligned: Alignment) -> Answer:
    """The judge is asked about each uncertain neighbour until it says that one is the same."""
    judged = matched = aligned.match.id if aligned.match else None
    calls = 0
    for neighbour, _ in aligned.needs_judge:
        calls += 1
        judged = neighbour.id if pair.same and neighbour.id == pair.known.id else None
        if judged:
            break
    return Answer(pair=pair, matched=matched, judged=judged, calls=calls, alignment=aligned)


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Precision and recall with and without the judge, and how often it was asked."""
    same = sum(a.pair.same for a in answers)
    row: dict[str, Any] = {"pairs": len(answers), "same": same}
    for name, found in (("judged", [a.judged for a in answers]), ("alone", [a.matched for a in answers])):
        right = sum(f == a.pair.known.id and a.pair.same for f, a in zip(found, answers, strict=True))
        said = sum(f is not None for f in found)
        row[name] = {"precision": _share(right, said), "recall": _share(right, same), "wrong": said - right}
    row["without_model"] = _share(sum(not a.calls for a in answers), len(answers))
    row["calls"] = sum(a.calls for a in answers)
    return row


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def measure(
    embedder: Embedder, data: Labelled, config: DedupConfig = DedupConfig(), half: str = "odd"
) -> dict[str, list[Answer]]:
    """Variant -> answers, to one half of the pairs or "both"."""
    return {
        variant: [
            answer
            for n, answer in enumerate(ask(embedder, variant_of(data.pairs, variant), data.distractors, config))
            if half == "both" or n % 2 == (half == "odd")
        ]
        for variant in VARIANTS
    }


def grouped(answers: Sequence[Answer]) -> dict[str, dict[str, Any]]:
    """Figures by source, and by source and kind."""
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.pair.source].append(answer)
        groups[f"{answer.pair.source}: {answer.pair.kind}"].append(answer)
    return {name: figures(groups[name]) for name in sorted(groups)}


def show_table(found: dict[str, list[Answer]], model: str) -> None:
    from rich.console import Console
    from rich.table import Table

    for variant, answers in found.items():
        table = Table(title=f"definitions: {variant}; {model}")
        for column in (
            "pairs",
            "number",
            "precision",
            "recall",
            "wrong",
            "no model asked",
            "alone: precision",
            "recall",
            "wrong",
        ):
            table.add_column(column, justify="left" if column == "pairs" else "right")
        for name, row in {**grouped(answers), "all": figures(answers)}.items():
            judged, alone = (
                [_said(row[who][key]) for key in ("precision", "recall", "wrong")] for who in ("judged", "alone")
            )
            table.add_row(name, str(row["pairs"]), *judged, _said(row["without_model"]), *alone)
        Console(width=140).print(table)


def _said(value: float | int | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def show_wrong(answers: Sequence[Answer], most: int) -> None:
    bad = [
        a
        for a in answers
        if a.calls or (a.matched is None) == a.pair.same or (a.matched and a.matched != a.pair.known.id)
    ]
    kinds: dict[str, int] = defaultdict(int)
    for answer in bad:
        how = "asked" if answer.calls else "missed" if answer.matched is None else "wrong"
        kinds[how] += 1
        if kinds[how] <= most:
            evidence = ", ".join(f"{k} {v}" for k, v in answer.alignment.decision.evidence)
            pair = answer.pair
            print(f"{how} {pair.source} {pair.kind}: {pair.candidate.name!r} ({pair.candidate.definition[:90]})"
                  f" / {pair.known.name!r} ({pair.known.definition[:90]}): {answer.alignment.decision.outcome}: {evidence}")  # fmt: skip


def plot(found: dict[str, list[Answer]], path: Path) -> None:
    """Precision, recall and share decided without a model, by source and variant."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4 * len(found), 3.2), sharey=True, layout="constrained")
    for axis, (variant, answers) in zip(np.atleast_1d(axes), found.items(), strict=True):
        rows = {n: r for n, r in grouped(answers).items() if ":" not in n} | {"all": figures(answers)}
        values = {
            "precision": [r["judged"]["precision"] or 0 for r in rows.values()],
            "recall, judged": [r["judged"]["recall"] or 0 for r in rows.values()],
            "recall, alone": [r["alone"]["recall"] or 0 for r in rows.values()],
            "no model asked": [r["without_model"] or 0 for r in rows.values()],
        }
        for n, (label, heights) in enumerate(values.items()):
            axis.bar(np.arange(len(rows)) + 0.2 * n, heights, 0.2, label=label)
        axis.set_xticks(np.arange(len(rows)) + 0.3, list(rows))
        axis.set_title(f"definitions: {variant}")
        axis.axhline(0.95, color="grey", linewidth=0.7)
    np.atleast_1d(axes)[0].legend(loc="lower left", fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", default=PACKAGED, help="embedding model (default: %(default)s)")
    parser.add_argument(
        "--half", choices=("odd", "even", "both"), default="odd", help="which pairs (default: %(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=600, help="synonyms taken from each taxonomy (default: %(default)s)"
    )
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N answers of each way to be wrong")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    args = parser.parse_args()
    started = time.perf_counter()
    data = labelled(synonyms=args.pairs, others=args.pairs // 3)
    found = measure(Kept(open_embedder(args.model)), data, half=args.half)
    show_table(found, args.model)
    for answers in found.values() if args.show else ():
        show_wrong(answers, args.show)
    if args.plot:
        plot(found, args.plot)
    graph = len({p.known.id for p in data.pairs} | {c.id for c in data.distractors})
    report = {v: figures(a) | {"sources": grouped(a)} for v, a in found.items()}
    print(json.dumps({"model": args.model, "half": args.half, "pairs": len(data.pairs), "graph": graph, **report,
                      "seconds": round(time.perf_counter() - started, 1)}))  # fmt: skip


if __name__ == "__main__":
    main()
