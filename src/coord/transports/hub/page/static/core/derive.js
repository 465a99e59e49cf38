// What follows from the state: pure functions, cached by the versions of the tables that they read.

import {duration, ordinal, resource} from "./format.js";

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

export const FINISHED = new Set(["done", "skipped"]);
const BROKEN = new Set(["failed", "errored"]), PARTS_MAX = 10_000;

// The tasks that a task depends on: one that was split depends on its parts only.
const needs = (task) => (task.parts ? Array.from({length: Math.min(task.parts, PARTS_MAX)}, (_, at) => `${task.task}::${at + 1}`) : task.depends_on ?? []);

// The open tasks that depend on a broken one, directly or through others, by key.
const blocked = derived(["tasks"], (state) => {
  const dependents = new Map(), open = brokenTasks(state).map(({key}) => key.slice(2)), found = new Set();
  if (!open.length) return found;
  for (const [key, task] of state.tables.tasks) {
    if (!task.state) for (const id of needs(task)) push(dependents, `${task.project}/${id}`, key);
  }
  for (const key of open) {
    for (const other of dependents.get(key) ?? []) {
      if (!found.has(other)) open.push(other);
      found.add(other);
    }
  }
  return found;
});

// Returns {word, by}: the state of a task as people say it, and the tasks that it waits for or that block it.
export function taskState(task, state, now) {
  if (task.state === "in_progress") return {word: task.expires_ms && task.expires_ms < now ? "expired" : "in progress", by: []};
  if (task.state) return {word: task.state, by: []};
  const waiting = [], broken = [], stuck = blocked(state);
  for (const id of needs(task)) {
    const key = `${task.project}/${id}`, found = state.tables.tasks.get(key)?.state;
    if (BROKEN.has(found) || stuck.has(key)) broken.push(id);
    else if (!FINISHED.has(found)) waiting.push(id);
  }
  if (broken.length) return {word: "blocked", by: broken};
  if (waiting.length) return {word: "waiting", by: waiting};
  return {word: task.retry_ms > now ? "retrying" : "ready", by: []};
}

// The task that each session has claimed.
export const tasksBySession = derived(["tasks"], (state) => {
  const found = new Map();
  for (const task of state.tables.tasks.values()) {
    if (task.state === "in_progress" && task.session) found.set(task.session, task);
  }
  return found;
});

// The claims of each session, and the ready tasks that are kept for each agent, by "project/agent".
const queued = derived(["tasks"], (state, minute) => {
  const found = new Map(), add = (key) => found.set(key, (found.get(key) ?? 0) + 1);
  for (const task of state.tables.tasks.values()) {
    if (task.state === "in_progress") add(task.session);
    else if (task.assignee && task.assigned_until_ms > minute && taskState(task, state, minute).word === "ready") add(`${task.project}/${task.assignee}`);
  }
  return found;
});

// How many tasks an agent has besides the one that it works on; who waits for a lock works on none.
export function queueDepth({session, project, agent}, state, now) {
  const found = queued(state, Math.floor(now / 60_000) * 60_000), claims = found.get(session) ?? 0;
  return claims - (claims && !waitsBySession(state).has(session) ? 1 : 0) + (found.get(`${project}/${agent}`) ?? 0);
}

// --- locks and waits ---

// Whether two resources share something: a folder covers what lies below it, a glob what it matches.
export function overlaps(one, other) {
  if (one === other || one.toLowerCase() === other.toLowerCase()) return true;
  if (!one.startsWith("file:") || !other.startsWith("file:")) return false;
  if (GLOB.test(one) || GLOB.test(other)) return fit(segments(one), segments(other), null, (some, others) => fit([...some], [...others], "*", sameCharacter));
  const [short, long] = [one.toLowerCase(), other.toLowerCase()].sort((a, b) => a.length - b.length);
  return short === "file:." || long === "file:." || long.startsWith(`${short}/`);
}

