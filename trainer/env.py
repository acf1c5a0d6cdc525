"""A task as an environment of one turn: the prompt is the observation, the reply the action, the verdict the reward.

Left out: tools and further turns. An episode ends with the reply's `<|end|>` or with its token budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kgsynth.task import Task
from trainer.chat import Message, encode_prompt, encode_reply
from trainer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TaskEnv:
    """One task, encoded. `index` is its place in the task set: with a seed it decides all of its randomness."""

    index: int
    task: Task
    prompt: tuple[int, ...]
    reference: tuple[int, ...]  # the reference reply as tokens; only supervised training looks at it
    budget: int  # most tokens of a reply


def make_envs(
    tasks: Sequence[Task], tokenizer: Tokenizer, *, max_prompt_tokens: int, max_new_tokens: int
) -> list[TaskEnv]:
    """Encode the tasks whose prompt and reference fit; compare the lengths to see how many were left out.

    Tasks with pictures are left out: the policy reads text only.
    The budget is 1.5 times the reference and 8 more, at most `max_new_tokens`.
    """
    envs = []
    for index, task in enumerate(tasks):
        if task.images:
            continue
        prompt = encode_prompt([Message(role="user", content=task.prompt)], tokenizer)
        reference = encode_reply(task.reference, tokenizer)
        if len(prompt) <= max_prompt_tokens and len(reference) <= max_new_tokens:
            budget = min(max_new_tokens, len(reference) * 3 // 2 + 8)
            envs.append(TaskEnv(index=index, task=task, prompt=prompt, reference=reference, budget=budget))
    return envs
