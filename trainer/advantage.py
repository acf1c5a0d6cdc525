"""Rewards of one group -> advantages. The baseline is the group's own mean, as in Kimi K1.5/K2.5 and Dr. GRPO.

No division by the standard deviation: it weighs a group more the less its samples disagree, without bound as they
come to agree (Dr. GRPO, arXiv 2503.20783). Failed rollouts (`None`) are neither in the baseline nor in the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

SAME = 1e-6  # rewards closer than this are one reward


def group_advantages(rewards: Sequence[float | None], *, leave_one_out: bool = False) -> list[float | None] | None:
    """Advantages of the K rollouts for one prompt, or None when the group teaches nothing (all scored the same).

    `leave_one_out` subtracts the mean of the *other* rollouts (RLOO, arXiv 2402.14740): K/(K-1) times larger.
    """
    scored = [reward for reward in rewards if reward is not None]
    if len(scored) < 2 or max(scored) - min(scored) < SAME:
        return None
    mean = sum(scored) / len(scored)
    scale = len(scored) / (len(scored) - 1) if leave_one_out else 1.0
    return [None if reward is None else scale * (reward - mean) for reward in rewards]
