"""Watch one sandboxed command to its end: collect bounded output, keep it within its time and memory.

Every wait here is bounded. A process that closes its output, floods it, or leaves a child behind that holds it
cannot make `supervise` hang.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgsynth.sandbox import Limits

GRACE_SECONDS = 2.0  # for the kernel to tear a killed box down and for its last output
TICK_SECONDS = 0.05  # between two looks at the memory in use


@dataclass(kw_only=True)
class Capture:
    """The first `limit` bytes of a stream; the rest is read and dropped, so that the writer never blocks."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def read(self, fd: int) -> bool:
        """Take what is ready. False at the end of the stream."""
        chunk = os.read(fd, 1 << 16)
        room = self.limit - len(self.data)
        self.data += chunk[:room]
        self.truncated |= len(chunk) > room
        return bool(chunk)


@dataclass(kw_only=True)
class Ending:
    """How a watched process ended."""

    out: Capture
    err: Capture
    timed_out: bool = False
    out_of_memory: bool = False


def supervise(process: subprocess.Popen[bytes], limits: Limits) -> Ending:
    """Wait for `process`, whose stdout and stderr are pipes; kill it when it is over its time or memory."""
    end = Ending(out=Capture(limit=limits.output_kb << 10), err=Capture(limit=limits.output_kb << 10))
    assert process.stdout is not None
    assert process.stderr is not None
    exited = os.pidfd_open(process.pid)
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, end.out)
        waiting.register(process.stderr, selectors.EVENT_READ, end.err)
        waiting.register(exited, selectors.EVENT_READ)
        stop, next_look = time.monotonic() + limits.seconds, 0.0
        while exited in waiting.get_map():
            _read_ready(waiting, stop)
            now = time.monotonic()
            end.timed_out = now >= stop
            if now >= next_look:
                end.out_of_memory = memory_in_use(process.pid) > limits.memory_mb << 20
                next_look = now + TICK_SECONDS
            if end.timed_out or end.out_of_memory:
                kill_tree(process)
                break
        stop = time.monotonic() + GRACE_SECONDS
        while waiting.get_map() and time.monotonic() < stop:
            _read_ready(waiting, stop)
    os.close(exited)
    return end


def _read_ready(waiting: selectors.BaseSelector, stop: float) -> None:
    """Read the streams that have something and forget those that ended; wait for one tick, and not beyond `stop`."""
    for key, _ in waiting.select(max(0.0, min(TICK_SECONDS, stop - time.monotonic()))):
        if key.data is None or not key.data.read(key.fd):
            waiting.unregister(key.fileobj)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill the children of a bwrap, until it ends for want of them; at last itself.

    The first of them is the init of the process namespace: the kernel takes the rest with it. Killing bwrap first
    would lose the tree while the box is still being set up, when it does not yet die with its parent.
    """
    stop = time.monotonic() + GRACE_SECONDS
    while process.poll() is None and time.monotonic() < stop:
        for pid in _descendants(process.pid):
            if pid != process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    process.kill()


def memory_in_use(pid: int) -> int:
    """Bytes of anonymous and shared memory held by the process and all its descendants. Gone ones count 0."""
    return sum(map(_held, _descendants(pid)))


def _descendants(pid: int) -> Iterator[int]:
    todo = [pid]
    while todo:
        yield (parent := todo.pop())
        try:
            todo += [int(p) for f in Path(f"/proc/{parent}/task").glob("*/children") for p in f.read_text().split()]
        except OSError:
            continue


def _held(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
