from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import trainer
from kgsynth.errors import ConfigError, RunError
from tests.trainer.tasks import build_tasks
from trainer.cli import main
from trainer.config import Recipe, load_recipe
from trainer.metrics import read_metrics
from trainer.stages import run_lock


def test_importing_the_package_or_asking_for_help_loads_no_torch() -> None:
    code = (
        "import sys, trainer, trainer.cli\n"
        "try: trainer.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "trainer run recipes/demo.toml" in result.stdout


def test_a_run_ends_with_its_numbers_and_a_second_one_trains_nothing(
    recipe_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(recipe_file)]) == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"reward_before", "reward_after", "heldout_before", "heldout_after", "seconds"} <= set(result)
    run_dir = load_recipe(recipe_file).run_dir
    assert json.loads((run_dir / "train" / "result.json").read_text()) == result
    rows = read_metrics(run_dir / "metrics.jsonl")
    assert [r["step"] for r in rows if r["stage"] == "sft"] == [1, 2, 3, 4, 5, 6]
    assert [r["step"] for r in rows if r["stage"] == "eval"] == [0, 6]
    stages = [json.loads(line) for line in (run_dir / "stages.jsonl").read_text().splitlines()]
    assert [s["stage"] for s in stages] == ["sft", "eval", "rl", "eval"]

    assert main(["run", str(recipe_file)]) == 0
    again = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {k: v for k, v in again.items() if "seconds" not in k} == {
        k: v for k, v in result.items() if "seconds" not in k
    }
    assert read_metrics(run_dir / "metrics.jsonl") == rows
    assert len((run_dir / "stages.jsonl").read_text().splitlines()) == 4

    assert main(["eval", str(recipe_file), "--stage", "rl"]) == 0
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert measured["train"]["reward"] == result["reward_after"], "the same weights, tasks and seed"

    changed = ["run", str(recipe_file), "trainer.rl.samples=3"]
    assert main(changed) == 2
    message = capsys.readouterr().err
    assert "rl.samples = 4" in message
    assert "delete" in message

    build_tasks(31, kinds=["choice"]).save(run_dir / "tasks.jsonl")
    with pytest.raises(RunError, match="tasks"):
        trainer.run(recipe_file)


def test_stages_one_by_one(recipe_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rl", str(recipe_file)]) == 2
    assert "trainer sft" in capsys.readouterr().err
    assert main(["eval", str(recipe_file), "--stage", "sft"]) == 2
    assert "no sft checkpoint" in capsys.readouterr().err
    assert main(["sft", str(recipe_file)]) == 0
    cold = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["rl", str(recipe_file)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["reward_before"] == cold["train"]["reward"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[trainer.rl]\nsample = 8", "did you mean 'samples'"),
        ("[trainer.rl]\nsamples = 1", "2 or more"),
        ("[trainer.rl]\nsamples = 4.5", "samples"),
        ('[trainer.rl]\nloss = "ppo"', "k2.5"),
        ("[trainer.rl]\nlow = 0.5", "both sides"),
        ("[trainer.model]\nheads = 3", "heads"),
        ("[trainer.model]\nvocab_size = 3", "vocab_size"),
        ("[trainer.sft.optimizer]\nname = 'sgd'", "muon"),
        ("[trainer]\nheld_out = 1.5", "held_out"),
        ("[traner]\nseed = 1", "did you mean 'trainer'"),
        ("[trainer", "TOML"),
    ],
)
def test_a_bad_recipe_names_the_key(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_recipe(tmp_path / "r.toml")
    assert main(["run", str(tmp_path / "r.toml")]) == 2


def test_tables_of_the_other_half_are_not_the_trainers_business(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(
        "[grow]\nwhatever = 1\n[trainer.rl]\nsteps = 3\n[trainer.model]\nhidden_size = 64\n"
    )
    recipe = load_recipe(tmp_path / "r.toml", ["trainer.sft.steps=2"])
    assert (recipe.trainer.rl.steps, recipe.trainer.sft.steps, recipe.trainer.model.hidden_size) == (3, 2, 64)


def test_a_missing_run_folder_or_task_file_says_how_to_make_it(recipe: Recipe) -> None:
    (recipe.run_dir / "tasks.jsonl").unlink()
    with pytest.raises(Exception, match="kgsynth run"):
        trainer.run(recipe)
    with pytest.raises(RunError, match="kgsynth run"):
        trainer.run(Recipe(run_dir=recipe.run_dir / "nowhere"))


def test_a_second_process_waits_and_says_so(recipe: Recipe) -> None:
    said, holder = threading.Event(), (recipe.run_dir / ".train.lock").open("w")
    fcntl.flock(holder, fcntl.LOCK_EX)

    def wait_for_it() -> None:
        with run_lock(recipe.run_dir, lambda stage, *_: said.set() if stage == "wait" else None):
            entered.set()

    entered = threading.Event()
    thread = threading.Thread(target=wait_for_it)
    thread.start()
    assert said.wait(20)
    assert not entered.is_set()
    holder.close()
    assert entered.wait(20)
    thread.join()
