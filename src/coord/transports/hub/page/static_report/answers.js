// What a hub answers, from the file of a report: states, entries, and what was read of the store when it was made.

import {overlaps} from "../static/core/derive.js";
import {applyEntry, copyState, fromSnapshot, toSnapshot} from "../static/core/state.js";
import {extend} from "../static/core/series.js";

const EVERY = 2000, MINUTE_MS = 60_000, HOUR_MS = 3_600_000;

// Takes a report: {base, entries, rules, hub, series, sentences, plans, tasks, usage, alerts, periods}.
// Returns {answer(path), entries}; states are kept on the way, EVERY entries apart.
export function reportOf(found) {
  const {entries} = found, newest = fromSnapshot(found.base), kept = [copyState(newest)];
  for (const [number, entry] of entries.entries()) {
    applyEntry(newest, found.rules, entry);
    if ((number + 1) % EVERY === 0) kept.push(copyState(newest));
  }

  // The number of entries up to an offset, or up to a time.
  function countUntil(field, most) {
    let low = 0, high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle][field] <= most) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function stateAfter(count) {
    if (count === entries.length) return newest;
    const number = Math.floor(count / EVERY), state = copyState(kept[number]);
    for (const entry of entries.slice(number * EVERY, count)) applyEntry(state, found.rules, entry);
    return state;
  }

  const stateAt = (query) => stateAfter(query.at !== undefined ? countUntil("offset", Number(query.at))
    : query.time !== undefined ? countUntil("at", Number(query.time)) : entries.length);

  const page = (query) => ({
    ...toSnapshot(stateAt(query)), rules: found.rules, hub: found.hub, first_offset: found.base.offset,
    now_ms: newest.at, who: {user: "", role: "view", project: "", label: "report", expires_ms: 0},
  });

  function events({after = 0, limit = 100}) {
    const first = countUntil("offset", Number(after)), shown = entries.slice(first, first + Number(limit));
    return {
      after: shown.at(-1)?.offset ?? Number(after),
      events: shown.flatMap((entry) => entry.events.map(({event, ...details}) => ({offset: entry.offset, at_ms: entry.at, event, details}))),
    };
  }

  const plan = ({project}) => ({...found.plans[project], offset: newest.offset});
  const numbers = ({since = 0, buckets = 60, until = newest.at}) =>
    numbersOf(found, entries, {since: Number(since), buckets: Number(buckets), until: Number(until)});

  const task = (project, name) => found.tasks[`${project}/${name}`];
  const routes = [
    [/^\/v1\/page$/, page],
    [/^\/v1\/events$/, events],
    [/^\/v1\/page\/sentences$/, () => found.sentences],
    [/^\/v1\/page\/plan$/, plan],
    [/^\/v1\/page\/numbers$/, numbers],
    [/^\/v1\/page\/messages$/, () => []],
    [/^\/v1\/alerts$/, () => found.alerts],
    [/^\/v1\/usage$/, ({project}) => ({totals: found.usage[project] ?? []})],
    [/^\/v1\/locks\/history$/, ({resources}) => ({periods: found.periods.filter((each) => !resources || overlaps(each.resource, resources)), after: "", before: 0})],
    [/^\/v1\/projects\/([^/]+)\/tasks$/, ({tasks}, project) => ({tasks: [task(project, tasks)?.spec].filter(Boolean)})],
    [/^\/v1\/projects\/([^/]+)\/tasks\/([^/]+)\/history$/, (_, project, name) => task(project, name)?.history ?? []],
    [/^\/v1\/projects\/([^/]+)\/tasks\/([^/]+)\/state$/, (_, project, name) => ({result: task(project, name)?.result ?? null})],
  ];

  // Answers a request of the page; null if a report does not have that.
  function answer(path) {
    const {pathname, searchParams} = new URL(path, "http://report/");
    for (const [pattern, reply] of routes) {
      const names = pattern.exec(pathname)?.slice(1);
      if (names) return reply(Object.fromEntries(searchParams), ...names.map(decodeURIComponent));
    }
    return null;
  }

  return {answer, entries};
}

// Numbers in buckets of a round width, of the minutes or hours that had ended at a time: as the hub counts them.
export function numbersOf({base, series}, entries, {since, buckets, until}) {
  const begins = entries[0]?.at ?? until, begin = Math.min(Math.max(since, begins), until);
  const wanted = Math.max((until - begin) / buckets, MINUTE_MS), width = series.widths_ms.find((each) => each >= wanted) ?? series.widths_ms.at(-1);
  const step = width < HOUR_MS ? MINUTE_MS : HOUR_MS, ended = Math.floor(until / step) * step;
  const first = Math.floor(begin / width), size = Math.max(1, Math.floor(until / width) - first + 1);
  const filled = (names, value) => Object.fromEntries(names.map((name) => [name, Array.from({length: size}, value)]));
  const numbers = {
    offset: base.offset, whole: true, from_ms: first * width, width_ms: width, rules: series.rules,
    counts: filled(series.counted, () => 0), spans: filled(series.timed, () => []), levels: filled(Object.keys(series.levels), () => 0),
  };
  const {sessions = {}, waits = {}, tasks = {}} = base.tables ?? {};
  const open = {agents: new Set(Object.keys(sessions)), waiting: new Set(Object.keys(waits)),
    working: new Set(Object.values(tasks).filter((task) => task.state === "in_progress").map((task) => `${task.project}\n${task.task}`))};
  let at = begins;
  const pass = (to) => {
    while (at < to) {
      const bucket = Math.floor(at / width), end = Math.min(to, (bucket + 1) * width);
      if (bucket >= first) for (const name in open) numbers.levels[name][bucket - first] += open[name].size * (end - at);
      at = end;
    }
  };
  for (const entry of entries) {
    if (entry.at >= ended) break;
    pass(entry.at);
    for (const event of entry.events) {
      for (const [name, {begins: begun, ends, unless}] of Object.entries(series.levels)) {
        const fields = begun[event.event] ?? ends[event.event];
        if (fields && !(begun[event.event] && event[unless] === true)) open[name][begun[event.event] ? "add" : "delete"](fields.map((field) => event[field] ?? "").join("\n"));
      }
    }
    if (entry.at >= numbers.from_ms) extend(numbers, entry);
    numbers.offset = entry.offset;
  }
  pass(Math.max(ended, begins));
  for (const values of Object.values(numbers.levels)) {
    for (const place of values.keys()) {
      const from = Math.max((first + place) * width, begins);
      values[place] /= Math.max(1, Math.min((first + place + 1) * width, ended) - from);
    }
  }
  return numbers;
}
