"""One research agent for one concept, a LangGraph graph of seven steps:

    plan -> search -> read -> propose -> judge -> align -> commit
                                                    ^_________| when others have grown the graph meanwhile

Everything up to `judge` looks at pages only and runs while other agents do the same. From `align` on the agent compares with
the graph and writes to it, so it waits for its turn: the agents of a process pass in the order of the frontier, which makes
the grown graph independent of how many agents run and of where a run was killed. Agents of other processes do not wait for
each other: a commit whose new concepts were compared with an older graph is refused by the store, and compared again.

`judge` asks about all finer concepts at once, before any of them is expanded: what is atomic is never researched.

Left out: crawling beyond the first hits, revising old concepts.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from kgsynth.concept import Concept, Decision, Edge, SourceSpan, merge_unique, name_key
from kgsynth.dedup import Alignment
from kgsynth.errors import ConfigError, StaleError, WebError
from kgsynth.graph import ConceptGraph
from kgsynth.grow.evidence import support
from kgsynth.grow.known import Known
from kgsynth.grow.progress import ERROR, AtWork
from kgsynth.grow.turns import Turns
from kgsynth.ledger import CHARGED_TO
from kgsynth.llm import LLM
from kgsynth.llm.questions import JudgeAtomic, Judged, PlanQueries, Proposal, Propose, SameConcept
from kgsynth.store import Change, CommitResult, FrontierItem
from kgsynth.store.change import absorb
from kgsynth.web import Hit, Page, SearchProvider
from kgsynth.web.alike import unlike
from kgsynth.web.read import Reader

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

STEPS = ("plan", "search", "read", "propose", "judge", "align", "commit")
PLACES = 100_000  # kept of concepts that wait
RESEARCHED = "researched:"  # begins the reason of a judgement that rests on pages
PASSING = {"timeout", "connection", "rate limit", "quota"}  # causes
AT_ONCE = 1 << 14  # characters that are compared faster than handed to a thread


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """How one agent researches ([grow.agent] in a recipe)."""

    queries: int = 2
    hits_per_query: int = 5
    pages: int = 3  # read at most
    children: int = 12  # proposed at most
    page_chars: int = 6000  # of each page shown to a model
    judgements: float = 0.05  # questions about doubtful neighbours, in each process, per concept in the graph

    def __post_init__(self) -> None:
        if self.judgements < 0:
            raise ConfigError(f"[grow.agent] judgements must be at least 0, not {self.judgements}")
        for setting in fields(self):
            if setting.name != "judgements" and getattr(self, setting.name) < 1:
                raise ConfigError(f"[grow.agent] {setting.name} must be at least 1, not {getattr(self, setting.name)}")


@dataclass(frozen=True, kw_only=True)
class Found:
    """A finer concept with its evidence."""

    concept: Concept
    page: Page
    span: SourceSpan


@dataclass(kw_only=True)
class State:
    """What the steps hand on; each step returns the fields it sets."""

    item: FrontierItem
    concept: Concept
    ancestors: tuple[Concept, ...]  # root first
    finer: tuple[str, ...] = ()  # names of what was found when it was researched before
    queries: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)  # best first
    pages: tuple[Page, ...] = ()
    found: tuple[Found, ...] = ()
    judged: dict[int, Judged] = field(default_factory=dict)  # index in `found` -> judgement
    same: dict[tuple[Concept, str], tuple[bool, str]] = field(
        default_factory=dict
    )  # (candidate, known id) -> judgement
    decisions: tuple[Decision, ...] = ()  # of the steps before `align`
    change: Change = Change()
    result: CommitResult | None = None  # None: not committed


@dataclass
class Agents:
    """The tools all agents of a process share, and the compiled graph that each of them walks."""

    graph: ConceptGraph
    known: Known
    llm: LLM
    search: SearchProvider
    reader: Reader
    config: AgentConfig
    max_depth: int
    max_concepts: int
    turns: Turns = field(default_factory=Turns)
    counts: Counter[str] = field(default_factory=Counter)  # what becomes a Tally

    def __post_init__(self) -> None:
        self._flow = self._compile()
        self._doing: dict[int, tuple[str, str, float]] = {}  # seq -> (concept, step, since)
        self.waiting = 0  # agents that are through with their pages and wait for their turn
        self.last = ""  # name of the concept that was committed last
        self._places: dict[str, tuple[Concept, tuple[Concept, ...]]] = {}

    def _compile(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        from langgraph.graph import END, START, StateGraph

        flow: Any = StateGraph(State)
        steps = (self.plan, self.find, self.read, self.propose, self.judge, self.align, self.commit)
        for name, step in zip(STEPS, steps, strict=True):
            flow.add_node(name, self._watched(name, step))
        for before, after in zip([START, *STEPS[:-1]], STEPS, strict=True):
            flow.add_edge(before, after)
        flow.add_conditional_edges("commit", lambda state: "align" if state.result is None else END)
        return flow.compile()

    def _watched(self, name: str, step: Callable[[State], Awaitable[dict[str, Any]]]) -> Any:
        async def walk(state: State) -> dict[str, Any]:
            _, _, since = self._doing[state.item.seq]
            self._doing[state.item.seq] = (state.concept.name, name, since)
            return await step(state)

        return walk

    def at_work(self) -> tuple[AtWork, ...]:
        now = time.monotonic()
        return tuple(AtWork(concept=c, step=s, seconds=now - since) for c, s, since in list(self._doing.values()))

    async def research(self, item: FrontierItem) -> CommitResult:
        """Walk the whole graph for one frontier item. Raises what a step raises (LLMError, BudgetError, StoreError)."""
        stored, ancestors = self._place(item.concept)
        concept = subject(stored)
        self._doing[item.seq] = (concept.name, STEPS[0], time.monotonic())
        CHARGED_TO.set(concept.id)
        try:
            state = State(item=item, concept=concept, ancestors=ancestors, finer=self._found_before(stored))
            result: Any = await self._flow.ainvoke(state, {"recursion_limit": 1_000_000}, output_keys="result")
            return result
        finally:
            self.turns.leave(item.seq)
            del self._doing[item.seq]

    def _found_before(self, concept: Concept) -> tuple[str, ...]:
        """Of a concept that waits again (`Change.reopen`): what it has led to."""
        if not concept.atomic_reason.startswith(RESEARCHED):
            return ()
        return tuple(child.name for child in self.graph.children(concept))

    def _place(self, concept_id: str) -> tuple[Concept, tuple[Concept, ...]]:
        """The concept and its ancestors, root first: remembered where an agent of this process has found it, else read."""
        known = self._places.pop(concept_id, None)
        return known or (self.graph[concept_id], tuple(map(subject, self.graph.lineage(concept_id))))

    async def plan(self, state: State) -> dict[str, Any]:
        question = PlanQueries(concept=state.concept, ancestors=state.ancestors, n=self.config.queries)
        return {"queries": (await self.llm.ask(question)).queries[: self.config.queries]}

    async def find(self, state: State) -> dict[str, Any]:
        """Hits of all queries: pages titled like the concept, then the others, fused by reciprocal rank.

        Raises WebError when no query could be searched for.
        """
        asked = (self.search.search(q, self.config.hits_per_query) for q in state.queries)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        ranked, lost = self._sorted_out(state.queries, answers, "unsearched")
        if lost and not ranked:
            raise next(a for a in answers if isinstance(a, WebError))
        return {"hits": fused(ranked, state.concept), "decisions": lost}

    async def read(self, state: State) -> dict[str, Any]:
        """The first pages that can be read and are no copies of each other. What is left out is a recorded decision."""
        pages: list[Page] = []
        decisions = list(state.decisions)
        waiting = list(state.hits)
        while waiting and len(pages) < self.config.pages:
            hits = [waiting.pop(0) for _ in range(min(len(waiting), self.config.pages - len(pages)))]
            answers = await asyncio.gather(*(self.reader.read(h.url) for h in hits), return_exceptions=True)
            read, lost = self._sorted_out([h.url for h in hits], answers, "unread")
            pages, copies = await _without_copies([*pages, *read])
            decisions += [*lost, *(_copy(dropped, kept, alike) for dropped, kept, alike in copies)]
        if not pages and decisions:
            self._only_for_now(decisions)
        self.counts["pages"] += len(pages)
        return {"pages": tuple(pages), "decisions": tuple(decisions)}

    def _sorted_out(
        self, asked: Sequence[str], answers: Sequence[Any], outcome: str
    ) -> tuple[list[Any], tuple[Decision, ...]]:
        """(answers, decisions about what failed); anything but a WebError is raised, and what an offline run misses."""
        lost: list[Decision] = []
        for what, answer in zip(asked, answers, strict=True):
            if isinstance(answer, WebError) and answer.cause != "offline":
                self.counts[ERROR + answer.cause] += 1
                evidence = (("cause", answer.cause),)
                lost.append(Decision(kind="drop", subject=what, outcome=outcome, reason=str(answer), evidence=evidence))
            elif isinstance(answer, BaseException):
                raise answer
        return [a for a in answers if not isinstance(a, WebError)], tuple(lost)

    def _only_for_now(self, decisions: Sequence[Decision]) -> None:
        """Raises WebError when none of the pages could be read for reasons that may pass: the concept is tried again later."""
        lost = [d for d in decisions if d.outcome == "unread"]
        causes = {dict(d.evidence)["cause"] for d in lost}
        if lost and causes <= PASSING:
            raise WebError(f"none of {len(lost)} pages could be read; the last: {lost[-1].reason}", causes.pop())

    async def propose(self, state: State) -> dict[str, Any]:
        """Proposals that a page supports; the others are recorded."""
        if not state.pages:
            return {}
        question = Propose(
            concept=state.concept, ancestors=state.ancestors, pages=state.pages,
            known=state.finer, limit=self.config.children, page_chars=self.config.page_chars,
        )  # fmt: skip
        proposals = (await self.llm.ask(question)).items[: self.config.children]
        found: list[Found] = []
        refused: list[Decision] = []
        for proposal in proposals:
            held = support(proposal, state.pages)
            if isinstance(held, Decision):
                refused.append(held)
            else:
                found.append(Found(concept=candidate(proposal, state.concept), page=held[0], span=held[1]))
        if found:
            await self.known.prepare([f.concept for f in found])
        return {"found": tuple(found), "decisions": (*state.decisions, *refused)}

    async def judge(self, state: State) -> dict[str, Any]:
        """Which of the finer concepts are atomic, in one question, before any of them is expanded."""
        if not state.found:
            return {}
        finer = tuple(f.concept for f in state.found)
        reply = await self.llm.ask(JudgeAtomic(concept=state.concept, ancestors=state.ancestors, finer=finer))
        return {"judged": {j.number: j for j in reply.items if j.number < len(finer)}}

    async def align(self, state: State) -> dict[str, Any]:
        """Each finer concept becomes a new one or a further child that is known already."""
        await self._turn(state)
        await self.known.catch_up()
        parent, change = state.concept, Change(as_of=self.known.as_of)
        for number, found in enumerate(state.found):
            child, decision, is_new = await self._match(found.concept, state)
            judged = state.judged.get(number)
            verdict: tuple[Decision, ...] = ()
            if is_new and judged is not None and judged.verdict != "unsure":
                child = replace(child, atomic=judged.verdict == "atomic", atomic_reason=in_words(judged))
                verdict = (self._verdict(child, judged.verdict),)
            if is_new:
                self.known.try_out(child)
            change = replace(
                change,
                sources=merge_unique(change.sources, [found.page.source]),
                concepts=(*change.concepts, child),
                edges=(*change.edges, Edge(parent=parent.id, child=child.id, spans=(found.span,))),
                decisions=(*change.decisions, decision, *verdict, *_licence(found.page)),
            )
        return {"change": self._finished(state, change)}

    async def _turn(self, state: State) -> None:
        self.waiting += 1
        try:
            await self.turns.wait(state.item.seq)
        finally:
            self.waiting -= 1

    def _finished(self, state: State, change: Change) -> Change:
        """The change with the subject's own judgement and the frontier items it leads to."""
        concept, item = state.concept, state.item
        finer = len({c.id for c in change.concepts} - {concept.id})
        is_parent = finer > 0 or bool(state.finer)
        outcome = "expand" if is_parent else "atomic" if state.pages else "unknown"
        reason = f"{RESEARCHED} {finer or 'no'} finer concepts are supported by {len(state.pages)} pages read"
        judged = replace(concept, atomic=not is_parent if is_parent or state.pages else None, atomic_reason=reason)
        deeper = item.depth + 1 < self.max_depth  # else they are there, but not researched
        return replace(
            change,
            concepts=(judged, *change.concepts),
            decisions=(*state.decisions, *change.decisions, self._verdict(judged, outcome)),
            enqueue=tuple(
                FrontierItem(concept=c.id, depth=item.depth + 1) for c in change.concepts if deeper and not c.atomic
            ),
            done=(concept.id,),
            leases=(item,),
            note=f"research of {concept.name}",
            max_concepts=self.max_concepts,
        )

    def _verdict(self, concept: Concept, outcome: str) -> Decision:
        reason = f"{self.llm.name}: {concept.atomic_reason}"
        return Decision(kind="atomic", subject=concept.id, outcome=outcome, reason=reason)

    async def _match(self, new: Concept, state: State) -> tuple[Concept, Decision, bool]:
        """(the concept to write, how that was decided, whether it is new)."""
        aligned = self._aligned(new, state)
        if self.llm.uses_model:
            for known, similarity in aligned.needs_judge:
                if aligned.otherwise is None and not self._may_ask(new, known, state):
                    break
                is_same, reason = await self._judged(new, known, similarity, state)
                scores = (("neighbour", known.name), ("similarity", similarity))
                if is_same:
                    return absorb(known, new), _dedup(new, "judge", reason, scores), False
                if aligned.otherwise is not None:  # the names alone said that they are the same
                    return aligned.otherwise, _dedup(new, "sense", reason, scores), True
        return aligned.concept, aligned.decision, aligned.match is None

    def _may_ask(self, new: Concept, known: Concept, state: State) -> bool:
        """Whether the questions so far leave room for one more. What a question would confirm is always asked."""
        room = self.config.judgements * len(self.known.dedup) - self.counts["judged"]
        return room >= 1 or (new, known.id) in state.same

    def _aligned(self, new: Concept, state: State) -> Alignment:
        """What dedup says. But what a page calls finer than a concept is not that concept, or one above it, under another name,
        unless it is told in the same words: then a judge is to confirm it."""
        aligned = self.known.align(new)
        above = {state.concept.id, *(a.id for a in state.ancestors)}
        match = aligned.match
        if match is None:
            doubts = [pair for pair in aligned.needs_judge if pair[0].id not in above or told_alike(new, pair[0])]
            return replace(aligned, needs_judge=doubts)
        if match.id not in above or name_key(new.name) in match.keys:
            return aligned
        if told_alike(new, match):
            return replace(aligned, needs_judge=[(match, aligned.similarity)], otherwise=new)
        scores = (("neighbour", match.name), ("similarity", aligned.similarity))
        decision = _dedup(new, "new", f"a page calls it finer than {state.concept.name}", scores)
        return replace(aligned, match=None, concept=new, decision=decision, needs_judge=[])

    async def _judged(self, new: Concept, known: Concept, similarity: float, state: State) -> tuple[bool, str]:
        """(whether a model takes the two for one concept, why). Each pair is asked about once."""
        pair = (new, known.id)
        if pair not in state.same:
            self.counts["judged"] += 1
            way = (*state.ancestors, state.concept)
            question = SameConcept(
                candidate=new, known=known, similarity=similarity,
                candidate_above=way, known_above=self.graph.lineage(known.id) if known.id in self.graph else way,
            )  # fmt: skip
            reply = await self.llm.ask(question)
            state.same[pair] = reply.relation == "same", f"{self.llm.name}: {reply.reason}"
        return state.same[pair]

    async def commit(self, state: State) -> dict[str, Any]:
        """Write it all in one transaction; when others have inserted concepts meanwhile, back to `align`."""
        try:
            result = await self._committed(state.change)
        except StaleError:
            self.counts["stale"] += 1
            return {"result": None}
        self.known.wrote(state.change.concepts[1:], result)
        self.last = state.concept.name
        self._remember(state, result)
        return {"result": result}

    async def _committed(self, change: Change) -> CommitResult:
        store = self.graph.store
        return await asyncio.to_thread(store.commit, change) if store.far else store.commit(change)

    def _remember(self, state: State, result: CommitResult) -> None:
        """What was added and where it stands, for the agents that will research it."""
        added = [c for c in state.change.concepts[1:] if c.id in result.added]
        self.counts["atomic"] += sum(1 for c in added if c.atomic)
        if len(self._places) < PLACES:
            way = (*state.ancestors, state.concept)
            self._places |= {c.id: (c, way) for c in added if not c.atomic}


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


