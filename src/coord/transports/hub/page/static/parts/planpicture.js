// The plan as a picture: lanes, tasks and dependencies, of which only those in sight are drawn.
//
//   picture({layout, words, tasks, project, closed, critical, q, small, counts, toggle})

import {fits, fitted, geometry, neighbours, placeOf, SIZES, toneOf, visibleTasks} from "../core/plan.js";
import {count, number} from "../core/format.js";
import {link} from "../core/router.js";
import {css, foreign, html, icon, meter, nothing, render, repeat, svg} from "./html.js";

const MARGIN = 200, EDGES_MAX = 1500, MOVED = 140;

customElements.define("coord-plan", class extends HTMLElement {
  #given = null;
  #made = null;
  #focus = -1;
  #drawn = {top: -1e9, left: -1e9};
  #asked = false;
  #observer = new ResizeObserver(() => this.#resized());

  connectedCallback() {
    this.#observer.observe(this);
    this.addEventListener("scroll", () => this.#scrolled(), {passive: true});
    for (const kind of ["pointerover", "focusin"]) this.addEventListener(kind, (event) => this.#look(event));
    for (const kind of ["pointerleave", "focusout"]) this.addEventListener(kind, () => this.#look(null));
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  set given(value) {
    const before = this.#given;
    const same = before && ["layout", "words", "closed", "critical", "q", "small"].every((name) => before[name] === value[name]);
    if (same) return;
    this.#given = value;
    if (!before || before.layout !== value.layout || before.closed !== value.closed || before.small !== value.small) {
      this.#measure();
    }
    this.#draw();
    if (value.q && before?.q !== value.q) this.#seek();
  }

  // Scrolls to the first task that fits the filter.
  #seek() {
    const {layout, tasks, words, project, closed, q} = this.#given, {size} = this.#made;
    const at = layout.task.findIndex((name) => fits(q, tasks.get(`${project}/${name}`) ?? {task: name}, words.get(name)));
    if (at < 0) return;
    const {x, y} = placeOf(layout, this.#made, size, closed, at);
    this.scrollTo({top: y - 2 * size.head, left: x + size.nodeWidth > this.clientWidth ? x - size.columnWidth : 0});
  }

  #measure() {
    const {layout, small, closed} = this.#given, size = small ? SIZES.small : fitted(SIZES.large, layout.columns, this.clientWidth);
    this.#made = {size, ...geometry(layout, size, closed), ...neighbours(layout)};
  }

  #resized() {
    if (this.#given) this.#measure();
    this.#draw();
  }

  #look(event) {
    const at = event?.target.closest?.("[data-at]")?.dataset.at;
    const next = at === undefined ? -1 : Number(at);
    if (next === this.#focus) return;
    this.#focus = next;
    this.#later();
  }

  #scrolled() {
    if (Math.abs(this.scrollTop - this.#drawn.top) > MOVED || Math.abs(this.scrollLeft - this.#drawn.left) > MOVED) this.#later();
  }

  #later() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => { if (this.#asked) this.#draw(); });
  }

  #draw() {
    this.#asked = false;
    if (!this.#given) return;
    const {layout, closed} = this.#given, {size, width, height} = this.#made;
    const [top, left] = [this.scrollTop, this.scrollLeft];
    this.#drawn = {top, left};
    const window = {top: top - MARGIN, bottom: top + (this.clientHeight || 700) + MARGIN, left: left - MARGIN, right: left + (this.clientWidth || 1200) + MARGIN};
    const seen = visibleTasks(layout, this.#made, size, closed, window);
    render(html`<div class="canvas" ${css({"inline-size": `${width}px`, "block-size": `${height}px`, "--wide": `${size.nodeWidth}px`, "--high": `${size.nodeHeight}px`})}>
      ${repeat(layout.lanes, (lane) => lane.track, (lane, at) => (this.#inSight(lane, at, window) ? this.#lane(lane, at) : nothing))}
      <svg class="edges" width=${width} height=${height} viewBox="0 0 ${width} ${height}" aria-hidden="true">${this.#edges(seen)}</svg>
      ${repeat(seen, (at) => layout.task[at], (at) => this.#node(at))}</div>`, this);
  }

  #laneHeight(lane) {
    return this.#made.size.head + (this.#given.closed.has(lane.track) ? 0 : lane.rows * this.#made.size.rowHeight);
  }

  #inSight(lane, at, window) {
    return this.#made.tops[at] <= window.bottom && this.#made.tops[at] + this.#laneHeight(lane) >= window.top;
  }

  #lane(lane, at) {
    const counts = this.#given.counts.get(lane.track) ?? {total: lane.tasks, done: 0, working: 0, stuck: 0};
    const open = !this.#given.closed.has(lane.track);
    return html`<section class="plantrack" aria-label=${lane.track ? `Track ${lane.track}` : "Without a track"} ${css({"inset-block-start": `${this.#made.tops[at]}px`, "block-size": `${this.#laneHeight(lane)}px`})}>
      <button type="button" class="lanehead" aria-expanded=${open} @click=${() => this.#given.toggle(lane.track)}>${icon(open ? "down" : "right")}
        <b>${lane.track ? foreign(lane.track) : "No track"}</b>${meter(counts.total ? counts.done / counts.total : 0, `Track ${lane.track}`, "ok")}
        <span class="muted">${number(counts.done)} of ${count(counts.total, "task")}${counts.working ? ` · ${number(counts.working)} in progress` : ""}</span>${
        counts.stuck ? html`<span class="toned" data-tone="bad">${number(counts.stuck)} stuck</span>` : nothing}</button></section>`;
  }

  #node(at) {
    const {layout, tasks, words, project, critical, q, small} = this.#given, {size} = this.#made;
    const name = layout.task[at], task = tasks.get(`${project}/${name}`) ?? {task: name, project}, word = words.get(name) ?? "waiting";
    const {x, y} = placeOf(layout, this.#made, size, this.#given.closed, at);
    const marks = ["node", small ? "small" : "", critical.has(name) ? "critical" : "", fits(q, task, word) ? "" : "dim", at === this.#focus ? "lit" : ""].join(" ");
    const label = `${name} ${task.title ?? ""}`.trim() + `: ${word}${task.agent ? `, ${task.agent}` : ""}${task.priority ? `, priority ${task.priority}` : ""}`;
    return html`<a class=${marks} data-tone=${toneOf(word)} data-at=${at} data-row href=${link.task(project, name)} aria-label=${label} title=${label} ${css({translate: `${x}px ${y}px`})}>
      ${small ? nothing : html`<i class="dot" aria-hidden="true"></i><b>${foreign(name)}</b>${task.title ? html` <span class="muted">${foreign(task.title)}</span>` : nothing}`}</a>`;
  }

  // One path for each way to draw an edge: few elements are cheaper than many.
  #edges(seen) {
    const {before, after} = this.#made, inSight = new Set(seen), paths = new Map([["met", []], ["", []], ["critical", []], ["lit", []]]);
    let drawn = 0;
    const draw = (from, to) => {
      const edge = drawn < EDGES_MAX ? this.#edge(from, to) : null;
      if (!edge) return;
      drawn += 1;
      paths.get(edge.name).push(edge.d);
    };
    for (const at of seen) {
      for (const from of before[at]) draw(from, at);
      for (const to of after[at]) if (!inSight.has(to)) draw(at, to);
    }
    return [...paths].map(([name, found]) => svg`<path class=${name} d=${found.join("")}></path>`);
  }

  #edge(from, to) {
    const {layout, words, critical, closed} = this.#given, {size} = this.#made;
    const one = placeOf(layout, this.#made, size, closed, from), other = placeOf(layout, this.#made, size, closed, to);
    if (one.hidden && other.hidden) return null;
    const x1 = one.x + size.nodeWidth, y1 = one.y + size.nodeHeight / 2, x2 = other.x, y2 = other.y + size.nodeHeight / 2;
    const bend = Math.max(size.columnWidth - size.nodeWidth, (x2 - x1) / 2);
    const word = words.get(layout.task[from]), onPath = critical.has(layout.task[from]) && critical.has(layout.task[to]);
    const lit = from === this.#focus || to === this.#focus;
    const name = lit ? "lit" : onPath ? "critical" : word === "done" || word === "skipped" ? "met" : "";
    return {name, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`};
  }
});

export const picture = (given) => html`<coord-plan class="panel" role="group" aria-label="Tasks by track, from left to right" dir="ltr" .given=${given}></coord-plan>`;