const GLOB = /[*?[\\]/;
const sameCharacter = (one, other) => one === other || one === "?" || other === "?";

// The segments of a path or a glob; null is any number of them. A class may match anything, an escaped character any one.
function segments(name) {
  const text = name === "file:." ? "**" : name.slice(5).toLowerCase(), found = text.replace(/\\./g, "?").replace(/\[[^\]]+\]/g, "*").split("/");
  const below = /[*?]/.test(text.replace(/\\./g, "")) ? [] : [null];
  return [...found.map((each) => (each === "**" ? null : each)), ...below];
}

// Whether some sequence fits both of these, in which `run` stands for any number of items.
function fit(one, other, run, same, at = 0, there = 0, seen = new Set()) {
  const key = at * 1024 + there, more = at < one.length, also = there < other.length;
  if (seen.has(key)) return false;
  seen.add(key);
  const go = (some, others) => fit(one, other, run, same, at + some, there + others, seen);
  if (more && one[at] === run) return go(1, 0) || (also && go(0, 1));
  if (also && other[there] === run) return go(0, 1) || (more && go(1, 0));
  return more && also ? same(one[at], other[there]) && go(1, 1) : more === also;
}

// All waits, in the order in which they are served.
export const queue = derived(["waits"], (state) =>
  [...state.tables.waits.values()].sort((one, other) => turn(one) - turn(other)));
const turn = (wait) => (wait.since_ms ?? 0) - 60_000 * (wait.priority ?? 0);

export const locksBySession = derived(["locks"], (state) => groupBy(state.tables.locks.values(), (lock) => lock.session));

// The place of each wait: how many that it meets are served before it, and one.
const places = derived(["waits"], (state) => {
  const on = new Map(), below = new Map(), globs = [], found = new Map();
  for (const wait of queue(state)) {
    const ahead = new Set(), add = (waits) => waits?.forEach((other) => other.session !== wait.session && ahead.add(other));
    for (const name of new Set(wait.resources)) {
      const folders = [...above(name)], glob = isGlob(name);
      add((glob ? [...found.keys()] : globs).filter((other) => other.resources.some((each) => overlaps(each, name))));
      if (glob) globs.push(wait);
      else {
        add(below.get(folders[0]));
        folders.forEach((each, place) => { add(on.get(each)); push(place ? below : on, each, wait); });
      }
    }
    found.set(wait, ahead.size + 1);
  }
  return found;
});

const isGlob = (name) => name.startsWith("file:") && GLOB.test(name);
const locksByResource = derived(["locks"], (state) => groupBy(state.tables.locks.values(), (lock) => lock.resource.toLowerCase()));

// A resource, and the folders above it; letters count alike in both cases.
function* above(resource) {
  const name = resource.toLowerCase();
  yield name;
  if (!name.startsWith("file:") || name === "file:.") return;
  for (let end = name.lastIndexOf("/"); end > 0; end = name.lastIndexOf("/", end - 1)) yield name.slice(0, end);
  yield "file:.";
}

const holdersKnown = derived(["waits", "locks"], () => new Map());

// The locks that keep a wait from being served: on the same paths, on folders above, and those of its holder.
export function holdersOf(wait, state) {
  const before = holdersKnown(state).get(wait);
  if (before) return before;
  const found = new Set(), known = locksByResource(state), names = wait.resources ?? [];
  for (const name of names) for (const each of above(name)) for (const lock of known.get(each) ?? []) found.add(lock);
  for (const lock of locksBySession(state).get(wait.holder) ?? []) {
    if (names.some((name) => overlaps(name, lock.resource))) found.add(lock);
  }
  const holders = [...found].filter((lock) => lock.session !== wait.session);
  holdersKnown(state).set(wait, holders);
  return holders;
}

