"""One TOML file per run, one frozen dataclass per stage. Unknown keys and wrong types are errors that name the key.

    recipe = load("recipes/demo.toml", {"run": RunConfig, "grow": GrowConfig}, ignore={"trainer"})
    recipe["grow"].max_concepts

Overrides from the command line are `table.key=value`, with the value in TOML syntax (a bare word is a string).
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgsynth.errors import ConfigError


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunConfig:
    """[run]: where results go."""

    name: str = "demo"
    dir: str = "runs"

    def __post_init__(self) -> None:
        if self.name in ("", ".", "..") or {"/", "\0"} & set(self.name):
            raise ConfigError(
                f"[run] name must be the name of a folder, without a slash, not {self.name!r}; see [run] dir"
            )

    @property
    def folder(self) -> Path:
        return Path(self.dir) / self.name


def read_toml(path: str | Path, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The tables of a recipe with overrides applied. Raises ConfigError naming the file and line, or the override."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read recipe {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for override in overrides:
        _override(tables, override)
    return tables


def _override(tables: dict[str, Any], text: str) -> None:
    dotted, found, value = text.partition("=")
    keys = dotted.strip().split(".")
    if not found or len(keys) < 2:
        raise ConfigError(f"override {text!r} is not of the form table.key=value")
    try:
        parsed = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    for key in keys[:-1]:
        tables = tables.setdefault(key, {})
        if not isinstance(tables, dict):
            raise ConfigError(f"override {text!r}: {key} is not a table")
    tables[keys[-1]] = parsed


def build_all(
    tables: Mapping[str, Any], wanted: Mapping[str, type], *, ignore: Iterable[str] = (), where: str = "recipe"
) -> dict[str, Any]:
    """One config object per wanted table, defaults where a table is absent. Raises ConfigError for unknown tables."""
    known = {*wanted, *ignore}
    for name in tables:
        if name not in known:
            raise ConfigError(f"{where}: unknown table [{name}]{_nearest(name, known)}")
    return {name: build(kind, tables.get(name, {}), f"[{name}]") for name, kind in wanted.items()}


def build(kind: type, table: Any, where: str) -> Any:
    """A dataclass from a TOML table, strictly. Raises ConfigError naming table, key and the nearest known key."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where} must be a table, not {table!r}")
    hints = typing.get_type_hints(kind)
    names = [f.name for f in dataclasses.fields(kind)]
    for key in table:
        if key not in names:
            raise ConfigError(f"{where}: unknown key {key!r}{_nearest(key, names)}")
    needed = [f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    if missing := [name for name in needed if name not in table]:
        raise ConfigError(f"{where}: {missing[0]} is missing")
    values = {key: _convert(hints[key], value, f"{where} {key}") for key, value in table.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from error


def _convert(hint: Any, value: Any, where: str) -> Any:
    """A TOML value as the annotated type: dataclass, tuple of one type, mapping, union or scalar."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(args, value, where)
    if origin is typing.Literal:
        return _check(value in args, value, f"one of {', '.join(map(repr, args))}", where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, where)
    if origin is tuple:
        _check(isinstance(value, list), value, "a list", where)
        return tuple(_convert(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        _check(isinstance(value, dict), value, "a table", where)
        return {key: _convert(args[1], item, f"{where}.{key}") for key, item in value.items()}
    if hint is float and type(value) in (int, float):
        return float(_check(math.isfinite(value), value, "a finite number", where))
    return _check(type(value) is hint, value, f"of type {getattr(hint, '__name__', hint)}", where)


def _convert_union(options: tuple[Any, ...], value: Any, where: str) -> Any:
    for option in options:
        try:
            return _convert(option, value, where)
        except ConfigError:
            continue
    names = " or ".join(getattr(o, "__name__", str(o)) for o in options if o is not type(None))
    raise ConfigError(f"{where} must be {names}, not {value!r}")


def _check(ok: bool, value: Any, wanted: str, where: str) -> Any:
    if not ok:
        raise ConfigError(f"{where} must be {wanted}, not {value!r}")
    return value


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"


def flatten(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as {"grow.max_concepts": 500, ...}: how two configurations are compared."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        inner = isinstance(value, Mapping)
        flat |= flatten(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return flat


def to_toml(tables: Mapping[str, Any]) -> str:
    """Config objects as TOML text: the resolved configuration that is saved with a run."""
    lines: list[str] = []
    for name, value in tables.items():
        _write_table(lines, name, dataclasses.asdict(value) if dataclasses.is_dataclass(value) else dict(value))  # type: ignore[arg-type]
    return "\n".join(lines).strip() + "\n"


def _write_table(lines: list[str], name: str, table: Mapping[str, Any]) -> None:
    lines += ["", f"[{name}]"]
    nested = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines += [
        f"{_key(key)} = {_literal(value)}" for key, value in table.items() if key not in nested and value is not None
    ]
    for key, value in nested.items():
        _write_table(lines, f"{name}.{_key(key)}", value)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _literal(key)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_literal(v)}" for k, v in value.items() if v is not None) + "}"
    raise ConfigError(f"cannot write {value!r} as TOML")
