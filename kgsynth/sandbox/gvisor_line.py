"""Talk to the first process of a gVisor box (`gvisor_init.py`): frames over two pipes, many calls at a time.

The pipes belong to the container that holds the box now. A checkpoint ends it, and the next one goes on in the middle
of a frame if need be: `attach` takes new pipes and keeps what was read of the old ones. A copy of a box, instead,
begins with whatever its origin had not finished; `attach` skips all of it up to a marker that nobody inside knows.

Every wait is bounded.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import secrets
import select
import struct
import threading
import time
from collections.abc import Callable

from kgsynth.errors import SandboxError

HEAD = struct.Struct("!II")
HEADER_BYTES = 1 << 20  # the longest header believed
TICK_SECONDS = 0.05
ANSWER_SECONDS = 30.0  # the first process answers at once, unless the box is starved

Events = queue.SimpleQueue[tuple[dict, bytes] | None]


class Line:
    """Requests and their answers. `ask` and `start` return when it is taken up; the owner lets one thread at a time call."""

    def __init__(self, longest: int, tick: Callable[[], None]) -> None:
        """`longest`: bytes of data in one frame. `tick` is called about every 50 ms while attached; it must not wait."""
        self._longest, self._tick = longest, tick
        self._numbers = itertools.count(1)
        self._calls: dict[int, Events] = {}
        self._buffer = bytearray()
        self._reader: threading.Thread | None = None
        self._to = self._from = -1
        self._expected_end = False
        self.lost = False

    def attach(self, to: int, source: int, *, copy: bool = False) -> None:
        """Talk through these descriptors from now on, and own them. `copy`: the other end is a copy of another box's."""
        self._to, self._from, self._expected_end = to, source, False
        os.set_blocking(to, False)
        marker = secrets.token_bytes(32) if copy else b""
        self._reader = threading.Thread(target=self._read, args=(source, marker), daemon=True)
        self._reader.start()
        self.ask({"do": "greet" if copy else "ping"}, marker)

    def expect_end(self, expected: bool) -> None:
        """The end of the pipe is, or is not, the end of the box."""
        self._expected_end = expected

    def detach(self) -> None:
        """Close the pipes; read what is left first. Twice is fine."""
        to, self._to = self._to, -1
        if to >= 0:
            os.close(to)
        reader, self._reader = self._reader, None
        if reader is not None and reader is not threading.current_thread():
            reader.join(ANSWER_SECONDS)

    def ask(self, request: dict, data: bytes = b"") -> bytes:
        """The answer's data. Raises SandboxError with the reason when the answer is an error or there is none."""
        number, events = self.call(request, data)
        try:
            return _accepted(events)
        finally:
            self.forget(number)

    def start(self, request: dict, data: bytes = b"") -> tuple[int, Events]:
        """Ask for something that goes on: the number of the call, and the frames to come of it (None: the box is gone)."""
        number, events = self.call(request, data)
        try:
            _accepted(events)
        except BaseException:
            self.forget(number)
            raise
        return number, events

    def call(self, request: dict, data: bytes) -> tuple[int, Events]:
        number, events = next(self._numbers), queue.SimpleQueue()
        self._calls[number] = events
        text = json.dumps({**request, "id": number}).encode()
        self._send(HEAD.pack(len(text), len(data)) + text + data)
        return number, events

    def forget(self, number: int) -> None:
        """What still comes for that call is dropped."""
        self._calls.pop(number, None)

    def _send(self, frame: bytes) -> None:
        rest, stop = memoryview(frame), time.monotonic() + ANSWER_SECONDS
        while rest:
            if self.lost or time.monotonic() > stop:
                raise SandboxError("the box is gone or does not take requests; kill it")
            if select.select([], [self._to], [], TICK_SECONDS)[1]:
                with contextlib.suppress(BlockingIOError, BrokenPipeError):
                    rest = rest[os.write(self._to, rest) :]

    def _read(self, source: int, marker: bytes) -> None:
        """The reader: until the pipe ends, hand out frames and tick."""
        try:
            last = 0.0
            while True:
                if select.select([source], [], [], TICK_SECONDS)[0]:
                    chunk = os.read(source, 1 << 18)
                    if not chunk:
                        break
                    self._buffer += chunk
                    marker = self._skip(marker)
                    if not marker:
                        self._hand_out()
                if (now := time.monotonic()) - last > TICK_SECONDS:
                    last = now
                    self._tick()
        except (ValueError, KeyError, TypeError):
            pass  # nonsense: the first process has been broken, and the box with it
        finally:
            os.close(source)
            if not self._expected_end:
                self._lose()

    def _skip(self, marker: bytes) -> bytes:
        """Drop what precedes the marker. What is still to be found of it."""
        if not marker:
            return b""
        found = self._buffer.find(marker)
        del self._buffer[: found + len(marker) if found >= 0 else max(0, len(self._buffer) - len(marker))]
        return b"" if found >= 0 else marker

    def _hand_out(self) -> None:
        while len(self._buffer) >= HEAD.size:
            text, data = HEAD.unpack_from(self._buffer)
            if text > HEADER_BYTES or data > self._longest:
                raise ValueError("no frame of ours")
            if len(self._buffer) < (end := HEAD.size + text + data):
                return
            header = json.loads(self._buffer[HEAD.size : HEAD.size + text])
            content = bytes(self._buffer[HEAD.size + text : end])
            del self._buffer[:end]
            if (call := self._calls.get(header["id"])) is not None:
                call.put((header, content))

    def _lose(self) -> None:
        self.lost = True
        for call in list(self._calls.values()):
            call.put(None)


def _accepted(events: Events) -> bytes:
    """The data of the first answer."""
    try:
        answer = events.get(timeout=ANSWER_SECONDS)
    except queue.Empty:
        raise SandboxError(f"the box does not answer within {ANSWER_SECONDS:.0f} s; kill it") from None
    if answer is None:
        raise SandboxError("the box is gone: its kernel process ended")
    header, data = answer
    if header.get("event") == "error":
        raise SandboxError(str(header.get("reason")))
    return data
