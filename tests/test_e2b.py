"""The E2B backend, through the official SDK, against a local server that speaks the protocol over real boxes.

Not run against the hosted service. What every backend promises is in tests/sandbox_contract; here is what is this one's
own: the watcher inside, the time to live, and a server that fails in every way that servers were seen to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, ExecResult, Limits, open_sandbox
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.sandbox.e2b import E2B
from kgsynth.sandbox.e2b_box import E2BBox
from tests.e2b_server import DEFAULT_LIFE, KEY, Server, serving

PROCESSES = "import os; print(*[open(f'/proc/{p}/comm').read().strip() for p in os.listdir('/proc') if p.isdigit()])"


@pytest.fixture(scope="module")
def local() -> Iterator[tuple[Server, E2B]]:
    backing = Bubblewrap()
    with serving(backing) as server:
        yield server, server.connect(memory=False)
    backing.close()


@pytest.fixture
def sandbox(local: tuple[Server, E2B]) -> Iterator[E2B]:
    """The client of one server for all tests; nothing is left on it between them."""
    server, client = local
    yield client
    server.heal()
    server.requests.clear()
    for end in client._ends():
        end()
    assert not server.snapshots
    assert not server.guests


@pytest.fixture
def server(local: tuple[Server, E2B], sandbox: E2B) -> Server:
    return local[0]


@pytest.fixture
def box(sandbox: E2B) -> Iterator[E2BBox]:
    with sandbox.create() as box:
        yield box


def python(box: Box, code: str, **options: Any) -> ExecResult:
    return box.exec(["python3", "-s", "-c", code], **options)


def forked(children: list[Box | Exception]) -> list[E2BBox]:
    boxes = [child for child in children if isinstance(child, E2BBox)]
    assert len(boxes) == len(children), children
    return boxes


# ------------------------------------------------------------------------------------------------- one command


def test_a_command_that_fails_is_a_result(box: E2BBox) -> None:
    result = box.exec(["sh", "-c", "echo out; echo err >&2; pwd; exit 7"])
    assert (result.exit_code, result.stdout, result.stderr) == (7, "out\n/work\n", "err\n")
    assert box.exec(["sh", "-c", "kill -SEGV $$"]).exit_code == -11
    assert box.exec(["/no/such/program"]).exit_code == 127
    assert box.exec(["/work"]).exit_code == 126


def test_the_environment_is_ours_and_what_is_given(box: E2BBox) -> None:
    code = "import os; print(*sorted(os.environ), os.environ['X'], os.environ['HOME'])"
    result = python(box, code, env={"X": "a b'\"$é"})
    assert result.stdout == "HOME LANG PATH PYTHONHASHSEED X a b'\"$é /work\n"


def test_stdin_is_at_its_end_or_what_is_given(box: E2BBox) -> None:
    assert box.exec(["cat"], limits=Limits(seconds=5)).stdout == ""
    assert box.exec(["cat"], stdin="one\ntwo\0é").stdout == "one\ntwo\0é"
    assert box.exec(["wc", "-c"], stdin="x" * 500_000).stdout.strip() == "500000"
    assert box.exec(["true"], stdin="x" * 500_000).ok  # nobody waits for a reader


def test_a_command_too_long_for_a_command_line_goes_in_a_file_that_is_gone_when_it_starts(box: E2BBox) -> None:
    long = "x" * 100_000
    assert python(
        box, f"import os; print(len('{long}'), [n for n in os.listdir('/tmp') if 'mark' not in n])"
    ).stdout == ("100000 []\n")


def test_over_its_time_the_whole_tree_is_killed_and_its_output_is_kept(box: E2BBox) -> None:
    script = "echo begun; (setsid sleep 301 &); sleep 302 & sleep 303"
    result = box.exec(["sh", "-c", script], limits=Limits(seconds=0.5))
    assert (result.exit_code, result.timed_out, result.stdout) == (-9, True, "begun\n")
    assert "sleep" not in python(box, PROCESSES).stdout


def test_what_a_command_leaves_in_the_background_stays(box: E2BBox) -> None:
    result = box.exec(["sh", "-c", "sleep 300 & echo done"])
    assert result.stdout == "done\n"
    assert "sleep" in python(box, PROCESSES).stdout


def test_a_process_in_the_background_may_write_on_when_its_command_is_over(box: E2BBox) -> None:
    assert box.exec(["sh", "-c", "(sleep 0.3; echo late; echo later; touch lived) & echo done"]).stdout == "done\n"
    time.sleep(0.6)
    assert box.exec(["test", "-e", "lived"]).ok


def test_output_over_the_limit_is_cut_and_a_flood_is_ended(box: E2BBox) -> None:
    little = Limits(output_kb=1, seconds=20)
    result = box.exec(["sh", "-c", "head -c 5000 /dev/zero | tr '\\0' a; echo e >&2"], limits=little)
    assert (result.exit_code, result.truncated, result.stdout, result.stderr) == (0, True, "a" * 1024, "e\n")
    flood = box.exec(["yes"], limits=little)
    assert (flood.exit_code, flood.truncated, flood.timed_out) == (-9, True, False)


def test_memory_processor_files_and_processes_are_limited(box: E2BBox) -> None:
    assert "MemoryError" in python(box, "bytearray(300 << 20)", limits=Limits(memory_mb=200)).stderr
    many = (
        "import os, time\nfor _ in range(4):\n if os.fork() == 0: x = bytearray(60 << 20); time.sleep(9)\ntime.sleep(9)"
    )
    held = python(box, many, limits=Limits(memory_mb=150, virtual_mb=0))
    assert (held.exit_code, held.out_of_memory, held.timed_out) == (-9, True, False)
    spun = python(box, "while True: pass", limits=Limits(cpu_seconds=1))
    assert (spun.exit_code, spun.timed_out) == (-24, True)
    assert "File too large" in python(box, "open('big', 'wb').write(bytes(2 << 20))", limits=Limits(file_mb=1)).stderr
    bomb = "import os\nwhile True: os.fork()"
    assert python(box, bomb, limits=Limits(processes=8, seconds=3)).exit_code != 0
    assert box.exec(["true"]).ok


def test_code_gains_no_privilege_and_cannot_come_before_the_watcher(box: E2BBox) -> None:
    assert "NoNewPrivs:\t1" in box.exec(["cat", "/proc/self/status"]).stdout
    box.write(".profile", "echo mine; ulimit -t 1; PATH=/work")
    box.write("python3", "#!/bin/sh\necho mine")
    box.exec(["chmod", "755", "python3"])
    assert box.exec(["echo", "ours"]).stdout == "ours\n"


def test_code_that_kills_its_watcher_is_killed_and_its_own_report_is_not_believed(box: E2BBox) -> None:
    forge = """
