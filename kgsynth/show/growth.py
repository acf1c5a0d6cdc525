"""What `kgsynth grow` shows while it is at work.

    grow      ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╸━━━━━━━━━━━━━━━  1,234 of 2,000 concepts
    frontier  87 waiting · 16 in work · 412 done
    yield     3.0 per researched · 1,300 edges · 812 pages · 12 refused · 34 atomic
    pace      41 researched/min · 123 added/min · roughly 12 min left
    money     1,204 calls · 3.1M tokens · $0.8312 · 17% of max_usd = 5.0
    errors    timeout 12 · robots 5 · 3 attempts failed

    binary search trees                               read        34 s
    ...
    and 88 more: 40 search, 30 read, 18 propose

Names come from web pages: nothing in them is markup, and nothing in them reaches the terminal as a control character.
"""

from __future__ import annotations

import contextlib
import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kgsynth.errors import KgsynthError
from kgsynth.grow.progress import AtWork, Progress
from kgsynth.ledger import Caps, Spend

ROWS = 12  # agents shown at most
WINDOW_S = 120.0  # over which rates are taken
SAMPLE_S = 2.0  # between two samples of it
MONEY_S = 1.0  # between two looks into the ledger
WIDTH = 80  # columns that are used at most
ABOVE = 9  # lines besides those of the agents


@dataclass(frozen=True, kw_only=True)
class Sample:
    at: float
    done: int  # concepts researched, by all workers
    known: int  # concepts in the frontier, done or not
    concepts: int
    used: float  # share of the nearest cap


