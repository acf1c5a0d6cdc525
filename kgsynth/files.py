"""Files that survive a kill: written whole or not at all, and held by one process at a time. And where caches are."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/kgsynth`, by default `~/.cache/kgsynth`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgsynth"


def write_atomically(path: Path, content: str | bytes) -> None:
    """A reader sees the old file or the new one, also after a crash. Text is UTF-8."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


@contextlib.contextmanager
def hold(path: Path, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock file, with our process id in it; the kernel frees it on any death. Raises OSError.

    While another process holds it, `waiting` is called once with that one's id, then we wait.
    """
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(path.read_text(encoding="utf-8").strip() or "?")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
