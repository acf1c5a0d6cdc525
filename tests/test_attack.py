"""`kgsynth attack` and its catalogue: a weak verifier is found out, a kill loses nothing, and what is wrong is said in one line."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.attack import REGISTRY, attack, attacks_on
from kgsynth.attack.campaign import Assault, assault, campaign, held, planned
from kgsynth.attack_cli import markdown
from kgsynth.cli import main
from kgsynth.errors import SandboxError, TaskError, VerifierError
from kgsynth.sandbox import Sandbox
from kgsynth.task import Task, TaskSet, VerifierSpec
from kgsynth.verifiers import NEEDS_SANDBOX, Verdict, register
from kgsynth.verifiers import REGISTRY as VERIFIERS
from tests.commands import ROOT, kill_at, last
from tests.hackable import CHOICE, FUNCTION, LITERAL, TEXT, contains

DOC = ROOT / "docs" / "attacks.md"
QUICK = ("oracle", "wildcards", "white space", "negation", "each letter")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    TaskSet([TEXT, CHOICE, LITERAL]).save(tmp_path / "tasks.jsonl")
    return tmp_path / "tasks.jsonl"


@pytest.fixture
def weak() -> Iterator[Task]:
    """A task of a verifier that looks for the answer anywhere in the reply."""
    yield from _registered("weak", contains)


def _registered(name: str, verifier: Any, *, boxed: bool = False) -> Iterator[Task]:
    register(name, needs_sandbox=boxed)(verifier)
    yield replace(TEXT, type=name, verifier=VerifierSpec(name=name, params=TEXT.verifier.params))
    del VERIFIERS[name]
    NEEDS_SANDBOX.discard(name)


# the catalogue


def test_every_attack_says_what_it_does_and_who_has_seen_it() -> None:
    for found in REGISTRY.values():
        assert found.trick
        assert found.source
        assert 0 <= found.number <= 29
    assert len({found.trick for found in REGISTRY.values()}) == len(REGISTRY)


@pytest.mark.parametrize("task", [TEXT, CHOICE, LITERAL, FUNCTION], ids=lambda task: task.type)
def test_replies_depend_on_the_task_and_the_seed_only(task: Task) -> None:
    for found in attacks_on(task):
        random.seed(time.time())
        assert found.answers(task, 3) == found.answers(task, 3)
    assert REGISTRY["answer list"].answers(task, 1) != REGISTRY["answer list"].answers(task, 2)


def test_attacks_that_do_not_know_the_answer_are_the_same_whatever_it_is() -> None:
    other = replace(TEXT, reference="<answer>something else</answer>")
    assert other.id == TEXT.id
    for found in attacks_on(TEXT):
        if not found.knows_reference:
            assert found.answers(TEXT) == found.answers(other), found.name


def test_code_is_not_sent_to_a_verifier_without_a_sandbox() -> None:
    code = {found.name for found in attacks_on(FUNCTION)} - {found.name for found in attacks_on(TEXT)}
    assert {"exit code 0", "fork bomb", "signals"} <= code
    assert "function_tests" in NEEDS_SANDBOX


def test_a_verifier_nobody_has_heard_of_is_attacked_too(weak: Task) -> None:
    assert {"oracle", "many answers", "order to the grader", "huge output"} <= {
        found.name for found in attacks_on(weak)
    }


def test_two_attacks_of_one_name_are_an_error() -> None:
    with pytest.raises(VerifierError, match="registered twice"):
        attack("oracle", "again")(lambda task, rng: [])


def test_the_documentation_has_the_whole_catalogue() -> None:
    assert markdown(REGISTRY.values()) in DOC.read_text(encoding="utf-8"), (
        "put `kgsynth attack --list` into docs/attacks.md"
    )


def test_every_known_hack_is_in_the_documentation_with_what_answers_it() -> None:
    rows = re.findall(r"^\| (\d+) \|", DOC.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(1, 30))


# what is paid is found


def test_a_sound_task_set_is_paid_for_nothing_but_the_oracle(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", str(tasks)]) == 0
    out, row = last(capsys)
    assert row["failed"] == []
    assert row["oracle"] == {"paid": 3, "tried": 3}
    assert row["replies"] == sum(len(a.answers(task)) for task in (TEXT, CHOICE, LITERAL) for a in attacks_on(task))
    assert re.search(r"each letter +│ 1/4 25%", out)
    assert re.search(r"oracle +│ 1/1 100%", out)


def test_a_weak_verifier_is_caught(weak: Task, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TaskSet([TEXT, weak]).save(tmp_path / "tasks.jsonl")
    assert main(["attack", str(tmp_path / "tasks.jsonl")]) == 3
    out, row = last(capsys)
    failed = {found["attack"] for found in row["failed"]}
    assert {"many answers", "answer list", "everything at once"} <= failed
    assert {found["type"] for found in row["failed"]} == {"weak"}
    assert re.search(r"many answers +│ 0/3 +│ 3/3", out)
    assert f"many answers on {weak.id} (weak)" in out


def test_an_oracle_that_is_not_paid_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TaskSet([replace(TEXT, reference="<answer>heap</answer>")]).save(tmp_path / "tasks.jsonl")
    assert main(["attack", str(tmp_path / "tasks.jsonl"), "--attack", "oracle"]) == 3
    out, row = last(capsys)
    assert row["oracle"] == {"paid": 0, "tried": 1}
    assert re.search(r"oracle +│ 0/1 0%", out)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("raises", "raised RuntimeError"),
        ("evaluates", "the answer was executed in the grader"),
        ("scores", "scored nan"),
    ],
)
def test_a_verifier_that_breaks_is_a_failure(kind: str, reason: str) -> None:
    def broken(reply: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
        if kind == "raises" and "score" in reply:
            raise RuntimeError(reply)
        if kind == "evaluates" and "__import__('sys')" in reply and "lambda" in reply:
            eval("__import__('sys').modules.__setitem__('kgsynth.pwned', 1)")
        return Verdict(score=float("nan") if kind == "scores" else 0.0, reason="wrong")

    (results,) = [list(campaign([made], REGISTRY, None)) for made in _registered(kind, broken)]
    told = [reason for result in results if result.broken for reason in result.reasons]
    assert any(found.startswith(reason) for found in told)
    assert all(not held(REGISTRY[result.attack], result) for result in results if result.broken)
    assert "kgsynth.pwned" not in sys.modules


def test_a_guess_is_paid_once_and_twice_is_a_failure() -> None:
    guess = REGISTRY["each letter"]
    fair = assault(CHOICE, guess, guess.answers(CHOICE), None)
    assert (fair.paid, fair.tried, held(guess, fair)) == (1, 4, True)
    assert not held(guess, replace(fair, paid=2))


def test_what_cannot_be_judged_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def boxless(reply: str, params: Mapping[str, Any], sandbox: Sandbox | None) -> Verdict:
        raise SandboxError("no box can be made")

    for made in _registered("boxless", boxless):
        TaskSet([made, TEXT]).save(tmp_path / "tasks.jsonl")
        out = tmp_path / "attacks.jsonl"
        assert main(["attack", str(tmp_path / "tasks.jsonl"), "--attack", "oracle", "--out", str(out)]) == 4
        row = last(capsys)[1]
        assert (row["unjudged"], row["failed"]) == (1, [])
        assert [json.loads(line)["type"] for line in out.read_text().splitlines()] == ["text"], "it is tried again"


# the command


def test_the_catalogue_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attack", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"| {name} |" in out for name in REGISTRY)


def test_only_what_was_asked_for(tasks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["attack", str(tasks), "--type", "choice", "--attack", "oracle", "--attack", "all letters", "--json"]) == 0
    )
    out, row = last(capsys)
    assert out.count("\n") == 1
    assert (row["tasks"], row["attacks"]) == (1, 2)


def test_the_first_tasks_of_each_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [replace(task, prompt=f"{task.prompt} {n}") for n in range(5) for task in (TEXT, CHOICE)]
    TaskSet(many).save(tmp_path / "tasks.jsonl")
    assert main(["attack", str(tmp_path / "tasks.jsonl"), "--limit", "2", "--attack", "oracle"]) == 0
    assert last(capsys)[1]["oracle"] == {"paid": 4, "tried": 4}


def test_what_is_wrong_is_said_in_one_line(tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    for args, says in {
        (): "no task set is given",
        (tmp_path / "none.jsonl",): "cannot read tasks from",
        (tmp_path / "empty.jsonl",): "has no tasks",
        (tasks, "--type", "implement"): "no task type 'implement'; there are: choice, literal, text",
        (tasks, "--attack", "magic"): "no attack 'magic'; there are: oracle, no-op",
        (tasks, "--out", tmp_path / "other.jsonl"): "other.jsonl:1 is damaged",
        (tasks, "--out", tmp_path): "cannot write",
    }.items():
        assert main(["attack", *map(str, args)]) == 1
        said = capsys.readouterr().err
        assert says in said
        assert said.count("\n") == 1
    with pytest.raises(SystemExit, match="2"):
        main(["attack", str(tasks), "--limit", "0"])


def test_a_row_of_something_else_is_refused() -> None:
    with pytest.raises(TaskError, match="choose another --out"):
        Assault.from_row({"task": "t", "examples": []})


# resuming


def test_killed_and_resumed_it_ends_as_if_nothing_had_been(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = [replace(task, prompt=f"{task.prompt} {n}") for n in range(80) for task in (TEXT, CHOICE, LITERAL)]
    tasks, out = tmp_path / "tasks.jsonl", tmp_path / "attacks.jsonl"
    TaskSet(many).save(tasks)
    some = [word for name in QUICK for word in ("--attack", name)]
    args = ["attack", str(tasks), "--out", str(out), "--json", *some]
    kill_at((30, 200, 500), args, out, b'{"task": "torn')
    assert main(args) == 0
    row = last(capsys)[1]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    wanted = {(task.id, found.name) for task in many for found in attacks_on(task) if found.name in QUICK}
    assert Counter((r["task"], r["attack"]) for r in rows) == dict.fromkeys(wanted, 1)
    assert row["done_before"] >= 500
    assert row["replies"] == sum(r["tried"] for r in rows)


def test_results_of_other_replies_are_not_taken_for_these(
    tasks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "attacks.jsonl")
    again = []
    for seed in ("0", "0", "1"):
        assert main(["attack", str(tasks), "--attack", "answer list", "--out", out, "--seed", seed, "--json"]) == 0
        again.append(last(capsys)[1]["done_before"])
    assert again == [0, 3, 0]


# which attacks on which tasks


def test_what_is_the_same_for_all_tasks_is_tried_on_some_of_them() -> None:
    tasks = [replace(FUNCTION, prompt=f"{FUNCTION.prompt} {n}") for n in range(30)]
    pairs = planned(tasks, REGISTRY, each=8)
    tried = Counter(found.name for _, found in pairs)
    assert (tried["oracle"], tried["planted"], tried["constant"], tried["code of the prompt"]) == (30,) * 4
    assert (tried["frames"], tried["equal to everything"], tried["fake tags"], tried["hang"]) == (8, 8, 8, 2)
    graders = Counter(task.id for task, found in pairs if found.about == "grader")
    assert len(graders) > 25
    assert pairs == planned(tasks, REGISTRY, each=8)
    assert len(planned(tasks, REGISTRY)) == sum(len(attacks_on(task)) for task in tasks)


def test_quick_verifiers_meet_every_form_of_reply() -> None:
    tasks = [replace(TEXT, prompt=f"{TEXT.prompt} {n}") for n in range(30)]
    tried = Counter(found.name for _, found in planned(tasks, REGISTRY, each=8))
    assert (tried["fake tags"], tried["zero-width"], tried["huge output"]) == (30, 30, 2)


def test_what_a_prompt_shows_is_sent_back() -> None:
    shown = "def helper(n):\n    return n\n\ndef digit_sum(n, base=10):\n    return helper(n) - 1"
    task = replace(FUNCTION, prompt=f"Repair it: `digit_sum(41)` returns `5`.\n\n```python\n{shown}\n```\n")
    assert REGISTRY["code of the prompt"].answers(task) == [f"<answer>\n{shown}\n</answer>"]
    assert "return helper(*args, **kwargs)" in REGISTRY["functions of the prompt"].answers(task)[0]
    assert "'41': '5'," in REGISTRY["examples special-cased"].answers(task)[0]


def test_a_bug_with_a_table_is_paid_where_the_tests_are_the_examples(sandbox: Sandbox) -> None:
    """The attack finds a weak task: all that is tested stands in the prompt."""
    params = {**FUNCTION.verifier.params, "tests": FUNCTION.verifier.params["tests"][:1]}
    shown = "def digit_sum(n, base=10):\n    return n - 1"
    weak = replace(
        FUNCTION,
        prompt=f"`digit_sum(12)` returns `3`.\n```python\n{shown}\n```",
        verifier=VerifierSpec(name="function_tests", params=params),
    )
    found = REGISTRY["examples special-cased"]
    result = assault(weak, found, found.answers(weak), sandbox)
    assert result.paid == 2
    assert not held(found, result)
