"""The joint quotas: near the wanted table, never over a cap, the same for the same seed; and the true reason of every miss."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgsynth.concept import Concept, content_id
from kgsynth.coverage import Coverage, axis_rows, coverage, coverage_table, deviation
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.quota import AXES, marginal, nearest
from kgsynth.quota.table import Limit
from kgsynth.sample import Cell, Plan, Quota, Sample, SampleConfig, Supply, cell_of, plan, sample
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.task import DIFFICULTIES, GRANULARITIES, SCOPES

DOMAINS = {"maths": 3.0, "text": 2.0, "files": 2.0, "time": 1.0, "nets": 2.0}
TYPES = {"choice": 2.0, "cloze": 1.0, "draw": 1.0, "hops": 1.0, "predict": 3.0, "repair": 2.0}
GRAINS = {"broad": 1.0, "middle": 2.0, "atomic": 3.0}


@pytest.fixture(scope="module")
def graph() -> ConceptGraph:
    """Five domains, in each six roots with two children with three leaves, under one more root "lonely" without relatives."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    for domain in DOMAINS:
        for r in range(6):
            root = graph.add(Concept(name=f"{domain} field {r}", domain=domain))
            for m in range(2):
                middle = graph.add(Concept(name=f"{domain} topic {r}{m}", domain=domain), [root])
                for leaf in range(3):
                    graph.add(Concept(name=f"{domain} detail {r}{m}{leaf}", domain=domain), [middle])
    graph.add(Concept(name="lonely", domain="alone"))
    return graph


def plenty(capacity: Callable[[str, Concept], int] = lambda *_: 500, **kw: Any) -> Supply:
    return Supply(capacity=capacity, **kw)


def cells_of(schedule: Plan, n: int | None = None) -> list[Cell]:
    return [cell_of(s) for s in itertools.islice(schedule.samples(), n or schedule.config.tasks)]


def table_of(schedule: Plan, cells: Sequence[Cell]) -> np.ndarray:
    counts = Counter(cells)
    return np.array([counts[Cell(*names)] for names in itertools.product(*schedule.keys)]).reshape(schedule.table.shape)


def farthest(schedule: Plan, cells: Sequence[Cell], wanted: np.ndarray | None = None) -> dict[str, float]:
    """Tasks by which the worst sum of each kind is off, per axis and for (domain, type, granularity)."""
    off = table_of(schedule, cells) - (schedule.table if wanted is None else wanted)
    found = {name: float(np.abs(marginal(off, (axis,))).max()) for axis, name in zip(AXES, Cell._fields, strict=True)}
    return {**found, "joint": float(np.abs(marginal(off, (0, 1, 2))).max())}


# acceptance: 5 x 6 x 3


@pytest.mark.parametrize("tasks", [2000, 10_000])
def test_five_domains_six_types_three_granularities(graph: ConceptGraph, tasks: int) -> None:
    config = SampleConfig(tasks=tasks, types=TYPES, domains=DOMAINS, granularity=GRAINS, per_concept=500)
    schedule = plan(graph, config, plenty())
    cells = cells_of(schedule)
    assert len(cells) == tasks
    assert schedule.table.shape[:3] == (5, 6, 3)
    assert all(off <= 1.0 for off in farthest(schedule, cells).values()), farthest(schedule, cells)
    share = table_of(schedule, cells) / schedule.table - 1  # of each of the 90 cells
    assert (np.abs(share) <= np.maximum(0.02, 1 / schedule.table)).all()
    assert max(deviation(schedule, cells).values()) < 0.02
    assert not [row for row in coverage(schedule, cells) if row.misses]


def test_where_material_lacks_the_rest_is_within_two_per_cent_and_every_miss_is_explained(graph: ConceptGraph) -> None:
    def capacity(kind: str, concept: Concept) -> int:
        return 0 if (kind, concept.domain) in {("predict", "maths"), ("draw", "time")} else 500

    config = SampleConfig(tasks=3000, types=TYPES, domains=DOMAINS, granularity=GRAINS, per_concept=500)
    schedule = plan(graph, config, plenty(capacity))
    cells = cells_of(schedule)
    for axis, off in deviation(schedule, cells).items():
        assert axis == "joint" or off < 0.02, (axis, off)  # all totals can be met
    rows = {row.cell: row for row in coverage(schedule, cells)}
    for cell, row in rows.items():
        gone = (cell.type, cell.domain) in {("predict", "maths"), ("draw", "time")}
        assert (row.causes == ("material",) and cell.type in row.why) == gone
        assert row.achieved == (0 if gone else row.achieved)
        assert row.causes or abs(row.achieved - row.target) < 1 + 0.02 * row.target
        assert bool(row.why) == bool(row.causes)


