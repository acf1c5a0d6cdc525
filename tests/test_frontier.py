"""The order in which waiting concepts are researched: each policy, several of them, and many workers at one queue."""

# ruff: noqa: F811  (fixtures are imported, and named by the tests that want them)

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kgsynth.concept import Concept, Edge
from kgsynth.errors import ConfigError
from kgsynth.grow.frontier import RANKED, Frontier, check_order, look
from kgsynth.grow.grow import GrowConfig
from kgsynth.store import Change, FrontierItem, GraphStore, Skeleton
from kgsynth.store.embedded import EmbeddedStore
from tests.bolt import bolt_url  # noqa: F401
from tests.conformance.conftest import connect, store, url  # noqa: F401


def concept(name: str, domain: str = "d") -> Concept:
    return Concept(name=name, domain=domain)


def plant(
    store: GraphStore, tree: Mapping[str, Sequence[str]], waiting: Sequence[str], domains: Mapping[str, str]
) -> None:
    """tree: parent -> children, by name; a concept's depth is its level."""
    names = list(dict.fromkeys([*tree, *(child for children in tree.values() for child in children)]))
    made = {name: concept(name, domains.get(name, "d")) for name in names}
    edges = tuple(Edge(parent=made[p].id, child=made[c].id) for p, children in tree.items() for c in children)
    store.commit(Change(concepts=tuple(made.values()), edges=edges))
    levels = store.levels()
    queued = tuple(FrontierItem(concept=made[name].id, depth=levels[made[name].id]) for name in waiting)
    store.commit(Change(enqueue=queued))


TREE = {
    "root": ["fat", "thin", "lean"],
    "fat": ["f1", "f2", "f3"],
    "lean": ["l1", "l2"],
    "thin": ["t1"],
    "t1": ["t2"],
    "other": [],
}
WAITING = ("f1", "t2", "f2", "l1", "other", "f3", "l2")
DOMAINS = {"f1": "a", "f2": "b", "l1": "b", "t2": "a", "other": "c"}


def order_of(
    store: GraphStore, *order: str, wanted: Mapping[str, float] | None = None, weight: Mapping[str, float] | None = None
) -> list[str]:
    """All that waits, by name, in the order in which one worker gets it."""
    plant(store, TREE, WAITING, DOMAINS)
    weights = {concept(name).id: value for name, value in (weight or {}).items()}
    frontier = Frontier(store, order, wanted=wanted or {}, weight=lambda: weights, owner="me", seconds=60)
    names = {c.id: c.name for c in store.concepts()}
    found: list[str] = []
    while items := frontier.lease(1):
        found += [names[item.concept] for item in items]
    return found


def test_breadth_is_the_order_of_the_queue(store: GraphStore) -> None:
    assert order_of(store, "breadth") == list(WAITING)


def test_breadth_before_others_goes_by_depth(store: GraphStore) -> None:
    assert order_of(store, "breadth", "thin") == ["other", "l1", "l2", "f1", "f2", "f3", "t2"]


def test_thin_branches_first_and_in_a_branch_as_queued(store: GraphStore) -> None:
    """`other` is a branch of its own; then 3 concepts below and with each of `thin` and `lean`, then 4 of `fat`."""
    assert order_of(store, "thin") == ["other", "t2", "l1", "l2", "f1", "f2", "f3"]


def test_the_domain_that_is_furthest_below_its_share_comes_first(store: GraphStore) -> None:
    """Of 2 concepts of a, 2 of b, 1 of c: a is wanted eight times as often as b; d and c are not wanted."""
    found = order_of(store, "domains", wanted={"a": 0.8, "b": 0.1, "d": 0.0})
    assert found == ["f1", "t2", "f2", "l1", "other", "f3", "l2"]
    assert check_order(("domains",), {"a": 1.0}) is None


def test_feedback_goes_where_most_is_to_be_learnt_and_the_untried_count_as_half_way(store: GraphStore) -> None:
    found = order_of(store, "feedback", weight={"l2": 0.9, "f3": 0.6, "f1": 0.1, "other": 0.0})
    assert found == ["l2", "f3", "t2", "f2", "l1", "f1", "other"]


def test_the_next_policy_breaks_ties(store: GraphStore) -> None:
    found = order_of(store, "feedback", "thin", weight={"f1": 0.9, "f2": 0.9, "l1": 0.9})
    assert found == ["l1", "f1", "f2", "other", "t2", "l2", "f3"]


def test_the_first_policy_decides(store: GraphStore) -> None:
    found = order_of(store, "thin", "feedback", weight={"f2": 0.9, "l2": 0.7})
    assert found == ["other", "l2", "t2", "l1", "f2", "f1", "f3"]


