"""Hostile programs in a real box: each is contained, and the result says what happened."""

from __future__ import annotations

import contextlib
import http.server
import os
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kgsynth.errors import SandboxError, StateError
from kgsynth.sandbox import ExecResult, Limits, Sandbox, open_sandbox
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.sandbox.jail import PYTHON
from kgsynth.sandbox.seccomp import program

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    return open_sandbox()


def python(sandbox: Sandbox, code: str, limits: Limits = Limits(), **more: str) -> ExecResult:
    with sandbox.create(limits) as box:
        return box.exec([*PYTHON, "-c", code], **more)  # type: ignore[arg-type]


def test_output_exit_code_stdin_and_environment(sandbox: Sandbox) -> None:
    code = "import os, sys; print(input(), os.environ['K'], os.getcwd()); sys.stderr.write('e'); sys.exit(3)"
    with sandbox.create() as box:
        result = box.exec([*PYTHON, "-c", code], stdin="line\n", env={"K": "v"})
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("line v /work\n", "e", 3, False)
    assert (result.timed_out, result.truncated, result.out_of_memory) == (False, False, False)
    assert result.seconds > 0


def test_stdin_ends(sandbox: Sandbox) -> None:
    assert python(sandbox, "import sys; print(repr(sys.stdin.read()))").stdout == "''\n"


