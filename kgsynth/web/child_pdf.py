"""Read in a child process (see child.py): a PDF -> its text, outline and metadata.

{"title", "pages": [text, ...], "outline": [[level from 1, title, page from 0], ...], "left_out": pages not read}. Text
that no reader of the page sees is not in it: points smaller than 1, wholly transparent, or white with nothing under it.
Invisible render mode (3) is kept, because that is how the text of a scanned page is stored. Imports pypdfium2 and the
standard library only.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

MAX_PAGES = 1000
MAX_CHARACTERS = 4_000_000
MAX_OUTLINE = 5000
_MAX_OBJECTS = 20_000  # on a page; a page with more is a drawing, and hidden text is not looked for
_MAX_UNDER = 200  # painted areas looked at per page


def read(body: bytes) -> dict[str, object]:
    import pypdfium2

    document = pypdfium2.PdfDocument(body)
    pages: list[str] = []
    left = MAX_CHARACTERS
    for index in range(min(len(document), MAX_PAGES)):
        text = _text(document, index)[:left]
        pages.append(text)
        left -= len(text)
        if not left:
            break
    return {
        "title": document.get_metadata_dict().get("Title", ""),
        "pages": pages,
        "outline": list(_outline(document)),
        "left_out": len(document) - len(pages),
    }


def _text(document, index: int) -> str:
    """The text of a page; nothing for a page that is broken."""
    import pypdfium2

    try:
        page = document[index]
        for hidden in _hidden(page):
            page.remove_obj(hidden)
        return page.get_textpage().get_text_bounded()
    except pypdfium2.PdfiumError as error:
        print(f"page {index + 1}: {error}", file=sys.stderr)
        return ""


def _hidden(page) -> list:
    """The text objects of a page that cannot be seen."""
    from pypdfium2 import raw

    objects = []
    for item in page.get_objects(max_depth=1):
        objects.append(item)
        if len(objects) > _MAX_OBJECTS:
            return []
    under = [o.get_bounds() for o in objects if _paints(o)][:_MAX_UNDER]
    return [o for o in objects if o.type == raw.FPDF_PAGEOBJ_TEXT and _is_hidden(o, under)]


def _paints(item) -> bool:
    """Puts something on the page that white text stands out from."""
    from pypdfium2 import raw

    if item.type == raw.FPDF_PAGEOBJ_PATH:
        fill, stroke = ctypes.c_int(), ctypes.c_int()
        return bool(raw.FPDFPath_GetDrawMode(item, fill, stroke)) and fill.value != 0 and not _is_white(item)
    return item.type in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_SHADING, raw.FPDF_PAGEOBJ_FORM)


def _is_hidden(text, under: list[tuple[float, float, float, float]]) -> bool:
    from pypdfium2 import raw

    size, matrix = ctypes.c_float(), text.get_matrix()
    if raw.FPDFTextObj_GetFontSize(text, size) and size.value * max(abs(n) for n in matrix.get()[:4]) < 1:
        return True
    if _fill(text)[3] == 0:
        return True
    left, bottom, right, top = text.get_bounds()
    x, y = (left + right) / 2, (bottom + top) / 2
    return _is_white(text) and not any(a <= x <= c and b <= y <= d for a, b, c, d in under)


def _is_white(item) -> bool:
    return min(_fill(item)[:3]) >= 250


def _fill(item) -> tuple[int, int, int, int]:
    """Red, green, blue, alpha (0..255); opaque black where the object does not say."""
    from pypdfium2 import raw

    parts = tuple(ctypes.c_uint() for _ in range(4))
    red, green, blue, alpha = (
        (part.value for part in parts) if raw.FPDFPageObj_GetFillColor(item, *parts) else (0, 0, 0, 255)
    )
    return red, green, blue, alpha


def _outline(document) -> Iterator[tuple[int, str, int]]:
    """(level, title, page) of each entry; entries that lead nowhere are left out."""
    for number, mark in enumerate(document.get_toc(max_depth=6)):
        if number >= MAX_OUTLINE:
            return
        target = mark.get_dest()
        page = target.get_index() if target else None
        if page is not None and (title := " ".join(mark.get_title().split())):
            yield mark.level + 1, title[:300], page
