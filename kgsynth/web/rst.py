"""Docstrings and topic texts -> HTML. They are loosely reStructuredText: read for what they are, never rejected.

Understood: underlined headings, paragraphs, bullet and numbered lists, definition lists ("term" with an indented
explanation, or lines of "name -- text"), signatures with an indented description, doctest blocks, literal blocks,
grammars and tables (kept as they are). Anything else is a paragraph. Text is never lost.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable, Iterable

Inline = Callable[[str], str]  # the text of a paragraph -> HTML

_UNDERLINE = re.compile(r"^([*=\-~^#\"'+])\1{2,}\s*$")
_BULLET = re.compile(r"^(?:([*\-•])|(\d+|\#)[.)]) +(?=\S)")
_DASHED = re.compile(r"^(\S.{0,48}?) +-- +(\S.*)$")
_TABLE = re.compile(r"^(\+-[-+=]*\+?$|={2,}( +={2,})+\s*$|\| )")
_ALIGNED = re.compile(r"\S {3,}\S|\S +# ")
_SIGNATURE = re.compile(
    r"^(?:(?:class|async|static|classmethod|exception|coroutine) )*[\w.]+ ?[(\[].*[)\]][^.]*$|^[\w.]+$"
)
_EXPRESSION = re.compile(r"^[\w.\[\]]+(?: (?:\S{1,3}|not in|is not) [\w.\[\]]+)+$|^del [\w.\[\]]+$")
_FIELD = re.compile(r"^:\w|^\w+: \S")
_CODE = re.compile(
    r"^(?:@|(?:def|class|for|while|if|with|try|import|from|return|print|raise|async)\b[^.]*$)|^[\w.]+ = "
)
_ASIDE = re.compile(
    r"^(note|see also|warning|tip|important|cpython implementation detail|deprecated.*):$", re.IGNORECASE
)
_LEVELS = {"*": 1, "=": 2, "-": 3, "~": 4, "^": 5}


class RstToHtml:
    """One text -> HTML. `topic` fixes the heading levels; otherwise headings start at level 2 in order of appearance.

    `parameters` are names that are explained like terms but define nothing: they become list items.
    """

    def __init__(self, inline: Inline, *, topic: bool = False, parameters: frozenset[str] = frozenset()) -> None:
        self.inline = inline
        self.topic = topic
        self.parameters = parameters
        self.levels = dict(_LEVELS) if topic else {}

    def convert(self, text: str) -> str:
        return "\n".join(self._blocks(text.expandtabs().rstrip().split("\n")))

    def _blocks(self, lines: list[str]) -> list[str]:
        out: list[str] = []
        before = ""  # the last paragraph: says what an indented block is
        i = 0
        while i < len(lines):
            if not lines[i].strip():
                i += 1
                continue
            kind, end = self._kind(lines, i)
            taken = lines[i:end]
            out.append(getattr(self, f"_{kind}")(taken, before))
            before = taken[-1].strip() if kind == "paragraph" else ""
            i = end
        return out

    def _kind(self, lines: list[str], i: int) -> tuple[str, int]:
        """What begins at line i, and where it ends."""
        line = lines[i]
        if line.lstrip().startswith(">>>"):
            return "doctest", _doctest_end(lines, i)
        if line[0] == " ":
            return "indented", _indented_end(lines, i)
        if _UNDERLINE.match(line):
            return "nothing", i + 1
        if i + 1 < len(lines) and _UNDERLINE.match(lines[i + 1]) and abs(len(lines[i + 1].rstrip()) - len(line)) <= 2:
            return "heading", i + 2
        if _TABLE.match(line):
            return "literal", _blank(lines, i)
        if _BULLET.match(line):
            return "bullets", _bullets_end(lines, i)
        return self._text_kind(lines, i)

    def _text_kind(self, lines: list[str], i: int) -> tuple[str, int]:
        end = _paragraph_end(lines, i)
        stop = _blank(lines, i)
        block = lines[i : next((j for j in range(i, stop) if lines[j].lstrip().startswith(">>>")), stop)]
        hanging = len(block) > 1 and block[1][0] == " "
        if _DASHED.match(block[0]) and (hanging or sum(bool(_DASHED.match(row)) for row in block) >= 2):
            return "dashed", i + len(block)
        if len(block) > 1 and sum(bool(_ALIGNED.search(row)) for row in block) * 2 >= len(block):
            return "literal", i + len(block)
        if hanging and (len(block[0].split()) > 6 or _FIELD.match(block[0])):
            return "paragraph", i + len(block)
        below = end < len(lines) and lines[end][:1] == " "
        if below and end == i + 1 and not lines[i].rstrip().endswith((":", ",", ";")) and len(lines[i]) < 80:
            return "definition", _indented_end(lines, end)
        after = _next(lines, end)
        if after < len(lines) and lines[after][0] == " " and all(map(self._is_signature, lines[i:end])):
            return "definition", _indented_end(lines, after)
        return "paragraph", end

    def _is_signature(self, line: str) -> bool:
        return bool(_SIGNATURE.match(line.strip()) or (self.topic and _EXPRESSION.match(line.strip())))

    def _nothing(self, lines: list[str], before: str) -> str:
        return ""

    def _heading(self, lines: list[str], before: str) -> str:
        level = self.levels.setdefault(lines[1][0], min(len(self.levels) + 2, 6))
        return f"<h{level}>{self.inline(lines[0].strip())}</h{level}>"

    def _paragraph(self, lines: list[str], before: str) -> str:
        text = re.sub(r"(?<=\w-)\n(?=\w)", "", "\n".join(line.strip() for line in lines))
        text = re.sub(r"::$", ":", text)
        return f"<p>{self.inline(text)}</p>"

    def _doctest(self, lines: list[str], before: str) -> str:
        return f'<pre><code class="language-python">{html.escape(_dedent(lines), quote=False)}</code></pre>'

    def _literal(self, lines: list[str], before: str) -> str:
        return f"<pre><code>{html.escape(_dedent(lines), quote=False)}</code></pre>"

    def _indented(self, lines: list[str], before: str) -> str:
        inner = _dedent(lines).split("\n")
        structured = inner[0].startswith(">>>") or _BULLET.match(inner[0])
        if before.endswith(":") and not _ASIDE.match(before) and not structured:
            return self._literal(lines, before)
        if any("::=" in row for row in inner) or _CODE.match(inner[0]):
            return self._literal(lines, before)
        return "\n".join(self._blocks(inner))

    def _bullets(self, lines: list[str], before: str) -> str:
        items: list[list[str]] = []
        for line in lines:
            if match := _BULLET.match(line):
                items.append([line[match.end() :]])
            else:
                items[-1].append(line)
        tag = "ul" if (match := _BULLET.match(lines[0])) and match.group(1) else "ol"
        body = "\n".join(f"<li>{self._item(item)}</li>" for item in items)
        return f"<{tag}>\n{body}\n</{tag}>"

    def _item(self, lines: list[str]) -> str:
        """The first paragraph may hang at any depth; what follows it is indented by itself."""
        end = 1
        while end < len(lines) and lines[end].strip() and not _BULLET.match(lines[end].strip()):
            end += 1
        first = [line.strip() for line in lines[:end]]
        return "\n".join([*self._blocks(first), self._inside(lines[end:])])

    def _dashed(self, lines: list[str], before: str) -> str:
        pairs: list[list[str]] = []
        for line in lines:
            match = _DASHED.match(line)
            if match:
                pairs.append([match.group(1), match.group(2)])
            else:
                pairs[-1].append(line.strip())
        rows = [(term, self.inline("\n".join(text))) for term, *text in pairs]
        if all(term in self.parameters for term, _ in rows):
            items = (f"<li><code>{html.escape(term, quote=False)}</code> {text}</li>" for term, text in rows)
            return f"<ul>{''.join(items)}</ul>"
        return _dl((html.escape(term, quote=False), f"<p>{text}</p>") for term, text in rows)

    def _definition(self, lines: list[str], before: str) -> str:
        end = next(i for i, line in enumerate(lines) if line[:1] in ("", " "))
        if all(line.strip().partition(" : ")[0].lstrip("*") in self.parameters for line in lines[:end]):
            names = ", ".join(f"<code>{html.escape(line.strip(), quote=False)}</code>" for line in lines[:end])
            return f"<ul><li>{self._inside(lines[end:]).replace('<p>', f'<p>{names} ', 1)}</li></ul>"
        terms = "".join(f"<dt>{self.inline(line.strip())}</dt>" for line in lines[:end])
        return f"<dl>{terms}<dd>{self._inside(lines[end:])}</dd></dl>"

    def _inside(self, lines: list[str]) -> str:
        return "\n".join(self._blocks(_dedent(lines).split("\n")))


def _dl(pairs: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "\n".join(f"<dt>{term}</dt><dd>{text}</dd>" for term, text in pairs) + "</dl>"


def _dedent(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n").rstrip()


def _blank(lines: list[str], i: int) -> int:
    return next((j for j in range(i, len(lines)) if not lines[j].strip()), len(lines))


def _next(lines: list[str], i: int) -> int:
    return next((j for j in range(i, len(lines)) if lines[j].strip()), len(lines))


def _indented_end(lines: list[str], i: int) -> int:
    end = next((j for j in range(i, len(lines)) if lines[j][:1] not in ("", " ")), len(lines))
    return _strip(lines, i, end)


def _bullets_end(lines: list[str], i: int) -> int:
    """A list goes on through blank lines as long as what follows is indented or another item."""
    j = i + 1
    while j < len(lines):
        if lines[j].strip() and lines[j][0] != " " and not _BULLET.match(lines[j]):
            break
        j += 1
    return _strip(lines, i, j)


def _doctest_end(lines: list[str], i: int) -> int:
    """Examples that follow one another with only blank lines between them are one session."""
    indent = len(lines[i]) - len(lines[i].lstrip())
    end = _blank(lines, i)
    while (after := _next(lines, end)) < len(lines) and lines[after].startswith(" " * indent + ">>>"):
        end = _blank(lines, after)
    return end


def _paragraph_end(lines: list[str], i: int) -> int:
    for j in range(i + 1, len(lines)):
        line = lines[j]
        if not line.strip() or line[0] == " " or line.startswith(">>>") or _BULLET.match(line):
            return j
    return len(lines)


def _strip(lines: list[str], start: int, end: int) -> int:
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end
