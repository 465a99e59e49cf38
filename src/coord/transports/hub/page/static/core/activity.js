// What happened, from raw entries: items, filters, and lanes by session. Everything is pure.

import {groupBy, matches} from "./derive.js";
import {entriesOf} from "./travel.js";

// Events that a reader rarely wants: heartbeats and receipts. A filter by kind, or `all`, shows them.
export const QUIET = new Set(["lock.renewed", "task.renewed", "usage.reported", "brief.delivered", "session.updated",
  "message.delivered", "lock.wait_ended", "file.read", "task.history_forgotten"]);

// The kinds of events, by the names of all: [[kind, [name]]].
export const kindsOf = (events) => [...groupBy(events.toSorted(), (name) => name.split(".")[0])];

// Returns the items of entries as the stream has them: [{key, offset, at, ...event}].
export const fromEntries = (entries) => entries.flatMap((entry) => (entry.events ?? []).map(
  (event, number) => ({...event, key: `${entry.offset}.${number}`, offset: entry.offset, at: entry.at})));

// The same for the answer of GET /v1/events.
export const fromEvents = (events) => fromEntries(entriesOf({events}));

const list = (value) => (Array.isArray(value) ? value : value ? [value] : []);

// The sessions that an event concerns, the acting one first.
export const sessionsOf = (item) => [...new Set([item.session, item.by, item.victim, item.successor, item.holder, item.parent,
  ...list(item.to), ...list(item.cycle)].filter((each) => typeof each === "string" && each))];
export const filesOf = (item) => [...list(item.resource), ...list(item.resources), ...list(item.files)];

// Whether an item passes {agent, kind, file, task, q, all}; `nameOf` gives the agent of a session, `words` its text.
export function passes(item, filter, nameOf, words) {
  if (!filter.all && !filter.kind && QUIET.has(item.event)) return false;
  if (filter.kind && item.event !== filter.kind && !item.event.startsWith(`${filter.kind}.`)) return false;
  if (filter.agent && item.agent !== filter.agent && !sessionsOf(item).some((each) => each === filter.agent || nameOf(each) === filter.agent)) return false;
  if (filter.file && !filesOf(item).some((each) => String(each).includes(filter.file))) return false;
  if (filter.task && item.task !== filter.task && `${item.project}/${item.task}` !== filter.task) return false;
  return !filter.q || matches(filter.q, words(item));
}

// A page that stays open for days forgets the oldest items; they can be loaded again.
export const ITEMS_MAX = 20_000;

// The part of the log that the page has: items from `low` + 1 to `high`, oldest first.
export class Past {
  items = [];
  low = 0;
  high = 0;
  trimmed = false; // nothing older exists
  begun = false;

  // Takes the entries of the stream; a gap (of one project: another `source`), or a time before what it has, makes it
  // begin again. Returns whether something changed.
  follow(entries, offset, source = null) {
    const fresh = entries.filter((entry) => entry.offset > this.high);
    const whole = fresh.length ? fresh[0].offset === this.high + 1 : offset <= this.high;
    if (!this.begun || source !== this.source || (!source && !whole) || offset < this.low) {
      this.begun = true;
      this.source = source;
      this.items = fromEntries(entries);
      this.low = entries.length ? entries[0].offset - 1 : offset;
      this.high = offset;
      this.trimmed = this.low <= 0;
      return true;
    }
    if (fresh.length) this.items = this.items.concat(fromEntries(fresh));
    if (this.items.length > ITEMS_MAX * 1.2) {
      this.low = this.items.at(-ITEMS_MAX).offset;
      this.items = this.items.filter((item) => item.offset > this.low);
      this.trimmed = false;
    }
    this.high = Math.max(this.high, offset);
    return fresh.length > 0;
  }

  // The items that had happened by an offset.
  upTo(offset) {
    if (this.high <= offset) return this.items;
    if (this.cut?.of !== this.items || this.cut.offset !== offset) this.cut = {of: this.items, offset, items: this.items.filter((item) => item.offset <= offset)};
    return this.cut.items;
  }

  // Loads and returns older events. Where offsets leap, the state there says which entry comes before.
  async load(get, size, first) {
    const {after, limit} = this.older(size, first), {low} = this, answer = await get("/v1/events", {after, limit});
    const leaps = after && answer.after > low, known = leaps ? (await get("/v1/page", {at: after, nearest: true})).offset : after;
    if (this.low === low) this.prepend(answer.events, Math.min(after, known), first); // or it began again in the meantime
    return answer.events;
  }

