"""A box with state of every kind, and questions to it."""

from __future__ import annotations

import time

from kgsynth.sandbox import Box, Sandbox

STEP = 0.02  # seconds that the counter sleeps between two numbers, at least
COUNTER = f"""
import os, time
n = 0
while True:
    n += 1
    for folder in ("/work", "/dev/shm"):
        with open(f"{{folder}}/.n", "w") as file:
            file.write(str(n))
        os.replace(f"{{folder}}/.n", f"{{folder}}/n")
    if os.path.exists("/work/ask"):
        with open("/work/.said", "w") as file:
            file.write(os.urandom(16).hex())
        os.replace("/work/.said", "/work/said")
        os.remove("/work/ask")
    time.sleep({STEP})
"""


def start_counter(sandbox: Sandbox, box: Box) -> None:
    """A process in the background that writes 1, 2, 3, ... to a file and to a tmpfs, and draws a number when asked."""
    box.write("counter.py", COUNTER)
    result = box.exec(["sh", "-c", f"{' '.join(sandbox.python)} -S counter.py >/dev/null 2>&1 &"])
    assert result.ok, result
    until(lambda: readable(box, "n"))


def count(box: Box) -> int:
    return int(box.read("n"))


def readable(box: Box, path: str) -> bool:
    return box.exec(["test", "-e", path]).ok


def until(true) -> None:
    """Wait for it, 20 seconds at most."""
    stop = time.monotonic() + 20
    while not true():
        assert time.monotonic() < stop, "it did not come true"
        time.sleep(0.02)


def counts_on(box: Box) -> None:
    """Its counter is the same process as ever, at work."""
    before = count(box)
    until(lambda: count(box) > before)


def sh(box: Box, script: str) -> str:
    result = box.exec(["sh", "-c", script])
    assert result.ok, result
    return result.stdout


def boxes(children: list[Box | Exception]) -> list[Box]:
    for child in children:
        if isinstance(child, Exception):
            raise child
    return [child for child in children if not isinstance(child, Exception)]


def kill_all(children: list[Box]) -> None:
    for child in children:
        child.kill()


# Programs that go into the background and do not want to end there.
BACKGROUND = "import os, signal, time\nif os.fork():\n    os._exit(0)\nos.setsid()\n"
IGNORES = """
for number in set(range(1, 65)) - {9, 19, 32, 33}:
    signal.signal(number, signal.SIG_IGN)
"""
WRITES = """
def write_on():
    while True:
        with open("/work/alive", "a") as file:
            file.write("x")
        time.sleep(0.01)
"""
STUBBORN = {
    "ignores signals": BACKGROUND + IGNORES + WRITES + "write_on()",
    "forks on": BACKGROUND
    + """
for _ in range(2):
    os.fork()
while True:
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        continue
    with open("/work/alive", "a") as file:
        file.write("x")
""",
    "kills all others": BACKGROUND
    + WRITES
    + """
child = os.fork()
if not child:
    write_on()
while True:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) not in (os.getpid(), child):
            try:
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
""",
    "lives on in a thread": BACKGROUND
    + WRITES
    + """
import ctypes, threading
threading.Thread(target=write_on).start()
ctypes.CDLL(None).syscall(60, 0)  # exit: ends only this thread
""",
}
