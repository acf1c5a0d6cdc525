"""The bubblewrap backend: one `bwrap` process tree per command, nothing of the host but an interpreter inside.

Inside are /usr and its aliases, the loader cache and the Python installation (all read-only), a fresh /proc and
/dev, and one private tmpfs of limited size that is both /work and /tmp. There is no network, no environment, no
terminal, no capability, and a system call filter (`seccomp.py`).

A process limit does not bind root. Run by root, a box therefore drops to a user id of its own (setpriv) before the
limits are set (prlimit); run by anybody else, it gets a user namespace instead.

Left out: a limit on the CPU time of all processes together (wall clock and process limits bound it), state that
outlives a command, and architectures other than x86_64 and aarch64.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from kgsynth.errors import SandboxError
from kgsynth.sandbox import PYTHON, ExecResult, Limits, Snapshot
from kgsynth.sandbox.seccomp import program
from kgsynth.sandbox.supervise import GRACE_SECONDS, Ending, kill_tree, supervise

WORK = "/work"
INSTALL = "install it with `sudo apt-get install bubblewrap` (version 0.8 or newer)"
SIGXCPU = 24
RLIMIT_MSGQUEUE = 12  # has no name in the resource module
_box_numbers = itertools.count()


class Bubblewrap:
    """The backend. Raises SandboxError when a box cannot be made here: it tries one."""

    name = "bubblewrap"
    python = PYTHON

    def __init__(self, executable: str = "bwrap") -> None:
        for tool in (executable, "setpriv", "prlimit"):
            if shutil.which(tool) is None:
                raise SandboxError(f"no `{tool}` here to run untrusted code in isolation; {INSTALL}")
        self._bwrap = str(shutil.which(executable))
        with self.create() as box:
            result = box.exec([*PYTHON, "-S", "-c", "print(6 * 7)"])
        if result.stdout != "42\n":
            raise SandboxError(f"Python does not start inside bubblewrap: {result.stderr.strip()[-500:]}")

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> BubblewrapBox:
        return BubblewrapBox(self._bwrap, limits)

    def restore(self, snapshot: Snapshot) -> BubblewrapBox:
        raise SandboxError("this backend has no snapshots yet")

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
        with self.create(limits) as box:
            for path, data in (files or {}).items():
                box.write(path, data)
            return box.exec(argv, stdin=stdin, env=env)

    def close(self) -> None:
        pass


class BubblewrapBox:
    """One box: the files written to it, and a user id when root made it. Commands may run in several threads."""

    def __init__(self, bwrap: str, limits: Limits) -> None:
        self._prefix = [bwrap, *_identity(), *_view()]
        self._user = _drop_to(_private_id(next(_box_numbers))) if _is_root() else []
        self._limits = _checked(limits)
        self._files: dict[PurePosixPath, bytes] = {}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def write(self, path: str, data: bytes | str) -> None:
        """Put a file under the working directory. Raises SandboxError for a path that leaves it or a full disk."""
        inside = PurePosixPath(path)
        if inside.is_absolute() or ".." in inside.parts or "\0" in path or not inside.parts:
            raise SandboxError(f"{path!r} is not a file under the working directory; give a relative path without '..'")
        content = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
        files = {**self._files, inside: content}
        if sum(map(len, files.values())) > self._limits.disk_mb << 20:
            raise SandboxError(f"{path!r} does not fit: the box may hold Limits.disk_mb = {self._limits.disk_mb} MB")
        self._files = files

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """Run one command in a fresh process tree and file system, and kill all of it before returning."""
        limits = _checked(limits or self._limits)
        start = time.monotonic()
        with ExitStack() as stack:
            files = _Descriptors(stack)
            status = files.empty("status")
            command = [*self._prefix, *self._mounts(files, limits), *_environment(env)]
            command += ["--seccomp", str(files.sealed(program())), "--json-status-fd", str(status), "--"]
            command += [*self._user, *_rlimits(limits), "--", *argv]
            process = self._start(command, files, stdin)
            try:
                ending = supervise(process, limits)
            finally:
                self._end(process)
            code = _exit_code(os.pread(status, 1 << 16, 0).decode())
        return self._result(process.returncode, code, ending, time.monotonic() - start)

    def kill(self) -> None:
        """End what runs and refuse what comes."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            kill_tree(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _mounts(self, files: _Descriptors, limits: Limits) -> Iterator[str]:
        """The working directory with its files; after that everything else is sealed."""
        yield from ("--perms", "0777", "--size", str(limits.disk_mb << 20), "--tmpfs", WORK)
        yield from ("--symlink", WORK.removeprefix("/"), "/tmp", "--chdir", WORK)
        for folder in dict.fromkeys(p for path in self._files for p in reversed(path.parents) if p.parts):
            yield from ("--perms", "0777", "--dir", f"{WORK}/{folder}")
        for path, data in self._files.items():
            yield from ("--perms", "0644", "--file", str(files.sealed(data)), f"{WORK}/{path}")
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")

    def _start(self, command: list[str], files: _Descriptors, stdin: str) -> subprocess.Popen[bytes]:
        source = files.sealed(stdin.encode("utf-8", "surrogatepass"))
        with self._lock:
            if self._closed:
                raise SandboxError("the box is closed; create a new one")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=files.numbers,
                    env={},
                    cwd="/",
                )
            except (OSError, ValueError) as error:
                raise SandboxError(f"cannot start bubblewrap: {error}; {command[-1]!r:.80}") from error
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of the tree and reap it."""
        kill_tree(process)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"process {process.pid} does not die; look for it with `ps`") from error
        finally:
            with self._lock:
                self._running.discard(process)
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def _result(self, returncode: int, code: int | None, ending: Ending, seconds: float) -> ExecResult:
        stderr = ending.err.data.decode("utf-8", "replace")
        if code is None and not (ending.timed_out or ending.out_of_memory or self._closed):
            raise SandboxError(
                f"bubblewrap could not make a box (status {returncode}): {stderr.strip()[-500:]}\n"
                f"Check that it is recent; {INSTALL}. User namespaces must be allowed: in a container add "
                "CAP_SYS_ADMIN or run it as a normal user; on Ubuntu install the AppArmor profile for bwrap."
            )
        return ExecResult(
            exit_code=-9 if code is None else code,
            stdout=ending.out.data.decode("utf-8", "replace"),
            stderr=stderr,
            timed_out=ending.timed_out or code == -SIGXCPU,
            truncated=ending.out.truncated or ending.err.truncated,
            out_of_memory=ending.out_of_memory,
            seconds=seconds,
        )


@dataclass
class _Descriptors:
    """In-memory files handed to bwrap by number, closed with the stack."""

    stack: ExitStack
    numbers: tuple[int, ...] = ()

    def empty(self, name: str) -> int:
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.stack.callback(os.close, fd)
        self.numbers += (fd,)
        return fd

    def sealed(self, data: bytes) -> int:
        """A file that nobody can change any more, not even the box that gets it as its stdin."""
        fd = self.empty("data")
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(fd, 0, os.SEEK_SET)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        return fd


def _identity() -> Iterator[str]:
    """Namespaces and privileges. Root needs no user namespace, and would not be bound by limits in its own."""
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "box")
    if _is_root():
        yield from ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--uid", "65534", "--gid", "65534")


def _view() -> Iterator[str]:
    """The read-only part of the file system: what an interpreter needs, at its own paths."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        else:
            yield from ("--ro-bind-try", name, name)
    for name in ("/etc/ld.so.cache", "/etc/alternatives"):
        yield from ("--ro-bind-try", name, name)
    for path in _python_folders():
        for parent in reversed(path.parents[:-1]):
            yield from ("--perms", "0755", "--dir", str(parent))
        yield from ("--ro-bind", str(path), str(path))
    yield from ("--proc", "/proc", "--dev", "/dev")


