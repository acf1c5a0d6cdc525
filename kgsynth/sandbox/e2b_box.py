"""One sandbox of an E2B server."""

from __future__ import annotations

import json
import math
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits
from kgsynth.sandbox.arguments import checked, command, contents, relative
from kgsynth.sandbox.e2b_calls import ATTEMPTS, Refused, call, e2b

if TYPE_CHECKING:
    from kgsynth.sandbox.e2b import E2B, E2BSnapshot

T = TypeVar("T")

INSIDE, CLEAR = ((Path(__file__).parent / name).read_text() for name in ("e2b_inside.py", "e2b_clear.py"))
INLINE = 1 << 16  # bytes of a command's description that fit on a command line; more goes into a file
SAID = 1 << 14  # characters that the login shell and the program inside may add to a stream
GRACE_SECONDS = 15.0  # for a command to be started, and to be ended from inside, before the server ends it
CLOCK_SECONDS = 5.0  # a clock that is off by more is set
ENV = {"HOME": "/"}  # of the login shell that the SDK starts: it reads a profile of root's, or none, but no code's
MARK = "/tmp/.kgsynth-mark"  # root's, in a sticky folder: code in the sandbox cannot change it

# Run by root whenever a sandbox comes to life. Says what it found: one line each.
SETTLE = """
mkdir -p /work && { chmod 0777 /work 2>/dev/null || test -w /work; } || exit 3
off=$(( $(date +%s) - now )); [ "${off#-}" -le 5 ] || date -s "@$now" >/dev/null 2>&1
python3 -I -c "$program" "$seed" $packages || exit 4
echo "clock $(date +%s)"
echo "random $(od -An -N16 -tx1 /dev/urandom | tr -d ' ')"
[ -z "$fresh" ] || printf %s "$fresh" > MARK || exit 5
echo "mark $(cat MARK 2>/dev/null)"
""".replace("MARK", MARK)

# Entropy of its own for a fork, used at once (RNDRESEEDCRNG, as far as we may), and a look for the packages.
PROGRAM = """
import fcntl, importlib.util, sys
try:
    with open('/dev/urandom', 'wb') as pool:
        pool.write(bytes.fromhex(sys.argv[1]))
        pool.flush()
        fcntl.ioctl(pool, 0x5207)
except OSError:
    pass
print('missing', *[name for name in sys.argv[2:] if not importlib.util.find_spec(name)])
"""


