"""A brain without a model: deterministic, extractive, and it says so in its name.

It proposes only what a page *about* the concept shows by its structure: the sections it has and the terms it defines
(definition lists, bold terms). It invents no names and no text; every proposal's quote and definition stand in the page.

Left out on purpose: synonyms it has not seen written, relations that only prose states, any judgement of quality.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from kgsynth.concept import Concept, name_key
from kgsynth.llm import Question, Reply
from kgsynth.llm.questions import (
    JudgeAtomic,
    Judged,
    Judgements,
    PlanQueries,
    Proposal,
    Proposals,
    Propose,
    Queries,
    SameConcept,
    Sameness,
)
from kgsynth.web import Heading, Page

# Section titles that structure a page but name no concept, in the number they are written in: "Exceptions" heads a
# list, `Exception` is a class.
BOILERPLATE = frozenset(
    (
        "see also,example,examples,note,notes,description,synopsis,overview,introduction,contents,table of contents,index,"
        "references,related topics,summary,usage,options,parameters,return value,copyright,license,authors,bugs,history,"
        "functions,classes,methods,members,attributes,constants,exceptions,data,submodules,modules,base classes,"
        "subclasses,module contents,details,general,other,miscellaneous,compatibility,limitations,footnotes,changelog,"
        "methods and attributes,attributes and methods,cpython implementation detail,implementation detail,building blocks,"
        "inherited from,mentioned in,topics,doctest,documentation,signature,definition,background,navigation,home"
    ).split(",")
)
NAME = re.compile(r"[^\W_][\w.+#'/& -]*", re.UNICODE)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])|\n\s*\n")


class OfflineExtractive:
    """Answers questions by rules on the pages' structure. No randomness, no network, no model."""

    name = "offline-extractive (no model)"
    uses_model = False

    async def ask(self, question: Question[Reply]) -> Reply:
        """Raises TypeError for a kind of question that only a model can answer."""
        rule = RULES.get(type(question))
        if rule is None:
            raise TypeError(f"{self.name} cannot answer {type(question).__name__}; configure [llm] kind = 'openai'")
        return rule(question)

    async def close(self) -> None:
        return None


def plan_queries(question: PlanQueries) -> Queries:
    """The name alone, then the name with its nearest ancestor, then with its keywords."""
    concept = question.concept
    context = question.ancestors[-1].name if question.ancestors else concept.domain
    wanted = [concept.name, f"{concept.name} {context}", " ".join([concept.name, *concept.keywords[:4]])]
    return Queries(queries=list(dict.fromkeys(w.strip() for w in wanted))[: max(1, question.n)])


def propose(question: Propose) -> Proposals:
    """What the pages about the concept (or the section of its parent's page that bears its name) show below it."""
    items: dict[str, Proposal] = {}
    own = set(question.concept.keys) | {k for a in question.ancestors for k in a.keys}
    for number, page in enumerate(question.pages):
        for scope in _scopes(page, question):
            for proposal in _shown(number, page, scope):
                key = name_key(proposal.name)
                if key and key not in own and proposal.name.casefold() not in BOILERPLATE:
                    items.setdefault(key, proposal)
    return Proposals(items=list(items.values())[: question.limit])


def is_about(page: Page, concept: Concept) -> bool:
    """True when the page's title, or a part of it before or after a dash, colon or bar, is a name of the concept."""
    parts = re.split(r"\s+[-–—|:·]+\s+|:\s+", page.title)
    return any(name_key(part) in concept.keys for part in (page.title, *parts))


def _scopes(page: Page, question: Propose) -> Iterator[range]:
    """The stretch of a page that is about the concept: all of it, or one section of a page about its parent."""
    if is_about(page, question.concept):
        yield range(len(page.source.text))
    elif question.ancestors and is_about(page, question.ancestors[-1]):
        for heading in page.headings:
            if heading.level > 1 and name_key(clean_name(heading.text)) in question.concept.keys:
                yield range(heading.end, _section_end(page, heading))


def _section_end(page: Page, heading: Heading) -> int:
    ends = (h.start for h in page.headings if h.start > heading.start and h.level <= heading.level)
    return min(ends, default=len(page.source.text))


