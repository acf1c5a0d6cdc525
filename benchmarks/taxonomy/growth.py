"""The real growing loop, against the servers of a taxonomy: a model over HTTP, a search engine over HTTP, pages over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.taxonomy.pages import longest
from benchmarks.taxonomy.server import Site
from benchmarks.taxonomy.truth import Taxonomy
from kgsynth.concept import Concept, Decision
from kgsynth.dedup import DedupConfig
from kgsynth.embed import Embedder
from kgsynth.graph import ConceptGraph
from kgsynth.grow.agent import AgentConfig
from kgsynth.grow.grow import GrowConfig, GrowReport, Progress, Seed, grow
from kgsynth.llm.openai import LLMConfig, OpenAIChat
from kgsynth.store import open_store
from kgsynth.web.fetch import HttpConfig
from kgsynth.web.open import WebConfig, open_web
from kgsynth.web.providers import ProviderConfig
from kgsynth.web.read import Reader


@dataclass(frozen=True, kw_only=True)
class Grown:
    """What came out."""

    concepts: list[Concept]  # in the order in which they were grown
    edges: list[tuple[str, str]]  # (parent, child), ids
    decisions: list[Decision]
    report: GrowReport
    seconds: float
    cpu_seconds: float  # of this process: agents, dedup with its embedder, store; not of the servers


def grow_from(
    taxonomy: Taxonomy, site: Site, folder: Path, *, embedder: Embedder, agents: int = 16, store: str = "",
    dedup: DedupConfig = DedupConfig(), on_progress: Callable[[Progress], None] = lambda _: None,
) -> Grown:  # fmt: skip
    """Grow a graph from the roots of a taxonomy until the frontier is empty. `store`: a URL; empty for one in `folder`."""
    with closing(open_store(store or f"sqlite:{folder / 'graph.sqlite'}")) as opened:
        graph, config = ConceptGraph(opened), grow_config(taxonomy, agents, dedup)
        begun = time.perf_counter(), time.process_time()
        report = asyncio.run(_grow(graph, config, site, folder, embedder, on_progress))
        wall, cpu = time.perf_counter() - begun[0], time.process_time() - begun[1]
        return Grown(
            concepts=list(graph), edges=[(e.parent, e.child) for e in graph.edges()], decisions=opened.decisions(),
            report=report, seconds=wall, cpu_seconds=cpu,
        )  # fmt: skip


def grow_config(taxonomy: Taxonomy, agents: int, dedup: DedupConfig) -> GrowConfig:
    """No limit of the loop stands in the way: what is missing in the end, the loop has lost."""
    roots = [Seed(name=r.label, domain=r.label, definition=r.definition) for r in taxonomy.roots]
    widest = max(map(len, taxonomy.children.values()), default=1)
    agent = AgentConfig(children=3 * widest + 3, page_chars=max(6000, longest(taxonomy)))
    return GrowConfig(
        seeds=tuple(roots), max_concepts=10 * len(taxonomy) + 100, max_depth=max(taxonomy.depths.values()) + 5,
        agents=agents, agent=agent, dedup=dedup,
    )  # fmt: skip


async def _grow(
    graph: ConceptGraph, config: GrowConfig, site: Site, folder: Path, embedder: Embedder,
    on_progress: Callable[[Progress], None],
) -> GrowReport:  # fmt: skip
    model = LLMConfig(kind="openai", model="taxonomy", base_url=site.llm, api_key_env="", concurrency=config.agents)
    http = HttpConfig(
        allow_private=True, interval_seconds=0, per_host=config.agents, max_kb=2048 + config.agent.page_chars // 250
    )
    web = WebConfig(providers=(ProviderConfig(name="searxng", base_url=site.url),), http=http, archive=False)
    llm = OpenAIChat(model, folder)
    try:
        async with open_web(web) as (search, fetcher):
            return await grow(
                graph,
                config,
                llm=llm,
                search=search,
                reader=Reader(fetcher),
                embedder=embedder,
                on_progress=on_progress,
            )
    finally:
        await llm.close()
