"""Reading what a stranger made with a parser that may be attacked: in a child process, under limits, then thrown away.

A parser that loops, swells or crashes costs one child; the caller gets a WebError in bounded time. The child is started
isolated (`python -I`), with an empty environment; child.py limits its CPU seconds and memory and forbids it to write
files before it looks at the first byte.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from kgsynth.errors import WebError

SECONDS = 20  # of CPU, and of waiting
MEGABYTES = 1024  # of address space
_AT_ONCE = threading.BoundedSemaphore(2)


def run_confined(script: str, body: bytes, url: str, *, seconds: int = SECONDS) -> dict[str, Any]:
    """What `read(body)` of the script beside this file answers.

    Raises WebError: it took too long ("timeout"), needed too much memory or could make nothing of the bytes ("other").
    """
    child = Path(__file__).with_name("child.py")
    command = [sys.executable, "-I", str(child), str(seconds), str(MEGABYTES), script]
    with _AT_ONCE:
        try:
            done = subprocess.run(command, input=body, capture_output=True, timeout=seconds + 5, env={})
        except subprocess.TimeoutExpired as error:
            raise WebError(f"{url}: not read within {seconds} s, given up", cause="timeout") from error
        except OSError as error:
            raise WebError(f"{url}: no process to read it in: {error}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        why = (lines or ["no reason given"])[-1][:300]
        if done.returncode < 0:
            why = f"its reader was stopped ({signal.Signals(-done.returncode).name}): it crashed, or needed more than {MEGABYTES} MB"
        slow = -done.returncode in (signal.SIGXCPU, signal.SIGKILL)
        raise WebError(f"{url}: cannot be read: {why}", cause="timeout" if slow else "other")
    return json.loads(done.stdout)
