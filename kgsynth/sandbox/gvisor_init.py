"""The first process of a gVisor box. It runs inside, as that box's root, and needs nothing but Python's own modules.

It takes requests from its stdin and answers on its stdout, so that a command costs a fork and no start of `runsc`, and
so that no command holds a descriptor of the host, which a checkpoint could not save. Both ways go frames: the lengths
of a JSON header and of the data (two 4-byte integers, the higher byte first), the header, the data.

Commands run as nobody, each with a supplementary group of its own. All that it starts inherits that and cannot drop it,
whoever its parent is by then: so all of it can be found and killed, and what a command left behind before it lives on.
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
FLOOD = 64 << 20  # bytes over the output limit: what writes more than that is killed
MS_BIND = 4096
FIRST_MARK = 1 << 20  # the groups of the commands
CHUNK = 1 << 16
libc = ctypes.CDLL(None, use_errno=True)


class Job:
    """A command, its mark, and the read ends of its pipes, which are read for as long as anybody can write."""

    def __init__(self, number: int, mark: int, pid: int, out: int, err: int, limit: int) -> None:
        self.number, self.mark, self.pid = number, mark, pid
        self.streams = {out: "out", err: "err"}
        self.left = {"out": limit, "err": limit}
        self.running = True
        self.attached = True  # somebody waits for the result
        self.truncated = self.out_of_memory = False

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
        return min(self.left.values()) < -FLOOD


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


def start(request: dict, stdin: bytes, mark: int) -> Job:
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    source = os.open("/dev/null", os.O_RDONLY) if not stdin else filled(stdin)
    try:
        pid = os.fork()
        if pid == 0:
            try:
                become(request, (source, out_end, err_end), mark)
            finally:
                os._exit(126)
    except OSError:
        os.close(out)
        os.close(err)
        raise
    finally:
        for fd in (source, out_end, err_end):
            os.close(fd)
    for fd in (out, err):
        os.set_blocking(fd, False)
    return Job(request["id"], mark, pid, out, err, request["limits"]["output"])


def filled(data: bytes) -> int:
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def become(request: dict, streams: tuple[int, int, int], mark: int) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for name, value in request["limits"]["resources"].items():
        resource.setrlimit(getattr(resource, name), tuple(value))
    os.setgroups([mark])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    try:
        os.chdir(WORK)
    except PermissionError:  # closed by code in the box
        os.chdir("/")
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
        how = {"code": code, "truncated": job.truncated, "out_of_memory": job.out_of_memory}
        send({"id": job.number, "event": "exit", **how})
    job.running = job.attached = False


# Killing


def living() -> dict[int, tuple[int, int]]:
    """The mark and the kilobytes held of every process but this one. Those that have ended do not count; one whose
    first thread alone has ended looks as if it had, but has threads."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/status") as file:
                said = dict(line.split(":", 1) for line in file)
            if name != "1" and (said["State"].split()[0] not in "ZX" or int(said["Threads"]) > 1):
                found[int(name)] = (int((said["Groups"].split() or ["0"])[0]), int(said["VmRSS"].split()[0]))
    return found


def marked(mark: int) -> set[int]:
    return {pid for pid, (its, _) in living().items() if its == mark}


def kill_marked(mark: int) -> None:
    """Stop them until nothing new appears, so that nothing can fork away; then kill them. Again, if one let others go on."""
    while marked(mark) or marked(mark):  # one look may miss what forks and ends meanwhile
        stopped: set[int] = set()
        while fresh := marked(mark) - stopped:
            for pid in fresh:
                signal_to(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            signal_to(pid, signal.SIGKILL)


def signal_to(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


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
        self.started = 0  # commands, here and in the boxes that this one is a copy of
        self.woken, end = os.pipe()
        for fd in (self.woken, end):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(end)

    def serve(self) -> None:
        while True:
            waiting = {fd: job for job in self.jobs for fd in job.streams}
            poll = select.poll()
            for fd in (0, self.woken, *waiting):
                poll.register(fd, select.POLLIN)
            ready = [fd for fd, _ in poll.poll()]
            for fd in ready:
                if fd in waiting:
                    self.pump(waiting[fd], fd)
            if self.woken in ready:
                os.read(self.woken, CHUNK)
                self.bury()
            self.jobs = [job for job in self.jobs if job.streams or job.running]
            if 0 in ready:
                self.answer(*receive())

    def pump(self, job: Job, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            if not job.take(fd):
                os.close(fd)
                del job.streams[fd]
        if job.flooding and job.attached:
            kill_marked(job.mark)

    def bury(self) -> bool:
        """Take leave of all that have ended; among them may be commands. Whether any process is left."""
        running = {job.pid: job for job in self.jobs if job.running}
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] in running:
                    finish(running[ended[0]], os.waitstatus_to_exitcode(ended[1]))
        except ChildProcessError:
            return False
        return True

    def answer(self, request: dict, data: bytes) -> None:
        try:
            result = getattr(self, f"do_{request['do']}")(request, data)
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            send({"id": request["id"], "event": "error", "reason": reason})
        else:
            send({"id": request["id"], "event": "done"}, result or b"")

    def do_exec(self, request: dict, data: bytes) -> None:
        self.started += 1
        self.jobs.append(start(request, data, FIRST_MARK + self.started))

    def do_kill(self, request: dict, data: bytes) -> None:
        """All that one command started."""
        for job in self.jobs:
            if job.number == request["job"] and job.running:
                kill_marked(job.mark)

    def do_clear(self, request: dict, data: bytes) -> None:
        """End every process but this one, which none of them can kill. Whatever lives here is our child or comes to be."""
        while self.bury():
            signal_to(-1, signal.SIGSTOP)
            signal_to(-1, signal.SIGKILL)

    def do_relieve(self, request: dict, data: bytes) -> None:
        """The box holds too much memory: kill the command, with all it started, that holds the most of it."""
        held: dict[int, int] = {}
        for mark, size in living().values():
            held[mark] = held.get(mark, 0) + size
        if held:
            largest = max(held, key=lambda mark: held[mark])
            for job in self.jobs:
                job.out_of_memory |= job.mark == largest
            kill_marked(largest)

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
