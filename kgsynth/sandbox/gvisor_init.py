"""The first process of a gVisor box. It runs inside, as that box's root, and needs nothing but Python's own modules.

It takes requests from its stdin and answers on its stdout, so that a command costs a fork and no start of `runsc`, and
so that no command holds a descriptor of the host, which a checkpoint could not save. Both ways go frames: the lengths
of a JSON header and of the data (two 4-byte integers, the higher byte first), the header, the data.

Commands run as nobody, each below a keeper of its own: a process to which the orphans of its command go, so that all
that a command started can be found and killed. When the command ends, its keeper goes, and what it left behind lives on.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import stat
import struct
import sys

HEAD = struct.Struct("!II")
NOBODY = 65534
WORK = "/work"
DISK = "/disk"  # one tmpfs, of which the writable folders are parts: they share its limit
WRITABLE = {"work": WORK, "tmp": "/tmp", "shm": "/dev/shm"}
FLOOD = 16  # times the output limit: what writes more than that is killed
MS_BIND, PR_SET_CHILD_SUBREAPER = 4096, 36
CHUNK = 1 << 16
libc = ctypes.CDLL(None, use_errno=True)


class Job:
    """A command, its keeper, and the read ends of its pipes, which are read for as long as anybody can write."""

    def __init__(self, number: int, keeper: int, status: int, out: int, err: int, limit: int) -> None:
        self.number, self.keeper, self.status, self.limit = number, keeper, status, limit
        self.streams = {out: "out", err: "err"}
        self.left = {"out": limit, "err": limit}
        self.attached = True  # somebody waits for the result
        self.truncated = False

    def take(self, fd: int) -> int:
        """Read once, pass on what the limit allows. The number of bytes read."""
        chunk = os.read(fd, CHUNK)
        name = self.streams[fd]
        room = max(0, self.left[name])
        self.left[name] -= len(chunk)
        self.truncated |= len(chunk) > room
        if self.attached and chunk[:room]:
            send({"id": self.number, "event": name}, chunk[:room])
        return len(chunk)

    @property
    def flooding(self) -> bool:
        return min(self.left.values()) < -FLOOD * self.limit


def send(header: dict[str, object], data: bytes = b"") -> None:
    text = json.dumps(header).encode()
    rest = memoryview(HEAD.pack(len(text), len(data)) + text + data)
    while rest:
        rest = rest[os.write(1, rest) :]


def receive() -> tuple[dict, bytes]:
    head = exactly(HEAD.size)
    text, data = HEAD.unpack(head)
    return json.loads(exactly(text)), exactly(data)


def exactly(count: int) -> bytes:
    """So many bytes of stdin. When it ends, the host's program is gone, and the box with it."""
    parts = bytearray()
    while len(parts) < count:
        chunk = os.read(0, min(1 << 20, count - len(parts)))
        if not chunk:
            os._exit(0)
        parts += chunk
    return bytes(parts)


# Commands


def start(request: dict, stdin: bytes) -> Job:
    (out, out_end), (err, err_end), (status, status_end) = os.pipe(), os.pipe(), os.pipe()
    source = os.open("/dev/null", os.O_RDONLY) if not stdin else filled(stdin)
    keeper = os.fork()
    if keeper == 0:
        try:
            keep(request, (source, out_end, err_end), status_end)
        finally:
            os._exit(70)
    for fd in (source, out_end, err_end, status_end):
        os.close(fd)
    for fd in (out, err, status):
        os.set_blocking(fd, False)
    return Job(request["id"], keeper, status, out, err, request["limits"]["output"])


def filled(data: bytes) -> int:
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def keep(request: dict, streams: tuple[int, int, int], status: int) -> None:
    """Be the keeper: start the command, report how it ended, adopt and bury its orphans until then."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        try:
            become(request, streams)
        finally:
            os._exit(126)
    os.closerange(0, status)
    os.closerange(status + 1, 256)
    while True:
        pid, code = os.wait()
        if pid == child:
            os.write(status, struct.pack("!i", os.waitstatus_to_exitcode(code)))
            os._exit(0)


def become(request: dict, streams: tuple[int, int, int]) -> None:
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for name, value in request["limits"]["resources"].items():
        resource.setrlimit(getattr(resource, name), tuple(value))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir(WORK)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    argv, env = request["argv"], request["env"]
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126)


def finish(job: Job, code: int) -> None:
    """The command has ended. Pass on what is in its pipes; forget nobody who may still write."""
    for fd in list(job.streams):
        with contextlib.suppress(BlockingIOError):
            for _ in range(16):  # a pipe holds 64 KiB; a child in the background may fill it as fast as we read
                if not job.take(fd):
                    break
    if job.attached:
        send({"id": job.number, "event": "exit", "code": code, "truncated": job.truncated})
    job.attached = False
    os.close(job.status)
    job.status = -1


# Killing


def processes() -> dict[int, int]:
    """Every living process and its parent."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rsplit(")", 1)[1].split()[:2]
            if state not in "ZX":
                found[int(name)] = int(parent)
    return found


