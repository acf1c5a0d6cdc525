// Domains with their colours; each can be switched off.

import { byId, el } from "./dom.js";

export class Legend {
  constructor(columns, onChange) {
    Object.assign(this, { columns, onChange, off: new Set() });
    this.buttons = columns.domains.map(({ name }, i) => {
      const button = el("button", { "aria-pressed": "true", title: "Click: on or off. Double click: this one alone",
        onclick: () => this.toggle(i), ondblclick: () => this.alone(i) },
        el("i", { class: "dot" }), el("span", {}, name || "no domain"), el("small", {}, columns.members[i].toLocaleString("en")));
      return button;
    });
    byId("domains").replaceChildren(...this.buttons.map((button) => el("li", {}, button)));
    byId("every").onclick = () => this.set([]);
    byId("legend").hidden = false;
  }

  paint(colours) {
    this.buttons.forEach((button, i) => (button.querySelector(".dot").style.background = colours[i]));
  }

  toggle(i) {
    this.set(this.off.has(i) ? [...this.off].filter((j) => j !== i) : [...this.off, i]);
  }

  alone(i) {
    this.set(this.buttons.map((_, j) => j).filter((j) => j !== i));
  }

  set(off) {
    this.off = new Set(off);
    this.buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(!this.off.has(i))));
    byId("every").hidden = this.off.size === 0;
    this.onChange(this.off);
  }
}
