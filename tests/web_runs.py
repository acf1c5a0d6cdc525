"""Whole runs on the web: a recipe whose model, search engine and pages are local servers that know one taxonomy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.taxonomy.server import Site
from kgsynth.ledger import Ledger
from kgsynth.recipe import Recipe, load_recipe
from kgsynth.store import Row, open_store

TREES = """\
id\tlabel\tsynonyms\tparents\tdefinition
d\tdata structures\t\t\tWays to lay out records in memory so that they can be found again.
t\ttrees\ttree structures|arborescences\td\tLinked records without loops, drawn from one root downwards.
h\thash tables\thash maps|dictionaries\td\tRecords found by a number that is computed from their key.
s\tsearch trees\tordered trees\tt\tTrees which keep smaller keys on the left of every node.
b\tbinary search trees\t\ts\tSearch trees whose nodes have two children at most.
r\trotations\tpivots\tb|p\tExchanging a node with its child while the order of all keys stays.
p\tsplay trees\t\ts\tSearch trees that move every key to the root when it is looked up.
q\tpriority queues\t\td\tCollections that give back the smallest record first.
e\theaps\t\tt|q\tTrees in which no child is smaller than its parent.
f\tfibonacci heaps\t\te\tForests of trees in which a record is cut out when its key becomes smaller.
o\topen addressing\tclosed hashing\th\tLooking for the next free slot of the table when one is taken.
c\tchaining\tseparate chaining\th\tA list of records for every slot of the table.
"""


def web_recipe(folder: Path, site: Site, name: str, *overrides: str) -> Recipe:
    """A recipe for a run called `name` in `folder`, against the servers of `TREES`."""
    path = folder / "recipe.toml"
    path.write_text(
        f"""
[run]
dir = "{folder}"

[embed]
model = "hashing"

[llm]
kind = "openai"
model = "taxonomy"
base_url = "{site.llm}"
api_key_env = ""
usd_per_1m_prompt = 1.0
usd_per_1m_completion = 2.0

[web]
providers = [{{ name = "searxng", base_url = "{site.url}" }}]
http = {{ allow_private = true, interval_seconds = 0.0 }}

[grow]
seeds = [{{ name = "data structures", domain = "data" }}]
"""
    )
    return load_recipe(path, [f"run.name={name}", *overrides])


def contents(url: str) -> dict[str, list[Row]]:
    """Everything in a graph that is not a time or a name of the graph, in the order of insertion."""
    store = open_store(url)
    try:
        return {kind: store.export(kind) for kind in ("concept", "edge", "source", "decision", "frontier", "merged")}
    finally:
        store.close()


def spent(recipe: Recipe) -> list[dict[str, Any]]:
    return Ledger(recipe.run.folder / "ledger.sqlite", readonly=True).rows()