def fused(ranked: Sequence[Sequence[Hit]], concept: Concept) -> list[Hit]:
    """One ranking of several, by reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009); namesakes of the concept first."""
    scores: Counter[str] = Counter()
    hits = {hit.url: hit for hits in ranked for hit in hits}
    for found in ranked:
        for rank, hit in enumerate(found):
            scores[hit.url] += 1 / (60 + rank)  # pyright: ignore[reportArgumentType]
    own = {url for url, hit in hits.items() if name_key(hit.title) in concept.keys}
    return [hits[url] for url in sorted(hits, key=lambda url: (url not in own, -scores[url], url))]


def told_alike(one: Concept, other: Concept) -> bool:
    """Whether both have one definition, letter by letter but for case and white space."""
    a, b = (" ".join(c.definition.casefold().split()) for c in (one, other))
    return a == b and a != ""


def _dedup(new: Concept, outcome: str, reason: str, evidence: tuple[tuple[str, Any], ...]) -> Decision:
    return Decision(kind="dedup", subject=new.name, outcome=outcome, reason=reason, evidence=evidence)


def in_words(judged: Judged) -> str:
    return f"{judged.criterion}: {judged.reason}"


async def _without_copies(pages: list[Page]) -> tuple[list[Page], list[tuple[Page, Page, float]]]:
    if len(pages) < 2:
        return pages, []
    long = sum(len(page.source.text) for page in pages) > AT_ONCE
    return await asyncio.to_thread(unlike, pages) if long else unlike(pages)


def _copy(dropped: Page, kept: Page, alike: float) -> Decision:
    reason = f"{alike:.0%} of its text is that of {kept.url}"
    return Decision(kind="drop", subject=dropped.url, outcome="copy", reason=reason)


def _licence(page: Page) -> tuple[Decision, ...]:
    """What the licence of a cited page rests on; nothing when it is not known."""
    if not page.licence_evidence:
        return ()
    return (Decision(kind="licence", subject=page.url, outcome=page.source.licence, reason=page.licence_evidence),)
