"""Code-picture pairs as data: the document that draws a picture, and the picture, for training on either direction.

export_pairs(tasks, "pairs", sandbox)      # pairs/pairs.jsonl, pairs/images/*.png

Pictures are rendered by Chromium in the sandbox. One row per picture, whatever number of tasks shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kgsynth.concept import content_id
from kgsynth.files import write_atomically
from kgsynth.sandbox import Sandbox
from kgsynth.task import Image, Task
from kgsynth.verifiers.pictures.shown import render_png

PAIRS, IMAGES = "pairs.jsonl", "images"


def export_pairs(
    tasks: Iterable[Task],
    folder: str | Path,
    sandbox: Sandbox,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write every picture of the tasks with its code; returns how many pairs the folder holds for them.

    Each row of `pairs.jsonl` has id, code, format ("svg" or "html"), width, height, image (a path relative to the folder),
    tasks (their ids), licences and spans (of the sources the content comes from, licences in the order of the spans).
    What was rendered before, by a call that ended or was killed, is kept; the rows are written last and at once.
    on_progress(done, total) is called after each picture. Raises SandboxError when nothing can be rendered.
    """
    folder = Path(folder)
    rows = _rows(tasks)
    (folder / IMAGES).mkdir(parents=True, exist_ok=True)
    for done, (image, row) in enumerate(rows, 1):
        path = folder / row["image"]
        if not path.exists():
            write_atomically(path, render_png(image, sandbox))
        on_progress(done, len(rows))
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for _, row in rows)
    write_atomically(folder / PAIRS, "".join(lines))
    return len(rows)


def _rows(tasks: Iterable[Task]) -> list[tuple[Image, dict[str, Any]]]:
    """One row per picture, in the order in which the tasks show them."""
    found: dict[str, tuple[Image, dict[str, Any]]] = {}
    for task in tasks:
        for image in task.images:
            pair = content_id("pair", image.format, f"{image.width}x{image.height}", image.source)
            row = found.setdefault(pair, (image, _row(pair, image, task)))[1]
            row["tasks"].append(task.id)
    return list(found.values())


def _row(pair: str, image: Image, task: Task) -> dict[str, Any]:
    sources = task.provenance
    return {
        "id": pair,
        "code": image.source,
        "format": image.format,
        "width": image.width,
        "height": image.height,
        "image": f"{IMAGES}/{pair}.png",
        "tasks": [],
        "licences": list(sources.licences),
        "spans": [{"url": s.url, "start": s.start, "end": s.end, "text": s.text} for s in sources.spans],
    }
