// What is on the canvas: all concepts as dots, drawn by sigma with WebGL, and the ones that are open.

import { THEMES, faded, palette } from "./colours.js";
import { byId, el } from "./dom.js";
import { arrange } from "./opened.js";

const FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SHAPES = { "-1": "open", 0: "broad", 1: "atomic" }; // by `atomic`: not judged, no, yes
const CROSS_SHOWN = 4000; // links that are not of the tree are drawn from the start when they are no more than these
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Drawing {
  constructor(columns, theme, onPick) {
    this.columns = columns;
    this.hidden = new Set(); // domains that the legend has switched off
    this.opened = [];
    this.lit = new Set();
    this.places = new Map();
    this.useTheme(theme);
    this.renderer = new Sigma(new graphology.Graph(), byId("canvas"), this.settings());
    this.renderer.setCustomBBox(columns.bounds());
    this.addNames();
    this.renderer.on("beforeRender", () => this.moveNames());
    this.renderer.on("clickNode", ({ node }) => onPick(Number(node)));
    this.renderer.on("clickStage", () => onPick(null));
    this.renderer.on("enterNode", () => (byId("canvas").style.cursor = "pointer"));
    this.renderer.on("leaveNode", () => (byId("canvas").style.cursor = "grab"));
    this.graph = new graphology.Graph({ type: "directed", multi: true });
    this.addAll();
    this.renderer.setGraph(this.graph); // draws it
  }

  close() {
    this.renderer.kill();
    byId("names").replaceChildren();
  }

  useTheme(theme) {
    this.theme = THEMES[theme];
    this.colours = palette(theme, this.columns.domains.length);
    if (!this.renderer) return;
    this.addNames();
    this.renderer.refresh({ skipIndexation: true });
  }

  hide(domains) {
    this.hidden = new Set(domains);
    this.renderer.refresh();
  }

  showCross(shown) {
    this.crossShown = shown;
    if (shown && !this.crossAdded) this.addCross();
    this.renderer.refresh({ skipIndexation: true });
  }

  // Bring these rows and their neighbours forward; the last one is what is looked at. None: the whole graph.
  open(rows) {
    for (const edge of this.litEdges ?? []) this.graph.dropEdge(edge);
    const { lit, links, places } = arrange(this.columns, rows);
    for (const row of this.places.keys()) if (!places.has(row)) this.graph.mergeNodeAttributes(row, this.columns.place(row));
    for (const [row, { x, y }] of places) this.graph.mergeNodeAttributes(row, { x, y });
    Object.assign(this, { opened: rows, lit, places });
    this.litEdges = links.map(([parent, child]) =>
      this.graph.addDirectedEdge(parent, child, { kind: "lit", type: "arrow", size: 0.35, zIndex: 2 }));
    this.renderer.refresh();
  }

  // Move so that what is open fills the canvas, or the whole graph does.
  look() {
    const camera = this.renderer.getCamera();
    const state = this.opened.length ? this.around([...this.places.values()]) : { x: 0.5, y: 0.5, ratio: 1 };
    if (still.matches) camera.setState(state);
    else camera.animate(state, { duration: 450 });
  }

  around(places) {
    const xs = places.map(({ x }) => x);
    const ys = places.map(({ y }) => y);
    const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { x, y } = this.renderer.viewportToFramedGraph(
      this.renderer.graphToViewport({ x: (left + right) / 2, y: (bottom + top) / 2 }));
    const { width, height } = this.renderer.getDimensions();
    const camera = this.renderer.getCamera().getState();
    const unit = this.pixels(); // of one unit of the layout, now
    const room = 190; // pixels at each side, for names
    const ratio = Math.max(
      ((right - left) * unit) / Math.max(120, width - 2 * room),
      ((top - bottom) * unit) / Math.max(120, height - 2 * room),
      (6 * unit) / Math.max(120, height),
    );
    return { x, y, ratio: camera.ratio * ratio };
  }

  zoom(factor) {
    const camera = this.renderer.getCamera();
    camera.animate({ ratio: camera.getBoundedRatio(camera.ratio * factor) }, { duration: still.matches ? 0 : 160 });
  }

  pixels() {
    const [a, b] = [0, 100].map((x) => this.renderer.graphToViewport({ x, y: 0 }));
    return Math.hypot(a.x - b.x, a.y - b.y) / 100;
  }

  addAll() {
    const { columns, graph } = this;
    for (let row = 0; row < columns.n; row += 1) {
      const { x, y } = columns.place(row);
      const type = SHAPES[columns.atomic[row]];
      graph.addNode(row, { x, y, size: columns.size[row], label: columns.name[row], type });
    }
    columns.tree.forEach((parent, row) => {
      if (parent >= 0) graph.addDirectedEdge(parent, row, { kind: "tree", type: "hair", size: 1 });
    });
    this.cross = columns.parents.length - graph.size;
    this.crossShown = this.cross <= CROSS_SHOWN;
    if (this.crossShown) this.addCross();
  }

  addCross() {
    this.crossAdded = true;
    const { parents, children, tree } = this.columns;
    parents.forEach((parent, link) => {
      const child = children[link];
      if (tree[child] !== parent) this.graph.addDirectedEdge(parent, child, { kind: "cross", type: "hair", size: 1 });
    });
  }

  settings() {
    const { createNodeBorderProgram, NodeCircleProgram, EdgeLineProgram, EdgeArrowProgram } = Sigma.rendering;
    const ring = (core) => createNodeBorderProgram({
      borders: [{ size: { value: core }, color: { attribute: "color" } }, { size: { fill: true }, color: { attribute: "core" } }],
    });
    return {
      itemSizesReference: "positions",
      zoomToSizeRatioFunction: (ratio) => ratio,
      nodeProgramClasses: { broad: NodeCircleProgram, atomic: ring(0.5), open: ring(0.3) },
      edgeProgramClasses: { hair: EdgeLineProgram, arrow: EdgeArrowProgram },
      defaultNodeType: "broad",
      defaultEdgeType: "hair",
      minEdgeThickness: 1.2,
      zIndex: true,
      stagePadding: 36,
      minCameraRatio: 0.002,
      maxCameraRatio: 1.6,
      labelRenderedSizeThreshold: 5,
      labelGridCellSize: 110,
      labelDensity: 0.8,
      defaultDrawNodeLabel: (context, data) => this.drawLabel(context, data),
      defaultDrawNodeHover: (context, data) => this.drawHover(context, data),
      nodeReducer: (row, data) => this.node(Number(row), data),
      edgeReducer: (edge, data) => this.edge(edge, data),
    };
  }

  node(row, data) {
    const { columns, theme, lit } = this;
    const domain = columns.domain[row];
    const shown = { ...data, row, color: this.colours[domain], core: data.type === "atomic" ? theme.strong : theme.ground };
    if (this.hidden.has(domain) && !lit.has(row)) shown.hidden = true;
    if (!lit.size) return shown;
    if (!lit.has(row)) return { ...shown, color: theme.dim, core: theme.dim, label: null };
    return { ...shown, forceLabel: true, zIndex: 1, highlighted: row === this.opened.at(-1) };
  }

  edge(edge, data) {
    const { theme, columns, hidden } = this;
    if (data.kind === "lit") return { ...data, color: theme.link };
    const [parent, child] = this.graph.extremities(edge).map(Number);
    const gone = this.lit.size || hidden.has(columns.domain[parent]) || hidden.has(columns.domain[child]);
    if (gone || (data.kind === "cross" && !this.crossShown)) return { ...data, hidden: true };
    const opacity = data.kind === "tree" ? theme.tree : theme.cross;
    return { ...data, color: faded(this.colours[columns.domain[parent]], opacity) };
  }

  drawLabel(context, data, free = false) {
    if (!data.label) return;
    const { angle } = this.places.get(data.row) ?? {};
    const first = this.columns.level[data.row] === 0 || data.row === this.opened.at(-1);
    const text = data.label.length > 42 ? `${data.label.slice(0, 40)}…` : data.label;
    context.font = `${first ? 600 : 400} ${first ? 14 : 12}px ${FONT}`;
    if (angle === undefined && !free && !this.claim(data, context.measureText(text).width)) return;
    context.save();
    context.translate(data.x, data.y);
    let offset = data.size + 5;
    if (angle !== undefined) { // names of what stands on a circle point away from its middle
      const leftwards = Math.cos(angle) < -1e-9;
      context.rotate(leftwards ? Math.PI - angle : -angle);
      if (leftwards) [context.textAlign, offset] = ["right", -offset];
    }
    this.write(context, text, offset, 4);
    context.restore();
  }

  write(context, text, x, y) {
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = this.theme.ground;
    context.strokeText(text, x, y);
    context.fillStyle = this.theme.ink;
    context.fillText(text, x, y);
  }

  // Whether the room for a name is free in this frame; it is taken then.
  claim({ x, y, size }, width) {
    const box = [x + size, y - 9, x + size + width + 14, y + 9];
    if (this.taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) return false;
    this.taken.push(box);
    return true;
  }

  drawHover(context, data) {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = this.theme.strong;
    context.stroke();
    this.drawLabel(context, { ...data, label: this.columns.name[data.row] }, true);
  }

  addNames() {
    this.names = this.columns.domains.map(({ name }, i) => {
      const shown = el("span", {}, name);
      shown.style.color = this.colours[i];
      return shown;
    });
    byId("names").replaceChildren(...this.names);
    this.widths = this.names.map((shown) => shown.offsetWidth);
  }

  // A domain's name stands above it while the whole of it is in sight. Other names keep clear of it.
  moveNames() {
    this.taken = [];
    const unit = this.pixels();
    const { height } = this.renderer.getDimensions();
    this.columns.domains.forEach(({ x, y, radius }, i) => {
      const at = this.renderer.graphToViewport({ x, y: y + radius });
      const shown = !this.lit.size && !this.hidden.has(i) && radius * unit > 24 && radius * unit < height * 0.7;
      this.names[i].style.opacity = shown ? 1 : 0;
      if (shown) this.taken.push([at.x - this.widths[i] / 2, at.y - 18, at.x + this.widths[i] / 2, at.y]);
      this.names[i].style.transform = `translate(${at.x}px, ${at.y}px) translate(-50%, -100%)`;
    });
  }
}
