"""Harbor's folders: their solution earns 1.0 through their own test script, an untouched one 0.0; nothing tells the answer."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import tarfile
import tomllib
from pathlib import Path

import pytest

from kgsynth.export.here import Here
from kgsynth.sandbox import Box, ExecResult, Limits, Sandbox
from kgsynth.sandbox.jail import environment
from kgsynth.task import TaskSet
from kgsynth.verifiers.answer import extract
from tests.peers.conftest import PEERS, Exported, peer
from tests.peers.tasks import DISC, one_of_each

HARBOR = PEERS / "harbor" / "bin" / "python"
LARGE = Limits(seconds=120, cpu_seconds=60, memory_mb=3000, virtual_mb=0, processes=300, file_mb=64, disk_mb=256)
LIBRARIES = ("numpy", "math_verify", "PIL", "skimage", "jsonschema", "pint")
PYTHON = "/tmp/venv/bin/python"
NAMES = ("text", "choice", "literal", "function_tests", "world", "programs", "number", "span", "listed", "mathematics", "json_schema", "properties")  # fmt: skip


@pytest.fixture(scope="module")
def folders(exported: Exported) -> dict[str, Path]:
    """A folder for each verifier."""
    return {verifier(folder): folder for folder in sorted(exported("harbor").glob("t_*"))}


def verifier(folder: Path) -> str:
    return tomllib.loads((folder / "task.toml").read_text())["metadata"]["verifier"]


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_is_paid_and_an_untouched_folder_is_not(
    folders: dict[str, Path], sandbox: Sandbox, name: str
) -> None:
    folder = folders[name]
    packages = LIBRARIES if name in ("mathematics", "number", "listed", "json_schema") else ()
    with container(folder, sandbox, packages) as box:
        untouched = graded(box, folder)
        assert solved(box, folder).ok
        right = graded(box, folder)
    assert (untouched, right) == ("0", "1")


@pytest.mark.slow
def test_a_picture_is_graded_in_its_folder(exported: Exported, sandbox: Sandbox, tmp_path: Path) -> None:
    one_of_each().filter(lambda task: task.verifier.name == "picture" or task.images != ()).save(tmp_path / "t.jsonl")
    found = {verifier(folder): folder for folder in exported("harbor", tasks=tmp_path / "t.jsonl").glob("t_*")}
    assert (found["text"] / "environment" / "pictures" / "1.png").read_bytes().startswith(b"\x89PNG")
    assert DISC.source not in "".join(p.read_text(errors="replace") for p in seen_by_an_agent(found["text"]))
    with container(found["picture"], sandbox, LIBRARIES) as box:
        assert solved(box, found["picture"]).ok
        assert graded(box, found["picture"]) == "1"


def container(folder: Path, sandbox: Sandbox, packages: tuple[str, ...]) -> Box:
    """A box as the agent's image makes it: the files of the world in /work, and a Python with the libraries installed."""
    box = sandbox.create(LARGE, packages=packages)
    real, site = sandbox.python[0], environment(bool(packages)).get("PYTHONPATH", "")
    lib = f"/tmp/venv/lib/python{'.'.join(os.path.basename(os.path.realpath(real)).removeprefix('python').split('.')[:2])}/site-packages"
    script = f"mkdir -p /tmp/venv/bin {lib}; ln -s {real} {PYTHON}; echo home = {os.path.dirname(real)} > /tmp/venv/pyvenv.cfg; echo {site} | tr : '\\n' > {lib}/all.pth"
    assert box.exec(["sh", "-ec", script]).ok
    files = folder / "environment" / "files"
    for path in files.rglob("*"):
        box.write(str(path.relative_to(files)), path.read_bytes())
    return box


def uploaded(box: Box, source: Path) -> str:
    """Where a folder is, once it is in the box."""
    file, target = io.BytesIO(), f"/tmp/{source.name}"
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(source, arcname=".")
    command = f"rm -rf {target} && mkdir {target} && base64 -d | tar -x -C {target} --no-same-owner"
    assert box.exec(["sh", "-c", command], stdin=base64.b64encode(file.getvalue()).decode(), limits=LARGE).ok
    return target


def solved(box: Box, folder: Path) -> ExecResult:
    return box.exec(["bash", f"{uploaded(box, folder / 'solution')}/solve.sh"], limits=LARGE)


def graded(box: Box, folder: Path) -> str:
    """The reward that the folder's own script writes. In the box all is one user, outside it would be root and others."""
    env = {"LOGS": "/tmp/logs", "KGSYNTH_ONE_USER": "1", "PYTHON": PYTHON}
    result = box.exec(["bash", f"{uploaded(box, folder / 'tests')}/test.sh"], env=env, limits=LARGE)
    assert result.ok, result
    return box.exec(["cat", "/tmp/logs/reward.txt"]).stdout.strip()


# what an agent sees