class View:
    """The last progress seen, and how things went over the last two minutes."""

    def __init__(
        self,
        max_concepts: int,
        *,
        money: Callable[[], Spend] | None = None,
        caps: Caps = Caps(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_concepts, self.caps = max_concepts, caps
        self.now: Progress | None = None
        self._money, self._clock = money, clock
        self._spent, self._asked_at = Spend(), -MONEY_S
        self._began, self._seen_at = clock(), clock()
        self._samples: deque[Sample] = deque()

    def saw(self, now: Progress) -> None:
        """Take a progress in; cheap."""
        self.now, self._seen_at = now, self._clock()
        if not self._samples or self._seen_at - self._samples[-1].at >= SAMPLE_S:
            self._sample(now)

    def _sample(self, now: Progress) -> None:
        known = now.waiting + now.leased + now.done
        sample = Sample(at=self._seen_at, done=now.done, known=known, concepts=now.concepts, used=self.used()[0])
        self._samples.append(sample)
        while self._samples[0].at < self._seen_at - WINDOW_S:
            self._samples.popleft()

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    @property
    def since_seen(self) -> float:
        return self._clock() - self._seen_at

    def spent(self) -> Spend:
        """By the run so far, as of the last second; what was known before when the ledger cannot be read."""
        if self._money and self._clock() - self._asked_at >= MONEY_S:
            self._asked_at = self._clock()
            with contextlib.suppress(KgsynthError):
                self._spent = self._money()
        return self._spent

    def used(self) -> tuple[float, str]:
        """The cap of which most is used, as (share, "max_usd = 5.0"); (0, "") without caps."""
        spent = self.spent()
        pairs = (("max_usd", spent.usd), ("max_calls", spent.calls), ("max_tokens", spent.tokens))
        caps = [(used / cap, f"{name} = {cap:,}") for name, used in pairs if (cap := getattr(self.caps, name))]
        return max(caps, default=(0.0, ""))

    def rates(self) -> tuple[float, float]:
        """(researched, added) per minute over the last two minutes; 0 before there are two samples."""
        if len(self._samples) < 2:
            return 0.0, 0.0
        first, last = self._samples[0], self._samples[-1]
        minutes = (last.at - first.at) / 60
        return (last.done - first.done) / minutes, (last.concepts - first.concepts) / minutes

    def minutes_left(self) -> float | None:
        """Until nothing waits any more, if all goes on as in the last two minutes; None when that cannot be said.

        Each researched concept adds some to the frontier. That ends when the graph is full, or goes on, when fewer are added
        than researched, until the frontier is empty; or a cap is reached before.
        """
        rate, _ = self.rates()
        if not rate:
            return None
        first, last = self._samples[0], self._samples[-1]
        researched = last.done - first.done
        added, queued = (last.concepts - first.concepts) / researched, (last.known - first.known) / researched
        waiting, room = last.known - last.done, max(0, self.max_concepts - last.concepts)
        ends = [waiting + queued * room / added] if added > 0 else []
        if queued < 1:
            ends.append(waiting / (1 - max(0.0, queued)))
        if last.used > first.used:
            ends.append((1 - last.used) / (last.used - first.used) * researched)
        return min(ends) / rate if ends else None

    def picture(self, width: int, height: int) -> RenderableType:
        """At most `width` columns and `height` lines; the newest numbers."""
        now, width = self.now, min(width, WIDTH)
        if now is None:
            return Text(f"grow      getting ready, {duration(self.seconds)}", "dim")
        facts = Table.grid(padding=(0, 2, 0, 0))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="fold")
        facts.add_row("grow", self._bar(now, max(10, width - 10)))
        for label, parts in _facts(self, now):
            facts.add_row(label, Text(" · ".join(parts), "yellow" if label == "errors" else ""))
        rows = min(ROWS, height - ABOVE)
        return Group(facts, Text(), *_agents(now.agents, width, rows, self.since_seen))

    def _bar(self, now: Progress, width: int) -> RenderableType:
        total = max(self.max_concepts, now.concepts)
        text = f"{now.concepts:,} of {self.max_concepts:,} concepts"
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_row(ProgressBar(total=total, completed=now.concepts, width=max(4, width - len(text) - 2)), text)
        return line


def in_a_line(view: View) -> str:
    """Everything but the agents, for a log."""
    now = view.now
    if now is None:
        return "grow: getting ready"
    parts = [part for label, parts in _facts(view, now) for part in parts]
    last = f"; last: {printable(now.last)}" if now.last else ""
    return f"grow: {now.concepts:,}/{view.max_concepts:,} concepts, {', '.join(parts)}{last}"


def _facts(view: View, now: Progress) -> list[tuple[str, list[str]]]:
    done = now.tally
    lines = [
        ("frontier", [f"{now.waiting:,} waiting", f"{now.leased:,} in work", f"{now.done:,} done"]),
        ("yield", _yield(now)),
        ("pace", _pace(view)),
        ("money", _money(view)),
        ("errors", _errors(done.errors, done.failed)),
        ("shared", _counted(("stale", done.stale), ("overtaken", done.overtaken))),
    ]
    return [(label, parts) for label, parts in lines if parts]


def _yield(now: Progress) -> list[str]:
    done = now.tally
    each = f"{done.added / done.researched:.1f} per researched" if done.researched else "nothing researched yet"
    counts = [f"{done.linked:,} edges", f"{done.pages:,} pages", f"{done.refused:,} refused", f"{done.atomic:,} atomic"]
    return [each, *counts]


def _pace(view: View) -> list[str]:
    researched, added = view.rates()
    parts = [f"{researched:,.0f} researched/min", f"{added:,.0f} added/min"] if researched else []
    left = view.minutes_left()
    return [*parts, f"roughly {_rough(left)} left" if left is not None else f"{duration(view.seconds)} so far"]


def _money(view: View) -> list[str]:
    spent = view.spent()
    if not (spent.calls or spent.usd):
        return []
    share, cap = view.used()
    usd = f"${spent.usd:,.4f}" if spent.usd else "no price known"
    return [f"{spent.calls:,} calls", f"{short(spent.tokens)} tokens", usd, *([f"{share:.0%} of {cap}"] if cap else [])]


def _errors(errors: Mapping[str, int], failed: int) -> list[str]:
    ranked = sorted(errors.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{printable(cause)} {n:,}" for cause, n in ranked[:8]]
    more = sum(n for _, n in ranked[8:])
    return [*shown, *_counted(("others", more), ("attempts failed", failed))]


def _counted(*counts: tuple[str, int]) -> list[str]:
    return [f"{n:,} {what}" for what, n in counts if n]


def _agents(agents: tuple[AtWork, ...], width: int, rows: int, later: float) -> list[RenderableType]:
    """The agents that are at work longest; the others by step."""
    if len(agents) > rows:
        rows -= 1  # for "and ... more"
    shown = heapq.nlargest(max(0, rows), agents, key=lambda agent: agent.seconds)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=max(8, min(48, width - 22)), no_wrap=True, overflow="ellipsis")
    table.add_column(style="cyan", no_wrap=True, min_width=8)
    table.add_column(style="dim", no_wrap=True, justify="right")
    for agent in shown:
        table.add_row(Text(printable(agent.concept)), agent.step, duration(agent.seconds + later))
    if len(agents) <= len(shown):
        return [table] if shown else []
    rest = Counter(agent.step for agent in agents)
    rest.subtract(agent.step for agent in shown)
    steps = ", ".join(f"{n:,} {step}" for step, n in rest.most_common() if n)
    words = Text(f"and {len(agents) - len(shown):,} more: {steps}", "dim", no_wrap=True, overflow="ellipsis")
    return [*([table] if shown else []), words]


def printable(text: str) -> str:
    """Without what a terminal would obey: escapes, line breaks, changes of direction."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def duration(seconds: float) -> str:
    """8 -> "8 s"; 75 -> "1:15 min"; 7300 -> "2:01 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60:,}:{minutes % 60:02} h"


def _rough(minutes: float) -> str:
    return "a minute" if minutes < 1.5 else f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:,.0f} h"


def short(number: float) -> str:
    """1234567 -> "1.2M"."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}"
    return f"{number:,.0f}"
