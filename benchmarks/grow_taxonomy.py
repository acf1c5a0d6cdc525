"""Grow a graph with the real loop from a taxonomy that is known, and measure what comes out against it.

    python benchmarks/grow_taxonomy.py --edam topics,operations                    # EDAM, 30 % of the children under a synonym
    python benchmarks/grow_taxonomy.py --taxonomy FILE.tsv --respellings 0.2 --invented 0.05 --reversed 0.05
    python benchmarks/grow_taxonomy.py --wordnet vehicle --limit 500 --embed hashing
    python benchmarks/grow_taxonomy.py --made-up 20000 --embed hashing --agents 64
    python benchmarks/grow_taxonomy.py --edam topics,operations --write edam.tsv   # only write the taxonomy's file

A taxonomy is a file of tab-separated columns `id, label, synonyms, parents, definition` under a header line; synonyms and parents
are separated by `|`. Only id and label are needed; any encoding mark, quotes, order of columns, several roots and parents will do.

Two servers are started in a process of their own. One speaks OpenAI's chat API and answers the agents' questions as an expert
on the taxonomy would, with noise: children under a synonym, in another spelling, as an acronym, twice, left out, made up (with
a quote that is on no page, or on one), ancestors as children, replies that are no JSON, 429 and 500. What it says of a concept
depends on the seed and the concept only. It proposes only what a page that it is shown says, quoted letter by letter;
whether two names mean one concept, and whether a concept is a leaf, it answers truthfully. The other speaks SearXNG's search API
and serves a page per concept: its definition, and that of each of its children. Then `kgsynth.grow` grows from the taxonomy's roots,
with all of its real parts: HTTP for model, search and pages, robots.txt, evidence, dedup, store.

How a grown concept is matched with a true one, and what is counted as right, is written in `taxonomy/score.py`; it does
not depend on what dedup decided. A judgement is a question to the model whether two concepts are the same.

Ends with one line of JSON; exit code 1 when a bound given by --max-duplicates, --min-node-f1, --min-edge-f1 or --max-judgements is not met,
or the graph has a cycle.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.taxonomy import sources, tables
from benchmarks.taxonomy.growth import Grown, grow_from
from benchmarks.taxonomy.mistakes import find_mistakes
from benchmarks.taxonomy.names import Names
from benchmarks.taxonomy.noise import Noise, NoiseConfig
from benchmarks.taxonomy.score import Score, score
from benchmarks.taxonomy.server import serving
from benchmarks.taxonomy.truth import Taxonomy
from benchmarks.taxonomy.tsv import read_tsv, write_tsv
from kgsynth.embed import PACKAGED, open_embedder
from kgsynth.errors import KgsynthError

SCREEN = Console(stderr=True, width=None if sys.stderr.isatty() else 150)
HELP = {
    "synonyms": "of the children that have a synonym are proposed under it (default 0.3)",
    "respellings": "of the others are spelt otherwise: hyphens, plurals, -ise, 'X of Y', a wrong letter",
    "acronyms": "of the others become 'BST' or 'binary search tree (BST)'",
    "repeated": "of the children are proposed twice, in two spellings",
    "missing": "of the children are left out",
    "invented": "per child, one more that does not exist; half of them quote a page",
    "reversed": "of the concepts have an ancestor proposed as their child",
    "undefined": "of the proposals have no definition",
    "malformed": "of the replies are not what was asked for",
    "errors": "of the requests to the model get 429 or 500",
}
BOUNDS = ("max_duplicates", "max_judgements", "min_node_f1", "min_edge_f1")


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        with _folder(args.keep) as folder:
            return run(args, folder)
    except KgsynthError as error:
        SCREEN.print(f"{type(error).__name__}: {error}", style="red", markup=False)
        return 2
    except KeyboardInterrupt:
        SCREEN.print("stopped")
        return 130


def run(args: argparse.Namespace, folder: Path) -> int:
    """Grow, compare, print. The folder gets the taxonomy as it was used, the graph and the ledger."""
    noise_config = NoiseConfig(seed=args.seed, **{name: getattr(args, name) for name in HELP})
    taxonomy, file = _taxonomy(args, folder)
    for note in taxonomy.notes:
        SCREEN.print(note, markup=False)
    if args.write:
        shutil.copyfile(file, args.write)
        print(json.dumps({"concepts": len(taxonomy), "edges": len(taxonomy.edges), "file": str(args.write)}))
        return 0
    embedder, noise = open_embedder(args.embed), Noise(taxonomy, noise_config)
    with serving(file, noise_config, aliases=args.aliases_on_page) as site, _bar(len(taxonomy)) as show:
        grown = grow_from(
            taxonomy, site, folder, embedder=embedder, agents=args.agents, store=args.store, on_progress=show
        )
        asked = site.stats()
    found = score(grown.concepts, grown.edges, taxonomy, Names(taxonomy, noise.used))
    mistakes = find_mistakes(grown.concepts, grown.edges, grown.decisions, found, noise, args.examples)
    result = summary(args, taxonomy, found, grown, asked) | {"mistakes": dict(mistakes.counts)}
    for table in tables.tables(found, mistakes, result):
        SCREEN.print(table)
    for line in tables.examples(mistakes):
        SCREEN.print(line, markup=False, highlight=False)
    if args.out:
        args.out.write_text(json.dumps(result | {"examples": mistakes.examples}, indent=1, ensure_ascii=False))
    print(json.dumps(result))
    return int(bool(result["missed"]))


def summary(
    args: argparse.Namespace, taxonomy: Taxonomy, found: Score, grown: Grown, asked: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """All figures of a run."""
    calls, counts = asked["asked"], asked["counts"]
    kinds = {kind: n for kind, n in calls.items() if not kind.endswith(" repeated")}
    inserts = max(1, len(grown.concepts) - len(taxonomy.roots))
    judgements = kinds.get("Sameness", 0) - calls.get("Sameness repeated", 0)
    rules = Counter(d.outcome for d in grown.decisions if d.kind == "dedup")
    cost = {f"calls per concept: {kind}": n / max(1, len(grown.concepts)) for kind, n in sorted(kinds.items())}
    cost |= {"calls that were repeated": sum(calls.values()) - sum(kinds.values()), "judgements": judgements}
    cost |= {"judgements per insert": judgements / inserts, **counts}
    cost |= {"seconds": round(grown.seconds, 2), "CPU seconds": round(grown.cpu_seconds, 2)}
    cost |= {"CPU ms per concept": 1000 * grown.cpu_seconds / max(1, len(grown.concepts))}
    result = {
        "taxonomy": {"concepts": len(taxonomy), "edges": len(taxonomy.edges), "roots": len(taxonomy.roots),
                     "leaves": sum(taxonomy.is_leaf(c.id) for c in taxonomy), "depth": max(taxonomy.depths.values())},
        "noise": {name: getattr(args, name) for name in (*HELP, "seed")},
        **{name: getattr(found, name).row() for name in ("nodes", "edges", "reachability", "atomicity")},
        "cycles": found.cycles, "duplicates": len(found.duplicates), "duplicate_rate": round(found.duplicate_rate, 5),
        "stopped": grown.report.stopped, "proposed": asked["proposed"], "dedup_rules": dict(rules.most_common()), "cost": cost,
    }  # fmt: skip
    reached = {"max_duplicates": found.duplicate_rate, "max_judgements": judgements / inserts,
               "min_node_f1": found.nodes.f1, "min_edge_f1": found.edges.f1}  # fmt: skip
    return result | {"missed": _missed(args, reached) + (["no cycles"] if found.cycles else [])}


def _missed(args: argparse.Namespace, reached: Mapping[str, float]) -> list[str]:
    """The bounds that were given and not met."""
    given = {name: getattr(args, name) for name in BOUNDS if getattr(args, name) is not None}
    worse = [n for n, bound in given.items() if (reached[n] > bound if n.startswith("max") else reached[n] < bound)]
    return [f"{name} {given[name]}: {reached[name]:.4f}" for name in worse]


def _taxonomy(args: argparse.Namespace, folder: Path) -> tuple[Taxonomy, Path]:
    """The taxonomy that was asked for, and a file that holds it as it is used."""
    if args.taxonomy:
        taxonomy = read_tsv(args.taxonomy)
    elif args.edam:
        taxonomy = Taxonomy(sources.edam(args.edam.split(","), exact=args.exact_synonyms))
    elif args.wordnet:
        taxonomy = Taxonomy(sources.wordnet(args.wordnet))
    else:
        taxonomy = Taxonomy(sources.made_up(args.made_up, seed=args.seed))
    if args.limit:
        taxonomy = taxonomy.first(args.limit)
    write_tsv(folder / "taxonomy.tsv", taxonomy)
    return taxonomy, folder / "taxonomy.tsv"


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The run's folder, gone afterwards unless it is to be kept. Caches of pages and replies go there too."""
    with tempfile.TemporaryDirectory(prefix="grow-taxonomy-") as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise KgsynthError(f"{folder} is not empty; name a new folder with --keep")
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        try:
            yield folder
        finally:
            os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before)


