"""Raw rows: how a stored thing is written down in the log, in copies between stores and in backups. The same for both stores.

Every row has `n`, its place in the order of insertion (numbers are never given twice in a graph; an operation's is `op`).

    source     n id url title text licence retrieved_at
    concept    n id version level name domain definition aliases keywords sense atomic atomic_reason
    edge       n parent child version spans           spans: [{source, url, start, end, text}]
    merged     n fold keep
    decision   n id kind subject outcome reason evidence            evidence: JSON text
    frontier   n concept depth state attempts token                 state: "waiting" or "done"; n is the item's seq
    embedding  n concept vector                       n is the concept's; vector: little-endian float32 bytes
    task       n id type domain granularity prompt concepts pass_rate attempts policy
    operation  n at kind note undoes concepts edges before          edges: ["parent child"]; before: JSON text, see `draft.py`

`version` is the operation that last altered a concept or an edge.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from kgsynth.concept import Concept, Decision, Source, SourceSpan
from kgsynth.store import Operation, Row, TaskRecord

CONCEPT_FIELDS = tuple(f.name for f in fields(Concept))
_LISTS = ("aliases", "keywords")
to_json = json.JSONEncoder(ensure_ascii=False).encode
_SPAN_FIELDS = tuple(f.name for f in fields(SourceSpan))


def concept_fields(concept: Concept) -> Row:
    row = {name: getattr(concept, name) for name in CONCEPT_FIELDS}
    row["aliases"], row["keywords"] = list(concept.aliases), list(concept.keywords)
    return row


def to_concept(row: Mapping[str, Any]) -> Concept:
    """From a row or a record with more keys; lists may be missing."""
    values = {name: row[name] for name in CONCEPT_FIELDS}
    values["aliases"], values["keywords"] = tuple(values["aliases"]), tuple(values["keywords"])
    return Concept(**values)


def spans_to_rows(spans: tuple[SourceSpan, ...]) -> list[Row]:
    return [{name: getattr(span, name) for name in _SPAN_FIELDS} for span in spans]


def to_spans(rows: list[Row]) -> tuple[SourceSpan, ...]:
    return tuple(SourceSpan(**row) for row in rows)


def spans_to_json(spans: tuple[SourceSpan, ...]) -> str:
    return to_json(spans_to_rows(spans)) if spans else "[]"


def spans_from_json(text: str) -> tuple[SourceSpan, ...]:
    return to_spans(json.loads(text)) if text != "[]" else ()


def source_fields(source: Source) -> Row:
    return {"id": source.id, **{f.name: getattr(source, f.name) for f in fields(Source)}}


def to_source(row: Mapping[str, Any]) -> Source:
    return Source(**{f.name: row[f.name] for f in fields(Source)})


def to_decision(row: Mapping[str, Any]) -> Decision:
    from kgsynth.store.change import evidence_from_json

    values = {f.name: row[f.name] for f in fields(Decision)}
    return Decision(**{**values, "evidence": evidence_from_json(values["evidence"])})


def task_fields(task: TaskRecord) -> Row:
    return {**asdict(task), "concepts": list(task.concepts)}


def to_task(row: Mapping[str, Any]) -> TaskRecord:
    values = {f.name: row[f.name] for f in fields(TaskRecord)}
    return TaskRecord(**{**values, "concepts": tuple(values["concepts"])})


def to_operation(row: Mapping[str, Any]) -> Operation:
    pairs = (edge.split(" ") for edge in row["edges"])
    return Operation(
        op=row["n"], at=row["at"], kind=row["kind"], note=row["note"], undoes=row["undoes"],
        concepts=tuple(row["concepts"]), edges=tuple((parent, child) for parent, child in pairs),
    )  # fmt: skip
