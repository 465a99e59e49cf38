// Rows of a fixed height, of which only the visible ones are drawn:
//
//   list({items: tasks, height: 40, label: "Tasks", key: (task) => task.task, row: (task, index) => html`…`})
//
// The element scrolls by itself. Up to `whole` rows (60) it draws all of them and is as high as they are. It draws
// nothing again while it gets the same array and the same `stamp`, so that a long list costs nothing per tick: leave
// `stamp` out if rows show times.

import {visibleRows} from "../core/derive.js";
import {css, html, render, repeat} from "./html.js";

const NEAR = 100;

customElements.define("coord-list", class extends HTMLElement {
  #given = {items: [], height: 36, whole: 60, row: () => "", key: (_, index) => index};
  #observer = new ResizeObserver(() => this.#scrolled());
  #drawn = "";

  constructor() {
    super();
    this.addEventListener("scroll", () => this.#scrolled(), {passive: true});
  }

  connectedCallback() {
    this.setAttribute("role", "list");
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  set given(value) {
    const same = value.stamp !== undefined && value.stamp === this.#given.stamp && value.items === this.#given.items;
    const moved = same ? 0 : this.#moved(value.items);
    this.#given = {...this.#given, ...value};
    if (!same) this.#draw();
    if (moved) this.scrollTop += moved;
  }

  // How far the first row in sight moves when others come or go before it.
  #moved(items) {
    const {items: before, height, key} = this.#given, at = Math.floor(this.scrollTop / height);
    if (!at || at >= before.length) return 0;
    const wanted = key(before[at], at), from = Math.max(0, at - NEAR);
    const found = items.slice(from, at + NEAR).findIndex((item, place) => key(item, from + place) === wanted);
    return found < 0 ? 0 : (from + found - at) * height;
  }

  #range() {
    const {items, whole, height} = this.#given;
    return items.length <= whole ? [0, items.length] : visibleRows(items.length, height, this.scrollTop, this.clientHeight || 600);
  }

  #scrolled() {
    if (this.#range().join() !== this.#drawn) this.#draw();
  }

  #draw() {
    const {items, height, whole, row, key} = this.#given;
    this.classList.toggle("whole", items.length <= whole);
    const [first, last] = this.#range();
    this.#drawn = `${first},${last}`;
    render(html`<div class="window" ${css({"block-size": `${items.length * height}px`})}>${repeat(
      items.slice(first, last), (item, at) => key(item, first + at), (item, at) => html`
      <div class="line" role="listitem" aria-setsize=${items.length} aria-posinset=${first + at + 1} ${css({
        "inset-block-start": `${(first + at) * height}px`, "block-size": `${height}px`})}>${row(item, first + at)}</div>`)}</div>`, this);
  }
});

export const list = ({label, ...given}) => html`<coord-list aria-label=${label} .given=${given}></coord-list>`;
