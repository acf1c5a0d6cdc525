// --- growth and its cost -----------------------------------------------------------------------------------------

const VERDICTS = { atomic: PALETTE[3], expand: PALETTE[0], unsure: PALETTE[9] };
const FEW_TICKS = { nticks: 5, tickangle: 0 };
const SHARED = { showlegend: false, hovermode: "x unified" };
const titled = (text) => ({ title: { text, standoff: 8, font: { size: 12.5 } } });
const area = (x, y, name, colour, more = {}) => ({
  type: "scatter", mode: "lines", stackgroup: "all", name: plain(name), x, y, line: { width: 0.8, color: colour }, ...more,
});
const seriesColour = (name, i) => (name === "other" ? PALETTE[9] : PALETTE[i % PALETTE.length]);

// The names of the traces under their chart, where they may wrap.
function legend(id, entries) {
  const target = byId(id);
  if (!target) return;
  target.replaceChildren(...entries.map(([name, colour]) => {
    const dot = element("i", { className: "dot" });
    dot.style.background = colour;
    return element("span", {}, dot, name);
  }));
}

// Where work was taken up again after a pause.
function pauses(minutes) {
  return minutes.map((x) => ({
    type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: css("--warn"), width: 1.5, dash: "dot" },
  }));
}

function drawGrowth() {
  const growth = DATA.growth;
  if (!growth) return;
  const { timeline, criteria, rules } = growth;
  if (timeline) {
    const ink = { color: css("--ink"), width: 1.8, dash: "dash" };
    const stacked = Object.entries(timeline.groups).map(([name, y], i) => area(timeline.op, y, name, seriesColour(name, i)));
    const edges = (x) => line(x.map((at, i) => [at, timeline.edges[i]]), "edges", { line: ink });
    chart("growth-ops", [...stacked, edges(timeline.op)], { ...SHARED, xaxis: titled("operations on the graph"), yaxis: { rangemode: "tozero" } });
    legend("growth-ops-legend", [["edges", css("--ink")], ...Object.keys(timeline.groups).map((name, i) => [name, seriesColour(name, i)])]);
    const concepts = line(timeline.minutes.map((at, i) => [at, timeline.concepts[i]]), "concepts", { line: { color: PALETTE[0], width: 2.5 } });
    chart("growth-time", [concepts, edges(timeline.minutes)], {
      ...SHARED, xaxis: titled("minutes at work"), yaxis: { rangemode: "tozero" }, shapes: pauses(growth.resumed),
    });
    legend("growth-time-legend", [["concepts", PALETTE[0]], ["edges", css("--ink")]]);
  }
  const verdicts = [...new Set(criteria.map((row) => row.verdict))];
  const order = [...new Set(criteria.map((row) => plain(row.criterion)))];
  chart("criteria", verdicts.map((verdict) => {
    const rows = criteria.filter((row) => row.verdict === verdict);
    return bars(rows.map((row) => [row.criterion, row.count]), { name: verdict, marker: { color: VERDICTS[verdict] || PALETTE[4] }, hovertemplate: `%{y}: %{x} ${plain(verdict)}<extra></extra>` });
  }), {
    ...RANKED, barmode: "stack", yaxis: { ...RANKED.yaxis, categoryorder: "array", categoryarray: order },
    xaxis: FEW_TICKS, showlegend: false,
  });
  legend("criteria-legend", verdicts.map((verdict) => [verdict, VERDICTS[verdict] || PALETTE[4]]));
  const colours = rules.map((row) => (row.rule === "new" ? PALETTE[0] : PALETTE[5]));
  chart("rules", [bars(rules.map((row) => [row.rule, row.count]), { marker: { color: colours }, texttemplate: "%{x:,}", textposition: "auto" })], { ...RANKED, xaxis: FEW_TICKS });
}

function drawCost() {
  const spent = DATA.cost && DATA.cost.over_time;
  if (!spent) return;
  const stacked = Object.entries(spent.models).map(([name, y], i) => area(spent.minutes, y, name, PALETTE[i % PALETTE.length]));
  const isMoney = spent.unit === "usd";
  chart("cost-time", stacked, {
    ...SHARED, shapes: pauses(spent.resumed), xaxis: titled("minutes at work"),
    yaxis: { rangemode: "tozero", tickprefix: isMoney ? "$" : "" }, margin: { l: 60, r: 12, t: 8, b: 44 },
  });
  legend("cost-time-legend", Object.keys(spent.models).map((name, i) => [name, PALETTE[i % PALETTE.length]]));
  chart("cost-each", [line(spent.minutes.map((at, i) => [at, spent.each[i]]), "per concept", { line: { color: PALETTE[4], width: 2.5 } })], {
    ...SHARED, shapes: pauses(spent.resumed), xaxis: titled("minutes at work"),
    yaxis: { rangemode: "tozero", tickprefix: isMoney ? "$" : "" }, margin: { l: 60, r: 12, t: 8, b: 44 },
  });
}

