import assert from "node:assert/strict";
import {test} from "node:test";
import {asked} from "../../../../../src/coord/transports/hub/page/static/core/asked.js";
import {fromSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";
import {endsOf, lineOf, treeOf, whyMerge, whyThen} from "../../../../../src/coord/transports/hub/page/static/core/why.js";

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
  assert.deepEqual([read("b", 2).value, read("b", 2).error.message, read("b", 2).again], [null, "no", read.again]);
});

test("at an earlier time the tables say what held something up", () => {
  const state = fromSnapshot({offset: 1, at: 1000, tables: {
    sessions: {a: {session: "a", agent: "ada"}, b: {session: "b", agent: "bob"}},
    locks: {"a\nfile:x": {session: "a", agent: "ada", resource: "file:x", since_ms: 1, expires_ms: 9000}},
    waits: {w: {session: "b", resources: ["file:x"], since_ms: 2}},
    tasks: {"p/one": {project: "p", task: "one", state: "in_progress", session: "b", agent: "bob", generation: 1}, "p/two": {project: "p", task: "two", depends_on: ["one", "gone"]}},
    questions: {q: {id: "q", session: "a", agent: "ada", text: "May I?", asked_ms: 3}},
  }, recent: {}});
  const why = (kind, id) => whyThen(kind, id, state, 1000), lines = (found) => found.reasons.map((each) => [each.depth, each.kind, each.text]);
  const found = why("task", "p/two");
  assert.equal(found.answer, "two was waiting");
  assert.deepEqual(lines(found).slice(0, 5), [[0, "task", "two needs one, which was in progress"], [1, "claim", "bob had claimed one"], [2, "wait", "bob was waiting for x behind ada, 1s"],
    [3, "lock", "ada held x"], [4, "question", "ada asked: May I?"]]);
  assert.deepEqual(lines(found).slice(5), [[0, "task", "two needs gone, which was missing"]]);
  assert.deepEqual([found.remedy, why("task", "p/x").answer, why("task", "p/x").reasons], [undefined, "there was no task p/x", []]);
  assert.deepEqual([why("lock", "file:x").answer, why("lock", "file:y").answer], ["x was locked", "y was free"]);
  assert.deepEqual([why("agent", "zed").answer, why("agent", "b").reasons[0].kind], ["there was no session zed", "wait"]);
  assert.match(why("agent", "b").answer, /^bob: waits, waiting for x/);
});

test("a cycle of waits is told once", () => {
  const lock = (session, resource) => ({session, resource});
  const state = fromSnapshot({offset: 1, at: 1, tables: {locks: {1: lock("a", "file:x"), 2: lock("b", "file:y")}, waits: {1: {session: "a", resources: ["file:y"]}, 2: {session: "b", resources: ["file:x"]}},
    tasks: {"p/a": {project: "p", task: "a", depends_on: ["b"]}, "p/b": {project: "p", task: "b", depends_on: ["a"]}}}, recent: {}});
  assert.equal(whyThen("agent", "a", state, 5).reasons.length, 4);
  assert.equal(whyThen("task", "p/a", state, 5).reasons.length, 2);
});

test("a look again loads once", async () => {
  const calls = [], waiting = [];
  const read = asked((key) => { calls.push(key); return Promise.resolve(key); }, {wait: (run) => waiting.push(run)});
  const settle = async () => { while (waiting.length) await waiting.shift()(); };
  read("a", 1);
  await settle();
  read.again();
  await settle();
  read("a", 1);
  await settle();
  assert.deepEqual(calls, ["a", "a"]);
});

test("an answer ends once when something ends that it names", () => {
  const ends = endsOf(), answer = {reasons: [{until_ms: 0}, {until_ms: 500}, {until_ms: 900}]};
  assert.deepEqual([ends(null, 100), ends(answer, 100), ends(answer, 499), ends(answer, 500), ends(answer, 600), ends(answer, 2000)], [0, 0, 0, 1, 1, 1]);
  assert.deepEqual([ends({reasons: [{until_ms: 500}, {until_ms: 900}]}, 600), ends(null, 950), ends(null, 990)], [1, 1, 1]);
});

test("a command names the project where it needs one", () => {
  for (const word of ["task", "agent", "limits", "track"]) assert.equal(lineOf([word, "x y"], "shop"), `coord --project shop ${word} 'x y'`);
  assert.deepEqual([lineOf(["dereg", "s"], "shop"), lineOf(["task", "retry"], "")], ["coord dereg s", "coord task retry"]);
});

test("a file of git is no pattern, and no word of the prototype a reason", () => {
  const [first, {text, subject}] = whyMerge({merges: [{event: "git.merge_refused", branch: "b", into: "main", session: "s", status: "constructor", files: ["a/[x]*{y}?\\.py"]}]}, "b").reasons;
  assert.equal(first.text, "the merge into main was refused: constructor");
  assert.deepEqual([text, subject], ["a/[x]*{y}?\\.py", "file:a/\\[x]\\*\\{y\\}\\?\\\\.py"]);
});
