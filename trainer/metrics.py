"""Numbers per step: metrics.jsonl is the record, TensorBoard a view of it that is rebuilt on resume.

A run that is resumed from step s drops what the killed attempt had logged beyond s, so nothing is there twice.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from torch.utils.tensorboard import SummaryWriter

from kgsynth.files import write_atomically


class Metrics:
    """Appends to <run>/metrics.jsonl and <run>/tb/<stage>. A context manager."""

    def __init__(self, run_dir: Path, stage: str, *, resume_at: int) -> None:
        """Lines of `stage` with step > resume_at are removed first, as is a torn last line."""
        self._stage, path = stage, run_dir / "metrics.jsonl"
        rows = [row for row in read_metrics(path) if row["stage"] != stage or row["step"] <= resume_at]
        _rewrite(path, rows)
        shutil.rmtree(run_dir / "tb" / stage, ignore_errors=True)
        self._board = SummaryWriter(str(run_dir / "tb" / stage))
        for row in rows:
            if row["stage"] == stage:
                self._draw(row)
        self._file = path.open("a", encoding="utf-8")

    def log(self, step: int, **numbers: float) -> None:
        row = {"stage": self._stage, "step": step, "time": time.time(), **numbers}
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        self._draw(row)

    def _draw(self, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if name not in ("stage", "step", "time"):
                self._board.add_scalar(f"{self._stage}/{name}", value, row["step"], row["time"])

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All complete lines, in order; a last line torn by a kill is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines if line]


def _rewrite(path: Path, rows: list[dict[str, Any]]) -> None:
    write_atomically(path, "".join(json.dumps(row) + "\n" for row in rows))
