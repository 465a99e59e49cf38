// What the page notifies its reader of: decided from new entries by a table of the hub (`core/page/notices.py`). A notice is
// its row without conditions, with `event`, `count`, the `path` of a link, and a `key`: what it is about. Pure.

import {tasksBySession} from "./derive.js";
import {count} from "./format.js";
import {link} from "./router.js";

export const MOMENT_MS = 700;
export const LEVELS = [["needs", "What needs you"], ["trouble", "Trouble"], ["news", "Everything else"]];
export const WAYS = [["off", "not at all"], ["page", "on the page"], ["desk", "on the page, and as a notification"]];
export const DEFAULTS = {on: false, needs: "desk", trouble: "desk", news: "off", quiet: false, begin: "22:00", end: "07:00"};

const ONLY = {
  agent: ({session}, {state}) => state.tables.sessions.get(session)?.person === undefined && state.tables.sessions.has(session),
  busy: ({session}, {state}) => tasksBySession(state).has(session),
  me: ({to}, {who}) => Boolean(who.session) && [to].flat().includes(who.session),
};
// Where a link leads for one, and for several.
const LINKS = {
  agent: [({session}) => link.agent(session), "/now"], lock: [({resource}) => link.lock(resource), "/locks"],
  task: [({project, task}) => link.task(project, task), "/plan"],
};

// Returns the notice of an event, or null. `state` is that before its entry. What the reader did is no news.
export function noticeOf(table, event, {state, who}) {
  if (!Object.hasOwn(table, event.event) || (who.token && event.origin?.token === who.token)) return null;
  const row = table[event.event].find(({when = {}, only}) => Object.entries(when).every(([name, values]) => values.includes(event[name]))
    && (!only || ONLY[only]?.(event, {state, who})));
  if (!row) return null;
  const {kind, level, tone, title, many, to, until = []} = row, [path = () => to, above = to] = LINKS[to] ?? [];
  const about = ["id", "project", "task", "resource", "branch", "name", "session"].map((name) => event[name]).filter((each) => typeof each === "string");
  return {kind, level, tone, title, many, until, event, count: 1, path: path(event), above, key: [kind, ...about].join(" ")};
}

// Whether an event ends what a notice is about: a question that is answered needs nobody.
export const isOver = ({count: many, until, event}, other) => many === 1 && until.includes(other.event)
  && ["id", "project", "task"].every((name) => event[name] === other[name]);

// Two notices of a kind as one.
function join(one, other) {
  const same = one.key === other.key;
  return {...other, count: same ? one.count : one.count + other.count, tone: one.tone === "bad" ? "bad" : other.tone,
    path: one.path === other.path ? one.path : other.above, key: same ? one.key : one.kind};
}
export const joined = (one, other) => (one ? join(one, other) : other);
export const titleOf = (notice) => (notice.count === 1 ? notice.title : count(notice.count, "", notice.many));

// Puts a notice into a Map that has one for each kind and level.
export function gather(found, notice) {
  const name = `${notice.level} ${notice.kind}`;
  found.set(name, joined(found.get(name), notice));
}

// Returns what was gathered, once.
export function taken(found) {
  const all = [...found.values()];
  found.clear();
  return all;
}

// Takes away what an event ends.
export function endIn(found, event) {
  for (const [name, notice] of found) if (isOver(notice, event)) found.delete(name);
}

// Returns add(notice): at the end of a moment `tell` gets what came in it and is in `found` still.
export function gathering(tell, found = new Map(), wait = setTimeout) {
  return (notice) => {
    if (!found.size) wait(() => taken(found).forEach(tell), MOMENT_MS);
    gather(found, notice);
  };
}

// Whether a time lies in the quiet hours of the reader's clock; the end may be on the next day.
export function isQuiet({quiet, begin, end}, ms) {
  const at = new Date(ms), clock = [at.getHours(), at.getMinutes()].map((each) => String(each).padStart(2, "0")).join(":");
  return Boolean(quiet) && (begin < end ? begin <= clock && clock < end : clock >= begin || clock < end);
}

// When a notice becomes a notification of the browser: "now", "later" (after the quiet hours), or "" for never.
export function deskOf(settings, level, {looking, now}) {
  if (settings[level] !== "desk" || !settings.on || looking) return "";
  return isQuiet(settings, now) ? "later" : "now";
}
