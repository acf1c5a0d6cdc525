"""Which graph a word on the command line means: the address of a store, a file, a run folder or a recipe."""

from __future__ import annotations

from pathlib import Path

from kgsynth.config import RunConfig, build, read_toml
from kgsynth.errors import ConfigError

GRAPH_HELP = "sqlite:PATH, bolt://HOST:PORT, a graph.sqlite, a run folder, or a recipe (the graph of its run)"
FORMS = f"a graph is named by {GRAPH_HELP}"
SUFFIXES = (".sqlite", ".sqlite3", ".db")


def find_graph(text: str, *, new: bool = False) -> str:
    """The store URL of the graph that `text` names.

    new: whether a file that does not exist yet will do. Raises ConfigError that says what a graph can be named by.

    >>> find_graph("bolt://localhost:7687")
    'bolt://localhost:7687'
    >>> find_graph("runs/big/copy.sqlite", new=True)
    'sqlite:runs/big/copy.sqlite'
    """
    if "://" in text:
        return text
    path = Path(text.removeprefix("sqlite:"))
    if path.is_dir() and not text.startswith("sqlite:"):
        return _of_settings(path / "config.toml", path) if (path / "config.toml").is_file() else _file(path, new)
    if path.suffix == ".toml":
        return _of_settings(path, None)
    return _file(path, new)


def _of_settings(path: Path, folder: Path | None) -> str:
    """Of a recipe, or of the settings that were saved in a run folder: that folder may have moved since."""
    tables = read_toml(path)
    url = tables.get("store", {}).get("url", "")
    if url:
        return find_graph(url)
    graph = (folder or build(RunConfig, tables.get("run", {}), f"{path} [run]").folder) / "graph.sqlite"
    if not graph.is_file():
        raise ConfigError(f"{path}: its run has no graph yet ({graph} is missing); grow one with `kgsynth grow RECIPE`")
    return f"sqlite:{graph}"


def _file(path: Path, new: bool) -> str:
    if path.is_dir():
        path /= "graph.sqlite"
    if path.is_file() and not path.stat().st_size and not new:
        raise ConfigError(f"{path} is an empty file, not a graph; grow one, or restore it from a backup")
    if path.is_file() or (new and path.suffix in SUFFIXES and path.parent.is_dir()):
        return f"sqlite:{path}"
    if new and path.suffix in SUFFIXES:
        raise ConfigError(f"the folder of {path} does not exist; make {path.parent}, or name another place")
    wrong = f"call a new file *{SUFFIXES[0]}" if new else "check the path"
    raise ConfigError(f"there is no graph {str(path)!r}: {wrong}; {FORMS}")
