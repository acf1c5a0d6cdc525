"use strict";
// Draws the graph browser and the charts from the JSON in #data. Text reaches the page through textContent only, and
// plotly, which reads a little markup in its labels, through plain().

const DATA = JSON.parse(document.getElementById("data").textContent);
const PALETTE = ["#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#ff8ab7", "#9c6b4e", "#97bbf5", "#9498a0"];
const MOST_NAMES = 40;  // written into the graph at once
const byId = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const redraws = [];

function element(tag, attributes = {}, ...children) {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
}

function layout(extra = {}) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
  const { xaxis, yaxis, ...rest } = extra;
  return {
    margin: { l: 46, r: 12, t: 8, b: 36 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: css("--soft") },
    colorway: PALETTE, bargap: 0.35, hovermode: "closest",
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") }, align: "left" },
    legend: { orientation: "h", y: 1.14, x: 0 },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis }, ...rest,
  };
}

function chart(id, traces, extra = {}) {
  const target = byId(id);
  if (!target || !traces.length) return;
  Plotly.react(target, traces, layout(extra), { displayModeBar: false, responsive: true });
}

// --- the theme ---------------------------------------------------------------------------------------------------

function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    byId("theme").textContent = isDark ? "Light" : "Dark";
    redraws.forEach((draw) => draw());
  };
  set(dark.matches);
  dark.addEventListener("change", (event) => set(event.matches));
  byId("theme").addEventListener("click", () => set(document.documentElement.dataset.theme !== "dark"));
}

// --- charts ------------------------------------------------------------------------------------------------------

const line = (points, name, more = {}) => ({
  type: "scatter", mode: points.length > 1 ? "lines" : "markers", name,
  x: points.map((p) => p[0]), y: points.map((p) => p[1]), ...more,
});

const bars = (pairs, more = {}) => ({
  type: "bar", orientation: "h", x: pairs.map((p) => p[1]), y: pairs.map((p) => plain(p[0])),
  marker: { color: PALETTE[0] }, hovertemplate: "%{y}: %{x}<extra></extra>", ...more,
});

const BINS = { type: "category", showgrid: false };
const RANKED = { yaxis: { autorange: "reversed", type: "category", gridcolor: "rgba(0,0,0,0)", ticksuffix: "  " }, margin: { l: 10, r: 16, t: 8, b: 30 } };

function smooth(points) {
  const width = Math.max(1, Math.round(points.length / 10));
  return points.map(([step], i) => {
    const near = points.slice(Math.max(0, i - width), i + width + 1);
    return [step, near.reduce((sum, p) => sum + p[1], 0) / near.length];
  });
}

function curve(id, points, extra = {}) {
  if (!points || !points.length) return;
  const raw = line(points, "per step", { line: { width: 1, color: PALETTE[0] }, opacity: 0.4 });
  const mean = line(smooth(points), "moving mean", { line: { width: 2.5, color: PALETTE[0] }, hoverinfo: "skip" });
  chart(id, points.length > 7 ? [raw, mean] : [{ ...raw, opacity: 1 }], { xaxis: { title: { text: "step", standoff: 6, font: { size: 12.5 } } }, margin: { l: 46, r: 12, t: 8, b: 44 }, ...extra });
}

