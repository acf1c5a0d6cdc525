"""One research agent for one concept, a LangGraph graph of seven steps:

    plan -> search -> read -> propose -> align -> judge -> commit

Everything up to `propose` looks at pages only and runs while other agents do the same. From `align` on the agent compares with
the graph and writes to it, so it waits for its turn: agents pass in the order of the frontier, which makes the
grown graph independent of how many agents run and of where a run was killed.

Left out: choosing between providers, crawling beyond the first hits, revising old concepts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from kgsynth.concept import Concept, Decision, Edge, Source, SourceSpan, merge_unique, name_key
from kgsynth.dedup import Dedup
from kgsynth.errors import ConfigError, WebError
from kgsynth.graph import ConceptGraph
from kgsynth.llm import LLM
from kgsynth.llm.questions import JudgeAtomic, PlanQueries, Proposal, Propose, SameConcept
from kgsynth.store import Change, CommitResult, FrontierItem
from kgsynth.store.change import absorb
from kgsynth.web import Hit, Page, SearchProvider
from kgsynth.web.read import Reader

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """How one agent researches ([grow.agent] in a recipe)."""

    queries: int = 2
    hits_per_query: int = 5
    pages: int = 3  # read at most
    children: int = 12  # proposed at most
    page_chars: int = 6000  # of each page shown to a model

    def __post_init__(self) -> None:
        for setting in fields(self):
            if getattr(self, setting.name) < 1:
                raise ConfigError(f"[grow.agent] {setting.name} must be at least 1, not {getattr(self, setting.name)}")


@dataclass(kw_only=True)
class State:
    """What the steps hand on; each step returns the fields it sets."""

    item: FrontierItem
    concept: Concept
    ancestors: tuple[Concept, ...]  # root first
    queries: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    pages: tuple[Page, ...] = ()
    proposals: list[Proposal] = field(default_factory=list)
    change: Change = Change()
    decisions: tuple[Decision, ...] = ()
    result: CommitResult = CommitResult()


@dataclass
class Agents:
    """The tools all agents share, and the compiled graph that each of them walks."""

    graph: ConceptGraph
    dedup: Dedup
    llm: LLM
    search: SearchProvider
    reader: Reader
    config: AgentConfig
    max_depth: int
    max_concepts: int
    turns: Turns = field(default_factory=lambda: Turns())

    def __post_init__(self) -> None:
        self._flow = self._compile()

    def _compile(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        from langgraph.graph import END, START, StateGraph

        steps: list[Callable[[State], Awaitable[dict[str, Any]]]] = [
            self.plan, self.find, self.read, self.propose, self.align, self.judge, self.commit,
        ]  # fmt: skip
        names = ["plan", "search", "read", "propose", "align", "judge", "commit"]
        flow: Any = StateGraph(State)
        for name, step in zip(names, steps, strict=True):
            flow.add_node(name, step)
        for before, after in zip([START, *names], [*names, END], strict=True):
            flow.add_edge(before, after)
        return flow.compile()

    async def research(self, item: FrontierItem) -> CommitResult:
        """Walk the whole graph for one frontier item. Raises what a step raises (LLMError, BudgetError, StoreError)."""
        ancestors = tuple(map(subject, self.graph.lineage(item.concept)))
        state = State(item=item, concept=subject(self.graph[item.concept]), ancestors=ancestors)
        try:
            return (await self._flow.ainvoke(state))["result"]
        finally:
            await self.turns.leave(item.seq)

    async def plan(self, state: State) -> dict[str, Any]:
        question = PlanQueries(concept=state.concept, ancestors=state.ancestors, n=self.config.queries)
        return {"queries": (await self.llm.ask(question)).queries[: self.config.queries]}

    async def find(self, state: State) -> dict[str, Any]:
        """Hits of all queries: pages titled like the concept, then the others, fused by reciprocal rank."""
        found = await asyncio.gather(*(self.search.search(q, self.config.hits_per_query) for q in state.queries))
        scores: dict[str, float] = {}
        hits = {hit.url: hit for ranked in found for hit in ranked}
        for ranked in found:
            for rank, hit in enumerate(ranked):
                scores[hit.url] = scores.get(hit.url, 0.0) + 1 / (60 + rank)
        own = {url for url, hit in hits.items() if name_key(hit.title) in state.concept.keys}
        best = sorted(hits, key=lambda url: (url not in own, -scores[url], url))
        return {"hits": [hits[url] for url in best[: self.config.pages]]}

    async def read(self, state: State) -> dict[str, Any]:
        """The pages that could be read; a page that could not is a recorded decision, not an end."""
        results = await asyncio.gather(*(self.reader.read(h.url) for h in state.hits), return_exceptions=True)
        lost: list[Decision] = []
        for hit, result in zip(state.hits, results, strict=True):
            if isinstance(result, WebError):
                lost.append(Decision(kind="drop", subject=hit.url, outcome="unread", reason=str(result)))
            elif isinstance(result, BaseException):
                raise result
        return {
            "pages": tuple(r for r in results if isinstance(r, Page)),
            "decisions": state.decisions + tuple(lost),
        }

    async def propose(self, state: State) -> dict[str, Any]:
        if not state.pages:
            return {"proposals": []}
        question = Propose(
            concept=state.concept, ancestors=state.ancestors, pages=state.pages,
            limit=self.config.children, page_chars=self.config.page_chars,
        )  # fmt: skip
        proposals = (await self.llm.ask(question)).items[: self.config.children]
        await asyncio.to_thread(self.dedup.prepare, [candidate(p, state.concept) for p in proposals])
        return {"proposals": proposals}

    async def align(self, state: State) -> dict[str, Any]:
        """Each supported proposal becomes a new concept or a further parent of a known one."""
        await self.turns.wait(state.item.seq)
        parent, change = state.concept, Change()
        known: dict[str, Concept] = {}  # keys of this agent's own proposals
        for proposal in state.proposals:
            source, span = locate(proposal, state.pages)
            if span is None or source is None:
                refusal = Decision(
                    kind="drop", subject=proposal.name, outcome="unsupported", reason="quote not on the page"
                )
                change = replace(change, decisions=(*change.decisions, refusal))
                continue
            child, decision = await self._match(candidate(proposal, parent), known)
            known |= dict.fromkeys(child.keys, child)
            change = replace(
                change,
                sources=merge_unique(change.sources, [source]),
                concepts=(*change.concepts, child),
                edges=(*change.edges, Edge(parent=parent.id, child=child.id, spans=(span,))),
                decisions=(*change.decisions, decision),
            )
        return {"change": change}

    async def _match(self, new: Concept, known: dict[str, Concept]) -> tuple[Concept, Decision]:
        """The concept to write for a candidate: itself, or the equivalent one with the candidate's spellings added."""
        twin = next((known[key] for key in new.keys if key in known), None)
        if twin is not None:
            return twin, Decision(
                kind="dedup", subject=new.name, outcome="exact", reason=f"proposed twice, as {twin.name}"
            )
        aligned = self.dedup.align(new)
        if aligned.match is None and self.llm.uses_model:
            for neighbour, similarity in aligned.needs_judge:
                reply = await self.llm.ask(SameConcept(candidate=new, known=neighbour, similarity=similarity))
                if reply.relation == "same":
                    reason = f"{self.llm.name}: {reply.reason}"
                    judged = Decision(kind="dedup", subject=new.name, outcome="judge", reason=reason)
                    return absorb(neighbour, new), judged
        return aligned.concept, aligned.decision

    async def judge(self, state: State) -> dict[str, Any]:
        """Atomic concepts keep no children; others enqueue the new ones, unless the depth is reached."""
        concept, item, change = state.concept, state.item, state.change
        finer = tuple(dict.fromkeys(c.name for c in change.concepts if c.id != concept.id))
        question = JudgeAtomic(concept=concept, ancestors=state.ancestors, finer=finer, pages_read=len(state.pages))
        reply = await self.llm.ask(question)
        outcome = "atomic" if reply.atomic else "expand"
        verdict = Decision(
            kind="atomic", subject=concept.id, outcome=outcome, reason=f"{self.llm.name}: {reply.reason}"
        )
        judged = replace(concept, atomic=reply.atomic, atomic_reason=reply.reason)
        if reply.atomic:
            change = Change(decisions=change.decisions)
        deeper = item.depth + 1 < self.max_depth  # else they are there, but not researched
        return {
            "change": replace(
                change,
                concepts=(judged, *change.concepts),
                decisions=(*state.decisions, *change.decisions, verdict),
                enqueue=tuple(FrontierItem(concept=c.id, depth=item.depth + 1) for c in change.concepts if deeper),
                done=(concept.id,),
                leases=(item,),
                note=f"research of {concept.name}",
                max_concepts=self.max_concepts,
            )
        }

    async def commit(self, state: State) -> dict[str, Any]:
        result = self.graph.commit(state.change)
        for concept in state.change.concepts:
            if concept.id not in result.dropped:
                self.dedup.add(concept)
        return {"result": result}


