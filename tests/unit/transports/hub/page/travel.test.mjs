// Moving in the past: states by offset and time, steps, play, and answers that come too late.

import assert from "node:assert/strict";
import {test} from "node:test";

import {Traveller, entriesOf, isNearest, momentOf} from "../../../../../src/coord/transports/hub/page/static/core/travel.js";

const RULES = {"x.put": [{op: "put", table: "locks", key: ["id"], fields: {id: "id", at: "@at"}}]};
const events = (from, to, gap = 1000) => Array.from({length: to - from + 1}, (_, number) =>
  ({offset: from + number, at_ms: (from + number) * gap, event: "x.put", details: {id: `l${from + number}`}}));

// A log of `last` entries, a hand-moved clock, and what was shown.
function world(last = 10, gap = 1000) {
  const found = {shown: [], ms: 0, tick: null, asked: []};
  found.traveller = new Traveller({
    async loadState(query) {
      found.asked.push(query);
      const offset = query.time ? Math.floor(Number(query.time) / gap) : Number(query.at);
      if (offset > last) throw new Error("not known");
      const locks = Object.fromEntries(events(1, offset, gap).map((each) => [each.details.id, {id: each.details.id, at: each.at_ms}]));
      return {offset, at: offset * gap, first_offset: 1, tables: {locks}, recent: {}, rules: RULES};
    },
    async loadEntries({after, limit}) {
      if (found.broken) throw found.broken;
      await found.held;
      const page = events(after + 1, Math.min(last, after + Math.min(limit, 4)), gap);
      return {events: page, after: page.at(-1)?.offset ?? after};
    },
    show: (each) => found.shown.push(each),
    timers: {setInterval: (run) => { found.tick = run; return 1; }, clearInterval: () => { found.tick = null; }},
    now: () => found.ms,
  });
  found.now = () => found.shown.at(-1);
  found.pass = async (ms) => {
    found.ms += ms;
    found.tick?.();
    await new Promise(setImmediate);
  };
  return found;
}

test("events of one entry are one entry", () => {
  const [one, two] = entriesOf({events: [
    {offset: 3, at_ms: 5, event: "a", details: {x: 1}}, {offset: 3, at_ms: 5, event: "b", details: {}}, {offset: 7, at_ms: 9, event: "c", details: {event: "z"}}]});
  assert.deepEqual(one, {offset: 3, at: 5, events: [{x: 1, event: "a"}, {event: "b"}]});
  assert.deepEqual(two.events, [{event: "c"}]);
});

test("an offset and a time show the state of then", async () => {
  const found = world();
  await found.traveller.open("4");
  assert.equal(found.now().state.offset, 4);
  assert.equal(found.now().state.tables.locks.size, 4);
  await found.traveller.open("t6500");
  assert.deepEqual([found.now().state.offset, found.asked.at(-1)], [6, {time: "6500", nearest: true}]);
  await found.traveller.open("99");
  assert.match(found.now().error.message, /not known/);
});

test("a step applies the next entry and leaves the state before it as it was", async () => {
  const found = world();
  await found.traveller.open("4");
  const before = found.now().state;
  await found.traveller.step();
  assert.deepEqual([found.now().at, found.now().state.tables.locks.size, before.tables.locks.size], ["5", 5, 4]);
  await found.traveller.step(100);
  assert.deepEqual([found.now().state.offset, found.now().state.tables.locks.size], [10, 10]);
  await found.traveller.step();
  assert.equal(found.now().state.offset, 10);
});

test("playing follows the clock of the past, and ends at the newest entry", async () => {
  const found = world(8);
  await found.traveller.open("2");
  await found.traveller.play(2);
  await found.pass(400);
  assert.equal(found.now().state.offset, 2);
  await found.pass(200);
  assert.equal(found.now().state.offset, 3);
  await found.pass(1000);
  assert.equal(found.now().state.offset, 5);
  for (let round = 0; round < 20; round += 1) await found.pass(1000);
  assert.deepEqual([found.now().state.offset, found.now().playing, found.tick], [8, false, null]);
});

