"""What a Change does to a graph, and how an operation is taken back: written once, for every store.

Both work on a Draft, inside one transaction of the store; nothing here knows how a store writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from kgsynth.concept import Concept, Decision, Edge, SourceSpan, content_id
from kgsynth.errors import CycleError, LeaseError, StaleError, UndoError
from kgsynth.store import Change, CommitResult, FrontierItem, Operation, Split, dag, rows
from kgsynth.store.change import (
    absorb,
    bounded_spans,
    dropped_concept,
    dropped_edge,
    evidence_to_json,
    folded_spans,
    merged_concept,
    refused_edge,
    refused_merge,
    said_once,
    split_concept,
    without_names,
)
from kgsynth.store.draft import Draft, Link, Node, Pair, Queued, membership, moved, to_queued


def apply(draft: Draft, change: Change) -> CommitResult:
    """Raises LeaseError, StaleError, and StoreError for evidence that cannot be stored; the draft is worth nothing then."""
    return _Commit(draft).apply(change)


class _Commit:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.decided: list[Decision] = []
        self.result: dict[str, list[Any]] = {f.name: [] for f in fields(CommitResult) if f.name != "op"}

    def apply(self, change: Change) -> CommitResult:
        draft = self.draft
        self._hold(change.leases)
        draft.add_sources(change.sources)
        self._concepts(change.concepts, change.max_concepts)
        self._compared(change.as_of)
        self._merges(change.merges)
        for split in change.splits:
            self._split(split)
        self._unlink(change.unlink)
        self._edges(change.edges, change.max_concepts)
        for concept_id in change.remove:
            self._remove(concept_id)
        self._frontier(change.enqueue, change.done, change.reopen)
        self._decide([*self.decided, *change.decisions])
        draft.settle()
        found = {name: tuple(dict.fromkeys(value)) for name, value in self.result.items()}
        return CommitResult(op=draft.op if draft.altered else 0, **found)

    def _hold(self, leases: Sequence[FrontierItem]) -> None:
        """The fencing of leases: a token that is not the last one given belongs to a worker that was too slow."""
        self.draft.need_kept(item.concept for item in leases)
        self.draft.need_queued(self.draft.kept[item.concept] for item in leases)
        for item in leases:
            held = self.draft.queue[self.draft.kept[item.concept]]
            if held is None or held.token != item.token:
                raise LeaseError(
                    f"the lease {item.token} on concept {item.concept} is no longer good: "
                    + (f"lease {held.token} was given since" if held else "it left the frontier")
                    + "; nothing was written, lease again"
                )

    # concepts

    def _compared(self, as_of: int | None) -> None:
        """Nothing new was inserted beside a concept that nobody compared it with."""
        last = self.draft.op - 1
        if as_of is not None and self.result["added"] and as_of != last:
            raise StaleError(
                f"{len(self.result['added'])} new concepts were compared with the graph as of operation {as_of}, but "
                f"there is operation {last} now; nothing was written, compare them again"
            )

    def _concepts(self, concepts: Sequence[Concept], cap: int | None) -> None:
        ids = [concept.id for concept in concepts]
        self.draft.need_kept(ids)
        self.draft.need_nodes(self.draft.kept[i] for i in ids)
        for i, concept in zip(ids, concepts, strict=True):
            self._concept(self.draft.kept[i], concept, cap)

    def _concept(self, concept_id: str, concept: Concept, cap: int | None) -> None:
        if node := self.draft.nodes[concept_id]:
            if (new := absorb(node.concept, concept)) != node.concept:
                self._rewrite(concept_id, new)
        elif cap is not None and self.draft.state.concepts >= cap:
            self.result["dropped"].append(concept_id)
            self.decided.append(dropped_concept(concept, concept_id, cap))
        else:
            self._insert(concept_id, concept)

    def _insert(self, concept_id: str, concept: Concept) -> None:
        self.draft.insert(concept_id, Node(said_once(concept), self.draft.next_n(), self.draft.op))
        self.result["added"].append(concept_id)

    def _rewrite(self, concept_id: str, concept: Concept) -> None:
        old = self.draft.nodes[concept_id]
        assert old is not None
        self.draft.rewrite(concept_id, Node(concept, old.n, self.draft.op))

    def _remove(self, concept_id: str) -> None:
        concept_id = self._meant(concept_id)
        if self.draft.node(concept_id) is None:
            return
        for pair in self._around(concept_id):
            self.draft.cut_link(pair)
        self._forget(concept_id)
        self.result["removed"].append(concept_id)

    def _forget(self, concept_id: str) -> None:
        """Take out a concept without edges, with its place in the frontier; what was folded into it means itself again."""
        draft = self.draft
        draft.need_redirects((), (concept_id,))
        for fold in draft.folded_into(concept_id):
            draft.redirect(fold, None)
        _take_out(draft, concept_id)

    def _meant(self, concept_id: str) -> str:
        self.draft.need_kept((concept_id,))
        return self.draft.kept[concept_id]

    # edges

    def _edges(self, edges: Sequence[Edge], cap: int | None) -> None:
        draft = self.draft
        draft.need_kept(end for edge in edges for end in (edge.parent, edge.child))
        spans = folded_spans(((e.parent, e.child, e.spans) for e in edges), draft.kept)
        draft.need_levels(end for pair in spans for end in pair)
        draft.need_links(spans)
        doubtful = [(p, c) for p, c in spans if draft.level.get(p, -1) >= draft.level.get(c, 1 << 60)]
        draft.need_parents([p for p, c in doubtful if draft.children.get(c, True)])
        for pair, found in spans.items():
            self._edge(pair, found, cap)

    def _edge(self, pair: Pair, spans: tuple[SourceSpan, ...], cap: int | None) -> None:
        draft, (parent, child) = self.draft, pair
        if draft.links[pair] is not None:
            self._add_spans(pair, spans)
        elif cap is not None and {parent, child} & set(self.result["dropped"]):
            self.decided.append(dropped_edge(Edge(parent=parent, child=child), cap))
        elif parent not in draft.level or child not in draft.level:
            self._refuse(pair, spans, "missing end")
        elif dag.closes(draft, parent, child):
            self._refuse(pair, spans, "cycle")
        else:
            self._link(pair, bounded_spans((), spans))
            self.result["linked"].append(edge_id(pair))

    def _refuse(self, pair: Pair, spans: tuple[SourceSpan, ...], reason: str) -> None:
        edge = Edge(parent=pair[0], child=pair[1], spans=spans)
        self.result["refused"].append(edge)
        self.decided.append(refused_edge(edge, reason))

    def _link(self, pair: Pair, spans: tuple[SourceSpan, ...] | str) -> None:
        self.draft.add_link(pair, Link(spans, self.draft.next_n(), self.draft.op))

    def _add_spans(self, pair: Pair, spans: Iterable[SourceSpan]) -> None:
        link = self.draft.links[pair]
        assert link is not None
        if (wider := bounded_spans(link.spans, spans)) != link.spans:
            self.draft.set_link(pair, Link(wider, link.n, self.draft.op))

    def _unlink(self, pairs: Sequence[Pair]) -> None:
        self.draft.need_kept(end for pair in pairs for end in pair)
        meant = list(dict.fromkeys((self.draft.kept[p], self.draft.kept[c]) for p, c in pairs))
        self.draft.need_links(meant)
        self.draft.need_levels(end for pair in meant for end in pair)
        for pair in meant:
            if self.draft.links[pair] is not None:
                self.draft.cut_link(pair)
                self.result["unlinked"].append(edge_id(pair))

    def _around(self, concept_id: str) -> list[Pair]:
        """The edges into and out of a concept, read."""
        self.draft.need_parents((concept_id,))
        self.draft.need_children((concept_id,))
        pairs = self._at(concept_id)
        self.draft.need_links(pairs)
        return pairs

    def _at(self, concept_id: str) -> list[Pair]:
        parents = [(parent, concept_id) for parent in self.draft.parents[concept_id]]
        return parents + [(concept_id, child) for child in self.draft.children[concept_id]]

    # merges and splits

    def _merges(self, merges: Sequence[tuple[str, str]]) -> None:
        draft = self.draft
        draft.need_kept(i for pair in merges for i in pair)
        meant = [(draft.kept[keep], draft.kept[fold]) for keep, fold in merges]
        ids, folds = list(dict.fromkeys(i for pair in meant for i in pair)), list(dict.fromkeys(f for _, f in meant))
        draft.need_nodes(ids)
        present = [i for i in folds if draft.nodes[i]]
        draft.need_parents(present)
        draft.need_children(present)
        draft.need_parents({child for fold in present for child in draft.children[fold]})
        edges = [
            (pair, _moved(pair, fold, keep)) for keep, fold in meant if draft.nodes[fold] for pair in self._at(fold)
        ]
        draft.need_links({pair for both in edges for pair in both})
        draft.need_queued(ids)
        draft.need_vectors(folds)
        draft.need_redirects(ids, ids)
        for keep, fold in merges:
            self._merge(draft.kept[keep], draft.kept[fold])

    def _merge(self, keep: str, fold: str) -> None:
        kept, folded = self.draft.node(keep), self.draft.node(fold)
        if keep == fold or not kept or not folded:
            return  # done already, or nothing to fold
        if dag.merge_path(self.draft, keep, fold):
            self.decided.append(refused_merge(keep, fold))
            return
        around = self._around(fold)
        parents, children = list(self.draft.parents[fold]), list(self.draft.children[fold])
        self._repoint(keep, fold, around)
        self._redirect(keep, fold)
        self._move_item(keep, fold)
        self._rewrite(keep, absorb(kept.concept, folded.concept))
        self.draft.delete(fold)
        self.decided.append(merged_concept(keep, fold, folded.concept, parents, children))
        self.result["merged"].append(fold)

    def _repoint(self, keep: str, fold: str, old: Sequence[Pair]) -> None:
        """Move edges to `keep`: those that exist there gain the spans, those between the two go. New ones first, so that
        no level comes up only to go down again."""
        moves = {pair: _moved(pair, fold, keep) for pair in old}
        self.draft.need_links(moves.values())
        for pair, (parent, child) in moves.items():
            link = self.draft.links[pair]
            assert link is not None
            if self.draft.links[parent, child] is not None:
                self._add_spans((parent, child), link.spans)
            elif parent != child:
                self._link((parent, child), link.json)
        for pair in moves:
            self.draft.cut_link(pair)

    def _redirect(self, keep: str, fold: str) -> None:
        """`fold`, and whatever was folded into it before, means `keep` now."""
        for older in self.draft.folded_into(fold):
            self.draft.redirect(older, (keep, self.draft.merged[older][1]))
        self.draft.redirect(fold, (keep, self.draft.next_n()))

    def _move_item(self, keep: str, fold: str) -> None:
        self.draft.need_queued((keep, fold))
        item = self.draft.queue[fold]
        if item is None:
            return
        self.draft.enqueue(fold, None)
        if self.draft.queue[keep] is None:
            self.draft.enqueue(keep, item)

    def _split(self, split: Split) -> None:
        old_id, new_id = self._meant(split.concept), self._meant(split.into.id)
        old = self.draft.node(old_id)
        if old is None or self.draft.node(new_id) is not None:
            return  # nothing to split, or done already
        around = self._around(old_id)
        parents, children = (
            [side for side in dict.fromkeys(map(self._meant, ids)) if side in there]
            for ids, there in (
                (split.parents, {p for p, _ in around if p != old_id}),
                (split.children, {c for _, c in around if c != old_id}),
            )
        )
        self._insert(new_id, split.into)
        for pair, moved_to in [((p, old_id), (p, new_id)) for p in parents] + [
            ((old_id, c), (new_id, c)) for c in children
        ]:
            link = self.draft.links[pair]
            assert link is not None
            self.draft.need_links((moved_to,))
            self._link(moved_to, link.json)
            self.draft.cut_link(pair)
        if (rest := without_names(old.concept, split.into)) != old.concept:
            self._rewrite(old_id, rest)
        self.decided.append(split_concept(old_id, new_id, split.into, parents, children))

    # records and the frontier

    def _decide(self, decisions: Iterable[Decision]) -> None:
        self.draft.add_decisions((d.id, evidence_to_json(d), d) for d in decisions)

    def _frontier(self, enqueue: Sequence[FrontierItem], done: Sequence[str], reopen: Sequence[str]) -> None:
        draft = self.draft
        named = [*(item.concept for item in enqueue), *done, *reopen]
        draft.need_kept(named)
        draft.need_queued({draft.kept[i] for i in named})
        draft.need_levels(draft.kept[item.concept] for item in enqueue)
        for item in enqueue:
            concept_id = draft.kept[item.concept]
            if draft.queue[concept_id] is None and concept_id in draft.level:
                draft.enqueue(concept_id, Queued(draft.next_n(), item.depth, "waiting", item.attempts, 0))
        for concept_id in dict.fromkeys(draft.kept[i] for i in done):
            waiting = draft.queue[concept_id]
            if waiting is not None and waiting.state != "done":
                draft.enqueue(concept_id, moved(waiting, state="done", owner="", until=0.0))
        for concept_id in dict.fromkeys(draft.kept[i] for i in reopen):
            finished = draft.queue[concept_id]
            if finished is not None and finished.state == "done":
                draft.enqueue(concept_id, moved(finished, state="waiting", attempts=0))


def _moved(pair: Pair, fold: str, keep: str) -> Pair:
    return keep if pair[0] == fold else pair[0], keep if pair[1] == fold else pair[1]


def _take_out(draft: Draft, concept_id: str) -> None:
    """A concept without edges, with its place in the frontier."""
    draft.need_queued((concept_id,))
    if draft.queue[concept_id] is not None:
        draft.enqueue(concept_id, None)
    draft.delete(concept_id)


def edge_id(pair: Pair) -> str:
    return content_id("e", *pair)


# taking back


def undo(
    draft: Draft, operation: Operation, later: Sequence[Operation], before: Callable[[int], Mapping[str, Any]]
) -> CommitResult:
    """Make everything that `operation` altered what it was before.

    later: the operations after it, oldest first; before: reads the `before` of an operation in the log. Raises UndoError and
    CycleError; the draft is worth nothing then.
    """
    return _Undo(draft, operation, later, before).apply()


def in_force(operations: Sequence[Operation]) -> list[Operation]:
    """Successive operations, oldest first, without those of them that were taken back and what took them back."""
    there, void = {operation.op for operation in operations}, set()
    for operation in reversed(operations):
        if operation.undoes in there and operation.op not in void:
            void |= {operation.op, operation.undoes}
    return [operation for operation in operations if operation.op not in void]


class _Undo:
    def __init__(
        self, draft: Draft, operation: Operation, later: Sequence[Operation], log: Callable[[int], Mapping[str, Any]]
    ) -> None:
        self.draft, self.operation, self.later, self.log = draft, operation, in_force(later), log
        self.before = before = log(operation.op)
        self.gone = set(before["gone"])
        self.cut = {_pair(text) for text in before["cut"]}
        self.old_edges = {_pair(text): row for text, row in before["edge"].items()}

    def apply(self) -> CommitResult:
        self._read()
        self._refuse_if_altered_since()
        unlinked = [pair for pair in self.operation.edges if pair not in self.old_edges and pair not in self.cut]
        removed = [i for i in self.operation.concepts if i not in self.before["concept"] and i not in self.gone]
        for pair in unlinked:
            self.draft.cut_link(pair)
        self._remove(removed)
        self._redirect()
        added = self._restore_concepts()
        linked = self._restore_edges()
        self._restore_frontier()
        return CommitResult(
            op=self.draft.op, added=tuple(added), linked=tuple(map(edge_id, linked)), removed=tuple(removed),
            unlinked=tuple(map(edge_id, unlinked)),
        )  # fmt: skip

    def _read(self) -> None:
        draft, operation = self.draft, self.operation
        ends = {end for pair in operation.edges for end in pair}
        draft.need_nodes(operation.concepts)
        draft.need_levels(ends)
        draft.need_links(operation.edges)
        present = [i for i in {*operation.concepts, *ends} if i in draft.level]
        draft.need_children(present)
        draft.need_parents(present)
        folds = list(self.before["merged"])
        draft.need_redirects(folds, operation.concepts)
        draft.need_queued({*self.before["frontier"], *operation.concepts})

    def _refuse_if_altered_since(self) -> None:
        concepts = {concept_id for later in self.later for concept_id in later.concepts}
        edges = {pair for later in self.later for pair in later.edges}
        for concept_id in self.operation.concepts:
            node, left = self.draft.nodes[concept_id], self._left(concept_id)
            as_left = (node is None) == (concept_id in self.gone) and (not node or node.version == left)
            if concept_id in concepts or not as_left:
                raise self._conflict(f"concept {concept_id}", lambda later, i=concept_id: i in later.concepts)
        for pair in self.operation.edges:
            link = self.draft.links[pair]
            left = self._left(f"{pair[0]} {pair[1]}")
            as_left = (link is None) == (pair in self.cut) and (not link or link.version == left)
            if pair in edges or not as_left:
                raise self._conflict(f"edge {pair[0]} -> {pair[1]}", lambda later, p=pair: p in later.edges)
        for fold in self.before["merged"]:
            if fold in concepts:
                raise self._conflict(f"concept {fold}", lambda later, i=fold: i in later.concepts)
        for concept_id, left in self.before["queued"].items():
            if membership(self.draft.queue[concept_id]) != left or (left is None and self._came_and_went(concept_id)):
                raise self._conflict(
                    f"the frontier item of concept {concept_id}", lambda later, i=concept_id: self._queued(later, i)
                )

    def _came_and_went(self, concept_id: str) -> bool:
        """Whether a concept had a frontier item since. Not asked of those that the operation altered: they would show it."""
        return concept_id not in self.operation.concepts and any(self._queued(o, concept_id) for o in self.later)

    def _queued(self, later: Operation, concept_id: str) -> bool:
        return concept_id in self.log(later.op).get("frontier", ())

    def _left(self, key: str) -> int:
        """The version in which the operation left something."""
        return self.before["version"].get(key, self.operation.op)

    def _conflict(self, what: str, touches: Any) -> UndoError:
        op = self.operation.op
        later = next((later.op for later in reversed(self.later) if touches(later)), None)
        first = f"undo operation {later} first" if later else "the graph was altered past the log; run `kgsynth doctor`"
        return UndoError(f"operation {op} cannot be undone: {what} was altered since; {first}", later)

    def _remove(self, ids: Sequence[str]) -> None:
        draft = self.draft
        for concept_id in ids:
            for other in (*draft.parents[concept_id], *draft.children[concept_id]):
                raise self._conflict(
                    f"concept {concept_id}, which it added,",
                    lambda later, i=concept_id, o=other: (i, o) in later.edges or (o, i) in later.edges,
                )
            _take_out(draft, concept_id)

    def _redirect(self) -> None:
        for fold, row in self.before["merged"].items():
            self.draft.redirect(fold, row and (row["keep"], row["n"]))

    def _restore_concepts(self) -> list[str]:
        added = []
        for concept_id, row in self.before["concept"].items():
            node = Node(rows.to_concept(row), row["n"], row["version"])
            if self.draft.nodes[concept_id] is None:
                self.draft.insert(concept_id, node)
                added.append(concept_id)
            else:
                self.draft.rewrite(concept_id, node)
        for concept_id, vector in self.before["embedding"].items():
            self.draft.restore_vector(concept_id, vector)
        return added

    def _restore_edges(self) -> list[Pair]:
        for pair, row in self.old_edges.items():
            link = Link(row["spans"], row["n"], row["version"])
            if self.draft.links[pair] is not None:
                self.draft.set_link(pair, link)
            else:
                self._relink(pair, link)
        return [pair for pair in self.old_edges if pair in self.cut]

    def _relink(self, pair: Pair, link: Link) -> None:
        if missing := [end for end in pair if end not in self.draft.level]:
            raise self._conflict(f"concept {missing[0]}", lambda later: missing[0] in later.concepts)
        if way := dag.closes(self.draft, *pair):
            raise CycleError(*pair, way)
        self.draft.add_link(pair, link)

    def _restore_frontier(self) -> None:
        """An item that waits again keeps the token of its last lease; one that is done again has that of who finished it, so
        that whoever holds it by now comes too late."""
        for concept_id, row in self.before["frontier"].items():
            now = self.draft.queue[concept_id]
            item = to_queued(row) if row else None
            if item and now and item.state != "done":
                item = moved(item, token=now.token)
            self.draft.enqueue(concept_id, item)


def _pair(text: str) -> Pair:
    parent, child = text.split(" ")
    return parent, child
