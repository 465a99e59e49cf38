import assert from "node:assert/strict";
import {test} from "node:test";
import {agentsOf, fromEvents, ITEMS_MAX, kindsOf, lanes, Past, passes, ticks, timeRange} from "../../../../../src/coord/transports/hub/page/static/core/activity.js";
import {addressOf, conversations, keyOf, merge, pruned, unread} from "../../../../../src/coord/transports/hub/page/static/core/conversations.js";
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
  assert.equal(text("{a}[ with {b}]", {a: "x", b: {}}), "x");
  assert.doesNotMatch(sentence({}, {event: "later.kind", origin: {user: "ada"}}).map((piece) => piece.text ?? "").join(""), /origin/);
  assert.match(sentence({}, {event: "later.kind", who: "ada"}).map((piece) => piece.text ?? piece.value).join(""), /later\.kind.*who=ada/);
});

test("the log of the page grows at both ends, and begins again after a gap", () => {
  const past = new Past();
  past.follow([entry(11, {event: "a"})], 11);
  assert.deepEqual([past.low, past.high, past.trimmed], [10, 11, false]);
  assert.deepEqual(past.older(4, 0), {after: 6, limit: 4});
  past.prepend([{offset: 7, at_ms: 7, event: "b", details: {session: "s"}}, {offset: 11, at_ms: 1, event: "z", details: {}}], 6, 0);
  assert.deepEqual(past.items.map((item) => item.event), ["b", "a"]);
  assert.equal(past.follow([entry(11, {event: "a"})], 11), false);
  past.follow([entry(12, {event: "c"}, {event: "d"})], 12);
  assert.deepEqual(past.items.map((item) => item.key), ["7.0", "11.0", "12.0", "12.1"]);
  past.follow([entry(20, {event: "e"})], 20);
  assert.deepEqual(past.items.map((item) => item.event), ["e"]);
  past.prepend([], 4, 5);
  assert.equal(past.trimmed, true);
});

test("older events come from before a leap of the offsets, too", async () => {
  const leap = 2 ** 40 + 7, log = [98, 99, 100, leap + 1, leap + 2, leap + 3], past = new Past(), asked = [];
  const upTo = (offset) => log.filter((each) => each <= offset).at(-1);
  const get = async (path, {after, limit, at}) => {
    asked.push(path);
    if (path === "/v1/page") return {offset: upTo(at)};
    const found = log.filter((offset) => offset > after).slice(0, limit);
    return {after: found.at(-1) ?? after, events: found.map((offset) => ({offset, at_ms: 1, event: "a", details: {}}))};
  };
  past.follow([entry(leap + 3, {event: "a"})], leap + 3);
  for (let turn = 0; turn < 3 && !past.trimmed; turn += 1) await past.load(get, 5, 98);
  assert.deepEqual(past.items.map((item) => item.offset), log);
  assert.deepEqual(asked, ["/v1/events", "/v1/page", "/v1/events"]);
  const other = new Past();
  other.follow([entry(leap + 1, {event: "a"})], leap + 1);
  await other.load(async (path, query) => {
    other.follow([], 3);
    return get(path, query);
  }, 5, 98);
  assert.deepEqual([other.items, other.low], [[], 3], "it began again in the meantime");
});

test("the log of the page at an earlier time ends there, and begins again before what it has", () => {
  const past = new Past();
  past.follow([entry(11, {event: "a"}), entry(12, {event: "b"}), entry(13, {event: "c"})], 13);
  const live = past.items;
  assert.equal(past.upTo(13), live);
  past.follow([], 12);
  assert.deepEqual(past.upTo(12).map((item) => item.event), ["a", "b"]);
  past.follow([entry(13, {event: "c"})], 13);
  assert.equal(past.upTo(13).length, 3);
  past.follow([], 5);
  assert.deepEqual([past.items, past.low, past.high], [[], 5, 5]);
  past.follow([], 9);
  assert.deepEqual([past.low, past.high], [9, 9]);
});

