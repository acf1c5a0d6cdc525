"""The functions of the modules that a graph covers, their helpers included: what code tasks are made of.

`implement` asks for what the documentation lists. Here are also the functions behind it, as long as their results are
in their arguments, and most tasks want them to say what they do (a docstring, or a comment above): those of a module's package (`email.quoprimime`
for `email`) and of what it is written in (`_pydecimal` for `decimal`). Each belongs to one concept, so that two concepts
never give the same task.
"""

from __future__ import annotations

import ast
import asyncio
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kgsynth.concept import Concept, Source, SourceSpan, content_id
from kgsynth.synthesize.bugs import Judged, Tried, telling, try_bugs
from kgsynth.synthesize.env import SynthesisEnv
from kgsynth.synthesize.material import Material, PageFunction
from kgsynth.synthesize.oracle import Probe, Trial, called, ended, no_oracle, probe
from kgsynth.synthesize.slice import CannotSlice, slice_function
from kgsynth.synthesize.stdlib import IMPURE, LIBRARY, Function, dotted_name, module_of, shown_signature, source_path
from kgsynth.verifiers.code.source import tree_of
from kgsynth.web import Page

# What a module of the library is written in, beside its own file and package.
WRITTEN_IN = {
    "datetime": ("_strptime",), "decimal": ("_pydecimal",), "codecs": ("encodings.punycode", "encodings.idna"),
    "os": ("posixpath", "ntpath", "genericpath"), "os.path": ("posixpath", "ntpath", "genericpath"),
    "pathlib": ("posixpath", "ntpath", "genericpath"), "html": ("_markupbase",), "time": ("_strptime",),
}  # fmt: skip
# Impure modules that have pure helpers all the same. The others are not looked through: they are large.
MIXED = frozenset("enum inspect pickle locale dis traceback types zipfile codecs urllib http logging".split())
# Imports that make no function impure by themselves.
HARMLESS = frozenset("types typing abc contextlib dataclasses enum warnings copyreg io".split())
# Parameters that hold objects no test can make.
OBJECTS = frozenset(
    "self cls klass fp file fileobj stream frame tb obj object node elem element parent msg message loop future fut task"
    " coro co func method parser reader writer match module spec loader sock conn request handler logger typ tp tree proxy"
    " instance descriptor owner context policy factory protocol transport executor ns namespace".split()
)
BY_ANOTHER = re.compile(
    r"\s*(?:Like|Same as|Similar to|Equivalent to|See)\b"
)  # what a function claims of another may be wrong
SPEAKING = 12  # words of a documentation that may stand without calls
LEAST_SHOWN = 2  # calls beside one of fewer words
LEAST_NODES = 15  # of the syntax tree of a function's body: less is not worth asking for
LEAST_DOC = 20  # characters
NO_DOC = re.compile(
    r"\b(?:XXX|TODO|FIXME|[Dd]eprecated|Internal|[Uu]ndocumented)\b"
)  # they tell of the code, not of what it does


def functions_about(material: Material, env: SynthesisEnv, *, documented: bool = True) -> list[PageFunction]:
    """The functions that belong to a concept, those without documentation only where that is enough. Shared out once per run."""
    if not env.library:
        env.library.update(_share_out(env))
    found = env.library.get(material.concept.id, [])
    return [item for item in found if not documented or is_documented(item.function)]


def is_documented(function: Function) -> bool:
    return len(function.doc) >= LEAST_DOC and not NO_DOC.search(function.doc) and not BY_ANOTHER.match(function.doc)


async def probed(function: Function, env: SynthesisEnv) -> Probe:
    """Probed once per run; drafts that want the same function at the same time wait for one probe."""
    if function.dotted not in env.probes:
        work = asyncio.to_thread(probe, function, env.sandbox, env.config.least_tests)
        env.probes[function.dotted] = asyncio.ensure_future(work)
    return await asyncio.shield(env.probes[function.dotted])


async def tried(function: Function, env: SynthesisEnv) -> Tried:
    """Its calls and its bugs, likewise once per run; without calls when the probe has a fault, which it then tells."""
    if function.dotted not in env.tried:
        env.tried[function.dotted] = asyncio.ensure_future(_tried(function, env))
    return await asyncio.shield(env.tried[function.dotted])


