"""The reward of an exported task: one call, for trainers that bring their own processes, threads and forks.

The sandbox is opened when the first task needs it, once in each process (`KGSYNTH_SANDBOX` names the backend, by default
bubblewrap), and closed at exit. After a fork the child opens its own.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from kgsynth.task import Task
from kgsynth.verifiers import NEEDS_SANDBOX, Verdict, verify

MOST_KEPT = 4096  # parsed tasks

_lock = threading.Lock()
_opened: Sandbox | None = None


def judge(reply: str, task: str) -> Verdict:
    """The verdict on one reply to a task, given as its line of JSON.

    Raises TaskError when `task` is none, SandboxError and VerifierError when it could not be judged: that is no zero.
    """
    parsed = _parsed(task)
    return verify(reply, parsed, _sandbox() if parsed.verifier.name in NEEDS_SANDBOX else None)


def scores(replies: Sequence[str], tasks: Sequence[str]) -> list[float | None]:
    """Scores in [0, 1], judged side by side; None for what could not be judged, with the reason on stderr.

    Raises TaskError when a task is none, SandboxError when no sandbox can be opened here at all.
    """
    if any(_parsed(task).verifier.name in NEEDS_SANDBOX for task in tasks):
        _sandbox()
    with ThreadPoolExecutor(min(len(replies), os.cpu_count() or 1) or 1) as pool:
        return list(pool.map(_score, replies, tasks))


def _score(reply: str, task: str) -> float | None:
    try:
        return judge(reply, task).score
    except (SandboxError, VerifierError) as error:
        print(f"kgsynth: task {_parsed(task).id} could not be judged, it has no reward: {error}", file=sys.stderr)
        return None


@functools.lru_cache(maxsize=MOST_KEPT)
def _parsed(task: str) -> Task:
    return Task.from_json(task)


def _sandbox() -> Sandbox:
    global _opened
    with _lock:
        if _opened is None:
            _opened = open_sandbox(os.environ.get("KGSYNTH_SANDBOX") or "bubblewrap")
            atexit.register(_opened.close)
        return _opened


def _forget() -> None:
    """In the child of a fork: the parent's sandbox is the parent's, and its lock may have been held."""
    global _lock, _opened
    _lock, _opened = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)
