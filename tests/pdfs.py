"""Small PDFs written by hand (ISO 32000-1): pages of lines, an outline, a title; enough to test a reader with."""

from __future__ import annotations

from collections.abc import Sequence

Line = tuple[str, str]  # PDF operators before the text, the text


def pdf(
    pages: Sequence[Sequence[str | Line] | bytes], *, title: str = "", outline: Sequence[tuple[str, int]] = ()
) -> bytes:
    """A PDF with one line of text below the other, 14 points apart, and one outline entry per (title, page from 0).

    Bytes in place of a page's lines are its content stream as it stands (see stream_object).
    """
    objects: dict[int, bytes] = {3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"}
    kids = [4 + 2 * i for i in range(len(pages))]
    for kid, lines in zip(kids, pages, strict=True):
        objects[kid] = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>" % (kid + 1)  # fmt: skip
        objects[kid + 1] = lines if isinstance(lines, bytes) else stream_object(_content(lines))
    objects[2] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % k for k in kids))
    free = 4 + 2 * len(kids)
    objects[free] = b"<< /Title (%s) >>" % _escaped(title)
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines %d 0 R >>" % (free + 1)
    first = free + 2
    marks = range(first, first + len(outline))
    objects[free + 1] = b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (first, first + len(outline) - 1)
    for number, (name, page) in zip(marks, outline, strict=True):
        following = b"/Next %d 0 R" % (number + 1) if number + 1 in marks else b""
        objects[number] = b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit] %s >>" % (
            _escaped(name), free + 1, kids[page], following,
        )  # fmt: skip
    return _file(objects, info=free)


def _content(lines: Sequence[str | Line]) -> bytes:
    parts, y = [b"BT /F1 11 Tf"], 740
    for line in lines:
        before, text = ("", line) if isinstance(line, str) else line
        parts.append(b"q %s 1 0 0 1 60 %d Tm (%s) Tj Q 0 g /F1 11 Tf" % (before.encode(), y, _escaped(text)))
        y -= 14
    return b"\n".join([*parts, b"ET"])


def _escaped(text: str) -> bytes:
    return text.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def stream_object(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def _file(objects: dict[int, bytes], info: int) -> bytes:
    out, at = b"%PDF-1.7\n", {}
    for number, body in sorted(objects.items()):
        at[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % at[n] for n in sorted(at))
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(at) + 1, table, len(at) + 1, info, len(out),
    )  # fmt: skip
