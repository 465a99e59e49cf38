// The page of a task: what it is, its claims over time with generations and refused zombies, its results, commits,
// dependencies and cost.

import {ofTask} from "../core/acts.js";
import {get, path} from "../core/api.js";
import {asked} from "../core/asked.js";
import {agentNames, taskState} from "../core/derive.js";
import {ago, bytes, count, duration, left, resource, spent, timeLeft, when} from "../core/format.js";
import {claimBars, commitsOf, dependents, knownAt, toneOf} from "../core/plan.js";
import {link} from "../core/router.js";
import {act} from "../parts/act.js";
import {chip, code, css, empty, failed, foreign, html, icon, nothing, skeleton, time} from "../parts/html.js";

export const view = {path: "/task/:project/:task", title: "Task", render};

const ask = asked(async (key) => {
  const [project, task] = JSON.parse(key), base = path`/v1/projects/${project}/tasks/${task}`;
  const optional = (promise) => promise.catch(() => null);
  const [spec, history, result, usage] = await Promise.all([
    get(path`/v1/projects/${project}/tasks`, {tasks: [task]}), optional(get(`${base}/history`)), optional(get(`${base}/state`)),
    optional(get("/v1/usage", {per: "task", project}))]);
  return {spec: spec?.tasks?.[0] ?? null, history: history ?? [], result: result?.result ?? null, used: usage?.totals?.find((each) => each.name === task) ?? null};
});

function render(context) {
  const {state, now, values: {project, task: name}} = context, tasks = state.tables.tasks;
  const task = tasks.get(`${project}/${name}`);
  if (!task) return html`<h1 class="hidden">Task</h1>${empty("There is no such task", html`Project ${foreign(project)} has no task ${foreign(name)}${context.past ? " at this time" : ""}.`, html`<a class="button" href="/plan">To the plan</a>`)}`;
  const {word, by} = taskState(task, state, now);
  const {value: present, error} = ask(JSON.stringify([project, name]), context.past ? "past" : [task.generation, task.state, task.ended_ms, state.versions.refusals, task.title, task.files, task.priority, task.depends_on, task.parts, state.tables.sessions.get(task.session)?.input].join());
  const value = present && context.past ? knownAt(present, task, state.at) : present;
  const bars = claimBars(value?.history, task, now);
  return html`<header class="heading task"><a class="bare" href="/plan?project=${encodeURIComponent(project)}" aria-label="Back to the plan">${icon("back")}</a><h1>${foreign(name)}</h1>${chip(toneOf(word), word)}
      <span class="actions">${ofTask(task, word, agentNames(state, project)).map((spec) => act(spec))}<a class="button" href=${link.why("task", `${project}/${name}`)}>${icon("question")}<span>Why?</span></a></span></header>
    ${task.title ? html`<p class="lead">${foreign(task.title)}</p>` : nothing}
    ${task.reason ? html`<p class="note" data-tone=${toneOf(word)}>${foreign(task.reason, "pre")}</p>` : nothing}
    <div class="split open"><div class="stack">
      ${claims(bars, task, now)}
      ${error && !value ? failed(error, ask.again) : value ? html`${specification(value.spec, task, context.past)}${results(value.result, now)}` : skeleton(4)}
      ${commits(commitsOf(state.recent, bars), now)}</div>
      <aside class="stack" aria-label="Facts">${facts(task, value, now)}${dependencies("Depends on", (task.depends_on ?? []).map((id) => tasks.get(`${project}/${id}`) ?? {project, task: id, missing: true}), context, by)}
        ${dependencies("Needed by", dependents(state, project, name), context, [])}</aside></div>`;
}

// --- claims over time ---

