"""What a growing run tells those who watch it, and what it reports at its end. Plain data, so that processes can send it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ERROR = "error: "


@dataclass(frozen=True, kw_only=True)
class AtWork:
    """One agent, now."""

    concept: str  # its name
    step: str  # of agent.STEPS
    seconds: float  # since it began


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Counts of what one call of `grow` did so far; those of several workers add up."""

    researched: int = 0
    added: int = 0  # concepts
    linked: int = 0  # edges
    refused: int = 0  # edges
    atomic: int = 0  # judged so before they were expanded
    pages: int = 0  # read
    judged: int = 0  # pairs of concepts that a model was asked about
    stale: int = 0  # commits worked out anew, because another worker had inserted concepts meanwhile
    failed: int = 0  # attempts
    overtaken: int = 0  # concepts that another worker finished first, because the lease had expired
    errors: Mapping[str, int] = field(default_factory=dict)  # by cause: of agents, pages and searches

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Tally:
        """From a Counter of field names and "error: CAUSE"."""
        errors = {key.removeprefix(ERROR): n for key, n in counts.items() if key.startswith(ERROR)}
        return cls(**{key: n for key, n in counts.items() if not key.startswith(ERROR)}, errors=errors)

    def __add__(self, other: Tally) -> Tally:
        counts = {key: getattr(self, key) + value for key, value in vars(other).items() if key != "errors"}
        return Tally(**counts, errors=dict(Counter(self.errors) + Counter(other.errors)))


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A few times a second."""

    concepts: int  # in the graph
    waiting: int  # concepts still to research
    leased: int
    done: int
    tally: Tally = Tally()
    agents: tuple[AtWork, ...] = ()
    last: str = ""  # name of the concept researched last
    seconds: float = 0.0  # of this call


@dataclass
class GrowReport:
    """What one call of `grow` did."""

    tally: Tally = Tally()
    stopped: str = "frontier empty"  # or "budget: ..."
    errors: list[str] = field(default_factory=list)  # the last few, in words

    def describe(self) -> str:
        done = self.tally
        facts = (
            f"{done.researched} concepts researched, {done.pages} pages read, {done.added} added, {done.linked} edges, "
            f"{done.refused} refused"
        )
        causes = ", ".join(f"{cause} x {n}" for cause, n in Counter(done.errors).most_common(4))
        facts += f", not had: {causes}" if causes else ""
        failed = f", {done.failed} attempts failed (last: {self.errors[-1]})" if done.failed and self.errors else ""
        overtaken = f", {done.overtaken} were finished by another worker" if done.overtaken else ""
        return f"{facts}{failed}{overtaken}; stopped: {self.stopped}"


def merged(reports: Iterable[GrowReport]) -> GrowReport:
    """One report of several workers; stopped by a budget when any of them was."""
    whole = GrowReport()
    for report in reports:
        whole.tally += report.tally
        whole.errors = [*whole.errors, *report.errors][-5:]
        if report.stopped != whole.stopped and whole.stopped == "frontier empty":
            whole.stopped = report.stopped
    return whole
