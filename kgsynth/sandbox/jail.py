"""One bubblewrap with process 1 of ours in it (`pid1.py`), seen from outside: start it, give it jobs, end it.

Inside are /usr and its aliases, the loader cache and the Python installation (all read-only), a fresh /proc and /dev, and
the writable folders /work, /tmp and /dev/shm. There is no network, no terminal, no capability, and a system call filter
(`seccomp.py`). A jail lives until it is closed or the process that made it is gone.
"""

from __future__ import annotations

import fcntl
import functools
import json
import marshal
import os
import resource
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Limits
from kgsynth.sandbox.seccomp import program
from kgsynth.sandbox.supervise import (
    GRACE_SECONDS,
    Ending,
    descendants,
    kill_tree,
    memory_in_use,
    sockets_in_use,
    supervise,
)

WORK = "/work"
PYTHON = (os.path.realpath(getattr(sys, "_base_executable", sys.executable)), "-s", "-P")
INSTALL = "install it with `sudo apt-get install bubblewrap` (version 0.8 or newer)"
START_SECONDS, LOAD_SECONDS = 30.0, 120.0  # for process 1 to be there; and to load a package
SOCKET_BYTES = 1 << 18  # what the buffers of one socket may hold (net.core.wmem_default and the last message)
RLIMIT_SIGPENDING = 11  # these two have no name in the resource module
RLIMIT_MSGQUEUE = 12
DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", *(f"nvidia{i}" for i in range(16)))


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one inmate does: put files there, then read one or run a command."""

    argv: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    read: str = ""
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False  # in folders and a process namespace of its own, gone afterwards


class Jail:
    """Raises SandboxError when bubblewrap cannot make it. `packages` are loaded before it takes jobs."""

    def __init__(self, bwrap: str, packages: Sequence[str], layers: Path) -> None:
        self._asking, self._clears = threading.Lock(), 0
        self._packages, self._closed = bool(packages), False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as stack:
            errors, info = _memory_file(stack, "errors"), _memory_file(stack, "info")
            command = [bwrap, *_identity(), *_view(bool(packages), layers), *_environment(bool(packages))]
            command += ["--info-fd", str(info), "--", *PYTHON, "/pid1.py", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=(info, theirs.fileno()),
                env={}, cwd="/", start_new_session=True,  # a Ctrl-C is for us
            )  # fmt: skip
            theirs.close()
            self._start(packages, errors)
            self.pid = int(json.loads(os.pread(info, 1 << 12, 0))["child-pid"])

    def _start(self, packages: Sequence[str], errors: int) -> None:
        try:
            self._control.settimeout(START_SECONDS + LOAD_SECONDS * len(packages))
            self._control.send(marshal.dumps((_outer_ids() if is_root() else None, list(packages))))
            if self._control.recv(16) == b"ready":
                return
        except OSError:
            pass
        self.close()
        told = os.pread(errors, 1 << 16, 0).decode("utf-8", "replace").strip()[-500:]
        if "No module named" in told and packages:
            raise SandboxError(f"a package of {', '.join(packages)} is not installed in this environment: {told}")
        raise SandboxError(
            f"bubblewrap could not make a box: {told or 'it did not answer'}\nCheck that it is recent; {INSTALL}. User "
            "namespaces must be allowed: in a container add CAP_SYS_ADMIN or run it as a normal user; on Ubuntu install "
            "the AppArmor profile for bwrap."
        )

    def open(self, limits: Limits, layer: str = "") -> None:
        """Give it writable folders that stay, empty or on a layer. Once, and before jobs that are not fresh."""
        self._ask(marshal.dumps((limits.disk_mb, layer)), "make its writable folders")

    def clear(self) -> None:
        """Kill every process but the first; commands under way end with that."""
        self._clears += 1
        self._ask(b"clear", "end its processes")

    def _ask(self, message: bytes, what: str) -> None:
        try:
            with self._asking:
                self._control.send(message)
                reply = self._control.recv(1 << 12)
        except OSError:
            reply = b""
        if reply != b"ok":
            raise SandboxError(f"the box could not {what}: {reply.decode('utf-8', 'replace')[1:] or 'it is gone'}")

    def do(self, job: Job, limits: Limits, clock: Callable[[], float] = time.monotonic) -> Ending:
        """One job to its end; several threads may ask at once, unless jobs are fresh.

        Raises SandboxError when the files could not be put or read, or the jail is gone.
        """
        clears = self._clears
        ours, theirs = socket.socketpair()
        with ours, ExitStack() as stack:
            outputs = self._begin(job, limits, ours, theirs, stack)
            ending = supervise(ours, outputs, limits, memory=lambda: self._memory(job.fresh), clock=clock)
        if not (ending.reply or job.fresh or self._closed) and self._was_ended(clears):
            ending.reply = str(-signal.SIGKILL).encode()
        if not (ending.reply or ending.stopped or self._closed):
            raise SandboxError("the box was lost while a command ran in it")
        if ending.reply.startswith(b"!"):
            raise SandboxError(ending.reply[1:].partition(b"\n")[0].decode("utf-8", "replace"))
        if not (job.argv or ending.reply.startswith(b"ok") or ending.stopped):
            raise SandboxError("something in the box ended the process that should write or read there")
        return ending

    def _was_ended(self, clears: int) -> bool:
        """Whether a command without an answer was ended by `clear`, or from inside, as a normal user's inmate can: it has
        its warden's user id. Nothing of it is left then."""
        if self._clears == clears and not is_root():
            self.clear()
        return self._clears > clears

    def _begin(
        self, job: Job, limits: Limits, ours: socket.socket, theirs: socket.socket, stack: ExitStack
    ) -> tuple[int, int]:
        """Hand the job over. Returns the read ends of its stdout and stderr."""
        stdin = _sealed(stack, job.stdin)
        (out, out_end), (err, err_end) = _pipe(stack), _pipe(stack)
        try:
            with theirs:
                socket.send_fds(self._control, [b"job"], [theirs.fileno()])
            with out_end, err_end:
                fds = [stdin, out_end.fileno(), err_end.fileno()]
                socket.send_fds(ours, [b"f" if job.fresh else b"s"], fds if job.fresh else [*fds, out, err])
            data = marshal.dumps(_form(job, limits, self._packages))
            ours.settimeout(START_SECONDS)
            ours.sendall(len(data).to_bytes(8, "big") + data)
        except OSError as error:
            raise SandboxError(f"the box is gone: {error}") from error
        return out, err

    def _memory(self, fresh: bool) -> int:
        """Held by what is not ours: all below process 1, and below the warden of a fresh job."""
        processes = list(descendants(self.pid))
        network = processes[min(fresh, len(processes) - 1)]  # a fresh job has one of its own
        return memory_in_use(processes[1 + fresh :]) + SOCKET_BYTES * sockets_in_use(network)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Kill all of it and see it gone. Raises SandboxError when something does not die. Twice is fine."""
        self._closed = True
        self._control.close()
        kill_tree(self._process)
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"process {self._process.pid} does not die; look for it with `ps`") from error


def _form(job: Job, limits: Limits, packages: bool) -> dict[str, object]:
    """A job as process 1 reads it."""
    warm = (
        tuple(job.argv[:3]) == PYTHON and _is_script(job.argv[3:]) and not any(k.startswith("PYTHON") for k in job.env)
    )
    return {
        "argv": list(job.argv[3:] if warm else job.argv),
        "warm": warm,
        "files": dict(job.files),
        "read": job.read,
        "env": {**environment(packages), **job.env},
        "disk_mb": limits.disk_mb,
        "rlimits": _rlimits(limits),
        "seccomp": program(),
    }


def _is_script(arguments: Sequence[str]) -> bool:
    return bool(arguments) and ((arguments[0] == "-c" and len(arguments) > 1) or not arguments[0].startswith("-"))


def _rlimits(limits: Limits) -> dict[int, tuple[int, int]]:
    """{kind: (soft, hard)}. Our own process 1 and warden count as well when nobody is root."""
    virtual = limits.memory_mb if limits.virtual_mb is None else limits.virtual_mb
    wanted = {
        resource.RLIMIT_NPROC: limits.processes + (0 if is_root() else 3),
        resource.RLIMIT_AS: virtual << 20 or resource.RLIM_INFINITY,
        resource.RLIMIT_FSIZE: limits.file_mb << 20,
        resource.RLIMIT_STACK: 8 << 20,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 1 << 16,
        RLIMIT_SIGPENDING: 256,
        RLIMIT_MSGQUEUE: 0,
    }
    rlimits = {kind: (at_most(kind, value), at_most(kind, value)) for kind, value in wanted.items()}
    return {**rlimits, resource.RLIMIT_CPU: (limits.cpu_seconds, limits.cpu_seconds + 1)}


def at_most(kind: int, value: int) -> int:
    """A limit may be lowered only. -1 is no limit."""
    hard = resource.getrlimit(kind)[1]
    return value if hard == -1 else hard if value == -1 else min(value, hard)


def _sealed(stack: ExitStack, data: bytes) -> int:
    """A file that nobody can change any more, not even the box that gets it as its stdin."""
    fd = _memory_file(stack, "stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    return fd


def _memory_file(stack: ExitStack, name: str) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    return fd


def _pipe(stack: ExitStack) -> tuple[int, IO[bytes]]:
    """(read end, write end). The inmate owns it, so that it may open /dev/stdout."""
    read, write = os.pipe()
    stack.callback(os.close, read)
    if is_root():
        os.fchown(write, _outer_ids()[1], _outer_ids()[1])
    return read, open(write, "wb", buffering=0)


def _identity() -> Iterator[str]:
    """Namespaces and privileges. Process 1 gives up what is left of root's; a normal user needs a user namespace."""
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--new-session", "--hostname", "box", "--as-pid-1", "--cap-drop", "ALL")
    if is_root():
        for capability in ("SETUID", "SETGID", "SYS_ADMIN"):
            yield from ("--cap-add", f"CAP_{capability}")
        yield from ("--dir", "/proc")  # process 1 mounts it: bubblewrap's has parts covered, which forbids another one
    else:
        yield from ("--unshare-user", "--uid", "65534", "--gid", "65534", "--proc", "/proc")


