"""The arithmetic of a plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kgsynth.concept import Concept
from kgsynth.dry_run.begun import look, missing
from kgsynth.dry_run.plan import Asked, Cap, Plan, Searched, Total
from kgsynth.llm import Question
from kgsynth.llm.questions import JudgeAtomic, PlanQueries, Propose, SameConcept
from kgsynth.llm.reply import schema_text
from kgsynth.recipe import Recipe
from kgsynth.web.providers import REGISTRY, ProviderConfig
from kgsynth.web.providers.api import Api

CHARS_PER_TOKEN = 4  # of English
FOUND = 0.5  # of `children`: finer concepts that the pages of one concept support
NEW = 0.6  # of those found: not in the graph yet
ATOMIC = 0.5  # of the new ones, as a model judges; a brain without a model does not judge before it has read
DOUBTFUL = 1 / 20  # pairs put to a model per concept found
REPLY_TOKENS = {"query": 15, "proposal": 110, "judgement": 45, "sameness": 60}  # of the parts of a reply
MOST_TOKENS = {"query": 60, "proposal": 500, "judgement": 120, "sameness": 120}  # the same, as long as they may be
CHILD_CHARS = 160  # of a name with its definition, in the question about atomic ones
SECONDS_PER_CALL = 5.0  # of a model, when nothing else is said
SECONDS_TO_READ = 2.0  # searching and reading for one concept, on the web
MEASURED_FROM = 5  # concepts researched, before what they took is believed


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Per researched concept."""

    added: float
    queued: float
    found: float
    measured: bool = False
    calls: float = 0.0  # of a model; these three only when there were some
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0


