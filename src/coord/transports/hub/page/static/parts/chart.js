// A chart of uPlot in the colours of the theme, with a table for those who cannot see it:
//
//   chart({label: "Throughput", times, series: [{name, values, tone, show: (value) => text, bars: true}]})

import {clock, day} from "../core/format.js";
import {ticks, timeRange} from "../core/activity.js";
import uPlot from "../vendor/uplot/uplot.js";
import {colour, theme} from "./theme.js";
import {css, html, nothing, render} from "./html.js";

const HEIGHT = 168;

function options(given, width, hover) {
  const muted = colour("--muted"), line = colour("--line");
  const axis = {stroke: muted, font: "11px system-ui", ticks: {show: false}, grid: {stroke: line, width: 1}};
  const whole = given.series.every((each) => each.whole);
  return {
    width, height: HEIGHT, legend: {show: false}, padding: [10, 18, 0, 0],
    cursor: {y: false, points: {size: 7}, drag: {x: false, y: false}},
    scales: {x: {time: true, range: (plot) => timeRange(plot.data[0])}, y: {range: (_, __, high) => [0, Math.max(high ?? 0, given.least ?? 1) * 1.12]}},
    axes: [
      {...axis, size: 30, grid: {show: false}, splits: (_, __, low, high) => ticks(low * 1000, high * 1000, 5).map((at) => at / 1000),
        values: (plot, splits) => splits.map((at) => (plot.scales.x.max - plot.scales.x.min > 2 * 86400 ? day(at * 1000) : clock(at * 1000).slice(0, 5)))},
      {...axis, size: 52, space: 34, values: (_, splits) => splits.map((value) => (whole && value % 1 ? "" : given.series[0].show(value)))},
    ],
    series: [{}, ...given.series.map((each) => {
      const stroke = colour(`--${each.tone}`);
      const fill = stroke.startsWith("rgb(") ? stroke.replace("rgb(", "rgba(").replace(")", each.bars ? ", .55)" : ", .10)") : stroke;
      return {label: each.name, stroke, fill: each.plain ? undefined : fill, width: each.bars ? 0 : 1.75, points: {show: false}, spanGaps: true,
        ...(each.bars ? {paths: uPlot.paths.bars({size: [0.72, 24], radius: 0.2, align: 1})} : each.steps ? {paths: uPlot.paths.stepped({align: 1})} : {paths: uPlot.paths.linear()})};
    })],
    hooks: {setCursor: [(plot) => hover(plot.cursor.idx ?? null)]},
  };
}

customElements.define("coord-chart", class extends HTMLElement {
  #given = null;
  #plot = null;
  #look = "";
  #at = null;
  #observer = new ResizeObserver(() => this.#resize());

  connectedCallback() {
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  set given(given) {
    const same = this.#given !== null && this.#given.stamp === given.stamp;
    this.#given = given;
    const look = `${theme.value} ${given.dark} ${given.series.map((each) => each.name).join()}`;
    if (!this.isConnected) queueMicrotask(() => this.#draw(look));
    else if (!same || look !== this.#look) this.#draw(look);
  }

  #draw(look) {
    if (!this.isConnected || this.#given === null) return;
    const data = [this.#given.times, ...this.#given.series.map((each) => each.values)];
    if (this.#plot === null || look !== this.#look) {
      this.#look = look;
      this.#plot?.destroy();
      this.#frame();
      this.#plot = new uPlot(options(this.#given, Math.max(220, this.clientWidth), (at) => this.#hover(at)), data, this.querySelector(".plot"));
    } else this.#plot.setData(data);
    this.#frame();
  }

  #resize() {
    const width = Math.max(220, this.clientWidth);
    if (this.#plot !== null && this.#plot.width !== width) this.#plot.setSize({width, height: HEIGHT});
  }

  #hover(at) {
    if (at === this.#at) return;
    this.#at = at;
    this.#frame();
  }

  // The legend shows what the pointer is on, or the newest totals.
  #frame() {
    const {series, times, label} = this.#given, at = this.#at;
    const text = (ms) => `${day(ms)} ${clock(ms).slice(0, 5)}`;
    const rows = times.map((_, place) => place).filter((place) => series.some((each) => each.values[place]));
    render(html`<div class="plot" aria-hidden="true"></div>
      <div class="legend" aria-hidden="true">${series.map((each) => html`<span><i class="swatch" ${css({background: `var(--${each.tone})`})}></i>${each.name} <b>${
        at === null ? each.total ?? "" : each.values[at] === null || each.values[at] === undefined ? "—" : each.show(each.values[at])}</b></span>`)}
        <span class="end muted">${at === null || times[at] === undefined ? nothing : text(times[at] * 1000)}</span></div>
      <table class="hidden"><caption>${label}</caption><thead><tr><th scope="col">From</th>${series.map((each) => html`<th scope="col">${each.name}</th>`)}</tr></thead>
        <tbody>${rows.map((place) => html`<tr><th scope="row">${text(times[place] * 1000)}</th>${series.map((each) => html`<td>${each.values[place] === null ? "none" : each.show(each.values[place])}</td>`)}</tr>`)}</tbody></table>`, this);
  }
});

export const chart = (given) => html`<coord-chart role="group" aria-label=${given.label} .given=${given}></coord-chart>`;
