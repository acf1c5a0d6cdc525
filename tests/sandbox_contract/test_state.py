"""State over time: pauses, snapshots and forks keep files, tmpfs and, where the backend says so, processes."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, Limits, Sandbox
from tests.sandbox_contract.living import (
    STEP,
    STUBBORN,
    boxes,
    count,
    counts_on,
    kill_all,
    readable,
    sh,
    start_counter,
    until,
)


def test_thirty_pauses_lose_nothing(sandbox: Sandbox, box: Box) -> None:
    start_counter(sandbox, box)
    for turn in range(30):
        box.write(f"file{turn}", str(turn))
        before = count(box)
        box.pause()
        box.resume()
        assert count(box) >= before
        sh(box, f"echo {turn} >> /dev/shm/log")
    assert sh(box, "cat /dev/shm/log").split() == [str(turn) for turn in range(30)]
    assert [box.read(f"file{turn}") for turn in range(30)] == [str(turn).encode() for turn in range(30)]
    counts_on(box)
    assert int(sh(box, "cat /dev/shm/n")) >= before


def test_nothing_runs_while_paused_and_nothing_is_done(sandbox: Sandbox, box: Box) -> None:
    start_counter(sandbox, box)
    first, begun = count(box), time.monotonic()
    box.pause()
    paused = time.monotonic()
    box.pause()
    for act in (lambda: box.exec(["true"]), lambda: box.read("n"), lambda: box.write("a", "b")):
        with pytest.raises(SandboxError, match="paused"):
            act()
    time.sleep(1)
    resuming = time.monotonic()
    box.resume()
    box.resume()
    last, ran = count(box), (paused - begun) + (time.monotonic() - resuming)
    assert last - first <= ran / STEP + 2
    counts_on(box)


def test_files_written_after_every_restore_are_there_after_the_next(sandbox: Sandbox) -> None:
    box = sandbox.create()
    for turn in range(4):
        box.write(f"file{turn}", str(turn))
        sh(box, f"echo {turn} >> log; echo {turn} >> /dev/shm/log; echo {turn} > latest")
        snapshot = box.snapshot()
        box.kill()
        box = sandbox.restore(snapshot)
        snapshot.delete()
        lines = [str(n) for n in range(turn + 1)]
        assert sh(box, "cat log").split() == sh(box, "cat /dev/shm/log").split() == lines
        assert box.read("latest") == f"{turn}\n".encode()
        assert [box.read(f"file{n}").decode() for n in range(turn + 1)] == lines
    box.kill()


def test_the_box_goes_on_after_a_snapshot_which_is_of_its_moment(sandbox: Sandbox, box: Box) -> None:
    start_counter(sandbox, box)
    sh(box, "echo old > file; mkdir d; echo x > d/x; ln -s d/x link")
    before = count(box)
    snapshot = box.snapshot()
    after = count(box)
    counts_on(box)
    sh(box, "echo new > file; rm -r d")
    with sandbox.restore(snapshot) as copy:
        assert before <= count(copy)
        assert sh(copy, "cat file d/x link") == "old\nx\nx\n"
        assert (copy.id, copy.read("file"), box.read("file")) == (copy.id, b"old\n", b"new\n")
        assert copy.id != box.id
        if snapshot.has_processes:
            counts_on(copy)
        else:
            assert count(copy) <= after
    snapshot.delete()


def test_a_snapshot_outlives_its_box_until_it_is_deleted(sandbox: Sandbox) -> None:
    box = sandbox.create()
    box.write("file", "kept")
    snapshot = box.snapshot()
    box.kill()
    first = sandbox.restore(snapshot)
    second = sandbox.restore(snapshot)
    snapshot.delete()
    snapshot.delete()
    assert first.read("file") == second.read("file") == b"kept"
    with pytest.raises(SandboxError):
        sandbox.restore(snapshot)
    first.write("file", "changed")
    assert second.read("file") == b"kept"
    kill_all([first, second])


def test_a_copy_has_the_limits_of_its_origin(sandbox: Sandbox) -> None:
    with sandbox.create(Limits(seconds=0.5, disk_mb=4, file_mb=64)) as box:
        (copy,) = boxes(box.fork())
        with copy:
            assert copy.exec(["sleep", "50"]).timed_out
            if sandbox.name != "e2b":  # there, the server decides on the disk
                assert "No space left" in copy.exec(["sh", "-c", "head -c 6000000 /dev/zero > fill"]).stderr


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_four_forks_have_all_state_and_go_their_own_ways(sandbox: Sandbox, box: Box, paused: bool) -> None:
    start_counter(sandbox, box)
    snapshot = box.snapshot()
    processes = snapshot.has_processes
    snapshot.delete()
    sh(box, "echo before > file; echo before > /dev/shm/file")
    before = count(box)
    if paused:
        box.pause()
    children = boxes(box.fork(4))
    if paused:
        with pytest.raises(SandboxError, match="paused"):
            box.exec(["true"])
        box.resume()
    counts_on(box)
    assert len({child.id for child in [*children, box]}) == 5
    for number, child in enumerate(children):
        assert sh(child, "cat file /dev/shm/file") == "before\nbefore\n"
        assert count(child) >= before - 1
        sh(child, f"echo {number} > file; echo {number} > /dev/shm/file")
        if processes:
            counts_on(child)
    sh(box, "echo source > file")
    assert [child.read("file") for child in children] == [f"{number}\n".encode() for number in range(4)]
    assert [sh(child, "cat /dev/shm/file") for child in children] == [f"{number}\n" for number in range(4)]
    assert box.read("file") == b"source\n"
    kill_all(children)
    counts_on(box)


def test_siblings_draw_different_numbers(sandbox: Sandbox, box: Box) -> None:
    start_counter(sandbox, box)
    snapshot = box.snapshot()
    siblings = [*boxes(box.fork(2)), sandbox.restore(snapshot), box]
    code = "import os, uuid, secrets; print(os.urandom(8).hex(), uuid.uuid4(), secrets.token_hex(8))"
    drawn = [number for child in siblings for number in child.exec([*sandbox.python, "-c", code]).stdout.split()]
    assert len(drawn) == 12
    assert len(set(drawn)) == 12
    if snapshot.has_processes:  # also a process that was there before
        for child in siblings:
            child.write("ask", "")
            until(lambda child=child: readable(child, "said"))
        assert len({child.read("said") for child in siblings}) == 4
    kill_all(siblings)
    snapshot.delete()


def test_the_clock_is_right_after_a_pause_and_a_restore(sandbox: Sandbox, box: Box) -> None:
    def off(box: Box) -> float:
        """Seconds that its clock is off, at least."""
        before = time.time()
        now = float(sh(box, "date +%s.%N"))
        return max(before - now, now - time.time(), 0.0)

    snapshot = box.snapshot()
    box.pause()
    time.sleep(2)
    box.resume()
    with sandbox.restore(snapshot) as copy:
        assert off(copy) < 1
    assert off(box) < 1
    snapshot.delete()


def test_forks_of_forks(box: Box) -> None:
    box.write("line", "0")
    family = [box]
    for generation in range(1, 4):
        (child,) = boxes(family[-1].fork())
        child.write("line", child.read("line") + str(generation).encode())
        family.append(child)
    assert [member.read("line") for member in family] == [b"0", b"01", b"012", b"0123"]
    kill_all(family)


@pytest.mark.parametrize("kind", STUBBORN)
def test_clear_ends_what_does_not_want_to_end(sandbox: Sandbox, kind: str) -> None:
    if sandbox.name == "e2b" and kind == "kills all others":
        pytest.skip("the server here has one user, whom root is not above")
    with sandbox.create() as box:
        box.write("kept", "before")
        sh(box, "mkdir folder; echo 1 > folder/file; echo 2 > /dev/shm/file")
        box.exec([*sandbox.python, "-c", STUBBORN[kind]])  # a killer may kill the command that started it
        time.sleep(0.3)
        box.clear()
        size = len(box.read("alive"))
        assert size > 0
        assert box.read("kept") == b"before"
        assert sh(box, "cat folder/file /dev/shm/file; sleep 0.3") == "1\n2\n"
        assert len(box.read("alive")) == size
        box.clear()
        start_counter(sandbox, box)
        counts_on(box)


def test_clear_ends_a_command_under_way(sandbox: Sandbox, box: Box) -> None:
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(box.exec, ["sh", "-c", "echo begun > begun; sleep 60"], limits=Limits(seconds=50))
        until(lambda: readable(box, "begun"))
        box.clear()
        assert result.result(timeout=20).exit_code == -9
    assert sh(box, "cat begun") == "begun\n"


def test_a_paused_box_cannot_be_cleared(sandbox: Sandbox, box: Box) -> None:
    start_counter(sandbox, box)
    box.pause()
    with pytest.raises(SandboxError, match="paused"):
        box.clear()
    box.resume()
    counts_on(box)
    box.kill()
    with pytest.raises(SandboxError):
        box.clear()


def test_no_forks_are_no_boxes(box: Box) -> None:
    with contextlib.suppress(SandboxError):
        assert box.fork(0) == []
    assert sh(box, "echo alive") == "alive\n"


def test_a_closed_backend_makes_nothing(sandbox: Sandbox) -> None:
    if sandbox.name == "e2b":
        pytest.skip("the server behind it serves the other tests")
    from kgsynth.sandbox import open_sandbox

    other = open_sandbox(sandbox.name)
    box = other.create()
    snapshot = box.snapshot()
    other.close()
    other.close()
    for act in (other.create, lambda: other.restore(snapshot), lambda: box.exec(["true"])):
        with pytest.raises(SandboxError):
            act()
