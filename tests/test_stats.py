"""`kgsynth stats` and `kgsynth show`, on sets and runs that are written here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.calibrate import Attempt, calibrated
from kgsynth.cli import main
from kgsynth.concept import Source
from kgsynth.report.forms import FORMS, form_of, in_words
from kgsynth.report.tasks import UNTOLD, axes, calibration, cost_by_type, figures, funnel, misses, quartiles
from kgsynth.task import Image, Provenance, Task, TaskSet, VerifierSpec
from kgsynth.verifiers import REGISTRY
from tests.commands import last

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30" fill="#08f"/></svg>'
PAGE = Source(url="https://docs.python.org/3/", title="Python", text="A heap is a binary tree.", licence="PSF-2.0")


def task(number: int, kind: str = "cloze", **changes: Any) -> Task:
    origin = Provenance(
        concepts=(f"c_{number:016x}",), names=(f"heap {number}",), spans=(PAGE.span(0, 24),), licences=("PSF-2.0",),
        author="programmatic", index=number, dates=("2026-11-30",),
    )  # fmt: skip
    base = Task(
        type=kind, domain="data", granularity="atomic", prompt=f"Question {number}: what is a binary tree in an array?",
        verifier=VerifierSpec(name="text", params={"answers": ["heap"]}), reference="<answer>heap</answer>",
        wrong=("<answer>tree</answer>",), provenance=origin,
    )  # fmt: skip
    return replace(base, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Seven tasks: four cloze (one long, two hard), two predict, one chart with a picture."""
    kinds = [task(i) for i in range(2)] + [task(i, difficulty="hard", domain="text") for i in (2, 3)]
    kinds[1] = replace(kinds[1], prompt="seed " * 600 + "THE END", scope="path")
    kinds += [task(4, "predict"), task(5, "predict", difficulty="easy", granularity="broad")]
    kinds.append(task(6, "chart", images=(Image(source=SVG, format="svg", width=40, height=30),)))
    TaskSet(kinds).save(tmp_path / "tasks.jsonl")
    return tmp_path / "tasks.jsonl"


def fails(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert main([str(arg) for arg in args]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_stats_of_a_set_count_everything_and_end_in_one_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(path)]) == 0
    out, row = last(capsys)
    assert row["tasks"] == 7
    assert row["types"]["cloze"] | {"prompt_chars": 0} == {
        "tasks": 4, "easy": 0, "medium": 2, "hard": 2, "prompt_chars": 0,
    }  # fmt: skip
    assert row["difficulty"] == {"medium": 4, "hard": 2, "easy": 1}
    assert row["granularity"] == {"atomic": 6, "broad": 1}
    assert row["scopes"] == {"concept": 6, "path": 1}
    assert row["domains"] == {"data": 5, "text": 2}
    assert (row["verifiers"], row["licences"], row["authors"]) == ({"text": 7}, {"PSF-2.0": 7}, {"programmatic": 7})
    assert (row["concepts"], row["sources"], row["pictures"], row["calibrated"]) == (7, 1, 1, 0)
    assert row["prompt_chars"][0] == len("Question 0: what is a binary tree in an array?")
    assert row["prompt_chars"][-1] == 3007
    assert "data 5, text 2" in out
    assert "not calibrated yet" in out
    assert main(["stats", str(path), "--json"]) == 0
    only = capsys.readouterr().out
    assert json.loads(only) == row


