import assert from "node:assert/strict";
import {test} from "node:test";
import * as api from "../../../../../src/coord/transports/hub/page/static/core/api.js";
import * as format from "../../../../../src/coord/transports/hub/page/static/core/format.js";
import {newsSince} from "../../../../../src/coord/transports/hub/page/static/core/away.js";
import {next, types} from "../../../../../src/coord/transports/hub/page/static/core/keys.js";
import {link, match, resolve} from "../../../../../src/coord/transports/hub/page/static/core/router.js";

test("durations have at most two units", () => {
  const said = {0: "0s", 59: "59s", 60: "1m", 100: "1m40s", 599: "9m59s", 840: "14m", 845: "14m", 3600: "1h", 3900: "1h5m", 86_400: "1d", 93_600: "1d2h"};
  for (const [seconds, words] of Object.entries(said)) assert.equal(format.duration(Number(seconds)), words);
  assert.equal(format.duration(-5), "0s");
});

test("times, money, counts and places", () => {
  assert.equal(format.ago(0, 5), "");
  assert.equal(format.ago(4000, 5000), "now");
  assert.equal(format.ago(1000, 61_000), "1m ago");
  assert.equal(format.left(5, 5), "expired");
  assert.equal(format.left(65_000, 5000), "1m");
  assert.equal(format.money(1_240_000), "$1.24");
  assert.equal(format.money(5), "<$0.01");
  assert.equal(format.money(0), "$0.00");
  assert.deepEqual([{cost: 1_240_000}, {estimated: 740_000}, {cost: 10_000, estimated: 10_000, unpriced: 5}, {unpriced: 5}, {}].map(format.spent), ["$1.24", "~$0.74", "~$0.02+?", "?", ""]);
  assert.equal(format.count(1, "lock"), "1 lock");
  assert.equal(format.count(2, "branch merged", "branches merged"), "2 branches merged");
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 101, 112].map(format.ordinal), ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "101st", "112th"]);
  assert.equal(format.bytes(1536), "1.5 KB");
  assert.equal(format.bytes(0), "0 B");
});

test("a day begins at zero o'clock", () => {
  assert.equal(format.clock(new Date(2026, 0, 2).getTime()), "00:00:00");
});

test("the time that is left, in words", () => {
  assert.deepEqual([0, 5, 6000].map((ms) => format.timeLeft(ms, 1000)), ["no limit", "expired", "5s left"]);
});

test("control characters and marks that turn text around are shown, not obeyed", () => {
  assert.equal(format.visible("a\u0000b\u001b[31m\u007f"), "a␀b␛[31m␡");
  assert.equal(format.visible("x\u202egnp.exe\u2066\u200b"), "x⟨202e⟩gnp.exe⟨2066⟩⟨200b⟩");
  assert.equal(format.visible("line\nnext\ttab ünïcode 日本"), "line\nnext\ttab ünïcode 日本");
  assert.equal(format.visible(null), "");
});

test("words of a command line are quoted where a shell would read more into them", () => {
  assert.equal(format.quoted("src/a.py"), "src/a.py");
  assert.equal(format.quoted("it's; rm -rf $HOME"), `'it'\\''s; rm -rf $HOME'`);
  assert.equal(format.quoted(""), "''");
  assert.equal(format.quoted("a\nb"), "$'a\\nb'");
});

test("addresses match their patterns, with escaped names", () => {
  assert.deepEqual(match("/task/:project/:task", "/task/shop/A%2F1"), {project: "shop", task: "A/1"});
  assert.equal(match("/task/:project/:task", "/task/shop"), null);
  assert.equal(match("/task/:project/:task", "/task/shop/%E0%A4%A"), null, "no UTF-8");
  assert.equal(match("/task/:project/:task", "/task/shop/"), null);
  assert.deepEqual(match("/locks", "/locks/"), {});
  assert.equal(match("/locks", "/locksmith"), null);
  assert.equal(link.file("a[1].py"), "/locks?on=file%3Aa%5C%5B1%5D.py");
  for (const name of ["a/b", "a b", "ü", "a?b#c", "%2F"]) {
    assert.deepEqual(match("/agent/:session", link.agent(name)), {session: name});
    assert.deepEqual(match("/task/:p/:t", link.task(name, name)), {p: name, t: name});
  }
});

test("the first view is at /, and an unknown address has none", () => {
  const views = [{path: "/now"}, {path: "/task/:project/:task", also: ["/t/:task"]}];
  assert.equal(resolve(views, new URL("http://h/")).view, views[0]);
  assert.deepEqual(resolve(views, new URL("http://h/t/A?q=x&at=5")), {view: views[1], values: {task: "A"}, query: {q: "x", at: "5"}});
  assert.equal(resolve(views, new URL("http://h/constructor")).view, null);
});

