// Prints every act of the page as JSON, for records that the test has prepared: {acts: [{id, role, requests, undo}], unused}.

import {acts as table} from "../../../../../src/coord/transports/hub/page/static/core/acts.js";

const given = JSON.parse(process.argv[2]), unused = new Set(Object.keys(table));
const acts = Object.fromEntries(Object.entries(table).map(([name, make]) => [name, (...more) => {
  unused.delete(name);
  return make(...more);
}]));
const values = {value: "dead_or_expired", reason: "it is late", note: "seen", answer: "yes", agent: "bob", minutes: "5", priority: "9", grace: "60", kind: "warn", subject: "look", body: "two\nlines", role: "view", label: "hall", hours: "1"};
const all = [acts.message("s-bob"), acts.answer(given.question), acts.withdraw(given.other_question), acts.closeAlert(given.alert, true), acts.closeAlert(given.alert, false), acts.assign(given.open_task), acts.assign(given.busy_task), acts.preempt(given.locks[0]),
  acts.release(given.locks[1]), acts.steal(given.locks[2]), acts.giveBack(given.locks[2]), acts.skip(given.open_task), acts.retry(given.open_task), acts.reset(given.open_task), acts.disable("p", "bob"), acts.enable("p", "bob"),
  acts.setSetting({name: "hung_seconds", value: 600, source: "default"}, 900), acts.setSetting({name: "steal_policy", choices: ["strict", "dead_or_expired"]}), acts.setSetting({name: "max_agents", project: "p"}, 3), acts.setLimit("local", {name: given.limit, value: 50}, 7), acts.createToken(), acts.revokeToken(given.token), acts.decideReaction({id: "41.0.chat"}, true), acts.decideReaction({id: "42.0.chat"}, false),
  acts.hold("paused"), acts.hold("draining"), acts.hold("stopped"), acts.resume("paused"), acts.end({session: "s-ada"})];
const shown = (act) => ({id: act.id, role: act.role, requests: [act.request(values)].flat(), command: act.command(values)});
console.log(JSON.stringify({acts: all.map((act) => ({...shown(act), ...(act.undo ? {undo: shown(act.undo({}, values))} : {})})), unused: [...unused]}));
