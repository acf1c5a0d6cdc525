"""Kernels that want out: past the screen of the source, on while they are stopped, at their keeper, beyond their time."""

from __future__ import annotations

import importlib
import os
import signal
import struct
import subprocess
import sys
import time
from functools import cached_property
from types import ModuleType
from typing import Any

import pytest

from kgsynth.sandbox import Sandbox
from kgsynth.verifiers.kernel import correctness
from kgsynth.verifiers.kernels import bench
from kgsynth.verifiers.kernels.bench import Bench, Run
from kgsynth.verifiers.kernels.box import Gone, Keeper
from kgsynth.verifiers.kernels.filter import ARCHS, program
from kgsynth.verifiers.kernels.params import spec_of
from kgsynth.verifiers.kernels.screen import IMPORTS, screen
from tests.kernel_tasks import SOFTMAX, SOFTMAX_TASK, unscreened

pytest.importorskip("torch")


WAYS_OUT = {
    "torch.os": "import torch\nos = torch.os\n",
    "torch.sys": "import torch as t\nmodules = t.sys.modules\n",
    "torch.ctypes": "import torch\nlibc = torch.ctypes.CDLL(None)\n",
    "another name": "import torch\nt = torch\nos = t.os\n",
    "from": "from torch import sys\n",
    "builtins": "import enum\nrun = enum.bltns.exec\n",
    "types": "import dataclasses\nCode = dataclasses.types.CodeType\n",
    "attrgetter": "import operator\nframe = operator.attrgetter('_get' + 'frame')\n",
    "attrgetter from": "from operator import attrgetter as a\n",
    "methodcaller": "import operator\ncall = operator.methodcaller('_get' + 'frame')\n",
    "getattr": "import torch\nos = getattr(torch, 'os')\n",
    "getattr starred": "import torch\nos = getattr(*(torch, 'o' + 's'))\n",
    "getattr elsewhere": "import torch\ng = getattr\nos = g(torch, 'o' + 's')\n",
    "inner, by another name": "import torch as t\nfind = t.hub\n",
    "inner, by a second name": "import torch\nt = torch\ninner = t._dynamo\n",
    "inner, by a long way": "import torch.nn as nn\nfind = nn.modules.torch.hub\n",
    "inner, with all": "from torch import *\nfind = hub\n",
    "inner, with all of a part": "import torch\nfrom torch.nn.functional import *\nos = importlib.import_module('os')\n",
    "traced": "import torch\nsympy = torch.fx.experimental.symbolic_shapes.sympy\n",
    "pattern": "import torch\nmatch torch:\n    case object(os=found):\n        pass\n",
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_hack_14_a_way_out_of_the_allowed_modules(way: str) -> None:
    assert screen(WAYS_OUT[way] + SOFTMAX, "softmax")[0] in ("forbidden name", "forbidden import")


def test_hack_14_no_allowed_module_has_a_foreign_one() -> None:
    """All of torch's public modules that are loaded, and all of the others, against the screen."""
    seen: set[str] = set()
    todo = [(name, importlib.import_module(name)) for name in sorted(IMPORTS - {"triton"})]
    while todo:
        path, module = todo.pop()
        for name, value in list(vars(module).items()):
            if not isinstance(value, ModuleType) or name.startswith("_") or value.__name__ in seen:
                continue
            if value.__name__.split(".")[0] in IMPORTS:
                seen.add(value.__name__)
                todo.append((f"{path}.{name}", value))
            else:
                source = f"import {path.split('.')[0]}\ny = {path}.{name}\n"
                assert screen(source + SOFTMAX, "softmax")[0], f"{path}.{name}"
    assert len(seen) > 50


def test_what_looks_like_a_module_and_is_none_passes_the_screen() -> None:
    fair = "torch.select(x, 0, 0) + x.trace() + torch.random.initial_seed() + torch.ops.aten.select(x, 0, 0)"
    assert screen(f"import torch\ndef softmax(x):\n    re, time = x.chunk(2)\n    return {fair}\n", "softmax") == (
        "",
        "",
    )


RESUME = """import ctypes, os, signal, torch
libc = ctypes.CDLL(None, use_errno=True)
event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT)
timer, fd = ctypes.c_void_p(), os.open("/dev/null", 0)
me, keeper, mine = os.getpid(), os.getppid(), (ctypes.c_int * 2)(1, os.getpid())
number = {"x86_64": (200, 234, 129, 297, 425), "aarch64": (130, 131, 138, 240, 425)}[os.uname().machine]
WAYS = {
    "timer": lambda: libc.timer_create(1, event, ctypes.byref(timer)),
    "F_SETSIG": lambda: libc.fcntl(fd, 10, signal.SIGCONT),
    "F_SETOWN": lambda: libc.fcntl(fd, 8, me),
    "F_SETOWN_EX": lambda: libc.fcntl(fd, 15, mine),
    "FIOSETOWN": lambda: libc.ioctl(fd, 0x8901, mine),
    "PDEATHSIG": lambda: libc.prctl(1, signal.SIGCONT, 0, 0, 0),
    "traced": lambda: libc.ptrace(0, 0, 0, 0),
    "queue": lambda: libc.mq_notify(0, event),
    "session": lambda: libc.setsid(),
    "kill": lambda: libc.kill(keeper, 0),
    "all": lambda: libc.kill(-1, 0),
    "group": lambda: libc.kill(0, 0),
    "tkill": lambda: libc.syscall(number[0], me, 0),
    "tgkill": lambda: libc.syscall(number[1], keeper, keeper, 0),
    "sigqueue": lambda: libc.syscall(number[2], keeper, 0, event),
    "tgsigqueue": lambda: libc.syscall(number[3], keeper, keeper, 0, event),
    "pidfd": lambda: libc.syscall(424, fd, 0, 0, 0),
    "io_uring": lambda: libc.syscall(number[4], 1, event),
}
def softmax(x):
    for name, way in WAYS.items():
        if way() != -1 or ctypes.get_errno() != 1:
            raise RuntimeError(name)
    assert libc.kill(me, 0) == 0 and libc.syscall(number[1], me, me, 0) == 0 and libc.fcntl(fd, 1) >= 0
    return torch.softmax(x, -1)
"""


def test_hack_03_nothing_resumes_a_stopped_worker(sandbox: Sandbox) -> None:
    """Timers, descriptors and queues that would send SIGCONT later; and no signal to the keeper."""
    verdict = unscreened(RESUME, SOFTMAX_TASK, sandbox)
    assert (verdict.reason, verdict.evidence.get("detail")) == ("right", None)


@pytest.mark.parametrize("again", [False, True], ids=["runs on", "stopped again"])
def test_hack_03_a_worker_that_was_resumed_is_found_out(again: bool) -> None:
    """The same check that the keeper in a box makes, on a process that no filter holds back."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        keeper = Keeper.__new__(Keeper)
        keeper.worker, keeper.halted = child.pid, False
        for _ in range(3):
            keeper.halt()
            keeper.still()
            keeper.still()
            keeper.go_on()
        keeper.halt()
        os.kill(child.pid, signal.SIGCONT)
        if again:
            time.sleep(0.01)
            os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(Gone, match="ran while stopped"):
            keeper.still()
    finally:
        child.kill()
        child.wait()


def allowed(machine: str, number: int, *arguments: int) -> bool:
    """What the filter of a worker with the number 7 says, by an interpreter of the few instructions it has."""
    code = list(struct.iter_unpack("=HBBI", program(machine, 7)))
    data = struct.pack("=IIQ6Q", number, ARCHS[machine][0], 0, *arguments, *[0] * (6 - len(arguments)))
    at, value = 0, 0
    while True:
        kind, yes, no, k = code[at]
        if kind == 0x06:
            return k == 0x7FFF0000
        if kind == 0x20:
            value, at = struct.unpack_from("=I", data, k)[0], at + 1
        else:
            at += 1 + (yes if {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[kind] else no)


@pytest.mark.parametrize("machine", ARCHS)
def test_hack_03_the_filter_of_every_processor(machine: str) -> None:
    kill, fcntl, timer, prctl, clone = {
        "x86_64": (62, 72, 222, 157, 56),
        "aarch64": (129, 25, 107, 167, 220),
    }[machine]
    assert allowed(machine, kill, 7, 9)
    assert not allowed(machine, kill, 8, 18)
    assert not allowed(machine, kill, 0xFFFFFFFF, 18)
    assert not allowed(machine, timer)
    assert not allowed(machine, fcntl, 3, 10, 18)
    assert allowed(machine, fcntl, 3, 3, 0)
    assert not allowed(machine, prctl, 1, 18)
    assert allowed(machine, prctl, 15, 0)
    assert allowed(machine, clone, 0x10F00)
    assert not allowed(machine, clone, 17)
    assert allowed(machine, 64 if machine == "aarch64" else 1, 3)  # write
    assert not allowed(machine, (1 << 30) + 57)


class Counted(Bench):
    """A bench that notes how its runs ended: (status, calls done)."""

    @cached_property
    def runs(self) -> list[tuple[str, int]]:
        return []

    def run(self, source: str, calls: Any, **how: Any) -> Run:
        done = super().run(source, calls, **how)
        self.runs.append((done.status, len(done.calls)))
        return done


HANGS = {
    "at once": ("def softmax(x):\n    while True:\n        pass\n", 0),
    "later": (
        "import torch\ncount = []\ndef softmax(x):\n    count.append(0)\n    while len(count) > 1:\n        pass\n    return torch.softmax(x, -1)\n",
        1,
    ),
    "loading": ("while True:\n    pass\n", 0),
    "a little each time": (
        "import time, torch\ndef softmax(x):\n    time.sleep(0.7)\n    return torch.softmax(x, -1)\n",
        2,
    ),
}


@pytest.mark.parametrize("when", HANGS)
def test_one_time_out_decides(when: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call follows one that did not end in time, no other run follows, and short waits do not add up."""
    monkeypatch.setattr(bench, "LEAST_LOAD_SECONDS", 1.0)
    counted = Counted(spec=spec_of({**SOFTMAX_TASK, "seconds": 1.0}), sandbox=sandbox)
    source, done = HANGS[when]
    assert correctness(counted, source).reason == "timeout"
    assert counted.runs[-1] == ("timeout", done)
    assert [status for status, _ in counted.runs].count("timeout") == 1
