import assert from "node:assert/strict";
import {test} from "node:test";
import {acts, group, many, MANY_MAX, ofAgent, ofLock, ofQuestion, ofTask, remedyActs, typed} from "../../../../../src/coord/transports/hub/page/static/core/acts.js";
import {commandLine, quoted} from "../../../../../src/coord/transports/hub/page/static/core/format.js";

const LOCK = {session: "s-ada", agent: "ada", resource: "file:src/a.py", fence: 7};
const TASK = {project: "shop", task: "A-1", state: "failed"};

test("a command is what a person would type, and a request says the same", () => {
  const values = {reason: " it  is\nold "};
  const release = acts.release(LOCK);
  assert.equal(release.command(values), "coord steal src/a.py --force --release --fence 7 --reason 'it is old'");
  assert.deepEqual(release.request(values), {path: "/v1/locks/steal", body: {resources: ["file:src/a.py"], force: true, release: true, fence: 7, reason: "it is old"}});
  assert.equal(acts.skip(TASK).command(values), "coord --project shop task skip A-1 --reason 'it is old'");
  assert.equal(acts.end({session: "s-ada", agent: "ada"}).request(values).path, "/v1/sessions/s-ada?force=true&reason=it+is+old");
  assert.equal(acts.message("", "").command({kind: "warn", subject: "-x", body: ""}), "coord broadcast warn -- -x");
  assert.equal(acts.answer({id: "q1"}, undefined, {other: true}).command({answer: "-n", reason: "-r"}), "coord decide q1 --other --reason=-r -- -n");
});

test("a path is never taken for a name, and what the log has escaped stays so", () => {
  assert.equal(typed("file:LICENSE"), "./LICENSE");
  assert.equal(typed("file:-rf"), "./-rf");
  assert.equal(typed("file:name:x/y"), "./name:x/y");
  assert.equal(typed("file:app/\\[id\\]/a.ts"), "app/\\[id\\]/a.ts");
  assert.equal(typed("file:src/*.py"), "src/*.py");
  assert.equal(typed("name:deploy"), "name:deploy");
  assert.equal(acts.release({...LOCK, resource: "file:a\\*b"}).command({reason: "x"}), "coord steal './a\\*b' --force --release --fence 7 --reason x");
});

test("no text leaves its quotes, and a terminal obeys none of it", () => {
  assert.equal(quoted("it's $(rm -rf /) `x`"), "'it'\\''s $(rm -rf /) `x`'");
  assert.equal(quoted("a\u001b[2Jb'\\\n"), "$'a\\u001b[2Jb\\'\\\\\\n'");
  assert.equal(quoted(""), "''");
  assert.equal(commandLine(["coord", "send", {free: "--help"}]), "coord send -- --help");
});

test("what hurts takes a reason, and what can be undone says how", () => {
  const hurting = [acts.release(LOCK), acts.steal(LOCK), acts.preempt(LOCK), acts.skip(TASK), acts.reset(TASK), acts.disable("shop", "ada"), acts.end(LOCK), acts.hold("stopped")];
  for (const act of hurting) assert.ok(act.hurts && act.reason && act.role === "admin", act.id);
  assert.equal(acts.skip(TASK).undo().id, "retry");
  assert.equal(acts.disable("shop", "ada").undo().id, "enable");
  assert.equal(acts.enable("shop", "ada").undo().id, "disable");
  assert.equal(acts.hold("paused").undo().undo().id, "pause");
  assert.equal(acts.steal(LOCK).undo().request().path, "/v1/handoffs");
  assert.equal(acts.setSetting({name: "hung_seconds", value: 600, source: "store"}, 900).undo().command(), "coord limits set hung_seconds=600");
  assert.equal(acts.setSetting({name: "max_agents", value: "unlimited", source: "default", project: "shop"}, 3).undo().command(), "coord --project shop limits set max_agents=default");
  assert.equal(acts.setLimit("acme", {name: "max_active_sessions", value: 50}).undo(null, {value: "60"}).command(), "coord --tenant acme limits set max_active_sessions=50");
});

test("a lock that is taken over ends those that overlap, and nothing gives several back", () => {
  const ada = {...LOCK, mode: "read"}, bob = {session: "s-bob", agent: "bob", resource: LOCK.resource}, cy = {session: "s-cy", resource: "file:src"}, far = {session: "s-d", agent: "dan", resource: "file:docs"};
  const locks = new Map([ada, bob, cy, far].map((each) => [each.session, each]));
  const both = acts.steal(ada, locks), one = acts.steal(far, locks);
  assert.equal(both.words(), "ada, bob, s-cy (src) lose it at once, which nothing undoes, and you hold it, before everybody who waits.");
  assert.equal(one.words(), "dan loses it at once, and you hold it, before everybody who waits.");
  locks.clear();
  assert.deepEqual([both.undo(), one.undo().id], [undefined, "give_back"], "as it was before");
  assert.match(ofLock(bob, new Map([["1", ada], ["2", bob]])).find((each) => each.id === "steal").words(), /^bob, ada lose/);
});