test("filters find agents, kinds, files, tasks and words, and hide heartbeats", () => {
  const item = {event: "lock.acquired", session: "s", resource: "file:src/a.py", agent: "ada"};
  const fits = (filter, each = item) => passes(each, filter, name, () => "ada locked src/a.py");
  assert.ok(fits({}) && fits({agent: "S"}) && fits({agent: "ada"}) && fits({kind: "lock"}) && fits({kind: "lock.acquired"}) && fits({file: "src"}) && fits({q: "LOCKED ada"}));
  assert.ok(!fits({agent: "bob"}) && !fits({kind: "lo"}) && !fits({file: "b.py"}) && !fits({task: "T-1"}) && !fits({q: "bob"}) && !fits({q: "bob ada"}));
  assert.ok(!fits({}, {...item, event: "lock.renewed"}) && fits({all: "1"}, {...item, event: "lock.renewed"}) && fits({kind: "lock"}, {...item, event: "lock.renewed"}));
  assert.deepEqual(agentsOf([item, {session: "z"}, {session: "system"}], name), ["ada", "SYSTEM", "Z"]);
  assert.deepEqual(agentsOf([{session: "system"}, {session: "s"}], (session) => session), ["s"]);
  assert.deepEqual(fromEvents([{offset: 1, at_ms: 5, event: "a", details: {}}, {offset: 1, at_ms: 5, event: "b", details: {}}]).map((each) => each.key), ["1.0", "1.1"]);
});

test("lanes have bars for claims, locks and waits, also those that began earlier or go on", () => {
  const at = (ms, event, more) => ({event, at: ms, session: "s", ...more});
  const [lane] = lanes([at(50, "lock.acquired", {resource: "r"}), at(150, "lock.released", {resource: "r"}), at(160, "lock.released", {resource: "q", held_s: 0.03}),
    at(170, "task.claimed", {project: "p", task: "t"}), at(171, "lock.denied"), at(172, "lock.denied"), at(180, "lock.denied")], 100, 200, 5);
  assert.deepEqual(lane.bars.map(({kind, from, to, open}) => [kind, from, to, Boolean(open)]), [["lock", 100, 150, false], ["lock", 130, 160, false], ["claim", 170, 200, true]]);
  assert.deepEqual(lane.marks.map((mark) => mark.items.length), [2, 1]);
  const marks = lanes([at(110, "lock.denied"), at(111, "file.edited"), at(112, "lock.denied")], 100, 200, 5)[0].marks;
  assert.deepEqual(marks.map((mark) => [mark.kind, mark.items.length]), [["bad", 2], ["edit", 1]]);
  assert.ok(ticks(0, 3_600_000, 6).length <= 7);
});

test("a lock and a claim that move go on in the lane of the successor", () => {
  const at = (ms, event, more) => ({event, at: ms, session: "s", project: "p", task: "t", resource: "r", ...more});
  const moved = {successor: "t"};
  const bars = (items) => Object.fromEntries(lanes(items, 100, 300).map((lane) => [lane.session,
    lane.bars.map(({kind, from, to, open}) => [kind, from, to, Boolean(open)])]));
  assert.deepEqual(bars([at(110, "lock.acquired"), at(120, "task.claimed"), at(200, "lock.moved", moved), at(210, "task.moved", moved), at(250, "lock.released", {session: "t"})]),
    {s: [["lock", 110, 200, false], ["claim", 120, 210, false]], t: [["lock", 200, 250, false], ["claim", 210, 300, true]]});
  assert.deepEqual(bars([at(200, "lock.moved", moved)]), {s: [["lock", 100, 200, false]], t: [["lock", 200, 300, true]]});
});

test("waits have bars, what ended before the window has none, and each session has its lane", () => {
  const at = (ms, event, more) => ({event, at: ms, session: "s", ...more});
  const found = lanes([at(50, "lock.waiting", {resources: ["a", "b"]}), at(60, "lock.acquired", {resource: "x"}), at(70, "lock.released", {resource: "x"}),
    at(120, "lock.waiting", {session: "t", resources: ["a"]}), at(130, "lock.withdrawn", {resources: ["a", "b"]}), at(140, "lock.wait_ended", {session: "t", resources: ["a"]}),
    at(150, "session.hung", {session: "system"}), at(160, "lock.deadlock", {session: "u", victim: "v"}), at(400, "session.ended")], 100, 200);
  assert.deepEqual(found.map((lane) => [lane.session, lane.bars.map(({kind, from, to}) => [kind, from, to])]),
    [["v", []], ["t", [["wait", 120, 140]]], ["s", [["wait", 100, 130]]]]);
  for (const event of ["task.completed", "task.released", "task.expired", "task.superseded"]) {
    const [lane] = lanes([at(110, "task.claimed", {project: "p", task: "t"}), at(150, event, {project: "p", task: "t"})], 100, 200);
    assert.deepEqual(lane.bars.map(({to, open}) => [to, open]), [[150, undefined]], event);
  }
  const [lane] = lanes([at(180, "task.completed", {project: "p", task: "t", worked_ms: 30})], 100, 200);
  assert.deepEqual([lane.bars[0].from, lane.bars[0].to], [150, 180]);
});

