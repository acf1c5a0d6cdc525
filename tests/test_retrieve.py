"""Retrieval: which passages are quoted, in which order, and what is said when there is nothing to quote. Pages come over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from kgsynth.concept import Concept, SourceSpan
from kgsynth.embed import HashingEmbedder
from kgsynth.errors import WebError
from kgsynth.graph import ConceptGraph
from kgsynth.retrieve import Context, Insufficient, RetrieveConfig, Web, names, queries, retrieve
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.web import Hit
from kgsynth.web.read import Reader
from tests.web_server import SITE, Route, WebServer, World, answer

SITES = {"pumps.test": [SITE], "mirror.test": [SITE]}
PUMP = Concept(
    name="peristaltic pump", domain="machines", aliases=("roller pump",), keywords=("hose", "rollers", "dosing")
)
FREE = "https://creativecommons.org/licenses/by/4.0/"
FORBIDDEN = "https://creativecommons.org/licenses/by-nc/4.0/"
ABOUT = (
    "A peristaltic pump moves a fluid by rollers that squeeze a flexible hose against a round casing, one pulse for each roller.",
    "Because the fluid of a peristaltic pump touches nothing but the inside of its hose, such pumps dose blood, acid and concrete.",
)
OTHER = (
    "The dosing rollers of peristaltic pumps wear out hoses faster at high pressure, which is why operators log working hours.",
    "A roller pump in a heart-lung machine is set so that its rollers just fail to close the hose, to spare the blood cells.",
)


@dataclass
class Engine:
    """A search engine that finds the same pages whatever it is asked, or is down."""

    hits: Sequence[Hit]
    down: bool = False
    name: str = "engine"

    async def search(self, query: str, k: int) -> list[Hit]:
        if self.down:
            raise WebError("engine: status 503", "status")
        return list(self.hits[:k])


def page(title: str, *paragraphs: str, licence: str = FREE) -> bytes:
    body = "".join(f"<p>{p}</p>" for p in paragraphs)
    foot = f'<footer>Text under <a rel="license" href="{licence}">this licence</a></footer>' if licence else ""
    html = f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{body}</main>{foot}</body></html>"
    return answer(html.encode())


def found(
    routes: dict[str, Route],
    hits: Sequence[tuple[str, str]],
    *,
    config: RetrieveConfig = RetrieveConfig(passage_chars=150),
    allowed: str = "",
    cited: Sequence[SourceSpan] = (),
    down: bool = False,
    embed: bool = False,
) -> Context | Insufficient:
    """What is found about PUMP, which lies below `pumps` in `machines`. hits: (path, title)."""

    async def work(world: World) -> Context | Insufficient:
        graph = ConceptGraph(EmbeddedStore(":memory:"))
        root = graph.add(Concept(name="machines", domain="machines"))
        graph.add(PUMP, [graph.add(Concept(name="pumps", domain="machines"), [root])])
        engine = Engine([Hit(url=f"http://{path}", title=title) for path, title in hits], down=down)
        async with world.fetcher() as fetcher:
            return await retrieve(
                PUMP, graph, cited, Web(search=engine, reader=Reader(fetcher)), config,
                embedder=HashingEmbedder() if embed else None, allows=lambda licence: licence.startswith(allowed),
            )  # fmt: skip

    with WebServer(routes) as server:
        return asyncio.run(work(World(server, names=SITES)))


def texts(context: Context | Insufficient) -> list[str]:
    assert isinstance(context, Context), context
    return [p.span.text for p in context.passages]


def test_queries_hold_keywords_and_what_is_above() -> None:
    above = (Concept(name="pumps", domain="machines"),)
    assert queries(PUMP, above) == [
        "peristaltic pump", "peristaltic pump pumps", "peristaltic pump hose rollers dosing",
    ]  # fmt: skip
    assert queries(PUMP, above, 9)[-1] == "roller pump"
    assert queries(Concept(name="x", domain="d"), ()) == ["x", "x d"]


@pytest.mark.parametrize("embed", [False, True])
def test_passages_are_cited_with_licence_and_date_best_first(embed: bool) -> None:
    routes: dict[str, Route] = {
        "/other": page("Hoses", *OTHER, "Hoses come in many colours, of which operators of large plants like green best of all."),
        "/pump": page("Peristaltic pump", *ABOUT),
    }  # fmt: skip
    context = found(routes, [("pumps.test/other", "Hoses"), ("pumps.test/pump", "Peristaltic pump")], embed=embed)
    shown = texts(context)
    assert isinstance(context, Context)
    assert [a.name for a in context.ancestors] == ["pumps", "machines"]
    assert [p.title for p in context.passages] == ["Peristaltic pump"] * 2 + ["Hoses"] * 2
    assert not any("green" in text for text in shown), "a passage that does not name the concept is no material"
    for passage in context.passages:
        assert passage.licence == "CC-BY-4.0"
        assert passage.retrieved_at[:2] == "20"
        assert len(passage.span.text) == passage.span.end - passage.span.start
    again = found(routes, [("pumps.test/other", "Hoses"), ("pumps.test/pump", "Peristaltic pump")], embed=embed)
    assert texts(again) == shown


def test_a_cited_passage_comes_before_others() -> None:
    routes: dict[str, Route] = {"/a": page("One", OTHER[0]), "/b": page("Two", OTHER[1])}
    hits = [("pumps.test/a", "One"), ("pumps.test/b", "Two")]
    plain = found(routes, hits)
    assert isinstance(plain, Context)
    last = plain.passages[-1].span
    cited = found(routes, hits, cited=[replace(last, end=last.start + 20, text=last.text[:20])])
    assert texts(cited)[0] == last.text


def test_mirrors_count_once() -> None:
    routes: dict[str, Route] = {
        "pumps.test/pump": page("Peristaltic pump", *ABOUT),
        "mirror.test/pump": page("Peristaltic pump", *ABOUT),
        "/other": page("Hoses", *OTHER),
    }
    hits = [(path, "Peristaltic pump") for path in ("pumps.test/pump", "mirror.test/pump")]
    shown = texts(found(routes, [*hits, ("pumps.test/other", "Hoses")]))
    assert sorted(shown) == sorted({*shown})
    assert len([text for text in shown if text.startswith("Because")]) == 1
    alone = found(routes, hits, config=RetrieveConfig(least_chars=300))
    assert isinstance(alone, Insufficient), "two copies are not twice the material"
    assert alone.why == "short"


def test_one_page_does_not_crowd_out_the_others() -> None:
    many = [f"Peristaltic pump number {n} has {n} rollers and a hose of its own, which its maker sells for {n} crowns." for n in range(2, 12)]  # fmt: skip
    routes: dict[str, Route] = {"/pump": page("Peristaltic pump", *many), "/other": page("Hoses", *OTHER)}
    hits = [("pumps.test/pump", "Peristaltic pump"), ("pumps.test/other", "Hoses")]
    context = found(routes, hits)
    assert isinstance(context, Context)
    assert sorted(p.title for p in context.passages) == ["Hoses", "Hoses", "Peristaltic pump", "Peristaltic pump"]
    assert len(texts(found(routes, hits[:1]))) == 4, "alone it may fill all places"


def test_forbidden_licences_are_passed_over() -> None:
    routes: dict[str, Route] = {
        "/pump": page("Peristaltic pump", *ABOUT, licence=FORBIDDEN),
        "/other": page("Hoses", *OTHER),
    }
    hits = [("pumps.test/pump", "Peristaltic pump"), ("pumps.test/other", "Hoses")]
    context = found(routes, hits, allowed="CC-BY-4")
    assert isinstance(context, Context)
    assert {p.title for p in context.passages} == {"Hoses"}
    refused = found(routes, hits[:1], allowed="CC-BY-4")
    assert isinstance(refused, Insufficient)
    assert refused.why == "licence"
    assert "CC-BY-NC-4.0" in refused.reason


def test_an_unreadable_page_makes_room_for_the_next() -> None:
    routes: dict[str, Route] = {"/pump": page("Peristaltic pump", *ABOUT)}
    hits = [(f"pumps.test/gone{n}", "Gone") for n in range(3)]
    context = found(routes, [*hits, ("pumps.test/pump", "A pump")], config=RetrieveConfig(pages=2))
    assert "rollers" in texts(context)[0]


@pytest.mark.parametrize(
    ("why", "routes", "hits", "told"),
    [
        ("no hit", {}, [], "3 searches for 'peristaltic pump' found nothing"),
        ("unreadable", {}, [("pumps.test/gone", "x")], "none of 1 pages about 'peristaltic pump' could be read: .*404"),
        ("unnamed", {"/x": page("Turbines", "Turbines turn steam into motion, and so do many other engines. " * 4)}, [("pumps.test/x", "x")], "1 pages read, no passage"),
        ("short", {"/x": page("Hoses", "The hose of a peristaltic pump is soft.")}, [("pumps.test/x", "x")], "are 48 characters in 1 passages"),
    ],
)  # fmt: skip
def test_insufficient_material_says_what_was_tried(
    why: str, routes: dict[str, Route], hits: list[tuple[str, str]], told: str
) -> None:
    missing = found(routes, hits)
    assert isinstance(missing, Insufficient)
    assert missing.why == why
    assert missing.why in Insufficient.WHY
    assert re.search(told, missing.reason)
    assert missing.queries[0] == "peristaltic pump"
    assert missing.urls == tuple(f"http://{path}" for path, _ in hits)
    assert len(missing.failures) == (1 if why == "unreadable" else 0)


def test_a_search_engine_that_is_down_is_said() -> None:
    missing = found({}, [], down=True)
    assert isinstance(missing, Insufficient)
    assert missing.why == "no hit"
    assert "engine: status 503" in missing.reason
    assert len(missing.failures) == 3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Peristaltic  Pumps are soft.", True),
        ("A ROLLER PUMP.", True),
        ("Every peristaltic-pump hose", True),
        ("A peristaltic pumphouse", False),
        ("controller pump", False),
        ("a pump", False),
    ],
)
def test_a_name_is_found_as_whole_words(text: str, named: bool) -> None:
    assert names(text, PUMP) is named
