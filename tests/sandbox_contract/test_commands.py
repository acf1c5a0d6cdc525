"""One command: its output, its end, and what it leaves behind."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, Limits, Sandbox, open_sandbox
from tests.sandbox_contract.living import boxes, sh, until


def test_bubblewrap_works_on_every_machine_that_runs_the_tests() -> None:
    sandbox = open_sandbox("bubblewrap")
    with sandbox.create() as box:
        assert sh(box, "echo here") == "here\n"
    sandbox.close()


def test_an_unknown_backend_is_refused_by_name() -> None:
    with pytest.raises(SandboxError, match="unknown sandbox backend 'docker'; known: bubblewrap, gvisor, e2b"):
        open_sandbox("docker")


def test_output_exit_code_environment_and_folder(box: Box) -> None:
    result = box.exec(["sh", "-c", 'echo "$K"; pwd; echo err >&2; exit 3'], env={"K": "a b"})
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("a b\n/work\n", "err\n", 3, False)
    assert (result.timed_out, result.truncated, result.out_of_memory) == (False, False, False)
    assert 0 < result.seconds < 10


def test_a_signal_and_a_missing_program(box: Box) -> None:
    assert box.exec(["sh", "-c", "kill -SEGV $$"]).exit_code == -11
    assert box.exec(["no-such-program"]).exit_code == 127


def test_python_is_there_and_has_no_random_hashes(sandbox: Sandbox, box: Box) -> None:
    code = "import sys, os; print(sum(range(10)), os.environ['PYTHONHASHSEED'], sys.version_info[0])"
    assert box.exec([*sandbox.python, "-c", code]).stdout == "45 0 3\n"


@pytest.mark.parametrize("argv", [[], ["echo", "a\0b"]])
def test_what_cannot_be_a_command_is_refused(box: Box, argv: list[str]) -> None:
    with pytest.raises(SandboxError):
        box.exec(argv)


def test_stdin_is_what_was_given_and_otherwise_at_its_end(box: Box) -> None:
    assert box.exec(["cat"], limits=Limits(seconds=20)).stdout == ""
    assert box.exec(["cat"], stdin="one\ntwo").stdout == "one\ntwo"
    assert box.exec(["true"], stdin="x" * 300_000).ok  # nobody waits for a reader


def test_what_was_written_before_the_time_was_up_is_kept(box: Box) -> None:
    result = box.exec(["sh", "-c", "echo partial; echo too >&2; sleep 100"], limits=Limits(seconds=1))
    assert (result.stdout, result.stderr) == ("partial\n", "too\n")
    assert result.timed_out
    assert not result.ok
    assert 1 <= result.seconds < 20


def test_a_silent_command_ends_in_time_with_all_that_it_started(box: Box) -> None:
    script = "setsid sleep 1001 & (sleep 1002 &) ; exec sleep 1003"
    start = time.monotonic()
    assert box.exec(["sh", "-c", script], limits=Limits(seconds=0.5)).timed_out
    assert time.monotonic() - start < 20
    assert "sleep" not in sh(box, "cat /proc/[0-9]*/comm 2>/dev/null")
    assert sh(box, "echo alive") == "alive\n"


def test_what_ran_before_a_command_that_is_late_lives_on(box: Box) -> None:
    sh(box, "sleep 1004 >/dev/null 2>&1 &")
    assert box.exec(["sleep", "1005"], limits=Limits(seconds=0.3)).timed_out
    assert "1004" in sh(box, "tr '\\0' ' ' < /proc/$(pgrep -f 'sleep 1004' | head -1)/cmdline")


def test_a_process_in_the_background_does_not_hold_the_call(box: Box) -> None:
    start = time.monotonic()
    script = "echo x > log; (while :; do echo x >> log; sleep 0.05; done) & echo started"
    result = box.exec(["sh", "-c", script], limits=Limits(seconds=60))
    assert time.monotonic() - start < 30
    assert result.stdout == "started\n"
    assert not result.timed_out
    size = len(box.read("log"))
    until(lambda: len(box.read("log")) > size)


def test_a_process_in_the_background_may_write_to_the_output_of_its_command(box: Box) -> None:
    assert box.exec(
        ["sh", "-c", "echo x > log; (while :; do echo noise; echo x >> log; sleep 0.05; done) & sleep 0.2"]
    ).ok
    size = len(box.read("log"))
    until(lambda: len(box.read("log")) > size)


def test_a_flood_is_cut_and_the_box_lives(box: Box) -> None:
    result = box.exec(["yes"], limits=Limits(output_kb=4, seconds=5))
    assert result.truncated
    assert result.stdout == "y\n" * 2048
    assert box.exec(["head", "-c", "4096", "/dev/zero"], limits=Limits(output_kb=4)).truncated is False
    assert sh(box, "echo alive") == "alive\n"


def test_limits_hold(sandbox: Sandbox, box: Box) -> None:
    def python(code: str, **limits: int) -> str:
        return box.exec([*sandbox.python, "-S", "-c", code], limits=Limits(**limits)).stderr

    assert "MemoryError" in python("bytearray(300 << 20)", memory_mb=200)
    assert "File too large" in python("open('big', 'wb').write(bytes(2 << 20))", file_mb=1)
    spun = box.exec(["sh", "-c", "while :; do :; done"], limits=Limits(cpu_seconds=1))
    assert (spun.exit_code, spun.timed_out) == (-24, True)
    many = (
        "import os, time\nfor _ in range(4):\n  if not os.fork(): x = b'x' * (90 << 20); time.sleep(9)\ntime.sleep(9)"
    )
    held = box.exec([*sandbox.python, "-S", "-c", many], limits=Limits(memory_mb=150, disk_mb=8))
    assert held.out_of_memory
    assert not held.ok
    assert sh(box, "echo alive") == "alive\n"


def test_a_fork_bomb_ends_with_its_time(box: Box) -> None:
    result = box.exec(["sh", "-c", "b() { b | b & }; b; sleep 30"], limits=Limits(processes=16, seconds=1))
    assert not result.ok
    assert sh(box, "echo alive") == "alive\n"


def test_the_disk_is_limited(sandbox: Sandbox) -> None:
    if sandbox.name == "e2b":
        pytest.skip("the server decides on the disk")
    with sandbox.create(Limits(disk_mb=4, file_mb=64)) as box:
        fill = "for d in /work /tmp /dev/shm; do head -c 3000000 /dev/zero > $d/fill; done"
        assert "No space left" in box.exec(["sh", "-c", fill]).stderr


def test_there_is_no_network(sandbox: Sandbox, box: Box) -> None:
    code = """
