"""Watch one sandboxed command to its end: collect bounded output, keep it within its time and memory.

Every wait here is bounded. A process that closes its output, floods it, or leaves a child behind that holds it
cannot make `supervise` hang.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kgsynth.sandbox import Limits

GRACE_SECONDS = 2.0  # for the kernel to tear a killed box down and for its last output
TICK_SECONDS = 0.05  # between two looks at the memory in use
FLOOD = 64 << 20  # bytes; what is over the limit is read and dropped up to here, then the command is killed


@dataclass(kw_only=True)
class Capture:
    """The first `limit` bytes of a stream; the rest is read and dropped, so that a writer of little more never blocks."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    seen: int = 0

    def read(self, fd: int) -> bool:
        """Take what is ready. False at the end of the stream."""
        try:
            chunk = os.read(fd, 1 << 16)
        except BlockingIOError:  # the writer has the pipe open for reading as well, and was faster
            return True
        self.data += chunk[: self.limit - len(self.data)]
        self.seen += len(chunk)
        return bool(chunk)

    @property
    def truncated(self) -> bool:
        return self.seen > self.limit

    @property
    def flooded(self) -> bool:
        return self.seen > FLOOD

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(kw_only=True)
class Ending:
    """How a watched command ended. `reply` is what the other end said of it; empty when it was lost with its box."""

    out: Capture
    err: Capture
    reply: bytes = b""
    timed_out: bool = False
    out_of_memory: bool = False

    @property
    def stopped(self) -> bool:
        """Whether we asked for its end."""
        return self.timed_out or self.out_of_memory or self.out.flooded or self.err.flooded


def supervise(
    replies: socket.socket,
    outputs: tuple[int, int],
    limits: Limits,
    *,
    memory: Callable[[], int],
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Wait for a reply on `replies`; when the command is over its time, memory or output, ask for its end there.

    `outputs`: read ends of its stdout and stderr. `memory()`: bytes it holds now. `clock` stands still while it is paused.
    """
    end = Ending(out=Capture(limit=limits.output_kb << 10), err=Capture(limit=limits.output_kb << 10))
    with selectors.DefaultSelector() as waiting:
        waiting.register(replies, selectors.EVENT_READ)
        for fd, capture in zip(outputs, (end.out, end.err), strict=True):
            os.set_blocking(fd, False)
            waiting.register(fd, selectors.EVENT_READ, capture)
        _watch(waiting, replies, end, limits, memory, clock)
        _drain(waiting)
    return end


def _watch(
    waiting: selectors.BaseSelector,
    replies: socket.socket,
    end: Ending,
    limits: Limits,
    memory: Callable[[], int],
    clock: Callable[[], float],
) -> None:
    stop, next_look, last_word = clock() + limits.seconds, time.monotonic() + TICK_SECONDS, 0.0
    while True:
        for key, _ in waiting.select(max(0.0, min(TICK_SECONDS, stop - clock()))):
            if key.data is None:
                with contextlib.suppress(ConnectionResetError):
                    end.reply = replies.recv(1 << 12)
                return
            if not key.data.read(key.fd):
                waiting.unregister(key.fd)
        now = time.monotonic()
        if last_word:
            if now > last_word:
                return
            continue
        end.timed_out = clock() >= stop
        if now >= next_look:
            end.out_of_memory = memory() > limits.memory_mb << 20
            next_look = now + TICK_SECONDS
        if end.stopped:
            with contextlib.suppress(OSError):
                replies.send(b"end")
            last_word, stop = now + GRACE_SECONDS, clock() + 2 * GRACE_SECONDS


def _drain(waiting: selectors.BaseSelector) -> None:
    """Read what was written before the end. What a process in the background may write later is not waited for."""
    for key in [key for key in waiting.get_map().values() if key.data is not None]:
        seen = -1
        while key.data.seen > seen and not key.data.flooded:
            seen = key.data.seen
            key.data.read(key.fd)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill the children of a bwrap, until it ends for want of them; at last itself.

    The first of them is the init of the process namespace: the kernel takes the rest with it. Killing bwrap first
    would lose the tree while the box is still being set up.
    """
    stop = time.monotonic() + GRACE_SECONDS
    while process.poll() is None and time.monotonic() < stop:
        signal_all((pid for pid in descendants(process.pid) if pid != process.pid), signal.SIGKILL)
        time.sleep(0.002)
    process.kill()


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def memory_in_use(pids: Iterable[int]) -> int:
    """Bytes of anonymous and shared memory held by these processes. Gone ones count 0."""
    return sum(map(_held, pids))


def sockets_in_use(pid: int) -> int:
    """In the network namespace of a process. What their buffers hold is nobody's memory."""
    try:
        return int(Path(f"/proc/{pid}/net/sockstat").read_text().split()[2])
    except (OSError, IndexError, ValueError):
        return 0


def descendants(pid: int) -> Iterator[int]:
    """The process and all below it, parents first."""
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
