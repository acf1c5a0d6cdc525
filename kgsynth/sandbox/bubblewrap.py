"""The bubblewrap backend: name spaces around ordinary processes, and an interpreter that waits for small checks.

`run` takes a waiting jail (`jail.py`), does its job there in folders and a process namespace that are gone afterwards, and
puts the jail back: no start of bubblewrap or Python is paid. A box is a jail of its own, whose folders and processes stay.
Snapshots hold files, not processes; boxes made from one share its files until they change them (overlayfs).

Left out: the memory of processes in a snapshot (the gvisor backend has it), a limit on the CPU time of all processes
together (wall clock and process limits bound it), and architectures other than x86_64 and aarch64.
"""

from __future__ import annotations

import atexit
import itertools
import os
import secrets
import shutil
import signal
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits, Snapshot
from kgsynth.sandbox.arguments import checked, command, contents, relative
from kgsynth.sandbox.freezer import Freezer
from kgsynth.sandbox.jail import INSTALL, PYTHON, Jail, Job
from kgsynth.sandbox.layers import Layer, Layers
from kgsynth.sandbox.supervise import Ending


class Bubblewrap:
    """The backend. Raises SandboxError when a box cannot be made here: it tries one.

    `waiting`: how many idle interpreters are kept for the next `run`, for each set of packages (12 MB each, without any).
    """

    name = "bubblewrap"
    python = PYTHON

    def __init__(self, executable: str = "bwrap", *, waiting: int = 16) -> None:
        if (path := shutil.which(executable)) is None:
            raise SandboxError(f"no `{executable}` here to run untrusted code in isolation; {INSTALL}")
        self._bwrap = path
        self._layers = Layers()
        self._numbers = itertools.count()
        self._most_waiting = waiting
        self._waiting: dict[tuple[str, ...], list[Jail]] = defaultdict(list)
        self._boxes: weakref.WeakSet[BubblewrapBox] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._owner, self._closed = os.getpid(), False
        atexit.register(self.close)
        result = self.run([*PYTHON, "-c", "print(6 * 7)"])
        if result.stdout != "42\n":
            raise SandboxError(f"Python does not start inside bubblewrap: {result.stderr.strip()[-500:]}")

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> BubblewrapBox:
        return self._box(checked(limits), tuple(packages), None)

    def restore(self, snapshot: Snapshot) -> BubblewrapBox:
        if not isinstance(snapshot, BubblewrapSnapshot):
            raise SandboxError(f"a bubblewrap sandbox cannot restore a {type(snapshot).__name__}; use its own backend")
        if snapshot.deleted:
            raise SandboxError("the snapshot was deleted; take another one")
        return self._box(snapshot.limits, snapshot.packages, snapshot.layer)

    def run(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes | str] | None = None,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits = Limits(),
        packages: Sequence[str] = (),
    ) -> ExecResult:
        """See Sandbox.run."""
        job = _job(argv, contents(files or {}, limits), stdin, env, fresh=True)
        limits, packages = checked(limits), tuple(packages)
        start = time.monotonic()
        jail = self._take(packages)
        try:
            ending = jail.do(job, limits)
        except BaseException:
            jail.close()
            raise
        self._give(jail, packages) if ending.reply else jail.close()
        return _result(ending, time.monotonic() - start)

    def close(self) -> None:
        """See Sandbox.close. A fork of the program closes nothing."""
        with self._lock:
            if self._closed or os.getpid() != self._owner:
                return
            self._closed = True
            waiting = [jail for jails in self._waiting.values() for jail in jails]
        atexit.unregister(self.close)
        for box in list(self._boxes):
            box.kill()
        for jail in waiting:
            jail.close()
        self._layers.close()

    def _box(self, limits: Limits, packages: tuple[str, ...], layer: Layer | None) -> BubblewrapBox:
        jail = self._take(packages)
        try:
            box = BubblewrapBox(self, jail, limits, packages, layer, f"{self._layers.name}-{next(self._numbers)}")
        except BaseException:
            jail.close()
            raise
        self._boxes.add(box)
        return box

    def _take(self, packages: tuple[str, ...]) -> Jail:
        with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed; open a new one")
            while self._waiting[packages]:
                if (jail := self._waiting[packages].pop()).alive:
                    return jail
        return Jail(self._bwrap, packages, self._layers.folder)

    def _give(self, jail: Jail, packages: tuple[str, ...]) -> None:
        with self._lock:
            if not self._closed and len(self._waiting[packages]) < self._most_waiting:
                self._waiting[packages].append(jail)
                return
        jail.close()

    def copy_files(self, root: Path) -> Layer:
        return self._layers.copy(root)


class BubblewrapSnapshot:
    """The files of a box at one moment."""

    has_processes = False

    def __init__(self, layer: Layer, limits: Limits, packages: tuple[str, ...]) -> None:
        self.id = layer.folder.name
        self.layer, self.limits, self.packages = layer, limits, packages
        self._drop = weakref.finalize(self, layer.drop)

    @property
    def deleted(self) -> bool:
        return not self._drop.alive

    def delete(self) -> None:
        self._drop()


