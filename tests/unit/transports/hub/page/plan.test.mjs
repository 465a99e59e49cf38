import assert from "node:assert/strict";
import {test} from "node:test";
import {emptyState} from "../../../../../src/coord/transports/hub/page/static/core/state.js";
import {claimBars, columnOf, commitsOf, criticalPath, cutLayout, dependents, fits, fitted, geometry, knownAt, neighbours, overview, placeOf, projectsOf, SIZES, structureWatch, visibleTasks} from "../../../../../src/coord/transports/hub/page/static/core/plan.js";

function stateOf(...tasks) {
  const state = emptyState();
  for (const task of tasks) state.tables.tasks.set(`p/${task.task}`, {project: "p", ...task});
  return state;
}
const set = (state, task) => {
  state.tables.tasks.set(`p/${task.task}`, {project: "p", ...task});
  state.versions.tasks += 1;
};
const layout = {columns: 3, lanes: [{track: "A", top: 0, rows: 2, tasks: 3}, {track: "", top: 2, rows: 1, tasks: 1}],
  task: ["a", "b", "c", "x"], lane: [0, 0, 0, 1], column: [0, 1, 2, 0], row: [0, 0, 1, 2], edges: [[0, 1], [1, 2]]};

test("a board has a column for every state, and tracks add up to all", () => {
  const state = stateOf({task: "a", state: "done", track: "A"}, {task: "b", depends_on: ["a"], track: "A"}, {task: "c", depends_on: ["b"]},
    {task: "d", state: "in_progress", expires_ms: 900}, {task: "e", state: "failed"}, {task: "f", depends_on: ["e"]}, {task: "g", retry_ms: 9000}, {task: "h", state: "in_progress", expires_ms: 5000}, {task: "i", state: "skipped"});
  const found = overview(state, "p", 1000);
  assert.deepEqual(Object.fromEntries(found.words), {a: "done", b: "ready", c: "waiting", d: "expired", e: "failed", f: "blocked", g: "retrying", h: "in progress", i: "skipped"});
  assert.deepEqual(found.all, {total: 9, waiting: 2, ready: 2, working: 1, stuck: 2, done: 2});
  assert.equal([...found.tracks.values()].reduce((sum, each) => sum + each.total, 0), 9);
  assert.deepEqual(found.columns.stuck.map((task) => task.task), ["e", "f"]);
  assert.equal(columnOf("anything new"), "waiting");
  assert.equal(overview(state, "other", 1000).all.total, 0);
});

test("the critical path is the longest chain of what is left, by estimate", () => {
  const state = stateOf({task: "a", state: "done", estimate_s: 5000}, {task: "b", estimate_s: 60}, {task: "c", estimate_s: 30}, {task: "x", estimate_s: 80});
  const words = overview(state, "p", 0).words;
  assert.deepEqual(criticalPath(layout, state.tables.tasks, words, "p"), {tasks: ["b", "c"], seconds: 90, estimated: true});
  const plain = stateOf({task: "a"}, {task: "b"}, {task: "c"}, {task: "x"});
  assert.deepEqual(criticalPath(layout, plain.tables.tasks, overview(plain, "p", 0).words, "p"), {tasks: ["a", "b", "c"], seconds: 0, estimated: false});
  const done = stateOf(...layout.task.map((task) => ({task, state: "done"})));
  assert.deepEqual(criticalPath(layout, done.tables.tasks, overview(done, "p", 0).words, "p").tasks, []);
});

test("a layout is asked for again only when tasks, tracks or dependencies change", () => {
  const state = stateOf({task: "a"}, {task: "b", depends_on: ["a"]}), watch = structureWatch();
  const first = watch(state, "p");
  set(state, {task: "a", state: "in_progress", agent: "ada"});
  assert.equal(watch(state, "p"), first);
  set(state, {task: "b", depends_on: ["a"], state: "done"});
  assert.equal(watch(state, "p"), first);
  for (const changed of [{task: "c"}, {task: "c", track: "A"}, {task: "c", track: "A", depends_on: ["a"]}]) {
    const before = watch(state, "p");
    set(state, changed);
    assert.ok(watch(state, "p") > before);
  }
  const before = watch(state, "p");
  state.tables.tasks.delete("p/c");
  state.versions.tasks += 1;
  assert.ok(watch(state, "p") > before);
});

test("only tasks in sight are drawn, each in its place, none of a closed lane", () => {
  const size = SIZES.large, made = geometry(layout, size, new Set());
  const all = {top: 0, bottom: made.height, left: 0, right: made.width};
  assert.deepEqual(visibleTasks(layout, made, size, new Set(), all), [0, 1, 2, 3]);
  const places = [0, 1, 2, 3].map((at) => placeOf(layout, made, size, new Set(), at));
  assert.equal(new Set(places.map(({x, y}) => `${x},${y}`)).size, 4);
  assert.ok(places[0].x < places[1].x && places[2].y > places[1].y && places[3].y > places[2].y);
  assert.deepEqual(visibleTasks(layout, made, size, new Set(), {...all, bottom: size.head + 1}), [0, 1]);
  assert.deepEqual(visibleTasks(layout, made, size, new Set(), {...all, right: size.columnWidth - 1, bottom: size.head + 1}), [0]);
  const closed = new Set(["A"]), folded = geometry(layout, size, closed);
  assert.deepEqual(visibleTasks(layout, folded, size, closed, all), [3]);
  assert.ok(folded.height < made.height && placeOf(layout, folded, size, closed, 0).hidden);
  assert.deepEqual(neighbours(layout), {before: [[], [0], [1], []], after: [[1], [2], [], []]});
});

