"""Which waiting concept is researched next. The store keeps the queue and its leases; this chooses from it.

    breadth    those nearest to a seed first
    thin       those in the branches with the fewest concepts; a branch is what hangs below one child of a root
    domains    those of the domain that is furthest below its wanted share of the concepts
    feedback   those whose surroundings a policy in training solves sometimes, but not always (`kgsynth.feedback`)

`[grow] order` names some of them; the first one decides, the next ones break its ties, and then comes first what was queued
first. With `breadth` alone the store's own order is taken, and nothing needs to be looked at. The others see the graph as it is when an
agent is free, so a graph that was grown under them depends on how fast its agents were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgsynth.errors import ConfigError
from kgsynth.store import FrontierItem, GraphStore

if TYPE_CHECKING:
    from kgsynth.store import Skeleton

Score = Callable[[FrontierItem], float]  # lower is sooner
RANKED = 8  # items handed out before the order is worked out anew, at least


@dataclass(frozen=True, kw_only=True)
class View:
    """The graph as a policy sees it."""

    domain: Mapping[str, str]  # concept id -> domain
    branch: Mapping[str, str]  # concept id -> id of the child of a root that it hangs below, by first parents
    size: Mapping[str, int]  # branch -> its concepts
    wanted: Mapping[str, float]  # domain -> wanted share, in any unit
    weight: Mapping[str, float]  # concept id -> how much is to be learnt there, in [0, 1]


def breadth(view: View) -> Score:
    return lambda item: item.depth


def thin(view: View) -> Score:
    return lambda item: view.size.get(view.branch.get(item.concept, ""), 0)


def domains(view: View) -> Score:
    """Domains without a wanted share come last."""
    have = Counter(view.domain.values())
    filled = {name: have[name] / share for name, share in view.wanted.items() if share > 0}
    return lambda item: filled.get(view.domain.get(item.concept, ""), float("inf"))


def feedback(view: View) -> Score:
    """Concepts that nobody has tried count as half-way."""
    return lambda item: -view.weight.get(item.concept, 0.5)


POLICIES: dict[str, Callable[[View], Score]] = {
    "breadth": breadth, "thin": thin, "domains": domains, "feedback": feedback
}  # fmt: skip


def check_order(order: Sequence[str], shares: Mapping[str, float]) -> None:
    """Raises ConfigError naming the key."""
    if unknown := [name for name in order if name not in POLICIES]:
        raise ConfigError(f"[grow] order: {unknown[0]!r} is no policy; known: {', '.join(POLICIES)}")
    if "domains" in order and not any(share > 0 for share in shares.values()):
        raise ConfigError('[grow] order names "domains", but [grow.domains] wants no share of any domain')


class Frontier:
    """The store's queue under a policy, for one owner."""

    def __init__(
        self,
        store: GraphStore,
        order: Sequence[str],
        *,
        wanted: Mapping[str, float],
        weight: Callable[[], Mapping[str, float]] = dict,
        owner: str,
        seconds: float,
    ) -> None:
        """weight: asked whenever the order is worked out anew; see View."""
        check_order(order, wanted)
        self._store, self._order, self._wanted, self._weight = store, tuple(order), wanted, weight
        self._owner, self._seconds = owner, seconds
        self._ranked: list[str] = []  # concept ids, the next one last
        self._left = 0  # to hand out before ranking again

    def lease(self, n: int) -> list[FrontierItem]:
        """Up to n items, now leased."""
        if self._order in ((), ("breadth",)):
            return self._store.lease(n, self._owner, self._seconds)
        leased: list[FrontierItem] = []
        while len(leased) < n and (chosen := self._next(n - len(leased))):
            leased += self._store.lease(len(chosen), self._owner, self._seconds, among=chosen)
        return leased

    def _next(self, n: int) -> list[str]:
        """The next ids by the order; empty when nothing waits."""
        if self._left <= 0 or not self._ranked:
            self._rank()
        chosen = [self._ranked.pop() for _ in range(min(n, len(self._ranked)))]
        self._left -= len(chosen)
        return chosen

    def _rank(self) -> None:
        items = self._store.waiting()
        skeleton = self._store.skeleton()
        view = look(skeleton, self._wanted, self._weight())
        scores = [POLICIES[name](view) for name in self._order]
        items.sort(key=lambda item: (*(score(item) for score in scores), item.seq), reverse=True)
        self._ranked = [item.concept for item in items]
        self._left = max(RANKED, len(skeleton.ids) // 100)


def look(skeleton: Skeleton, wanted: Mapping[str, float], weight: Mapping[str, float]) -> View:
    """A skeleton with what else the policies go by."""
    first = first_parents(skeleton)
    branch: dict[int, int] = {}
    for row in range(len(skeleton.ids)):
        branch[row] = _branch(row, first, branch)
    ids = skeleton.ids
    return View(
        domain=dict(zip(ids, skeleton.domains, strict=True)),
        branch={ids[row]: ids[at] for row, at in branch.items()},
        size=Counter(ids[at] for at in branch.values()),
        wanted=wanted,
        weight=weight,
    )


def first_parents(skeleton: Skeleton) -> dict[int, int]:
    """Row of a concept -> row of the parent under which it was found: edges come in the order of insertion."""
    first: dict[int, int] = {}
    for parent, child in zip(skeleton.parents.tolist(), skeleton.children.tolist(), strict=True):
        first.setdefault(child, parent)
    return first


def _branch(row: int, first: Mapping[int, int], branch: dict[int, int]) -> int:
    """Up along first parents until a row whose branch is known, or a child of a root, or a root."""
    way = [row]
    while way[-1] not in branch and way[-1] in first and first[way[-1]] in first:
        way.append(first[way[-1]])
    found = branch.get(way[-1], way[-1])
    branch |= dict.fromkeys(way, found)
    return found
