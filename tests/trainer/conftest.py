"""A tokenizer and a policy small enough to run in milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.trainer.tasks import build_tasks
from trainer.config import Recipe, load_recipe
from trainer.model import KimiLinear, ModelConfig, tiny
from trainer.policy import TinyPolicy
from trainer.tokenizer import Tokenizer

RECIPE = """
[run]
name = "small"
dir = "{dir}"

[trainer]
vocab_size = 300
threads = 1

[trainer.model]
hidden_size = 32
layers = 2
full_attn_layers = [2]
kda_heads = 2
kda_head_dim = 16
mla_heads = 2
kv_lora_rank = 16
qk_nope_head_dim = 12
qk_rope_head_dim = 4
v_head_dim = 16
dense_inner = 32
experts = 4
moe_inner = 16

[trainer.sft]
steps = 6
batch_size = 8
checkpoint_every = 2

[trainer.rl]
steps = 6
prompts = 6
samples = 4
checkpoint_every = 2

[trainer.eval]
samples = 2
"""


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([text for t in build_tasks(20) for text in (t.prompt, t.reference)], vocab_size=400)


def small_model(tokenizer: Tokenizer) -> ModelConfig:
    return tiny(
        tokenizer.vocab_size, hidden_size=32, layers=2, full_attn_layers=(2,), kda_heads=2, kda_head_dim=16,
        mla_heads=2, kv_lora_rank=16, qk_nope_head_dim=12, qk_rope_head_dim=4, v_head_dim=16, dense_inner=32,
        experts=4, moe_inner=16,
    )  # fmt: skip


@pytest.fixture
def policy(tokenizer: Tokenizer) -> TinyPolicy:
    """Fresh each time. Its weights are scaled up, so that different inputs give clearly different outputs."""
    model = KimiLinear(small_model(tokenizer), seed=1)
    with torch.no_grad():
        model.model.embed_tokens.weight *= 4
    return TinyPolicy(model, tokenizer)


@pytest.fixture
def recipe_file(tmp_path: Path) -> Path:
    """A recipe with choice tasks in its run folder: quick to verify, no sandbox."""
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(dir=tmp_path / "runs"))
    run_dir = tmp_path / "runs" / "small"
    run_dir.mkdir(parents=True)
    build_tasks(30, kinds=["choice"]).save(run_dir / "tasks.jsonl")
    return path


@pytest.fixture
def recipe(recipe_file: Path) -> Recipe:
    return load_recipe(recipe_file)
