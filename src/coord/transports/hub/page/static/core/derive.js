// What follows from the state: pure functions, cached by the versions of the tables that they read.

import {duration, left, ordinal, resource} from "./format.js";

// Returns compute(state, ...more), remembered until one of the tables changes.
export function derived(names, compute) {
  let seen = null, result;
  return (state, ...more) => {
    const key = [state, ...names.map((name) => state.versions[name]), ...more];
    if (seen === null || seen.length !== key.length || seen.some((value, place) => value !== key[place])) {
      result = compute(state, ...more);
      seen = key;
    }
    return result;
  };
}

// --- tasks ---

const PASSED = new Set(["done", "skipped"]), BROKEN = new Set(["failed", "errored"]);

// Returns {word, by}: the state of a task as people say it, and the tasks that it waits for or that block it.
export function taskState(task, tasks, now) {
  const state = task.state ?? "open";
  if (state === "in_progress") return {word: task.expires_ms && task.expires_ms < now ? "expired" : "in progress", by: []};
  if (state !== "open") return {word: state, by: []};
  const waiting = [], broken = [];
  for (const id of task.depends_on ?? []) {
    const other = tasks.get(`${task.project}/${id}`);
    const found = other?.state ?? "open";
    if (BROKEN.has(found)) broken.push(id);
    else if (!PASSED.has(found)) waiting.push(id);
  }
  if (broken.length) return {word: "blocked", by: broken};
  if (waiting.length) return {word: "waiting", by: waiting};
  if (task.retry_ms > now) return {word: "retrying", by: []};
  return {word: "ready", by: []};
}

// The task that each session has claimed.
export const tasksBySession = derived(["tasks"], (state) => {
  const found = new Map();
  for (const task of state.tables.tasks.values()) {
    if (task.state === "in_progress" && task.session) found.set(task.session, task);
  }
  return found;
});

// --- locks and waits ---

// Whether two resources share something: a folder covers what lies below it.
export function overlaps(one, other) {
  if (one === other) return true;
  if (!one.startsWith("file:") || !other.startsWith("file:")) return false;
  const short = one.length < other.length ? one : other, long = short === one ? other : one;
  return short === "file:." || long.startsWith(short.endsWith("/") ? short : `${short}/`);
}

// All waits, in the order in which they are served.
export const queue = derived(["waits"], (state) =>
  [...state.tables.waits.values()].sort((one, other) => turn(one) - turn(other)));
const turn = (wait) => (wait.since_ms ?? 0) - 60_000 * (wait.priority ?? 0);

export const locksBySession = derived(["locks"], (state) => groupBy(state.tables.locks.values(), (lock) => lock.session));

// Returns {place, behind, holder}: where a wait stands for its first contested resource.
export function position(wait, state) {
  const waits = queue(state);
  const ahead = waits.slice(0, waits.indexOf(wait)).filter(
    (other) => other.session !== wait.session && meet(other.resources, wait.resources));
  const holders = holdersOf(wait, state);
  return {place: ahead.length + 1, ahead, holders};
}

const meet = (some, others) => (some ?? []).some((one) => (others ?? []).some((other) => overlaps(one, other)));

// The locks that keep a wait from being served.
export function holdersOf(wait, state) {
  const found = [];
  for (const lock of state.tables.locks.values()) {
    if (lock.session === wait.session) continue;
    if (lock.session === wait.holder || (!wait.holder && wait.resources.some((name) => overlaps(name, lock.resource)))) {
      if (wait.resources.some((name) => overlaps(name, lock.resource))) found.push(lock);
    }
  }
  return found;
}

// "waiting for src/auth.ts behind ada, 2nd, 1m40s"
export function waitWords(wait, state, now) {
  const {place, holders} = position(wait, state);
  const names = [...new Set(holders.map((lock) => nameOf(state, lock.session, lock.agent)))];
  const behind = names.length ? names.join(" and ") : wait.holder ? nameOf(state, wait.holder) : "";
  const what = wait.resources.length === 1 ? resource(wait.resources[0]) : `${resource(wait.resources[0])} and ${wait.resources.length - 1} more`;
  const since = duration((now - (wait.since_ms ?? now)) / 1000);
  return `waiting for ${what}${behind ? ` behind ${behind}` : ""}${place > 1 ? `, ${ordinal(place)}` : ""}, ${since}`;
}

export const nameOf = (state, session, fallback = "") =>
  state.tables.sessions.get(session)?.agent ?? (fallback || session || "somebody");

// The sessions that wait and those that they wait for: {nodes: [id], edges: [{from, to, resources}], cycles: Set}.
export const waitGraph = derived(["waits", "locks", "sessions"], (state) => {
  const edges = new Map();
  for (const wait of queue(state)) {
    const holders = holdersOf(wait, state);
    const targets = holders.length ? holders.map((lock) => [lock.session, lock.resource]) : wait.holder ? [[wait.holder, wait.resources[0]]] : [];
    for (const [to, name] of targets) {
      const key = `${wait.session}\n${to}`;
      const edge = edges.get(key) ?? {from: wait.session, to, resources: []};
      if (!edge.resources.includes(name)) edge.resources.push(name);
      edges.set(key, edge);
    }
  }
  const list = [...edges.values()];
  const nodes = [...new Set(list.flatMap((edge) => [edge.from, edge.to]))];
  return {nodes, edges: list, inCycle: cycleNodes(nodes, list)};
});

