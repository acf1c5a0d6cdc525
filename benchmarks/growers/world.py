"""A world in which the truth is known: servers that answer from a taxonomy, and a recipe that grows from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.taxonomy import sources
from benchmarks.taxonomy.growth import grow_config
from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.noise import Noise, NoiseConfig
from benchmarks.taxonomy.score import meanings
from benchmarks.taxonomy.server import Site, serving
from benchmarks.taxonomy.truth import Taxonomy, TrueConcept
from benchmarks.taxonomy.tsv import write_tsv
from kgsynth.config import RunConfig, to_toml
from kgsynth.dedup import DedupConfig
from kgsynth.llm.openai import LLMConfig
from kgsynth.recipe import EmbedConfig, StoreConfig
from kgsynth.store import GraphStore, open_store
from kgsynth.web.fetch import HttpConfig
from kgsynth.web.open import WebConfig
from kgsynth.web.providers import ProviderConfig

LONG = 8  # letters; dedup takes an error in a shorter word for another word
FAN = 3  # children per concept: few, so that many are researched
SECOND_PARENT = 0.5  # of the concepts have one: many, so that much is found twice

# A concept has one other name, a way to write its own: dedup knows it again by its rules, or asks the judge about it, in whatever order
# the two are found, without an embedder of meaning, whose loading would take longer than what lies between two kills.
NOISE = NoiseConfig(synonyms=0.4, reversed=0.1)


@dataclass(frozen=True, kw_only=True)
class World:
    """The truth, and a folder for what is grown from it."""

    folder: Path
    taxonomy: Taxonomy
    noise: Noise
    names: Names
    delay: float  # seconds that an answer takes at most

    @property
    def file(self) -> Path:
        return self.folder / "taxonomy.tsv"

    @contextmanager
    def served(self) -> Iterator[Asked]:
        """Servers of their own, which have seen nothing yet."""
        with serving(self.file, self.noise.config, delay=self.delay) as site:
            yield Asked(site)

    def recipe(self, name: str, site: Site, *, store: str = "", agents: int, processes: int) -> Recipe:
        """A recipe file whose run is kept below the folder under that name, with caches of its own."""
        home = self.folder / name
        home.mkdir()
        config = grow_config(self.taxonomy, agents, DedupConfig())
        config = replace(
            config, agent=replace(config.agent, judgements=9.0)
        )  # so that no second name is taken for a new one
        http = HttpConfig(allow_private=True, interval_seconds=0, per_host=agents)
        tables = {
            "run": RunConfig(name="run", dir=str(home)),
            "embed": EmbedConfig(model="hashing"),
            "llm": LLMConfig(kind="openai", model="taxonomy", base_url=site.llm, api_key_env="", concurrency=agents),
            "web": WebConfig(providers=(ProviderConfig(name="searxng", base_url=site.url),), http=http),
            "store": StoreConfig(url=store),
            "grow": replace(config, processes=processes),
        }  # fmt: skip
        (home / "recipe.toml").write_text(to_toml(tables))
        return Recipe(home=home, url=store or f"sqlite:{home / 'run' / 'graph.sqlite'}")

    def meaning(self, store: GraphStore) -> Meaning:
        """What a graph says, in the concepts of the taxonomy."""
        concepts, edges = store.concepts(), [(e.parent, e.child) for e in store.edges()]
        found = meanings(concepts, edges, self.names)
        refused = [dict(d.evidence) for d in store.decisions() if d.kind == "cycle"]
        pairs = [(row["parent"], row["child"]) for row in refused]
        return Meaning(
            of=found,
            edges={(found[a], found[b]) for a, b in edges if a in found and b in found},
            refused={(found[a], found[b]) for a, b in pairs if a in found and b in found},
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe file and where its results are."""

    home: Path
    url: str  # of the store

    @property
    def file(self) -> Path:
        return self.home / "recipe.toml"

    @property
    def ledger(self) -> Path:
        return self.home / "run" / "ledger.sqlite"

    @contextmanager
    def store(self) -> Iterator[GraphStore]:
        with closing(open_store(self.url)) as store:
            yield store


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """A graph in terms of the truth."""

    of: dict[str, str]  # grown concept -> true one
    edges: set[tuple[str, str]]  # true concepts
    refused: set[tuple[str, str]]  # edges that were proposed and would have closed a cycle


@dataclass(frozen=True)
class Asked:
    """What the model's server has been asked."""

    site: Site

    @property
    def seen(self) -> int:
        """Requests."""
        return sum(n for kind, n in self._asked.items() if not kind.endswith(" repeated"))

    @property
    def again(self) -> int:
        """Requests that had been made before, word for word."""
        return sum(n for kind, n in self._asked.items() if kind.endswith(" repeated"))

    @property
    def _asked(self) -> dict[str, int]:
        return self.site.stats()["asked"]


def make_world(folder: Path, concepts: int, seed: int, delay: float) -> World:
    """A made-up taxonomy of so many concepts."""
    made = sources.made_up(concepts, fan=FAN, second_parent=SECOND_PARENT, seed=seed)
    taxonomy = Taxonomy(respelt(concept, number) for number, concept in enumerate(made))
    write_tsv(folder / "taxonomy.tsv", taxonomy)
    noise = Noise(taxonomy, replace(NOISE, seed=seed))
    return World(folder=folder, taxonomy=taxonomy, noise=noise, names=Names(taxonomy, noise.used), delay=delay)


def respelt(concept: TrueConcept, number: int) -> TrueConcept:
    """With a second name: its own with a typing error in a long word, and then no definition, so that only the judge can tell;
    else its own in one of four ways that need no judge."""
    first, last = concept.label.split()
    if len(first) >= LONG:
        return replace(concept, synonyms=(f"{first[:2]}{first[3]}{first[2]}{first[4:]} {last}",), definition="")
    ways = f"{first}{last}", f"{last} of {first}", f"{first}-{last}", concept.label.title()
    return replace(concept, synonyms=(ways[number % 4],))
