"""Knowledge tasks without a model: masked spans, multi-hop, quantities, computed mathematics; from the built-in documentation."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import random
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from kgsynth.concept import Concept, Source
from kgsynth.embed import open_embedder
from kgsynth.graph import ConceptGraph
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.sample import Sample
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import TYPES, Rejection, SynthesisEnv, survey
from kgsynth.synthesize.facts import Facts, source_name
from kgsynth.synthesize.hops import Puzzle, has_shortcut, names_its_way, needs_all, solve
from kgsynth.synthesize.masks import plain, stems
from kgsynth.synthesize.problems import Problem, load, same, written
from kgsynth.synthesize.quantities import _stated
from kgsynth.task import DIFFICULTIES, Task
from kgsynth.validate import validate
from kgsynth.verifiers import verify
from kgsynth.verifiers.choice import choice
from kgsynth.verifiers.number import judge, wanted
from kgsynth.web import Page
from kgsynth.web.corpus import Corpus, CorpusConfig, open_corpus
from kgsynth.web.read import Reader

MODULES = {
    "exceptions": ("exceptions",),
    "containers": ("collections", "collections.abc", "mailbox", "configparser", "weakref", "shelve"),
    "numbers": ("math", "statistics", "numbers", "fractions", "itertools", "operator"),
    "text": ("textwrap", "pprint", "difflib", "hashlib", "functools", "uuid", "codecs"),
}
VARIANTS: dict[tuple[str, int], int] = {}  # (type, index of a sample) -> its variant
KINDS = ("masked", "hops", "quantity", "computed", "choice", "cloze")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return open_corpus(CorpusConfig(), open_embedder("hashing"))


@pytest.fixture(scope="module")
def env(corpus: Corpus) -> SynthesisEnv:
    return asyncio.run(_surveyed(corpus))


async def _surveyed(corpus: Corpus) -> SynthesisEnv:
    """Modules and what their pages link to, as deep as classes and their methods."""
    graph, reader = ConceptGraph(EmbeddedStore(":memory:")), Reader(corpus)
    root, base = graph.add(Concept(name="the library", domain="python")), corpus.urls()[0].rsplit("/", 2)[0]
    known = set(corpus.urls())
    for domain, modules in MODULES.items():
        top = graph.add(Concept(name=f"{domain} pages", domain=domain), [root])
        for module in modules:
            url = f"{base}/chapters/exceptions" if module == "exceptions" else f"{base}/library/{module}"
            page = await reader.read(url)
            parent = graph.add(
                Concept(name=page.title, domain=domain), [top], spans=[page.source.span(0, 60)], sources=[page.source]
            )
            for link in [x for x in page.links if x.url in known and "#" not in x.url][:25]:
                member = Concept(name=link.url.rsplit("/", 1)[-1].removeprefix("builtins."), domain=domain)
                if member not in graph:
                    span = page.source.span(link.start, link.end)
                    graph.add(member, [parent], spans=[span], sources=[page.source])
    env = SynthesisEnv(graph=graph, search=corpus, reader=reader, llm=OfflineExtractive(), sandbox=None)  # type: ignore[arg-type]
    await survey(env)
    return env


def _draft(kind: str, sample: Sample, env: SynthesisEnv) -> Task | Rejection:
    async def work() -> Task | Rejection:
        assert env.material is not None
        return await TYPES[kind].draft(sample, env.material[sample.concept], env)

    return asyncio.run(work())


def asked_for(env: SynthesisEnv, kind: str, each: int = 2, seed: int = 3) -> list[Task | Rejection]:
    """What every concept with material gives, cells in turn."""
    made, kind_of = list[Task | Rejection](), TYPES[kind]
    cells = [(scope, difficulty) for scope in kind_of.scopes for difficulty in kind_of.difficulties]
    assert env.material is not None
    for concept in env.concepts:
        material = env.material[concept.id]
        for variant in range(min(each, kind_of.capacity(material, env))):
            index = len(made)
            scope, difficulty = cells[index % len(cells)]
            sample = Sample(
                index=index, seed=seed, type=kind, domain=concept.domain, granularity="middle", concept=concept.id,
                variant=variant, scope=scope, difficulty=difficulty,
            )  # fmt: skip
            VARIANTS.setdefault((kind, index), variant)
            made.append(_draft(kind, sample, env))
    return made


@pytest.fixture(scope="module")
def made(env: SynthesisEnv) -> dict[str, list[Task]]:
    return {kind: [t for t in asked_for(env, kind) if isinstance(t, Task)] for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_gives_tasks_that_pass_the_gate(kind: str, made: dict[str, list[Task]]) -> None:
    """The reference scores 1, nothing and every planted wrong answer 0, in every scope and difficulty that is offered."""
    tasks, refused = made[kind][:: 9 if kind == "computed" else 2], Counter[str]()
    for task in tasks:
        try:
            validate(task, None)
        except Exception as error:
            refused[str(error)] += 1
    assert len(made[kind]) >= 20
    assert sum(refused.values()) <= len(tasks) / 50, refused
    assert {task.difficulty for task in made[kind]} == set(TYPES[kind].difficulties)
    assert {task.scope for task in made[kind]} == set(TYPES[kind].scopes)
    assert all(task.provenance.spans and task.wrong and len(task.prompt) <= 1200 for task in tasks)


@pytest.mark.parametrize("kind", ["masked", "hops", "quantity", "choice"])
def test_a_draft_depends_on_its_sample_only(kind: str, env: SynthesisEnv, made: dict[str, list[Task]]) -> None:
    """Another environment, another order: the same task."""
    fresh = replace(env, material=env.material, named={}, bases={})
    for task in made[kind][::-6]:
        where = task.provenance
        sample = Sample(
            index=where.index, seed=where.seed, type=kind, domain=task.domain, granularity=task.granularity,
            concept=where.concepts[0], variant=VARIANTS[kind, where.index], scope=task.scope, difficulty=task.difficulty,
        )  # fmt: skip
        assert _draft(kind, sample, fresh) == task


# --------------------------------------------------------------------------------------------------------------- masked


def test_neither_place_nor_length_gives_a_masked_span_away(env: SynthesisEnv) -> None:
    """Guessing always the same letter, the longest or the shortest option is right about one time in four."""
    tasks = [t for seed in (3, 4) for t in asked_for(env, "masked", each=2, seed=seed) if isinstance(t, Task)]
    places, ranks = Counter[str](), Counter[int]()
    for task in tasks:
        texts, correct = task.verifier.params["texts"], task.verifier.params["correct"]
        places[correct] += 1
        ranks[sorted(texts, key=lambda letter: len(texts[letter])).index(correct)] += 1
        assert len({len(text) for text in texts.values()} - {len(texts[correct])}) >= 1
    assert len(tasks) >= 100
    assert all(0.15 <= n / len(tasks) <= 0.35 for n in (*places.values(), *ranks.values())), (places, ranks)


def test_masked_words_are_the_sources_own_and_the_others_are_refutable(
    made: dict[str, list[Task]], env: SynthesisEnv
) -> None:
    for task in made["masked"]:
        texts, correct = task.verifier.params["texts"], task.verifier.params["correct"]
        passage = task.prompt.split("\n\n")[1]
        assert texts[correct] in plain(task.provenance.spans[0].text)
        for letter in set(texts) - {correct}:
            assert texts[letter] not in plain(task.provenance.spans[0].text)
            assert texts[letter] not in passage
            shared = stems(texts[letter]) & stems(texts[correct])
            assert 2 * len(shared) < max(1, min(len(stems(texts[letter])), len(stems(texts[correct])))) or not shared


def test_an_option_with_its_text_counts_and_with_another_does_not(made: dict[str, list[Task]]) -> None:
    task = made["masked"][0]
    texts, right = task.verifier.params["texts"], task.verifier.params["correct"]
    wrong = next(letter for letter in texts if letter != right)
    for answer in (
        right,
        f"{right}) {texts[right]}",
        f"{right} ({texts[right]})",
        f"({right}) {texts[right]}",
        texts[right],
    ):
        assert verify(f"<answer>{answer}</answer>", task, None).score == 1, answer
    for answer in (
        wrong,
        f"{right}) {texts[wrong]}",
        f"{right} ({texts[wrong]})",
        f"{wrong}) {texts[right]}",
        f"{right} or {wrong}",
    ):
        assert verify(f"<answer>{answer}</answer>", task, None).score == 0, answer


@pytest.mark.parametrize(
    ("answer", "score"), [("B (a heap)", 1), ("B. (a heap)", 1), ("B (a list)", 0), ("A (a heap)", 0), ("(a heap)", 0)]
)
def test_a_text_in_brackets_after_its_letter(answer: str, score: int) -> None:
    params = {"correct": "B", "options": ["A", "B"], "texts": {"A": "a list", "B": "a heap"}}
    assert choice(f"<answer>{answer}</answer>", params, None).score == score


# ----------------------------------------------------------------------------------------------------------------- hops


def test_facts_are_true_of_the_running_python(env: SynthesisEnv) -> None:
    checked = 0
    for name, fact in env.facts.relation("base").items():
        cls = _found(name)
        if isinstance(cls, type) and cls.__module__ != "typing":
            assert [b.__name__ for b in cls.__bases__] == [fact.object.rsplit(".", 1)[-1]], name
            checked += 1
    assert checked >= 60


def _found(name: str) -> object:
    if "." not in name:
        return getattr(builtins, name, None)
    module, _, inner = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), inner, None)
    except ImportError:
        return None


def test_no_hop_can_be_left_out_and_none_is_named(env: SynthesisEnv) -> None:
    puzzles = [
        p for concept in env.concepts for scope in TYPES["hops"].scopes for p in env.puzzles.of(concept.id, scope)
    ]
    assert len(puzzles) >= 100
    for puzzle in puzzles[::3]:
        assert solve(puzzle, env.facts) == {puzzle.answer}
        assert all(len(solve(puzzle, env.facts, fact)) >= 2 for fact in puzzle.facts)
        assert not names_its_way(puzzle)
        assert not has_shortcut(puzzle, env.facts)
    commonest = Counter(p.answer for p in puzzles).most_common(1)[0][1]
    assert commonest <= 0.25 * len(puzzles)


def test_the_checks_see_a_hop_that_is_not_needed_and_a_shortcut(env: SynthesisEnv) -> None:
    puzzle = next(p for c in env.concepts for p in env.puzzles.of(c.id, "path"))
    start, last = puzzle.chains[0].start, puzzle.chains[0].steps[-1]
    only = [replace(last, page="", span=last.span)]
    lone = Facts([], None)
    for fact in (start, *puzzle.chains[0].steps, *only):
        lone._relations[fact.relation][fact.subject] = fact
    assert not needs_all(puzzle, lone)  # with nothing else known, every gap has one filling
    told = replace(last, page=f"{start.object} {puzzle.answer}")
    short = Puzzle((replace(puzzle.chains[0], steps=(*puzzle.chains[0].steps[:-1], told)),), "end", puzzle.answer)
    assert has_shortcut(short, env.facts)


def test_an_answer_counts_under_every_name(env: SynthesisEnv) -> None:
    assert {"OSError", "IOError", "EnvironmentError"} <= set(env.facts.spellings("EnvironmentError"))
    assert "MutableMapping" in env.facts.spellings("collections.abc.MutableMapping")
    assert env.facts.spellings("mailbox.Message")[0] == "mailbox.Message"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("pydoc://3.11/library/math", "Python 3.11"),
        ("file:///usr/share/dictd/foldoc.index/tree", "FOLDOC"),
        ("file:///usr/share/doc/sqlite3/limits.html", "sqlite3"),
        ("https://example.org/a/b", "example.org"),
    ],
)
def test_sources_have_names(url: str, name: str) -> None:
    assert source_name(url) == name


# ------------------------------------------------------------------------------------------------------------- quantity


def _page(text: str) -> Page:
    return Page(source=Source(url="file:///doc/x/a.html", title="A", text=text))


@pytest.mark.parametrize(
    ("sentence", "value"),
    [
        ("The first_page header takes 100 bytes of the file.", 100),
        ("A frame header consists of a 32-bit unsigned integer.", 32),
        ("The header takes at least 100 bytes of the file.", None),
        ("By default the header takes 100 bytes of the file.", None),
        ("On Windows the header takes 100 bytes of the file.", None),
        ("The header takes between 100 and 200 bytes of the file.", None),
        ("The header takes about 100 bytes of the file.", None),
        ("In version 3 the header takes 100 bytes of the file.", None),
        ("It takes the lower 127 byte codes of the character set.", None),
        ("If it is set, the header takes 100 bytes of the file.", None),
    ],
)
def test_only_unconditional_numbers_count(sentence: str, value: int | None) -> None:
    found = [q.value for q in _stated(_page(sentence), 0, len(sentence))]
    assert found == ([] if value is None else [Fraction(value)])


def test_quantities_are_worked_out_right(made: dict[str, list[Task]]) -> None:
    """A second time, from the words of the prompt."""
    seen = Counter[str]()
    for task in made["quantity"]:
        value = Fraction(str(task.verifier.params["value"]))
        if found := re.search(r"sha(?:3-)?(\d+) hash.*?How many hexadecimal digits do (\d+) such", task.prompt):
            assert value == int(found[1]) // 4 * int(found[2])
            for noun in ("hexadecimal digits", "hex digits", "digits"):
                assert judge(f"{value} {noun}", wanted(task.verifier.params)) == "right"
            seen["digest"] += 1
        numbers = re.findall(r"the parameter '(\w+)' of ([\w.]+)", task.prompt)
        if len(numbers) == 2 and "sum of the two" in task.prompt:
            texts = [span.text for span in task.provenance.spans]
            given = [
                {int(n) for text in texts for n in re.findall(rf"\b{name}=(\d+)", text) if of.rsplit(".")[-1] in text}
                for name, of in numbers
            ]
            assert value in {Fraction(a + b) for a in given[0] for b in given[1]}
            seen["sum"] += 1
    assert seen["digest"]
    assert seen["sum"]


# ------------------------------------------------------------------------------------------------------------- computed


@pytest.mark.parametrize("name", sorted(load()))
def test_a_family_is_solved_alike_by_two_ways(name: str) -> None:
    for level in range(len(DIFFICULTIES)):
        problems = [load()[name].pose(random.Random(f"{name} {k}"), level) for k in range(6)]
        for problem in problems:
            assert problem.agrees, (problem.text, problem.answer, problem.again)
            assert len(problem.mistakes()) >= 3
            assert not any(same(problem.answer, slip) for slip in problem.mistakes())
        assert len({problem.text for problem in problems}) >= 2


def test_a_distance_in_standard_deviations_is_worked_out() -> None:
    answers = [load()["normal distribution"].pose(random.Random(seed), 0).answer for seed in range(3000)]
    assert not {-1, 0, 1} & set(answers)
    assert min(answers) < 0 < max(answers)


def test_ways_that_differ_are_seen() -> None:
    problem = Problem(text="How many?", answer=3, again=4, slips=(2,))
    assert not problem.agrees
    assert replace(problem, again=3.0000000001).agrees
    assert not replace(problem, again=3.1).agrees


def test_answers_are_written_as_the_verifier_reads_them() -> None:
    assert written(frozenset({Fraction(1, 2), 3})) == "\\{1/2, 3\\}"
    assert written((Fraction(-3, 4), 2)) == "(-3/4, 2)"


def test_computed_tasks_cite_the_line_that_speaks_of_them(made: dict[str, list[Task]]) -> None:
    says = {name: family.says for name, family in load().items()}
    for task in made["computed"]:
        assert any(pattern.search(task.provenance.spans[0].text) for pattern in says.values())
        assert task.reference != "<answer>1</answer>"