def _shown(number: int, page: Page, scope: range) -> Iterator[Proposal]:
    """Sections that explain themselves, and terms defined outside of these, in the order of the page.

    What such a section defines is finer than the section, and is found when the section is researched.
    """
    found: list[tuple[int, Proposal]] = []
    inside: list[range] = []
    for heading in page.headings:
        lead = _lead(page, heading) if heading.level > 1 and heading.start in scope else ""
        if len(lead) >= 20 and not any(heading.start in part for part in inside):
            made = list(_proposal(number, heading.text, lead, lead[:1200]))
            if made and made[0].name.casefold() not in BOILERPLATE:
                inside.append(range(heading.end, _section_end(page, heading)))
                found.append((heading.start, made[0]))
    for item in page.definitions:
        if item.start in scope and not any(item.start in part for part in inside) and names_one_thing(item.term, page):
            quote = page.source.text[item.start : item.end][:1200]
            found += [(item.start, made) for made in _proposal(number, item.term, item.text, quote)]
    yield from (proposal for _, proposal in sorted(found, key=lambda pair: pair[0]))


def names_one_thing(term: str, page: Page) -> bool:
    """False for names that mean something only where they stand: `copy()` of what?, and parameters on an API page."""
    bare = re.fullmatch(r"[`*]*([^\W\d]\w*)(\(.*\))?[`*]*", term.strip(), re.DOTALL)
    if bare is None:
        return True
    prefix = page.title + "."
    api_page = any(d.term.strip("`* ").startswith(prefix) for d in page.definitions)
    return bare[2] is None and not (api_page and bare[1].islower())


def _proposal(number: int, term: str, text: str, quote: str) -> Iterator[Proposal]:
    """One proposal, or none when the term is no name or nothing explains it."""
    name, definition = clean_name(term), first_sentence(text)[:600]
    if name and definition and len(quote) >= 8:
        alias = term.split("(")[0].strip(" `*")
        aliases = [alias] if len(alias) <= 60 and name_key(alias) not in ("", name_key(name)) else []
        yield Proposal(
            name=name, definition=definition, page=number, quote=quote, aliases=aliases, keywords=_keywords(definition)
        )


def _lead(page: Page, heading: Heading) -> str:
    """The first sentence below a heading, exactly as it stands there; empty when no prose follows before the next one."""
    ends = [h.start for h in page.headings if h.start > heading.end]
    body = page.source.text[heading.end : min(ends, default=len(page.source.text))]
    for block in re.split(r"\n\s*\n", body):
        text = block.strip("\n #")
        if text and not text.startswith(("```", "|", ">>>", "- ", "* ", "**")):
            return first_sentence(text)
    return ""


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence, or the first blank line; a prefix of `text.strip()`."""
    return SENTENCE_END.split(text.strip(), maxsplit=1)[0].strip()


def clean_name(term: str) -> str:
    """A concept name from a heading or term: markup, numbering, call parentheses removed; "" when it is no name."""
    text = re.sub(r"[`*]|\\(?=[_*])|\[(.*?)\]\([^)]*\)", lambda m: m.group(1) or "", term)
    text = re.sub(
        r"^\s*(?:[\dA-Z]+(?:\.\d+)*\.?\s+(?=\S)|(?:class|function|module|exception|async)\s+(?=\S))", "", text
    )
    text = re.sub(r"\s*\(.*\)?\s*$", "", text).strip(" .:;,-–—")
    words = text.split()
    if not 1 <= len(words) <= 6 or len(text) > 60 or not NAME.fullmatch(text) or len(text) < 2:
        return ""
    return text


def _keywords(definition: str) -> list[str]:
    """Longest plain words of a definition, in order of appearance."""
    words = dict.fromkeys(re.findall(r"[a-z]{5,}", definition.lower()))
    return sorted(sorted(words, key=len, reverse=True)[:6], key=list(words).index)


def same_concept(question: SameConcept) -> Sameness:
    """Only equal spellings are the same to a brain that knows no meaning."""
    shared = set(question.candidate.keys) & set(question.known.keys)
    relation = "same" if shared else "different"
    return Sameness(relation=relation, reason=f"shared spellings: {', '.join(sorted(shared)) or 'none'}")


def judge_atomic(question: JudgeAtomic) -> Judgements:
    """Unsure of all of them: what has no finer parts shows on its pages only, when it is researched."""
    reason = "a brain without a model tells it by the pages"
    return Judgements(
        items=[
            Judged(number=i, verdict="unsure", criterion="unknown", reason=reason) for i in range(len(question.finer))
        ]
    )


RULES: dict[type, Callable[[Any], Any]] = {
    PlanQueries: plan_queries,
    Propose: propose,
    SameConcept: same_concept,
    JudgeAtomic: judge_atomic,
}
