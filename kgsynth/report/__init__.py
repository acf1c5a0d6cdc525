"""A run on one page: `report.html`, one file that opens from disk and asks no network.

Everything shown comes from the run folder (data.py), so a report can be written at any time, also while a run is at
work. What pages and models said is escaped: text by Jinja2, data by JSON with `<`, `>` and `&` written as escapes; the
page's own policy lets only its two scripts run and nothing be fetched.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import math
from pathlib import Path
from typing import Any

from kgsynth import __version__
from kgsynth.errors import ConfigError, RunError
from kgsynth.files import write_atomically
from kgsynth.report import cost, data, samples
from kgsynth.report import tasks as told

ASSETS = Path(__file__).parents[1] / "report_assets"
SCRIPTS = ("report.js", "growth.js", "tasks.js", "start.js")  # in this order, as one script


def write_report(run_dir: Path) -> Path:
    """Write `run_dir/report.html` (atomically) and return its path.

    Raises RunError when there is no such folder, ConfigError when plotly is not installed.
    """
    run_dir = Path(run_dir)
    if not run_dir.is_dir():
        raise RunError(f"there is no run folder {run_dir}; make one with `kgsynth run RECIPE.toml`")
    html = render(data.read_run(run_dir))
    path = run_dir / "report.html"
    write_atomically(path, html.encode("utf-8", errors="replace"))
    return path


def render(run: data.Run) -> str:
    """The page of a run as HTML text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    plotly = _plotly()
    script = "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "count": count,
        "usd": usd,
        "share": _percent,
        "day": day,
        "tasks": _tasks,
    }
    policy = " ".join(f"'sha256-{_digest(text)}'" for text in (plotly, script))
    return environment.get_template("report.html.j2").render(
        **_content(run),
        version=__version__,
        css=Markup((ASSETS / "report.css").read_text(encoding="utf-8")),
        plotly=Markup(plotly),
        script=Markup(script),
        script_hashes=Markup(policy),
    )


def _content(run: data.Run) -> dict[str, Any]:
    """The template's variables."""
    graph, graph_problem = data.graph(run)
    tasks, rejected = run.tasks, run.rejected
    grown = graph.pop("growth") if graph else None
    born = grown.pop("born") if grown else []
    page = {
        "graph": graph,
        "growth": grown,
        "cost": cost.cost(run.ledger, kept=graph["nodes"] if graph else [], born=born, tasks=len(tasks or [])),
        "counts": data.task_counts(tasks) if tasks else None,
        "axes": told.axes(run.coverage, tasks) if tasks else {},
        "calibration": told.calibration(tasks or []),
        "rejections": [{"check": r["check"], "count": r["count"]} for r in data.rejections(rejected or [])],
        "sft": data.curves(run.metrics, "sft"),
        "rl": data.curves(run.metrics, "rl"),
        "evaluation": data.evaluation(run),
        "by_type": data.by_type(run.result),
        "times": data.stage_times(run.stages),
    }
    return {
        "run": run,
        "graph_problem": graph_problem,
        "page": page,
        "page_json": _json(page),
        "tiles": _tiles(run, page),
        "growth_words": _growth_words(grown) if grown else "",
        "pairs": [(row["rule"], pair) for row in grown["rules"] for pair in row["pairs"]] if grown else [],
        "cost_tiles": _cost_tiles(page["cost"]) if page["cost"] else [],
        "rejections": data.rejections(rejected or []),
        "funnel": told.funnel(len(tasks or []), rejected) if rejected else [],
        "misses": told.misses(run.coverage),
        "deviation": _deviation(run.coverage),
        "task_cost": told.cost_by_type(run.ledger, tasks or [], rejected or []),
        "samples": samples.samples(tasks or []),
        "licences": data.licences(graph["sources"]) if graph else [],
        "spending": data.spending(run.ledger),
        "offline": bool(run.brain) and "no model" in str(run.brain),
    }


def _deviation(coverage: data.Row) -> list[tuple[str, float]]:
    """(axis, share of the tasks that would have to be others for the wanted distribution); "cells" is all axes together."""
    found = coverage.get("deviation")
    rows = found.items() if isinstance(found, dict) else ()
    return [("cells" if axis == "joint" else axis, off) for axis, off in rows if isinstance(off, (int, float))]


