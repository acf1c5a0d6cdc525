"""Seeds from a file of their own: `[grow] seeds_file`, a TOML file with `[[seeds]]` tables, each name, domain, definition.

    [grow]
    seeds_file = "builtin"            # graph_schemas/seeds.toml, or the path of another
    seeds_domains = ["biology"]       # those of the file that are wanted; all, when it is left out

They are put into the recipe when it is read, after its own `seeds`, so that a run is saved with the seeds it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from typing import Any

from kgsynth.config import read_toml
from kgsynth.errors import ConfigError

BUILTIN = "builtin"


def with_seeds(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe with the seeds of `[grow] seeds_file` in `[grow] seeds`. Raises ConfigError."""
    grow = tables.get("grow", {})
    if not isinstance(grow, Mapping) or not {"seeds_file", "seeds_domains"} & set(grow):
        return dict(tables)
    rest = {key: value for key, value in grow.items() if key not in ("seeds_file", "seeds_domains")}
    own = grow.get("seeds", [])
    more = read_seeds(grow.get("seeds_file", ""), grow.get("seeds_domains"))
    return {**tables, "grow": {**rest, "seeds": [*own, *more] if isinstance(own, list) else own}}


def read_seeds(file: str, domains: list[str] | None = None) -> list[dict[str, Any]]:
    """The seeds of a file, or those of some domains. Raises ConfigError naming the file and what it lacks."""
    if not isinstance(file, str) or not file:
        raise ConfigError(f'[grow] seeds_file must be "{BUILTIN}" or the path of a TOML file, not {file!r}')
    if file == BUILTIN:
        with as_file(files("graph_schemas").joinpath("seeds.toml")) as path:
            tables = read_toml(path)
    else:
        tables = read_toml(file)
    seeds = tables.get("seeds")
    if set(tables) != {"seeds"} or not isinstance(seeds, list) or not all(isinstance(s, dict) for s in seeds):
        raise ConfigError(
            f"{file}: a seeds file holds [[seeds]] tables, each with name, domain, definition, and nothing else"
        )
    if domains is None:
        return seeds
    known = dict.fromkeys(str(seed.get("domain")) for seed in seeds)
    unknown = [d for d in domains if d not in list(known)] if isinstance(domains, list) else [domains]
    if unknown:
        raise ConfigError(f"[grow] seeds_domains: {file} has no domain {unknown[0]!r}; known: {', '.join(known)}")
    return [seed for seed in seeds if seed.get("domain") in domains]
