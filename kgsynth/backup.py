"""A graph in one file, and back. A file has its name only when it is whole and was looked through."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from kgsynth.errors import StoreError
from kgsynth.push import Progress, Pushed, is_empty, push
from kgsynth.store import Row, open_store

PART = ".part"


def backup(url: str, path: Path, on_progress: Progress = lambda *_: None) -> Row:
    """Write the graph of a store into a new file, while others may write to the store. Returns the state of the copy.

    A file is copied by SQLite's online backup, a graph in Neo4j row by row; killed, the same call goes on with that.
    Raises StoreError when the file exists already, or does not hold together.
    """
    if path.exists():
        raise StoreError(f"{path} exists already; name a new file for the backup, or delete that one")
    if not path.parent.is_dir():
        raise StoreError(f"the folder of {path} does not exist; make {path.parent}, or name another place")
    part = path.with_name(path.name + PART)
    if url.startswith("sqlite:"):
        _copy_file(url.removeprefix("sqlite:"), part)
    else:
        with closing(open_store(url)) as src, closing(open_store(f"sqlite:{part}", as_is=True)) as dst:
            push(src, dst, names=(url, str(part)), on_progress=on_progress)
    state = _checked(part)
    part.replace(path)
    return state


def restore(
    path: Path, url: str, *, replace: bool = False, on_progress: Progress = lambda *_: None
) -> tuple[Pushed, Path | None]:
    """Make a store what a backup holds. Returns what was done, and where what the store held before is now.

    Raises StoreError when the store holds a graph already and is not to be replaced.
    """
    with closing(open_store(f"sqlite:{path}")) as src, closing(open_store(url, as_is=True)) as dst:
        held, wanted = dst.state(), src.state()
        goes_on = bool(held.get("copying")) and (replace or held["graph"] == wanted["graph"])
        if not (is_empty(held) or goes_on or replace):
            raise StoreError(
                f"{url} holds a graph already ({held['concepts']} concepts, operation {held['op']}); restore into a new"
                " store, or say --replace: what it holds is written into a backup first"
            )
        kept = None if is_empty(held) or goes_on else beside(url, held, "restore")
        if kept:
            backup(url, kept)
        done = push(src, dst, names=(str(path), url), replace=replace, on_progress=on_progress)
        return done, kept


def beside(url: str, state: Row, why: str) -> Path:
    """A name for the backup made before something is done to a graph: next to its file, or here for one in a server."""
    moment = time.strftime("%Y%m%d-%H%M%S")
    name = f"before-{why}-{state['graph'][:8]}-op{state['op']}-{moment}.sqlite"
    if url.startswith("sqlite:"):
        file = Path(url.removeprefix("sqlite:"))
        return file.with_name(f"{file.stem}-{name}")
    return Path(name)


def _copy_file(source: str, part: Path) -> None:
    with closing(open_store(f"sqlite:{source}")):  # that it is one of ours, whole and of this format
        part.unlink(missing_ok=True)
        try:
            with closing(sqlite3.connect(source)) as src, closing(sqlite3.connect(part)) as dst:
                src.backup(dst)
        except sqlite3.Error as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise StoreError(f"{source} could not be copied to {part}: {error}; is there enough space?") from error


def _checked(part: Path) -> Row:
    with closing(sqlite3.connect(part)) as db:
        found = [row[0] for row in db.execute("PRAGMA integrity_check(3)")]
    if found != ["ok"]:
        raise StoreError(f"the copy in {part} does not hold together: {'; '.join(found)}; the store's file is damaged")
    with closing(open_store(f"sqlite:{part}")) as store:
        return store.state()
