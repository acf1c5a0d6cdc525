"""Tasks as environments."""

from __future__ import annotations

import dataclasses

from kgsynth.task import Image
from tests.trainer.tasks import build_tasks
from trainer.env import make_envs
from trainer.tokenizer import Tokenizer


def test_a_policy_that_reads_text_is_given_no_pictures(tokenizer: Tokenizer) -> None:
    tasks = list(build_tasks(6))
    picture = Image(source="<svg xmlns='http://www.w3.org/2000/svg'/>", format="svg", width=20, height=20)
    tasks[2] = dataclasses.replace(tasks[2], images=(picture,))
    envs = make_envs(tasks, tokenizer, max_prompt_tokens=999, max_new_tokens=999)
    assert [env.index for env in envs] == [0, 1, 3, 4, 5]
