"""Exports: what is private stays so, sources go along, folders are whole or not there, and everything comes back."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kgsynth.cli import main
from kgsynth.errors import RunError, TaskError, VerifierError
from kgsynth.export import FORMATS, Options, export, scoring, trl, verifiers, verl
from kgsynth.export.foreign import Foreign, read_tasks
from kgsynth.export.harbor import CODE, LIBRARIES, PLAIN, _strip, answer_file, needs
from kgsynth.export.rows import attribution, read_rows
from kgsynth.task import Task, TaskSet, VerifierSpec
from tests.peers.tasks import SOURCES, one_of_each

OPTIONS = Options(name="Some Set")


@pytest.fixture(scope="module")
def tasks() -> TaskSet:
    return one_of_each(pictures=False)


@pytest.fixture(scope="module")
def folders(tasks: TaskSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An export in each format that needs no pyarrow."""
    root = tmp_path_factory.mktemp("exports")
    for form in ("trl", "verifiers", "harbor"):
        export(tasks, root / form, form, OPTIONS)
    return {form: root / form for form in ("trl", "verifiers", "harbor")}


# private and public


def test_a_prompt_is_all_that_a_policy_gets(tasks: TaskSet, folders: dict[str, Path]) -> None:
    by_id = {task.id: task for task in tasks}
    for row in read_rows(folders["trl"]):
        assert row["prompt"] == [{"role": "user", "content": by_id[row["id"]].prompt}]
        private = json.dumps(dict(by_id[row["id"]].verifier.params), ensure_ascii=False)
        public = json.dumps({key: value for key, value in row.items() if key != "task"}, ensure_ascii=False)
        assert private not in public
        assert by_id[row["id"]].reference not in public
    for row in read_rows(folders["verifiers"]):
        assert verifiers.prompt_of(row, folders["verifiers"]) == [{"role": "user", "content": by_id[row["id"]].prompt}]


def test_sources_and_licences_are_in_every_format(tasks: TaskSet, folders: dict[str, Path]) -> None:
    for folder in folders.values():
        [credit] = folder.rglob("ATTRIBUTION.md")
        for source in SOURCES:
            assert source.licence in credit.read_text()
            assert source.url.replace("|", "\\|") in credit.read_text()
    assert all(row["licences"] in (["MIT"], ["CC-BY-4.0"]) for row in read_rows(folders["trl"]))
    assert "| https://docs.example.org/a | CC-BY-4.0 | 2026-11-30T00:00:00Z | 7 |" in attribution(tasks)


def test_what_is_exported_is_the_same_on_every_run(tasks: TaskSet, folders: dict[str, Path], tmp_path: Path) -> None:
    for form, folder in folders.items():
        export(tasks, tmp_path / form, form, OPTIONS)
        again = {path.relative_to(tmp_path / form): path for path in (tmp_path / form).rglob("*") if path.is_file()}
        once = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
        assert again.keys() == once.keys()
        assert all(again[name].read_bytes() == path.read_bytes() for name, path in once.items())
        assert not any(str(tmp_path) in path.read_text(errors="replace") for path in again.values())


def test_splits_are_by_concept_and_together_everything(tasks: TaskSet, tmp_path: Path) -> None:
    figures = export(tasks, tmp_path / "out", "trl", Options(name="x", held_out=0.4, seed=1))
    parts = {split: read_rows(tmp_path / "out" / f"{split}.jsonl") for split in figures["splits"]}
    assert set(parts) == {"train", "test"}
    assert sorted(row["index"] for part in parts.values() for row in part) == list(range(len(tasks)))


# rewards


def test_trls_reward_takes_texts_and_conversations(tasks: TaskSet) -> None:
    column = [task.to_json() for task in tasks]
    right = [task.reference for task in tasks]
    assert trl.reward(right, column, prompts=["?"] * len(tasks), trainer_state=None) == [1.0] * len(tasks)
    said = [[{"role": "assistant", "content": text}] for text in right]
    assert trl.reward(said, column) == [1.0] * len(tasks)
    assert trl.reward([task.wrong[0] for task in tasks], column) == [0.0] * len(tasks)
    parts = [[{"role": "assistant", "content": [{"type": "text", "text": right[0]}]}], []]
    assert trl.reward(parts, column[:1] * 2) == [1.0, 0.0]


def test_what_cannot_be_judged_has_no_reward(tasks: TaskSet, capsys: pytest.CaptureFixture[str]) -> None:
    broken = dataclasses.replace(tasks[0], verifier=VerifierSpec(name="text", params={"answers": []}))
    column = [tasks[0].to_json(), broken.to_json()]
    assert trl.reward([tasks[0].reference] * 2, column) == [1.0, None]
    assert "could not be judged" in capsys.readouterr().err
    with pytest.raises(VerifierError):
        verl.compute_score("kgsynth/text", "<answer>x</answer>", broken.to_json())
    with pytest.raises(TaskError, match="not a task"):
        trl.reward(["x"], ["{}"])


