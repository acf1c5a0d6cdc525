"""What training says about a graph: rates, weights, advice; and that acting on it is one operation, done once."""

# ruff: noqa: F811  (fixtures are imported, and named by the tests that want them)

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgsynth.annotate import annotate
from kgsynth.concept import Concept
from kgsynth.doctor import examine
from kgsynth.embed import HashingEmbedder
from kgsynth.errors import ConfigError, StaleError
from kgsynth.feedback import (
    UNTRIED,
    Advice,
    FeedbackConfig,
    Rate,
    advice,
    apply,
    known_tasks,
    solved,
    to_learn,
    verdict,
    weights,
    wilson,
)  # fmt: skip
from kgsynth.graph import ConceptGraph
from kgsynth.grow.grow import GrowConfig, Seed, grow
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.store import Change, CommitResult, GraphStore, TaskRecord
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.structure import Structure
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader
from tests.bolt import bolt_url  # noqa: F401
from tests.conformance.conftest import connect, store, url  # noqa: F401
from tests.conformance.samples import concept, edge, item
from tests.test_graph_cli import task as bare_task
from tests.test_grow import PAGES, run_grow, shape, write_pages

ROOT, TREES, HEAPS, TRIES, RADIX, LONE = map(concept, ("structures", "trees", "heaps", "tries", "radix trees", "lone"))
SMALL = Change(
    concepts=(ROOT, TREES, HEAPS, TRIES, RADIX, LONE),
    edges=(edge(ROOT, TREES), edge(ROOT, HEAPS), edge(TREES, TRIES), edge(TRIES, RADIX)),
    enqueue=(item(ROOT, 0), item(TREES, 1), item(HEAPS, 1), item(TRIES, 2)),
)


def task(number: int, right: float | None, replies: int, *concepts: Concept) -> TaskRecord:
    """right: of the replies; None: not tried."""
    return TaskRecord(
        id=f"t_{number}", type="cloze", domain="test", granularity="middle", prompt="?", policy="rl",
        concepts=tuple(c.id for c in concepts), pass_rate=None if right is None else right / replies, attempts=replies,
    )  # fmt: skip


def tasks_of(results: Iterable[tuple[Concept, float]], times: int = 5) -> list[TaskRecord]:
    """`times` tasks of 8 replies about each concept, with this pass rate."""
    return [
        task(100 * place + n, 8 * rate, 8, of) for place, (of, rate) in enumerate(results) for n in range(times)
    ]  # fmt: skip


def small() -> Structure:
    made = EmbeddedStore(":memory:")
    made.commit(SMALL)
    return Structure(made.skeleton())


def advised(graph: ConceptGraph, max_depth: int | None = None) -> Advice:
    structure = Structure(graph.store.skeleton())
    return advice(solved(known_tasks(graph.store, structure), structure), graph, max_depth=max_depth)


def names(concepts: Iterable[Concept]) -> set[str]:
    return {c.name for c in concepts}


# rates


def test_rates_by_hand() -> None:
    """A root is drawn to 1/2, a child to its parent, each worth two replies; a further concept counts a quarter."""
    tasks = [task(1, 3, 4, ROOT), task(2, 8, 8, TREES, HEAPS), task(3, 1, 2, HEAPS), task(4, None, 8, TRIES)]
    found = solved(tasks, small())
    assert list(found) == [ROOT.id, TREES.id, HEAPS.id]
    root = (3 + 2 * 0.5) / 6
    assert found[ROOT.id].estimate == pytest.approx(root)
    assert found[TREES.id].estimate == pytest.approx((8 + 2 * root) / 10)
    heaps = found[HEAPS.id]
    assert (heaps.tasks, heaps.attempts, heaps.right) == (2, 4.0, 3.0)
    assert heaps.estimate == pytest.approx((3 + 2 * root) / 6)
    assert wilson(heaps.estimate, 6, 1.2815515655446004) == pytest.approx((heaps.low, heaps.high))


def test_the_interval_is_wilsons() -> None:
    """The worked example of Newcombe (Statistics in Medicine 17, 1998), table I: 81 of 263, and 0 of 20."""
    assert wilson(81 / 263, 263, 1.959964) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20, 1.959964) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1.0, 29, 1.959964) == pytest.approx((0.8830, 1.0), abs=5e-5)


