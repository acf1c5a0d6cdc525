"""What a Change means, apart from where it is written: the pure rules that both stores follow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kgsynth.concept import Concept, Decision, Edge, SourceSpan, merge_unique, name_key
from kgsynth.errors import StoreError
from kgsynth.store.rows import to_json

MAX_SPANS = 8  # per edge: provenance, not a copy of the corpus


def absorb(old: Concept, new: Concept) -> Concept:
    """`old` with what `new` knows besides: names, keywords, a missing definition, a judgement of atomicity."""
    names = () if name_key(new.name) == name_key(old.name) else (new.name,)
    judged = new.atomic is not None
    return replace(
        old,
        aliases=merge_unique(old.aliases, (*names, *new.aliases)),
        keywords=merge_unique(old.keywords, new.keywords),
        definition=old.definition or new.definition,
        atomic=new.atomic if judged else old.atomic,
        atomic_reason=new.atomic_reason if judged else old.atomic_reason,
    )


def said_once(concept: Concept) -> Concept:
    """Without repeated aliases and keywords, so that hearing of the same concept again tells nothing new."""
    names, words = merge_unique(concept.aliases, ()), merge_unique(concept.keywords, ())
    if len(names) + len(words) == len(concept.aliases) + len(concept.keywords):
        return concept
    return replace(concept, aliases=names, keywords=words)


def bounded_spans(old: Iterable[SourceSpan], new: Iterable[SourceSpan]) -> tuple[SourceSpan, ...]:
    """Both without repeats, first come first kept, at most MAX_SPANS."""
    return merge_unique(old, new)[:MAX_SPANS]


def folded_spans(
    edges: Iterable[tuple[str, str, tuple[SourceSpan, ...]]], kept: Mapping[str, str]
) -> dict[tuple[str, str], tuple[SourceSpan, ...]]:
    """Edges between the ids that their ends mean now (`kept`), each pair once with the spans of all, in order."""
    folded: dict[tuple[str, str], tuple[SourceSpan, ...]] = {}
    for parent, child, spans in edges:
        ends = (kept[parent], kept[child])
        folded[ends] = merge_unique(folded[ends], spans) if ends in folded else spans
    return folded


def refused_edge(edge: Edge, reason: str) -> Decision:
    """reason: "cycle" or "missing end"."""
    words = {"cycle": "it would close a cycle", "missing end": "its ends do not both exist"}[reason]
    evidence = (("parent", edge.parent), ("child", edge.child))
    return Decision(kind="cycle", subject=edge.id, outcome="refused", reason=words, evidence=evidence)


def dropped_concept(concept: Concept, concept_id: str, cap: int) -> Decision:
    reason = f"the cap of {cap} concepts is reached"
    return Decision(
        kind="drop", subject=concept_id, outcome="dropped", reason=reason, evidence=(("name", concept.name),)
    )


def dropped_edge(edge: Edge, cap: int) -> Decision:
    reason = f"an end was dropped: the cap of {cap} concepts is reached"
    evidence = (("parent", edge.parent), ("child", edge.child))
    return Decision(kind="drop", subject=edge.id, outcome="dropped", reason=reason, evidence=evidence)


def merged_concept(keep: str, fold_id: str, fold: Concept, parents: Iterable[str], children: Iterable[str]) -> Decision:
    """The record of a merge names the folded concept's own parents and children."""
    evidence = (
        ("keep", keep),
        ("name", fold.name),
        ("sense", fold.sense),
        ("parents", tuple(sorted(parents))),
        ("children", tuple(sorted(children))),
    )
    return Decision(kind="merge", subject=fold_id, outcome="merged", reason=f"folded into {keep}", evidence=evidence)


def refused_merge(keep: str, fold: str) -> Decision:
    reason = f"folding it into {keep} would close a cycle"
    return Decision(kind="merge", subject=fold, outcome="refused", reason=reason, evidence=(("keep", keep),))


def split_concept(old_id: str, new_id: str, into: Concept, parents: Iterable[str], children: Iterable[str]) -> Decision:
    evidence = (("into", new_id), ("name", into.name), ("parents", tuple(parents)), ("children", tuple(children)))
    return Decision(kind="split", subject=old_id, outcome="split", reason=f"a part became {new_id}", evidence=evidence)


def without_names(old: Concept, into: Concept) -> Concept:
    """`old` without the aliases that `into` answers to."""
    taken = set(into.keys) - {name_key(old.name)}
    return replace(old, aliases=tuple(alias for alias in old.aliases if name_key(alias) not in taken))


def evidence_to_json(decision: Decision) -> str:
    """Raises StoreError when the evidence holds something that JSON cannot say."""
    try:
        return to_json(decision.evidence)
    except (TypeError, ValueError) as error:
        raise StoreError(
            f"the evidence of the {decision.kind} decision on {decision.subject!r} cannot be stored: {error};"
            " use strings, numbers, booleans and tuples of them"
        ) from error


def evidence_from_json(text: str) -> tuple[tuple[str, Any], ...]:
    return _tuples(json.loads(text))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
