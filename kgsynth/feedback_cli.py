"""`kgsynth feedback RECIPE`: what training says about a run's graph, and `--apply` to act on it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgsynth.errors import RunError
from kgsynth.graph_cli import print_table

if TYPE_CHECKING:
    from kgsynth.feedback import Advice, Finding, Step
    from kgsynth.graph import ConceptGraph
    from kgsynth.recipe import Recipe

SHOWN = 12  # findings of a kind that are printed; --json has them all
FIRST = 5  # concepts that are named of those the next growth begins with
TITLES: dict[Step, str] = {
    "reopen": "research again",
    "finer": "finer tasks",
    "coarser": "coarser tasks first",
    "keep": "as it is",
}
ABOUT = """\
Read the pass rates that training has measured, and say where the graph should grow and how hard the next tasks should be:

  * mastered concepts with nothing finer left to learn are researched again (atomic ones are judged anew);
  * mastered concepts with finer ones left get finer tasks, hopeless ones get coarser tasks and are expanded last;
  * of the concepts that wait, those that are solved sometimes, but not always, come first under [grow] order = ["feedback"].

Nothing is changed without --apply. What it does is one operation: `kgsynth log` lists it, `kgsynth undo` takes it back. Doing it
twice changes nothing, and no concept is re-opened twice for the same results. Thresholds are in the recipe's [feedback] table.
"""
EXAMPLES = """\
the loop: grow -> synthesize -> train -> feedback -> grow
  kgsynth run recipes/demo.toml                          a graph and its tasks
  trainer run recipes/demo.toml                          train on them, and measure pass rates
  kgsynth feedback recipes/demo.toml                     what would change, and why
  kgsynth feedback recipes/demo.toml --apply             change it
  kgsynth run recipes/demo.toml run.name=demo2 store.url=sqlite:runs/demo/graph.sqlite \\
      grow.max_concepts=900 'grow.order=["feedback"]' sample.seed=1
                                                         the next round: the same graph, grown on, and new tasks