def test_rewards_in_threads_and_forks_are_the_same(tasks: TaskSet) -> None:
    """A sandbox is opened once for all threads, and again in a child."""
    coded = next(task for task in tasks if task.verifier.name == "function_tests")
    score = lambda: verl.compute_score("d", coded.reference, coded.to_json(), {})  # noqa: E731
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(score())) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    mine = scoring._opened
    child = os.fork()
    if child == 0:
        code = 3
        try:
            code = 0 if score() == 1.0 and scoring._opened is not mine else 4
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found == [1.0] * 4
    assert score() == 1.0


# folders


def test_a_folder_of_something_else_is_left_alone(tasks: TaskSet, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(RunError, match="is not empty and holds something else"):
        export(tasks, tmp_path / "mine", "trl", OPTIONS)
    (tmp_path / "other.part").mkdir()
    (tmp_path / "other.part" / "thesis.txt").write_text("x")
    with pytest.raises(RunError, match="no export"):
        export(tasks, tmp_path / "other", "trl", OPTIONS)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is a file"):
        export(tasks, tmp_path / "file", "trl", OPTIONS)
    assert [path.read_text() for path in tmp_path.rglob("thesis.txt")] == ["x", "x"]


def test_an_export_again_is_seen_to_be_there_and_another_is_refused(tasks: TaskSet, tmp_path: Path) -> None:
    export(tasks, tmp_path / "out", "trl", OPTIONS)
    assert export(tasks, tmp_path / "out", "trl", OPTIONS)["exported_before"]
    with pytest.raises(RunError, match="something else"):
        export(tasks[:3], tmp_path / "out", "trl", OPTIONS)
    with pytest.raises(TaskError, match="nothing to export"):
        export(TaskSet(), tmp_path / "empty", "trl", OPTIONS)
    with pytest.raises(TaskError, match="there are trl, verl"):
        export(tasks, tmp_path / "empty", "csv", OPTIONS)
    assert set(FORMATS) >= {"trl", "verl", "verifiers", "harbor", "huggingface"}


def test_a_killed_export_goes_on_where_it_was(tasks: TaskSet, tmp_path: Path) -> None:
    many = TaskSet(dataclasses.replace(task, prompt=f"{n} {task.prompt}") for n in range(20) for task in tasks)
    many.save(tmp_path / "tasks.jsonl")
    part, out = tmp_path / "out.part", tmp_path / "out"
    command = [sys.executable, "-m", "kgsynth.cli", "export", tmp_path / "tasks.jsonl", out, "--to", "harbor"]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(list(part.glob("t_*"))) > 12)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    kept = {path.name: path.stat().st_ino for path in part.glob("t_*")}
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1])["tasks"] == len(many)
    assert {name: (out / name).stat().st_ino for name in kept} == kept
    assert {path.name for path in out.iterdir()} == {task.id for task in many} | {"ATTRIBUTION.md", "export.json"}


def wait_for(ready: Any) -> None:
    for _ in range(3000):
        if ready():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to that")


# Harbor and verifiers


def test_a_grader_has_what_it_needs_and_no_more(tasks: TaskSet, folders: dict[str, Path]) -> None:
    """It runs with a bare interpreter: nothing of this checkout, no library that the image does not install."""
    for task in tasks:
        tests = folders["harbor"] / task.id / "tests"
        names = {str(path.relative_to(tests / "kgsynth")) for path in tests.rglob("*.py") if path.parent != tests}
        assert "verifiers/__init__.py" in names
        assert f"verifiers/{task.verifier.name}.py" in names
        assert not names & {"cli.py", "graph.py", "sandbox/bubblewrap.py", "verifiers/kernel.py"}
        installed = (tests / "Dockerfile").read_text()
        assert ("latex2sympy2_extended[antlr4-13-2]==" in installed) == (task.verifier.name == "mathematics")
        assert re.search(r"^FROM python:3\.\d+-slim-bookworm$", installed, re.M)


def test_every_library_of_a_verifier_is_known_by_its_distribution() -> None:
    for name in (*PLAIN, *CODE, "json_schema", "picture", "world"):
        assert needs(name)[1] <= set(LIBRARIES)


