"""What Neo4j Browser shows of a concept graph: a style, a guide, and saved queries, made of the files in `graph_schemas/`.

Browser 5.24 reads a style (`:style`) and a guide (`:play`) from a web server whose host is on its list, and a zip of .cypher files
when it is dropped on its window. Neo4j serves the Browser from the first folder called `browser` on its class path: we unpack
that folder from the Browser's jar into the server's home and put our files into it, so no other web server is needed.
"""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from kgsynth.files import write_atomically
from kgsynth.store.labels import domain_label

FOLDER = "browser/kgsynth"  # of what the server serves
STYLE, GUIDE, SAVED = "style.grass", "guide.html", "saved-queries.zip"
PALETTE = (  # (fill, text) of domains that style.grass does not name
    ("#4C78A8", "#FFFFFF"), ("#F58518", "#FFFFFF"), ("#54A24B", "#FFFFFF"), ("#E45756", "#FFFFFF"), ("#72B7B2", "#1B2A33"),
    ("#EECA3B", "#1B2A33"), ("#B279A2", "#FFFFFF"), ("#FF9DA6", "#1B2A33"), ("#9D755D", "#FFFFFF"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SavedQuery:
    """A question and the Cypher that answers it."""

    title: str
    text: str  # of the query, comments with it


def saved_queries() -> list[SavedQuery]:
    """Those of graph_schemas/queries.cypher: each begins with a comment, its question, and ends with a semicolon."""
    blocks = re.split(r";\s*(?:\n|$)", _schema("queries.cypher"))
    found = [re.search(r"^// (?P<title>[^\n]+\?)$(?P<text>.*)", block, re.M | re.S) for block in blocks]
    return [SavedQuery(title=f["title"], text=f["text"].strip()) for f in found if f]


def serve(web: Path, browser_jar: Path, domains: Sequence[str] = ()) -> str:
    """Put the Browser and our files into `web`; returns the folder of our files as the server serves it."""
    unpacked = web / "unpacked"
    if not unpacked.exists() or unpacked.read_text() != browser_jar.name:
        shutil.rmtree(web, ignore_errors=True)
        with zipfile.ZipFile(browser_jar) as jar:
            jar.extractall(web, [name for name in jar.namelist() if name.startswith("browser/")])
        write_atomically(unpacked, browser_jar.name)
    write_files(web / FOLDER, domains)
    return FOLDER


def write_files(folder: Path, domains: Sequence[str] = ()) -> None:
    """Style, guide and saved queries into a folder. `domains` (in the order of their colours) are those of the graph."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / STYLE, style(domains))
    write_atomically(folder / GUIDE, guide())
    write_atomically(folder / SAVED, saved_zip())


def commands(address: str) -> str:
    """What the Browser is to do when it has connected, as `browser.post_connect_cmd` has it."""
    return f"style {address}/{STYLE};guide {address}/{GUIDE}"


def style(domains: Sequence[str] = ()) -> str:
    """graph_schemas/style.grass, and a rule for each domain that it does not name."""
    text = _schema(STYLE)
    missing = [label for label in dict.fromkeys(map(domain_label, domains)) if f"node.{label} " not in text]
    for i, label in enumerate(missing):
        fill, letters = PALETTE[i % len(PALETTE)]
        text += f"\nnode.{label} {{\n  color: {fill};\n  text-color-internal: {letters};\n}}\n"
    return text


def guide() -> str:
    """The guide as the HTML that `:play` shows, with every saved query ready to be clicked."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_schema("guide.html.j2"))
    return template.render(queries=saved_queries(), saved=SAVED)


def saved_zip() -> bytes:
    """The saved queries as a zip of .cypher files in a folder `kgsynth`: dropped on the Browser, they are its favourites."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for query in saved_queries():
            name = re.sub(r"\W+", "-", query.title.lower()).strip("-")
            archive.writestr(f"kgsynth/{name}.cypher", f"// {query.title}\n{query.text}\n")
    return content.getvalue()


def _schema(name: str) -> str:
    return files("graph_schemas").joinpath(name).read_text(encoding="utf-8")
