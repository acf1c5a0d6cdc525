"""One gVisor box: what may be done with it when, and how it moves from container to container."""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits
from kgsynth.sandbox.arguments import checked, command, contents, relative
from kgsynth.sandbox.gvisor_container import GRACE_SECONDS, Container
from kgsynth.sandbox.gvisor_line import TICK_SECONDS, Events, Line

SIGKILL, SIGXCPU = 9, 24
RLIMIT_NAMES = ("RLIMIT_NPROC", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_STACK", "RLIMIT_NOFILE", "RLIMIT_CORE")
FORKS_AT_ONCE = 4
EMPTY_BYTES = 64 << 20  # more than a box holds of which nothing was asked: its kernel and its first process


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What a box is made from, other than state: shared by it and all boxes with its state."""

    bundle: Path
    limits: Limits
    env: Mapping[str, str]
    launch: Callable[[Path, Path | None], Container]  # from the bundle, or from a checkpoint
    new_folder: Callable[[], Path]  # a name for an image, nothing there yet
    register: Callable[[GvisorBox], None]
    forget: Callable[[GvisorBox], None]


@dataclass(kw_only=True)
class GvisorSnapshot:
    """A checkpoint in a folder. It was restored once before anybody saw it."""

    id: str
    image: Path
    origin: Origin
    has_processes: bool = True

    def delete(self) -> None:
        shutil.rmtree(self.image, ignore_errors=True)


@dataclass(kw_only=True)
class _Running:
    """A command under way."""

    memory: int  # bytes held in the box at which it is over its limit
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)


class GvisorBox:
    """A box runs in a container, or is paused in one, or sleeps: paused, in a checkpoint of its own, with no process.

    The lock is held by whatever must see no other change meanwhile; a command holds it only until it has started.
    """

    def __init__(self, origin: Origin, image: Path | None = None) -> None:
        self.id = uuid.uuid4().hex[:16]
        self._origin, self._limits = origin, origin.limits
        self._lock = threading.RLock()
        self._line = Line((origin.limits.disk_mb << 20) + (1 << 20), self._look)
        self._container: Container | None = None
        self._image: Path | None = None  # where it sleeps
        self._paused = self._frozen = self._closed = False
        self._running: dict[int, _Running] = {}
        self._relieving = threading.Lock()
        self._reason = ""
        origin.register(self)
        try:
            self._enter(image, copy=image is not None)
        except BaseException:
            self.kill()
            raise

    # Commands and files

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        argv, env = command(argv, env)
        limits = checked(limits or self._limits)
        request = {"do": "exec", "argv": argv, "env": {**self._origin.env, **env}, "limits": _inner(limits)}
        with self._lock:
            container = self._ready()
            start = time.monotonic()
            number, events = self._line.start(request, stdin.encode("utf-8", "surrogatepass"))
            self._running[number] = running = _Running(memory=container.held() + _room(limits))
        try:
            ending, timed_out = self._follow(number, events, running, start + limits.seconds)
        finally:
            self._line.forget(number)
            self._running.pop(number, None)
        code = int(ending["code"])
        return ExecResult(
            exit_code=code,
            stdout=running.out.decode("utf-8", "replace"),
            stderr=running.err.decode("utf-8", "replace"),
            timed_out=timed_out or code == -SIGXCPU,
            truncated=bool(ending["truncated"]),
            out_of_memory=bool(ending["out_of_memory"]),
            seconds=time.monotonic() - start,
        )

    def write(self, path: str, data: bytes | str) -> None:
        for target, content in contents({path: data}, self._limits).items():
            self._on_file("write", {"path": target}, content)

    def read(self, path: str) -> bytes:
        return self._on_file("read", {"path": relative(path), "limit": self._limits.disk_mb << 20}, b"")

    def _on_file(self, do: str, request: dict, data: bytes) -> bytes:
        with self._lock:
            self._ready()
            try:
                return self._line.ask({"do": do, **request}, data)
            except SandboxError as error:
                raise SandboxError(f"cannot {do} {request['path']!r} in the box: {error}") from error

    def _follow(self, number: int, events: Events, running: _Running, stop: float) -> tuple[dict, bool]:
        """Collect the output until the command has ended, killed if it is late. Its last frame, and whether it was."""
        timed_out, last = False, time.monotonic()
        while True:
            event = None
            with contextlib.suppress(queue.Empty):
                if (event := events.get(timeout=max(0.0, min(TICK_SECONDS, stop - last)))) is None:
                    return self._lost(timed_out), timed_out
            if event is not None:
                header, data = event
                if header["event"] == "exit":
                    return header, timed_out
                (running.out if header["event"] == "out" else running.err).extend(data)
            now = time.monotonic()
            if self._frozen:
                stop += now - last
            elif now > stop and timed_out:
                self._break(f"command {number} does not die")
            elif now > stop and self._kill_command(number):
                timed_out, stop = True, now + GRACE_SECONDS
            last = now

    def _kill_command(self, number: int) -> bool:
        """End all that it started. False when that must wait: the box is paused."""
        with self._lock:
            if self._paused or self._closed:
                return False
            try:
                self._line.ask({"do": "kill", "job": number})
            except SandboxError as error:
                self._break(f"command {number} cannot be killed ({error})")
            return True

    def _lost(self, timed_out: bool) -> dict:
        """The box died under a command: that command's end if it could not be killed otherwise, else an error."""
        if not timed_out:
            self._refuse()
            raise SandboxError("the box is gone: its kernel process ended")
        return {"code": -SIGKILL, "truncated": False, "out_of_memory": False}

    # Life

    def snapshot(self) -> GvisorSnapshot:
        with self._lock:
            image = self._saved()
            if self._image is not None:  # not restored yet: the box sleeps in it
                image = _linked(self._image, self._origin.new_folder())
                _prove(self._origin, image)
        return GvisorSnapshot(id=image.name, image=image, origin=self._origin)

    def fork(self, count: int = 1) -> list[Box | Exception]:
        if count < 1:
            raise SandboxError(f"count = {count} must be at least 1")
        with self._lock, ThreadPoolExecutor(FORKS_AT_ONCE) as pool:
            image = self._saved()
            try:
                return list(pool.map(lambda _: _born(self._origin, image), range(count)))
            finally:
                if image != self._image:
                    shutil.rmtree(image, ignore_errors=True)

    def clear(self) -> None:
        with self._lock:
            self._ready()
            try:
                self._line.ask({"do": "clear"})
            except SandboxError as error:
                self._break(f"its processes cannot be ended ({error})")

    def pause(self) -> None:
        with self._lock:
            self._refuse()
            if not self._paused:
                assert self._container is not None
                self._container.pause()
                self._paused = self._frozen = True

    def resume(self) -> None:
        with self._lock:
            self._refuse()
            if not self._paused:
                return
            if self._image is not None:
                image, self._image = self._image, None
                self._enter(image, copy=False)
                shutil.rmtree(image, ignore_errors=True)
            else:
                assert self._container is not None
                self._container.resume()
            self._paused = self._frozen = False

    def kill(self) -> None:
        self._closed = True
        if (container := self._container) is not None:
            container.strike()  # whoever holds the lock need not be waited for
        with self._lock:
            self._leave()
            if self._image is not None:
                shutil.rmtree(self._image, ignore_errors=True)
                self._image = None
        self._origin.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # From container to container

    def _enter(self, image: Path | None, *, copy: bool) -> None:
        """Live in a new container. When that fails the box is lost."""
        self._container = container = self._origin.launch(self._origin.bundle, image)
        try:
            self._line.attach(container.to, container.source, copy=copy)
            container.ready()
        except (SandboxError, OSError, ValueError) as error:
            complaint = container.complaint()
            self._break(f"runsc could not start it: {error}\n{complaint}".strip())
        if self._closed:
            container.strike()
        self._refuse()

    def _leave(self) -> None:
        """End the container, if it has not ended, and hear its last words."""
        container, self._container = self._container, None
        if container is not None:
            container.end()
        self._line.detach()

    def _saved(self) -> Path:
        """A checkpoint of this moment, for the caller, or the one in which the box sleeps; the box goes on as it was."""
        self._refuse()
        if self._image is not None:
            return self._image
        assert self._container is not None
        image = self._origin.new_folder()
        self._frozen = True
        self._line.expect_end(True)
        try:
            self._container.checkpoint(image)
        except SandboxError as error:
            self._line.expect_end(False)
            self._frozen = self._paused
            if not self._container.running:
                self._break(f"its checkpoint failed: {error}")
            raise
        self._leave()
        if self._paused:
            self._image = image
            return image
        self._enter(image, copy=False)
        self._frozen = False
        return image

    def _ready(self) -> Container:
        self._refuse()
        if self._paused:
            raise SandboxError("the box is paused; resume it first")
        assert self._container is not None
        return self._container

    def _refuse(self) -> None:
        """Raise if the box has ended."""
        if not self._closed and self._line.lost:
            self._closed, self._reason = True, self._reason or "its kernel process ended"
        if self._closed:
            raise SandboxError(f"the box is closed{': ' + self._reason if self._reason else ''}; create a new one")

    def _break(self, reason: str) -> None:
        """Give the box up: nothing of it may run on, out of control."""
        self._reason, self._closed = reason, True
        if self._container is not None:
            self._container.strike()
        raise SandboxError(f"the box is lost: {reason}")

    # Memory

    def _look(self) -> None:
        """Called every 50 ms: see that all processes together are within the limit."""
        container = self._container
        if container is None or self._frozen or not (held := container.held()):
            return
        limits = [running.memory for running in list(self._running.values())] or [EMPTY_BYTES + _room(self._limits)]
        if held > min(limits) and self._relieving.acquire(blocking=False):
            threading.Thread(target=self._relieve, daemon=True).start()

    def _relieve(self) -> None:
        """Have the largest holder killed, and wait a moment: the kernel gives memory back a little later."""
        try:
            with self._lock:
                if not (self._paused or self._closed):
                    self._line.ask({"do": "relieve"})
            time.sleep(4 * TICK_SECONDS)
        except SandboxError:
            pass  # it is lost, and whoever uses it will be told
        finally:
            self._relieving.release()


def _born(origin: Origin, image: Path) -> Box | Exception:
    try:
        return GvisorBox(origin, image)
    except SandboxError as error:
        return error


def _prove(origin: Origin, image: Path) -> None:
    """Raise SandboxError, and remove the image, unless a box can be made of it."""
    try:
        GvisorBox(origin, image).kill()
    except SandboxError:
        shutil.rmtree(image, ignore_errors=True)
        raise


def _linked(image: Path, other: Path) -> Path:
    """Another name for the same files."""
    shutil.copytree(image, other, copy_function=lambda a, b: Path(b).hardlink_to(a))
    return other


def _room(limits: Limits) -> int:
    """Bytes for processes and files."""
    return limits.memory_mb + limits.disk_mb << 20


def _inner(limits: Limits) -> dict[str, object]:
    """What the first process needs to know of the limits."""
    space = limits.memory_mb if limits.virtual_mb is None else limits.virtual_mb or 1 << 40
    values = (limits.processes, space << 20, limits.file_mb << 20, 8 << 20, 256, 0)
    hard = {name: [value, value] for name, value in zip(RLIMIT_NAMES, values, strict=True)}
    hard["RLIMIT_CPU"] = [limits.cpu_seconds, limits.cpu_seconds + 1]
    return {"output": limits.output_kb << 10, "resources": hard}
