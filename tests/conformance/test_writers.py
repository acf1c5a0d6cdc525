"""One and eight writers at once: whatever they do to each other, the graph is what their operations give one after the other."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from kgsynth.errors import CycleError, LeaseError, UndoError
from kgsynth.store import Change, GraphStore, Split, open_store
from kgsynth.store.embedded import EmbeddedStore
from tests.bolt import bolt_url  # noqa: F401
from tests.conformance.conftest import Connect
from tests.conformance.samples import SPANS, check, concept, edge, graph, item, items, undo_all
from tests.conformance.test_random import compare
from tests.dag_model import DagModel

NAMES = [concept(f"n{i}") for i in range(9)]
Did = list[tuple[int, Change | int]]  # (operation, the change or the operation it undid)


class Crew:
    """Writers, each with a connection of its own or all with one."""

    def __init__(self, connect: Connect, writers: int, shared: bool) -> None:
        first = connect()
        self.stores = [first if shared else connect() for _ in range(writers)]
        self.store = first

    def work(self, task: Callable[[int, GraphStore], Any]) -> list[Any]:
        """task(number, store) in a thread for each writer, all started together; their results in order."""
        found: list[Any] = [None] * len(self.stores)
        errors: list[BaseException] = []
        start = threading.Barrier(len(self.stores))

        def run(number: int) -> None:
            try:
                start.wait()
                found[number] = task(number, self.stores[number])
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(self.stores))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return found


@pytest.fixture(params=[(1, False), (8, False), (8, True)], ids=["1 writer", "8 writers", "8 writers on 1 connection"])
def crew(connect: Connect, request: pytest.FixtureRequest) -> Crew:
    return Crew(connect, *request.param)


@pytest.fixture
def turns(crew: Crew, url: str) -> int:
    """For each writer, so that all together write about as much."""
    return (120 if url.startswith("sqlite:") else 40) // len(crew.stores)


def replayed(store: GraphStore, did: Iterable[Did]) -> DagModel:
    """What the operations give in the order of the log, in the naive model; it equals the graph."""
    model = DagModel()
    order = sorted((entry for one in did for entry in one if entry[0]), key=lambda entry: entry[0])
    assert [op for op, _ in order] == list(range(1, store.version() + 1)), "an operation without a writer"
    for op, done in order:
        assert (model.commit(done).op if isinstance(done, Change) else model.undo(done)) == op
    compare(store, model)
    return model


def ends(dice: random.Random, n: int) -> tuple:
    pairs = [dice.sample(NAMES, 2) for _ in range(n)]
    return tuple(edge(parent, child, *dice.choices(SPANS, k=dice.randrange(3))) for parent, child in pairs)


def test_edges_in_both_directions_leave_a_dag(crew: Crew, turns: int) -> None:
    def task(number: int, store: GraphStore) -> Did:
        dice, did = random.Random(number), []
        for _ in range(turns):
            change = Change(concepts=tuple(NAMES), edges=ends(dice, 3))
            did.append((store.commit(change).op, change))
        return did

    did = crew.work(task)
    check(crew.store)
    replayed(crew.store, did)
    assert [d for d in crew.store.decisions() if d.kind == "cycle"], "they must have tried to close cycles"
    undo_all(crew.store)


def test_concepts_added_by_all_are_there_once_and_know_everything(crew: Crew, turns: int) -> None:
    def task(number: int, store: GraphStore) -> list[str]:
        added = []
        for turn in range(turns):
            told = concept(f"n{turn % 7}", aliases=(f"of {number}",), keywords=(f"{number}-{turn}",))
            added += store.commit(Change(concepts=(told,), enqueue=(item(told),))).added
        return added

    added = [i for one in crew.work(task) for i in one]
    assert len(added) == len(set(added)) == len(crew.store.concepts()) == min(7, turns)
    assert sum(crew.store.frontier().values()) == len(added)
    for known in crew.store.concepts():
        assert set(known.aliases) == {f"of {number}" for number in range(len(crew.stores))}
    assert sum(len(known.keywords) for known in crew.store.concepts()) == turns * len(crew.stores)
    check(crew.store)
    undo_all(crew.store)


def random_change(dice: random.Random) -> Change:
    kind = dice.choice(["grow", "grow", "link", "merge", "split", "unlink", "remove", "queue"])
    told = tuple(replace(c, keywords=(f"k{dice.randrange(5)}",)) for c in dice.sample(NAMES, 3))
    one, two = (c.id for c in dice.sample(NAMES, 2))
    return {
        "grow": Change(concepts=told, edges=ends(dice, 4), enqueue=tuple(map(item, told))),
        "link": Change(edges=ends(dice, 5)),
        "merge": Change(concepts=told[:1], merges=((one, two),), edges=ends(dice, 2)),
        "split": Change(splits=(Split(concept=one, into=told[0], parents=(two,), children=(told[1].id,)),)),
        "unlink": Change(unlink=tuple((e.parent, e.child) for e in ends(dice, 6))),
        "remove": Change(remove=(one,)),
        "queue": Change(enqueue=(item(NAMES[0]), item(NAMES[5])), done=(one, two)),
    }[kind]


def test_everything_at_once_is_what_one_after_the_other_gives(crew: Crew, turns: int) -> None:
    """Additions, merges, splits, removals, and undos of one's own and of others' operations."""

    def task(number: int, store: GraphStore) -> Did:
        dice, own = random.Random(100 + number), Change(concepts=(concept(f"own {number}"),))
        did: Did = [(store.commit(own).op, own)]
        for turn in range(turns):
            if turn == 0 or dice.random() < 0.25:
                last = store.version()
                chosen = did[0][0] if turn == 0 else dice.choice([last, did[-1][0], dice.randint(1, last)])
                try:
                    did.append((store.undo(chosen).op, chosen))
                except (UndoError, CycleError):
                    continue
            else:
                change = random_change(dice)
                did.append((store.commit(change).op, change))
        return did

    did = crew.work(task)
    check(crew.store)
    replayed(crew.store, did)
    assert any(isinstance(done, int) for one in did for _, done in one), "they must have undone something"
    undo_all(crew.store)


@pytest.mark.neo4j
@pytest.mark.parametrize("seed", range(2))
def test_both_stores_agree_on_random_changes(seed: int, bolt_url: str) -> None:  # noqa: F811
    """In every part of every result, and in all that can be read afterwards."""
    dice = random.Random(seed)
    with EmbeddedStore(":memory:") as ours, open_store(bolt_url) as theirs:  # type: ignore[attr-defined]
        for _ in range(40):
            change = random_change(dice)
            assert ours.commit(change) == theirs.commit(change)
        assert graph(ours) == graph(theirs)
        assert ours.decisions() == theirs.decisions()
        assert len(ours.concepts(list(theirs.levels()))) == len(theirs.concepts())
        leased = [[(i.concept, i.depth, i.seq, i.token) for i in s.lease(50, "me", 60)] for s in (ours, theirs)]
        assert leased[0] == leased[1]


def test_the_same_merges_from_all_sides_happen_once(crew: Crew) -> None:
    """Every writer folds neighbours of a ring of names, from another start and in another direction."""
    names = [concept(f"m{i}") for i in range(12)]

    def task(number: int, store: GraphStore) -> list[str]:
        merged = []
        for step in range(11):
            a, b = names[(number + step) % 12], names[(number + step + 1) % 12]
            pair = (a.id, b.id) if number % 2 else (b.id, a.id)
            merged += store.commit(Change(concepts=tuple(names), merges=(pair,))).merged
        return merged

    merged = [i for one in crew.work(task) for i in one]
    (left,) = crew.store.concepts()
    assert len(merged) == len(set(merged)) == 11
    assert {crew.store.concept(c.id) for c in names} == {left}
    assert {left.name, *left.aliases} == {c.name for c in names}
    check(crew.store)
    undo_all(crew.store)


def test_no_item_is_leased_twice(crew: Crew) -> None:
    crew.store.commit(items(*(f"q{i}" for i in range(40))))

    def task(number: int, store: GraphStore) -> list[Any]:
        taken = []
        while leased := store.lease(3, f"worker {number}", 600):
            taken += leased
        return taken

    taken = [leased for one in crew.work(task) for leased in one]
    assert Counter(leased.concept for leased in taken) == Counter(concept(f"q{i}").id for i in range(40))
    assert len({leased.token for leased in taken}) == 40


def test_every_item_is_finished_once_though_leases_run_out(crew: Crew) -> None:
    """Leases that are over at once: all work on the same items, and each is finished by one."""
    names = [f"q{i}" for i in range(12)]
    crew.store.commit(items(*names))

    def task(number: int, store: GraphStore) -> tuple[list[str], int]:
        finished, late = [], 0
        while leased := store.lease(2, f"worker {number}", 0):
            for held in leased:
                work = Change(concepts=(concept(f"of {held.concept}"),), leases=(held,), done=(held.concept,))
                try:
                    if store.commit(work).op:
                        finished.append(held.concept)
                except LeaseError:
                    late += 1
        return finished, late

    found = crew.work(task)
    finished = [i for one, _ in found for i in one]
    assert sorted(finished) == sorted(concept(name).id for name in names)
    assert crew.store.frontier() == {"waiting": 0, "leased": 0, "done": 12}
    assert crew.store.version() == 13
    check(crew.store)


def test_the_cap_holds(crew: Crew, turns: int) -> None:
    def task(number: int, store: GraphStore) -> int:
        results = [
            store.commit(Change(concepts=(concept(f"c {number} {i}"), concept(f"d {i}")), max_concepts=15))
            for i in range(turns)
        ]
        return sum(len(result.added) for result in results)

    added = sum(crew.work(task))
    assert added == len(crew.store.concepts()) == min(15, turns * (len(crew.stores) + 1))
    check(crew.store)


def test_readers_never_see_half_a_change(crew: Crew, turns: int) -> None:
    """Every change adds a pair with an edge, or moves it: whoever looks finds no edge without ends, and exact levels."""
    stop = threading.Event()
    seen: list[tuple[int, int]] = []

    def look() -> None:
        while not stop.is_set():
            found = crew.stores[-1].skeleton()
            level = found.levels
            assert len(found.ids) % 2 == 0
            assert len(found.parents) == len(found.ids) // 2
            assert (level[found.parents] + 1 == level[found.children]).all()
            seen.append((found.op, len(found.ids)))

    def task(number: int, store: GraphStore) -> None:
        if number == len(crew.stores) - 1:
            reader = threading.Thread(target=watch)
            reader.start()
        for turn in range(turns):
            a, b = concept(f"a {number} {turn}"), concept(f"b {number} {turn}")
            store.commit(Change(concepts=(a, b), edges=(edge(a, b),)))
            if turn % 3 == 2:
                store.commit(Change(remove=(a.id, b.id)))
        if number == len(crew.stores) - 1:
            stop.set()
            reader.join()

    failed: list[BaseException] = []

    def watch() -> None:
        try:
            look()
        except BaseException as error:
            failed.append(error)

    crew.work(task)
    assert not failed, failed[0]
    assert seen == sorted(seen, key=lambda one: one[0]), "a graph that goes back"
    check(crew.store)