def _tiles(run: data.Run, page: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Headline numbers: (label, figure, a few words). A figure that is not there yet is "–"."""
    graph = page["graph"]
    stats = graph["stats"] if graph else {}
    held_out = next((row for row in page["evaluation"] if row["split"] == "held-out tasks"), {})
    kept, rejected = len(run.tasks or []), sum(row["count"] for row in page["rejections"])
    seconds = sum(row["seconds"] for row in page["times"])
    share = f"{kept / (kept + rejected):.0%} of {kept + rejected} drafts" if kept else ""
    tiles = [
        ("concepts", count(stats.get("concepts")), f"{stats['max_level'] + 1} levels" if stats else ""),
        ("edges", count(stats.get("edges")), f"{stats['cycles']} cycles" if stats else ""),
        ("several parents", _percent(stats.get("multi_parent_share")), "of concepts below a root" if stats else ""),
        ("tasks kept", count(kept) if run.tasks is not None else "–", share),
        ("held-out reward", _change(held_out), "before → after RL" if held_out else ""),
        ("time", duration(seconds) if seconds else "–", "all stages"),
    ]
    usd, calls = (sum(row[key] for row in data.spending(run.ledger)) for key in ("usd", "calls"))
    return [*tiles, ("model cost", f"${usd:.2f}", f"{count(calls)} calls")] if run.ledger else tiles


def _growth_words(growth: data.Row) -> str:
    """One sentence on what became of everything that was proposed."""
    by_rule = {row["rule"]: row["count"] for row in growth["rules"]}
    supported, new = sum(by_rule.values()), by_rule.get("new", 0)
    refused = sum(row["count"] for row in growth["refused"])
    said = (
        f"Pages supported {count(supported)} finer concepts: {count(new)} were not in the graph yet, "
        if supported
        else ""
    )
    known = f"{count(supported - new)} were known already and gained a parent. " if supported else ""
    return f"{said}{known}Refused: {count(refused)}, see below." if refused else said + known


def _cost_tiles(spent: data.Row) -> list[tuple[str, str, str]]:
    total, each = spent["total"], spent["per_concept"]
    rest = [
        f"{spent[key]:,} {word}" for key, word in (("cached", "from the cache"), ("failed", "failed")) if spent[key]
    ]
    tiles = [
        ("model calls", count(total["calls"]), ", ".join(rest)),
        ("tokens", count(total["tokens"]), f"{count(total['completion_tokens'])} of them written"),
    ]
    if spent["priced"]:
        tiles.append(
            (
                "growing cost",
                usd(total["usd"]),
                f"{count(total['searches'])} paid searches" if total["searches"] else "",
            )
        )
    if each:
        kept = f"{count(spent['kept'])} concepts are kept"
        price = usd(each["usd"]) if spent["priced"] else f"{count(each['tokens'])} tokens"
        tiles += [("per kept concept", price, kept), ("calls per kept concept", f"{each['calls']:.1f}", "")]
    return tiles


def _change(row: dict[str, Any]) -> str:
    return " → ".join("–" if (v := row.get(key)) is None else f"{v:.2f}" for key in ("before", "after")) if row else "–"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def count(number: float | None) -> str:
    """12345 -> "12,345"; None -> "–"."""
    return "–" if number is None else f"{number:,.0f}"


def usd(dollars: float) -> str:
    """Three figures at least: 12.345 -> "$12.35"; 0.00012345 -> "$0.000123"; 0 -> "$0"."""
    if not dollars:
        return "$0"
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.{2 - math.floor(math.log10(dollars))}f}"


def _tasks(number: float) -> str:
    """Wanted tasks, which need not be whole: 12 -> "12"; 0.25 -> "0.2"."""
    return f"{number:,.1f}".removesuffix(".0")


def day(at: float) -> str:
    """Seconds since the epoch -> "2026-11-30 14:05", UTC; "–" when not known."""
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%d %H:%M") if at else "–"


def duration(seconds: float) -> str:
    """4.2 -> "4.2 s"; 75 -> "1 min 15 s"; 7300 -> "2 h 2 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _json(value: Any) -> Any:
    """JSON that may stand inside <script>: no `<`, `>`, `&`, no NaN."""
    from markupsafe import Markup

    text = json.dumps(_finite(value), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _plotly() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ConfigError("the report needs plotly; install it with `pip install 'kgsynth[report]'`") from error
    return get_plotlyjs()
