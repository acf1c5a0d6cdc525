// The whole graph as columns, with neighbours: rows are numbers, ids are for addresses and the server.

export class Columns {
  constructor(answer) {
    Object.assign(this, answer); // op, title, domains; id, name, domain, level, atomic, x, y, size, tree; parents, children
    this.n = this.id.length;
    this.rowOf = new Map(this.id.map((id, row) => [id, row]));
    this.down = neighbours(this.n, this.parents, this.children);
    this.up = neighbours(this.n, this.children, this.parents);
    this.levels = this.level.reduce((a, b) => Math.max(a, b), 0) + 1;
    this.members = this.domains.map(() => 0);
    for (const domain of this.domain) this.members[domain] += 1;
  }

  place(row) {
    return { x: this.x[row] / 10, y: this.y[row] / 10 };
  }

  // The way from a root to a concept, through the parent each one stands with.
  way(row) {
    const found = [row];
    for (let at = this.above(row); at >= 0; at = this.above(at)) found.unshift(at);
    return found;
  }

  above(row) {
    return this.tree[row] >= 0 ? this.tree[row] : (this.up.of(row)[0] ?? -1);
  }

  // Distances from the edge of the picture: [least x, greatest x], [least y, greatest y].
  bounds() {
    const reach = (axis, sign) =>
      this.domains.reduce((far, d) => Math.max(far, sign * d[axis] + d.radius), -Infinity) * sign;
    return { x: [reach("x", -1), reach("x", 1)], y: [reach("y", -1), reach("y", 1)] };
  }
}

// Compressed rows: the ends of all links that leave a row stand together.
function neighbours(n, from, to) {
  const start = new Int32Array(n + 1);
  for (const row of from) start[row + 1] += 1;
  for (let row = 0; row < n; row += 1) start[row + 1] += start[row];
  const ends = new Int32Array(from.length);
  const next = start.slice();
  from.forEach((row, link) => {
    ends[next[row]] = to[link];
    next[row] += 1;
  });
  return { of: (row) => ends.subarray(start[row], start[row + 1]) };
}
