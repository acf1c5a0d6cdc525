"""The documentation inside the running Python as HTML pages: topics, modules, classes, functions, and overview chapters.

    pydoc://3.11/chapters/text-processing      our own overview (Apache-2.0), see chapters.py
    pydoc://3.11/topics/integers               a language topic of `pydoc_data.topics` (PSF-2.0)
    pydoc://3.11/library/heapq                 a module; .../heapq.merge a function; .../collections.Counter a class

Links go from the coarse to the fine (chapter -> module -> class -> method) and sideways where a text names something
exactly. The way up is a breadcrumb in `<nav>`, which readers drop. The same Python gives the same bytes.
"""

from __future__ import annotations

import html
import json
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics as TOPICS
from typing import Any

from kgsynth.errors import CorpusError
from kgsynth.web import chapters, introspect
from kgsynth.web.chapters import Chapter, Entry
from kgsynth.web.document import Document
from kgsynth.web.rst import RstToHtml
from kgsynth.web.sentences import first_sentence

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ROOT = f"pydoc://{VERSION}"
PSF = "PSF-2.0"
_LICENCE_URLS = {
    PSF: "https://docs.python.org/3/license.html",
    chapters.LICENCE: "https://www.apache.org/licenses/LICENSE-2.0",
}

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_SPANS = re.compile(
    r"``(?P<literal>[^`]+)``"
    r"|:\w+(?::\w+)?:`~?!?(?P<role>[^`]+)`"
    r"|`(?P<tick>[^`\n]+)`_{0,2}"
    r"|\*\*(?P<strong>\S(?:[^*]*\S)?)\*\*"
    r"|(?<![\w*])\*(?P<em>[A-Za-z_](?:[^*]{0,80}\w)?)\*(?![\w*])"
    rf"|(?P<call>(?<![\w.]){_DOTTED})\(\)"
    rf"|(?P<dotted>(?<![\w.]){_DOTTED}\.[A-Za-z_]\w*)"
    r"|(?P<module>(?<![\w.])[a-z_]\w*)(?= module\b)"
)
_TOPIC_CODE = r"\"(?P<string>\"[^\"\n]*\"(?: \w+ \"[^\"\n]*\")*)\"|\"(?P<braces>\{[^{}]*\})\"|\"(?P<quoted>(?!\s)(?:[^\"\n]|\n(?!\n)){1,90}?(?<!\s)|\")\"(?!\w)|"
_OLD_SIGNATURE = re.compile(r"^[\w.]+\(.*?\)(?: *-+> *[^\n.]*?)?(?:\.(?=\s)| *(?:--?|:)(?= )|(?=\n|$))\s*", re.DOTALL)


@dataclass
class Symbol:
    """A documented module, class or function under its public name."""

    name: str
    kind: str  # "module", "class", "exception", "function"
    module: str
    doc: str
    signature: str = ""
    bases: list[str] = field(default_factory=list)
    methods: list[dict[str, Any]] = field(default_factory=list)
    members: list[tuple[str, str]] = field(default_factory=list)  # modules: (shown name, symbol name)

    @property
    def url(self) -> str:
        return f"{ROOT}/library/{self.name}"

    @property
    def summary(self) -> str:
        return first_sentence(self.doc.split("::\n", 1)[0])


def python_documents() -> list[Document]:
    """Every page, sorted by URL. Raises CorpusError when the interpreter cannot describe its own library."""
    return sorted(PythonDocs(described_modules()).documents(), key=lambda d: d.url)


def described_modules() -> list[dict[str, Any]]:
    """What `introspect.py`, run in an isolated child process, says about the modules the chapters name."""
    targets = [e.target for c in chapters.read_chapters() for g in c.groups for e in g.entries if "/" not in e.target]
    names = sorted(set(targets), key=lambda n: (n != "builtins", n.count("."), n))
    command = [sys.executable, "-I", "-X", "utf8", str(Path(introspect.__file__)), *names]
    try:
        child = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=True, start_new_session=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        detail = (getattr(error, "stderr", b"") or b"").decode(errors="replace")[-500:]
        raise CorpusError(
            f"the library of {sys.executable} could not be described: {error} {detail}; "
            "check that this Python starts with -I, or set [corpus] builtin = false and give paths"
        ) from error
    return [json.loads(line) for line in child.stdout.splitlines()]