def test_replies_to_one_task_count_so_often_only_and_odd_rewards_do_no_harm() -> None:
    (rate,) = solved([task(1, 640, 640, ROOT)], small()).values()
    assert (rate.attempts, rate.right, verdict(rate)) == (8.0, 8.0, "mastered")
    odd = [task(1, float("nan"), 4, ROOT), task(2, 12, 4, LONE), task(3, -4, 4, LONE), task(4, 1, 1, concept("gone"))]
    assert {i: (r.attempts, r.right) for i, r in solved(odd, small()).items()} == {LONE.id: (8.0, 4.0)}
    uncounted = TaskRecord(**{**vars(task(5, 1, 1, ROOT)), "attempts": 0})
    assert solved([uncounted], small())[ROOT.id].attempts == 1.0


def test_few_replies_are_drawn_to_what_is_known_above_across_the_untried() -> None:
    """Nothing is known of `tries` itself: what lies below hears of the next concept above."""
    above = solved([*tasks_of([(TREES, 1.0)]), task(1, 0, 1, RADIX)], small())
    alone = solved([task(1, 0, 1, RADIX)], small())
    assert above[RADIX.id].estimate == pytest.approx(2 * above[TREES.id].estimate / 3)
    assert alone[RADIX.id].estimate == pytest.approx(1 / 3)
    far = [solved([*tasks_of([(TREES, 1.0)]), *tasks_of([(RADIX, 0.0)], n)], small())[RADIX.id] for n in (1, 3, 9, 27)]
    assert [r.estimate for r in far] == sorted((r.estimate for r in far), reverse=True)
    assert far[-1].estimate < 0.01


counts = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(lambda c: (min(c), max(1, *c)))


@given(st.lists(counts, min_size=1, max_size=6), st.integers(0, 5), counts)
def test_more_right_answers_never_lower_anything(
    results: list[tuple[int, int]], at: int, parent: tuple[int, int]
) -> None:
    at %= len(results)
    better = [*results[:at], (results[at][1], results[at][1]), *results[at + 1 :]]
    found = []
    for some in (results, better):
        tried = [task(n, right, of, TREES) for n, (right, of) in enumerate(some)]
        rates = solved([task(99, *parent, ROOT), *tried], STRUCTURE)
        rate, above = rates[TREES.id], rates[ROOT.id].estimate
        own = rate.right / rate.attempts
        assert 0 <= rate.low <= rate.estimate <= rate.high <= 1
        assert min(own, above) - 1e-9 <= rate.estimate <= max(own, above) + 1e-9
        found.append(rate)
    worse, best = found
    assert (worse.estimate, worse.low, worse.high) <= (best.estimate + 1e-9, best.low + 1e-9, best.high + 1e-9)
    assert best.low >= worse.low - 1e-9
    assert best.high >= worse.high - 1e-9


@given(st.floats(0, 1), st.floats(1, 1e4), st.floats(0.1, 3))
def test_more_replies_narrow_the_interval(p: float, n: float, z: float) -> None:
    (low, high), (nearer, near) = wilson(p, n, z), wilson(p, 2 * n, z)
    assert near - nearer <= high - low
    assert low - 1e-12 <= p <= high + 1e-12


STRUCTURE = small()


# weights


def test_most_is_to_be_learnt_where_half_is_solved() -> None:
    results = [(ROOT, 0.5), (TREES, 0.75), (HEAPS, 0.25), (LONE, 0.0)]
    found = weights(solved(tasks_of(results), small()), small())
    assert found[ROOT.id] == pytest.approx(1.0, abs=1e-3)
    assert [found[TREES.id], found[HEAPS.id]] == pytest.approx([0.75, 0.75], abs=0.03)
    assert found[LONE.id] == 0.0, "hopeless"
    assert all(0 <= weight <= 1 for weight in found.values())