  // What to ask the hub for: the page before the oldest known entry.
  older(size, first) {
    const after = Math.max(0, first - 1, this.low - size);
    return {after, limit: Math.max(1, this.low - after)};
  }

  // Takes older events, all between `after` and the oldest known entry.
  prepend(events, after, first) {
    this.items = fromEvents(events.filter((each) => each.offset <= this.low)).concat(this.items);
    this.low = after;
    this.trimmed = after <= Math.max(0, first - 1);
  }
}

// --- lanes ---

const ENDS_CLAIM = new Set(["task.completed", "task.released", "task.expired", "task.superseded"]);
const MARKS = {
  "git.committed": "commit", "git.merged": "commit", "lock.denied": "bad", "git.merge_refused": "bad", "git.commit_refused": "bad",
  "task.result_rejected": "bad", "lock.deadlock": "bad", "session.hung": "bad", "file.restored": "bad", "question.asked": "ask",
  "question.answered": "ask", "message.sent": "message", "message.sent_to_group": "message", "file.edited": "edit",
  "session.registered": "begin", "session.ended": "end",
};

// Returns [{session, bars: [{kind, from, to, item}], marks: [{kind, at, items}]}] between two times, busiest last seen
// first. A bar that is open ends at `until`. Marks closer than `near` ms are one.
export function lanes(items, from, until, near = 0) {
  const found = new Map(), open = new Map();
  const lane = (session) => {
    if (!found.has(session)) found.set(session, {session, bars: [], marks: [], at: 0});
    return found.get(session);
  };
  const close = (key, at, item, since) => {
    const begun = open.get(key);
    open.delete(key);
    if (at < from) return;
    const start = begun?.from ?? since;
    lane(item.session).bars.push({kind: key.split("\n")[0], from: Math.max(from, start ?? from), to: at, item: begun?.item ?? item});
  };
  const move = (from, to, item) => {
    close(from, item.at, item);
    open.set(to, {from: item.at, item: {...item, session: item.successor}});
  };
  for (const item of items) {
    if (item.at > until) break;
    const session = item.event === "lock.deadlock" ? item.victim : item.session;
    if (!session || session === "system") continue;
    const task = `claim\n${item.project}\n${item.task}`, lock = `lock\n${session}\n${item.resource}`, wait = `wait\n${session}\n${list(item.resources).join("\n")}`;
    if (item.event === "task.claimed") open.set(task, {from: item.at, item});
    else if (ENDS_CLAIM.has(item.event)) close(task, item.at, item, item.worked_ms ? item.at - item.worked_ms : undefined);
    else if (item.event === "lock.acquired") open.set(lock, {from: item.at, item});
    else if (item.event === "lock.released") close(lock, item.at, item, item.held_s ? item.at - item.held_s * 1000 : undefined);
    else if (item.event === "task.moved") move(task, task, item);
    else if (item.event === "lock.moved") move(lock, `lock\n${item.successor}\n${item.resource}`, item);
    else if (item.event === "lock.waiting") open.set(wait, {from: item.at, item});
    else if (item.event === "lock.wait_ended" || item.event === "lock.withdrawn") close(wait, item.at, item);
    if (item.at < from) continue;
    const row = lane(session);
    row.at = item.at;
    const kind = MARKS[item.event], last = row.marks.findLast?.((mark) => mark.kind === kind);
    if (kind && last && item.at - last.at < near) last.items.push(item);
    else if (kind) row.marks.push({kind, at: item.at, items: [item]});
  }
  for (const [key, {from: since, item}] of open) {
    lane(item.session).bars.push({kind: key.split("\n")[0], from: Math.max(from, since), to: until, item, open: true});
  }
  return [...found.values()].sort((one, other) => other.at - one.at || (one.session < other.session ? -1 : 1));
}

// Returns round times between two others, about `many` of them: [ms].
export function ticks(from, until, many = 6) {
  const steps = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800].map((each) => each * 1000);
  const step = steps.find((each) => (until - from) / each <= many) ?? steps.at(-1);
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const found = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= until; at += step) found.push(at);
  return found;
}

// The agents of items by name, for a choice: [name].
export const agentsOf = (items, nameOf) => [...new Set(items.map((item) => item.session && (item.agent || nameOf(item.session))))]
  .filter((name) => name && name !== "system").sort((one, other) => one.localeCompare(other));

// The first and the last second of an axis of time; uPlot alone would show a thousand days around a single step.
const SHORTEST_S = 600;
export const timeRange = (times) => (times.length ? [times[0], Math.max(times.at(-1), times[0] + SHORTEST_S)] : [0, SHORTEST_S]);