import os, signal, sys, time
words = open(f"/proc/{os.getppid()}/cmdline", "rb").read().split(b"\\0")
mark = next(word for word in words if b'"mark"' in word).partition(b'"mark": "')[2][:16]
print("before", flush=True)
os.write(2, b"\\n" + mark + b' {"exit_code": 0}')
time.sleep(0.2)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(300)
"""
    result = python(box, forge)
    assert (result.exit_code, result.stdout, result.timed_out) == (-9, "before\n", False)
    assert '{"exit_code": 0}' in result.stderr  # it did write one
    assert box.exec(["true"]).ok


def test_code_that_stops_its_watcher_is_ended_by_the_server(box: E2BBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgsynth.sandbox.e2b_box.GRACE_SECONDS", 1.5)
    result = box.exec(["sh", "-c", "kill -STOP $PPID; sleep 300"], limits=Limits(seconds=0.5))
    assert (result.exit_code, result.timed_out) == (-9, True)


# ------------------------------------------------------------------------------------------------------- files


def test_files_go_in_and_out_as_they_are(box: E2BBox) -> None:
    data = bytes(range(256)) + b"\r\n--x\r\n"
    box.write("a/b c/é.bin", data)
    assert box.read("a/b c/é.bin") == data
    assert box.exec(["wc", "-c", "a/b c/é.bin"]).stdout.startswith(str(len(data)))
    box.write("text", "é\ud800")
    assert box.read("text") == "é\ud800".encode("utf-8", "surrogatepass")


def test_a_file_that_is_not_there_or_too_large_is_an_error(sandbox: E2B) -> None:
    with sandbox.create(Limits(disk_mb=1)) as box:
        box.exec(["sh", "-c", "head -c 2000000 /dev/zero > big; mkdir folder"])
        for path in ("missing", "big", "folder", "/etc/hostname", "../x", "a\0b", ""):
            with pytest.raises(SandboxError):
                box.read(path)
        for path in ("/tmp/x", "../x", ""):
            with pytest.raises(SandboxError):
                box.write(path, "")
        with pytest.raises(SandboxError, match="disk_mb"):
            box.write("big", bytes(2 << 20))


# ------------------------------------------------------------------------------------------------------- state


def test_paused_it_stands_still_and_comes_back_as_it_was(box: E2BBox) -> None:
    box.exec(["sh", "-c", "(while :; do echo x >> beats; sleep 0.02; done) >/dev/null 2>&1 &"])
    for turn in range(4):
        box.write(f"turn{turn}", str(turn))
        box.pause()
        box.pause()
        with pytest.raises(SandboxError, match="paused"):
            box.exec(["true"])
        box.resume()
        box.resume()
        before = len(box.read("beats"))
        time.sleep(0.1)
        assert len(box.read("beats")) > before
        assert [box.read(f"turn{n}") for n in range(turn + 1)] == [b"%d" % n for n in range(turn + 1)]


def test_forks_share_nothing_and_draw_their_own_numbers(box: E2BBox) -> None:
    box.write("x", "same")
    children = forked(box.fork(3))
    for number, child in enumerate(children):
        child.write("x", str(number))
    assert [child.read("x") for child in (box, *children)] == [b"same", b"0", b"1", b"2"]
    assert {child.origin for child in children} == {"fork"}
    drawn = {python(child, "import os; print(os.urandom(8).hex())").stdout for child in children}
    assert len(drawn) == 3
    for child in children:
        child.kill()


def test_a_killed_box_is_closed(sandbox: E2B) -> None:
    box = sandbox.create()
    box.kill()
    box.kill()
    for use in (lambda: box.exec(["true"]), lambda: box.read("x"), box.pause, box.resume, box.snapshot, box.fork):
        with pytest.raises(SandboxError, match="closed"):
            use()


# ------------------------------------------------------------------------------------------ what the server is told


def test_sandboxes_are_asked_for_without_internet_and_to_be_killed_in_time(server: Server) -> None:
    server.connect(ttl_seconds=120)
    (body,) = [body for request, body in server.requests if request == "POST /v2/sandboxes"]
    assert (body["allow_internet_access"], body["autoPause"], body["timeout"]) == (False, False, 120)


def test_an_abandoned_sandbox_dies_and_one_in_use_does_not(server: Server) -> None:
    sandbox = server.connect(ttl_seconds=100)
    used, abandoned = sandbox.create(), sandbox.create()
    used.exec(["true"], limits=Limits(seconds=500))
    server.pass_time(101)
    assert set(server.guests) == {used.id}
    assert used.exec(["true"]).ok
    with pytest.raises(SandboxError, match="gone"):
        abandoned.exec(["true"])
    abandoned.kill()
    server.pass_time(700)
    assert not server.guests


def test_resuming_keeps_the_time_to_live_and_not_the_default_of_the_server(server: Server) -> None:
    with server.connect(ttl_seconds=100).create() as box:
        box.pause()
        box.resume()
        assert server.guests[box.id].expires - server.now() > 90 > DEFAULT_LIFE
        server.pass_time(DEFAULT_LIFE + 1)
        assert box.exec(["true"]).ok


def test_run_leaves_nothing_whatever_happens(server: Server, sandbox: E2B) -> None:
    result = sandbox.run([*sandbox.python, "a.py"], files={"a.py": "print(open('b').read())", "b": b"hi"})
    assert result.stdout == "hi\n"
    with pytest.raises(SandboxError):
        sandbox.run(["true"], files={"../x": ""})
    with pytest.raises(SandboxError):
        sandbox.run(["true"], packages=["no_such_package"])
    server.fail("POST /process.Process/Start", status=500)
    with pytest.raises(SandboxError):
        sandbox.run(["true"])
    assert not server.guests


def test_packages_must_be_in_the_template(sandbox: E2B) -> None:
    sandbox.create(packages=["json", "sqlite3"]).kill()
    with pytest.raises(SandboxError, match=r"lacks no_such_package.*KGSYNTH_E2B_TEMPLATE"):
        sandbox.create(packages=["json", "no_such_package"])


def test_closing_kills_every_box_and_deletes_every_snapshot(server: Server) -> None:
    sandbox = server.connect()
    paused = sandbox.create()
    snapshot = paused.snapshot()
    paused.fork(2)
    paused.pause()
    sandbox.close()
    sandbox.close()
    assert not server.guests
    assert not server.snapshots
    for use in (sandbox.create, lambda: sandbox.restore(snapshot), paused.resume):
        with pytest.raises(SandboxError):
            use()


def test_the_environment_says_which_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"API_KEY": KEY, "API_URL": server.url, "SANDBOX_URL": server.url}
    for name, value in settings.items():
        monkeypatch.setenv(f"E2B_{name}", value)
    assert open_sandbox("e2b").run(["echo", "hi"]).stdout == "hi\n"
    monkeypatch.setenv("KGSYNTH_E2B_TEMPLATE", "other")
    with pytest.raises(SandboxError, match=r"'other'.*KGSYNTH_E2B_TEMPLATE"):
        open_sandbox("e2b")


# -------------------------------------------------------------------------------------------- servers that fail


def test_a_missing_or_wrong_key_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("E2B_API_KEY", raising=False)
    with pytest.raises(SandboxError, match="set E2B_API_KEY"):
        server.connect(api_key=None)
    with pytest.raises(SandboxError, match=r"401.*check E2B_API_KEY"):
        server.connect(api_key="e2b_wrong")


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(SandboxError, match=r"cannot be reached.*E2B_API_URL"):
        E2B(api_key=KEY, api_url="http://127.0.0.1:1", sandbox_url="http://127.0.0.1:1")


def test_a_server_older_than_the_sdk_is_told_so(server: Server) -> None:
    server.faults.old_api = True
    with pytest.raises(SandboxError, match=r"/v2/sandboxes.*update the server"):
        server.connect()


@pytest.mark.parametrize("call", ["POST /v2/sandboxes", "POST /files", "POST /process.Process/Start", "DELETE /sand"])
def test_a_busy_server_is_asked_again(server: Server, sandbox: E2B, call: str) -> None:
    server.fail(call, status=429)
    with sandbox.create() as box:
        box.write("x", "y")
    assert not server.guests


def test_a_server_that_stays_busy_is_given_up(server: Server, sandbox: E2B) -> None:
    server.fail("POST /v2/sandboxes", status=503, times=99)
    with pytest.raises(SandboxError, match=r"503.*capacity"):
        sandbox.create()
    server.heal()
    server.fail("POST /files", status=429, times=99)
    box = sandbox.create()
    with pytest.raises(SandboxError, match="fewer at once"):
        box.write("x", "y")


@pytest.mark.parametrize("call", ["POST /v2/sandboxes", "pause", "connect", "snapshots", "fork", "files", "Start"])
def test_a_server_error_is_an_error_and_the_next_try_works(server: Server, sandbox: E2B, call: str) -> None:
    box = sandbox.create()

    def everything() -> None:
        box.resume()
        sandbox.create().kill()
        box.write("x", "y")
        forked(box.fork(1))
        box.snapshot()
        box.pause()
        box.resume()

    server.fail(call, status=500)
    with pytest.raises(SandboxError, match=r"500|told to fail"):
        everything()
    everything()


def test_an_answer_that_does_not_come_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgsynth.sandbox.e2b_box.GRACE_SECONDS", 1.5)
    with server.connect(request_seconds=1).create() as box:
        server.fail("pause", hang=4)
        server.fail("files", hang=4)
        started = time.monotonic()
        with pytest.raises(SandboxError, match="request_seconds"):
            box.pause()
        with pytest.raises(SandboxError, match="request_seconds"):
            box.write("x", "y")
        server.fail("Start", hang=4)
        assert box.exec(["true"], limits=Limits(seconds=0.1)).timed_out
        assert time.monotonic() - started < 8


def test_a_stream_cut_off_is_an_error_and_not_a_result(server: Server, sandbox: E2B) -> None:
    box = sandbox.create()
    server.fail("Start", cut=True)
    with pytest.raises(SandboxError, match="lost a command"):
        box.exec(["echo", "hi"])
    server.fail("Start")  # closed without an answer
    with pytest.raises(SandboxError):
        box.exec(["echo", "hi"])
    assert box.exec(["echo", "hi"]).stdout == "hi\n"


def test_a_fork_that_fails_is_an_error_in_its_place(server: Server, sandbox: E2B) -> None:
    server.faults.failing_forks = frozenset({1})
    children = sandbox.create().fork(3)
    assert [type(child) for child in children] == [E2BBox, SandboxError, E2BBox]
    assert "no node has room" in str(children[1])


def test_many_forks_are_asked_for_in_turns(server: Server, sandbox: E2B, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgsynth.sandbox.e2b.FORKS_PER_CALL", 2)
    assert len(forked(sandbox.create().fork(3))) == 3
    assert [body["count"] for request, body in server.requests if request.endswith("/fork")] == [2, 1]


def test_without_a_fork_of_the_server_there_is_a_snapshot(server: Server, sandbox: E2B) -> None:
    server.faults.no_fork = True
    box = sandbox.create()
    box.write("x", "same")
    children = forked(box.fork(2))
    assert [(child.origin, child.read("x")) for child in children] == [("snapshot", b"same")] * 2
    assert not server.snapshots


def test_a_paused_sandbox_that_is_refused_is_resumed_for_it_and_paused_again(server: Server, sandbox: E2B) -> None:
    server.faults.paused_fork_refused = server.faults.paused_snapshot_refused = True
    box = sandbox.create()
    box.write("x", "same")
    box.pause()
    children = [*forked(box.fork(2)), sandbox.restore(box.snapshot())]
    assert [child.read("x") for child in children] == [b"same"] * 3
    assert server.guests[box.id].paused
    with pytest.raises(SandboxError, match="paused"):
        box.exec(["true"])
    box.resume()
    assert box.read("x") == b"same"


def test_a_pause_that_is_refused_is_not_taken_for_one(server: Server, sandbox: E2B) -> None:
    box = sandbox.create()
    server.fail("pause", status=409)
    with pytest.raises(SandboxError, match="refused to pause"):
        box.pause()
    assert box.exec(["true"]).ok


def test_a_snapshot_that_cannot_be_restored_is_none(server: Server, sandbox: E2B) -> None:
    box = sandbox.create()
    server.faults.unrestorable = True
    with pytest.raises(SandboxError, match=r"cannot be restored.*no such device"):
        box.snapshot()
    assert not server.snapshots


def test_file_changes_lost_from_the_second_resume_on_are_noticed(server: Server, sandbox: E2B) -> None:
    server.faults.loses_files = True
    box = sandbox.create()
    box.pause()
    box.resume()
    box.write("x", "after the first resume")
    box.pause()
    with pytest.raises(SandboxError, match="lost file changes"):
        box.resume()
    assert not server.guests


def test_a_clock_that_stood_still_is_set_or_refused(server: Server, sandbox: E2B) -> None:
    box = sandbox.create()
    box.pause()
    server.faults.clock = "stale"
    box.resume()
    server.faults.clock = "stuck"
    with pytest.raises(SandboxError, match="clock"):
        sandbox.create()


def test_siblings_with_the_same_random_numbers_are_refused(server: Server, sandbox: E2B) -> None:
    box = sandbox.create()
    server.faults.same_numbers = True
    first, *others = box.fork(3)
    assert isinstance(first, E2BBox)
    assert all("same random numbers" in str(other) for other in others)
    assert set(server.guests) == {box.id, first.id}


def test_without_the_sdk_the_install_command_is_named() -> None:
    code = "import sys; sys.modules['e2b'] = None; from kgsynth.sandbox import open_sandbox; open_sandbox('e2b')"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[1], env=os.environ, capture_output=True, text=True
    )
    assert "SandboxError: no E2B SDK here: pip install 'kgsynth[e2b]'" in shown.stderr
