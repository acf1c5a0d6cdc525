"""One strict TOML per run. The trainer reads [run] name and dir, and everything under [trainer]; it owns the latter.

An unknown key, a wrong type or a value out of range raises ConfigError with the key, and the nearest known one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.config import RunConfig, build_all, read_toml
from kgsynth.errors import ConfigError
from kgsynth.sandbox import BACKENDS
from trainer.model import ModelConfig, tiny

KGSYNTH_TABLES = {
    "corpus",
    "web",
    "embed",
    "llm",
    "store",
    "grow",
    "sample",
    "synthesize",
    "validate",
    "screen",
    "feedback",
}
OPTIMIZERS, LOSSES = ("muon", "adamw"), ("k2.5", "dapo")
# One KDA and one gated MLA layer, the second with experts. On a few hundred tasks two more layers cost 1.6 times the
# time per step and learned no faster.
POLICY = tiny(layers=2, full_attn_layers=(2,))


def _require(holds: bool, table: str, key: str, value: object, rule: str) -> None:
    if not holds:
        raise ConfigError(f"[{table}] {key} = {value!r}: must be {rule}")


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """`muon` moves the weight matrices by Muon (Jordan et al., 2024) and the rest by AdamW; `adamw` moves all."""

    name: str = "muon"
    lr: float = 0.01  # of the matrices under muon
    adamw_lr: float = 0.01  # of everything else, and of all under adamw
    warmup: int = 5  # steps
    final: float = 0.1  # the learning rate falls linearly to this share of it
    weight_decay: float = 0.0
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        _require(self.name in OPTIMIZERS, "trainer.*.optimizer", "name", self.name, f"one of {OPTIMIZERS}")
        for key in ("lr", "adamw_lr", "clip_norm"):
            _require(getattr(self, key) > 0, "trainer.*.optimizer", key, getattr(self, key), "above 0")
        _require(0 <= self.final <= 1, "trainer.*.optimizer", "final", self.final, "between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class SFTConfig:
    """The cold start: cross-entropy on reference answers of training tasks."""

    steps: int = 22
    batch_size: int = 32  # tasks per step
    length_power: float = 1.0  # 0: every token counts the same; 1: every task does, whatever its reply's length
    checkpoint_every: int = 20
    optimizer: OptimizerConfig = OptimizerConfig()

    def __post_init__(self) -> None:
        for key in ("batch_size", "checkpoint_every"):
            _require(getattr(self, key) > 0, "trainer.sft", key, getattr(self, key), "above 0")
        _require(self.steps >= 0, "trainer.sft", "steps", self.steps, "0 or more")


@dataclass(frozen=True, kw_only=True)
class RLConfig:
    """Reinforcement learning with verifiable rewards. Rollouts are sampled at the temperature of [trainer.eval]."""

    steps: int = 100
    prompts: int = 32  # groups per step
    samples: int = 12  # rollouts per group
    epochs: int = 1  # passes over each batch of rollouts
    loss: str = "k2.5"
    low: float = -1.0  # k2.5: bounds of log rho; dapo: clip distance below 1
    high: float = 1.0
    tau: float = 0.01  # k2.5: weight of the squared log-ratio
    leave_one_out: bool = False
    explore: float = 0.05  # weight of a task whose last group was unanimous, against p(1-p) <= 0.25 for the others
    checkpoint_every: int = 10
    optimizer: OptimizerConfig = OptimizerConfig(lr=0.002, adamw_lr=0.002)

    def __post_init__(self) -> None:
        for key in ("prompts", "epochs", "checkpoint_every", "explore"):
            _require(getattr(self, key) > 0, "trainer.rl", key, getattr(self, key), "above 0")
        _require(self.steps >= 0, "trainer.rl", "steps", self.steps, "0 or more")
        _require(self.samples > 1, "trainer.rl", "samples", self.samples, "2 or more: a group is its own baseline")
        _require(self.loss in LOSSES, "trainer.rl", "loss", self.loss, f"one of {LOSSES}")
        if self.loss == "k2.5":
            _require(self.low < 0 < self.high, "trainer.rl", "low, high", (self.low, self.high), "on both sides of 0")
        else:
            _require(0 <= self.low < 1, "trainer.rl", "low", self.low, "in [0, 1): dapo clips rho at 1 - low")
            _require(self.high >= 0, "trainer.rl", "high", self.high, "0 or more: dapo clips rho at 1 + high")


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """How reward is measured, before and after, with the same settings: the mean over sampled replies."""

    samples: int = 4  # replies per task
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _require(self.samples > 0, "trainer.eval", "samples", self.samples, "above 0")
        _require(self.temperature > 0, "trainer.eval", "temperature", self.temperature, "above 0")


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Everything under [trainer]. In a recipe [trainer.model] changes fields of POLICY."""

    seed: int = 0
    threads: int = 0  # of torch; 0 leaves its default
    sandbox: str = "bubblewrap"  # where code in replies is verified: bubblewrap, gvisor or e2b
    vocab_size: int = 2048
    held_out: float = 0.2  # share of concepts
    max_prompt_tokens: int = 512  # tasks with longer prompts are left out, and counted
    max_new_tokens: int = 160
    rows: int = 512  # most sequences decoded at once
    model: ModelConfig = POLICY  # its vocabulary is the tokenizer's
    sft: SFTConfig = SFTConfig()
    rl: RLConfig = RLConfig()
    eval: EvalConfig = EvalConfig()

    def __post_init__(self) -> None:
        for key in ("vocab_size", "max_prompt_tokens", "max_new_tokens", "rows"):
            _require(getattr(self, key) > 0, "trainer", key, getattr(self, key), "above 0")
        _require(0 <= self.held_out < 1, "trainer", "held_out", self.held_out, "in [0, 1)")
        _require(self.sandbox in BACKENDS, "trainer", "sandbox", self.sandbox, f"one of {BACKENDS}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A run folder and how to train in it."""

    run_dir: Path
    trainer: TrainerConfig = TrainerConfig()

    @property
    def tasks_path(self) -> Path:
        return self.run_dir / "tasks.jsonl"

    @property
    def train_dir(self) -> Path:
        return self.run_dir / "train"


def load_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe; an override is `trainer.rl.steps=20`.

    Raises ConfigError when it is missing, not TOML, or says something the trainer does not know.
    """
    tables = read_toml(path, overrides)
    trainer = tables.get("trainer", {})
    if isinstance(trainer, dict) and isinstance(model := trainer.setdefault("model", {}), dict):
        if "vocab_size" in model:
            raise ConfigError(f"{path}: [trainer.model] vocab_size comes from the tokenizer; set [trainer] vocab_size")
        trainer["model"] = {**_as_table(POLICY), **model}
        tables["trainer"] = trainer
    config = build_all(tables, {"run": RunConfig, "trainer": TrainerConfig}, ignore=KGSYNTH_TABLES, where=str(path))
    return Recipe(run_dir=config["run"].folder, trainer=config["trainer"])


def _as_table(config: ModelConfig) -> dict[str, Any]:
    """As TOML would give it: lists for tuples."""
    fields = dataclasses.asdict(config)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}
