"""The growing loop: lease concepts from the frontier, send an agent after each, until nothing is left to research.

It stops at atomic concepts, at `max_depth`, at `max_concepts` (after which the remaining concepts are still researched, so
that they gain parents and are judged, but none is added), or when a budget is reached. Every commit is durable;
stopped in any way, the same call goes on where the last commit ended.

    kgsynth grow recipes/demo.toml

Several loops may work on one store, in any processes on any machines (`workers.py`): the store alone coordinates them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kgsynth.concept import Concept, Decision, name_key
from kgsynth.dedup import DedupConfig
from kgsynth.embed import Embedder
from kgsynth.errors import BudgetError, ConfigError, KgsynthError, LeaseError, LLMReplyError, WebError
from kgsynth.graph import ConceptGraph
from kgsynth.grow.agent import AgentConfig, Agents
from kgsynth.grow.frontier import Frontier, check_order
from kgsynth.grow.known import Known
from kgsynth.grow.progress import ERROR, GrowReport, Progress, Tally
from kgsynth.llm import LLM
from kgsynth.store import Change, CommitResult, FrontierItem
from kgsynth.web import SearchProvider
from kgsynth.web.read import Reader

GIVE_UP_AFTER = 8  # agents in a row that failed
AHEAD = 4  # agents per free place that may have done their reading and wait for their turn
TICK = 0.25  # seconds between two reports of progress
PAUSES = (2.0, 15.0, 60.0)  # seconds before what the web refused is tried again, and again
POLL = 0.5  # seconds, while only other workers have something to do


@dataclass(frozen=True, kw_only=True)
class Seed:
    """A concept to start from."""

    name: str
    domain: str
    definition: str = ""


@dataclass(frozen=True, kw_only=True)
class GrowConfig:
    """[grow] in a recipe."""

    seeds: tuple[Seed, ...] = ()
    max_concepts: int = 500
    max_depth: int = 6  # of a concept, in edges from its seed
    agents: int = 4  # at work at the same time, in each process
    processes: int = 1
    on: Literal["processes", "ray"] = "processes"  # what runs them when there are several
    order: tuple[str, ...] = ("breadth",)  # which concept next, see frontier.py
    domains: Mapping[str, float] = field(default_factory=dict)  # wanted shares of the concepts, for the order "domains"
    attempts: int = 3  # of one concept, before it is given up and recorded
    lease_seconds: float = 600.0
    agent: AgentConfig = AgentConfig()
    dedup: DedupConfig = DedupConfig()

    def __post_init__(self) -> None:
        for key in ("max_concepts", "max_depth", "agents", "processes", "attempts"):
            if getattr(self, key) < 1:
                raise ConfigError(f"[grow] {key} must be at least 1, not {getattr(self, key)}")
        if self.lease_seconds <= 0:
            raise ConfigError(f"[grow] lease_seconds must be above 0, not {self.lease_seconds}")
        check_order(self.order, self.domains)


async def grow(
    graph: ConceptGraph,
    config: GrowConfig,
    *,
    llm: LLM,
    search: SearchProvider,
    reader: Reader,
    embedder: Embedder,
    owner: str = "grow",
    patient: bool = False,
    weight: Callable[[], Mapping[str, float]] = dict,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> GrowReport:
    """Grow `graph` from the seeds. Safe to call again after any kind of stop; a finished graph returns at once.

    patient: wait while other workers hold concepts, as they may add some to the frontier. weight: see `frontier.View`.
    Raises ConfigError without seeds, LLMError when the endpoint fails for good, StoreError, and the last error when agents
    fail one after the other. A reached budget is not an error: the report says so.
    """
    plant(graph, config.seeds)
    known = Known(graph.store, embedder, config.dedup)
    agents = Agents(
        graph=graph, known=known, llm=llm, search=search, reader=reader,
        config=config.agent, max_depth=config.max_depth, max_concepts=config.max_concepts,
    )  # fmt: skip
    frontier = Frontier(
        graph.store, config.order, wanted=config.domains, weight=weight, owner=owner, seconds=config.lease_seconds
    )
    loop = _Loop(graph, config, agents, frontier, owner, patient, on_progress)
    try:
        await loop.run()
    finally:
        await loop.stop()
    await known.catch_up()
    known.keep_vectors()
    graph.refresh()
    return loop.report


def plant(graph: ConceptGraph, seeds: Sequence[Seed]) -> None:
    """Put the seeds into the graph and the frontier; seeds that are there already stay as they are.

    Of seeds of one name in several domains, the second and further ones have their domain as their sense.
    """
    concepts: list[Concept] = []
    for seed in seeds:
        concept = Concept(name=seed.name.strip(), domain=seed.domain, definition=seed.definition)
        namesakes = {c.domain for c in concepts if c.id == concept.id}
        concepts.append(replace(concept, sense=seed.domain) if namesakes - {seed.domain} else concept)
    if any(not name_key(c.name) for c in concepts):
        raise ConfigError("[grow] seeds: a seed has an empty name")
    if not concepts and not len(graph):
        raise ConfigError('[grow] seeds is empty: name at least one, e.g. {name = "text processing", domain = "text"}')
    new = tuple(c for c in concepts if c not in graph)
    if new:
        graph.commit(
            Change(concepts=new, enqueue=tuple(FrontierItem(concept=c.id, depth=0) for c in new), note="seeds")
        )


class _Loop:
    """Keeps up to `config.agents` agents at work and counts how they end.

    An agent that waits for its turn leaves its place to another one, so that a slow one does not idle the rest.
    """

    def __init__(
        self, graph: ConceptGraph, config: GrowConfig, agents: Agents, frontier: Frontier, owner: str, patient: bool,
        show: Callable[[Progress], None],
    ) -> None:  # fmt: skip
        self.graph, self.config, self.agents, self.frontier = graph, config, agents, frontier
        self.owner, self.patient, self.show = owner, patient, show
        self.report = GrowReport()
        self.at_work: set[asyncio.Task[None]] = set()
        self.ended: asyncio.Queue[asyncio.Task[None]] = asyncio.Queue()
        self.failures = 0  # in a row
        self.failed: Counter[str] = Counter()  # concept -> attempts; leases that a kill or a stop ended are none
        self.again: set[str] = set()  # concepts to be tried again in this call
        self.left: set[str] = set()  # concepts that are left to the next call
        self.rounds = 0
        self.last_error: KgsynthError | None = None
        self.began, self.shown = time.monotonic(), 0.0

    async def run(self) -> None:
        self.graph.store.release(self.owner)  # of a run that was killed
        self._show()
        while await self._refill():
            await self._one_ended()
            if self.failures >= GIVE_UP_AFTER and self.last_error is not None:
                raise self._given_up(self.last_error)
            if self.report.stopped != "frontier empty":
                return
            if time.monotonic() - self.shown >= TICK:
                self._show()
        self._ended_short()

    def _ended_short(self) -> None:
        """Raises the last error when nothing at all could be researched; says so when something is left."""
        others = self.patient and self.graph.store.frontier()["done"] > 0
        if self.left and self.last_error is not None and not self.agents.counts["researched"] and not others:
            raise self._given_up(self.last_error)
        if self.left:
            self.report.stopped = (
                f"{len(self.left)} concepts could not be researched, the same command tries them again"
            )

    async def _one_ended(self) -> None:
        """Wait for an agent to end, or for a moment. Raises what it raised."""
        try:
            task = self.ended.get_nowait() if self.ended.qsize() else await asyncio.wait_for(self.ended.get(), TICK)
        except TimeoutError:
            return
        self.at_work.discard(task)
        task.result()

    def _given_up(self, last: KgsynthError) -> KgsynthError:
        words = f"{self.failures} agents in a row failed; the last: {last}"
        return WebError(words, last.cause) if isinstance(last, WebError) else type(last)(words)

    async def stop(self) -> None:
        """Cancel the agents at work and give their leases back."""
        for task in self.at_work:
            task.cancel()
        await asyncio.gather(*self.at_work, return_exceptions=True)
        self.graph.store.release(self.owner)
        self._show()

    async def _refill(self) -> bool:
        """Send agents after waiting concepts; False when none is at work and none can be sent."""
        while True:
            self._send(self._lease())
            if self.at_work:
                return True
            if self.again:
                await self._try_again()
                continue
            if self.left or not (self.patient and self._is_unfinished()):
                return False
            self._show()
            await asyncio.sleep(POLL)

    async def _try_again(self) -> None:
        """Give back what failed. What the web refused is let alone for a while first."""
        if isinstance(self.last_error, WebError):
            self._show()
            await asyncio.sleep(PAUSES[min(self.rounds, len(PAUSES) - 1)])
            self.rounds += 1
        self.again = set()
        self.graph.store.release(self.owner)

    def _is_unfinished(self) -> bool:
        """Others are at work, or have just added what can be leased by now."""
        now = self.graph.store.frontier()
        return bool(now["leased"] + now["waiting"])

    def _lease(self) -> list[FrontierItem]:
        """For free places, some at a time."""
        places = min(self.config.agents + self.agents.waiting, self.config.agents * AHEAD)
        free = places - len(self.at_work)
        if free <= self.config.agents // 8:
            return []
        while items := self.frontier.lease(free):
            if fresh := [item for item in items if item.concept not in self.left]:
                return fresh
        return []

    def _send(self, items: Sequence[FrontierItem]) -> None:
        for item in items:
            self.agents.turns.enter(item.seq)
            task = asyncio.ensure_future(self._research(item))
            task.add_done_callback(self.ended.put_nowait)
            self.at_work.add(task)

    async def _research(self, item: FrontierItem) -> None:
        try:
            result = await self.agents.research(item)
        except BudgetError as error:
            self.report.stopped = f"budget: {error}"
        except LeaseError:  # another worker has taken the concept over, or is done with it
            self.agents.counts["overtaken"] += 1
        except (LLMReplyError, WebError) as error:  # of this concept; any other ends the run, which can be resumed
            if isinstance(error, WebError) and error.cause == "offline":
                raise
            self._failed(item, error)
        else:
            self._researched(result)

    def _researched(self, result: CommitResult) -> None:
        self.failures = 0
        self.agents.counts.update(
            researched=1, added=len(result.added), linked=len(result.linked), refused=len(result.refused)
        )

    def _failed(self, item: FrontierItem, error: KgsynthError) -> None:
        """Record a failure with its cause. After the last attempt the concept is left to the next call, or, when it is the model
        that does not cope with it but does with others, given up.
        """
        self.failures += 1
        self.last_error = error
        cause = error.cause if isinstance(error, WebError) else type(error).__name__
        self.agents.counts.update({"failed": 1, ERROR + cause: 1})
        self.report.errors = [*self.report.errors[-4:], str(error)]
        self.failed[item.concept] += 1
        times = self.failed[item.concept]
        spent = times >= self.config.attempts
        final = spent and isinstance(error, LLMReplyError) and self.agents.counts["researched"] > 0
        if not final:
            (self.left if spent else self.again).add(item.concept)
        reason = f"attempt {times} of {self.config.attempts}: {type(error).__name__}: {error}"
        decision = Decision(kind="drop", subject=item.concept, outcome="given up" if final else "failed", reason=reason)
        self.graph.store.commit(Change(decisions=(decision,), done=(item.concept,) if final else ()))

    def _show(self) -> None:
        self.shown = time.monotonic()
        self.report.tally = Tally.of(self.agents.counts)
        progress = Progress(
            concepts=self.graph.store.state()["concepts"], **self.graph.store.frontier(), tally=self.report.tally,
            agents=self.agents.at_work(), last=self.agents.last, seconds=self.shown - self.began,
        )  # fmt: skip
        self.show(progress)
