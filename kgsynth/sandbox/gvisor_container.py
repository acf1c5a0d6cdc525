"""The `runsc` program, and one container of it: a kernel process (the sentry) with the processes of a box inside.

`runsc` runs attached: it is our child, the sentry and its file server are children of it that die when it does, and it
reaps them. Its calls end: each has a timeout. What holds on 2022-12 (Debian 12) and 2024-07 (Debian 13) is all it uses:

* `checkpoint --leave-running` never returns before the restored container ends (2022), so nobody uses it: a checkpoint
  ends the container, and the box goes on in a new one restored from the image, which proves the image good at once;
* only descriptors 0 to 2 of the first process survive a checkpoint;
* `delete` waits for over a second and panics on a checkpointed, paused container (2022): the sentry is killed instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from kgsynth.errors import SandboxError

CALL_SECONDS = 120.0  # a checkpoint of much memory on a slow disk
GRACE_SECONDS = 10.0  # for the kernel to tear a killed container down
INSTALL = "install it with `sudo apt-get install runsc`"
WANTED_FLAGS = {"overlay2": "none", "ignore-cgroups": "true", "host-uds": "none"}  # where this runsc knows them


def located(executable: str) -> str:
    if (found := shutil.which(executable)) is None:
        raise SandboxError(f"no `{executable}` here, the gVisor runtime; {INSTALL}")
    return found


class Runsc:
    """The program with the flags of all its calls. State is kept in `root`."""

    def __init__(self, executable: str, root: Path) -> None:
        self.root, found = root, located(executable)
        known = self._output([found, "flags"])
        if "-root string" not in known:
            raise SandboxError(f"{found} is not the gVisor runtime: it does not know --root; {INSTALL}")
        flags = [
            f"--{name}={value}" for name, value in WANTED_FLAGS.items() if f"-{name}\n" in known or f"-{name} " in known
        ]
        self.command = [found, f"--root={root}", "--network=none", *flags]

    def call(self, *arguments: str) -> None:
        self._output([*self.command, *arguments])

    def _output(self, command: list[str]) -> str:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=CALL_SECONDS,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"`runsc {command[-1]}` did not end within {CALL_SECONDS:.0f} s") from error
        except OSError as error:
            raise SandboxError(f"cannot start {command[0]}: {error}; {INSTALL}") from error
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0 and command[1:] != ["flags"]:
            raise SandboxError(f"`{' '.join(command)}` failed with {done.returncode}: {text.strip()[-500:]}")
        return text


class Container:
    """One container, running from the moment it is made. `to` and `source` are its stdin's and stdout's other ends."""

    def __init__(self, runsc: Runsc, bundle: Path, image: Path | None = None) -> None:
        """From a bundle, or from a checkpoint of a container of that bundle."""
        self._runsc, self.id = runsc, f"kg{uuid.uuid4().hex[:16]}"
        self._log, self._pid_file = runsc.root / f"{self.id}.log", runsc.root / f"{self.id}.pid"
        action = ["run"] if image is None else ["restore", f"--image-path={image}"]
        stdin, self.to = os.pipe()
        self.source, stdout = os.pipe()
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [*runsc.command, *action, f"--bundle={bundle}", f"--pid-file={self._pid_file}", self.id],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=log,
                    cwd="/",
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                    start_new_session=True,  # a Ctrl-C is for us
                )
        except OSError as error:
            os.close(self.to)
            os.close(self.source)
            raise SandboxError(f"cannot start runsc: {error}; {INSTALL}") from error
        finally:
            os.close(stdin)
            os.close(stdout)
        self._sentry = -1  # a pidfd, once it is known
        self._lock = threading.Lock()  # one may strike while another closes that
        self._memory = self._status = ""  # files that tell what it holds, once they are known

    def ready(self) -> None:
        """To be called when its first process has answered: find its kernel."""
        pid = int(self._pid_file.read_text())
        self._sentry = os.pidfd_open(pid)
        self._memory = next((path for path in _descriptors(pid) if "memfd:runsc-memory" in os.readlink(path)), "")
        self._status = f"/proc/{pid}/status"

    def held(self) -> int:
        """Bytes of memory: what the processes and the tmpfs inside hold, and the kernel's own. 0 when it is gone."""
        try:
            inside = os.stat(self._memory).st_blocks * 512 if self._memory else 0
            with open(self._status) as file:
                own = next((int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:")), 0)
        except OSError:
            return 0
        return inside + own

    def pause(self) -> None:
        self._runsc.call("pause", self.id)

    def resume(self) -> None:
        self._runsc.call("resume", self.id)

    def checkpoint(self, image: Path) -> None:
        """Write the state to a new folder, and end. Raises SandboxError, and may then be running still (`running`)."""
        image.mkdir()
        try:
            self._runsc.call("checkpoint", f"--image-path={image}", self.id)
        except SandboxError:
            shutil.rmtree(image)
            raise

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def complaint(self) -> str:
        """What runsc wrote to its log, shortened."""
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace").strip()[-500:]
        return ""

    def strike(self) -> None:
        """Kill it and do not wait. It may be called from any thread, also after the end."""
        with self._lock, contextlib.suppress(OSError):
            if self._sentry >= 0:
                signal.pidfd_send_signal(self._sentry, signal.SIGKILL)
            else:
                self._process.kill()  # takes the sentry along

    def end(self) -> None:
        """Kill it, wait until it is gone, and remove its files."""
        self.strike()
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(GRACE_SECONDS)
        with self._lock:
            sentry, self._sentry = self._sentry, -1
        if sentry >= 0:
            os.close(sentry)
        for path in self._runsc.root.glob(f"*{self.id}*"):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def _descriptors(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                os.readlink(path := f"/proc/{pid}/fd/{name}")
                yield path


def end_all(root: Path) -> None:
    """Kill whatever runs with its state in that folder, and wait until it is gone: the owner has died."""
    stop = time.monotonic() + GRACE_SECONDS
    while (left := list(_using(root))) and time.monotonic() < stop:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _using(root: Path) -> Iterator[int]:
    flag = os.fsencode(f"--root={root}")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if flag in (entry / "cmdline").read_bytes().split(b"\0"):
                    yield int(entry.name)
