import assert from "node:assert/strict";
import {beforeEach, test} from "node:test";
import {backoff, Feed, PING_MS, SILENT_MS} from "../../../../../src/coord/transports/hub/page/static/core/feed.js";

// A clock and timers that only the test moves.
class World {
  constructor() {
    this.nowMs = 1_000_000;
    this.timers = new Map();
    this.newest = 0;
    this.sockets = [];
    this.told = [];
    this.loads = 0;
    this.answer = async () => ({offset: 5, who: {project: ""}});
    this.feed = new Feed({
      load: () => { this.loads += 1; return this.answer(); },
      connect: (offset) => this.connect(offset),
      on: {snapshot: (found) => this.told.push(["snapshot", found.offset]), entry: (entry) => this.told.push(["entry", entry.offset]),
        status: (found) => this.told.push([found.state])},
      timers: {
        setInterval: (run, ms) => this.add(run, ms, true), clearInterval: (id) => this.timers.delete(id),
        setTimeout: (run, ms) => this.add(run, ms, false), clearTimeout: (id) => this.timers.delete(id),
      },
      now: () => this.nowMs, random: () => 1,
    });
  }

  add(run, ms, repeats) {
    this.timers.set(++this.newest, {run, at: this.nowMs + ms, ms, repeats});
    return this.newest;
  }

  connect(offset) {
    const socket = {offset, readyState: 1, sent: [], closed: false, send: (text) => socket.sent.push(JSON.parse(text)), close: () => { socket.closed = true; }};
    this.sockets.push(socket);
    return socket;
  }

  get socket() {
    return this.sockets.at(-1);
  }

  say(message) {
    this.socket.onmessage?.({data: JSON.stringify(message)});
  }

  // Lets time pass, and whatever is due happen, in order.
  async pass(ms) {
    const end = this.nowMs + ms;
    for (;;) {
      const due = [...this.timers].filter(([, timer]) => timer.at <= end).sort((one, other) => one[1].at - other[1].at)[0];
      if (!due) break;
      const [id, timer] = due;
      this.nowMs = Math.max(this.nowMs, timer.at);
      if (timer.repeats) timer.at += timer.ms;
      else this.timers.delete(id);
      timer.run();
      await settle();
    }
    this.nowMs = end;
    await settle();
  }

  // The machine sleeps: the clock goes on, timers do not.
  sleep(ms) {
    this.nowMs += ms;
  }

  names() {
    return this.told.map((each) => each.join(" "));
  }
}
const settle = async () => { for (let turn = 0; turn < 5; turn += 1) await Promise.resolve(); };

let world;
beforeEach(async () => {
  world = new World();
  await world.feed.start();
  world.say({type: "begin", offset: 5});
});

test("it loads a snapshot, then follows from its offset", () => {
  assert.equal(world.socket.offset, 5);
  world.say({type: "entry", offset: 6, at: 1, events: []});
  assert.deepEqual(world.names(), ["loading", "snapshot 5", "live", "entry 6"]);
});

test("a missing offset loads again, one that came twice does nothing", async () => {
  world.say({type: "entry", offset: 6, at: 1, events: []});
  world.say({type: "entry", offset: 6, at: 1, events: []});
  assert.equal(world.loads, 1);
  world.say({type: "entry", offset: 8, at: 1, events: []});
  await settle();
  assert.equal(world.loads, 2);
  assert.ok(world.sockets[0].closed);
  assert.ok(!world.names().includes("entry 8"));
});

test("a reader of one project sees gaps that are none", async () => {
  world.answer = async () => ({offset: 5, who: {project: "shop"}});
  await world.feed.open();
  world.say({type: "entry", offset: 9, at: 1, events: []});
  assert.equal(world.names().at(-1), "entry 9");
  assert.equal(world.loads, 2);
});

test("a resync loads again", async () => {
  world.say({type: "resync", offset: 90});
  await settle();
  assert.equal(world.loads, 2);
});

test("a closed socket is tried again, later each time, until it works", async () => {
  world.socket.onclose();
  assert.equal(world.names().at(-1), "offline");
  world.answer = () => Promise.reject(Object.assign(new Error("away"), {status: 0}));
  await world.pass(500);
  assert.equal(world.loads, 2);
  await world.pass(999);
  assert.equal(world.loads, 2, "the second wait is longer");
  await world.pass(1);
  assert.equal(world.loads, 3);
  world.answer = async () => ({offset: 7, who: {}});
  await world.pass(15_000);
  world.say({type: "begin"});
  assert.equal(world.names().at(-1), "live");
  assert.equal(world.feed.attempt, 0);
});

test("the wait before an attempt grows up to a limit, and differs among pages", () => {
  assert.deepEqual([0, 1, 2, 9, 99].map((attempt) => backoff(attempt, 1)), [500, 1000, 2000, 15_000, 15_000]);
  assert.equal(backoff(2, 0), 1000);
});

test("who may not look is told so, and nothing is tried again", async () => {
  world.answer = () => Promise.reject(Object.assign(new Error("no"), {status: 401}));
  await world.feed.open();
  assert.equal(world.names().at(-1), "denied");
  await world.pass(120_000);
  assert.equal(world.loads, 2);
});

test("an idle page sends a ping every 25 s and nothing else", async () => {
  for (let turn = 0; turn < 40; turn += 1) {
    await world.pass(15_000);
    world.say({type: "heartbeat", offset: 5});
  }
  assert.equal(world.loads, 1);
  assert.equal(world.sockets.length, 1);
  assert.equal(world.socket.sent.length, 600_000 / PING_MS);
  assert.ok(world.socket.sent.every((message) => message.type === "ping"));
});

test("a silent connection counts as dead", async () => {
  await world.pass(SILENT_MS);
  assert.equal(world.loads, 1);
  await world.pass(10_000);
  assert.equal(world.loads, 2);
});

test("after a sleep it asks for a sign of life, and does not wait for long", async () => {
  world.sleep(16_000);
  await world.pass(5_000);
  assert.equal(world.socket.sent.length, 1, "no ping was due yet");
  assert.equal(world.loads, 1);
  await world.pass(15_000);
  assert.equal(world.loads, 2, "no answer came within ten seconds");
});

test("after a sleep an answer keeps the connection", async () => {
  world.sleep(16_000);
  await world.pass(5_000);
  world.say({type: "pong", offset: 5, id: 1});
  await world.pass(20_000);
  assert.equal(world.loads, 1);
});

test("after a long sleep it connects again at once", async () => {
  world.sleep(3_600_000);
  await world.pass(5_000);
  assert.equal(world.loads, 2);
});

test("a page that is seen again does not wait for its next attempt", async () => {
  world.socket.onclose();
  world.feed.probe();
  await settle();
  assert.equal(world.loads, 2);
  await world.pass(1_000);
  assert.equal(world.loads, 2, "the attempt that was planned is gone");
});

test("a late answer of an earlier attempt changes nothing", async () => {
  let arrive;
  world.answer = () => new Promise((done) => { arrive = done; });
  const first = world.feed.open();
  world.answer = async () => ({offset: 20, who: {}});
  await world.feed.open();
  arrive({offset: 3, who: {}});
  await first;
  assert.equal(world.names().filter((each) => each.startsWith("snapshot")).at(-1), "snapshot 20");
  assert.equal(world.sockets.length, 2);
});

test("stop ends everything", async () => {
  world.feed.stop();
  assert.ok(world.socket.closed);
  assert.equal(world.timers.size, 0);
});
