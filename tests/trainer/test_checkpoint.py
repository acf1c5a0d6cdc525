"""Killed at any instant and resumed: the same losses as a run that was never disturbed, and nothing logged twice."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from kgsynth.errors import RunError
from trainer import checkpoint
from trainer.config import load_recipe
from trainer.metrics import Metrics, read_metrics


def test_only_the_last_two_are_kept_and_stages_do_not_mix(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, "sft", step, {"x": torch.tensor(step)})
    checkpoint.save(tmp_path, "rl", 9, {"x": torch.tensor(9)})
    assert checkpoint.steps(tmp_path, "sft") == [2, 3]
    state = checkpoint.load_latest(tmp_path, "sft")
    assert state is not None
    assert (state["step"], state["x"].item()) == (3, 3)
    assert checkpoint.load_latest(tmp_path, "eval") is None


def test_a_half_written_checkpoint_does_not_count(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, "sft", 1, {"x": 1})
    shutil.copytree(tmp_path / "sft-000001", tmp_path / ".part-sft-000002")
    (tmp_path / ".part-sft-000002" / "state.pt").write_bytes(b"torn")
    state = checkpoint.load_latest(tmp_path, "sft")
    assert state is not None
    assert state["step"] == 1
    checkpoint.save(tmp_path, "sft", 2, {"x": 2})
    assert checkpoint.steps(tmp_path, "sft") == [1, 2]


def test_a_damaged_checkpoint_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, "rl", 1, {"x": 1})
    (path / "state.pt").write_bytes(b"junk")
    with pytest.raises(RunError, match="delete its folder"):
        checkpoint.load_latest(tmp_path, "rl")


def test_loading_a_checkpoint_runs_no_code(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path, "rl", 1, {})
    torch.save({"step": 1, "x": Path("evil")}, path / "state.pt")
    with pytest.raises(RunError, match="cannot be read"):
        checkpoint.load_latest(tmp_path, "rl")


def test_metrics_beyond_the_checkpoint_and_a_torn_line_are_dropped(tmp_path: Path) -> None:
    with Metrics(tmp_path, "sft", resume_at=0) as metrics:
        for step in range(1, 6):
            metrics.log(step, loss=1 / step)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"stage": "sft", "ste')
    with Metrics(tmp_path, "sft", resume_at=3) as metrics:
        metrics.log(4, loss=9.0)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [(row["step"], row["loss"]) for row in rows] == [(1, 1.0), (2, 0.5), (3, 1 / 3), (4, 9.0)]
    assert _board_steps(tmp_path / "tb" / "sft") == [1, 2, 3, 4]


def test_metrics_of_other_stages_are_left_alone(tmp_path: Path) -> None:
    with Metrics(tmp_path, "sft", resume_at=0) as metrics:
        metrics.log(7, loss=0.5)
    with Metrics(tmp_path, "rl", resume_at=0) as metrics:
        metrics.log(1, reward=0.5)
    assert [row["stage"] for row in read_metrics(tmp_path / "metrics.jsonl")] == ["sft", "rl"]


def _board_steps(folder: Path) -> list[int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(folder))
    board.Reload()
    return [event.step for event in board.Scalars(f"{folder.name}/loss")]


def _run(recipe: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "trainer.cli", "run", str(recipe)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _numbers(run_dir: Path) -> list[dict]:
    """Everything logged but the clock."""
    return [
        {k: v for k, v in row.items() if k not in ("time", "seconds")}
        for row in read_metrics(run_dir / "metrics.jsonl")
    ]


def test_killed_and_resumed_equals_undisturbed(recipe_file: Path, tmp_path: Path) -> None:
    """kill -9 twice, once in each loop, at a step that is no checkpoint's; the third call ends the run."""
    run_dir = tmp_path / "runs" / "small"
    undisturbed = tmp_path / "undisturbed"
    shutil.copytree(run_dir, undisturbed)
    for stage in ("sft", "rl"):
        process = _run(recipe_file)
        deadline = time.monotonic() + 120
        while not any(r["stage"] == stage and r["step"] >= 3 for r in read_metrics(run_dir / "metrics.jsonl")):
            assert time.monotonic() < deadline, process.communicate()
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    out, err = _run(recipe_file).communicate()
    result = json.loads(out.splitlines()[-1]) if out else pytest.fail(err)

    recipe = load_recipe(recipe_file)
    import trainer

    reference = trainer.run(type(recipe)(run_dir=undisturbed, trainer=recipe.trainer))
    assert _numbers(run_dir) == _numbers(undisturbed)
    same = ("reward_before", "reward_after", "heldout_before", "heldout_after", "by_type_after", "tasks")
    assert {key: result[key] for key in same} == {key: reference[key] for key in same}
    weights = [checkpoint.load_latest(d / "train" / "checkpoints", "rl") for d in (run_dir, undisturbed)]
    assert weights[0] is not None
    assert weights[1] is not None
    for name, tensor in weights[0]["model"].items():
        assert torch.equal(tensor, weights[1]["model"][name]), name
