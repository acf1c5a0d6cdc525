"""The result for a person: tables and examples, with rich."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from benchmarks.taxonomy.mistakes import Mistakes
from benchmarks.taxonomy.score import Score


def tables(score: Score, mistakes: Mistakes, result: Mapping[str, Any]) -> Iterator[Table]:
    yield _quality(score)
    yield _counts("what went wrong", mistakes.counts)
    yield _counts("what was proposed, by noise", result["proposed"])
    yield _counts("what dedup decided, by rule", result["dedup_rules"])
    yield _counts("cost", result["cost"])


def examples(mistakes: Mistakes) -> Iterator[str]:
    """A heading per kind of mistake, and below it the first few."""
    for kind, texts in mistakes.examples.items():
        yield f"{kind} ({mistakes.counts[kind]})"
        yield from (f"   {text}" for text in texts)


def _quality(score: Score) -> Table:
    table = Table(title="the grown graph against the truth")
    for column in ("", "right", "grown", "true", "precision", "recall", "F1"):
        table.add_column(column, justify="left" if not column else "right")
    for name in ("nodes", "edges", "reachability", "atomicity"):
        rates = getattr(score, name)
        numbers = [f"{rates.right:,}", f"{rates.grown:,}", f"{rates.true:,}"]
        table.add_row(name, *numbers, *(f"{value:.4f}" for value in rates.row().values()))
    table.caption = f"{score.cycles} cycles, {len(score.duplicates)} duplicates ({score.duplicate_rate:.2%})"
    return table


def _counts(title: str, counts: Mapping[str, Any]) -> Table:
    table = Table(title=title)
    table.add_column("")
    table.add_column("", justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count:,.4g}" if isinstance(count, float) else f"{count:,}")
    return table