test("a time axis has round marks in the zone of the reader", () => {
  const [zone, from] = [new Date(0).getTimezoneOffset() * 60_000, 1_000];
  assert.deepEqual(ticks(from, from + 3_600_000, 6).map((at) => (at - zone) % 900_000), [0, 0, 0, 0]);
  assert.equal(ticks(0, 365 * 86_400_000, 6).length > 6, true, "a long time has no step that is long enough");
  assert.deepEqual(ticks(5_000, 9_000, 6), [5_000, 6_000, 7_000, 8_000, 9_000]);
});

test("a session is meant by every field that names one, and a task by its project too", () => {
  const fits = (filter, item) => passes({event: "lock.denied", ...item}, filter, name, () => "");
  for (const field of ["session", "by", "victim", "successor", "holder", "parent"]) assert.ok(fits({agent: "s"}, {[field]: "s"}), field);
  assert.ok(fits({agent: "s"}, {to: ["r", "s"]}) && fits({agent: "s"}, {cycle: ["s"]}) && fits({agent: "s"}, {to: "s"}) && !fits({agent: "s"}, {agent: "t"}));
  assert.ok(fits({file: "b.py"}, {files: ["a.py", "b.py"]}) && fits({file: "b.py"}, {resources: ["file:b.py"]}));
  assert.ok(fits({task: "T"}, {project: "p", task: "T"}) && fits({task: "p/T"}, {project: "p", task: "T"}) && !fits({task: "q/T"}, {project: "p", task: "T"}));
});

test("of one project a reader sees gaps that are none", () => {
  const past = new Past();
  past.follow([entry(2, {event: "a"})], 2, "one");
  assert.equal(past.follow([entry(2, {event: "a"}), entry(9, {event: "b"})], 9, "one"), true);
  assert.deepEqual(past.items.map((item) => item.event), ["a", "b"]);
  assert.equal(past.follow([], 12, "one"), false);
  assert.equal(past.high, 12);
  assert.equal(past.trimmed, false);
  assert.deepEqual([past.older(100, 0), past.older(100, 2)], [{after: 0, limit: 1}, {after: 1, limit: 1}]);
  assert.equal(past.follow([], 20, "another snapshot"), true);
  assert.deepEqual([past.items, past.low, past.high], [[], 20, 20], "what was missed before it is loaded like what is older");
});

test("what had happened by a moment is looked up once", () => {
  const past = new Past();
  past.follow([entry(1, {event: "a"}), entry(2, {event: "b"})], 2);
  const found = past.upTo(1);
  assert.equal(past.upTo(1), found);
  past.follow([entry(3, {event: "c"})], 3);
  assert.deepEqual(past.upTo(2).map((item) => item.event), ["a", "b"]);
});

test("a filter has every kind of event", () => {
  assert.deepEqual(kindsOf(["work.resumed", "lock.denied", "work.held"]), [["lock", ["lock.denied"]], ["work", ["work.held", "work.resumed"]]]);
});

test("a page that stays open forgets the oldest items, whole entries of them", () => {
  const past = new Past(), many = 1000;
  const large = (offset) => entry(offset, ...Array.from({length: many}, () => ({event: "a"})));
  past.follow([large(1)], 1);
  for (let offset = 2; offset <= 30; offset += 1) past.follow([large(offset)], offset);
  assert.ok(past.items.length <= ITEMS_MAX * 1.2 && past.items.length >= ITEMS_MAX - many);
  assert.deepEqual([past.items[0].key, past.items.length % many, past.high, past.trimmed], [`${past.low + 1}.0`, 0, 30, false]);
  past.prepend([], past.low - 1, 0);
  assert.equal(past.follow([large(31)], 31), true);
});

test("what is written in a conversation goes to the others", () => {
  const to = (kind, key, ...parties) => addressOf({kind, key, parties: new Set(parties)}, "me");
  assert.deepEqual([to("pair", "ada\nme", "ada", "me"), to("pair", "me\nzed", "zed", "me"), to("pair", "", "ada", "bob"), to("group", "group:g", "a"), to("everybody", "everybody", "a")],
    ["ada", "zed", "bob", "group:g", ""]);
});

