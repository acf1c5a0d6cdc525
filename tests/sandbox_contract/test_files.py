"""Reading and writing files of a box: nothing of the host is reached by it, whatever the box has prepared."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgsynth.errors import SandboxError
from kgsynth.sandbox import Box, Limits, Sandbox
from tests.sandbox_contract.living import sh


def test_files_go_in_and_out_whole(box: Box) -> None:
    data = bytes(range(256)) * 4000
    box.write("a/b/data.bin", data)
    box.write("é.txt", "text é")
    assert box.read("a/b/data.bin") == data
    assert sh(box, "cat é.txt; wc -c < a/b/data.bin") == "text é1024000\n"
    box.write("é.txt", "")
    assert box.read("é.txt") == b""


def test_code_may_change_what_was_written_and_we_read_what_code_wrote(box: Box) -> None:
    box.write("a/x", "one")
    sh(box, "echo two >> a/x; echo three > a/y; rm -f gone")
    assert box.read("a/x") == b"onetwo\n"
    assert box.read("a/y") == b"three\n"


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "/work/x", "../x", "a/../../x", "a\0b"])
def test_a_path_that_is_none_of_the_box_is_refused(box: Box, path: str) -> None:
    with pytest.raises(SandboxError):
        box.write(path, "x")
    with pytest.raises(SandboxError):
        box.read(path)


@pytest.mark.parametrize("target", ["/etc/shadow", "/proc/self/environ", "/proc/1/fd/0", "/proc/1/root/etc/shadow"])
def test_a_link_does_not_lead_to_the_host(box: Box, target: str) -> None:
    sh(box, f"ln -s {target} link; ln -s {Path(target).parent} folder")
    for path in ("link", f"folder/{Path(target).name}"):
        with pytest.raises(SandboxError):
            box.read(path)


def test_writing_through_a_link_does_not_reach_the_host(box: Box, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("safe")
    sh(box, f"ln -s {victim} link; ln -s {tmp_path} folder")
    for path in ("link", "folder/new", "folder/victim"):
        try:
            box.write(path, "harm")
        except SandboxError:
            continue
    assert victim.read_text() == "safe"
    assert [p.name for p in tmp_path.iterdir()] == ["victim"]


def test_what_is_not_a_regular_file_is_not_read(box: Box) -> None:
    sh(box, "mkfifo pipe; mkdir folder; ln -s loop loop; ln -s /dev/zero zero")
    for path in ("pipe", "folder", "loop", "zero", "none", "folder/none"):
        with pytest.raises(SandboxError):
            box.read(path)


def test_what_is_too_large_is_neither_written_nor_read(sandbox: Sandbox) -> None:
    with sandbox.create(Limits(disk_mb=2, file_mb=64)) as box:
        with pytest.raises(SandboxError):
            box.write("big", bytes(5 << 20))
        sh(box, "rm -rf big; truncate -s 10M sparse")
        with pytest.raises(SandboxError):
            box.read("sparse")
        box.write("small", "fits")
        assert box.read("small") == b"fits"


def test_the_host_is_not_in_there(sandbox: Sandbox, box: Box) -> None:
    here = Path(__file__).resolve()
    assert box.exec(["test", "-e", str(here)]).exit_code == 1
    assert box.exec(["cat", "/etc/shadow"]).exit_code == 1
    assert "1" not in sh(box, "echo 0; ls /home /root/.ssh 2>/dev/null || true").split()
    assert box.exec(["sh", "-c", "echo x > /usr/harm"]).exit_code != 0
    assert not Path("/usr/harm").exists()


def test_boxes_share_nothing(sandbox: Sandbox) -> None:
    with sandbox.create() as one, sandbox.create() as other:
        one.write("mine", "1")
        sh(one, "echo 1 > /tmp/mine; echo 1 > /dev/shm/mine")
        assert sh(other, "ls /work /tmp /dev/shm 2>/dev/null | grep -c mine || true") == "0\n"
