import assert from "node:assert/strict";
import {test} from "node:test";
import {applyEntry, copyState, emptyState, fromSnapshot, toSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

const LOCK = ["session", "resource"];
const rules = {
  "@join": {tasks: "/"}, "@silent": {hung: "", got: "waited"},
  hung: [{op: "set", table: "sessions", key: ["session"], fields: {hung_s: "silent"}}],
  began: [{op: "put", table: "sessions", key: ["session"], fields: {session: "session", agent: "agent", started_ms: "@at"}}],
  locked: [{op: "put", table: "locks", key: LOCK, fields: {session: "session", mode: "mode", fence: "@offset", until: "@at+ms", kind: "=file", shared: "!mode"}}],
  renewed: [{op: "set", table: "locks", key: LOCK, fields: {mode: "mode"}}],
  moved: [{op: "rekey", table: "locks", key: LOCK, to: ["next", "resource"], fields: {session: "next"}}],
  unlocked: [{op: "drop", table: "locks", key: LOCK}],
  waited: [{op: "put", table: "waits", key: ["session", "resources"], fields: {resources: "resources"}}],
  used: [{op: "add", table: "sessions", key: ["session"], fields: {cost: "cost"}}, {op: "note", table: "sessions", key: ["session"], fields: {file: "file"}}],
  planned: [{op: "save", table: "tasks", key: ["project", "task"], fields: {title: "title", files: "files"}}],
  said: [{op: "push", list: "messages", most: 2}],
};
const run = (...lists) => lists.reduce((state, events, at) => applyEntry(state, rules, {offset: at + 1, at: 1000 + at, events}), emptyState());
const only = (table) => [...table.values()][0];

test("put replaces a record, with offset, time, sum and constants", () => {
  const state = run([{event: "locked", session: "s", resource: "file:a", mode: "write", ms: 500}], [{event: "locked", session: "s", resource: "file:a", ms: 5}]);
  assert.deepEqual([...state.tables.locks], [["s\nfile:a", {session: "s", fence: 2, until: 1006, kind: "file", shared: true}]]);
});

test("set changes only a record that exists, and an empty value removes the field", () => {
  const state = run([{event: "renewed", session: "s", resource: "r", mode: "x"}]);
  assert.equal(state.tables.locks.size, 0);
  for (const mode of ["", 0, false, [], {}, null, undefined]) {
    const found = run([{event: "locked", session: "s", resource: "r", mode: "write"}], [{event: "renewed", session: "s", resource: "r", mode}]);
    assert.ok(!("mode" in only(found.tables.locks)));
  }
});

test("rekey moves a record, drop removes one", () => {
  const begun = [{event: "locked", session: "s", resource: "r", mode: "write"}];
  const moved = run(begun, [{event: "moved", session: "s", resource: "r", next: "t"}]);
  assert.deepEqual([...moved.tables.locks.keys()], ["t\nr"]);
  assert.equal(only(moved.tables.locks).session, "t");
  assert.equal(run(begun, [{event: "unlocked", session: "s", resource: "r"}]).tables.locks.size, 0);
  assert.equal(run([{event: "moved", session: "s", resource: "r", next: "t"}]).tables.locks.size, 0);
});

test("lists in keys are joined, and tables have their own joints", () => {
  const state = run([{event: "waited", session: "s", resources: ["a", "b"]}, {event: "planned", project: "p", task: "t", title: "x"}]);
  assert.ok(state.tables.waits.has("s\na\nb"));
  assert.ok(state.tables.tasks.has("p/t"));
});

test("add, note and save", () => {
  const state = run([{event: "began", session: "s"}], [{event: "used", session: "s", cost: 2, file: "a"}], [{event: "used", session: "s", cost: 3}, {event: "used", session: "nobody", cost: 1}],
    [{event: "planned", project: "p", task: "t", title: "x", files: ["a"]}], [{event: "planned", project: "p", task: "t", title: "y"}]);
  assert.deepEqual(only(state.tables.sessions), {session: "s", started_ms: 1000, seen_ms: 1002, cost: 5, file: "a"});
  assert.deepEqual(only(state.tables.tasks), {title: "y"});
});

test("what others do to a session is no sign of its life, and a sign ends a hang", () => {
  const began = [{event: "began", session: "s"}], hung = [{event: "hung", session: "s", silent: 9}];
  assert.deepEqual(only(run(began, hung, [{event: "got", session: "s", waited: 5}]).tables.sessions), {session: "s", started_ms: 1000, seen_ms: 1000, hung_s: 9});
  for (const event of ["got", "used", ["hung"]]) assert.deepEqual(only(run(began, hung, [{event, session: "s"}]).tables.sessions), {session: "s", started_ms: 1000, seen_ms: 1002});
  const together = [...began, ...hung, {event: "used", session: "s"}];
  assert.deepEqual(only(run(together).tables.sessions), {session: "s", started_ms: 1000, seen_ms: 1000});
});

test("a change of the settings is kept from the first entry on", () => {
  const state = applyEntry(emptyState(), {told: [{op: "push", list: "settings", most: 5}]}, {offset: 1, at: 5, events: [{event: "told"}]});
  assert.equal(state.recent.settings.length, 1);
});

test("every event of a known session is a sign of life", () => {
  const state = run([{event: "began", session: "s"}], [{event: "unheard of", session: "s"}], [{event: "unheard of", session: "t"}]);
  assert.deepEqual([...state.tables.sessions.keys()], ["s"]);
  assert.equal(only(state.tables.sessions).seen_ms, 1001);
});

test("a list keeps the newest events, with offset and time", () => {
  const state = run([{event: "said", text: "1"}], [{event: "said", text: "2"}], [{event: "said", text: "3"}]);
  assert.deepEqual(state.recent.messages, [{event: "said", text: "2", offset: 2, at: 1001}, {event: "said", text: "3", offset: 3, at: 1002}]);
});

test("names of Object.prototype are names like others", () => {
  const state = run([{event: "began", session: "__proto__", agent: "constructor"}], [{event: "constructor"}, {event: "__proto__"}, {event: "hasOwnProperty", session: "toString"}]);
  assert.deepEqual([...state.tables.sessions.keys()], ["__proto__"]);
  assert.equal(only(state.tables.sessions).agent, "constructor");
  assert.equal({}.agent, undefined);
});

test("records are replaced, never changed, and versions tell which table changed", () => {
  const state = run([{event: "began", session: "s"}]);
  const [before, copy, versions] = [only(state.tables.sessions), copyState(state), {...state.versions}];
  applyEntry(state, rules, {offset: 2, at: 5, events: [{event: "used", session: "s", cost: 1}]});
  assert.equal(before.cost, undefined);
  assert.equal(only(copy.tables.sessions), before);
  assert.ok(state.versions.sessions > versions.sessions);
  assert.equal(state.versions.locks, versions.locks);
});

test("a snapshot survives the way there and back", () => {
  const state = run([{event: "began", session: "s"}], [{event: "said", text: "hi"}]);
  const again = fromSnapshot(JSON.parse(JSON.stringify(toSnapshot(state))));
  assert.deepEqual(toSnapshot(again), toSnapshot(state));
});

test("an event of several sessions is a sign of life of their key, and one without a session of nobody else", () => {
  const state = run([{event: "began", session: ["a", "b"]}, {event: "began"}], [{event: "x", session: ["a", "b"]}, {event: "x"}]);
  assert.deepEqual([...state.tables.sessions].map(([key, record]) => [key, record.seen_ms]), [["a\nb", 1001], ["", 1001]]);
});

test("names of events are texts, and how keys are joined is no rule", () => {
  const state = run([{event: ["began"], session: "s"}, {event: "@join"}, {event: null}, {event: {}}]);
  assert.equal(state.tables.sessions.size, 0);
});

test("a number that a sum would round is not added", () => {
  const state = run([{event: "began", session: "s"}, {event: "used", session: "s", cost: 2 ** 52}, {event: "used", session: "s", cost: 2 ** 52 + 1}, {event: "used", session: "s", cost: -1}]);
  assert.equal(only(state.tables.sessions).cost, 2 ** 52 - 1);
  assert.equal(only(run([{event: "locked", session: "s", resource: "r", ms: 1e300}]).tables.locks).until, 1000);
});

test("no two versions of a list are the same, also after another snapshot, and every list has one", () => {
  const snapshot = {offset: 1, at: 1, tables: {locks: {}}, recent: {settings: []}};
  const before = fromSnapshot(snapshot), after = fromSnapshot(snapshot);
  assert.ok(before.versions.settings !== after.versions.settings && before.versions.locks !== after.versions.locks);
  const state = applyEntry(emptyState(), {"settings.changed": [{op: "push", list: "settings", most: 5}]}, {offset: 1, at: 1, events: [{event: "settings.changed"}]});
  assert.deepEqual([state.recent.settings.length, state.versions.settings > 0], [1, true]);
});
