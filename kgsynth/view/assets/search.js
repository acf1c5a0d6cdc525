// The search box: a combobox (WAI-ARIA Authoring Practices) whose suggestions come from the server.

import { ask, byId, el } from "./dom.js";

export class Search {
  constructor(colourOf, onPick) {
    Object.assign(this, { colourOf, onPick, found: [], at: -1 });
    this.input = byId("query");
    this.list = byId("found");
    this.input.addEventListener("input", () => this.later());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("focus", () => this.show(this.found));
    this.input.addEventListener("blur", () => this.hide());
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), 90);
  }

  async look() {
    this.asking?.abort();
    this.asking = new AbortController();
    const query = this.input.value.trim();
    try {
      const found = query ? await ask(`api/search?q=${encodeURIComponent(query)}`, this.asking.signal) : [];
      this.show(found, query ? `No concept is called “${query}”` : "");
    } catch (error) {
      if (error.name !== "AbortError") this.show([], error.message);
    }
  }

  show(found, none = "") {
    Object.assign(this, { found, at: found.length ? 0 : -1 });
    this.list.replaceChildren(...(found.length ? found.map((row, i) => this.option(row, i)) : none ? [el("li", { class: "none" }, none)] : []));
    const open = this.list.childElementCount > 0;
    this.list.hidden = !open;
    this.input.setAttribute("aria-expanded", String(open));
    this.mark();
  }

  hide() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  option({ id, name, domain, level }, i) {
    const dot = el("i", { class: "dot" });
    dot.style.background = this.colourOf(domain);
    const pick = (event) => {
      event.preventDefault(); // the box keeps the focus
      this.pick(i);
    };
    return el("li", { id: `found-${i}`, role: "option", "data-id": id, onmousedown: pick },
      dot, el("b", {}, name), el("span", {}, `${domain} · level ${level}`));
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      event.preventDefault();
      if (this.list.hidden) this.show(this.found);
      else this.at = (this.at + step + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter" && this.at >= 0 && !this.list.hidden) {
      event.preventDefault();
      this.pick(this.at);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.list.hidden) this.input.value = "";
      this.hide();
    }
  }

  mark() {
    [...this.list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === this.at)));
    const chosen = this.at >= 0 && !this.list.hidden ? this.list.children[this.at] : null;
    if (chosen) this.input.setAttribute("aria-activedescendant", chosen.id);
    else this.input.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  pick(i) {
    const { id, name } = this.found[i];
    this.input.value = name;
    this.hide();
    this.onPick(id);
  }
}