function claims(bars, task, now) {
  if (!bars.length) return html`<section class="panel pad" aria-label="Claims"><h2>Claims</h2><p class="muted">Nobody has claimed it yet.</p></section>`;
  const from = Math.min(...bars.map((bar) => bar.from)), to = Math.max(from + 1000, ...bars.map((bar) => Math.min(bar.until ?? bar.to, now + 600_000)), ...bars.map((bar) => bar.to), ...bars.flatMap((bar) => bar.refused.map((each) => each.at)));
  const at = (ms) => `${(100 * (Math.min(Math.max(ms, from), to) - from)) / (to - from)}%`;
  return html`<section class="panel pad" aria-label="Claims"><h2>Claims <span class="muted">${count(bars.length, "generation")}</span></h2>
    <ol class="bars">${bars.map((bar) => html`<li><span class="generation">${bar.generation}</span>
      <span class="bar"><i data-tone=${barTone(bar)} class=${bar.end ? "" : "open"} ${css({"inset-inline-start": at(bar.from), "inset-inline-end": `calc(100% - ${at(bar.to)})`})}></i>
        ${bar.until && bar.until > now ? html`<i class="lease" data-tone="work" title="Its lease" ${css({"inset-inline-start": at(now), "inset-inline-end": `calc(100% - ${at(bar.until)})`})}></i>` : nothing}
        ${bar.refused.map((each) => html`<i class="zombie" title=${`${each.what} refused: ${each.reason}`} ${css({"inset-inline-start": at(each.at)})}></i>`)}</span>
      <span class="cut"><a href=${link.agent(bar.session)}>${foreign(bar.agent)}</a> <span class="muted">${duration((bar.to - bar.from) / 1000)} · ${bar.end || (bar.until ? timeLeft(bar.until, now) : "open")}${bar.accepted ? ", accepted" : ""}</span></span></li>`)}</ol>
    <p class="axis muted"><span>${time(from, when(from, now))}</span><span>${time(to, when(to, now))}</span></p>
    ${zombies(bars, now)}</section>`;
}

const barTone = (bar) => (bar.accepted ? "ok" : !bar.end ? "work" : bar.end === "voluntary" ? "idle" : "bad");

function zombies(bars, now) {
  const refused = bars.flatMap((bar) => bar.refused.map((each) => ({...each, generation: bar.generation})));
  if (!refused.length) return nothing;
  return html`<h3>Refused</h3><ul class="lines">${refused.map((each) => html`<li data-tone="bad"><i class="zombie still" aria-hidden="true"></i><b>${foreign(each.agent)}</b>
    ${each.what} of generation ${each.generation} <span class="muted">${String(each.reason).toLowerCase().replaceAll("_", " ")}${each.times > 1 ? `, ${each.times} times` : ""}, ${ago(each.at, now)}</span></li>`)}</ul>`;
}

// --- what it is, and what came of it ---

const extra = (spec) => Object.entries(spec?.requirements ?? {});

const specification = (spec, task, past) => html`<section class="panel pad" aria-label="Specification"><h2>Specification ${past ? html`<span class="muted">as it is now</span>` : nothing}</h2>
  ${spec?.description ? foreign(spec.description, "pre block") : html`<p class="muted">It has no description.</p>`}
  ${(spec?.files ?? task.files ?? []).length ? html`<h3>Files</h3><ul class="files">${(spec?.files ?? task.files).map((name) => html`<li><a href=${link.lock(name)}>${icon("file")}${foreign(resource(name))}</a></li>`)}</ul>` : nothing}
  ${extra(spec).length ? html`<h3>Requirements</h3><dl class="facts">${extra(spec).map(([name, value]) => html`<div><dt>${foreign(name)}</dt><dd class="pre">${foreign(typeof value === "string" ? value : JSON.stringify(value, null, 2))}</dd></div>`)}</dl>` : nothing}</section>`;

