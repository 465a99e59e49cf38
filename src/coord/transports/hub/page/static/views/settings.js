// Settings: how many agents, when somebody counts as silent, limits, hooks, tokens, mirrors, reactions, and who changed what.

import {acts} from "../core/acts.js";
import {get} from "../core/api.js";
import {asked} from "../core/asked.js";
import {isAgent, matches} from "../core/derive.js";
import {ago, count, timeLeft} from "../core/format.js";
import {isReport} from "../core/report.js";
import {setQuery} from "../core/router.js";
import {groups, projects, title, words} from "../core/settings.js";
import {may, signal} from "../core/store.js";
import {act, command} from "../parts/act.js";
import {chip, code, failed, filterField, foreign, heading, html, icon, live, meter, nothing, option, skeleton, time} from "../parts/html.js";
import {noticeSettings} from "../parts/notify.js";
import {said} from "../parts/sentence.js";

export const view = {path: "/settings", title: "Settings", key: "s", icon: "settings", order: 10, render};

const read = (path) => asked((key) => get(path, JSON.parse(key)), {pauseMs: 1000});
const ask = Object.fromEntries(["settings", "limits", "tokens", "hooks", "mirrors", "reactions", "followers"].map((name) => [name, read(`/v1/${name}`)]));
const NONE = "{}";
const NO_PROJECT = {value: null, error: {status: 404, message: "There is no project yet: the first agent or plan begins one."}};
const wanted = signal(null); // where the slider is, until it is applied

function render(context) {
  const {state, q, query, who, hub, past} = context;
  if (past || isReport()) {
    return html`${heading("Settings")}<p class="muted">${past ? "Settings are those of the present. This is what people had changed by then." : "A report has what people changed, and not the settings."}</p>${changes(context)}`;
  }
  const changed = state.versions.settings, known = projects(state, who.project || hub.repository);
  const project = known.includes(query.project) ? query.project : known[0] ?? "";
  const settings = project ? ask.settings(JSON.stringify({project}), changed) : NO_PROJECT, limits = ask.limits(NONE, changed);
  return html`${heading("Settings", may("admin") ? "" : html`You may look. ${code("coord open --role admin")} makes a link for changes.`, filterField(q, (text) => setQuery({q: text}), "Filter settings"))}
    <div class="settings">
      ${q ? nothing : html`${part("Agents", settings, (found) => agents(found, project, known, context))}
        ${hub.files ? part("Hooks", ask.hooks(NONE, ""), hooks, ask.hooks) : nothing}${noticeSettings()}`}
      ${part("Rules", settings, (found) => rules(found, q))}${part("Limits", limits, (found) => limited(found, q))}
      ${q ? nothing : html`
        ${part("Tokens", ask.tokens(NONE, changed), (found) => tokens(found, context))}
        ${hub.files ? html`${part("Mirrors", ask.mirrors(NONE, ""), mirrors, ask.mirrors)}
          ${part("Reactions", ask.reactions(NONE, state.versions.reactions), (found) => reactions(found, context))}` : nothing}
        ${part("Followers", ask.followers(NONE, ""), (found) => followers(found, context), ask.followers)}
        ${changes(context)}`}</div>`;
}

// A panel of one answer; what the hub refuses is said in it, and the other panels still work.
const part = (name, {value, error, again: retry}, draw, again) => html`<section class="panel pad" aria-label=${name}><header class="heading"><h2>${name}</h2>${
  again && value ? html`<span class="actions"><button type="button" class="button small" @click=${again.again}>Look again</button></span>` : nothing}</header>
  ${value ? draw(value) : error?.status ? html`<p class="muted">${error.message}${error.hint ? html` <span>(${error.hint})</span>` : nothing}</p>` : error ? failed(error, retry) : skeleton(2)}</section>`;

// --- how many agents ---

