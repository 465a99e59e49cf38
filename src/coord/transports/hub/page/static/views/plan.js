// Plan: lanes by track with dependencies, or a board by state; progress, and the longest chain that is left.

import {ofTask} from "../core/acts.js";
import {get} from "../core/api.js";
import {asked} from "../core/asked.js";
import {agentNames, derived, taskState} from "../core/derive.js";
import {ago, count, duration, number, percent, timeLeft} from "../core/format.js";
import {BOARD, criticalPath, cutLayout, fits, overview, projectsOf, structureWatch, toneOf} from "../core/plan.js";
import {isReport} from "../core/report.js";
import {address, link, setQuery} from "../core/router.js";
import {remembered, shared, signal} from "../core/store.js";
import {more, moreAll} from "../parts/act.js";
import {chip, choice, code, css, empty, failed, filterField, foreign, heading, html, icon, nothing, option, skeleton, time} from "../parts/html.js";
import {list} from "../parts/list.js";
import {picture} from "../parts/planpicture.js";

const SMALL_FROM = 1500, TICK_MS = 5000, OLD_MS = 1100, TRIES = 3, SORTED_MAX = 3000;
const shape = shared("shape", "plan.shape", ["lanes", "board"]), showsPath = remembered("plan.path", true);
const closed = signal(new Set());
const structure = structureWatch();
let wantedOffset = 0;

const flip = () => { shape.value = shape.value === "lanes" ? "board" : "lanes"; };
const flipPath = () => { showsPath.value = !showsPath.peek(); };
const here = (run) => () => { if (address.peek().pathname === "/plan") run(); };

export const view = {path: "/plan", title: "Plan", key: "p", icon: "plan", order: 2, render,
  keys: [["v", "Lanes or board", here(flip)], ["x", "Mark the critical path", here(flipPath)]]};

// A snapshot of the hub may be a second old; then the layout lacks what was added since.
const layoutOf = asked(async (key) => {
  const {project, earlier} = JSON.parse(key);
  for (let attempt = 1; ; attempt += 1) {
    const found = await get("/v1/page/plan", {project, at: earlier ? wantedOffset : ""});
    if (earlier || found === null || found.offset >= wantedOffset || attempt === TRIES) return found;
    await new Promise((done) => { setTimeout(done, OLD_MS); });
  }
}, {pauseMs: 1000});

const pathOf = derived(["tasks"], (state, layout, words, project) => criticalPath(layout, state.tables.tasks, words, project));
const cut = derived(["tasks"], (state, layout, project) => cutLayout(layout, state.tables.tasks, project));
const onPath = derived([], (_, path, shown) => new Set(shown ? path.tasks : []));

function render(context) {
  const {state, now, q, query} = context;
  const projects = projectsOf(state);
  if (!projects.length) return html`${heading("Plan")}${nothingPlanned()}`;
  const project = query.project && projects.some(([name]) => name === query.project) ? query.project : projects[0][0];
  const found = overview(state, project, Math.floor(now / TICK_MS) * TICK_MS);
  return html`${heading("Plan", projectChoice(projects, project), html`${filterField(q, (text) => setQuery({q: text}), "Filter tasks")}${q ? matching(found, project, context) : nothing}
      ${choice("Shape", shape.value, [["lanes", "Lanes"], ["board", "Board"]], (value) => { shape.value = value; })}`)}
    ${shape.value === "board" ? html`${summary(found, null)}${board(found, project, context)}` : lanes(found, project, context)}`;
}

const fitting = derived(["tasks"], (state, {columns, words}, q) => Object.values(columns).flat().filter((task) => fits(q, task, words.get(task.task))));

function matching(found, project, {state, q}) {
  const tasks = fitting(state, found, q);
  return moreAll(tasks.length, "task", "tasks", () => tasks.map((task) => ({label: task.task, acts: ofTask(task, found.words.get(task.task), agentNames(state, project))})));
}

const nothingPlanned = () => empty("There is no plan", html`${code("coord plan init")} writes an example, ${code("coord plan load plan.yaml")} loads it, and ${code("coord task add T-1")} adds a single task.`);

const projectChoice = (projects, project) => (projects.length < 2 ? foreign(project) : html`<label><span class="hidden">Project</span>
  <select class="select" @change=${(event) => setQuery({project: event.target.value})}>${projects.map(([name, many]) =>
    option(name, `${name} (${number(many)})`, project))}</select></label>`);

// --- progress ---