def _python_folders() -> list[Path]:
    """Where the base interpreter lives, unless that is under /usr, which is there already."""
    named = (Path(p) for p in (sys.base_prefix, sys.base_exec_prefix))
    folders = {p for path in named for p in (path, path.resolve())}
    return sorted(path for path in folders if not path.is_relative_to("/usr"))


def _environment(env: Mapping[str, str] | None) -> Iterator[str]:
    path = f"{os.path.dirname(PYTHON[0])}:/usr/bin:/bin"
    yield "--clearenv"
    for key, value in {"PATH": path, "HOME": WORK, "LANG": "C.UTF-8", **(env or {})}.items():
        yield from ("--setenv", key, value)


def _drop_to(number: int) -> list[str]:
    return ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups", "--inh-caps=-all", "--"]


def _rlimits(limits: Limits) -> Iterator[str]:
    """Set inside the box, so that they count its processes only. Bubblewrap's init is one of them when nobody is root."""
    wanted = {
        "nproc": limits.processes + (0 if _is_root() else 1),
        "as": (limits.memory_mb if limits.virtual_mb is None else limits.virtual_mb or 1 << 40) << 20,
        "fsize": limits.file_mb << 20,
        "stack": 8 << 20,
        "nofile": 256,
        "core": 0,
        "msgqueue": 0,
    }
    yield "prlimit"
    for name, value in wanted.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}", RLIMIT_MSGQUEUE))[1]
        yield f"--{name}={value if hard == resource.RLIM_INFINITY else min(value, hard)}"
    yield f"--cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}"


def _checked(limits: Limits) -> Limits:
    for field in fields(limits):
        if field.name != "virtual_mb" and getattr(limits, field.name) <= 0:
            raise SandboxError(f"Limits.{field.name} = {getattr(limits, field.name)} must be positive")
    return limits


def _id_range() -> tuple[int, int]:
    """(first, count) of the largest range of user ids this process may take on."""
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return max(((int(first), int(count)) for first, _, count in rows), key=lambda row: row[1])


def _is_root() -> bool:
    """Root with other ids to drop to; not a lone root inside somebody's user namespace."""
    return os.geteuid() == 0 and _id_range()[1] > 1


def _private_id(number: int) -> int:
    """A user id that no other box of this or another process has now: from the upper half of our range."""
    first, count = _id_range()
    return first + count // 2 + (os.getpid() << 8 | number % 256) % (count // 2)


def _exit_code(status: str) -> int | None:
    """The command's exit code from bwrap's status lines, None when no command ran to its end. 128 + n is signal n."""
    ended = [record["exit-code"] for line in status.splitlines() if "exit-code" in (record := json.loads(line))]
    if not ended:
        return None
    return 128 - ended[0] if 128 < ended[0] <= 128 + 64 else ended[0]
