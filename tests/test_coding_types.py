"""repair, complete and translate: drafted from the standard library under a graph of a few concepts, judged by the real gate."""

from __future__ import annotations

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgsynth.concept import Concept, Source
from kgsynth.embed import open_embedder
from kgsynth.errors import SandboxError, VerifierError
from kgsynth.graph import ConceptGraph
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.sample import Sample
from kgsynth.sandbox import ExecResult, Sandbox
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import Rejection, SynthesisEnv, draft, task_type
from kgsynth.synthesize.bugs import bugs, judged, planted, stubs, telling, try_bugs
from kgsynth.synthesize.library import (
    functions_about,
    is_documented,
    module_functions,
    same_call,
    says_too_little,
    spare,
)
from kgsynth.synthesize.material import Material
from kgsynth.synthesize.oracle import Trial, no_oracle, probe, trials_of
from kgsynth.synthesize.ported import Ported, may_be_ported, ported, run_port
from kgsynth.synthesize.porting import BOOL, FLOAT, INT, STR, CannotPort, Kind, plain, port, renamed
from kgsynth.synthesize.types.translate import languages
from kgsynth.task import DIFFICULTIES, Task
from kgsynth.validate import validate
from kgsynth.verifiers import verify
from kgsynth.verifiers.code.values import decode, same
from kgsynth.verifiers.function_tests import Call, function_tests, run_calls
from kgsynth.web import Page
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader

TYPES = ("repair", "complete", "translate")
MODULES = ("calendar", "difflib", "statistics")
INTS = Kind("list", (INT,))


def page_about(module: str) -> Page:
    text = f"{module}: a module of the standard library. " + "It has functions, and what they do is said here. " * 5
    return Page(source=Source(url=f"pydoc://3.11/library/{module}", title=module, text=text, licence="PSF-2.0"))


def make_env(sandbox: Sandbox, folder: Path) -> SynthesisEnv:
    """Four modules under one root. Nothing is searched for: the pages are at hand."""
    graph = ConceptGraph(EmbeddedStore(":memory:"))
    root = graph.add(Concept(name="the library", domain="python"))
    (folder / "about.md").write_text("# About\n\nThe library.\n")
    corpus = open_corpus(CorpusConfig(builtin=False, paths=(str(folder),), cache=False), open_embedder("hashing"))
    env = SynthesisEnv(graph=graph, search=corpus, reader=Reader(corpus), llm=OfflineExtractive(), sandbox=sandbox)
    env.material = {}
    for module in MODULES:
        concept, page = graph.add(Concept(name=module, domain="python"), [root]), page_about(module)
        env.remember(page)
        env.material[concept.id] = Material(concept=concept, pages=(page,))
    return env


async def drafted(env: SynthesisEnv, kind: str, most: int = 2) -> list[Task | Rejection]:
    assert env.material is not None
    samples = []
    for n, (concept, material) in enumerate(env.material.items()):
        for variant in range(min(most, task_type(kind).capacity(material, env))):
            index = 10 * n + variant
            samples.append(
                Sample(
                    index=index, seed=5, type=kind, domain="python", granularity="middle", concept=concept, variant=variant,
                    difficulty=DIFFICULTIES[index % 3],
                )
            )  # fmt: skip
    return [await draft(sample, env) for sample in samples]


