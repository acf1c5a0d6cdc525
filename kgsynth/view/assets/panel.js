// The side panel: the whole graph in figures, or one concept with where it came from and what tests it.

import { byId, count, el } from "./dom.js";
import { MOST } from "./opened.js";

const FEW = 12; // links listed before "all"

export class Panel {
  constructor(columns, colourOf) {
    Object.assign(this, { columns, colourOf });
    this.element = byId("panel");
  }

  show(...parts) {
    this.element.replaceChildren(...parts.filter(Boolean));
    this.element.scrollTop = 0;
  }

  whole(operations) {
    const { columns } = this;
    const atomic = columns.atomic.filter((value) => value === 1).length;
    const figures = [
      [columns.n, "concepts"], [columns.parents.length, "links"], [columns.domains.length, "domains"],
      [columns.levels, "levels"], [atomic, "atomic"], [columns.level.filter((level) => level === 0).length, "roots"],
    ];
    this.show(
      el("h1", {}, columns.title),
      el("dl", { class: "figures" }, ...figures.map(([n, what]) => el("div", {}, el("dd", {}, n.toLocaleString("en")), el("dt", {}, what)))),
      el("p", { class: "hint" }, "Every dot is a concept; distance from the middle of its domain is its level. Click one to bring its parents and " +
        "children around it, click one of those to go on, click beside them to go back."),
      keys(),
      operations.length ? section("Last changes", el("ol", { class: "log" }, ...operations.map(logged))) : null,
    );
  }

  failed(message) {
    this.show(el("h1", {}, "Not found"), el("p", { class: "hint" }, message), el("p", {}, el("a", { href: "#" }, "The whole graph")));
  }

  concept(found, row) {
    const { columns } = this;
    document.title = `${found.name} · kgsynth view`;
    this.show(
      this.way(row),
      el("h1", {}, found.name, found.sense ? el("small", {}, ` (${found.sense})`) : null),
      this.badges(found),
      found.definition ? el("p", { class: "definition" }, found.definition) : el("p", { class: "hint" }, "No definition."),
      found.aliases.length ? el("p", { class: "soft" }, "Also called ", found.aliases.join(", ")) : null,
      found.keywords.length ? el("p", { class: "soft" }, "Keywords: ", found.keywords.join(", ")) : null,
      found.atomic_reason ? el("p", { class: "soft" }, "Why: ", found.atomic_reason) : null,
      this.links("Broader", found.parents),
      this.links("Narrower", found.children),
      this.sources(found),
      section(count(found.tasks_in_all, "task tests it", "tasks test it"), ...found.tasks.map(task)),
    );
    if (!columns.rowOf.has(found.id)) this.element.append(el("p", { class: "hint" }, "It is newer than the picture."));
  }

  badges(found) {
    const dot = el("i", { class: "dot" });
    dot.style.background = this.colourOf(found.domain);
    const judged = found.atomic === null ? "not judged yet" : found.atomic ? "atomic" : "has finer concepts";
    return el("p", { class: "badges" },
      el("span", {}, dot, found.domain), el("span", {}, `level ${found.level}`), el("span", {}, judged));
  }

  way(row) {
    if (row === undefined) return null;
    const steps = this.columns.way(row).slice(0, -1);
    return el("nav", { class: "way", "aria-label": "From the root" },
      ...steps.flatMap((step) => [this.link(this.columns.id[step]), " › "]));
  }

  link(id) {
    const row = this.columns.rowOf.get(id);
    const dot = el("i", { class: "dot" });
    if (row !== undefined) dot.style.background = this.colourOf(this.columns.domains[this.columns.domain[row]].name);
    return el("a", { href: `#${id}` }, dot, row === undefined ? id : this.columns.name[row]);
  }

  links(title, ids) {
    if (!ids.length) return null;
    const known = (id) => this.columns.level[this.columns.rowOf.get(id)] ?? Infinity;
    const ordered = [...ids].sort((a, b) => known(a) - known(b) || 0);
    const list = el("ul", { class: "links" });
    const fill = (n) => list.replaceChildren(...ordered.slice(0, n).map((id) => el("li", {}, this.link(id))));
    fill(FEW);
    const more = ids.length > FEW ? el("button", {
      class: "more",
      onclick: (event) => {
        fill(ids.length);
        event.target.remove();
      },
    }, `all ${ids.length.toLocaleString("en")}`) : null;
    const note = ids.length > MOST ? el("p", { class: "soft" }, `${MOST} of them are drawn close by.`) : null;
    return section(`${title} · ${ids.length.toLocaleString("en")}`, list, more, note);
  }

  sources({ sources: pages, parents }) {
    const none = parents.length ? "No page is quoted for its place." : "A root: it was given, not found on a page.";
    if (!pages.length) return section("Sources", el("p", { class: "hint" }, none));
    return section(`Sources · ${pages.length}`, ...pages.map((page) => el("article", {},
      el("h3", {}, outside(page.url, page.title || page.url)),
      el("p", { class: "soft" }, outside(page.url, page.url)),
      el("p", { class: "soft" }, el("span", { class: "licence" }, page.licence), page.retrieved_at ? ` read ${page.retrieved_at.slice(0, 10)}` : null),
      ...page.quotes.map((quote) => el("blockquote", {}, quote.text,
        el("footer", {}, "places it under ", this.link(quote.parent), ` · characters ${quote.start}–${quote.end}`))))));
  }
}

const section = (title, ...parts) => el("section", {}, el("h2", {}, title), ...parts);

// A link to a page, if it is one of the web; anything else (file:, javascript:) is shown and leads nowhere.
function outside(url, text) {
  const web = /^https?:\/\//i.test(url);
  return web ? el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, text) : el("span", {}, text);
}

function task(found) {
  const rate = found.pass_rate;
  const meter = el("meter", { min: 0, max: 1, value: rate ?? 0, "aria-label": "pass rate" });
  return el("article", { class: "task" },
    el("p", { class: "soft" }, el("span", { class: "licence" }, found.type), ` ${found.granularity}`),
    el("p", { class: "prompt" }, found.prompt),
    rate === null ? el("p", { class: "soft" }, "Not tried yet")
      : el("p", { class: "rate" }, meter, `${Math.round(rate * 100)} %`, el("span", { class: "soft" }, ` of ${count(found.attempts, "attempt")}${found.policy ? ` by ${found.policy}` : ""}`)));
}

function logged(operation) {
  const when = new Date(operation.at * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  const what = operation.undoes === null ? operation.kind : `undo of ${operation.undoes}`;
  return el("li", { value: operation.op }, el("b", {}, what), ` ${count(operation.concepts, "concept")}, ${count(operation.edges, "link")}`,
    el("span", { class: "soft" }, ` ${when}${operation.note ? ` · ${operation.note}` : ""}`));
}

function keys() {
  const known = [["/", "search"], ["Esc", "back to the whole graph"], ["0", "the whole in sight"], ["+ −", "zoom"], ["L", "all links"], ["T", "dark or light"]];
  return el("dl", { class: "keys" }, ...known.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]));
}
