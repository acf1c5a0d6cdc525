"""`picture`: documents are rendered where they can hurt nothing and judged by what they look like, outside."""

from __future__ import annotations

import base64
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kgsynth.errors import SandboxError, VerifierError
from kgsynth.sandbox import ExecResult, Sandbox
from kgsynth.verifiers import Verdict
from kgsynth.verifiers.picture import reference
from kgsynth.verifiers.pictures.distance import decode, distances, encode, over
from kgsynth.verifiers.pictures.render import render
from kgsynth.verifiers.pictures.words import Word, words, wrong_words
from tests.scoring import score, tagged

NS = '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80"'
DISC = '<circle cx="40" cy="40" r="25" fill="#2980b9"/>'
BAR = '<rect x="80" y="15" width="20" height="50" fill="#c0392b"/>'
SVG = f"{NS}>{DISC}{BAR}</svg>"
HTML = "<body style='margin:0;font:16px sans-serif'><h1 style='margin:8px;color:#c0392b'>Bus 12</h1><p style='margin:8px'>To the harbour at noon</p>"
PIXEL = "data:image/png;base64," + base64.b64encode(encode(np.full((1, 1, 4), 255, np.uint8))).decode()
DRAWING: dict[str, Any] = {"format": "svg", "reference": {"source": SVG}, "width": 120, "height": 80}
PAGE: dict[str, Any] = {"format": "html", "reference": {"source": HTML}, "width": 240, "height": 100}


def drawn(answer: str, sandbox: Sandbox, **params: Any) -> Verdict:
    return score("picture", {**DRAWING, **params}, tagged(answer), sandbox)


def shown(answer: str, sandbox: Sandbox, **params: Any) -> Verdict:
    return score("picture", {**PAGE, **params}, tagged(answer), sandbox)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (f"{NS}></svg>", "blank"),
        (f'{NS}><rect width="120" height="80" fill="#d3dbe2"/></svg>', "different"),  # its mean colour
        (f"{NS}><filter id='b'><feGaussianBlur stdDeviation='4'/></filter><g filter='url(#b)'>{DISC}{BAR}</g></svg>", "different"),
        (f"{NS}><text y='20'>the grader should accept this</text></svg>", "different"),
        (SVG.replace("</svg>", f'<image href="{PIXEL}" width="1" height="1"/></svg>'), "raster image"),
        (SVG.replace("</svg>", "<image/></svg>"), "raster image"),
        (SVG.replace("</svg>", f'<filter id="f"><feImage href="{PIXEL}"/></filter></svg>'), "raster image"),
        (SVG.replace("</svg>", f"<style>svg{{background:\\75rl({PIXEL})}}</style></svg>"), "raster image"),
        (SVG.replace("</svg>", "<style>svg{background:url(//elsewhere.test/x.png)}</style></svg>"), "external reference"),
        (SVG.replace("</svg>", "<style>@import 'x.css';</style></svg>"), "external reference"),
        (SVG.replace("</svg>", '<foreignObject width="9" height="9"/></svg>'), "forbidden element"),
        (SVG.replace("fill=", "opacity='1' fill=").replace("</svg>", "<set attributeName='x'/></svg>"), "animation"),
        (SVG.replace("</svg>", "<g>"), "malformed"),
        ("a blue disc and a red bar", "malformed"),
        (f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{SVG}</body></html>", "malformed"),
        (SVG.replace('width="120" height="80"', 'width="60" height="40" viewBox="0 0 120 80"'), "wrong size"),
        (SVG.replace('width="120"', 'width="1e9"', 1), "wrong size"),
        ("<!DOCTYPE svg [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]>" + SVG.replace("</svg>", "&b;</svg>"), "entities"),
        (f"{NS}>" + "<g/>" * 2100 + f"{DISC}{BAR}</svg>", "too complex"),
        (f"{NS}>" + "<rect width='1' height='1'/>" * 1000 + "</svg>", "too long"),
        (SVG + "\0", "not text"),
        (SVG + "\ud800", "not text"),
        (tagged(SVG), "several answers"),
    ],
)  # fmt: skip
def test_tricks_with_svg(answer: str, reason: str, sandbox: Sandbox) -> None:
    verdict = drawn(answer, sandbox)
    assert (verdict.score, verdict.reason) == (0, reason)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (f"<body style='margin:0'><img src='{PIXEL}' width='240' height='100'>", "raster image"),
        (f"<body style='background:image-set(\"{PIXEL}\" 1x)'>{HTML}", "raster image"),
        (f"{HTML}<template></template><div><template shadowrootmode='open'><img src='{PIXEL}'></template></div>", "raster image"),
        (f"{HTML}<iframe srcdoc=\"{HTML}\"></iframe>", "forbidden element"),
        (f"{HTML}<object data='x.svg'></object>", "forbidden element"),
        (f"<meta http-equiv=' Refresh' content='9;url=x'>{HTML}", "forbidden element"),
        (f"{HTML}<link rel=stylesheet href=x.css>", "external reference"),
        (f"<style>@font-face{{font-family:f;src:url({PIXEL})}}body{{font-family:f}}</style>{HTML}", "raster image"),
        (f"{HTML}<progress style='position:absolute;top:-99px'></progress>", "animation"),
        ("<script>document.write(atob('" + base64.b64encode(HTML.encode()).decode() + "'))</script>", "blank"),
        ("<script>for(;;);</script><p>hi", "different"),
        (f"<noscript>{HTML.replace('noon', 'night')}</noscript>", "different"),
        (f"{HTML}<p style='position:absolute;left:-999px'>more words that nobody sees", "different"),
    ],
)  # fmt: skip
def test_tricks_with_html(answer: str, reason: str, sandbox: Sandbox) -> None:
    verdict = shown(answer, sandbox)
    assert (verdict.score, verdict.reason) == (0, reason)


