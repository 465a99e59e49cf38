// The page of an agent: what it does, holds, waits for and asks, its sub-agents, and what it did last.

import {ofAgent, ofLock, ofQuestion, ofTask} from "../core/acts.js";
import {agentNames, locksBySession, questionsBySession, sessionState, taskState, waitWords, waitsBySession} from "../core/derive.js";
import {ago, compact, number, percent, resource, spent, timeLeft, when} from "../core/format.js";
import {link} from "../core/router.js";
import {act, more} from "../parts/act.js";
import {chip, code, empty, foreign, html, icon, nothing, repeat, time} from "../parts/html.js";
import {said} from "../parts/sentence.js";
import {newestOf, noneLoaded} from "./activity.js";

export const view = {path: "/agent/:session", title: "Agent", render};
const SHOWN = 60;

function render(context) {
  const {state, now, values: {session: name}} = context, session = state.tables.sessions.get(name);
  if (!session) return gone(name, context);
  const {tone, word, words} = sessionState(session, state, now);
  return html`<header class="heading"><a class="bare" href="/now" aria-label="Back to all agents">${icon("back")}</a><h1>${foreign(session.agent || name)}</h1>${chip(tone, word)}
      <span class="actions">${ofAgent(session, state.tables.agents).map((spec) => act(spec))}
        <a class="button" href=${link.why("agent", name)}>${icon("question")}<span>Why?</span></a></span></header>
    ${words ? html`<p class="lead">${foreign(words)}</p>` : nothing}
    <div class="split open"><div class="stack">
      ${section("Questions", questionsBySession(state).get(name), (each) => html`${chip("ask", each.kind)} ${foreign(each.text)} <span class="muted">${ago(each.asked_ms, now)}</span> ${ofQuestion(each).map((spec) => act(spec, {small: true}))}`)}
      ${section("Tasks", tasksOf(state, name), (each) => html`<a href=${link.task(each.project, each.task)}>${foreign(each.task)}</a> ${foreign(each.title)} <span class="muted">generation ${each.generation}, ${timeLeft(each.expires_ms, now)}</span>`, (each) => more(each.task, () => ofTask(each, taskState(each, state, now).word, agentNames(state, each.project))))}
      ${section("Waits", waitsBySession(state).get(name), (each) => waitWords(each, state, now))}
      ${section("Locks", locksBySession(state).get(name), (each) => html`<a href=${link.lock(each.resource)}>${code(resource(each.resource))}</a> <span class="muted">${each.mode}, fence ${each.fence}, ${timeLeft(each.expires_ms, now)}</span>`, (each) => more(resource(each.resource), () => ofLock(each, state.tables.locks)))}
      ${section("Sub-agents", childrenOf(state, name), (each) => html`<a href=${link.agent(each.session)}>${foreign(each.agent || each.session)}</a> <span class="muted">${each.role ?? ""}</span>`)}
      ${did(name, context)}</div>
      <aside class="stack" aria-label="Facts">${facts(session, now)}</aside></div>`;
}

const gone = (name, {state, past}) => {
  const ended = state.recent.ended.findLast((each) => each.session === name);
  return html`<h1 class="hidden">Agent</h1>${empty(ended ? "This session has ended" : "There is no such session", html`${foreign(name)}${ended ? html`: ${foreign(ended.end_reason)}, ${when(ended.at)} ${foreign(ended.evidence)}` : past ? " is not there at this time." : " may have ended long ago."}`,
    html`<a class="button" href="/now">To all agents</a>`)}`;
};

const tasksOf = (state, name) => [...state.tables.tasks.values()].filter((each) => each.session === name && each.state === "in_progress");
const childrenOf = (state, name) => [...state.tables.sessions.values()].filter((each) => each.parent === name);

const section = (title, items, line, acts = () => nothing) => (items?.length ? html`<section class="panel pad" aria-label=${title}><h2>${title} <span class="muted">${number(items.length)}</span></h2>
  <ul class="lines">${repeat(items.slice(0, SHOWN), (each) => each.id ?? each.resource ?? each.task ?? each.session, (each) => html`<li data-row tabindex="-1"><span>${line(each)}</span>${acts(each)}</li>`)}</ul>${items.length > SHOWN ? html`<p class="muted">and ${items.length - SHOWN} more</p>` : nothing}</section>` : nothing);

// What it did, the newest first.
function did(name, context) {
  const {state, now} = context, found = newestOf(name, SHOWN, context);
  return html`<section class="panel pad" aria-label="Newest events"><h2>What it did</h2>${found.length ? html`<ul class="lines">${found.map((each) => html`
    <li><span class="muted">${time(each.at, when(each.at, now))}</span> <span>${said(each, state)}</span></li>`)}</ul>` : noneLoaded()}
    <p><a href="/activity?agent=${encodeURIComponent(name)}">All of its activity</a></p></section>`;
}

function facts(session, now) {
  const rows = [["Session", code(session.session)], ["Tool", foreign(session.tool)], ["Model", foreign(session.model)], ["Role", foreign(session.role)], ["Project", foreign(session.project)],
    ["User", foreign(session.user)], ["Parent", session.parent && html`<a href=${link.agent(session.parent)}>${foreign(session.parent)}</a>`], ["Newest file", session.file && code(resource(session.file))],
    ["Began", time(session.started_ms, ago(session.started_ms, now))], ["Last event", time(session.seen_ms, ago(session.seen_ms, now))],
    ["Context", session.context_percent && percent(session.context_percent)], ["Cost", spent(session)],
    ["Tokens", (session.input || session.output) && `${compact(session.input)} in, ${compact(session.output)} out`]];
  const known = {Tool: session.tool, Model: session.model, Role: session.role, Project: session.project, User: session.user};
  return html`<section class="panel pad"><h2>Facts</h2><dl class="facts">${rows.filter(([label, value]) => (label in known ? known[label] : value)).map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl></section>`;
}
