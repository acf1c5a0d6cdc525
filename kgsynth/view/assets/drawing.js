// What is on the canvas: all concepts as dots, drawn by sigma with WebGL, and the ones that are open.

import { THEMES, faded, palette } from "./colours.js";
import { byId, el } from "./dom.js";
import { Dots } from "./dots.js";
import { NARROWEST, arrange } from "./opened.js";

const FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const RIM = { "-1": 0.3, 0: 1, 1: 0.5 }; // of the radius, by `atomic`: not judged, no, yes
const forward = (size) => 1 + 0.35 * size; // of a dot that is open
const behind = (size) => 0.25 * Math.min(size, 3); // of the others meanwhile
const CROSS_SHOWN = 4000; // links that are not of the tree are drawn from the start when they are no more than these
const ROOTS_NAMED = 500; // roots are named at any zoom when they are no more than these, as far as there is room
const SIDE = 180; // pixels left for names at each side of what is open
const CLOSEST = 50; // pixels of one unit of the layout, at most
const HOME = { cameraState: { x: 0.5, y: 0.5, ratio: 1, angle: 0 } };
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Drawing {
  constructor(columns, theme, onPick) {
    this.columns = columns;
    this.hidden = new Set(); // domains that the legend has switched off
    this.opened = [];
    this.current = null; // row that is looked at
    this.lit = new Set();
    this.places = new Map();
    this.rootsNamed = columns.level.filter((level) => level === 0).length <= ROOTS_NAMED;
    this.labels = []; // of this frame, to be drawn when it is known which ones there are
    this.useTheme(theme);
    this.renderer = new Sigma(new graphology.Graph(), byId("canvas"), this.settings());
    this.renderer.setCustomBBox(columns.bounds());
    this.addNames();
    this.renderer.on("beforeRender", () => (this.labels = []));
    this.renderer.on("afterRender", () => this.write());
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
    const strength = Math.min(3, (50_000 / this.columns.n) ** 0.25); // fewer lines may be stronger
    const lines = (opacity) => this.colours.map((colour) => faded(colour, opacity * strength));
    this.lines = { tree: lines(this.theme.tree), cross: lines(this.theme.cross) };
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

  // Bring these rows, opened in this order, and their neighbours forward; `current` is what is looked at. None: the whole graph.
  open(rows, current = null) {
    for (const edge of this.litEdges ?? []) this.graph.dropEdge(edge);
    const { lit, links, places } = arrange(this.columns, rows);
    for (const row of this.places.keys()) if (!places.has(row)) this.graph.mergeNodeAttributes(row, this.columns.place(row));
    for (const [row, { x, y }] of places) this.graph.mergeNodeAttributes(row, { x, y });
    Object.assign(this, { opened: rows, current, lit, places });
    this.litEdges = links.map(([parent, child]) =>
      this.graph.addDirectedEdge(parent, child, { kind: "lit", type: "arrow", size: 0.35, zIndex: 2 }));
    this.renderer.refresh();
  }

  // Move so that what is open fills the canvas, or the whole graph does.
  look() {
    const camera = this.renderer.getCamera();
    const state = this.opened.length ? this.around([...this.places.values()]) : HOME.cameraState;
    if (still.matches) camera.setState(state);
    else camera.animate(state, { duration: 450 });
  }

  // The camera that has these places in sight, with room for their names.
  around(places) {
    const xs = places.map(({ x }) => x);
    const ys = places.map(({ y }) => y);
    const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { width, height } = this.renderer.getDimensions();
    const middle = this.renderer.graphToViewport({ x: (left + right) / 2, y: (bottom + top) / 2 }, HOME);
    const { x, y } = this.renderer.viewportToFramedGraph(middle, HOME);
    const ratio = Math.max(
      (right - left) / (width - 2 * Math.min(SIDE, width / 4)),
      Math.max(2 * NARROWEST, top - bottom) / (height - 2 * Math.min(SIDE, height / 4)),
    );
    return { x, y, ratio: ratio * this.pixels(HOME) };
  }

  zoom(factor) {
    const camera = this.renderer.getCamera();
    camera.animate({ ratio: camera.getBoundedRatio(camera.ratio * factor) }, { duration: still.matches ? 0 : 160 });
  }

  // Pixels of one unit of the layout.
  pixels(seen) {
    const [a, b] = [0, 100].map((x) => this.renderer.graphToViewport({ x, y: 0 }, seen));
    return Math.hypot(a.x - b.x, a.y - b.y) / 100;
  }

  addAll() {
    const { columns, graph } = this;
    for (let row = 0; row < columns.n; row += 1) {
      const { x, y } = columns.place(row);
      graph.addNode(row, { x, y, size: columns.size[row], label: columns.name[row], rim: RIM[columns.atomic[row]] });
    }
    columns.tree.forEach((parent, row) => {
      if (parent >= 0) this.addLine(parent, row, "tree");
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
      if (tree[child] !== parent) this.addLine(parent, child, "cross");
    });
  }

  addLine(from, to, kind) {
    const { domain } = this.columns;
    this.graph.addDirectedEdge(from, to, { kind, type: "hair", size: 1, parent: domain[from], child: domain[to] });
  }

  settings() {
    const { EdgeLineProgram, EdgeArrowProgram } = Sigma.rendering;
    const { x, y } = this.columns.bounds();
    const unit = Math.min(byId("canvas").clientWidth / (x[1] - x[0]), byId("canvas").clientHeight / (y[1] - y[0]));
    return {
      itemSizesReference: "positions",
      zoomToSizeRatioFunction: (ratio) => ratio,
      nodeProgramClasses: { dot: Dots },
      edgeProgramClasses: { hair: EdgeLineProgram, arrow: EdgeArrowProgram },
      defaultNodeType: "dot",
      defaultEdgeType: "hair",
      minEdgeThickness: 1.2,
      zIndex: true,
      stagePadding: 36,
      minCameraRatio: Math.min(1, unit / CLOSEST),
      maxCameraRatio: 1.6,
      labelRenderedSizeThreshold: 4,
      labelGridCellSize: 110,
      labelDensity: 0.8,
      defaultDrawNodeLabel: (context, data) => this.labels.push([context, data]),
      defaultDrawNodeHover: (context, data) => this.drawHover(context, data),
      nodeReducer: (row, data) => this.node(Number(row), data),
      edgeReducer: (_, data) => this.edge(data),
    };
  }

  node(row, data) {
    const { columns, theme, lit } = this;
    const domain = columns.domain[row];
    const core = columns.atomic[row] === 1 ? theme.strong : theme.ground;
    const shown = { ...data, row, color: this.colours[domain], core };
    if (this.hidden.has(domain) && !lit.has(row)) shown.hidden = true;
    if (!lit.size) return { ...shown, forceLabel: this.rootsNamed && columns.level[row] === 0 };
    if (!lit.has(row)) return { ...shown, color: theme.dim, core: theme.dim, label: null, size: behind(data.size) };
    return { ...shown, size: forward(data.size), forceLabel: true, zIndex: 1, highlighted: row === this.current };
  }

  edge(data) {
    const { kind, parent, child } = data;
    if (kind === "lit") return { ...data, color: this.theme.link };
    const gone = this.lit.size || this.hidden.has(parent) || this.hidden.has(child) || (kind === "cross" && !this.crossShown);
    return gone ? { ...data, hidden: true } : { ...data, color: this.lines[kind][parent] };
  }

  // Names of domains first, then of roots and so on; a name whose room is taken is left out unless its concept is open.
  write() {
    const taken = this.moveNames();
    const level = ([, data]) => this.columns.level[data.row];
    for (const [context, data] of this.labels.sort((a, b) => level(a) - level(b) || a[1].row - b[1].row)) {
      const box = this.box(context, data);
      if (!this.lit.size && taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      this.drawLabel(context, data);
    }
  }

  box(context, { x, y, size, label, row }) {
    context.font = this.font(row);
    return [x + size, y - 9, x + size + 14 + context.measureText(shortened(label)).width, y + 9];
  }

  font(row) {
    const first = this.columns.level[row] === 0 || row === this.current;
    return `${first ? 600 : 400} ${first ? 14 : 12}px ${FONT}`;
  }

  drawLabel(context, { x, y, size, label, row }) {
    const { angle, tilted, inside } = this.places.get(row) ?? {};
    context.save();
    context.font = this.font(row);
    context.translate(x, y);
    let [right, down] = [size + 5, 4];
    if (inside) [context.textAlign, right, down] = ["center", 0, size + 16];
    else if (angle !== undefined) { // names of what stands on a circle point away from it
      const leftwards = Math.cos(angle) < -1e-9;
      if (tilted) context.rotate(leftwards ? Math.PI - angle : -angle);
      if (leftwards) [context.textAlign, right] = ["right", -right];
    }
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = this.theme.ground;
    context.strokeText(shortened(label), right, down);
    context.fillStyle = this.theme.ink;
    context.fillText(shortened(label), right, down);
    context.restore();
  }

  drawHover(context, data) {
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = this.theme.strong;
    context.stroke();
    this.drawLabel(context, { ...data, label: this.columns.name[data.row] });
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

  // A domain's name stands above it while the whole of it is in sight. Boxes of those shown, in pixels.
  moveNames() {
    const unit = this.pixels();
    const { height } = this.renderer.getDimensions();
    return this.columns.domains.flatMap(({ x, y, radius }, i) => {
      const at = this.renderer.graphToViewport({ x, y: y + radius });
      const shown = !this.lit.size && !this.hidden.has(i) && radius * unit > 24 && radius * unit < height * 0.7;
      this.names[i].style.opacity = shown ? 1 : 0;
      this.names[i].style.transform = `translate(${at.x}px, ${at.y}px) translate(-50%, -100%)`;
      return shown ? [[at.x - this.widths[i] / 2, at.y - 18, at.x + this.widths[i] / 2, at.y]] : [];
    });
  }
}

const shortened = (name) => (name.length > 42 ? `${name.slice(0, 40)}…` : name);

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
