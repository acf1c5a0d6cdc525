"""From a recipe and tasks.jsonl to a trained policy: tokenizer, SFT, evaluation, RL, evaluation.

    runs/<name>/train/config.json        the configuration and tasks this folder was trained with
                      tokenizer.json
                      checkpoints/       sft-*, rl-*: the last two of each stage
                      eval_before.json, eval_after.json
                      result.json        what `run` returns

Each stage leaves a file that says it is finished; a second run skips it, a killed run goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kgsynth.config import flatten
from kgsynth.errors import RunError
from kgsynth.files import hold, write_atomically
from kgsynth.task import TaskSet
from trainer import checkpoint, rl, sft
from trainer.chat import decode_reply
from trainer.config import Recipe, load_recipe
from trainer.env import TaskEnv, make_envs
from trainer.eval import sampled, summarise
from trainer.metrics import Metrics
from trainer.model import KimiLinear, count_parameters
from trainer.policy import TinyPolicy
from trainer.reward import Rewarder
from trainer.rollout import Rollout, RolloutGroup
from trainer.tokenizer import SMALLEST_VOCAB, Tokenizer

Progress = Callable[[str, int, int, str], None]  # stage, step, steps, a few words
NUMBERS = ("reward", "stderr", "failed", "truncated", "reply_tokens")


def run(recipe: Recipe | str | Path, *, until: str = "rl", progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Train as the recipe says, or go on where an earlier call stopped. Returns result.json.

    `until="sft"` stops after the cold start and returns its evaluation. Raises ConfigError, TaskError, SandboxError, and
    RunError when the folder was trained with another configuration or other tasks.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    with run_lock(recipe.run_dir, progress):
        work = prepare(recipe)
        seconds = {"sft": _train(work, "sft", progress)}
        before = _evaluate(work, "before", progress)
        if until == "sft":
            return before
        seconds["rl"] = _train(work, "rl", progress, before["train"]["pass_rates"])
        after = _evaluate(work, "after", progress)
        result = _result(work, seconds, before, after)
        _write_json(recipe.train_dir / "result.json", result)
        return result


def evaluate(
    recipe: Recipe | str | Path,
    *,
    stage: str = "rl",
    replies: Path | None = None,
    progress: Progress = lambda *_: None,
) -> dict[str, Any]:
    """Measure the newest checkpoint of a stage on training and held-out tasks. Raises RunError when there is none.

    replies: a file to write them to, one line of JSON each, as `kgsynth calibrate --replies` reads them.
    """
    recipe = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    with run_lock(recipe.run_dir, progress):
        work = prepare(recipe)
        work.load(stage)
        return work.measure(progress, replies)


@dataclass(frozen=True, kw_only=True)
class Work:
    """A prepared run: tasks split and encoded, the policy with its first weights, the rewarder."""

    recipe: Recipe
    policy: TinyPolicy
    rewarder: Rewarder
    train: list[TaskEnv]
    held_out: list[TaskEnv]
    counts: dict[str, int]

    @property
    def checkpoints(self) -> Path:
        return self.recipe.train_dir / "checkpoints"

    def load(self, stage: str) -> None:
        """Put the weights of the stage's newest checkpoint into the policy. Raises RunError when there is none."""
        state = checkpoint.load_latest(self.checkpoints, stage)
        if state is None:
            raise RunError(f"{self.checkpoints} has no {stage} checkpoint; run `trainer {stage} RECIPE.toml` first")
        self.policy.model.load_state_dict(state["model"])
        self.policy.version = state["version"]

    def measure(self, progress: Progress, replies: Path | None = None) -> dict[str, Any]:
        """Reward on both splits; the same replies are drawn from the same weights each time, and kept if there is a file."""
        config, seed = self.recipe.trainer.eval, self.recipe.trainer.seed
        report, rows = {}, list[dict[str, Any]]()
        for number, (split, envs) in enumerate({"train": self.train, "held_out": self.held_out}.items()):
            groups = sampled(self.policy, envs, self.rewarder, config, seed=(seed, 4, number))
            found = summarise(groups)
            report[split] = dataclasses.asdict(found)
            rows += (self._reply(group, rollout) for group in groups for rollout in group.rollouts)
            progress("eval", number + 1, 2, f"{split} reward {found.reward:.3f}")
        if replies is not None:
            write_atomically(replies, "".join(json.dumps(row) + "\n" for row in rows))
        return report

    def _reply(self, group: RolloutGroup, rollout: Rollout) -> dict[str, Any]:
        ids = rollout.sample.ids
        return {"task": group.env.task.id, "answer": decode_reply(ids, self.policy.tokenizer), "tokens": len(ids)}


def prepare(recipe: Recipe) -> Work:
    """Read, split and encode the tasks; make or load the tokenizer; initialise the model from the seed."""
    config = recipe.trainer
    tasks = TaskSet.load(recipe.tasks_path)
    _check_unchanged(recipe, tasks)
    if config.threads:
        torch.set_num_threads(config.threads)
    train, held_out = tasks.split(config.held_out, seed=config.seed)
    tokenizer = _tokenizer(recipe, train)
    torch.manual_seed(config.seed)
    model = KimiLinear(dataclasses.replace(config.model, vocab_size=tokenizer.vocab_size), seed=config.seed)
    limits = {"max_prompt_tokens": config.max_prompt_tokens, "max_new_tokens": config.max_new_tokens}
    envs = {"train": make_envs(train, tokenizer, **limits), "held_out": make_envs(held_out, tokenizer, **limits)}
    counts = {"tasks": len(tasks), "train": len(envs["train"]), "held_out": len(envs["held_out"])}
    counts["left_out"] = len(tasks) - counts["train"] - counts["held_out"]
    return Work(
        recipe=recipe,
        policy=TinyPolicy(model, tokenizer, rows=config.rows),
        rewarder=Rewarder.for_tasks(tasks, config.sandbox),
        train=envs["train"],
        held_out=envs["held_out"],
        counts=counts,
    )


