"""Cloze tasks: one term of a documented sentence is missing.

Why the reward is unarguable: the answer is what the cited source says, and the prompt gives the term's first letter and
length; an easy task gives its last letter too. A term is a name or a part of a name that the graph knows, or an identifier:
words of common English, which others may stand for, are never asked for. It is used only when no other term known to the
graph and no other word of the page has that first letter and length, and when the rest of the quotation does not tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kgsynth.concept import content_id, name_key
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import WORD, Rejection, SynthesisEnv, answered, build_task, reject
from kgsynth.synthesize.masks import BLANK, plain
from kgsynth.synthesize.material import Material, Sentence
from kgsynth.task import Task, VerifierSpec

COMMON = frozenset(
    "about above after already various unlike again against also although always another because become becomes before behind being below between"
    " beyond called cannot could defined described does doing during each either enough every example except first following"
    " follows further given gives have having hence however instead into itself least less like many means might more most"
    " much must need needs neither never note often only other others otherwise over people rather same second see several"
    " shall should similar since some something such than that their them then there therefore these they this those though"
    " through thus together under unless until upon used user uses using usually very well were what when where whether which"
    " while whose will with within without would your available likely possible simply still value values version python module modules"
    " function functions object objects argument arguments method methods class classes default return returns true false none".split()
)


@dataclass(frozen=True)
class Gap:
    """A term to blank: offsets in the page's text."""

    start: int
    end: int
    term: str


def capacity(material: Material, env: SynthesisEnv) -> int:
    return sum(bool(gaps(sentence, env)) for sentence in material.sentences[:8])


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    usable = [sentence for sentence in material.sentences[:8] if gaps(sentence, env)]
    usable.sort(key=lambda s: content_id("cloze", str(sample.seed), s.page.url, str(s.start)))
    if sample.variant >= len(usable):
        return reject(
            sample, "material", f"{len(usable)} sentences about {material.concept.name!r} have a term to ask for"
        )
    sentence = usable[sample.variant]
    found = gaps(sentence, env)
    named = [gap for gap in found if name_key(gap.term) in env.vocabulary] or found
    gap = min(named, key=lambda g: content_id("gap", str(sample.seed), str(sample.index), g.term))
    return _task(sample, env, material, sentence, gap)


def _task(sample: Sample, env: SynthesisEnv, material: Material, sentence: Sentence, gap: Gap) -> Task | Rejection:
    text = sentence.page.source.text
    quoted = plain(text[sentence.context : gap.start] + BLANK + text[gap.end : sentence.end])
    ends = f' and ends with "{gap.term[-1]}"' if sample.difficulty == "easy" else ""
    prompt = (
        f"{sentence.page.title}: {quoted}\nThe blank is a term of {len(gap.term)} characters that starts with "
        f'"{gap.term[0]}"{ends}. Write it in <answer></answer>.'
    )
    wrong = _wrong_terms(gap, sentence, env)
    if not wrong:
        return reject(sample, "wrong", f"no other term to plant beside {gap.term!r}")
    return build_task(
        sample,
        env,
        concepts=[material.concept],
        prompt=prompt,
        verifier=VerifierSpec(name="text", params={"answers": [gap.term]}),
        reference=answered(gap.term),
        wrong=[answered(term) for term in wrong],
        spans=[sentence.page.source.span(sentence.context, sentence.end)],
    )


def gaps(sentence: Sentence, env: SynthesisEnv) -> list[Gap]:
    """Terms of the sentence that only the source's own term fits."""
    text = sentence.page.source.text
    shown = f"{sentence.page.title} {text[sentence.context : sentence.end]}".casefold()
    return [
        gap for gap in _terms(text, sentence, env) if _hidden(gap.term, shown) and _only_fit(gap.term, sentence, env)
    ]


def _terms(text: str, sentence: Sentence, env: SynthesisEnv) -> Iterator[Gap]:
    """Names of concepts, then other words that stand for one thing."""
    named = list(env.concept_names_in(text, sentence.start, sentence.end))
    words = [m.span() for m in WORD.finditer(text, sentence.start, sentence.end)]
    free = [(a, b) for a, b in words if not any(start <= a < end for start, end in named)]
    for start, end in [*named, *free]:
        term = text[start:end]
        if text[end : end + 1] == "_" or text[max(0, start - 1) : start] in ("_", "."):
            continue  # a part of a longer name
        if len(term) >= 5 and term.casefold() not in COMMON and ((start, end) in named or _is_term(term, env)):
            yield Gap(start, end, term)


def _is_term(word: str, env: SynthesisEnv) -> bool:
    """A part of a concept's name, or an identifier: `XMLParser`, `JSON-RPC`, `as_integer_ratio`."""
    is_identifier = bool(re.search(r"[a-z][A-Z]|[A-Z]{2}|[._]|\d", word))
    return is_identifier or word.casefold() in env.terms_like(word[0].casefold(), len(word))


def _hidden(term: str, shown: str) -> bool:
    """Does the term, or its stem, occur once only in what the prompt shows?"""
    stem = term.casefold()[: max(4, len(term) - 2)]
    return shown.count(stem) == 1


def _only_fit(term: str, sentence: Sentence, env: SynthesisEnv) -> bool:
    """Has no other known term, and no other word of the page, the same first letter and length?"""
    folded = term.casefold()
    words = {w for w in env.page_words(sentence.page) if len(w) == len(folded) and w[0] == folded[0]}
    return not (words | env.terms_like(folded[0], len(folded))) - {folded}


def _wrong_terms(gap: Gap, sentence: Sentence, env: SynthesisEnv) -> list[str]:
    """Other words of the page, those of the nearest length first."""
    words = {w for w in env.page_words(sentence.page) if w.isalpha() and len(w) >= 4} - COMMON
    pool = words - {gap.term.casefold()}
    return sorted(pool, key=lambda word: (abs(len(word) - len(gap.term)), word))[:3]


register(
    TaskType(
        name="cloze",
        area="knowledge",
        why="The answer is the source's own term; no other term of the graph or the page fits the blank.",
        capacity=capacity,
        draft=draft,
        difficulties=("easy", "medium"),
    )
)
