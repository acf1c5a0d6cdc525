"""A command of the program: what it printed last, and being killed again and again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def last(capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    """(all that was printed, its last line)."""
    out = capsys.readouterr().out
    return out, json.loads(out.splitlines()[-1])


def kill_at(lines: Sequence[int], args: Sequence[str], out: Path, torn: bytes) -> None:
    """Start the command and kill it once `out` has so many lines, for each number; every death leaves a torn line."""
    for wanted in lines:
        process = subprocess.Popen([sys.executable, "-m", "kgsynth.cli", *args], stdout=subprocess.DEVNULL, cwd=ROOT)
        while process.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < wanted):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it was killed"
        with out.open("ab") as file:
            file.write(torn)