test("a task that somebody works on is reset before it is assigned", () => {
  const open = acts.assign(TASK, ["bob"]), busy = acts.assign({...TASK, state: "in_progress", agent: "ada"}, ["bob"]);
  assert.deepEqual([open.id, open.role, open.request({agent: "bob", minutes: "5"}).length], ["assign", "operate", 1]);
  assert.deepEqual([busy.id, busy.role, busy.hurts], ["reassign", "admin", true]);
  assert.deepEqual(busy.request({agent: "bob", minutes: "5", reason: "slow"}).map((each) => each.path), ["/v1/projects/shop/tasks/A-1/reset", "/v1/projects/shop/tasks/A-1/assign"]);
  assert.equal(busy.command({agent: "bob", minutes: "5", reason: "slow"}), "coord --project shop task reset A-1 --reason slow && coord --project shop task assign A-1 bob --for 5m");
});

test("a setting is typed or chosen within its range, and a number is sent as one", () => {
  const typed_ = acts.setSetting({name: "hung_seconds", value: 600, low: 30, high: 1000}), chosen = acts.setSetting({name: "steal_policy", value: "strict", choices: ["strict", "dead_or_expired"]});
  assert.deepEqual([typed_.fields[0].type, typed_.fields[0].min, typed_.fields[0].max, chosen.fields[0].options.length], ["number", 30, 1000, 2]);
  assert.deepEqual(typed_.request({value: "900"}).body, {settings: {hung_seconds: 900}});
  assert.deepEqual(chosen.request({value: "strict"}).body, {settings: {steal_policy: "strict"}});
  assert.equal(acts.setSetting({name: "max_agents", project: "shop"}, "default").command({}), "coord --project shop limits set max_agents=default");
});

test("a token that a browser makes does not outlive the browser's own", () => {
  const free = acts.createToken(), limited = acts.createToken(5.5 * 3_600_000), late = acts.createToken(60_000);
  const hours = (act) => { const {value, min, max} = act.fields.at(-1); return [value, min, max]; };
  assert.deepEqual([hours(free), hours(limited), hours(late)], [["720", 0, 87_600], ["5", 1, 5], ["1", 1, 1]]);
  assert.equal(free.request({role: "view", hours: "0"}).body.ttl_ms, undefined);
  assert.equal(limited.request({role: "view", hours: "5"}).body.ttl_ms, 5 * 3_600_000);
  assert.equal(limited.command({role: "view", hours: "5", label: "ci"}), "coord token create --role view --label ci --expires 5h");
});

test("an act on many has the words of one and the commands of all", () => {
  const all = many([TASK, {...TASK, task: "A-2"}].map((task) => ({label: task.task, act: acts.skip(task)})), "task");
  assert.equal(all.title, "Skip 2 tasks");
  assert.equal(all.command({reason: "x"}).split("\n").length, 2);
  assert.deepEqual([all.undo, all.hurts, all.role], [undefined, true, "admin"]);
  assert.equal(all.words, acts.skip(TASK).words);
});

test("the words of an act on many name none of them", () => {
  const two = (make, ...records) => many(records.map((record) => ({label: "x", act: make(record)})), "thing").words;
  const bob = {...LOCK, session: "s-bob", agent: "bob", fence: 8};
  for (const make of [acts.release, acts.steal]) assert.match(two(make, LOCK, bob), /^Their holders lose them at once/);
  assert.match(two(acts.reset, TASK, {...TASK, session: "s-bob", agent: "bob"}), /^Whoever works on one of them/);
  assert.doesNotMatch(two(acts.assign, {...TASK, state: "in_progress", agent: "ada"}, {...TASK, state: "in_progress", agent: "bob"}), /ada|bob/);
  assert.equal(two((words) => ({...acts.skip(TASK), words}), "one", "other"), "");
});

const ids = (found) => found.map((each) => each.id);

test("what can be done to a thing depends on its state", () => {
  assert.deepEqual(ids(ofTask(TASK, "failed")), ["retry", "skip", "reset"]);
  assert.deepEqual(ids(ofTask({...TASK, state: "in_progress", session: "s"}, "expired")), ["message", "reassign", "reset"]);
  assert.deepEqual([ids(ofTask(TASK, "done")), ids(ofTask(TASK, "skipped")), ids(ofTask({...TASK, state: undefined}, "waiting"))], [["reset"], ["retry", "reset"], ["assign", "skip"]]);
  assert.deepEqual(ids(ofLock(LOCK)), ["preempt", "release", "steal", "message"]);
  const agent = {session: "s-ada", agent: "ada", project: "shop"};
  assert.deepEqual(ids(ofAgent(agent, new Map())), ["message", "disable", "end"]);
  assert.deepEqual(ids(ofAgent(agent, new Map([["shop/ada", {disabled: true}]]))), ["message", "enable", "end"]);
  assert.deepEqual(ids(ofAgent({session: "s"}, new Map())), ["message", "end"]);
  assert.deepEqual(ofQuestion({id: "q", options: ["yes"]}).map((each) => each.label), ["yes", "Other…", "Withdraw"]);
  assert.deepEqual(ofQuestion({id: "q", kind: "permission", options: ["allow"]}).map((each) => each.label), ["allow", "Withdraw"]);
  assert.deepEqual(ofQuestion({id: "q"}).map((each) => each.label), ["Answer…", "Withdraw"]);
  assert.deepEqual(ofQuestion({id: "q", kind: "attention", options: ["yes"]}).map((each) => each.label), ["Withdraw"], "nobody hears an answer");
  assert.match(ofQuestion({id: "q", kind: "attention"})[0].words, /^It waits in its terminal/);
  assert.deepEqual(remedyActs(["decide", "q", "ANSWER"], {tables: {questions: new Map([["q", {id: "q", kind: "attention"}]])}}), []);
});