# why not: each shortage, and that lifting what is named lifts it


ATOMIC = Cell("maths", "choice", "atomic", "concept", "medium")
SHORTAGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # cause: (config, supply, what heals it)
    "material": ({}, {"capacity": lambda kind, c: 1}, {"capacity": lambda kind, c: 500}),
    "per_concept": ({"per_concept": 2}, {}, {"per_concept": 500}),
    "per_concept_total": ({"per_concept_total": 2}, {}, {"per_concept_total": 0}),
    "per_source": ({"per_source": 30, "sources": True}, {}, {"per_source": 0}),
}


@pytest.mark.parametrize("cause", SHORTAGES)
def test_the_cause_of_a_shortage_is_the_true_one(graph: ConceptGraph, cause: str) -> None:
    """Maths is wanted far beyond what one limit lets through; text is left alone. Without that limit nothing misses."""
    changed, supplied, healing = SHORTAGES[cause]
    sources = {c.id: f"page of {c.domain}" for c in graph}
    base: dict[str, Any] = {
        "tasks": 2000,
        "types": {"choice": 1.0},
        "domains": {"maths": 1, "text": 1},
        "per_concept": 500,
    }
    base |= {"granularity": {"atomic": 1}}

    def rows(**kw: Any) -> dict[Cell, Coverage]:
        capacity = kw.pop("capacity", lambda *_: 500)
        cited = sources if kw.pop("sources", False) else {}
        schedule = plan(graph, SampleConfig(**base | kw), plenty(capacity, sources=cited))
        return {row.cell: row for row in coverage(schedule, cells_of(schedule))}

    short = rows(**changed, **supplied)[ATOMIC]
    assert short.causes == (cause,)
    assert short.achieved < short.target
    if cause != "material":
        assert f"[sample] {cause} = {changed[cause]}" in short.why
    assert rows(**{**changed, **healing})[ATOMIC].causes == ()


def test_reasons_of_cells_without_concepts_scopes_or_offers(graph: ConceptGraph) -> None:
    config = SampleConfig(
        tasks=600,
        types={"hops": 1, "choice": 1},
        domains={"maths": 1, "alone": 1, "cooking": 1},
        granularity={"broad": 1, "atomic": 1},
        scopes={"concept": 1, "path": 1},
        difficulty={"easy": 1, "hard": 1},
        per_concept=500,
    )
    supply = plenty(
        scopes={"hops": ("concept", "path")}, difficulties={"hops": DIFFICULTIES, "choice": ("easy", "medium")}
    )
    schedule = plan(graph, config, supply)
    rows = {row.cell: row for row in coverage(schedule, cells_of(schedule))}
    assert rows[Cell("cooking", "hops", "atomic", "concept", "easy")].causes == ("concepts",)
    assert rows[Cell("alone", "hops", "broad", "concept", "easy")].causes == ("concepts",)  # its only concept is a leaf
    assert rows[Cell("alone", "hops", "atomic", "path", "easy")].causes == ("scope",)  # without a parent
    assert rows[Cell("maths", "hops", "broad", "path", "easy")].causes == ("scope",)
    assert rows[Cell("maths", "choice", "atomic", "path", "easy")].causes == ("offer",)
    assert "not scope path" in rows[Cell("maths", "choice", "atomic", "path", "easy")].why
    assert rows[Cell("maths", "choice", "atomic", "concept", "hard")].causes == ("offer",)
    assert "easy, medium, not difficulty hard" in rows[Cell("maths", "choice", "atomic", "concept", "hard")].why
    assert sum(row.achieved for row in rows.values()) == 600


def test_scopes_and_difficulties_share_a_concepts_material(graph: ConceptGraph) -> None:
    """36 leaves with one task each, wanted as 30 paths and 30 single ones: neither alone is too much, together they are."""
    config = SampleConfig(tasks=60, types={"hops": 1}, domains={"maths": 1}, granularity={"atomic": 1})
    schedule = plan(graph, config, plenty(lambda *_: 1, scopes={"hops": ("concept", "path")}))
    cells = cells_of(schedule)
    assert Counter(c.scope for c in cells) == {"concept": 18, "path": 18}
    assert all(row.causes == ("material",) and "36 tasks" in row.why for row in coverage(schedule, cells))


