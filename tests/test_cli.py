"""The command line: whatever is wrong is said in one line that names the way out, and no run is needed to find out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgsynth.cli import main
from kgsynth.web.pydocs import described_modules

RECIPE = Path(__file__).with_name("small.toml")


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What a command that must fail says: one line on stderr."""
    assert main([args[0], str(RECIPE), *args[1:]]) == 1
    said = capsys.readouterr().err
    assert said.startswith("kgsynth: ")
    assert said.count("\n") == 1
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty run."""
    (tmp_path / "small").mkdir()
    return tmp_path / "small"


@pytest.mark.parametrize("command", ["stats", "report"])
def test_where_there_is_no_run_there_are_no_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    assert "make one with `kgsynth run" in told(capsys, command, f"run.dir={tmp_path}")
    (tmp_path / "small").write_text("")
    assert "make one with `kgsynth run" in told(capsys, command, f"run.dir={tmp_path}")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("stages.jsonl", b'{"stage": "grow"}\n', "stages.jsonl:1 is damaged"),
        ("stages.jsonl", b"\xff\xfe\n", "stages.jsonl:1 is damaged"),
        ("rejected.jsonl", b"torn\n", "rejected.jsonl:1 is damaged"),
        ("tasks.jsonl", b"\xff\n", "tasks.jsonl:1: not a task"),
        ("train/result.json", b"[1]", "result.json is damaged"),
        ("train/result.json", b"{", "result.json is damaged"),
        ("graph.sqlite", b"no database, but long enough to be one" * 99, "file is not a database"),
    ],
)
def test_damaged_files_are_named(
    capsys: pytest.CaptureFixture[str], folder: Path, name: str, content: bytes, says: str
) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    assert says in told(capsys, "stats", f"run.dir={folder.parent}")


def test_a_store_of_no_known_kind_is_refused_and_makes_no_file(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert "is of no known kind" in told(capsys, "stats", f"run.dir={folder.parent}", "store.url=http://localhost:7687")
    assert os.listdir(folder) == []


def test_a_full_disk_is_an_error_of_one_line(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "report.html.part").symlink_to("/dev/full")
    assert "No space left on device" in told(capsys, "report", f"run.dir={folder.parent}")


def test_ctrl_c_while_the_library_is_described_harms_nothing() -> None:
    """The signal goes to the whole group; the child that describes the library has to outlive it."""
    code = (
        "from kgsynth.web.pydocs import described_modules\nimport signal\nsignal.signal(signal.SIGINT, lambda *_: None)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint('ready', flush=True)\nprint(len(described_modules()))"],
        stdout=subprocess.PIPE, start_new_session=True, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    for _ in range(4):
        try:
            child.wait(0.1)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGINT)
    assert int(child.communicate(timeout=60)[0]) == len(described_modules())
