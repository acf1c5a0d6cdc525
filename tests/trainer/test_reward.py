from __future__ import annotations

from typing import cast

import pytest

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import Sandbox, open_sandbox
from tests.trainer.tasks import build_tasks
from trainer.config import RLConfig
from trainer.env import TaskEnv
from trainer.generate import Sample
from trainer.reward import Rewarder
from trainer.rl import describe, to_lesson
from trainer.rollout import Rollout, RolloutGroup

CODE = build_tasks(1, kinds=["implement"])[0]


class BrokenSandbox:
    """A real failure at the edge: no box can be made. Counts how often it was asked for one."""

    name = "broken"
    python = ("python",)

    def __init__(self) -> None:
        self.asked = 0

    def run(self, *_: object, **__: object):
        self.asked += 1
        raise SandboxError("no user namespaces")


def test_references_are_right_and_planted_answers_wrong() -> None:
    tasks = build_tasks(10)
    rewarder = Rewarder.for_tasks(tasks)
    pairs = [(task, text) for task in tasks for text in (task.reference, *task.wrong, "")]
    scores = rewarder.score(pairs)
    assert [s.reward for s in scores] == [float(text == task.reference) for task, text in pairs]


def test_equal_replies_are_verified_once() -> None:
    class Counting:
        name = "counting"

        def __init__(self) -> None:
            self.runs, self.inner = 0, open_sandbox()
            self.python = self.inner.python

        def run(self, *args, **kwargs):
            self.runs += 1
            return self.inner.run(*args, **kwargs)

    sandbox = Counting()
    rewarder = Rewarder(cast(Sandbox, sandbox))
    rewarder.score([(CODE, CODE.reference)] * 5)
    assert [s.reward for s in rewarder.score([(CODE, CODE.reference), (CODE, CODE.wrong[0])])] == [1.0, 0.0]
    assert sandbox.runs == 2


def test_a_sandbox_failure_is_a_failed_rollout_not_a_zero() -> None:
    sandbox = BrokenSandbox()
    rewarder = Rewarder(cast(Sandbox, sandbox))
    (score,) = rewarder.score([(CODE, CODE.reference)])
    assert score.reward is None
    assert "no user namespaces" in score.reason
    asked = sandbox.asked
    rewarder.score([(CODE, CODE.reference)])
    assert sandbox.asked > asked, "a failure must not be remembered as a result"


def test_a_misconfigured_task_stops_the_run() -> None:
    with pytest.raises(VerifierError, match="sandbox"):
        Rewarder(None).score([(CODE, CODE.reference)])


def _group(*rewards: float | None, ids: tuple[tuple[int, ...], ...] | None = None) -> RolloutGroup:
    env = TaskEnv(index=0, task=CODE, prompt=(9, 9), reference=(1,), budget=4)
    ids = ids or tuple((10 + i, 1) for i in range(len(rewards)))
    samples = [
        Sample(ids=i, rollout_logprobs=(-0.5,) * len(i), policy_version=(0,) * len(i), finished=True) for i in ids
    ]
    rollouts = [Rollout(sample=s, reward=r, reason="") for s, r in zip(samples, rewards, strict=True)]
    return RolloutGroup(env=env, rollouts=tuple(rollouts))


def test_failed_rollouts_are_in_no_gradient_and_no_mean() -> None:
    group = _group(1.0, None, 0.0)
    lesson = to_lesson(group, RLConfig())
    assert lesson is not None
    assert lesson.replies.replies == ((10, 1), (12, 1))
    assert lesson.advantages == (0.5, 0.5, -0.5, -0.5)
    assert group.mean == 0.5
    numbers = describe([group])
    assert (numbers["reward"], numbers["failed"]) == (0.5, 1.0)


def test_equal_replies_are_one_row_with_their_count_as_weight() -> None:
    lesson = to_lesson(_group(1.0, 0.0, 1.0, 0.0, ids=((10, 1), (11, 1), (10, 1), (12, 1))), RLConfig())
    assert lesson is not None
    assert lesson.replies.replies == ((10, 1), (11, 1), (12, 1))
    assert lesson.weights == (2.0, 2.0, 1.0, 1.0, 1.0, 1.0)


def test_unanimous_groups_are_dropped_and_counted() -> None:
    assert to_lesson(_group(0.0, 0.0), RLConfig()) is None
    assert describe([_group(0.0, 0.0), _group(1.0, 0.0)])["unanimous"] == 0.5


def test_a_step_without_any_verified_rollout_stops_the_run() -> None:
    with pytest.raises(SandboxError, match="no rollout"):
        describe([_group(None, None)])
