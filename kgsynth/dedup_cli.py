"""`kgsynth dedup GRAPH`: the closest pairs left in a graph, the decisions about a name, and merging by hand."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from kgsynth.graph_cli import positive, print_table, table_of
from kgsynth.where import GRAPH_HELP, find_graph

if TYPE_CHECKING:
    from kgsynth.concept import Decision
    from kgsynth.dedup.audit import ClosePair
    from kgsynth.embed import Embedder
    from kgsynth.store import GraphStore

ABOUT = """\
Look for concepts that are in a graph twice.

--audit (the default) compares all concepts with all others by their stored vectors, and by what names and definitions share,
and shows the closest pairs with what the rules of growing say about each today:

  would merge       were one of them proposed now, it would be taken for the other: very likely the same
  needs judging     the rules are not sure; a model would be asked
  excluded: ...     the names rule it out (digits, opposite words, code), or the definitions do (sense, narrower, sibling)
  apart             close, and yet not the same by any rule

Columns "name" and "definition" are cosines of embeddings, "words" is the share of common words of the definitions, by weight.
Nothing is changed. --merge folds the second concept into the first; `kgsynth undo GRAPH` takes that back.
"""
EXAMPLES = """\
examples:
  kgsynth dedup runs/demo                                 the 50 closest pairs
  kgsynth dedup runs/demo --audit --top 500 --json        the same for a script
  kgsynth dedup runs/demo --decisions "hash table"        which rule decided about a name, with its scores
  kgsynth dedup runs/demo --merge "hash table" "hash map" fold the second into the first
