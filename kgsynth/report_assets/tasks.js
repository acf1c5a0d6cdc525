// --- what the task set holds, and how hard it is -----------------------------------------------------------------

const LABEL_COLOURS = [PALETTE[9], PALETTE[2], PALETTE[1], PALETTE[5], PALETTE[3]]; // unsolved ... mastered
const NARROW = { margin: { l: 10, r: 16, t: 4, b: 26 } };
const NAMES = { ...RANKED.yaxis, automargin: true };

function drawAxis(axis, rows) {
  const names = rows.map((row) => plain(row.value));
  const wanted = rows.some((row) => row.target !== null);
  const more = wanted ? rows.map((row) => ` of ${Number(row.target.toFixed(1))} wanted`) : rows.map(() => "");
  const made = {
    type: "bar", orientation: "h", y: names, x: rows.map((row) => row.achieved), customdata: more, marker: { color: PALETTE[0] }, width: 0.62,
    hovertemplate: "%{y}: %{x}%{customdata}<extra></extra>",
  };
  const ticks = {
    type: "scatter", mode: "markers", y: names, x: rows.map((row) => row.target), hoverinfo: "skip",
    marker: { symbol: "line-ns", size: 17, line: { width: 2.5, color: css("--ink") } },
  };
  chart(`axis-${axis}`, wanted ? [made, ticks] : [made], { ...NARROW, showlegend: false, yaxis: NAMES, xaxis: { rangemode: "tozero", nticks: 5 } });
}

function drawCalibration({ types, labels }) {
  const names = types.map((row) => plain(row.type));
  const rates = {
    type: "scatter", mode: "markers", y: names, x: types.map((row) => row.rate), marker: { size: 9, color: PALETTE[0] },
    error_x: {
      type: "data", symmetric: false, array: types.map((row) => row.high - row.rate), arrayminus: types.map((row) => row.rate - row.low),
      thickness: 1.6, width: 4, color: css("--soft"),
    },
    customdata: types.map((row) => row.tasks), hovertemplate: "%{y}: %{x:.0%} of %{customdata} tasks<extra></extra>",
  };
  chart("pass-rates", [rates], { ...NARROW, yaxis: NAMES, xaxis: { range: [-0.03, 1.03], tickformat: ".0%", nticks: 5 } });
  const shares = labels.map((name, i) => ({
    type: "bar", orientation: "h", name, y: names, x: types.map((row) => row.labels[i]), marker: { color: LABEL_COLOURS[i] },
    hovertemplate: `%{y}: %{x} ${plain(name)}<extra></extra>`,
  }));
  chart("labels", shares, { ...NARROW, barmode: "stack", showlegend: false, yaxis: NAMES, xaxis: { nticks: 5 } });
  legend("labels-legend", labels.map((name, i) => [name, LABEL_COLOURS[i]]));
}

function drawTasks() {
  Object.entries(DATA.axes).forEach(([axis, rows]) => drawAxis(axis, rows));
  if (DATA.calibration) drawCalibration(DATA.calibration);
}
