"""`[web]` of a recipe: what is refused before anything runs, and what is opened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kgsynth.config import build
from kgsynth.embed import open_embedder
from kgsynth.errors import ConfigError, WebError
from kgsynth.web.archive import Archive
from kgsynth.web.corpus import Corpus, CorpusConfig, open_corpus
from kgsynth.web.open import Web, WebConfig, open_archive, open_web
from tests.search_server import PROTOCOLS, SearchServer, docs_for


def web(*providers: dict[str, Any], **more: Any) -> WebConfig:
    return build(WebConfig, {"providers": list(providers), **more}, "[web]")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "merge.md").write_text("# Merge sort\n\nMerge sort is a stable sort that merges sorted halves.\n")
    config = CorpusConfig(builtin=False, paths=(str(folder),), cache=False)
    return open_corpus(config, open_embedder("hashing"))


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ({"name": "gogle"}, r"\[\[web.providers\]\] name: 'gogle' is not one of arxiv, brave"),
        ({"share": 1.0}, "name"),
        ({"name": "exa", "share": 0}, r"\[\[web.providers\]\] exa: share must be above 0"),
        ({"name": "exa", "share": -1.0}, "share"),
        ({"name": "exa", "shares": 1.0}, r"providers\[0\].*unknown key 'shares'; did you mean 'share'"),
        ({"name": "exa", "share": "half"}, r"providers\[0\].*share must be of type float|a float|number"),
        ({"name": "exa", "base_url": "api.exa.ai"}, "exa: base_url must be like https://host"),
        ({"name": "exa", "base_url": "https://"}, "exa: base_url"),
        ({"name": "exa", "base_url": "http://host:port"}, "exa: base_url"),
        ({"name": "exa", "per_second": -1}, "exa: per_second"),
        ({"name": "exa", "max_queries": -1}, "exa: max_queries"),
        ({"name": "exa", "usd_per_1k": -0.1}, "exa: usd_per_1k"),
        ({"name": "exa", "timeout_seconds": 0}, "exa: timeout_seconds"),
    ],
)
def test_a_provider_that_cannot_be(provider: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        web(provider)


def test_a_login_in_an_address_is_not_repeated() -> None:
    with pytest.raises(ConfigError, match="a login") as caught:
        web({"name": "exa", "base_url": "https://me:secret@api.exa.ai"})
    assert "secret" not in str(caught.value)


def test_a_provider_twice() -> None:
    with pytest.raises(ConfigError, match="'exa' is there twice"):
        web({"name": "exa"}, {"name": "exa"})


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ({"name": "exa"}, "exa: api_key_env: the environment variable EXA_API_KEY is not set"),
        ({"name": "exa", "api_key_env": "MY_KEY"}, "exa: api_key_env: the environment variable MY_KEY is not set"),
        ({"name": "github", "api_key_env": "MY_KEY"}, "github: api_key_env: .* MY_KEY is not set"),
        ({"name": "searxng"}, "searxng: base_url is missing"),
        ({"name": "corpus"}, "corpus: this run has no corpus"),
    ],
)
def test_what_is_missing_is_said_before_anything_runs(
    provider: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("EXA_API_KEY", "GITHUB_TOKEN", "MY_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ConfigError, match=told):
        open_web(web(provider))


@pytest.mark.parametrize("key", ["sk-1\r\nX-Evil: 1", "schlüssel"])
def test_a_key_that_cannot_be_one_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXA_API_KEY", key)
    with pytest.raises(ConfigError, match="EXA_API_KEY") as caught:
        open_web(web({"name": "exa"}))
    assert key not in str(caught.value)


def test_no_providers_is_the_corpus(corpus: Corpus) -> None:
    opened = open_web(WebConfig(), corpus=lambda: corpus, offline=True)
    assert opened == Web(corpus, corpus)
    assert open_archive(WebConfig()) is None
    with pytest.raises(ConfigError, match="providers is empty"):
        open_web(WebConfig())


def test_offline_without_an_archive() -> None:
    with pytest.raises(ConfigError, match="archive"):
        open_web(web({"name": "wikipedia"}), offline=True)


def test_where_the_archive_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    provider = {"name": "wikipedia"}
    kept = open_archive(web(provider))
    assert kept
    assert kept.path.is_relative_to(tmp_path / "cache")
    named = open_archive(web(provider, archive=str(tmp_path / "mine.sqlite")))
    assert named
    assert named.path == tmp_path / "mine.sqlite"
    assert open_archive(web(provider, archive=False)) is None


def test_the_corpus_in_a_mix_is_searched_and_fetched(corpus: Corpus, tmp_path: Path) -> None:
    """The corpus and a web search take turns; a page goes to whoever has it. Offline the same without the server."""
    config_of = {"name": "searxng", "share": 1.0}

    async def work(config: WebConfig, archive: Archive, offline: bool) -> list[str]:
        async with open_web(config, corpus=corpus, archive=archive, offline=offline) as (search, fetcher):
            hits = [await search.search(f"merge sort {i}", 2) for i in range(4)]
            page = await fetcher.fetch(corpus.urls()[0])
            assert b"stable" in page.body
            with pytest.raises(WebError):
                await fetcher.fetch("http://nowhere.invalid/")
            return [hit.url for found in hits for hit in found]

    with SearchServer(lambda request: PROTOCOLS["searxng"](request, docs_for("searxng", 2))) as server:
        config = web({**config_of, "base_url": server.url}, {"name": "corpus", "share": 1.0})
        online = asyncio.run(work(config, Archive(tmp_path / "web.sqlite"), offline=False))
        assert len(server.requests) == 2
    assert online == ["https://example.org/0", "https://example.org/1", corpus.urls()[0]] * 2
    assert asyncio.run(work(config, Archive(tmp_path / "web.sqlite"), offline=True)) == online


def test_a_recipe_s_table_survives_being_saved() -> None:
    """What a run saves as its configuration reads back as the same configuration."""
    import tomllib

    from kgsynth.config import to_toml

    config = web(
        {"name": "searxng", "share": 0.7, "base_url": "http://localhost:8888", "parameters": {"engines": "mojeek"}},
        {"name": "wikipedia", "share": 0.3, "per_second": 2, "usd_per_1k": 0.0},
        http={"interval_seconds": 0.0},
    )
    assert build(WebConfig, tomllib.loads(to_toml({"web": config}))["web"], "[web]") == config