def test_rejected_and_unfinished_are_told_apart(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=40, types={"choice": 1, "cloze": 1}, domains={"maths": 1}, granularity={"atomic": 1})
    schedule = plan(graph, config)
    choice, cloze = [c for c in cells_of(schedule) if c.type == "choice"], Cell("maths", "cloze", "atomic")
    rows = {
        r.cell: r for r in coverage(schedule, choice[:15], [(choice[0], "oracle")] * 3 + [(choice[0], "unique")] * 2)
    }
    assert rows[choice[0]].causes == ("rejected",)
    assert rows[choice[0]].why == "rejected in synthesis: 3 by oracle, 2 by unique"
    assert rows[cloze].causes == ("unfinished",)
    odd = coverage(schedule, [Cell("maths", "riddle", "atomic")])[-1]
    assert (odd.causes, odd.target, odd.achieved) == (("unasked",), 0, 1)


def test_what_is_rejected_can_be_replaced_by_its_like(graph: ConceptGraph) -> None:
    """Half of one type is rejected; who passes over what is not wanted still ends at the planned numbers."""
    config = SampleConfig(tasks=200, types={"choice": 1, "cloze": 1}, granularity=GRAINS)
    schedule = plan(graph, config, plenty())
    kept = Counter[Cell]()
    for s in schedule.samples():
        if schedule.wants(cell_of(s), kept) and not (s.type == "cloze" and s.index % 2):
            kept[cell_of(s)] += 1
        if kept.total() == 200:
            break
    assert kept == schedule.planned


def test_rows_and_table_for_people(graph: ConceptGraph) -> None:
    from rich.console import Console

    config = SampleConfig(tasks=100, types={"choice": 1}, domains={"maths": 1, "cooking": 1}, granularity={"atomic": 1})
    schedule = plan(graph, config)
    cells = cells_of(schedule)
    rows = coverage(schedule, cells)
    console = Console(width=220)
    with console.capture() as shown:
        console.print(coverage_table(rows, "what there is"))
    assert "the graph has no atomic concept of domain 'cooking'" in shown.get()
    tight = plan(graph, replace(config, tasks=1000))
    with console.capture() as shown:
        console.print(coverage_table(coverage(tight, cells_of(tight))))
    assert "the material of its concepts gives 144 tasks" in shown.get()
    tighter = plan(graph, replace(config, tasks=1000, per_concept=2), lambda *_: 9)
    with console.capture() as shown:
        console.print(coverage_table(coverage(tighter, cells_of(tighter))))
    assert "[sample] per_concept = 2 lets 72 tasks through (its material alone would give 324)" in shown.get()
    row = next(r.row() for r in rows if r.cell.domain == "cooking")
    assert (row["target"], row["achieved"], row["causes"], row["type"]) == (50.0, 0, ["concepts"], "choice")
    axes = {(r["axis"], r["value"]): (r["target"], r["achieved"]) for r in axis_rows(schedule, cells)}
    assert axes["domain", "maths"] == (50.0, 100)
    assert deviation(schedule, cells)["domain"] == pytest.approx(0.5)


# a joint table


def test_a_joint_table_replaces_the_product_of_the_axes(graph: ConceptGraph) -> None:
    quota = (
        Quota(weight=3, domain="maths", type="predict"),
        Quota(weight=1, type="choice", difficulty="hard"),
    )
    supply = plenty(difficulties=dict.fromkeys(TYPES, DIFFICULTIES))
    config = SampleConfig(tasks=400, quota=quota, granularity={"atomic": 1}, per_concept=50)
    cells = cells_of(plan(graph, config, supply))
    assert Counter((c.type, c.domain == "maths") for c in cells if c.type == "predict") == {("predict", True): 300}
    assert Counter(c.difficulty for c in cells if c.type == "choice") == {"hard": 100}
    assert Counter(c.difficulty for c in cells if c.type == "predict") == dict.fromkeys(DIFFICULTIES, 100)
    left_open = Counter(c.domain for c in cells if c.type == "choice")  # by size: 36 leaves each, and a lonely one
    assert left_open == {**dict.fromkeys(DOMAINS, 20)}


# invariants


config_of = st.builds(
    SampleConfig,
    tasks=st.integers(1, 120),
    seed=st.integers(0, 5),
    types=st.dictionaries(st.sampled_from(sorted(TYPES)), st.floats(0.1, 5), min_size=1, max_size=4),
    domains=st.dictionaries(st.sampled_from(sorted(DOMAINS)), st.floats(0.1, 5), max_size=3),
    granularity=st.dictionaries(st.sampled_from(GRANULARITIES), st.floats(0.1, 5), min_size=1),
    scopes=st.dictionaries(st.sampled_from(SCOPES), st.floats(0.1, 5), max_size=4).filter(
        lambda d: not d or "concept" in d
    ),
    difficulty=st.dictionaries(st.sampled_from(DIFFICULTIES), st.floats(0.1, 5), max_size=3),
    per_concept=st.integers(1, 4),
    per_concept_total=st.integers(0, 3),
    per_source=st.sampled_from([0, 0, 2, 7]),
)


