"""Stop every process of a box where it is, and let them go on.

With cgroup 2 (its freezer needs no controller, so it is there in the hybrid layout too) nothing inside can tell, and a
frozen box dies when it is killed. Where no control group can be made, as for a normal user without delegation, every
process gets SIGSTOP and later SIGCONT.

Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "cgroup.freeze".
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from kgsynth.errors import SandboxError
from kgsynth.sandbox.supervise import GRACE_SECONDS, descendants, signal_all


class Freezer:
    """For the tree under one process. `name` must be unique on this machine."""

    def __init__(self, root: int, name: str) -> None:
        self._root = root
        self._name = name
        self._group: Path | None = None

    def freeze(self) -> None:
        """Returns when all are stopped. Raises SandboxError when they do not stop."""
        self._group = self._group or make_group(self._name)
        if self._group is None:
            self._until_none_is_new(lambda pids: signal_all(pids, signal.SIGSTOP))
            return
        self._until_none_is_new(self._move)
        self._set(1)

    def thaw(self) -> None:
        if self._group is None:
            signal_all(descendants(self._root), signal.SIGCONT)
        else:
            self._set(0)

    def close(self) -> None:
        """After the last process is gone."""
        if self._group is not None:
            remove_group(self._group)

    def _until_none_is_new(self, act: Callable[[set[int]], None]) -> None:
        seen: set[int] = set()
        while new := set(descendants(self._root)) - seen:
            act(new)
            seen |= new

    def _move(self, pids: set[int]) -> None:
        assert self._group is not None
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                (self._group / "cgroup.procs").write_text(str(pid))

    def _set(self, frozen: int) -> None:
        assert self._group is not None
        (self._group / "cgroup.freeze").write_text(str(frozen))
        stop = time.monotonic() + GRACE_SECONDS
        while f"frozen {frozen}" not in (self._group / "cgroup.events").read_text():
            if time.monotonic() > stop:
                raise SandboxError(f"control group {self._group} does not {'freeze' if frozen else 'thaw'}")
            time.sleep(0.0005)


def make_group(name: str) -> Path | None:
    """A new control group under our own, or None where we may not make one."""
    if (parent := own_group()) is None:
        return None
    try:
        group = parent / name
        group.mkdir()
        return group
    except OSError:
        return None


def remove_group(group: Path) -> None:
    """The kernel lets go of a group a moment after its last process is gone."""
    stop = time.monotonic() + GRACE_SECONDS
    while group.exists() and time.monotonic() < stop:
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.002)


@functools.cache
def own_group() -> Path | None:
    """Our group in the cgroup 2 hierarchy, when we can write there."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    points = [row[4] for row in mounts if "cgroup2" in row[row.index("-") :]]
    paths = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    if not points or not paths:
        return None
    group = Path(points[0] + paths[0].rstrip("/"))
    return group if os.access(group, os.W_OK) else None