def seen_by_an_agent(folder: Path) -> list[Path]:
    return [folder / "instruction.md", *(path for path in (folder / "environment").rglob("*") if path.is_file())]


def test_no_answer_and_no_test_is_in_what_an_agent_sees(folders: dict[str, Path], texts: Path) -> None:
    """Repo2RLEnv issue 144: the oracle was in the image. Here the image has no context but files of worlds and pictures."""
    for task in TaskSet.load(texts):
        folder = folders[task.verifier.name] if task.verifier.name != "programs" else None
        if folder is None:
            continue
        seen = "\n".join(path.read_text() for path in seen_by_an_agent(folder))
        answer = extract(task.reference, 10**6)[0].strip()
        assert answer not in seen.replace(task.prompt, "") or len(answer) < 4
        assert "solution/" not in seen
        assert "tests/" not in seen
        assert not re.search(
            r"COPY (?!--chown=agent:agent files/ /work/)", (folder / "environment/Dockerfile").read_text()
        )


def test_there_is_no_history_and_one_date(exported: Exported, folders: dict[str, Path]) -> None:
    """mini-swe-agent issue 787: the answer was in the repository's history."""
    paths = [path for folder in folders.values() for path in (folder, *folder.rglob("*"))]
    assert not [path for path in paths if path.name.startswith(".git")]
    assert {path.stat().st_mtime for path in paths} == {946_684_800}
    assert {oct(path.stat().st_mode & 0o777) for path in paths} == {"0o644", "0o755"}
    text = "".join((folder / "task.toml").read_text() for folder in folders.values())
    assert "hints" not in text
    assert "/home/" not in text


def test_a_world_with_a_git_history_is_left_out(
    exported: Exported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dataclasses import replace

    from kgsynth.task import VerifierSpec

    world = next(task for task in one_of_each(pictures=False) if task.verifier.name == "world")
    params = {**world.verifier.params, "files": {**world.verifier.params["files"], ".git/HEAD": "ref"}}
    TaskSet([replace(world, verifier=VerifierSpec(name="world", params=params))]).save(tmp_path / "t.jsonl")
    capsys.readouterr()
    exported("harbor", tasks=tmp_path / "t.jsonl")
    told = json.loads(capsys.readouterr().out)
    assert told["tasks"] == 0
    assert list(told["left_out"]) == ["its files have a git history, which may hold the answer"]


# the grader


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_answers_run_as_somebody_who_can_read_nothing_and_leave_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "task.json"
    secret.write_text("secret")
    secret.chmod(0o600)
    here = Here()
    script = f"id -u; cat {secret}; echo x > /tmp/left-by-an-answer; (setsid sleep 77.7 &); echo end"
    told = here.run(["sh", "-c", script])
    assert int(told.stdout.split()[0]) >= 60_000
    assert "secret" not in told.stdout
    assert "denied" in told.stderr
    assert not Path("/tmp/left-by-an-answer").exists()
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert b"sleep\x0077.7\x00" not in running


def test_a_command_is_kept_within_its_limits() -> None:
    here = Here(one_user=True)
    python = "/usr/bin/python3"
    assert here.run([python, "-c", "while 1: pass"], limits=Limits(seconds=20, cpu_seconds=1)).timed_out
    assert here.run(["sleep", "9"], limits=Limits(seconds=0.2)).timed_out
    assert here.run([python, "-c", "print('x' * 10**6)"]).truncated
    waits = "x = bytearray(3 * 10**8)\nimport time; time.sleep(9)"
    assert here.run([python, "-c", waits], limits=Limits(memory_mb=100, virtual_mb=0)).out_of_memory
    assert here.run(["no-such-program"]).exit_code == 127


# Harbor itself


@pytest.mark.slow
@pytest.mark.skipif(not HARBOR.exists(), reason="Harbor needs Python 3.12, which `scripts/setup.sh test` did not find")
def test_harbors_loader_and_linter_take_the_folders(exported: Exported) -> None:
    told = [json.loads(peer(LINT, exported("harbor", *options), python=HARBOR)) for options in ((), ("--shared",))]
    for rows in told:
        assert len(rows) >= len(NAMES)
        assert all(row["valid"] and row["instruction"].endswith(".\n") and row["user"] == "agent" for row in rows)
    assert {finding for row in told[0] for finding in row["findings"]} <= {"unpinned-image"}
    assert {finding for row in told[1] for finding in row["findings"]} <= {"unpinned-image", "shared-verifier"}


LINT = """
import json, sys
from pathlib import Path
from harbor.lint.task import lint_task
from harbor.models.task.task import Task
rows = []
for folder in sorted(Path(sys.argv[1]).glob("t_*")):
    task = Task(folder)
    findings = [str(finding.rule.value) for finding in lint_task(folder)]
    rows.append({"valid": Task.is_valid_dir(folder), "instruction": task.instruction, "user": task.config.agent.user, "findings": findings})
print(json.dumps(rows))
"""
