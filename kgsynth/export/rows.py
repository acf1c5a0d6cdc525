"""Rows on disk: JSONL or parquet, the columns that every format has, and who is to be credited."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgsynth.errors import TaskError
from kgsynth.task import Task, TaskSet

NO_PARQUET = "parquet needs pyarrow; install it with `pip install 'pyarrow>=15'`"
SUFFIXES = (".jsonl", ".json", ".parquet")


def splits_of(tasks: TaskSet, held_out: float, seed: int) -> dict[str, list[tuple[int, Task]]]:
    """{"train": [(index in the set, task), ...], "test": ...} by concept; what is empty is left out."""
    index = {task.id: i for i, task in enumerate(tasks)}
    train, test = tasks.split(held_out, seed=seed)
    parts = {"train": train, "test": test}
    return {name: [(index[task.id], task) for task in part] for name, part in parts.items() if len(part)}


def about(task: Task) -> dict[str, Any]:
    """What may be known of a task beside its prompt: nothing here helps to answer it."""
    found = task.calibration
    return {
        "id": task.id, "type": task.type, "domain": task.domain, "granularity": task.granularity, "scope": task.scope,
        "difficulty": task.difficulty, "verifier": task.verifier.name,
        "pass_rate": found.pass_rate if found else None, "b0": found.b0 if found else None,
        "sources": [span.url for span in task.provenance.spans], "licences": list(task.provenance.licences),
    }  # fmt: skip


def user(prompt: str) -> list[dict[str, str]]:
    """The prompt as a conversation."""
    return [{"role": "user", "content": prompt}]


# writing and reading


def parquet(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any], metadata: Mapping[str, str] = {}) -> bytes:
    """Rows as a parquet file. `columns`: name -> a type as `arrow_type` takes it. Raises TaskError without pyarrow."""
    import io

    pa, pq = require_parquet()
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()], metadata=dict(metadata) or None)
    file = io.BytesIO()
    try:
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    except pa.ArrowException as error:
        raise TaskError(
            f"a task has a field of another type than its column: {error}; was it made by an older kgsynth?"
        ) from error
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def arrow_type(kind: Any) -> Any:
    """`str`, `int`, `float`, `bytes`, `[kind]` for a list and `{name: kind}` for a struct."""
    pa, _ = require_parquet()
    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    if isinstance(kind, Mapping):
        return pa.struct([(name, arrow_type(part)) for name, part in kind.items()])
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bytes: pa.binary()}[kind]


def jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL or parquet file, or of all such files below a folder. Raises TaskError naming file and line."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.name != "export.json")
        if not files:
            raise TaskError(f"{path} holds no {' or '.join(SUFFIXES)} file to import")
        return [row for file in files for row in read_rows(file)]
    if path.suffix == ".parquet":
        return _read_parquet(path)
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TaskError(f"cannot read rows from {path}: {error.strerror}") from error
    return [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise TypeError(f"a {type(row).__name__}, not an object")
    except (ValueError, TypeError, RecursionError) as error:
        raise TaskError(f"{path}:{number}: not a row of JSON: {error}; rows are one object a line") from error
    return row


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    pa, pq = require_parquet()
    try:
        return pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise TaskError(f"cannot read rows from {path}: {error}") from error


def require_parquet() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet. Raises TaskError when they are not installed."""
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise TaskError(NO_PARQUET) from error
    return pyarrow, pyarrow.parquet


# credit


def sources(tasks: Iterable[Task]) -> list[tuple[str, str, str, int]]:
    """(url, licence, date of the last fetch or "", number of tasks made from it), the most used first."""
    used: dict[tuple[str, str], set[str]] = {}
    dates: dict[tuple[str, str], str] = {}
    for task in tasks:
        made = task.provenance
        for i, (span, licence) in enumerate(zip(made.spans, made.licences, strict=True)):
            key = (span.url, licence)
            used.setdefault(key, set()).add(task.id)
            dates[key] = max(dates.get(key, ""), made.dates[i] if i < len(made.dates) else "")
    rows = [(url, licence, dates[url, licence], len(ids)) for (url, licence), ids in used.items()]
    return sorted(rows, key=lambda row: (-row[3], row[0], row[1]))


def attribution(tasks: Iterable[Task]) -> str:
    """ATTRIBUTION.md: every source that a task quotes, with its licence."""
    lines = [
        f"| {_cell(url)} | {_cell(licence)} | {date or '-'} | {count} |" for url, licence, date, count in sources(tasks)
    ]
    head = ["# Attribution", "", "The tasks were made from these sources, under these licences.", ""]
    return "\n".join([*head, "| source | licence | fetched | tasks |", "|---|---|---|---|", *lines]) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
