// Rows of a fixed height, of which only the visible ones are drawn:
//
//   html`<coord-list .items=${tasks} .height=${36} .row=${(task, index) => html`…`} .key=${(task) => task.task}
//        label="Tasks"></coord-list>`
//
// The element scrolls by itself and fills its parent, which needs a height (class "fill"); below `whole` rows (60) it
// draws all of them and is as high as they are.

import {css, html, render, repeat} from "./html.js";

const OVERSCAN = 8;

// Returns the first and the last + 1 row to draw: pure, for tests.
export function visibleRows(count, height, top, room, overscan = OVERSCAN) {
  const first = Math.max(0, Math.floor(top / height) - overscan);
  const last = Math.min(count, Math.ceil((top + room) / height) + overscan);
  return [Math.min(first, count), Math.max(first, last)];
}

if (globalThis.customElements) {
  customElements.define("coord-list", class extends HTMLElement {
    items = [];
    height = 36;
    whole = 60;
    row = () => "";
    key = (_, index) => index;
    #observer = new ResizeObserver(() => this.draw());
    #drawn = "";

    connectedCallback() {
      this.setAttribute("role", "list");
      this.addEventListener("scroll", () => this.#scrolled(), {passive: true});
      this.#observer.observe(this);
    }

    disconnectedCallback() {
      this.#observer.disconnect();
    }

    // Set last in a template, it draws the list: `.state=${anything that changed}` is not needed.
    set rows(value) {
      Object.assign(this, value);
      this.draw();
    }

    #scrolled() {
      if (visibleRows(this.items.length, this.height, this.scrollTop, this.clientHeight).join() !== this.#drawn) this.draw();
    }

    draw() {
      const count = this.items.length, small = count <= this.whole;
      this.classList.toggle("whole", small);
      const [first, last] = small ? [0, count] : visibleRows(count, this.height, this.scrollTop, this.clientHeight || 600);
      this.#drawn = `${first},${last}`;
      const shown = this.items.slice(first, last);
      render(html`<div class="window" ${css({"block-size": `${count * this.height}px`})}>${repeat(
        shown, (item, at) => this.key(item, first + at), (item, at) => html`
        <div class="line" role="listitem" aria-setsize=${count} aria-posinset=${first + at + 1} ${css({
          "inset-block-start": `${(first + at) * this.height}px`, "block-size": `${this.height}px`})}>${
          this.row(item, first + at)}</div>`)}</div>`, this);
    }
  });
}

// A windowed list as a template.
export const list = ({items, height = 36, row, key, label, whole = 60}) => html`
  <coord-list aria-label=${label} .rows=${{items, height, row, whole, ...(key ? {key} : {})}}></coord-list>`;
