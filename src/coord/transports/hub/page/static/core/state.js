// The state at an offset, and what the next entry makes of it. The rules are data that come with every
// snapshot; `core/page/state.py` interprets the same ones. Tables are Maps; a record is never changed in place,
// so `===` tells whether it changed. `versions[name]` grows with every change of that table or ring.

export const TABLES = ["sessions", "locks", "waits", "tasks", "questions", "alerts", "agents"];
export const RINGS = ["messages", "merges", "commits", "refusals", "ended", "decisions", "closed_alerts",
  "deadlocks", "restored", "reactions"];

export function emptyState() {
  const state = {offset: 0, at: 0, tables: {}, rings: {}, versions: {}};
  for (const name of TABLES) state.tables[name] = new Map();
  for (const name of RINGS) state.rings[name] = [];
  for (const name of [...TABLES, ...RINGS]) state.versions[name] = 0;
  return state;
}

// Returns the state of a snapshot as `GET /v1/page` delivers it.
export function fromSnapshot(snapshot) {
  const state = emptyState();
  state.offset = snapshot.offset;
  state.at = snapshot.at ?? 0;
  for (const [name, records] of Object.entries(snapshot.tables ?? {})) {
    state.tables[name] = new Map(Object.entries(records));
    state.versions[name] = 1;
  }
  for (const [name, items] of Object.entries(snapshot.rings ?? {})) {
    state.rings[name] = [...items];
    state.versions[name] = 1;
  }
  return state;
}

// Returns a state that later entries do not change.
export function copyState(state) {
  const tables = {}, rings = {};
  for (const name in state.tables) tables[name] = new Map(state.tables[name]);
  for (const name in state.rings) rings[name] = [...state.rings[name]];
  return {...state, tables, rings, versions: {...state.versions}};
}

// Returns a state as JSON has it.
export function toSnapshot(state) {
  const tables = Object.fromEntries(Object.entries(state.tables).map(
    ([name, records]) => [name, Object.fromEntries(records)]));
  return {offset: state.offset, at: state.at, tables, rings: state.rings};
}

// Changes a state as the events of the next entry say.
export function applyEntry(state, rules, entry) {
  state.offset = entry.offset;
  state.at = entry.at;
  for (const event of entry.events ?? []) {
    for (const operation of ownOf(rules, event.event) ?? []) OPERATIONS[operation.op]?.(state, operation, event, rules);
    const known = state.tables.sessions.get(event.session);
    if (known !== undefined && known.seen_ms !== entry.at) {
      write(state, "sessions", event.session, {...known, seen_ms: entry.at});
    }
  }
  return state;
}

const ownOf = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);
const isEmpty = (value) =>
  !value || (typeof value === "object" && (Array.isArray(value) ? value : Object.keys(value)).length === 0);

function write(state, table, key, record) {
  state.tables[table].set(key, record);
  state.versions[table] += 1;
}

function keyOf(table, names, event, rules) {
  const parts = names.map((name) => ownOf(event, name) ?? "").map(
    (value) => (Array.isArray(value) ? value.join("\n") : String(value)));
  return parts.join(rules["@join"]?.[table] ?? "\n");
}

function valueOf(state, event, source) {
  if (source[0] === "=") return source.slice(1);
  if (source[0] === "!") return isEmpty(ownOf(event, source.slice(1)));
  if (source[0] !== "@") return ownOf(event, source);
  const [base, more] = source.split("+");
  const number = more ? ownOf(event, more) : 0;
  return (base === "@offset" ? state.offset : state.at) + (Number.isInteger(number) ? number : 0);
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
    const more = ownOf(event, source);
    if (more) made[name] = (made[name] ?? 0) + more;
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
      state.versions[operation.table] += 1;
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
    const ring = state.rings[operation.ring];
    ring.push({...event, offset: state.offset, at: state.at});
    if (ring.length > operation.most) ring.splice(0, ring.length - operation.most);
    state.versions[operation.ring] += 1;
  },
};
