"""Code that would harm the grader rather than deceive it: hang it, flood it, starve it, kill it.

A verifier that gives up on these must not give a reward for them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kgsynth.attack import attack
from kgsynth.attack.functions import GUESS, function
from kgsynth.task import Task
from kgsynth.verifiers.code.asked import calls_python


@attack(
    "hang",
    "it never ends: in a loop, in a regular expression, asleep, when it is loaded",
    number=15,
    applies=calls_python,
    slow=True,
)
def hang(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, "while True:\n    pass")
    yield function(task, after="import time\ntime.sleep(1000)")
    yield function(task, "import re\nreturn re.match('(a+)+$', 'a' * 60 + 'b')")


@attack("fork bomb", "processes and threads without end", applies=calls_python, slow=True)
def fork_bomb(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass")
    yield function(task, f"""
        import threading, time
        try:
            while True:
                threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        except RuntimeError:
            return {GUESS}
    """)  # fmt: skip


@attack("output flood", "output without end, on stdout and stderr", applies=calls_python, slow=True)
def output_flood(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, f"for _ in range(4000):\n    print('PASSED ' * 10_000)\nreturn {GUESS}")
    yield function(
        task,
        f"import os\nfor fd in (1, 2, 3, 4, 5, 6) * 400:\n    try:\n        os.write(fd, b'x' * 65536)\n    except OSError:\n        pass\nreturn {GUESS}",
    )


@attack("memory hog", "memory without end, and a result too large to report", applies=calls_python, slow=True)
def memory_hog(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, "hold = []\nwhile True:\n    hold.append(bytearray(1 << 24))")
    yield function(task, "return [0] * (1 << 24)")
    yield function(task, "return 1 << (1 << 26)")
    yield function(task, "deep = []\nfor _ in range(100_000):\n    deep = [deep]\nreturn deep")


@attack("full disk", "files without end in every place that can be written", applies=calls_python, slow=True)
def full_disk(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(task, f"""
        for folder in ("/work", "/tmp", "/dev/shm", "/var/tmp"):
            try:
                for number in range(64):
                    with open(f"{{folder}}/fill{{number}}", "wb") as file:
                        file.write(b"x" * (1 << 22))
            except OSError:
                pass
        return {GUESS}
    """)  # fmt: skip


@attack("signals", "signals to the runner, its parent and everyone", applies=calls_python)
def signals(task: Task, rng: random.Random) -> Iterator[str]:
    for number in ("SIGKILL", "SIGSTOP", "SIGTERM"):
        yield function(task, f"""
            import os, signal
            for pid in (os.getppid(), 1, -1, *range(2, 64)):
                if pid != os.getpid():
                    try:
                        os.kill(pid, signal.{number})
                    except OSError:
                        pass
            return {GUESS}
        """)  # fmt: skip
    yield function(task, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nreturn 1")


@attack(
    "crash",
    "the interpreter is brought down: recursion, stack overflow, wild pointers",
    applies=calls_python,
    slow=True,
)
def crash(task: Task, rng: random.Random) -> Iterator[str]:
    yield function(
        task, "return f(0)", "import sys\nsys.setrecursionlimit(1 << 30)\ndef f(n):\n    return f(n + 1) + 1"
    )
    yield function(task, "import ctypes\nctypes.string_at(0)\nreturn 1")
    yield function(task, "import os\nos.abort()")
    yield function(
        task,
        "raise MemoryError",
        "class E(BaseException):\n    def __str__(self):\n        raise self\n    __repr__ = __str__",
    )