// The nodes from which a walk along the edges can return.
export function cycleNodes(nodes, edges) {
  const next = groupBy(edges, (edge) => edge.from);
  const found = new Set();
  for (const start of nodes) {
    const seen = new Set(), open = [start];
    while (open.length) {
      for (const edge of next.get(open.pop()) ?? []) {
        if (edge.to === start) found.add(start);
        if (!seen.has(edge.to)) {
          seen.add(edge.to);
          open.push(edge.to);
        }
      }
    }
  }
  return found;
}

// Locks and waits by the resource that they are on, in order of name: [{resource, locks, waits}].
export const byResource = derived(["locks", "waits"], (state) => {
  const found = new Map();
  const of = (name) => {
    if (!found.has(name)) found.set(name, {resource: name, locks: [], waits: []});
    return found.get(name);
  };
  for (const lock of state.tables.locks.values()) of(lock.resource).locks.push(lock);
  for (const wait of queue(state)) for (const name of wait.resources ?? []) of(name).waits.push(wait);
  return [...found.values()].sort((one, other) => (one.resource < other.resource ? -1 : 1));
});

// --- sessions ---

const SILENT_MS = 10 * 60_000;

export const waitsBySession = derived(["waits"], (state) => groupBy(queue(state), (wait) => wait.session));
export const questionsBySession = derived(["questions"], (state) =>
  groupBy(state.tables.questions.values(), (question) => question.session));

// Returns {tone, word, words} of a session: tone is bad, ask, wait, work or idle.
export function sessionState(session, state, now) {
  const question = questionsBySession(state).get(session.session)?.[0];
  if (question) return {tone: "ask", word: question.kind === "permission" ? "needs permission" : "asks you", words: question.text};
  if (session.hung_s) return {tone: "bad", word: "hangs", words: `silent for ${duration((now - (session.seen_ms ?? now)) / 1000)}`};
  const wait = waitsBySession(state).get(session.session)?.[0];
  if (wait) return {tone: "wait", word: "waits", words: waitWords(wait, state, now)};
  const task = tasksBySession(state).get(session.session);
  if (task && task.expires_ms && task.expires_ms < now) return {tone: "bad", word: "lease expired", words: `its claim of ${task.task} has expired`};
  const busy = task || locksBySession(state).get(session.session)?.length;
  if (session.state === "working" || busy) return {tone: "work", word: "works", words: session.file ? `on ${resource(session.file)}` : ""};
  const quiet = now - (session.seen_ms ?? session.started_ms ?? now);
  return {tone: "idle", word: "idle", words: quiet > SILENT_MS ? `for ${duration(quiet / 1000)}` : ""};
}

const TONES = ["ask", "bad", "wait", "work", "idle"];

// The sessions to show, those first that need somebody.
export const sessionList = derived(["sessions", "questions", "waits", "tasks", "locks"], (state, minute) => {
  const rows = [...state.tables.sessions.values()].map((session) => ({
    session, tone: sessionState(session, state, minute).tone}));
  rows.sort((one, other) => TONES.indexOf(one.tone) - TONES.indexOf(other.tone)
    || (one.session.agent ?? "").localeCompare(other.session.agent ?? "")
    || (one.session.session < other.session.session ? -1 : 1));
  return rows.map((row) => row.session);
});

// --- what needs a person ---

const ORDER = ["permission", "question", "alert", "task", "session", "agent"];

// Returns what waits for a person, the most urgent first: [{kind, key, record, sinceMs}].
export const needsYou = derived(["questions", "tasks", "alerts", "sessions", "agents"], (state) => {
  const found = [];
  for (const record of state.tables.questions.values()) {
    const kind = record.kind === "permission" ? "permission" : "question";
    found.push({kind, key: `q:${record.id}`, record, sinceMs: record.asked_ms ?? 0});
  }
  for (const [key, record] of state.tables.tasks) {
    if (record.state === "failed" || record.state === "errored") {
      found.push({kind: "task", key: `t:${key}`, record, sinceMs: record.ended_ms ?? 0});
    }
  }
  for (const record of state.tables.alerts.values()) found.push({kind: "alert", key: `a:${record.id}`, record, sinceMs: record.since_ms ?? 0});
  for (const record of state.tables.sessions.values()) {
    if (record.hung_s) found.push({kind: "session", key: `s:${record.session}`, record, sinceMs: record.seen_ms ?? 0});
  }
  return found.sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) || one.sinceMs - other.sinceMs);
});

// --- small ---

export function groupBy(items, keyOf) {
  const found = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (found.has(key)) found.get(key).push(item);
    else found.set(key, [item]);
  }
  return found;
}

// Whether all words of a filter occur in a text.
export function matches(filter, text) {
  const low = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => low.includes(word));
}

export {left};
