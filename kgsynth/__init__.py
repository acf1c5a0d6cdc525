"""kgsynth: grow a concept DAG from real documents and make tasks with verifiable rewards from it.

    import kgsynth as kg

    recipe = kg.load_recipe("recipes/demo.toml", ["run.name=mine", "grow.max_concepts=100"])
    with kg.open_run(recipe) as run:
        kg.grow_graph(run)
        tasks = kg.make_tasks(run)

Names load when they are first used: importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgsynth.concept import Concept, Edge, Source, SourceSpan
    from kgsynth.graph import ConceptGraph
    from kgsynth.recipe import load_recipe
    from kgsynth.report import write_report
    from kgsynth.sandbox import open_sandbox
    from kgsynth.stages import grow_graph, make_tasks, open_run
    from kgsynth.store import open_store
    from kgsynth.task import Task, TaskSet
    from kgsynth.verifiers import Verdict, verify

__version__ = "0.1.0"

_HOMES = {
    "concept": ("Concept", "Edge", "Source", "SourceSpan"),
    "graph": ("ConceptGraph",),
    "report": ("write_report",),
    "sandbox": ("open_sandbox",),
    "recipe": ("load_recipe",),
    "stages": ("grow_graph", "make_tasks", "open_run"),
    "store": ("open_store",),
    "task": ("Task", "TaskSet"),
    "verifiers": ("Verdict", "verify"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = [
    "Concept",
    "ConceptGraph",
    "Edge",
    "Source",
    "SourceSpan",
    "Task",
    "TaskSet",
    "Verdict",
    "grow_graph",
    "load_recipe",
    "make_tasks",
    "open_run",
    "open_sandbox",
    "open_store",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'kgsynth' has no attribute {name!r}")
    return getattr(importlib.import_module(f"kgsynth.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
