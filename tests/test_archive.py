"""The archive of the web: many processes, kills, room, turns at hosts."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kgsynth.errors import RunError
from kgsynth.web.archive import Archive, Kept

WRITER = """
import sys
from kgsynth.web.archive import Archive
archive, name, count = Archive(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for n in range(count):
    archive.put("page", f"{name}/{n}", head={"n": n}, body=f"{name}{n}".encode() * 500)
    archive.reserve("host", 0.001, 1e9)
    print(n, flush=True)
"""


class Now:
    """A clock that goes when told."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def writer(file: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    now = Now()
    archive = Archive(tmp_path / "new" / "web.sqlite", clock=now)
    written = archive.put("page", "http://é", head={"licence": "é", "n": [1, None]}, body=bytes(range(256)) * 9)
    assert archive.get("page", "http://é") == written == Archive(archive.path).get("page", "http://é")
    assert archive.get("robots", "http://é") is None
    now.seconds += 5
    archive.confirm("page", "http://é")
    assert archive.get("page", "http://é") == Kept(head=written.head, body=written.body, checked_at=now.seconds)
    assert archive.put("page", "http://é") == archive.get("page", "http://é") == Kept(checked_at=now.seconds)


def test_bodies_are_small_on_disk(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "web.sqlite")
    for n in range(50):
        archive.put("page", str(n), body=b"a sentence of a page. " * 2000)
    archive.close()
    assert archive.path.stat().st_size < 50 * 22 * 2000 / 10


def test_the_cache_folder_is_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Archive().path == tmp_path / "kgsynth" / "web.sqlite"
    Archive(":memory:").put("page", "x")
    assert not Path(":memory:").exists()


def test_many_processes_open_and_write_at_once(tmp_path: Path) -> None:
    writers = [writer(tmp_path / "web.sqlite", name, 40) for name in "abcdef"]
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0] * 6
    archive = Archive(tmp_path / "web.sqlite")
    for name in "abcdef":
        for n in range(40):
            assert archive.get("page", f"{name}/{n}").body == f"{name}{n}".encode() * 500  # type: ignore[union-attr]


def test_threads_share_one(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "web.sqlite")
    failed: list[Exception] = []

    def work(name: int) -> None:
        try:
            for n in range(50):
                archive.put("page", f"{name}/{n}", body=b"x")
                assert archive.get("page", f"{name}/{n}")
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_killed_writer_loses_nothing_it_had_written(tmp_path: Path) -> None:
    file = tmp_path / "web.sqlite"
    for attempt in range(5):
        process = writer(file, f"run{attempt}", 100_000)
        assert process.stdout
        told = [process.stdout.readline() for _ in range(20 + 7 * attempt)]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        archive = Archive(file)
        assert sqlite3.connect(file).execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert all(archive.get("page", f"run{attempt}/{int(line)}") for line in told)
        archive.put("page", "after", body=b"goes on")


def test_the_oldest_make_room(tmp_path: Path) -> None:
    now = Now()
    archive = Archive(tmp_path / "web.sqlite", max_mb=1, clock=now)
    for n in range(640):
        now.seconds += 1
        archive.put("page", str(n), body=os.urandom(6_000))
        if n % 10 == 0:
            archive.confirm("page", "0")
    archive.close()
    assert archive.path.stat().st_size < 2.5 * 2**20
    archive = Archive(archive.path)
    assert archive.get("page", "639")
    assert archive.get("page", "0")  # confirmed since
    assert archive.get("page", "1") is None


def test_a_file_that_is_no_archive_says_so(tmp_path: Path) -> None:
    file = tmp_path / "web.sqlite"
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(RunError, match=r"web\.sqlite"):
        Archive(file)


# turns


def test_processes_take_turns(tmp_path: Path) -> None:
    now = Now()
    one, other = (Archive(tmp_path / "web.sqlite", clock=now) for _ in range(2))
    assert [one.reserve("h", 2.0, 99), other.reserve("h", 2.0, 99), one.reserve("h", 2.0, 99)] == [0.0, 2.0, 4.0]
    assert other.reserve("another", 2.0, 99) == 0.0
    assert other.reserve("h", 2.0, patience=1.0) == 6.0  # too far away: not taken
    assert one.reserve("h", 2.0, 99) == 6.0
    now.seconds += 100
    assert one.reserve("h", 2.0, 99) == 0.0


def test_a_host_is_left_alone_by_all(tmp_path: Path) -> None:
    now = Now()
    one, other = (Archive(tmp_path / "web.sqlite", clock=now) for _ in range(2))
    one.hold("h", 50.0)
    one.hold("h", 10.0)  # does not shorten it
    assert (other.held("h"), other.reserve("h", 0.0, 1.0), other.reserve("h", 1.0, 1.0)) == (50.0, 50.0, 50.0)
    now.seconds += 60
    assert (other.held("h"), other.reserve("h", 1.0, 1.0)) == (0.0, 0.0)
    one.hold("h", 1e12)
    assert other.held("h") == 3600.0


def test_a_clock_that_was_wrong_does_not_block_a_host(tmp_path: Path) -> None:
    now = Now()
    archive = Archive(tmp_path / "web.sqlite", clock=now)
    archive.hold("h", 60.0)
    archive.reserve("h", 1.0, 99)
    now.seconds -= 1e6
    assert (archive.held("h"), archive.reserve("h", 1.0, 0.0)) == (0.0, 0.0)
    archive.hold("h", 60.0)
    assert archive.held("h") == 60.0