def world(graph: ConceptGraph, salt: int, dense: int) -> Supply:
    """Material at random, of `dense` concepts out of ten; six pages for all concepts."""

    def number(*parts: str) -> int:
        return int(content_id("world", str(salt), *parts)[-8:], 16)

    return Supply(
        capacity=lambda kind, c: number(kind, c.id) % 5 if number(c.id, kind) % 10 < dense else 0,
        scopes={t: ("concept", *[s for s in SCOPES[1:] if number(t, s) % 2]) for t in TYPES},
        difficulties=dict.fromkeys(TYPES, DIFFICULTIES),
        sources={c.id: f"page {number('page', c.id) % 6}" for c in graph if number("cited", c.id) % 5},
    )


def most_possible(schedule: Plan) -> int:
    """Tasks that all caps together let through, by another flow algorithm on another network."""
    net, lots, config = nx.DiGraph(), schedule.lots, schedule.config
    open_rows: Any = schedule.solution.open_cells.any(axis=4)
    for k, (place, c) in enumerate(zip(lots.place.tolist(), lots.concept.tolist(), strict=True)):
        if bool(np.any(open_rows[tuple(place)] * lots.scopes[k])):
            net.add_edge("start", ("lot", k), capacity=int(lots.size[k]))
            net.add_edge(("lot", k), ("concept", c))
            caps = {"capacity": config.per_concept_total} if config.per_concept_total else {}
            cited = int(lots.source[c]) if config.per_source else -1
            net.add_edge(("concept", c), ("source", cited), **caps)
            net.add_edge(("source", cited), "end", **({"capacity": config.per_source} if cited >= 0 else {}))
    return int(nx.maximum_flow_value(net, "start", "end"))


def check_caps(schedule: Plan, samples: Sequence[Sample]) -> None:
    config, supply, kin = schedule.config, schedule.supply, schedule.kinship
    concepts = {c.id: c for c in kin.concepts}
    for (kind, concept), n in Counter((s.type, s.concept) for s in samples).items():
        assert n <= min(config.per_concept, supply(kind, concepts[concept]))
    if config.per_concept_total:
        assert max(Counter(s.concept for s in samples).values()) <= config.per_concept_total
    if config.per_source:
        cited = Counter(supply.sources[s.concept] for s in samples if s.concept in supply.sources)
        assert max(cited.values(), default=0) <= config.per_source
    for s in samples:
        assert supply.offers(s.type, s.scope, s.difficulty)
        assert concepts[s.concept].domain == s.domain
        assert kin.granularity[s.concept] == s.granularity
    assert len({(s.type, s.concept, s.variant) for s in samples}) == len(samples)


@settings(max_examples=40, deadline=None)
@given(config_of, st.integers(0, 10**6), st.integers(1, 10))
def test_never_over_a_cap_and_totals_exact(graph: ConceptGraph, config: SampleConfig, salt: int, dense: int) -> None:
    supply = world(graph, salt, dense)
    try:
        schedule = plan(graph, config, supply)
    except ConfigError:
        return  # nothing to sample; the other tests say when
    every = list(schedule.samples())
    check_caps(schedule, every)
    assert [s.index for s in every] == list(range(len(every)))
    assert len(schedule.solution.order) == min(config.tasks, most_possible(schedule))
    # prefixes are near the plan's own numbers
    whole = table_of(schedule, [schedule.cell(at) for at, _ in schedule.solution.order])
    for n in range(1, len(schedule.solution.order), 17):
        off = farthest(schedule, cells_of(schedule, n), whole * (n / whole.sum()))
        assert all(worst <= 3 for worst in off.values()), (n, off)
    for row in coverage(schedule, cells_of(schedule)):
        assert row.causes or abs(row.achieved - row.target) < 1.05 + 0.02 * row.target


