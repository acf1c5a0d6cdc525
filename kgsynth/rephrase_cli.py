"""`kgsynth rephrase`: sources told anew in varied styles, checked for fidelity, as pre-training text."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import ConfigError, CorpusError, RunError
from kgsynth.graph_cli import positive, print_table, table_of

if TYPE_CHECKING:
    from kgsynth.concept import Source
    from kgsynth.llm import LLM
    from kgsynth.recipe import Recipe
    from kgsynth.rephrase import RephraseConfig, Told
    from kgsynth.run import RunFolder

ABOUT = """\
Rewrite the sources behind a graph, or a corpus, chunk by chunk in several styles, and keep what says the same: every name, number,
unit, date, negation, condition and comparison, code letter by letter, nothing dropped and nothing new. What is in doubt is rejected.

The model of the recipe's [llm] writes, and judges both ways whether one text follows from the other. Without a model rules write:
they turn sentences round and set them in another form, and exchange no words.

Each line of the output is {"text", "style", "source", "url", "licence", "date", "span", "author", "checks"}. Rejections go into a file
beside it. Every line is on disk when it counts: stopped or killed, the same command goes on, and writes nothing twice.
"""
EXAMPLES = """\
examples:
  kgsynth rephrase recipes/demo.toml                                   the sources of the run's graph, by rules
  kgsynth rephrase recipes/demo.toml llm.kind=openai llm.model=Qwen3-32B llm.base_url=http://localhost:8000/v1
  kgsynth rephrase recipes/demo.toml --corpus --style questions --style plain --licence PSF-2.0
  kgsynth rephrase docs/ --licence Apache-2.0 --out docs.jsonl         a folder of documents