function drawCharts() {
  const { graph, counts, sft, rl, evaluation, by_type: byType, times } = DATA;
  if (graph) chart("levels", [bars(graph.levels.map(([level, n]) => [level === 0 ? "0 (seeds)" : level, n]))], RANKED);
  if (counts) {
    const stacks = Object.entries(counts.granularities).map(([name, values], i) => ({
      type: "bar", name, x: counts.types.map(plain), y: values, marker: { color: PALETTE[[0, 5, 1][i]] }, hovertemplate: `%{y} ${name}<extra></extra>`,
    }));
    chart("types", stacks, { barmode: "stack", xaxis: BINS });
  }
  const figure = (value) => (value === null ? "–" : value.toFixed(2));
  const change = (rows, label, errors) => ["before", "after"].map((when, i) => ({
    type: "bar", name: when, y: rows.map((row) => row[when]),
    x: rows.map((row) => `${plain(row[label])}<br>${figure(row.before)} → ${figure(row.after)}`),
    marker: { color: [PALETTE[9], PALETTE[0]][i] }, hovertemplate: `${when}: %{y:.3f}<extra></extra>`,
    error_y: errors ? { type: "data", array: rows.map((row) => row[`stderr_${when}`]), thickness: 1.4, width: 5, color: css("--ink") } : undefined,
  }));
  const top = (rows) => Math.max(0.1, ...rows.flatMap((r) => [r.before || 0, r.after || 0])) * 1.25;
  if (evaluation.length) chart("evaluation", change(evaluation, "split", true), { xaxis: BINS, yaxis: { range: [0, top(evaluation)] } });
  if (byType.length) chart("by-type", change(byType, "type", false), { xaxis: BINS, yaxis: { range: [0, top(byType)] } });
  const share = { yaxis: { range: [-0.02, 1.02], tickformat: ".0%" } };
  curve("reward", rl.reward, { yaxis: { rangemode: "tozero" } });
  curve("loss", sft.loss, { yaxis: { rangemode: "tozero" } });
  curve("variance", rl.unanimous || rl.zero_variance, share);
  curve("lengths", rl.reply_tokens, { yaxis: { rangemode: "tozero" } });
  curve("entropy", rl.entropy, { yaxis: { rangemode: "tozero" } });
  chart("times", times.length ? [bars(times.map((t) => [t.stage, t.seconds]), { texttemplate: "%{x:.1f}", textposition: "auto" })] : [], RANKED);
}

// --- the graph browser -------------------------------------------------------------------------------------------

