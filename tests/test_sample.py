"""The sampling plan: quotas over three axes, fitted to what the graph can give; seeded and resumable."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from kgsynth.concept import Concept
from kgsynth.coverage import coverage, deviation
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.sample import SampleConfig, cell_of, plan, sample
from kgsynth.store.embedded import EmbeddedStore

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
