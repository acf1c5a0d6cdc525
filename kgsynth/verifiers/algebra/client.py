"""Asks the warm process of `server.py`. One process serves all threads; each question is judged in a fork of it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from kgsynth.errors import SandboxError, VerifierError

CPU_SECONDS = 2  # of one question; more is a verdict ("timeout"), the same one on a busy machine
MEMORY_MB = 1024  # address space of one question
WALL_SECONDS = 120  # of one question; more is not a verdict: the machine is too busy to judge
START_SECONDS = 300  # to import and to warm up
LIMITS = "iii"  # how the three are sent along with a question
INSTALL = "pip install 'kgsynth[verify]'"


class Calculator:
    """A handle on the process. It starts with the first question and ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(os.cpu_count() or 1)  # more at once would only wait for each other
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The judge's answer. SandboxError when there is none: the process died twice or the wall clock ran out."""
        data = json.dumps(question).encode()
        with self._slots:
            for _ in range(2):
                with contextlib.suppress(BrokenPipeError, ConnectionError):
                    replied = self._exchange(data)
                    if replied.endswith(b"}"):
                        return _read(replied)
                self.close()
        raise SandboxError("the process that judges mathematics died twice: is something killing it, is memory short?")

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            process, self._process = self._process, None
            control, self._control = self._control, None
        if control:
            control.close()
        if process:
            process.kill()
            process.wait()

    def _exchange(self, data: bytes) -> bytes:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(WALL_SECONDS + START_SECONDS)
            limits = struct.pack(LIMITS, CPU_SECONDS, MEMORY_MB, WALL_SECONDS)
            socket.send_fds(self._running(), [limits], [theirs.fileno()])
            theirs.close()
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)
            try:
                return b"".join(iter(lambda: ours.recv(1 << 16), b""))
            except TimeoutError as error:
                self.close()
                raise SandboxError("the process that judges mathematics does not reply; it was killed") from error

    def _running(self) -> socket.socket:
        with self._lock:
            if self._process is None or self._process.poll() is not None or self._control is None:
                self._process, self._control = _start()
            return self._control


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process knows no secret: of the environment it gets the module path only."""
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(os.path.abspath(folder or ".") for folder in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-s", "-P", "-m", "kgsynth.verifiers.algebra.server", str(theirs.fileno())],
        env={"PYTHONPATH": path, "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=(theirs.fileno(),),
        cwd="/",
        start_new_session=True,
    )
    theirs.close()
    ours.settimeout(START_SECONDS)
    with contextlib.suppress(OSError):
        if ours.recv(1) == b"!":
            return process, ours
    process.kill()
    ours.close()
    said = process.communicate()[1].decode("utf-8", "replace").strip()[-500:]
    if "ModuleNotFoundError" in said:
        raise VerifierError(f"mathematics: a library is missing ({said.splitlines()[-1]}); {INSTALL}")
    raise SandboxError(f"the process that judges mathematics does not start: {said}")


def _read(replied: bytes) -> dict[str, Any]:
    """The last line says how it ended; one before it, that what is expected had been read by then."""
    lines = replied.splitlines()
    reply = json.loads(lines[-1])
    if reply.get("reason") == "wall clock":
        raise SandboxError(f"no verdict within {WALL_SECONDS} s on the wall clock: this machine is too busy to judge")
    return reply if lines[0] == b"begun" or "fault" in reply else {"fault": f"{reply['reason']}: it cannot be read"}


calculator = Calculator()


def _anew() -> None:
    """A fork of this process starts a process of its own: locks may be held by threads that are not in the fork."""
    global calculator
    calculator = Calculator()


os.register_at_fork(after_in_child=_anew)
