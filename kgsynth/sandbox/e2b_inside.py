"""The program that watches one command from inside a sandbox of an E2B server, sent there along with each command.

A server bounds the life of a whole sandbox, but of one command only its time, and then forgets the children. This one
sets the limits of each process, sees that all of them together keep within time, memory and output, and kills
the whole tree of one that does not. Background processes of a command that ends by itself stay.

The output passes through as it comes, after a line with the caller's mark on each stream: what the login shell said is
before it. The last line of stderr is the mark and a report (JSON: exit_code, timed_out, truncated, out_of_memory,
seconds). Needs Python 3.9 and nothing else of the template.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from typing import IO, Any

WORK = "/work"
TICK_SECONDS = 0.05  # between two looks at the memory in use
FLOOD = 64  # times the output limit are read and dropped; a command that writes more is killed
FROZEN_SECONDS = 1.0  # a longer gap between two looks: the sandbox was paused, and the command's time with it
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38

prctl = ctypes.CDLL(None).prctl


class Output:
    """One stream: up to `limit` bytes are passed on, the rest is read and dropped."""

    def __init__(self, target: int, limit: int) -> None:
        self.target, self.limit, self.seen = target, limit, 0

    def take(self, fd: int) -> bool:
        """Pass on what is ready. False at the end of the stream."""
        chunk = os.read(fd, 1 << 16)
        kept = chunk[: max(0, self.limit - self.seen)]
        self.seen += len(chunk)
        while kept:
            kept = kept[os.write(self.target, kept) :]
        return bool(chunk)


def main(argument: str) -> None:
    """Run the command that `argument` describes: JSON, or @ and the path of a file of it, which is removed first."""
    spec = load(argument)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans come to us, so that the tree stays one
    prctl(PR_SET_DUMPABLE, 0)  # the command may not look into us
    for stream in (1, 2):
        os.write(stream, f"{spec['mark']}\n".encode())
    started = time.monotonic()
    try:
        child = start(spec)
    except OSError as error:
        os.write(2, f"{spec['argv'][0]}: {error.strerror}\n".encode("utf-8", "replace"))
        report: dict[str, Any] = {"exit_code": 127 if isinstance(error, FileNotFoundError) else 126}
    else:
        report = watch(child, spec["limits"])
    report["seconds"] = time.monotonic() - started
    os.write(2, f"\n{spec['mark']} {json.dumps(report)}".encode())


def load(argument: str) -> dict[str, Any]:
    if not argument.startswith("@"):
        return json.loads(argument)
    with open(argument[1:], encoding="ascii") as file:
        os.unlink(argument[1:])
        return json.load(file)


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    argv = [part.encode("utf-8", "surrogatepass") for part in spec["argv"]]
    env = {"PATH": os.environ.get("PATH", os.defpath), **spec["env"]}
    return subprocess.Popen(
        argv,
        stdin=source(spec["stdin"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=WORK,
        env={key: value.encode("utf-8", "surrogatepass") for key, value in env.items()},
        start_new_session=True,
        preexec_fn=lambda: confine(spec["limits"]),
    )


def source(text: str) -> IO[bytes] | int:
    """A file that is read to its end and no further; nobody can wait for more."""
    if not text:
        return subprocess.DEVNULL
    from tempfile import TemporaryFile  # slow to import, and seldom needed

    file = TemporaryFile()  # noqa: SIM115 (the command's from here on)
    file.write(text.encode("utf-8", "surrogatepass"))
    file.seek(0)
    return file


def confine(limits: dict[str, Any]) -> None:
    """Limits of the process that is about to become the command, and of all its children. It dies with its watcher."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)  # no sudo, no set-user-id program
    wanted = {
        resource.RLIMIT_CPU: limits["cpu_seconds"],
        resource.RLIMIT_AS: limits["virtual_bytes"] or resource.RLIM_INFINITY,
        resource.RLIMIT_NPROC: limits["processes"] + 1,  # the watcher counts
        resource.RLIMIT_FSIZE: limits["file_mb"] << 20,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in wanted.items():
        most = resource.getrlimit(kind)[1]
        over = value + 1 if kind == resource.RLIMIT_CPU else value  # a second between the signal and the end
        soft, hard = (value, over) if most == resource.RLIM_INFINITY else (min(value, most), min(over, most))
        resource.setrlimit(kind, (soft, hard))


def watch(child: subprocess.Popen[bytes], limits: dict[str, Any]) -> dict[str, Any]:
    """Wait for the end of the command, or end it when it is over a limit."""
    assert child.stdout
    assert child.stderr
    outputs = {fd: Output(target, limits["output_kb"] << 10) for target, fd in ((1, child.stdout), (2, child.stderr))}
    with selectors.DefaultSelector() as waiting:
        for stream, output in outputs.items():
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream.fileno(), selectors.EVENT_READ, output)
        verdict = wait(child, waiting, limits)
        if child.returncode is None:
            kill_tree(child)
        drain(waiting)
        for key in list(waiting.get_map().values()):
            leave_reader(key.fd)
    return {
        "exit_code": -signal.SIGKILL if verdict else child.returncode,
        "timed_out": verdict == "time" or child.returncode == -signal.SIGXCPU,
        "out_of_memory": verdict == "memory",
        "truncated": any(output.seen > output.limit for output in outputs.values()),
    }