def test_written_files_and_changes_are_seen_by_every_command(sandbox: Sandbox) -> None:
    with sandbox.create() as box:
        box.write("pkg/sub/data.bin", b"\0\xff")
        box.write(
            "main.py", "print(open('pkg/sub/data.bin', 'rb').read()); open('pkg/new', 'w'); open('/tmp/new', 'w')"
        )
        first, second = (box.exec([*PYTHON, "main.py"]) for _ in range(2))
        assert first.stdout == second.stdout == "b'\\x00\\xff'\n"
        found = box.exec(["find", ".", "/tmp", "-type", "f"]).stdout.split()
        assert sorted(found) == ["./main.py", "./pkg/new", "./pkg/sub/data.bin", "/tmp/new"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a\0b", "."])
def test_write_stays_inside(sandbox: Sandbox, path: str) -> None:
    with sandbox.create() as box, pytest.raises(SandboxError, match="working directory"):
        box.write(path, "")


def test_write_respects_the_disk_limit(sandbox: Sandbox) -> None:
    with sandbox.create(Limits(disk_mb=1)) as box:
        box.write("a", b"x" * (1 << 19))
        with pytest.raises(SandboxError, match="disk_mb = 1"):
            box.write("b", b"x" * (1 << 20))


@pytest.mark.parametrize("name", ["seconds", "processes", "output_kb"])
def test_limits_must_be_positive(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(SandboxError, match=name):
        sandbox.create(Limits(**{name: 0}))


def test_a_missing_program_is_a_result(sandbox: Sandbox) -> None:
    with sandbox.create() as box:
        assert box.exec(["no-such-program"]).exit_code == 127


def test_a_signal_is_a_negative_exit_code(sandbox: Sandbox) -> None:
    assert python(sandbox, "import os; os.kill(os.getpid(), 11)").exit_code == -11


def test_nothing_of_the_host_is_visible(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "hunter2")
    hidden = tmp_path / "hidden_tests.json"
    hidden.write_text("hunter2")
    home = Path.home() / f".kgsynth-test-{os.getpid()}"
    home.write_text("hunter2")
    places = [
        str(p) for p in (hidden, home, ROOT / "pyproject.toml", ROOT, tmp_path, "/etc/passwd", "/etc/shadow", "/sys")
    ]
    code = f"""
import glob, os
seen = [p for p in {places} if os.path.exists(p)]
for path in glob.glob("/proc/[0-9]*/*") + glob.glob("/proc/[0-9]*/root/*"):
    try:
        text = open(path, "rb").read(1 << 16)
    except (OSError, ValueError):
        continue
    if b"hunter2" in text and not path.endswith("cmdline"):
        seen.append(path)
print(seen, len(glob.glob("/proc/[0-9]*")), sorted(os.listdir("/home") if os.path.exists("/home") else []))
"""
    try:
        result = python(sandbox, code)
    finally:
        home.unlink()
    python_home = [PYTHON[0].split("/")[2]] if PYTHON[0].startswith("/home/") else []
    assert result.stdout == f"[] 3 {python_home}\n", result.stderr


def test_the_root_is_read_only(sandbox: Sandbox) -> None:
    code = """
import os, sys
for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/box/x", "/layers/x", "/pid1.py", "/proc/sys/kernel/hostname", os.__file__):
    try:
        open(path, "w")
    except OSError:
        continue
    print("wrote", path)
for path in ("/tmp/x", "/work/y", "/dev/shm/z"):
    open(path, "w")
    print(os.listdir(os.path.dirname(path)))
"""
    assert python(sandbox, code).stdout == "['x']\n['y']\n['z']\n"


def test_no_privileges(sandbox: Sandbox) -> None:
    code = (
        "print([l.split()[1] for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm', 'NoNewPrivs'))])"
    )
    assert python(sandbox, code).stdout == "['0000000000000000', '0000000000000000', '1']\n"
    assert python(sandbox, "import os; print(os.getuid() != 0)").stdout == "True\n"


@pytest.fixture
def server() -> Iterator[int]:
    """A real HTTP server on this host's loopback address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield httpd.server_port
        httpd.shutdown()
        thread.join()


def test_no_network(sandbox: Sandbox, server: int) -> None:
    assert urllib.request.urlopen(f"http://127.0.0.1:{server}/", timeout=5).status == 200
    code = f"""
import socket
for address in (("127.0.0.1", {server}), ("192.0.2.1", 80), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, timeout=2)
        print("reached", address)
    except OSError as error:
        print(error.errno)
try:
    socket.socket(40, socket.SOCK_STREAM)  # AF_VSOCK: the way out of a virtual machine
except OSError as error:
    print(error.errno)
"""
    assert python(sandbox, code).stdout.split() == ["111", "101", "101", "97"]  # refused, unreachable, no such family


@pytest.mark.parametrize("call", ["unshare, 0x10000000", "memfd_create, b'x', 0", "shmget, 0, 1 << 30, 0o1600"])
def test_refused_system_calls(sandbox: Sandbox, call: str) -> None:
    code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True); f = libc[{call.split(',')[0]!r}]; print(f({call.split(',', 1)[1]}), ctypes.get_errno())"
    assert python(sandbox, code).stdout == "-1 1\n"


def test_threads_still_work_under_the_filter(sandbox: Sandbox) -> None:
    code = "import threading; t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()"
    assert python(sandbox, code).stdout == "in a thread\n"


def test_an_unknown_processor_is_refused() -> None:
    assert len(program("aarch64")) % 8 == 0
    with pytest.raises(SandboxError, match="sparc"):
        program("sparc")


def test_fork_bomb(sandbox: Sandbox) -> None:
    code = """
import os
made = 0
while True:
    try:
        if os.fork() == 0:
            while True:
                pass
    except OSError as error:
        print(made, error.errno, flush=True)
        break
    made += 1
"""
    result = python(sandbox, code, Limits(processes=8, seconds=5))
    assert result.stdout == "7 11\n"  # eight with itself, then EAGAIN
    assert result.ok
    bomb = python(
        sandbox, "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", Limits(processes=8, seconds=0.5)
    )
    assert bomb.timed_out


def test_disk_is_limited(sandbox: Sandbox) -> None:
    code = """
import errno
chunk, written = bytes(1 << 20), 0
try:
    for n in range(100):
        for _ in range(2):
            written += open(f"/tmp/{n}", "ab").write(chunk)
except OSError as error:
    print(written >> 20, error.errno == errno.ENOSPC)
try:
    with open("/tmp/0", "wb") as file:
        for _ in range(100):
            file.write(chunk)
except OSError as error:
    print(error.errno == errno.EFBIG)
"""
    result = python(sandbox, code, Limits(disk_mb=8, file_mb=2))
    assert result.stdout in ("8 True\nTrue\n", "7 True\nTrue\n"), result


def test_memory_of_one_process_is_limited(sandbox: Sandbox) -> None:
    result = python(sandbox, "x = bytearray(1 << 30)", Limits(memory_mb=128))
    assert result.exit_code == 1
    assert "MemoryError" in result.stderr


def test_memory_of_all_processes_is_limited(sandbox: Sandbox) -> None:
    code = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = b"x" * (64 << 20)
        time.sleep(60)
time.sleep(60)
"""
    result = python(sandbox, code, Limits(memory_mb=160, seconds=20))
    assert result.out_of_memory
    assert not result.timed_out
    assert result.exit_code == -9


def test_cpu_time_is_limited(sandbox: Sandbox) -> None:
    result = python(sandbox, "while True: pass", Limits(cpu_seconds=1, seconds=20))
    assert result.timed_out
    assert result.exit_code == -24


def test_much_output_is_cut_and_an_endless_flood_ends_the_program(sandbox: Sandbox) -> None:
    result = python(sandbox, "import sys\nfor _ in range(64): print('x' * 65536)\nsys.exit(5)", Limits(output_kb=4))
    assert result.truncated
    assert len(result.stdout) == 4096
    assert result.exit_code == 5
    endless = python(sandbox, "while True: print('x' * 65536)", Limits(output_kb=4, seconds=5))
    assert (endless.truncated, endless.exit_code, endless.timed_out) == (True, -9, False)
    assert endless.truncated


def test_timeout_keeps_partial_output(sandbox: Sandbox) -> None:
    result = python(sandbox, "import time; print('before', flush=True); time.sleep(600)", Limits(seconds=0.5))
    assert result.timed_out
    assert not result.ok
    assert result.stdout == "before\n"


def test_closing_the_output_does_not_end_the_watch(sandbox: Sandbox) -> None:
    result = python(sandbox, "import os, time; os.close(1); os.close(2); time.sleep(600)", Limits(seconds=0.5))
    assert result.timed_out


def _commands() -> Iterator[bytes]:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{pid}/cmdline").read_bytes()


def _sleeps(marker: str) -> bool:
    return f"sleep\0{marker}\0".encode() in _commands()


def _soon_gone(marker: str) -> bool:
    """No process, not even a bwrap about to start it, names the marker any more."""
    for _ in range(200):
        if not any(marker.encode() in command for command in _commands()):
            return True
        time.sleep(0.05)
    return False


def test_a_background_child_that_holds_the_output_is_killed(sandbox: Sandbox) -> None:
    marker = f"600.{os.getpid()}1"
    with sandbox.create(Limits(seconds=30)) as box:
        result = box.exec(["sh", "-c", f"(setsid sleep {marker} &) ; echo done"])
    assert (result.stdout, result.ok) == ("done\n", True)
    assert _soon_gone(marker)


def test_kill_ends_a_running_command_and_closes_the_box(sandbox: Sandbox) -> None:
    marker = f"600.{os.getpid()}2"
    with sandbox.create(Limits(seconds=30)) as box, ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.exec, ["sleep", marker])
        while not _sleeps(marker):
            time.sleep(0.01)
        box.kill()
        assert running.result(20).exit_code == -9
        with pytest.raises(SandboxError, match="closed"):
            box.exec(["true"])
    assert _soon_gone(marker)


def test_a_box_killed_while_it_is_set_up_leaves_nothing(sandbox: Sandbox) -> None:
    for milliseconds in range(16):
        marker = f"600.{os.getpid()}4{milliseconds}"
        with sandbox.create(Limits(seconds=milliseconds / 1000 + 1e-6)) as box:
            assert box.exec(["sleep", marker]).timed_out
        assert _soon_gone(marker)


def test_a_box_dies_with_the_program_that_made_it() -> None:
    marker = f"600.{os.getpid()}3"
    code = f"from kgsynth.sandbox import *\nopen_sandbox().create(Limits(seconds=60)).exec(['sleep', '{marker}'])"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as parent:
        while parent.poll() is None and not _sleeps(marker):
            time.sleep(0.01)
        assert parent.poll() is None
        parent.kill()
    assert _soon_gone(marker)


def test_many_boxes_in_threads(sandbox: Sandbox) -> None:
    def square(n: int) -> str:
        with sandbox.create() as box:
            box.write("n", str(n))
            return box.exec([*PYTHON, "-S", "-c", "n = int(open('n').read()); print(n * n)"]).stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(square, range(40))) == [f"{n * n}\n" for n in range(40)]