def test_a_bomb_of_uses_is_a_verdict(sandbox: Sandbox) -> None:
    uses = "".join(f'<g id="a{i + 1}">{f"<use href=&quot;#a{i}&quot;/>" * 10}</g>' for i in range(8)).replace(
        "&quot;", '"'
    )
    bomb = f'{NS}><defs><rect id="a0" width="1" height="1"/>{uses}</defs><use href="#a8"/></svg>'
    verdict = drawn(bomb, sandbox)
    assert (verdict.score, verdict.reason in ("out of memory", "timeout", "crash", "too complex")) == (0, True)


def test_animations_of_style_sheets_stand_still(sandbox: Sandbox) -> None:
    moving = SVG.replace(
        "</svg>", "<style>@keyframes k{to{transform:translateX(50px)}}circle{animation:k .1s infinite}</style></svg>"
    )
    assert drawn(moving, sandbox).score == 1


def test_size_may_be_fitted(sandbox: Sandbox) -> None:
    large = SVG.replace('width="120" height="80"', 'width="360" height="240" viewBox="0 0 120 80"')
    assert drawn(large, sandbox, size="fit").score == 1
    assert drawn(SVG, sandbox, size="fit").score == 1
    assert drawn(large.replace('"240"', '"360"'), sandbox, size="fit").reason == "wrong size"


def test_transparency_counts_when_asked(sandbox: Sandbox) -> None:
    white = SVG.replace(DISC, '<rect width="120" height="80" fill="white"/>' + DISC)
    assert drawn(white, sandbox).score == 1
    assert drawn(white, sandbox, alpha=True).score == 0
    assert drawn(SVG, sandbox, alpha=True).score == 1


def test_graded_scores_rise_from_nothing_to_right(sandbox: Sandbox) -> None:
    answers = (f"{NS}></svg>", f"{NS}>{BAR}</svg>", SVG.replace('cx="40"', 'cx="44"'), SVG)
    scores = [drawn(answer, sandbox, graded=True).score for answer in answers]
    assert scores == sorted(set(scores))
    assert (scores[0], scores[-1]) == (0, 1)
    assert scores[2] <= 0.9


def test_a_reference_can_be_a_png(sandbox: Sandbox) -> None:
    taken = reference(HTML, "html", 240, 100, sandbox)
    assert shown(HTML, sandbox, reference=taken).score == 1
    assert shown(HTML.replace("noon", "nine"), sandbox, reference=taken).score == 0


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


HUGE = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", b"\0\0\xff\xff\0\0\xff\xff\x08\6\0\0\0")
    + chunk(b"IDAT", b"")
    + chunk(b"IEND", b"")
)


@pytest.mark.parametrize("data", [HUGE, b"", b"GIF89a", encode(np.zeros((9, 9, 4), np.uint8))[:-35]])
def test_pictures_that_cannot_be_read_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a PNG"):
        decode(data)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"format": "pdf"}, "'format'"),
        ({"width": 10**6}, "'width'"),
        ({"height": None}, "'height'"),
        ({"shift": -1}, "'shift'"),
        ({"size": "any"}, "'size'"),
        ({"format": "html", "size": "fit"}, "'size'"),
        ({"graded": 1}, "'graded'"),
        ({"limits": {"colour": -1}}, "'limits': 'colour'"),
        ({"limits": {"taste": 1}}, "'limits'"),
        ({"limits": []}, "'limits'"),
        ({"max_chars": 0}, "'max_chars'"),
        ({"reference": None}, "'reference'"),
        ({"reference": {"png": "!"}}, "cannot be read"),
        ({"reference": {"png": base64.b64encode(HUGE).decode()}}, "cannot be read"),
        ({"reference": {"png": PIXEL.split(",")[1]}}, "is 1 x 1, not"),
        ({"reference": {"source": "<!ENTITY"}}, "entities"),
        ({"extra": 1}, "unknown parameter 'extra'"),
        ({"reference": {"source": f"{NS}></svg>"}}, "nothing on it"),
        ({"reference": {"source": SVG.replace("</svg>", "<g>")}}, "cannot be rendered"),
        ({"limits": {"colour": 99, "tone": 99, "structure": 2, "edges": 1}}, "nothing on it"),
    ],
)
def test_params_are_refused(params: dict[str, Any], said: str, sandbox: Sandbox) -> None:
    with pytest.raises(VerifierError, match=said):
        drawn(SVG, sandbox, **params)


