"""Task types, drafted from the documentation inside the running Python and validated by the gate that admits tasks."""

from __future__ import annotations

import ast
import asyncio
import itertools
import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kgsynth.concept import Concept
from kgsynth.embed import open_embedder
from kgsynth.errors import ConfigError
from kgsynth.graph import ConceptGraph
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.sample import Sample, SampleConfig, plan
from kgsynth.sandbox import Sandbox
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import Rejection, SynthesisEnv, draft, survey
from kgsynth.synthesize.inputs import _in_order, shapes
from kgsynth.synthesize.oracle import probe, probe_chain
from kgsynth.synthesize.slice import CannotSlice, slice_function
from kgsynth.synthesize.snippet import as_session, examples, run_snippets, variations
from kgsynth.synthesize.stdlib import dotted_name, function_named, functions_of, module_of, source_path
from kgsynth.synthesize.types.choice import _words, distractors, relations, unrelated
from kgsynth.synthesize.types.implement import _always_echoed, _echoed, choose_tests, wrong_sources
from kgsynth.synthesize.types.predict import _copied, near_misses, same_output
from kgsynth.task import Task
from kgsynth.validate import validate
from kgsynth.validate.leak import leak
from kgsynth.verifiers import verify
from kgsynth.verifiers.code.values import encode
from kgsynth.web.corpus import Corpus, CorpusConfig, open_corpus
from kgsynth.web.read import Reader

TYPES = ("implement", "predict", "cloze", "choice")
MODULES = {"algorithms": ("heapq", "bisect"), "text": ("textwrap", "string"), "numbers": ("statistics", "operator")}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return open_corpus(CorpusConfig(), open_embedder("hashing"))


async def grown(corpus: Corpus) -> ConceptGraph:
    """Three domains, two modules each, the members their pages link to; edges cite the page that names the member."""
    graph, reader = ConceptGraph(EmbeddedStore(":memory:")), Reader(corpus)
    root = graph.add(Concept(name="the library", domain="python"))
    for domain, modules in MODULES.items():
        top = graph.add(Concept(name=f"{domain} modules", domain=domain), [root])
        for module in modules:
            url = f"pydoc://3.11/library/{module}".replace("3.11", corpus.urls()[0].split("/")[2])
            page = await reader.read(url)
            cited = page.source.span(0, min(len(page.source.text), 200))
            parent = graph.add(Concept(name=module, domain=domain), [top], spans=[cited], sources=[page.source])
            for link in [x for x in page.links if x.url.startswith(url + ".") and "#" not in x.url][:9]:
                member = Concept(name=link.url.rsplit("/", 1)[-1], domain=domain, atomic=True)
                span = page.source.span(link.start, link.end)
                if member not in graph:
                    graph.add(member, [parent], spans=[span], sources=[page.source])
    return graph


async def make_env(corpus: Corpus, sandbox: Sandbox) -> SynthesisEnv:
    graph = await grown(corpus)
    return SynthesisEnv(graph=graph, search=corpus, reader=Reader(corpus), llm=OfflineExtractive(), sandbox=sandbox)


async def drafted(env: SynthesisEnv, config: SampleConfig, n: int) -> list[Task | Rejection]:
    samples = list(itertools.islice(plan(env.graph, config, await survey(env)).samples(), n))
    gate = asyncio.Semaphore(3)

    async def one(sample: Sample) -> Task | Rejection:
        async with gate:
            return await draft(sample, env)

    return list(await asyncio.gather(*map(one, samples)))


CONFIG = SampleConfig(tasks=60, seed=7, types=dict.fromkeys(TYPES, 1.0))


@pytest.fixture(scope="module")
def made(corpus: Corpus, sandbox: Sandbox) -> list[Task | Rejection]:
    async def work() -> list[Task | Rejection]:
        return await drafted(await make_env(corpus, sandbox), CONFIG, 60)

    return asyncio.run(work())


@pytest.fixture(scope="module")
def tasks(made: list[Task | Rejection]) -> list[Task]:
    return [item for item in made if isinstance(item, Task)]


# ---------------------------------------------------------------------------------------------- from the real corpus


def test_every_type_gives_tasks_and_all_of_them_validate(tasks: list[Task], sandbox: Sandbox) -> None:
    counts = Counter(task.type for task in tasks)
    assert all(counts[kind] >= 5 for kind in TYPES), counts
    seen: set[str] = set()
    for task in tasks:
        validate(task, sandbox, seen=seen)
        assert len(task.prompt) <= 1200
        assert "<answer></answer>" in task.prompt


