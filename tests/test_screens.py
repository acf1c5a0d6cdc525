"""What must not be in a task set: near-duplicates, earlier sets, items of benchmarks, refused licences."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.contamination import COPIES, NUMBER
from kgsynth.cli import main
from kgsynth.concept import SourceSpan
from kgsynth.embed import HashingEmbedder
from kgsynth.errors import ConfigError, DuplicateError, TaskError
from kgsynth.screen import Finding, Screen, ScreenConfig
from kgsynth.screen.benchmark import items_of
from kgsynth.screen.text import numberless
from kgsynth.task import Provenance, Task, TaskSet, VerifierSpec
from tests.commands import last

MODULES = (
    "bisect base64 binascii calendar cmath codecs colorsys copy csv difflib fnmatch functools gettext glob hashlib heapq html"
    " inspect io json keyword linecache locale math mimetypes ntpath operator os posixpath pprint quopri random re secrets"
    " shlex shutil statistics string struct sys tempfile textwrap time tokenize traceback types unicodedata urllib.parse uuid"
    " warnings weakref xml.sax.saxutils zlib ast dis email.utils imaplib ipaddress logging pickle platform"
).split()
SPAN = SourceSpan(source="s_1", url="pydoc://x", start=0, end=4, text="text")


def task(
    prompt: str,
    answer: str,
    *,
    type: str = "short",
    concept: str = "c_1",
    verifier: str = "text",
    licence: str = "PSF-2.0",
    index: int = 0,
) -> Task:
    params = {"correct": answer, "options": list("ABCD")} if verifier == "choice" else {"answers": [answer]}
    return Task(
        type=type, domain="d", granularity="atomic", prompt=prompt, verifier=VerifierSpec(name=verifier, params=params),
        reference=f"<answer>{answer}</answer>", wrong=("<answer>no</answer>",),
        provenance=Provenance(
            concepts=(concept,), names=(concept,), spans=(SPAN,), licences=(licence,), author="programmatic", index=index
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def documented() -> list[tuple[str, str, str]]:
    """(module, name, documentation) of functions of the standard library, each text once."""
    found: dict[str, tuple[str, str, str]] = {}
    for module in MODULES:
        for name, thing in sorted(vars(importlib.import_module(module)).items()):
            doc = inspect.getdoc(thing) if inspect.isroutine(thing) and not name.startswith("_") else None
            if doc and 60 < len(doc) < 900:
                found.setdefault(doc, (module, name, doc))
    return list(found.values())


def _implement(module: str, name: str, doc: str) -> Task:
    prompt = f"Write the Python function {name}. It behaves like {module}.{name}:\n\n{doc}\n\nDo not import {module}. Write the source in <answer></answer>."
    return task(prompt, f"def {name}(): ...", type="implement", concept=f"{module}.{name}")


def _cloze(module: str, name: str, doc: str) -> Task | None:
    sentence = " ".join(re.split(r"(?<=\.)\s", doc)[0].split())
    terms = sorted(set(re.findall(r"[a-z]{6,}", sentence)), key=lambda term: (-len(term), term))
    if not terms or sentence.count(terms[0]) > 1 or len(sentence.split()) < 8:
        return None
    prompt = f'{module}.{name}: {sentence.replace(terms[0], "____")}\nThe blank is a term of {len(terms[0])} characters that starts with "{terms[0][0]}". Write it in <answer></answer>.'
    return task(prompt, terms[0], type="cloze", concept=f"{module}.{name}")


def _choice(rng: random.Random, functions: Sequence[tuple[str, str, str]], at: int) -> Task:
    module, name, _ = functions[at]
    others = [f"{m}.{n}" for m, n, _ in rng.sample(functions, 12) if m != module][:3]
    options = [f"{module}.{name}", *others]
    rng.shuffle(options)
    letter = "ABCD"[options.index(f"{module}.{name}")]
    lines = "\n".join(f"{mark}. {option}" for mark, option in zip("ABCD", options, strict=True))
    prompt = f"Which topic is narrower than {module}?\n{lines}\nReply with the letter in <answer></answer>."
    return task(prompt, letter, type="choice", concept=module, verifier="choice")


def _predict(rng: random.Random, at: int) -> Task:
    numbers = [rng.randint(2, 99) for _ in range(rng.randint(3, 6))]
    kinds = "first last new old good wet tall slow dry".split()
    name = f"{kinds[at % 9]}_{'values prices heights ages scores ranks depths'.split()[at % 7]}"
    work = rng.choice(
        ("sorted({n})[{k}:]", "sum({n}) // {k}", "[x % {k} for x in {n} if x > {k}]", "max({n}) - min({n}) * {k}", "{n}[::-1][{k}:]")
    ).format(n=name, k=rng.randint(1, 9))  # fmt: skip
    prompt = f"Python session:\n>>> {name} = {numbers}\n>>> {work}\nWhat does the last line print? Write exactly that, nothing else, in <answer></answer>."
    return task(prompt, str(numbers[at % 3]), type="predict", concept="lists")


@pytest.fixture(scope="module")
def pool(documented: list[tuple[str, str, str]]) -> list[Task]:
    rng = random.Random(0)
    made = [_implement(*one) for one in documented]
    made += [made for one in documented if (made := _cloze(*one))]
    made += [_choice(rng, documented, at) for at in range(len(documented))]
    made += [_predict(rng, at) for at in range(60)]
    rng.shuffle(made)
    return list(
        {numberless(t.prompt.casefold()): t for t in made}.values()
    )  # other numbers alone make no other task here


def kept(tasks: Sequence[Task], config: ScreenConfig = ScreenConfig()) -> tuple[list[Task], list[tuple[Task, Finding]]]:
    screen, clean, found = Screen(config, HashingEmbedder()), [], []
    for one in tasks:
        if finding := screen.finding(one):
            found.append((one, finding))
        else:
            screen.add(one)
            clean.append(one)
    return clean, found


@pytest.fixture(scope="module")
def screened(pool: list[Task]) -> tuple[list[Task], list[tuple[Task, Finding]]]:
    """The pool without near-duplicates, and these."""
    return kept(pool)


# contamination: acceptance 4


def test_planted_copies_are_found_and_honest_tasks_are_not(screened: tuple[list[Task], list], tmp_path: Path) -> None:
    """50 copies of each kind; the rest of the benchmark are tasks like ours: same templates, same concepts, other questions."""
    rng = random.Random(1)
    clean, _ = screened
    assert len(clean) > 900
    held, ours = clean[:200], clean[200:]
    planted: dict[str, str] = {}
    rows = [{"question": t.prompt, "answer": t.reference} for t in held]
    for kind, copy in COPIES.items():
        able = [t for t in ours if t.id not in planted and (kind != "renumbered" or NUMBER.search(t.prompt))]
        for t in rng.sample(able, 50):
            planted[t.id] = kind
            rows.append({"question": copy(t.prompt, rng), "answer": t.reference})
    rng.shuffle(rows)
    file = tmp_path / "bench.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, found = kept(ours, ScreenConfig(near=0, benchmarks=(f"{file}:question",)))
    hit = Counter(planted.get(t.id, "false") for t, f in found if f.check == "contaminated")
    print(dict(hit))
    for kind in ("verbatim", "reordered", "renumbered"):
        assert hit[kind] >= 48, (kind, hit)
    assert hit["false"] <= 0.01 * (len(ours) - len(planted)), [
        (f.message, t.prompt[:200]) for t, f in found if t.id not in planted
    ]
    for t, finding in found:
        row = rows[finding.evidence["index"]]
        assert finding.evidence["benchmark"] == "bench"
        assert finding.evidence["shared"], (finding, t.prompt, row)
        json.dumps(dict(finding.evidence))


def test_an_item_is_found_anywhere_in_a_long_prompt(documented: list[tuple[str, str, str]], tmp_path: Path) -> None:
    file = tmp_path / "bench.txt"
    item = (
        "How many plums did Orla keep after she gave a third of her basket to the baker and ate two on the road home?"
    )
    file.write_text(item + "\n")
    filler = "\n".join(doc for _, _, doc in documented)
    screen = Screen(ScreenConfig(near=0, benchmarks=(str(file),)))
    finding = screen.finding(task(f"{filler}\n{item}\n{filler}\nAnswer the question in the documents.", "4"))
    assert finding
    assert finding.evidence["measure"] == "verbatim"
    assert "plums did Orla keep" in finding.evidence["shared"]
    assert screen.finding(task(filler, "4")) is None


def test_a_short_item_is_found_whole_only(tmp_path: Path) -> None:
    file = tmp_path / "bench.txt"
    file.write_text("What is a heap queue?\n")
    screen = Screen(ScreenConfig(near=0, benchmarks=(str(file),)))
    assert screen.finding(task("What is a heap queue? Write the term in <answer></answer>.", "x"))
    longer = "A program keeps events by time. What is a heap queue good for in it, and why is a list that is sorted once not enough?"
    assert screen.finding(task(longer, "x")) is None


def test_a_solution_in_a_reference_is_found(tmp_path: Path) -> None:
    code = "def mean(xs):\n    total = 0\n    for x in xs:\n        total += x\n    count = len(xs)\n    if count == 0:\n        raise ValueError('no values')\n    return total / count\n"
    file = tmp_path / "code.jsonl"
    file.write_text(
        json.dumps({"prompt": "Average a list of floats as the tests of task 7 want it.", "canonical_solution": code})
    )
    finding = Screen(ScreenConfig(near=0, benchmarks=(str(file),))).finding(task("Write the arithmetic mean.", code))
    assert finding
    assert finding.evidence["part"] == "solution"


def test_a_quotation_counts_from_run_words_on(tmp_path: Path) -> None:
    words = [f"w{at}" for at in range(400)]
    file = tmp_path / "bench.txt"
    file.write_text(" ".join(words[:200]) + "\n")
    other = " ".join([*words[300:340], *words[20:50], *words[340:380]])  # 30 words of the item
    assert Screen(ScreenConfig(near=0, benchmarks=(str(file),))).finding(task(other, "x")) is None
    finding = Screen(ScreenConfig(near=0, benchmarks=(str(file),), run=13)).finding(task(other, "x"))
    assert finding
    assert (finding.evidence["measure"], finding.evidence["value"]) == ("run", 30)


# near-duplicates


def test_tasks_that_share_nearly_all_words_and_ask_something_else_are_kept(
    pool: list[Task], screened: tuple[list[Task], list[tuple[Task, Finding]]]
) -> None:
    clean, found = screened
    assert len(found) < 0.02 * len(pool), [(t.prompt[:150], f.message) for t, f in found]
    assert {t.type for t in clean} == {"implement", "cloze", "choice", "predict"}


OPTIONS = "A. heapq\nB. bisect\nC. json\nD. csv"
SHUFFLED = "A. csv\nB. json\nC. heapq\nD. bisect"
TWINS = [  # (prompt, answer), (prompt, answer), the same?
    (("What keeps the least item first?", "heapq"), ("What  keeps the LEAST item first", "heapq"), True),
    (("Which module keeps the least item of a list first?", "heapq"), ("Which module keeps the least item of a list at first?", "heapq"), True),
    (("Which module keeps the least item of a list first?", "heapq"), ("Which module keeps the items of a list sorted?", "bisect"), False),
    (("How many bytes has a word of 4 bytes and 3 words?", "12"), ("How many bytes has a word of 4 bytes and 5 words?", "20"), False),
    (("What is the largest value of a signed byte?", "127"), ("What is the smallest value of a signed byte?", "-128"), False),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "same"), TWINS)
def test_two_tasks_are_one_when_they_ask_the_same(one: tuple[str, str], other: tuple[str, str], same: bool) -> None:
    screen = Screen(ScreenConfig(), HashingEmbedder())
    screen.add(task(*one))
    finding = screen.finding(task(*other, type="other"))
    assert (finding is not None) == same
    if finding:
        assert finding.check == "duplicate"
        assert finding.evidence["task"] == task(*one).id


def test_options_in_another_order_are_the_same_question() -> None:
    screen = Screen(ScreenConfig())
    screen.add(task(f"Which module keeps heaps?\n{OPTIONS}", "A", verifier="choice"))
    assert screen.finding(task(f"Which module keeps heaps?\n{SHUFFLED}", "C", verifier="choice"))
    assert screen.finding(task(f"Which module keeps heaps?\n{SHUFFLED}", "D", verifier="choice"))  # answers contradict
    assert screen.finding(task(f"Which module searches lists?\n{OPTIONS}", "B", verifier="choice")) is None


def test_a_direction_in_the_template_counts() -> None:
    screen = Screen(ScreenConfig(), HashingEmbedder())
    for at in range(40):
        side = ("narrower", "broader")[at % 2]
        screen.add(task(f"Which topic is {side} than topic{at}?", f"answer{at}", concept=f"c{at}"))
    assert screen.finding(task("Which topic is broader than topic2?", "answer2", concept="c2")) is None
    assert screen.finding(task("Which topic is narrower than topic2 ?", "answer2", concept="c2"))


def test_what_is_found_depends_on_what_was_added_before_only(pool: list[Task]) -> None:
    """A run that is stopped and goes on, with the kept tasks added again, decides as if it had not been."""
    twice = [*pool[:150], *(dataclasses.replace(t, prompt=t.prompt + " ") for t in pool[:150:5]), *pool[150:300]]
    clean, found = kept(twice)
    assert len(found) >= 30
    screen = Screen(ScreenConfig(), HashingEmbedder())
    half = clean[: len(clean) // 2]
    for one in half:
        screen.add(one)
    rest = []
    for one in twice[twice.index(half[-1]) + 1 :]:
        if screen.finding(one) is None:
            screen.add(one)
            rest.append(one)
    assert [*half, *rest] == clean


def test_an_earlier_set_is_not_repeated(tmp_path: Path) -> None:
    TaskSet([task("Which module keeps the least item of a list first?", "heapq")]).save(tmp_path / "old.jsonl")
    screen = Screen(ScreenConfig(earlier=(str(tmp_path / "old.jsonl"),)))
    finding = screen.finding(task("Which module keeps the least item of a list at first?", "heapq"))
    assert finding
    assert finding.evidence["set"] == "old.jsonl"
    with pytest.raises(TaskError, match=r"none\.jsonl"):
        Screen(ScreenConfig(earlier=(str(tmp_path / "none.jsonl"),)))


# licences and settings


@pytest.mark.parametrize(
    ("licence", "fine"), [("PSF-2.0", True), ("cc-by-4.0", True), ("CC-BY-NC-4.0", True), ("unknown", False), ("", False), ("GPL-3.0", False)]
)  # fmt: skip
def test_licences_are_an_allow_list(licence: str, fine: bool) -> None:
    finding = Screen(ScreenConfig(licences=("PSF-2.0", "CC-BY-*"))).finding(task("What is it?", "x", licence=licence))
    assert (finding is None) == fine
    if finding:
        assert finding.check == "licence"
        assert finding.evidence["refused"] == {licence: "pydoc://x"}


@pytest.mark.parametrize(
    "wrong", [{"near": 1.5}, {"overlap": 0}, {"similar": -1}, {"run": 5}, {"near": 0, "earlier": ("old.jsonl",)}]
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(ConfigError, match=r"\[screen\]"):
        ScreenConfig(**wrong)


# files of benchmarks

QUESTION = "Which module keeps heaps?"
FILES = [
    ("a.jsonl", json.dumps({"question": QUESTION, "choices": {"text": ["heapq", "csv"], "label": ["A", "B"]}, "answerKey": "A"}), "heapq\ncsv"),
    ("a.json", json.dumps({"data": [{"Prompt": QUESTION, "options": ["heapq", "csv"]}], "version": [1]}), "heapq\ncsv"),
    ("a.json", json.dumps([QUESTION]), ""),
    ("a.csv", f'question,A,B\n"{QUESTION}",heapq,csv\n', "heapq\ncsv"),
    ("a.csv", f'"{QUESTION}",heapq,csv\n', "heapq\ncsv"),
    ("a.tsv", f"question\tanswer\n{QUESTION}\tx\n", ""),
    ("a.txt", f"{QUESTION}\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "options"), FILES)
def test_benchmarks_come_in_many_forms(name: str, text: str, options: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    items = [item for item in items_of(str(tmp_path / name)) if item.part == "question"]
    assert [(item.benchmark, item.index) for item in items] == [("a", 0)]
    assert items[0].text == f"{QUESTION}\n{options}".strip()


def test_columns_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"q": QUESTION, "extra": "e", "turns": ["t", "u"]}))
    assert [item.text for item in items_of(f"{file}:turns+q")] == [f"t\nu\n{QUESTION}"]


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("a.xlsx", "x", "its ending is unknown"),
        ("a.jsonl", '{"question": "x"}\n{bad', "line 2"),
        ("a.jsonl:nope", '{"question": "x"}', "columns: question"),
        ("none.jsonl", None, "cannot read the benchmark"),
        ("a.csv", "", "has no text"),
    ],
)
def test_a_benchmark_that_cannot_be_used_is_an_error(name: str, text: str | None, match: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name.split(":")[0]).write_text(text)
    with pytest.raises(TaskError, match=match):
        items_of(str(tmp_path / name))


# the command


def test_the_command_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [
        task("Which module keeps the least item of a list first?", "heapq"),
        task("Which module keeps the least item of a list at first?", "heapq"),
        task("How many plums did Orla keep after she gave a third of her basket to the baker?", "4"),
        task("Which function folds long lines of text?", "wrap", licence="unknown"),
    ]
    TaskSet(tasks).save(tmp_path / "tasks.jsonl")
    (tmp_path / "b.csv").write_text(
        "question,answer\nHow many plums did Orla keep after she gave a third of her basket to the baker?,4\n"
    )
    flags = [
        "--benchmark",
        tmp_path / "b.csv",
        "--licence",
        "PSF-2.0",
        "--keep",
        tmp_path / "c.jsonl",
        "--evidence",
        tmp_path / "e.jsonl",
    ]
    command = ["screen", tmp_path / "tasks.jsonl", *flags]
    assert main([*map(str, command)]) == 3
    table, counts = last(capsys)
    assert counts == {"tasks": 4, "kept": 1, "contaminated": 1, "duplicate": 1, "licence": 1}
    assert "question 0 of b: verbatim 1.00" in table
    assert list(TaskSet.load(tmp_path / "c.jsonl")) == tasks[:1]
    rows = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    assert [row["check"] for row in rows] == ["duplicate", "contaminated", "licence"]
    assert main([*map(str, command)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["screen", str(tmp_path / "c.jsonl"), "--json"]) == 0
    assert last(capsys)[1] == {"tasks": 1, "kept": 1}


@pytest.mark.parametrize("flag", ["--keep", "--evidence"])
def test_what_cannot_be_written_and_a_set_without_tasks_are_told_at_once(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "none.jsonl").write_text("")
    assert main(["screen", str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl has no tasks; make some with `kgsynth run`" in capsys.readouterr().err
    assert main(["screen", str(tmp_path / "none.jsonl"), flag, str(tmp_path / "no" / "x.jsonl")]) == 1
    assert f"there is no folder {tmp_path / 'no'}; make it first" in capsys.readouterr().err


def test_a_set_with_an_id_twice_is_refused(tmp_path: Path) -> None:
    one = task("Which module keeps the least item of a list first?", "heapq").to_json()
    (tmp_path / "t.jsonl").write_text(f"{one}\n{one}\n")
    with pytest.raises(DuplicateError):
        TaskSet.load(tmp_path / "t.jsonl")
