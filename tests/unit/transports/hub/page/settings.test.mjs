import assert from "node:assert/strict";
import {test} from "node:test";
import {field, groups, projects, title, words} from "../../../../../src/coord/transports/hub/page/static/core/settings.js";

test("a value has its unit, and 0 is off where 0 may be chosen", () => {
  assert.equal(words({name: "hung_seconds", value: 900, low: 30}), "15m");
  assert.equal(words({name: "alert_stuck_seconds", value: 0, low: 0}), "off");
  assert.equal(words({name: "alert_context_percent", value: 85, low: 0}), "85%");
  assert.equal(words({name: "log_retention_days", value: 1, low: 0}), "1 day");
  assert.equal(words({name: "max_result_size_bytes", value: 10 * 1024 * 1024}), "10.0 MB");
  assert.equal(words({name: "max_active_sessions", value: 0}), "0");
  assert.equal(words({name: "steal_policy", value: "dead_or_expired"}), "dead or expired");
});

test("a name is a title without what stands beside it", () => {
  assert.equal(title("alert_context_critical_percent"), "Context critical");
  assert.equal(title("max_concurrent_claims"), "Most concurrent claims");
  assert.equal(title("min_lease_duration_seconds"), "Least lease duration");
});

test("every setting is in one group, also one that this page does not know; the slider has its own place", () => {
  const names = ["max_agents", "hung_seconds", "steal_policy", "log_retention_days", "alert_idle_seconds", "new_thing"];
  const found = groups(names.map((name) => ({name})));
  assert.deepEqual(found.map(([group, each]) => [group, each.map(({name}) => name)]), [["Sessions", ["hung_seconds"]], ["Locks", ["steal_policy"]],
    ["Log", ["log_retention_days"]], ["Alerts", ["alert_idle_seconds"]], ["Other", ["new_thing"]]]);
});

test("a field takes what the hub would take", () => {
  assert.deepEqual(field({name: "steal_policy", value: "strict", choices: ["strict", "x"]}).options, ["strict", "x"]);
  const typed = field({name: "hung_seconds", value: 600, low: 30, high: 100});
  assert.deepEqual([typed.min, typed.max, typed.required, typed.label], [30, 100, true, "Hung, in seconds, 30 to 100"]);
  assert.equal(field({name: "max_active_sessions", value: 5}).max, undefined);
});

test("the busiest project comes first, and that of the repository is there without a task", () => {
  const rows = (...projects_) => new Map(projects_.map((project, key) => [key, {project}]));
  const state = {tables: {sessions: rows("b", "a", ""), tasks: rows("b", "c")}};
  assert.deepEqual(projects(state, "shop"), ["b", "a", "c", "shop"]);
  assert.deepEqual(projects(state, ""), ["b", "a", "c"]);
});
