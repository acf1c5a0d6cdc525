"""The growing loop: lease concepts from the frontier, send an agent after each, until nothing is left to research.

It stops at atomic concepts, at `max_depth`, at `max_concepts` (after which the remaining concepts are still researched, so
that they gain parents and are judged, but none is added), or when a budget is reached. Every commit is durable;
stopped in any way, the same call goes on where the last commit ended.

    uv run kgsynth grow recipes/demo.toml

Left out: feedback from training, several domains' quotas, revision of old concepts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kgsynth.concept import Concept, Decision, name_key
from kgsynth.dedup import Dedup, DedupConfig
from kgsynth.embed import Embedder
from kgsynth.errors import BudgetError, ConfigError, KgsynthError, LeaseError, LLMReplyError, WebError
from kgsynth.graph import ConceptGraph
from kgsynth.grow.agent import AgentConfig, Agents
from kgsynth.llm import LLM
from kgsynth.store import Change, FrontierItem
from kgsynth.web import SearchProvider
from kgsynth.web.read import Reader

GIVE_UP_AFTER = 8  # agents in a row that failed


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
    agents: int = 4  # at work at the same time
    attempts: int = 3  # of one concept, before it is given up and recorded
    lease_seconds: float = 600.0
    agent: AgentConfig = AgentConfig()
    dedup: DedupConfig = DedupConfig()

    def __post_init__(self) -> None:
        for key in ("max_concepts", "max_depth", "agents", "attempts"):
            if getattr(self, key) < 1:
                raise ConfigError(f"[grow] {key} must be at least 1, not {getattr(self, key)}")
        if self.lease_seconds <= 0:
            raise ConfigError(f"[grow] lease_seconds must be above 0, not {self.lease_seconds}")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a display may want to know after each commit."""

    concepts: int
    edges: int
    waiting: int  # concepts still to research
    researched: int
    refused: int  # edges, so far in this call
    last: str = ""


@dataclass
class GrowReport:
    """What one call of `grow` did."""

    researched: int = 0
    added: int = 0
    linked: int = 0
    refused: int = 0
    failed: int = 0
    overtaken: int = 0  # concepts that another worker finished first, because the lease had expired
    stopped: str = "frontier empty"  # or "budget: ..."
    errors: list[str] = field(default_factory=list)  # the last few

    def describe(self) -> str:
        facts = (
            f"{self.researched} concepts researched, {self.added} added, {self.linked} edges, {self.refused} refused"
        )
        failed = f", {self.failed} attempts failed (last: {self.errors[-1]})" if self.failed else ""
        overtaken = f", {self.overtaken} were finished by another worker" if self.overtaken else ""
        return f"{facts}{failed}{overtaken}; stopped: {self.stopped}"