def test_provenance_is_complete(tasks: list[Task], corpus: Corpus) -> None:
    urls = set(corpus.urls())
    for task in tasks:
        origin = task.provenance
        assert origin.author == "programmatic"
        assert origin.seed == 7
        assert set(origin.licences) <= {"PSF-2.0", "Apache-2.0"}
        assert {span.url for span in origin.spans} <= urls
        assert all(len(span.text) == span.end - span.start for span in origin.spans)
    assert len({task.provenance.index for task in tasks}) == len(tasks)


def test_a_draft_depends_on_its_sample_only(made: list[Task | Rejection], corpus: Corpus, sandbox: Sandbox) -> None:
    """Drafted alone, in a fresh environment, samples give what they gave among others."""

    async def alone() -> list[Task | Rejection]:
        env = await make_env(corpus, sandbox)
        samples = list(itertools.islice(plan(env.graph, CONFIG, await survey(env)).samples(20), 16))
        return [await draft(sample, env) for sample in reversed(samples)][::-1]

    def ids(items: list[Task | Rejection]) -> list[str]:
        return [item.id if isinstance(item, Task) else item.message for item in items]

    assert ids(asyncio.run(alone())) == ids(made[20:36])


def test_importing_the_oracle_earns_nothing(tasks: list[Task], sandbox: Sandbox) -> None:
    for task in [t for t in tasks if t.type == "implement"][:4]:
        name, module = task.verifier.params["name"], task.verifier.params["forbidden"][0]
        for source in (
            f"from {module} import *\ndef {name}(*args): ...",
            f"import {module} as m\n{name} = m.{name}",
            f"def {name}(*args, **kwargs):\n    import {module}\n    return {module}.{name}(*args, **kwargs)",
            task.wrong[-1].removeprefix("<answer>").removesuffix("</answer>"),
        ):
            assert f"{module}" in source
            verdict = verify(f"<answer>{source}</answer>", task, sandbox)
            assert (verdict.score, verdict.reason) == (0, "forbidden import")


def test_implement_prompts_specify_and_do_not_leak(tasks: list[Task]) -> None:
    for task in (t for t in tasks if t.type == "implement"):
        source = task.reference.removeprefix("<answer>").removesuffix("</answer>")
        bodies = [line.strip() for line in source.splitlines() if len(line.strip()) > 25 and line.startswith("    ")]
        assert f"Do not import {' or '.join(task.verifier.params['forbidden'])}." in task.prompt
        assert not any(line in task.prompt for line in bodies)
        assert '"""' not in source
        tests = task.verifier.params["tests"]
        assert len(tests) >= 8
        assert len({repr(t.get("expect")) for t in tests}) >= 2
        assert "For example:\n\n* `" in task.prompt
        assert not leak(task)


def test_predictions_are_what_python_prints(tasks: list[Task]) -> None:
    """Replayed here, outside the sandbox: only our own small session language of documented calls is in the prompt."""
    for task in [t for t in tasks if t.type == "predict"][:8]:
        lines = re.findall(r"^(>>>|\.\.\.) ?(.*)$", task.prompt, re.MULTILINE)
        code, space = "\n".join(text for _, text in lines), {}
        *before, last = ast.parse(code).body
        exec(compile(ast.Module(before, []), "<test>", "exec"), space)
        assert isinstance(last, ast.Expr)
        if not ast.unparse(last).startswith(("print", "pprint")):
            value = eval(compile(ast.Expression(last.value), "<test>", "eval"), space)
            assert same_output(repr(value), task.verifier.params["value"])


def test_cloze_answers_are_hidden_and_stand_in_the_source(tasks: list[Task]) -> None:
    for task in (t for t in tasks if t.type == "cloze"):
        (answer,) = task.verifier.params["answers"]
        assert answer in task.provenance.spans[0].text
        assert answer.casefold() not in task.prompt.casefold()
        assert f'{len(answer)} characters that starts with "{answer[0]}"' in task.prompt


def test_choices_have_exactly_one_right_option(tasks: list[Task], corpus: Corpus) -> None:
    graph = asyncio.run(grown(corpus))
    by_name = {concept.name: concept for concept in graph}
    for task in (t for t in tasks if t.type == "choice"):
        side, asked = re.match(r"Which topic is (\w+) than (.+)\?", task.prompt).groups()  # type: ignore[union-attr]
        options = dict(re.findall(r"^([A-D])\. (.+)$", task.prompt, re.MULTILINE))
        concept = by_name[asked]
        below = {c.name for c in graph.descendants(concept)}
        above = {c.name for c in graph.ancestors(concept)}
        right = below if side == "narrower" else above
        assert {letter for letter, name in options.items() if name in right} == {task.verifier.params["correct"]}
        assert not {n for n in options.values() if n in (below | above)} - right
        assert len(task.prompt) < 300


