"""A source cut into chunks of whole paragraphs, and a text cut into code, and sentences of everything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kgsynth.concept import Source
from kgsynth.web.sentences import sentence_end

CODE = re.compile(
    r"(?P<fence>^[ \t]*(?P<mark>```|~~~)[^\n]*\n.*?^[ \t]*(?P=mark)[ \t]*$)|(?P<session>(?:^[ \t]*(?:>>>|\.\.\.)[^\n]*(?:\n(?!\s*$)[^\n]*)*))",
    re.DOTALL | re.MULTILINE,
)
_BLANK = re.compile(r"\n[ \t]*\n+")
LABEL = re.compile(
    r"^\s*(?:#{1,6}\s+|[-*+•]\s+|\d+[.)]\s+|(?:\*\*)?(?:Question|Answer|Student|Teacher|Reader|Author|Definition|Note|Remark|Fact"
    r"|Summary|Key points?|In short|Topic)(?:\*\*)?\s*[:.]\s*(?:\*\*)?|[QA]:\s*)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Whole paragraphs of a source: source.text[start:end]."""

    source: Source
    number: int  # within the source, from 0
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


def chunks(source: Source, most: int, least: int) -> list[Chunk]:
    """Consecutive paragraphs of up to `most` characters together; a longer paragraph is a chunk alone, never cut.

    A heading starts a new chunk. What has fewer than `least` characters in the end is left out: nothing to tell anew.
    """
    found: list[tuple[int, int]] = []
    for start, end in _paragraphs(source.text):
        fits = found and end - found[-1][0] <= most
        starts_new = source.text.startswith("#", start) and found and found[-1][1] - found[-1][0] >= least
        if fits and not starts_new:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    long = [(start, end) for start, end in found if end - start >= least]
    return [Chunk(source=source, number=n, start=start, end=end) for n, (start, end) in enumerate(long)]


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each, without the blank lines between; a fenced block is one whatever is in it."""
    code = [match.span() for match in CODE.finditer(text)]
    at = 0
    for gap in [*_BLANK.finditer(text), None]:
        end = gap.start() if gap else len(text.rstrip())
        if gap and any(start < gap.start() < stop for start, stop in code):
            continue
        if text[at:end].strip():
            start = at + len(text[at:end]) - len(text[at:end].lstrip("\n"))
            yield start, end
        at = gap.end() if gap else end


def code_blocks(text: str) -> list[str]:
    """Fenced blocks and interactive sessions, as they stand there."""
    return [match[0] for match in CODE.finditer(text)]


def prose(text: str) -> str:
    """The text without its blocks of code."""
    return CODE.sub("\n\n", text)


def sentences(text: str) -> list[str]:
    """Sentences of the prose, and items of lists, without bullets, headings' marks and labels, white space collapsed."""
    found = []
    for paragraph in _BLANK.split(prose(text)):
        for part in _lines(paragraph):
            at = 0
            while at < len(part):
                end = sentence_end(part, at)
                if sentence := part[at:end].strip():
                    found.append(sentence)
                at = max(end, at + 1)
    return found


def _lines(paragraph: str) -> list[str]:
    """Lines of running text are joined; an item of a list, a heading and a labelled line begin anew."""
    parts: list[str] = []
    for line in paragraph.split("\n"):
        bare = LABEL.sub("", line)
        if parts and bare == line:
            parts[-1] = f"{parts[-1]} {line.strip()}"
        else:
            parts.append(bare)
    return [joined for part in parts if (joined := " ".join(part.split()))]