def test_bad_arguments_are_sandbox_errors(sandbox: Sandbox) -> None:
    with sandbox.create() as box, pytest.raises(SandboxError, match="cannot start"):
        box.exec(["echo", "a\0b"])


def test_a_missing_backend_names_the_fix() -> None:
    with pytest.raises(SandboxError, match="sudo apt-get install bubblewrap"):
        Bubblewrap("no-such-bwrap")
    with pytest.raises(SandboxError, match="docker"):
        open_sandbox("docker")


def test_a_backend_that_cannot_make_a_box_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(SandboxError, match=r"(?s)No permissions.*apt-get install bubblewrap"):
        Bubblewrap(str(broken))


SYSTEM_PYTHON = "/usr/bin/python3"


def as_normal_user(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that everybody can read."""
    return subprocess.run(
        [SYSTEM_PYTHON, "-Bc", code],
        user=12345,
        group=12345,
        extra_groups=[],
        env={"PYTHONPATH": str(ROOT), "PLANTED_SECRET": "hunter2"},
        cwd="/",
        capture_output=True,
        text=True,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="the whole suite runs as a normal user already")
def test_it_works_without_root() -> None:
    """In a user namespace of its own, with the same limits."""
    probe = "import sys, kgsynth.sandbox; assert sys.version_info >= (3, 11)"
    if not os.path.exists(SYSTEM_PYTHON) or as_normal_user(probe).returncode:
        pytest.skip("no system Python 3.11 that can read this checkout")
    result = as_normal_user("""
from kgsynth.sandbox import *
forks = "import os, time; made = [os.fork() or time.sleep(9) for n in range(9)]"
sandbox = open_sandbox()
PYTHON = sandbox.python
with sandbox.create(Limits(processes=4)) as box:
    print(box.exec([*PYTHON, "-c", forks]).stderr)
    print("environment", repr(box.exec(["cat", "/proc/1/environ"]).stdout))
    print([box.exec(argv).exit_code for argv in (["unshare", "-U", "true"], ["touch", "/x"], ["touch", "/dev/x"])])
    print(box.exec(["id", "-u"]).stdout)
with sandbox.create() as box:
    box.write("d/x", "kept")
    box.exec(["sh", "-c", "echo > beat; mkdir -p e; (while :; do echo >> beat; sleep 0.02; done) &"])
    box.pause()
    (child,) = box.fork()
    box.resume()
    size = len(box.read("beat"))
    while len(box.read("beat")) <= size:
        pass
    child.write("d/x", "changed")
    print(box.read("d/x"), child.read("d/x"), child.exec(["sh", "-c", "rm -r d e beat; ls"]).stdout)
    child.kill()
    for attack in ("os.kill(os.getppid(), 9)", "os.kill(os.getppid(), 19)", "os.kill(-1, 9)"):
        result = box.exec([*PYTHON, "-c", f"import os, time; {attack}; time.sleep(60)"], limits=Limits(seconds=1))
        print("ended", result.exit_code, box.read("d/x"))
print(sandbox.run([*PYTHON, "-c", "import os; print(os.getpid(), os.listdir('.'))"]).stdout)
sandbox.close()
""")
    assert "BlockingIOError" in result.stdout, result.stderr
    assert "environment ''\n[1, 1, 1]\n1000" in result.stdout
    assert "b'kept' b'changed' \nended -9 b'kept'\nended -9 b'kept'\nended -9 b'kept'\n2 []" in result.stdout, result


DEEP = "import os\nfor _ in range({0}): os.mkdir({1!r}); os.chdir({1!r})"


def test_a_deep_tree_is_copied_and_removed(sandbox: Sandbox) -> None:
    with sandbox.create() as box:
        assert box.exec([*PYTHON, "-c", DEEP.format(1500, "d")]).ok
        (child,) = box.fork()
        assert not isinstance(child, Exception)
        with child:
            assert child.exec(["sh", "-c", "find . | wc -l"]).stdout == "1501\n"


@pytest.mark.parametrize(
    "code",
    [
        DEEP.format(300, 200 * "d"),
        "import os, stat; os.mknod('whiteout', stat.S_IFCHR, 0)",
    ],
    ids=["too long a path", "a device that hides"],
)
def test_what_cannot_be_copied_is_the_codes_own_doing(sandbox: Sandbox, code: str) -> None:
    with sandbox.create() as box:
        assert box.exec([*PYTHON, "-c", code]).ok
        with pytest.raises(StateError):
            box.snapshot()
        assert box.exec(["true"]).ok


def test_attributes_of_overlays_hide_nothing(sandbox: Sandbox) -> None:
    code = "import os; open('x', 'w'); os.setxattr('.', 'user.overlay.opaque', b'x'); os.setxattr('x', 'user.overlay.whiteout', b'y')"
    with sandbox.create() as box:
        if not box.exec([*PYTHON, "-c", code]).ok:
            pytest.skip("this kernel has no user attributes on tmpfs")
        (child,) = box.fork()
        assert not isinstance(child, Exception)
        with child:
            assert child.exec(["ls"]).stdout == "x\n"


def test_a_closed_working_directory_is_told(sandbox: Sandbox) -> None:
    with sandbox.create() as box:
        box.write("x", "1")
        box.exec(["chmod", "0", "."])
        for act in (lambda: box.read("x"), lambda: box.write("y", "2")):
            with pytest.raises(SandboxError, match="Permission denied"):
                act()
        box.exec(["chmod", "755", "/work"])
        assert box.read("x") == b"1"
        with pytest.raises(SandboxError, match="not a file"):
            box.read("\ud800")
