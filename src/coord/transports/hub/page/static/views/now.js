// Now: what needs you, then every agent in words, and what happened while you were away.

import {acts, HOLDS, ofAgent, ofQuestion} from "../core/acts.js";
import {awaySince, dismiss} from "../core/away.js";
import {isAgent, locksBySession, matches, needsYou, queueDepth, sessionList, sessionState, sessionTone, since, tasksBySession} from "../core/derive.js";
import {ago, count, duration, left, percent, resource, spent} from "../core/format.js";
import {isReport, reportOf} from "../core/report.js";
import {link, setQuery} from "../core/router.js";
import {shared} from "../core/store.js";
import {act, actAll, more, moreAll} from "../parts/act.js";
import {chip, choice, code, empty, filterField, foreign, heading, html, icon, meter, nothing, repeat, time} from "../parts/html.js";
import {list} from "../parts/list.js";

const shape = shared("shape", "now.shape", ["cards", "rows"]);
const CARDS_MAX = 60, DAY_MS = 86_400_000;

export const view = {path: "/now", title: "Now", key: "n", icon: "now", order: 1, render};

function render(context) {
  const {state, now, q} = context;
  const needs = needsYou(state);
  const sessions = sessionList(state, Math.floor(now / 60_000) * 60_000).filter((each) => !q || matches(q, searchText(each, state)));
  return html`<h1 class="hidden">Now</h1>
    ${held(state)}${isReport() ? reportOf().run(context) : awaySince.value && !context.past ? away(context) : nothing}
    ${needs.length ? needed(needs, context) : calm(state)}
    <section aria-labelledby="agents">
      <header class="heading"><h2 id="agents">Agents</h2><span class="detail">${summary(state, now)}</span>
        <span class="actions">${filterField(q, (text) => setQuery({q: text}), "Filter agents")}
          ${q ? moreAll(sessions.length, "agent", "agents", () => sessions.map((each) => ({label: each.agent || each.session, acts: ofAgent(each, state.tables.agents)}))) : nothing}
          ${state.tables.held?.size ? nothing : holds()}${choice("Shape", shape.value, [["cards", html`${icon("cards")}<span class="hidden">Cards</span>`], ["rows", html`${icon("rows")}<span class="hidden">Rows</span>`]],
            (value) => { shape.value = value; })}</span></header>
      ${sessions.length ? agents(sessions, context) : nobody(q)}
    </section>`;
}

const nobody = (q) => (q
  ? empty("No agent fits", "Press escape to see all of them.")
  : empty("No agent is working", html`They appear here as soon as one starts: ${code("coord init")} sets up Claude Code, Codex and Gemini.`));

function searchText(session, state) {
  const task = tasksBySession(state).get(session.session);
  return [session.agent, session.role, session.tool, session.model, session.file, session.session, task?.task, task?.title].join(" ");
}

function summary(state, now) {
  const tones = {};
  for (const session of state.tables.sessions.values()) {
    if (!isAgent(session)) continue;
    const {tone} = sessionTone(session, state, now);
    tones[tone] = (tones[tone] ?? 0) + 1;
  }
  const words = [["work", "working"], ["wait", "waiting"], ["ask", "asking"], ["bad", "in trouble"], ["idle", "idle"]];
  return words.filter(([tone]) => tones[tone]).map(([tone, word]) => `${tones[tone]} ${word}`).join(" · ");
}

// --- all agents at once ---

const HELD = {paused: "All agents are paused", draining: "All agents are drained", stopped: "All agents are stopped"};

// Whoever holds all agents up, and the way back; or the ways to do it.
function held(state) {
  const found = state.tables.held?.get("");
  if (!found) return nothing;
  return html`<section class="banner held" data-tone=${found.mode === "stopped" ? "bad" : "wait"} role="status">${icon("pause")}<span><strong>${HELD[found.mode] ?? found.mode}</strong>${
    found.by ? html` by ${foreign(found.by)}` : nothing}${found.reason ? html`: ${foreign(found.reason)}` : nothing}</span>${act(acts.resume(found.mode), {small: true})}${holds(found.mode)}</section>`;
}

const holds = (mode) => Object.keys(HOLDS).filter((each) => each !== mode).map((each) => act(acts.hold(each), {small: true}));

// --- while you were away ---