const results = (result, now) => (result ? html`<section class="panel pad" aria-label="Result"><h2>Result <span class="muted">generation ${result.generation}, ${ago(result.submitted_ms, now)}, ${bytes(result.size_bytes ?? 0)}</span></h2>
  ${result.work_product_ref ? html`<p>${code(result.work_product_ref)}</p>` : nothing}
  ${result.result_data ? html`<pre class="data" tabindex="0" dir="ltr">${JSON.stringify(result.result_data, null, 2)}</pre>` : html`<p class="muted">${result.digest ? "It is large: coord task result prints it." : "It has no data."}</p>`}</section>` : nothing);

const commits = (events, now) => (events.length ? html`<section class="panel pad" aria-label="Commits"><h2>Commits <span class="muted">${count(events.length, "event")} while it was claimed</span></h2>
  <ul class="lines">${events.slice(0, 50).map((event) => html`<li>${icon(event.event === "git.committed" ? "branch" : "merges")}${code(String(event.commit || event.tip || "").slice(0, 9))}
    <span>${foreign(event.subject ?? (event.event === "git.merged" ? `merged ${event.branch} into ${event.into}` : `merge of ${event.branch} refused`))}</span>
    <span class="muted">${foreign(event.agent || event.session)}, ${time(event.at, ago(event.at, now))}</span></li>`)}</ul></section>` : nothing);

function facts(task, value, now) {
  const spec = value?.spec, used = value?.used?.amounts;
  const rows = [
    ["Claimed by", task.state === "in_progress" ? html`<a href=${link.agent(task.session)}>${foreign(task.agent || task.session)}</a>` : ""],
    ["Generation", task.generation], ["Lease", task.state === "in_progress" && task.expires_ms ? left(task.expires_ms, now) : ""],
    ["Track", task.track && foreign(task.track)], ["Type", task.type && foreign(task.type)], ["Role", task.role && foreign(task.role)],
    ["Needs", task.needs?.length && foreign(task.needs.join(", "))], ["Priority", task.priority], ["Kept for", task.assignee && (task.assigned_until_ms ?? 0) > now && foreign(task.assignee)],
    ["Estimate", task.estimate_s && duration(task.estimate_s)], ["Deadline", task.deadline_ms && time(task.deadline_ms, task.deadline_ms > now ? `in ${left(task.deadline_ms, now)}` : `${ago(task.deadline_ms, now)}`)],
    ["Retries", task.retries && `${task.retries}${spec ? ` of ${spec.retries_max}` : ""}`], ["Next attempt", task.retry_ms > now && `in ${left(task.retry_ms, now)}`],
    ["Parts", task.parts && (spec?.parts_done === undefined ? task.parts : `${spec.parts_done} of ${task.parts} done`)], ["Cost", spent(used)], ["Added", task.added_ms && time(task.added_ms, ago(task.added_ms, now))],
    ["Ended", task.ended_ms && task.state && task.state !== "in_progress" && time(task.ended_ms, ago(task.ended_ms, now))], ["Project", foreign(task.project)],
  ].filter(([, shown]) => shown);
  return html`<section class="panel pad"><h2>Facts</h2><dl class="facts">${rows.map(([name, shown]) => html`<div><dt>${name}</dt><dd>${shown}</dd></div>`)}</dl></section>`;
}

const DEPENDENCIES_MAX = 40;
const dependencies = (title, found, {state, now}, by) => (found.length ? html`<section class="panel pad"><h2>${title} <span class="muted">${found.length}</span></h2><ul class="lines links">${found.slice(0, DEPENDENCIES_MAX).map((task) => {
  const {word} = task.missing ? {word: "missing"} : taskState(task, state, now);
  return html`<li><a class="cut" href=${link.task(task.project, task.task)}>${by.includes(task.task) ? html`<b>${foreign(task.task)}</b>` : foreign(task.task)} <span class="muted">${foreign(task.title ?? "")}</span></a><span class="end">${chip(toneOf(word), word)}</span></li>`;
})}</ul>${found.length > DEPENDENCIES_MAX ? html`<p class="muted">and ${found.length - DEPENDENCIES_MAX} more</p>` : nothing}</section>` : nothing);
