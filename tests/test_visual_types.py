"""Pictures drawn from real material: what is asked can be read off them, what is planted is really wrong."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000

from kgsynth.concept import Concept, Source
from kgsynth.embed import open_embedder
from kgsynth.errors import ValidationError
from kgsynth.export.pairs import export_pairs
from kgsynth.graph import ConceptGraph
from kgsynth.llm.offline import OfflineExtractive
from kgsynth.sample import Sample
from kgsynth.sandbox import ExecResult, Sandbox
from kgsynth.sandbox.bubblewrap import Bubblewrap
from kgsynth.store.embedded import EmbeddedStore
from kgsynth.synthesize import TYPES, Rejection, SynthesisEnv, draft, survey
from kgsynth.synthesize.drawing import plots
from kgsynth.synthesize.drawing.asked import Question, _counted, about_bars, about_diagram, about_points
from kgsynth.synthesize.drawing.canvas import Canvas, overlap, text_width
from kgsynth.synthesize.drawing.drawings import drawings
from kgsynth.synthesize.drawing.figures import Series, is_label
from kgsynth.synthesize.drawing.graphs import Diagram, Sets, draw_diagram, draw_sets
from kgsynth.synthesize.drawing.spoiled import WAYS, spoiled
from kgsynth.synthesize.drawing.views import views
from kgsynth.synthesize.drawing.webpages import pages
from kgsynth.task import DIFFICULTIES, Image, Task
from kgsynth.validate import validate
from kgsynth.verifiers import verify
from kgsynth.verifiers.number import judge, wanted
from kgsynth.verifiers.pictures.distance import _apart, decode
from kgsynth.verifiers.pictures.render import render
from kgsynth.verifiers.pictures.shown import can_render, render_png
from kgsynth.web.corpus import CorpusConfig, open_corpus
from kgsynth.web.read import Reader

MODULES = ("textwrap", "statistics", "fractions")
SOURCE = Source(url="https://pages.test/x", title="x", text="**a**: the text", licence="CC0-1.0")
A = Concept(name="a", domain="d")


async def grown_env(sandbox: Sandbox) -> SynthesisEnv:
    """Five modules and the members their pages link to; edges cite the entry of the member."""
    corpus = open_corpus(CorpusConfig(), open_embedder("hashing"))
    graph, reader = ConceptGraph(EmbeddedStore(":memory:")), Reader(corpus)
    root = graph.add(Concept(name="the library", domain="python"))
    version = corpus.urls()[0].split("/")[2]
    for module in MODULES:
        page = await reader.read(f"pydoc://{version}/library/{module}")
        span = page.source.span(0, 80)
        parent = graph.add(Concept(name=module, domain="python"), [root], spans=[span], sources=[page.source])
        for entry in [d for d in page.definitions if d.term.startswith(f"{module}.")][:12]:
            span = page.source.span(entry.start, entry.end)
            member = Concept(name=entry.term, domain="python", atomic=True)
            graph.add(member, [parent], spans=[span], sources=[page.source])
    env = SynthesisEnv(graph=graph, search=corpus, reader=reader, llm=OfflineExtractive(), sandbox=sandbox)
    await survey(env)
    return env


@pytest.fixture(scope="module")
def env(sandbox: Sandbox) -> SynthesisEnv:
    return asyncio.run(grown_env(sandbox))


def drafted(kind: str, env: SynthesisEnv, per_concept: int = 2) -> list[Task]:
    """Tasks of every scope and difficulty, and no rejection but for want of material."""
    made, index = [], itertools.count()
    for concept in env.concepts:
        for variant in range(min(per_concept, TYPES[kind].capacity(env.material[concept.id], env))):  # type: ignore[index]
            i = next(index)
            sample = Sample(
                index=i, seed=3, type=kind, domain="python", granularity=env.graph.granularity(concept), concept=concept.id,
                variant=variant, scope=TYPES[kind].scopes[i % 2], difficulty=DIFFICULTIES[i // 2 % 3],
            )  # fmt: skip
            task = asyncio.run(draft(sample, env))
            assert isinstance(task, Task) or task.check == "material", task
            made += [task] if isinstance(task, Task) else []
    return made


@pytest.fixture(scope="module")
def charts(env: SynthesisEnv) -> list[Task]:
    return drafted("chart", env)


@pytest.fixture(scope="module")
def browser(sandbox: Sandbox) -> Sandbox:
    if not can_render(sandbox):
        pytest.skip("no Chromium (apt-get install chromium)")
    return sandbox


def series(*values: float, labels: str = "", ordered: bool = False) -> Series:
    names = tuple(labels.split() or [f"item{i}" for i in range(len(values))])
    span = SOURCE.span(0, 5)
    return Series(
        title="Figures", measure="words", labels=names, values=values, spans=(span,), concepts=(A,), ordered=ordered
    )


def asked(kind: str, questions: list[Question]) -> list[Question]:
    return [question for question in questions if question.kind == kind]


# ------------------------------------------------------------------------------------------------- from real material


def test_chart_tasks_validate_and_say_where_they_come_from(charts: list[Task], sandbox: Sandbox) -> None:
    assert len(charts) > 25
    kept: set[str] = set()
    refused = Counter()
    for task in charts:
        try:
            validate(task, sandbox, seen=kept)
        except ValidationError as error:
            refused[error.check] += 1
    assert set(refused) <= {"unique"}, refused
    assert refused["unique"] < len(charts) / 10
    assert {task.verifier.name for task in charts} >= {"number", "text"}
    assert {task.difficulty for task in charts} == set(DIFFICULTIES)
    assert all(len(task.images) == 1 and task.provenance.spans for task in charts)
    assert all(len(task.wrong) >= 3 for task in charts)


def test_a_task_is_the_same_whenever_it_is_drafted(env: SynthesisEnv, charts: list[Task]) -> None:
    again = {task.id for task in drafted("chart", env)}
    assert again == {task.id for task in charts}


def test_a_prompt_holds_no_data(charts: list[Task]) -> None:
    for task in charts:
        answer = re.sub("<[^>]*>", "", task.reference)
        if task.verifier.name == "text":
            assert not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", task.prompt), task.prompt
        assert "<svg" not in task.prompt


def test_every_picture_is_legible(env: SynthesisEnv) -> None:
    """No text outside, none on another, every label of the data there."""
    seen = 0
    for concept, difficulty in itertools.product(env.concepts, DIFFICULTIES):
        material = env.material[concept.id]  # type: ignore[index]
        for scope in ("concept", "siblings"):
            for view in views(scope, difficulty, material, env):
                boxes = [shape.box for shape in view.picture.shapes if shape.tag == "text"]
                assert all(not overlap(a, b) for a, b in itertools.combinations(boxes, 2))
                assert all(
                    0 <= a < c <= view.picture.width and 0 <= b < d <= view.picture.height for a, b, c, d in boxes
                )
                seen += 1
    assert seen > 30


def test_draw_and_page_tasks_are_cited_and_short_enough(env: SynthesisEnv, browser: Sandbox) -> None:
    made = drafted("draw", env, 1) + drafted("page", env, 1)
    assert len(made) > 20
    for task in made:
        assert task.images[0].source == task.verifier.params["reference"]["source"]
        assert 3 <= len(task.wrong) <= 5
        assert task.provenance.licences
        assert len(task.reference) < 20_000


@pytest.mark.slow
def test_draw_and_page_tasks_validate(env: SynthesisEnv, browser: Sandbox) -> None:
    """The gate itself: the reference is right, every planted answer is refused."""
    for kind in ("draw", "page"):
        for task in random.Random(5).sample(drafted(kind, env, 1), 2):
            validate(task, browser)


def test_no_browser_no_tasks(env: SynthesisEnv) -> None:
    class Bare(Bubblewrap):
        def run(self, *args: Any, **kwargs: Any) -> ExecResult:  # a box in which Chromium has another name
            return super().run(*args, **{**kwargs, "stdin": '["no-such-browser"]'})

    bare = Bare()
    without = dataclasses.replace(env, sandbox=bare)
    page = next(c for c in env.concepts if TYPES["chart"].capacity(env.material[c.id], env))  # type: ignore[index]
    try:
        with pytest.warns(UserWarning, match="apt-get install chromium"):
            assert TYPES["draw"].capacity(env.material[page.id], without) == 0  # type: ignore[index]
        assert TYPES["page"].capacity(env.material[page.id], without) == 0  # type: ignore[index]
        assert TYPES["chart"].capacity(env.material[page.id], without) > 0  # type: ignore[index]
        sample = Sample(index=0, seed=0, type="draw", domain="python", granularity="atomic", concept=page.id, variant=0)
        told = asyncio.run(draft(sample, without))
        assert isinstance(told, Rejection)
        assert "apt-get install chromium" in told.message
    finally:
        bare.close()


# ------------------------------------------------------------------------------------------------- what can be read


@pytest.mark.parametrize("values", [(3, 7, 12, 5), (120, 30, 75, 88, 61), (0.5, 1.75, 2.25, 1.0)])
def test_bars_end_where_their_values_are(values: tuple[float, ...]) -> None:
    for labels in ("", "a_long_label_indeed1 a_long_label_indeed2 a_long_label_indeed3 a_long_label_indeed4 long5"):
        named = " ".join(labels.split()[: len(values)])
        data = series(*values, labels=named)
        picture, axis = plots.draw_bars(data), plots.axis_of_bars(data)
        lengths = [float(m.attributes["width" if named else "height"]) for m in picture.marks]
        assert lengths == pytest.approx([value * axis.scale for value in values])
        assert picture.is_legible()


def test_an_axis_has_few_round_steps() -> None:
    for most in (1, 3, 7, 8, 12, 99, 100, 101, 450, 0.3, 0.07, 12345):
        axis = plots.axis_for(most, 250)
        assert 3 <= axis.steps <= 7 or most == 1
        assert axis.end >= most > axis.end - axis.step * 1.0001
        assert float(f"{axis.step:.0e}") == pytest.approx(axis.step)
        assert axis.length <= 250
        assert axis.pixels % 10 == 0


def test_near_ties_are_not_asked_about() -> None:
    tied = list(about_bars(series(100, 99, 40, 12, 11), plots.axis_for(100, 250)))
    assert not asked("most", tied)
    assert not asked("least", tied)
    assert not asked("top", tied)
    clear = list(about_bars(series(100, 60, 40, 20, 10), plots.axis_for(100, 250)))
    assert [q.answer for q in asked("most", clear)] == ["item0"]
    assert [q.answer for q in asked("least", clear)] == ["item4"]
    assert [q.answer for q in asked("second", clear)] == ["item1"]
    assert [q.answer for q in asked("top", clear)] == ["item0, item1, item2"]
    assert [q.answer for q in asked("sort", clear)] == ["item4, item3, item2, item1, item0"]


def test_no_gridline_near_a_value_is_asked_about() -> None:
    data, axis = series(41, 59, 90, 75, 12), plots.axis_for(90, 250)
    assert axis.ticks == [0, 20, 40, 60, 80, 100]
    assert {q.text.split("gridline at ")[1].split("?")[0] for q in asked("above", list(about_bars(data, axis)))} == {"20", "80"} - {"80"}  # fmt: skip


def test_answers_do_not_depend_on_what_cannot_be_seen() -> None:
    """Values moved by a few pixels give the same counts, names and orders, and numbers within the tolerance."""
    rng = random.Random(7)
    for _ in range(60):
        values = [float(rng.randint(1, 400)) for _ in range(rng.choice([5, 6, 7, 9]))]
        data = series(*values, ordered=rng.random() < 0.5)
        axis = plots.axis_for(max(values), 250)
        if len(set(values)) < 3:
            continue
        slack = 2 / axis.scale  # pixels of a careful reading
        blurred = dataclasses.replace(data, values=tuple(max(0.0, v + rng.uniform(-slack, slack)) for v in values))
        seen = {q.text: q for q in about_bars(blurred, axis)}
        for question in about_bars(data, axis):
            other = next(
                (q for text, q in seen.items() if text.split("Answers")[0] == question.text.split("Answers")[0]), None
            )
            if other is None:
                continue  # too close to be asked about then
            if "absolute" in question.verifier.params:
                off = abs(Fraction(other.verifier.params["value"]) - Fraction(question.verifier.params["value"]))
                assert off <= Fraction(str(question.verifier.params["absolute"])), (question, other)
            elif question.kind not in ("read", "difference", "range", "sum", "ratio"):
                assert other.answer == question.answer, (question, other, values)


def test_wrong_answers_are_outside_the_tolerance(charts: list[Task], sandbox: Sandbox) -> None:
    for task in charts:
        assert verify(task.reference, task, sandbox).score == 1
        assert not any(verify(wrong, task, sandbox).score for wrong in task.wrong), task.prompt


def test_points_that_hide_each_other_are_seen() -> None:
    near = plots.draw_points(series(10, 11, 50, 90), series(10, 11, 60, 20))
    apart = plots.draw_points(series(10, 40, 70, 90), series(10, 80, 60, 20))
    assert not plots.points_are_apart(near)
    assert plots.points_are_apart(apart)
    axes = plots.axes_of_points(series(10, 40, 70, 90), series(10, 80, 60, 20))
    found = list(about_points(series(10, 40, 70, 90), series(10, 80, 60, 20), axes))
    assert [q.answer for q in asked("most x", found)] == ["item3"]
    assert [q.answer for q in asked("least y", found)] == ["item0"]


DIAGRAM = Diagram(
    title="Topics", columns=(("a", "b"), ("c", "d"), ("e", "f")), spans=(), concepts=(),
    arrows=(("a", "c"), ("a", "d"), ("b", "d"), ("c", "e"), ("d", "e"), ("d", "f")),
)  # fmt: skip


def test_questions_about_arrows() -> None:
    found = list(about_diagram(DIAGRAM))
    assert {(q.text.split("? ")[0], q.answer) for q in asked("into", found)} == {
        ('How many arrows lead to "d"', "2"),
        ('How many arrows lead to "e"', "2"),
    }
    assert [q.answer for q in asked("ways", found)] == ["2"]  # a -> c -> e and a -> d -> e
    assert {q.answer for q in asked("link", found)} == {"d"}
    assert [q.answer for q in asked("longest", found)] == ["3"]
    assert [q.answer for q in asked("ends", found)] == ["2"]
    assert [q.answer for q in asked("branching", found)] == ["2"]
    assert [q.answer for q in asked("reach", found)] == ["c, d, e, f", "d, e, f"]


def test_what_is_counted_may_follow_the_number() -> None:
    counts = {"above", "between", "above mean", "inside", "falls", "turns", "into", "out", "ends", "longest", "branching", "joining", "ways"}  # fmt: skip
    data = series(10, 90, 41, 30, 95, 20, 60, ordered=True)
    found = [*about_bars(data, plots.axis_for(95, 250)), *about_bars(data, plots.axis_for(95, 250), "point"), *about_diagram(DIAGRAM)]  # fmt: skip
    seen = set()
    for question in found:
        if question.kind in counts:
            nouns = question.verifier.params["nouns"]
            seen.add(nouns[0])
            for noun in nouns:
                assert judge(f"{question.answer} {noun}", wanted(question.verifier.params)) == "right"
            assert judge(f"{question.answer} metres", wanted(question.verifier.params)) == "unit not asked for"
    assert seen >= {"bars", "points", "labels", "times", "arrows", "boxes", "chains"}
    assert [_counted(asked) for asked in ("At how many boxes", "How many more names")] == [["boxes", "box"], ["names", "name"]]  # fmt: skip


def test_an_arrow_crosses_no_box_it_does_not_join() -> None:
    picture = draw_diagram(DIAGRAM)
    boxes = {m.label: m.attributes for m in picture.marks if m.tag == "rect"}
    lines = [m for m in picture.marks if m.tag == "polyline"]
    assert len(boxes) == 6
    assert len(lines) == 6
    for line in lines:
        (x1, _), (x2, _) = (map(float, pair.split(",")) for pair in str(line.attributes["points"]).split())
        for label, box in boxes.items():
            left, right = float(box["x"]), float(box["x"]) + float(box["width"])
            assert label in line.label.split(" -> ") or x2 <= left or x1 >= right


def test_names_lie_inside_their_part_of_two_circles() -> None:
    parts = (("alpha", "beta", "gamma", "delta", "epsilon"), ("shared",), ("quite_a_long_name", "b"))
    picture = draw_sets(Sets(names=("one", "two"), parts=parts, spans=(), concepts=()))
    left, right = picture.marks
    for shape in picture.shapes[4:]:
        for x, y in itertools.product(shape.box[::2], shape.box[1::2]):
            inside = [_in_circle(x, y, circle.attributes) for circle in (left, right)]
            assert inside == [shape.text not in parts[2], shape.text not in parts[0]], shape.text
    assert picture.is_legible()


def _in_circle(x: float, y: float, circle: Mapping[str, Any]) -> bool:
    return (x - circle["cx"]) ** 2 + (y - circle["cy"]) ** 2 < circle["r"] ** 2


def test_labels_that_break_lists_or_documents_are_not_drawn() -> None:
    assert is_label("str.join")
    assert is_label("read only")
    assert not any(map(is_label, ["a, b", "<b>", "a & b", "naïve", "", "x" * 30, 'say "x"', "line\nbreak"]))


def test_svg_is_escaped() -> None:
    canvas = Canvas(100, 40)
    canvas.text(10, 20, "a < b & c")
    assert ">a &lt; b &amp; c</text>" in canvas.picture().svg


# ------------------------------------------------------------------------------------------------- rendered


def test_what_is_drawn_is_what_is_seen(browser: Sandbox) -> None:
    """The browser paints bars as high as the data say, and letters as wide as the legibility check thinks."""
    data = series(3, 7, 12, 5, labels="alpha beta gamma delta")
    picture, axis = plots.draw_bars(data, labelled=True), plots.axis_of_bars(data)
    seen = render(picture.svg, "svg", picture.width, picture.height, browser)
    for mark, value in zip(picture.marks, data.values, strict=True):
        middle = int(float(mark.attributes["x"]) + float(mark.attributes["width"]) / 2)
        painted = (seen.pixels[:, middle, :3] == [int(plots.BLUE[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=1)
        assert abs(painted.sum() - value * axis.scale) <= 1
    assert {line["text"] for line in seen.lines} == set(picture.texts)
    for line in seen.lines:
        left, right = line["box"][0], line["box"][0] + line["box"][2]
        boxes = [shape.box for shape in picture.shapes if shape.text == line["text"]]
        assert any(a - 3 <= left and right <= c + 3 for a, _, c, _ in boxes), line
    assert text_width("gamma", 12) == pytest.approx(
        next(x for x in seen.lines if x["text"] == "gamma")["box"][2], abs=1.5
    )


def test_a_reference_sent_back_is_not_rendered_again(env: SynthesisEnv, browser: Sandbox) -> None:
    task = next(task for task in drafted("draw", env, 1) if len(task.wrong) > 2)
    runs: list[str] = []

    class Counting(Bubblewrap):
        def run(self, *args: Any, **kwargs: Any) -> ExecResult:
            runs.extend(["rendered"] * ('"document"' in kwargs.get("stdin", "")))
            return super().run(*args, **kwargs)

    counting = Counting()
    try:
        assert verify(task.reference, task, counting).score == 1
        assert verify(f"Here it is:\n{task.reference}", task, counting).score == 1
        assert verify("<answer></answer>", task, counting).score == 0
        assert verify(f"<answer>{task.prompt}</answer>", task, counting).score == 0
        assert len(runs) == 1
        assert verify(task.wrong[0], task, counting).score == 0
        assert len(runs) == 2
    finally:
        counting.close()


def test_every_way_to_spoil_a_picture_changes_it() -> None:
    labels = "one_rather_long_label two_rather_long_labels three_rather_long_labels four_rather_long_label"
    picture = plots.draw_bars(series(3, 7, 12, 5, labels=labels), labelled=True)
    texts = [way(picture, random.Random(1)) for way in WAYS]
    assert all(texts)
    assert len(set(texts)) == len(WAYS)
    assert picture.svg not in texts
    assert spoiled(picture, random.Random(2), 4) == spoiled(picture, random.Random(2), 4)


def test_a_mirror_image_that_may_look_the_same_is_not_planted() -> None:
    canvas = Canvas(100, 100)
    canvas.circle(50, 50, 20, "mark", plots.BLUE, label="disc")
    mirrored = next(way for way in WAYS if way.__name__ == "mirrored")
    assert mirrored(canvas.picture(), random.Random(1)) == ""


def test_pages_fit_their_window(env: SynthesisEnv, browser: Sandbox) -> None:
    kinds = {}
    for concept in env.concepts:
        for scope in ("concept", "siblings"):
            for page in pages(scope, "medium", env.material[concept.id], env):  # type: ignore[index]
                kinds.setdefault(page.build.__name__, page)
    assert set(kinds) == {"cards", "table", "article", "form"}
    for page in kinds.values():
        seen = render(page.html, "html", 640, page.height, browser)
        assert not seen.failed
        assert not seen.requests
        boxes = [line["box"] for line in seen.lines]
        assert all(x >= 0 and y >= 0 and x + w <= 640 and y + h <= page.height for x, y, w, h in boxes)
        assert {word for _, text in page.items for word in text.split()} <= {w for x in seen.lines for w in x["text"].split()}  # fmt: skip


# ------------------------------------------------------------------------------------------------- pairs


def test_pairs_are_data_that_can_be_resumed(charts: list[Task], browser: Sandbox, tmp_path: Path) -> None:
    tasks = [*charts[:2], charts[0]]
    shown: list[tuple[int, int]] = []
    assert export_pairs(tasks, tmp_path, browser, lambda *at: shown.append(at)) == len({t.images[0] for t in tasks})
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert shown[-1] == (len(rows), len(rows))
    for row in rows:
        png = (tmp_path / row["image"]).read_bytes()
        pixels = decode(png)
        assert pixels.shape[:2] == (row["height"], row["width"])
        assert (pixels[..., 3] == 255).all()
        assert len(row["licences"]) == len(row["spans"]) > 0
        assert png == render_png(Image(source=row["code"], format=row["format"], width=row["width"], height=row["height"]), browser)  # fmt: skip
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "images").iterdir()}
    (tmp_path / "pairs.jsonl").unlink()  # killed before the rows were written
    export_pairs(tasks, tmp_path, browser)
    assert [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()] == rows
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "images").iterdir()} == stamps
    assert not np.array_equal(pixels, np.full_like(pixels, 255))


def test_drawings_of_a_concept_have_something_to_be_confused_with(env: SynthesisEnv) -> None:
    found = [d for c in env.concepts for d in drawings("concept", "medium", env.material[c.id], env)]  # type: ignore[index]
    assert len({d.layout[:40] for d in found}) >= 3
    assert all(other.svg != d.picture.svg for d in found for other in d.others)


def test_colours_are_compared_where_they_differ_and_nowhere_else() -> None:
    """The shortcut gives what the formula gives for every pixel."""
    rng = np.random.default_rng(1)
    a = rng.uniform([0, -60, -60], [100, 60, 60], (20, 30, 3))
    b = np.where(rng.random((20, 30, 1)) < 0.7, a, a[::-1])
    assert np.allclose(_apart(a, b), deltaE_ciede2000(a, b), atol=1e-12)
    assert np.allclose(_apart(a, a[3, 4]), deltaE_ciede2000(a, np.broadcast_to(a[3, 4], a.shape)), atol=1e-12)
