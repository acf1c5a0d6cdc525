"""Every search provider against a server that speaks its protocol: one recorded answer, paging, empty results, refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from kgsynth.errors import BudgetError, ConfigError, WebError
from kgsynth.web import Hit
from kgsynth.web.archive import Archive
from kgsynth.web.providers import REGISTRY, Charge, Line, ProviderConfig, register
from kgsynth.web.providers.api import Api, ProviderError, clean_text, clean_url
from kgsynth.web.providers.arxiv import _terms
from tests.search_server import KEY, PROTOCOLS, Reply, Request, SearchServer, docs_for

pytest.importorskip("ddgs")
RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(PROTOCOLS)
JSON_NAMES = [name for name in NAMES if name not in ("arxiv", "duckduckgo")]
VARIABLES = {name: provider.key_env for name, provider in REGISTRY.items() if issubclass(provider, Api)}
WITH_KEY = sorted(name for name, variable in VARIABLES.items() if variable)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WITH_KEY:
        monkeypatch.setenv(VARIABLES[name], KEY)


def recorded(name: str) -> bytes:
    return next(RECORDED.glob(f"{name}.*")).read_bytes()


def search(
    name: str, server: SearchServer | str, query: str = "merge sort", k: int = 10, max_kb: int = 2048, **config: Any
) -> list[Hit]:
    """One query to one provider, at full speed unless `config` says otherwise."""
    url = server if isinstance(server, str) else server.url
    built = ProviderConfig(**{"name": name, "base_url": url, "per_second": 0.0, **config})
    return asyncio.run(_search(built, query, k, max_kb))


async def _search(
    config: ProviderConfig, query: str, k: int, max_kb: int = 2048, charge: Charge | None = None
) -> list[Hit]:
    async with httpx.AsyncHTTPTransport() as transport:
        line = Line(transport=transport, user_agent="kgsynth/test", max_kb=max_kb, charge=charge)
        return await REGISTRY[config.name](config, line).search(query, k)


def refused(name: str, reply: Reply, **config: Any) -> WebError:
    """What a provider raises when everything is answered with `reply`."""
    with SearchServer(lambda request: reply) as server, pytest.raises(WebError) as caught:
        search(name, server, **config)
    return caught.value


MERGE, TIM = "https://example.org/merge", "https://example.org/tim"
EXPECTED = {
    "tavily": [
        (MERGE, "Merge sort", "Merge sort is stable & needs std::vector<int> space."),
        (f"{TIM}?a=1&b=2", "Timsort", "A hybrid of merge and insertion sort."),
    ],
    "exa": [(MERGE, "Merge sort", "Merge sort is stable. … It needs linear space."), (TIM, TIM, "")],
    "brave": [(MERGE, "Merge sort", "Merge sort is stable & needs a <list>."), (TIM, "Timsort", "")],
    "serper": [(MERGE, "Merge sort", "Merge sort is stable."), (TIM, "Timsort", "")],
    "searxng": [(MERGE, "Merge sort", "Merge sort is stable."), (TIM, "Timsort", "")],
    "wikipedia": [
        ("{server}/wiki/Merge_sort", "Merge sort", "In computer science, merge sort is stable & general."),
        ("{server}/wiki/C%2B%2B/STL%3F_(sort)", "C++/STL? (sort)", ""),
    ],
    "arxiv": [
        ("https://arxiv.org/abs/2401.00001v2", "Merge sort, revisited", "We show that merge sort is stable & fast. Twice."),
        ("https://arxiv.org/abs/cs/0101001v1", "Timsort", ""),
    ],
    "openalex": [
        (MERGE, "Merge sort", "Merge sort is stable"),
        ("https://doi.org/10.1/tim", "Timsort", ""),
        ("https://openalex.org/W3", "https://openalex.org/W3", ""),
    ],
    "semanticscholar": [
        ("https://arxiv.org/abs/2401.00001", "Merge sort", "Merge sort is stable."),
        ("https://example.org/tim.pdf", "Timsort", ""),
        ("https://www.semanticscholar.org/paper/a3", "Heap sort", ""),
    ],
    "github": [
        ("https://github.com/octo/sort", "octo/sort", "Merge sort & friends"),
        ("https://github.com/octo/tim", "octo/tim", ""),
    ],
    "duckduckgo": [(MERGE, "Merge sort", "Merge sort is stable."), (TIM, "Timsort", "A hybrid.")],
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_answer_becomes_hits(name: str) -> None:
    pages = iter([Reply(body=recorded(name))])
    last = {"serper": b'{"searchParameters": {}, "organic": []}', "searxng": b'{"results": []}'}
    with SearchServer(lambda request: next(pages, Reply(body=last.get(name, recorded(name))))) as server:
        hits = search(name, server)
    wanted = [(url.format(server=server.url), title, snippet) for url, title, snippet in EXPECTED[name]]
    assert [(hit.url, hit.title, hit.snippet) for hit in hits] == wanted
    assert [hit.score for hit in hits] == [1, 1 / 2, 1 / 3][: len(hits)]


@pytest.mark.parametrize("name", NAMES)
def test_paging(name: str) -> None:
    page = getattr(REGISTRY[name], "page", 10)
    k = 2 * page + 5 if name not in ("tavily", "exa") else page
    pages = docs_for(name, k + 100)
    with SearchServer(lambda request: PROTOCOLS[name](request, pages)) as server:
        pages[:] = docs_for(name, k + 100, server.url)
        hits = search(name, server, k=k)
        asked = len(server.requests)
    assert [(hit.url, hit.title, hit.snippet) for hit in hits] == [(d.url, d.title, d.snippet) for d in pages[:k]]
    assert asked == (1 if name in ("tavily", "exa") else 2 if name == "duckduckgo" else 3)


@pytest.mark.parametrize("name", NAMES)
def test_the_results_end_before_k(name: str) -> None:
    with SearchServer(lambda request: PROTOCOLS[name](request, docs_for(name, 13))) as server:
        assert len(search(name, server, k=60)) == 13


@pytest.mark.parametrize("name", NAMES)
def test_nothing_found(name: str) -> None:
    with SearchServer(lambda request: PROTOCOLS[name](request, [])) as server:
        assert search(name, server) == []
        assert len(server.requests) == 1


@pytest.mark.parametrize("name", NAMES)
def test_pages_that_repeat_themselves_end(name: str) -> None:
    page = getattr(REGISTRY[name], "page", 10)
    same = docs_for(name, page)

    def repeat(request: Request) -> Reply:
        if name == "searxng":
            request.params["pageno"] = "1"
        return PROTOCOLS[name](request, same * 100)

    with SearchServer(repeat) as server:
        assert len(search(name, server, k=5 * page)) == page
        assert len(server.requests) <= 6


@pytest.mark.parametrize("name", NAMES)
def test_more_than_a_provider_has(name: str) -> None:
    most = getattr(REGISTRY[name], "most", 0)
    with SearchServer(lambda request: PROTOCOLS[name](request, docs_for(name, most + 100))) as server:
        hits = search(name, server, k=10 * most)
    assert len(hits) == most


RESULTS = {  # where the list of results is, and the field with a result's address
    "tavily": ("results", "url"), "exa": ("results", "url"), "brave": ("web.results", "url"),
    "serper": ("organic", "link"), "searxng": ("results", "url"), "wikipedia": ("query.search", "title"),
    "openalex": ("results", "id"), "semanticscholar": ("data", "url"), "github": ("items", "html_url"),
}  # fmt: skip


def damaged(name: str, how: str) -> bytes:
    answer = json.loads(recorded(name))
    path, field = RESULTS[name]
    *above, last = path.split(".")
    holder = answer
    for key in above:
        holder = holder[key]
    rows = holder[last]
    if how == "no list":
        holder[last] = "nothing"
    elif how == "no objects":
        holder[last] = [["https://example.org/merge"]]
    elif how == "null":
        holder[last] = None
    elif how == "no address":
        rows[-1].update({"open_access": None, "doi": None, "openAccessPdf": None, "externalIds": None, field: None})
    elif how == "wrong address":
        rows[-1].update({"open_access": None, "doi": None, "openAccessPdf": None, "externalIds": None, field: 7})
    return json.dumps(answer).encode()


@pytest.mark.parametrize("how", ["no list", "no objects", "null", "no address", "wrong address"])
@pytest.mark.parametrize("name", JSON_NAMES)
def test_an_answer_of_another_form(name: str, how: str) -> None:
    error = refused(name, Reply(body=damaged(name, how)))
    assert error.cause == "malformed answer", error


@pytest.mark.parametrize(
    "body", [b"<!DOCTYPE html><html><body>Sign in</body></html>", b"", b"[]", b"{}", b"null", b"7", b"[" * 100_000]
)
@pytest.mark.parametrize("name", NAMES)
def test_something_else_than_an_answer(name: str, body: bytes) -> None:
    error = refused(name, Reply(body=body))
    assert error.cause == "malformed answer", error
    assert len(str(error)) < 500


@pytest.mark.parametrize("name", [*JSON_NAMES, "arxiv"])
def test_a_truncated_answer(name: str) -> None:
    assert refused(name, Reply(body=recorded(name)[:-40])).cause == "malformed answer"


@pytest.mark.parametrize("name", NAMES)
def test_a_huge_answer(name: str) -> None:
    many = Reply(body=b" " * 65536, endless=name != "duckduckgo") if name != "duckduckgo" else Reply(body=b"x" * 99_999)
    error = refused(name, many, max_kb=64)
    assert error.cause == "malformed answer"
    assert "larger than 64 KiB" in str(error)


def test_entities_in_xml_are_not_resolved() -> None:
    evil = b'<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    body = evil + recorded("arxiv").partition(b"?>")[2].replace(b"Timsort", b"Tim &a; sort")
    with SearchServer(lambda request: Reply(body=body)) as server:
        assert "root:" not in str(search("arxiv", server))


NOW = "x-ratelimit"
QUOTA = [  # provider, status, headers, body, cause, seconds to rest
    ("tavily", 429, {"Retry-After": "60"}, {"detail": {"error": "excessive requests"}}, "rate limit", 60),
    ("tavily", 432, {}, {"detail": {"error": "exceeds your plan's set usage limit"}}, "quota", None),
    ("tavily", 433, {}, {"detail": {"error": "exceeds the pay-as-you-go limit"}}, "quota", None),
    ("exa", 402, {}, {"error": "no credits", "tag": "NO_MORE_CREDITS"}, "quota", None),
    ("exa", 429, {}, {"error": "You've exceeded your Exa rate limit"}, "rate limit", None),
    ("brave", 429, {f"{NOW}-remaining": "1, 0", f"{NOW}-reset": "1, 1419704"}, {}, "quota", 1419704),
    ("brave", 429, {f"{NOW}-remaining": "0, 90", f"{NOW}-reset": "30, 1419704"}, {}, "rate limit", 30),
    ("serper", 400, {}, {"message": "Not enough credits", "statusCode": 400}, "quota", None),
    ("searxng", 429, {"Retry-After": "40"}, "<html>Too many</html>", "rate limit", 40),
    ("searxng", 200, {}, {"results": [], "unresponsive_engines": [["brave", "too many requests"]]}, "rate limit", None),
    ("wikipedia", 429, {"Retry-After": "20"}, "Too many requests", "rate limit", 20),
    ("wikipedia", 200, {}, {"error": {"code": "srsearch-error", "info": "no"}}, "status", None),
    ("arxiv", 429, {}, "Rate exceeded.", "rate limit", None),
    ("arxiv", 503, {"Retry-After": "30"}, "", "rate limit", 30),
    ("openalex", 429, {f"{NOW}-reset": "4000"}, {"error": "Rate limit exceeded"}, "quota", 4000),
    ("openalex", 403, {}, {"error": "Forbidden", "message": "slow down"}, "rate limit", None),
    ("semanticscholar", 429, {}, {"message": "Too Many Requests.", "code": "429"}, "rate limit", None),
    ("github", 403, {f"{NOW}-remaining": "0", f"{NOW}-reset": "99"}, {"message": "API rate limit"}, "rate limit", 99),
    ("github", 403, {}, {"message": "You have exceeded a secondary rate limit."}, "rate limit", 60),
    ("github", 422, {}, {"message": "Validation Failed"}, "status", None),
    ("duckduckgo", 202, {}, "<div class='anomaly-modal'></div>", "rate limit", None),
    ("duckduckgo", 200, {}, "<form id='challenge-form'></form>", "rate limit", None),
    ("duckduckgo", 500, {}, "", "status", None),
]


@pytest.mark.parametrize(("name", "status", "headers", "body", "cause", "rest"), QUOTA)
def test_quotas(name: str, status: int, headers: dict[str, str], body: Any, cause: str, rest: float | None) -> None:
    error = refused(name, Reply(status=status, headers=headers, body=body))
    assert (error.cause, isinstance(error, ProviderError) and error.rest) == (cause, rest)


def test_the_end_of_a_quota_can_be_a_date() -> None:
    headers = {"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"}
    error = refused("exa", Reply(status=429, headers=headers))
    assert isinstance(error, ProviderError)
    assert error.rest
    assert 1e6 < error.rest < math.inf


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("duckduckgo", "arxiv", "wikipedia", "searxng")])
def test_a_refused_key_is_named_by_its_variable_and_not_shown(name: str) -> None:
    error = refused(name, Reply(status=401, body={"error": f"invalid key {KEY}"}))
    assert VARIABLES[name] in str(error)
    assert KEY not in repr(error)
    assert isinstance(error, ProviderError)
    assert error.rest == math.inf


def test_another_variable_for_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRAVE_API_KEY")
    monkeypatch.setenv("MY_KEY", KEY)
    with SearchServer(lambda request: PROTOCOLS["brave"](request, docs_for("brave", 3))) as server:
        assert len(search("brave", server, api_key_env="MY_KEY")) == 3
    assert "MY_KEY" in str(
        refused("brave", Reply(status=422, body='{"code":"SUBSCRIPTION_TOKEN_INVALID"}'), api_key_env="MY_KEY")
    )


@pytest.mark.parametrize("name", WITH_KEY)
def test_keys_stay_out_of_logs_and_errors(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with SearchServer(lambda request: PROTOCOLS[name](request, docs_for(name, 3))) as server:
        assert len(search(name, server)) == 3
    for status in (200, 400, 500):
        assert KEY not in repr(refused(name, Reply(status=status, body=f'{{"error": "{KEY} is wrong"}}')))
    assert caplog.text
    assert KEY not in caplog.text


def test_a_provider_without_key_asks_without(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("openalex", "semanticscholar", "github"):
        monkeypatch.delenv(VARIABLES[name])
        with SearchServer(lambda request, name=name: Reply(body=recorded(name))) as server:
            assert search(name, server)
            assert not {"authorization", "x-api-key"} & set(server.requests[0].headers)
            assert "api_key" not in server.requests[0].params


@pytest.mark.parametrize("name", NAMES)
def test_a_server_that_hangs(name: str) -> None:
    error = refused(name, Reply(body=recorded(name), delay=1.5), timeout_seconds=1.0 if name == "duckduckgo" else 0.05)
    assert error.cause == "timeout"


@pytest.mark.parametrize("name", NAMES)
def test_nobody_listens(name: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(WebError) as caught:
            search(name, f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert caught.value.cause == "connection"


def test_an_error_is_one_harmless_line() -> None:
    error = refused("exa", Reply(status=500, body='{"error": "a\\n\\u001b[31mb\\ud800' + "c" * 999 + '"}'))
    assert str(error) == "status 500: a [31mb" + "c" * 191
    assert str(refused("exa", Reply(status=500, body="<html>" * 99))) == "status 500"


def test_a_redirect_is_not_followed_with_the_key() -> None:
    error = refused("tavily", Reply(status=301, headers={"Location": "http://elsewhere.example/"}))
    assert error.cause == "redirects"
    assert "base_url" in str(error)


def test_a_compressed_answer_is_not_inflated() -> None:
    error = refused("exa", Reply(body=b"\x1f\x8b\x08" + b"\0" * 100, headers={"Content-Encoding": "gzip"}))
    assert error.cause == "malformed answer"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "duckduckgo"])
def test_a_short_slow_down_is_obeyed_once(name: str) -> None:
    slow = Reply(status=429, headers={"Retry-After": "0"})
    answers = [slow, Reply(body=recorded(name))]
    with SearchServer(lambda request: answers[len(server.requests) - 1]) as server:
        assert search(name, server, k=2)
        assert len(server.requests) == 2
    with SearchServer(lambda request: slow) as server, pytest.raises(WebError, match="429"):
        search(name, server)
    assert len(server.requests) == 2


def test_a_long_slow_down_is_not_waited_for() -> None:
    with SearchServer(lambda request: Reply(status=429, headers={"Retry-After": "3600"})) as server:
        with pytest.raises(WebError, match="429"):
            search("exa", server)
        assert len(server.requests) == 1


def test_money_is_asked_for_before_every_request() -> None:
    spent: list[tuple[str, float]] = []

    async def charge(provider: str, usd: float) -> None:
        if len(spent) == 2:
            raise BudgetError("no more")
        spent.append((provider, usd))

    with SearchServer(lambda request: PROTOCOLS["brave"](request, docs_for("brave", 200))) as server:
        config = ProviderConfig(name="brave", base_url=server.url, usd_per_1k=3.0)
        with pytest.raises(BudgetError):
            asyncio.run(_search(config, "merge sort", 60, charge=charge))
        assert spent == [("brave", 0.003)] * 2
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("name", "config", "k", "usd"),
    [
        ("exa", {}, 5, 0.007),
        ("exa", {}, 15, 0.012),
        ("exa", {"usd_per_1k": 2.0}, 15, 0.002),
        ("tavily", {}, 5, 0.008),
        ("tavily", {"parameters": {"search_depth": "advanced"}}, 5, 0.016),
        ("tavily", {"parameters": {"search_depth": "advanced"}, "usd_per_1k": 2.0}, 5, 0.002),
    ],
)
def test_the_price_is_that_of_what_is_asked_for(name: str, config: dict[str, Any], k: int, usd: float) -> None:
    spent: list[float] = []

    async def charge(provider: str, usd: float) -> None:
        spent.append(usd)

    with SearchServer(lambda request: PROTOCOLS[name](request, docs_for(name, 5))) as server:
        asyncio.run(_search(ProviderConfig(name=name, base_url=server.url, **config), "merge sort", k, charge=charge))
    assert spent == pytest.approx([usd])


def test_turns_are_taken_together_by_all_who_share_an_archive(tmp_path: Path) -> None:
    async def ask(server: SearchServer) -> float:
        async with httpx.AsyncHTTPTransport() as transport:
            config = ProviderConfig(name="arxiv", base_url=server.url, per_second=25.0)
            archives = [Archive(tmp_path / "web.sqlite") for _ in range(2)]
            lines = [Line(transport=transport, user_agent="kgsynth/test", archive=archive) for archive in archives]
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*(REGISTRY["arxiv"](config, line).search("sort", 2) for line in lines * 2))
            return asyncio.get_running_loop().time() - started

    with SearchServer(lambda request: Reply(body=recorded("arxiv"))) as server:
        assert asyncio.run(ask(server)) > 2.9 / 25  # four requests, three gaps


def test_parameters_go_along_but_not_in_place_of_ours() -> None:
    with SearchServer(lambda request: PROTOCOLS["searxng"](request, docs_for("searxng", 3))) as server:
        search("searxng", server, parameters={"engines": "mojeek", "format": "csv"})
        assert server.requests[0].params["engines"] == "mojeek"
    with SearchServer(lambda request: PROTOCOLS["tavily"](request, docs_for("tavily", 3))) as server:
        search("tavily", server, parameters={"search_depth": "advanced"})
        assert server.requests[0].json["search_depth"] == "advanced"


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ConfigError, match="twice"):
        register(REGISTRY["exa"])


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        (" HTTPS://Example.org/a?b=c#d ", "HTTPS://Example.org/a?b=c"),
        ("javascript:alert(1)", ""), ("//example.org", ""), ("http://", ""), ("http:///a", ""), ("http://a b", ""),
        ("data:text/html,x", ""), ("http://e.org/" + "x" * 2000, ""), ("http://e.org/\x00", ""), ("", ""),
    ],
)  # fmt: skip
def test_urls(url: str, clean: str) -> None:
    assert clean_url(url) == clean


def test_text_loses_its_tags_and_nothing_else() -> None:
    assert clean_text("<p>a <b>b</b>c</p><p>d</p> x<y y>z vector<int> 1 < 2 &lt;b&gt; &#8217;") == (
        "a bc d x<y y>z vector<int> 1 < 2 <b> ’"
    )
    assert clean_text("word " * 1000) == ("word " * 200)[:1000]


def test_arxiv_asks_for_all_words() -> None:
    assert _terms("What is the merge-sort of arrays?") == "all:merge AND all:sort AND all:arrays"
    assert _terms("the of") == "all:the AND all:of"
