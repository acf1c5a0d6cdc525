"""The offline corpus behind the web protocols: the documentation inside the running Python, and folders given by path."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from urllib.parse import urldefrag

from kgsynth.embed import Embedder
from kgsynth.errors import CorpusError, WebError
from kgsynth.web import Fetched, Hit
from kgsynth.web.document import Document
from kgsynth.web.folders import Skipped, folder_documents
from kgsynth.web.pydocs import python_documents
from kgsynth.web.search import CorpusSearch
from kgsynth.web.vectors import PageVectors, cache_folder


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """`[corpus]` of a run: what is in the corpus and what may be said about its licence."""

    builtin: bool = True  # the documentation of the running Python
    paths: tuple[str, ...] = ()  # folders, files, or dictd indexes
    licence: str = ""  # of everything under `paths`; empty: detected
    max_file_kb: int = 2048  # larger files are skipped
    cache: bool = True  # keep page vectors between runs under $XDG_CACHE_HOME/kgsynth


class Corpus:
    """SearchProvider and Fetcher over one set of documents."""

    name = "corpus"

    def __init__(self, documents: list[Document], search: CorpusSearch, skipped: list[tuple[str, str]]) -> None:
        self._documents = {document.url: document for document in documents}
        self._search = search
        self.skipped = skipped  # (path, reason) of the files left out

    @property
    def pages(self) -> int:
        return len(self._documents)

    def urls(self) -> list[str]:
        """Every page, sorted."""
        return sorted(self._documents)

    async def search(self, query: str, k: int) -> list[Hit]:
        return await self._search.search(query, k)

    async def fetch(self, url: str) -> Fetched:
        """The page behind a URL, fragment ignored. Raises WebError when the corpus does not have it."""
        document = self._documents.get(urldefrag(url).url)
        if document is None:
            raise WebError(f"{url}: not in the offline corpus ({self.pages} pages)")
        try:
            body = document.read()
        except OSError as error:
            raise WebError(f"{url}: the file can no longer be read: {error}") from error
        return Fetched(
            url=document.url,
            body=body,
            content_type=document.content_type,
            licence=document.licence,
            retrieved_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )


def open_corpus(config: CorpusConfig, embedder: Embedder) -> Corpus:
    """Build the corpus a config describes. Raises CorpusError when a path is missing or the corpus would be empty."""
    skipped = Skipped()
    documents = python_documents() if config.builtin else []
    for path in config.paths:
        documents += folder_documents(
            path, licence=config.licence, max_bytes=config.max_file_kb * 1024, skipped=skipped
        )
    if not documents:
        raise CorpusError("the corpus has no page: set [corpus] builtin = true, or give folders in [corpus] paths")
    vectors = PageVectors(embedder, cache_folder() if config.cache else None)
    return Corpus(documents, CorpusSearch(documents, vectors), skipped.reasons)
