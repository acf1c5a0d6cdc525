"""A run folder: one process at a time, JSONL files that survive any kill, and the configuration the results belong to."""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kgsynth.config import flatten, to_toml
from kgsynth.errors import RunError
from kgsynth.files import hold, write_atomically


class RunFolder:
    """`runs/<name>/`. See docs/architecture.md for the files in it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def create(self) -> None:
        """Raises RunError when the folder cannot be made."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"cannot make the run folder {self.path}: {error.strerror}; set [run] dir") from error

    @contextlib.contextmanager
    def lock(self, say: Callable[[str], None]) -> Iterator[None]:
        """Hold the folder; while another process holds it, say so once and wait. Raises RunError when it is not writable."""
        self.create()
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(hold(self / ".lock", lambda pid: say(self._in_use(pid))))
            except OSError as error:
                raise RunError(
                    f"cannot write into {self.path}: {error.strerror}; set [run] dir to another place"
                ) from error
            yield

    def _in_use(self, pid: str) -> str:
        return f"{self.path} is in use by process {pid}; waiting for it to end"

    def claim(self, tables: Mapping[str, Any], may_change: Iterable[str] = ()) -> None:
        """Save the resolved configuration, or check that it is the one the folder was made with.

        `may_change` are dotted keys (or prefixes ending in a dot) that do not alter results. Raises RunError naming the changed keys.
        """
        path, text = self / "config.toml", to_toml(tables)
        if path.exists():
            old, new = self._settings(path), flatten(tomllib.loads(text))
            free = tuple(may_change)
            keys = [k for k in sorted(old.keys() | new.keys()) if old.get(k) != new.get(k) and not k.startswith(free)]
            if keys:
                shown = ", ".join(f"{k}: {old.get(k)!r} -> {new.get(k)!r}" for k in keys[:3])
                raise RunError(
                    f"{self.path} was made with another configuration ({shown}); "
                    f"choose another [run] name, or delete {self.path} to start over"
                )
        write_atomically(path, text)

    def _settings(self, path: Path) -> dict[str, Any]:
        try:
            return flatten(tomllib.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise RunError(f"{path} is damaged ({error}); delete it if {self.path} belongs to this recipe") from error

    def append(self, name: str, row: Mapping[str, Any] | str) -> None:
        """Add one line to a JSONL file, on disk when this returns."""
        line = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
        with open(self / name, "a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def mend(self, name: str) -> None:
        """Cut off a last line that a kill left unfinished, so that the next one starts a line of its own."""
        path = self / name
        if path.exists():
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                with path.open("r+b") as file:
                    file.truncate(whole)

    def rows(self, name: str, needs: Iterable[str] = ()) -> list[dict[str, Any]]:
        """The finished lines of a JSONL file; none when there is no file. Raises RunError naming file and line for one
        that is no object or lacks a key that is needed."""
        path = self / name
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        return [self._parse(name, number, line, set(needs)) for number, line in enumerate(lines, 1) if line.strip()]

    def _parse(self, name: str, number: int, line: bytes, needs: set[str]) -> dict[str, Any]:
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or not needs <= row.keys():
                raise ValueError(f"not an object with {', '.join(sorted(needs))}" if needs else "not an object")
        except ValueError as error:
            raise RunError(f"{self / name}:{number} is damaged ({error}); delete the line or the folder") from error
        return row