def test_what_is_known_decays_along_the_hierarchy() -> None:
    """From `trees` (1.0) down to `tries` and `radix trees`, and up to the root and down again to `heaps`."""
    found = weights(solved(tasks_of([(TREES, 0.5)]), small()), small())
    assert [found[c.id] for c in (TREES, TRIES, RADIX, ROOT, HEAPS)] == pytest.approx([1.0, 0.75, 0.625, 0.75, 0.625])
    assert LONE.id not in found, "nothing is known of it"
    assert weights(solved(tasks_of([(TREES, 0.5)]), small()), small(), FeedbackConfig(decay=0.0)).keys() == {TREES.id}
    both = weights(solved(tasks_of([(TREES, 0.5), (HEAPS, 0.0)]), small()), small())
    assert both[ROOT.id] == pytest.approx(UNTRIED), "between a learnable and a hopeless one"
    assert both[TRIES.id] == pytest.approx(0.75)


def test_nothing_tried_nothing_known() -> None:
    assert solved([], small()) == {}
    assert weights({}, small()) == {}
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    assert (advised(graph), to_learn(graph.store)) == (Advice(), {})
    assert apply(graph, Advice()).op == 0


# settings


@pytest.mark.parametrize(
    ("key", "value"),
    [("prior", 0.0), ("prior", 1.0), ("strength", 0.0), ("related", -0.1), ("related", 1.1), ("per_task", 0), ("confidence", 1.0),
     ("min_attempts", 0.5), ("mastered", 1.0), ("hopeless", 0.0), ("decay", 2.0), ("hopeless", 0.7)],
)  # fmt: skip
def test_settings_out_of_range_are_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"\[feedback\] {key}.*{value}"):
        FeedbackConfig(**{key: value})


# advice, in both stores


def planted(store: GraphStore, results: Iterable[tuple[Concept, float]]) -> ConceptGraph:
    """The small graph, grown: `radix trees` was judged atomic and never queued, the others are done."""
    atomic = Concept(name=RADIX.name, domain="test", atomic=True, atomic_reason="details only")
    store.commit(SMALL)
    store.commit(Change(concepts=(atomic,), done=(ROOT.id, TREES.id, HEAPS.id, TRIES.id)))
    store.put_tasks(tasks_of(results))
    return ConceptGraph(store)


def test_advice_with_its_reasons(store: GraphStore) -> None:
    graph = planted(store, [(ROOT, 1.0), (HEAPS, 0.5), (TREES, 0.0), (TRIES, 0.0), (RADIX, 1.0)])
    found = advised(graph)
    steps = {f.concept.name: (f.verdict, f.step) for f in found.findings}
    assert steps == {
        "structures": ("mastered", "finer"), "heaps": ("learnable", "keep"), "trees": ("hopeless", "coarser"),
        "tries": ("hopeless", "coarser"), "radix trees": ("mastered", "reopen"),
    }  # fmt: skip
    assert found.granularity == {
        ROOT.id: "finer", HEAPS.id: "keep", TREES.id: "coarser", TRIES.id: "coarser", RADIX.id: "finer"
    }  # fmt: skip
    assert [f.others for f in found.deeper] == [(HEAPS.id,)], "trees are out of reach"
    assert [f.others for f in found.coarser] == [(ROOT.id,), (ROOT.id,)], "past what is hopeless too"
    (again,) = found.reopen
    assert (again.depth, again.reason) == (3, "is mastered, and nothing finer is known")


def test_no_advice_on_thin_evidence_and_none_that_leads_nowhere(store: GraphStore) -> None:
    graph = planted(store, [])
    store.put_tasks([task(999, 7, 7, HEAPS), *tasks_of([(LONE, 0.0), (TREES, 1.0), (TRIES, 0.0), (RADIX, 1.0)])])
    found = {f.concept.name: f for f in advised(graph, max_depth=3).findings}
    assert {f.step for f in found.values()} == {"keep", "coarser"}
    assert found["heaps"].reason == "has fewer than 8 replies"
    assert "so is all above it" in found["lone"].reason
    assert found["trees"].reason == "is mastered, but what is finer is out of reach so far"
    assert found["radix trees"].reason.endswith("is 3 edges from its seed, where growth ends: raise [grow] max_depth")
    assert [f.concept.name for f in advised(graph, max_depth=4).reopen] == ["radix trees"]


