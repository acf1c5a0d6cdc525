"""Checks of a world's final state. Each is a function (check, final, initial) that returns, or raises Unmet(code).

    equals     {"path", "text" | "base64"}                       the file's content; one newline at the end does not count
    absent     {"path"}                                          nothing is there, no link either
    json       {"path", "at": "/items/0/price", "value"}         the value at a JSON pointer (RFC 6901), types strict
    csv        {"path", "rows", "columns"}                       the rows in any order; with "columns" (the head of the file)
                                                                 these columns in any order
    sqlite     {"path", "query", "rows", "ordered": false}       what a SELECT returns
    unchanged  {"except": ["report.txt", "out/*"]}               every other file is as it was, and none is new
    log        {"path", "contains", "exactly": false}            what was there is there still, and these entries follow
                                                                 in this order: a text is a line, an object part of one
    tree       {"path", "files"}                                 the folder holds these files and no others
    script     {"python", "expect", "files", "seconds"}          hidden code, run on the files elsewhere, prints this JSON

Numbers that are equal are equal as int and float, to 12 digits; true is not 1.
"""

from __future__ import annotations

import csv
import fnmatch
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kgsynth.errors import VerifierError
from kgsynth.verifiers import strict_json
from kgsynth.verifiers.params import MAX_SECONDS, is_number
from kgsynth.verifiers.worlds import database
from kgsynth.verifiers.worlds.state import State, Unmet, built, check_path, content

Check = Mapping[str, Any]
MAX_ROWS = 100_000  # of CSV
NUMBER = re.compile(r"[+-]?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?")
WHOLE = 2.0**53  # a float below it that is whole is the same as the int


def holds(check: Check, final: State, initial: State) -> str:
    """ "" when a check holds, else the code of why not. Not for scripts."""
    try:
        _CHECKS[check["check"]](check, final, initial)
    except Unmet as unmet:
        return str(unmet)
    return ""


def _equals(check: Check, final: State, initial: State) -> None:
    wanted = content({key: check[key] for key in check if key not in ("check", "path")}, "equals")
    if _without_newline(final.data(check["path"])) != _without_newline(wanted):
        raise Unmet("different")


def _absent(check: Check, final: State, initial: State) -> None:
    if check["path"] in final.entries:
        raise Unmet("present")


def _json(check: Check, final: State, initial: State) -> None:
    value = strict_json.at(loaded(final.text(check["path"])), check.get("at", ""))
    if value is strict_json.MISSING:
        raise Unmet("no such value")
    if canonical(value) != canonical(check["value"]):
        raise Unmet("different")


def _csv(check: Check, final: State, initial: State) -> None:
    rows = _rows(final.text(check["path"]))
    if columns := check.get("columns"):
        head = [cell.strip() for cell in rows[0]] if rows else []
        if sorted(head) != sorted(columns):
            raise Unmet("other columns")
        order = [head.index(column) for column in columns]
        rows = [[row[i] for i in order] if len(row) == len(head) else row for row in rows[1:]]
    wanted = check["rows"]
    numeric = {i for i in range(len(wanted[0]) if wanted else 0) if all(is_number(row[i]) for row in wanted)}
    if Counter(_cells(row, numeric) for row in rows) != Counter(_cells(row, numeric) for row in wanted):
        raise Unmet("different")


def _sqlite(check: Check, final: State, initial: State) -> None:
    path = check["path"]
    data = final.data(path)
    if f"{path}-journal" in final.entries and database.is_hot(final.data(f"{path}-journal")):
        raise Unmet("unfinished transaction")
    log = final.data(f"{path}-wal") if f"{path}-wal" in final.entries else b""
    try:
        known = database.derived(initial.data(path)) if path in initial.entries else frozenset()
        rows = database.query(data, check["query"], log=log, known=known)
    except database.BadDatabase as error:
        raise Unmet(str(error)) from error
    found, wanted = ([_record(row) for row in side] for side in (rows, check["rows"]))
    if found != wanted if check.get("ordered") else Counter(found) != Counter(wanted):
        raise Unmet("different")


def _unchanged(check: Check, final: State, initial: State) -> None:
    spared = check.get("except", [])
    before, after = ({path for path in state.under("") if not _spared(path, spared)} for state in (initial, final))
    if after - before:
        raise Unmet("new files")
    if before - after or any(final.data(path) != initial.data(path) for path in sorted(before)):
        raise Unmet("changed")


