"""The gVisor backend: boxes with a kernel of their own (`runsc`), whose processes survive snapshots and forks.

Inside are /usr and its aliases, the base Python and, when asked for, the installed packages, all read-only; /work, /tmp
and /dev/shm are one tmpfs of limited size. There is no network but a loopback of its own. System calls are answered by
gVisor's kernel, an ordinary host process, so that code in a box meets little of the host's kernel.

It needs root: `runsc` restores checkpoints for nobody else. State is kept in a folder of the temporary folder, under a
lock that the kernel frees when this program dies however it dies; the next program to come then clears up.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kgsynth.errors import SandboxError
from kgsynth.sandbox import ExecResult, Limits, Snapshot
from kgsynth.sandbox import gvisor_init as init
from kgsynth.sandbox.arguments import checked
from kgsynth.sandbox.gvisor_box import GvisorBox, GvisorSnapshot, Origin
from kgsynth.sandbox.gvisor_container import Container, Runsc, end_all, located

PREFIX = "kgsynth-gvisor-"
INTERPRETER = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
CAPABILITIES = ["CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_SYS_ADMIN"]  # of the first process, in its own kernel
STATX = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out) {
    return syscall(SYS_statx, folder, path, flags & ~AT_NO_AUTOMOUNT, mask, out);
}
"""


