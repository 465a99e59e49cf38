import assert from "node:assert/strict";
import {test} from "node:test";
import {agentsOf, fromEvents, lanes, Past, passes, ticks, timeRange} from "../../../../../src/coord/transports/hub/page/static/core/activity.js";
import {conversations, keyOf, merge, pruned, unread} from "../../../../../src/coord/transports/hub/page/static/core/conversations.js";
import {diffRows, parseDiff} from "../../../../../src/coord/transports/hub/page/static/core/diff.js";
import {sentence} from "../../../../../src/coord/transports/hub/page/static/core/sentences.js";
import {classOf, extend, grow, merged, quantile, times} from "../../../../../src/coord/transports/hub/page/static/core/series.js";

const text = (template, event) => sentence({x: template}, {event: "x", ...event}).map((piece) => piece.text ?? String(piece.value)).join("");
const entry = (offset, ...events) => ({offset, at: offset * 1000, events});
const name = (session) => session.toUpperCase();

test("a sentence drops parts without a value and reads conditions", () => {
  assert.equal(text("{a} did[ {b}][ for {c}]", {a: "ada", b: "it"}), "ada did it");
  assert.equal(text("[?r=done yes {a}][!r=done no {a}]", {a: 1, r: "done"}), "yes 1");
  assert.equal(text("[?r=done yes][!r=done no]", {r: "lost"}), "no");
  assert.equal(text("is [?on on][!on off]", {on: false}), "is off");
  assert.equal(text("{constructor}[ {toString}]", {}), "undefined");
  assert.match(sentence({}, {event: "later.kind", who: "ada"}).map((piece) => piece.text ?? piece.value).join(""), /later\.kind.*who=ada/);
});

test("the log of the page grows at both ends, and begins again after a gap", () => {
  const past = new Past();
  past.follow([entry(11, {event: "a"})], 11, true);
  assert.deepEqual([past.low, past.high, past.trimmed], [10, 11, false]);
  assert.deepEqual(past.older(4, 0), {after: 6, limit: 4});
  past.prepend([{offset: 7, at_ms: 7, event: "b", details: {session: "s"}}, {offset: 11, at_ms: 1, event: "z", details: {}}], 6, 0);
  assert.deepEqual(past.items.map((item) => item.event), ["b", "a"]);
  assert.equal(past.follow([entry(11, {event: "a"})], 11, true), false);
  past.follow([entry(12, {event: "c"}, {event: "d"})], 12, true);
  assert.deepEqual(past.items.map((item) => item.key), ["7.0", "11.0", "12.0", "12.1"]);
  past.follow([entry(20, {event: "e"})], 20, true);
  assert.deepEqual(past.items.map((item) => item.event), ["e"]);
  past.prepend([], 4, 5);
  assert.equal(past.trimmed, true);
});

test("filters find agents, kinds, files, tasks and words, and hide heartbeats", () => {
  const item = {event: "lock.acquired", session: "s", resource: "file:src/a.py", agent: "ada"};
  const fits = (filter, each = item) => passes(each, filter, name, () => "ada locked src/a.py");
  assert.ok(fits({}) && fits({agent: "S"}) && fits({agent: "ada"}) && fits({kind: "lock"}) && fits({kind: "lock.acquired"}) && fits({file: "src"}) && fits({q: "LOCKED ada"}));
  assert.ok(!fits({agent: "bob"}) && !fits({kind: "lo"}) && !fits({file: "b.py"}) && !fits({task: "T-1"}) && !fits({q: "bob"}));
  assert.ok(!fits({}, {...item, event: "lock.renewed"}) && fits({all: "1"}, {...item, event: "lock.renewed"}) && fits({kind: "lock"}, {...item, event: "lock.renewed"}));
  assert.deepEqual(agentsOf([item, {session: "z"}, {session: "system"}], name), ["ada", "SYSTEM", "Z"]);
  assert.deepEqual(fromEvents([{offset: 1, at_ms: 5, event: "a", details: {}}, {offset: 1, at_ms: 5, event: "b", details: {}}]).map((each) => each.key), ["1.0", "1.1"]);
});

test("lanes have bars for claims, locks and waits, also those that began earlier or go on", () => {
  const at = (ms, event, more) => ({event, at: ms, session: "s", ...more});
  const [lane] = lanes([at(50, "lock.acquired", {resource: "r"}), at(150, "lock.released", {resource: "r"}), at(160, "lock.released", {resource: "q", held_s: 0.03}),
    at(170, "task.claimed", {project: "p", task: "t"}), at(171, "lock.denied"), at(172, "lock.denied"), at(180, "lock.denied")], 100, 200, 5);
  assert.deepEqual(lane.bars.map(({kind, from, to, open}) => [kind, from, to, Boolean(open)]), [["lock", 100, 150, false], ["lock", 130, 160, false], ["claim", 170, 200, true]]);
  assert.deepEqual(lane.marks.map((mark) => mark.items.length), [2, 1]);
  assert.ok(ticks(0, 3_600_000, 6).length <= 7);
});

