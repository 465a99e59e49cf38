// The wait-for graph as a picture: who waits for whom, from left to right; what goes in a circle is marked.

import {layoutGraph, nameOf} from "../core/derive.js";
import {resource, visible} from "../core/format.js";
import {go, link} from "../core/router.js";
import {css, html, svg} from "./html.js";

const READABLE = 0.72, WIDE = 132, HIGH = 30, GAP_X = 150, GAP_Y = 26, LABEL_MAX = 20, ARC = 44;
const short = (text, most) => (text.length > most ? `…${text.slice(1 - most)}` : text);

export function waitPicture(graph, state) {
  const {places, columns, rows} = layoutGraph(graph);
  const left = (node) => places.get(node).x * (WIDE + GAP_X) + 2;
  const head = graph.edges.some((edge) => isArc(edge, left)) ? ARC : 6;
  const top = (node) => places.get(node).y * (HIGH + GAP_Y) + head;
  const width = columns * WIDE + (columns - 1) * GAP_X + 4, height = rows * (HIGH + GAP_Y) - GAP_Y + head + 6;
  const words = graph.edges.map((edge) => `${nameOf(state, edge.from)} waits for ${nameOf(state, edge.to)}`).join("; ");
  return html`<div class="picture" dir="ltr" tabindex="0" role="group" aria-label="Who waits for whom">
    <svg viewBox="0 0 ${width} ${height}" width=${width} height=${height} role="img" aria-label=${words} ${css({"min-inline-size": `${width * READABLE}px`})}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"></path></marker></defs>
      ${graph.edges.map((edge) => arrow(edge, graph, left, top))}
      ${graph.nodes.map((node) => svg`<g class=${graph.inCycle.has(node) ? "node circle" : "node"} transform="translate(${left(node)} ${top(node)})"
        @click=${() => go(link.agent(node))}><rect width=${WIDE} height=${HIGH} rx="7"></rect>
        <text x=${WIDE / 2} y=${HIGH / 2 + 4.5}>${short(visible(nameOf(state, node)), 16)}</text></g>`)}</svg></div>`;
}

// An edge back, or one that passes columns between, is an arc above the others.
const isArc = (edge, left) => left(edge.to) - left(edge.from) !== WIDE + GAP_X;

function arrow(edge, graph, left, top) {
  const turned = left(edge.to) <= left(edge.from), lift = !turned && isArc(edge, left) ? ARC - 6 : 0;
  const x1 = left(edge.from) + (turned ? WIDE / 2 : WIDE), y1 = top(edge.from) + (turned ? 0 : HIGH / 2);
  const x2 = left(edge.to) + (turned ? WIDE / 2 : 0), y2 = top(edge.to) + (turned ? 0 : HIGH / 2);
  const bend = turned ? `C${x1} ${y1 - ARC + 6} ${x2} ${y2 - ARC + 6} ${x2} ${y2}` : `C${x1 + 60} ${y1 - lift} ${x2 - 60} ${y2 - lift} ${x2} ${y2}`;
  const marked = graph.inCycle.has(edge.from) && graph.inCycle.has(edge.to);
  const label = `${short(visible(resource(edge.resources[0])), LABEL_MAX)}${edge.resources.length > 1 ? ` +${edge.resources.length - 1}` : ""}`;
  return svg`<g class=${marked ? "edge circle" : "edge"}><path d="M${x1} ${y1}${bend}" marker-end="url(#arrow)"></path>
    <text x=${(x1 + x2) / 2} y=${(y1 + y2) / 2 - (turned ? ARC - 10 : lift * 0.75 + 5)}>${label}</text></g>`;
}