class PythonDocs:
    """Symbol table and page writer over described modules."""

    def __init__(self, modules: list[dict[str, Any]]) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.homes: dict[str, str] = {}  # where an object is defined -> its public name
        for module in modules:
            self._add_module(module)
        self.subclasses = self._subclasses()
        self.topics = {name: _topic_title(text) for name, text in sorted(TOPICS.items())}
        self.chapters = chapters.read_chapters()
        self._placed = self._places()
        self._said = self._entry_texts()
        titles = sorted((t for t in self.topics.values() if " " in t), key=len, reverse=True)
        prose = "|".join(re.escape(t).replace(r"\ ", r"\s+") for t in titles)
        self._topic_spans = re.compile(_TOPIC_CODE + _SPANS.pattern + rf"|(?P<title>(?<!\w)(?:{prose})(?!\w))")
        self._topic_by_title = {title: name for name, title in self.topics.items()}

    def documents(self) -> Iterator[Document]:
        for chapter in self.chapters:
            yield self._placed_page(self._chapter(chapter))
        for name in self.topics:
            yield self._placed_page(self._topic(name))
        for symbol in self.symbols.values():
            write = {"module": self._module, "function": self._function}.get(symbol.kind, self._class)
            yield self._placed_page(write(symbol))

    def _placed_page(self, page: Document) -> Document:
        """A page that the chapters list is central, and is found by what they say about it."""
        said = self._said.get(page.url)
        return replace(page, central=True, text=f"{page.text} {' '.join(said)}") if said else page

    # -- the symbol table ------------------------------------------------------------------------------------------

    def _add_module(self, module: dict[str, Any]) -> None:
        name = module["name"]
        symbol = Symbol(name=name, kind="module", module=name, doc=module["doc"])
        for member in module["members"]:
            public = self.homes.get(member["home"]) or self._add_member(name, member)
            if public:
                symbol.members.append((f"{name}.{member['name']}", public))
        self.symbols[name] = symbol

    def _add_member(self, module: str, member: dict[str, Any]) -> str | None:
        """The public name of a new symbol; None for data and for what has nothing to say."""
        methods = [m for m in member.get("members", []) if m["doc"]]
        doc = _without_signature(member["doc"])
        grammar = re.match(r"\w+ = \w+\(", doc)  # the nodes of `ast` have theirs as docstrings
        if member["kind"] == "data" or grammar or not (" " in doc or methods):
            return None
        name = f"{module}.{member['name']}"
        self.homes[member["home"]] = name
        self.symbols[name] = Symbol(
            name=name,
            kind=member["kind"],
            module=module,
            doc=doc,
            signature=member["signature"],
            bases=member.get("bases", []),
            methods=methods,
        )
        return name

    def _subclasses(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for symbol in self.symbols.values():
            for base in symbol.bases:
                found.setdefault(self.homes.get(base, base), []).append(symbol.name)
        return found

    def _places(self) -> dict[str, list[tuple[Chapter, list[Entry]]]]:
        """target -> the chapters that list it, with the neighbours in its group."""
        placed: dict[str, list[tuple[Chapter, list[Entry]]]] = {}
        for chapter in self.chapters:
            for group in chapter.groups:
                group.entries = [entry for entry in group.entries if self._target_url(entry.target)]
                for entry in group.entries:
                    placed.setdefault(entry.target, []).append((chapter, group.entries))
        return placed

    def _entry_texts(self) -> dict[str, list[str]]:
        """URL -> what the chapters say about the page."""
        said: dict[str, list[str]] = {}
        for group in (g for c in self.chapters for g in c.groups):
            for entry in group.entries:
                said.setdefault(self._target_url(entry.target) or "", []).append(f"{entry.term} {entry.text}")
        return said

    def _target_url(self, target: str) -> str | None:
        kind, _, name = target.partition("/")
        if kind == "chapter":
            return f"{ROOT}/chapters/{name}"
        if kind == "topic":
            return f"{ROOT}/topics/{name}" if name in TOPICS else None
        return self.symbols[target].url if target in self.symbols else None

    # -- text --------------------------------------------------------------------------------------------------------

    def _resolve(self, name: str, here: str, *, code: bool) -> str | None:
        """The URL of a name as written on page `here`; a bare name counts only in code (or with its parentheses)."""
        name = re.sub(r"\(.*\)$", "", name.strip(), flags=re.DOTALL).strip("~.")
        module = self.symbols[here].module if here in self.symbols else ""
        tries = [f"{module}.{name}", f"builtins.{name}"] if code else []
        for full in (name, *tries):
            if full in self.symbols and full != here and (code or "." in full):
                return self.symbols[full].url
        owner, _, method = name.rpartition(".")
        for full in (owner, f"builtins.{owner}", f"{module}.{owner}"):
            if full in self.symbols and full != here and any(m["name"] == method for m in self.symbols[full].methods):
                return f"{self.symbols[full].url}#{method}"
        keyword = pydoc.Helper.keywords.get(name, "") if code and here in self.topics else ""
        topic = keyword[0] if isinstance(keyword, tuple) else ""
        return f"{ROOT}/topics/{topic}" if topic and topic != here else None

    def _inline(self, text: str, *, here: str) -> str:
        spans = self._topic_spans if here in self.topics else _SPANS
        out, at = [], 0
        for match in spans.finditer(text):
            out += [_escape(text[at : match.start()]), self._span(match, here)]
            at = match.end()
        return "".join(out) + _escape(text[at:])

    def _span(self, match: re.Match[str], here: str) -> str:
        kind, text = match.lastgroup or "", " ".join((match[match.lastgroup or 0] or "").split())
        if kind in ("strong", "em"):
            return f"<{kind}>{_escape(text)}</{kind}>"
        if kind == "title":
            name = self._topic_by_title[text]
            return _link(text, f"{ROOT}/topics/{name}" if name != here else None)
        if kind == "dotted":
            return _link(text, self._resolve(text, here, code=False))
        if kind == "module":
            return _link(text, self.symbols[text].url if self._is_module(text) and text != here else None)
        if kind == "call":
            return _code_link(text + "()", self._resolve(text, here, code=True), code=False)
        if kind == "role":
            text = re.sub(r"^(.+?)\s*<(.+)>$", r"\1", text)
        return _code_link(text, self._resolve(text, here, code=True))

    def _is_module(self, name: str) -> bool:
        return name in self.symbols and self.symbols[name].kind == "module"

    def _prose(self, symbol: Symbol) -> str:
        return self._converted(symbol.doc, symbol.name, symbol.signature) if symbol.doc else ""

    def _converted(self, doc: str, here: str, signature: str) -> str:
        names = frozenset(re.findall(r"\w+", signature))
        return RstToHtml(partial(self._inline, here=here), parameters=names).convert(doc)

    # -- pages -------------------------------------------------------------------------------------------------------

    def _chapter(self, chapter: Chapter) -> Document:
        parts = [f"<h1>{_escape(chapter.title)}</h1>", f"<p>{_escape(chapter.text)}</p>"]
        for group in (g for g in chapter.groups if g.entries):
            parts += [f"<h2>{_escape(group.title)}</h2>", f"<p>{_escape(group.text)}</p>"]
            parts.append(_dl((_link(e.term, self._target_url(e.target)), _escape(e.text)) for e in group.entries))
        up = [] if chapter.slug == "python" else [("Python", f"{ROOT}/chapters/python")]
        url = f"{ROOT}/chapters/{chapter.slug}"
        return _page(url, chapter.title, parts, up=up, lead=chapter.text, licence=chapters.LICENCE)

    def _topic(self, name: str) -> Document:
        text = TOPICS[name].strip("\n")
        body = RstToHtml(partial(self._inline, here=name), topic=True).convert(text)
        parts = [body, self._see_also(self._related_topics(name))]
        lead = first_sentence(re.sub(r"^.*\n\*+\n", "", text).strip().replace('"', ""))
        aliases = (
            name,
            *(e.term for c in self.chapters for g in c.groups for e in g.entries if e.target == f"topic/{name}"),
        )
        url = f"{ROOT}/topics/{name}"
        return _page(url, self.topics[name], parts, up=self._up(f"topic/{name}"), lead=lead, aliases=aliases)

    def _related_topics(self, name: str) -> dict[str, str]:
        """What pydoc's help names beside this topic: title -> URL."""
        found: dict[str, str] = {}
        for entry in (*pydoc.Helper.topics.values(), *pydoc.Helper.keywords.values()):
            if not isinstance(entry, tuple) or entry[0] != name:
                continue
            for word in entry[1].split():
                target = _follow(word)
                if target in self.topics and target != name:
                    found[self.topics[target]] = f"{ROOT}/topics/{target}"
                elif url := self._resolve(word, "", code=True):
                    found[word] = url
        return found

    def _module(self, symbol: Symbol) -> Document:
        parts = [_h1(symbol.name), self._prose(symbol) or self._offer(symbol)]
        prefix = symbol.name + "."
        inside = [(n, n) for n, s in self.symbols.items() if n.startswith(prefix) and s.kind == "module"]
        kinds = {"Functions": "function", "Classes": "class", "Exceptions": "exception"}
        parts += self._listing("Submodules", inside)
        for title, kind in kinds.items():
            parts += self._listing(title, [m for m in symbol.members if self.symbols[m[1]].kind == kind])
        parts.append(self._see_also(self._neighbours(symbol.name)))
        return self._symbol_page(symbol, parts, self._up(symbol.name))

    def _offer(self, module: Symbol) -> str:
        """What an undocumented module is good for."""
        names = [_code_link(shown.rpartition(".")[2], self.symbols[name].url) for shown, name in module.members[:8]]
        return f"<p>The <code>{module.name}</code> module offers {', '.join(names) or 'constants'}.</p>"

    def _function(self, symbol: Symbol) -> Document:
        parts = [_h1(symbol.name), _signature(symbol), self._prose(symbol)]
        return self._symbol_page(
            symbol, parts, [*self._up(symbol.module), (symbol.module, self.symbols[symbol.module].url)]
        )

    def _class(self, symbol: Symbol) -> Document:
        parts = [_h1(symbol.name), _signature(symbol), self._prose(symbol)]
        bases = [(self.homes.get(b, b), self.symbols.get(self.homes.get(b, b))) for b in symbol.bases]
        if bases:
            shown = ", ".join(_code_link(_short(name), base.url if base else None) for name, base in bases)
            parts.append(f"<p>Bases: {shown}.</p>")
        parts += self._listing("Subclasses", [(name, name) for name in self.subclasses.get(symbol.name, [])])
        parts += self._methods(symbol)
        return self._symbol_page(
            symbol, parts, [*self._up(symbol.module), (symbol.module, self.symbols[symbol.module].url)]
        )

    def _methods(self, symbol: Symbol) -> list[str]:
        if not symbol.methods:
            return []
        rows = [
            f'<dt id="{m["name"]}"><code>{_short(symbol.name)}.{m["name"]}</code></dt>'
            f"<dd>{self._converted(_without_signature(m['doc']), symbol.name, m['signature'])}</dd>"
            for m in symbol.methods
        ]
        return ["<h2>Methods and attributes</h2>", "<dl>" + "\n".join(rows) + "</dl>"]

    def _listing(self, title: str, members: list[tuple[str, str]]) -> list[str]:
        """A heading and one definition per member: its name, linked, and the first sentence about it."""
        if not members:
            return []
        rows = ((_code_link(_short(shown), self.symbols[name].url), self._summary(name)) for shown, name in members)
        return [f"<h2>{title}</h2>", _dl(rows)]

    def _summary(self, name: str) -> str:
        symbol = self.symbols[name]
        methods = ", ".join(m["name"] for m in symbol.methods[:6])
        return self._inline(symbol.summary, here=name) or f"Has the methods {methods}."

    def _neighbours(self, target: str) -> dict[str, str]:
        entries = [e for _, group in self._placed.get(target, []) for e in group if e.target != target]
        return {e.term: url for e in entries if (url := self._target_url(e.target))}

    def _see_also(self, related: dict[str, str]) -> str:
        return f"<p>See also: {', '.join(_link(t, u) for t, u in related.items())}.</p>" if related else ""

    def _up(self, target: str) -> list[tuple[str, str]]:
        return [(c.title, f"{ROOT}/chapters/{c.slug}") for c, _ in self._placed.get(target, [])]

    def _symbol_page(self, symbol: Symbol, parts: Iterable[str], up: list[tuple[str, str]]) -> Document:
        short = _short(symbol.name)
        aliases = (short.rpartition(".")[2], *(f"{short}.{m['name']}" for m in symbol.methods))
        return _page(symbol.url, short, parts, up=up, lead=symbol.summary, aliases=aliases)


def _page(
    url: str,
    title: str,
    parts: Iterable[str],
    *,
    up: list[tuple[str, str]],
    lead: str,
    licence: str = PSF,
    aliases: tuple[str, ...] = (),
) -> Document:
    nav = " / ".join(f'<a href="{_attribute(u)}">{_escape(t)}</a>' for t, u in up)
    body = "\n".join(filter(None, parts))
    page = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{_escape(title)}</title>\n'
        f'<link rel="license" href="{_LICENCE_URLS[licence]}"></head>\n<body>\n<nav>{nav}</nav>\n'
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
    return Document(
        url=url,
        title=title,
        content=page.encode(),
        licence=licence,
        aliases=aliases,
        lead=lead,
        text=html.unescape(re.sub(r"<[^>]*>", " ", body)),
    )


def _topic_title(text: str) -> str:
    title = text.strip("\n").split("\n", 1)[0].replace('"', "")
    return title.removeprefix("The ") if title.endswith((" statement", " clause")) else title


def _follow(word: str) -> str:
    """A pydoc topic or keyword -> the name of its text, through aliases."""
    for _ in range(4):
        entry = pydoc.Helper.topics.get(word) or pydoc.Helper.keywords.get(word)
        if isinstance(entry, tuple):
            return entry[0]
        if not entry:
            return word
        word = entry
    return word


def _without_signature(doc: str) -> str:
    """C docstrings of the old style open with one or more signatures."""
    while (match := _OLD_SIGNATURE.match(doc)) and match.end():
        doc = doc[match.end() :].lstrip()
    return doc.removeprefix("--").lstrip()


def _short(name: str) -> str:
    return name.removeprefix("builtins.")


def _h1(name: str) -> str:
    return f"<h1>{_escape(_short(name))}</h1>"


def _signature(symbol: Symbol) -> str:
    word = "class " if symbol.kind in ("class", "exception") else ""
    return (
        f"<pre><code>{word}{_escape(_short(symbol.name) + symbol.signature)}</code></pre>" if symbol.signature else ""
    )


def _dl(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>\n" + "\n".join(f"<dt>{term}</dt>\n<dd>{text}</dd>" for term, text in rows) + "\n</dl>"


def _link(text: str, url: str | None) -> str:
    return f'<a href="{_attribute(url)}">{_escape(text)}</a>' if url else _escape(text)


def _code_link(text: str, url: str | None, *, code: bool = True) -> str:
    shown = f"<code>{_escape(text)}</code>" if code else _escape(text)
    return f'<a href="{_attribute(url)}">{shown}</a>' if url else shown


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


def _attribute(text: str) -> str:
    return html.escape(text, quote=True)
