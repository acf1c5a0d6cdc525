"""The two loops: they learn, they pick tasks as they say, and they use exactly the ids that were sampled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kgsynth.errors import RunError
from tests.trainer.conftest import small_model
from tests.trainer.tasks import build_tasks
from trainer import rl, sft
from trainer.config import EvalConfig, OptimizerConfig, RLConfig, SFTConfig
from trainer.env import TaskEnv, make_envs
from trainer.eval import evaluate
from trainer.metrics import read_metrics
from trainer.model import KimiLinear
from trainer.policy import TinyPolicy
from trainer.reward import Rewarder
from trainer.tokenizer import Tokenizer

FAST = OptimizerConfig(lr=0.02, adamw_lr=0.02, warmup=2)


@pytest.fixture
def envs(tokenizer: Tokenizer) -> list[TaskEnv]:
    return make_envs(build_tasks(8, kinds=["choice"]), tokenizer, max_prompt_tokens=512, max_new_tokens=16)


@pytest.fixture
def learner(tokenizer: Tokenizer) -> TinyPolicy:
    return TinyPolicy(KimiLinear(small_model(tokenizer), seed=0), tokenizer)


def test_sft_then_rl_raise_the_reward(learner: TinyPolicy, envs: list[TaskEnv], tmp_path: Path) -> None:
    """The cold start teaches the form; verified reward alone then teaches which letter is right."""
    rewarder, measure = Rewarder(), EvalConfig(samples=8)
    start = evaluate(learner, envs, rewarder, measure, seed=(0,)).reward
    sft.train(learner, envs, SFTConfig(steps=13, batch_size=8, optimizer=FAST), run_dir=tmp_path, seed=0)
    middle = evaluate(learner, envs, rewarder, measure, seed=(0,)).reward
    rl.train(learner, envs, rewarder, RLConfig(steps=25, prompts=8, optimizer=FAST), run_dir=tmp_path, seed=0)
    end = evaluate(learner, envs, rewarder, measure, seed=(0,)).reward
    assert start < 0.05
    assert middle > 0.1
    assert end > middle + 0.2
    rows = read_metrics(tmp_path / "metrics.jsonl")
    first = next(row for row in rows if row["stage"] == "rl")
    assert first["clipped"] == 0
    assert first["mismatch_kl"] < 1e-6, "before its first update the policy is the sampler"
    assert learner.version == 13 + 25


def test_sft_passes_over_every_task_once_per_epoch(envs: list[TaskEnv]) -> None:
    config = SFTConfig(batch_size=3)
    seen = [env.index for step in range(8) for env in sft.pick(envs, config, 0, step)]
    for epoch in range(3):
        assert sorted(seen[8 * epoch : 8 * epoch + 8]) == list(range(8))
    assert seen[:8] != seen[8:16]
    assert [e.index for e in sft.pick(envs, config, 0, 2)] == seen[6:9], "a step depends on (seed, step) only"


def test_rl_prefers_tasks_that_are_sometimes_solved() -> None:
    rates = torch.tensor([0.0] * 50 + [0.5] * 50 + [1.0] * 50, dtype=torch.float64)
    config = RLConfig(prompts=30, explore=0.01)
    drawn = [i for step in range(20) for i in rl.pick(rates, config, 0, step)]
    assert all(len(set(rl.pick(rates, config, 0, step))) == 30 for step in range(20))
    assert sum(50 <= i < 100 for i in drawn) > 0.8 * len(drawn)
    assert any(i < 50 for i in drawn)
    assert rl.pick(rates, config, 0, 3) == rl.pick(rates.clone(), config, 0, 3)
    assert rl.pick(rates, config, 1, 3) != rl.pick(rates, config, 0, 3)


def test_the_sampled_ids_are_trained_on_not_a_new_tokenisation(policy: TinyPolicy, envs: list[TaskEnv]) -> None:
    """Decoding and encoding again changes tokens: an untrained policy samples bytes that no BPE would keep apart."""
    seen: list[tuple[int, ...]] = []
    wrapped = policy.logprobs

    def spy(batch, **settings):
        seen.extend(reply for item in batch for reply in item.replies)
        return wrapped(batch, **settings)

    policy.logprobs = spy  # type: ignore[method-assign]
    groups = rl.collect(policy, envs, Rewarder(), samples=4, temperature=1.0, seed=(0,))
    forced = [
        rl.RolloutGroup(
            env=g.env,
            rollouts=tuple(
                rl.Rollout(sample=r.sample, reward=float(i % 2), reason="") for i, r in enumerate(g.rollouts)
            ),
        )
        for g in groups
    ]
    lessons = [lesson for g in forced if (lesson := rl.to_lesson(g, RLConfig()))]
    rl._update(policy, rl.Optimizer(policy.model, FAST, steps=1), lessons, RLConfig(), 1.0)
    sampled = [rollout.sample.ids for g in groups for rollout in g.rollouts]
    assert sorted(seen) == sorted(set(sampled))
    again = [tuple(policy.tokenizer.encode(policy.tokenizer.decode(ids))) for ids in sampled]
    assert again != sampled


def test_no_task_is_an_error_that_says_what_to_change(learner: TinyPolicy, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="max_prompt_tokens"):
        sft.train(learner, [], SFTConfig(), run_dir=tmp_path, seed=0)
    with pytest.raises(RunError, match="max_prompt_tokens"):
        rl.train(learner, [], Rewarder(), RLConfig(), run_dir=tmp_path, seed=0)


def test_tasks_that_do_not_fit_are_left_out(tokenizer: Tokenizer) -> None:
    tasks = build_tasks(8)
    longest = max(len(e.prompt) for e in make_envs(tasks, tokenizer, max_prompt_tokens=999, max_new_tokens=99))
    envs = make_envs(tasks, tokenizer, max_prompt_tokens=longest - 1, max_new_tokens=99)
    assert 0 < len(envs) < len(tasks)
    assert all(env.task is tasks[env.index] for env in envs)
    assert all(len(env.reference) <= env.budget <= 99 for env in envs)
