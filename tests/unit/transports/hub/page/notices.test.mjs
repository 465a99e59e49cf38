import assert from "node:assert/strict";
import {test} from "node:test";
import {DEFAULTS, deskOf, endIn, gather, gathering, isOver, isQuiet, joined, MOMENT_MS, noticeOf, taken, titleOf} from "../../../../../src/coord/transports/hub/page/static/core/notices.js";
import {emptyState} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

process.env.TZ = "Europe/Berlin";
const row = (kind, to, more = {}) => ({kind, level: "trouble", tone: "bad", title: `One ${kind}`, many: `${kind}s`, to, ...more});
const TABLE = {
  "session.ended": [row("crash", "agent", {when: {end_reason: ["dead"]}, only: "agent"})],
  "lock.released": [row("lost", "lock", {when: {end_reason: ["stolen"]}}), row("lost", "lock", {when: {end_reason: ["expired"]}, only: "busy"})],
  "message.sent": [row("sos", "/messages", {when: {kind: ["emergency"]}}), row("mail", "/messages", {only: "me", tone: "ask"})],
  "task.failed": [row("failed", "task", {until: ["task.retried"]})],
  later: [row("new", "/now", {only: "a condition of a newer hub"})],
};
const ME = {token: "t-1", session: "ida-t-1"};

function state() {
  const found = emptyState();
  for (const [session, more] of [["a", {}], ["b", {}], ["p", {person: true}]]) found.tables.sessions.set(session, {session, ...more});
  found.tables.tasks.set("p/t", {project: "p", task: "t", session: "a", state: "in_progress"});
  return found;
}
const notice = (event, who = ME) => noticeOf(TABLE, event, {state: state(), who});
const kind = (event, who) => notice(event, who)?.kind ?? null;

test("a condition names fields and their values, the first row counts", () => {
  assert.equal(kind({event: "session.ended", session: "a", end_reason: "dead"}), "crash");
  assert.equal(kind({event: "session.ended", session: "a", end_reason: "deregistered"}), null);
  assert.equal(kind({event: "message.sent", kind: "emergency", to: ["ida-t-1"]}), "sos");
  assert.equal(kind({event: "task.renewed"}), null);
  assert.equal(kind({event: "constructor"}), null);
  assert.equal(kind({event: "later"}), null);
});

test("a person who leaves has not crashed, nor has who is not known", () => {
  assert.equal(kind({event: "session.ended", session: "p", end_reason: "dead"}), null);
  assert.equal(kind({event: "session.ended", session: "x", end_reason: "dead"}), null);
});

test("a lock that expired is lost only if its session has a task", () => {
  const ended = (session, end_reason) => kind({event: "lock.released", session, resource: "file:a", end_reason});
  assert.deepEqual([ended("a", "expired"), ended("b", "expired"), ended("b", "stolen"), ended("a", "released")], ["lost", null, "lost", null]);
});

test("a message is told to whom it is for", () => {
  const sent = {event: "message.sent", kind: "reply", to: ["b", "ida-t-1"]};
  assert.equal(kind(sent), "mail");
  assert.equal(kind({...sent, to: ["b"]}), null);
  assert.equal(kind({...sent, to: [""]}, {token: "t-2", session: ""}), null);
});

test("what the reader did is no news, but what another person of that name did is", () => {
  const failed = (token) => kind({event: "task.failed", project: "p", task: "t", origin: {user: "ida", token}});
  assert.deepEqual([failed("t-1"), failed("t-2"), kind({event: "task.failed"}, {token: "", session: ""})], [null, "failed", "failed"]);
});

test("a link leads to what the event names, of several to where all of them are", () => {
  const one = notice({event: "task.failed", project: "p/q", task: "t?"}), other = notice({event: "task.failed", project: "p", task: "u"});
  assert.deepEqual([one.path, other.path, joined(one, other).path], ["/task/p%2Fq/t%3F", "/task/p/u", "/plan"]);
  assert.deepEqual([titleOf(one), titleOf(joined(one, other))], ["One failed", "2 faileds"]);
  const again = joined(one, {...one, tone: "wait"});
  assert.deepEqual([again.count, again.path, again.key, again.tone], [1, one.path, one.key, "bad"]);
  assert.notEqual(one.key, other.key);
  assert.equal(joined(undefined, one), one);
});

