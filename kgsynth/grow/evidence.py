"""The words of a page that support a proposal: found letter by letter, and refused when they are orders instead of facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from kgsynth.concept import Decision, SourceSpan
from kgsynth.llm.questions import ZERO_WIDTH, Proposal
from kgsynth.web import Page
from kgsynth.web.screen import commands, is_clean


def support(proposal: Proposal, pages: Sequence[Page]) -> tuple[Page, SourceSpan] | Decision:
    """The page and the span that support a proposal, or why there is none."""
    found = next(_finds(proposal, pages), None)
    if found is None:
        return _refused(proposal, "unsupported", "quote not on the page")
    page, start, end = found
    added = " ".join(t for t in (proposal.name, proposal.definition, *proposal.aliases) if t not in page.source.text)
    if (added and not is_clean(added)) or any(a < end and b > start for a, b in _orders(page.source.text)):
        return _refused(proposal, "hostile", f"{page.url} gives orders to its reader where it was quoted")
    return page, page.source.span(start, end)


@lru_cache(maxsize=512)
def _orders(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of a page's text that give orders; agents look at one page many times."""
    return tuple((start, end) for start, end, _ in commands(text))


def _refused(proposal: Proposal, outcome: str, reason: str) -> Decision:
    evidence = (("quote", proposal.quote[:200]),)
    return Decision(kind="drop", subject=proposal.name, outcome=outcome, reason=reason, evidence=evidence)


def _finds(proposal: Proposal, pages: Sequence[Page]) -> Iterator[tuple[Page, int, int]]:
    """Exact matches first, then matches that differ in white space only (models reflow what they copy)."""
    quote = proposal.quote.replace(ZERO_WIDTH, "").strip()
    order = [*pages[proposal.page : proposal.page + 1], *pages]
    for page in order:
        start = page.source.text.find(quote)
        if quote and start >= 0:
            yield page, start, start + len(quote)
    squeezed = " ".join(quote.split())
    for page in order if squeezed else ():
        words, offsets = _squeeze(page.source.text)
        start = words.find(squeezed)
        if start >= 0:
            yield page, offsets[start], offsets[start + len(squeezed) - 1] + 1


def _squeeze(text: str) -> tuple[str, list[int]]:
    """The text with runs of white space as one space, and each character's offset in the original."""
    kept = [
        (" " if c.isspace() else c, i) for i, c in enumerate(text) if not (c.isspace() and text[i - 1 : i].isspace())
    ]
    return "".join(c for c, _ in kept), [i for _, i in kept]
