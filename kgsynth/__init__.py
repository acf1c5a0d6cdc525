"""kgsynth: grow a concept DAG from real documents and make tasks with verifiable rewards from it.

    import kgsynth as kg

    recipe = kg.load_recipe("recipes/demo.toml", ["run.name=mine", "grow.max_concepts=100"])
    with kg.open_run(recipe) as run:
        kg.grow_graph(run)
        tasks = kg.make_tasks(run)

    sandbox = kg.open_sandbox()
    audited = [kg.audit_task(task, sandbox) for task in tasks]
    kg.export_tasks(tasks, "mine-trl", "trl", kg.ExportOptions(name="mine"))

Names load when they are first used: importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgsynth.attack import attacks_on
    from kgsynth.attack.campaign import campaign, held
    from kgsynth.audit import audit as audit_task
    from kgsynth.audit import tally
    from kgsynth.calibrate import attempt, by_label, calibrated
    from kgsynth.concept import Concept, Edge, Source, SourceSpan
    from kgsynth.consensus import ConsensusConfig
    from kgsynth.consensus import consensus as find_consensus
    from kgsynth.coverage import coverage as find_coverage
    from kgsynth.embed import open_embedder
    from kgsynth.export import Options as ExportOptions
    from kgsynth.export import export as export_tasks
    from kgsynth.export.foreign import Foreign, read_tasks
    from kgsynth.graph import ConceptGraph
    from kgsynth.llm import LLM
    from kgsynth.llm.config import LLMConfig
    from kgsynth.llm.openai import OpenAIChat
    from kgsynth.recipe import load_recipe
    from kgsynth.report import write_report
    from kgsynth.retrieve import Context, Insufficient, Web
    from kgsynth.retrieve import retrieve as retrieve_passages
    from kgsynth.sample import SampleConfig, plan
    from kgsynth.sandbox import open_sandbox
    from kgsynth.screen import Screen, ScreenConfig
    from kgsynth.stages import grow_graph, make_tasks, open_run
    from kgsynth.store import open_store
    from kgsynth.synthesize import Rejection, SynthesisEnv, TaskType, draft, survey, task_type
    from kgsynth.task import Calibration, Image, Provenance, Task, TaskSet, VerifierSpec
    from kgsynth.validate import ValidateConfig
    from kgsynth.validate import validate as validate_task
    from kgsynth.verifiers import Verdict, verify
    from kgsynth.verifiers.pictures.shown import render_png

__version__ = "0.1.0"

_HOMES = {
    "attack": ("attacks_on",),
    "attack.campaign": (
        "campaign",
        "held",
    ),
    "audit": ("tally",),
    "calibrate": (
        "attempt",
        "by_label",
        "calibrated",
    ),
    "concept": (
        "Concept",
        "Edge",
        "Source",
        "SourceSpan",
    ),
    "consensus": ("ConsensusConfig",),
    "embed": ("open_embedder",),
    "export.foreign": (
        "Foreign",
        "read_tasks",
    ),
    "graph": ("ConceptGraph",),
    "llm": ("LLM",),
    "llm.config": ("LLMConfig",),
    "llm.openai": ("OpenAIChat",),
    "recipe": ("load_recipe",),
    "report": ("write_report",),
    "retrieve": (
        "Context",
        "Insufficient",
        "Web",
    ),
    "sample": (
        "SampleConfig",
        "plan",
    ),
    "sandbox": ("open_sandbox",),
    "screen": (
        "Screen",
        "ScreenConfig",
    ),
    "stages": (
        "grow_graph",
        "make_tasks",
        "open_run",
    ),
    "store": ("open_store",),
    "synthesize": (
        "Rejection",
        "SynthesisEnv",
        "TaskType",
        "draft",
        "survey",
        "task_type",
    ),
    "task": (
        "Calibration",
        "Image",
        "Provenance",
        "Task",
        "TaskSet",
        "VerifierSpec",
    ),
    "validate": ("ValidateConfig",),
    "verifiers": (
        "Verdict",
        "verify",
    ),
    "verifiers.pictures.shown": ("render_png",),
}
_RENAMED = {  # functions whose module has the same name, and a package has only one attribute of a name
    "ExportOptions": ("export", "Options"),
    "audit_task": ("audit", "audit"),
    "export_tasks": ("export", "export"),
    "find_consensus": ("consensus", "consensus"),
    "find_coverage": ("coverage", "coverage"),
    "retrieve_passages": ("retrieve", "retrieve"),
    "validate_task": ("validate", "validate"),
}
_PLACES = {**{name: (module, name) for module, names in _HOMES.items() for name in names}, **_RENAMED}
__all__ = [
    "LLM",
    "Calibration",
    "Concept",
    "ConceptGraph",
    "ConsensusConfig",
    "Context",
    "Edge",
    "ExportOptions",
    "Foreign",
    "Image",
    "Insufficient",
    "LLMConfig",
    "OpenAIChat",
    "Provenance",
    "Rejection",
    "SampleConfig",
    "Screen",
    "ScreenConfig",
    "Source",
    "SourceSpan",
    "SynthesisEnv",
    "Task",
    "TaskSet",
    "TaskType",
    "ValidateConfig",
    "Verdict",
    "VerifierSpec",
    "Web",
    "attacks_on",
    "attempt",
    "audit_task",
    "by_label",
    "calibrated",
    "campaign",
    "draft",
    "export_tasks",
    "find_consensus",
    "find_coverage",
    "grow_graph",
    "held",
    "load_recipe",
    "make_tasks",
    "open_embedder",
    "open_run",
    "open_sandbox",
    "open_store",
    "plan",
    "read_tasks",
    "render_png",
    "retrieve_passages",
    "survey",
    "tally",
    "task_type",
    "validate_task",
    "verify",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'kgsynth' has no attribute {name!r}")
    module, there = _PLACES[name]
    return getattr(importlib.import_module(f"kgsynth.{module}"), there)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