def test_a_missing_edge_makes_no_second_option_right(corpus: Corpus, sandbox: Sandbox) -> None:
    """TypeError is an Exception, a LifoQueue a queue, a defaultdict a collection, whatever the graph knows of it."""

    async def wrong_options() -> dict[str, set[str]]:
        env = await make_env(corpus, sandbox)
        graph = env.graph
        top = {
            n: graph.add(Concept(name=n, domain="x")) for n in ("BaseException", "Queues and caches", "Data structures")
        }
        exception = graph.add(Concept(name="Exception", domain="x"), [top["BaseException"]])
        graph.add(Concept(name="ValueError", domain="x"), [exception])
        graph.add(Concept(name="queue.Queue", domain="x"), [top["Queues and caches"]])
        deque = graph.add(Concept(name="collections.deque", domain="x"), [top["Data structures"]])
        for name in ("TypeError", "queue.LifoQueue", "collections.defaultdict"):
            graph.add(Concept(name=name, domain="x"))
        await survey(env)
        found = {name: {c.name for c in unrelated(concept, env)} for name, concept in top.items()}
        (asked,) = (r for r in relations(top["Data structures"], env, "concept") if r.target == deque.id)
        near = distractors(top["Data structures"], asked, env, random.Random(0))
        return found | {"distractors": {c.name for c in near}}

    found = asyncio.run(wrong_options())
    assert "TypeError" not in found["BaseException"]
    assert "queue.LifoQueue" in found["BaseException"]
    assert "queue.LifoQueue" not in found["Queues and caches"]
    assert "TypeError" in found["Queues and caches"]
    assert "collections.defaultdict" not in found["distractors"]


def test_letters_are_balanced(corpus: Corpus, sandbox: Sandbox) -> None:
    async def letters() -> Counter[str]:
        env = await make_env(corpus, sandbox)
        made = await drafted(env, SampleConfig(tasks=120, types={"choice": 1.0}), 120)
        return Counter(item.verifier.params["correct"] for item in made if isinstance(item, Task))

    counts = asyncio.run(letters())
    assert counts.total() >= 80
    assert all(0.12 < counts[letter] / counts.total() < 0.4 for letter in "ABCD"), counts


def test_unknown_types_are_refused(corpus: Corpus, sandbox: Sandbox) -> None:
    async def work() -> None:
        env = await make_env(corpus, sandbox)
        await drafted(env, SampleConfig(tasks=1, types={"riddle": 1.0}), 1)

    with pytest.raises(ConfigError, match=r"unknown task type 'riddle'; known: chart, choice"):
        asyncio.run(work())


# ----------------------------------------------------------------------------------------------------------- slices


@pytest.mark.parametrize(
    "dotted", ["bisect.bisect", "heapq.nsmallest", "statistics.quantiles", "textwrap.dedent", "shlex.quote"]
)
def test_a_slice_runs_without_its_module(dotted: str) -> None:
    module, name = dotted.rsplit(".", 1)
    function = function_named(module, name)
    assert function is not None
    assert function.slice is not None
    assert module not in function.slice.imports
    space: dict[str, object] = {}
    exec(function.slice.source, space)
    assert callable(space[name])


def test_a_slice_keeps_only_what_is_needed() -> None:
    source = "\n".join(
        [
            "import os, re",
            "from itertools import chain, count",
            "TABLE = {}",
            "TABLE['a'] = 1",
            "OTHER = re.compile('x')",
            "def helper(x):",
            "    'Says what it does.'",
            "    return TABLE.get(x), OTHER",
            "def wanted(x):",
            "    'Doc.'",
            "    OTHER = 3",
            "    return helper(x), chain(), OTHER",
            "def unrelated(): return os.getcwd()",
            "try:",
            "    from _fake import wanted, helper",
            "except ImportError:",
            "    pass",
        ]
    )
    cut = slice_function(source, "wanted", module="fake")
    assert cut.imports == ("re", "itertools")
    assert "count" not in cut.source
    assert "unrelated" not in cut.source
    assert "_fake" not in cut.source
    assert "Doc." not in cut.source
    assert "TABLE['a'] = 1" in cut.source
    with pytest.raises(CannotSlice, match="needs 'absent'"):
        slice_function("def f(): return absent", "f", module="fake")
    with pytest.raises(CannotSlice, match="not in Python"):
        slice_function("from _fake import f", "f", module="fake")


