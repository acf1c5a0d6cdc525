"""What is there already before a run goes on, and what it lacks: read from disk and the environment, nobody is asked."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from kgsynth.errors import ConfigError, KgsynthError
from kgsynth.ledger import Spend
from kgsynth.recipe import Recipe
from kgsynth.store import open_store
from kgsynth.summary import paid
from kgsynth.web.providers import REGISTRY, Line, ProviderConfig


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What is there of the run already."""

    researched: int = 0
    waiting: int = 0  # with those that a stopped worker had in hand
    concepts: int = 0
    spent: Spend = Spend()  # by all stages: calls and tokens of models, dollars of everything
    growing: Spend = Spend()  # the same in the stage "grow"
    problem: str = ""  # why the store was not looked at

    @property
    def in_words(self) -> str:
        if self.problem:
            return f"not known: {self.problem}"
        if not self.concepts:
            return "a new run"
        if not self.waiting:
            return f"finished: {self.researched:,} concepts are researched and none waits, so nothing would be done"
        return f"goes on: {self.researched:,} concepts are researched and stay so, {self.waiting:,} wait"


def look(recipe: Recipe) -> tuple[Begun, dict[int, int]]:
    """(what the run has done, depth -> concepts that wait)."""
    fresh = {0: len(recipe.grow.seeds)}
    url, path = recipe.store.url, recipe.run.folder / "graph.sqlite"
    by_stage = paid(recipe.run.folder / "ledger.sqlite")
    begun = Begun(spent=sum(by_stage.values(), Spend()), growing=by_stage.get("grow", Spend()))
    if "://" in url:
        return replace(begun, problem=f"{url} is not asked in a dry run; planned as a new run"), fresh
    if not url and not path.exists():
        return begun, fresh
    try:
        with closing(open_store(url or f"sqlite:{path}")) as store:
            counts, concepts = store.frontier(), store.state()["concepts"]
            waiting = Counter(item.depth for item in store.waiting())
    except KgsynthError as error:
        return replace(begun, problem=str(error)), fresh
    if not concepts:
        return begun, fresh
    if held := counts["waiting"] + counts["leased"] - waiting.total():
        waiting[min(waiting, default=0)] += held
    begun = replace(begun, researched=counts["done"], waiting=waiting.total(), concepts=concepts)
    return begun, dict(waiting)


def missing(recipe: Recipe) -> list[str]:
    """What has to be put right before it can run, as far as can be seen without asking anybody."""
    found = [] if recipe.grow.seeds else ["[grow] seeds is empty"]
    if recipe.llm.kind != "offline":
        for endpoint in recipe.llm.endpoints:
            if endpoint.api_key_env and not os.environ.get(endpoint.api_key_env):
                local = urlsplit(endpoint.base_url).hostname in ("localhost", "127.0.0.1", "::1")
                needed = "a local server may not need it" if local else f"{endpoint.base_url} will want it"
                found.append(f"the environment variable {endpoint.api_key_env} is not set ({needed})")
    for config in recipe.web.providers:
        found += _missing_of(config)
    if recipe.grow.on == "ray" and importlib.util.find_spec("ray") is None:
        found.append("[grow] on = \"ray\": the package ray is not installed: pip install 'kgsynth[ray]'")
    found += [f"[corpus] paths: {path} is not there" for path in recipe.corpus.paths if not Path(path).exists()]
    return found


def _missing_of(config: ProviderConfig) -> list[str]:
    """What a run would say as it makes this provider. The corpus is there whenever it is asked for."""
    if config.name == "corpus":
        return []
    try:
        REGISTRY[config.name](config, Line(transport=httpx.AsyncBaseTransport(), user_agent=""))
    except ConfigError as error:
        return [str(error)]
    return []
