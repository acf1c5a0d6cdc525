from __future__ import annotations

import pytest

from trainer.advantage import group_advantages


def test_reward_minus_the_mean_of_the_whole_group() -> None:
    assert group_advantages([1.0, 0.0, 0.0, 0.0]) == [0.75, -0.25, -0.25, -0.25]


def test_leave_one_out_subtracts_the_mean_of_the_others() -> None:
    rewards = [1.0, 0.5, 0.0]
    others = [r - (sum(rewards) - r) / 2 for r in rewards]
    assert group_advantages(rewards, leave_one_out=True) == pytest.approx(others)


@pytest.mark.parametrize("rewards", [[1.0, 1.0, 1.0], [0.0, 0.0], [0.5], [0.3, 0.3 + 1e-9], [None, None], [None, 1.0]])
def test_a_unanimous_group_teaches_nothing(rewards: list[float | None]) -> None:
    assert group_advantages(rewards) is None


def test_no_spread_however_small_is_blown_up() -> None:
    """Division by a standard deviation near zero once gave advantages in the thousands."""
    advantages = group_advantages([0.5, 0.5, 0.5001])
    assert advantages is not None
    assert max(abs(a) for a in advantages if a is not None) < 1e-4


def test_a_failed_rollout_is_neither_in_the_baseline_nor_in_the_gradient() -> None:
    assert group_advantages([1.0, None, 0.0]) == [0.5, None, -0.5]


def test_advantages_of_a_group_sum_to_zero() -> None:
    advantages = group_advantages([0.1, 0.9, 0.4, 1.0])
    assert advantages is not None
    assert sum(a for a in advantages if a is not None) == pytest.approx(0.0)
