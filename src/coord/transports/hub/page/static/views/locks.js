// Locks: a tree of paths with who holds what, under which fence and for how long; who waits, in which order; and the
// graph of waits. `?on=RESOURCE` opens the details of one, with its history.

import {acts, ofLock} from "../core/acts.js";
import {get} from "../core/api.js";
import {byResource, derived, matches, nameOf, names, overlaps, queue, treeRows, waitGraph, waitWords} from "../core/derive.js";
import {ago, count, duration, left, ordinal, resource, when} from "../core/format.js";
import {link, setQuery} from "../core/router.js";
import {signal} from "../core/store.js";
import {act, moreAll} from "../parts/act.js";
import {waitPicture} from "../parts/graph.js";
import {chip, code, empty, failed, filterField, foreign, heading, html, icon, nothing, place, repeat, skeleton, time} from "../parts/html.js";
import {list} from "../parts/list.js";

const closed = signal(new Set()), NONE = new Set();
const history = signal({of: ""});
const HISTORY_PAGE = 50, GRAPH_MAX = 40, ROW = 38;

export const view = {path: "/locks", title: "Locks", key: "l", icon: "locks", order: 3, render};

const found = derived(["locks", "waits"], (state, q) =>
  byResource(state).filter((row) => !q || matches(q, searchText(row, state))));
const fitting = (state, q) => found(state, q, q && names(state));
const rowsOf = derived(["locks", "waits"], (state, rows, hidden) => treeRows(rows, hidden));

const searchText = (row, state) => [row.resource, ...[...row.locks, ...row.waits].flatMap((each) => [nameOf(state, each.session, each.agent), each.session])].join(" ");

function render(context) {
  const {state, q, query} = context;
  const fits = fitting(state, q), rows = rowsOf(state, fits, q ? NONE : closed.value), graph = waitGraph(state);
  return html`
    ${heading("Locks", `${count(state.tables.locks.size, "lock")} · ${count(state.tables.waits.size, "wait")}`,
      html`${filterField(q, (text) => setQuery({q: text}), "Filter paths, agents")}${q ? matching(fits.flatMap((row) => row.locks), context) : nothing}`)}
    <div class="split ${query.on ? "open" : ""}"><div class="stack">
      ${graph.edges.length ? waiting(graph, context) : nothing}
      ${rows.length ? table(rows, context) : nobody(q)}</div>
      ${query.on ? details(query.on, context) : nothing}</div>`;
}

const matching = (locks, {state}) => moreAll(locks.length, "lock", "locks", () => locks.map((lock) => ({label: `${resource(lock.resource)} · ${nameOf(state, lock.session, lock.agent)}`, acts: ofLock(lock, state.tables.locks)})));

const nobody = (q) => (q ? empty("No lock fits", "Press escape to see all of them.")
  : empty("Nothing is locked", html`Agents lock files before they change them; ${code("coord lock src/app.py")} locks one by hand.`));

// --- the tree ---

const table = (rows, context) => html`<section class="table locks" aria-label="Locks by path">
  <div class="head" aria-hidden="true"><span>Path</span><span>Held by</span><span>Mode</span><span class="number">Fence</span><span class="number">Held for</span>
    <span class="number">Time left</span><span>Waiting</span></div>
  ${list({items: rows, height: ROW, label: "Locks", key: (row) => row.key, row: (row) => (row.kind === "folder" ? folderRow(row) : lockRow(row, context))})}</section>`;

function toggle(folder) {
  const next = new Set(closed.peek());
  if (!next.delete(folder)) next.add(folder);
  closed.value = next;
}

const indent = (row) => html`${Array.from({length: row.depth}, () => html`<i class="indent"></i>`)}`;

const folderRow = (row) => html`<button type="button" class="row folder" data-row aria-expanded=${row.open} @click=${() => toggle(row.path)}>
  <span class="cut path">${indent(row)}${icon(row.open ? "down" : "right")}${place(`${row.name}/`)}</span><span class="muted span">${count(row.lockCount, "lock")}${
    row.waitCount ? `, ${count(row.waitCount, "wait")}` : ""}</span></button>`;

const show = (name) => () => setQuery({on: name}, {replace: false});

function lockRow(row, {state, now, query}) {
  const lock = row.locks[0];
  return html`<button type="button" class="row" data-row aria-pressed=${query.on === row.resource} @click=${show(row.resource)}>
    <span class="cut path">${indent(row)}${icon(row.resource.startsWith("file:") ? "file" : "locks")}${place(row.name)}</span>
    <span class="cut">${row.locks.length ? foreign([...new Set(row.locks.map((each) => nameOf(state, each.session, each.agent)))].join(", ")) : html`<span class="muted">nobody</span>`}</span>
    <span>${lock ? lock.mode ?? "write" : ""}</span><span class="number muted">${lock?.fence ?? ""}</span>
    <span class="number">${lock?.since_ms ? duration((now - lock.since_ms) / 1000) : ""}</span>
    <span class="number">${lock ? timeLeft(lock, now) : ""}</span>
    <span class="cut">${lock?.asked_by ? chip("ask", "asked back", `${nameOf(state, lock.asked_by)} asked for it`) : nothing} ${row.waits.length ? html`${chip("wait", row.waits.length)} ${foreign(row.waits.map((wait) => nameOf(state, wait.session, wait.agent)).join(", "))}` : nothing}</span></button>`;
}

function timeLeft(lock, now) {
  if (!lock.expires_ms) return html`<span class="muted">no limit</span>`;
  const soon = lock.expires_ms - now < 60_000;
  return html`<span data-tone=${soon ? "bad" : nothing} class=${soon ? "toned" : ""}>${left(lock.expires_ms, now)}</span>`;
}

// --- waits ---