def _spared(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path may change; what SQLite keeps beside a database may change with it."""
    names = (path, re.sub(r"-(wal|shm|journal)$", "", path))
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _log(check: Check, final: State, initial: State) -> None:
    path = check["path"]
    old = initial.data(path) if path in initial.entries else b""
    if not final.data(path).startswith(old):
        raise Unmet("rewritten")
    lines = [line for line in final.text(path)[len(old.decode("utf-8-sig", "replace")) :].splitlines() if line.strip()]
    if check.get("exactly") and len(lines) != len(check["contains"]):
        raise Unmet("other entries")
    following = iter(lines)
    for entry in check["contains"]:
        if not any(_is_entry(line, entry) for line in following):
            raise Unmet("no such entry")


def _tree(check: Check, final: State, initial: State) -> None:
    wanted = {f"{check['path']}/{path}": data for path, data in built(check["files"], "tree").items()}
    if set(final.under(check["path"])) != set(wanted):
        raise Unmet("other files")
    if any(_without_newline(final.data(path)) != _without_newline(data) for path, data in wanted.items()):
        raise Unmet("different")


_CHECKS: dict[str, Callable[[Check, State, State], None]] = {
    "equals": _equals, "absent": _absent, "json": _json, "csv": _csv, "sqlite": _sqlite,
    "unchanged": _unchanged, "log": _log, "tree": _tree,
}  # fmt: skip


def loaded(text: str) -> Any:
    """See `strict_json.loads`. Raises Unmet("malformed")."""
    try:
        return strict_json.loads(text)
    except ValueError as error:
        raise Unmet("malformed") from error


def canonical(value: Any) -> Any:
    """A hashable form that is equal for equal JSON: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, Mapping):
        return "object", tuple(sorted((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return "array", tuple(canonical(item) for item in value)
    if is_number(value):
        return "number", _number(value)
    return type(value).__name__, value


def _rows(text: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise Unmet("malformed") from error
    if len(rows) > MAX_ROWS:
        raise Unmet("too large")
    return rows


def _cells(row: Sequence[Any], numeric: set[int]) -> tuple[str, ...]:
    return tuple(_cell(cell, i in numeric) for i, cell in enumerate(row))


def _cell(cell: Any, numeric: bool) -> str:
    text = str(cell).strip()
    if not numeric or not NUMBER.fullmatch(text):
        return text
    return _number(int(text)) if text.lstrip("+-").isdigit() else _number(float(text))


def _record(row: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
    """One row of a database: NULL, number, text or blob; true and false of JSON are its 1 and 0."""
    return tuple(canonical(int(cell) if isinstance(cell, bool) else cell) for cell in row)


def _number(value: int | float) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 10**300 else "huge"
    if math.isfinite(value) and value == int(value) and abs(value) < WHOLE:
        return str(int(value))
    return f"{value:.12g}"


def _is_entry(line: str, entry: Any) -> bool:
    """Whether a line of a log is the text, or an object with at least these members."""
    if isinstance(entry, str):
        return line.strip() == entry.strip()
    try:
        found = loaded(line)
    except Unmet:
        return False
    return isinstance(found, dict) and all(
        key in found and canonical(found[key]) == canonical(value) for key, value in entry.items()
    )


def _without_newline(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def checked(check: Any, where: str) -> None:
    """Raises VerifierError for a check that is of no known kind, lacks something or could never say no."""
    kind = check.get("check") if isinstance(check, Mapping) else None
    if kind not in _FORMS:
        raise VerifierError(f'{where} must have "check": one of {", ".join(_FORMS)}; it is {check!r:.80}')
    required, optional = _FORMS[kind]
    given = set(check) - {"check"}
    if missing := required - given:
        raise VerifierError(f"{where} ({kind}) lacks {', '.join(sorted(missing))}")
    if unknown := given - required - optional:
        raise VerifierError(f"{where} ({kind}) has unknown {', '.join(sorted(unknown))}")
    for key in given:
        _check_value(check, key, f"{where} ({kind}): {key!r}")
    if kind == "equals":
        content({key: check[key] for key in given - {"path"}}, where)


_FORMS: dict[str, tuple[set[str], set[str]]] = {
    "equals": ({"path"}, {"text", "base64"}),
    "absent": ({"path"}, set()),
    "json": ({"path", "value"}, {"at"}),
    "csv": ({"path", "rows"}, {"columns"}),
    "sqlite": ({"path", "query", "rows"}, {"ordered"}),
    "unchanged": (set(), {"except"}),
    "log": ({"path", "contains"}, {"exactly"}),
    "tree": ({"path", "files"}, set()),
    "script": ({"python", "expect"}, {"files", "seconds"}),
}
_VALUES: dict[str, tuple[Callable[[Any, Check], bool], str]] = {
    "at": (lambda v, _: strict_json.is_pointer(v), 'a JSON pointer such as "/items/0"'),
    "rows": (lambda v, check: _is_rows(v, check), "a list of rows of plain values, all of one length"),
    "columns": (lambda v, _: _is_texts(v) and len(set(v)) == len(v) > 0, "a list of different names"),
    "query": (lambda v, _: isinstance(v, str) and bool(v.strip()), "a SELECT"),
    "except": (lambda v, _: _is_texts(v) and "*" not in v, "a list of paths or patterns, not of all"),
    "contains": (lambda v, _: _is_entries(v), "a list of lines or objects, at least one, none empty"),
    "files": (lambda v, _: isinstance(v, Mapping), "a map of paths to files"),
    "ordered": (lambda v, _: isinstance(v, bool), "true or false"),
    "exactly": (lambda v, _: isinstance(v, bool), "true or false"),
    "python": (lambda v, _: isinstance(v, str) and bool(v.strip()), "a program"),
    "expect": (lambda v, _: v not in (None, False, "", [], {}), "something that is not empty or false"),
    "seconds": (lambda v, _: is_number(v) and 0 < v <= MAX_SECONDS, f"a number up to {MAX_SECONDS}"),
}


def _check_value(check: Check, key: str, where: str) -> None:
    if key == "path":
        check_path(check[key], where)
    fits, form = _VALUES.get(key, (lambda *_: True, ""))
    if not fits(check[key], check):
        raise VerifierError(f"{where} must be {form}, not {check[key]!r:.80}")
    if key == "files":
        built(check[key], where)


def _is_rows(rows: Any, check: Check) -> bool:
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return False
    width = len(check["columns"]) if isinstance(check.get("columns"), list) else len(rows[0]) if rows else 0
    plain = all(cell is None or isinstance(cell, (str, int, float)) for row in rows for cell in row)
    return plain and all(len(row) == width for row in rows)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def _is_entries(value: Any) -> bool:
    plain = isinstance(value, list) and all(isinstance(item, (str, Mapping)) for item in value)
    return plain and bool(value) and all(item.strip() if isinstance(item, str) else item for item in value)
