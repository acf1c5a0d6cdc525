"""A task for each verifier, with sources and licences, to be exported."""

from __future__ import annotations

from dataclasses import replace

from kgsynth.concept import Concept, Source
from kgsynth.task import Calibration, Image, Provenance, Task, TaskSet
from tests import fair
from tests.hackable import CHOICE, CIRCLE, FUNCTION, LITERAL, PICTURE, PROGRAMS, TEXT, WORLD, of_case

SOURCES = (
    Source(url="https://docs.example.org/a", title="A", text="Hash tables map keys to values.", licence="CC-BY-4.0"),
    Source(url="https://docs.example.org/b|c", title="B", text="A heap is a tree.", licence="MIT"),
)
OF_CASES = ("number", "span", "listed", "mathematics", "json_schema", "properties")


def one_of_each(*, pictures: bool = True) -> TaskSet:
    """13 verifiers; with `pictures` also the two that need a browser, and a question about a picture."""
    tasks = [TEXT, CHOICE, LITERAL, FUNCTION, WORLD, *PROGRAMS.values()]
    tasks += [of_case(fair.load()[name][0]) for name in OF_CASES]
    if pictures:
        tasks += [PICTURE, replace(TEXT, prompt="What colour is the disc? <answer></answer>", images=(DISC,))]
    return TaskSet(_sourced(task, i) for i, task in enumerate(tasks))


DISC = Image(source=CIRCLE.format("#c00"), format="svg", width=64, height=64)


def _sourced(task: Task, number: int) -> Task:
    concept, source = Concept(name=f"concept {number}", domain="d"), SOURCES[number % 2]
    made = Provenance(
        concepts=(concept.id,), names=(concept.name,), spans=(source.span(0, 6),), licences=(source.licence,),
        author="programmatic", seed=3, index=number, dates=("2026-11-30T00:00:00Z",),
    )  # fmt: skip
    found = Calibration(policy="p", attempts=8, pass_rate=0.5, low=0.2, high=0.8, label="medium", b0=90)
    prompt = task.prompt + " \N{SNOWMAN}\u2028|\x7f"  # what files and tables may trip over
    return replace(task, prompt=prompt, provenance=made, calibration=found if number % 2 else None)
