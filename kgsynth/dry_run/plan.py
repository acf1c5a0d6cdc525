"""A plan, as data and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kgsynth.dry_run.begun import Begun


@dataclass(frozen=True, kw_only=True)
class Total:
    """What a number of researched concepts take. usd None: a price is not known."""

    researched: int
    concepts: int  # in the graph at the end
    searches: int
    pages: int  # fetched
    calls: int
    prompt_tokens: int
    completion_tokens: int
    llm_usd: float | None
    search_usd: float

    @property
    def usd(self) -> float | None:
        return None if self.llm_usd is None else self.llm_usd + self.search_usd


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One kind of question to the model."""

    kind: str
    each: float  # calls per researched concept
    calls: int  # expected
    prompt_tokens: int  # of one call
    completion_tokens: int  # of one call


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One provider of the mix."""

    name: str
    share: float  # of the queries, in [0, 1]
    queries: int  # expected
    usd: float  # expected
    max_queries: int  # 0: no cap


@dataclass(frozen=True, kw_only=True)
class Cap:
    """A cap of [llm], over the whole run."""

    name: str
    limit: float
    spent: float
    planned: float | None  # None: a price is not known
    stops_after: int | None  # researched concepts from now; None: not reached


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `kgsynth grow` would do with a recipe."""

    run: str  # folder
    store: str
    brain: str
    search: str  # "the offline corpus", or the providers
    seeds: Mapping[str, int]  # domain -> seeds
    limits: Mapping[str, int]
    order: tuple[str, ...]
    begun: Begun
    measured: bool  # expected figures are scaled from what the run took so far
    assumptions: tuple[str, ...]
    expected: Total
    most: Total
    questions: tuple[Asked, ...]
    providers: tuple[Searched, ...]
    caps: tuple[Cap, ...]
    ends: str  # what stops the run first
    seconds: float | None  # None: no call is waited for
    pace: str  # how the time was worked out
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; the price of all is added to both totals."""
        row = asdict(self)
        row["expected"]["usd"], row["most"]["usd"] = self.expected.usd, self.most.usd
        return row

    def describe(self) -> str:
        """For people: at most 100 columns where names allow it."""
        return "\n".join(_described(self))


def _described(plan: Plan) -> list[str]:
    limits, expected, most = plan.limits, plan.expected, plan.most
    seeds = ", ".join(f"{domain} {n}" for domain, n in plan.seeds.items())
    lines = [
        f"plan of {plan.run}; nothing was sent and nothing was written",
        "",
        *_pairs(
            ("seeds", f"{sum(plan.seeds.values())} ({seeds})" if seeds else "none"),
            ("graph", f"at most {limits['max_concepts']:,} concepts, {limits['max_depth']} levels below the seeds"),
            ("order", ", then ".join(plan.order)),
            (
                "agents",
                f"{limits['agents']} x {limits['processes']} processes, {limits['attempts']} attempts at a concept",
            ),
            ("brain", plan.brain),
            ("web", plan.search),
            ("results", f"{plan.run}; the graph in {plan.store}"),
            ("resume", plan.begun.in_words),
        ),
        "",
        f"{'':24}{'expected':>14}{'at most':>16}",
        *_counts(("concepts researched", expected.researched, most.researched)),
        *_counts(("concepts in the graph", expected.concepts, most.concepts)),
        *_counts(("searches", expected.searches, most.searches), ("pages fetched", expected.pages, most.pages)),
    ]
    lines += [f"  {p.name} {p.share:.0%}: {p.queries:,} queries, {_usd(p.usd)}" for p in plan.providers]
    if plan.questions:
        lines += _counts(("model calls", expected.calls, most.calls))
        lines += [_question(asked) for asked in plan.questions]
        lines += _counts(("prompt tokens", expected.prompt_tokens, most.prompt_tokens))
        lines += _counts(("completion tokens", expected.completion_tokens, most.completion_tokens))
    if plan.questions or expected.search_usd:
        lines.append(f"{'price':24}{_usd(expected.usd):>14}{_usd(most.usd):>16}")
    time = "" if plan.seconds is None else f"about {_time(plan.seconds)} "
    lines += ["", *_pairs(("time", f"{time}{plan.pace}"), ("ends with", plan.ends))]
    lines += _listed("caps", [_capped(cap) for cap in plan.caps])
    lines += _listed("how this was worked out", plan.assumptions) + _listed("notes", plan.notes)
    return lines + _listed("missing", plan.missing or ("nothing that can be seen without asking anybody",))


def _pairs(*pairs: tuple[str, str]) -> list[str]:
    return [f"{label:12}{text}" for label, text in pairs]


def _counts(*rows: tuple[str, int, int]) -> list[str]:
    return [f"{label:24}{expected:>14,}{most:>16,}" for label, expected, most in rows]


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _question(asked: Asked) -> str:
    return f"  {asked.kind:22}{asked.calls:>14,}    {asked.prompt_tokens:,} + {asked.completion_tokens:,} tokens each"


def _capped(cap: Cap) -> str:
    said = "a price is not known" if cap.planned is None else f"this takes about {cap.planned:,.6g}"
    outcome = "not reached" if cap.stops_after is None else f"reached after {cap.stops_after:,} more concepts"
    return f"{cap.name} = {cap.limit:,.10g}: {cap.spent:,.6g} is spent, {said}; {outcome}"


def _usd(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"${dollars:,.2f}" if dollars >= 10 or not dollars else f"${dollars:,.4f}"


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
