"""What the growing loop itself costs: CPU per concept, with a model and pages that answer at once.

    python benchmarks/grow_loop.py                                100 agents, embedded store
    python benchmarks/grow_loop.py --agents 1 10 100 --profile profile.txt

The model names the four children of a concept in a made-up tree, one of them in another spelling, and holds two of them to be atomic,
which are not researched; the pages are plain text.
Everything else is what a real run does: LangGraph, quotes looked up, dedup (with vectors that cost nothing: what a sentence
model costs is the model's), judgements, commits to SQLite, leases. The last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import hashlib
import io
import json
import pstats
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgsynth.concept import name_key
from kgsynth.graph import ConceptGraph
from kgsynth.grow.agent import AgentConfig
from kgsynth.grow.grow import GrowConfig, Seed, grow
from kgsynth.grow.progress import GrowReport
from kgsynth.llm import Question, Reply
from kgsynth.llm.questions import (
    JudgeAtomic,
    Judged,
    Judgements,
    PlanQueries,
    Proposal,
    Proposals,
    Propose,
    Queries,
    SameConcept,
    Sameness,
)
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.web import Fetched, Hit
from kgsynth.web.read import Reader

FAN, EXPANDED = 4, 2  # children of a concept that is researched, and how many of them are researched in turn
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
WORDS = "amber birch cedar delta ember fjord grove haven inlet jetty knoll larch mesa north oasis pond".split()


class Instant:
    """Vectors [N, 64] that cost next to nothing: drawn from the text's hash, so every two texts are far apart."""

    name, dim = "instant", 64

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        drawn = [np.frombuffer(hashlib.sha512(text.encode()).digest(), np.uint8) for text in texts]
        vectors = np.stack(drawn).astype(np.float32) - 127.5
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def name_of(path: str) -> str:
    """A name of plain words for a place in the tree: "0.3.5" -> "amber delta fjord"; distinct for distinct paths."""
    return " ".join(WORDS[int(step) % 16] + "abcdefghijklmnop"[int(step) // 16] * 2 for step in path.split("."))


class Tree:
    """A tree of concepts behind the protocols of model, search and web: answers at once, the same for the same question."""

    name, uses_model = "instant", True

    def __init__(self) -> None:
        self.paths = {name_key(name_of("0")): "0"}

    def children(self, path: str) -> list[str]:
        found = [f"{path}.{step}" for step in range(FAN)]
        self.paths |= {name_key(name_of(child)): child for child in found}
        return found

    async def ask(self, question: Question[Reply]) -> Reply:
        return ANSWERS[type(question)](self, question)

    async def search(self, query: str, k: int) -> list[Hit]:
        return [Hit(url=f"https://tree.test/{self.paths.get(name_key(query), '0')}/{n}", title=query) for n in range(3)]

    async def fetch(self, url: str) -> Fetched:
        path, number = url.split("/")[-2:]
        lines = [f"{name_of(c)}: {said(c)}" for c in self.children(path)]
        body = f"{name_of(path)}, page {number}\n\n" + "\n\n".join(lines[int(number) :: 3])
        return Fetched(url=url, body=body.encode(), content_type="text/plain", retrieved_at="2026-01-01T00:00:00+00:00")

    async def close(self) -> None:
        return None


@cache
def said(path: str) -> str:
    """A definition in words of its own, as two concepts that differ have."""
    draw = random.Random(path)
    kind, *others = ("".join(draw.choice(SYLLABLES) for _ in range(draw.randint(2, 4))) for _ in range(9))
    return f"{name_of(path).capitalize()} is a {kind} that {others[0]}s {' '.join(others[1:5])} for {' '.join(others[5:])}."


def propose(tree: Tree, question: Propose) -> Proposals:
    path = tree.paths[name_key(question.concept.name)]
    items = [
        Proposal(name=spelt(child), definition=said(child), page=n % 3, quote=said(child))
        for n, child in enumerate(tree.children(path))
    ]
    return Proposals(items=items)


def spelt(path: str) -> str:
    """Every fourth child with hyphens."""
    name = name_of(path)
    return name.replace(" ", "-") if int(path.rpartition(".")[2]) % 4 == 3 else name


def judged(number: int) -> Judged:
    if number < EXPANDED:
        return Judged(number=number, verdict="expand", criterion="has parts", reason="it has parts")
    return Judged(number=number, verdict="atomic", criterion="details only", reason="it has details only")


ANSWERS: dict[type, Any] = {
    PlanQueries: lambda tree, q: Queries(queries=[q.concept.name, q.concept.name + " parts"]),
    Propose: propose,
    JudgeAtomic: lambda tree, q: Judgements(items=[judged(i) for i in range(len(q.finer))]),
    SameConcept: lambda tree, q: Sameness(relation="different", reason="other words"),
}


def run(agents: int, depth: int, profile: cProfile.Profile | None = None) -> tuple[GrowReport, float, float]:
    """(report, CPU seconds, wall seconds) of one run into a fresh file; EXPANDED ** depth concepts are researched, less one."""
    with tempfile.TemporaryDirectory() as folder:
        graph, tree = ConceptGraph(EmbeddedStore(Path(folder) / "g.sqlite")), Tree()
        config = GrowConfig(
            seeds=(Seed(name=name_of("0"), domain="tree"),), agents=agents, max_depth=depth, max_concepts=1 << 20,
            agent=AgentConfig(children=FAN),
        )  # fmt: skip
        wall, cpu = time.perf_counter(), _cpu()
        if profile:
            profile.enable()
        report = asyncio.run(grow(graph, config, llm=tree, search=tree, reader=Reader(tree), embedder=Instant()))
        if profile:
            profile.disable()
        cost = _cpu() - cpu, time.perf_counter() - wall
        graph.store.close()
    return report, *cost


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, nargs="+", default=[100])
    parser.add_argument(
        "--depth", type=int, default=11, help="levels of the tree; each doubles it (default 11: 2,047 researched)"
    )
    parser.add_argument("--profile", type=Path, help="write where the time goes, from a further run, to this file")
    args = parser.parse_args()
    run(4, 4)  # imports
    rows = [measured(agents, args.depth) for agents in args.agents]
    if args.profile:
        profile = cProfile.Profile(time.thread_time)
        run(args.agents[-1], args.depth, profile)
        text = io.StringIO()
        pstats.Stats(profile, stream=text).strip_dirs().sort_stats("cumulative").print_stats(60)
        args.profile.write_text(text.getvalue())
        print(f"profile: {args.profile}")
    print(json.dumps({"benchmark": "grow_loop", "rows": rows}))


def measured(agents: int, depth: int) -> dict[str, float]:
    report, cpu, wall = run(agents, depth)
    done, grown = report.tally.researched, report.tally.added + 1
    row = {
        "agents": agents, "researched": done, "concepts": grown, "seconds": round(wall, 2),
        "cpu_ms_per_researched": round(cpu / done * 1e3, 3), "cpu_ms_per_concept": round(cpu / grown * 1e3, 3),
    }  # fmt: skip
    print(
        f"{agents:>4} agents: {done} concepts researched, {grown} grown, {wall:.1f} s; CPU {row['cpu_ms_per_researched']:.2f} ms"
        f" for each that was researched, {row['cpu_ms_per_concept']:.2f} ms for each that was grown"
    )
    return row


if __name__ == "__main__":
    main()
