"""TRL takes a step of GRPO on the rows, verl's data set and reward loader read its parquet, `datasets` loads the Hub's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgsynth.task import TaskSet
from tests.peers.conftest import NEEDS_PEERS, PEERS, Exported, importing, peer
from tests.peers.tasks import one_of_each

pytestmark = NEEDS_PEERS

TOKENIZER = """
import json, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
raw = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate([*letters, "<pad>", "<eos>"])}, merges=[]))
raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>")
tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
"""
GRPO = (
    TOKENIZER
    + """
from datasets import load_dataset
from transformers import Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from kgsynth.export.trl import reward
seen = []
def watched(**given):
    seen.append((reward(**given), [type(c).__name__ for c in given["completions"]], sorted(given)))
    return seen[-1][0]
tiny = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1)
args = GRPOConfig(sys.argv[1], per_device_train_batch_size=4, num_generations=2, max_completion_length=4, max_steps=1,
    report_to=[], use_cpu=True, logging_steps=1, save_strategy="no", beta=0.0)
for folder in sys.argv[2:]:
    data = load_dataset(folder)["train"]
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), **tiny))
    trainer = GRPOTrainer(model=model, reward_funcs=watched, args=args, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    rows = list(data)
    prompts, said = [row["prompt"] for row in rows], [json.loads(row["task"])["reference"] for row in rows]
    if not isinstance(prompts[0], str):
        said = [[{"role": "assistant", "content": text}] for text in said]
    right, nothing = (trainer._calculate_rewards(rows, prompts, texts, [[0]] * len(rows)) for texts in (said, [t[:0] for t in said]))
    print("told", json.dumps({"step": trainer.state.global_step, "seen": seen[-3], "right": right.tolist(), "nothing": nothing.tolist()}))
"""
)


@pytest.mark.slow
def test_trl_takes_a_step_of_grpo(exported: Exported, tmp_path: Path) -> None:
    """The trainer itself, on a tiny random model; then its own reward calculation on right and empty completions."""
    forms = {"list": "messages", "str": "text"}
    printed = peer(GRPO, tmp_path, *(exported("trl", "--prompt", form) for form in forms.values()))
    runs = [json.loads(line.removeprefix("told ")) for line in printed.splitlines() if line.startswith("told ")]
    for told, kind in zip(runs, forms, strict=True):
        rewards, kinds, columns = told["seen"]
        assert told["step"] == 1
        assert rewards == [0.0] * 4
        assert set(kinds) == {kind}
        assert {"prompts", "completions", "task", "licences", "sources"} <= set(columns)
        assert len(told["right"]) > 8
        assert {row[0] for row in told["right"]} == {1.0}
        assert {row[0] for row in told["nothing"]} == {0.0}


VERL = (
    TOKENIZER
    + """
from omegaconf import OmegaConf
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
from verl.utils.import_utils import load_extern_object
config = OmegaConf.create({"max_prompt_length": 4000, "cache_dir": sys.argv[2], "filter_overlong_prompts_workers": 1})
data = RLHFDataset(sys.argv[1] + "/train.parquet", tokenizer, config)
compute_score = load_extern_object(sys.argv[1] + "/reward.py", "compute_score")
rows = [data[i] for i in range(len(data))]
batch = collate_fn(rows)
def score(row, said):
    return compute_score(data_source=row["data_source"], solution_str=said, ground_truth=row["reward_model"]["ground_truth"], extra_info=row["extra_info"])
task = lambda row: json.loads(row["reward_model"]["ground_truth"])
judged = [row for row in rows if task(row)["verifier"]["name"] != "mathematics"]  # verl's antlr4 is not math-verify's
print(json.dumps({
    "rows": len(rows), "batch": sorted(batch), "prompts": [row["raw_prompt"] for row in rows],
    "right": [score(row, task(row)["reference"]) for row in judged], "nothing": [score(row, "") for row in judged],
}))
"""
)


@pytest.mark.slow
def test_verl_reads_its_parquet_and_finds_the_reward_function(exported: Exported, texts: Path, tmp_path: Path) -> None:
    folder = exported("verl", "--held-out", "0")
    told = json.loads(peer(VERL, folder, tmp_path, env={"PYTHONPATH": str(PEERS / "verl")}).splitlines()[-1])
    tasks = list(TaskSet.load(texts))
    assert told["rows"] == len(tasks)
    assert told["prompts"] == [[{"role": "user", "content": task.prompt}] for task in tasks]
    assert {"data_source", "ability", "reward_model", "extra_info", "raw_prompt", "index"} <= set(told["batch"])
    assert (set(told["right"]), set(told["nothing"])) == ({1.0}, {0.0})


DATASETS = """
import json, sys
from datasets import load_dataset
from kgsynth.export.trl import reward
data = load_dataset(sys.argv[1])
rows = {split: [dict(row) for row in part.remove_columns("images")] for split, part in data.items()}
pictures = [[picture.size + picture.getpixel((32, 32)) for picture in row["images"]] for part in data.values() for row in part]
print(json.dumps({"rows": rows, "pictures": pictures, "features": {k: str(v) for k, v in data["train"].features.items()}}))
"""


@pytest.mark.slow
def test_datasets_loads_the_folder_with_its_pictures(exported: Exported, tmp_path: Path) -> None:
    """SWE-smith issue 110: pictures and rows go together, in one file."""
    tasks = one_of_each().filter(lambda task: task.images != () or task.verifier.name in ("text", "choice"))
    tasks.save(tmp_path / "tasks.jsonl")
    folder = exported("huggingface", "--held-out", "0.5", "--seed", "3", tasks=tmp_path / "tasks.jsonl")
    told = json.loads(peer(DATASETS, folder).splitlines()[-1])
    rows = sorted((row for part in told["rows"].values() for row in part), key=lambda row: row["index"])
    assert [row["task"] for row in rows] == [task.to_json() for task in tasks]
    assert [pictures for pictures in told["pictures"] if pictures] == [[[64, 64, 204, 0, 0]]]
    assert "Image" in told["features"]["images"]
    concepts = [
        {json.loads(row["task"])["provenance"]["concepts"][0] for row in part} for part in told["rows"].values()
    ]
    assert len(told["rows"]) == 2
    assert not set.intersection(*concepts)


@pytest.mark.parametrize("form", ["trl", "verl", "verifiers"])
def test_what_was_exported_is_imported_byte_for_byte(
    exported: Exported, texts: Path, tmp_path: Path, form: str
) -> None:
    assert importing(exported(form), form, tmp_path / "back.jsonl") == 0
    assert (tmp_path / "back.jsonl").read_bytes() == texts.read_bytes()


def test_rows_of_gsm8k_as_verl_has_them_become_tasks(tmp_path: Path) -> None:
    peer(GSM8K, tmp_path / "gsm8k.parquet")
    options = ("--verifier", "mathematics", "--licence", "MIT", "--domain", "mathematics")
    importing(tmp_path / "gsm8k.parquet", "verl", tmp_path / "tasks.jsonl", *options)
    tasks = TaskSet.load(tmp_path / "tasks.jsonl")
    assert [task.verifier.params["expected"] for task in tasks] == ["72", "10"]
    assert all(task.wrong and task.provenance.licences == ("MIT",) and "####" not in task.prompt for task in tasks)


GSM8K = """
import sys, pyarrow as pa, pyarrow.parquet as pq
ask = ' Let\\'s think step by step and output the final answer after "####".'
questions = [("Natalia sold 48 clips in April and half as many in May. How many in all?", "72"), ("Weng earned $12 an hour for 50 minutes. How much?", "10")]
rows = [{"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": q + ask}], "ability": "math",
         "reward_model": {"style": "rule", "ground_truth": a}, "extra_info": {"split": "train", "index": i}} for i, (q, a) in enumerate(questions)]
pq.write_table(pa.Table.from_pylist(rows), sys.argv[1])
"""
