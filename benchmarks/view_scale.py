"""How `kgsynth view` keeps its speed: time to lay a graph out and pack it, bytes sent, time until it is drawn, time per frame.

    python benchmarks/view_scale.py                          # 1,000, 10,000 and 50,000 concepts
    python benchmarks/view_scale.py --sizes 50000 200000

The graphs are those of `tests/forest.py`, in an SQLite file; the page is opened in headless Chromium, which draws with
SwiftShader (on the CPU) where there is no GPU. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kgsynth.store.embedded import EmbeddedStore
from kgsynth.view.answers import Answers
from kgsynth.view.layout import radial
from kgsynth.view.server import PageServer
from tests.chromium import Browser
from tests.forest import plant

PAN = """(async () => {
  const camera = kgsynth.drawing.renderer.getCamera(), times = [];
  for (let i = 0, last = performance.now(); i < 40; i += 1) {
    camera.setState({ x: 0.5 + 0.02 * Math.sin(i / 5) });
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - last);
    last = performance.now();
  }
  return times.slice(5);
})()"""
RENDERER = """(() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  return gl.getParameter(gl.getExtension("WEBGL_debug_renderer_info").UNMASKED_RENDERER_WEBGL);
})()"""


def measure(n: int, folder: Path) -> dict[str, Any]:
    """One graph of n concepts; times in milliseconds."""
    with EmbeddedStore(folder / f"{n}.sqlite") as store:
        plant(store, n)
        graph, reading = timed(store.skeleton)
        _, laying = timed(lambda: radial(graph))
        answers = Answers(store, f"{n:,} concepts")
        packed, packing = timed(lambda: gzip.compress(json.dumps(answers.graph(), separators=(",", ":")).encode(), 5))
        _, searching = timed(lambda: answers.search("binary"))
        row = {
            "concepts": n,
            "links": len(graph.parents),
            "read_ms": reading,
            "layout_ms": laying,
            "payload_ms": packing,
        }
        row |= {"kilobytes": len(packed) / 1000, "search_ms": searching}
        with PageServer(answers) as server, Browser(1440, 900) as browser:
            return row | look(browser, server.url)


def look(browser: Browser, url: str) -> dict[str, Any]:
    start = time.perf_counter()
    browser.goto(url)
    browser.wait_for("!!window.kgsynth")
    browser.call("Page.captureScreenshot", format="png")  # waits for the frame
    drawn = time.perf_counter() - start
    return {
        "drawn_ms": drawn * 1000,
        "frame_ms": statistics.median(browser.evaluate(PAN)),
        "open_ms": browser.evaluate(
            "(() => { const t = performance.now(); kgsynth.drawing.open([0], 0); return performance.now() - t })()"
        ),
        "renderer": browser.evaluate(RENDERER),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    done = work()
    return done, (time.perf_counter() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(n, Path(folder)) for n in args.sizes]
    table = Table(title=rows[0]["renderer"])
    columns = [name for name in rows[0] if name != "renderer"]
    for name in columns:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{row[name]:,.0f}" for name in columns))
    Console(width=130).print(table)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