test("tasks are as wide as there is room for all columns, within limits", () => {
  assert.deepEqual(fitted(SIZES.large, 40, 1000), SIZES.large);
  assert.equal(fitted(SIZES.large, 1, 1000).nodeWidth, 300);
  const {nodeWidth, columnWidth} = fitted(SIZES.large, 4, 1000);
  assert.ok(nodeWidth > SIZES.large.nodeWidth && SIZES.large.left + 4 * columnWidth <= 1000);
});

test("ten thousand tasks: states, path and what is in sight take a moment", () => {
  const many = 10_000, state = emptyState();
  for (let number = 0; number < many; number += 1) state.tables.tasks.set(`p/t${number}`, {project: "p", task: `t${number}`, depends_on: number % 7 ? [`t${number - 1}`] : []});
  const large = {columns: 7, lanes: [{track: "", top: 0, rows: Math.ceil(many / 7), tasks: many}], task: [], lane: [], column: [], row: [], edges: []};
  for (let number = 0; number < many; number += 1) {
    large.task.push(`t${number}`);
    large.lane.push(0);
    large.column.push(number % 7);
    large.row.push(Math.floor(number / 7));
    if (number % 7) large.edges.push([number - 1, number]);
  }
  const found = overview(state, "p", 0);
  assert.equal(found.all.total, many);
  assert.equal(criticalPath(large, state.tables.tasks, found.words, "p").tasks.length, 7);
  const made = geometry(large, SIZES.small, new Set());
  assert.ok(visibleTasks(large, made, SIZES.small, new Set(), {top: 9000, bottom: 10_000, left: 0, right: 2000}).length < 500);
});

test("claims are bars with their refused zombies, and the present one is open", () => {
  const history = [{generation: 1, session_id: "s", agent_id: "ada", acquired_ms: 10, released_ms: 50, release_reason: "EXPIRED", result_accepted: false,
    rejected: [{rejection_reason: "stale_generation", submitted_ms: 90, agent_id: "ada"}], refused: [{operation: "renew", reason: "expired", refused_ms: 60, times: 2, session_id: "s"}]}];
  const task = {state: "in_progress", generation: 2, session: "t", agent: "bob", claimed_ms: 70, expires_ms: 200};
  const bars = claimBars(history, task, 100);
  assert.deepEqual(bars.map((bar) => [bar.generation, bar.agent, bar.from, bar.to, bar.end]), [[1, "ada", 10, 50, "expired"], [2, "bob", 70, 100, ""]]);
  assert.deepEqual(bars[0].refused.map((each) => [each.what, each.at, each.times]), [["renew", 60, 2], ["result", 90, 1]]);
  assert.equal(claimBars([], task, 300)[0].end, "expired");
  assert.deepEqual(claimBars(null, undefined, 0), []);
  const recent = {commits: [{session: "s", at: 20, commit: "1"}, {session: "u", at: 20}], merges: [{session: "t", at: 80}]};
  assert.deepEqual(commitsOf(recent, bars).map((event) => event.at), [80, 20]);
});

test("projects, dependents and the filter", () => {
  const state = stateOf({task: "a", title: "Login form", files: ["file:src/a.py"]}, {task: "b", depends_on: ["a"]});
  state.tables.tasks.set("q/a", {project: "q", task: "a"});
  assert.deepEqual(projectsOf(state), [["p", 2], ["q", 1]]);
  assert.deepEqual(dependents(state, "p", "a").map((task) => task.task), ["b"]);
  const task = state.tables.tasks.get("p/a");
  assert.ok(fits("login READY", task, "ready") && fits("src/a.py", task, "ready") && fits("", task, "") && !fits("logout", task, "ready"));
});

test("a layout of another time has the tasks, lanes and dependencies of that time", () => {
  const whole = {columns: 3, lanes: [{track: "A", top: 0, rows: 1, tasks: 1}, {track: "B", top: 1, rows: 1, tasks: 3}],
    task: ["later", "a", "b", "c"], lane: [0, 1, 1, 1], column: [0, 0, 1, 2], row: [0, 1, 1, 1], edges: [[0, 1], [1, 2], [1, 3], [2, 3]]};
  const {tables} = stateOf({task: "a"}, {task: "b", depends_on: ["a"]}, {task: "c", depends_on: ["b"]});
  assert.deepEqual(cutLayout(whole, tables.tasks, "p"), {columns: 3, lanes: [{track: "B", top: 1, rows: 1, tasks: 3}], task: ["a", "b", "c"], lane: [0, 0, 0],
    column: [0, 1, 2], row: [1, 1, 1], edges: [[0, 1], [1, 2]]});
});

test("of an earlier time, claims that had ended and what had come by then are known", () => {
  const history = [1, 2, 3].map((generation) => ({generation, released_ms: generation * 100,
    rejected: [{submitted_ms: 150, times: 4}, {submitted_ms: 300}], refused: [{refused_ms: 160}, {refused_ms: 290}]}));
  const present = {spec: {description: "d", parts_done: 2}, history, result: {submitted_ms: 280}, used: {amounts: {}}};
  const then = knownAt(present, {generation: 2, state: "in_progress"}, 200);
  assert.deepEqual(then.history, [{generation: 1, released_ms: 100, rejected: [{submitted_ms: 150, times: 1}], refused: [{refused_ms: 160, times: 1}]}]);
  assert.deepEqual([then.result, then.used, then.spec.parts_done, then.spec.description], [null, null, undefined, "d"]);
  assert.deepEqual(knownAt(present, {generation: 2}, 280).history.map((each) => each.generation), [1, 2]);
  assert.deepEqual(knownAt(present, {}, 280).history, []);
  assert.equal(knownAt(present, {generation: 3, state: "done"}, 280).result.submitted_ms, 280);
});