function waiting(graph, context) {
  const {state, now} = context, waits = queue(state);
  return html`<section class="panel waits" aria-labelledby="waits"><header class="heading"><h2 id="waits">Waiting</h2>
    ${graph.inCycle.size ? chip("bad", "a deadlock", "These sessions wait for each other") : nothing}</header>
    <div>${graph.nodes.length <= GRAPH_MAX ? waitPicture(graph, state) : html`<p class="muted">${count(graph.nodes.length, "session")} wait for each other: too many for a picture.</p>`}
    <ol class="lines">${repeat(waits.slice(0, 12), (wait) => `${wait.session} ${wait.resources}`, (wait) => html`<li><a href=${link.agent(wait.session)}>${foreign(nameOf(state, wait.session, wait.agent))}</a>
      <span class="muted">${foreign(waitWords(wait, state, now))}</span>${wait.priority ? html` <span class="tag">priority ${wait.priority}</span>` : nothing}</li>`)}</ol></div>
    ${waits.length > 12 ? html`<p class="muted">and ${waits.length - 12} more</p>` : nothing}</section>`;
}

// --- one resource ---

function details(name, context) {
  const {state, now} = context;
  const locks = [...state.tables.locks.values()].filter((lock) => overlaps(lock.resource, name));
  const waits = queue(state).filter((wait) => wait.resources?.some((each) => overlaps(each, name)));
  return html`<aside class="panel drawer" aria-label="Details of ${resource(name)}"><header><h2>${place(resource(name))}</h2>
      <button class="bare" aria-label="Close the details" @click=${() => setQuery({on: ""})}>${icon("close")}</button></header>
    <h3>Held by</h3>
    ${locks.length ? repeat(locks, (lock) => `${lock.session} ${lock.resource}`, (lock) => holder(lock, name, context)) : html`<p class="muted">Nobody holds it.</p>`}
    <h3>Waiting</h3>
    ${waits.length ? html`<ol class="lines">${repeat(waits, (wait) => wait.id ?? wait.session, (wait, at) => html`<li><b>${ordinal(at + 1)}</b> <a href=${link.agent(wait.session)}>${foreign(nameOf(state, wait.session, wait.agent))}</a>
      <span class="muted">${duration((now - wait.since_ms) / 1000)}${wait.priority ? `, priority ${wait.priority}` : ""}</span> ${act(acts.message(wait.session, nameOf(state, wait.session, wait.agent)), {small: true})}</li>`)}</ol>` : html`<p class="muted">Nobody waits.</p>`}
    <h3>History</h3>${past(name, context)}
    <a class="button small" href=${link.why("lock", name)}>Why is it like this?</a></aside>`;
}

function holder(lock, name, {state, now}) {
  const facts = [["Mode", lock.mode ?? "write"], ["Fence", lock.fence], ["Since", time(lock.since_ms, ago(lock.since_ms, now))], ["Time left", timeLeft(lock, now)],
    ["On", lock.resource === name ? "" : place(resource(lock.resource))], ["For", lock.reason ? foreign(lock.reason) : ""],
    ["Asked back", lock.asked_by ? html`by ${foreign(nameOf(state, lock.asked_by))}, until ${when(lock.asked_until_ms, now)} ${foreign(lock.asked_reason)}` : ""]].filter(([, value]) => value);
  return html`<article class="holder"><header><a href=${link.agent(lock.session)}><b>${foreign(nameOf(state, lock.session, lock.agent))}</b></a></header>
    <dl class="facts">${facts.map(([word, value]) => html`<div><dt>${word}</dt><dd>${value}</dd></div>`)}</dl>
    <footer>${ofLock(lock, state.tables.locks).map((spec) => act(spec, {small: true}))}</footer></article>`;
}

// --- history ---

// Reads what was granted before a fence (0: all), newest first; `known` is what was read before it.
async function loadHistory(name, before = 0, known = null) {
  const until = known ? history.peek().until : before || Infinity;
  const show = (found) => {
    if (history.peek().of === name) history.value = {of: name, until, periods: known, ...found};
  };
  history.value = {of: name, until, periods: known};
  try {
    const answer = await get("/v1/locks/history", {ended: true, resources: name, before, limit: HISTORY_PAGE});
    show({periods: [...known ?? [], ...answer.periods], before: answer.before});
  } catch (error) {
    show({error});
  }
}

function past(name, {state, now, past: earlier}) {
  const {of, until, periods, before, error} = history.value, other = of !== name;
  if (other || (earlier ? state.offset >= until : until < Infinity)) {
    queueMicrotask(() => void loadHistory(name, earlier && other ? state.offset + 1 : 0));
    return skeleton(2);
  }
  const again = () => void loadHistory(name, earlier ? state.offset + 1 : 0);
  if (error) return failed(error, again);
  if (!periods) return skeleton(2);
  const shown = periods.filter((period) => !earlier || period.until_ms <= state.at);
  return html`${shown.length ? html`<ol class="lines">${shown.map((period) => html`<li><span class="muted">${time(period.until_ms, when(period.until_ms, now))}</span>
      <b>${foreign(period.agent || nameOf(state, period.owner))}</b> ${period.end_reason} <span class="muted">after ${duration((period.until_ms - period.from_ms) / 1000)}${
        period.by ? html`, by ${foreign(nameOf(state, period.by))}` : nothing}, fence ${period.fence}${
        period.resource === name ? nothing : html`, on ${place(resource(period.resource))}`}</span></li>`)}</ol>` : html`<p class="muted">No lock on it has ended${before ? " lately" : ""}.</p>`}
    <button class="button small" @click=${again}>Refresh</button>
    ${before ? html`<button class="button small" @click=${() => void loadHistory(name, before, periods)}>Earlier ones</button>` : nothing}`;
}
