"""TRL: rows that `GRPOTrainer` takes as its dataset, and `reward`, one of its reward functions.

    from datasets import load_dataset
    from kgsynth.export.trl import reward

    data = load_dataset("FOLDER")
    GRPOTrainer(model=..., reward_funcs=reward, train_dataset=data["train"], eval_dataset=data["test"])

The policy sees `prompt` (and `images`). TRL hands every other column to the reward function; `task` is the whole task,
with what verifies it, as one line of JSON. Interface: TRL 1.x, "Using a custom reward function" of its GRPO page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kgsynth.export.rows import about, attribution, jsonl, parquet, splits_of, user
from kgsynth.task import Task, TaskSet

if TYPE_CHECKING:
    from kgsynth.export import Exporting

README = """\
# {name}

{count} tasks for TRL's GRPOTrainer. The policy is shown `prompt`{images}; `task` is private.

```python
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

from kgsynth.export.trl import reward

data = load_dataset("{name}")
GRPOTrainer(model="...", reward_funcs=reward, args=GRPOConfig(...), train_dataset=data["train"]).train()
```

Sources and licences: ATTRIBUTION.md.
"""
ABOUT = {
    "id": str, "type": str, "domain": str, "granularity": str, "scope": str, "difficulty": str, "verifier": str,
    "pass_rate": float, "b0": int, "sources": [str], "licences": [str],
}  # fmt: skip
IMAGES = [{"bytes": bytes, "path": str}]
HF_IMAGES = {"feature": {"_type": "Image"}, "_type": "List"}  # as `datasets` writes it into parquet


def reward(completions: Sequence[Any], task: Sequence[str], **columns: Any) -> list[float | None]:
    """TRL's reward function: a score in [0, 1] for each completion, None where it could not be judged.

    `completions`: texts, or conversations whose last message counts. `task`: the column of that name. Raises TaskError
    when the column holds no tasks, SandboxError when no sandbox can be opened on this machine.
    """
    from kgsynth.export.scoring import scores

    return scores([reply_of(completion) for completion in completions], task)


def reply_of(completion: Any) -> str:
    """The text of a completion: itself, or the content of its last message."""
    if isinstance(completion, str):
        return completion
    content = (completion[-1].get("content") if completion else "") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content if part.get("type") == "text")


def write(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """FOLDER/train.jsonl and test.jsonl, parquet when there are pictures."""
    pictured, counts = any(task.images for task in tasks), {}
    for split, part in splits_of(tasks, out.options.held_out, out.options.seed).items():
        rows = [_row(index, task, out, pictured) for index, task in part]
        if pictured:
            out.staging.put(f"{split}.parquet", parquet(rows, _columns(out), _features(out)))
        else:
            out.staging.put(f"{split}.jsonl", jsonl(rows))
        counts[split] = len(rows)
    seen = " and `images`" if pictured else ""
    out.staging.put("README.md", README.format(name=out.options.name, count=len(tasks), images=seen))
    out.staging.put("ATTRIBUTION.md", attribution(tasks))
    return {"splits": counts}


def _row(index: int, task: Task, out: Exporting, pictured: bool) -> dict[str, Any]:
    prompt = task.prompt if out.options.prompt == "text" else user(task.prompt)
    images = {"images": [{"bytes": png, "path": None} for png in out.pictures.of(task)]} if pictured else {}
    out.advance()
    return {"prompt": prompt, **images, "index": index, **about(task), "task": task.to_json()}


def _columns(out: Exporting) -> dict[str, Any]:
    prompt = str if out.options.prompt == "text" else [{"role": str, "content": str}]
    return {"prompt": prompt, "images": IMAGES, "index": int, **ABOUT, "task": str}


def _features(out: Exporting) -> dict[str, str]:
    return {"huggingface": json.dumps({"info": {"features": hf_features(_columns(out))}})}


def hf_features(columns: dict[str, Any]) -> dict[str, Any]:
    """The same columns as `datasets` writes down features: pictures are decoded when they are read."""
    return {name: HF_IMAGES if kind is IMAGES else _feature(kind) for name, kind in columns.items()}


def _feature(kind: Any) -> Any:
    if isinstance(kind, list):
        return {"feature": _feature(kind[0]), "_type": "List"}
    if isinstance(kind, dict):
        return {name: _feature(part) for name, part in kind.items()}
    return {"dtype": {str: "string", int: "int64", float: "float64", bytes: "binary"}[kind], "_type": "Value"}


def read(row: dict[str, Any]) -> tuple[str, str] | None:
    """(prompt, answer) of a row that somebody else wrote, or None when it has no such columns."""
    prompt = next((row[key] for key in ("prompt", "question", "problem") if row.get(key)), None)
    answer = next(
        (row[key] for key in ("answer", "ground_truth", "solution", "label") if row.get(key) is not None), None
    )
    return None if prompt is None or answer is None else (text_of(prompt), str(answer))


def text_of(prompt: Any) -> str:
    """A prompt as one text: a conversation's messages under each other, the system's first."""
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(reply_of([message]) for message in prompt if message.get("role") in ("system", "user"))