@settings(max_examples=8, deadline=None)
@given(config_of, st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_the_same_whatever_the_order_of_keys_and_of_asking(
    graph: ConceptGraph, config: SampleConfig, salt: int, rng: Any
) -> None:
    def shuffled(weights: Any) -> dict[str, float]:
        return dict(rng.sample(sorted(weights.items()), len(weights)))

    axes = {
        name: shuffled(getattr(config, name)) for name in ("types", "domains", "granularity", "scopes", "difficulty")
    }
    scaled = {name: {k: w * 8 for k, w in weights.items()} for name, weights in axes.items()}
    supply = world(graph, salt, 8)
    try:
        schedule = plan(graph, config, supply)
    except ConfigError:
        return
    whole = list(itertools.islice(schedule.samples(), 80))
    assert list(itertools.islice(plan(graph, replace(config, **axes), supply).samples(), 80)) == whole
    assert list(itertools.islice(plan(graph, replace(config, **scaled), supply).samples(), 80)) == whole
    start = rng.randrange(len(whole))
    assert list(itertools.islice(schedule.samples(start), len(whole) - start)) == whole[start:]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_the_nearest_table_is_within_its_limits(seed: int, tasks: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (3, 2, 3, 2, 1)
    wanted = rng.dirichlet(np.ones(36)).reshape(shape) * tasks
    room = rng.integers(0, 2 * tasks // 9 + 2, 18)
    label = np.arange(36) // 2
    found, size = nearest(wanted, (room > 0)[label].reshape(shape), [Limit(label, room)])
    assert (found >= 0).all()
    assert (np.bincount(label, found.ravel()) <= room + 1e-3).all()
    assert size == min(tasks, room.sum())
    assert found.sum() == pytest.approx(size, rel=0.01)


# what users run into


def test_weights_that_are_not_numbers_are_refused_by_name() -> None:
    for axis, key in (("types", "choice"), ("domains", "maths"), ("granularity", "atomic"), ("scopes", "path")):
        for bad in (float("nan"), float("inf"), -1.0):
            with pytest.raises(ConfigError, match=rf"\[sample.{axis}\] weights must be finite .* {key} = {bad}"):
                SampleConfig(**{axis: {key: bad}})  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"\[sample.quota\] .* entry 1 \(maths \* \* \* \*\) = nan"):
        SampleConfig(quota=(Quota(weight=float("nan"), domain="maths"),))
    with pytest.raises(ConfigError, match=r"\[sample.quota\] scope knows concept, path, siblings, pair, not tree"):
        SampleConfig(quota=(Quota(weight=1, scope="tree"),))
    with pytest.raises(ConfigError, match=r"\[sample.difficulty\] knows easy, medium, hard, not extreme"):
        SampleConfig(difficulty={"extreme": 1})
    with pytest.raises(ConfigError, match=r"\[sample.types\] weights must not all be 0, nor too large"):
        SampleConfig(types={"choice": 1e308, "cloze": 1e308})
    with pytest.raises(ConfigError, match="per_source must be at least 0"):
        SampleConfig(per_source=-1)


def test_a_zero_weight_is_never_drawn_not_even_as_a_replacement(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=50, types={"choice": 1, "cloze": 0}, domains={"maths": 1, "text": 0}, per_concept=1)
    assert {(s.type, s.domain) for s in plan(graph, config).samples()} == {("choice", "maths")}


def test_weights_only_on_cells_without_material_are_an_error_that_names_them(graph: ConceptGraph) -> None:
    with pytest.raises(ConfigError, match=r"nothing to sample.*domain: cooking; type: choice"):
        plan(graph, SampleConfig(types={"choice": 1}, domains={"cooking": 1}))
    with pytest.raises(ConfigError, match=r"nothing to sample.*scope: pair"):  # the default offers single concepts only
        plan(graph, SampleConfig(types={"choice": 1}, scopes={"pair": 1}))


def test_a_domain_with_one_concept_gives_what_it_can(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=100, types={"choice": 1}, domains={"alone": 1, "maths": 1}, per_concept=4)
    schedule = plan(graph, config)
    cells = cells_of(schedule)
    assert Counter(c.domain for c in cells) == {"alone": 4, "maths": 96}
    alone = next(r for r in coverage(schedule, cells) if r.cell.domain == "alone" and r.cell.granularity == "atomic")
    assert (alone.achieved, alone.causes) == (4, ("material",))


def test_a_hundred_thousand_tasks_of_few_concepts_end_when_all_is_used(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=100_000, types={"choice": 1, "cloze": 2}, domains={"time": 1}, per_concept=4)
    made = sample(graph, config)
    assert len(made) == 54 * 2 * 4
    rows = coverage(plan(graph, config), map(cell_of, made))
    assert all(row.causes == ("material",) and row.achieved == row.capacity for row in rows)
    assert sum(row.target for row in rows) == pytest.approx(100_000)


def test_tiny_and_huge_weights_together(graph: ConceptGraph) -> None:
    config = SampleConfig(tasks=100, types={"choice": 1e-9, "cloze": 1e9}, per_concept=500)
    assert Counter(s.type for s in sample(graph, config, plenty())) == {"cloze": 100}
