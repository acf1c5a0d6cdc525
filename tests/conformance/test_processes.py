"""Writers in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import random
from typing import Any

from kgsynth.errors import StoreError
from kgsynth.store import Change, GraphStore, open_store
from tests.conformance.samples import check, concept, edge, items, undo_all

SPAWN = multiprocessing.get_context("spawn")


def run_all(target: Any, *arguments: tuple) -> None:
    workers = [SPAWN.Process(target=target, args=given) for given in arguments]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * len(workers)


def hammer(url: str, seed: int, names: int, rounds: int) -> None:
    """Commit edges in random directions, a few at a time."""
    store, dice = open_store(url), random.Random(seed)
    concepts = [concept(f"n{i}") for i in range(names)]
    store.commit(Change(concepts=tuple(concepts)))
    for _ in range(rounds):
        pairs = [dice.sample(concepts, 2) for _ in range(3)]
        store.commit(Change(edges=tuple(edge(p, c) for p, c in pairs)))
    store.close()


def test_processes_that_close_cycles_on_each_other_leave_a_dag(url: str, store: GraphStore) -> None:
    run_all(hammer, (url, 1, 12, 40), (url, 2, 12, 40))
    assert len(store.concepts()) == 12
    assert len(store.edges()) > 40
    assert [d for d in store.decisions() if d.kind == "cycle"], "the test must have tried to close cycles"
    check(store)
    undo_all(store)


def test_processes_that_open_an_empty_store_at_once(url: str) -> None:
    run_all(hammer, *((url, seed, 3, 1) for seed in range(3)))
    store = open_store(url)
    assert len(store.concepts()) == 3
    check(store)
    store.close()


def take_all(url: str, owner: str, found: Any) -> None:
    store = open_store(url)
    while leased := store.lease(3, owner, 600):
        found.put([item.concept for item in leased])
    store.close()


def test_no_item_is_leased_to_two_processes(url: str, store: GraphStore) -> None:
    store.commit(items(*(f"n{i}" for i in range(40))))
    found = SPAWN.SimpleQueue()
    run_all(take_all, (url, "one", found), (url, "two", found))
    taken = []
    while not found.empty():
        taken += found.get()
    assert sorted(taken) == sorted(concept(f"n{i}").id for i in range(40))


def test_a_fork_must_open_its_own(store: GraphStore) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            store.concepts()
        except StoreError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store.concepts() == []