async def _tried(function: Function, env: SynthesisEnv) -> Tried:
    known = await probed(function, env)
    return Tried(probe=known) if known.fault else await asyncio.to_thread(try_bugs, known, env.sandbox)


def spare(trials: Sequence[Trial], chosen: Sequence[int], wrong: Sequence[Judged], most: int) -> list[Trial]:
    """Calls that may be shown: none of the chosen ones, and of their kinds, since they tell the same wrong sources."""
    tests = [trials[n] for n in chosen]
    free = [
        n
        for n, trial in enumerate(trials)
        if trial.outcome.kind == "returned" and not any(same_call(trial, test) for test in tests)
    ]
    told = [source.on(free) for source in wrong if source.caught_by & set(chosen)]
    return [trials[free[k]] for k in telling([trials[n] for n in free], told, (), most)]


def same_call(a: Trial, b: Trial) -> bool:
    """1 is 1.0 and True."""
    return (tuple(a.call.args), dict(a.call.kwargs)) == (tuple(b.call.args), dict(b.call.kwargs))


def worked(name: str, trials: Sequence[Trial]) -> str:
    """The calls with their results, a line each."""
    return "\n".join(f"* `{called(name, trial.call)}` {ended(trial, 's')}" for trial in trials)


def says_too_little(functions: Sequence[Function], shown: Sequence[Trial]) -> str:
    """Why what is shown does not settle what the functions do; "" when it does."""
    thin = [f.dotted for f in functions if len(f.doc.split()) < SPEAKING]
    if thin and len(shown) < LEAST_SHOWN:
        return f"{thin[0]}: its documentation says too little, and {len(shown)} calls are left to show"
    return ""


def source_of(function: Function) -> str:
    """Its slice."""
    return function.slice.source if function.slice else ""


def documented(function: Function) -> str:
    """Its documentation, indented under its signature."""
    doc = textwrap.indent(textwrap.dedent(function.doc).strip(), "    ")
    return f"{function.name}{function.signature}\n{doc}"


def span_of(item: PageFunction) -> SourceSpan:
    """The page from where the function's documentation begins, else from where its name stands, else its beginning."""
    return _documentation(item) or _span_from(item, re.search(rf"\b{re.escape(item.function.name)}\b", _text(item)))


def spans_of(item: PageFunction, env: SynthesisEnv) -> list[SourceSpan]:
    """The lines of the library's own file that define the function, after its documentation where the page holds that."""
    function, page = item.function, item.page.source
    text = _file(function.module)
    node = next(n for n in tree_of(text).body if isinstance(n, ast.FunctionDef) and n.name == function.name)
    lines = text.splitlines(keepends=True)
    start, end = (sum(map(len, lines[:n])) for n in (node.lineno - 1, node.end_lineno or node.lineno))
    url = f"{page.url.partition('/library/')[0]}/source/{function.module}"
    code = Source(url=url, title=f"{function.module} (source)", text=text, licence=page.licence)
    env.cite(code)
    return [*filter(None, [_documentation(item)]), code.span(start, end)]


def _documentation(item: PageFunction) -> SourceSpan | None:
    opening = r"\s+".join(map(re.escape, item.function.doc.split()[:8]))
    match = re.search(rf"{opening}(?!\S)", _text(item)) if opening else None
    return _span_from(item, match) if match else None


def _span_from(item: PageFunction, match: re.Match[str] | None) -> SourceSpan:
    start = match.start() if match else 0
    return item.page.source.span(start, min(len(_text(item)), start + max(200, len(item.function.doc))))


def _text(item: PageFunction) -> str:
    return item.page.source.text


@lru_cache(maxsize=64)
def _file(module: str) -> str:
    path = source_path(module)
    return path.read_text(encoding="utf-8") if path else ""


