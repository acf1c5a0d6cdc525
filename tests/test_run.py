"""Run folders: torn lines, locks, and configurations that changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kgsynth.errors import RunError
from kgsynth.run import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    return folder


def test_a_torn_last_line_is_cut_and_the_rest_kept(folder: RunFolder) -> None:
    folder.append("x.jsonl", {"a": 1})
    with open(folder / "x.jsonl", "a") as file:
        file.write('{"a": 2')
    assert folder.rows("x.jsonl") == [{"a": 1}]
    folder.mend("x.jsonl")
    folder.append("x.jsonl", {"a": 3})
    assert folder.rows("x.jsonl") == [{"a": 1}, {"a": 3}]


def test_a_damaged_middle_line_is_named(folder: RunFolder) -> None:
    (folder / "x.jsonl").write_text('{"a": 1}\n{"a"\n{"a": 3}\n')
    with pytest.raises(RunError, match=r"x\.jsonl:2 is damaged"):
        folder.rows("x.jsonl")


@pytest.mark.parametrize("line", [b'{"a": "\xff"}', b"[1]", b'{"b": 1}'])
def test_a_line_that_is_no_row_is_named(folder: RunFolder, line: bytes) -> None:
    (folder / "x.jsonl").write_bytes(b'{"a": 1}\n' + line + b"\n")
    with pytest.raises(RunError, match=r"x\.jsonl:2 is damaged .*; delete the line"):
        folder.rows("x.jsonl", needs=("a",))


def test_a_damaged_configuration_is_named(folder: RunFolder) -> None:
    (folder / "config.toml").write_text("[x")
    with pytest.raises(RunError, match=r"config\.toml is damaged"):
        folder.claim({"sample": {"seed": 1}})


def test_missing_file_has_no_rows(folder: RunFolder) -> None:
    folder.mend("none.jsonl")
    assert folder.rows("none.jsonl") == []


def test_a_changed_configuration_is_refused_by_key(folder: RunFolder) -> None:
    folder.claim({"sample": {"seed": 1}})
    folder.claim({"sample": {"seed": 1}})
    with pytest.raises(RunError, match=r"sample\.seed: 1 -> 2.*choose another \[run\] name"):
        folder.claim({"sample": {"seed": 2}})
    folder.claim({"sample": {"seed": 2}}, may_change=("sample.seed",))


def test_the_lock_waits_for_its_holder_and_is_freed_by_its_death(folder: RunFolder) -> None:
    code = f"""
import time
from kgsynth.run import RunFolder
with RunFolder({str(folder.path)!r}).lock(print):
    print("held", flush=True)
    time.sleep(600)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        said: list[str] = []

        def say(text: str) -> None:
            said.append(text)
            holder.kill()  # only after we were seen waiting

        with folder.lock(say):
            assert said == [f"{folder.path} is in use by process {holder.pid}; waiting for it to end"]
            assert holder.wait() == -9
    finally:
        holder.kill()
        holder.wait()


def test_an_unusable_folder_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot make the run folder"):
        RunFolder(tmp_path / "file" / "run").create()
