"""Tasks as lines of JSON: there and back, and what is said of a line that is none."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from kgsynth.errors import TaskError
from kgsynth.task import Task
from tests.peers.tasks import one_of_each

ROW = json.loads(one_of_each(pictures=False)[0].to_json())


def test_tasks_come_back_as_they_were() -> None:
    for task in one_of_each(pictures=True):
        assert Task.from_json(task.to_json()) == task


def _without(*path: str) -> dict[str, Any]:
    row = json.loads(json.dumps(ROW))
    at = row
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return row


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([1, 2], "no JSON object in '[1, 2]'"),
        ("x", "no JSON object in"),
        (None, "no JSON object in 'null'"),
        ({}, "the key 'verifier' is missing in '{}'"),
        (_without("prompt"), "the key 'prompt' is missing in "),
        (_without("wrong"), "the key 'wrong' is missing in "),
        (_without("verifier", "name"), "the key 'name' of 'verifier' is missing in "),
        (_without("provenance", "author"), "the key 'author' of 'provenance' is missing in "),
        (_without("provenance", "concepts"), "the key 'concepts' of 'provenance' is missing in "),
        ({**ROW, "verifier": 3}, "'verifier' holds no JSON object in "),
        ({**ROW, "images": ["x"]}, "'images' holds no JSON object in "),
        ({**ROW, "wrong": 3}, "'wrong' is no list in "),
        ({**ROW, "marks": 3}, "the key 'marks' is not known in "),
    ],
)
def test_a_line_that_is_no_task_is_told_by_its_key(row: Any, told: str) -> None:
    with pytest.raises(TaskError, match=re.escape(f"not a task: {told}")):
        Task.from_json(json.dumps(row))
