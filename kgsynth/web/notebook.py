"""Jupyter notebooks -> Markdown: text cells as they are, code cells fenced, outputs dropped (nbformat 3 and 4).

The format: https://nbformat.readthedocs.io/en/latest/format_description.html. Version 3 keeps cells in worksheets, has
heading cells, and calls the source of a code cell `input`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kgsynth.errors import WebError


def notebook_markdown(body: bytes, url: str) -> str:
    """The cells of a notebook as one Markdown text. Raises WebError when it is none."""
    try:
        notebook = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebError(f"{url}: not a notebook: {error}", cause="malformed answer") from error
    cells = list(_cells(notebook)) if isinstance(notebook, dict) else []
    if not cells:
        raise WebError(f"{url}: not a notebook: no cells in nbformat 3 or 4", cause="malformed answer")
    language = _language(notebook)
    return "\n\n".join(filter(None, (_markdown(cell, language) for cell in cells))) + "\n"


def _cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    sheets = notebook.get("worksheets")
    for holder in (notebook, *(sheets if isinstance(sheets, list) else [])):
        cells = holder.get("cells") if isinstance(holder, dict) else None
        yield from (cell for cell in cells or [] if isinstance(cell, dict)) if isinstance(cells, list) else ()


def _markdown(cell: dict[str, Any], language: str) -> str:
    source = _text(cell.get("source", cell.get("input", "")))
    kind = cell.get("cell_type")
    if not source.strip():
        return ""
    if kind == "heading":
        level = cell.get("level")
        return f"{'#' * (level if isinstance(level, int) and 1 <= level <= 6 else 1)} {' '.join(source.split())}"
    if kind == "code":
        fence = "`" * max(3, *(len(ticks) + 1 for ticks in re.findall("`{3,}", source)), 3)
        return f"{fence}{language}\n{source.rstrip()}\n{fence}"
    return source if kind in ("markdown", "html") else ""


def _text(source: Any) -> str:
    """A source is a string or a list of lines."""
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


def _language(notebook: dict[str, Any]) -> str:
    known = notebook.get("metadata")
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        described = known.get(table) if isinstance(known, dict) else None
        name = described.get(key) if isinstance(described, dict) else None
        if isinstance(name, str) and re.fullmatch(r"\w{1,20}", name):
            return name.lower()
    return "python"
