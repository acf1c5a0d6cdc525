"""`kgsynth verify`: one answer, a file of answers, exit codes, and that a kill loses nothing and repeats nothing."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kgsynth.cli import main
from kgsynth.task import Task, TaskSet, VerifierSpec
from tests.commands import kill_at, last
from tests.hackable import CHOICE, FUNCTION, LITERAL, TEXT

UNUSABLE = replace(TEXT, prompt="unusable", verifier=VerifierSpec(name="text", params={"answers": []}))


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    TaskSet([TEXT, CHOICE, LITERAL, FUNCTION, UNUSABLE]).save(tmp_path / "tasks.jsonl")
    return tmp_path / "tasks.jsonl"


def answers_of(path: Path, rows: list[tuple[Task, str]]) -> Path:
    path.write_text("".join(json.dumps({"task": task.id, "answer": answer}) + "\n" for task, answer in rows))
    return path


# one answer


@pytest.mark.parametrize(
    ("task", "answer", "code", "reason"),
    [
        (TEXT, "so <answer>Hash map</answer>", 0, "right"),
        (TEXT, "<answer>heap</answer>", 3, "wrong"),
        (TEXT, "hash map", 3, "no answer tag"),
        (CHOICE, "<answer>(b)</answer>", 0, "right"),
        (FUNCTION, FUNCTION.reference, 0, "right"),
        (FUNCTION, FUNCTION.wrong[0], 3, "wrong"),
    ],
)
def test_one_answer(
    task: Task, answer: str, code: int, reason: str, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reply.txt").write_text(answer)
    assert main(["verify", str(tasks), "--task", task.id, "--answer", str(tmp_path / "reply.txt")]) == code
    out, row = last(capsys)
    assert (row["task"], row["reason"], row["score"]) == (task.id, reason, float(code == 0))
    assert out.startswith(("wrong", "right")[code == 0])
    assert f"verified by {task.verifier.name}" in out


def test_standard_input_the_beginning_of_an_id_and_one_line(
    tasks: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<answer>B</answer>\xff\0")))
    assert main(["verify", str(tasks), "--task", CHOICE.id[:9], "--answer", "-", "--json"]) == 0
    out, row = last(capsys)
    assert (out.count("\n"), row["score"]) == (1, 1.0)


def test_what_could_not_be_judged_is_neither_right_nor_wrong(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reply.txt").write_text(FUNCTION.reference)
    assert main(["verify", str(tasks), "--task", UNUSABLE.id, "--answer", str(tmp_path / "reply.txt")]) == 4
    assert "could not be judged: VerifierError" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["verify", str(tasks), "--task", FUNCTION.id, "--answer", str(tmp_path / "reply.txt")]) == 4
    assert "could not be judged: SandboxError" in capsys.readouterr().err


def test_what_is_wrong_is_said_in_one_line(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reply, bad = tmp_path / "reply.txt", tmp_path / "bad.jsonl"
    reply.write_text("x")
    lines = {
        "torn": "bad.jsonl:1: not",
        '{"task": "t"}': "bad.jsonl:1: not",
        json.dumps({"task": TEXT.id, "answer": 3}): "the answer is a int",
        json.dumps({"task": "t_none", "answer": "x"}): "no task 't_none' in the task set",
    }
    cases: dict[tuple[str, ...], str] = {
        ("--answer", str(reply)): "has 5 tasks: say which with --task ID",
        ("--task", "t_", "--answer", str(reply)): "5 tasks begin with 't_'",
        ("--task", "x", "--answer", str(reply)): "no task begins with 'x'; there are 5",
        ("--task", TEXT.id, "--answer", str(tmp_path / "none.txt")): "cannot read the answer from",
        ("--task", TEXT.id, "--answer", str(reply), "--out", "x"): "--out goes with --answers",
        ("--task", TEXT.id, "--answers", str(bad)): "--task goes with --answer;",
        ("--answers", str(tmp_path / "none.jsonl")): "cannot read answers from",
    }
    for line, says in lines.items():
        bad.write_text(line + "\n")
        _fails(["--answers", str(bad)], says, tasks, capsys)
    for args, says in cases.items():
        _fails(list(args), says, tasks, capsys)
    assert main(["verify", str(tmp_path / "none"), "--task", "t", "--answer", str(reply)]) == 1
    with pytest.raises(SystemExit, match="2"):
        main(["verify", str(tasks)])


def _fails(args: list[str], says: str, tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tasks), *args]) == 1
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


# many answers


def test_many_answers(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        (TEXT, TEXT.reference),
        (TEXT, TEXT.reference),
        (CHOICE, "<answer>A</answer>"),
        (FUNCTION, FUNCTION.reference),
    ]
    given, out = answers_of(tmp_path / "answers.jsonl", rows), tmp_path / "verdicts.jsonl"
    assert main(["verify", str(tasks), "--answers", str(given), "--out", str(out)]) == 3
    row = last(capsys)[1]
    assert (row["answers"], row["right"], row["wrong"], row["unjudged"]) == (4, 3, 1, 0)
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted((r["line"], r["score"]) for r in kept) == [(1, 1.0), (2, 1.0), (3, 0.0), (4, 1.0)]


def test_all_right_and_not_judged(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, out = answers_of(tmp_path / "answers.jsonl", [(TEXT, TEXT.reference)]), tmp_path / "verdicts.jsonl"
    assert main(["verify", str(tasks), "--answers", str(given), "--json"]) == 0
    assert last(capsys)[0].count("\n") == 1
    answers_of(given, [(TEXT, TEXT.reference), (UNUSABLE, "x")])
    for _ in range(2):  # the second time it is tried again
        assert main(["verify", str(tasks), "--answers", str(given), "--out", str(out)]) == 4
        assert last(capsys)[1]["unjudged"] == 1
    assert len(out.read_text().splitlines()) == 1


def test_an_answer_that_changed_is_judged_again(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"
    before = []
    for answer in ("heap", "heap", "hash map"):
        answers_of(given, [(TEXT, f"<answer>{answer}</answer>"), (CHOICE, CHOICE.reference)])
        main(["verify", str(tasks), "--answers", str(given), "--out", str(out), "--json"])
        before.append(last(capsys)[1]["judged_before"])
    assert before == [0, 2, 1]


def test_killed_and_resumed_no_answer_is_lost_or_judged_twice(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"
    answers_of(given, [(TEXT, f"<answer>{'hash map' if n % 3 else n}</answer>") for n in range(3000)])
    args = ["verify", str(tasks), "--answers", str(given), "--out", str(out), "--json"]
    kill_at((50, 600, 1300), args, out, b'{"line": 1, "ta')
    assert main(args) == 3
    row = last(capsys)[1]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(r["line"] for r in rows) == list(range(1, 3001))
    assert (row["right"], row["wrong"], row["judged_before"] >= 1300) == (2000, 1000, True)
