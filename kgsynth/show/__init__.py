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
from kgsynth.ledger import Caps, Spend
from kgsynth.show.growth import View, in_a_line
from kgsynth.show.live import live

EVERY_SECONDS = 5.0  # without a terminal


@contextmanager
def growing(
    max_concepts: int,
    *,
    money: Callable[[], Spend] | None = None,
    caps: Caps = Caps(),
    console: Console | None = None,
) -> Iterator[Callable[[Progress], None]]:
    """Shows what a growing run does. What it yields may be called as often as one likes, also from other threads.

    money: what the run has spent, asked at most once a second. caps: of the run, to show how much of them is used.
    console: standard error when it is not given.
    """
    console = console or Console(stderr=True)
    view = View(max_concepts, money=money, caps=caps)
    if console.is_terminal and not console.is_dumb_terminal:
        with live(console, view.picture) as changed:
            yield _both(view.saw, changed)
    else:
        yield _both(view.saw, _every(EVERY_SECONDS, lambda: in_a_line(view)))


def _both(saw: Callable[[Progress], None], show: Callable[[], None]) -> Callable[[Progress], None]:
    def progress(now: Progress) -> None:
        saw(now)
        show()

    return progress


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
def checking(name: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Shows how many answers or attacks are judged, and what came of them."""
    with _line(name, total) as line:
        yield line


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
    now = ""
    say = _every(EVERY_SECONDS, lambda: now)

    def show(done: int, facts: str, total: int = known) -> None:
        nonlocal now
        now = f"{name}: {done}/{total}, {facts}"
        say()

    return show


def _every(seconds: float, text: Callable[[], str]) -> Callable[[], None]:
    """Prints the text to standard error, not more often than that, and first after that long."""
    last = time.monotonic()

    def say() -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            print(text(), file=sys.stderr, flush=True)

    return say