async def grow(
    graph: ConceptGraph,
    config: GrowConfig,
    *,
    llm: LLM,
    search: SearchProvider,
    reader: Reader,
    embedder: Embedder,
    owner: str = "grow",
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> GrowReport:
    """Grow `graph` from the seeds. Safe to call again after any kind of stop; a finished graph returns at once.

    Raises ConfigError without seeds, LLMError when the endpoint fails for good, StoreError, and the last error when agents
    fail one after the other. A reached budget is not an error: the report says so.
    """
    plant(graph, config.seeds)
    dedup = _dedup(graph, embedder, config.dedup)
    agents = Agents(
        graph=graph, dedup=dedup, llm=llm, search=search, reader=reader,
        config=config.agent, max_depth=config.max_depth, max_concepts=config.max_concepts,
    )  # fmt: skip
    loop = _Loop(graph, config, agents, owner, on_progress)
    try:
        await loop.run()
    finally:
        await loop.stop()
    ids, vectors = dedup.vectors()
    if ids:
        graph.store.put_embeddings(embedder.name, ids, vectors)
    return loop.report


def plant(graph: ConceptGraph, seeds: Sequence[Seed]) -> None:
    """Put the seeds into the graph and the frontier; seeds that are there already stay as they are."""
    concepts = [Concept(name=s.name.strip(), domain=s.domain, definition=s.definition) for s in seeds]
    if any(not name_key(c.name) for c in concepts):
        raise ConfigError("[grow] seeds: a seed has an empty name")
    if not concepts and not len(graph):
        raise ConfigError('[grow] seeds is empty: name at least one, e.g. {name = "text processing", domain = "text"}')
    new = tuple(c for c in concepts if c not in graph)
    if new:
        graph.commit(
            Change(concepts=new, enqueue=tuple(FrontierItem(concept=c.id, depth=0) for c in new), note="seeds")
        )


def _dedup(graph: ConceptGraph, embedder: Embedder, config: DedupConfig) -> Dedup:
    dedup = Dedup(embedder, config)
    dedup.add(*graph)
    return dedup


class _Loop:
    """Keeps up to `config.agents` agents at work and counts how they end."""

    def __init__(
        self, graph: ConceptGraph, config: GrowConfig, agents: Agents, owner: str, show: Callable[[Progress], None]
    ) -> None:
        self.graph, self.config, self.agents, self.owner, self.show = graph, config, agents, owner, show
        self.report = GrowReport()
        self.at_work: dict[asyncio.Task[None], FrontierItem] = {}
        self.failures = 0  # in a row
        self.last_error: KgsynthError | None = None

    async def run(self) -> None:
        self.graph.store.release(self.owner)  # of a run that was killed
        self._show("")
        while self._refill():
            done, _ = await asyncio.wait(self.at_work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                self.at_work.pop(task)
                task.result()
            if self.failures >= GIVE_UP_AFTER and self.last_error is not None:
                raise type(self.last_error)(f"{self.failures} agents in a row failed; the last: {self.last_error}")
            if self.report.stopped != "frontier empty":
                return

    async def stop(self) -> None:
        """Cancel the agents at work and give their leases back."""
        for task in self.at_work:
            task.cancel()
        await asyncio.gather(*self.at_work, return_exceptions=True)
        self.graph.store.release(self.owner)

    def _refill(self) -> bool:
        """Send agents after waiting concepts; False when none is at work and none can be sent."""
        free = self.config.agents - len(self.at_work)
        items = self.graph.store.lease(free, self.owner, self.config.lease_seconds) if free > 0 else []
        if not items and not self.at_work and self.graph.store.release(self.owner):  # failed ones, once more
            items = self.graph.store.lease(free, self.owner, self.config.lease_seconds)
        for item in sorted(items, key=lambda i: i.seq):
            self.agents.turns.enter(item.seq)
            self.at_work[asyncio.ensure_future(self._research(item))] = item
        return bool(self.at_work)

    async def _research(self, item: FrontierItem) -> None:
        try:
            result = await self.agents.research(item)
        except BudgetError as error:
            self.report.stopped = f"budget: {error}"
        except LeaseError:  # another worker has taken the concept over, or is done with it
            self.report.overtaken += 1
        except (
            LLMReplyError,
            WebError,
        ) as error:  # of this concept; any other error ends the run, which can be resumed
            self._failed(item, error)
        else:
            self.failures = 0
            self.report.researched += 1
            self.report.added += len(result.added)
            self.report.linked += len(result.linked)
            self.report.refused += len(result.refused)
            self._show(self.graph[item.concept].name)

    def _failed(self, item: FrontierItem, error: KgsynthError) -> None:
        """Record a failure with its cause; after the last attempt the concept is done, unresearched."""
        self.failures += 1
        self.last_error = error
        self.report.failed += 1
        self.report.errors = [*self.report.errors[-4:], str(error)]
        final = item.attempts + 1 >= self.config.attempts
        cause = f"attempt {item.attempts + 1} of {self.config.attempts}: {type(error).__name__}: {error}"
        decision = Decision(kind="drop", subject=item.concept, outcome="given up" if final else "failed", reason=cause)
        self.graph.commit(Change(decisions=(decision,), done=(item.concept,) if final else ()))

    def _show(self, last: str) -> None:
        counts = self.graph.store.frontier()
        self.show(
            Progress(
                concepts=len(self.graph), edges=self.graph.number_of_edges(), refused=self.report.refused, last=last,
                waiting=counts["waiting"] + counts["leased"], researched=counts["done"],
            )
        )  # fmt: skip
