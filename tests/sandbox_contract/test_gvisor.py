"""What is gVisor's own: its program, its first process, and what is left of it when everything has ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import ExecResult, Limits
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.sandbox.gvisor import PREFIX, Gvisor, sweep
from tests.sandbox_contract.conftest import opened
from tests.sandbox_contract.living import boxes, counts_on, kill_all, sh, start_counter, until


@pytest.fixture(scope="module")
def gvisor() -> Iterator[Gvisor]:
    sandbox = opened("gvisor")
    assert isinstance(sandbox, Gvisor)
    yield sandbox
    sandbox.close()


def folders() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob(f"*{PREFIX}*")}


def processes_of(folder: str) -> list[int]:
    """The processes whose command line names that folder; those that only wait for their parent have none."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and folder.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_without_the_program_the_error_says_how_to_install_it() -> None:
    with pytest.raises(SandboxError, match="sudo apt-get install runsc"):
        Gvisor("no-such-runsc")
    with pytest.raises(SandboxError, match="sudo apt-get install runsc"):
        Gvisor("true")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_else_than_root_is_told_so(gvisor: Gvisor) -> None:
    code = "from kgsynth.sandbox.gvisor import Gvisor; import os; os.seteuid(65534); Gvisor()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "SandboxError: gVisor's checkpoints need root" in ended.stderr


def test_the_kernel_is_not_the_hosts(gvisor: Gvisor) -> None:
    with gvisor.create() as box:
        assert sh(box, "uname -r").strip() != os.uname().release
        assert int(sh(box, "cat /proc/[0-9]*/comm | wc -l")) < 10


def test_common_commands_work(gvisor: Gvisor) -> None:
    with gvisor.create() as box:
        box.write("d/file", "x")
        assert (
            sh(box, "ls d; stat -c %s d/file; find . -type f; cp -r d e; mv e f; rm -r d; ls")
            == "file\n1\n./d/file\nf\n"
        )


def test_installed_packages_can_be_imported_when_asked_for(gvisor: Gvisor) -> None:
    code = "import numpy; print(int(numpy.arange(4).sum()))"
    with gvisor.create(Limits(memory_mb=2048, seconds=60), packages=("numpy",)) as box:
        assert box.exec([*gvisor.python, "-c", code]).stdout == "6\n"
        (copy,) = boxes(box.fork())
        with copy:
            assert copy.exec([*gvisor.python, "-c", code]).stdout == "6\n"
    with pytest.raises(SandboxError, match="no_such_package"):
        gvisor.create(packages=("no_such_package",))


def test_code_cannot_reach_the_first_process(gvisor: Gvisor) -> None:
    """Its pipes carry the results: who could write there could forge them."""
    code = """
import ctypes, os, signal
def tried(name, act):
    try:
        act()
        print(name, "done")
    except OSError:
        pass
for path in ("/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/mem"):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        tried(path, lambda: os.open(path, flags | os.O_NONBLOCK))
tried("kill", lambda: os.kill(1, signal.SIGKILL))
tried("stop", lambda: os.kill(1, signal.SIGSTOP))
tried("root", lambda: os.setuid(0))
tried("groups", lambda: os.setgroups([]))
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, 1, 0, 0) == 0:
    print("ptrace done")
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
    print("mount done")
"""
    with gvisor.create() as box:
        result = box.exec([*gvisor.python, "-c", code])
        assert (result.stdout, result.stderr, result.exit_code) == ("", "", 0)
        assert sh(box, "echo alive") == "alive\n"


def test_a_fork_that_fails_is_an_error_of_that_child_only(gvisor: Gvisor, tmp_path: Path) -> None:
    """A `runsc` that fails every second restore, of those that are left when the box itself has been restored."""
    script = f"""#!/bin/sh
case " $* " in
*" restore "*)
    while ! mkdir {tmp_path}/lock 2>/dev/null; do sleep 0.01; done
    n=$(($(cat {tmp_path}/n 2>/dev/null) + 1)); echo $n > {tmp_path}/n; rmdir {tmp_path}/lock
    [ $((n % 2)) = 0 ] && {{ echo "out of something" >&2; exit 1; }} ;;
esac
exec {shutil.which("runsc")} "$@"
"""
    program = tmp_path / "runsc"
    program.write_text(script)
    program.chmod(0o755)
    sandbox = Gvisor(str(program))
    with sandbox.create() as box:
        box.write("file", "kept")
        children = box.fork(4)
        lost = [child for child in children if isinstance(child, SandboxError)]
        alive = [child for child in children if not isinstance(child, Exception)]
        assert len(lost) == len(alive) == 2
        assert "out of something" in str(lost[0])
        assert [child.read("file") for child in [*alive, box]] == [b"kept"] * 3
        kill_all(alive)
    sandbox.close()