test("an option is answered as it is spelled", () => {
  const act = acts.answer({id: "q1"}, "two  spaces");
  assert.equal(act.request({}).body.answer, "two  spaces");
  assert.equal(act.command({}), "coord decide q1 'two  spaces'");
});

test("alerts that were right and false alarms are two acts for many", () => {
  const each = ["a1", "a2"].map((id) => ({label: id, acts: [acts.closeAlert({id}, true), acts.closeAlert({id}, false)]}));
  assert.deepEqual(group(each, "alert").map((act) => [act.label, act.command({})]), [["Confirm 2 alerts", "coord alerts close a1 --true\ncoord alerts close a2 --true"], ["Dismiss 2 alerts", "coord alerts close a1 --false\ncoord alerts close a2 --false"]]);
});

test("what matches is grouped by what can be done to it, up to a limit", () => {
  const each = Array.from({length: MANY_MAX + 5}, (_, at) => ({label: `T-${at}`, acts: ofTask({...TASK, task: `T-${at}`}, at ? "failed" : "done")}));
  const [reset, retry, skip] = group(each, "task");
  assert.deepEqual([reset.label, reset.each.length, retry.label, skip.id], ["Reset 200 of 205 tasks", MANY_MAX, "Retry 200 of 204 tasks", "many_skip"]);
  assert.equal(reset.command({reason: "x"}).split("\n").length, MANY_MAX);
  assert.deepEqual(ids(group(each.slice(0, 1), "task")), ["reset"], "one alone can be undone");
  assert.equal(many([{label: "ada", act: acts.end(LOCK)}, {label: "bob", act: acts.end(LOCK)}], "agent").label, "End the sessions of 2 agents");
});

test("the undo of a mode of work is what was before", () => {
  assert.equal(acts.hold("stopped").undo({before: "paused"}).id, "pause");
  assert.equal(acts.hold("stopped").undo({before: "on"}).id, "resume");
});

test("a reply says whom it answers, and a new message asks to whom it goes", () => {
  const reply = acts.message("s-bob", "bob", {id: "m1", subject: "look"});
  assert.deepEqual([reply.title, reply.fields.find((field) => field.name === "subject").value], ["Reply", "Re: look"]);
  assert.equal(reply.request({kind: "reply", subject: "x"}).body.reply_to, "m1");
  assert.equal(reply.command({kind: "reply", subject: "x"}), "coord send s-bob reply x --reply-to m1");
  const free = acts.message();
  assert.deepEqual([free.fields[0].name, free.command({to: "", kind: "warn", subject: "x"}), free.request({to: " s-ada ", kind: "warn", subject: "x"}).body.to], ["to", "coord broadcast warn x", "s-ada"]);
});

// The commands of `core/why`, as its source has them: the test of the same name in Python gives them.
test("every remedy of the hub is an act, or one that needs a terminal", () => {
  const remedies = JSON.parse(process.env.REMEDIES ?? "[]");
  const known = {project: "shop", tables: {
    questions: new Map([["X", {id: "X", options: ["yes"]}]]), sessions: new Map(), tasks: new Map(), locks: new Map([["1", {...LOCK, resource: "X"}]])}};
  const inTerminal = ["track", "task claim", "merge"];
  for (const words of remedies) {
    const found = remedyActs(words, known), alone = inTerminal.some((each) => words.join(" ").startsWith(each));
    assert.equal(found.length > 0, !alone, words.join(" "));
    for (const act of found) assert.match(act.command({}), /^coord /);
  }
  assert.deepEqual(ids(remedyActs(["steal", "file:src/a.py", "--force"], {...known, tables: {...known.tables, locks: new Map([["1", LOCK]])}})), ["release"]);
  assert.deepEqual(remedyActs(["decide", "gone", "ANSWER"], known), []);
  assert.deepEqual(remedyActs(["steal", "gone"], known), []);
  const [limit] = remedyActs(["limits", "set", "max_agents=4"], known);
  assert.deepEqual([limit.command(), limit.undo], ["coord --project shop limits set max_agents=4", undefined], "nobody knows what it was");
  assert.deepEqual(remedyActs(["dance"], known), []);
});
