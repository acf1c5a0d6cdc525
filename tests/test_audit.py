"""`kgsynth validate [--audit]`: what is wrong with a set is found, told and left out; a kill loses nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.audit import Audited, audit, repeated, tally
from kgsynth.cli import main
from kgsynth.errors import TaskError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task, TaskSet, VerifierSpec
from kgsynth.verifiers.function_tests import encode
from tests.commands import kill_at, last
from tests.hackable import FUNCTION
from tests.test_validate import CHOICE, LITERAL, PROVENANCE, TEXT, made

SUM = replace(FUNCTION, type="implement", provenance=PROVENANCE)  # digit_sum, with six tests
SOUND = [CHOICE, TEXT, LITERAL]


def weak() -> Task:
    """One test too few: nothing asks for equal numbers."""
    tests = [{"args": encode(args), "expect": args[0] >= args[1]} for args in ((1, 2), (5, 3), (2, 4), (4, 1))]
    params = {"name": "ge", "tests": tests}
    return replace(
        made("function_tests", params, "ge(a, b)?", "def ge(a, b):\n    return a >= b", "def ge(a, b): return True"),
        type="implement",
    )


BAD = {
    "wrong": weak(),
    "leak": replace(TEXT, prompt="gcd is the greatest common divisor. Of what?"),
    "oracle": replace(TEXT, prompt="A wrong gold answer", reference="<answer>multiple</answer>", wrong=("<answer>sum</answer>",)),
    "unique": replace(CHOICE, prompt="Which?\nA. the gcd\nB. The  GCD"),
    "form": replace(TEXT, prompt="Malformed?", verifier=VerifierSpec(name="text", params={"answers": []})),
    "empty": replace(CHOICE, prompt="Which? A. lcm B. gcd\nReply like this: <answer>B</answer>"),
    "trivial": made("function_tests", {"name": "f", "tests": [{"args": ["tuple", n], "expect": 1} for n in (1, 2)]}, "f", "def f(n):\n    return 1", "def f(n):\n    return 2"),
}  # fmt: skip


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    TaskSet(SOUND).save(tmp_path / "tasks.jsonl")
    return tmp_path / "tasks.jsonl"


def run(*words: object) -> int:
    return main(["validate", *map(str, words)])


# one task


@pytest.mark.parametrize("check", BAD)
def test_a_bad_task_fails_the_right_check(check: str, sandbox: Sandbox) -> None:
    found = audit(BAD[check], sandbox, wrong=6, right=1)
    assert found.check == check, found.message
    assert found.message
    assert not found.unjudged


def test_a_sound_function_rejects_every_mutant(sandbox: Sandbox) -> None:
    found = audit(SUM, sandbox, wrong=10, right=3)
    assert (found.check, found.message) == ("", "")
    rejected, tried = found.wrong
    assert rejected == tried >= 10
    assert found.tried["mutated"] >= 9
    assert found.tried["right"] == 3
    assert found.bad == {}


def test_a_weak_task_is_told_with_the_reply_that_shows_it(sandbox: Sandbox) -> None:
    found = audit(BAD["wrong"], sandbox, wrong=12, right=1)
    assert found.bad["mutated"] >= 1
    assert "a > b" in found.examples[0]["answer"]
    assert re.search(r"ge\(\S+, \S+\) is another", found.examples[0]["why"])


def test_an_audit_does_not_stop_at_the_first_fault() -> None:
    found = audit(
        replace(TEXT, wrong=("<answer>factor</answer>", "<answer>multiple</answer>", "<answer>divisor </answer>")), None
    )
    assert found.bad["wrong"] == 2
    assert found.tried["mutated"] >= 7


def test_without_depth_only_what_was_planted_is_tried() -> None:
    assert set(audit(TEXT, None, deep=False).tried) == {"oracle", "empty", "trivial", "wrong"}


def test_what_cannot_be_run_says_nothing() -> None:
    found = audit(SUM, None)
    assert "pass a sandbox" in found.unjudged
    assert (found.check, found.tried) == ("", {})
    assert tally("implement", [found]).unjudged == 1


def test_an_audit_is_the_same_every_time(sandbox: Sandbox) -> None:
    one, two = (replace(audit(SUM, sandbox, wrong=6, right=2, seed=4), seconds=0) for _ in range(2))
    assert one == two
    assert Audited.from_row(json.loads(json.dumps(one.to_row()))) == one
    with pytest.raises(TaskError, match="not a row of an audit"):
        Audited.from_row({"task": "t", "examples": []})


def test_a_repeated_prompt_is_found() -> None:
    again = replace(TEXT, type="other")
    assert repeated([TEXT, CHOICE, again]) == {again.id: TEXT.id}


# a set


def test_a_sound_set(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(sound, "--audit") == 0
    out, row = last(capsys)
    assert {
        kind: (found["oracle"], found["empty"], found["wrong"], found["right"]) for kind, found in row["types"].items()
    } == dict.fromkeys(("choice", "literal", "text"), (1.0, 0.0, 1.0, 1.0))
    assert (row["tasks"], row["passed"], row["failed"], row["unjudged"]) == (3, 3, 0, 0)
    assert re.search(r"text +│ 1 +│ 1 +│ 100 % +│ 0 % +│ 100 % of 1\d", out)


def test_a_set_with_bad_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, keep = tmp_path / "tasks.jsonl", tmp_path / "sound.jsonl"
    TaskSet([*SOUND, SUM, *BAD.values()]).save(tasks)
    assert run(tasks, "--audit", "--wrong", 6, "--right", 1, "--keep", keep) == 3
    out, row = last(capsys)
    assert row["failed"] == len(BAD)
    assert row["types"]["implement"]["checks"] == {"wrong": 1}
    assert row["types"]["implement"]["enough"] == 0.5
    assert all(task.id in out for task in BAD.values())
    assert {task.id for task in TaskSet.load(keep)} == {task.id for task in [*SOUND, SUM]}


def test_only_some_are_asked_for(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = replace(TEXT, prompt="What does gcd find?")
    TaskSet([*SOUND, again]).save(sound)
    assert run(sound, "--type", "text", "--limit", 1, "--json") == 0
    out, row = last(capsys)
    assert len(out.splitlines()) == 1
    assert (row["tasks"], list(row["types"])) == (1, ["text"])


def test_a_kept_audit_goes_on_and_another_one_begins_anew(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = sound.with_name("audit.jsonl")
    assert run(sound, "--audit", "--out", out) == 0
    kept = out.read_bytes()
    first = last(capsys)[1]
    assert run(sound, "--audit", "--out", out) == 0
    assert out.read_bytes() == kept
    again = last(capsys)[1]
    assert again["done_before"] == 3
    assert again["types"] == first["types"]
    assert run(sound, "--audit", "--seed", 9, "--out", out) == 0
    assert last(capsys)[1]["done_before"] == 0


def test_killed_and_resumed_it_ends_as_if_nothing_had_been(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks, out = tmp_path / "tasks.jsonl", tmp_path / "audit.jsonl"
    TaskSet(replace(SUM, prompt=f"{SUM.prompt} {n}") for n in range(12)).save(tasks)
    words = ["validate", str(tasks), "--audit", "--wrong", "2", "--right", "1", "--workers", "1", "--out", str(out)]
    kill_at((2, 5), words, out, b'{"task": "t_')
    assert main(words) == 0
    row = last(capsys)[1]
    assert (row["passed"], row["failed"]) == (12, 0)
    assert row["done_before"] >= 5
    rows = [json.loads(line) for line in out.read_bytes().splitlines()]
    assert sorted(r["task"] for r in rows) == sorted(task.id for task in TaskSet.load(tasks))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["missing.jsonl"], "cannot read tasks"),
        (["tasks.jsonl", "--type", "hard"], "no task of type 'hard'; there are: choice, literal, text"),
        (["tasks.jsonl", "--keep", "tasks.jsonl"], "must be different files"),
        (["tasks.jsonl", "--keep", "nowhere/kept.jsonl"], "there is no folder nowhere; make it first"),
        (["tasks.jsonl", "--keep", "."], "it is a folder; name a file"),
        (["empty.jsonl"], "has no tasks; make some with `kgsynth run`"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], told: str, sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sound.parent)
    Path("empty.jsonl").write_text("")
    assert run(*words) == 1
    assert told in capsys.readouterr().err


def test_shares_are_never_rounded_to_what_they_are_not(sandbox: Sandbox) -> None:
    from kgsynth.tasks_cli import _percent

    assert [_percent(x) for x in (1, 0, 0.9996, 0.0004, 0.954)] == ["100 %", "0 %", "99.96 %", "0.04 %", "95.4 %"]


def test_counts_of_a_type_add_up() -> None:
    def row(**more: Any) -> Audited:
        counts: Mapping[str, Any] = {"tried": {"oracle": 1, "empty": 5, "wrong": 3, "mutated": 17, "right": 4}}
        return Audited(task="t", type="x", asked="", **{**counts, **more})

    found = tally(
        "x",
        [row(), row(check="wrong", bad={"mutated": 2}), row(check="oracle", bad={"right": 1}), row(unjudged="no box")],
    )
    assert (found.tasks, found.passed, found.unjudged) == (4, 1, 1)
    assert (found.wrong_tried, found.wrong) == (60, 1 - 2 / 60)
    assert (found.right, found.oracle, found.empty) == (1 - 1 / 12, 1.0, 0.0)
    assert found.enough == pytest.approx(2 / 3)
    assert found.checks == {"wrong": 1, "oracle": 1}