def test_applied_it_is_one_operation_that_is_done_once_and_can_be_undone(store: GraphStore) -> None:
    graph = planted(store, [(HEAPS, 1.0), (RADIX, 1.0), (TREES, 0.0)])
    before = graph[RADIX]
    found = advised(graph)
    assert names(f.concept for f in found.reopen) == {"heaps", "radix trees"}
    op = apply(graph, found).op
    assert op == store.version()
    assert store.operations(op - 1)[0].note == "feedback: 2 mastered concepts re-opened"
    assert [(i.concept, i.depth) for i in store.waiting()] == [(HEAPS.id, 1), (RADIX.id, 3)]
    assert graph[RADIX].atomic is False
    assert "pass rate" in graph[RADIX].atomic_reason
    kinds = {(d.subject, d.outcome) for d in store.decisions() if d.kind == "feedback"}
    assert kinds == {(HEAPS.id, "reopen"), (RADIX.id, "reopen"), (TREES.id, "coarser")}
    assert examine(store) == []

    decided = len(store.decisions())
    assert apply(graph, found).op == apply(graph, advised(graph)).op == 0, "the same again"
    store.commit(Change(done=(HEAPS.id, RADIX.id)))
    assert apply(graph, found).op == 0, "they were researched since, but training has said nothing new"
    assert advised(graph).reopen == ()
    assert (len(store.decisions()), store.frontier()["waiting"]) == (decided, 0)
    store.undo(store.version())

    undone = graph.undo(op).op
    assert (graph[RADIX], store.frontier()) == (before, {"waiting": 0, "leased": 0, "done": 4})
    assert apply(graph, advised(graph)).op == 0, "what was taken back is not done again for the same results"
    store.undo(undone)
    assert store.frontier()["waiting"] == 2


def test_new_results_reopen_again(store: GraphStore) -> None:
    graph = planted(store, [(HEAPS, 1.0)])
    apply(graph, advised(graph))
    store.commit(Change(done=(HEAPS.id,)))
    assert advised(graph).reopen == ()
    store.put_tasks([task(77, 8, 8, HEAPS)])
    assert [f.concept.name for f in advised(graph).reopen] == ["heaps"]
    assert apply(graph, advised(graph)).op


def test_what_waits_or_is_gone_is_not_reopened(store: GraphStore) -> None:
    graph = planted(store, [(HEAPS, 1.0), (RADIX, 1.0)])
    found = advised(graph)
    store.commit(Change(reopen=(HEAPS.id,), remove=(RADIX.id,)))
    graph.refresh()
    assert [(f.concept.name, f.reason) for f in advised(graph).findings] == [
        ("heaps", "is mastered, but waits to be researched already")
    ]
    apply(graph, found)
    assert graph.store.concept(RADIX.id) is None
    assert [i.concept for i in store.waiting()] == [HEAPS.id]


def test_tasks_of_a_folded_concept_speak_of_what_it_became(store: GraphStore) -> None:
    graph = planted(store, [(HEAPS, 1.0), (LONE, 0.0)])
    graph.merge(HEAPS, LONE)
    structure = Structure(store.skeleton())
    rates = solved(known_tasks(store, structure), structure)
    assert {i: (r.tasks, r.attempts, r.right) for i, r in rates.items()} == {HEAPS.id: (10, 80.0, 40.0)}
    assert to_learn(store)[HEAPS.id] == pytest.approx(1.0, abs=0.01)


def test_a_concept_that_goes_between_the_last_look_and_the_commit_does_not_come_back() -> None:
    """The advice is applied by a process that read the graph a moment before another one removed the concept."""

    class Late(EmbeddedStore):
        def commit(self, change: Change) -> CommitResult:
            if change.note.startswith("feedback"):
                super().commit(Change(remove=(RADIX.id,)))
            return super().commit(change)

    graph = planted(Late(":memory:"), [(RADIX, 1.0)])
    with pytest.raises(StaleError):
        apply(graph, advised(graph))
    assert graph.store.concept(RADIX.id) is None
    assert not any(d.kind == "feedback" for d in graph.store.decisions())


