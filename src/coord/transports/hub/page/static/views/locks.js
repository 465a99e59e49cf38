// Locks: who holds what, for how long, under which fence, and who waits for it in which order.

import {byResource, matches, nameOf, waitGraph} from "../core/derive.js";
import {ago, count, duration, left, ordinal, resource} from "../core/format.js";
import {link, setQuery} from "../core/router.js";
import {chip, code, empty, filterField, foreign, heading, html, icon, nothing, time} from "../parts/html.js";
import {list} from "../parts/list.js";

export const view = {path: "/locks", title: "Locks", key: "l", icon: "locks", order: 3, render};

function render(context) {
  const {state, q} = context;
  const rows = byResource(state).filter((row) => !q || matches(q, searchText(row, state)));
  return html`${heading("Locks", `${count(state.tables.locks.size, "lock")} · ${count(state.tables.waits.size, "wait")}`,
    filterField(q, (text) => setQuery({q: text}), "Filter paths and agents"))}
    ${rows.length ? html`<div class="table locks"><div class="line head" aria-hidden="true"><span>Resource</span><span>Held by</span><span>Mode</span><span>Fence</span><span>Held for</span><span>Time left</span><span>Waiting</span></div>
      ${list({items: rows, height: 40, label: "Locks", key: (row) => row.resource, row: (row) => lockRow(row, context)})}</div>`
      : q ? empty("No lock fits", "Press escape to see all of them.") : empty("Nothing is locked", html`Agents lock files before they change them; ${code("coord lock src/app.py")} locks one by hand.`)}`;
}

const searchText = (row, state) => [row.resource, ...row.locks.map((lock) => nameOf(state, lock.session, lock.agent)), ...row.waits.map((wait) => nameOf(state, wait.session, wait.agent))].join(" ");

function lockRow(row, {state, now}) {
  const lock = row.locks[0];
  return html`<div class="row" data-row tabindex="0"><span class="cut path">${icon(row.resource.startsWith("file:") ? "file" : "locks")}${foreign(resource(row.resource))}</span>
    <span class="cut">${row.locks.length ? row.locks.map((each, place) => html`${place ? ", " : ""}<a href=${link.agent(each.session)}>${foreign(nameOf(state, each.session, each.agent))}</a>`) : html`<span class="muted">nobody</span>`}</span>
    <span>${lock ? lock.mode ?? "write" : ""}</span><span class="number muted">${lock?.fence ?? ""}</span>
    <span class="number">${lock ? time(lock.since_ms, duration((now - lock.since_ms) / 1000)) : ""}</span>
    <span class="number">${lock ? (lock.expires_ms ? left(lock.expires_ms, now) : "no limit") : ""}</span>
    <span class="cut">${row.waits.map((wait, place) => html`${place ? ", " : ""}${ordinal(place + 1)} <a href=${link.agent(wait.session)}>${foreign(nameOf(state, wait.session, wait.agent))}</a>`)}</span></div>`;
}

export {ago, chip, nothing, waitGraph};
