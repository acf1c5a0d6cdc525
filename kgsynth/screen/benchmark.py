"""Benchmarks that the user supplies, as texts to compare with: .jsonl, .json, .csv, .tsv, .parquet and .txt files.

A file may name its columns: `mmlu.csv:question+choices`. Otherwise those are taken that usually hold what is asked, and
beside them a solution, which is compared on its own. The name of a benchmark is the file's name without its ending.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgsynth.errors import TaskError

ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt")
ASKED = (
    "question", "prompt", "problem", "query", "instruction", "input", "task", "text", "content", "sentence", "goal", "ctx",
    "context", "passage", "description", "problem_statement",
)  # fmt: skip
OPTIONS = (
    "choices",
    "options",
    "endings",
    "candidates",
    "a",
    "b",
    "c",
    "d",
    "e",
    "option_a",
    "option_b",
    "option_c",
    "option_d",
)
SOLUTION = (
    "canonical_solution",
    "solution",
    "reference_solution",
    "code",
    "reference",
    "answer",
    "target",
    "output",
    "completion",
)
_COLUMNS = re.compile(r"^(?P<file>.+):(?P<columns>[^/\\:]+)$")


@dataclass(frozen=True, kw_only=True)
class Item:
    """A text of a benchmark. `part` is "question" or "solution"."""

    benchmark: str
    index: int  # of the item in its file, from 0
    part: str
    text: str


def items_of(named: str) -> list[Item]:
    """The items of one file, `FILE` or `FILE:column+column`. Raises TaskError when it cannot be read, or has none."""
    path, columns = _named(named)
    try:
        rows = list(_rows(path))
    except (OSError, ValueError, csv.Error, RecursionError) as error:
        raise TaskError(f"cannot read the benchmark {path}: {error}; give one of {', '.join(ENDINGS)}") from error
    found = [item for index, row in enumerate(rows) for item in _items(path, index, row, columns)]
    if not any(item.part == "question" for item in found):
        known = ", ".join(map(str, rows[0])) if rows and isinstance(rows[0], Mapping) else "none"
        raise TaskError(f"{path} has no text in {_told(columns)}; its columns: {known}; name them: {path}:COLUMN")
    return found


def _told(columns: tuple[str, ...]) -> str:
    return f"the column {'+'.join(columns)}" if columns else "a column that looks like a question"


def _named(named: str) -> tuple[Path, tuple[str, ...]]:
    """A file whose name has a colon is a file."""
    match = _COLUMNS.match(named)
    if match is None or Path(named).exists():
        return Path(named), ()
    return Path(match["file"]), tuple(match["columns"].split("+"))


def _rows(path: Path) -> Iterator[Any]:
    match path.suffix.casefold():
        case ".jsonl" | ".ndjson":
            yield from _json_lines(path)
        case ".json":
            yield from _listed(json.loads(path.read_text(encoding="utf-8-sig")))
        case ".csv" | ".tsv":
            yield from _table(path, "\t" if path.suffix.casefold() == ".tsv" else ",")
        case ".parquet":
            yield from _parquet(path)
        case ".txt":
            text = path.read_text(encoding="utf-8-sig")
            yield from (part for part in re.split(r"\n\s*\n" if "\n\n" in text else r"\n", text) if part.strip())
        case _:
            raise ValueError("its ending is unknown")


def _json_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error


def _listed(data: Any) -> Iterator[Any]:
    """A list, the longest list of an object ({"data": [...]}), or an object of objects."""
    if isinstance(data, list):
        yield from data
    elif isinstance(data, Mapping):
        lists = [value for value in data.values() if isinstance(value, list)]
        yield from max(lists, key=len) if lists else data.values()
    else:
        raise ValueError("it is neither a list nor an object")


def _table(path: Path, mark: str) -> Iterator[Any]:
    """Rows by column name; a table without a line of names has its columns by number."""
    csv.field_size_limit(min(sys.maxsize, 1 << 31))
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=mark) if row]
    names = [name.strip().casefold() for name in rows[0]] if rows else []
    if set(names) & {*ASKED, *SOLUTION}:
        yield from (dict(zip([name.strip() for name in rows[0]], row, strict=False)) for row in rows[1:])
    else:
        yield from ({str(at): cell for at, cell in enumerate(row)} for row in rows)


def _parquet(path: Path) -> Iterator[Any]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError("parquet needs pyarrow: pip install pyarrow, or save the benchmark as JSONL") from error
    yield from parquet.read_table(path).to_pylist()


def _items(path: Path, index: int, row: Any, columns: tuple[str, ...]) -> Iterator[Item]:
    if not isinstance(row, Mapping):
        row = {"text": row}
    by_name = {str(name).casefold(): value for name, value in row.items()}
    for part, names in _parts(by_name, columns).items():
        text = "\n".join(line for name in names for line in _texts(by_name.get(name)) if line.strip())
        if text.strip():
            yield Item(benchmark=path.stem, index=index, part=part, text=text)


def _parts(row: Mapping[str, Any], columns: tuple[str, ...]) -> dict[str, list[str]]:
    """Which columns make the question, and which the solution."""
    if columns:
        return {"question": [name.casefold() for name in columns]}
    asked = [name for name in ASKED if name in row]
    solution = [name for name in SOLUTION if name in row]
    if not asked:  # all that is text
        return {"question": [name for name in row if name not in solution] or list(row)}
    return {"question": [*asked, *(name for name in OPTIONS if name in row)], "solution": solution[:1]}


def _texts(value: Any) -> Iterable[str]:
    """The strings in a cell: of {"text": ["Paris", "Rome"], "label": ["A", "B"]}, the texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if str(name).casefold() not in ("label", "labels", "role", "id"):
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