def test_a_checkpoint_that_fails_leaves_the_box_running(gvisor: Gvisor, tmp_path: Path) -> None:
    program = tmp_path / "runsc"
    program.write_text(f"""#!/bin/sh
case " $* " in *" checkpoint "*) [ -e {tmp_path}/full ] && {{ echo "disk is full" >&2; exit 1; }} ;; esac
exec {shutil.which("runsc")} "$@"
""")
    program.chmod(0o755)
    sandbox = Gvisor(str(program))
    with sandbox.create() as box:
        start_counter(sandbox, box)
        (tmp_path / "full").touch()
        for act in (box.snapshot, box.fork):
            with pytest.raises(SandboxError, match="disk is full"):
                act()
        counts_on(box)
        (tmp_path / "full").unlink()
        box.snapshot()
        counts_on(box)
    sandbox.close()


def test_memory_held_in_the_background_is_freed_and_the_box_lives(gvisor: Gvisor) -> None:
    hog = "x = [b'x' * (60 << 20) for _ in range(5)]; open('full', 'w'); import time; time.sleep(60)"
    with gvisor.create(Limits(memory_mb=100, virtual_mb=0, disk_mb=8)) as box:
        sh(box, f'{gvisor.python[0]} -S -c "{hog}" >/dev/null 2>&1 &')
        until(lambda: sh(box, "ps -eo args | grep -c rang[e] || true") == "0\n")
        assert sh(box, "echo alive") == "alive\n"


def test_a_running_command_survives_a_snapshot_of_its_box(gvisor: Gvisor) -> None:
    with gvisor.create(Limits(seconds=30)) as box:
        results: list[ExecResult] = []
        script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.1; done; touch over"
        thread = threading.Thread(target=lambda: results.append(box.exec(["sh", "-c", script])))
        thread.start()
        until(lambda: sh(box, "pgrep -f touch || true"))
        snapshot = box.snapshot()
        box.pause()
        time.sleep(0.2)
        box.resume()
        thread.join(30)
        assert results[0].stdout.split() == list("123456789")
        with gvisor.restore(snapshot) as copy:  # there, it goes on for nobody
            until(lambda: copy.exec(["test", "-e", "over"]).ok)


def test_a_snapshot_of_another_backend_is_refused(gvisor: Gvisor) -> None:
    other = Bubblewrap()
    with other.create() as box:
        snapshot = box.snapshot()
        with pytest.raises(SandboxError, match="another backend"):
            gvisor.restore(snapshot)
    other.close()


def test_nothing_is_left_behind(gvisor: Gvisor) -> None:
    before = folders()
    sandbox = Gvisor()
    (folder,) = folders() - before
    with sandbox.create() as box:
        children = boxes(box.fork(2))
        box.snapshot()
        children[0].pause()
        children[1].kill()
        assert len(processes_of(folder)) >= 4
        box.kill()
    images = Path(tempfile.gettempdir(), folder, "images")
    assert len(list(images.iterdir())) == 1  # the snapshot; the forks' is gone
    sandbox.close()
    assert processes_of(folder) == []
    assert folder not in folders()
    assert folder not in Path("/proc/self/mountinfo").read_text()


def test_what_a_killed_program_left_is_swept_up_by_the_next(gvisor: Gvisor) -> None:
    code = """
import time
from kgsynth.sandbox.gvisor import Gvisor
sandbox = Gvisor()
box, other = sandbox.create(), sandbox.create()
box.exec(["sh", "-c", "sleep 1000 &"])
box.snapshot()
box.pause()
print(sandbox._folder, flush=True)
time.sleep(60)
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    folder = program.stdout.readline().strip()
    sweep()
    assert Path(folder).is_dir()  # in use
    assert len(processes_of(folder)) >= 4
    program.send_signal(signal.SIGKILL)
    program.wait()
    program.stdout.close()
    sweep()
    assert processes_of(folder) == []
    assert not Path(folder).exists()


def test_a_box_ends_when_its_program_is_killed(gvisor: Gvisor) -> None:
    code = """
import time
from kgsynth.sandbox.gvisor import Gvisor
sandbox = Gvisor()
box = sandbox.create()
box.exec(["sh", "-c", "sleep 1000 &"])
print(sandbox._folder, flush=True)
time.sleep(60)
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    folder = program.stdout.readline().strip()
    program.send_signal(signal.SIGKILL)
    program.wait()
    program.stdout.close()
    until(lambda: processes_of(folder) == [])
    sweep()
    assert not Path(folder).exists()
