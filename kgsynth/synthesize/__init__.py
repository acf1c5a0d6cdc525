"""From a sample to a task: one file per task type in `types/`, found by name in TYPES. Validation is the caller's next step.

env = SynthesisEnv(graph=graph, search=corpus, reader=Reader(corpus), llm=llm, sandbox=sandbox)
schedule = plan(graph, SampleConfig(tasks=100), await survey(env))
for sample in schedule.samples():
    made = await draft(sample, env)        # Task | Rejection
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kgsynth.concept import Concept
from kgsynth.errors import ConfigError, VerifierError
from kgsynth.sample import Sample, Supply
from kgsynth.synthesize import types
from kgsynth.synthesize.env import DraftConfig, Rejection, SynthesisEnv
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.material import survey as survey_material
from kgsynth.task import Task

AREAS = ("coding", "knowledge", "visual", "long context", "tool use")


@dataclass(frozen=True, kw_only=True)
class TaskType:
    """A kind of task: how many different ones a concept's material can give, and how to draft the one a sample asks for.

    `draft` depends on the graph, the pages, the sample, and on the model where one is used. It gives what the sample's
    scope and difficulty ask for, or a Rejection: never another task.
    """

    name: str
    area: str  # one of AREAS
    why: str  # what makes its reward unarguable, in one sentence
    capacity: Callable[[Material, SynthesisEnv], int]  # different tasks about a concept, whatever their difficulty
    draft: Callable[[Sample, Material, SynthesisEnv], Awaitable[Task | Rejection]]
    scopes: tuple[str, ...] = ("concept",)  # of kgsynth.task.SCOPES: what a task may be about
    difficulties: tuple[str, ...] = ("medium",)  # of kgsynth.task.DIFFICULTIES: what it can be asked to be
    uses_model: bool = False  # it needs a configured model


TYPES: dict[str, TaskType] = {}


def register(task_type: TaskType) -> None:
    """Raises VerifierError when the name is taken."""
    if task_type.name in TYPES:
        raise VerifierError(f"task type {task_type.name!r} is registered twice")
    TYPES[task_type.name] = task_type


async def survey(env: SynthesisEnv) -> Supply:
    """Read every concept's pages, once, and say what the types offer and how many tasks a concept's material can give."""
    if env.material is None:
        env.material = await survey_material(env)
    material = env.material

    def capacity(kind: str, concept: Concept) -> int:
        return task_type(kind).capacity(material[concept.id], env)

    return Supply(
        capacity=capacity,
        scopes={name: found.scopes for name, found in TYPES.items()},
        difficulties={name: found.difficulties for name, found in TYPES.items()},
        sources={concept: found.pages[0].source.id for concept, found in material.items() if found.pages},
    )


async def draft(sample: Sample, env: SynthesisEnv) -> Task | Rejection:
    """The task a sample asks for, or why there is none. Depends on the graph, the pages and the sample only (and the LLM).

    Raises ConfigError for an unknown task type, SandboxError when the sandbox breaks, BudgetError when a cap is reached.
    """
    await survey(env)
    assert env.material is not None
    return await task_type(sample.type).draft(sample, env.material[sample.concept], env)


def task_type(name: str) -> TaskType:
    """The registered type. Raises ConfigError naming those that are."""
    if name not in TYPES:
        raise ConfigError(f"[sample.types] unknown task type {name!r}; known: {', '.join(sorted(TYPES))}")
    return TYPES[name]


for _module in pkgutil.iter_modules(types.__path__):  # each registers itself
    importlib.import_module(f"{types.__name__}.{_module.name}")

__all__ = [
    "AREAS",
    "TYPES",
    "DraftConfig",
    "Rejection",
    "SynthesisEnv",
    "TaskType",
    "draft",
    "register",
    "survey",
    "task_type",
]