def test_documentation_urls_name_functions() -> None:
    assert dotted_name("https://docs.python.org/3/library/heapq.html#heapq.merge") == "heapq.merge"
    assert dotted_name("pydoc://3.11/library/os.path.join") == "os.path.join"
    assert dotted_name("pydoc://3.11/topics/lists") is None
    assert module_of("pydoc://3.11/library/collections.Counter") == "collections"
    assert module_of("pydoc://3.11/library/math.gcd") == "math"
    assert source_path("math") is None
    assert [f.name for f in functions_of("pydoc://3.11/library/string", 900)] == ["capwords"]
    assert functions_of("pydoc://3.11/library/os", 900) == []


# ----------------------------------------------------------------------------------------------------------- oracle


def test_a_probe_finds_inputs_and_the_slice_agrees(sandbox: Sandbox) -> None:
    function = function_named("statistics", "median_low")
    assert function is not None
    probed = probe(function, sandbox, 8)
    assert not probed.fault
    assert len(probed.trials) >= 8
    for trial in probed.trials:
        if trial.outcome.kind == "returned" and isinstance(trial.outcome.value, int):
            assert trial.outcome.value == statistics.median_low(*trial.call.args)
    sources = list(wrong_sources(probed, range(len(probed.trials))))
    assert len(sources) >= 4
    assert len(set(sources)) == len(sources)


def test_returning_an_argument_earns_nothing(sandbox: Sandbox) -> None:
    """`-1 & b` is b: tests of `and_` that hold no other call would pay for `return b`."""
    function = function_named("operator", "and_")
    assert function is not None
    probed = probe(function, sandbox, 8)
    assert not probed.fault
    for seed in range(20):
        trials = [probed.trials[n] for n in choose_tests(probed.trials, 12, random.Random(seed))]
        assert not _always_echoed(trials)
        assert [len(_echoed(t)) for t in trials].count(0) >= 3
    sources = list(wrong_sources(probed, range(len(probed.trials))))
    assert {f"def and_(*args, **kwargs):\n    return args[{k}]" for k in (0, 1)} <= set(sources)
    assert _always_echoed([t for t in probed.trials if 1 in _echoed(t)]) != []


def test_a_chain_is_tested_on_what_both_real_functions_return(sandbox: Sandbox) -> None:
    neg, quote = function_named("operator", "neg"), function_named("shlex", "quote")
    assert neg is not None
    assert quote is not None
    inner = probe(neg, sandbox, 8)
    chain = probe_chain(inner, neg, "a", "(a)", sandbox, 8)
    assert not chain.fault
    assert chain.subject.forbidden == ("operator",)
    assert all(t.outcome.value == encode(t.call.args[0]) for t in chain.trials)  # -(-a) is a
    assert chain.mutants[0].source.endswith("return neg(a)")
    refused = probe_chain(inner, quote, "a", "(a)", sandbox, 8)
    assert (refused.check, "the outer function takes" in refused.fault) == ("oracle", True)


def test_functions_that_cannot_be_tested_are_refused_with_a_reason(sandbox: Sandbox) -> None:
    identity = function_named("operator", "is_")
    assert identity is not None
    assert "tells objects apart" in probe(identity, sandbox, 8).fault
    for dotted in ("heapq.heappush", "heapq.heapreplace", "operator.iconcat"):  # `return min(heap)` would pass
        mutating = function_named(*dotted.split("."))
        assert mutating is not None
        assert "changes its arguments" in probe(mutating, sandbox, 8).fault
    liar = function_named("operator", "add")
    assert liar is not None
    assert liar.slice is not None
    wrong = replace(liar, slice=replace(liar.slice, source="def add(a, b):\n    return a"))
    assert probe(wrong, sandbox, 8).check == "reference"


def test_presupposed_order_is_respected() -> None:
    function = function_named("bisect", "bisect_left")
    assert function is not None
    rng = random.Random(0)
    calls = [shape.call(rng, in_order=True) for shape in shapes(function.arguments, rng)]
    sequences = [arg for call in calls for arg in call.args if isinstance(arg, list | tuple | str | bytes)]
    assert {type(arg) for arg in sequences} >= {list, str}
    assert all(list(arg) == sorted(arg) for arg in sequences)


# --------------------------------------------------------------------------------------------------------- snippets

PAGE = """# demo

```python
>>> from collections import Counter
>>> words = ['b', 'a', 'b']   # three words
>>> c = Counter(words)
>>> len(words)
3
>>> c['b']  # two
2
```

Text between.

```python
>>> words.append('z')
>>> len(words) + 1
5
>>> merge([1], [2])
>>> time.time()
```
"""


