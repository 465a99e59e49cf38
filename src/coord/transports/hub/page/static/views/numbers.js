// Numbers: throughput, latency, collisions, use and cost over time. The hub counts the log once; the page adds what
// comes after, so that an open page asks for nothing. Of an earlier time the hub gives whole minutes or hours, and the
// page adds the entries up to that time.

import {get} from "../core/api.js";
import {isAgent} from "../core/derive.js";
import {compact, count, duration, money, number, percent} from "../core/format.js";
import {setQuery} from "../core/router.js";
import {isReport} from "../core/report.js";
import {extend, grow, merged, quantile, sum, times} from "../core/series.js";
import {recentEntries, signal, touch} from "../core/store.js";
import {entriesOf} from "../core/travel.js";
import {chart} from "../parts/chart.js";
import {costs} from "../parts/costs.js";
import {choice, failed, filterField, heading, html, nothing, skeleton} from "../parts/html.js";

export const view = {path: "/numbers", title: "Numbers", key: "u", icon: "numbers", order: 9, render};

const SPANS = [["hour", "Hour", 3600], ["day", "Day", 86400], ["week", "Week", 604800], ["all", "Everything", 0]];
const BUCKETS = {hour: 60, day: 96, week: 168, all: 200};
const loaded = signal({key: "", numbers: null, error: null, version: 0});
const PAGE = 1000;
let run = 0, busy = "";

// Whether the state that is shown is not that of the stream.
const isEarlier = ({past}) => Boolean(past) || isReport();
const isAhead = (numbers, context) => isEarlier(context) && numbers.offset > context.state.offset;

async function load(key, span, context) {
  const mine = ++run, {state, now} = context, earlier = isEarlier(context), seconds = SPANS.find(([name]) => name === span)[2];
  busy = key;
  loaded.value = {...loaded.peek(), key, error: null};
  try {
    for (let whole = false; !whole && mine === run;) {
      const numbers = await get("/v1/page/numbers", {since: seconds ? Math.max(0, Math.round(now) - seconds * 1000) : 0, buckets: BUCKETS[span], until: earlier ? state.at : ""});
      whole = numbers.whole;
      numbers.most = seconds ? BUCKETS[span] + 1 : Infinity;
      numbers.askedAt = state.offset;
      if (whole && earlier) await addEntries(numbers, state, () => mine === run);
      if (mine !== run) return;
      loaded.value = {key, numbers, error: null, version: loaded.peek().version + 1};
      touch();
    }
  } catch (error) {
    if (mine === run) loaded.value = {...loaded.peek(), error};
    touch();
  } finally {
    if (mine === run) busy = "";
  }
}

const levelsOf = (state) => ({agents: [...state.tables.sessions.values()].filter(isAgent).length, waiting: state.tables.waits.size,
  working: [...state.tables.tasks.values()].filter((task) => task.state === "in_progress").length});

// Adds the entries up to a state.
async function addEntries(numbers, state, isWanted) {
  const levels = levelsOf(state);
  for (let after = numbers.offset, next; isWanted() && after < state.offset; after = next) {
    const answer = await get("/v1/events", {after, limit: PAGE});
    for (const entry of entriesOf(answer)) if (entry.offset <= state.offset) extend(numbers, entry, levels);
    next = answer.after;
    if (next === after) break;
  }
  numbers.offset = state.offset;
}

// Adds what the stream has brought, or what was played; if something was skipped, the hub counts again.
function follow(context, span) {
  const {state, now} = context, {key, numbers, error} = loaded.peek();
  if (!numbers?.whole || error || busy === key) return;
  const fresh = recentEntries().filter((entry) => entry.offset > numbers.offset);
  if (isAhead(numbers, context) || (state.offset > numbers.offset && state.offset !== numbers.askedAt && (!fresh.length || fresh[0].offset !== numbers.offset + 1) && fresh.length !== state.offset - numbers.offset)) {
    queueMicrotask(() => void load(key, span, context));
    return;
  }
  let changed = false;
  const levels = fresh.length ? levelsOf(state) : {};
  for (const entry of fresh) changed = extend(numbers, entry, levels) || changed;
  const before = numbers.from_ms + times(numbers).length * numbers.width_ms;
  grow(numbers, now, levelsOf(state));
  changed ||= numbers.from_ms + times(numbers).length * numbers.width_ms !== before;
  if (changed) loaded.value = {...loaded.peek(), version: loaded.peek().version + 1};
}

