"""A sandbox for a machine that is thrown away afterwards: answers run as users of no rights, in folders of their own.

It is what grades Harbor folders, as root in a container where there is neither bubblewrap nor a need for it. Each command
gets a user id that nobody has: it can read neither the tests nor what another command left, and all its processes are
ended, and its files deleted, when it is over. What it does not have: a network of its own; the container's is closed.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from kgsynth.errors import SandboxError
from kgsynth.sandbox import ExecResult, Limits, Snapshot

WORK = Path("/work")  # where an agent works
SCRATCH = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # where everybody may write
USERS = (60_000, 64_000)  # ids that no distribution gives away
TICK, LOOK = 0.01, 0.05  # seconds between two looks at the process, and at its memory
PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}  # as in any box


class Here:
    """The backend. `one_user`: run everything as who we are, for a trial where nobody can gain by it.

    Raises SandboxError when we are not root otherwise.
    """

    name = "container"
    python = (sys.executable, "-s", "-P")

    def __init__(self, *, one_user: bool = False) -> None:
        if os.geteuid() and not one_user:
            raise SandboxError("tests must run as root, so that an answer can run as somebody who cannot read them")
        self._one_user = one_user

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> Any:
        raise SandboxError("a container has no boxes; it is one")

    def restore(self, snapshot: Snapshot) -> Any:
        raise SandboxError("a container has no snapshots")

    def close(self) -> None:
        """There is nothing to close."""

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
        """One command, in a folder that holds `files` and is gone afterwards. See `kgsynth.sandbox.Sandbox.run`."""
        user = None if self._one_user else random.SystemRandom().randrange(*USERS)
        folder = Path(tempfile.mkdtemp(prefix="answer-"))
        try:
            _fill(folder, files or {}, user)
            return _run(argv, folder, stdin, {**ENVIRONMENT, "HOME": str(folder), **(env or {})}, limits, user)
        except OSError as error:
            raise SandboxError(f"a command could not be run: {error}") from error
        finally:
            if user is not None:
                end_all_of(user)
                _sweep(user)
            shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, files: Mapping[str, bytes | str], user: int | None) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)


def _run(
    argv: Sequence[str], folder: Path, stdin: str, env: Mapping[str, str], limits: Limits, user: int | None
) -> ExecResult:
    start = time.monotonic()
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode("utf-8", "surrogatepass"))
        given.seek(0)
        as_user: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        try:
            process = subprocess.Popen(
                list(argv), cwd=folder, env=dict(env), stdin=given, stdout=out, stderr=err, start_new_session=True,
                preexec_fn=lambda: _limit(limits), **as_user,
            )  # fmt: skip
        except FileNotFoundError:
            return ExecResult(exit_code=127, stdout="", stderr=f"{argv[0]}: not found")
        timed_out, out_of_memory = _watch(process, limits, user)
        _end(process, user)
        (stdout, much), (stderr, more) = _text(out, limits), _text(err, limits)
    return ExecResult(
        exit_code=process.returncode, stdout=stdout, stderr=stderr, timed_out=timed_out or process.returncode == -signal.SIGXCPU,
        truncated=much or more, out_of_memory=out_of_memory, seconds=time.monotonic() - start,
    )  # fmt: skip


def _limit(limits: Limits) -> None:
    memory = limits.memory_mb if limits.virtual_mb is None else limits.virtual_mb
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))  # first a signal that says so
    for what, most in (
        (resource.RLIMIT_AS, (memory or 0) << 20),
        (resource.RLIMIT_NPROC, limits.processes if os.geteuid() else 0),
        (resource.RLIMIT_FSIZE, max(limits.file_mb << 20, limits.output_kb << 10)),
        (resource.RLIMIT_NOFILE, 256),
    ):
        if most:
            resource.setrlimit(what, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch(process: subprocess.Popen[Any], limits: Limits, user: int | None) -> tuple[bool, bool]:
    """(whether its time ran out, whether its memory did)."""
    stop, look = time.monotonic() + limits.seconds, 0.0
    while process.poll() is None:
        now = time.monotonic()
        if now > stop:
            return True, False
        if now > look:
            look = now + LOOK
            if _memory(process.pid, user) > limits.memory_mb << 20:
                return False, True
        time.sleep(TICK)
    return False, False


def _end(process: subprocess.Popen[Any], user: int | None) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if user is not None:
        end_all_of(user)
    process.wait()


def _text(file: IO[bytes], limits: Limits) -> tuple[str, bool]:
    """What was written, up to the limit, and whether there was more."""
    file.seek(0)
    data = file.read((limits.output_kb << 10) + 1)
    return data[: limits.output_kb << 10].decode("utf-8", "replace"), len(data) > limits.output_kb << 10


def _memory(pid: int, user: int | None) -> int:
    """Bytes held by all processes of a user, or of one process when there is no user."""
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(_resident(one) * page for one in ([pid] if user is None else _processes(user)))


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _processes(user: int) -> Iterator[int]:
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and path.stat().st_uid == user:
                yield int(path.name)
        except OSError:
            continue


def end_all_of(user: int) -> None:
    """Kill every process of a user at once, however fast they multiply: one of them does it, to all but itself."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _sweep(user: int) -> None:
    """Delete what a user left where everybody may write."""
    for path in (path for scratch in SCRATCH if scratch.is_dir() for path in scratch.iterdir()):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid == user:
                shutil.rmtree(path) if stat.S_ISDIR(path.lstat().st_mode) else path.unlink()


class HereBox:
    """The container as the box that `kgsynth.verifiers.world.grade` looks into, once nothing of the agent runs any more."""

    id = "container"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def fork(self, count: int = 1) -> list[Any]:
        """Itself: nobody needs it as it was."""
        return [self] * count

    def clear(self) -> None:
        """The agent's processes were ended before."""

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """Run a command of ours in the folder of the world."""
        most = limits or Limits()
        try:
            done = subprocess.run(
                list(argv),
                cwd=WORK,
                env={"PATH": PATH},
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=most.seconds,
            )
        except subprocess.TimeoutExpired:
            return ExecResult(exit_code=-signal.SIGKILL, stdout="", stderr="", timed_out=True)
        except FileNotFoundError:
            return ExecResult(exit_code=127, stdout="", stderr=f"{argv[0]}: not found")
        cut = most.output_kb << 10
        return ExecResult(
            exit_code=done.returncode, stdout=done.stdout[:cut].decode("utf-8", "replace"),
            stderr=done.stderr[:cut].decode("utf-8", "replace"), truncated=len(done.stdout) > cut,
        )  # fmt: skip

    def read(self, path: str) -> bytes:
        """A regular file, whole; no link is followed. Raises SandboxError."""
        data = regular(WORK / path, most=1 << 30)
        if data is None:
            raise SandboxError(f"no regular file {path}")
        return data


def regular(path: Path, most: int) -> bytes | None:
    """The content of a regular file of at most `most` bytes, or None. No link is followed and no FIFO waited for."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        kind = os.fstat(opened.fileno())
        return opened.read() if stat.S_ISREG(kind.st_mode) and kind.st_size <= most else None