def test_examples_keep_what_an_expression_needs() -> None:
    found = {e.lean[-1]: e for e in examples(PAGE, "heapq")}
    assert found["c['b']"].statements == (
        "from collections import Counter",
        "words = ['b', 'a', 'b']",
        "c = Counter(words)",
        "c['b']",
    )
    assert found["len(words) + 1"].statements[-2:] == ("words.append('z')", "len(words) + 1")
    assert found["len(words) + 1"].lean == ("words = ['b', 'a', 'b']", "len(words) + 1")
    assert found["merge([1], [2])"].lean == ("from heapq import merge", "merge([1], [2])")
    assert "time.time()" not in found
    assert "#" not in as_session(found["c['b']"].statements)
    assert "merge([1], [2])" not in {e.lean[-1] for e in examples(PAGE, None)}


def test_snippets_report_only_what_repeats(sandbox: Sandbox) -> None:
    snippets = [
        ["x = [3, 1]", "x.sort()", "x"],
        ["print('a'); print('b')"],
        ["1 / 0"],
        ["while True: pass"],
        ["set('abcdefghij')"],
        ["object()"],
        ["import builtins", "n = getattr(builtins, 'ran', 0)", "builtins.ran = n + 1", "n"],
    ]
    assert run_snippets(snippets, sandbox)[:5] == ["[1, 3]\n", "a\nb\n", None, None, None]
    assert run_snippets([*snippets[:1], snippets[6], snippets[6]], sandbox)[1:] == [None, None]


@pytest.mark.parametrize(
    ("last", "printed", "copied"),
    [
        ("unescape([2, 0, -1])", "[2, 0, -1]", True),
        ("print((9, -1))", "(9, -1)", True),
        ("{'b': 1, 'a': 2}", "{'b': 1, 'a': 2}", True),
        ("sorted([2, 0, -1])", "[-1, 0, 2]", False),
        ("heappop([4, 20])", "4", False),
    ],
)
def test_an_output_that_is_the_argument_is_not_asked_for(last: str, printed: str, copied: bool) -> None:
    assert _copied(("from x import y", last), printed) is copied


def test_variations_change_literals_and_keep_types() -> None:
    code = ("x = [1, 2, 30]", "f'{x[0]:>5}' + 'ab-cd'")
    found = variations(code, random.Random(1), 6)
    assert found
    assert code not in found
    for varied in found:
        kinds = [type(n.value) for n in ast.walk(ast.parse("\n".join(varied))) if isinstance(n, ast.Constant)]
        assert kinds == [type(n.value) for n in ast.walk(ast.parse("\n".join(code))) if isinstance(n, ast.Constant)]
        assert varied[1].count("-") == 1
    assert variations(("f(x)",), random.Random(1), 3) == []


@pytest.mark.parametrize(
    "value", ["3", "True", "[1, 2]", "'ab'", "b'ab'", "{'a': 1}", "Decimal('1')", "0.5", "None", "(1,)"]
)
def test_near_misses_are_wrong(value: str) -> None:
    misses = near_misses(value, random.Random(0))
    assert misses
    assert not any(same_output(miss, value) for miss in misses)


def test_names_that_tell_the_relation_come_last(corpus: Corpus, sandbox: Sandbox) -> None:
    async def first() -> Iterator[Task | Rejection]:
        env = await make_env(corpus, sandbox)
        await survey(env)
        concept = next(c for c in env.graph if c.name == "numbers modules")
        assert any(not (_words(concept) & _words(env.graph[r.target])) for r in relations(concept, env, "concept"))
        sample = Sample(index=0, seed=1, type="choice", domain="numbers", granularity="broad", concept=concept.id)
        return iter([await draft(sample, env)])

    made = next(asyncio.run(first()))
    assert isinstance(made, Task)
    right = made.provenance.names[1]
    assert "numbers" not in right


def test_items_without_an_order_are_left_as_they_are() -> None:
    assert [_in_order(v) for v in ([2, 1], "ba", (3, "a"), [None, 1], 7)] == [[1, 2], "ab", (3, "a"), [None, 1], 7]


def test_a_session_is_cut_to_what_its_last_line_needs() -> None:
    page = """
>>> import json
>>> obj = 3
>>> import json
>>> d = {'a': 1}
>>> d = {'b': 2}
>>> d['c'] = obj
>>> def double(obj):
...     half = obj
...     return half + obj
>>> half = 7
>>> json.dumps([double(4), d])
"""
    found = next(e for e in examples(page, None) if e.statements[-1].startswith("json.dumps"))
    assert found.statements == (
        "obj = 3", "import json", "d = {'b': 2}", "d['c'] = obj",
        "def double(obj):\n    half = obj\n    return half + obj", "json.dumps([double(4), d])",
    )  # fmt: skip
