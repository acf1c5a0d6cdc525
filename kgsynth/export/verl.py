"""verl: parquet rows, and `compute_score`, its custom reward function.

    python3 -m verl.trainer.main_ppo data.train_files=FOLDER/train.parquet data.val_files=FOLDER/test.parquet \\
        reward.custom_reward_function.path=FOLDER/reward.py ...

Columns as verl documents them ("Prepare data for post-training"): data_source, prompt, ability, reward_model (style,
ground_truth), extra_info (split, index); `images` stand where `<image>` stands in the prompt. `ground_truth` is the
whole task, as one line of JSON: verl shows it to the reward function and to nobody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgsynth.export.rows import about, attribution, parquet, splits_of, user
from kgsynth.export.trl import ABOUT, text_of
from kgsynth.task import Task, TaskSet

if TYPE_CHECKING:
    from kgsynth.export import Exporting

PLACEHOLDERS = ("<image>", "<video>", "<audio>")  # verl puts media there
REWARD = '''\
"""The reward function for verl: reward.custom_reward_function.path=THIS_FILE. Needs kgsynth installed."""

from kgsynth.export.verl import compute_score

__all__ = ["compute_score"]
'''
README = """\
# {name}

{count} tasks for verl. `prompt`{images} is what the policy sees; `reward_model.ground_truth` is private.

```bash
python3 -m verl.trainer.main_ppo data.train_files={name}/train.parquet data.val_files={name}/test.parquet \\
  reward.custom_reward_function.path={name}/reward.py reward.custom_reward_function.name=compute_score
```

Older releases call the setting `custom_reward_function.path`. Sources and licences: ATTRIBUTION.md.
"""


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None, **options: Any
) -> float:
    """verl's reward function: the score of a reply, in [0, 1].

    Raises TaskError when `ground_truth` is no task of ours, SandboxError and VerifierError when it could not be judged:
    verl knows no missing reward, and a zero would be a lie.
    """
    from kgsynth.export.scoring import judge

    return judge(solution_str, ground_truth).score


def write(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """FOLDER/train.parquet, test.parquet and reward.py."""
    pictured, counts = any(task.images for task in tasks), {}
    kept = TaskSet(task for task in tasks if out.keeps(task, _clash(task)))
    for split, part in splits_of(kept, out.options.held_out, out.options.seed).items():
        rows = [_row(index, task, split, out, pictured) for index, task in part]
        out.staging.put(f"{split}.parquet", parquet(rows, _columns(pictured)))
        counts[split] = len(rows)
    out.staging.put("reward.py", REWARD)
    seen = " with `images`" if pictured else ""
    out.staging.put("README.md", README.format(name=out.options.name, count=len(kept), images=seen))
    out.staging.put("ATTRIBUTION.md", attribution(kept))
    return {"splits": counts}


def _clash(task: Task) -> str:
    """verl reads every `<image>` of a prompt with pictures as a place for one."""
    return (
        "its prompt has pictures and says <image>"
        if task.images and any(p in task.prompt for p in PLACEHOLDERS)
        else ""
    )


def _row(index: int, task: Task, split: str, out: Exporting, pictured: bool) -> dict[str, Any]:
    images = {"images": [{"bytes": png} for png in out.pictures.of(task)]} if pictured else {}
    out.advance()
    return {
        "data_source": f"kgsynth/{task.type}",
        "prompt": user("<image>\n" * len(task.images) + task.prompt),
        **images,
        "ability": task.domain,
        "reward_model": {"style": "rule", "ground_truth": task.to_json()},
        "extra_info": {"split": split, "index": index, **about(task)},
    }


def _columns(pictured: bool) -> dict[str, Any]:
    return {
        "data_source": str,
        "prompt": [{"role": str, "content": str}],
        **({"images": [{"bytes": bytes}]} if pictured else {}),
        "ability": str,
        "reward_model": {"style": str, "ground_truth": str},
        "extra_info": {"split": str, "index": int, **ABOUT},
    }


def read(row: dict[str, Any]) -> tuple[str, str] | None:
    """(prompt, answer) of a row that somebody else wrote, or None when it has no such columns."""
    answer = (row.get("reward_model") or {}).get("ground_truth")
    return None if not row.get("prompt") or answer is None else (text_of(row["prompt"]), str(answer))
