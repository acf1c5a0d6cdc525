"""The offline corpus as one provider among others."""

from __future__ import annotations

from kgsynth.errors import ConfigError
from kgsynth.web import Hit
from kgsynth.web.providers import Line, ProviderConfig, register


@register
class CorpusProvider:
    name = "corpus"

    def __init__(self, config: ProviderConfig, line: Line) -> None:
        if line.corpus is None:
            raise ConfigError(f"{config.where} this run has no corpus; see [corpus]")
        self._corpus = line.corpus

    def busy(self) -> float:
        return 0.0

    async def search(self, query: str, k: int) -> list[Hit]:
        return await self._corpus.search(query, k)
