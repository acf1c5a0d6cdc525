"""`kgsynth grow` with its workers, killed with -9 at random moments and started again until the graph is grown.

A moment is a number of requests that the model's server has seen, and a little random time after it: so the kills are spread over
the whole of the work, however slow the machine is. Some follow at once upon the one before, and hit a run that is starting.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.growers.world import Asked, Recipe
from kgsynth.grow.workers import DEATHS, PATIENCE
from kgsynth.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
VICTIMS = {"worker": 10, "parent": 5, "all": 5}  # how often, in proportion
AT_ONCE = 0.25  # of the kills follow upon the one before
SOON = 1.0  # seconds
LATEST = 0.95  # of the expected requests
POLL = 0.05  # seconds
ENOUGH = 5  # failures


@dataclass(kw_only=True)
class Story:
    """What happened."""

    kills: Counter[str] = field(default_factory=Counter)  # victim -> how often
    starts: int = 0
    failures: list[str] = field(default_factory=list)  # ends of the command that no kill explains
    cap: int | None = None
    calls_at_cap: int | None = None  # by the ledger, when the command had ended because its budget was reached
    seen_at_cap: int | None = None  # by the server
    outlived: float = 0.0  # seconds, the longest that a worker lived after its parent was killed
    orphans: int = 0  # workers that were there at the end
    tracebacks: int = 0  # printed by the command and its workers
    seconds: float = 0.0


def grow_calmly(recipe: Recipe) -> None:
    """Run the command once and leave it alone."""
    if code := start(recipe).wait():
        raise SystemExit(f"the undisturbed run ended with {code}: {last_words(recipe)}")


class Killer:
    """Grows under kills: first up to a cap on calls, if one is given, then without it to the end."""

    def __init__(
        self, asked: Asked, recipe: Recipe, dice: random.Random, *, expected: int, cap: int | None, patience: float,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        """expected: requests to the model in all. patience: seconds after which the run is taken to hang."""
        self.asked, self.recipe, self.dice, self.say = asked, recipe, dice, say
        self.expected, self.cap, self.story = expected, cap, Story(cap=cap)
        self.deserted: dict[int, float] = {}  # worker whose parent was killed -> when
        self.finished = False
        self.begun = time.monotonic()
        self.until = self.begun + patience

    def run(self, kills: int) -> Story:
        self._start()
        try:
            for number, at in enumerate(self._moments(kills), 1):
                if not (self._come_to(lambda at=at: self.asked.seen >= at) and self._come_to(self._soon())):
                    break
                self.say(f"kill {number} of {kills}, after {self.asked.seen} requests: {self._strike()}")
            self._come_to(lambda: False)
        finally:
            self._end()
        return self.story

    def _moments(self, kills: int) -> Sequence[int]:
        """Requests seen before each kill; 0 for one that follows upon another."""
        last = max(1, int(LATEST * self.expected))
        moments = sorted(self.dice.randrange(last) for _ in range(kills))
        return [0 if number and self.dice.random() < AT_ONCE else at for number, at in enumerate(moments)]

    def _soon(self) -> Callable[[], bool]:
        end = time.monotonic() + self.dice.uniform(0, SOON)
        return lambda: time.monotonic() >= end

    def _come_to(self, there: Callable[[], bool]) -> bool:
        """Look after the command until we are there; False when it has finished its work before."""
        while not self.finished and not there():
            self._tend()
            time.sleep(POLL)
        return not self.finished

    # the command

    def _start(self) -> None:
        capped = () if self.cap is None else (f"llm.max_calls={self.cap}",)
        self.process, self.hits = start(self.recipe, capped), 0  # hits: on workers of this process
        self.story.starts += 1

    def _tend(self) -> None:
        """Start it again when it has ended, unless its work is done."""
        self._watch_deserted()
        if time.monotonic() > self.until:
            self._fail(f"it hangs: {last_words(self.recipe)}", ENOUGH)
        elif (code := self.process.poll()) is not None:
            self._ended(code)

    def _ended(self, code: int) -> None:
        with self.recipe.store() as store:
            left = store.frontier()["waiting"] + store.frontier()["leased"]
        if code == 0 and not left:
            self.finished = True
            return
        if code == 0 and self.cap is not None:
            self.story.calls_at_cap, self.story.seen_at_cap = self._paid(), self.asked.seen
            self.say(f"the budget is reached after {self.story.calls_at_cap} calls; it is lifted")
            self.cap = None
        elif code == 0:
            self._fail(f"it says that it is done, but {left} concepts are left")
        elif self.hits < DEATHS:
            self._fail(f"it ended with {code}: {last_words(self.recipe)}")
        if not self.finished:
            self._start()

    def _paid(self) -> int:
        return Ledger(self.recipe.ledger, readonly=True).total.calls

    def _fail(self, what: str, times: int = 1) -> None:
        self.say(what)
        self.story.failures.append(what)
        self.finished = len(self.story.failures) * times >= ENOUGH

    def _end(self) -> None:
        """See what is left, and leave nothing behind."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        end = time.monotonic() + PATIENCE
        while set(workers(self.recipe)) and time.monotonic() < end:
            time.sleep(POLL)
        self._watch_deserted()
        left = workers(self.recipe)
        self.story.orphans = len(left)
        self.story.tracebacks = (self.recipe.home / "log").read_bytes().count(b"Traceback (most recent call last)")
        for pid in left:
            _kill(pid)
        self.story.seconds = time.monotonic() - self.begun

    # killing

    def _strike(self) -> str:
        """Kill somebody; the command is started again if that was its parent. Returns who it was."""
        mine = [pid for pid, parent in workers(self.recipe).items() if parent == self.process.pid]
        victim = self.dice.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        if victim == "worker" and mine:
            _kill(self.dice.choice(mine))
            self.hits += 1
        else:
            victim = "all" if victim == "all" else "parent"
            self._kill_command(all_of_it=victim == "all", workers_now=mine)
        self.story.kills[victim] += 1
        return victim

    def _kill_command(self, *, all_of_it: bool, workers_now: Sequence[int]) -> None:
        """Half of the time the command is started again while the workers of the killed one are still there."""
        if all_of_it:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            _kill(self.process.pid)
            self.deserted |= dict.fromkeys(workers_now, time.monotonic())
        self.process.wait()
        if self.dice.random() < 0.5:
            end = time.monotonic() + PATIENCE
            while self.deserted and time.monotonic() < end:
                self._watch_deserted()
                time.sleep(POLL)
        self._start()

    def _watch_deserted(self) -> None:
        if self.deserted:
            there = workers(self.recipe)
            for pid in [pid for pid in self.deserted if pid not in there]:
                self.story.outlived = max(self.story.outlived, time.monotonic() - self.deserted.pop(pid))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, signal.SIGKILL)


def start(recipe: Recipe, overrides: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """`kgsynth grow`, in a process group of its own, with caches of its own."""
    command = [sys.executable, "-m", "kgsynth.cli", "grow", str(recipe.file), *overrides]
    around = {**os.environ, "XDG_CACHE_HOME": str(recipe.home / "cache"), "OMP_NUM_THREADS": "1"}
    with (recipe.home / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env=around, stdout=log, stderr=log, start_new_session=True)


def last_words(recipe: Recipe) -> str:
    return (recipe.home / "log").read_text(errors="replace").strip()[-500:]


def workers(recipe: Recipe) -> dict[int, int]:
    """Process ids of a run's workers, with those of their parents. Linux: proc(5)."""
    return dict(_workers(str(recipe.home / "run").encode()))


def _workers(folder: bytes) -> Iterator[tuple[int, int]]:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"kgsynth.worker" in words and folder in words:
                yield int(process.name), int((process / "stat").read_text().rpartition(")")[2].split()[1])
