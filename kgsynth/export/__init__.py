"""Task sets in the formats that trainers and evaluators read, and back.

`export(tasks, folder, to)` makes a folder that appears whole or not at all; stopped, the same call goes on.
What verifies a task travels in private columns or files, which no policy is shown; licences and sources go along.
Each format is a module here with `write(tasks, out)`; `pairs` has pictures for rows, not tasks.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgsynth.concept import text_hash
from kgsynth.errors import TaskError
from kgsynth.export.pictures import Pictures
from kgsynth.export.rows import attribution, require_parquet
from kgsynth.export.staging import Staging, staged
from kgsynth.sandbox import open_sandbox
from kgsynth.task import Task, TaskSet

FORMATS = ("trl", "verl", "verifiers", "harbor", "huggingface", "pairs")
IMAGE = (
    f"python:{sys.version_info.major}.{sys.version_info.minor}-slim-bookworm"  # the Python that tasks were made with
)
VERSION = 1  # of the layouts; an export begun with another one is begun anew


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to export. `image`, `shared` and `organisation` are for Harbor, `prompt` is for TRL, `audit` for the card."""

    name: str  # of the data set or package
    held_out: float = 0.1  # share of the concepts whose tasks go to the split `test`
    seed: int = 0  # of that split
    prompt: str = "messages"  # or "text"
    image: str = IMAGE  # of containers
    shared: bool = False  # grade in the agent's container
    organisation: str = "kgsynth"
    audit: str = ""  # what an audit said of the set, as JSON

    def __post_init__(self) -> None:
        if not 0 <= self.held_out <= 1:
            raise TaskError(f"--held-out must be a share between 0 and 1, not {self.held_out:g}")
        for name in ("image", "organisation"):
            if not getattr(self, name).strip():
                raise TaskError(f"--{name} is empty; name one, or leave it out")


@dataclass(kw_only=True)
class Exporting:
    """An export under way, as the formats see it."""

    options: Options
    staging: Staging
    pictures: Pictures
    show: Callable[[int, str], None]  # (tasks done, what was left out)
    done: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> tasks

    def advance(self) -> None:
        """One more task is done."""
        self.done += 1
        self.show(self.done, f"{self.left_out.total()} left out" if self.left_out else "")

    def keeps(self, task: Task, fault: str) -> bool:
        """Whether a task can be exported: it has no `fault`. What has one is counted under it."""
        if fault:
            self.left_out[fault] += 1
            self.advance()
        return not fault


def export(
    tasks: TaskSet,
    folder: str | Path,
    to: str,
    options: Options,
    *,
    sandbox: str = "bubblewrap",
    show: Callable[[int, str], None] = lambda done, note: None,
) -> dict[str, Any]:
    """Write a task set as `to`, one of FORMATS. Returns figures: tasks written, left out and why, rows per split.

    `sandbox` is where pictures are rendered. Raises TaskError for an unknown format or an empty set, RunError when the
    folder holds something else, SandboxError when pictures cannot be rendered here.
    """
    if to not in FORMATS:
        raise TaskError(f"no format {to!r}; there are {', '.join(FORMATS)}")
    if not len(tasks):
        raise TaskError("the task set is empty: there is nothing to export")
    pictured = any(task.images for task in tasks)
    if to == "pairs" and not pictured:
        raise TaskError("no task has a picture: there are no pairs to export")
    if to in ("verl", "huggingface") or (to == "trl" and pictured):
        require_parquet()
    folder, content = Path(folder), text_hash("".join(task.to_json() + "\n" for task in tasks))
    mark = {"format": to, "version": VERSION, "tasks": len(tasks), "content": content, "options": asdict(options)}
    with staged(folder, mark) as staging:
        if staging is None:
            return {"format": to, "folder": str(folder), "tasks": len(tasks), "exported_before": True}
        pictures = Pictures(staging, lambda: open_sandbox(sandbox))
        out = Exporting(options=options, staging=staging, pictures=pictures, show=show)
        try:
            figures = (
                _pairs(tasks, out) if to == "pairs" else importlib.import_module(f"{__name__}.{to}").write(tasks, out)
            )
        finally:
            pictures.close()
        pictures.forget()
    written = len(tasks) - out.left_out.total()
    return {"format": to, "folder": str(folder), "tasks": written, **figures, "left_out": dict(out.left_out)}


def _pairs(tasks: TaskSet, out: Exporting) -> dict[str, Any]:
    """Pictures with the code that draws them. What has no picture is left out."""
    from kgsynth.export.pairs import export_pairs

    kept = [task for task in tasks if out.keeps(task, "" if task.images else "it has no picture")]
    out.staging.put("ATTRIBUTION.md", attribution(kept))
    done = out.done
    return {"pairs": export_pairs(kept, out.staging.path, out.pictures.sandbox, lambda n, _: out.show(done + n, ""))}
