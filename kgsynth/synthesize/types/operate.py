"""Operate: change a small world of files with a script, as an agent with a shell would. Only the final state counts.

Why the reward is unarguable: the request names every file, order, spelling and limit that is checked, and what must hold
afterwards is computed twice, from the entries and by the reference script from the files. A check sees that everything
else stayed as it was. The files hold what the material knows: titles, topics and lengths of the pages about a concept
and those around it; they are shown by their form, so that a script must read them. Left out: worlds that change by themselves.
"""

from __future__ import annotations

import asyncio
import dataclasses

from kgsynth.concept import Concept, SourceSpan
from kgsynth.retrieve import is_about
from kgsynth.sample import Sample
from kgsynth.synthesize import TaskType, register
from kgsynth.synthesize.env import Rejection, SynthesisEnv, answered, build_task, reject, rng_of
from kgsynth.synthesize.jobs import JOBS, Entry, Job, World
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.shelf import WORD
from kgsynth.task import DIFFICULTIES, Task, VerifierSpec
from kgsynth.verifiers import verify
from kgsynth.web import Hit, Page

ENTRIES = (6, 14)  # of a world, fewest and most
OTHERS = 2  # pages that are not in the world
WRONG = 6  # scripts that are tried as planted wrong answers
VARIANTS = 2  # per concept: the jobs of a difficulty
HEAD = 80  # characters of a page that are cited


def capacity(material: Material, env: SynthesisEnv) -> int:
    return VARIANTS if len(_known(material.concept, env)) >= ENTRIES[0] + OTHERS else 0


async def draft(sample: Sample, material: Material, env: SynthesisEnv) -> Task | Rejection:
    known, name = _known(material.concept, env), material.concept.name
    chosen = known[: min(ENTRIES[1], len(known) - OTHERS)]
    world = _world(chosen, known, env)
    if len(chosen) < ENTRIES[0] or len({e.words for e in world.entries}) < ENTRIES[0] // 2 or not world.links:
        return reject(sample, "material", f"{len(chosen)} pages around {name!r} make no world that tells scripts apart")
    made = [job for kind in JOBS[sample.difficulty] if (job := kind(world, rng_of(sample, kind.__name__)))]
    if sample.variant >= len(made):
        return reject(
            sample, "material", f"the pages around {name!r} fit {len(made)} jobs that are {sample.difficulty}"
        )
    task = _task(sample, env, made[sample.variant], [c for c, _ in chosen], [page for _, page in chosen])
    return task if isinstance(task, Rejection) else await asyncio.to_thread(_really_wrong, task, sample, env)


def _task(sample: Sample, env: SynthesisEnv, job: Job, concepts: list[Concept], pages: list[Page]) -> Task | Rejection:
    listing = "\n".join(f"* {line}" for line in job.listing)
    wrong = rng_of(sample, "wrong").sample(job.wrong, min(WRONG, len(job.wrong)))
    return build_task(
        sample,
        env,
        concepts=[env.graph[sample.concept], *(c for c in concepts if c.id != sample.concept)],
        prompt=f"A folder holds these files:\n{listing}\n\nWrite a Python script, standard library only, that runs in this folder and does "
        f"the following.\n\n{job.request}\n\nOnly the files count afterwards, not what is printed. Write the script in <answer></answer>.",
        verifier=VerifierSpec(
            name="world", params={"files": job.files, "language": "python", "checks": list(job.checks)}
        ),
        reference=answered(job.script),
        wrong=[answered(script) for script in wrong],
        spans=[_head(page) for page in pages],
        hints={"files": len(job.files), "entries": len(pages)},
        most_chars=2 * env.config.max_prompt_chars,
    )


def _really_wrong(task: Task, sample: Sample, env: SynthesisEnv) -> Task | Rejection:
    """Without the slips that make no difference in this world: nobody would notice them, and they are no wrong answers."""
    wrong = tuple(answer for answer in task.wrong if verify(answer, task, env.sandbox).score == 0)
    if len(wrong) < 3:
        return reject(
            sample, "wrong", f"of {len(task.wrong)} slips only {len(wrong)} can be told from the right script"
        )
    return dataclasses.replace(task, wrong=wrong)


def _known(concept: Concept, env: SynthesisEnv) -> list[tuple[Concept, Page]]:
    """The concept, what lies above, below and beside it, as far as a page is about them; each title once."""
    graph = env.graph
    parents = graph.parents(concept)
    beside = [child for parent in parents for child in graph.children(parent)]
    titles, found = set[str](), list[tuple[Concept, Page]]()
    for one in dict.fromkeys([concept, *parents, *graph.descendants(concept), *beside]):
        page = next(
            (p for p in (env.material or {})[one.id].pages if is_about(one, Hit(url=p.url, title=p.title))), None
        )
        if page is not None and one.name not in titles:
            titles.add(one.name)
            found.append((one, page))
    return found


def _world(chosen: list[tuple[Concept, Page]], known: list[tuple[Concept, Page]], env: SynthesisEnv) -> World:
    names = {concept.id: concept.name for concept, _ in chosen}
    edges = [(p.id, c.id) for c, _ in chosen for p in env.graph.parents(c) if p.id in names]
    return World(
        entries=tuple(sorted(_entry(concept, page, env) for concept, page in chosen)),
        links=tuple(sorted((names[upper], names[lower]) for upper, lower in edges)),
        others=tuple(concept.name for concept, _ in known[len(chosen) :]),
    )


def _entry(concept: Concept, page: Page, env: SynthesisEnv) -> Entry:
    above = sorted(parent.name for parent in env.graph.parents(concept))
    topic = above[0] if above else concept.domain
    return Entry(title=concept.name, topic=topic, words=len(WORD.findall(page.source.text)))


def _head(page: Page) -> SourceSpan:
    return page.source.span(0, min(HEAD, len(page.source.text)))


register(
    TaskType(
        name="operate",
        area="tool use",
        why="Only the final state of the files counts; it was computed from the data and again by the reference script.",
        capacity=capacity,
        draft=draft,
        difficulties=DIFFICULTIES,
    )
)