test("conversations are pairs, groups, everybody and notices, with texts where they exist", () => {
  const sent = (id, session, to, more = {}) => ({event: "message.sent", id, session, to, kind: "k", subject: id, at: Number(id), offset: 1, ...more});
  const events = [sent("1", "a", ["b"]), sent("2", "b", ["a"]), sent("3", "a", ["b", "c"]), sent("4", "system", ["a"]), {...sent("5", "a", ["b"], {group: "g"}), event: "message.sent_to_group"},
    {event: "message.undelivered", id: "2", session: "a", reason: "ended"}];
  const messages = merge(events, [{id: "1", sender: "a", to: ["b"], sent_ms: 9, kind: "k", subject: "1", body: "<b>", waiting: true}, {id: "0", sender: "x", to: ["y"], sent_ms: 0, kind: "k", subject: "old", body: ""}]);
  assert.deepEqual(messages.map((message) => message.id), ["0", "1", "2", "3", "4", "5"]);
  assert.equal(messages[1].body, "<b>");
  assert.equal(messages[2].lost[0].reason, "ended");
  assert.equal(keyOf(messages[1]), keyOf(messages[2]));
  const found = conversations(messages);
  assert.deepEqual(found.map((one) => one.kind).sort(), ["everybody", "group", "pair", "pair", "system"]);
  const pair = found.find((one) => one.key === "a\nb");
  assert.deepEqual([unread(pair, {}), unread(pair, {"a\nb": 1}), unread(pair, {"a\nb": 2})], [2, 1, 0]);
  assert.deepEqual(pruned({gone: 1, "a\nb": 2}, new Set(["a\nb"])), {"a\nb": 2});
});

test("a diff has files, hunks and numbered lines, and a line of a hunk is never a header", () => {
  const [file, other] = parseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ f\n same\n-old\n--- a/no\n+++ b/no\n+<script>\ndiff --git a/p b/q\nrename from p\nrename to q\nBinary files differ\n");
  assert.equal(file.path, "x");
  assert.deepEqual(file.lines.map((line) => [line.kind, line.text]).slice(0, 3), [["hunk", "@@ -1,2 +1,3 @@ f"], ["same", "same"], ["del", "old"]]);
  assert.deepEqual([other.path, other.oldPath, other.binary], ["q", "p", true]);
  assert.equal(diffRows([file, other]).at(-1).text, "a binary file");
  assert.deepEqual(parseDiff(""), []);
});

const fresh = () => ({offset: 0, from_ms: 0, width_ms: 1000, counts: {done: [0, 0]}, spans: {wait: [[], []]}, levels: {agents: [1, 2]}, most: 2,
  rules: {counts: {t: [{series: "done"}], u: [{series: "done", field: "n"}]}, spans: {t: {series: "wait", field: "ms", scale: 1000}}, bounds_s: [1, 10]}});

test("later entries add to the numbers once, and the window rolls", () => {
  const numbers = fresh();
  assert.equal(extend(numbers, {offset: 1, at: 1500, events: [{event: "t", ms: 500}, {event: "u", n: "x"}, {event: "u", n: 2}, {event: "constructor"}]}), true);
  assert.equal(extend(numbers, {offset: 1, at: 1500, events: [{event: "t"}]}), false);
  assert.deepEqual([numbers.counts.done, numbers.spans.wait[1]], [[0, 3], [1, 0, 0]]);
  assert.equal(grow(numbers, 2500, {agents: 7}), 1);
  assert.deepEqual([numbers.from_ms, numbers.counts.done, numbers.levels.agents, times(numbers)], [1000, [3, 0], [2, 7], [1, 2]]);
});

test("a window that is not full keeps its first bucket", () => {
  const numbers = {...fresh(), most: 3};
  assert.equal(grow(numbers, 2500), 2);
  assert.deepEqual([numbers.from_ms, numbers.counts.done.length], [0, 3]);
});

test("quantiles lie in their class, and nothing has none", () => {
  assert.equal(quantile([1, 10], [], 0.5), null);
  assert.equal(quantile([1, 10], [0, 2, 0], 0.5), 5.5);
  assert.equal(quantile([1, 10], [1, 0, 0], 1), 1);
  assert.deepEqual([classOf([1, 10], 1), classOf([1, 10], 1.1), classOf([1, 10], 11)], [0, 1, 2]);
  assert.deepEqual(merged([[1, 2], [], [3, 4]]), [4, 6]);
});

test("an axis of one moment, or of none, still has a length", () => {
  assert.deepEqual(timeRange([1000]), [1000, 1600]);
  assert.deepEqual(timeRange([1000, 4600]), [1000, 4600]);
  assert.deepEqual(timeRange([]), [0, 600]);
});
