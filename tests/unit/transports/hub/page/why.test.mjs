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
  assert.equal(whyMerge({merges: [refused]}, "other").reasons.length, 0);
  assert.equal(whyMerge({merges: [{...refused, files: Array(12).fill("x")}]}, "login").reasons.filter((reason) => reason.kind === "lock").length, 10);
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

test("a failure keeps the answer to the same question only, and asking again while a request runs asks once more", async () => {
  const calls = [], waiting = [];
  let fails = false;
  const read = asked((key) => { calls.push(key); return fails ? Promise.reject(new Error("no")) : Promise.resolve(`${key}!`); }, {wait: (run) => waiting.push(run)});
  const settle = async () => { while (waiting.length) await waiting.shift()(); };
  read("a", 1);
  await settle();
  fails = true;
  read("a", 2);
  const running = waiting.shift()();
  read.again();
  await running;
  assert.deepEqual([read("a", 2).value, read("a", 2).error.message], ["a!", "no"]);
  await settle();
  assert.deepEqual(calls, ["a", "a", "a"]);
  read("b", 2);
  await settle();
  assert.deepEqual([read("b", 2).value, read("b", 2).error.message], [null, "no"]);
});