test("keys run alone or in sequence", () => {
  const run = (name) => ({run: name});
  const known = new Map([["?", run("help")], ["g n", run("now")], ["g l", run("locks")], ["l", run("alone")]]);
  assert.deepEqual(next(known, "", "?"), {run: "help", started: ""});
  assert.deepEqual(next(known, "", "g"), {run: null, started: "g"});
  assert.deepEqual(next(known, "g", "l"), {run: "locks", started: ""});
  assert.deepEqual(next(known, "g", "?"), {run: "help", started: ""}, "a sequence that leads nowhere is forgotten");
  assert.deepEqual(next(known, "", "z"), {run: null, started: ""});
  assert.deepEqual(next(new Map([["Escape", run("back")]]), "", "E"), {run: null, started: ""});
});

test("keys run on a checkbox and a slider, where nobody types", () => {
  const at = (type, found = {}) => types({type, closest: () => found});
  assert.deepEqual([at("text"), at("datetime-local"), at("select-one"), at("checkbox"), at("range"), at("button", null), types(null)], [true, true, true, false, false, false, false]);
});

const answering = (status, text) => async () => ({ok: status < 400, status, text: async () => text});

test("a refusal has the hub's message and hint", async () => {
  const body = JSON.stringify({code: "locked", detail: "a.py is locked by ada", hint: "wait", holder: "s1"});
  await assert.rejects(api.request("/x", {fetcher: answering(409, body)}), (error) =>
    error.status === 409 && error.code === "locked" && error.message === "a.py is locked by ada" && error.hint === "wait" && error.problem.holder === "s1");
  await assert.rejects(api.request("/x", {fetcher: answering(502, "<html>")}), /the hub answered 502/);
  await assert.rejects(api.request("/x", {fetcher: async () => { throw new TypeError("failed"); }}), (error) => error.status === 0 && /does not answer/.test(error.message));
});

test("an answer is decoded, also an empty one, and a write carries its key", async () => {
  assert.deepEqual(await api.request("/x", {fetcher: answering(200, '{"a":1}')}), {a: 1});
  assert.equal(await api.request("/x", {fetcher: answering(204, "")}), null);
  let sent;
  await api.request("/x", {method: "POST", body: {b: 1}, key: "k", fetcher: async (path, options) => { sent = options; return {ok: true, status: 200, text: async () => ""}; }});
  assert.deepEqual([sent.method, sent.body, sent.headers["Idempotency-Key"], sent.headers["Content-Type"], sent.credentials], ["POST", '{"b":1}', "k", "application/json", "same-origin"]);
});

test("queries and paths are escaped", () => {
  assert.equal(api.queryOf({a: 1, b: ["x", "y"], c: "", d: null, e: undefined, f: "a&b", g: false}), "?a=1&b=x&b=y&f=a%26b&g=false");
  assert.equal(api.queryOf({}), "");
  assert.equal(api.path`/v1/sessions/${"a/b?"}/x`, "/v1/sessions/a%2Fb%3F/x");
  assert.match(api.newKey(), /^page-[0-9a-f]{32}$/);
  assert.notEqual(api.newKey(), api.newKey());
});

test("who was away for some minutes is told what is new since then, and only if something is", () => {
  const last = {at: 1_000, offset: 7};
  assert.equal(newsSince(last, 1_000 + 5 * 60_000 + 1, 8), 1_000);
  assert.equal(newsSince(last, 1_000 + 5 * 60_000, 8), 0);
  assert.equal(newsSince(last, 1e12, 7), 0);
  assert.equal(newsSince(undefined, 1e12, 8), 0);
});

test("places, commands and sizes", () => {
  assert.deepEqual([format.resource("file:src/a.py"), format.resource("name:x"), format.resource(null)], ["src/a.py", "name:x", ""]);
  assert.equal(format.commandLine(["task", "done", {free: "-rf"}, {free: "a b"}, "--x"]), "coord task done 'a b' --x -- -rf".slice(6));
  assert.equal(format.quoted("a\u202eb"), "$'a\\u202eb'");
  assert.equal(format.quoted("\\\u0007'"), "$'\\\\\\u0007\\''");
  assert.deepEqual([1023, 1024, 1024 ** 3, 1024 ** 6].map(format.bytes), ["1023 B", "1.0 KB", "1.0 GB", "1048576.0 TB"]);
  assert.equal(format.when(0), "");
  assert.equal(format.when(5_000, 6_000), format.clock(5_000));
  assert.equal(format.when(5_000, 1e12), `${format.day(5_000)} ${format.clock(5_000)}`);
  assert.equal(format.visible("\u200b\ufeff\u0085"), "⟨200b⟩⟨feff⟩⟨0085⟩");
});