test("names of files that git quotes are as they are", () => {
  const diff = (name, more = "") => `diff --git ${name.replace("a/", "a/")} ${name.replace("a/", "b/")}\n${more}`;
  assert.equal(parseDiff(diff('"a/q\\"b\\\\tc\\td\\001.py"'))[0].path, 'q"b\\tc\td\\001.py');
  assert.equal(parseDiff(diff("a/ä b.py", "--- a/ä b.py\t\n+++ b/ä b.py\t\n"))[0].path, "ä b.py");
  const [renamed] = parseDiff(diff('"a/x\\ty"', 'rename from "x\\"y"\nrename to "x\\ty"\n'));
  assert.deepEqual([renamed.oldPath, renamed.path], ['x"y', "x\ty"]);
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
  assert.deepEqual(pruned({a: 1, b: 2, c: 3}, new Set(["a", "b", "c"]), 2), {b: 2, c: 3});
  assert.deepEqual([...pair.parties].sort(), ["a", "b"]);
  assert.deepEqual([...found.find((one) => one.kind === "system").parties], ["a"]);
  assert.equal(found[0].kind, "group", "the newest is first");
  assert.equal(keyOf({from: "system", to: ["a", "b"]}), "everybody");
  const late = merge([sent("1", "a", ["b"])], [{id: "1", sender: "a", to: ["b"], sent_ms: 9, kind: "k", subject: "1", body: "x"}]);
  assert.equal(late[0].at, 1, "the log says when it was sent");
  assert.equal(merge([events[4]], [{id: "5", sender: "a", to: ["b"], sent_ms: 9, kind: "k", subject: "5", body: "x"}])[0].group, "g");
});

test("a diff has files, hunks and numbered lines, and a line of a hunk is never a header", () => {
  const [file, other] = parseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@ f\n same\n-old\n--- a/no\n+++ b/no\n+<script>\ndiff --git a/p b/q\nrename from p\nrename to q\nBinary files differ\n");
  assert.equal(file.path, "x");
  assert.deepEqual(file.lines.map((line) => [line.kind, line.text]).slice(0, 3), [["hunk", "@@ -1,2 +1,3 @@ f"], ["same", "same"], ["del", "old"]]);
  assert.deepEqual([other.path, other.oldPath, other.binary], ["q", "p", true]);
  assert.equal(diffRows([file, other]).at(-1).text, "a binary file");
  assert.deepEqual(parseDiff(""), []);
});

test("names of files are read also if they look like two", () => {
  const paths = (text) => parseDiff(text).map((file) => file.path);
  const gone = "deleted file mode 100644\n--- a/a b/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
  assert.deepEqual(paths(`diff --git a/a b/c b/a b/c\n${gone}`), ["a b/c"]);
  assert.deepEqual(paths('diff --git "a/\\303\\274" "b/\\303\\274"\nBinary files differ\n'), ["\\303\\274"]);
  assert.deepEqual(paths("diff --git a/old b/newer\nsimilarity index 90%\nrename from old\nrename to newer\n--- a/old\n+++ b/newer\n@@ -1 +1 @@\n-x\n+y\n"), ["newer"]);
  const [moved] = parseDiff("diff --git a/old b/newer\nsimilarity index 100%\nrename from old\nrename to newer\n");
  assert.deepEqual([moved.oldPath, moved.path], ["old", "newer"]);
});

test("a hunk ends after its lines, and says where a file has no end of line", () => {
  const [file] = parseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3 +7 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n@@ -9,0 +12,1 @@\n+c\nnoise\n");
  assert.deepEqual(file.lines.map((line) => [line.kind, line.text, line.old, line.new]), [["hunk", "@@ -3 +7 @@", undefined, undefined], ["del", "a", 3, undefined],
    ["note", "No newline at end of file", undefined, undefined], ["add", "b", undefined, 7], ["note", "No newline at end of file", undefined, undefined],
    ["hunk", "@@ -9,0 +12,1 @@", undefined, undefined], ["add", "c", undefined, 12]]);
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

test("amounts and durations that nobody measured count for nothing", () => {
  const numbers = fresh();
  for (const n of [-1, 0, "5", null, NaN, 1e15, true]) extend(numbers, {offset: numbers.offset + 1, at: 0, events: [{event: "u", n}]});
  assert.deepEqual(numbers.counts.done, [0, 0]);
  extend(numbers, {offset: 99, at: -5, events: [{event: "t", ms: 0}, {event: "t", ms: 1000}, {event: "t", ms: 99_000}]});
  assert.deepEqual([numbers.counts.done, numbers.spans.wait], [[3, 0], [[1, 0, 1], []]], "a time before the window counts for its first bucket");
  assert.equal(grow(numbers, 2_000), 1);
  assert.equal(numbers.levels.agents.at(-1), 2, "a level that nobody named goes on");
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

test("at an earlier time a message counts once it was sent", () => {
  const sent = {event: "message.sent", id: "1", session: "a", to: ["b"], kind: "k", subject: "one", at: 10, offset: 1};
  const stored = (id, at) => ({id, sender: "a", to: ["b"], sent_ms: at, kind: "k", subject: id, body: "text"});
  const texts = [stored("1", 10), stored("0", 5), stored("2", 10), stored("3", 11)];
  assert.deepEqual(merge([sent], texts, 10).map((each) => each.id), ["0", "1"]);
  assert.equal(merge([sent], texts).length, 4);
});
