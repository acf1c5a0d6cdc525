"""What must not be in a task set: the same task twice, tasks of an earlier set, items of a benchmark, refused licences.

    screen = Screen(ScreenConfig(near=0.8, benchmarks=("gsm8k_test.jsonl",)), open_embedder("hashing"))
    for task in tasks:
        if (found := screen.finding(task)) is None:
            screen.add(task)

What is found depends on the tasks added before, and on their order. No benchmark is shipped or stored: the user's files are
read each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgsynth.concept import allows
from kgsynth.embed import Embedder
from kgsynth.errors import ConfigError
from kgsynth.screen.benchmark import items_of
from kgsynth.screen.near import Near, asked
from kgsynth.screen.overlap import Benchmarks, Limits, is_long
from kgsynth.screen.text import content
from kgsynth.task import Task, TaskSet

OPEN, CLOSE = "<answer>", "</answer>"
CHECKS = ("licence", "contaminated", "duplicate")  # in this order; the first that finds something is told


@dataclass(frozen=True, kw_only=True)
class ScreenConfig:
    """[screen]: what a task set is compared with, and how much alike is too much. Shares are between 0 and 1."""

    near: float = 0.8  # Jaccard similarity from which two tasks with the same answer are one; 0: not looked for
    earlier: tuple[str, ...] = ()  # task sets (JSONL) that must not be repeated; they need `near`
    benchmarks: tuple[str, ...] = ()  # files of items that must not be in the set: FILE or FILE:column+column
    licences: tuple[str, ...] = ()  # allowed of every cited source, e.g. ["PSF-2.0", "CC-BY-*"]; empty: any
    overlap: float = 0.9  # share of an item that a task has: verbatim, or reordered
    renumbered: float = 0.9  # the same, with every number taken for the same one
    run: int = 60  # words in a row that both have; 13 is the rule of GPT-3, and finds every quotation
    similar: float = 0.93  # cosine of embeddings; 0: not looked at

    def __post_init__(self) -> None:
        for name in ("near", "overlap", "renumbered", "similar"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"[screen] {name} must be between 0 and 1, not {value}")
        if self.overlap == 0 or self.renumbered == 0:
            raise ConfigError("[screen] overlap and renumbered must be above 0: at 0 every task would be found")
        if self.run < 13:
            raise ConfigError(f"[screen] run must be at least 13 words, not {self.run}: fewer stand anywhere")
        if self.earlier and not self.near:
            raise ConfigError("[screen] earlier is compared by near, which is 0; set near = 0.8")

    @property
    def on(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.near or self.benchmarks or self.licences)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is wrong with a task. `check` is one of CHECKS; evidence is plain JSON."""

    check: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Screen:
    """Looks at tasks one by one, and remembers those that were added."""

    def __init__(self, config: ScreenConfig, embedder: Embedder | None = None) -> None:
        """Reads the benchmarks and the earlier sets. Raises TaskError, naming the file that cannot be read."""
        self.config = config
        embedder = embedder if config.similar else None
        limits = Limits(
            overlap=config.overlap, renumbered=config.renumbered, run=config.run, similar=config.similar
        )  # fmt: skip
        items = [item for named in config.benchmarks for item in items_of(named)]
        self._benchmarks = Benchmarks(items, limits, embedder) if items else None
        self._near = Near(config.near, config.similar, embedder) if config.near else None
        for path in config.earlier:
            for task in TaskSet.load(path):
                self._remember(task, Path(path).name)

    def finding(self, task: Task) -> Finding | None:
        """The first thing that is wrong with a task, or None. The task is not remembered: see `add`."""
        return self._licence(task) or self._contaminated(task) or self._duplicate(task)

    def add(self, task: Task) -> None:
        """Remember a task that is kept: later ones are compared with it."""
        self._remember(task, "this set")

    def _remember(self, task: Task, where: str) -> None:
        if self._near:
            self._near.add(asked(task, where))
        if self._benchmarks:
            self._benchmarks.add(task.type, content(task.prompt))

    def _licence(self, task: Task) -> Finding | None:
        spans = task.provenance.spans
        refused = {
            licence: span.url
            for span, licence in zip(spans, task.provenance.licences, strict=False)
            if not allows(self.config.licences, licence)
        }
        if not refused:
            return None
        told = ", ".join(f"{licence or 'unknown'} ({url})" for licence, url in sorted(refused.items()))
        return Finding(
            check="licence", message=f"not among the licences allowed: {told}", evidence={"refused": refused}
        )

    def _contaminated(self, task: Task) -> Finding | None:
        found = self._benchmarks.worst(task.type, _texts(task)) if self._benchmarks else None
        if found is None:
            return None
        item = found.item
        told = (
            f"{found.measure} {found.value:.2f}" if found.value <= 1 else f"{found.measure} of {found.value:.0f} words"
        )
        return Finding(
            check="contaminated",
            message=f"{item.part} {item.index} of {item.benchmark}: {told}: {found.shared[:120]!r}",
            evidence=found.evidence(),
        )

    def _duplicate(self, task: Task) -> Finding | None:
        twin = self._near.twin(asked(task)) if self._near else None
        if twin is None:
            return None
        return Finding(
            check="duplicate",
            message=f"asks what {twin.other.id} of {twin.other.where} asks: {twin.measure} {twin.value:.2f}",
            evidence=twin.evidence(),
        )


def _texts(task: Task) -> list[str]:
    """What is compared with a benchmark: what the policy reads, and a reference that is long enough to be known by."""
    reference = task.reference.replace(OPEN, "").replace(CLOSE, "").strip()
    return [
        content(task.prompt),
        *(image.source for image in task.images),
        *([reference] if is_long(reference) else []),
    ]


__all__ = ["CHECKS", "Finding", "Screen", "ScreenConfig"]