def _tokenizer(recipe: Recipe, train: TaskSet) -> Tokenizer:
    path = recipe.train_dir / "tokenizer.json"
    if not path.exists():
        texts = [text for task in train for text in (task.prompt, task.reference)]
        Tokenizer.train(texts, vocab_size=max(recipe.trainer.vocab_size, SMALLEST_VOCAB)).save(path)
    return Tokenizer.load(path)


def _train(work: Work, stage: str, progress: Progress, pass_rates: Mapping[str, float] | None = None) -> float:
    """Run one training stage from where it stands to its end. Returns the seconds it took, over all attempts."""
    recipe, config = work.recipe, work.recipe.trainer
    common: dict[str, Any] = {"run_dir": recipe.run_dir, "seed": config.seed}
    common["progress"] = lambda *args: progress(stage, *args)
    unfinished = checkpoint.steps(work.checkpoints, stage)[-1:] != [getattr(config, stage).steps]
    if stage == "sft":
        seconds = sft.train(work.policy, work.train, config.sft, **common)
    else:
        temperature = config.eval.temperature
        seconds = rl.train(
            work.policy, work.train, work.rewarder, config.rl, temperature=temperature, pass_rates=pass_rates, **common
        )
    if unfinished:
        _log_stage(recipe, stage, seconds, work.counts)
    return seconds


def _evaluate(work: Work, when: str, progress: Progress) -> dict[str, Any]:
    """The evaluation before or after RL: read back when it was finished earlier."""
    path = work.recipe.train_dir / f"eval_{when}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    started = time.monotonic()
    report = work.measure(progress)
    report["seconds"] = time.monotonic() - started
    step = 0 if when == "before" else work.recipe.trainer.rl.steps  # of RL
    with Metrics(work.recipe.run_dir, "eval", resume_at=step - 1) as metrics:
        numbers = {f"{split}_{key}": report[split][key] for split in ("train", "held_out") for key in NUMBERS}
        metrics.log(step, **numbers)
    _log_stage(work.recipe, "eval", report["seconds"], work.counts)
    _write_json(path, report)
    return report


def _result(work: Work, seconds: dict[str, float], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The numbers of result.json. Rewards are means over tasks of sampled replies, same settings before and after."""
    seconds = {**seconds, "eval": before["seconds"] + after["seconds"]}
    return {
        "reward_before": before["train"]["reward"],
        "reward_after": after["train"]["reward"],
        "heldout_before": before["held_out"]["reward"],
        "heldout_after": after["held_out"]["reward"],
        "stderr_before": before["train"]["stderr"],
        "stderr_after": after["train"]["stderr"],
        "heldout_stderr_before": before["held_out"]["stderr"],
        "heldout_stderr_after": after["held_out"]["stderr"],
        "by_type_before": before["train"]["by_type"],
        "by_type_after": after["train"]["by_type"],
        "failed": before["train"]["failed"] + after["train"]["failed"],
        "seconds": sum(seconds.values()),
        "seconds_by_stage": seconds,
        "parameters": count_parameters(work.policy.model),
        "active_parameters": count_parameters(work.policy.model, active=True),
        "vocab": work.policy.tokenizer.vocab_size,
        "seed": work.recipe.trainer.seed,
        **work.counts,
    }


def require_stage(recipe: Recipe, stage: str) -> None:
    """Raise RunError unless the stage is finished."""
    done, steps = checkpoint.steps(recipe.train_dir / "checkpoints", stage)[-1:], getattr(recipe.trainer, stage).steps
    if done != [steps]:
        raise RunError(
            f"{stage} is at step {done[0] if done else 0} of {steps}: run `trainer {stage} RECIPE.toml` first"
        )


@contextmanager
def run_lock(run_dir: Path, progress: Progress = lambda *_: None) -> Iterator[None]:
    """Hold <run>/.train.lock; wait, and say so, while another process trains there. A dead process holds nothing."""
    if not run_dir.is_dir():
        raise RunError(f"no run folder {run_dir}; make tasks first with `kgsynth run RECIPE.toml`")
    (run_dir / "train").mkdir(exist_ok=True)
    waiting = f"another process is training in {run_dir}; waiting for it to end"
    with hold(run_dir / ".train.lock", lambda _: progress("wait", 0, 1, waiting)):
        yield


def _check_unchanged(recipe: Recipe, tasks: TaskSet) -> None:
    """Raise RunError when this folder was trained with other settings or tasks; record them on the first run."""
    path = recipe.train_dir / "config.json"
    digest = hashlib.sha256("".join(task.id for task in tasks).encode()).hexdigest()[:16]
    now = json.loads(json.dumps(flatten({"trainer": dataclasses.asdict(recipe.trainer), "tasks": digest})))
    if not path.exists():
        _write_json(path, now)
    old = json.loads(path.read_text(encoding="utf-8"))
    for key in sorted({*old, *now}):
        if old.get(key) != now.get(key):
            raise RunError(
                f"{recipe.train_dir} was trained with {key} = {old.get(key)!r}, now it is {now.get(key)!r}; "
                f"set it back, give the run another [run] name, or delete {recipe.train_dir} to train anew"
            )


def _log_stage(recipe: Recipe, stage: str, seconds: float, counts: dict[str, int]) -> None:
    with (recipe.run_dir / "stages.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"stage": stage, "seconds": seconds, "ended": "done", "counts": counts}) + "\n")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(content, indent=1))