function summary({all}, path) {
  const share = all.total ? (100 * all.done) / all.total : 0;
  const parts = [...BOARD].reverse().filter(([name]) => all[name]);
  return html`<section class="panel progress" aria-label="Progress">
    <div class="sum"><b class="large">${percent(share)}</b><span class="muted">${number(all.done)} of ${count(all.total, "task")} done</span>
      ${path?.tasks.length ? html`<button type="button" class="button small" aria-pressed=${showsPath.value} @click=${flipPath} title="Mark the critical path (x)">${icon("now")}<span>Critical path: ${
        count(path.tasks.length, "task")}${path.estimated ? `, ${duration(path.seconds)}` : ""}</span></button>` : nothing}</div>
    <div class="stacked" role="img" aria-label=${parts.map(([name, label]) => `${label}: ${all[name]}`).join(", ")}>${parts.map(([name, , tone]) => html`
      <i data-tone=${tone} ${css({"flex-grow": String(all[name])})}></i>`)}</div>
    <ul class="legend">${parts.map(([name, label, tone]) => html`<li data-tone=${tone}><i class="dot" aria-hidden="true"></i>${label} <b>${number(all[name])}</b></li>`)}</ul></section>`;
}

// --- lanes ---

function lanes(found, project, {state, q, past}) {
  const changed = structure(state, project);
  const earlier = Boolean(past) || isReport();
  wantedOffset = state.offset;
  const {value, error} = layoutOf(JSON.stringify({project, earlier}), changed), layout = value && earlier ? cut(state, value, project) : value;
  if (!layout) return html`${summary(found, null)}${error ? failed(error, layoutOf.again) : skeleton(8)}`;
  const path = pathOf(state, layout, found.words, project);
  return html`${summary(found, path)}${picture({
    layout, words: found.words, tasks: state.tables.tasks, project, closed: closed.value, critical: onPath(state, path, showsPath.value), q,
    small: layout.task.length > SMALL_FROM, counts: found.tracks, toggle})}`;
}

function toggle(track) {
  const next = new Set(closed.peek());
  if (!next.delete(track)) next.add(track);
  closed.value = next;
}

// --- board ---

const ORDER = {
  waiting: (task) => task.added_ms ?? 0, ready: (task) => (task.added_ms ?? 0) - 60_000 * (task.priority ?? 0),
  working: (task) => -(task.claimed_ms ?? 0), stuck: (task) => -(task.ended_ms ?? 0), done: (task) => -(task.ended_ms ?? 0),
};

const ordered = derived(["tasks"], (state, columns, words, q) => Object.fromEntries(Object.entries(columns).map(([name, tasks]) => {
  const fitting = tasks.filter((task) => fits(q, task, words.get(task.task)));
  return [name, fitting.length > SORTED_MAX ? fitting : fitting.sort((one, other) => ORDER[name](one) - ORDER[name](other))];
})));

function board({columns, words}, project, context) {
  const {state, q} = context;
  const found = ordered(state, columns, words, q);
  return html`<div class="board" tabindex="0" role="group" aria-label="Tasks by state">${BOARD.map(([name, label, tone]) => html`
    <section class="lanecolumn" aria-label=${label}><header data-tone=${tone}><i class="dot" aria-hidden="true"></i><h2>${label}</h2><span class="muted">${number(found[name].length)}</span></header>
      ${found[name].length ? list({items: found[name], height: 82, label, key: (task) => task.task, row: (task) => html`${card(task, words.get(task.task), context)}${more(task.task, () => ofTask(task, words.get(task.task), agentNames(state, project)))}`})
        : html`<p class="muted none">${q ? "Nothing fits." : "Nothing here."}</p>`}</section>`)}</div>`;
}

function card(task, word, {state, now}) {
  const detail = word === "in progress" ? html`${foreign(task.agent || task.session)} <span class="muted">${timeLeft(task.expires_ms, now)}</span>`
    : word === "waiting" ? html`<span class="muted">for ${count(taskState(task, state, now).by.length, "task")}</span>`
      : word === "ready" ? html`<span class="muted">priority ${task.priority ?? 0}${task.assignee ? html`, kept for ${foreign(task.assignee)}` : nothing}</span>`
        : word === "done" ? html`<span class="muted">${time(task.ended_ms, ago(task.ended_ms, now))}</span>` : html`${chip(toneOf(word), word)}`;
  return html`<a class="card ticket" href=${link.task(task.project, task.task)} data-row><span class="cut"><b>${foreign(task.task)}</b>${task.track ? html` <span class="tag">${foreign(task.track)}</span>` : nothing}</span>
    <span class="cut muted">${foreign(task.title ?? "")}</span><span class="cut small">${detail}</span></a>`;
}
