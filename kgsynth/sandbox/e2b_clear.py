"""The program that ends what code runs inside a sandbox of an E2B server, sent there and run by its root.

The code's processes are told by their limit on core files: `e2b_inside.py` sets it to 0, all that a command starts
inherits that, and nobody without privilege can raise it. The server's own processes and the system's services have
another, or are our ancestors. Needs Python 3.9 and nothing else of the template.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time

SECONDS = 20.0  # until it gives up


def main() -> None:
    spared, stop = ancestors(), time.monotonic() + SECONDS
    while found := living(spared):
        for number in (signal.SIGSTOP, signal.SIGKILL):  # first see that none forks away
            for pid in found:
                send(pid, number)
        if time.monotonic() > stop:
            sys.exit(f"{len(found)} processes do not end")


def living(spared: set[int]) -> list[int]:
    """The processes of code, but for these; and what vanished while we looked: its children may be too young to be here.

    The kernel lists processes by number, and a child has a higher one: whoever forks on is found.
    """
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    return [pid for pid in pids if pid not in spared and is_code(pid) and not has_ended(pid)]


def is_code(pid: int) -> bool:
    try:
        return resource.prlimit(pid, resource.RLIMIT_CORE)[1] == 0
    except PermissionError:
        return False
    except ProcessLookupError:
        return True


def has_ended(pid: int) -> bool:
    """Whether it is a zombie of which no thread is left: the first one alone may have ended."""
    try:
        with open(f"/proc/{pid}/status", errors="replace") as file:
            said = dict(line.split(":", 1) for line in file)
    except OSError:
        return False
    return said["State"].split()[0] in "ZX" and int(said["Threads"]) <= 1


def ancestors() -> set[int]:
    """This process, its parent, and so on."""
    found, pid = set(), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = parent(pid)
    return found


def parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


if __name__ == "__main__":
    main()
