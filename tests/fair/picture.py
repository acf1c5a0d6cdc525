"""`picture`: the same picture drawn in other ways, and pictures that are nearly the same."""

from __future__ import annotations

from tests.fair import Case

NS = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="150"'
BADGE = f"""{NS}>
<rect width="200" height="150" fill="#f8f8f0"/>
<rect x="20" y="20" width="60" height="50" fill="#c0392b"/>
<circle cx="140" cy="60" r="35" fill="#2980b9"/>
<path d="M20 130 L100 95 L180 130 Z" fill="#27ae60" stroke="#145a32" stroke-width="3"/>
<text x="30" y="50" font-family="sans-serif" font-size="18" fill="white">Box</text>
</svg>"""
RED = '<rect x="20" y="20" width="60" height="50" fill="#c0392b"/>'
BLUE = '<circle cx="140" cy="60" r="35" fill="#2980b9"/>'

PAGE = """<!doctype html>
<style>
body { margin: 0; font-family: sans-serif; background: #fff }
header { background: #2c3e50; color: #fff; padding: 12px 16px; font-size: 20px }
.card { margin: 16px; padding: 12px; border: 1px solid #ccc }
h2 { margin: 0 0 8px; font-size: 18px; color: #c0392b }
p { margin: 0 0 10px; font-size: 14px; color: #333 }
button { background: #27ae60; color: #fff; border: 0; padding: 8px 14px; font-size: 14px }
</style>
<header>Weather station</header>
<div class="card"><h2>Today</h2><p>Wind from the north, eleven degrees, rain.</p><button>Refresh</button></div>"""
REWRITTEN = """<html><body style="margin:0;background:white;font-family:'DejaVu Sans',sans-serif">
<div style="background:rgb(44,62,80);color:white;padding:12px 16px;font-size:1.25rem">Weather <b
style="font-weight:400">station</b></div><section style="margin:16px;padding:12px;border:1px solid #cccccc">
<div style="font-size:18px;font-weight:bold;color:#c0392b;margin-bottom:8px">Today</div>
<div style="font-size:14px;color:#333333;margin-bottom:10px">Wind from the north,
eleven degrees, rain.</div><span style="display:inline-block;background:#27ae60;color:#fff;padding:8px 14px;
font-size:14px">Refresh</span></section></body></html>"""

CASES = [
    Case(
        verifier="picture",
        params={"format": "svg", "reference": {"source": BADGE}, "width": 200, "height": 150},
        reference=BADGE,
        right=(
            f"```svg\n{BADGE}\n```",
            '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a badge -->\n' + BADGE,
            BADGE.replace(RED, '<path d="M20,20h60v50h-60z" fill="rgb(192,57,43)"/>').replace(
                BLUE, '<ellipse cx="140" cy="60" rx="35" ry="35" style="fill:hsl(204,64%,44%)"/>'
            ),
            BADGE.replace(NS, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 150"'),
            BADGE.replace(NS, NS + ' viewBox="0 0 400 300"')
            .replace(">\n<rect", '><g transform="scale(2)">\n<rect', 1)
            .replace("</svg>", "</g></svg>"),
            BADGE.replace(BLUE, f'<defs><g id="a">{BLUE}</g></defs><use href="#a"/>'),
            BADGE.replace(BLUE, BLUE + RED).replace(RED, "", 1),
            BADGE.replace('cx="140"', 'cx="140.6"').replace("#2980b9", "#2a81ba"),
            BADGE.replace(NS, NS + ' style="background:#f8f8f0"').replace(
                '<rect width="200" height="150" fill="#f8f8f0"/>', ""
            ),
        ),
        wrong=(
            BADGE.replace('cx="140"', 'cx="145"'),
            BADGE.replace('cx="140"', 'cx="60"').replace('<rect x="20"', '<rect x="120"'),
            BADGE.replace('r="35"', 'r="31"'),
            BADGE.replace("#2980b9", "#8e44ad"),
            BADGE.replace("#c0392b", "#e67e22"),
            BADGE.replace("#f8f8f0", "#d8d8f0"),
            BADGE.replace(BLUE, ""),
            BADGE.replace(RED, ""),
            BADGE.replace("Box", ""),
            BADGE.replace("Box", "Bag"),
            BADGE.replace('stroke-width="3"', 'stroke-width="0"'),
            BADGE.replace('width="200" height="150"', 'width="100" height="75" viewBox="0 0 200 150"', 1),
            BADGE.replace("</svg>", '<circle cx="100" cy="20" r="8"/></svg>'),
            BADGE.replace(NS + ">", NS + '><g transform="rotate(5)">').replace("</svg>", "</g></svg>"),
            BADGE.replace("</svg>", ""),
        ),
    ),
    Case(
        verifier="picture",
        params={"format": "html", "reference": {"source": PAGE}, "width": 360, "height": 200},
        reference=PAGE,
        right=(
            REWRITTEN,
            PAGE.replace("margin: 16px", "margin: 17px"),
            PAGE.replace("0 0 10px", "0 0 12px"),
            PAGE.replace("<button>Refresh</button>", '<button type="button" onclick="location.reload()">Refresh</button>'),
            PAGE.replace("<header>", "<main><header>").replace("Today", "<span>To</span><i style='font-style:normal'>day</i>"),
            PAGE + "<script>document.querySelector('h2').textContent += '!'</script>",
            PAGE.replace("#27ae60", "#28ae61").replace("#333", "#353535"),
        ),
        wrong=(
            PAGE.replace("eleven", "twelve"),
            PAGE.replace("Today", "today"),
            PAGE.replace("Wind from the north, eleven", "Eleven from the north, wind"),
            PAGE.replace("margin: 16px", "margin: 24px"),
            PAGE.replace("0 0 10px", "0 0 20px"),
            PAGE.replace("#2c3e50", "#8e44ad"),
            PAGE.replace("#27ae60", "#2980b9"),
            PAGE.replace("#c0392b", "#2980b9"),
            PAGE.replace("<button>Refresh</button>", ""),
            PAGE.replace("1px solid #ccc", "0"),
            PAGE.replace("color: #333", "color: transparent"),
            PAGE.replace("font-size: 14px; color: #333", "font-size: 16px; color: #333"),
            PAGE.replace("<header>Weather station</header>", ""),
            PAGE.replace("</p>", " More rain.</p>"),
        ),
    ),
]  # fmt: skip
