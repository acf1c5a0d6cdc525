"""Reading and writing taxonomies as tab-separated text: columns id, label, synonyms, parents, definition.

Only `id` and `label` are needed; further columns are ignored, the order of columns is free, rows may be short. Synonyms and
parents are separated by `|`. UTF-8 or UTF-16 with or without BOM, any line ends, fields quoted or not. Rows that repeat an id
are one concept: the first label and definition count, other labels become synonyms, parents and synonyms add up.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.taxonomy.truth import Taxonomy, TrueConcept
from kgsynth.concept import merge_unique, name_key
from kgsynth.errors import ConfigError

COLUMNS = ("id", "label", "synonyms", "parents", "definition")
Row = tuple[int, list[str]]  # line, fields


def read_tsv(path: Path) -> Taxonomy:
    """The taxonomy of a file. Raises ConfigError naming file, line and column of what is wrong."""
    try:
        text = _decode(path.read_bytes())
        rows = _rows(text)
        line, header = next(rows, (1, [""]))
        places = _places(line, header)
        concepts, notes = _joined(_concept(row, places, header) for row in rows)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give the path of a taxonomy's TSV file") from error
    except _Wrong as wrong:
        raise ConfigError(f"{path}: {wrong}") from wrong
    if not concepts:
        raise ConfigError(f"{path}: line 2, column 'id': the file has a header, but no concept below it")
    return Taxonomy(concepts.values(), notes)


def write_tsv(path: Path, concepts: Iterable[TrueConcept]) -> None:
    """Exactly what `read_tsv` reads back."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for c in concepts:
            writer.writerow([c.id, c.label, "|".join(c.synonyms), "|".join(c.parents), c.definition])


class _Wrong(ValueError):
    """What is wrong, and where."""

    def __init__(self, line: int, column: str, problem: str) -> None:
        super().__init__(f"line {line}, column {column}: {problem}")


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = data.count(b"\t", start, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is no {encoding.upper()[:6].rstrip('-')}; save the file as UTF-8"
        raise _Wrong(data.count(b"\n", 0, error.start) + 1, str(column), problem) from error


def _rows(text: str) -> Iterator[Row]:
    """Non-empty records with the line on which they start: with quotes as in RFC 4180, else taken literally."""
    csv.field_size_limit(1 << 30)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    try:
        rows = list(_records(text))
    except csv.Error:  # a quotation mark that opens nothing
        rows = [(n, line.split("\t")) for n, line in enumerate(text.split("\n"), 1)]
    return (row for row in rows if any(field.strip() for field in row[1]))


def _records(text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    line = 1
    for fields in reader:
        yield line, fields
        line = reader.line_num + 1


def _places(line: int, header: list[str]) -> dict[str, int]:
    """Column -> its place in a row."""
    names = [name.strip().casefold() for name in header]
    for at, name in enumerate(names):
        if name in COLUMNS and name in names[:at]:
            raise _Wrong(line, repr(name), "is there twice")
    for needed in ("id", "label"):
        if needed not in names:
            separated = "" if len(header) > 1 else "; columns are separated by tabs"
            problem = f"is missing; the header line names {', '.join(map(repr, names))}{separated}"
            raise _Wrong(line, repr(needed), problem)
    return {name: names.index(name) for name in COLUMNS if name in names}


def _concept(row: Row, places: dict[str, int], header: list[str]) -> TrueConcept:
    line, fields = row
    for extra in range(len(header), len(fields)):
        if fields[extra].strip():
            problem = f"{fields[extra][:40]!r} is beyond the {len(header)} columns of the header"
            raise _Wrong(line, str(extra + 1), problem)
    cells = {name: fields[at] if at < len(fields) else "" for name, at in places.items()}
    ident, label = _tidy(cells["id"]), _tidy(cells["label"])
    if not ident:
        raise _Wrong(line, "'id'", "is empty")
    if not name_key(label) and not name_key(ident):
        raise _Wrong(line, "'label'", f"{label!r} is no name, and neither is the id {ident!r}")
    return TrueConcept(
        id=ident,
        label=label if name_key(label) else ident,
        synonyms=_list(cells.get("synonyms", "")),
        parents=tuple(filter(None, map(_tidy, cells.get("parents", "").split("|")))),
        definition=_tidy(cells.get("definition", "")),
    )


def _list(cell: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in map(_tidy, cell.split("|")) if name_key(item)))


def _tidy(text: str) -> str:
    """Without control characters and halves of surrogate pairs, runs of white space as one space."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    return re.sub(r"\s+", " ", text).strip()


def _joined(rows: Iterable[TrueConcept]) -> tuple[dict[str, TrueConcept], list[str]]:
    """Concepts by id, and what there is to say about rows that repeat one."""
    found: dict[str, TrueConcept] = {}
    repeated = 0
    for new in rows:
        old = found.get(new.id)
        repeated += old is not None
        found[new.id] = _both(old, new) if old else replace(new, synonyms=_other(new.synonyms, new.label))
    return found, [f"{repeated} rows repeat an id: joined"] if repeated else []


def _both(old: TrueConcept, new: TrueConcept) -> TrueConcept:
    return replace(
        old,
        synonyms=_other(merge_unique(old.synonyms, (new.label, *new.synonyms)), old.label),
        parents=merge_unique(old.parents, new.parents),
        definition=old.definition or new.definition,
    )


def _other(synonyms: Iterable[str], label: str) -> tuple[str, ...]:
    return tuple(s for s in synonyms if s != label)