function render(context) {
  const span = BUCKETS[context.query.span] ? context.query.span : "hour";
  // Of one project the page cannot tell what it has missed: the hub counts again, at most once a minute.
  const stamp = !context.who.project ? "" : isEarlier(context) ? context.state.offset : Math.floor(context.now / 60_000);
  const key = [span, isEarlier(context), stamp].join(" "), again = () => void load(key, span, context);
  if (loaded.peek().key !== key) queueMicrotask(again);
  else if (!context.who.project) follow(context, span);
  const {numbers: known, error} = loaded.value, numbers = known && !isAhead(known, context) ? known : null;
  return html`${heading("Numbers", numbers ? detail(numbers) : "", html`${isEarlier(context) ? nothing : filterField(context.q, (text) => setQuery({q: text}), "Filter costs")}
    ${choice("Time", span, SPANS.map(([name, label]) => [name, label]), (value) => setQuery({span: value === "hour" ? "" : value}))}`)}
    ${error ? failed(error, again) : !numbers ? skeleton(8) : html`${tiles(numbers)}<div class="charts">${charts(numbers, loaded.value.version)}</div>`}
    ${isEarlier(context) ? nothing : costs(context)}`;
}

const detail = (numbers) => `${numbers.whole ? "" : "still counting … "}in steps of ${duration(numbers.width_ms / 1000)}`;

// --- tiles ---

function tiles(numbers) {
  const {counts, spans, levels, rules} = numbers, total = (name) => sum(counts[name]);
  const wait = quantile(rules.bounds_s, merged(spans.lock_wait), 0.95), work = quantile(rules.bounds_s, merged(spans.claim_to_done), 0.5);
  const present = sum(levels.agents), used = present ? Math.min(1, sum(levels.working) / present) : 0;
  const asked = total("locks") + total("denied");
  const found = [
    ["Tasks done", number(total("tasks_done")), total("tasks_failed") ? `${count(total("tasks_failed"), "failure")}` : ""],
    ["Commits", number(total("commits")), total("merges") ? count(total("merges"), "merge") : ""],
    ["Locks", compact(total("locks")), asked ? `${percent((100 * total("denied")) / asked)} denied` : ""],
    ["Wait for a lock", wait === null ? "—" : duration(wait), "95% wait less"],
    ["Claim to done", work === null ? "—" : duration(work), "half take less"],
    ["Utilisation", present ? percent(used * 100) : "—", "agents with a task"],
    ["Deadlocks", number(total("deadlocks")), total("files_restored") ? `${count(total("files_restored"), "file")} restored` : ""],
    ["Cost", total("cost") ? money(total("cost")) : "—", total("tokens") ? `${compact(total("tokens"))} tokens` : ""],
  ];
  return html`<dl class="tiles">${found.map(([name, value, more]) => html`<div class="panel"><dt>${name}</dt><dd><b>${value}</b><span class="muted">${more || " "}</span></dd></div>`)}</dl>`;
}

// --- charts ---

function charts(numbers, version) {
  const {counts, spans, levels, rules} = numbers, at = times(numbers);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const plain = (value) => compact(value), seconds = (value) => (value < 1 && value > 0 ? `${Math.round(value * 1000)}ms` : duration(value));
  const counted = (name, series, tone, more = {}) => ({name, values: counts[series], tone, show: plain, bars: true, whole: true, total: plain(sum(counts[series])), ...more});
  const shares = (name, series, share, tone) => {
    const whole = quantile(rules.bounds_s, merged(spans[series]), share);
    return {name, values: spans[series].map((classes) => quantile(rules.bounds_s, classes, share)), tone, show: seconds, plain: share < 0.9, total: whole === null ? "—" : seconds(whole)};
  };
  const level = (name, series, tone) => ({name, values: levels[series], tone, show: (value) => (value >= 10 ? compact(value) : String(Math.round(value * 10) / 10)), steps: true, total: ""});
  const found = [
    ["Throughput", "what the agents finished", [counted("tasks done", "tasks_done", "accent"), counted("commits", "commits", "ok")]],
    ["Locks", "how many were granted", [counted("locks", "locks", "work")]],
    ["Wait for locks", "of those who had to wait", [shares("95%", "lock_wait", 0.95, "wait"), shares("half", "lock_wait", 0.5, "work")]],
    ["Claim to done", "how long a task takes", [shares("95%", "claim_to_done", 0.95, "accent"), shares("half", "claim_to_done", 0.5, "ok")]],
    ["Collisions", "prevented or undone", [counted("denied", "denied", "wait"), counted("merges refused", "merges_refused", "bad"), counted("files restored", "files_restored", "ask")]],
    ["Failures", "deadlocks, late results, expired leases", [counted("deadlocks", "deadlocks", "bad"), counted("results rejected", "results_rejected", "ask"), counted("leases expired", "leases_expired", "wait")]],
    ["Agents", "on average", [level("present", "agents", "idle"), level("with a task", "working", "ok"), level("waiting", "waiting", "wait")]],
    ["Cost", "reported or estimated", [counted("cost", "cost", "accent", {show: money, whole: false, total: money(sum(counts.cost))})]],
  ];
  return found.filter(([name]) => name !== "Cost" || sum(counts.cost)).map(([name, words, series]) => html`<section class="panel chart" aria-label=${name}><header><h2>${name}</h2><span class="muted">${words}</span></header>
    ${chart({label: `${name}: ${words}`, times: at, series, dark, stamp: `${version} ${numbers.width_ms}`, least: name === "Cost" ? 100 : 1})}</section>`);
}

