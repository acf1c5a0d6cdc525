"""The waiting interpreters of the bubblewrap backend: as good as fresh ones, and nothing goes from one check to the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import sandbox_checks as bench
from kgsynth.errors import SandboxError
from kgsynth.sandbox import Limits
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.sandbox.layers import SETTLED_SECONDS, sweep
from kgsynth.sandbox.supervise import descendants

ROOT = Path(__file__).resolve().parents[1]
COLD = {"PYTHONHASHSEED": "0"}  # an environment that says how Python starts: one must be started


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Bubblewrap]:
    backend = Bubblewrap(waiting=2)
    yield backend
    backend.close()


SAME = {
    "output": "import sys; print('out'); print('err', file=sys.stderr); print(sys.argv, __name__, sys.flags.hash_randomization)",
    "stdin": "import sys; print(input(), sys.stdin.read(), open('/dev/stdin').read())",
    "encoding": "import sys; print('ä€', sys.stdout.encoding, sys.stdin.errors); sys.stderr.write('\\udcff')",
    "exit code": "raise SystemExit(300)",
    "exit text": "import sys; sys.exit('bad')",
    "exception": "def f():\n    return 1 / 0\nf()",
    "exception group": "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
    "syntax error": "def f(:",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "segmentation fault": "import ctypes; ctypes.string_at(0)",
    "abort": "import os; print('lost'); os.abort()",
    "exit at once": "import os; print('lost'); os._exit(7)",
    "exit functions": "import atexit; atexit.register(print, 'bye'); print('hello')",
    "threads": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()",
    "unflushed file": "import os, subprocess\nf = open('x', 'w'); f.write('hi'); os.register_at_fork()\nimport atexit; atexit.register(lambda: print(open('x').read()))",
    "last words": "class A:\n    def __del__(self): print('del')\na = A(); b = A(); b.me = b",
    "closed output": "import sys; sys.stdout.close()",
    "own devices": "open('/dev/stdout', 'w').write('out'); open('/dev/stderr', 'w').write('err')",
    "a module of its own": "open('mine.py', 'w').write('x = 3'); import sys; sys.path.insert(0, '.'); import mine; print(mine.x)",
    "main can be imported": "import __main__; print(__main__.__dict__ is globals())",
    "pickle of main": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))))",
    "a process pool": "import multiprocessing as m\nif __name__ == '__main__': print(m.get_context('fork').Pool(2).map(abs, [-1, -2]))",
    "recursion": "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('deep')",
    "path": "import sys; print(sys.path)",
    "process ids": "import os; print(os.getuid(), os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')))",
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_waiting_interpreter_is_like_a_fresh_one(sandbox: Bubblewrap, name: str) -> None:
    command = [*sandbox.python, "-c", SAME[name]]
    warm, cold = (sandbox.run(command, stdin="line\nmore", env=env) for env in (None, COLD))
    assert (warm.exit_code, warm.stdout, warm.stderr) == (cold.exit_code, cold.stdout, cold.stderr)


def test_a_script_is_like_a_script(sandbox: Bubblewrap) -> None:
    files = {"a/run.py": "import sys; print(sys.argv, __file__, sys.path[:1]); raise KeyError(1)"}
    command = [*sandbox.python, "a/run.py", "x", "-c"]
    warm, cold = (sandbox.run(command, files=files, env=env) for env in (None, COLD))
    assert (warm.exit_code, warm.stdout) == (cold.exit_code, cold.stdout)
    assert warm.stderr.splitlines()[-1] == cold.stderr.splitlines()[-1] == "KeyError: 1"
    assert sandbox.run([*sandbox.python, "none.py"]).exit_code == 2


def test_nothing_goes_from_one_check_to_the_next(sandbox: Bubblewrap) -> None:
    """Files, processes, modules, builtins, environment, shared memory: each is changed, then looked for."""
    leave = """
import builtins, json, os, subprocess, sys
for path in ("/work/left", "/tmp/left", "/dev/shm/left"):
    open(path, "w").close()
builtins.print, json.loads, os.environ["LEFT"], sys.modules["left"] = len, len, "1", sys
subprocess.Popen(["sleep", "77"])
"""
    look = """
import glob, json, os, sys
print(os.listdir("/work"), os.listdir("/tmp"), os.listdir("/dev/shm"), "left" in sys.modules, "LEFT" in os.environ, json.loads("1"))
print([p for p in glob.glob("/proc/[0-9]*/cmdline") if b"77" in open(p, "rb").read()])
"""
    for _ in range(3):
        assert sandbox.run([*sandbox.python, "-c", leave]).ok
        assert sandbox.run([*sandbox.python, "-c", look]).stdout == "[] [] [] False False 1\n[]\n"


def test_every_check_has_a_network_of_its_own(sandbox: Bubblewrap) -> None:
    """The server closes first, so that its port rests a minute; counters and that port would tell the next check of it."""
    code = """
