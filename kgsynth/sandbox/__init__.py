"""Isolated execution behind one protocol. Untrusted code runs here and nowhere else.

    Sandbox   a backend: makes boxes, and runs single commands in fresh ones
    Box       one private file system with processes in it: an environment for an agent, or a place to grade
    Snapshot  the state of a box, from which any number of boxes can be made

Backends, weakest and fastest first: `bubblewrap` (files survive a fork, processes do not), `gvisor` (files and
processes, a kernel of its own), `e2b` (any server that speaks the E2B protocol: micro virtual machines, many machines).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

BACKENDS = ("bubblewrap", "gvisor", "e2b")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a box may hold and one command in it may use."""

    seconds: float = 10.0  # wall clock of one command
    cpu_seconds: int = 10  # of one process
    memory_mb: int = 512  # held by all processes together; and the address space of one, unless `virtual_mb` says other
    virtual_mb: int | None = None  # address space of one process; 0: no limit (node, browsers, CUDA reserve much)
    processes: int = 32
    file_mb: int = 16  # one file
    disk_mb: int = 32  # the working directory, /tmp and /dev/shm together
    output_kb: int = 256  # of stdout and of stderr each


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """How a command ended. A failing command is a result, not an error."""

    exit_code: int  # negative: killed by that signal; 127: no such program
    stdout: str
    stderr: str
    timed_out: bool = False  # over its wall clock or CPU time; what it wrote until then is kept
    truncated: bool = False  # output over the limit was cut; a command that floods on is killed
    out_of_memory: bool = False  # killed because all its processes together held more than the limit
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and not self.timed_out


class Snapshot(Protocol):
    """The state of a box at one moment. It outlives the box. It exists only if it can be restored."""

    id: str
    has_processes: bool  # False: files only, a box made from it starts with no process

    def delete(self) -> None:
        """Free what it holds. Boxes made from it live on. Twice is fine."""
        ...


class Box(Protocol):
    """One sandbox: a private file system, and processes, until `kill`. There is no network, and stdin is at its end.

    Paths are relative to the working directory (/work). Every method raises SandboxError for its own failure, a closed
    box or, but for `snapshot`, `fork`, `resume` and `kill`, a paused one; never for what the code inside does. Methods
    may be called from several threads.
    """

    id: str

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """Run one command to its end. Files and background processes that it leaves stay; when it is over its time or
        memory, it is killed with all it started."""
        ...

    def write(self, path: str, data: bytes | str) -> None:
        """Put a file there, making its folders. Text is UTF-8."""
        ...

    def read(self, path: str) -> bytes:
        """A regular file, whole. SandboxError when there is none, it is over Limits.disk_mb or it is not regular."""
        ...

    def snapshot(self) -> Snapshot:
        """The state as it is now. The box goes on as it was, running or paused.

        Raises StateError, a SandboxError, when code in the box left what cannot be copied.
        """
        ...

    def fork(self, count: int = 1) -> list[Box | Exception]:
        """`count` running boxes with the state of this one, or for each the SandboxError that it met instead.

        They share nothing afterwards and draw different random numbers from the kernel. The box goes on as it was.
        Raises what `snapshot` raises.
        """
        ...

    def clear(self) -> None:
        """End every process in it, however they try not to end. Files stay."""
        ...

    def pause(self) -> None:
        """Stop every process where it is. Twice is fine."""
        ...

    def resume(self) -> None:
        """Let them go on. Twice is fine."""
        ...

    def kill(self) -> None:
        """End everything and free everything. Twice is fine."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Sandbox(Protocol):
    """A backend. Made by `open_sandbox`, which raises SandboxError naming the install command where it cannot work."""

    name: str
    python: tuple[str, ...]  # the command line of Python in a box; append a script or -c and code

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> Box:
        """An empty box. `packages`: installed Python packages that code in it may import; the others may be visible."""
        ...

    def restore(self, snapshot: Snapshot) -> Box:
        """A new running box with that state, under the limits of the box it was taken from."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes | str] | None = None,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits = Limits(),
        packages: Sequence[str] = (),
    ) -> ExecResult:
        """One command in a fresh box that holds `files`, and nothing of it is left. The fast way for small checks.

        A backend may have an interpreter waiting, with `packages` loaded, for an argv that begins with `python`.
        """
        ...

    def close(self) -> None:
        """Kill every box, delete every snapshot. Twice is fine."""
        ...


def open_sandbox(backend: str = "bubblewrap") -> Sandbox:
    """The named backend, probed by running a real command in it. There is no fallback to a weaker one.

    Raises SandboxError when it is unknown or cannot work here; the message says what to install or set.
    """
    from kgsynth.errors import SandboxError

    if backend == "bubblewrap":
        from kgsynth.sandbox.bubblewrap import Bubblewrap

        return Bubblewrap()
    if backend == "gvisor":
        from kgsynth.sandbox.gvisor import Gvisor

        return Gvisor()
    if backend == "e2b":
        from kgsynth.sandbox.e2b import E2B

        return E2B()
    raise SandboxError(f"unknown sandbox backend {backend!r}; known: {', '.join(BACKENDS)}")
