"""Several processes that grow one graph. Only the store coordinates them; this starts them, listens, and ends them.

A worker is any command that prints one line of JSON per message (`Message`) and stops when its standard input ends. So a
worker outlives its parent by a moment only, whatever the parent dies of. One that is killed leaves leases behind; they are given
back at once, and another worker takes its number.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kgsynth import errors
from kgsynth.errors import KgsynthError, RunError
from kgsynth.grow.progress import AtWork, GrowReport, Progress, Tally, merged
from kgsynth.store import GraphStore

DEATHS = 3  # of one number without a concept researched in between, before the run ends
PATIENCE = 20.0  # seconds that a worker has to stop
LINE = 1 << 20  # bytes of a message at most

Message = Mapping[str, Any]  # {"progress": ...} or, as the last one, {"report": ...} or {"error": ..., "message": ...}


def owner_of(run: str, number: int) -> str:
    return f"{run}/{number}"


async def grow_in_processes(
    command: Sequence[str], n: int, store: GraphStore, run: str, on_progress: Callable[[Progress], None]
) -> GrowReport:
    """Run n workers, `command` followed by the worker's number, until all of them have ended.

    Raises the error that a worker ended with, and RunError when one dies again and again; the others are stopped first.
    """
    crew = _Crew(command, n, store, run, on_progress)
    tasks = [asyncio.ensure_future(crew.keep(number)) for number in range(n)]
    try:
        return merged(await asyncio.gather(*tasks))
    finally:
        crew.stop()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Crew:
    def __init__(
        self, command: Sequence[str], n: int, store: GraphStore, run: str, show: Callable[[Progress], None]
    ) -> None:
        self.command, self.store, self.run, self.show = list(command), store, run, show
        self.running: dict[int, asyncio.subprocess.Process] = {}
        self.stopping = False
        self.now: dict[int, Progress] = {}
        self.before = [Tally()] * n  # of workers with this number that were killed
        self.began = time.monotonic()

    async def keep(self, number: int) -> GrowReport:
        """Start the worker of this number, and another one whenever it is killed."""
        deaths, done = 0, 0
        while True:
            last, code = await self._once(number)
            if "report" in last:
                report = to_report(last["report"])
                report.tally += self.before[number]
                return report
            if "error" in last:
                self.stop()
                raise _raised(last)
            if self.stopping:
                return GrowReport(tally=self._lost(number), stopped="another worker failed")
            self.store.release(owner_of(self.run, number))
            self.before[number] = self._lost(number)
            deaths = 1 if self.before[number].researched > done else deaths + 1
            done = self.before[number].researched
            if deaths >= DEATHS:
                self.stop()
                raise RunError(f"worker {number} died {deaths} times without a concept researched, last with {code}")

    def _lost(self, number: int) -> Tally:
        gone = self.now.pop(number, None)
        return self.before[number] + (gone.tally if gone else Tally())

    async def _once(self, number: int) -> tuple[Message, int]:
        """(the last message, exit code) of one process."""
        process = await asyncio.create_subprocess_exec(
            *self.command, str(number), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE
        )
        self.running[number] = process
        if self.stopping:  # since it was asked for
            self.stop()
        try:
            return await self._listen(number, process), await process.wait()
        finally:
            await _ended(process)
            del self.running[number]

    async def _listen(self, number: int, process: asyncio.subprocess.Process) -> Message:
        assert process.stdout
        last: Message = {}
        async for line in process.stdout:
            message = _message(line)
            last = message or last
            if "progress" in message:
                self.now[number] = to_progress(message["progress"])
                self._show(self.now[number])
        return last

    def _show(self, newest: Progress) -> None:
        tallies = [*self.before, *(p.tally for p in self.now.values())]
        agents = tuple(agent for p in self.now.values() for agent in p.agents)
        seconds = time.monotonic() - self.began
        self.show(replace(newest, tally=sum(tallies, Tally()), agents=agents, seconds=seconds))

    def stop(self) -> None:
        self.stopping = True
        for process in self.running.values():
            if process.stdin:
                process.stdin.close()


def _message(line: bytes) -> Message:
    """Empty for a line that is none: torn by a kill, or printed by a library."""
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Ask a worker to stop, then make it."""
    if process.stdin:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        process.kill()
        await process.wait()


def _raised(message: Message) -> KgsynthError:
    kind = getattr(errors, str(message["error"]), RunError)
    known = isinstance(kind, type) and issubclass(kind, KgsynthError)
    try:
        return kind(message["message"]) if known else RunError(message["message"])
    except TypeError:  # a type that is made from more than a sentence
        return RunError(message["message"])


# messages


def say(message: Message) -> None:
    """Called in a worker: one line on standard output."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def say_progress(progress: Progress) -> None:
    say({"progress": asdict(progress)})


def say_report(report: GrowReport) -> None:
    say({"report": asdict(report)})


def say_error(error: KgsynthError) -> None:
    say({"error": type(error).__name__, "message": str(error)})


def to_progress(row: Mapping[str, Any]) -> Progress:
    agents = tuple(AtWork(**agent) for agent in row["agents"])
    return Progress(**{**row, "tally": Tally(**row["tally"]), "agents": agents})


def to_report(row: Mapping[str, Any]) -> GrowReport:
    return GrowReport(**{**row, "tally": Tally(**row["tally"])})
