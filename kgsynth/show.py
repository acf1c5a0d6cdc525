"""Progress on a terminal; on anything else a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from kgsynth.grow.progress import Progress

EVERY_SECONDS = 5.0  # without a terminal


@contextmanager
def growing(max_concepts: int) -> Iterator[Callable[[Progress], None]]:
    """Shows concepts and what waits, while the graph grows."""
    with _line("grow", max_concepts) as line:

        def show(now: Progress) -> None:
            facts = (
                f"{now.tally.linked} edges added, {now.tally.refused} refused, {now.waiting + now.leased} to research"
            )
            line(now.concepts, f"{facts}  {now.last}")

        yield show


@contextmanager
def synthesizing(wanted: int) -> Iterator[Callable[[int, int, int], None]]:
    """Shows kept and rejected tasks."""
    with _line("synthesize", wanted) as line:

        def show(kept: int, wanted: int, rejected: int) -> None:
            line(kept, f"{rejected} rejected")

        yield show


@contextmanager
def reading(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Shows rows of a graph that are copied or looked at, and how many a second. How many there are is known roughly."""
    started = time.monotonic()
    with _line(name, 0) as line:

        def show(kind: str, rows: int, total: int) -> None:
            line(rows, f"{kind}  {rows / max(time.monotonic() - started, 0.001):,.0f} rows/s", total)

        yield show


@contextmanager
def _line(name: str, total: int) -> Iterator[Callable[..., None]]:
    """A function of (done, facts) and, where it was not known before, the total."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain(name, total)
        return
    columns = (
        SpinnerColumn(), TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("{task.fields[facts]}", markup=False),
    )  # fmt: skip
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=total, facts="")
        yield lambda done, facts, total=total: bar.update(task, completed=done, facts=facts, total=max(done, total))


def _plain(name: str, known: int) -> Callable[..., None]:
    last = time.monotonic()

    def show(done: int, facts: str, total: int = known) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY_SECONDS:
            last = time.monotonic()
            print(f"{name}: {done}/{total}, {facts}", file=sys.stderr)

    return show
