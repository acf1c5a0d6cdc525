"""Calibration: what replies say about a task, from a file or an endpoint, in place, over kills."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.calibrate import LABELS, Attempt, by_label, calibrated, label, wilson
from kgsynth.cli import main
from kgsynth.task import Image, Task, TaskSet
from tests.commands import kill_at, last
from tests.fake_openai import FakeOpenAI, completion, refusal
from tests.hackable import CHOICE, FUNCTION, LITERAL, TEXT

SEEN = replace(TEXT, prompt="What is shown?", images=(Image(source="<svg/>", format="svg", width=8, height=8),))
ALL = [TEXT, CHOICE, LITERAL, FUNCTION]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    TaskSet([*ALL, SEEN]).save(tmp_path / "tasks.jsonl")
    return tmp_path / "tasks.jsonl"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# what attempts say


@pytest.mark.parametrize(("right", "n", "low", "high"), [(0, 8, 0, 0.324), (8, 8, 0.676, 1), (4, 8, 0.215, 0.785), (1, 1, 0.207, 1)])  # fmt: skip
def test_wilson(right: int, n: int, low: float, high: float) -> None:
    """Against the table of the R package binom (binom.confint, methods = "wilson")."""
    assert wilson(right, n) == pytest.approx((low, high), abs=6e-4)


def test_the_interval_holds_the_rate_and_shrinks() -> None:
    for n in (1, 3, 8, 100):
        for right in range(n + 1):
            low, high = wilson(right, n)
            assert 0 <= low <= right / n <= high <= 1
    assert wilson(500, 1000)[1] - wilson(500, 1000)[0] < 0.07


def test_labels() -> None:
    assert [label(right, 9) for right in range(10)] == [
        "unsolved", "hard", "hard", "medium", "medium", "medium", "easy", "easy", "easy", "mastered",
    ]  # fmt: skip
    assert set(LABELS) == {label(right, 9) for right in range(10)}


def test_unjudged_attempts_count_for_nothing_and_b0_is_of_right_replies() -> None:
    scores = [(1.0, 10), (1.0, 30), (1.0, 20), (0.0, 900), (None, 5), (0.5, 700)]
    attempts = [Attempt(task=TEXT.id, score=score, tokens=tokens) for score, tokens in scores]
    attempts.append(Attempt(task=CHOICE.id, score=None))
    found, untried = calibrated([TEXT, CHOICE], attempts, policy="p")
    assert found.calibration is not None
    assert (found.calibration.attempts, found.calibration.pass_rate, found.calibration.b0) == (5, 0.6, 20)
    assert untried == CHOICE, "a failure of the sandbox is no zero"
    assert found.id == TEXT.id
    assert Task.from_json(found.to_json()) == found
    assert {name: len(pool) for name, pool in by_label([found, untried]).items()} == {"medium": 1, "untried": 1}


# the command


def policy(request: dict[str, Any]) -> Any:
    """Right at TEXT always, at CHOICE every other time, at the others never; a reply says which sample it is by its length."""
    prompt = request["messages"][0]["content"]
    assert "response_format" not in request
    assert "tools" not in request
    counts[prompt] += 1
    if prompt == TEXT.prompt or (prompt == CHOICE.prompt and counts[prompt] % 2):
        return completion({TEXT.prompt: TEXT, CHOICE.prompt: CHOICE}[prompt].reference)
    return completion("I do not know.")


counts: Counter[str] = Counter()


def command(tasks: Path, server: FakeOpenAI, *more: str) -> list[str]:
    return ["calibrate", str(tasks), "--model", "m", "--base-url", server.url, "--attempts", "4", *more]


def test_an_endpoint_is_tried_and_the_set_says_so(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts.clear()
    with FakeOpenAI(policy) as server:
        assert main(command(tasks, server)) == 0
        assert len(server.requests) == 16, "tasks with pictures are left out"
        assert main(command(tasks, server)) == 0
        assert len(server.requests) == 16, "nothing is asked twice"
        assert main([*command(tasks, server), "--attempts", "6"]) == 0
        assert len(server.requests) == 24, "more attempts add to those there are"
    found = TaskSet.load(tasks)
    assert [t.id for t in found] == [t.id for t in [*ALL, SEEN]]
    labels = [t.calibration and t.calibration.label for t in found]
    assert labels == ["mastered", "medium", "unsolved", "unsolved", None]
    assert all(t.calibration.policy == "m" and t.calibration.attempts == 6 for t in found if t.calibration)
    text = found[0].calibration
    assert text.b0 == len(TEXT.reference) // 4
    assert last(capsys)[1]["right"] == 9


def test_replies_from_a_file_are_another_policy(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"task": t.id, "answer": t.reference, "tokens": 7} for t in ALL] + [
        {"task": SEEN.id, "answer": "\udc80 none"}
    ]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["calibrate", str(tasks), "--replies", str(replies)]
    assert main(arguments) == 1
    assert "--policy NAME" in capsys.readouterr().err
    before = tasks.read_bytes()
    arguments += ["--policy", "sft", "--out", str(tmp_path / "new.jsonl"), "--pools", str(tmp_path / "pools")]
    assert main(arguments) == 0
    assert tasks.read_bytes() == before
    found = TaskSet.load(tmp_path / "new.jsonl")
    assert [(c.label, c.b0) for t in found if (c := t.calibration)] == [("mastered", 7)] * 4 + [("unsolved", None)]
    assert sorted(p.name for p in (tmp_path / "pools").iterdir()) == ["mastered.jsonl", "unsolved.jsonl"]
    replies.write_text(json.dumps({"task": TEXT.id, "answer": TEXT.wrong[0], "tokens": 3}) + "\n")
    assert main(arguments) == 0
    assert TaskSet.load(tmp_path / "new.jsonl")[0].calibration.pass_rate == 0.5, "another reply in its place is judged"


@pytest.mark.parametrize("tokens", [-1, "7", 1.5, True])
def test_bad_tokens_name_file_and_line(
    tokens: object, tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.jsonl").write_text(json.dumps({"task": TEXT.id, "answer": "x", "tokens": tokens}) + "\n")
    assert main(["calibrate", str(tasks), "--replies", str(tmp_path / "r.jsonl"), "--policy", "p"]) == 1
    assert "r.jsonl:1" in capsys.readouterr().err


def test_killed_and_started_again_no_reply_is_lost_or_counted_twice(tasks: Path) -> None:
    counts.clear()
    log = tasks.with_name("tasks.attempts.jsonl")
    with FakeOpenAI(policy) as server:
        kill_at((2, 6, 11), command(tasks, server, "--concurrency", "2"), log, b'{"policy": "m", "numb')
        assert main(command(tasks, server)) == 0
        assert len(server.requests) <= 16 + 3 * 2, "only what was in flight is asked again"
    keys = [(row["task"], row["number"]) for row in lines_of(log)]
    assert len(keys) == len(set(keys)) == 16
    assert all(t.calibration.attempts == 4 for t in TaskSet.load(tasks)[:4])


@pytest.mark.parametrize(
    ("flag", "told"), [("--out", "there is no folder"), ("--pools", "cannot make the folder .*choose another --pools")]
)
def test_where_nothing_can_be_written_nothing_is_asked(
    flag: str, told: str, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tasks.parent / "file").write_text("")
    with FakeOpenAI(policy) as server:
        assert main([*command(tasks, server), flag, str(tasks.parent / "file" / "x")]) == 1
        assert not server.requests
    assert re.search(told, capsys.readouterr().err)


def test_a_dead_endpoint_is_one_clear_line_and_the_set_is_untouched(
    tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tasks.read_bytes()
    with FakeOpenAI(lambda _: refusal(401, "key expired")) as server:
        assert main(command(tasks, server)) == 1
    told = capsys.readouterr().err
    assert "pictures and are left out" in told
    assert re.search(r"kgsynth: LLMError: model 'm' at \S+ failed .*key expired.*\n$", told)
    assert tasks.read_bytes() == before
