"""The process that judges mathematics: imports and warms up once, then forks for every question.

Each question starts from the same state, so its verdict and its CPU time do not depend on the ones before it. It runs
under limits of CPU time, memory, open files and processes, cannot write a file, and no text can become code in it: an
audit hook refuses to compile any, and to start a program, open a socket or write a file. Ends with its parent.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any

from kgsynth.verifiers.algebra.client import LIMITS
from kgsynth.verifiers.algebra.judge import judge

WARM_UP = (
    ("number", "\\frac{1}{2}", "2\\sqrt{3}+1.5"),
    ("expression", "x^2+2x+1", "(x+1)^{2} \\sin^2 x - \\ln(x)/\\log_{2} 8 + e^{-x} + |x| + \\sqrt[3]{x} + \\pi y_1"),
    ("set", "\\{1, 2\\}", "x = -1 or x = 2"),
    ("interval", "(1, 2] \\cup [3, \\infty)", "x < 1"),
    ("tuple", "(1, 2)", "(1, 2)"),
    ("equation", "y = 2x + 1", "2x - y = -1"),
    ("matrix", "\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "[[1, 2], [3, 5]]"),
)
SHAPES = r"""
-\frac{7}{2}; 3.25; 60^{\circ}; \pi/3; 2\pi r; 3+4i; \frac{\sqrt{3}}{2}; -2\sqrt{3}+1; \frac{1}{3}\pi; 1.5 \cdot 10^{-6}; 2^{100}; -x^{2}+3x-1; x(x+2)+1
(x-2)(x+3); \frac{x+1}{x-1}; \frac{-b+\sqrt{b^{2}-4ac}}{2a}; x^{2}y^{3}; \frac{3x}{4}; 3x/4; (n^{2}+n)/2; 2\sin x \cos x; \sin(2x); \cos^{2}(x)-1
\ln x^{2}; \ln(x+1); \ln 2; \log_{2}(x); e^{-x^{2}/2}; xe^{x}; |x-1|; \sqrt[3]{8x}; x_{1}+x_{2}; \alpha+\beta; 5!; \infty; -\infty; \frac{1}{1-x}; a^{n+1}
\sum_{k=1}^{n} k; \binom{n}{2}; \frac{n(n+1)(2n+1)}{6}; \arctan(x); x+y+z; -y-1; \frac{x^{2}}{4}+\frac{y^{2}}{9}; \pi(r+1)^{2}; -(x+1); x^{-1}; 4x^{3/2}
"""  # one of each shape: the parser remembers what it has seen, and then takes a tenth of the time
REFUSED = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove", "os.rename", "os.mkdir", "os.kill")
REFUSED += ("subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "webbrowser.", "code.__new__", "marshal.loads")


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    for kind, expected, answer in WARM_UP:
        judge({"kind": kind, "expected": expected, "answer": answer})
    for shape in SHAPES.replace("\n", ";").split(";"):
        judge({"kind": "expression", "expected": shape, "answer": shape})
    gc.freeze()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # nobody reads what libraries warn of
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the guardians
    control.sendall(b"!")
    while (message := socket.recv_fds(control, struct.calcsize(LIMITS), 1))[1]:
        if os.fork() == 0:
            guard(socket.socket(fileno=message[1][0]), *struct.unpack(LIMITS, message[0]))
        os.close(message[1][0])
    os.killpg(0, signal.SIGKILL)  # the parent is gone: so are all questions


def guard(asker: socket.socket, cpu_seconds: int, memory_mb: int, wall_seconds: int) -> None:
    """Judge in a child and say how that ended. Does not return."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        confine(cpu_seconds, memory_mb, wall_seconds)
        answer(asker)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        reasons = {signal.SIGXCPU: "timeout", signal.SIGKILL: "", signal.SIGALRM: "wall clock"}
        if reason := reasons.get(signal.Signals(os.WTERMSIG(status)), "too large"):
            asker.sendall(b"\n" + json.dumps({"reason": reason}).encode())
    os._exit(0)


def confine(cpu_seconds: int, memory_mb: int, wall_seconds: int) -> None:
    """Limits of the kernel, then the hook, which cannot be taken off again."""
    signal.alarm(wall_seconds)
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_mb << 20),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        resource.setrlimit(limit, (value, value + 1 if limit == resource.RLIMIT_CPU else value))
    sys.setrecursionlimit(3000)
    sys.addaudithook(refuse)


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Imports of modules that were not needed before go on: they compile files, not text."""
    compiles = event == "compile" and not str(arguments[1] or "<").startswith("/")
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if compiles or writes or event.startswith(REFUSED):
        raise PermissionError(f"{event} is refused here")


def answer(asker: socket.socket) -> None:
    """Read the question, write "begun" when what is expected was read, write the reply. Does not return."""
    try:
        question = json.loads(b"".join(iter(lambda: asker.recv(1 << 16), b"")))
        reply = judge(question, begun=lambda: asker.sendall(b"begun\n"))
    except (MemoryError, RecursionError):
        reply = {"reason": "too large"}
    asker.sendall(json.dumps(reply).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