def _view(packages: bool, layers: Path) -> Iterator[str]:
    """The file system: what an interpreter needs, read-only at its own paths, and where folders will be mounted."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        else:
            yield from ("--ro-bind-try", name, name)
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts"):
        yield from ("--ro-bind-try", name, name)
    for path in python_folders():
        for parent in reversed(path.parents[:-1]):
            yield from ("--perms", "0755", "--dir", str(parent))
        yield from ("--ro-bind", str(path), str(path))
    yield from ("--dev", "/dev", "--dir", "/dev/shm")
    yield from ("--perms", "0755", "--dir", "/packages")
    for number, path in enumerate(site_packages() if packages else ()):
        yield from ("--ro-bind", path, f"/packages/{number}")
    if packages:  # a graphics card is of use to packages only
        for name in DEVICES:
            yield from ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")
    for folder in (WORK, "/tmp", "/box"):
        yield from ("--perms", "0755", "--dir", folder)
    yield from ("--ro-bind", str(layers), "/layers", "--ro-bind", str(Path(__file__).with_name("pid1.py")), "/pid1.py")
    yield from ("--chdir", WORK, "--remount-ro", "/dev", "--remount-ro", "/")


def python_folders() -> list[Path]:
    """Where the base interpreter lives, unless that is under /usr, which is there already."""
    named = (Path(p) for p in (sys.base_prefix, sys.base_exec_prefix))
    folders = {p for path in named for p in (path, path.resolve())}
    return sorted(path for path in folders if not path.is_relative_to("/usr"))


def site_packages() -> list[str]:
    """The folders of installed packages, here. In a box they are /packages/0, ...: their own path may be one of the box's."""
    paths = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return list(dict.fromkeys(os.path.realpath(path) for path in paths if path))


def environment(packages: bool = False) -> dict[str, str]:
    """What every command gets. String hashing is fixed, so that verdicts do not depend on it."""
    path = f"{os.path.dirname(PYTHON[0])}:/usr/local/bin:/usr/bin:/bin"
    python = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if packages:
        python["PYTHONPATH"] = ":".join(f"/packages/{number}" for number in range(len(site_packages())))
    return {"PATH": path, "HOME": WORK, "LANG": "C.UTF-8", **python}


def _environment(packages: bool) -> Iterator[str]:
    yield "--clearenv"
    for key, value in environment(packages).items():
        yield from ("--setenv", key, value)


@functools.cache
def _id_range() -> tuple[int, int]:
    """(first, count) of the largest range of user ids this process may take on. Asked several times for each check."""
    rows = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return max(((int(first), int(count)) for first, _, count in rows), key=lambda row: row[1])


def is_root() -> bool:
    """Root with other ids to drop to; not a lone root inside somebody's user namespace."""
    return os.geteuid() == 0 and _id_range()[1] > 2


def _outer_ids() -> tuple[int, int]:
    """The ids on this machine, in the upper half of ours, of process 1 and of the inmates of root's boxes."""
    first, count = _id_range()
    return first + count // 2, first + count // 2 + 1
