"""The picture of what `graph_scale.py` measured: microseconds over size, both logarithmic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

OURS = {
    "edge": ("guarded edge, durable", "#0b6e4f"),
    "merge": ("merge, durable", "#1f4e9e"),
    "guard alone": ("guard alone: read, check, levels", "#6dbf9b"),
}
RIVALS = {
    "networkx, has_path: edge": ("networkx, has_path (in memory)", "#b07d12"),
    "networkx, is_directed_acyclic_graph: edge": ("networkx, whole graph (in memory)", "#c1502e"),
    "whole-graph check: edge": ("view rebuilt and checked (in memory)", "#8b1e3f"),
}


def draw(result: dict[str, Any], path: Path) -> None:
    """result: as `graph_scale.py` prints it. CPU medians, so that what else the machine did is left out."""
    figure, axes = pyplot.subplots(figsize=(8, 5.4), dpi=110, layout="constrained")
    for lines, style in ((OURS, "-o"), (RIVALS, "--s")):
        for measure, (label, colour) in lines.items():
            if by_size := result["times"].get(measure):
                sizes = sorted(by_size, key=int)
                axes.plot([int(size) for size in sizes], [by_size[size]["cpu"] for size in sizes], style, color=colour, label=label)  # fmt: skip
    axes.axhline(100, color="#999999", linewidth=0.8)
    axes.annotate("100 µs", (1, 100), xycoords=("axes fraction", "data"), ha="right", va="bottom", color="#777777")
    axes.set(xscale="log", yscale="log", xlabel="concepts (three edges each)", ylabel="µs of CPU for each, median")
    axes.set_title("What one more edge costs a graph that must stay acyclic", loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, fontsize=9, loc="outside lower center", ncols=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