function startGraph({ nodes, edges, sources, tasks }) {
  const parents = nodes.map(() => []), children = nodes.map(() => []);
  edges.forEach((edge, i) => { children[edge.from].push(i); parents[edge.to].push(i); });
  const tally = new Map();
  nodes.forEach((n) => tally.set(n.domain, (tally.get(n.domain) || 0) + 1));
  const domains = [...tally.keys()].sort((a, b) => tally.get(b) - tally.get(a));
  const colour = (domain) => PALETTE[domains.indexOf(domain) % PALETTE.length];
  const crowded = nodes.length > 300;
  const size = (n) => Math.max(crowded ? 6.5 : 8, (crowded ? 18 : 24) - 4 * n.level);
  const hover = nodes.map((n) => {
    const text = n.definition.length > 220 ? n.definition.slice(0, 220) + "…" : n.definition;
    const lines = text.match(/.{1,70}(\s|$)|\S{1,70}/g) || [];
    return [`<b>${plain(n.name)}</b>  ${plain(n.domain)}`, ...lines.map(plain)].join("<br>");
  });
  const hidden = new Set(), plot = byId("graph");
  if (crowded) [plot, byId("panel")].forEach((part) => { part.style.height = "840px"; });
  let selected = null, wanted = null;  // a node; the set of nodes that a search found

  const shown = (i) => !hidden.has(nodes[i].domain);
  const near = (i) => new Set([i, ...parents[i].map((e) => edges[e].from), ...children[i].map((e) => edges[e].to)]);

  function path(list, more) {
    const x = [], y = [];
    for (const e of list) {
      const a = nodes[e.from], b = nodes[e.to];
      x.push(a.x, b.x, null);
      y.push(-a.y, -b.y, null);
    }
    return { type: "scatter", mode: "lines", x, y, hoverinfo: "skip", showlegend: false, ...more };
  }

  function traces() {
    const focus = selected !== null ? near(selected) : wanted;
    const visible = nodes.map((_, i) => i).filter(shown);
    const open = edges.filter((e) => shown(e.from) && shown(e.to));
    const touched = selected === null ? [] : open.filter((e) => e.from === selected || e.to === selected);
    const marks = {
      type: "scatter", mode: "markers", showlegend: false, customdata: visible, hovertext: visible.map((i) => hover[i]), hoverinfo: "text",
      x: visible.map((i) => nodes[i].x), y: visible.map((i) => -nodes[i].y),
      marker: {
        color: visible.map((i) => colour(nodes[i].domain)), size: visible.map((i) => size(nodes[i])),
        symbol: visible.map((i) => (nodes[i].atomic ? "diamond" : "circle")),
        opacity: visible.map((i) => (!focus || focus.has(i) ? 1 : 0.16)),
        line: { color: visible.map((i) => (i === selected ? css("--ink") : css("--card"))), width: visible.map((i) => (i === selected ? 3 : 1)) },
      },
    };
    return [
      path(open, { line: { color: css("--edge"), width: crowded ? 0.7 : 1 }, opacity: focus ? 0.45 : 1 }),
      path(touched, { line: { color: css("--accent"), width: 2 } }),
      marks, labels(visible, focus),
    ];
  }

  // As many names as fit without touching a mark or each other: coarse and well-connected concepts first.
  function labels(visible, focus) {
    const range = plot.layout?.xaxis?.range, depth = plot.layout?.yaxis?.range;
    const trace = { type: "scatter", mode: "text", hoverinfo: "skip", showlegend: false, textposition: "middle center" };
    const halo = css("--card");
    trace.textfont = { size: 11.5, color: css("--ink"), shadow: [`1px 1px 2px ${halo}`, `-1px -1px 2px ${halo}`, `1px -1px 2px ${halo}`, `-1px 1px 2px ${halo}`].join(", ") };
    if (!range || !depth) return { ...trace, x: [], y: [], text: [] };
    const across = (plot.clientWidth - 20) / (range[1] - range[0]), down = (plot.clientHeight - 20) / (depth[1] - depth[0]);
    const rank = (i) => (i === selected ? -1e6 : focus && !focus.has(i) ? 1e6 : nodes[i].level * 1000 - children[i].length - parents[i].length);
    const pixel = (i) => [(nodes[i].x - range[0]) * across, (depth[1] + nodes[i].y) * down, size(nodes[i]) / 2];
    const taken = visible.filter((i) => !focus || focus.has(i)).map((i) => { const [x, y, r] = pixel(i); return { x, y, half: r, tall: r }; });
    const kept = [];
    for (const i of [...visible].sort((a, b) => rank(a) - rank(b))) {
      if (kept.length >= MOST_NAMES || (focus && !focus.has(i))) break;
      const [x, top, radius] = pixel(i), text = short(nodes[i].name);
      const y = top + radius + 9, half = text.length * 3.3 + 3;
      if (x - half < -8 || x + half > plot.clientWidth - 12 || y < 0 || y > plot.clientHeight - 20) continue;
      if (taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < t.tall + 6)) continue;
      taken.push({ x, y, half, tall: 7 });
      kept.push([nodes[i].x, -nodes[i].y - (radius + 9) / down, plain(text)]);
    }
    return { ...trace, x: kept.map((k) => k[0]), y: kept.map((k) => k[1]), text: kept.map((k) => k[2]) };
  }

  const short = (name) => (name.length > 26 ? name.slice(0, 25) + "…" : name);
  const xs = nodes.map((n) => n.x), ys = nodes.map((n) => -n.y);
  const ends = (values, pad) => [values.reduce((a, b) => Math.min(a, b)) - pad, values.reduce((a, b) => Math.max(a, b)) + pad];
  const wide = ends(xs, 0), home = { x: ends(xs, Math.max(0.6, (wide[1] - wide[0]) * 0.04)), y: ends(ys, 0.45) };

  function draw() {
    const axis = { visible: false, fixedrange: false };
    const x = plot.layout?.xaxis?.range || home.x, y = plot.layout?.yaxis?.range || home.y;
    Plotly.react(plot, traces(), layout({
      margin: { l: 10, r: 10, t: 10, b: 10 }, dragmode: "pan", xaxis: { ...axis, range: [...x] }, yaxis: { ...axis, range: [...y] },
    }), { scrollZoom: true, displayModeBar: false, responsive: true, doubleClick: false });
  }

  function select(i) {
    selected = i;
    wanted = null;
    if (i !== null) hidden.delete(nodes[i].domain);
    chips();
    draw();
    panel();
    if (i !== null) history.replaceState(null, "", "#" + nodes[i].id);
  }

  const link = (i) => {
    const dot = element("i", { className: "dot" });
    dot.style.background = colour(nodes[i].domain);
    return element("button", { className: "link", type: "button", onclick: () => select(i) }, dot, nodes[i].name);
  };

  function panel() {
    const target = byId("panel");
    if (selected === null) {
      const most = nodes.map((_, i) => i).sort((a, b) => children[b].length - children[a].length).slice(0, 8);
      target.replaceChildren(
        element("h3", { textContent: "Pick a concept" }),
        element("p", { className: "meta", textContent: "Definition, neighbours, the quotes it rests on, and the tasks that test it appear here." }),
        element("h4", { textContent: "Most children" }), ...most.map(link));
      return;
    }
    const n = nodes[selected];
    const kind = n.atomic ? "atomic" : n.atomic === false ? "not atomic" : "not judged";
    const parts = [element("h3", { textContent: n.name }), element("p", { className: "meta", textContent: `${n.domain} · level ${n.level} · ${kind}` })];
    if (n.aliases.length) parts.push(element("p", { className: "meta", textContent: "also: " + n.aliases.join(", ") }));
    parts.push(element("p", { textContent: n.definition || "No definition recorded." }));
    if (n.reason) parts.push(element("p", { className: "meta", textContent: n.reason }));
    const section = (title, items) => items.length && parts.push(element("h4", { textContent: `${title} (${items.length})` }), ...items);
    section("Parents", parents[selected].map((e) => link(edges[e].from)));
    section("Children", children[selected].map((e) => link(edges[e].to)));
    section("Quotes it rests on", parents[selected].flatMap((e) => edges[e].quotes).map(quotation));
    section("Tasks that test it", n.tasks.slice(0, 12).map((t) =>
      element("p", {}, element("span", { className: "tag", textContent: tasks[t].type }), " " + tasks[t].prompt.slice(0, 150) + "…")));
    if (!parents[selected].length) parts.push(element("p", { className: "meta", textContent: "A seed: given, not found." }));
    target.replaceChildren(...parts);
    target.scrollTop = 0;
  }

  function quotation([source, url, text]) {
    const from = sources[source];
    const place = /^https?:\/\//i.test(url) ? element("a", { href: url, target: "_blank", rel: "noopener noreferrer", textContent: url }) : element("span", { textContent: url });
    const footer = element("footer", {}, place, " · " + (from ? from.licence : "unknown licence"));
    return element("blockquote", {}, text, footer);
  }

  function chips() {
    byId("domains").className = "tools";
    byId("domains").style.margin = "0";
    byId("domains").replaceChildren(...domains.map((domain) => {
      const dot = element("i");
      dot.style.background = colour(domain);
      const flip = () => { hidden.has(domain) ? hidden.delete(domain) : hidden.add(domain); chips(); draw(); };
      const chip = element("button", { className: "chip", type: "button", title: "show or hide", onclick: flip }, dot, domain, element("em", { textContent: tally.get(domain) }));
      chip.setAttribute("aria-pressed", String(!hidden.has(domain)));
      return chip;
    }), element("button", { className: "chip", type: "button", textContent: "Whole graph", onclick: whole }));
  }

  function whole() {
    hidden.clear();
    Plotly.relayout(plot, { "xaxis.range": [...home.x], "yaxis.range": [...home.y] });
    byId("search").value = "";
    select(null);
  }

  function search() {
    const text = byId("search").value.trim().toLowerCase();
    const names = nodes.map((n) => [n.name, ...n.aliases].join("\n").toLowerCase());
    const hits = text ? nodes.map((_, i) => i).filter((i) => names[i].includes(text)) : [];
    hits.sort((a, b) => (names[b].startsWith(text) - names[a].startsWith(text)) || nodes[a].level - nodes[b].level);
    [selected, wanted] = [null, text ? new Set(hits) : null];
    byId("found").hidden = !text;
    byId("found").replaceChildren(...hits.slice(0, 8).map((i) =>
      element("button", { type: "button", onclick: () => { byId("found").hidden = true; select(i); } }, nodes[i].name, element("i", { textContent: nodes[i].domain }))));
    if (text && !hits.length) byId("found").replaceChildren(element("button", { type: "button", disabled: true, textContent: "no concept of that name" }));
    draw();
  }

  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") byId("found").querySelector("button:not([disabled])")?.click();
    if (event.key === "Escape") whole();
  });
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) byId("found").hidden = true; });
  const asked = () => nodes.findIndex((n) => "#" + n.id === location.hash);
  addEventListener("hashchange", () => {
    if (asked() < 0) return;
    select(asked());
    byId("concepts").scrollIntoView();
  });
  select(asked() < 0 ? null : asked());
  redraws.push(draw);
  plot.on("plotly_click", (event) => {
    const hit = event.points.find((p) => p.customdata !== undefined);
    if (hit) select(hit.customdata);
  });
  plot.on("plotly_doubleclick", whole);
  let timer;
  plot.on("plotly_relayout", () => {
    clearTimeout(timer);
    timer = setTimeout(draw, 120);
  });
}