"""


def add_feedback_command(commands: Any) -> None:
    text = "say where training wants the graph to grow and how hard tasks should be; --apply does it"
    sub = commands.add_parser(
        "feedback", help=text, description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sub.add_argument("recipe", type=Path, help="the recipe of a run that was trained on")
    sub.add_argument("overrides", nargs="*", metavar="table.key=value", help="settings that replace the recipe's")
    sub.add_argument("--apply", action="store_true", help="re-open what should be researched again")
    sub.add_argument("--json", action="store_true", help="only one line of JSON, with all findings")
    sub.set_defaults(command=feedback_command)


@dataclass(frozen=True, kw_only=True)
class Next:
    """What the next `kgsynth grow` would begin with."""

    waiting: int  # concepts, with those that are to be re-opened
    first: tuple[tuple[str, float], ...]  # (name, weight) of the first ones, by the recipe's order
    room: int  # concepts that fit below [grow] max_concepts


def feedback_command(args: argparse.Namespace) -> None:
    """Raises RunError when no task was tried yet."""
    from kgsynth.feedback import advice, known_tasks, solved, weights
    from kgsynth.graph import ConceptGraph
    from kgsynth.recipe import load_recipe
    from kgsynth.stages import annotate_graph
    from kgsynth.store import open_store
    from kgsynth.structure import Structure

    recipe = load_recipe(args.recipe, args.overrides)
    annotate_graph(recipe)
    url = recipe.store.url or f"sqlite:{recipe.run.folder / 'graph.sqlite'}"
    with closing(open_store(url)) as store:
        graph, structure = ConceptGraph(store), Structure(store.skeleton())
        rates = solved(known_tasks(store, structure), structure, recipe.feedback)
        if not rates:
            raise RunError(f"no task of {url} has a pass rate yet; train on them first: `trainer run {args.recipe}`")
        found = advice(rates, graph, recipe.feedback, max_depth=recipe.grow.max_depth)
        ahead = _next(graph, recipe, found, weights(rates, structure, recipe.feedback))
        if not args.json:
            _print(graph, recipe, found, ahead, url)
        op = _apply(graph, found, url, say=not args.json) if args.apply else 0
    print(json.dumps(_row(found, ahead, op, every=args.json), ensure_ascii=False))


def _next(graph: ConceptGraph, recipe: Recipe, found: Advice, weight: Mapping[str, float]) -> Next:
    from kgsynth.feedback import UNTRIED
    from kgsynth.grow.frontier import POLICIES, look
    from kgsynth.store import FrontierItem

    store, config = graph.store, recipe.grow
    again = [FrontierItem(concept=f.concept.id, depth=f.depth or 0, seq=1 << 60) for f in found.reopen]
    items = [*store.waiting(), *again]
    view = look(store.skeleton(), config.domains, weight)
    scores = [POLICIES[name](view) for name in config.order]
    items.sort(key=lambda item: (*(score(item) for score in scores), item.seq))
    first = tuple((graph[item.concept].name, weight.get(item.concept, UNTRIED)) for item in items[:FIRST])
    return Next(waiting=len(items), first=first, room=max(0, config.max_concepts - len(graph)))


def _apply(graph: ConceptGraph, found: Advice, url: str, *, say: bool) -> int:
    from kgsynth.feedback import apply

    if say:
        print(f"feedback: applying to {url}", flush=True)
    op = apply(graph, found).op
    if say and op:
        print(f"feedback: applied as operation {op}; `kgsynth undo {url} {op}` takes it back")
    elif say:
        print("feedback: nothing was re-opened")
    return op


def _row(found: Advice, ahead: Next, op: int, *, every: bool) -> dict[str, Any]:
    return {
        "tried": len(found.findings), "reopen": len(found.reopen), "finer": len(found.deeper),
        "coarser": len(found.coarser), "applied": op, "next": asdict(ahead),
        **({"findings": [_finding(f) for f in found.findings]} if every else {}),
    }  # fmt: skip


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "concept": finding.concept.id, "name": finding.concept.name, "verdict": finding.verdict, "step": finding.step,
        "reason": finding.reason, "others": list(finding.others), **asdict(finding.rate),
    }  # fmt: skip


# printing


def _print(graph: ConceptGraph, recipe: Recipe, found: Advice, ahead: Next, url: str) -> None:
    print_table(_table(graph, found, url))
    for line in _words(recipe, found, ahead):
        print(f"feedback: {line}")


def _table(graph: ConceptGraph, found: Advice, url: str) -> Any:
    from rich.table import Table

    table = Table(title=f"{len(found.findings)} tried concepts of {url}", title_justify="left")
    for column in ("advice", "concept"):
        table.add_column(column, overflow="fold")
    for column in ("pass rate", "interval", "replies", "tasks"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("why")
    for step, title in TITLES.items():
        findings = sorted(found.of(step), key=lambda f: (f.verdict == "unsure", -f.rate.attempts, f.concept.name))
        for f in findings[:SHOWN]:
            interval = f"{f.rate.low:.2f}-{f.rate.high:.2f}"
            numbers = (f"{f.rate.estimate:.2f}", interval, f"{f.rate.attempts:g}", str(f.rate.tasks))
            table.add_row(title, f.concept.name, *numbers, _why(graph, f))
        if len(findings) > SHOWN:
            table.add_row(title, f"... and {len(findings) - SHOWN} more", "", "", "", "", "")
    return table


def _why(graph: ConceptGraph, finding: Finding) -> str:
    return finding.reason + (f": {_listed([graph[i].name for i in finding.others])}" if finding.others else "")


def _listed(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _words(recipe: Recipe, found: Advice, ahead: Next) -> Iterable[str]:
    again = len(found.reopen)
    yield f"{again} to research again, {len(found.deeper)} for finer tasks, {len(found.coarser)} for coarser ones"
    if not ahead.waiting:
        yield "the next `kgsynth grow` has nothing to do: no concept waits"
        return
    order = ", ".join(recipe.grow.order)
    first = _listed([f"{name} ({weight:.2f})" for name, weight in ahead.first], FIRST)
    noun = "concept" if ahead.waiting == 1 else "concepts"
    with_these = f", {again} of them re-opened by --apply" if again else ""
    yield f"the next `kgsynth grow` researches {ahead.waiting} {noun}{with_these}; first, by {order}: {first}"
    if "feedback" not in recipe.grow.order:
        yield '[grow] order does not name "feedback": add grow.order=\'["feedback"]\' to go where most is to be learnt'
    if not ahead.room:
        yield f"the graph is full: it gains no concept unless [grow] max_concepts ({recipe.grow.max_concepts}) is raised"
