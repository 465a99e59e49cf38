// Why?: the chain of reasons that holds something up, and the one action that frees it. The hub's rules answer for tasks,
// locks and sessions; merges are explained from the log.

import {remedyActs} from "../core/acts.js";
import {get, path} from "../core/api.js";
import {asked} from "../core/asked.js";
import {derived, nameOf} from "../core/derive.js";
import {ago, left, resource} from "../core/format.js";
import {isReport} from "../core/report.js";
import {link} from "../core/router.js";
import {endsOf, lineOf, treeOf, whyMerge, whyThen} from "../core/why.js";
import {act, command} from "../parts/act.js";
import {empty, failed, foreign, html, icon, nothing, skeleton, time} from "../parts/html.js";

export const view = {path: "/why/:kind/:id", also: ["/why/:kind/:project/:task"], title: "Why", render};

const ASK = {
  task: (id) => get(path`/v1/projects/${id.split("/")[0]}/tasks/${id.split("/").slice(1).join("/")}/why`),
  lock: (id) => get("/v1/locks/why", {resource: id}),
  agent: (id) => get(path`/v1/sessions/${id}/why`),
};
const ask = asked((key) => {
  const [kind, id] = JSON.parse(key);
  return ASK[kind](id);
}, {pauseMs: 1000});

// What an answer follows from, besides what ends by itself; of sessions only who is there, and hangs.
const TABLES = ["tasks", "locks", "waits", "questions", "agents", "held", "settings"];
const lives = derived(["sessions"], (state) => Array.from(state.tables.sessions.values(), (each) => `${each.session} ${Boolean(each.hung_s)}`).join());
const ends = endsOf();
let latest = null;
const ICONS = {task: "task", claim: "agent", lock: "locks", wait: "clock", question: "question", session: "session", agent: "agent", track: "plan", assignment: "send", retry: "clock", limit: "settings", free: "calm", merge: "merges"};
const TONES = {task: "wait", claim: "work", lock: "wait", wait: "wait", question: "ask", session: "bad", agent: "idle", track: "wait", assignment: "idle", retry: "idle", limit: "bad", free: "ok", merge: "bad"};

function render(context) {
  const {values, state} = context, kind = values.kind, id = values.id ?? `${values.project}/${values.task}`;
  if (kind === "alert") return alert(id, context);
  if (kind === "merge") return chain(kind, id, whyMerge(state.recent, id), context);
  if (!ASK[kind]) return html`<h1 class="hidden">Why?</h1>${empty("There is no such question", "Ask about a task, a lock, an agent or a merge.")}`;
  if (context.past || isReport()) {
    return html`${chain(kind, id, whyThen(kind, id, state, context.now), context)}<p class="muted">So say the locks, waits, claims and questions of that time. ${
      isReport() ? "Limits and routing are not in a report." : "Limits, routing and what frees it are known for the present only."}</p>`;
  }
  const {value, error} = ask(JSON.stringify([kind, id]), [...TABLES.map((name) => state.versions[name]), lives(state), ends(latest, context.now)].join());
  latest = value;
  if (error && !value) return html`${head(kind, id, context)}${failed(error, ask.again)}`;
  return value ? chain(kind, id, value, context) : html`${head(kind, id, context)}${skeleton(5)}`;
}

// An alert names a session: why that does not go on.
function alert(id, {state}) {
  const found = state.tables.alerts.get(id);
  if (!found) return html`<h1 class="hidden">Why?</h1>${empty("This alert is closed", "Nothing of it is left to explain.")}`;
  return html`${head("alert", found.subject || found.rule, {state})}<p class="note" data-tone="wait">${foreign(found.text, "pre")}</p>
    ${found.session ? html`<a class="button" href=${link.why("agent", found.session)}>Why does ${foreign(found.agent || found.session)} not go on?</a>` : nothing}`;
}

const subjectLink = (kind, id, project) => ({
  task: () => (id.includes("/") ? link.task(...id.split(/\/(.*)/s)) : link.task(project, id)), lock: () => link.lock(id), session: () => link.agent(id), agent: () => (project ? `/plan?q=${encodeURIComponent(id)}` : "/now"),
  question: () => "/now", track: () => `/plan?q=${encodeURIComponent(id)}`, merge: () => "/merges",
}[kind]?.() ?? "");

function named(kind, id, state) {
  if (kind === "task") return id.split("/").slice(1).join("/");
  return kind === "lock" ? resource(id) : kind === "agent" ? nameOf(state, id) : id;
}

const head = (kind, id, {state}) => {
  const target = subjectLink(kind === "agent" ? "session" : kind, id, "");
  return html`<header class="heading"><h1>Why? <span class="muted">${{agent: "agent", lock: "lock on", task: "task", merge: "merge of", alert: "alert"}[kind] ?? kind}</span> ${
    target ? html`<a href=${target}>${foreign(named(kind, id, state))}</a>` : foreign(named(kind, id, state))}</h1></header>`;
};

function chain(kind, id, {answer, reasons, remedy}, context) {
  const project = kind === "task" ? id.split("/")[0] : context.state.tables.sessions.get(id)?.project ?? "";
  return html`${head(kind, id, context)}<div class="split ${remedy ? "open" : ""}"><section class="panel why" aria-label="The chain of reasons">
    <p class="answer" role="status">${foreign(answer)}</p>
    ${reasons.length ? links(treeOf(reasons), project, context) : nothing}</section>
    ${remedy ? html`<section class="panel remedy" aria-label="What frees it"><p class="muted">What frees it</p><h2>${icon("play")}<span>${foreign(remedy.text)}</span></h2>
      ${command(lineOf(remedy.command, project))}<p class="muted">${remedy.command.some((word) => /^[A-Z]+$/.test(word)) ? "Fill in what is in capitals." : "Run it in a terminal of the repository."}</p>
      <p class="actions">${remedyActs(remedy.command, {tables: context.state.tables, project}).map((spec, place) => act(spec, {kind: place ? "" : "primary"}))}</p></section>`
      : remedy === null && reasons.length ? html`<p class="calm">${icon("calm")}Nobody has to do anything: it goes on by itself.</p>` : nothing}</div>`;
}

const links = (nodes, project, context) => html`<ol class="chain">${nodes.map(({reason, children}) => html`<li data-tone=${TONES[reason.kind] ?? "idle"}>
  <div class="link"><span class="mark">${icon(ICONS[reason.kind] ?? "right")}</span><span class="words">${words(reason, project)}</span><span class="muted times">${times(reason, context.now)}</span></div>
  ${children.length ? links(children, project, context) : nothing}</li>`)}</ol>`;

const words = (reason, project) => {
  const target = reason.subject ? subjectLink(reason.subject_kind, reason.subject, project) : "";
  return target ? html`<a href=${target}>${foreign(reason.text)}</a>` : foreign(reason.text);
};

function times({since_ms, until_ms}, now) {
  return html`${since_ms ? time(since_ms, ago(since_ms, now)) : nothing}${since_ms && until_ms > now ? " · " : ""}${until_ms > now ? html`${left(until_ms, now)} left` : nothing}`;
}