def below(root: int) -> set[int]:
    """The living descendants of a process."""
    parents = processes()
    found, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {root}


def kill_below(root: int, spared: set[int]) -> None:
    """Stop all that live below `root` until nothing new appears, so that nothing can fork away; then kill them."""
    stopped: set[int] = set()
    while fresh := below(root) - spared - stopped:
        for pid in fresh:
            signal_to(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        signal_to(pid, signal.SIGKILL)
    while below(root) - spared:
        bury()


def signal_to(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_job(job: Job) -> None:
    signal_to(job.keeper, signal.SIGSTOP)
    kill_below(job.keeper, set())
    signal_to(job.keeper, signal.SIGKILL)


def bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


# Files


def inside(path: str) -> int:
    """A folder below the working directory, opened; no link is followed on the way."""
    fd = os.open(WORK, os.O_RDONLY | os.O_DIRECTORY)
    for name in path.split("/"):
        try:
            step = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = step
    return fd


def opened(path: str, flags: int) -> int:
    """A regular file below the working directory. Links are followed as long as they stay there."""
    target = os.path.realpath(os.path.join(WORK, path))
    if not target.startswith(WORK + "/"):
        raise PermissionError(f"it leads out of {WORK}, to {target}")
    folder, name = os.path.split(target)
    if flags & os.O_CREAT:
        os.makedirs(folder, exist_ok=True)
    where = inside(os.path.relpath(folder, WORK))
    try:
        fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644, dir_fd=where)
    finally:
        os.close(where)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("it is not a regular file")
    return fd


def read(path: str, limit: int) -> bytes:
    with open(opened(path, os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(f"it is larger than Limits.disk_mb = {limit >> 20} MB")
    return data


def write(path: str, data: bytes) -> None:
    with open(opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)


@contextlib.contextmanager
def as_nobody():
    """What is done in here is done with the rights of the code in the box."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


# The loop


class Init:
    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.woken, end = os.pipe()
        for fd in (self.woken, end):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(end)

    def serve(self) -> None:
        while True:
            waiting = {fd: job for job in self.jobs for fd in (*job.streams, job.status) if fd >= 0}
            poll = select.poll()
            for fd in (0, self.woken, *waiting):
                poll.register(fd, select.POLLIN)
            ready = [fd for fd, _ in poll.poll()]
            for fd in ready:
                if fd in waiting and fd != waiting[fd].status:
                    self.pump(waiting[fd], fd)
            for fd in ready:
                if fd in waiting and fd == waiting[fd].status:
                    self.ended(waiting[fd])
            if self.woken in ready:
                os.read(self.woken, CHUNK)
                bury()
            self.jobs = [job for job in self.jobs if job.streams or job.status >= 0]
            if 0 in ready:
                self.answer(*receive())

    def pump(self, job: Job, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            if not job.take(fd):
                os.close(fd)
                del job.streams[fd]
        if job.flooding and job.attached:
            kill_job(job)

    def ended(self, job: Job) -> None:
        report = os.read(job.status, 4)  # empty when the keeper was killed, with all below it
        finish(job, struct.unpack("!i", report)[0] if report else -signal.SIGKILL)

    def answer(self, request: dict, data: bytes) -> None:
        try:
            result = getattr(self, f"do_{request['do']}")(request, data)
        except (OSError, ValueError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            send({"id": request["id"], "event": "error", "reason": reason})
        else:
            send({"id": request["id"], "event": "done"}, result or b"")

    def do_exec(self, request: dict, data: bytes) -> None:
        self.jobs.append(start(request, data))

    def do_kill(self, request: dict, data: bytes) -> None:
        """All that one command started."""
        for job in self.jobs:
            if job.number == request["job"] and job.status >= 0:
                kill_job(job)

    def do_clear(self, request: dict, data: bytes) -> None:
        """Everything but this process."""
        kill_below(1, {job.keeper for job in self.jobs if job.status >= 0})

    def do_read(self, request: dict, data: bytes) -> bytes:
        with as_nobody():
            return read(request["path"], request["limit"])

    def do_write(self, request: dict, data: bytes) -> None:
        with as_nobody():
            write(request["path"], data)

    def do_ping(self, request: dict, data: bytes) -> None:
        """Nothing; that there is an answer says all."""

    def do_greet(self, request: dict, data: bytes) -> None:
        """A new host has taken over a copy of this box: end the frame that was cut, forget who waited."""
        for job in self.jobs:
            job.attached = False
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(1, rest) :]


def main() -> None:
    for name, path in WRITABLE.items():
        part = f"{DISK}/{name}"
        os.mkdir(part)
        os.chmod(part, 0o1777)
        if libc.mount(part.encode(), path.encode(), None, MS_BIND, None):
            raise OSError(ctypes.get_errno(), f"cannot mount {path}")
    os.umask(0o022)
    Init().serve()


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        sys.stderr.write(f"init: {error!r}\n")
        raise
