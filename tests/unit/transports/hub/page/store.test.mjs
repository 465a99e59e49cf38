// The signals of the page, with a browser that is hardly there: what is remembered, the address, and moving in the past.

import assert from "node:assert/strict";
import {before, test} from "node:test";

const FOLDER = "../../../../../src/coord/transports/hub/page/static/core/";
const browser = {written: [], heard: [], stored: new Map(), writes: 0, timers: [], asked: []};
const settled = () => new Promise(setImmediate);
let store, router, use;

Object.assign(globalThis, {
  localStorage: {getItem: (key) => browser.stored.get(key) ?? null, setItem(key, text) { browser.stored.set(key, text); browser.writes += 1; }},
  addEventListener: (name, heard) => { if (name === "storage") browser.heard.push(heard); },
  history: {state: null, replaceState: (state, _, url) => browser.written.push(String(url)), pushState: (state, _, url) => browser.written.push(String(url))},
  document: {hidden: false, addEventListener() {}},
  requestAnimationFrame() {},
  setInterval: (run) => browser.timers.push(run),
  clearInterval() {},
});
const RULES = {"x.put": [{op: "put", table: "locks", key: ["id"], fields: {id: "id"}}]};
const stateAt = (offset) => ({offset, at: offset * 1000, first_offset: 1, now_ms: 99_000, tables: {}, recent: {}, rules: RULES, hub: {}, who: {}});
const events = (after) => Array.from({length: 30 - after}, (_, place) => ({offset: after + place + 1, at_ms: (after + place + 1) * 1000, event: "x.put", details: {id: "l"}}));

// The page is that of a report, so that nothing is asked over the network.
before(async () => {
  [store, router, {use}] = await Promise.all(["store.js", "router.js", "report.js"].map((name) => import(FOLDER + name)));
  const answer = (path) => {
    const url = new URL(path, "http://page/");
    browser.asked.push(path);
    if (url.pathname === "/v1/events") return {events: events(Number(url.searchParams.get("after"))), after: 30};
    return stateAt(Number(url.searchParams.get("at") ?? 30));
  };
  use({entries: [], run() {}, answer});
  await store.start();
});

test("what another page of the browser remembers is not written back", () => {
  const kept = store.remembered("x", {a: 1});
  const hear = (text) => browser.heard.forEach((heard) => heard({key: "coord.x", newValue: text}));
  assert.equal(browser.writes, 0);
  hear('{"a":2}');
  assert.deepEqual([kept.value, browser.writes], [{a: 2}, 0]);
  kept.value = {a: 3};
  assert.deepEqual([browser.stored.get("coord.x"), browser.writes], ['{"a":3}', 1]);
  hear('{"a":2}');
  kept.value = {a: 3};
  assert.equal(browser.writes, 2);
});

test("a report's clock stands at its end again after a look at the past", async () => {
  router.go("/now?at=7");
  await settled();
  assert.equal(store.now.value, 7000);
  router.setQuery({at: ""});
  assert.equal(store.now.value, 30_000);
});

test("another view keeps the moment that is played, and the play", async () => {
  router.go("/now?at=10");
  await settled();
  let ms = 0;
  store.traveller.now = () => ms;
  await store.traveller.play(1);
  const pass = (by) => { ms += by; browser.timers.at(-1)(); };
  pass(1000);
  const written = browser.written.length;
  pass(1000);
  assert.equal(browser.written.length, written, "the history is written twice a second at most");
  router.go("/locks");
  assert.equal(browser.written.at(-1), "http://page/locks?at=12");
  router.setQuery({q: "a"});
  assert.deepEqual([store.past.value.state.offset, store.past.value.playing], [12, true]);
  pass(1000);
  assert.equal(store.past.value.state.offset, 13);
  router.setQuery({at: "12"});
  await settled();
  assert.deepEqual([store.past.value.state.offset, store.past.value.playing], [12, false]);
});

test("another view does not ask for the moment that is loading", async () => {
  browser.asked.length = 0;
  router.go("/now?at=20");
  router.setQuery({q: "b"});
  router.go("/locks");
  await settled();
  assert.deepEqual([browser.asked, store.past.value.state.offset], [["/v1/page?at=20&nearest=true"], 20]);
});

test("an empty moment is none", () => {
  router.go("/locks?at=");
  assert.equal(router.address.value.href, "http://page/locks");
  assert.equal(store.past.value, null);
});
