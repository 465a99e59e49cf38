import assert from "node:assert/strict";
import {test} from "node:test";
import {asked} from "../../../../../src/coord/transports/hub/page/static/core/asked.js";
import {treeOf, whyMerge} from "../../../../../src/coord/transports/hub/page/static/core/why.js";

test("a refused merge names who changed the same, and the newest attempt counts", () => {
  const refused = {event: "git.merge_refused", branch: "login", into: "main", session: "s", agent: "ada", at: 5, status: "conflict", parties: ["bob"], files: ["src/a.py"], detail: "line 3"};
  const found = whyMerge({merges: [{...refused, event: "git.merged", at: 1}, refused]}, "login");
  assert.equal(found.answer, "login is not merged");
  assert.deepEqual(found.reasons.map((reason) => [reason.depth, reason.kind, reason.subject]), [[0, "merge", "s"], [1, "session", "bob"], [1, "lock", "file:src/a.py"], [1, "merge", ""]]);
  assert.match(found.reasons[0].text, /both sides changed the same lines/);
  assert.deepEqual(found.remedy.command, ["merge", "login"]);
  const merged = whyMerge({merges: [refused, {...refused, event: "git.merged", at: 9}]}, "login");
  assert.deepEqual([merged.answer, merged.remedy], ["login is merged into main", null]);
  assert.deepEqual(whyMerge({}, "new").remedy.command, ["merge", "new"]);
  assert.match(whyMerge({merges: [{...refused, status: "odd_thing", parties: undefined, files: undefined}]}, "login").reasons[0].text, /odd thing/);
});

test("a chain becomes a tree by its depths, also if one is skipped", () => {
  const chain = [0, 1, 2, 1, 0, 2].map((depth, number) => ({depth, text: String(number)}));
  const shape = (nodes) => nodes.map(({reason, children}) => [reason.text, shape(children)]);
  assert.deepEqual(shape(treeOf(chain)), [["0", [["1", [["2", []]]], ["3", []]]], ["4", [["5", []]]]]);
  assert.deepEqual(treeOf([]), []);
});

test("an answer is asked for once per key and stamp, and stays until the next one is there", async () => {
  const calls = [], waiting = [];
  const read = asked((key) => { calls.push(key); return key === "bad" ? Promise.reject(new Error("no")) : Promise.resolve(`${key}!`); }, {wait: (run) => waiting.push(run)});
  const settle = async () => { while (waiting.length) await waiting.shift()(); };
  assert.deepEqual(read("a", 1).value, null);
  read("a", 1);
  await settle();
  assert.deepEqual([read("a", 1).value, calls], ["a!", ["a"]]);
  assert.equal(read("a", 2).value, "a!");
  await settle();
  assert.deepEqual(calls, ["a", "a"]);
  assert.equal(read("bad", 1).value, null);
  await settle();
  assert.equal(read("bad", 1).error.message, "no");
  read.again();
  await settle();
  assert.deepEqual(calls, ["a", "a", "bad", "bad"]);
});

test("what changes while a request runs is asked for after it, and a late answer to another key is dropped", async () => {
  const calls = [], waiting = [];
  let finish;
  const read = asked((key) => { calls.push(key); return new Promise((done) => { finish = () => done(`${key}!`); }); }, {wait: (run) => waiting.push(run)});
  read("a", 1);
  const first = waiting.shift()();
  read("b", 1);
  finish();
  await first;
  assert.equal(read("b", 1).value, null);
  const second = waiting.shift()();
  finish();
  await second;
  assert.deepEqual([read("b", 1).value, calls, waiting.length], ["b!", ["a", "b"], 0]);
});
