"""Checkpoints that survive kill -9 at any instant: a folder under its final name is always complete.

    <folder>/<stage>-<step>/state.pt    written to a temporary folder, fsynced, renamed; the last two are kept

A state is a dict of tensors and plain data, read back with `weights_only=True`: loading one never runs code.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch

from kgsynth.errors import RunError
from trainer.optimizer import Optimizer
from trainer.policy import TinyPolicy

KEEP = 2
_TEMPORARY = ".part-"


def save(folder: Path, stage: str, step: int, state: dict[str, Any]) -> Path:
    """Make `state` the newest checkpoint of the stage; older ones beyond KEEP go."""
    folder.mkdir(parents=True, exist_ok=True)
    final = folder / f"{stage}-{step:06d}"
    part = folder / f"{_TEMPORARY}{final.name}"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with (part / "state.pt").open("wb") as file:
        torch.save({"step": step, **state}, file)
        file.flush()
        os.fsync(file.fileno())
    _sync(part)
    shutil.rmtree(final, ignore_errors=True)  # the same step, trained again
    part.rename(final)
    _sync(folder)
    for old in steps(folder, stage)[:-KEEP]:
        shutil.rmtree(folder / f"{stage}-{old:06d}")
    return final


def save_training(
    folder: Path,
    stage: str,
    step: int,
    policy: TinyPolicy,
    optimizer: Optimizer,
    *,
    seconds: float,
    rates: torch.Tensor | None = None,
) -> None:
    """Everything a training loop needs to go on after `step` as if it had never stopped."""
    state = {
        "model": policy.model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "version": policy.version,
        "rng": torch.get_rng_state(),
        "seconds": seconds,
        "rates": rates,
    }
    save(folder, stage, step, state)


def resume(
    folder: Path, stage: str, policy: TinyPolicy, optimizer: Optimizer, *, rates: torch.Tensor | None = None
) -> tuple[int, float]:
    """Restore the newest state of the stage in place. Returns the steps done and the seconds they took; (0, 0) if none."""
    state = load_latest(folder, stage)
    if state is None:
        return 0, 0.0
    policy.model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    policy.version = state["version"]
    torch.set_rng_state(state["rng"])
    if rates is not None:
        rates.copy_(state["rates"])
    return state["step"], state["seconds"]


def steps(folder: Path, stage: str) -> list[int]:
    """Steps of the complete checkpoints of a stage, ascending."""
    names = [path.name for path in folder.glob(f"{stage}-*")] if folder.is_dir() else []
    return sorted(int(name.rpartition("-")[2]) for name in names)


def load_latest(folder: Path, stage: str) -> dict[str, Any] | None:
    """The newest state of the stage, or None. Raises RunError when it cannot be read."""
    found = steps(folder, stage)
    if not found:
        return None
    path = folder / f"{stage}-{found[-1]:06d}" / "state.pt"
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise RunError(f"checkpoint {path} cannot be read: {error}; delete its folder to resume before it") from error


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
