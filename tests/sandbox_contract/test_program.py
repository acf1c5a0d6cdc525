"""What the program does that made the boxes: Ctrl-C, forks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kgsynth.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]

INTERRUPTED = """
import os, signal, sys
from kgsynth.sandbox import open_sandbox
signal.signal(signal.SIGINT, lambda *_: None)
sandbox = open_sandbox(sys.argv[1])
box = sandbox.create()
os.killpg(0, signal.SIGINT)
if os.fork() == 0:
    sys.exit()
os.wait()
print(sandbox.run(["echo", "warm"]).stdout + box.exec(["echo", "kept"]).stdout)
"""


def test_neither_ctrl_c_nor_the_end_of_a_fork_ends_boxes(sandbox: Sandbox) -> None:
    """A terminal sends Ctrl-C to every process of the program; what it means is for the program to say."""
    if sandbox.name not in ("bubblewrap", "gvisor"):
        pytest.skip("the boxes are on a server")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, sandbox.name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    assert done.stdout.split() == ["warm", "kept"], done.stderr