class Planner:
    def __init__(self, recipe: Recipe, seconds_per_call: float) -> None:
        self.recipe, self.grow, self.agent, self.llm = recipe, recipe.grow, recipe.grow.agent, recipe.llm
        self.uses_model = recipe.llm.kind != "offline"
        self.seconds_per_call = seconds_per_call
        self.folder = recipe.run.folder
        self.begun, self.start = look(recipe)
        self.rates = self._rates()

    def plan(self) -> Plan:
        researched, concepts, limit = spread(
            self.start, self.begun.concepts or len(self.grow.seeds), self.rates.added, self.rates.queued,
            self.grow.max_concepts, self.grow.max_depth,
        )  # fmt: skip
        questions = self._scaled(self._questions(researched, self.rates.found, REPLY_TOKENS), researched)
        providers = self._providers(researched)
        expected = self._expected(researched, concepts, questions, providers)
        caps = self._caps(expected)
        seconds, pace = self._time(expected, providers)
        return Plan(
            run=str(self.folder), store=self.recipe.store.url or str(self.folder / "graph.sqlite"),
            brain=self._brain(), search=_mix(self.recipe.web.providers),
            seeds=dict(Counter(seed.domain for seed in self.grow.seeds).most_common()),
            limits={key: getattr(self.grow, key) for key in ("max_concepts", "max_depth", "agents", "processes", "attempts")}
            | {"concurrency": self.llm.concurrency},
            order=self.grow.order or ("breadth",), begun=self.begun, measured=self.rates.measured,
            assumptions=self._assumptions(), expected=expected, most=self._most(), questions=questions, providers=providers,
            caps=caps, ends=_ends(caps, limit, expected.researched), seconds=seconds, pace=pace,
            missing=tuple(missing(self.recipe)), notes=tuple(self._notes(providers)),
        )  # fmt: skip

    def _rates(self) -> Rates:
        """Measured when enough is done, else assumed."""
        found = FOUND * self.agent.children
        added = NEW * found
        assumed = Rates(added=added, queued=added * (1 - ATOMIC if self.uses_model else 1), found=found)
        done, planted = self.begun.researched, len(self.grow.seeds)
        if done < MEASURED_FROM:
            return assumed
        known, spent = done + self.begun.waiting, self.begun.growing
        return replace(
            assumed, measured=True,
            added=max(0, self.begun.concepts - planted) / done, queued=max(0, known - planted) / done,
            calls=spent.calls / done, prompt_tokens=spent.prompt_tokens / done,
            completion_tokens=spent.completion_tokens / done,
        )  # fmt: skip

    def _questions(self, researched: int, found: float, reply: Mapping[str, int]) -> tuple[Asked, ...]:
        """In the order in which an agent asks, when `found` finer concepts are found."""
        if not self.uses_model:
            return ()
        agent = self.agent
        some = Concept(name="a concept of two words", domain="its domain", definition="x" * CHILD_CHARS)
        pages, children = agent.pages * agent.page_chars, round(found * CHILD_CHARS)
        plans = PlanQueries(concept=some, n=agent.queries)
        finds = Propose(concept=some, limit=agent.children, page_chars=agent.page_chars)
        kinds = (
            (plans, 1.0, 0, reply["query"] * agent.queries),
            (finds, 1.0, pages, round(reply["proposal"] * found)),
            (JudgeAtomic(concept=some), 1.0, children, round(reply["judgement"] * found)),
            (SameConcept(candidate=some, known=some, similarity=0.8), DOUBTFUL * found, 0, reply["sameness"]),
        )
        return tuple(
            Asked(
                kind=type(question).__name__, each=each, calls=round(each * researched),
                prompt_tokens=tokens_of(question, more=chars), completion_tokens=min(tokens, self.llm.max_reply_tokens),
            )
            for question, each, chars, tokens in kinds
        )  # fmt: skip

    def _scaled(self, questions: tuple[Asked, ...], researched: int) -> tuple[Asked, ...]:
        """In the assumed proportions, to the measured sums."""
        if not (self.rates.calls and questions):
            return questions
        more = self.rates.calls / sum(q.each for q in questions)
        longer = self.rates.prompt_tokens / more / sum(q.each * q.prompt_tokens for q in questions)
        wordier = self.rates.completion_tokens / more / sum(q.each * q.completion_tokens for q in questions)
        return tuple(
            Asked(
                kind=q.kind, each=q.each * more, calls=round(q.each * more * researched),
                prompt_tokens=round(q.prompt_tokens * longer), completion_tokens=round(q.completion_tokens * wordier),
            )
            for q in questions
        )  # fmt: skip

    def _providers(self, researched: int) -> tuple[Searched, ...]:
        configs = self.recipe.web.providers
        shares, queries = sum(c.share for c in configs), researched * self.agent.queries
        return tuple(
            Searched(
                name=c.name, share=c.share / shares, queries=(n := round(queries * c.share / shares)),
                usd=n * _price(c, self.agent.hits_per_query), max_queries=c.max_queries,
            )
            for c in configs
        )  # fmt: skip

    def _expected(
        self, researched: int, concepts: int, questions: Sequence[Asked], providers: Sequence[Searched]
    ) -> Total:
        calls = sum(q.calls for q in questions)
        prompt = sum(q.calls * q.prompt_tokens for q in questions)
        completion = sum(q.calls * q.completion_tokens for q in questions)
        if self.uses_model and self.rates.calls:
            each = (self.rates.calls, self.rates.prompt_tokens, self.rates.completion_tokens)
            calls, prompt, completion = (round(researched * number) for number in each)
        return Total(
            researched=researched, concepts=concepts,
            searches=researched * self.agent.queries, pages=researched * self.agent.pages,
            calls=calls, prompt_tokens=prompt, completion_tokens=completion,
            llm_usd=self._llm_usd(prompt, completion), search_usd=sum(p.usd for p in providers),
        )  # fmt: skip

    def _most(self) -> Total:
        """Every concept that fits is researched, every hit is fetched, every neighbour is asked about, every reply is full."""
        agent, children = self.agent, self.agent.children
        researched, concepts, _ = spread(
            self.start, self.begun.concepts or len(self.grow.seeds), children, children,
            self.grow.max_concepts, self.grow.max_depth,
        )  # fmt: skip
        searches = researched * agent.queries
        pairs = {"SameConcept": children * self.grow.dedup.neighbours}
        questions = self._questions(researched, children, MOST_TOKENS)
        asked = [(researched * pairs.get(q.kind, 1), q) for q in questions]
        calls, prompt = sum(n for n, _ in asked), sum(n * q.prompt_tokens for n, q in asked)
        completion = sum(n * q.completion_tokens for n, q in asked)
        shares = sum(c.share for c in self.recipe.web.providers)
        dearest = (searches * c.share / shares * _price(c, agent.hits_per_query) for c in self.recipe.web.providers)
        return Total(
            researched=researched, concepts=concepts, searches=searches, pages=searches * agent.hits_per_query,
            calls=calls, prompt_tokens=prompt, completion_tokens=completion,
            llm_usd=self._llm_usd(prompt, completion), search_usd=sum(dearest),
        )  # fmt: skip

    def _llm_usd(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        if not self.uses_model:
            return 0.0
        first = self.llm.endpoints[0]
        if first.usd_per_1m_prompt is None or first.usd_per_1m_completion is None:
            return None
        return first.price(prompt_tokens, completion_tokens).usd

    def _caps(self, expected: Total) -> tuple[Cap, ...]:
        if not self.uses_model:
            return ()
        spent = self.begun.spent
        tokens = expected.prompt_tokens + expected.completion_tokens
        rows = (
            ("max_calls", spent.calls, expected.calls),
            ("max_tokens", spent.tokens, tokens),
            ("max_usd", spent.usd, expected.usd),
        )
        return tuple(
            _cap(name, limit, used, planned, expected.researched)
            for name, used, planned in rows
            if (limit := getattr(self.llm, name)) is not None
        )

    def _time(self, expected: Total, providers: Sequence[Searched]) -> tuple[float | None, str]:
        """(seconds, in words): as fast as the slowest of agents, endpoint and providers allows."""
        if not self.uses_model and not providers:
            return None, "no call is waited for: as fast as this machine reads and compares"
        if not expected.researched:
            return 0.0, "nothing is left to research"
        calls = expected.calls / expected.researched
        waits = calls * self.seconds_per_call + (SECONDS_TO_READ if providers else 0.0)
        speeds = {f"{self.grow.agents * self.grow.processes} agents": self.grow.agents * self.grow.processes / waits}
        if self.uses_model:
            lanes = self.llm.concurrency * self.grow.processes
            speeds[f"{lanes} model calls at once"] = lanes / (calls * self.seconds_per_call)
        for config, searched in zip(self.recipe.web.providers, providers, strict=True):
            if pace := _pace(config):
                speeds[f"the pace of {searched.name}"] = pace / (self.agent.queries * searched.share)
        slowest = min(speeds, key=lambda what: speeds[what])
        means = f"if a model call takes {self.seconds_per_call:g} s" if self.uses_model else "searching and reading"
        return expected.researched / speeds[slowest], f"{means}; held up by {slowest}"

    def _brain(self) -> str:
        if not self.uses_model:
            return "offline-extractive (no model)"
        names = [f"{e.model} at {e.base_url}" for e in self.llm.endpoints]
        return ", else ".join(names)

    def _assumptions(self) -> tuple[str, ...]:
        rates, agent = self.rates, self.agent
        how = f"measured on {self.begun.researched:,} researched concepts" if rates.measured else "assumed"
        spreads = (
            f"{how}: each researched concept adds {rates.added:.1f}, of which {rates.queued:.1f} are researched in turn"
        )
        if not self.uses_model:
            return (spreads,)
        if rates.calls:
            tokens = f"{rates.prompt_tokens:,.0f} prompt and {rates.completion_tokens:,.0f} completion tokens"
            return (spreads, f"{how}: each takes {rates.calls:.1f} calls, {tokens}")
        return (
            spreads,
            f"assumed: {CHARS_PER_TOKEN} characters a token; {agent.pages} pages of {agent.page_chars:,} characters"
            f" are shown, {rates.found:.1f} of {agent.children} children found, one pair in {1 / DOUBTFUL:.0f} is asked about",
        )

    def _notes(self, providers: Sequence[Searched]) -> list[str]:
        notes = [
            f"{p.name}: {p.queries:,} queries are expected and max_queries = {p.max_queries:,}; the others take over"
            for p in providers
            if 0 < p.max_queries < p.queries
        ]
        if not self.uses_model:
            notes.append("no model is asked, so there is nothing to pay for one")
        elif self._llm_usd(0, 0) is None:
            notes.append(
                f"the price of {self.llm.model} is not known: set [llm] usd_per_1m_prompt and usd_per_1m_completion"
            )
        return notes


def spread(
    start: Mapping[int, int], concepts: int, added: float, queued: float, max_concepts: int, max_depth: int
) -> tuple[int, int, str]:
    """(concepts researched, concepts in the end, what limits it), level by level.

    start: depth -> concepts that wait there. added and queued: per researched concept, as long as there is room; those below
    `max_depth` are not researched.
    """
    researched, total, level, limit = 0.0, float(concepts), 0.0, "nothing finer is found any more"
    for depth in range(max_depth):
        level += start.get(depth, 0)
        researched += level
        new = min(level * added, max(0.0, max_concepts - total))
        if level and new < level * added:
            limit = f"max_concepts = {max_concepts:,}"
        elif level and depth == max_depth - 1:
            limit = f"max_depth = {max_depth}"
        total += new
        level = new * queued / added if added else 0.0
    return round(researched), round(total), limit


def tokens_of(question: Question[Any], *, more: int = 0) -> int:
    """Prompt tokens of a question with `more` characters of text in it: its own words and the schema of its reply."""
    words = sum(len(message["content"]) for message in question.messages())
    return math.ceil((words + len(schema_text(question.reply)) + more) / CHARS_PER_TOKEN)


def _price(config: ProviderConfig, hits: int) -> float:
    """US dollars of one query."""
    kind = REGISTRY[config.name]
    if not issubclass(kind, Api):
        return 0.0
    return math.ceil(hits / kind.page) * kind.price(config, min(hits, kind.page))


def _pace(config: ProviderConfig) -> float:
    """Queries a second; 0: as fast as they come."""
    return getattr(REGISTRY[config.name], "per_second", 0.0) if config.per_second is None else config.per_second


def _cap(name: str, limit: float, spent: float, planned: float | None, researched: int) -> Cap:
    room = limit - spent
    reached = planned is not None and planned > room
    after = max(0, math.floor(researched * room / planned)) if reached and planned else None
    return Cap(name=name, limit=limit, spent=spent, planned=planned, stops_after=after)


def _ends(caps: Sequence[Cap], limit: str, researched: int) -> str:
    reached = [cap for cap in caps if cap.stops_after is not None]
    if reached:
        first = min(reached, key=lambda cap: cap.stops_after or 0)
        after = f"after about {first.stops_after:,} of {researched:,} concepts"
        return f"the cap {first.name} = {first.limit:g}, {after}; raise it and resume to go on"
    return f"an empty frontier; the graph is bounded by: {limit}" if researched else "nothing is left to research"


def _mix(providers: Sequence[ProviderConfig]) -> str:
    shares = sum(p.share for p in providers)
    return ", ".join(f"{p.name} {p.share / shares:.0%}" for p in providers) or "the offline corpus"
