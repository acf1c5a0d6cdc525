"""One of the writers that `kill_writers.py` starts and kills: threads that change one graph in overlapping ways.

Before every commit a line with the whole intent is appended to the thread's diary, and after it returned one with what it
said (fsync), so that the parent can tell what was promised, and replay what was done.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kgsynth.concept import Concept, Edge, Source
from kgsynth.errors import CycleError, LeaseError, UndoError
from kgsynth.store import Change, FrontierItem, GraphStore, Split, open_store

PAGE = Source(url="https://example.org/writers", title="Writers", text="A page that every writer quotes. " * 30)
LEASE_SECONDS = 1.5  # short, so that leases of killed and of slow writers run out


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A change as a line of the diary can hold it. Concepts are numbers: that of their name."""

    note: str = ""
    add: tuple[int, ...] = ()
    keywords: tuple[str, ...] = ()
    edges: tuple[tuple[int, int, int], ...] = ()  # (parent, child, quoted span)
    merges: tuple[tuple[int, int], ...] = ()
    split: tuple[int, int, int] | None = None  # (concept, into, parent)
    unlink: tuple[tuple[int, int], ...] = ()
    remove: tuple[int, ...] = ()
    enqueue: tuple[int, ...] = ()
    done: tuple[str, ...] = ()  # ids, as leases name them
    undo: int | None = None  # an operation, instead of all that

    def change(self, leases: tuple[FrontierItem, ...] = ()) -> Change:
        told = tuple(replace(named(i), keywords=self.keywords) for i in self.add)
        split = () if self.split is None else (_split(*self.split),)
        return Change(
            sources=(PAGE,), concepts=told, splits=split, leases=leases, done=self.done, note=self.note,
            edges=tuple(Edge(parent=named(p).id, child=named(c).id, spans=(PAGE.span(s, s + 9),)) for p, c, s in self.edges),
            merges=tuple((named(a).id, named(b).id) for a, b in self.merges),
            unlink=tuple((named(a).id, named(b).id) for a, b in self.unlink),
            remove=tuple(named(i).id for i in self.remove),
            enqueue=tuple(FrontierItem(concept=named(i).id, depth=1) for i in self.enqueue),
        )  # fmt: skip


def named(i: int) -> Concept:
    return Concept(name=f"concept {i}", domain=f"domain {i % 5}")


def _split(concept: int, into: int, parent: int) -> Split:
    return Split(concept=named(concept).id, into=named(into), parents=(named(parent).id,))


def read_intent(line: dict[str, Any]) -> Intent:
    """From JSON, where tuples became lists."""
    return Intent(**{key: _tuples(value) for key, value in line.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class Writer(threading.Thread):
    """Works until the file `stop` is there. `names`: how many concepts there are to write about."""

    def __init__(self, store: GraphStore, names: int, diary: Path, stop: Path, seed: int) -> None:
        super().__init__()
        self.store, self.names, self.stop = store, names, stop
        self.dice, self.owner = random.Random(seed), uuid.uuid4().hex
        self.diary = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.last = 0  # its own last operation
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.exists():
                self.turn()
        except BaseException as error:
            self.failure = error

    def turn(self) -> None:
        dice = self.dice
        if dice.random() < 0.35:
            self.research()
        elif self.last and dice.random() < 0.2:
            self.attempt(Intent(undo=self.last))
        else:
            self.attempt(self.anything())

    def research(self) -> None:
        """As a worker of `grow` does: lease, think, write under the lease."""
        for held in self.store.lease(self.dice.choice((1, 1, 2)), self.owner, LEASE_SECONDS):
            if self.dice.random() < 0.1:
                time.sleep(self.dice.uniform(0, 2 * LEASE_SECONDS))
            self.attempt(replace(self.growth(), done=(held.concept,)), (held,))

    def attempt(self, intent: Intent, leases: tuple[FrontierItem, ...] = ()) -> None:
        intent = replace(intent, note=uuid.uuid4().hex)
        self.write({"intent": vars(intent)})
        try:
            if intent.undo is None:
                op = self.store.commit(intent.change(leases)).op
            else:
                op = self.store.undo(intent.undo, note=intent.note).op
        except (LeaseError, UndoError, CycleError) as refusal:
            self.write({"note": intent.note, "refused": type(refusal).__name__})
            self.last = 0
        else:
            self.write({"note": intent.note, "op": op})
            self.last = op

    def anything(self) -> Intent:
        dice = self.dice
        a, b, c = (self.one() for _ in range(3))
        kind = dice.choices(("growth", "links", "merge", "split", "unlink", "remove"), (6, 6, 2, 1, 2, 1))[0]
        return {
            "growth": self.growth(),
            "links": Intent(edges=self.links(4)),
            "merge": Intent(add=(a,), merges=((a, b),), edges=self.links(1)),
            "split": Intent(split=(a, b, c)),
            "unlink": Intent(unlink=tuple((self.one(), self.one()) for _ in range(12))),
            "remove": Intent(remove=(a,)),
        }[kind]

    def growth(self) -> Intent:
        new = tuple(self.one() for _ in range(3))
        return Intent(add=new, keywords=(f"k{self.one()}",), edges=self.links(3), enqueue=new)

    def links(self, n: int) -> tuple[tuple[int, int, int], ...]:
        return tuple((self.one(), self.one(), self.dice.randrange(20)) for _ in range(n))

    def one(self) -> int:
        return self.dice.randrange(self.names)

    def write(self, line: dict[str, Any]) -> None:
        os.write(self.diary, json.dumps(line).encode() + b"\n")
        os.fsync(self.diary)


def main() -> int:
    url, folder, names, threads, seed = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
    shared = open_store(url) if seed % 2 else None  # every other process has one connection for all its threads
    writers = [
        Writer(shared or open_store(url), names, folder / f"diary-{seed}-{i}.jsonl", folder / "stop", seed * 100 + i)
        for i in range(threads)
    ]
    (folder / f"ready-{seed}").touch()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for failure in (writer.failure for writer in writers if writer.failure):
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
    return int(any(writer.failure for writer in writers))


if __name__ == "__main__":
    sys.exit(main())