def _share_out(env: SynthesisEnv) -> dict[str, list[PageFunction]]:
    """Concept id -> its functions. A function with a page of its own goes to the concept of that page, any other to
    the one with the fewest among those that its module or a member of it is named like."""
    owners, near = _pages(env)
    shared: dict[str, list[PageFunction]] = {}
    for module in sorted(near):
        for function in _behind(module):
            if len(source_of(function)) > env.config.max_code_chars:
                continue
            candidates = owners.get(function.dotted) or near[module]
            concept, page = min(candidates, key=lambda row: len(shared.get(row[0], ())))
            shared.setdefault(concept, []).append(PageFunction(page=page, function=function))
    once: set[str] = set()
    return {concept: [item for item in items if _first(item, once)] for concept, items in shared.items()}


def _first(item: PageFunction, once: set[str]) -> bool:
    new = item.function.dotted not in once
    once.add(item.function.dotted)
    return new


Pages = dict[str, list[tuple[str, Page]]]  # a module or function -> (concept id, page)


def _pages(env: SynthesisEnv) -> tuple[Pages, Pages]:
    """Pages about one function, by its name; pages about something in a module, by module. Case counts: `ast.Str` is no `str`."""
    owners, near = Pages(), Pages()
    for material in (env.material or {}).values():
        for page in material.pages:
            dotted, module = dotted_name(page.url), module_of(page.url)
            if not module or not dotted or not _is_named(material.concept, {dotted, page.title}):
                continue
            near.setdefault(module, []).append((material.concept.id, page))
            if dotted != module:
                owners.setdefault(dotted, []).append((material.concept.id, page))
    return owners, near


def _is_named(concept: Concept, titles: set[str]) -> bool:
    return not titles.isdisjoint((concept.name, *concept.aliases))


@lru_cache(maxsize=512)
def _behind(module: str) -> tuple[Function, ...]:
    """Every usable function that a module is made of."""
    return tuple(f for part in _parts(module) for f in module_functions(part) if not no_oracle(f) and is_substantial(f))


def _parts(module: str) -> Iterator[str]:
    path = source_path(module)
    if path and ({module, module.split(".")[0]} & MIXED or not {module, module.split(".")[0]} & IMPURE):
        yield module
        for file in sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else ():
            dotted = ".".join(file.relative_to(LIBRARY).with_suffix("").parts)
            if "__" not in dotted and "test" not in dotted:
                yield dotted
    yield from WRITTEN_IN.get(module, ())


@lru_cache(maxsize=512)
def module_functions(module: str) -> tuple[Function, ...]:
    """Its top-level functions that can be cut out and take values, private ones too."""
    path = source_path(module)
    try:
        source = path.read_text(encoding="utf-8") if path else ""
        body = tree_of(source).body
    except (ValueError, OSError):
        return ()
    lines = source.splitlines()
    last = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    found = (_function(module, source, node, lines) for node in last.values() if not node.decorator_list)
    return tuple(function for function in found if function)


def _function(module: str, source: str, node: ast.FunctionDef, lines: list[str]) -> Function | None:
    doc = ast.get_docstring(node) or _comment_above(node, lines)
    names = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    if not names or names & OBJECTS:
        return None
    try:
        cut = slice_function(source, node.name, module=module)
    except CannotSlice:
        return None
    if {i.split(".")[0] for i in cut.imports} & (IMPURE - HARMLESS):
        return None
    return Function(module=module, name=node.name, signature=shown_signature(node.args), doc=doc, slice=cut)


def _comment_above(node: ast.FunctionDef, lines: list[str]) -> str:
    """The comment block right above a definition, without its marks."""
    at = node.lineno - 1
    found: list[str] = []
    while at and lines[at - 1].startswith("#"):
        at -= 1
        found.insert(0, lines[at].lstrip("#").removeprefix(" ").rstrip())
    return "\n".join(found).strip()


def is_substantial(function: Function) -> bool:
    """Is there more in its body than a call or an operation? Text and names of annotations do not count."""
    assert function.slice is not None, function.dotted
    nodes = [n for s in tree_of(function.slice.source).body if isinstance(s, ast.FunctionDef) for n in s.body]
    counted = [n for node in nodes for n in ast.walk(node) if not isinstance(n, ast.expr_context | ast.operator)]
    return len(counted) >= LEAST_NODES


def seeded(kind: str, seed: int, *parts: str) -> str:
    """A key that puts things into an order of their own for every seed."""
    return content_id(kind, str(seed), *parts)