"""


def add_rephrase_command(commands: Any) -> None:
    sub = commands.add_parser(
        "rephrase", help="rewrite sources in varied styles, checked for fidelity, as pre-training text",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    sub.add_argument("what", metavar="RECIPE|GRAPH|FOLDER", help="a recipe, a graph, or documents in a folder or file")
    sub.add_argument("overrides", nargs="*", metavar="table.key=value", help="settings that replace the recipe's")
    sub.add_argument(
        "--corpus", action="store_true", help="every page of the recipe's corpus, not only what its graph cites"
    )
    sub.add_argument("--style", action="append", metavar="NAME", help="may be given again (default: all six)")
    sub.add_argument(
        "--licence",
        action="append",
        default=[],
        metavar="ID",
        help="allowed of sources, e.g. 'CC-BY-*'; may be given again",
    )
    sub.add_argument("--limit", type=positive, metavar="N", help="only the first N sources")
    sub.add_argument("--out", type=Path, metavar="FILE.jsonl", help="default: rephrased.jsonl in the run folder")
    sub.add_argument("--offline", action="store_true", help="send nothing: replies come from the cache")
    sub.set_defaults(command=rephrase_command)


def rephrase_command(args: argparse.Namespace) -> None:
    """Raises ConfigError for a WHAT that is nothing, RunError for an --out that cannot be written."""
    from kgsynth.rephrase import STYLES, RephraseConfig

    config = RephraseConfig(licences=tuple(args.licence), styles=tuple(args.style or STYLES))
    recipe = _recipe(args)
    out = args.out or (recipe.run.folder / "rephrased.jsonl" if recipe else None)
    if out is None:
        raise ConfigError("say where to: --out FILE.jsonl (a recipe has a run folder, this has none)")
    sources = _sources(args, recipe)[: args.limit]
    refused = Counter(source.licence for source in sources if not config.allows(source.licence))
    with _opened(out) as folder:
        rows = asyncio.run(_work(sources, config, _model(args, recipe, folder), folder, out.name))
    _print_summary(out, rows, refused)


def _recipe(args: argparse.Namespace) -> Recipe | None:
    if Path(args.what).suffix == ".toml":
        from kgsynth.recipe import load_recipe

        return load_recipe(args.what, args.overrides)
    if args.overrides or args.corpus:
        raise ConfigError(f"settings and --corpus go with a recipe, and {args.what} is none")
    return None


def _model(args: argparse.Namespace, recipe: Recipe | None, folder: RunFolder) -> LLM | None:
    from kgsynth.llm.openai import OpenAIChat

    if recipe is None or recipe.llm.kind != "openai":
        return None
    return OpenAIChat(recipe.llm, folder.path, offline=args.offline)


# sources


def _sources(args: argparse.Namespace, recipe: Recipe | None) -> list[Source]:
    """Of the graph that is named, else of the documents. The order never changes."""
    from kgsynth.store import open_store
    from kgsynth.web.corpus import CorpusConfig

    if not args.corpus and (url := _graph_of(args.what, recipe)):
        with closing(open_store(url)) as store:
            return sorted(store.sources(), key=lambda source: (source.url, source.id))
    documents = recipe.corpus if recipe else CorpusConfig(builtin=False, paths=(args.what,), cache=False)
    return asyncio.run(_pages(documents))


def _graph_of(what: str, recipe: Recipe | None) -> str:
    """The store to read; "" for documents, and for a recipe whose run has no graph yet. Raises ConfigError."""
    from kgsynth.where import find_graph

    if recipe:
        graph = recipe.run.folder / "graph.sqlite"
        return recipe.store.url or (f"sqlite:{graph}" if graph.is_file() else "")
    path = Path(what)
    if path.is_dir() and not (path / "config.toml").is_file() and not (path / "graph.sqlite").is_file():
        return ""
    return "" if path.is_file() and path.suffix not in (".sqlite", ".sqlite3", ".db") else find_graph(what)


async def _pages(config: Any) -> list[Source]:
    """Every page of a corpus that has a text."""
    from kgsynth.embed import HashingEmbedder
    from kgsynth.errors import WebError
    from kgsynth.web.corpus import open_corpus
    from kgsynth.web.read import Reader

    corpus = open_corpus(config, HashingEmbedder())
    reader, found = Reader(corpus, keep=8), []
    for url in corpus.urls():
        try:
            found.append((await reader.read(url)).source)
        except WebError as error:
            print(f"kgsynth: {error}", file=sys.stderr)
    if not found:
        raise CorpusError("the corpus has no page with a text; give other [corpus] paths")
    return found


# work


@contextmanager
def _opened(out: Path) -> Iterator[RunFolder]:
    """The folder of the output, for one process at a time, torn last lines cut off."""
    from kgsynth.files import hold
    from kgsynth.run import RunFolder

    folder = RunFolder(out.parent)
    folder.create()
    with ExitStack() as stack:
        try:
            lock = out.with_name(f".{out.name}.lock")
            stack.enter_context(
                hold(lock, lambda pid: print(f"kgsynth: {out} is in use by process {pid}; waiting", file=sys.stderr))
            )
            for name in (out.name, _rejected(out.name)):
                folder.mend(name)
        except OSError as error:
            raise RunError(f"cannot write {out}: {error.strerror}; choose another --out") from error
        yield folder


def _rejected(name: str) -> str:
    return f"{Path(name).stem}-rejected.jsonl"


async def _work(
    sources: list[Source], config: RephraseConfig, llm: LLM | None, folder: RunFolder, name: str
) -> list[dict[str, Any]]:
    """All rows, kept and rejected, those of an earlier call too."""
    from kgsynth.rephrase import author_of, key_of, rephrase
    from kgsynth.rephrase.chunks import chunks
    from kgsynth.show import checking

    kept = folder.rows(name, needs=("text", "source", "style", "span", "author"))
    refused = folder.rows(_rejected(name), needs=("reason", "source", "style", "span", "author"))
    rows, done = [*kept, *refused], {key_of(row) for row in (*kept, *refused)}
    left = [source for source in sources if config.allows(source.licence)]
    author, styles = author_of(llm), config.styles
    wanted = {
        (s.id, style, c.start, author) for s in left for c in chunks(s, config.chunk, config.least) for style in styles
    }
    left = [
        s
        for s in left
        if any(
            (s.id, style, c.start, author) not in done
            for c in chunks(s, config.chunk, config.least)
            for style in styles
        )
    ]
    try:
        with checking("rephrase", len(wanted)) as show:
            async for told in rephrase(left, config, llm):
                rows += [_write(folder, name, one) for one in told if one.key not in done]
                show(len(rows), f"{sum('text' in row for row in rows)} kept")
    finally:
        if llm is not None:
            await llm.close()
    return [row for row in rows if key_of(row) in wanted]


def _write(folder: RunFolder, name: str, told: Told) -> dict[str, Any]:
    row = told.row()
    folder.append(_rejected(name) if told.doubt else name, row)
    return row


def _print_summary(out: Path, rows: list[dict[str, Any]], refused: Counter[str]) -> None:
    kept, reasons = [row for row in rows if "text" in row], Counter(row["reason"] for row in rows if "reason" in row)
    table = table_of(
        f"{len(kept)} of {len(rows)} rewritings are in {out}", "style", "kept", "rejected", "characters", "reasons"
    )
    for style in dict.fromkeys(row["style"] for row in rows):
        ours = [row for row in rows if row["style"] == style]
        texts = [row["text"] for row in ours if "text" in row]
        why = Counter(row["reason"] for row in ours if "reason" in row)
        told = ", ".join(f"{count} {reason}" for reason, count in why.most_common())
        table.add_row(style, str(len(texts)), str(len(ours) - len(texts)), f"{sum(map(len, texts)):,}", told)
    for licence, count in sorted(refused.items()):
        table.add_row("", "", "", "", f"{count} sources left out: their licence is {licence}")
    print_table(table)
    print(json.dumps({
        "kept": len(kept), "rejected": len(rows) - len(kept), "reasons": dict(reasons.most_common()),
        "characters": sum(len(row["text"]) for row in kept), "sources_without_licence": sum(refused.values()), "out": str(out),
    }))  # fmt: skip