const AWAY = {
  done: ["ok", "task", "task done", "tasks done", "/plan"], failed: ["bad", "task", "task failed", "tasks failed", "/plan"],
  merged: ["ok", "merges", "branch merged", "branches merged", "/merges"], "merge refused": ["bad", "merges", "merge refused", "merges refused", "/merges"],
  commits: ["work", "branch", "commit", "commits", "/activity"], decisions: ["ask", "question", "question closed", "questions closed", "/messages"],
  messages: ["work", "messages", "message", "messages", "/messages"], ended: ["idle", "agent", "session ended", "sessions ended", "/activity"],
  refusals: ["wait", "permission", "request refused", "requests refused", "/activity"], deadlocks: ["bad", "locks", "deadlock", "deadlocks", "/locks"],
  restored: ["wait", "file", "file restored", "files restored", "/activity"], "alerts closed": ["idle", "alerts", "alert closed", "alerts closed", "/alerts"],
};

function away({state, now}) {
  const found = since(state, awaySince.value);
  if (!found.length) return nothing;
  return html`<section class="panel away" aria-labelledby="away"><h2 id="away">While you were away</h2><span class="muted">${time(awaySince.value, `the last ${duration((now - awaySince.value) / 1000)}`)}</span>
    <ul>${found.map(({kind, items}) => {
      const [tone, name, one, more, target] = AWAY[kind];
      return html`<li data-tone=${tone}><a href=${target}>${icon(name)}${count(items.length, one, more)}</a></li>`;
    })}</ul><button class="bare" aria-label="Dismiss" @click=${dismiss}>${icon("close")}</button></section>`;
}

const calm = (state) => (state.tables.sessions.size ? html`<p class="calm">${icon("calm")}Nothing needs you.</p>` : nothing);

// --- what needs you ---

const needed = (needs, context) => html`
  <section class="needs" aria-labelledby="needs"><header class="heading"><h2 id="needs">Needs you</h2>
    <span class="detail">${count(needs.length, "thing")}</span>
    <span class="actions">${failedTasks(needs, (task) => acts.retry(task))}${failedTasks(needs, (task) => acts.skip(task))}</span></header>
    <ul class="cards wide">${repeat(needs.slice(0, 50), (item) => item.key, (item) => html`<li>${NEEDS[item.kind](item.record, context)}</li>`)}</ul>
    ${needs.length > 50 ? html`<p class="muted">and ${needs.length - 50} more</p>` : nothing}</section>`;

// One button for all failed tasks, where there are several.
const failedTasks = (needs, of) => {
  const tasks = needs.filter((item) => item.kind === "task").map((item) => ({label: `${item.record.project}/${item.record.task}`, act: of(item.record)}));
  return tasks.length > 1 ? actAll(tasks, "task", "tasks", {small: true}) : nothing;
};

const need = (tone, name, title, since, body, actions) => html`
  <article class="card need" data-tone=${tone} data-row tabindex="-1">
    <header>${icon(name)}<h3>${title}</h3><span class="muted end">${since}</span></header>
    <div class="text">${body}</div><footer>${actions}</footer></article>`;

const agentLink = (session, agent) => html`<a href=${link.agent(session)}>${foreign(agent || session)}</a>`;

const NEEDS = {
  question: (record, {now}) => need("ask", "question", html`${agentLink(record.session, record.agent)} asks`, time(record.asked_ms, ago(record.asked_ms, now)),
    html`${foreign(record.text, "pre")}${expiry(record, now)}`, answers(record)),
  permission: (record, {now}) => need("ask", "permission", html`${agentLink(record.session, record.agent)} needs permission`, time(record.asked_ms, ago(record.asked_ms, now)),
    html`${foreign(record.text, "pre")}${expiry(record, now)}`, answers(record)),
  alert: (record, {now}) => need(record.severity === "critical" ? "bad" : "wait", "alert", html`${foreign(record.subject || record.rule)} ${record.rule ? html`<span class="tag">${record.rule.replaceAll("_", " ")}</span>` : nothing}`, time(record.since_ms, ago(record.since_ms, now)),
    foreign(record.text, "pre"), html`${act(acts.closeAlert(record, true), {small: true})}${act(acts.closeAlert(record, false), {small: true})}<a class="button small" href=${link.why("alert", record.id)}>Why</a>`),
  task: (record, {now}) => need("bad", "task", html`<a href=${link.task(record.project, record.task)}>${foreign(record.task)}</a> ${record.state}`,
    time(record.ended_ms, ago(record.ended_ms, now)), html`<p>${foreign(record.title)}</p>${foreign(record.reason, "pre muted")}`,
    html`${act(acts.retry(record), {small: true, kind: "primary"})}${act(acts.skip(record), {small: true})}
      <a class="button small" href=${link.why("task", `${record.project}/${record.task}`)}>Why</a>`),
  session: (record, {now, state}) => need("bad", "session", html`${agentLink(record.session, record.agent)} hangs`, time(record.seen_ms, ago(record.seen_ms, now)),
    html`<p>No sign of life for ${duration((now - (record.seen_ms ?? now)) / 1000)}${record.file ? html`, last on ${code(resource(record.file))}` : nothing}.</p>`,
    html`<a class="button small" href=${link.agent(record.session)}>Look</a>${ofAgent(record, state.tables.agents).map((spec) => act(spec, {small: true}))}`),
};

