// The state at an offset, and what the next entry makes of it. The rules are data that come with every
// snapshot; `core/page/state.py` interprets the same ones. Tables are Maps; a record is never changed in place,
// so `===` tells whether it changed. `versions[name]` is a new number after every change of that table or list, and after
// every snapshot, which may bring one.

export const TABLES = ["sessions", "locks", "waits", "tasks", "questions", "alerts", "agents", "held"];
export const LISTS = ["messages", "merges", "commits", "refusals", "ended", "decisions", "closed_alerts",
  "deadlocks", "restored", "reactions", "settings"];
let version = 0;

export function emptyState() {
  const state = {offset: 0, at: 0, tables: {}, recent: {}, versions: {}};
  for (const name of TABLES) state.tables[name] = new Map();
  for (const name of LISTS) state.recent[name] = [];
  for (const name of [...TABLES, ...LISTS]) state.versions[name] = 0;
  return state;
}

// Returns the state of a snapshot as `GET /v1/page` delivers it.
export function fromSnapshot(snapshot) {
  const state = emptyState();
  state.offset = snapshot.offset;
  state.at = snapshot.at ?? 0;
  for (const [name, records] of Object.entries(snapshot.tables ?? {})) {
    state.tables[name] = new Map(Object.entries(records));
    state.versions[name] = ++version;
  }
  for (const [name, items] of Object.entries(snapshot.recent ?? {})) {
    state.recent[name] = [...items];
    state.versions[name] = ++version;
  }
  return state;
}

// Returns a state that later entries do not change.
export function copyState(state) {
  const tables = {}, recent = {};
  for (const name in state.tables) tables[name] = new Map(state.tables[name]);
  for (const name in state.recent) recent[name] = [...state.recent[name]];
  return {...state, tables, recent, versions: {...state.versions}};
}

// Returns a state as JSON has it.
export function toSnapshot(state) {
  const tables = Object.fromEntries(Object.entries(state.tables).map(
    ([name, records]) => [name, Object.fromEntries(records)]));
  return {offset: state.offset, at: state.at, tables, recent: state.recent};
}

// Changes a state as the events of the next entry say.
export function applyEntry(state, rules, entry) {
  state.offset = entry.offset;
  state.at = entry.at;
  for (const event of entry.events ?? []) {
    for (const operation of rulesOf(rules, event.event)) OPERATIONS[operation.op]?.(state, operation, event, rules);
    const session = partOf(ownOf(event, "session")), known = state.tables.sessions.get(session);
    if (known === undefined || isSilent(rules, event) || (known.seen_ms === entry.at && !known.hung_s)) continue;
    const {hung_s: _, ...alive} = known;
    write(state, "sessions", session, {...alive, seen_ms: entry.at});
  }
  return state;
}

export const ownOf = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);
const rulesOf = (rules, name) => (typeof name === "string" && name[0] !== "@" && ownOf(rules, name)) || [];

// Whether others or the time may have caused an event, so that it does not say that its session was seen.
function isSilent(rules, event) {
  const field = typeof event.event === "string" ? ownOf(rules["@silent"] ?? {}, event.event) : undefined;
  return field === "" || (field !== undefined && !isEmpty(ownOf(event, field)));
}

export const isEmpty = (value) => !value || (typeof value === "object" && Object.keys(value).length === 0);

function write(state, table, key, record) {
  state.tables[table].set(key, record);
  state.versions[table] = ++version;
}

function keyOf(table, names, event, rules) {
  return names.map((name) => partOf(ownOf(event, name))).join(rules["@join"]?.[table] ?? "\n");
}

// A part of a key: a text, or texts; whoever has the store may have written something else.
function partOf(value) {
  const text = (each) => (typeof each === "string" ? each : "");
  return Array.isArray(value) ? value.map(text).join("\n") : text(value);
}

// Larger numbers are not added: the sum would be rounded.
const numberOf = (value) =>
  ((typeof value === "boolean" || typeof value === "number") && Math.abs(value) <= 2 ** 52 ? Number(value) : 0);

function valueOf(state, event, source) {
  if (source[0] === "=") return source.slice(1);
  if (source[0] === "!") return isEmpty(ownOf(event, source.slice(1)));
  if (source[0] !== "@") return ownOf(event, source);
  const [base, more] = source.split("+");
  return (base === "@offset" ? state.offset : state.at) + (more ? numberOf(ownOf(event, more)) : 0);
}

function changed(state, operation, event, record) {
  const made = {...record};
  for (const [name, source] of Object.entries(operation.fields ?? {})) {
    const value = valueOf(state, event, source);
    if (isEmpty(value)) delete made[name];
    else made[name] = value;
  }
  return made;
}

function change(state, operation, event, rules, begin, make = changed) {
  const key = keyOf(operation.table, operation.key, event, rules);
  const record = state.tables[operation.table].get(key) ?? begin;
  if (record !== undefined) write(state, operation.table, key, make(state, operation, event, record));
}

function added(state, operation, event, record) {
  const made = {...record};
  for (const [name, source] of Object.entries(operation.fields)) {
    const total = numberOf(made[name]) + numberOf(ownOf(event, source));
    if (total) made[name] = total;
  }
  return made;
}

const OPERATIONS = {
  put(state, operation, event, rules) {
    write(state, operation.table, keyOf(operation.table, operation.key, event, rules), changed(state, operation, event, {}));
  },
  save: (state, operation, event, rules) => change(state, operation, event, rules, {}),
  set: (state, operation, event, rules) => change(state, operation, event, rules, undefined),
  note(state, operation, event, rules) {
    const given = Object.entries(operation.fields).filter(([, source]) => !isEmpty(valueOf(state, event, source)));
    change(state, {...operation, fields: Object.fromEntries(given)}, event, rules, undefined);
  },
  add: (state, operation, event, rules) => change(state, operation, event, rules, undefined, added),
  drop(state, operation, event, rules) {
    if (state.tables[operation.table].delete(keyOf(operation.table, operation.key, event, rules))) {
      state.versions[operation.table] = ++version;
    }
  },
  rekey(state, operation, event, rules) {
    const from = keyOf(operation.table, operation.key, event, rules);
    const record = state.tables[operation.table].get(from);
    if (record === undefined) return;
    state.tables[operation.table].delete(from);
    write(state, operation.table, keyOf(operation.table, operation.to, event, rules), changed(state, operation, event, record));
  },
  push(state, operation, event) {
    const list = state.recent[operation.list];
    list.push({...event, offset: state.offset, at: state.at});
    if (list.length > operation.most) list.splice(0, list.length - operation.most);
    state.versions[operation.list] = ++version;
  },
};
