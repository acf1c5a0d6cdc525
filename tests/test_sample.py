"""The sampling plan: quotas fitted to what the graph can give, concepts that go together; seeded and resumable."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from kgsynth.concept import Concept
from kgsynth.coverage import coverage, deviation
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.sample import SampleConfig, Supply, cell_of, plan, sample
from kgsynth.scope import Kinship
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.task import DIFFICULTIES, SCOPES

TYPES = {"predict": 2.0, "choice": 1.0}


@pytest.fixture
def graph() -> ConceptGraph:
    """Two domains, "maths" twice as large as "text": a root, 4 (2) middle concepts, 4 leaves below each of these."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    for domain, middles in (("maths", 4), ("text", 2)):
        root = graph.add(Concept(name=domain, domain=domain))
        for m in range(middles):
            middle = graph.add(Concept(name=f"{domain} part {m}x", domain=domain), [root])
            for leaf in range(4):
                graph.add(Concept(name=f"{domain} leaf {m}{leaf}x", domain=domain, atomic=True), [middle])
    return graph


def test_shares_are_met_on_every_axis(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=60, types=TYPES, granularity={"middle": 1, "atomic": 2}, per_concept=30)
    cells = [cell_of(s) for s in sample(graph, config)]
    assert len(cells) == 60
    wanted = {"type": {"predict": 40, "choice": 20}, "granularity": {"middle": 20, "atomic": 40}}
    for axis, counts in {**wanted, "domain": {"maths": 40, "text": 20}}.items():
        achieved = Counter(getattr(cell, axis) for cell in cells)
        assert set(achieved) == set(counts)
        assert all(abs(achieved[key] - n) <= 1 for key, n in counts.items()), (axis, achieved)


def test_every_prefix_is_near_the_shares(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=60, types=TYPES, granularity={"atomic": 1}, per_concept=30)
    kinds = [s.type for s in sample(graph, config)]
    for n in range(1, 61):
        assert abs(kinds[:n].count("predict") - 2 * n / 3) <= 2


def test_sample_i_depends_on_seed_and_i_only(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=40, seed=3, types=TYPES)
    whole = sample(graph, config)
    assert [s.index for s in whole] == list(range(40))
    assert list(itertools.islice(plan(graph, config).samples(17), 23)) == whole[17:]
    assert sample(graph, config) == whole
    other = sample(graph, SampleConfig(tasks=40, seed=4, types=TYPES))
    assert [s.concept for s in other] != [s.concept for s in whole]


def test_no_concept_exceeds_its_cap_and_variants_do_not_repeat(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=1000, types=TYPES, per_concept=3)
    samples = list(plan(graph, config).samples())
    assert len(samples) == len(graph) * len(TYPES) * 3
    keys = {(s.type, s.concept, s.variant) for s in samples}
    assert len(keys) == len(samples)
    assert {s.variant for s in samples} == {0, 1, 2}


def test_a_first_task_about_every_concept_comes_before_any_second(graph: ConceptGraph) -> None:
    config = SampleConfig(
        tasks=1000, types={"choice": 1}, domains={"text": 1}, granularity={"atomic": 1}, per_concept=2
    )
    variants = [s.variant for s in plan(graph, config).samples()]
    assert variants == sorted(variants)


def test_missing_material_moves_its_share_and_is_reported(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=30, types={"predict": 1, "choice": 1}, granularity={"atomic": 1}, per_concept=9)
    scarce = plan(graph, config, lambda kind, concept: 9 if kind == "choice" else int(concept.domain == "text"))
    made = [cell_of(s) for s in itertools.islice(scarce.samples(), 30)]
    assert Counter(c.type for c in made) == {"choice": 22, "predict": 8}
    predict = {c.cell.domain: c for c in coverage(scarce, made) if c.cell.type == "predict"}
    assert [(predict[d].capacity, predict[d].achieved, predict[d].target) for d in ("text", "maths")] == [
        (8, 8, pytest.approx(5)),
        (0, 0, pytest.approx(10)),
    ]
    assert (predict["text"].causes, predict["maths"].causes) == (("more",), ("material",))
    assert deviation(scarce, made)["type"] == pytest.approx(abs(8 / 30 - 0.5))


def test_related_concepts_are_neighbours(graph: ConceptGraph) -> None:
    for s in sample(graph, SampleConfig(tasks=30, types={"choice": 1}, related=2)):
        parents = {p.id for p in graph.parents(s.concept)}
        near = parents | {c.id for c in graph.children(s.concept)} | {c.id for p in parents for c in graph.children(p)}
        assert set(s.related) <= near - {s.concept}
        assert len(s.related) == min(2, len(near - {s.concept}))


