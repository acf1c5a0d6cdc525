"""trainer: task set -> policy. Supervised cold start, then reinforcement learning with verifiable rewards.

    import trainer
    result = trainer.run("recipes/demo.toml")            # reads runs/demo/tasks.jsonl
    result["reward_before"], result["reward_after"]
    trainer.evaluate("recipes/demo.toml", stage="sft")   # measure a checkpoint again

`trainer.sft.train` and `trainer.rl.train` are the two loops by themselves. Torch is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer import rl, sft
    from trainer.stages import evaluate, run

__all__ = ["evaluate", "rl", "run", "sft"]


def __getattr__(name: str) -> Any:
    if name in ("run", "evaluate"):
        return getattr(importlib.import_module("trainer.stages"), name)
    if name in ("sft", "rl"):
        return importlib.import_module(f"trainer.{name}")
    raise AttributeError(f"module 'trainer' has no attribute {name!r}")
