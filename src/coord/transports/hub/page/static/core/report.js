// A report is the page with the log of a run in one file. It has no hub: what the page asks for is answered from the
// file, as far as the log has it.

import {applyEntry, copyState, fromSnapshot, toSnapshot} from "./state.js";

export const ELEMENT = "coord-report";
const EVERY = 2000;
let report = null;

export const isReport = () => report !== null;
export const reportOf = () => report;

// Reads the report that this page is; without one the page belongs to a hub.
export async function open(text = globalThis.document?.getElementById(ELEMENT)?.textContent) {
  if (!text) return;
  const packed = Uint8Array.from(atob(text.trim()), (each) => each.charCodeAt(0));
  const whole = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  use(JSON.parse(await new Response(whole).text()));
}

// Takes a report: {base, entries, rules, hub, from_ms, made_ms}; states are kept on the way, EVERY entries apart.
export function use(found) {
  const state = fromSnapshot(found.base), kept = [copyState(state)];
  for (const [number, entry] of found.entries.entries()) {
    applyEntry(state, found.rules, entry);
    if ((number + 1) % EVERY === 0) kept.push(copyState(state));
  }
  report = {...found, kept, newest: state};
}

// Answers a request of the page.
export function answer(path) {
  const {pathname, searchParams} = new URL(path, "http://report/");
  if (pathname === "/v1/page") return page(searchParams);
  if (pathname === "/v1/events") return events(Number(searchParams.get("after") ?? 0), Number(searchParams.get("limit") ?? 100));
  return null;
}

// The number of entries up to an offset, or up to a time.
function countUntil(field, most) {
  let low = 0, high = report.entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (report.entries[middle][field] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

function page(query) {
  const count = query.has("at") ? countUntil("offset", Number(query.get("at")))
    : query.has("time") ? countUntil("at", Number(query.get("time"))) : report.entries.length;
  const state = count === report.entries.length ? report.newest : stateAfter(count);
  return {
    ...toSnapshot(state), rules: report.rules, hub: report.hub, first_offset: report.base.offset,
    now_ms: report.newest.at, who: {user: "", role: "view", project: "", label: "report", expires_ms: 0},
  };
}

function stateAfter(count) {
  const kept = Math.floor(count / EVERY), state = copyState(report.kept[kept]);
  for (const entry of report.entries.slice(kept * EVERY, count)) applyEntry(state, report.rules, entry);
  return state;
}

function events(after, limit) {
  const first = countUntil("offset", after), found = report.entries.slice(first, first + limit);
  return {
    after: found.at(-1)?.offset ?? after,
    events: found.flatMap((entry) => entry.events.map(({event, ...details}) => ({offset: entry.offset, at_ms: entry.at, event, details}))),
  };
}
