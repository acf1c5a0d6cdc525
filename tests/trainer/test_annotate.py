"""What the trainer measured, in the graph: the two halves meet at files only."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from kgsynth.annotate import annotate
from kgsynth.concept import Concept
from kgsynth.store import Change, open_store
from kgsynth.task import TaskSet
from trainer.cli import main
from trainer.config import load_recipe


def test_pass_rates_of_a_trained_run_are_those_of_its_evaluation(
    recipe_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sft", str(recipe_file)]) == 0
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not {"pass_rates", "attempts"} & shown["train"].keys(), "they are in the run folder"
    folder = load_recipe(recipe_file).run_dir
    measured = json.loads((folder / "train" / "eval_before.json").read_text())
    tasks = TaskSet.load(folder / "tasks.jsonl")
    tested = Concept(name=tasks[0].provenance.names[0], domain="d")
    with closing(open_store(f"sqlite:{tmp_path / 'graph.sqlite'}")) as store:
        store.commit(Change(concepts=(tested,)))
        assert annotate(store, folder, tasks) == len(tasks)
        known = {task.id: task for task in store.tasks()}
    rates = {**measured["train"]["pass_rates"], **measured["held_out"]["pass_rates"]}
    assert len(rates) > len(tasks) / 2
    assert {i: known[i].pass_rate for i in rates} == rates
    assert {known[i].attempts for i in rates} == {2}, "the samples of the recipe"
    assert {known[i].policy for i in rates} == {"sft"}
