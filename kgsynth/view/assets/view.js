// Puts the page together. What is looked at is the address: #c_… for a concept, nothing for the whole graph.

import { palette } from "./colours.js";
import { ask, byId, count } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Columns } from "./graph.js";
import { Legend } from "./legend.js";
import { Panel } from "./panel.js";
import { Search } from "./search.js";

const POLL = 4000; // milliseconds between looks at whether the graph has grown
const dark = matchMedia("(prefers-color-scheme: dark)");

const page = { theme: localStorage.getItem("theme") ?? (dark.matches ? "dark" : "light"), opened: [] };

const address = () => location.hash.slice(1); // ids need no escapes

const go = (id) => {
  if (address() === id) look();
  else location.hash = id;
};

async function load() {
  const columns = new Columns(await ask("api/graph"));
  page.drawing?.close();
  const colourOf = (domain) => palette(page.theme, columns.domains.length)[columns.domains.findIndex(({ name }) => name === domain)];
  const drawing = new Drawing(columns, page.theme, pick);
  Object.assign(page, { columns, drawing, opened: [] });
  page.panel = new Panel(columns, colourOf);
  page.legend = new Legend(columns, (off) => drawing.hide(off));
  page.legend.paint(drawing.colours);
  byId("every").hidden = true;
  byId("links").hidden = !drawing.cross;
  byId("links").setAttribute("aria-pressed", String(drawing.crossShown));
  page.search ??= new Search((domain) => page.panel.colourOf(domain), go);
  byId("loading").hidden = true;
  byId("grown").hidden = true;
  await look();
  window.kgsynth = page; // for those who want to ask the page themselves, and its tests
}

function pick(row) {
  go(row === null ? "" : page.columns.id[row]);
}

// Show what the address names. A neighbour of what is open is opened too, anything else starts anew.
async function look() {
  const id = address();
  if (!id) return whole();
  const { columns, drawing, panel } = page;
  let found;
  try {
    found = await ask(`api/concept/${encodeURIComponent(id)}`);
  } catch (error) {
    return panel.failed(error.message);
  }
  if (address() !== id || page.columns !== columns) return undefined; // something else was asked for meanwhile
  const row = columns.rowOf.get(found.id);
  if (row !== undefined) {
    if (!drawing.lit.has(row)) page.opened = [row];
    else if (!page.opened.includes(row)) page.opened = [...page.opened, row];
    drawing.open(page.opened, row);
    drawing.look();
  }
  return panel.concept(found, row);
}

async function whole() {
  const was = page.opened.length;
  page.opened = [];
  if (was) {
    page.drawing.open([]);
    page.drawing.look();
  }
  document.title = `${page.columns.title} · kgsynth view`;
  page.panel.whole(await ask("api/operations").catch(() => []));
}

async function poll() {
  if (document.hidden || !page.columns) return;
  const { op } = await ask("api/version").catch(() => ({ op: page.columns.op }));
  const button = byId("grown");
  button.hidden = op === page.columns.op;
  button.textContent = `${count(Math.abs(op - page.columns.op), "change")} · show`;
}

function useTheme(theme) {
  page.theme = theme;
  document.documentElement.dataset.theme = theme;
  if (!page.drawing) return;
  page.drawing.useTheme(theme);
  page.legend.paint(page.drawing.colours);
  look();
}

function switchTheme() {
  const theme = page.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", theme);
  useTheme(theme);
}

function switchLinks() {
  page.drawing.showCross(!page.drawing.crossShown);
  byId("links").setAttribute("aria-pressed", String(page.drawing.crossShown));
}

function seeWhole() {
  if (address()) go("");
  else page.drawing.look();
}

const KEYS = {
  "/": () => page.search.focus(), Escape: seeWhole, 0: seeWhole, "+": () => page.drawing.zoom(0.6), "-": () => page.drawing.zoom(1 / 0.6),
  l: switchLinks, t: switchTheme,
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !page.drawing || event.target.matches("input")) return;
  const act = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
});
addEventListener("hashchange", () => page.columns && look());
dark.addEventListener("change", () => localStorage.getItem("theme") ?? useTheme(dark.matches ? "dark" : "light"));
byId("nearer").onclick = KEYS["+"];
byId("farther").onclick = KEYS["-"];
byId("whole").onclick = seeWhole;
byId("links").onclick = switchLinks;
byId("theme").onclick = switchTheme;
byId("grown").onclick = load;
setInterval(poll, POLL);

document.documentElement.dataset.theme = page.theme;
load().catch((error) => {
  const gl = document.createElement("canvas").getContext("webgl2");
  byId("loading").textContent = gl ? error.message : "This browser has no WebGL 2, which draws the graph; switch hardware acceleration on.";
  byId("loading").classList.add("failed");
  console.error(error);
});
