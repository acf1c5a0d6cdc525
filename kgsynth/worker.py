"""One worker of a run that grows in several processes: `python -m kgsynth.worker RUN_FOLDER [--offline] NUMBER`.

Started by `kgsynth grow` (`[grow] processes`), or by hand on another machine that sees the same store and a run folder with the
same config.toml. It reads the resolved configuration of the run folder, works until the frontier is empty, says what it does in
lines of JSON, and stops when its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgsynth.errors import KgsynthError
from kgsynth.grow.progress import GrowReport, Progress
from kgsynth.grow.workers import PATIENCE, owner_of, say_error, say_progress, say_report
from kgsynth.run import RunFolder


def work(folder: str, number: int, offline: bool, on_progress: Callable[[Progress], None]) -> GrowReport:
    """Grow the graph of a run beside the run's other workers. Raises what `grow` raises."""
    from kgsynth.recipe import load_recipe
    from kgsynth.stages import Run, grow_here  # takes seconds, in which the parent may go away

    recipe = load_recipe(Path(folder) / "config.toml")
    run = Run(recipe, RunFolder(folder), offline=offline)
    try:
        work = grow_here(run, on_progress, owner=owner_of(run.owner, number), patient=True)
        return asyncio.run(_stoppable(work))
    finally:
        run.close()


async def _stoppable(work: Coroutine[Any, Any, GrowReport]) -> GrowReport:
    """In a process of ours SIGTERM cancels it, instead of interrupting the driver or the file that is in use right then."""
    if signal.getsignal(signal.SIGTERM) is _interrupted and (task := asyncio.current_task()):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


def report_of(folder: str, offline: bool, number: int) -> dict[str, Any]:
    """What `work` did, as plain data: for workers that are not processes of ours."""
    return asdict(work(folder, number, offline, lambda _: None))


def main() -> int:
    args = _parser().parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the parent decides
    signal.signal(signal.SIGTERM, _interrupted)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        say_report(work(args.folder, args.number, args.offline, _show))
    except KgsynthError as error:
        say_error(error)
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kgsynth.worker", description=__doc__)
    parser.add_argument("folder", help="the run's folder, with its config.toml")
    parser.add_argument("--offline", action="store_true", help="answer from the caches only")
    parser.add_argument("number", type=int, help="which of the run's workers this is, from 0; two must not share one")
    return parser


def _show(progress: Progress) -> None:
    """Nobody listens once the parent is gone, and then we are told to stop anyway."""
    with contextlib.suppress(BrokenPipeError):
        say_progress(progress)


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def _stop_with_parent() -> None:
    """Read standard input to its end, then have the main thread give its leases back, or at the latest end without that."""
    while os.read(0, 1024):  # not sys.stdin, whose lock a thread must not hold when the interpreter ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE / 2)
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