def subject(concept: Concept) -> Concept:
    """What an agent knows of its concept: nothing that other agents may add to it while this one is reading."""
    return replace(concept, aliases=(), keywords=(), atomic=None, atomic_reason="")


def candidate(proposal: Proposal, parent: Concept) -> Concept:
    """A proposal as a concept of its parent's domain."""
    return Concept(
        name=proposal.name.strip(),
        domain=parent.domain,
        definition=proposal.definition.strip(),
        aliases=tuple(a.strip() for a in proposal.aliases if a.strip()),
        keywords=tuple(k.strip() for k in proposal.keywords if k.strip()),
    )


def locate(proposal: Proposal, pages: Sequence[Page]) -> tuple[Source | None, SourceSpan | None]:
    """The span of the quote: on the page it names, else on any page read. (None, None) when no page has it."""
    order = [*pages[proposal.page : proposal.page + 1], *pages]
    for source, start, end in _finds(proposal.quote.strip(), order):
        return source, source.span(start, end)
    return None, None


def _finds(quote: str, pages: Sequence[Page]) -> Iterator[tuple[Source, int, int]]:
    """Exact matches first, then matches that differ in white space only (models reflow what they copy)."""
    for page in pages:
        start = page.source.text.find(quote)
        if quote and start >= 0:
            yield page.source, start, start + len(quote)
    squeezed = " ".join(quote.split())
    for page in pages if squeezed else ():
        words, offsets = _squeeze(page.source.text)
        start = words.find(squeezed)
        if start >= 0:
            yield page.source, offsets[start], offsets[start + len(squeezed) - 1] + 1


def _squeeze(text: str) -> tuple[str, list[int]]:
    """The text with runs of white space as one space, and each character's offset in the original."""
    kept = [
        (" " if c.isspace() else c, i) for i, c in enumerate(text) if not (c.isspace() and text[i - 1 : i].isspace())
    ]
    return "".join(c for c, _ in kept), [i for _, i in kept]


class Turns:
    """Lets agents pass one at a time, in the order in which they entered."""

    def __init__(self) -> None:
        self._order: list[int] = []
        self._moved = asyncio.Condition()

    def enter(self, seq: int) -> None:
        self._order.append(seq)

    async def wait(self, seq: int) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._order[0] == seq)

    async def leave(self, seq: int) -> None:
        async with self._moved:
            if seq in self._order:
                self._order.remove(seq)
                self._moved.notify_all()