function agents(settings, project, known, {state}) {
  const setting = settings.find(({name}) => name === "max_agents"), limit = setting.value === "unlimited" ? 0 : setting.value;
  const many = [...state.tables.sessions.values()].filter((each) => isAgent(each) && each.project === project).length;
  const chosen = wanted.value ?? (limit || setting.high), changes = wanted.value !== null && wanted.value !== limit;
  return html`<p>${count(many, "agent")} of ${known.length > 1 ? html`<label><span class="hidden">Project</span><select class="select" @change=${(event) => { wanted.value = null; setQuery({project: event.target.value}); }}>${
      known.map((name) => option(name, name, project))}</select></label>` : html`<b>${foreign(project)}</b>`}${
      limit ? `, ${limit} at most` : ", no limit"}</p>
    <label class="slide"><span>Agents at most</span><input type="range" min=${setting.low} max=${setting.high} step="1" .value=${live(String(chosen))} ?disabled=${!may("admin")}
      aria-valuetext=${!limit && wanted.value === null ? "no limit" : chosen} @input=${(event) => { wanted.value = Number(event.target.value); }}><output>${!limit && wanted.value === null ? "no limit" : chosen}</output></label>
    <footer>${changes ? act({...acts.setSetting(setting, wanted.value), label: `Set to ${wanted.value}`, after: () => { wanted.value = null; }}, {small: true, kind: "primary"}) : nothing}
      ${limit ? act({...acts.setSetting(setting, "default"), label: "No limit"}, {small: true}) : nothing}
      ${limit ? html`<span class="muted">${many >= limit ? "Another agent is refused until one of these ends." : "With so many, another agent is refused."}</span>` : nothing}</footer>`;
}

// --- rules and limits ---

const fits = (q) => (each) => !q || matches(q, `${each.name} ${title(each.name)} ${each.because ?? ""}`);

const rules = (settings, q) => html`${groups(settings.filter(fits(q))).map(([group, found]) => html`<h3>${group}</h3><ul class="values">${found.map((each) => html`
  <li data-row tabindex="-1"><span><b>${title(each.name)}</b> <span class="muted">${each.because}</span></span><span class="value" title=${each.name}>${words(each)}</span>
    <span class="change">${each.source === "store" ? act({...acts.setSetting(each, "default"), label: "Reset"}, {small: true}) : nothing}${act(acts.setSetting(each), {small: true})}</span></li>`)}</ul>`)}`;

const limited = ({tenant, limited: has, profile, limits, used}, q) => (!has ? html`<p class="muted">The tenant ${foreign(tenant)} has no limits of claims, leases and results.</p>` : html`
  <p class="muted">Tenant ${foreign(tenant)}, ${profile ? html`profile ${profile}` : "limits of its own"}</p>
  <ul class="values">${Object.entries(limits).map(([name, value]) => ({name, value})).filter(fits(q)).map((each) => html`<li data-row tabindex="-1"><span><b>${title(each.name)}</b>${
    used[each.name] === undefined ? nothing : html` ${meter(used[each.name] / each.value, `${title(each.name)} in use`, used[each.name] >= each.value ? "bad" : "accent")} <span class="muted">${used[each.name]} in use</span>`}</span>
    <span class="value" title=${each.name}>${words(each)}</span><span class="change">${act(acts.setLimit(tenant, each), {small: true})}</span></li>`)}</ul>`);

// --- what is set up on the machine ---

const TONES = {ok: "ok", warn: "wait", bad: "bad"}, STATES = {ok: "works", warn: "look", bad: "broken"};

const hooks = (findings) => html`<ul class="values">${findings.map((each) => html`<li data-row tabindex="-1"><span><b>${each.check}</b> ${foreign(each.message)}</span>
  <span class="value">${chip(TONES[each.state] ?? "idle", STATES[each.state] ?? each.state)}</span>${each.state !== "ok" && each.hint ? hint(each.hint) : nothing}</li>`)}</ul>
  ${findings.length ? nothing : html`<p class="muted">There are no hooks here: ${code("coord init")} writes them.</p>`}`;

// Hints are sentences or commands; a command can be copied.
const hint = (text) => html`<div class="wide">${/^(coord|git|pip) /.test(text) ? command(text) : html`<p class="muted">${foreign(text)}</p>`}</div>`;

const mirrors = (found) => html`<ul class="values">${found.map((each) => html`<li data-row tabindex="-1"><span><b>${each.name}</b> <span class="muted">${each.on ? html`${count(each.files, "file")} in ${foreign(each.folders.join(", "))}` : "the store as files of an older tool"}</span>${
  each.changed.length ? html`<br><span class="toned" data-tone="wait">others changed ${foreign(each.changed.join(", "))}</span>` : nothing}</span><span class="value">${chip(each.on ? "ok" : "idle", each.on ? "on" : "off")}</span>
  <div class="wide">${command(`coord mirror ${each.on ? "off" : "on"} ${each.name}`)}</div></li>`)}</ul>`;