"""


def add_dedup_command(commands: Any) -> None:
    sub = commands.add_parser(
        "dedup", help="list the closest pairs left in a graph, with what the rules say; merge two concepts",
        description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    sub.add_argument("graph", metavar="GRAPH", help=GRAPH_HELP)
    what = sub.add_mutually_exclusive_group()
    what.add_argument("--audit", action="store_true", help="the closest pairs (the default)")
    what.add_argument("--decisions", metavar="NAME", help="the stored decisions about a name, or that matched it")
    what.add_argument("--merge", nargs=2, metavar=("KEEP", "FOLD"), help="fold one concept (name or id) into another")
    sub.add_argument("--top", type=positive, default=50, metavar="N", help="how many pairs (default: %(default)s)")
    sub.add_argument("--json", action="store_true", help="only one line of JSON")
    sub.set_defaults(command=dedup_command)


def dedup_command(args: argparse.Namespace) -> None:
    from kgsynth.store import open_store

    url, started = find_graph(args.graph), time.monotonic()
    with closing(open_store(url)) as store:
        if args.merge:
            row = merge(store, *args.merge)
        elif args.decisions is not None:
            row = decisions(store, args.decisions, quiet=args.json)
        else:
            row = audit(store, args.graph, args.top, quiet=args.json)
    print(json.dumps({"graph": url, **row, "seconds": round(time.monotonic() - started, 2)}, ensure_ascii=False))


# the audit


def audit(store: GraphStore, graph: str, top: int, *, quiet: bool) -> dict[str, Any]:
    from kgsynth.dedup.audit import closest_pairs
    from kgsynth.show import reading

    model = store.embeddings()[0]
    with reading("dedup") as show:
        pairs = closest_pairs(store, _embedder(model), top=top, on_progress=show)
    if not quiet:
        _print_pairs(pairs, graph)
    counts = Counter(pair.verdict for pair in pairs)
    return {"model": model, "pairs": [_row(p, graph) for p in pairs] if quiet else len(pairs), "verdicts": dict(counts)}


def _embedder(model: str) -> Embedder | None:
    """The model of the stored vectors, or None with a word about what is missed."""
    from kgsynth.embed import open_embedder
    from kgsynth.errors import ConfigError

    try:
        return open_embedder(model) if model else None
    except ConfigError as error:
        print(f"dedup: names and definitions are compared by their words only: {error}", file=sys.stderr)
        return None


def _row(pair: ClosePair, graph: str) -> dict[str, Any]:
    return {
        "one": pair.one.id, "one_name": pair.one.name, "other": pair.other.id, "other_name": pair.other.name,
        "verdict": pair.verdict, "reason": pair.reason, "linked": pair.linked, "scores": pair.scores,
        "command": _command(pair, graph),
    }  # fmt: skip


def _command(pair: ClosePair, graph: str) -> str | None:
    """What merges the pair, where merging may be right."""
    if pair.verdict not in ("would merge", "needs judging"):
        return None
    return shlex.join(["kgsynth", "dedup", graph, "--merge", pair.one.id, pair.other.id])


def _print_pairs(pairs: list[ClosePair], graph: str) -> None:

    if not pairs:
        print("dedup: there are no pairs to compare: the graph has fewer than two concepts, or none is like another")
        return
    table = table_of(f"the {len(pairs)} closest pairs in {graph}", "pair", "cosine", "name", "definition", "words", "verdict", "merge with, or why not")  # fmt: skip
    for pair in pairs:
        scores = [_two(pair.scores.get(key)) for key in ("similarity", "name", "definition", "shared words")]
        linked = " (parent and child)" if pair.linked else ""
        told = _command(pair, graph) or pair.reason
        table.add_row(f"{pair.one.name} / {pair.other.name}{linked}", *scores, pair.verdict, told)
    print_table(table)


def _two(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


# decisions, merging


def decisions(store: GraphStore, name: str, *, quiet: bool) -> dict[str, Any]:
    from kgsynth.concept import name_key

    key = name_key(name)
    found = [d for d in store.decisions() if d.kind == "dedup" and key in _names(d)]
    if not quiet:
        _print_decisions(found, name)
    rows = [
        {"subject": d.subject, "outcome": d.outcome, "reason": d.reason, "evidence": dict(d.evidence)} for d in found
    ]
    return {"name": name, "decisions": rows if quiet else len(found)}


def _names(decision: Decision) -> set[str]:
    from kgsynth.concept import name_key

    evidence = dict(decision.evidence)
    return {name_key(n) for n in (decision.subject, evidence.get("neighbour", ""), *evidence.get("uncertain", ()))}


def _print_decisions(found: list[Decision], name: str) -> None:

    if not found:
        print(f"dedup: no decision is stored about {name!r}")
        return
    table = table_of(f"decisions about {name!r}", "proposed", "outcome", "reason", "evidence")
    for decision in found:
        evidence = ", ".join(f"{k}: {v}" for k, v in decision.evidence)
        table.add_row(decision.subject, decision.outcome, decision.reason, evidence)
    print_table(table)


def merge(store: GraphStore, keep: str, fold: str) -> dict[str, Any]:
    from kgsynth.graph import ConceptGraph

    graph = ConceptGraph(store)
    kept, folded = (_concept(graph, word) for word in (keep, fold))
    done = graph.merge(kept, folded)
    print(
        f"dedup: {graph_name(folded)} is folded into {graph_name(done)}; `kgsynth undo` takes it back", file=sys.stderr
    )
    return {"kept": done.id, "name": done.name, "folded": folded, "op": store.version()}


def graph_name(what: Any) -> str:
    return what if isinstance(what, str) else repr(what.name)


def _concept(graph: Any, word: str) -> str:
    """The id that a name or an id means. Raises StoreError when nothing or several concepts bear the name."""
    from kgsynth.errors import StoreError

    if word in graph:
        return graph[word].id
    found = graph.find(word)
    if len(found) == 1:
        return found[0].id
    several = ", ".join(f"{c.id} ({c.name}, {c.domain}{', ' + c.sense if c.sense else ''})" for c in found)
    raise StoreError(
        f"{len(found)} concepts are called {word!r}: {several}; give the id" if found
        else f"no concept is called {word!r}; `kgsynth dedup GRAPH --audit --json` lists ids"
    )  # fmt: skip