def test_a_concept_with_two_parents_is_of_the_branch_in_which_it_was_found() -> None:
    store = EmbeddedStore(":memory:")
    plant(store, {"root": ["one", "two"], "one": ["shared"], "two": ["shared", "own"]}, (), {})
    names = {c.id: c.name for c in store.concepts()}
    view = look(store.skeleton(), {}, {})
    assert {names[c]: names[b] for c, b in view.branch.items()} == {
        "root": "root", "one": "one", "two": "two", "shared": "one", "own": "two"
    }  # fmt: skip
    assert {names[b]: n for b, n in view.size.items()} == {"root": 1, "one": 2, "two": 2}


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"\[grow\] order: 'depth' is no policy; known: breadth, thin, domains, feedback"
    ):
        GrowConfig(order=("thin", "depth"))
    with pytest.raises(ConfigError, match="wants no share of any domain"):
        GrowConfig(order=("domains",), domains={"a": 0.0})
    with pytest.raises(ConfigError, match="'depth' is no policy"):
        Frontier(EmbeddedStore(":memory:"), ("depth",), wanted={}, owner="me", seconds=1)


# many


class Counting(EmbeddedStore):
    """Counts how often the whole graph is looked at."""

    looks = 0

    def skeleton(self) -> Skeleton:
        self.looks += 1
        return super().skeleton()


def star(store: GraphStore, branches: int, each: int) -> list[Concept]:
    """A root, branches, and concepts below these that wait."""
    root, tops = concept("root"), [concept(f"branch {b}") for b in range(branches)]
    leaves = [[concept(f"{b} {n}") for n in range(each)] for b in range(branches)]
    edges = [Edge(parent=root.id, child=top.id) for top in tops]
    edges += [Edge(parent=top.id, child=leaf.id) for top, below in zip(tops, leaves, strict=True) for leaf in below]
    flat = [leaf for below in leaves for leaf in below]
    store.commit(
        Change(
            concepts=(root, *tops, *flat), edges=tuple(edges), enqueue=tuple(FrontierItem(concept=c.id, depth=2) for c in flat)
        )
    )  # fmt: skip
    return flat


def test_fifty_thousand_waiting_concepts_are_not_looked_at_for_each_one() -> None:
    """A look at the graph is good for a hundredth of its concepts, and the order holds: the heaviest come first."""
    store = Counting(":memory:")
    flat = star(store, 50, 1000)
    heavy = random.Random(0).sample(flat, 1000)
    weight = {c.id: 1.0 - n / 2000 for n, c in enumerate(heavy[:600])}
    asked = []
    frontier = Frontier(
        store, ("feedback", "thin"), wanted={}, weight=lambda: asked.append(1) or weight, owner="me", seconds=60
    )
    got = [{item.concept for item in frontier.lease(20)} for _ in range(50)]
    assert got[:30] == [{c.id for c in heavy[n : n + 20]} for n in range(0, 600, 20)]
    assert len(set[str]().union(*got)) == 1000
    assert store.looks <= 2
    assert len(asked) <= 2 * store.looks


def test_the_order_is_worked_out_anew_when_the_last_one_is_used_up() -> None:
    """After RANKED items of a small graph, what was told meanwhile counts."""
    store = EmbeddedStore(":memory:")
    flat = star(store, 2, RANKED)
    weight: dict[str, float] = {}
    frontier = Frontier(store, ("feedback",), wanted={}, weight=lambda: weight, owner="me", seconds=60)
    first = [item.concept for item in frontier.lease(RANKED)]
    assert first == [c.id for c in flat[:RANKED]]
    weight[flat[-1].id] = 1.0
    assert [item.concept for item in frontier.lease(1)] == [flat[-1].id]


@pytest.mark.parametrize("order", [("breadth",), ("thin", "feedback")])
def test_many_workers_never_get_one_item(tmp_path: Path, order: tuple[str, ...]) -> None:
    """Each with a connection and a ranking of its own, at the same time: all is handed out, each once."""
    path = tmp_path / "g.sqlite"
    flat = star(EmbeddedStore(path), 4, 50)
    got: dict[int, list[str]] = {}
    together = threading.Barrier(4)

    def work(number: int) -> None:
        frontier = Frontier(EmbeddedStore(path), order, wanted={}, owner=f"worker {number}", seconds=600)
        mine = got.setdefault(number, [])
        for _ in range(5):
            together.wait()
            mine += [item.concept for item in frontier.lease(3)]
        while items := frontier.lease(3):
            mine += [item.concept for item in items]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handed = [concept_id for mine in got.values() for concept_id in mine]
    assert sorted(handed) == sorted(c.id for c in flat)
    assert min(map(len, got.values())) >= 12, "four rounds of three, side by side"


def test_an_item_whose_lease_ended_is_handed_out_again_in_its_place(tmp_path: Path) -> None:
    now = [1000.0]
    store = EmbeddedStore(tmp_path / "g.sqlite", clock=lambda: now[0])
    flat = star(store, 1, 3)
    weight = {flat[2].id: 1.0}
    slow = Frontier(store, ("feedback",), wanted={}, weight=lambda: weight, owner="slow", seconds=10)
    fast = Frontier(store, ("feedback",), wanted={}, weight=lambda: weight, owner="fast", seconds=1000)
    assert [item.concept for item in slow.lease(1)] == [flat[2].id]
    now[0] += 11
    assert [item.concept for _ in range(3) for item in fast.lease(1)] == [flat[2].id, flat[0].id, flat[1].id]
    assert slow.lease(3) == []