test("a long quiet time is passed over", async () => {
  const found = world(3, 3_600_000);
  await found.traveller.open("1");
  await found.traveller.play(10);
  for (let round = 0; round < 10; round += 1) await found.pass(100);
  assert.equal(found.now().state.offset, 2);
});

test("what arrives after somebody went on counts for nothing", async () => {
  const found = world();
  const late = found.traveller.open("3");
  await found.traveller.open("7");
  await late;
  assert.equal(found.now().state.offset, 7);
  const step = found.traveller.step();
  found.traveller.close();
  await step;
  assert.equal(found.now(), null);
});

test("an address that means nothing is told apart from an offset and a time", async () => {
  assert.deepEqual([momentOf("17"), momentOf("t5"), momentOf("0")], [{at: "17"}, {time: "5"}, {at: "0"}]);
  for (const garbage of ["", "-1", "1.5", "1e9", "abc", "t", "t-5", "17x", "9".repeat(16), " 1"]) assert.equal(momentOf(garbage), null, garbage);
  const found = world();
  await found.traveller.open("nonsense");
  assert.match(found.now().error.message, /no time/);
  assert.deepEqual(found.asked, []);
  await found.traveller.open("4");
  assert.deepEqual([found.now().error, found.now().state.offset], [null, 4]);
});

test("a state that is only the nearest one is named as such", () => {
  const state = {offset: 10, at: 5000};
  const words = (at, first = 10, newest = 20) => isNearest({at, first, state}, newest);
  assert.deepEqual([words("3"), words("10"), words("21"), words("t4999"), words("t5000"), words("x")], ["gone", "", "later", "gone", "", ""]);
  assert.equal(isNearest({at: "t4999", first: 3, state}, 20), "");
  assert.equal(isNearest({at: "3", first: 10, state: null}, 20), "");
});

test("what was played is known, and forgotten with a jump", async () => {
  const found = world();
  await found.traveller.open("4");
  await found.traveller.step(2);
  assert.deepEqual(found.now().passed.map((entry) => entry.offset), [5, 6]);
  await found.traveller.open("2");
  assert.deepEqual(found.now().passed, []);
});

test("a hub that stops during play pauses it and leaves what is shown", async () => {
  const found = world(1000, 1000);
  await found.traveller.open("2");
  await found.traveller.play(1);
  found.broken = new Error("the hub does not answer");
  for (let round = 0; round < 5; round += 1) await found.pass(5000);
  assert.deepEqual([found.now().playing, found.now().problem.message, found.now().error], [false, "the hub does not answer", null]);
  assert.ok(found.now().state.offset >= 2);
  found.broken = null;
  await found.traveller.step();
  assert.equal(found.now().problem, null);
});

test("a log that is trimmed during play goes on at the nearest state that is known", async () => {
  const found = world(1000, 1000);
  await found.traveller.open("2");
  found.broken = Object.assign(new Error("the log begins at offset 500"), {code: "trimmed"});
  await found.traveller.step();
  await new Promise(setImmediate);
  assert.deepEqual([found.asked.length, found.now().playing, found.now().problem, found.now().state.offset], [2, false, null, 2]);
});

test("a step after a jump does not wait for entries of the time before", async () => {
  const found = world();
  await found.traveller.open("3");
  let release = null;
  found.held = new Promise((done) => { release = done; });
  const late = found.traveller.step();
  found.held = null;
  await found.traveller.open("7");
  await found.traveller.step();
  assert.equal(found.now().state.offset, 8);
  release();
  await late;
  assert.equal(found.now().state.offset, 8);
});

test("a step or a play waits for the moment that is loading, and mixes no two", async () => {
  const found = world();
  await found.traveller.open("2");
  await Promise.all([found.traveller.open("5"), found.traveller.step(), found.traveller.play()]);
  assert.deepEqual([found.now().state.offset, found.now().state.tables.locks.size, found.now().playing, found.tick], [5, 5, false, null]);
});