class Gvisor:
    """The backend. Raises SandboxError when a box cannot be made here: it tries one."""

    name = "gvisor"
    python: tuple[str, ...] = (INTERPRETER, "-s", "-P")

    def __init__(self, executable: str = "runsc") -> None:
        located(executable)
        self._owner = os.getpid()
        if os.geteuid() != 0:
            raise SandboxError("gVisor's checkpoints need root: run this as root, or use the bubblewrap backend")
        sweep()
        self._folder, self._lock_file = _own_folder()
        atexit.register(self.close)
        self._boxes: set[GvisorBox] = set()
        self._boxes_lock = threading.Lock()
        try:
            for name in ("run", "bundles", "images"):
                (self._folder / name).mkdir()
            self._runsc = Runsc(executable, self._folder / "run")
            _lay_out(self._folder / "rootfs")
            self._try()
        except BaseException:
            self.close()
            raise

    def create(self, limits: Limits = Limits(), *, packages: Sequence[str] = ()) -> GvisorBox:
        return GvisorBox(self._origin(checked(limits), tuple(packages)))

    def restore(self, snapshot: Snapshot) -> GvisorBox:
        if not isinstance(snapshot, GvisorSnapshot):
            raise SandboxError(f"{snapshot.id} is a snapshot of another backend")
        if not snapshot.image.is_dir():
            raise SandboxError(f"the snapshot {snapshot.id} was deleted, or its backend closed")
        return GvisorBox(snapshot.origin, snapshot.image)

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
        with self.create(limits, packages=packages) as box:
            for path, data in (files or {}).items():
                box.write(path, data)
            return box.exec(argv, stdin=stdin, env=env)

    def close(self) -> None:
        if os.getpid() != self._owner:
            return  # a fork of the program that ends; what is ours is not its own
        with self._boxes_lock:
            boxes = list(self._boxes)
        for box in boxes:
            box.kill()
        atexit.unregister(self.close)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock_file.close()

    def _origin(self, limits: Limits, packages: tuple[str, ...]) -> Origin:
        if not self._folder.is_dir():
            raise SandboxError("this backend was closed; open another")
        _check_installed(packages)
        folders = _site_packages() if packages else {}
        bundle = self._folder / "bundles" / f"{limits.disk_mb}-{len(folders)}"
        bundle.mkdir(exist_ok=True)
        config = _config(self._folder / "rootfs", limits.disk_mb, folders)
        part = bundle / uuid.uuid4().hex
        part.write_text(json.dumps(config))
        part.replace(bundle / "config.json")
        path = f"{os.path.dirname(INTERPRETER)}:/usr/bin:/bin"
        env = {"PATH": path, "HOME": init.WORK, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
        return Origin(
            bundle=bundle,
            limits=limits,
            env=env | ({"PYTHONPATH": ":".join(folders)} if folders else {}),
            launch=lambda bundle, image: Container(self._runsc, bundle, image),
            new_folder=lambda: self._folder / "images" / uuid.uuid4().hex[:16],
            register=self._register,
            forget=self._forget,
        )

    def _register(self, box: GvisorBox) -> None:
        with self._boxes_lock:
            self._boxes.add(box)

    def _forget(self, box: GvisorBox) -> None:
        with self._boxes_lock:
            self._boxes.discard(box)

    def _try(self) -> None:
        """Run a command and mend what this runsc is known to lack."""
        with self.create() as box:
            result = box.exec([*self.python, "-S", "-c", "print(6 * 7)"])
            listed = box.exec(["ls", "/usr"])
        if result.stdout != "42\n":
            raise SandboxError(f"Python does not start inside gVisor: {result.stderr.strip()[-500:]}")
        if not listed.ok and "Invalid argument" in listed.stderr:
            _mend_statx(self._folder / "rootfs")


def sweep() -> None:
    """End and remove what programs left behind that died without closing: their locks are free."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = _held(folder)
        except OSError:
            continue  # in use, or being removed by another
        with lock:
            end_all(folder / "run")
            shutil.rmtree(folder, ignore_errors=True)


def _own_folder() -> tuple[Path, IO[str]]:
    """A new folder and its lock. It gets the name that `sweep` looks for when it is locked already."""
    new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    lock = _held(new)
    return new.rename(new.with_name(new.name.removeprefix("."))), lock


def _held(folder: Path) -> IO[str]:
    """The folder's lock, ours until the file is closed or we die. Raises BlockingIOError when it is another's."""
    lock = (folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _lay_out(rootfs: Path) -> None:
    """The root of all boxes: empty folders to mount on, the host's links among them, and the first process."""
    for path in (init.WORK, init.DISK, "/tmp", "/proc", "/dev", "/sys", "/etc", *_folders(), *_site_packages()):
        _below(rootfs, path).mkdir(parents=True, exist_ok=True)
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            _below(rootfs, name).symlink_to(os.readlink(name))
    if os.path.exists("/etc/ld.so.cache"):
        shutil.copy("/etc/ld.so.cache", rootfs / "etc")
    shutil.copy(init.__file__, rootfs / "init.py")
    for folder, _, _ in os.walk(rootfs):
        os.chmod(folder, 0o755)


def _below(rootfs: Path, path: str) -> Path:
    return rootfs / path.lstrip("/")


def _folders() -> list[str]:
    """The host's folders that every box sees, read-only."""
    named = [
        "/usr",
        "/etc/alternatives",
        "/etc/fonts",
        *(n for n in ("/bin", "/sbin", "/lib", "/lib32", "/lib64") if not os.path.islink(n)),
    ]
    bases = {os.path.abspath(p) for p in (sys.base_prefix, sys.base_exec_prefix)}
    named += sorted(p for base in bases for p in {base, os.path.realpath(base)} if not p.startswith("/usr/"))
    return [name for name in dict.fromkeys(named) if os.path.isdir(name)]


def _site_packages() -> dict[str, str]:
    """Where the installed packages are in a box, and on the host. Not at their own place, which /work may cover."""
    folders = [folder for folder in site.getsitepackages() if os.path.isdir(folder)]
    return {f"/packages/{number}": folder for number, folder in enumerate(folders)}


def _check_installed(packages: Sequence[str]) -> None:
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise SandboxError(f"no Python package {name!r} is installed here; install it, then make the box")


def _config(rootfs: Path, disk_mb: int, packages: Mapping[str, str]) -> dict[str, object]:
    """The OCI runtime specification of a box."""
    disk = {"type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=0711", f"size={disk_mb << 20}"]}
    return {
        "ociVersion": "1.0.0",
        "hostname": "box",
        "root": {"path": str(rootfs), "readonly": True},
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": [INTERPRETER, "-I", "-S", "/init.py"],
            "cwd": "/",
            "env": ["LANG=C.UTF-8"],
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(("bounding", "effective", "inheritable", "permitted"), CAPABILITIES),
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            *(_read_only(folder, folder) for folder in _folders()),
            *(_read_only(folder, inside) for inside, folder in packages.items()),
            {"destination": init.DISK, **disk},
            {"destination": "/dev/shm", **disk},
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
    }


def _read_only(folder: str, inside: str) -> dict[str, object]:
    options = ["ro", "rbind", "nosuid", "nodev"]
    return {"destination": inside, "type": "bind", "source": os.path.realpath(folder), "options": options}


def _mend_statx(rootfs: Path) -> None:
    """Versions before 2023 refuse a flag that `ls` and `stat` always set; preload a `statx` that drops it.

    Without a C compiler those two commands stay broken, and nothing else.
    """
    library = rootfs / "etc" / "statx.so"
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write(STATX)
        source.flush()
        try:
            subprocess.run(
                ["cc", "-shared", "-fPIC", "-O1", "-o", library, source.name], capture_output=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return
    (rootfs / "etc" / "ld.so.preload").write_text(f"/etc/{library.name}\n")