import socket
print(len(open("/proc/net/tcp").readlines()), [line.split()[1] for line in open("/proc/net/dev") if "lo:" in line])
with socket.create_server(("127.0.0.1", 5000)) as server, socket.create_connection(("127.0.0.1", 5000)) as client:
    served, _ = server.accept()
    served.close()
    print(client.recv(1))
"""
    for _ in range(3):
        result = sandbox.run([*sandbox.python, "-c", code])
        assert result.stdout == "1 ['0']\nb''\n", result.stderr


def test_chance_differs_and_hashing_does_not(sandbox: Bubblewrap) -> None:
    code = "import os, random, uuid; print(random.random(), uuid.uuid4(), os.urandom(8)); print(hash('a'))"
    rows = [sandbox.run([*sandbox.python, "-c", code]).stdout.splitlines() for _ in range(4)]
    assert len({row[0] for row in rows}) == 4
    assert len({row[1] for row in rows}) == 1


def test_packages_are_loaded_before(sandbox: Bubblewrap) -> None:
    code = (
        "import sys; print('numpy' in sys.modules); import numpy; print(numpy.arange(3).sum(), numpy.random.random())"
    )
    limits = Limits(memory_mb=1024)
    rows = [
        sandbox.run([*sandbox.python, "-c", code], packages=["numpy"], limits=limits).stdout.split() for _ in range(3)
    ]
    assert [row[:2] for row in rows] == [["True", "3"]] * 3
    assert len({row[2] for row in rows}) == 3
    with sandbox.create(limits, packages=["numpy"]) as box:
        assert box.exec([*sandbox.python, "-c", code]).stdout.split()[:2] == ["True", "3"]
    assert not sandbox.run([*sandbox.python, "-c", "import numpy"]).ok
    with pytest.raises(SandboxError, match="no-such-package is not installed"):
        sandbox.run([*sandbox.python, "-c", "1"], packages=["no-such-package"])


def test_a_lost_jail_is_an_error_and_is_not_used_again(sandbox: Bubblewrap) -> None:
    """What is lost in the middle of a check says nothing about the answer; what is lost before is replaced."""
    sandbox.run(["true"])
    (*_, jail) = sandbox._waiting[()]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sandbox.run, ["sleep", "60"])
        while len(list(descendants(jail.pid))) < 3:
            time.sleep(0.01)
        os.kill(jail.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="lost"):
            running.result(30)
    sandbox.run(["true"])
    for jail in sandbox._waiting[()]:
        os.kill(jail.pid, signal.SIGKILL)
        while jail.alive:
            time.sleep(0.01)
    assert sandbox.run(["true"]).ok


def test_hostile_checks_change_no_other_verdict() -> None:
    """The benchmark of the same name in small: every tenth check hangs, crashes or floods."""
    before = bench.leftovers()
    sandbox = Bubblewrap(waiting=8)
    kinds = [(kind, answers.get("block") or answers[""]) for kind, answers in bench.HOSTILE.items()]
    plain = [("right", bench.RIGHT), ("wrong", bench.WRONG)]
    checks = [kinds[(i // 10) % 3] if i % 10 == 0 else plain[i % 2] for i in range(240)]
    with ThreadPoolExecutor(8) as pool:
        verdicts = list(pool.map(lambda check: bench.judge(sandbox, check), checks))
    assert [verdict.score for verdict in verdicts] == [float(kind == "right") for kind, _ in checks]
    sandbox.close()
    assert not bench.leftovers() - before


ABANDON = """
import sys, time
from kgsynth.sandbox.bubblewrap import Bubblewrap
sandbox = Bubblewrap()
box = sandbox.create()
box.write("x", "1")
snapshot = box.snapshot()
box.exec(["sh", "-c", "sleep 1000 &"])
box.pause()
print(sandbox._layers.folder.parent, flush=True)
time.sleep(1000)
"""


def test_what_a_killed_program_leaves_is_swept_up() -> None:
    """It had a paused box, a snapshot and waiting interpreters."""
    with subprocess.Popen([sys.executable, "-c", ABANDON], cwd=ROOT, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        home = Path(program.stdout.readline().strip())
        below = list(descendants(program.pid))[1:]
        program.kill()
    assert below
    os.utime(home, (0, time.time() - 2 * SETTLED_SECONDS))
    sweep(home.parent)
    assert not home.exists()
    for _ in range(400):
        if not any(os.path.exists(f"/proc/{pid}") for pid in below):
            return
        time.sleep(0.05)
    pytest.fail(f"processes are left: {[pid for pid in below if os.path.exists(f'/proc/{pid}')]}")