def test_answers_have_files_of_their_kind(tasks: TaskSet) -> None:
    found = {(task.verifier.name, task.verifier.params.get("language")): answer_file(task) for task in tasks}
    assert found["text", None] == "answer.txt"
    assert found["function_tests", None] == "solution.py"
    assert found["programs", "c"] == "solution.c"
    assert found["json_schema", None] == "answer.json"
    assert found["world", "sh"] == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--to", "trl", "--held-out", "2"], "--held-out must be a share between 0 and 1, not 2"),
        (["--to", "harbor", "--image", ""], "--image is empty; name one"),
        (["--to", "verifiers", "--name", "2026"], "--name"),
    ],
)
def test_a_failed_export_leaves_nothing_behind(
    words: list[str], told: str, tasks: TaskSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks.save(tmp_path / "t.jsonl")
    assert main(["export", str(tmp_path / "t.jsonl"), str(tmp_path / "out"), *words]) == 1
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_package_needs_a_name_that_can_be_imported(tasks: TaskSet, tmp_path: Path) -> None:
    assert verifiers.package_name("Python docs, 3.11") == "python_docs_3_11"
    with pytest.raises(TaskError, match="--name"):
        export(tasks, tmp_path / "out", "verifiers", Options(name="2026"))
    with pytest.raises(TaskError, match="no split 'dev'"):
        verifiers.rows_by_id(tmp_path, "dev")


# import


@pytest.mark.parametrize("form", ["trl", "verifiers"])
def test_import_gives_the_set_back(tasks: TaskSet, folders: dict[str, Path], tmp_path: Path, form: str) -> None:
    tasks.save(tmp_path / "tasks.jsonl")
    out = tmp_path / "back.jsonl"
    assert main(["import", str(folders[form]), str(out), "--from", form]) == 0
    assert out.read_bytes() == (tmp_path / "tasks.jsonl").read_bytes()
    assert main(["import", str(folders[form]), str(out), "--from", form]) == 0
    out.write_text("mine")
    assert main(["import", str(folders[form]), str(out), "--from", form]) == 1
    assert out.read_text() == "mine"


ROWS = [
    {"question": "Two and two?", "answer": "2 + 2 = 4\n#### 4"},
    {"question": "Three and four?", "answer": "#### 7"},
    {"question": "Three and four?", "answer": "#### 7"},
    {"question": "What is it?", "answer": "#### no number at all (((("},
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_foreign_rows_become_tasks_that_pass_their_verifier(rows: Path) -> None:
    found, left_out = read_tasks(rows, "trl", Foreign(verifier="mathematics", licence="MIT", domain="sums"))
    assert [task.reference for task in found] == ["<answer>4</answer>", "<answer>7</answer>"]
    assert left_out["it repeats another row"] == 1
    assert sum(left_out.values()) == 2
    first: Task = found[0]
    assert first.prompt.endswith("Give your final answer between <answer> and </answer>.")
    assert first.provenance.licences == ("MIT",)
    assert first.provenance.spans[0].text == "Two and two?\n\n2 + 2 = 4\n#### 4"
    assert first.wrong
    assert first.reference not in first.wrong
    assert trl.reward(first.wrong, [first.to_json()] * len(first.wrong)) == [0.0] * len(first.wrong)


def test_foreign_rows_must_say_what_decides_and_their_licence(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="--verifier"):
        read_tasks(rows, "trl", Foreign())
    with pytest.raises(TaskError, match="--licence"):
        read_tasks(rows, "trl", Foreign(verifier="text"))
    with pytest.raises(TaskError, match=r"these do: .*mathematics"):
        read_tasks(rows, "trl", Foreign(verifier="kernel", licence="MIT"))
    rows.write_text('{"text": "no task"}\n')
    with pytest.raises(TaskError, match=r"row 1: no prompt and answer among its columns text"):
        read_tasks(rows, "trl", Foreign(verifier="text", licence="MIT"))
    rows.write_text("[1]\n")
    with pytest.raises(TaskError, match=r"rows\.jsonl:1: not a row"):
        read_tasks(rows, "trl", Foreign())
    with pytest.raises(TaskError, match="cannot read rows"):
        read_tasks(tmp_path / "none.jsonl", "trl", Foreign())


def test_the_agents_python_has_no_sources(tmp_path: Path) -> None:
    """The line of the Dockerfile, run on a copy of this Python's library."""
    home, version = tmp_path / "home", f"python{sys.version_info[0]}.{sys.version_info[1]}"
    skipped = shutil.ignore_patterns("site-packages", "test", "tests", "__pycache__", "idlelib", "lib2to3", "ensurepip")
    shutil.copytree(sysconfig.get_path("stdlib"), home / "lib" / version, ignore=skipped)
    (tmp_path / "python3").symlink_to(sys.executable)
    line = re.sub(r"\$\(.*?\)\)'\)", str(home / "lib" / version), _strip().removeprefix("RUN "))
    line = line.replace("/tmp/strip.py", str(tmp_path / "strip.py"))
    assert "$(" not in line, "only the copy is stripped"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", line], check=True, env=environment, capture_output=True)
    assert not list(home.rglob("*.py"))
    look = (
        "import bisect, email.utils, inspect, json\nassert bisect.bisect([1, 3], 2) == 1\n"
        "assert json.dumps.__doc__ is None\ntry:\n    inspect.getsource(json.dumps)\nexcept OSError:\n    print('no source')\n"
    )
    environment["PYTHONHOME"] = str(home)
    shown = subprocess.run([sys.executable, "-S", "-c", look], env=environment, capture_output=True, text=True)
    assert shown.stdout == "no source\n", shown.stderr