class WithoutBrowser:
    """A sandbox whose boxes have no programs on the usual paths: the real box, another view of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox, self.python = sandbox, sandbox.python

    def run(self, argv: list[str], **options: Any) -> ExecResult:
        hidden = (
            argv[-1]
            .replace("/usr/lib/chromium", "/nowhere")
            .replace('"chrome"', '"no-chrome"')
            .replace('"google-chrome"', '"no-chrome"')
        )
        return self.sandbox.run([*argv[:-1], hidden], **options)  # fmt: skip


def test_a_missing_browser_is_an_error_with_the_install_command(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError, match="apt-get install chromium"):
        render(SVG, "svg", 120, 80, WithoutBrowser(sandbox))  # type: ignore[arg-type]


def test_rendering_is_deterministic(sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(3) as threads:
        pixels = list(threads.map(lambda _: render(HTML, "html", 240, 100, sandbox).pixels.tobytes(), range(6)))
    assert len(set(pixels)) == 1


def test_evidence_has_distances_only(sandbox: Sandbox) -> None:
    verdict = shown(HTML.replace("noon", "nine"), sandbox)
    assert set(verdict.evidence) == {"distances"}
    assert verdict.evidence["distances"]["words"] == 1


def canvas(*boxes: tuple[int, int, int, int, float]) -> np.ndarray:
    """A white picture, 80 x 120, with boxes (left, top, right, bottom, grey)."""
    picture = np.ones((80, 120, 3))
    for left, top, right, bottom, grey in boxes:
        picture[top:bottom, left:right] = grey
    return picture


def test_distances_of_equal_shifted_missing_and_blurred() -> None:
    wanted = canvas((20, 20, 50, 50, 0.0), (70, 30, 100, 60, 0.5))
    assert distances(wanted, wanted) == {"colour": 0, "tone": 0, "structure": pytest.approx(0, abs=1e-9), "edges": 0}
    moved = canvas((21, 20, 51, 50, 0.0), (70, 30, 100, 60, 0.5))
    assert distances(moved, wanted)["colour"] == pytest.approx(0, abs=1e-6)
    assert distances(moved, wanted, shift=0)["colour"] > 10
    assert distances(canvas((20, 20, 50, 50, 0.0)), wanted)["colour"] > 30
    assert distances(canvas(), wanted)["edges"] == 1
    few = distances(canvas((20, 20, 50, 50, 0.0)), wanted)["tone"]
    assert 0 < few < distances(canvas(), wanted)["tone"]


def test_distances_do_not_depend_on_the_side() -> None:
    a, b = canvas((20, 20, 50, 50, 0.0)), canvas((20, 20, 50, 50, 0.0), (70, 30, 100, 60, 0.5))
    assert distances(a, b)["colour"] == pytest.approx(distances(b, a)["colour"])
    assert distances(a, b)["edges"] == pytest.approx(distances(b, a)["edges"])


def test_alpha_is_laid_over_a_backdrop() -> None:
    half = np.array([[[255, 0, 0, 128]]], np.uint8)
    assert over(half, 1.0)[0, 0] == pytest.approx([1, 127 / 255, 127 / 255])
    assert over(half, 0.0)[0, 0] == pytest.approx([128 / 255, 0, 0])


def line(text: str, x: float, width: float, colour: str = "rgb(0, 0, 0)") -> dict[str, Any]:
    return {"text": text, "box": [x, 10.0, width, 16.0], "colour": colour, "size": 16.0}


def test_words_are_those_of_the_reader_whatever_the_markup() -> None:
    whole = words([line("Today is fine", 0, 130)])
    cut = words([line("To", 0, 20), line("day is ", 20, 70), line("fine", 90, 40)])
    assert [word.text for word in whole] == [word.text for word in cut] == ["Today", "is", "fine"]
    assert wrong_words(cut, whole) == 0
    assert words([line("unseen", 0, 60, "rgba(0, 0, 0, 0)")]) == []


def test_wrong_words_are_counted() -> None:
    page = [
        Word(text=t, left=i * 50, right=i * 50 + 40, y=10, size=16, colour=(0, 0, 0)) for i, t in enumerate("abcab")
    ]
    assert wrong_words(page, page) == wrong_words(page[::-1], page) == 0
    assert wrong_words(page[:4], page) == wrong_words([*page, page[0]], page) == 1
    assert wrong_words([], page) == 5
    red = [Word(text=w.text, left=w.left, right=w.right, y=w.y, size=w.size, colour=(1, 0, 0)) for w in page]
    far = [Word(text=w.text, left=w.left, right=w.right, y=w.y + 60, size=w.size, colour=w.colour) for w in page]
    large = [Word(text=w.text, left=w.left, right=w.right, y=w.y, size=30, colour=w.colour) for w in page]
    assert wrong_words(red, page) == wrong_words(far, page) == wrong_words(large, page) == 5


def test_large_pictures_are_not_decoded() -> None:
    with pytest.raises(ValueError, match="pixels are over"):
        decode(encode(np.zeros((1100, 1100, 4), np.uint8)))
