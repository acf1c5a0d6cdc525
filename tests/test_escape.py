"""The escape suite: programs that try to get out of a box, or to take the machine with them. Nothing gets out.

Each attempt prints "escaped" when it succeeds. Those marked as controls are also run outside any box, where they do
succeed: the test could fail.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits, Sandbox, open_sandbox


@pytest.fixture(scope="module", params=["bubblewrap", "gvisor"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    try:
        backend = open_sandbox(request.param)
    except SandboxError as error:
        if request.param == "bubblewrap":
            raise
        pytest.skip(str(error))
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def box(sandbox: Sandbox) -> Iterator[Box]:
    with sandbox.create() as box:
        yield box


def attempt(sandbox: Sandbox, code: str, limits: Limits = Limits()) -> ExecResult:
    with sandbox.create(limits) as box:
        return box.exec([*sandbox.python, "-c", code])


@dataclass(frozen=True, kw_only=True)
class Host:
    """What an attempt could reach here: a secret file, a process with it in its environment, sockets."""

    secret: Path
    port: int
    abstract: str  # name of a socket in the abstract name space
    process: subprocess.Popen[bytes]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    secret = tmp_path_factory.mktemp("host") / "secret"
    secret.write_text("hunter2")
    abstract = f"\0kgsynth-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(abstract)
        unix.listen()
        with subprocess.Popen(["sleep", "1000"], env={"SECRET": "hunter2"}) as process:
            yield Host(secret=secret, port=tcp.getsockname()[1], abstract=abstract, process=process)
            process.kill()


# Each sees `host`: secret, port, abstract, pid. Errors are failures of the attempt.
CONTROLS = {
    "network: the host's loopback": "import socket; socket.create_connection(('127.0.0.1', port), 2); print('escaped')",
    "network: an abstract socket": "import socket; socket.socket(socket.AF_UNIX).connect(abstract); print('escaped')",
    "host files: a secret by its path": "print('escaped' if 'hunter2' in open(secret).read() else '')",
    "host files: accounts": "print('escaped' if 'root:' in open('/etc/passwd').read() else '')",
    "symlinks: a link to a secret": "import os; os.symlink(secret, f'link{os.getpid()}'); print('escaped' if 'hunter2' in open(f'link{os.getpid()}').read() else '')",
    "proc: the environment of another process": "print('escaped' if 'hunter2' in open(f'/proc/{pid}/environ').read() else '')",
    "proc: a secret in any process": "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n  try: print('escaped' if 'hunter2' in open(p).read() else '')\n  except OSError: pass",
    "signals: one to a process outside": "import os; os.kill(pid, 0); print('escaped')",
}
ATTEMPTS = CONTROLS | {
    "host files: a secret through /proc/1/root": "print('escaped' if 'hunter2' in open('/proc/1/root' + secret).read() else '')",
    "network: another machine": "import socket; socket.create_connection(('192.0.2.1', 80), 2); print('escaped')",
    "network: out of a virtual machine": "import socket; socket.socket(40, socket.SOCK_STREAM).connect((2, 22)); print('escaped')",
    "network: raw packets": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('escaped')",
    "host files: writing a program": "open('/usr/bin/env', 'ab').write(b'x'); print('escaped')",
    "host files: writing the interpreter": "import os; open(os.__file__, 'ab').write(b'x'); print('escaped')",
    "host files: up from a bound folder": "import os; print('escaped' if os.path.exists('/usr/../../..' + secret) else '')",
    "proc: memory of process 1": "open('/proc/1/mem', 'rb'); print('escaped')",
    "proc: descriptors of process 1": "import os\nfor n in range(9):\n  for flag in (os.O_RDONLY, os.O_WRONLY):\n    try: fd = os.open(f'/proc/1/fd/{n}', flag | os.O_NONBLOCK); print('escaped', os.write(fd, b'x') if flag else os.read(fd, 1))\n    except BlockingIOError: print('escaped', n)\n    except OSError: pass",
    "proc: a kernel setting": "open('/proc/sys/kernel/core_pattern', 'w').write('|/bin/sh'); print('escaped')",
    "proc: the reboot key": "open('/proc/sysrq-trigger', 'w').write('h'); print('escaped')",
    "proc: the out-of-memory score of process 1": "open('/proc/1/oom_score_adj', 'w').write('1000'); print('escaped')",
    "ptrace: process 1": "import ctypes; print('escaped' if ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0 else '')",
    "ptrace: memory of process 1": "import ctypes\nclass V(ctypes.Structure): _fields_ = (('p', ctypes.c_void_p), ('n', ctypes.c_size_t))\nb = ctypes.create_string_buffer(8)\nv = V(ctypes.addressof(b), 8); r = V(id(b), 8)\nprint('escaped' if ctypes.CDLL(None).process_vm_readv(1, ctypes.byref(v), 1, ctypes.byref(r), 1, 0) > 0 else '')",
    "ptrace: descriptors of process 1": "import ctypes, os; fd = os.pidfd_open(1); print('escaped' if any(ctypes.CDLL(None).syscall(438, fd, n, 0) >= 0 for n in range(16)) else '')",
    "signals: one to process 1": "import os; os.kill(1, 9); print('escaped')",
    "signals: a stop to process 1": "import os; os.kill(1, 19); print('escaped')",
    "privileges: become root": "import os; os.setuid(0); print('escaped')",
    "privileges: a program with the set-user-id bit": "import subprocess; out = subprocess.run(['su', '-c', 'id -u'], capture_output=True, text=True).stdout; print('escaped' if out == '0\\n' else '')",
    "privileges: a device node": "import os, stat; os.mknod('disk', stat.S_IFBLK | 0o666, os.makedev(254, 0)); open('disk', 'rb').read(1); print('escaped')",
    "privileges: mount": "import ctypes; print('escaped' if ctypes.CDLL(None).mount(b'tmpfs', b'/work', b'tmpfs', 0, b'') == 0 else '')",
    "privileges: undo a mount": "import ctypes; print('escaped' if any(ctypes.CDLL(None).umount2(p, 2) == 0 for p in (b'/work', b'/box', b'/layers', b'/proc', b'/tmp')) else '')",
    "privileges: write what is read-only": "import ctypes; print('escaped' if ctypes.CDLL(None).mount(b'', b'/', b'', 32 | 4096, b'') == 0 else '')",
    "privileges: leave by chroot": "import os; os.mkdir('d'); os.chroot('d'); print('escaped')",
    "privileges: a disk of the host": "import glob; print('escaped' if [open(p, 'rb').read(1) for p in glob.glob('/dev/[hsv]d[a-z]*') + glob.glob('/dev/nvme*')] else '')",
    "privileges: the machine's memory": "open('/dev/mem', 'rb').read(1); print('escaped')",
    "privileges: the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0); print('escaped')",
    "privileges: the name of the machine": "import socket; socket.sethostname('x'); print('escaped')",
    "other boxes: layers of snapshots": "import os; print('escaped' if os.listdir('/layers') else '')",
    "other boxes: their writable folders": "import os; print('escaped' if os.listdir('/box') else '')",
    "descriptors: one too many": "import os; print('escaped' if [fd for fd in range(3, 1024) if os.path.exists(f'/proc/self/fd/{fd}') and os.readlink(f'/proc/self/fd/{fd}') != f'/proc/{os.getpid()}/fd'] else '')",
}  # fmt: skip


def told(host: Host, code: str) -> str:
    facts = f"secret, port, abstract, pid = {str(host.secret)!r}, {host.port}, {host.abstract!r}, {host.process.pid}\n"
    return facts + code


@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_gets_out(sandbox: Sandbox, box: Box, host: Host, name: str) -> None:
    """By a command of a box that stays: the weaker position of the two for the defence."""
    result = box.exec([*sandbox.python, "-c", told(host, ATTEMPTS[name])])
    assert "escaped" not in result.stdout, result
    assert host.process.poll() is None


@pytest.mark.parametrize("name", CONTROLS)
def test_outside_a_box_the_same_attempt_succeeds(host: Host, name: str, tmp_path: Path) -> None:
    code = told(host, CONTROLS[name])
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert "escaped" in result.stdout, result.stderr


def test_signals_to_everybody_stay_inside(sandbox: Sandbox, host: Host) -> None:
    code = "import os, signal\nfor n in (0, *range(2, 70000)):\n  try: n != os.getpid() and os.kill(n or -1, 9)\n  except OSError: pass\nprint('alive')"
    attempt(sandbox, code)
    assert host.process.poll() is None
    assert attempt(sandbox, "print(1)").ok


def test_links_lead_nowhere_for_us_either(sandbox: Sandbox, host: Host) -> None:
    """What we write to, read from and copy out of a box is resolved inside it."""
    with sandbox.create() as box:
        box.exec(["sh", "-c", f"ln -s {host.secret} file; ln -s {host.secret.parent} folder; ln -s /etc/shadow shadow"])
        for path in ("file", "folder/secret", "shadow"):
            with pytest.raises(SandboxError):
                box.read(path)
        with pytest.raises(SandboxError):
            box.write("folder/planted", "x")
        (child,) = box.fork()
        assert not isinstance(child, Exception), child
        with child:
            assert child.exec(["readlink", "file"]).stdout == f"{host.secret}\n"
            with pytest.raises(SandboxError):
                child.read("file")
    assert os.listdir(host.secret.parent) == ["secret"]


BOMBS = {
    "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "thread bomb": "import threading, time\nwhile True:\n  try: threading.Thread(target=time.sleep, args=(99,)).start()\n  except RuntimeError: pass",
    "memory": "import os\nos.fork(); os.fork()\nx = []\nwhile True: x.append(bytes([1]) * (1 << 20))",
    "disk": "n = 0\nwhile True:\n  try: open(f'/tmp/{n}', 'wb').write(bytes(1 << 20)); n += 1\n  except OSError: n = 0",
    "files": "n = 0\nwhile True:\n  try: open(f'/tmp/{n}', 'wb').close()\n  except OSError: pass\n  n += 1",
    "socket buffers": "import os, socket\nfor _ in range(3): os.fork()\nheld = []\nwhile True:\n  try: pair = socket.socketpair()\n  except OSError: continue\n  held.append(pair)\n  for end in pair:\n    end.setblocking(False); end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)\n    try:\n      while True: end.send(bytes(65536))\n    except OSError: pass",
    "descriptors": "import os\nwhile True:\n  try: os.pipe()\n  except OSError: pass",
    "output": "import os\nwhile True: os.write(1, b'x' * 65536)",
}


@pytest.mark.parametrize("name", BOMBS)
def test_the_machine_stays_usable(sandbox: Sandbox, name: str) -> None:
    """While a bomb goes off, another box works, and so does the host; afterwards nothing of it is left."""
    limits = Limits(seconds=1.5, memory_mb=128, processes=16, disk_mb=8)
    with ThreadPoolExecutor(1) as pool:
        bomb = pool.submit(attempt, sandbox, BOMBS[name], limits)
        time.sleep(0.5)
        assert attempt(sandbox, "print(6 * 7)", Limits(seconds=30)).stdout == "42\n"
        assert subprocess.run([sys.executable, "-c", "print(1)"], timeout=30, capture_output=True).stdout == b"1\n"
        result = bomb.result(60)
    assert not result.ok
    assert len(result.stdout) <= limits.output_kb << 10


def test_socket_buffers_are_bounded_and_counted(sandbox: Sandbox) -> None:
    result = attempt(sandbox, BOMBS["socket buffers"], Limits(seconds=20, memory_mb=128))
    assert result.out_of_memory
    assert not result.timed_out


def test_what_counts_against_the_user_on_the_host_is_bounded(sandbox: Sandbox) -> None:
    """A box that takes every inotify instance it can get leaves some to the host and to other boxes."""
    take = "import ctypes, time; c = ctypes.CDLL(None)\nwhile c.inotify_init1(0) >= 0: pass\nprint('full', flush=True); time.sleep(1)"
    use = "import ctypes; print('free' if ctypes.CDLL(None).inotify_init1(0) >= 0 else '')"
    with ThreadPoolExecutor(1) as pool:
        greedy = pool.submit(attempt, sandbox, take)
        time.sleep(0.5)
        assert attempt(sandbox, use).stdout == "free\n"
        here = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True)
        assert here.stdout == "free\n"
        assert greedy.result(30).stdout == "full\n"