function reactions({reactions: found, problems, performed_by: by, problem, dead}, {now}) {
  return html`${problem ? html`<p class="problem" role="alert">${problem}: ${code("coord serve")} or ${code("coord follow reactions")} does.</p>` : nothing}
    ${problems.map((each) => html`<p class="problem">${foreign(each)}</p>`)}
    ${found.length ? html`<p class="muted">${by ? html`Performed by ${foreign(by)}` : nothing}</p><ul class="values">${found.map((each) => html`<li data-row tabindex="-1"><span><b>${foreign(each.name)}</b> <span class="muted">on ${foreign(each.event.join(", "))}</span></span>
      <span class="value">${each.action}</span>${each.dead ? html`<span class="toned" data-tone="bad">${each.dead} failed</span>` : nothing}</li>`)}</ul>` : html`<p class="muted">None. A table ${code("[[on]]")} in ${code("coord.toml")} says what happens when an event happens.</p>`}
    ${dead.length ? html`<h3>Failed</h3><ul class="values">${dead.map((each) => html`<li data-row tabindex="-1"><span><b>${foreign(each.reaction)}</b> on ${each.event} <span class="muted">${time(each.at_ms, ago(each.at_ms, now))}, ${count(each.attempts, "attempt")}</span><br>${foreign(each.error)}</span>
      <span class="change">${each.retry ? html`<span class="muted">is tried again</span>` : html`${act(acts.decideReaction(each, true), {small: true})}${act(acts.decideReaction(each, false), {small: true})}`}</span></li>`)}</ul>` : nothing}`;
}

const followers = (found, {state, now}) => html`<ul class="values">${found.map((each) => html`<li data-row tabindex="-1"><span><b>${each.name}</b>${each.error ? html` <span class="toned" data-tone="bad">${foreign(each.error)}</span> <span class="muted">${time(each.failed_ms, ago(each.failed_ms, now))}</span>` : nothing}${
  each.missed ? html` <span class="toned" data-tone="wait">${count(each.missed, "entry", "entries")} missed</span>` : nothing}</span>
  <span class="value">${each.error ? chip("bad", "failed") : each.live ? chip("ok", "running") : chip("idle", state.offset > each.offset ? `${state.offset - each.offset} behind` : "up to date")}</span></li>`)}</ul>
  ${found.length ? nothing : html`<p class="muted">None follows this log.</p>`}`;

// --- tokens, and who changed what ---

const MAY = {view: "look", operate: "work", admin: "do everything", report: "report usage"};

const tokens = (found, {now, who}) => html`<ul class="values">${found.map((each) => html`<li data-row tabindex="-1"><span><b>${foreign(each.label || each.id)}</b>
    <span class="muted">may ${MAY[each.role] ?? each.role}${each.project ? html` in ${foreign(each.project)}` : nothing}${each.session ? html` as ${foreign(each.session)}` : nothing}, of ${foreign(each.user || each.created_by || "nobody")}, ${
      each.used_ms ? html`used ${time(each.used_ms, ago(each.used_ms, now))}` : "never used"}</span></span>
  <span class="value">${each.expires_ms ? time(each.expires_ms, timeLeft(each.expires_ms, now)) : "for ever"}</span><span class="change">${act(acts.revokeToken(each), {small: true})}</span></li>`)}</ul>
  ${found.length ? nothing : html`<p class="muted">Nobody has a token.</p>`}<footer>${act(acts.createToken(who.expires_ms ? who.expires_ms - now : 0), {small: true})}</footer>`;

function changes({state, now}) {
  const found = [...(state.recent.settings ?? [])].reverse();
  return html`<section class="panel pad" aria-label="Changes"><header class="heading"><h2>${icon("clock")} Who changed what</h2></header>
    ${found.length ? html`<ul class="lines">${found.map((each) => html`<li><span>${said(each, state)}</span><span class="muted">${each.origin?.user && !each.by ? html`${foreign(each.origin.user)}, ` : nothing}${time(each.at, ago(each.at, now))}</span></li>`)}</ul>` : html`<p class="muted">Nobody changed anything lately.</p>`}</section>`;
}
