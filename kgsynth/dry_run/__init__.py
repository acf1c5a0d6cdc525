"""`kgsynth grow RECIPE --dry-run`: what growing would do and cost. Nothing goes out, nothing is written.

    plan = plan_of(load_recipe("recipes/demo.toml"))
    print(plan.describe())

How far a graph spreads is guessed level by level: each researched concept brings some new ones, of which some are atomic and
the others are researched in turn, until `max_concepts` or `max_depth`. How many, and how many tokens that takes, is assumed
(the constants below) or, when the run has begun, measured on what it has done so far. Prices are the configured ones.
Repeated requests, repairs and fallbacks come on top: only caps bound them.
"""

from __future__ import annotations

from kgsynth.dry_run.estimate import SECONDS_PER_CALL, Planner
from kgsynth.dry_run.plan import Plan
from kgsynth.recipe import Recipe

__all__ = ["Plan", "plan_of"]


def plan_of(recipe: Recipe, *, seconds_per_call: float = SECONDS_PER_CALL) -> Plan:
    """Work out the plan from the recipe, the environment, and what the run folder holds."""
    return Planner(recipe, seconds_per_call).plan()
