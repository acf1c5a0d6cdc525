"""Where the files of snapshots lie on the host: one folder a process, swept when that process is dead.

    $TMPDIR/kgsynth-boxes-<user id>/<name>/lock       held as long as the process lives; the kernel frees it on any death
                                        /<layers>/<id>/{work,tmp,dev/shm}

A layer is deleted when its snapshot is and no box stands on it any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from kgsynth.errors import SandboxError, StateError
from kgsynth.sandbox.freezer import own_group, remove_group
from kgsynth.sandbox.pid1 import AREAS
from kgsynth.sandbox.supervise import descendants, signal_all

COPY_SECONDS = 600
SETTLED_SECONDS = 10


class Layers:
    """The folder of one process. Raises SandboxError when it cannot be made."""

    def __init__(self) -> None:
        base = Path(tempfile.gettempdir()) / f"kgsynth-boxes-{os.geteuid()}"
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            if base.stat().st_uid != os.geteuid() or base.is_symlink():
                raise SandboxError(f"{base} belongs to somebody else; set TMPDIR to a folder of your own")
            sweep(base)
            home = base / f"{os.getpid()}-{secrets.token_hex(4)}"
            home.mkdir(mode=0o700)
            self._lock = os.open(home / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self.folder = home / "layers"
            self.folder.mkdir(mode=0o711)  # its name is not to be had: `home` is closed to others
        except OSError as error:
            raise SandboxError(f"no folder for snapshots under {base}: {error}; set TMPDIR") from error
        self.name = f"kgsynth-{home.name}"  # of control groups

    def copy(self, root: Path) -> Layer:
        """The writable folders under `root` (a box seen from outside), as they are. Raises SandboxError."""
        layer = Layer(self.folder / secrets.token_hex(8))
        try:
            for area in AREAS:
                target = layer.folder / area
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(root / area, target)
        except BaseException as error:
            layer.drop()
            if isinstance(error, (OSError, subprocess.SubprocessError)):
                raise SandboxError(f"cannot copy the files of the box: {error}") from error
            raise
        return layer

    def close(self) -> None:
        os.close(self._lock)
        _remove(self.folder.parent)


class Layer:
    """One copied file system. It is held by its snapshot and by each box on it; the last to `drop` it deletes it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._holders = 1
        self._lock = threading.Lock()

    def hold(self) -> None:
        with self._lock:
            self._holders += 1

    def drop(self) -> None:
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            _remove(self.folder)


def _copy(source: Path, target: Path) -> None:
    """All of a tree with owners, modes and times; links are copied, never followed. Raises OSError, StateError.

    Extended attributes are left out: to an overlay some of them mean that a file is not there. So does a device 0:0.
    """
    kept = "--preserve=mode,ownership,timestamps,links"
    done = _call("cp", "--no-dereference", "--recursive", kept, "--no-target-directory", "--", source, target)
    if done.returncode and any(name in done.stderr for name in ("File name too long", "Permission denied")):
        raise StateError(f"the files of the box cannot be copied: {done.stderr.strip()[:300]}")
    if done.returncode:
        raise OSError(done.stderr.strip()[-500:])
    if found := _call("find", target, "-type", "c", "-print", "-quit").stdout:
        raise StateError(f"there is a device in the box, {found.strip()[-300:]!r}")


def _call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=COPY_SECONDS,
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C"},
    )  # fmt: skip


def _remove(folder: Path) -> None:
    """However deep it is."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        _call("rm", "--recursive", "--force", "--", folder)


def sweep(base: Path) -> None:
    """Remove what processes left that are dead now."""
    for home in base.iterdir():
        try:
            if time.time() - home.stat().st_mtime < SETTLED_SECONDS:
                continue  # its process may not hold the lock yet
            fd = os.open(home / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(fd)
        _kill_boxes(home)
        if group := own_group():
            for left in group.glob(f"kgsynth-{home.name}-*"):
                remove_group(left)
        _remove(home)


def _kill_boxes(home: Path) -> None:
    """Of a dead process: those that were paused could not see it die. A bubblewrap names its folder."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(home) in line.read_bytes():
                signal_all([*descendants(int(line.parent.name))][::-1], signal.SIGKILL)
        except OSError:
            continue
