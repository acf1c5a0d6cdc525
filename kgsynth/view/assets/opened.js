// Opening a concept brings its parents and children around it: parents above, children below, on one circle.

export const MOST = 60; // neighbours brought close; the others of a broad concept stay where they are
export const NARROWEST = 24; // radius of a circle, in the layout's unit
const APART = 5; // between neighbours on a circle
const LEVEL = 12; // names of so many are written level, those of more along the radius

// Concepts opened one after the other -> { lit: every row to show, links: [parent, child], places: row -> {x, y, angle, tilted, inside} }.
export function arrange(columns, opened) {
  const lit = new Set();
  const places = new Map();
  const links = new Map();
  for (const row of opened) {
    lit.add(row);
    const parents = nearby(columns, columns.up.of(row));
    const children = nearby(columns, columns.down.of(row));
    for (const parent of parents) links.set(`${parent} ${row}`, [parent, row]);
    for (const child of children) links.set(`${row} ${child}`, [row, child]);
    const fresh = [parents, children].map((rows) => rows.filter((other) => !lit.has(other)));
    fresh.flat().forEach((other) => lit.add(other));
    if (places.has(row)) fan(places, row, fresh.flat());
    else circle(places, row, columns.place(row), ...fresh);
  }
  return { lit, links: [...links.values()], places };
}

function nearby(columns, rows) {
  return [...rows].sort((a, b) => columns.level[a] - columns.level[b] || a - b).slice(0, MOST);
}

function circle(places, row, middle, parents, children) {
  const n = parents.length + children.length;
  const radius = Math.max(NARROWEST, (n * APART) / (2 * Math.PI));
  places.set(row, { ...middle, inside: true });
  [...parents, ...children].forEach((other, i) => {
    const angle = Math.PI / 2 - ((i - (parents.length - 1) / 2) * 2 * Math.PI) / n;
    places.set(other, { ...at(middle, radius, angle), tilted: n > LEVEL });
  });
}

// A concept on a circle moves outwards, and its own neighbours fan out beyond it.
function fan(places, row, others) {
  const here = places.get(row);
  const angle = here.angle ?? Math.PI / 2;
  const radius = Math.max(NARROWEST * 0.6, (others.length * APART) / Math.PI);
  const middle = others.length ? at(here, radius + NARROWEST * 0.4, angle) : here;
  places.set(row, { ...middle, angle, tilted: here.tilted, inside: others.length > 0 });
  others.forEach((other, i) => {
    const turn = others.length > 1 ? (i / (others.length - 1) - 0.5) * Math.PI * 0.95 : 0;
    places.set(other, { ...at(middle, radius, angle - turn), tilted: others.length > LEVEL / 2 });
  });
}

const at = (from, radius, angle) => ({
  x: from.x + radius * Math.cos(angle),
  y: from.y + radius * Math.sin(angle),
  angle,
});