class BubblewrapBox:
    """One jail whose folders and processes stay."""

    def __init__(
        self, sandbox: Bubblewrap, jail: Jail, limits: Limits, packages: tuple[str, ...], layer: Layer | None, name: str
    ) -> None:
        self.id = secrets.token_hex(8)
        self._sandbox, self._jail, self._limits, self._packages, self._layer = sandbox, jail, limits, packages, layer
        self._freezer = Freezer(jail.pid, name)
        self._lock = threading.RLock()  # held while the state changes: paused, closed
        self._paused_at: float | None = None
        self._paused_for = 0.0
        self._closed = False
        if layer:
            layer.hold()
        try:
            jail.open(limits, layer.folder.name if layer else "")
        except SandboxError:
            if layer:
                layer.drop()
            raise

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """See Box.exec."""
        start = self._clock()
        ending = self._do(_job(argv, {}, stdin, env), checked(limits or self._limits))
        return _result(ending, self._clock() - start)

    def write(self, path: str, data: bytes | str) -> None:
        job = Job(files=contents({path: data}, self._limits))
        try:
            self._do(job, self._limits)
        except SandboxError as error:
            room = f"the box may hold Limits.disk_mb = {self._limits.disk_mb} MB"
            raise SandboxError(f"cannot write {path!r}: {error} ({room})") from error

    def read(self, path: str) -> bytes:
        limits = Limits(output_kb=self._limits.disk_mb << 10, seconds=60)
        ending = self._do(Job(read=relative(path)), limits)
        if ending.timed_out or ending.out.truncated:
            raise SandboxError(f"{path!r} is larger than Limits.disk_mb = {self._limits.disk_mb} MB")
        return bytes(ending.out.data)

    def snapshot(self) -> BubblewrapSnapshot:
        """See Box.snapshot. Every process stands still while the files are copied."""
        with self._lock:
            was_paused = self._paused_at is not None
            self.pause()
            try:
                layer = self._sandbox.copy_files(Path(f"/proc/{self._jail.pid}/root"))
            finally:
                if not was_paused:
                    self.resume()
        return BubblewrapSnapshot(layer, self._limits, self._packages)

    def fork(self, count: int = 1) -> list[Box | Exception]:
        if count < 1:
            raise SandboxError(f"cannot make {count} forks; ask for 1 or more")
        snapshot = self.snapshot()
        try:
            return [self._child(snapshot) for _ in range(count)]
        finally:
            snapshot.delete()

    def _child(self, snapshot: BubblewrapSnapshot) -> Box | Exception:
        try:
            return self._sandbox.restore(snapshot)
        except SandboxError as error:
            return error

    def clear(self) -> None:
        with self._lock:
            self._awake()
            self._jail.clear()

    def pause(self) -> None:
        with self._lock:
            self._open()
            if self._paused_at is None:
                self._freezer.freeze()
                self._paused_at = time.monotonic()

    def resume(self) -> None:
        with self._lock:
            self._open()
            if self._paused_at is not None:
                self._freezer.thaw()
                self._paused_for += time.monotonic() - self._paused_at
                self._paused_at = None

    def kill(self) -> None:
        """End what runs and refuse what comes."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._jail.close()
            finally:
                self._freezer.close()
                if self._layer:
                    self._layer.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _do(self, job: Job, limits: Limits) -> Ending:
        with self._lock:
            self._awake()
        ending = self._jail.do(job, limits, self._clock)
        if not ending.reply and not self._closed:
            self.kill()
            raise SandboxError("a command in the box could not be ended, so that the box was killed; create a new one")
        return ending

    def _awake(self) -> None:
        self._open()
        if self._paused_at is not None:
            raise SandboxError("the box is paused; resume it first")

    def _open(self) -> None:
        if self._closed:
            raise SandboxError("the box is closed; create a new one")

    def _clock(self) -> float:
        """Time that stands still while the box is paused."""
        paused_at = self._paused_at
        return (time.monotonic() if paused_at is None else paused_at) - self._paused_for


def _job(
    argv: Sequence[str], files: Mapping[str, bytes], stdin: str, env: Mapping[str, str] | None, *, fresh: bool = False
) -> Job:
    argv, env = command(argv, env)
    return Job(argv=argv, files=files, stdin=stdin.encode("utf-8", "surrogatepass"), env=env, fresh=fresh)


def _result(ending: Ending, seconds: float) -> ExecResult:
    code = int(ending.reply or -signal.SIGKILL)
    return ExecResult(
        exit_code=code,
        stdout=ending.out.text(),
        stderr=ending.err.text(),
        timed_out=ending.timed_out or code == -signal.SIGXCPU,
        truncated=ending.out.truncated or ending.err.truncated,
        out_of_memory=ending.out_of_memory,
        seconds=seconds,
    )
