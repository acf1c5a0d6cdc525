"""A folder that appears whole or not at all, and may be made in several runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import RunError, TaskError
from kgsynth.files import hold, write_atomically

MARK = "export.json"  # in every exported folder: what it is an export of
LOCK = ".lock"


@dataclass(frozen=True, kw_only=True)
class Staging:
    """The folder under construction. What is in it is whole: files are written atomically, folders appear by renaming."""

    path: Path

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        return path


@contextmanager
def staged(folder: Path, mark: Mapping[str, Any]) -> Iterator[Staging | None]:
    """The place to write to: FOLDER.part, which becomes `folder` when the block ends well.

    What an earlier run with the same `mark` left there is still there; None when `folder` is this very export already.
    A TaskError in the block takes it away again. Raises RunError when `folder` or FOLDER.part holds anything else, or cannot be written.
    """
    part = folder.with_name(folder.name + ".part")
    try:
        if _is_done(folder, mark):
            yield None
            return
        part.mkdir(parents=True, exist_ok=True)
        with hold(part / LOCK, lambda pid: print(f"kgsynth: {part} is in use by process {pid}; waiting")):
            if _is_done(folder, mark):  # by the process we waited for
                yield None
                return
            _begin(part, mark)
            try:
                yield Staging(path=part)
            except TaskError:  # it would fail again: there is nothing to go on with
                shutil.rmtree(part)
                raise
            (part / LOCK).unlink(missing_ok=True)
            part.replace(folder)
    except OSError as error:
        raise RunError(f"cannot write {folder}: {error}; put that right, the same command goes on") from error


def _is_done(folder: Path, mark: Mapping[str, Any]) -> bool:
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise RunError(f"{folder} is a file; an export is a folder: choose another name")
    if _mark_of(folder) == dict(mark):
        return True
    if any(folder.iterdir()):
        raise RunError(f"{folder} is not empty and holds something else; choose another folder, or delete it first")
    return False


def _begin(part: Path, mark: Mapping[str, Any]) -> None:
    """Raises RunError when the folder is not one of ours. An export with another mark is thrown away."""
    found = _mark_of(part)
    if found == dict(mark):
        return
    names = [path for path in part.iterdir() if path.name != LOCK]
    if names and found is None:
        raise RunError(f"{part} holds something that is no export; move it away, it is needed to write to")
    for path in names:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_atomically(part / MARK, json.dumps(mark, indent=1, ensure_ascii=False) + "\n")


def _mark_of(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
