"""Scattered: a question whose answer needs documents from all over a long context of 8,000 to 1,000,000 tokens.

Why the reward is unarguable: documents are chosen by whether a word stands in them, a word being an unbroken run of
letters, digits and underscores in exactly the spelling asked for; the program that arranged the documents counts them.
The answer is about their order, so that nothing known beforehand helps, and it is checked that no contiguous quarter of
the context gives it: whoever reads only a quarter answers something else, and these answers are among the planted wrong
ones. Left out: questions that need understanding; `written` asks those, of short passages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgsynth.concept import SourceSpan, content_id
from kgsynth.retrieve import is_about
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.shelf import WORD, Document, Library
from kgsynth.synthesize.types.choice import CODE
from kgsynth.synthesize.types.cloze import COMMON
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.web import Hit

CHARS_PER_TOKEN = 4
NEEDLES = (4, 5, 6)  # documents that the answer needs
LEAST_WORD = 5  # characters
LONGEST = 1 / 8  # of the context: a document
FRAME = 40  # characters around a document: its tag, number and title
HEAD = 80  # characters of a document that are cited where it is only passed by
LEAST_DOCUMENTS = 12
TRIES = 8
RULE = (
    "A word is an unbroken run of letters, digits and underscores, in exactly this spelling and case; it counts wherever "
    "it stands in a document's text, also inside code."
)
ASKED = {
    "easy": "Which documents contain the word `{word}`? List their titles in the order in which the documents stand above, "
    "separated by semicolons, in <answer></answer>.",
    "medium": "Add up the numbers of all documents that contain the word `{word}`. Write the sum in <answer></answer>.",
    "hard": "Take each document that contains the word `{word}`, in the order in which they stand above, and find the document "
    "that stands directly after it. List the titles of those following documents in that order, separated by semicolons, in "
    "<answer></answer>.",
}

Shelf = Sequence[Document]
Answer = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Context:
    """Documents in the order of the prompt; the first has number 1."""

    shelf: Shelf
    word: str

    def answer(self, difficulty: str, start: int = 0, end: int | None = None) -> Answer:
        """What follows from the documents [start, end) alone: titles, or the sum as the only item."""
        stop = len(self.shelf) if end is None else end
        found = [i for i in range(start, stop) if self.word in self.shelf[i].words]
        if difficulty == "medium":
            return (str(sum(i + 1 for i in found)),)
        return tuple(self.shelf[j].title for i in found if (j := i + (difficulty == "hard")) < stop)

    def quarters(self) -> list[tuple[int, int]]:
        """For each document the longest run from it on that a quarter of the context can touch, as [start, end)."""
        sizes = [len(document.text) + FRAME for document in self.shelf]
        runs = []
        for start in range(len(sizes)):
            end, room = start + 1, sum(sizes) / 4  # the first and the last count as seen when they are touched
            while end < len(sizes) and room > 0:
                room -= sizes[end]
                end += 1
            runs.append((start, end))
        return runs


def capacity(material: Material, env: SynthesisEnv) -> int:
    return min(3, len(_words(material, env))) if _lengths(env) else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    if not (lengths := _lengths(env)):
        return reject(sample, "material", f"all pages together have {env.shelf.chars} characters; no length fits")
    words = sorted(_words(material, env), key=lambda w: content_id("scattered", str(sample.seed), w))
    if sample.variant >= len(words):
        return reject(sample, "material", f"{len(words)} words of {material.concept.name!r} stand in enough documents")
    tokens = rng_of(sample, "length").choice(lengths)
    for attempt in range(TRIES):
        context = _arranged(words[sample.variant], tokens, env.shelf, rng_of(sample, f"shelf {attempt}"))
        answer = context.answer(sample.difficulty)
        if not any(context.answer(sample.difficulty, *run) == answer for run in context.quarters()):
            return _task(sample, env, material, context, tokens)
    return reject(sample, "unique", f"a quarter of the context was enough in {TRIES} arrangements")


def _lengths(env: SynthesisEnv) -> list[int]:
    """The configured lengths, in tokens, that the pages can fill twice: needles are few, and others must be left."""
    return [tokens for tokens in env.config.context_tokens if 2 * tokens * CHARS_PER_TOKEN <= env.shelf.chars]


def _words(material: Material, env: SynthesisEnv) -> list[str]:
    """Words of the concept's names, and of code in the pages about it, that stand in enough documents and not in too many."""
    concept, holding = material.concept, env.shelf.holding
    own = [page for page in material.pages if is_about(concept, Hit(url=page.url, title=page.title))]
    marked = [code for page in own for code in CODE.findall(page.source.text)]
    words = {word for text in (concept.name, *concept.aliases, *marked) for word in WORD.findall(text)}
    most = max(NEEDLES[-1], len(env.shelf.documents) // 8)
    rare = (word for word in words if NEEDLES[-1] <= len(holding.get(word, ())) <= most)
    return sorted(w for w in rare if len(w) >= LEAST_WORD and w.casefold() not in COMMON and not w.isdigit())


def _arranged(word: str, tokens: int, library: Library, rng: random.Random) -> Context:
    """Documents with the word, one in each of as many stretches of the context, among documents without it."""
    longest = tokens * CHARS_PER_TOKEN * LONGEST
    small = [d for d in library.documents if len(d.text) <= longest]
    needles = [d for d in small if word in d.words]
    others = [d for d in small if word not in d.words]
    needles = rng.sample(needles, min(rng.choice(NEEDLES), len(needles)))
    rng.shuffle(others)
    others.sort(key=lambda d: not _nearly(word, d))  # what only looks like the word comes in first
    room = tokens * CHARS_PER_TOKEN - sum(len(d.text) + FRAME for d in needles)
    shelf = _filling(others, room)
    rng.shuffle(shelf)
    for k, needle in reversed(list(enumerate(needles))):
        low, high = len(shelf) * k // len(needles), len(shelf) * (k + 1) // len(needles)
        shelf.insert(rng.randrange(low, max(low + 1, high)), needle)
    return Context(shelf=shelf, word=word)


def _nearly(word: str, document: Document) -> bool:
    folded = word.casefold()
    return any(folded in other.casefold() for other in document.words)


def _filling(documents: Shelf, room: float) -> list[Document]:
    """Documents from the first on, each that still fits into so many characters."""
    found = []
    for document in documents:
        size = len(document.text) + FRAME
        if size <= room:
            found.append(document)
            room -= size
    return found


def _task(sample: Sample, env: SynthesisEnv, material: Material, context: Context, tokens: int) -> Task | Rejection:
    answer = context.answer(sample.difficulty)
    needles = sum(context.word in document.words for document in context.shelf)
    if len(context.shelf) < LEAST_DOCUMENTS or needles < NEEDLES[0]:
        return reject(
            sample, "material", f"{len(context.shelf)} documents fit, {needles} of them with {context.word!r}"
        )
    if len(set(answer)) < len(answer) or any(";" in title for title in answer):
        return reject(sample, "unique", f"titles that cannot be listed: {answer!r:.200}")
    shown = "\n".join(
        f'<document number="{number}" title="{d.title}">\n{d.text}\n</document>'
        for number, d in enumerate(context.shelf, 1)
    )
    asked = ASKED[sample.difficulty].format(word=context.word)
    number = sample.difficulty == "medium"
    params = {"value": answer[0]} if number else {"items": list(answer), "ordered": True}
    return build_task(
        sample, env, concepts=[material.concept],
        prompt=f"{shown}\n\n{RULE}\n{asked}",
        verifier=VerifierSpec(name="number" if number else "listed", params=params),
        reference=answered("; ".join(answer)),
        wrong=[answered("; ".join(other)) for other in _wrong(context, answer, sample)],
        spans=[_cited(document, context.word) for document in context.shelf],
        hints={"context_tokens": tokens, "documents": len(context.shelf), "needles": needles},
        most_chars=tokens * CHARS_PER_TOKEN + 1000 + FRAME * len(context.shelf),
    )  # fmt: skip


def _cited(document: Document, word: str) -> SourceSpan:
    """The line that has the word; of a document that has it not, how it begins."""
    source = document.page.source
    at = next((m.start() for m in WORD.finditer(source.text) if m.group() == word), 0)
    start = source.text.rfind("\n", 0, at) + 1
    return source.span(start, min(len(source.text), max(start + HEAD, at + len(word))))


def _wrong(context: Context, answer: Answer, sample: Sample) -> list[Answer]:
    """What a reader of each quarter would say, then slips of one who read it all."""
    partial = {context.answer(sample.difficulty, *run) for run in context.quarters()}
    read = sorted(partial - {answer, (), ("0",)}, key=lambda other: (-len(other), content_id("q", *other)))
    slips: list[Callable[[], Answer]]
    if sample.difficulty == "medium":
        total = int(answer[0])
        slips = [lambda k=k: (str(total + k),) for k in (1, -1, len(context.shelf), 10)]
    else:
        extra = next(d.title for d in context.shelf if d.title not in answer and ";" not in d.title)
        slips = [
            lambda: (*answer, extra), lambda: answer[:-1], lambda: answer[1:], lambda: (answer[1], answer[0], *answer[2:]),
            lambda: tuple(reversed(answer)), lambda: (*answer[:-1], extra),
        ]  # fmt: skip
    return [*(slip() for slip in slips), *read][:10]


register(
    TaskType(
        name="scattered",
        area="long context",
        why="A program arranged the documents and counts the words in them; no contiguous quarter gives the answer.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