def test_another_run_that_makes_the_same_task_does_not_forget_its_rate(tmp_path: Path) -> None:
    graph = EmbeddedStore(":memory:")
    graph.commit(SMALL)
    made = bare_task(1, HEAPS)
    annotate(graph, tmp_path, [made])
    (record,) = graph.tasks()
    graph.put_tasks([TaskRecord(**{**vars(record), "pass_rate": 0.5, "attempts": 4, "policy": "rl"})])
    assert annotate(graph, tmp_path, [made]) == 0
    assert graph.tasks()[0].pass_rate == 0.5


# growing on


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    return write_pages(tmp_path / "pages")


def test_a_mastered_atomic_concept_is_researched_and_grows(folder: Path, tmp_path: Path) -> None:
    """`tries` end the branch; they are mastered, and by then there is a page about what they are made of."""
    graph, _ = run_grow(folder, EmbeddedStore(tmp_path / "g.sqlite"))
    (tries,) = graph.find("tries")
    assert tries.atomic
    (folder / "tries.md").write_text(
        "# Tries\n\nThis page is about tries.\n\n- **radix trees**: Radix trees join what has one child.\n"
    )
    graph.store.put_tasks(tasks_of([(tries, 1.0)]))
    before = shape(graph)
    _, idle = run_grow(folder, graph.store)  # type: ignore[arg-type]
    assert (idle.tally.researched, shape(graph)) == (0, before)

    assert apply(graph, advised(graph)).op
    grown, report = run_grow(folder, graph.store)  # type: ignore[arg-type]
    assert names(grown.children(tries)) == {"radix trees"}
    assert report.tally.researched == 2, "and what was found below"
    assert grown[tries].atomic is False
    assert grown.granularity(tries) == "middle"
    assert examine(grown.store) == []
    again = advised(grown)
    assert [(f.concept.name, f.step) for f in again.findings] == [("tries", "finer")]
    assert apply(grown, again).op == 0


def test_a_reopened_concept_about_which_nothing_new_is_found_is_judged_atomic_again(
    folder: Path, tmp_path: Path
) -> None:
    graph, _ = run_grow(folder, EmbeddedStore(tmp_path / "g.sqlite"))
    (tries,) = graph.find("tries")
    graph.store.put_tasks(tasks_of([(tries, 1.0)]))
    apply(graph, advised(graph))
    assert graph.find("tries")[0].atomic is False
    grown, report = run_grow(folder, graph.store)  # type: ignore[arg-type]
    assert (report.tally.researched, grown.find("tries")[0].atomic) == (1, True)
    assert apply(grown, advised(grown)).op == 0


@pytest.mark.parametrize("learnable", ["trees", "hash tables", "heaps"])
def test_the_order_feedback_researches_the_learnable_branch_first(folder: Path, tmp_path: Path, learnable: str) -> None:
    store = EmbeddedStore(tmp_path / "g.sqlite")
    graph, _ = run_grow(folder, store, max_depth=1)
    branches = [graph.find(name)[0] for name in PAGES["data structures"]]
    store.put_tasks(tasks_of((c, 0.5 if c.name == learnable else 0.98) for c in branches))
    store.commit(Change(enqueue=tuple(item(c, 1) for c in branches)))
    start = store.version()
    work(graph, folder, ("feedback",))
    researched = [o.note.removeprefix("research of ") for o in store.operations(start)]
    assert researched[0] == learnable
    assert set(researched) == names(graph) - {"data structures"}
    assert dict(store.frontier())["waiting"] == 0


def work(graph: ConceptGraph, folder: Path, order: tuple[str, ...]) -> None:
    embedder = HashingEmbedder()
    corpus = open_corpus(CorpusConfig(builtin=False, paths=(str(folder),), cache=False), embedder)
    config = GrowConfig(seeds=(Seed(name="data structures", domain="data"),), order=order, agents=1)
    asyncio.run(
        grow(
            graph, config, llm=OfflineExtractive(), search=corpus, reader=Reader(corpus), embedder=embedder,
            weight=partial(to_learn, graph.store),
        )
    )  # fmt: skip


def test_a_rate_says_itself_in_words() -> None:
    rate = Rate(tasks=2, attempts=10.5, right=8.0, estimate=0.76, low=0.55, high=0.9)
    assert str(rate) == "0.76 [0.55, 0.90] from 10.5 replies to 2 tasks"
