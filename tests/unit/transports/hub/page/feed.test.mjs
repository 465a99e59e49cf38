import assert from "node:assert/strict";
import {beforeEach, test} from "node:test";
import {AGAIN_MS, backoff, Feed, LOAD_MS, PING_MS, SILENT_MS} from "../../../../../src/coord/transports/hub/page/static/core/feed.js";

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
      load: (signal) => { this.loads += 1; this.signal = signal; return this.answer(); },
      connect: (offset) => this.connect(offset),
      on: {snapshot: (found) => this.told.push(["snapshot", found.offset]), entry: (entry) => { if (entry.defect) throw new Error("a defect"); this.told.push(["entry", entry.offset]); },
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

test("after an end it goes on by itself: with the store that the hub has now, and with its offsets", async () => {
  const leap = 2 ** 40 + 7;
  world.say({type: "entry", offset: 6, at: 1, events: []});
  world.say({type: "end", offset: 6, reason: "the hub has opened the store again"});
  world.answer = async () => ({offset: leap, who: {}});
  world.socket.onclose();
  await world.pass(500);
  assert.equal(world.socket.offset, leap);
  world.say({type: "begin", offset: leap});
  world.say({type: "entry", offset: leap + 1, at: 2, events: []});
  assert.deepEqual(world.names().slice(-4), ["loading", `snapshot ${leap}`, "live", `entry ${leap + 1}`]);
  assert.equal(world.loads, 2);
});

for (const [what, say] of Object.entries({"an entry": (offset) => ({type: "entry", offset, at: 1, events: []}), "a resync": (offset) => ({type: "resync", offset})})) {
  test(`where offsets leap, ${what} costs one new snapshot`, async () => {
    const leap = 2 ** 40 + 7;
    world.answer = async () => ({offset: leap, who: {}});
    world.say(say(leap));
    await settle();
    world.say({type: "begin", offset: leap});
    for (const offset of [leap, leap + 1, leap + 2]) world.say({type: "entry", offset, at: 1, events: []});
    await world.pass(12_000);
    assert.deepEqual(world.names().slice(-5), ["loading", `snapshot ${leap}`, "live", `entry ${leap + 1}`, `entry ${leap + 2}`]);
    assert.equal(world.loads, 2);
  });
}

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

const HOUR_MS = 3_600_000;
const never = () => new Promise(() => {});

for (const [what, data] of Object.entries({"no JSON": "<html>", "half a message": '{"type":"entry","off', "null": "null", "a binary frame": new Blob(["x"]), "nothing": ""})) {
  test(`${what} counts as a missing entry`, async () => {
    world.socket.onmessage({data});
    await settle();
    assert.equal(world.loads, 2);
    assert.ok(world.sockets[0].closed);
  });
}

test("messages of other kinds change nothing", () => {
  for (const message of [{}, {type: "pong"}, {type: "error", code: "x"}, {type: "end"}, {type: ["entry"]}, 5, []]) world.say(message);
  assert.equal(world.loads, 1);
  assert.equal(world.names().at(-1), "live");
});

test("an entry that came before the begin counts, and the begin after it goes nowhere back", async () => {
  await world.feed.open();
  world.say({type: "entry", offset: 6, at: 1, events: []});
  world.say({type: "begin", offset: 5});
  world.say({type: "entry", offset: 7, at: 1, events: []});
  assert.deepEqual(world.names().slice(-3), ["entry 6", "live", "entry 7"]);
  assert.equal(world.loads, 2);
});

test("a snapshot that is newer than the stream makes its entries old", async () => {
  world.answer = async () => ({offset: 8, who: {}});
  await world.feed.open();
  for (const offset of [6, 7, 8, 9]) world.say({type: "entry", offset, at: 1, events: []});
  assert.equal(world.names().at(-1), "entry 9");
  assert.ok(!world.names().includes("entry 8"));
});

test("two resyncs at once load once", async () => {
  const {onmessage} = world.socket;
  for (let turn = 0; turn < 2; turn += 1) onmessage({data: '{"type":"resync","offset":9}'});
  await settle();
  assert.equal(world.loads, 2);
  assert.equal(world.sockets.length, 2);
});

test("who is sent back again and again waits in between", async () => {
  for (let turn = 0; turn < 3; turn += 1) {
    world.say({type: "begin"});
    world.say({type: "resync", offset: 9});
    await settle();
  }
  assert.equal(world.loads, 2, "the second resync waits");
  assert.equal(world.names().at(-1), "offline");
  await world.pass(500);
  assert.equal(world.loads, 3);
  await world.pass(AGAIN_MS);
  world.say({type: "resync", offset: 9});
  await settle();
  assert.equal(world.loads, 4, "a later one does not wait");
});

test("an entry that the page cannot apply counts as missing", async () => {
  world.say({type: "entry", offset: 6, at: 1, events: [], defect: true});
  await settle();
  assert.equal(world.loads, 2);
});

test("an answer that is no snapshot, and a socket that cannot be made, are tried again", async () => {
  for (const answer of [null, {}, {offset: "5"}, []]) {
    world.answer = async () => answer;
    await world.feed.open();
    assert.equal(world.names().at(-1), "offline", JSON.stringify(answer));
  }
  world.answer = async () => ({offset: 5, who: {}});
  world.feed.connect = () => { throw new Error("refused"); };
  await world.feed.open();
  assert.equal(world.names().at(-1), "offline");
  world.feed.connect = (offset) => world.connect(offset);
  await world.pass(15_000);
  world.say({type: "begin"});
  assert.equal(world.names().at(-1), "live");
});

test("a load that never ends is given up, and tried again", async () => {
  world.answer = never;
  void world.feed.open();
  await world.pass(LOAD_MS);
  assert.equal(world.loads, 2);
  const {signal} = world;
  world.answer = async () => ({offset: 5, who: {}});
  await world.pass(10_000);
  assert.equal(world.loads, 3);
  assert.ok(signal.aborted);
});

test("a laptop that slept for eight hours while it loaded loads again", async () => {
  world.answer = never;
  void world.feed.open();
  await settle();
  world.answer = async () => ({offset: 50, who: {}});
  world.sleep(8 * HOUR_MS);
  await world.pass(10_000);
  world.say({type: "begin"});
  assert.deepEqual(world.names().slice(-2), ["snapshot 50", "live"]);
});

test("a socket that never opens counts as dead", async () => {
  await world.feed.open();
  world.socket.readyState = 0;
  await world.pass(SILENT_MS + 10_000);
  assert.equal(world.loads, 3);
  assert.equal(world.sockets[1].sent.length, 0, "nothing is sent before it is open");
});

test("a clock that goes back hides no dead connection", async () => {
  world.nowMs -= HOUR_MS;
  for (const timer of world.timers.values()) timer.at -= HOUR_MS;
  await world.pass(5_000);
  assert.equal(world.socket.sent.length, 1, "a sign of life is asked for");
  await world.pass(15_000);
  assert.equal(world.loads, 2);
});

test("a clock that goes back keeps a connection that lives", async () => {
  world.nowMs -= HOUR_MS;
  for (const timer of world.timers.values()) timer.at -= HOUR_MS;
  for (let turn = 0; turn < 20; turn += 1) {
    await world.pass(5_000);
    world.say({type: "pong", id: 1});
  }
  assert.equal(world.loads, 1);
  assert.equal(world.socket.sent.length, 4);
});

test("a page that is seen again and again notices a dead connection, too", async () => {
  for (let turn = 0; turn < 11; turn += 1) {
    await world.pass(4_000);
    world.feed.probe();
  }
  await world.pass(5_000);
  assert.equal(world.loads, 2);
});

test("a page that is put aside while it loads follows nothing, and loads again when it is back", async () => {
  let arrive;
  world.answer = () => new Promise((done) => { arrive = done; });
  void world.feed.open();
  world.feed.stop();
  arrive({offset: 9, who: {}});
  await world.pass(120_000);
  world.feed.probe();
  assert.equal(world.sockets.length, 1);
  assert.ok(world.signal.aborted);
  world.answer = async () => ({offset: 10, who: {}});
  await world.feed.start();
  world.say({type: "begin"});
  assert.deepEqual(world.names().slice(-2), ["snapshot 10", "live"]);
  assert.equal(world.timers.size, 1);
});
