// A report answers what the page asks for, from its own log and from what was read of the store.

import assert from "node:assert/strict";
import {test} from "node:test";

import {isReport, use} from "../../../../../src/coord/transports/hub/page/static/core/report.js";
import {request} from "../../../../../src/coord/transports/hub/page/static/core/api.js";
import {numbersOf, reportOf} from "../../../../../src/coord/transports/hub/page/static_report/answers.js";
import {counterOf} from "../../../../../src/coord/transports/hub/page/static_report/count.js";

const RULES = {"x.put": [{op: "put", table: "locks", key: ["id"], fields: {id: "id"}}]};
const SERIES = {counted: ["done", "cost"], timed: [], widths_ms: [60_000, 3_600_000],
  levels: {agents: {begins: {on: ["session"]}, ends: {off: ["session"]}, unless: "person"}, working: {begins: {}, ends: {}}, waiting: {begins: {}, ends: {}}},
  rules: {counts: {"task.completed": [{series: "done"}], spent: [{series: "cost", field: "cost"}]}, spans: {}, bounds_s: [1]}};
const entries = Array.from({length: 5000}, (_, number) =>
  ({offset: 11 + number, at: 1000 + number, events: [{event: "x.put", id: `l${number}`}]}));
const REPORT = {base: {offset: 10, at: 900, tables: {}, recent: {}}, entries, rules: RULES, hub: {repository: "shop"}, series: SERIES,
  sentences: {a: "b"}, plans: {p: {task: ["t"], lanes: []}}, usage: {}, alerts: {alerts: [], rules: []}, periods: [{fence: 2, resource: "file:b"}, {fence: 1, resource: "file:a"}],
  tasks: {"p/t": {spec: {task_id: "t"}, history: [{generation: 1}], result: {generation: 1}}}};
const {answer} = reportOf(REPORT);

test("a page without a report belongs to a hub", () => {
  assert.equal(isReport(), false);
});

test("a report has the state at every offset and time", () => {
  const sizeAt = (query) => Object.keys(answer(`/v1/page${query}`).tables.locks).length;
  assert.deepEqual([sizeAt(""), sizeAt("?at=10"), sizeAt("?at=11"), sizeAt("?at=2010"), sizeAt("?at=2011"), sizeAt("?at=99999")], [5000, 0, 1, 2000, 2001, 5000]);
  assert.deepEqual([sizeAt("?time=999"), sizeAt("?time=1000"), sizeAt("?time=3500")], [0, 1, 2501]);
  assert.deepEqual([answer("/v1/page").first_offset, answer("/v1/page").who.role, answer("/v1/page").hub.repository], [10, "view", "shop"]);
});

test("a report has its events in pages", () => {
  const first = answer("/v1/events?after=10&limit=2");
  assert.deepEqual(first, {after: 12, events: [{offset: 11, at_ms: 1000, event: "x.put", details: {id: "l0"}}, {offset: 12, at_ms: 1001, event: "x.put", details: {id: "l1"}}]});
  assert.deepEqual(answer("/v1/events?after=5010&limit=2"), {after: 5010, events: []});
});

test("a report has what was read of the store", () => {
  assert.deepEqual(answer("/v1/projects/p/tasks?tasks=t"), {tasks: [{task_id: "t"}]});
  assert.deepEqual(answer("/v1/projects/p/tasks?tasks=none"), {tasks: []});
  assert.deepEqual([answer("/v1/projects/p/tasks/t/history"), answer("/v1/projects/p/tasks/none/history")], [[{generation: 1}], []]);
  assert.deepEqual([answer("/v1/projects/p/tasks/t/state"), answer("/v1/projects/p/tasks/none/state")], [{result: {generation: 1}}, {result: null}]);
  assert.deepEqual([answer("/v1/usage?project=p"), answer("/v1/locks/history?resources=file:a"), answer("/v1/page/sentences")], [{totals: []}, {periods: [{fence: 1, resource: "file:a"}], after: "", before: 0}, {a: "b"}]);
  assert.equal(answer("/v1/page/plan?project=p").offset, 5010);
  assert.deepEqual([answer("/v1/page/messages"), answer("/v1/page/diff?commit=1"), answer("/v1/page/more")], [[], null, null]);
});

test("numbers have whole minutes up to a time, and say after which entry to go on", () => {
  const at = (minute, ...events) => ({offset: 11 + minute, at: minute * 60_000 + 1000, events});
  const log = [at(0, {event: "on", session: "s"}, {event: "on", session: "p", person: true}), at(1, {event: "task.completed"}), at(2, {event: "spent", cost: 5}, {event: "task.completed"}), at(3, {event: "off", session: "s"})];
  const of = (until) => numbersOf({base: REPORT.base, series: SERIES}, log, {since: 0, buckets: 60, until});
  const early = of(2 * 60_000 + 1000);
  assert.deepEqual([early.offset, early.from_ms, early.counts.done, early.counts.cost], [12, 0, [0, 1, 0], [0, 0, 0]]);
  assert.deepEqual(early.levels.agents, [1, 1, 0]);
  const late = of(10 * 60_000);
  assert.deepEqual([late.offset, late.counts.done.slice(0, 4), late.counts.cost[2]], [14, [0, 1, 1, 0], 5]);
  assert.ok(Math.abs(late.levels.agents[3] - 1 / 60) < 1e-9);
  assert.equal(of(500).offset, 10);
});

test("the head of a report counts up to the state that is shown, forwards and back", () => {
  const log = [{offset: 1, events: [{event: "task.completed", agent: "ada", session: "a"}]}, {offset: 2, events: [{event: "git.committed", session: "s"}, {event: "git.committed", session: "a"}, {event: "spent", cost: 7}]}, {offset: 3, events: [{event: "task.completed", agent: "ada"}, {event: "constructor"}]}];
  const counted = counterOf({entries: log, series: SERIES});
  assert.deepEqual(counted(3), {totals: {done: 2, cost: 7}, agents: [{name: "ada", done: 2, commits: 1}, {name: "s", commits: 1}]});
  assert.deepEqual(counted(1), {totals: {done: 1}, agents: [{name: "ada", done: 1}]});
  assert.deepEqual(counted(0), {totals: {}, agents: []});
});

test("what needs a hub is refused without a request", async () => {
  const fetcher = () => assert.fail("a report asks nobody");
  use({answer});
  assert.equal(isReport(), true);
  await assert.rejects(request("/v1/locks", {fetcher}), /a report does not have this/);
  await assert.rejects(request("/v1/page", {method: "POST", fetcher}), /a report does not have this/);
  assert.equal((await request("/v1/page", {fetcher})).offset, 5010);
});
