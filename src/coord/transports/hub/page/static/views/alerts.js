// Alerts: what is wrong now, what was, and how often each rule was right.

import {acts, ofAgent} from "../core/acts.js";
import {get} from "../core/api.js";
import {alertRecord, matches} from "../core/derive.js";
import {ago, count, duration, percent, when} from "../core/format.js";
import {link, setQuery} from "../core/router.js";
import {signal, touch} from "../core/store.js";
import {act, more, moreAll} from "../parts/act.js";
import {chip, empty, failed, filterField, foreign, heading, html, icon, meter, nothing, repeat, skeleton, time} from "../parts/html.js";

export const view = {path: "/alerts", title: "Alerts", key: "e", icon: "alerts", order: 8, render};

const record = signal({key: "", alerts: null, rules: [], error: null});
const TONES = {critical: "bad", warning: "wait", info: "idle"};

// Loads the record again whenever an alert was raised or closed.
function load({state, past}) {
  const key = past ? "past" : `${state.versions.alerts} ${state.versions.closed_alerts}`;
  if (record.peek().key === key) return;
  record.value = {...record.peek(), key};
  get("/v1/alerts", {closed: true}).then(
    (found) => { record.value = {key, alerts: found.alerts, rules: found.rules, error: null}; },
    (error) => { record.value = {...record.peek(), error}; }).finally(touch);
}

function render(context) {
  const {state, q, past} = context;
  load(context);
  const {error, ...whole} = record.value, {alerts, rules} = past && whole.alerts ? alertRecord(state, whole.alerts) : whole;
  const fits = (each) => !q || matches(q, [each.rule, each.subject, each.text, each.agent, each.note].join(" "));
  const open = [...state.tables.alerts.values()].filter(fits).sort((one, other) => rank(one) - rank(other) || (one.since_ms ?? 0) - (other.since_ms ?? 0));
  const closed = (alerts ?? []).filter((each) => each.closed_ms && fits(each));
  return html`${heading("Alerts", open.length ? count(open.length, "open alert") : "", html`${filterField(q, (text) => setQuery({q: text}), "Filter alerts")}${
      q ? moreAll(open.length, "alert", "alerts", () => open.map((each) => ({label: `${each.subject || each.rule} · ${ruleWords(each)}`, acts: ofAlert(each)}))) : nothing}`)}
    ${open.length ? html`<ul class="cards wide">${repeat(open, (each) => each.id, (each) => html`<li>${openAlert(each, context)}</li>`)}</ul>`
      : q ? empty("No open alert fits", "Press escape to see all of them.") : empty("All is calm", "The hub looks every minute: stuck agents, deadlocks, collisions, questions that nobody answers.")}
    ${error ? failed(error, () => { record.value = {...record.value, key: ""}; touch(); }) : alerts === null ? skeleton(4) : html`
      <section aria-labelledby="rules"><header class="heading"><h2 id="rules">How often each rule is right</h2><span class="detail">over its newest 20 alerts; below 80% it only informs${past ? "; of the newest 100 closed by then" : ""}</span></header>
        <ul class="rules">${rules.map(rule)}</ul></section>
      <section aria-labelledby="closed"><header class="heading"><h2 id="closed">Record</h2><span class="detail">${count(closed.length, "closed alert")}</span></header>
        ${closed.length ? html`<div class="table record"><table><thead><tr><th scope="col">Closed</th><th scope="col">Rule</th><th scope="col">Alert</th><th scope="col">Lasted</th><th scope="col">Outcome</th><th scope="col">By</th><th scope="col"><span class="hidden">Change</span></th></tr></thead>
          <tbody>${repeat(closed.slice(0, 200), (each) => each.id, (each) => closedRow(each, context))}</tbody></table></div>` : html`<p class="muted">No alert was closed yet.</p>`}</section>`}`;
}

const ofAlert = (alert) => [acts.closeAlert(alert, true), acts.closeAlert(alert, false)];
const ruleWords = ({rule: name}) => (name ?? "").replaceAll("_", " ");
const rank = (alert) => ["critical", "warning", "info"].indexOf(alert.severity ?? "warning");

const openAlert = (alert, {now, state}) => html`<article class="card need" data-tone=${TONES[alert.severity] ?? "wait"} data-row tabindex="-1">
  <header>${icon("alert")}<h2 class="title">${foreign(alert.subject || alert.rule)}</h2><span class="tag">${ruleWords(alert)}</span><span class="muted end">${time(alert.since_ms, ago(alert.since_ms, now))}</span></header>
  <div class="text">${foreign(alert.text, "pre")}</div>
  <footer>${ofAlert(alert).map((spec) => act(spec, {small: true}))}<a class="button small" href=${link.why("alert", alert.id)}>Why</a>
    ${alert.session ? html`<a class="end" href=${link.agent(alert.session)}>${icon("agent")}${foreign(alert.agent || alert.session)}</a>${
      state.tables.sessions.has(alert.session) ? more(alert.agent || alert.session, () => ofAgent(state.tables.sessions.get(alert.session), state.tables.agents)) : nothing}` : nothing}</footer></article>`;

const closing = (alert, right, label) => act(acts.closeAlert(alert, right), {label, small: true});

function rule(each) {
  const known = each.precision !== null && each.precision !== undefined;
  const tone = !known ? "idle" : each.precision >= 0.8 ? "ok" : "bad";
  return html`<li class="panel rule"><header><b>${ruleWords(each)}</b>${each.muted ? chip("idle", "muted") : each.open ? chip(TONES[each.severity] ?? "wait", `${each.open} open`) : nothing}</header>
    <p>${meter(known ? each.precision : 0, `Precision of ${each.rule}`, tone)}<span class="number">${known ? percent(each.precision * 100) : "—"}</span></p>
    <p class="muted">${each.right} right · ${each.wrong} wrong</p></li>`;
}

const closedRow = (alert, {now}) => html`<tr data-row tabindex="-1"><td class="number">${time(alert.closed_ms, when(alert.closed_ms, now))}</td><td><span class="tag">${ruleWords(alert)}</span></td>
  <td class="wide">${foreign(alert.text || alert.subject)}${alert.note ? html`<span class="muted"> — ${foreign(alert.note)}</span>` : nothing}</td><td class="number">${alert.raised_ms ? duration((alert.closed_ms - alert.raised_ms) / 1000) : ""}</td>
  <td>${alert.outcome === "true" ? chip("ok", "right") : alert.outcome === "false" ? chip("bad", "false alarm") : chip("idle", "unknown")}</td>
  <td class="cut">${foreign(alert.closed_by || "coord")}</td>
  <td>${alert.outcome === "true" ? closing(alert, false, "Was wrong") : closing(alert, true, "Was right")}</td></tr>`;
