"""What report.html says of a task set: wanted and made, the funnel, cost, calibration, and samples with pictures and sources."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kgsynth.calibrate import Attempt, calibrated
from kgsynth.report import write_report
from kgsynth.report.samples import middle_out, samples
from kgsynth.task import Image, Task, TaskSet
from tests.test_report import Page, make_run, write_lines

pytest.importorskip("plotly")

EVIL = "<svg xmlns='http://www.w3.org/2000/svg' onload='owned()' width='40' height='30'><script>owned()</script></svg>"
DRAWN = [Image(source=EVIL, format="svg", width=40, height=30), Image(source="<p>hi</p>", format="html", width=64, height=48)]  # fmt: skip
CELL = {"domain": "text", "type": "hops", "granularity": "atomic", "scope": "path", "difficulty": "hard"}


def told_of(tasks: TaskSet) -> list[Task]:
    """The same tasks with two pictures, a long prompt, dates, several wrong answers, an author and a calibration."""
    first, second, third, *rest = tasks
    first = replace(first, images=tuple(DRAWN))
    second = replace(second, prompt=f"{'long ' * 2000}the end", wrong=("<answer>one</answer>", "<answer>two</answer>"))
    origin = replace(third.provenance, dates=("2026-11-30T10:00:00Z",), author="openai:m")
    third = replace(third, type="written", provenance=origin)
    attempts = [Attempt(task=first.id, score=score, tokens=40) for score in (1, 1, 0, 0)]
    return list(calibrated([first, second, third, *rest], attempts, policy="sft-500"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = make_run(tmp_path_factory.mktemp("runs") / "demo", concepts=12, tasks=12)
    tasks = told_of(TaskSet.load(folder / "tasks.jsonl"))
    write_lines(folder / "tasks.jsonl", [task.to_json() for task in tasks])
    short = {**CELL, "target": 6.25, "planned": 2, "achieved": 1, "causes": ["material"], "why": "no <b>pages</b>"}
    fine = {**CELL, "scope": "pair", "target": 1.0, "planned": 1, "achieved": 1, "causes": [], "why": ""}
    coverage = {
        "cells": [short, fine],
        "axes": [{"axis": "type", "value": kind, "target": n, "achieved": 0} for kind, n in (("hops", 6.2), ("choice", 3))],
        "deviation": {"type": 0.125, "joint": 0.25},
    }  # fmt: skip
    (folder / "coverage.json").write_text(json.dumps(coverage))
    paid = {"stage": "synthesize", "calls": 2, "prompt_tokens": 900, "completion_tokens": 100, "usd": 0.5}
    write_lines(folder / "ledger.jsonl", [paid, {**paid, "stage": "validate"}])
    return Page(write_report(folder))


def test_wanted_and_made_are_drawn_per_axis(page: Page) -> None:
    rows = {row["value"]: (row["target"], row["achieved"]) for row in page.data["axes"]["type"]}
    assert rows["hops"] == (6.2, 0)
    assert rows["choice"] == (3, 4)
    assert rows["predict"] == (0, 4)
    assert page.data["axes"]["granularity"][0] == {"value": "broad", "target": None, "achieved": 6}
    assert {value for _, name, value in page.attributes if name == "id"} >= {f"axis-{axis}" for axis in CELL}
    assert "Off by 12.5 % in type, 25.0 % in cells" in page.words.replace("\u00a0", " ")


def test_cells_that_miss_say_why(page: Page) -> None:
    assert "1 of 2 cells miss, and why" in page.words
    assert "no <b>pages</b>" in page.words
    assert "text hops atomic path hard 6.2 1 no <b>pages</b>" in page.words


def test_the_funnel_counts_down_to_the_kept_tasks(page: Page) -> None:
    for words in ("drawn samples that were asked for 35 100%", "−4 material", "kept no copy of another task", "12 34%"):
        assert words in page.words, words


def test_cost_is_given_per_kept_task_of_the_type(page: Page) -> None:
    assert "written 1 4 2,000 $1.00 2,000 $1.00" in page.words


def test_a_calibration_is_shown_by_type_and_by_task(page: Page) -> None:
    (row,) = page.data["calibration"]["types"]
    assert (row["type"], row["rate"], row["b0"]) == ("choice", 0.5, 40)
    assert row["labels"] == [0, 0, 1, 0, 0]
    assert "How hard they are for sft-500" in page.words
    assert "medium: sft-500 is right in 50% of 4 attempts (15% to 85%); a right reply takes 40 tokens" in page.words


def test_a_sample_shows_its_picture_so_that_nothing_in_it_can_run(page: Page) -> None:
    (address,) = [value or "" for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    head, coded = address.split(",")
    assert head == "data:image/svg+xml;base64"
    assert base64.b64decode(coded).decode() == EVIL
    assert len(page.scripts) == 3
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "The prompt shows a page of 64 × 48 pixels" in page.words


def test_a_sample_tells_what_is_right_what_is_wrong_and_where_it_is_from(page: Page) -> None:
    for words in (
        "Prompt, 10,007 characters", "4,007 characters left out", "the end", "Planted wrong answer, 1 of 2", "<answer>two</answer>",
        "Why the reward cannot be argued with: Exactly one option lies below", "choice: right when it is the letter of the right option (2 options)",
        "PSF-2.0 · 2026-11-30", "by openai:m", "the letter of one option inside <answer>",
    ):  # fmt: skip
        assert words in page.words, words


def test_a_run_without_plan_model_or_calibration_says_nothing_of_them(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "demo", concepts=5, tasks=4)
    plain = Page(write_report(folder))
    for words in ("Wanted and made", "cells miss", "per kept task", "How hard they are"):
        assert words not in plain.words
    assert "What was made" in plain.words
    assert plain.data["calibration"] is None
    assert plain.data["axes"]["type"][0]["target"] is None
    (folder / "coverage.json").write_text('{"cells": [')
    assert "coverage.json: " in Page(write_report(folder)).words
    (folder / "coverage.json").write_text('{"cells": {"a": 1}, "axes": [3], "deviation": {"type": "much"}}')
    assert "What was made" in Page(write_report(folder)).words


def test_samples_are_few_grouped_by_area_and_spread_over_the_set(tmp_path: Path) -> None:
    tasks = TaskSet.load(make_run(tmp_path / "demo", concepts=5, tasks=30) / "tasks.jsonl")
    groups = samples(tasks)
    assert [(group["area"], group["type"], group["count"], len(group["rows"])) for group in groups] == [
        ("coding", "predict", 10, 3), ("knowledge", "choice", 10, 3), ("knowledge", "cloze", 10, 3),
    ]  # fmt: skip
    assert groups[0]["rows"][0]["task"].id == tasks[1].id
    (alone,) = samples([replace(tasks[0], type="of another version")])
    assert (alone["why"], len(alone["rows"])) == ("", 1)


def test_a_long_text_is_cut_in_the_middle() -> None:
    assert middle_out("short", 5) == "short"
    cut = middle_out("a" * 60 + "b" * 60, 30)
    assert cut.startswith("a" * 20 + "\n")
    assert cut.endswith("\n" + "b" * 10)
    assert "90 characters left out" in cut