import socket
for address in ("1.1.1.1", 53), ("10.0.0.1", 80):
    try:
        socket.create_connection(address, 2)
        print("connected")
    except OSError:
        print("no")
"""
    assert box.exec([*sandbox.python, "-S", "-c", code]).stdout == "no\nno\n"


def test_commands_run_side_by_side(box: Box) -> None:
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda i: sh(box, f"echo {i} > own{i}; sleep 0.2; cat own{i}"), range(8)))
    assert outputs == [f"{i}\n" for i in range(8)]


def test_run_is_one_command_in_a_fresh_box(sandbox: Sandbox) -> None:
    program = "print(open('data/in.txt').read(), input()); open('mark', 'w')"
    files = {"main.py": program, "data/in.txt": b"21"}
    for _ in range(2):
        result = sandbox.run([*sandbox.python, "main.py"], files=files, stdin="42\n")
        assert result.stdout == "21 42\n"
    assert sandbox.run(["ls", "/work"]).stdout == ""


def test_a_killed_box_refuses_and_its_command_ends(sandbox: Sandbox) -> None:
    box = sandbox.create()
    ended: list[BaseException | object] = []

    def wait() -> None:
        try:
            ended.append(box.exec(["sh", "-c", "touch begun; sleep 1006"], limits=Limits(seconds=60)))
        except SandboxError as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: box.exec(["test", "-e", "begun"]).ok)
    box.kill()
    thread.join(30)
    assert not thread.is_alive()
    assert len(ended) == 1
    box.kill()
    for act in (
        lambda: box.exec(["true"]),
        lambda: box.write("a", "b"),
        lambda: box.read("begun"),
        box.snapshot,
        lambda: boxes(box.fork()),
        box.pause,
        box.resume,
    ):
        with pytest.raises(SandboxError):
            act()
