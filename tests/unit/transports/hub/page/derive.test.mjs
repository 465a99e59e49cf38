import assert from "node:assert/strict";
import {test} from "node:test";
import * as derive from "../../../../../src/coord/transports/hub/page/static/core/derive.js";
import {emptyState, fromSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

const NOW = 1_000_000;
const byKey = (records, key) => Object.fromEntries(records.map((record) => [key(record), record]));
function stateOf({sessions = [], locks = [], waits = [], tasks = [], questions = [], alerts = [], recent = {}}) {
  return fromSnapshot({offset: 1, at: NOW, recent, tables: {
    sessions: byKey(sessions, (each) => each.session), locks: byKey(locks, (each) => `${each.session}\n${each.resource}`),
    waits: byKey(waits, (each) => [each.session, ...each.resources].join("\n")), tasks: byKey(tasks, (each) => `${each.project}/${each.task}`),
    questions: byKey(questions, (each) => each.id), alerts: byKey(alerts, (each) => each.id), agents: {}}});
}
const session = (name, more = {}) => ({session: `s-${name}`, agent: name, ...more});
const lock = (name, path, more = {}) => ({session: `s-${name}`, agent: name, resource: `file:${path}`, fence: 1, ...more});
const wait = (name, paths, sinceMs, more = {}) => ({session: `s-${name}`, agent: name, resources: paths.map((path) => `file:${path}`), since_ms: sinceMs, ...more});

test("a task is ready, waiting, blocked or retrying by what it depends on", () => {
  const word = (task, others = []) => {
    const state = stateOf({tasks: [{project: "p", task: "t", ...task}, ...others.map((each) => ({project: "p", ...each}))]});
    return derive.taskState(state.tables.tasks.get("p/t"), state, NOW);
  };
  assert.equal(word({}).word, "ready");
  assert.deepEqual(word({depends_on: ["a"]}, [{task: "a"}]), {word: "waiting", by: ["a"]});
  assert.deepEqual(word({depends_on: ["gone"]}), {word: "waiting", by: ["gone"]});
  for (const state of ["done", "skipped"]) assert.equal(word({depends_on: ["a"]}, [{task: "a", state}]).word, "ready");
  for (const state of ["failed", "errored"]) assert.deepEqual(word({depends_on: ["b", "a"]}, [{task: "a", state}]), {word: "blocked", by: ["a"]});
  assert.equal(word({retry_ms: NOW + 1}).word, "retrying");
  assert.equal(word({retry_ms: NOW}).word, "ready");
  assert.equal(word({state: "in_progress", expires_ms: NOW - 1}).word, "expired");
  assert.equal(word({state: "in_progress", expires_ms: NOW}).word, "in progress");
  assert.equal(word({state: "done"}).word, "done");
});

test("a task is blocked through others, and one that was split waits for its parts alone", () => {
  const word = (task, ...others) => {
    const state = stateOf({tasks: [task, ...others].map((each) => ({project: "p", ...each}))});
    return derive.taskState(state.tables.tasks.get(`p/${task.task}`), state, NOW);
  };
  const chain = [{task: "b", depends_on: ["c"]}, {task: "c", depends_on: ["d"]}, {task: "d", state: "errored"}];
  assert.deepEqual(word({task: "a", depends_on: ["b"]}, ...chain), {word: "blocked", by: ["b"]});
  assert.equal(word({task: "a", depends_on: ["b"]}, {...chain[0], state: "in_progress"}, ...chain.slice(1)).word, "waiting");
  const split = {task: "t", parts: 2, depends_on: ["d"]};
  assert.deepEqual(word(split, {task: "d", state: "failed"}, {task: "t::1", state: "done"}, {task: "t::2"}), {word: "waiting", by: ["t::2"]});
  assert.deepEqual(word(split, {task: "t::1"}, {task: "t::2", state: "failed"}), {word: "blocked", by: ["t::2"]});
  assert.equal(word({task: "a", depends_on: ["b"]}, {task: "b", depends_on: ["a", "d"]}, {task: "d", state: "failed"}).word, "blocked", "a circle has an end");
  for (const parts of [1e12, "many", [2], -1]) assert.ok(word({task: "t", parts}).by.length <= 10_000);
});

test("a folder covers what lies below it, and nothing else", () => {
  assert.ok(derive.overlaps("file:src", "file:src/a.py"));
  assert.ok(derive.overlaps("file:src/a.py", "file:src"));
  assert.ok(derive.overlaps("file:.", "file:a"));
  assert.ok(derive.overlaps("file:a", "file:."));
  assert.ok(derive.overlaps("file:src/*.py", "file:SRC/a.py"));
  assert.ok(!derive.overlaps("file:src/*.py", "file:src/a/b.py"));
  assert.ok(!derive.overlaps("file:src", "file:srca/b"));
  assert.ok(!derive.overlaps("name:src", "file:src"));
  assert.ok(derive.overlaps("name:deploy", "name:deploy"));
});

test("waits are served in order of time, and priority counts as a minute each", () => {
  const state = stateOf({waits: [wait("a", ["x"], 100_000), wait("b", ["x"], 50_000), wait("c", ["x"], 155_000, {priority: 1})]});
  assert.deepEqual(derive.queue(state).map((each) => each.agent), ["b", "c", "a"]);
});

test("a wait is told in words, with its place", () => {
  const state = stateOf({sessions: [session("ada"), session("bob"), session("eve")], locks: [lock("ada", "src/auth.ts")],
    waits: [wait("bob", ["src/auth.ts"], NOW - 120_000, {holder: "s-ada"}), wait("eve", ["src/auth.ts"], NOW - 100_000, {holder: "s-ada"}), wait("dan", ["docs"], NOW)]});
  const [bob, eve, dan] = derive.queue(state);
  assert.equal(derive.waitWords(eve, state, NOW), "waiting for src/auth.ts behind ada, 2nd, 1m40s");
  assert.equal(derive.waitWords(bob, state, NOW), "waiting for src/auth.ts behind ada, 2m");
  assert.equal(derive.waitWords(dan, state, NOW), "waiting for docs, 0s");
});

test("the holders of a wait: on the path, on folders above, and below it those of the known holder", () => {
  const state = stateOf({locks: [lock("ada", "src"), lock("bob", "src/a.py"), lock("eve", "docs/x"), lock("dan", "other")],
    waits: [wait("me", ["src/a.py"], 1), wait("you", ["docs"], 2, {holder: "s-eve"})]});
  const [me, you] = derive.queue(state);
  assert.deepEqual(derive.holdersOf(me, state).map((each) => each.agent).sort(), ["ada", "bob"]);
  assert.deepEqual(derive.holdersOf(you, state).map((each) => each.agent), ["eve"]);
});

test("a name has no folders, the root is above all files, and letters count alike in both cases", () => {
  const named = (name) => ({...wait("me", [], 1), resources: [name]});
  const state = stateOf({locks: [lock("ada", "."), {...lock("bob", ""), resource: "name:deploy"}, {...lock("eve", ""), resource: "name:deploy/prod"}, lock("dan", "SRC/A.py")]});
  const holders = (name) => derive.holdersOf(named(name), state).map((each) => each.agent).sort();
  assert.deepEqual([holders("name:deploy/prod"), holders("name:Deploy"), holders("name:x")], [["eve"], ["bob"], []]);
  assert.deepEqual([holders("file:docs/x"), holders("file:src/a.py"), holders("file:.")], [["ada"], ["ada", "dan"], ["ada"]]);
});

test("the place of a wait is that among those that it meets", () => {
  const names = ["src", "src/a.py", "SRC/A.py", "src/b", "docs/x", ".", "src/*.py", "*/x", "name:x", "name:X", "app/\\[id\\]"];
  const waits = names.flatMap((one, at) => names.map((other, place) => ({session: `s-${(at * 7 + place) % 5}`, agent: `a${at}-${place}`, since_ms: 1000 * ((at * 31 + place * 17) % 113) + at,
    resources: [one, other].map((each) => (each.startsWith("name:") ? each : `file:${each}`))})));
  const state = stateOf({waits}), order = derive.queue(state);
  const meet = (one, other) => one.resources.some((each) => other.resources.some((name) => derive.overlaps(each, name)));
  order.forEach((each, at) => {
    const ahead = order.slice(0, at).filter((other) => other.session !== each.session && meet(each, other)).length;
    const place = derive.waitWords(each, state, NOW).match(/, (\d+)(st|nd|rd|th), /)?.[1] ?? 1;
    assert.equal(Number(place), ahead + 1, each.agent);
  });
});

test("the graph of waits finds who waits in a circle", () => {
  const state = stateOf({locks: [lock("ada", "a"), lock("bob", "b"), lock("eve", "e")],
    waits: [wait("ada", ["b"], 1), wait("bob", ["a"], 2), wait("dan", ["a"], 3), wait("ada", ["e"], 4)]});
  const graph = derive.waitGraph(state);
  assert.deepEqual([...graph.inCycle].sort(), ["s-ada", "s-bob"]);
  assert.equal(graph.edges.length, 4);
  const {places, columns} = derive.layoutGraph(graph);
  assert.equal(places.size, 4);
  assert.ok(columns >= 3);
  const spots = [...places.values()].map(({x, y}) => `${x},${y}`);
  assert.equal(new Set(spots).size, spots.length, "no two on one place");
  assert.ok(places.get("s-dan").x < places.get("s-eve").x, "who waits is left of whom it waits for");
});

test("a long chain and a large circle are laid out quickly", () => {
  const nodes = Array.from({length: 300}, (_, at) => `n${at}`);
  const edges = nodes.map((from, at) => ({from, to: nodes[(at + 1) % 300], resources: ["x"]}));
  assert.equal(derive.layoutGraph({nodes, edges}).places.size, 300);
  assert.equal(derive.cycleNodes(nodes, edges).size, 300);
  assert.equal(derive.cycleNodes(nodes, edges.slice(1)).size, 0);
});

test("paths become a tree whose folders can be closed", () => {
  const items = derive.byResource(stateOf({locks: [lock("a", "src/deep/one/x.py"), lock("a", "src/deep/one/y.py"), lock("a", "README.md"), {...lock("a", ""), resource: "name:deploy"}],
    waits: [wait("b", ["src/deep/one/x.py"], 1)]}));
  const rows = derive.treeRows(items);
  assert.deepEqual(rows.map((row) => [row.kind, row.name, row.depth]), [["item", "name:deploy", 0], ["folder", "src/deep/one", 0], ["item", "x.py", 1], ["item", "y.py", 1], ["item", "README.md", 0]]);
  assert.deepEqual([rows[1].lockCount, rows[1].waitCount], [2, 1]);
  assert.equal(derive.treeRows(items, new Set(["src/deep/one"])).length, 3);
  assert.equal(new Set(rows.map((row) => row.key)).size, rows.length);
});

test("a session says what it does, the most urgent first", () => {
  const base = {sessions: [session("ada", {state: "working", file: "file:src/a.py", seen_ms: NOW})]};
  const of = (more) => {
    const state = stateOf({...base, ...more});
    return derive.sessionState(state.tables.sessions.get("s-ada"), state, NOW);
  };
  assert.deepEqual(of({}), {tone: "work", word: "works", words: "on src/a.py"});
  assert.equal(of({waits: [wait("ada", ["x"], NOW)]}).tone, "wait");
  assert.equal(of({tasks: [{project: "p", task: "t", state: "in_progress", session: "s-ada", expires_ms: NOW - 1}]}).word, "lease expired");
  assert.deepEqual(of({sessions: [session("ada", {hung_s: 9, seen_ms: NOW - 300_000})]}), {tone: "bad", word: "hangs", words: "silent for 5m"});
  assert.equal(of({questions: [{id: "q", session: "s-ada", kind: "permission", text: "rm"}], waits: [wait("ada", ["x"], NOW)]}).word, "needs permission");
  assert.deepEqual(of({sessions: [session("ada", {state: "idle", seen_ms: NOW - 3_600_000})]}), {tone: "idle", word: "idle", words: "for 1h"});
});

test("the queue of an agent: claims that it does not work on, and ready tasks that are kept for it", () => {
  const task = (name, more) => ({project: "p", task: name, ...more}), claimed = {state: "in_progress", session: "s-ada"};
  const kept = {assignee: "ada", assigned_until_ms: NOW + 1};
  const depth = (tasks, waits = []) => {
    const ada = session("ada", {project: "p"});
    return derive.queueDepth(ada, stateOf({sessions: [ada], tasks, waits}), NOW);
  };
  assert.equal(depth([]), 0);
  assert.equal(depth([task("one", claimed)]), 0);
  assert.equal(depth([task("one", claimed), task("two", claimed)]), 1);
  assert.equal(depth([task("one", claimed)], [wait("ada", ["a"], 1)]), 1);
  assert.equal(depth([task("kept", kept), task("later", {...kept, depends_on: ["kept"]}), task("old", {...kept, assigned_until_ms: 1})]), 1);
});

test("the agents that need somebody come first, and people are no agents", () => {
  const state = stateOf({sessions: [session("zoe", {state: "working"}), session("amy", {state: "idle"}), session("bob", {hung_s: 1}), session("me", {person: true})]});
  assert.deepEqual(derive.sessionList(state, NOW).map((each) => each.agent), ["bob", "zoe", "amy"]);
});

test("what needs a person: permissions, questions, alerts, tasks, silent sessions", () => {
  const state = stateOf({sessions: [session("ada", {hung_s: 1})], questions: [{id: "1", kind: "ask", asked_ms: 5}, {id: "2", kind: "permission"}],
    alerts: [{id: "9"}], tasks: [{project: "p", task: "f", state: "failed"}, {project: "p", task: "e", state: "errored"}, {project: "p", task: "d", state: "done"}]});
  assert.deepEqual(derive.needsYou(state).map((each) => each.kind), ["permission", "question", "alert", "task", "task", "session"]);
});

test("what happened since a time", () => {
  const state = stateOf({tasks: [{project: "p", task: "a", state: "done", ended_ms: 5}, {project: "p", task: "b", state: "done", ended_ms: 50}, {project: "p", task: "c", state: "failed", ended_ms: 50}],
    recent: {merges: [{event: "git.merged", at: 5}, {event: "git.merged", at: 60}, {event: "git.merge_refused", at: 60}]}});
  assert.deepEqual(derive.since(state, 10).map((each) => [each.kind, each.items.length]), [["done", 1], ["failed", 1], ["merged", 1], ["merge refused", 1]]);
  assert.deepEqual(derive.since(state, 100), []);
});

test("derived data is computed again only if a table that it reads has changed", () => {
  let runs = 0;
  const size = derive.derived(["locks"], (state, more) => { runs += 1; return state.tables.locks.size + more; });
  const state = emptyState();
  assert.equal(size(state, 1), 1);
  assert.equal(size(state, 1), 1);
  state.versions.tasks += 1;
  size(state, 1);
  assert.equal(runs, 1);
  state.versions.locks += 1;
  size(state, 1);
  size(state, 2);
  size(emptyState(), 2);
  assert.equal(runs, 4);
});

test("a list draws only the rows that can be seen", () => {
  assert.deepEqual(derive.visibleRows(10_000, 40, 0, 400), [0, 18]);
  assert.deepEqual(derive.visibleRows(10_000, 40, 4000, 400), [92, 118]);
  assert.deepEqual(derive.visibleRows(10_000, 40, 399_600, 400), [9982, 10_000]);
  assert.deepEqual(derive.visibleRows(3, 40, 9999, 400), [3, 3]);
  assert.deepEqual(derive.visibleRows(0, 40, 0, 400), [0, 0]);
});

test("a filter wants all its words, and a picker ranks by the beginning", () => {
  assert.ok(derive.matches("ADA auth", "ada works on src/auth.ts"));
  assert.ok(!derive.matches("ada db", "ada works on src/auth.ts"));
  const labels = derive.fitting([{label: "the login"}, {label: "x", detail: "login"}, {label: "login.ts"}], "login").map((each) => each.label);
  assert.deepEqual(labels, ["login.ts", "the login", "x"]);
  assert.equal(derive.fitting(Array.from({length: 900}, (_, at) => ({label: `t${at}`})), "t").length, 50);
});

test("ten thousand tasks and five thousand locks are derived within a moment", () => {
  const tasks = Array.from({length: 10_000}, (_, at) => ({project: "p", task: `t${at}`, state: at % 50 ? undefined : "in_progress", session: `s-${at}`}));
  const locks = Array.from({length: 5000}, (_, at) => lock(`a${at % 200}`, `src/d${at % 70}/f${at}.py`));
  const waits = Array.from({length: 200}, (_, at) => wait(`a${at}`, [`src/d${(at * 7) % 70}/f${at * 7}.py`], at));
  const sessions = Array.from({length: 200}, (_, at) => session(`a${at}`));
  const state = stateOf({tasks, locks, waits, sessions});
  assert.equal(derive.sessionList(state, NOW).length, 200);
  assert.ok(derive.treeRows(derive.byResource(state)).length > 5000);
  for (const each of derive.queue(state)) assert.ok(derive.waitWords(each, state, NOW));
  assert.ok(derive.waitGraph(state).edges.length > 100);
});

test("the record of alerts at an earlier time is what the log says by then", () => {
  const closed = (id, outcome, at, rule = "stuck") => ({id, rule, subject: id, outcome, note: "", by: "ada", at});
  const state = stateOf({alerts: [{id: "9", rule: "loud"}], recent: {closed_alerts: [closed("1", "true", 5), closed("2", "", 6), closed("1", "false", 7), closed("3", "true", 8)]}});
  const {alerts, rules} = derive.alertRecord(state, [{id: "1", text: "slow", raised_ms: 2, outcome: "true"}, {id: "7", text: "later", closed_ms: 99}]);
  assert.deepEqual(alerts.map((each) => [each.id, each.outcome, each.closed_ms, each.text]), [["3", "true", 8, undefined], ["1", "false", 7, "slow"], ["2", "", 6, undefined]]);
  assert.deepEqual(rules.map(({rule, right, wrong, precision, open}) => [rule, right, wrong, precision, open]), [["stuck", 1, 1, 0.5, 0], ["loud", 0, 0, null, 1]]);
});