@pytest.fixture(scope="module")
def env(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> SynthesisEnv:
    return make_env(sandbox, tmp_path_factory.mktemp("about"))


@pytest.fixture(scope="module")
def made(env: SynthesisEnv) -> list[Task | Rejection]:
    async def work() -> list[Task | Rejection]:
        return [item for kind in TYPES for item in await drafted(env, kind)]

    return asyncio.run(work())


@pytest.fixture(scope="module")
def tasks(made: list[Task | Rejection]) -> list[Task]:
    return [item for item in made if isinstance(item, Task)]


def inside(answer: str) -> str:
    return answer.removeprefix("<answer>").removesuffix("</answer>").strip()


# ------------------------------------------------------------------------------------------------------- the tasks


def test_each_type_gives_tasks_that_pass_the_gate(tasks: list[Task], env: SynthesisEnv) -> None:
    wanted = TYPES if languages(env.sandbox) else TYPES[:2]
    counts = Counter(task.type for task in tasks)
    assert all(counts[kind] >= 3 for kind in wanted), counts
    for task in tasks[::2]:
        validate(task, env.sandbox)
    for task in tasks:
        assert task.provenance.licences == ("PSF-2.0",)
        assert len(task.wrong) >= 2


def test_a_draft_depends_on_its_sample_only(made: list[Task | Rejection], sandbox: Sandbox, tmp_path: Path) -> None:
    """In an environment of its own, the other way round."""
    alone = make_env(sandbox, tmp_path)
    again = [item for kind in ("complete", "repair") for item in asyncio.run(drafted(alone, kind, most=1))]
    first = [m for kind in ("complete", "repair") for m in made if m.type == kind and _index(m) % 10 == 0]
    assert [_told(m) for m in again] == [_told(m) for m in first]


def _index(item: Task | Rejection) -> int:
    return item.provenance.index if isinstance(item, Task) else item.index


def _told(item: Task | Rejection) -> str:
    return item.to_json() if isinstance(item, Task) else item.message


def test_verdicts_are_the_same_every_time(tasks: list[Task], env: SynthesisEnv) -> None:
    for task in {task.type: task for task in tasks}.values():
        for answer in (task.reference, *task.wrong[:2]):
            assert len({verify(answer, task, env.sandbox).score for _ in range(3)}) == 1


def test_the_planted_bug_is_shown_and_some_tests_miss_it(tasks: list[Task], env: SynthesisEnv) -> None:
    for task in (t for t in tasks if t.type == "repair"):
        unchanged = task.wrong[0]
        assert inside(unchanged) in task.prompt
        assert inside(task.reference) not in task.prompt
        tests = task.verifier.params["tests"]
        assert 0 < task.hints["telling_tests"] < len(tests)
        verdict = verify(unchanged, task, env.sandbox)
        assert (verdict.score, verdict.evidence["passed"]) == (0, len(tests) - task.hints["telling_tests"])


def test_the_shown_call_as_a_special_case_earns_nothing(tasks: list[Task], env: SynthesisEnv) -> None:
    special = [(t, w) for t in tasks if t.type == "repair" for w in t.wrong if "_first = " in w]
    assert special
    for task, wrong in special:
        assert verify(wrong, task, env.sandbox).score == 0


def test_the_hole_is_in_the_module_and_the_answer_is_not(tasks: list[Task], env: SynthesisEnv) -> None:
    with_context = [t for t in tasks if t.type == "complete" and "prelude" in t.verifier.params]
    assert with_context
    for task in with_context:
        prelude, answer = task.verifier.params["prelude"], inside(task.reference)
        (definition,) = ast.parse(answer).body
        assert isinstance(definition, ast.FunctionDef)
        assert f"def {definition.name}(" not in prelude
        assert f"def {definition.name}(" in task.prompt
        assert answer.splitlines()[-1] not in prelude
        assert verify("<answer>pass</answer>", task, env.sandbox).score == 0


def test_worked_calls_show_what_is_wanted_and_are_no_tests(tasks: list[Task], env: SynthesisEnv) -> None:
    """Each of them holds for the reference, and the documentation is not all there is."""
    asked = [t for t in tasks if t.type == "complete" or (t.type == "repair" and t.difficulty != "easy")]
    assert asked
    for task in asked:
        name, params = task.verifier.params["name"], task.verifier.params
        calls = re.findall(rf"^\* `{name}(\(.*\))` returns `(.*)`$", task.prompt, re.MULTILINE)
        assert len(calls) >= 2, task.prompt
        values = [
            ast.literal_eval(call[:-1] + ",)" if call[-2] != "," else call) for call, _ in calls if "=" not in call
        ]
        trials = trials_of(
            f"{params.get('prelude', '')}\n{inside(task.reference)}", name, [Call(args=v) for v in values], env.sandbox
        )
        assert [repr(decode(t.outcome.value)) for t in trials] == [value for call, value in calls if "=" not in call]
        assert not {repr(v) for v in values} & {repr(tuple(decode(test["args"]))) for test in params["tests"]}


def test_calls_of_the_kinds_of_the_tests_are_shown(sandbox: Sandbox) -> None:
    """What `email.utils.unquote` says of itself does not settle what its tests want."""
    (function,) = [f for f in module_functions("email.utils") if f.name == "unquote"]
    known = try_bugs(probe(function, sandbox, 8), sandbox)
    wrong = [w for w in known.wrong if w.caught_by]
    chosen = telling(known.trials, wrong, (), 12)
    shown = spare(known.trials, chosen, wrong, 3)
    assert len(shown) == 3
    assert not any(same_call(trial, known.trials[n]) for trial in shown for n in chosen)
    assert any(trial.call.args[0] != decode(trial.outcome.value) for trial in shown)
    assert not says_too_little([function], shown)
    assert "says too little" in says_too_little([function], shown[:1])


def test_what_is_said_to_be_like_another_is_not_documented() -> None:
    (function,) = [f for f in module_functions("heapq") if f.name == "merge"] or module_functions("bisect")[:1]
    assert is_documented(function)
    assert not is_documented(replace(function, doc="Like textwrap.dedent, for lines that begin with white space."))
    assert not is_documented(replace(function, doc="Same as the other function, but it takes no mapping at all."))


def test_what_looks_at_the_clock_is_left_alone() -> None:
    """A bug of it may give what the original gives, as long as both run within the same second."""
    named = {function.name: function for function in module_functions("http.cookiejar")}
    assert "looks at the clock" in no_oracle(named["time2isoz"])
    assert "looks at the clock" in no_oracle(named["time2netscape"])
    assert not no_oracle(named["split_header_words"])


def test_translations_are_graded_in_the_language_asked_for(tasks: list[Task], env: SynthesisEnv) -> None:
    for task in (t for t in tasks if t.type == "translate"):
        language = task.verifier.params["language"]
        assert (
            f"Write the complete { {'c': 'C', 'javascript': 'JavaScript', 'python': 'Python'}[language] } code"
            in task.prompt
        )
        shown = task.prompt.split("```")[1].split("\n", 1)[1]
        assert verify(f"<answer>{shown}</answer>", task, env.sandbox).score == 0


def test_without_other_languages_there_is_nothing_to_translate() -> None:
    class Bare(Bubblewrap):
        """The sandbox of a machine without node and gcc."""

        def run(self, argv: Sequence[str], **options: Any) -> ExecResult:
            return super().run(["/nowhere"] if argv[0] in ("node", "gcc") else argv, **options)

    bare = Bare()
    assert languages(bare) == ()
    with pytest.raises(SandboxError, match="node"):
        run_calls("function f() {}", "f", [Call()], bare, language="javascript")
    bare.close()


# --------------------------------------------------------------------------------------------------- what they rest on

CLAMP = """
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x
"""


def clamp_trials(sandbox: Sandbox) -> list[Trial]:
    calls = [Call(args=args) for args in ((5, 0, 9), (-1, 0, 9), (12, 0, 9), (0, 0, 9), (9, 0, 9), (3, 3, 3))]
    return trials_of(CLAMP, "clamp", calls, sandbox)


def test_bugs_change_one_place_and_equivalent_ones_are_not_called_wrong(sandbox: Sandbox) -> None:
    trials = clamp_trials(sandbox)
    found = bugs(CLAMP)
    assert {"comparison", "dropped branch", "wrong variable", "missing negation"} <= {bug.kind for bug in found}
    assert planted(CLAMP, [found[0].place]) == found[0].source
    verdicts = judged([bug.source for bug in found], "clamp", trials, sandbox)
    equivalent = next(v for b, v in zip(found, verdicts, strict=True) if "x <= low" in b.source)
    assert equivalent is not None
    assert not equivalent.caught_by
    turned = next(v for b, v in zip(found, verdicts, strict=True) if "x > low" in b.source)
    assert turned is not None
    assert turned.is_partial


def test_endless_bugs_are_left_out_and_do_not_harm_the_others(sandbox: Sandbox) -> None:
    trials = trials_of("def f(n):\n    return n", "f", [Call(args=(n,)) for n in range(4)], sandbox)
    sources = ["def f(n):\n    while True:\n        pass", "def f(n):\n    return n + 1", "def f(n):\n    return"]
    endless, wrong, nothing = judged(sources, "f", trials, sandbox)
    assert endless is None
    assert wrong is not None
    assert nothing is not None
    assert wrong.caught_by == nothing.caught_by == {0, 1, 2, 3}


def test_few_tests_tell_all_wrong_versions_apart(sandbox: Sandbox) -> None:
    trials = clamp_trials(sandbox)
    wrong = [v for v in judged([bug.source for bug in bugs(CLAMP)], "clamp", trials, sandbox) if v and v.caught_by]
    wrong += stubs("clamp", trials)
    chosen = telling(trials, wrong, (), 4)
    assert len(chosen) == 4
    assert all(version.caught_by & set(chosen) for version in wrong)


def test_private_helpers_with_a_comment_are_documented() -> None:
    found = {function.name: function for function in module_functions("datetime")}
    assert found["_days_in_month"].doc.startswith("year, month -> number of days")
    assert not any("self" in function.signature for function in found.values())


def test_every_function_belongs_to_one_concept(env: SynthesisEnv) -> None:
    assert env.material is not None
    owned = [i.function.dotted for m in env.material.values() for i in functions_about(m, env, documented=False)]
    assert len(owned) == len(set(owned)) > 20


def test_a_prelude_must_parse_and_keep_the_ban(tasks: list[Task], env: SynthesisEnv) -> None:
    params = {"name": "f", "tests": [{"args": ["tuple", 1], "expect": 2}], "forbidden": ["bisect"]}
    good = {**params, "prelude": "STEP = 1\n\ndef f(x):\n    return step(x) + 0\n"}
    assert function_tests("<answer>def step(x):\n    return x + STEP</answer>", good, env.sandbox).score == 1
    assert function_tests("<answer>def other(x):\n    return x + STEP</answer>", good, env.sandbox).score == 0
    for bad in ("def f(:", "import bisect", 3):
        with pytest.raises(VerifierError, match="prelude"):
            function_tests("<answer>x</answer>", {**params, "prelude": bad}, env.sandbox)
    with pytest.raises(VerifierError, match="python only"):
        function_tests("<answer>x</answer>", {"name": "f", "tests": params["tests"], "language": "c", "signature": {"arguments": ["int"], "returns": "int"}, "prelude": ""}, env.sandbox)  # fmt: skip


# ----------------------------------------------------------------------------------------------------------- porting

PORTS = {
    "whole division and remainder round down": (
        "def f(a, b):\n    q, r = divmod(a, b)\n    return q * 1000 + r + a // b + a % b",
        (INT, INT),
        [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (0, 5)],
    ),
    "bounds, loops and a flag for else": (
        "def f(a, x):\n    total = 0\n    for i, y in enumerate(a):\n        if y == x:\n            break\n        total += i * y\n"
        "    else:\n        total = -1\n    return total",
        (INTS, INT),
        [([1, 2, 3], 3), ([1, 2, 3], 9), ([], 0), ([5], 5)],
    ),
    "truth of numbers and of lists": (
        "def f(a, n):\n    if not a:\n        return 0\n    return max(a[-1], n) if n else len(a)",
        (INTS, INT),
        [([], 3), ([4, 9], 0), ([4, 9], 12), ([4, 9], -1)],
    ),
    "floats": (
        "from math import sqrt\ndef f(x, y):\n    return sqrt(x * x + y * y) / 2 - abs(x) ** 2 + x // 2",
        (FLOAT, FLOAT),
        [(3.0, 4.0), (-1.5, 0.25), (0.0, 0.0)],
    ),
    "letters of a text": (
        "def f(s):\n    count = 0\n    for c in s:\n        if c in 'aeiou' or c == '!':\n            count += 1\n    return count",
        (STR,),
        [("hello!",), ("",), ("xyz",), ("queue",)],
    ),
    "two results": ("def f(a, b):\n    a, b = b, a + b\n    return (a, b)", (INT, INT), [(1, 2), (0, 0), (-3, 8)]),
    "bits beyond 32": (
        "def f(number, bits):\n    if number == 0:\n        return bits\n"
        "    return min(bits, (~number & (number - 1)).bit_length()) - (number >> bits) + (number ^ bits | 1 << 33)",
        (INT, INT),
        [(2**32, 64), (2**31, 64), (2**53 - 1, 8), (-(2**31), 33), (0, 7), (-(2**33), 40), (1 - 2**53, 0)],
    ),
    "remainders and roots near 2**53": (
        "from math import isqrt\ndef f(a, b):\n    return a % b - isqrt(abs(b)) - a // b",
        (INT, INT),
        [(2**53 - 2, 2**53 - 1), (-5, 2**53 - 1), (2**53 - 1, 3), (7, 94906265**2 - 1), (-4, 2), (2**53 - 1, -(2**52))],
    ),
    "truth values": ("def f(a, b, c):\n    return a < b < c or not a == c", (INT, INT, INT), [(1, 2, 3), (3, 2, 1), (1, 1, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("case", PORTS, ids=str)
@pytest.mark.parametrize("language", ["javascript", "c"])
def test_ports_do_what_python_does(case: str, language: str, sandbox: Sandbox) -> None:
    if language not in languages(sandbox):
        pytest.skip(f"{language} is not on this machine")
    source, kinds, inputs = PORTS[case]
    space: dict[str, object] = {}
    exec(source, space)
    made = port(source, "f", kinds, language)
    calls = [Call(args=made.arguments(args)) for args in inputs]
    outcomes = run_calls(made.source, "f", calls, sandbox, language=language, signature=made.signature)
    trials = trials_of(source, "f", [Call(args=args) for args in inputs], sandbox)
    for trial, outcome in zip(trials, outcomes, strict=True):
        assert same(outcome.value, trial.outcome.value, loose=True), (trial.call.args, outcome)


@pytest.mark.parametrize("language", ["javascript", "c"])
def test_a_port_agrees_on_every_call_up_to_53_bits(language: str, sandbox: Sandbox) -> None:
    """The zeros at the end of a number: JavaScript's own `&` sees 32 bits."""
    if language not in languages(sandbox):
        pytest.skip(f"{language} is not on this machine")
    (function,) = [f for f in module_functions("ipaddress") if f.name == "_count_righthand_zero_bits"]
    known = probe(function, sandbox, 8)
    made = ported(known, language, False, sandbox)
    assert isinstance(made, Ported), made
    assert {2**31, 2**32, 2**53 - 1, 1 - 2**53} <= {trial.call.args[0] for trial in made.trials}
    assert all(abs(n) < 2**53 for trial in made.trials for n in trial.call.args)
    trials = trials_of(known.subject.real, function.name, [Call(args=(2**32, 64)), Call(args=(2**40, 50))], sandbox)
    outcomes = run_port(made.port.source, made.name, made.port, trials, language, sandbox)
    assert [outcome.value for outcome in outcomes] == [32, 40]


@pytest.mark.parametrize("language", ["javascript", "c"])
def test_a_port_that_differs_in_a_call_is_none(language: str, sandbox: Sandbox) -> None:
    """An item counted from the end by a number that is worked out: the other languages read beside the list."""
    if language not in languages(sandbox):
        pytest.skip(f"{language} is not on this machine")
    (function,) = [f for f in module_functions("calendar") if f.name == "_monthlen"]
    made = ported(probe(function, sandbox, 8), language, False, sandbox)
    assert isinstance(made, str)
    assert "its port differs in _monthlen(" in made


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("def f(x):\n    try:\n        return x\n    except ValueError:\n        return 0", (INT,)),
        ("def f(x):\n    return {x: 1}", (INT,)),
        ("def f(x):\n    return x if x else 'none'", (INT,)),
        ("def f(x):\n    return f(x - 1) if x else 0", (INT,)),
        ("def f(x):\n    return print(x)", (INT,)),
        ("def f(a):\n    for i in range(len(a)):\n        i += 1\n    return i", (INTS,)),
        ("def f(x):\n    return x and 3", (BOOL,)),
    ],
)
@pytest.mark.parametrize("language", ["javascript", "c"])
def test_what_is_outside_the_subset_is_refused(source: str, kinds: tuple[Kind, ...], language: str) -> None:
    with pytest.raises(CannotPort):
        port(source, "f", kinds, language)


def test_settled_parameters_and_nameless_sources() -> None:
    source = "def pick(a, lo=0, hi=None, *, key=None):\n    if hi is None:\n        hi = len(a)\n    if key is None:\n        return a[lo:hi]\n    return key(a)"
    assert plain(source, "pick", 1).replace(" ", "") == "defpick(a):\nhi=len(a)\nreturna[0:hi]"
    assert renamed(plain(source, "pick", 1), "pick").startswith("def f(v1):\n    v2 = len(v1)")
    assert may_be_ported("def f(a):\n    return sum(a)", "javascript")
    assert not may_be_ported("import re\ndef f(a):\n    return a", "javascript")
    assert not may_be_ported("def f(a):\n    return a.upper()", "c")