def test_labels_of_a_calibration_are_counted(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = TaskSet.load(path)
    right = [Attempt(task=tasks[0].id, score=1, tokens=20 + i) for i in range(4)]
    some = [Attempt(task=tasks[4].id, score=score, tokens=9) for score in (1, 0, 0, 0)]
    done = calibrated(tasks, [*right, *some], policy="tiny")
    done.save(path)
    assert main(["stats", str(path)]) == 0
    out, row = last(capsys)
    assert (row["calibrated"], row["labels"]) == (2, {"hard": 1, "mastered": 1})
    assert "hard 1, mastered 1" in out
    assert main(["show", str(path), "--task", tasks[4].id]) == 0
    assert "hard: tiny is right in 25% of 4 attempts (95 %: 5% to 70%); a right reply takes 9 tokens" in (
        " ".join(capsys.readouterr().out.split())
    )
    found = calibration(done)
    assert found is not None
    assert [(row["type"], row["tasks"], row["rate"], row["b0"]) for row in found["types"]] == [
        ("cloze", 1, 1.0, 22), ("predict", 1, 0.25, 9),
    ]  # fmt: skip
    assert found["types"][1]["low"] < 0.05, "one task says little about its type, however often it is tried"
    assert calibration(tasks) is None


def test_a_set_has_no_settings_and_must_have_tasks(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "which has no settings" in fails(capsys, "stats", path, "sample.tasks=3")
    assert "cannot read tasks from" in fails(capsys, "stats", path.with_name("none.jsonl"))
    path.write_text("")
    for command in ("stats", "show"):
        assert "has no tasks; make some" in fails(capsys, command, path)
    path.write_text("{}\n")
    assert "tasks.jsonl:1: not a task" in fails(capsys, "stats", path)


def test_stats_of_a_run_tell_what_was_wanted_what_was_lost_and_end_in_the_figures_of_before(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "small"
    run.mkdir()
    path.rename(run / "tasks.jsonl")
    cell = {"domain": "text", "type": "hops", "granularity": "atomic", "scope": "path", "difficulty": "hard"}
    short = {
        **cell,
        "target": 3.0,
        "planned": 0,
        "achieved": 0,
        "capacity": 0,
        "causes": ["material"],
        "why": "no pages",
    }
    coverage = {"cells": [short], "axes": [{"axis": "type", "value": "hops", "target": 3.0, "achieved": 0}]}
    (run / "coverage.json").write_text(json.dumps(coverage))
    lost = [{"index": i, "check": check} for i, check in enumerate(["material", "oracle", "oracle", "duplicate"])]
    (run / "rejected.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lost))
    recipe = Path(__file__).with_name("small.toml")
    assert main(["stats", str(recipe), f"run.dir={tmp_path}"]) == 0
    out, row = last(capsys)
    assert {"concepts", "edges", "cycles", "tasks_by_type", "reward_before", "heldout_after", "seconds"} <= row.keys()
    assert (row["tasks"], row["rejected"]) == (7, 4)
    for words in ("1 of 1 cells miss", "no pages", "text / hops / atomic / path / hard", "2 oracle", "1 duplicate"):
        assert words in out, words
    assert main(["stats", str(recipe), f"run.dir={tmp_path}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == row


def test_show_hides_the_answer_until_it_is_asked_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = TaskSet.load(path)[0]
    assert main(["show", str(path), "--task", first.id[:12]]) == 0
    shown = capsys.readouterr().out
    for words in (
        "Question 0", "text: right when it is one of the accepted spellings", "PSF-2.0", "fetched 2026-11-30", "a word or phrase",
    ):  # fmt: skip
        assert words in shown, words
    assert "<answer>heap" not in shown
    assert "<answer>tree" not in shown
    assert main(["show", str(path), "--task", first.id, "--answers"]) == 0
    shown = capsys.readouterr().out
    assert "<answer>heap" in shown
    assert "<answer>tree" in shown


def test_long_prompts_are_cut_in_the_middle_unless_all_is_asked_for(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = TaskSet.load(path)[1]
    assert main(["show", str(path), "--task", long.id]) == 0
    shown = capsys.readouterr().out
    assert "Prompt, 3,007 characters" in shown
    assert "[1,007 characters left out; --full shows them]" in shown
    assert "THE END" in shown
    assert shown.count("seed ") < 420
    assert main(["show", str(path), "--task", long.id, "--full"]) == 0
    assert capsys.readouterr().out.count("seed ") == 600


def test_what_is_shown_depends_on_the_seed_and_takes_types_in_turn(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def types(*args: str) -> list[str]:
        assert main(["show", str(path), *args]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.split(" ")[0] for line in lines if " · t_" in line]

    assert sorted(types()) == ["chart", "cloze", "predict"]
    assert types("--seed", "3") == types("--seed", "3")
    assert len({tuple(types("--seed", str(seed))) for seed in range(6)}) > 1
    assert types("--type", "predict", "--n", "9") == ["predict", "predict"]
    assert len(types("--n", "99")) == 7


def test_wrong_ids_and_types_are_named(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no task begins with 't_zz'; there are 7" in fails(capsys, "show", path, "--task", "t_zz")
    assert "7 tasks begin with 't_'" in fails(capsys, "show", path, "--task", "t_")
    assert "has no task of type 'poem'; there are: chart, cloze, predict" in fails(
        capsys, "show", path, "--type", "poem"
    )


def test_control_characters_of_a_prompt_are_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = task(1, prompt="\x1b]0;owned\x07[bold]red[/bold]\u202e what is a heap? \x9b2J")
    TaskSet([evil]).save(tmp_path / "t.jsonl")
    assert main(["show", str(tmp_path / "t.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert not set("\x1b\x07\x9b\u202e") & set(shown)
    assert r"\x1b]0;owned\x07[bold]red[/bold]\u202e what" in shown


def test_pictures_say_where_they_can_be_seen(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["show", str(path), "--type", "chart"]) == 0
    assert "SVG, 40 x 30 pixels: --png FOLDER renders it" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    assert "choose another --png" in fails(capsys, "show", path, "--type", "chart", "--png", tmp_path / "file")


def test_pictures_are_rendered(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from kgsynth.sandbox import open_sandbox
    from kgsynth.verifiers.pictures.shown import can_render

    pytest.importorskip("skimage")
    sandbox = open_sandbox()
    if not can_render(sandbox):
        pytest.skip("no Chromium here")
    assert main(["show", str(path), "--type", "chart", "--png", str(tmp_path / "png")]) == 0
    (file,) = (tmp_path / "png").iterdir()
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capsys.readouterr().out.replace("\n", "")


# what the tables are made of


def test_every_verifier_has_words() -> None:
    assert FORMS.keys() == REGISTRY.keys()
    spec = VerifierSpec(
        name="function_tests", params={"tests": [1, 2], "forbidden": ["math"], "seconds": 5, "language": "c"}
    )
    assert form_of(spec) == "C source that defines the function"
    assert in_words(spec).endswith("(2 tests; forbidden: math; 5 s a test)")
    assert form_of(VerifierSpec(name="picture", params={"format": "html"})) == "HTML source of the picture"
    assert "not installed here" in in_words(VerifierSpec(name="telepathy"))


def test_the_funnel_loses_what_was_rejected_where_the_check_belongs() -> None:
    checks = ["material", "licence", "oracle", "wrong", "wrong", "ambiguous", "duplicate", "new check", "exhausted"]
    rows: list[dict[str, Any]] = [{"check": check} for check in checks]
    rows.append({"check": "licence", "evidence": {"refused": {}}})
    found = funnel(5, rows)
    assert [(row["step"], row["count"]) for row in found] == [
        ("drawn", 14), ("drafted", 12), ("validated", 8), ("agreed", 7), ("kept", 5),
    ]  # fmt: skip
    assert found[2]["lost"] == [["wrong", 2], ["oracle", 1], ["new check", 1]]
    assert found[-1]["lost"] == [["duplicate", 1], ["licence", 1]]
    assert [row["step"] for row in funnel(5, [])] == ["drawn", "drafted", "validated", "kept"]


def test_axes_stand_in_their_own_order_with_and_without_a_plan() -> None:
    tasks = [task(1, difficulty="hard"), task(2, difficulty="easy")]
    wanted = [{"axis": "difficulty", "value": value, "target": n} for value, n in (("hard", 1), ("medium", 0.5))]
    assert axes({"axes": wanted}, tasks)["difficulty"] == [
        {"value": "easy", "target": 0.0, "achieved": 1},
        {"value": "medium", "target": 0.5, "achieved": 0},
        {"value": "hard", "target": 1.0, "achieved": 1},
    ]
    assert axes({}, tasks)["type"] == [{"value": "cloze", "target": None, "achieved": 2}]
    assert misses({}) is None
    assert misses({"cells": "damaged", "axes": None}) is None


def test_cells_that_miss_are_told_by_the_cause_of_their_miss() -> None:
    def cell(target: float, achieved: int, causes: list[str], why: str) -> dict[str, Any]:
        return {"target": target, "achieved": achieved, "causes": causes, "why": why}

    both = "it makes up for others; rejected in synthesis: 2 by oracle"
    rows = [cell(5, 2, ["more", "rejected"], both), cell(5, 7, ["more"], "it makes up for others"), cell(1, 1, [], "")]
    rows.append(cell(0.2, 0, ["material"], "no pages"))
    found = misses({"cells": rows})
    assert found is not None
    assert (found["cells"], found["missed"], len(found["worst"])) == (4, 3, 2)
    assert [(row["cause"], row["short"], row["over"], row["why"]) for row in found["by_cause"]] == [
        ("rejected", 3, 0, "rejected in synthesis: 2 by oracle"), ("more", 0, 2, "it makes up for others"), ("material", 0.2, 0, "no pages"),
    ]  # fmt: skip


def test_cost_goes_to_the_type_that_it_was_for() -> None:
    written = [
        replace(task(i, kind), provenance=replace(task(i).provenance, author="openai:m"))
        for i, kind in ((1, "written"), (2, "written_code"), (3, "written"))
    ]

    def paid(stage: str, number: int | None, usd: float) -> dict[str, Any]:
        concept = "" if number is None else f"c_{number:016x}"
        return {"stage": stage, "kind": "llm", "concept": concept, "calls": 1, "prompt_tokens": 90, "completion_tokens": 10, "usd": usd}  # fmt: skip

    ledger = [
        paid("grow", 1, 9.0),
        paid("synthesize", 1, 0.5),
        paid("validate", 2, 0.25),
        paid("synthesize", None, 2.0),
    ]
    found = {row["type"]: row for row in cost_by_type(ledger, [*written, task(9)], [])}
    assert {kind: (row["kept"], row["usd"], row["usd_per_kept"]) for kind, row in found.items()} == {
        UNTOLD: (0, 2.0, None), "written": (2, 0.5, 0.25), "written_code": (1, 0.25, 0.25),
    }  # fmt: skip
    (only,) = cost_by_type(ledger, [written[0]], [{"type": "cloze"}])
    assert (only["type"], only["calls"], only["usd"]) == ("written", 3, 2.75), "no other type uses a model"
    assert cost_by_type([], written, []) == []


def test_quartiles() -> None:
    assert quartiles([]) == []
    assert quartiles([7]) == [7, 7, 7, 7, 7]
    assert quartiles([1, 2, 3, 4, 5]) == [1, 2, 3, 4, 5]
    assert figures([])["prompt_chars"] == []


def test_a_repeated_task_is_an_error_with_a_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.jsonl").write_text(2 * (task(1).to_json() + "\n"))
    assert "delete the repeated lines" in fails(capsys, "stats", tmp_path / "t.jsonl")