// "waiting for src/auth.ts behind ada, 2nd, 1m40s"
export function waitWords(wait, state, now) {
  const place = places(state).get(wait), holders = holdersOf(wait, state);
  const names = [...new Set(holders.map((lock) => nameOf(state, lock.session, lock.agent)))];
  const behind = names.length ? names.join(" and ") : wait.holder ? nameOf(state, wait.holder) : "";
  const what = wait.resources.length === 1 ? resource(wait.resources[0]) : `${resource(wait.resources[0])} and ${wait.resources.length - 1} more`;
  const since = duration((now - (wait.since_ms ?? now)) / 1000);
  return `waiting for ${what}${behind ? ` behind ${behind}` : ""}${place > 1 ? `, ${ordinal(place)}` : ""}, ${since}`;
}

// The names of all sessions as one text: it changes when they do, and not with every sign of life.
export const names = derived(["sessions"], (state) =>
  Array.from(state.tables.sessions.values(), (each) => `${each.session} ${each.agent}`).join("\n"));

export const nameOf = (state, session, fallback = "") =>
  state.tables.sessions.get(session)?.agent ?? (fallback || session || "somebody");

// The sessions that wait and those that they wait for: {nodes: [id], edges: [{from, to, resources}], cycles: Set}.
export const waitGraph = derived(["waits", "locks"], (state) => {
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

// The rows of a tree of paths: folders with what lies in them, and resources. A folder with a single folder in it
// is one row with that. `closed` is a Set of folders, by path, whose rows are left out.
export function treeRows(items, closed = new Set()) {
  const top = {name: "", path: "", folders: new Map(), items: []};
  const others = [];
  for (const item of items) {
    if (!item.resource.startsWith("file:")) {
      others.push(item);
      continue;
    }
    const parts = resource(item.resource).split("/");
    let node = top;
    for (const part of parts.slice(0, -1)) {
      if (!node.folders.has(part)) node.folders.set(part, {name: part, path: node.path ? `${node.path}/${part}` : part, folders: new Map(), items: []});
      node = node.folders.get(part);
    }
    node.items.push({...item, name: parts.at(-1)});
  }
  const rows = others.map((item) => ({...item, kind: "item", key: item.resource, name: item.resource, depth: 0}));
  walk(top, 0, closed, rows);
  return rows;
}

function walk(node, depth, closed, rows) {
  for (let folder of node.folders.values()) {
    let name = folder.name;
    while (!folder.items.length && folder.folders.size === 1) {
      folder = folder.folders.values().next().value;
      name += `/${folder.name}`;
    }
    const open = !closed.has(folder.path);
    rows.push({kind: "folder", key: `${folder.path}/`, path: folder.path, name, depth, open, ...totals(folder)});
    if (open) walk(folder, depth + 1, closed, rows);
  }
  for (const item of node.items) rows.push({...item, kind: "item", key: item.resource, depth});
}

function totals(folder) {
  const sum = {lockCount: 0, waitCount: 0};
  const open = [folder];
  while (open.length) {
    const node = open.pop();
    for (const item of node.items) {
      sum.lockCount += item.locks.length;
      sum.waitCount += item.waits.length;
    }
    open.push(...node.folders.values());
  }
  return sum;
}

// Places the sessions of a wait-for graph in columns: those that wait for nobody are on the right.
export function layoutGraph({nodes, edges}) {
  const next = groupBy(edges, (edge) => edge.from), column = new Map();
  const depth = (node, path) => {
    if (path.has(node)) return 0;
    if (column.has(node)) return column.get(node);
    path.add(node);
    const found = Math.max(-1, ...(next.get(node) ?? []).map((edge) => depth(edge.to, path))) + 1;
    path.delete(node);
    column.set(node, found);
    return found;
  };
  for (const node of nodes) depth(node, new Set());
  const columns = Math.max(0, ...column.values()) + 1, used = new Array(columns).fill(0);
  const places = new Map(nodes.map((node) => {
    const x = columns - 1 - column.get(node);
    return [node, {x, y: used[x]++}];
  }));
  return {places, columns, rows: Math.max(0, ...used)};
}

// --- sessions ---

const SILENT_MS = 10 * 60_000;

export const waitsBySession = derived(["waits"], (state) => groupBy(queue(state), (wait) => wait.session));
export const questionsBySession = derived(["questions"], (state) =>
  groupBy(state.tables.questions.values(), (question) => question.session));

// Returns {tone, word} of a session: tone is ask, bad, wait, work or idle.
export function sessionTone(session, state, now) {
  const question = questionsBySession(state).get(session.session)?.[0];
  if (question) return {tone: "ask", word: question.kind === "permission" ? "needs permission" : "asks you"};
  if (session.hung_s) return {tone: "bad", word: "hangs"};
  if (waitsBySession(state).has(session.session)) return {tone: "wait", word: "waits"};
  const task = tasksBySession(state).get(session.session);
  if (task?.expires_ms && task.expires_ms < now) return {tone: "bad", word: "lease expired"};
  const busy = session.state === "working" || task || locksBySession(state).has(session.session);
  return busy ? {tone: "work", word: "works"} : {tone: "idle", word: "idle"};
}

// The same with `words`, a sentence about it.
export function sessionState(session, state, now) {
  const found = sessionTone(session, state, now), id = session.session;
  return {...found, words: {
    ask: () => questionsBySession(state).get(id)[0].text,
    bad: () => (session.hung_s ? `silent for ${duration((now - (session.seen_ms ?? now)) / 1000)}` : `its claim of ${tasksBySession(state).get(id).task} has expired`),
    wait: () => waitWords(waitsBySession(state).get(id)[0], state, now),
    work: () => (session.file ? `on ${resource(session.file)}` : ""),
    idle: () => {
      const quietMs = now - (session.seen_ms ?? session.started_ms ?? now);
      return quietMs > SILENT_MS ? `for ${duration(quietMs / 1000)}` : "";
    },
  }[found.tone]()};
}

const TONES = ["ask", "bad", "wait", "work", "idle"];

// Whether a session is an agent's: not that of a person, and not the one under which a reader acts on this page.
export const isAgent = (session) => !session.person;

// The names of the agents of a project, in order.
export const agentNames = derived(["sessions"], (state, project) =>
  [...new Set([...state.tables.sessions.values()].filter((each) => isAgent(each) && each.agent && each.project === project).map((each) => each.agent))].sort());

// The agents to show, those first that need somebody.
export const sessionList = derived(["sessions", "questions", "waits", "tasks", "locks"], (state, minute) => {
  const rows = [...state.tables.sessions.values()].filter(isAgent).map((session) => ({
    session, tone: sessionTone(session, state, minute).tone}));
  rows.sort((one, other) => TONES.indexOf(one.tone) - TONES.indexOf(other.tone)
    || (one.session.agent ?? "").localeCompare(other.session.agent ?? "")
    || (one.session.session < other.session.session ? -1 : 1));
  return rows.map((row) => row.session);
});

// --- what needs a person ---

const ORDER = ["permission", "question", "alert", "task", "session"];

// Apart from the rest, because sessions change with every event, and there may be ten thousand tasks.
const brokenTasks = derived(["tasks"], (state) => [...state.tables.tasks].filter(([, record]) => BROKEN.has(record.state))
  .map(([key, record]) => ({kind: "task", key: `t:${key}`, record, sinceMs: record.ended_ms ?? 0})));

// Returns what waits for a person, the most urgent first: [{kind, key, record, sinceMs}].
export const needsYou = derived(["questions", "tasks", "alerts", "sessions"], (state) => {
  const found = [];
  for (const record of state.tables.questions.values()) {
    const kind = record.kind === "permission" ? "permission" : "question";
    found.push({kind, key: `q:${record.id}`, record, sinceMs: record.asked_ms ?? 0});
  }
  found.push(...brokenTasks(state));
  for (const record of state.tables.alerts.values()) found.push({kind: "alert", key: `a:${record.id}`, record, sinceMs: record.since_ms ?? 0});
  for (const record of state.tables.sessions.values()) {
    if (record.hung_s) found.push({kind: "session", key: `s:${record.session}`, record, sinceMs: record.seen_ms ?? 0});
  }
  return found.sort((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind) || one.sinceMs - other.sinceMs);
});

// Returns what happened since a time, from the tasks and what is recent: [{kind, count, items}], only what there is.
export const since = derived(["tasks", "merges", "commits", "refusals", "ended", "decisions", "closed_alerts", "deadlocks", "restored", "messages"],
  (state, sinceMs) => {
    const tasks = [...state.tables.tasks.values()].filter((task) => task.ended_ms > sinceMs);
    const of = (list, kind) => (state.recent[list] ?? []).filter((item) => item.at > sinceMs && (!kind || item.event === kind));
    return [
      {kind: "done", items: tasks.filter((task) => task.state === "done")},
      {kind: "failed", items: tasks.filter((task) => BROKEN.has(task.state))},
      {kind: "merged", items: of("merges", "git.merged")},
      {kind: "merge refused", items: of("merges", "git.merge_refused")},
      {kind: "commits", items: of("commits")},
      {kind: "decisions", items: of("decisions")},
      {kind: "messages", items: of("messages")},
      {kind: "ended", items: of("ended")},
      {kind: "refusals", items: of("refusals")},
      {kind: "deadlocks", items: of("deadlocks")},
      {kind: "restored", items: of("restored")},
      {kind: "alerts closed", items: of("closed_alerts")},
    ].filter((each) => each.items.length);
  });

// --- alerts at an earlier time ---

const JUDGED = 20;

// What the log says of closed alerts by then, the newest first: {alerts, rules}. `known` are alerts of the hub, which
// add what an event does not say and no later one changes.
export function alertRecord(state, known) {
  const texts = new Map(known.map((each) => [each.id, each])), found = new Map();
  for (const {id, rule, subject, outcome, note, by, agent, at} of state.recent.closed_alerts.toReversed()) {
    const {text, raised_ms} = texts.get(id) ?? {};
    if (!found.has(id)) found.set(id, {id, rule, subject, outcome, note, closed_by: by, agent, closed_ms: at, text, raised_ms});
  }
  const alerts = [...found.values()], open = [...state.tables.alerts.values()];
  const rules = [...groupBy([...alerts, ...open], (each) => each.rule)].map(([rule, all]) => {
    const judged = all.filter((each) => each.outcome).slice(0, JUDGED), right = judged.filter((each) => each.outcome === "true").length;
    return {rule, right, wrong: judged.length - right, precision: judged.length ? right / judged.length : null, open: open.filter((each) => each.rule === rule).length};
  });
  return {alerts, rules};
}

// --- small ---

export function push(lists, key, item) {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

export function groupBy(items, keyOf) {
  const found = new Map();
  for (const item of items) push(found, keyOf(item), item);
  return found;
}

// Whether all words of a filter occur in a text.
export function matches(filter, text) {
  const low = text.toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => low.includes(word));
}

const SHOWN_MAX = 50;

// Returns the choices {label, detail, kind} that fit a text, those first whose label begins with it.
export function fitting(choices, text) {
  if (!text.trim()) return choices.slice(0, SHOWN_MAX);
  const low = text.trim().toLowerCase();
  const found = choices.filter((choice) => matches(low, `${choice.kind ?? ""} ${choice.label} ${choice.detail ?? ""}`));
  const rank = (choice) => (choice.label.toLowerCase().startsWith(low) ? 0 : choice.label.toLowerCase().includes(low) ? 1 : 2);
  return found.sort((one, other) => rank(one) - rank(other)).slice(0, SHOWN_MAX);
}

// Returns the first row to draw and the one after the last, of a list that scrolls.
export function visibleRows(count, height, top, room, overscan = 8) {
  const first = Math.min(count, Math.max(0, Math.floor(top / height) - overscan));
  return [first, Math.max(first, Math.min(count, Math.ceil((top + room) / height) + overscan))];
}
