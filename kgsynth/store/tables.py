"""Raw rows (`rows.py`) in the embedded store's tables: reading, writing and removing them by number, unchecked.

Inside, an edge, a name or a vector refers to a concept by its number; a row says its id. An end that is not there (a damaged
graph) is called "missing:NUMBER" in a row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

from kgsynth.concept import Concept
from kgsynth.store import Row
from kgsynth.store.rows import CONCEPT_FIELDS, to_concept, to_json

_CONCEPT = ("id", "version", "level", *CONCEPT_FIELDS)
COLUMNS = {
    "source": ("id", "url", "title", "text", "licence", "retrieved_at"),
    "concept": _CONCEPT,
    "merged": ("fold", "keep"),
    "decision": ("id", "kind", "subject", "outcome", "reason", "evidence"),
    "frontier": ("concept", "depth", "state", "attempts", "token"),
    "task": ("id", "type", "domain", "granularity", "prompt", "concepts", "pass_rate", "attempts", "policy"),
    "operation": ("at", "kind", "note", "undoes", "concepts", "edges", "before"),
}
_JSON = {"aliases", "keywords", "concepts", "edges", "spans"}

_END = "coalesce({end}.id, 'missing:' || e.{column})"
_EDGE = f"""
SELECT e.n AS n, {_END.format(end="p", column="parent")} AS parent, {_END.format(end="c", column="child")} AS child,
    e.version AS version, e.spans AS spans
FROM edge e LEFT JOIN concept p ON p.n = e.parent LEFT JOIN concept c ON c.n = e.child"""
_VECTOR = """
SELECT v.concept AS n, coalesce(c.id, 'missing:' || v.concept) AS concept, v.vector AS vector
FROM embedding v LEFT JOIN concept c ON c.n = v.concept"""
_STATE = "CASE state WHEN 'done' THEN state ELSE 'waiting' END AS state"  # a lease is nobody else's business


def read(db: sqlite3.Connection, kind: str, after: int, limit: int) -> list[Row]:
    """Rows whose number is above `after`, ascending."""
    number = {"edge": "e.n", "embedding": "v.concept"}.get(kind, "n")
    sql = f"{_select(kind)} WHERE {number} > ? ORDER BY {number} LIMIT ?"
    return [_row(row) for row in db.execute(sql, (after, limit)).fetchall()]


def pick(db: sqlite3.Connection, kind: str, numbers: Collection[int]) -> list[Row]:
    """The rows of these numbers, ascending."""
    number = {"edge": "e.n", "embedding": "v.concept"}.get(kind, "n")
    sql = f"{_select(kind)} WHERE {number} IN (SELECT value FROM json_each(?)) ORDER BY {number}"
    return [_row(row) for row in db.execute(sql, (json.dumps(list(numbers)),)).fetchall()]


def put(db: sqlite3.Connection, kind: str, rows: Sequence[Row]) -> None:
    """Write rows with what hangs on them (names, links to tasks); one whose number is taken is replaced."""
    if kind == "edge":
        values = [
            (r["n"], _number(db, r["parent"]), _number(db, r["child"]), r["version"], dumps(r["spans"])) for r in rows
        ]
        db.executemany("INSERT OR REPLACE INTO edge VALUES (?, ?, ?, ?, ?)", values)
    elif kind == "embedding":
        put_vectors(db, [(row["n"], row["vector"]) for row in rows])
    else:
        if kind in {"concept", "task"}:
            drop(db, kind, [row["n"] for row in rows])
        columns = ("n", *COLUMNS[kind])
        values = [tuple(_value(row, column) for column in columns) for row in rows]
        more = {"frontier": {"owner": "''", "until": "0"}}.get(kind, {})
        names = ", ".join((*columns, *more))
        marks = ", ".join(("?",) * len(columns) + tuple(more.values()))
        db.executemany(f"INSERT OR REPLACE INTO {kind} ({names}) VALUES ({marks})", values)
    if kind == "concept":
        put_names(db, [(row["n"], to_concept(row)) for row in rows])
    if kind == "task":
        pairs = [(concept, row["n"]) for row in rows for concept in row["concepts"]]
        db.executemany("INSERT OR IGNORE INTO tests VALUES (?, ?)", pairs)


def drop(db: sqlite3.Connection, kind: str, numbers: Collection[int]) -> None:
    """Remove rows with what hangs on them."""
    key = {"embedding": "concept"}.get(kind, "n")
    given = [(n,) for n in numbers]
    db.executemany(f"DELETE FROM {kind} WHERE {key} = ?", given)
    if kind == "concept":
        db.executemany("DELETE FROM name WHERE concept = ?", given)
    if kind == "task":
        db.executemany("DELETE FROM tests WHERE task = ?", given)
    if kind == "embedding" and given:
        db.execute("UPDATE state SET lost_vectors = lost_vectors + ?", (len(given),))


def put_names(db: sqlite3.Connection, concepts: Sequence[tuple[int, Concept]]) -> None:
    """Make (number, concept) findable by every spelling."""
    db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?)", [(key, n) for n, c in concepts for key in c.keys])


def put_vectors(db: sqlite3.Connection, vectors: Sequence[tuple[int, bytes]]) -> None:
    """Vectors by the numbers of their concepts, stamped so that readers see which are new to them."""
    if vectors:
        db.execute("UPDATE state SET vectors = vectors + 1")
        version = db.execute("SELECT vectors FROM state").fetchone()[0]
        rows = [(n, version, vector) for n, vector in vectors]
        db.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?, ?)", rows)


def dumps(value: Any) -> str:
    return to_json(value) if value else "{}" if isinstance(value, dict) else "[]"


def _select(kind: str) -> str:
    if kind in {"edge", "embedding"}:
        return {"edge": _EDGE, "embedding": _VECTOR}[kind]
    columns = (_STATE if (kind, column) == ("frontier", "state") else column for column in COLUMNS[kind])
    return f"SELECT n, {', '.join(columns)} FROM {kind}"


def _row(row: sqlite3.Row) -> Row:
    values: Row = dict(row)
    for name in _JSON & values.keys():
        values[name] = json.loads(values[name])
    if "atomic" in values:
        values["atomic"] = None if values["atomic"] is None else bool(values["atomic"])
    return values


def _value(row: Row, column: str) -> Any:
    value = row[column]
    if column in _JSON or (column == "before" and not isinstance(value, str)):
        return dumps(value)
    return int(value) if isinstance(value, bool) else value


def _number(db: sqlite3.Connection, concept_id: str) -> int:
    if concept_id.startswith("missing:"):
        return int(concept_id.removeprefix("missing:"))
    return db.execute("SELECT n FROM concept WHERE id = ?", (concept_id,)).fetchone()[0]
