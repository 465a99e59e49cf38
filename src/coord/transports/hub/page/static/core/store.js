// What the page knows, as signals. Entries change the state at once; `frame` grows at most once per animation frame
// and makes the page render. `shown` is the live state, or that of `?at=OFFSET`. `now` is the store's clock: it
// ticks once a second while the page is visible.

import {batch, computed, effect, signal, untracked} from "../vendor/signals-core/signals-core.js";
import {get, queryOf} from "./api.js";
import {Feed} from "./feed.js";
import {isReport, reportOf} from "./report.js";
import {address, setQuery} from "./router.js";
import {applyEntry, emptyState, fromSnapshot} from "./state.js";
import {Traveller} from "./travel.js";

export {batch, computed, effect, signal};
export const ENTRIES_MAX = 3000;

export const frame = signal(0);
export const now = signal(Date.now());
export const status = signal({state: "loading", error: null, retryMs: 0});
export const who = signal({user: "", role: "", project: "", label: ""});
export const hub = signal({});
export const firstOffset = signal(1);
export const loaded = signal(false);
export const outdated = signal(false); // the hub was upgraded since this page was loaded
export const past = signal(null); // what travel.js shows while `?at=` names a moment that is over
export const entries = []; // the newest raw entries, oldest first
export const recentEntries = () => (past.value ? past.value.passed ?? [] : entries); // those up to what is shown

let live = emptyState(), rules = {}, notices = {}, skewMs = 0, liveSinceMs = 0;
const listeners = [];

// The state to show: live, or at the moment that the address names.
export const shown = computed(() => {
  void frame.value;
  return past.value?.state ?? live;
});
export const liveState = () => live;
export const liveNotices = () => notices;

// Calls heard(entry, state) for each entry that is new, with the state before it. What a snapshot answered late, or a
// reload brings again, is not new.
export const onEntry = (heard) => listeners.push(heard);

let asked = false;
export function touch() {
  if (asked) return;
  asked = true;
  const draw = () => {
    asked = false;
    frame.value += 1;
  };
  if (document.hidden) setTimeout(draw, 1000);
  else requestAnimationFrame(draw);
}

function takeSnapshot(snapshot) {
  live = fromSnapshot(snapshot);
  rules = snapshot.rules;
  notices = snapshot.notices ?? {};
  liveSinceMs = snapshot.now_ms ?? 0;
  skewMs = (snapshot.now_ms ?? Date.now()) - Date.now();
  entries.length = 0;
  batch(() => {
    who.value = {...who.peek(), ...snapshot.who};
    outdated.value = Boolean(hub.peek().page) && hub.peek().page !== snapshot.hub?.page;
    if (!outdated.value) hub.value = snapshot.hub ?? {};
    firstOffset.value = snapshot.first_offset ?? 1;
    loaded.value = true;
    if (!past.peek()?.state) now.value = Date.now() + skewMs;
    frame.value += 1; // `loaded` and the state that is shown change together
  });
}

const feed = new Feed({
  load: (signal) => get("/v1/page", {}, {signal}),
  connect: (offset) => new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/ws${queryOf({after: offset})}`),
  on: {
    snapshot: takeSnapshot,
    entry(entry) {
      if (entry.at > liveSinceMs) for (const heard of listeners) heard(entry, live);
      applyEntry(live, rules, entry);
      entries.push(entry);
      if (entries.length > ENTRIES_MAX + 500) entries.splice(0, entries.length - ENTRIES_MAX);
      touch();
    },
    status(found) {
      status.value = found;
    },
  },
});

function tick() {
  if (past.peek()) return;
  if (isReport()) now.value = live.at; // a report never changes: its clock stands at its newest entry
  else if (!document.hidden) now.value = Date.now() + skewMs;
}

// Moves in the past. What it shows changes the address, and the browser's history twice a second at most.
const ADDRESS_MS = 500;
let addressMs = 0;
export const traveller = new Traveller({
  loadState: (query) => get("/v1/page", query),
  loadEntries: (query) => get("/v1/events", query),
  show: (found) => batch(() => {
    past.value = found;
    if (!found?.state) return;
    now.value = found.state.at;
    firstOffset.value = found.first ?? firstOffset.peek();
    if (found.loading || !address.peek().searchParams.has("at")) return;
    const soon = found.playing && Date.now() - addressMs < ADDRESS_MS;
    if (!soon) addressMs = Date.now();
    setQuery({at: found.at}, {soon});
  }),
});

// Shows what the address means: a moment that is over, or what is now.
function travel(at) {
  if (at) void traveller.open(at);
  else if (past.peek()) {
    traveller.close();
    tick();
  }
}

export function start() {
  const at = computed(() => address.value.searchParams.get("at") ?? ""); // another view does not travel
  effect(() => {
    const text = at.value;
    untracked(() => travel(text));
  });
  if (isReport()) return startReport();
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", () => {
    tick();
    if (!document.hidden) feed.probe();
  });
  addEventListener("online", () => feed.probe());
  addEventListener("pagehide", () => feed.stop());
  addEventListener("pageshow", (event) => {
    if (event.persisted) void feed.start();
  });
  return feed.start();
}

async function startReport() {
  takeSnapshot(await get("/v1/page"));
  entries.push(...reportOf().entries.slice(-ENTRIES_MAX));
  tick();
  status.value = {state: "report", error: null, retryMs: 0};
}
export const reconnect = () => feed.open();

// Whether the reader may do what needs a role; nobody may act in the past.
const RANK = {view: 1, operate: 2, admin: 3};
export const may = (role) => !past.value && (RANK[who.value.role] ?? 0) >= (RANK[role] ?? 9);

// A value in localStorage that survives without it, the same in all pages of a browser; `name` is a key of this page.
export function remembered(name, initial) {
  const key = `coord.${name}`;
  const read = (text, otherwise) => {
    try {
      return JSON.parse(text()) ?? otherwise;
    } catch {
      return otherwise; // private windows and foreign values
    }
  };
  let stored = read(() => localStorage.getItem(key), initial);
  const found = signal(stored);
  globalThis.addEventListener?.("storage", (event) => {
    if (event.key === key) found.value = stored = read(() => event.newValue, found.peek());
  });
  effect(() => {
    if (found.value === stored) return; // two pages that wrote back what they hear would never end
    stored = found.value;
    try {
      localStorage.setItem(key, JSON.stringify(stored));
    } catch {
      // no room or not allowed: it counts until the page closes
    }
  });
  return found;
}

// A choice that is remembered, and that the address may name: `?shape=rows` counts, so that a link shows the same.
export function shared(parameter, name, choices) {
  const kept = remembered(name, choices[0]);
  return {
    get value() {
      const given = address.value.searchParams.get(parameter);
      return choices.includes(given) ? given : kept.value;
    },
    set value(chosen) {
      kept.value = chosen;
      setQuery({[parameter]: chosen});
    },
  };
}