test("an event ends the notice of the same thing, but not one of several", () => {
  const one = notice({event: "task.failed", project: "p", task: "t"}), other = notice({event: "task.failed", project: "p", task: "u"});
  const over = (found, event, task) => isOver(found, {event, project: "p", task});
  assert.deepEqual([over(one, "task.retried", "t"), over(one, "task.retried", "u"), over(one, "task.skipped", "t"), over(joined(other, one), "task.retried", "t")], [true, false, false, false]);
});

test("what ends within its moment is not told", () => {
  const told = [], soon = new Map(), waits = [];
  const add = gathering((each) => told.push(each.kind), soon, (run) => waits.push(run));
  add(notice({event: "task.failed", project: "p", task: "t"}));
  add(notice({event: "message.sent", kind: "emergency", to: []}));
  endIn(soon, {event: "task.retried", project: "p", task: "t"});
  waits[0]();
  assert.deepEqual(told, ["sos"]);
});

test("a moment makes one notice of each kind", () => {
  const told = [], waits = [];
  const add = gathering((each) => told.push(`${titleOf(each)} ${each.level}`), new Map(), (run, ms) => waits.push([run, ms]));
  const lost = (resource) => notice({event: "lock.released", session: "b", resource, end_reason: "stolen"});
  for (const name of ["x", "y", "z"]) add(lost(name));
  add(notice({event: "task.failed", project: "p", task: "t"}));
  add({...lost("w"), level: "news"});
  assert.deepEqual([told, waits.length, waits[0][1]], [[], 1, MOMENT_MS]);
  waits[0][0]();
  assert.deepEqual(told, ["3 losts trouble", "One failed trouble", "One lost news"]);
  add(lost("x"));
  assert.equal(waits.length, 2, "the next moment begins with the next notice");
  waits[1][0]();
  assert.equal(told.at(-1), "One lost trouble");
});

test("quiet hours are those of the wall clock, over midnight and on the days that are longer or shorter", () => {
  const quiet = (begin, end, time) => isQuiet({quiet: true, begin, end}, Date.parse(time));
  assert.equal(new Date("2026-03-29T00:30:00Z").getHours(), 1, "the zone of this test");
  assert.deepEqual(["20:59", "21:00", "23:30", "05:59", "06:00"].map((at) => quiet("22:00", "07:00", `2026-01-05T${at}:00Z`)), [false, true, true, true, false]);
  assert.deepEqual(["08:59", "09:00", "11:00"].map((at) => quiet("10:00", "12:00", `2026-01-05T${at}:00Z`)), [false, true, false]);
  // On 29 March 2026 02:00 becomes 03:00: quiet hours until 02:30 end at 03:00.
  assert.deepEqual(["00:59", "01:00"].map((at) => quiet("22:00", "02:30", `2026-03-29T${at}:00Z`)), [true, false]);
  // On 25 October 2026 the hour after 02:00 happens twice: 02:15 is quiet both times, and 02:45 never.
  assert.deepEqual(["00:15", "00:45", "01:15", "01:45"].map((at) => quiet("22:00", "02:30", `2026-10-25T${at}:00Z`)), [true, false, true, false]);
  assert.deepEqual([quiet("12:00", "12:00", "2026-01-05T04:00:00Z"), isQuiet({quiet: false, begin: "00:00", end: "23:59"}, 0)], [true, false]);
});

test("the desk tells what the reader chose, while nobody looks, and after the quiet hours", () => {
  const night = Date.parse("2026-01-05T23:00:00Z"), noon = Date.parse("2026-01-05T11:00:00Z");
  const on = {...DEFAULTS, on: true}, quiet = {...on, quiet: true};
  const desk = (settings, level, looking, now) => deskOf(settings, level, {looking, now});
  assert.equal(desk(DEFAULTS, "needs", false, noon), "", "nothing before somebody turns it on");
  assert.deepEqual([desk(on, "needs", false, noon), desk(on, "needs", true, noon), desk(on, "news", false, noon), desk({...on, trouble: "page"}, "trouble", false, noon)], ["now", "", "", ""]);
  assert.deepEqual([desk(quiet, "needs", false, night), desk(quiet, "needs", false, noon), desk(quiet, "needs", true, night)], ["later", "now", ""]);
});

test("what was gathered is taken once", () => {
  const found = new Map();
  gather(found, notice({event: "task.failed", project: "p", task: "t"}));
  gather(found, notice({event: "task.failed", project: "p", task: "u"}));
  assert.deepEqual([found.size, taken(found).map(titleOf), found.size, taken(found)], [1, ["2 faileds"], 0, []]);
});
