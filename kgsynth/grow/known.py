"""What the graph holds already, as the dedup cascade sees it, as of one operation of the store.

Other workers add to the graph as well, from other processes and machines. Before an agent compares its proposals it catches
up with them; its commit says as of which operation it compared (`Change.as_of`), and is refused when it was too late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kgsynth.concept import Concept
from kgsynth.dedup import Alignment, Dedup, DedupConfig
from kgsynth.embed import Embedder
from kgsynth.store import CommitResult, GraphStore


class Known:
    """The concepts of a store in a Dedup, kept up to date. Belongs to one event loop."""

    def __init__(self, store: GraphStore, embedder: Embedder, config: DedupConfig) -> None:
        self._store, self.dedup = store, Dedup(embedder, config)
        self._model, self._slow = embedder.name, not embedder.name.startswith("hashing")
        self.as_of = store.version()
        self._tried: set[str] = set()  # ids of `try_out`
        self.dedup.add(*store.concepts())

    async def catch_up(self) -> None:
        """Take in what others have committed. Embeds in a thread: it may be many."""
        self.give_up()
        if self._store.version() == self.as_of:
            return
        touched = self._store.touched(self.as_of)
        there = self._store.concepts(touched.concepts)
        if gone := touched.concepts.difference(c.id for c in there):
            self.dedup.forget(gone)
        await asyncio.to_thread(self.dedup.add, *there)
        self.as_of = touched.op

    def try_out(self, concept: Concept) -> None:
        """Take in a new concept before it is committed, so that the next candidates of the same agent are compared with it."""
        self.dedup.add(concept)
        self._tried.add(concept.id)

    def give_up(self) -> None:
        """Forget what was tried out and not committed."""
        if self._tried:
            self.dedup.forget(self._tried)
            self._tried = set()

    async def prepare(self, candidates: Sequence[Concept]) -> None:
        """Embed candidates ahead of `align`, in a thread where a model does it."""
        await asyncio.to_thread(self.dedup.prepare, candidates) if self._slow else self.dedup.prepare(candidates)

    def align(self, candidate: Concept) -> Alignment:
        return self.dedup.align(candidate)

    def keep_vectors(self) -> None:
        """Store the vectors that are not stored yet."""
        stored = set(self._store.embeddings()[1])
        ids, vectors = self.dedup.vectors()
        missing = [row for row, concept_id in enumerate(ids) if concept_id not in stored]
        if missing:
            self._store.put_embeddings(self._model, [ids[row] for row in missing], vectors[missing])

    def wrote(self, children: Sequence[Concept], result: CommitResult) -> None:
        """Take in what one's own commit wrote, unless others came between: then `catch_up` will read it."""
        kept = self._tried.intersection(result.added)
        self._tried -= kept
        self.give_up()
        if result.op == self.as_of + 1:
            self.dedup.add(*(c for c in children if c.id not in kept and c.id not in result.dropped))
            self.as_of = result.op