const expiry = (record, now) => (record.expires_ms - now < DAY_MS ? html`<p class="muted">${record.expires_ms < now ? "It has expired" : html`Expires in ${left(record.expires_ms, now)}`}</p>` : nothing);

const answers = (record) => ofQuestion(record).map((spec, place) => act(spec, {small: true, kind: place === 0 && record.options?.length ? "primary" : ""}));

// --- agents ---

function agents(sessions, context) {
  if (shape.value === "rows" || sessions.length > CARDS_MAX) {
    return html`<div class="table agents" role="presentation"><div class="line head" aria-hidden="true"><span>Agent</span><span>State</span><span>Task</span><span>File</span>
      <span class="number">Queue</span><span class="number">Seen</span><span class="number">Context</span><span class="number">Cost</span></div>
      ${list({items: sessions, height: 40, label: "Agents", key: (each) => each.session, row: (each) => html`${agentRow(each, context)}${menu(each, context)}`})}</div>`;
  }
  return html`<ul class="cards">${repeat(sessions, (each) => each.session, (each) => html`<li class="acted">${agentCard(each, context)}${menu(each, context)}</li>`)}</ul>`;
}

const kindWords = (session) => [session.role, session.tool, session.model].filter(Boolean).join(" · ");
const QUEUE = "Tasks that it has besides this one, or that are kept for it";
const menu = (session, {state}) => more(session.agent || session.session, () => ofAgent(session, state.tables.agents));

function agentCard(session, {state, now}) {
  const found = sessionState(session, state, now), task = tasksBySession(state).get(session.session);
  const locks = locksBySession(state).get(session.session)?.length ?? 0, depth = queueDepth(session, state, now);
  return html`<a class="card agent" href=${link.agent(session.session)} data-tone=${found.tone} data-row>
    <header>${foreign(session.agent ?? session.session, "name cut")}<span class="end">${chip(found.tone, found.word)}</span></header>
    ${kindWords(session) ? html`<p class="cut muted small">${foreign(kindWords(session))}</p>` : nothing}
    ${found.words ? html`<p class="clamp" title=${found.words}>${foreign(found.words)}</p>` : nothing}
    <p class="cut small">${task ? html`${icon("task")} <b>${foreign(task.task)}</b> <span class="muted">${foreign(task.title ?? "")}</span>` : html`<span class="muted">no task</span>`}</p>
    ${session.file && found.tone !== "work" ? html`<p class="cut small muted">${icon("file")} ${foreign(resource(session.file))}</p>` : nothing}
    <footer><span title="Last sign of life">${icon("clock")}${time(session.seen_ms, ago(session.seen_ms, now)) }</span>
      ${locks ? html`<span title="Locks">${icon("locks")}${locks}</span>` : nothing}
      ${depth ? html`<span title=${QUEUE}>${icon("plan")}${depth}</span>` : nothing}
      ${session.context_percent ? html`<span title="Context used">${meter(session.context_percent / 100, "Context used", contextTone(session))}${percent(session.context_percent)}</span>` : nothing}
      ${spent(session) ? html`<span class="end" title="Cost">${spent(session)}</span>` : nothing}</footer></a>`;
}

const contextTone = (session) => (session.context_percent > 85 ? "bad" : session.context_percent > 70 ? "wait" : "accent");

// A row has two lines: what it is about, and the details below.
function agentRow(session, {state, now}) {
  const {tone, word, words} = sessionState(session, state, now), task = tasksBySession(state).get(session.session);
  const two = (first, second) => html`<span class="two">${first}<span class="cut muted small">${second}</span></span>`;
  return html`<a class="row" href=${link.agent(session.session)} data-row>${two(foreign(session.agent ?? session.session, "name cut"), foreign(kindWords(session)))}
    <span class="clamp" data-tone=${tone} title=${words}><i class="dot" aria-hidden="true"></i> ${tone === "wait" ? nothing : html`<b class="toned">${word}</b>${tone === "ask" || tone === "bad" ? ": " : " "}`}${foreign(words)}</span>
    ${task ? two(foreign(task.task, "cut"), foreign(task.title)) : html`<span class="muted">(none)</span>`}<span class="clamp small">${session.file ? foreign(resource(session.file)) : ""}</span>
    <span class="number" title=${QUEUE}>${queueDepth(session, state, now)}</span><span class="number">${time(session.seen_ms, ago(session.seen_ms, now))}</span>
    <span class="number">${session.context_percent ? percent(session.context_percent) : ""}</span><span class="number">${spent(session)}</span></a>`;
}