def test_bad_configs_say_what_is_wrong(graph: ConceptGraph) -> None:
    with pytest.raises(ConfigError, match=r"knows broad, middle, atomic, not tiny"):
        SampleConfig(granularity={"tiny": 1.0})
    with pytest.raises(ConfigError, match=r"\[sample.types\] weights"):
        SampleConfig(types={"choice": 0.0})
    with pytest.raises(ConfigError, match="at least 1"):
        SampleConfig(tasks=0)
    with pytest.raises(ConfigError, match="nothing to sample"):
        plan(graph, SampleConfig(domains={"cooking": 1.0}))


SCOPED = Supply(capacity=lambda *_: 60, scopes={"hops": SCOPES}, difficulties={"hops": DIFFICULTIES})


def test_concepts_go_together_as_the_scope_says(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=240, types={"hops": 1}, per_concept=6, related=3)
    made = sample(graph, config, SCOPED)
    assert {s.scope for s in made} == set(SCOPES)
    for s in made:
        above = [a.id for a in graph.ancestors(s.concept)]
        if s.scope == "path":
            chain = [s.concept, *s.related]
            assert 1 <= len(s.related) <= config.hops
            assert all(graph.edge(parent, child) for child, parent in itertools.pairwise(chain))
        elif s.scope == "siblings":
            assert any({s.concept, *s.related} <= {c.id for c in graph.children(p)} for p in above)
            most = max(len(graph.children(p)) for p in graph.parents(s.concept)) - 1
            assert len(set(s.related)) == min(3, most)
        elif s.scope == "pair":
            (other,) = s.related
            shared = {s.concept, *above} & {other, *(a.id for a in graph.ancestors(other))}
            assert all(graph.level(concept) == 0 for concept in shared)
            assert s.concept not in {a.id for a in graph.ancestors(other)}
            assert other not in {s.concept, *above}


def test_types_that_offer_everything_are_spread_evenly(graph: ConceptGraph) -> None:
    made = sample(graph, SampleConfig(tasks=240, types={"hops": 1}, granularity={"atomic": 1}, per_concept=60), SCOPED)
    assert Counter(s.difficulty for s in made) == dict.fromkeys(DIFFICULTIES, 80)
    few = sample(
        graph,
        SampleConfig(tasks=72, types={"hops": 1, "choice": 1}, granularity={"atomic": 1}, per_concept=60),
        SCOPED,
    )
    assert Counter(s.scope for s in few if s.type == "hops") == dict.fromkeys(SCOPES, 9)
    assert {(s.scope, s.difficulty) for s in few if s.type == "choice"} == {("concept", "medium")}


def test_partners_and_siblings_have_material_where_there_is_some(graph: ConceptGraph) -> None:
    able = {c.id for c in graph if "leaf" in c.name and "0x" in c.name}
    supply = Supply(capacity=lambda _, c: 3 * (c.id in able), scopes={"hops": ("siblings", "pair")})
    made = list(plan(graph, SampleConfig(types={"hops": 1}, related=1), supply).samples())
    assert {s.scope for s in made} == {"siblings", "pair"}
    assert all(set(s.related) <= able for s in made if s.scope == "pair")


def test_branches_of_a_graph_in_which_concepts_have_several_parents() -> None:
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    names = {name: graph.add(Concept(name=name, domain="d"), []) for name in ("root", "other root")}
    for name, parents in (
        ("left", ["root"]), ("right", ["root"]), ("both", ["left", "right"]), ("low", ["left"]), ("far", ["other root"]),
        ("also root", ["root", "low"]),
    ):  # fmt: skip
        names[name] = graph.add(Concept(name=name, domain="d"), [names[p] for p in parents])
    kin = Kinship(graph)
    apart = {(a, b) for a in names for b in names if kin.are_apart(names[a].id, names[b].id)}
    assert apart == {(b, a) for a, b in apart}
    assert {b for a, b in apart if a == "left"} == {"right", "far", "other root"}
    assert {b for a, b in apart if a == "right"} == {"left", "low", "also root", "far", "other root"}
    assert {b for a, b in apart if a == "both"} == {"far", "other root"}
    assert {b for a, b in apart if a == "root"} == {"other root", "far"}
    able = [names["both"].id, names["left"].id, names["low"].id]
    assert kin.have_pairs(able) == set()
    assert kin.have_pairs([*able, names["right"].id]) == {names[n].id for n in ("left", "low", "right")}