class E2BBox:
    """One sandbox of a server. `origin`: create, restore, fork (by the server) or snapshot (a fork by way of one)."""

    def __init__(self, home: E2B, sandbox: e2b.Sandbox, limits: Limits, *, origin: str) -> None:
        self.id, self.origin = sandbox.sandbox_id, origin
        self.randomness = ""  # what its kernel drew first
        self._home, self._sandbox, self._limits = home, sandbox, checked(limits)
        self._expires = time.monotonic() + home.ttl_seconds
        self._mark = ""
        self._paused = self._closed = False
        self._lock = threading.RLock()  # held while the state changes

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> ExecResult:
        """See Box.exec."""
        limits, mark = checked(limits or self._limits), secrets.token_hex(8)
        spec = json.dumps(_spec(argv, stdin, env, limits, mark))
        self._ready(limits.seconds + GRACE_SECONDS)
        if len(spec) > INLINE:
            path = f"/tmp/.kgsynth-{mark}"
            call(
                f"cannot send a command to {self.id}", lambda: self._sandbox.files.write(path, spec), attempts=ATTEMPTS
            )
            spec = f"@{path}"
        return self._watch(shlex.join(["exec", "python3", "-I", "-S", "-c", INSIDE, spec]), limits, mark)

    def write(self, path: str, data: bytes | str) -> None:
        ((target, content),) = contents({path: data}, self._limits).items()
        self._ready()
        call(f"cannot write {path!r}", lambda: self._sandbox.files.write(f"/work/{target}", content), attempts=ATTEMPTS)

    def read(self, path: str) -> bytes:
        target = f"/work/{relative(path)}"
        self._ready()
        return call(f"cannot read {path!r}", lambda: self._download(target), attempts=ATTEMPTS)

    def snapshot(self) -> E2BSnapshot:
        """See Box.snapshot. The server stops it for a moment; of a paused one some servers take none: it is resumed."""
        with self._lock:
            return self._while_awake(lambda: self._home.snapshot(self._sandbox, self._limits, self._mark))

    def fork(self, count: int = 1) -> list[Box | Exception]:
        """See Box.fork. By the server, or where it has no fork, by a snapshot; `origin` of the children says which."""
        if count < 1:
            raise SandboxError(f"cannot make {count} forks; ask for one or more")
        with self._lock:
            try:
                return self._while_awake(lambda: self._home.fork(self._sandbox, self._limits, self._mark, count))
            except Refused as refusal:
                if refusal.status == 409:
                    raise
                call(f"cannot fork {self.id}", self._sandbox.get_info)  # it is there; so the server has no fork
            return self._home.fork_by_snapshot(self.snapshot(), count)

    def clear(self) -> None:
        self._ready()
        what, command = f"cannot end the processes in {self.id}", shlex.join(["exec", "python3", "-I", "-c", CLEAR])
        run = partial(self._sandbox.commands.run, user="root", envs=ENV, timeout=self._home.request_seconds)
        try:
            call(what, lambda: run(command), attempts=ATTEMPTS)
        except e2b.CommandExitException as error:
            raise SandboxError(f"{what}: exit code {error.exit_code}, {error.stderr.strip()[-300:]}") from error

    def pause(self) -> None:
        with self._lock:
            self._open()
            if self._paused:
                return
            self._leave_mark()
            if not call(f"cannot pause {self.id}", self._sandbox.pause):  # a 409: paused already, or refused
                state = call(f"cannot pause {self.id}", self._sandbox.get_info).state
                if state != e2b.SandboxState.PAUSED:
                    raise SandboxError(f"the server refused to pause {self.id} (409): it is {state.value}")
            self._paused = True

    def resume(self) -> None:
        with self._lock:
            self._open()
            if not self._paused:
                return
            # Without a timeout of ours, some servers would set their own.
            self._sandbox = call(
                f"cannot resume {self.id}", lambda: self._sandbox.connect(timeout=self._home.ttl_seconds)
            )
            self._expires = time.monotonic() + self._home.ttl_seconds
            self._paused = False
            try:
                self.settle(self._mark)
            except SandboxError:
                with suppress(SandboxError):
                    self.kill()
                raise

    def kill(self) -> None:
        with self._lock:
            if not self._closed:
                call(f"cannot kill {self.id}; it dies by itself unless it is paused", self._sandbox.kill)
                self._closed = True
                self._home.forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(SandboxError) if kind else nullcontext():
            self.kill()

    def settle(self, mark: str, packages: Sequence[str] = ()) -> None:
        """Make a sandbox that came to life fit for use, and see that it is what it should be. Raises SandboxError."""
        fresh = "" if mark else secrets.token_hex(8)
        given = {"program": PROGRAM, "seed": secrets.token_hex(32), "packages": " ".join(packages), "fresh": fresh}
        asked = time.time()
        found = self._as_root(";".join(f"{k}={shlex.quote(v)}" for k, v in given.items()) + f";now={asked:.0f}{SETTLE}")
        took = time.time() - asked
        if lacking := found["missing"].split():
            raise SandboxError(
                f"template {self._home.template!r} lacks {', '.join(lacking)}: build one that has them, and name it in "
                "KGSYNTH_E2B_TEMPLATE"
            )
        if found["mark"] != (mark or fresh):
            raise SandboxError(
                f"sandbox {self.id} lost file changes: what was written before the pause, snapshot or fork is not "
                "there (see e2b-dev/E2B#884); it cannot be used"
            )
        if abs(off := int(found["clock"]) - asked) > CLOCK_SECONDS + took:
            raise SandboxError(
                f"the clock of sandbox {self.id} is off by {off:.0f} s and cannot be set; update the server"
            )
        self.randomness, self._mark = found["random"], found["mark"]

    def _leave_mark(self) -> None:
        self._ready()
        mark = secrets.token_hex(8)
        self._as_root(f"printf %s {mark} > {MARK}")
        self._mark = mark

    def _as_root(self, script: str) -> dict[str, str]:
        """Run a script of ours; the words after the first of each line it prints, by the first."""
        seconds = self._home.request_seconds
        run = partial(self._sandbox.commands.run, script, user="root", envs=ENV, timeout=seconds)
        try:
            result = call(f"cannot prepare sandbox {self.id}", run, attempts=ATTEMPTS)
        except e2b.CommandExitException as error:
            raise SandboxError(
                f"template {self._home.template!r} cannot be used; it needs bash, Python 3.9 and a root user: "
                f"exit code {error.exit_code}, {error.stderr.strip()[-300:]}"
            ) from error
        return {line.partition(" ")[0]: line.partition(" ")[2] for line in result.stdout.splitlines()}

    def _watch(self, command: str, limits: Limits, mark: str) -> ExecResult:
        """Follow a command to its end. Its watcher ends it in time; if that fails, the server does."""
        most = (limits.output_kb << 10) + SAID
        out, err = _Text(limit=most), _Text(limit=most)
        backstop, started = limits.seconds + GRACE_SECONDS, time.monotonic()
        run = partial(self._sandbox.commands.run, background=True, timeout=backstop, retain_output=False)
        told = False  # only a watcher that ended by itself is believed: the code may write what looks like its report
        try:
            handle = call(f"cannot start a command in {self.id}", lambda: run(command, envs=ENV), attempts=ATTEMPTS)
            call(f"lost a command in {self.id}", lambda: handle.wait(on_stdout=out.add, on_stderr=err.add))
            told = True
        except e2b.CommandExitException:
            pass  # the watcher was killed, and the command with it
        except SandboxError:
            if time.monotonic() - started < backstop - 1.0:
                raise
        seconds = time.monotonic() - started
        stdout, stderr = (stream.text.partition(f"{mark}\n")[2] for stream in (out, err))
        text, marked, report = stderr.rpartition(f"\n{mark} ")
        if told and not marked:
            raise SandboxError(f"a command in {self.id} ended without a report: {err.text.strip()[-300:]}")
        if told:
            return ExecResult(stdout=stdout, stderr=text, **json.loads(report))
        late = seconds > backstop - 1.0
        return ExecResult(exit_code=-9, stdout=stdout, stderr=stderr, timed_out=late, seconds=seconds)

    def _download(self, path: str) -> bytes:
        content, most = bytearray(), self._limits.disk_mb << 20
        with self._sandbox.files.read(path, format="stream") as stream:
            for chunk in stream:
                content += chunk
                if len(content) > most:
                    raise SandboxError(f"{path!r} is larger than Limits.disk_mb = {self._limits.disk_mb} MB")
        return bytes(content)

    def _ready(self, seconds: float = GRACE_SECONDS) -> None:
        """Raise SandboxError for a box that is closed or paused; see that it lives for `seconds` more, and some."""
        with self._lock:
            self._open()
            if self._paused:
                raise SandboxError("the box is paused; resume it first")
            if self._expires - time.monotonic() < seconds + self._home.ttl_seconds / 2:
                life = math.ceil(seconds + self._home.ttl_seconds)
                call(f"cannot keep {self.id} alive", lambda: self._sandbox.set_timeout(life))
                self._expires = time.monotonic() + life

    def _while_awake(self, act: Callable[[], T]) -> T:
        """Do it; and when the server refuses it to a paused sandbox, with the sandbox resumed for that long."""
        self._open()
        if not self._paused:
            self._leave_mark()
            return act()
        try:
            return act()
        except Refused:
            self.resume()
            try:
                return act()
            finally:
                self.pause()

    def _open(self) -> None:
        if self._closed:
            raise SandboxError("the box is closed; create a new one")


@dataclass(kw_only=True)
class _Text:
    """The beginning of a stream."""

    limit: int
    text: str = ""

    def add(self, chunk: str) -> None:
        self.text += chunk[: self.limit - len(self.text)]


def _spec(argv: Sequence[str], stdin: str, env: Mapping[str, str] | None, limits: Limits, mark: str) -> dict[str, Any]:
    """What `e2b_inside.py` is told."""
    argv, env = command(argv, env)
    virtual_mb = limits.memory_mb if limits.virtual_mb is None else limits.virtual_mb
    return {
        "argv": argv,
        "stdin": stdin,
        "env": {"HOME": "/work", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", **env},
        "mark": mark,
        "limits": {
            "seconds": limits.seconds,
            "cpu_seconds": limits.cpu_seconds,
            "memory_mb": limits.memory_mb,
            "virtual_bytes": virtual_mb << 20,
            "processes": limits.processes,
            "file_mb": limits.file_mb,
            "output_kb": limits.output_kb,
        },
    }