@contextmanager
def _bar(concepts: int) -> Iterator[Any]:
    """A progress bar on standard error; what it yields is called with each Progress."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=SCREEN, transient=True) as bar:
        task = bar.add_task("growing", total=concepts)
        yield lambda p: bar.update(task, completed=p.concepts, description=f"growing, {p.waiting} wait")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--taxonomy", type=Path, metavar="FILE.tsv", help="the truth")
    what.add_argument("--edam", metavar="PARTS", help="EDAM's topics,operations (also data, formats)")
    what.add_argument(
        "--wordnet", metavar="WORD", help="WordNet's nouns below a word, such as vehicle; all of them: entity"
    )
    what.add_argument("--made-up", type=int, metavar="N", help="N concepts with made-up names")
    parser.add_argument("--exact-synonyms", action="store_true", help="of EDAM: only those called exact")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N concepts by breadth")
    parser.add_argument("--write", type=Path, metavar="FILE.tsv", help="write the taxonomy there, and do nothing else")
    noise = parser.add_argument_group("noise, as shares from 0 to 1")
    defaults = {field.name: field.default for field in fields(NoiseConfig)}
    for name, text in HELP.items():
        noise.add_argument(f"--{name}", type=float, default=defaults[name], metavar="SHARE", help=text)
    noise.add_argument("--seed", type=int, default=0, help="of all noise (default 0)")
    grow = parser.add_argument_group("the run")
    grow.add_argument(
        "--aliases-on-page", action="store_true", help="pages say 'Also called: ...'; proposals then have aliases"
    )
    grow.add_argument(
        "--embed", default=PACKAGED, help=f"the embedder of dedup: hashing, or a model (default {PACKAGED})"
    )
    grow.add_argument(
        "--store", default="", metavar="URL", help="bolt://...; by default an embedded store in the run's folder"
    )
    grow.add_argument("--agents", type=int, default=16, help="at work at the same time (default 16)")
    grow.add_argument("--examples", type=int, default=5, help="shown of each kind of mistake (default 5)")
    grow.add_argument("--out", type=Path, metavar="FILE.json", help="write the result there, with the examples")
    grow.add_argument("--keep", type=Path, metavar="FOLDER", help="keep graph, ledger and taxonomy in this new folder")
    bounds = parser.add_argument_group("bounds, for the exit code")
    for name in BOUNDS:
        bounds.add_argument(f"--{name.replace('_', '-')}", type=float, metavar="X")
    return parser


if __name__ == "__main__":
    sys.exit(main())