def wait(child: subprocess.Popen[bytes], waiting: selectors.BaseSelector, limits: dict[str, Any]) -> str:
    """Which limit the command went over: time, memory or output; empty when it ended by itself."""
    last = time.monotonic()
    stop, next_look = last + limits["seconds"], last
    while child.returncode is None:
        tick = TICK_SECONDS if waiting.get_map() else TICK_SECONDS / 20  # only its exit is left to wait for
        for key, _ in waiting.select(max(0.0, min(tick, stop - last))):
            if not key.data.take(key.fd):
                waiting.unregister(key.fd)
            if key.data.seen > FLOOD * key.data.limit:
                return "output"
        reap(child)
        now = time.monotonic()
        stop += now - last if now - last > FROZEN_SECONDS else 0.0
        last = now
        if child.returncode is None and now >= stop:
            return "time"
        if now >= next_look:
            if memory_in_use(child.pid) > limits["memory_mb"] << 20:
                return "memory"
            next_look = now + TICK_SECONDS
    return ""


def drain(waiting: selectors.BaseSelector) -> None:
    """Read what was written before the end. What a process in the background may write later is not waited for."""
    for key in list(waiting.get_map().values()):
        try:
            while key.data.seen <= FLOOD * key.data.limit:
                if not key.data.take(key.fd):
                    waiting.unregister(key.fd)
                    break
        except BlockingIOError:
            continue


def leave_reader(fd: int) -> None:
    """Somebody in the background may still write there, and shall not die of it."""
    os.set_blocking(fd, True)
    subprocess.Popen(["cat"], stdin=fd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def reap(child: subprocess.Popen[bytes]) -> None:
    """Take the exit codes of all that have ended, adopted orphans among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)


def kill_tree(child: subprocess.Popen[bytes]) -> None:
    for _ in range(1000):
        reap(child)
        pids = descendants(child.pid)
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.002)


def descendants(session: int) -> list[int]:
    """All processes below this one, and the others of a session: orphans, where the kernel does not give them to us."""
    parents, found = {}, []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[pid] = int(words[1])
        if int(words[3]) == session:
            found.append(pid)
    todo = [os.getpid(), *found]
    while todo:
        parent = todo.pop()
        children = [pid for pid, above in parents.items() if above == parent and pid not in found]
        found += children
        todo += children
    return found


def memory_in_use(session: int) -> int:
    """Bytes of anonymous memory that the command's processes hold together."""
    pages = 0
    for pid in descendants(session):
        try:
            with open(f"/proc/{pid}/statm") as file:
                resident, shared = map(int, file.read().split()[1:3])
        except (OSError, ValueError):
            continue
        pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1])
