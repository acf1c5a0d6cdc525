"""Isolated execution behind one protocol. Untrusted code runs here and nowhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

# The command line for Python in a box: the base interpreter (a virtual environment is not visible in there), isolated.
PYTHON = (os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "-I")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one command may use."""

    seconds: float = 10.0  # wall clock
    cpu_seconds: int = 10
    memory_mb: int = 512  # address space of one process, and memory held by all of them together
    processes: int = 32
    file_mb: int = 16  # one file
    disk_mb: int = 32  # the working directory and /tmp together
    output_kb: int = 256  # of stdout and of stderr each


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """How a command ended. A failing command is a result, not an error."""

    exit_code: int  # negative: killed by that signal; 127: no such program
    stdout: str
    stderr: str
    timed_out: bool = False  # over its wall clock or CPU time; what it wrote until then is kept
    truncated: bool = False  # output over the limit was cut
    out_of_memory: bool = False  # killed because all its processes together held more than the limit
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


class Box(Protocol):
    """One sandbox. Files written here are seen by every later `exec`, under the working directory.

    What a command itself leaves behind (files, processes) is gone when its `exec` returns. Output is kept whole
    up to the limit. `write` and `exec` raise SandboxError, for their own failure or a closed box only.
    """

    def write(self, path: str, data: bytes | str) -> None: ...

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult: ...

    def kill(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Sandbox(Protocol):
    """A backend. `create` raises SandboxError, naming the install command, when the backend is missing here."""

    name: str

    def create(self, limits: Limits = Limits()) -> Box: ...


def open_sandbox(backend: str = "bubblewrap") -> Sandbox:
    """The named backend, probed by running a real command in it. There is no fallback to unprotected execution.

    Raises SandboxError when it is unknown or cannot work here; the message says what to install.
    """
    from kgsynth.errors import SandboxError

    if backend != "bubblewrap":
        raise SandboxError(f"unknown sandbox backend {backend!r}; known: bubblewrap")
    from kgsynth.sandbox.bubblewrap import Bubblewrap

    return Bubblewrap()
