// Everything that a person can do from the page: one table, pure. `acts.NAME(record)` returns what `parts/act.js` shows
// and sends:
//
//   {id, label, title, role, hurts, words, fields, reason, command(values), request(values), done, undo(answer, values)}
//
// `reason` is the field of the body for the reason; where the act hurts, it is required. `undo` returns another act.
// `words` may be a function. `all` and `wordsAll` are label and words of an act on many, if they are others. `ofAgent`, `ofTask` and `ofLock` say what can be done.
// Requests name no session: the hub knows whose browser it is.

import {path, queryOf} from "./api.js";
import {overlaps, push} from "./derive.js";
import {commandLine, count, resource} from "./format.js";
import {field, title} from "./settings.js";

const line = (text) => String(text ?? "").replace(/\s+/g, " ").trim();
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== false));

// The word for a resource in a terminal: a path that cannot be taken for a name. It is a pattern, as the log has it.
export function typed(name) {
  if (!name.startsWith("file:")) return name;
  const file = name.slice(5), plain = file.includes("/") && !/^(file|name|project):/.test(file) && !file.startsWith("-");
  return plain ? file : `./${file}`;
}

const whose = (record) => record.agent || record.session;
const coord = (...words) => commandLine(["coord", ...words]);
const option = (name, value) => (!value ? [] : String(value).startsWith("-") ? [`--${name}=${value}`] : [`--${name}`, value]);
const because = (values, name = "reason") => option(name, line(values[name]));

// --- locks ---

const takeLock = (lock, more, words) => ({
  role: "admin", hurts: true, reason: "reason", ...words,
  command: (values) => coord("steal", typed(lock.resource), "--force", ...(more.release ? ["--release"] : []), ...option("fence", lock.fence), ...because(values)),
  request: (values) => ({path: "/v1/locks/steal", body: given({resources: [lock.resource], force: true, ...more, fence: lock.fence, reason: line(values.reason)})}),
});

function release(lock) {
  const name = resource(lock.resource);
  return {id: "release", ...takeLock(lock, {release: true}, {
    label: "Release", title: `Release ${name}`, done: `Released ${name}`,
    wordsAll: "Their holders lose them at once, and whoever waits for them gets them.",
    words: `${whose(lock)} loses it at once, and whoever waits for it gets it. What ${whose(lock)} still writes under fence ${lock.fence ?? "?"} is refused.`})};
}

// Whoever takes a lock over gets it alone, so `locks` that overlap it end as well; then nothing gives all of them back.
// They are looked for before it happens.
function steal(lock, locks = new Map()) {
  const name = resource(lock.resource);
  let found;
  const others = () => (found ??= [...locks.values()].filter((each) => each !== lock && overlaps(each.resource, lock.resource)));
  const losers = () => [lock, ...others()].map((each) => `${whose(each)}${each.resource === lock.resource ? "" : ` (${resource(each.resource)})`}`);
  return {id: "steal", ...takeLock(lock, {}, {
    label: "Take over", title: `Take over ${name}`, done: `${name} is yours`, undo: () => (others().length ? undefined : giveBack(lock)),
    wordsAll: "Their holders lose them at once, and you hold them, before everybody who waits.",
    words: () => `${losers().join(", ")} ${others().length ? "lose it at once, which nothing undoes" : "loses it at once"}, and you hold it, before everybody who waits.`})};
}

const giveBack = (lock) => ({
  id: "give_back", label: "Give back", title: `Give ${resource(lock.resource)} back`, role: "operate", done: `${whose(lock)} has it again`,
  command: () => coord("handoff", typed(lock.resource), lock.session),
  request: () => ({path: "/v1/handoffs", body: {resources: [lock.resource], to: lock.session, project: ""}}),
});

const preempt = (lock) => ({
  id: "preempt", label: "Ask for it", all: "Ask for", verb: "Ask", title: `Ask ${whose(lock)} for ${resource(lock.resource)}`, role: "admin", hurts: true, reason: "reason", done: `Asked ${whose(lock)}`,
  words: "Its holder is asked to release it, and loses it when the time is over.",
  fields: [{name: "grace", label: "Time to release it, in seconds", type: "number", value: "60", min: 0, max: 86_400, focus: false},
    {name: "priority", label: "Priority, above the holder's", type: "number", value: "10", min: -100, max: 100, focus: false}],
  command: (values) => coord("preempt", typed(lock.resource), "--priority", values.priority, "--grace", `${values.grace || 0}s`, ...because(values)),
  request: (values) => ({path: "/v1/locks/preempt", body: {resources: [lock.resource], priority: Number(values.priority), grace_ms: Number(values.grace) * 1000, reason: line(values.reason)}}),
});

// --- tasks ---

const inProject = (task, ...words) => coord("--project", task.project, "task", ...words);
const taskPath = (task, verb) => `${path`/v1/projects/${task.project}/tasks/${task.task}`}/${verb}`;

const onTask = (id, task, more) => ({
  id, title: `${more.label} ${task.task}`, role: "admin", ...more,
  command: (values) => inProject(task, id, task.task, ...(more.reason ? because(values) : [])),
  request: (values) => ({path: taskPath(task, id), body: more.reason ? given({reason: line(values.reason)}) : {}}),
});

const retry = (task) => onTask("retry", task, {label: "Retry", done: `${task.task} is in the queue again`, words: "It returns to the queue, with all its retries."});
const skip = (task) => onTask("skip", task, {label: "Skip", hurts: true, reason: "reason", done: `Skipped ${task.task}`, undo: () => retry(task), words: "Nobody does it, and tasks that depend on it become ready."});
const reset = (task) => onTask("reset", task, {label: "Reset", hurts: true, reason: "reason", done: `Reset ${task.task}`,
  wordsAll: "Whoever works on one of them loses it, their results no longer count, and they are open again.",
  words: task.session ? `${whose(task)} loses its claim, and a result that it still submits is refused. The task is open again.` : "Its result no longer counts, the task is open again, and what depends on it waits."});

// A task that somebody works on is taken from there first.
function assign(task, agents = []) {
  const busy = task.state === "in_progress";
  return {
    id: busy ? "reassign" : "assign", label: busy ? "Reassign…" : "Assign…", title: `${busy ? "Reassign" : "Assign"} ${task.task}`, verb: busy ? "Reassign" : "Assign", role: busy ? "admin" : "operate",
    hurts: busy, ...(busy ? {reason: "reason"} : {}), done: `${task.task} is kept for that agent`,
    wordsAll: busy ? "Whoever works on them loses them. Then they are kept for the other agent, while it is live and free." : "They are kept for this agent, while it is live and free.",
    words: busy ? `${whose(task)} loses its claim. Then the task is kept for the other agent, while it is live and free.` : "The task is kept for this agent, while it is live and free.",
    fields: [agents.length ? {name: "agent", label: "Agent", options: agents, value: agents[0]} : {name: "agent", label: "Agent", required: true},
      {name: "minutes", label: "For how many minutes", type: "number", value: "10", min: 1, max: 1440, focus: false}],
    command: (values) => [...(busy ? [inProject(task, "reset", task.task, ...because(values))] : []),
      inProject(task, "assign", task.task, values.agent || "AGENT", "--for", `${values.minutes}m`)].join(" && "),
    request: (values) => [...(busy ? [{path: taskPath(task, "reset"), body: given({reason: line(values.reason)})}] : []),
      {path: taskPath(task, "assign"), body: {agent: values.agent, for_ms: Number(values.minutes) * 60_000}}],
  };
}

// --- questions, alerts, messages ---

function answer(question, chosen, {other = false} = {}) {
  const said = (values) => chosen ?? line(values.answer);
  return {
    id: "answer", label: chosen ?? (other ? "Other…" : "Answer…"), title: "Answer", verb: "Answer", role: "operate", reason: "reason", done: "Answered",
    ...(chosen === undefined ? {fields: [{name: "answer", label: "Answer", required: true}]} : {}),
    command: (values) => coord("decide", question.id, {free: said(values) || "ANSWER"}, ...(other ? ["--other"] : []), ...because(values)),
    request: (values) => ({path: path`/v1/questions/${question.id}/answer`, body: given({answer: said(values), other, reason: line(values.reason)})}),
  };
}

const withdraw = (question) => ({
  id: "withdraw", label: "Withdraw", title: "Withdraw the question", role: "operate", reason: "reason", done: "Withdrawn", words: "The agent goes on without an answer.",
  command: (values) => coord("withdraw", question.id, ...because(values)),
  request: (values) => ({path: path`/v1/questions/${question.id}/withdraw`, body: given({reason: line(values.reason)})}),
});

const closeAlert = (alert, right) => ({
  id: right ? "alert_right" : "alert_wrong", label: right ? "It was right" : "False alarm", all: right ? "Confirm" : "Dismiss", title: right ? "Close: the alert was right" : "Close: a false alarm", verb: "Close", role: "operate", reason: "note", done: "Closed",
  words: right ? "The precision of its rule rises." : "The precision of its rule falls; a rule that is wrong too often only informs.",
  command: (values) => coord("alerts", "close", alert.id, right ? "--true" : "--false", ...because(values, "note")),
  request: (values) => ({path: path`/v1/alerts/${alert.id}/close`, body: {right, ...given({note: line(values.note)})}}),
});

export const MESSAGE_KINDS = ["request", "status", "warn", "reply", "handoff", "emergency"];

// `to` is a session, an agent, role:NAME or group:NAME; empty for everybody. Without it the person fills it in.
function message(to, whom = to, answered = null) {
  const body = (values) => String(values.body ?? "").trim(), address = (values) => to ?? line(values.to);
  return {
    id: "message", label: "Message…", all: "Message", title: answered ? "Reply" : to ? `Message to ${whom}` : to === "" ? "Message to everybody" : "Write a message", verb: "Send", role: "operate", done: "Sent",
    words: "Agents read it before their next step. An emergency stops their edits and commands until they acknowledge it.",
    fields: [...(to === undefined ? [{name: "to", label: "To (a session, an agent, role:NAME or group:NAME; empty: everybody)"}] : []),
      {name: "kind", label: "Kind", options: MESSAGE_KINDS, value: answered ? "reply" : MESSAGE_KINDS[0]},
      {name: "subject", label: "Subject", required: true, focus: to !== undefined, value: answered ? `Re: ${answered.subject}`.slice(0, 200) : ""}, {name: "body", label: "More", rows: 4, focus: false}],
    command: (values) => coord(...(address(values) ? ["send", address(values)] : ["broadcast"]), values.kind, {free: line(values.subject) || "SUBJECT"}, ...option("body", body(values)), ...option("reply-to", answered?.id)),
    request: (values) => ({path: "/v1/messages", body: given({to: address(values), kind: values.kind, subject: line(values.subject), body: body(values), reply_to: answered?.id})}),
  };
}

// --- agents and sessions ---

const switchAgent = (enabled) => (project, agent) => ({
  id: enabled ? "enable" : "disable", label: enabled ? "Enable" : "Disable", title: `${enabled ? "Enable" : "Disable"} ${agent}`, role: "admin", reason: "reason", hurts: !enabled,
  words: enabled ? "It gets tasks again; its failures and rate limits are forgotten." : "It gets no new task until somebody enables it. What it has, it finishes.",
  done: enabled ? `${agent} gets tasks again` : `${agent} gets no new task`, undo: () => (enabled ? disable : enable)(project, agent),
  command: (values) => coord("--project", project, "agent", enabled ? "enable" : "disable", agent, ...because(values)),
  request: (values) => ({method: "PUT", path: path`/v1/projects/${project}/agents/${agent}`, body: {enabled, ...given({reason: line(values.reason)})}}),
});
const enable = switchAgent(true), disable = switchAgent(false);

const end = (session) => ({
  id: "end", label: "End session", all: "End the sessions of", title: `End the session of ${whose(session)}`, verb: "End it", role: "admin", hurts: true, reason: "reason", done: `Ended ${whose(session)}`,
  words: "Its locks and claims end, and those of its sub-agents; what it still sends is refused. Its process is not killed.",
  command: (values) => coord("dereg", session.session, "--force", ...because(values)),
  request: (values) => ({method: "DELETE", path: path`/v1/sessions/${session.session}` + queryOf({force: true, reason: line(values.reason)})}),
});

// --- all agents ---

export const HOLDS = {
  paused: ["pause", "Pause all", "No agent gets a new task until you resume. All finish what they have.", "Paused"],
  draining: ["drain", "Drain", "No agent gets a new task. All finish what they have, and workers end.", "Draining"],
  stopped: ["stop", "Emergency stop", "The next edit or command of every agent is stopped, and nobody gets a lock or a task. You can resume.", "All agents are stopped"],
};

function hold(mode) {
  const [verb, label, words, done] = HOLDS[mode];
  return {
    id: verb, label, title: label, verb: label, role: "admin", hurts: true, reason: "reason", words, done, undo: (answer) => (HOLDS[answer?.before] ? hold(answer.before) : resume(mode)),
    command: (values) => coord(verb, ...because(values)),
    request: (values) => ({method: "PUT", path: "/v1/work-mode", body: {mode, ...given({reason: line(values.reason)})}}),
  };
}

const resume = (before = "") => ({
  id: "resume", label: "Resume", title: "Let all agents go on", verb: "Resume", role: "admin", done: "All agents go on", ...(HOLDS[before] ? {undo: () => hold(before)} : {}),
  command: () => coord("resume"),
  request: () => ({method: "PUT", path: "/v1/work-mode", body: {mode: "on"}}),
});

// --- settings, tokens, reactions ---

// Changes a value; without `wanted` a person types or chooses it. `default` resets it.
const change = (setting, wanted, more) => ({
  id: "set_setting", label: "Change…", verb: "Change", title: `${wanted === undefined ? "Change" : wanted === "default" ? "Reset" : "Set"} ${title(setting.name).toLowerCase()}`, role: "admin",
  words: setting.because, done: `Changed ${title(setting.name).toLowerCase()}`, ...(wanted === undefined ? {fields: [field(setting)]} : {}), ...more,
});
const asNumber = (value) => (/^\d+$/.test(value) ? Number(value) : value);

function setSetting(setting, wanted) {
  const {name, project = ""} = setting, value = (values) => asNumber(String(wanted ?? values.value));
  return change(setting, wanted, {
    undo: (_, values) => setSetting({...setting, value: value(values), source: "store"}, setting.source === "store" ? setting.value : "default"),
    command: (values) => coord(...option("project", project), "limits", "set", `${name}=${value(values)}`),
    request: (values) => ({method: "PATCH", path: "/v1/settings", body: {settings: {[name]: value(values)}, ...given({project})}}),
  });
}

const setLimit = (tenant, limit, wanted) => change(limit, wanted, {
  id: "set_limit", undo: (_, values) => setLimit(tenant, {...limit, value: wanted ?? values.value}, limit.value),
  command: (values) => coord("--tenant", tenant, "limits", "set", `${limit.name}=${wanted ?? values.value}`),
  request: (values) => ({method: "PATCH", path: "/v1/limits", body: {limits: {[limit.name]: Number(wanted ?? values.value)}}}),
});

// A token that a browser makes ends no later than the browser's own, of which `leftMs` are left (0: it never ends).
const HOUR_MS = 3_600_000;
function createToken(leftMs = 0) {
  const most = leftMs ? Math.max(1, Math.floor(leftMs / HOUR_MS)) : undefined;
  return {
    id: "create_token", label: "New token…", title: "New token", verb: "Create", role: "admin", secret: "token", done: "Created",
    words: most ? `It ends with this login at the latest, so after at most ${count(most, "hour")}. A terminal makes one that lasts longer.` : "",
    fields: [{name: "label", label: "What it is for", required: true}, {name: "role", label: "It may", options: [["view", "look"], ["operate", "work"], ["admin", "do everything"]], value: "view"},
      {name: "project", label: "Only for this project (empty: all)"}, {name: "session", label: "Only for this session (empty: all)"},
      {name: "hours", label: most ? "Ends after hours" : "Ends after hours (0: never)", type: "number", value: String(most ?? 720), min: most ? 1 : 0, max: most ?? 87_600}],
    command: (values) => coord("token", "create", "--role", values.role, ...option("project", values.project), ...option("session", values.session), ...because(values, "label"), ...(Number(values.hours) ? ["--expires", `${values.hours}h`] : [])),
    request: (values) => ({path: "/v1/tokens", keyless: true, body: given({role: values.role, label: line(values.label), project: line(values.project), session: line(values.session), ttl_ms: Number(values.hours) * HOUR_MS || undefined})}),
  };
}

const revokeToken = (token) => ({
  id: "revoke_token", label: "Revoke", title: `Revoke ${token.label || token.id}`, role: "admin", hurts: true, done: `Revoked ${token.label || token.id}`,
  words: "Whoever uses it is cut off at once. This cannot be undone.",
  command: () => coord("token", "revoke", token.id),
  request: () => ({method: "DELETE", path: path`/v1/tokens/${token.id}`}),
});

const decideReaction = (letter, again) => ({
  id: again ? "retry_reaction" : "drop_reaction", label: again ? "Try again" : "Drop", title: `${again ? "Try again" : "Drop"} ${letter.id}`, role: "admin", hurts: !again, done: again ? "It is tried again" : "Dropped",
  words: again ? "It is delivered once more, with the same id." : "Nobody delivers it any more.",
  command: () => coord("reactions", "dead", again ? "--retry" : "--drop", letter.id),
  request: () => ({path: path`/v1/reactions/dead/${letter.id}`, body: {retry: again}}),
});

export const acts = {release, steal, preempt, retry, skip, reset, assign, answer, withdraw, closeAlert, message, enable, disable, end, hold, resume,
  setSetting, setLimit, createToken, revokeToken, decideReaction, giveBack};

// --- what can be done ---

const talkTo = (record) => message(record.session, whose(record));

// `locks` are all that there are.
export const ofLock = (lock, locks) => [preempt(lock), release(lock), steal(lock, locks), talkTo(lock)];

// `agents` are the records of disabled and limited agents.
export function ofAgent(session, agents) {
  const known = session.project && session.agent;
  return [talkTo(session), ...(known ? [(agents.get(`${session.project}/${session.agent}`)?.disabled ? enable : disable)(session.project, session.agent)] : []), end(session)];
}

// `word` is the state as people say it, `names` are the agents that it can be given to.
export function ofTask(task, word, names) {
  if (word === "failed" || word === "errored") return [retry(task), skip(task), reset(task)];
  if (word === "done") return [reset(task)];
  if (word === "skipped") return [retry(task), reset(task)];
  return task.state === "in_progress" ? [talkTo(task), assign(task, names), reset(task)] : [assign(task, names), skip(task)];
}

export function ofQuestion(question) {
  if (question.kind === "attention") return [{...withdraw(question), words: "It waits in its terminal, and no answer from here arrives there."}];
  const options = question.options ?? [];
  return [...options.map((option) => answer(question, option)), ...(question.kind === "permission" ? [] : [answer(question, undefined, {other: options.length > 0})]), withdraw(question)];
}

// --- many at once ---

export const MANY_MAX = 200;

// One act for many: the same words, fields and reason for each; `each` is [{label, act}], of which the first 200 count.
export function many(each, noun, nouns) {
  const some = each.slice(0, MANY_MAX), [first] = some, words = first.act.all ?? first.act.label.replace("…", "");
  const label = `${words} ${each.length > MANY_MAX ? `${MANY_MAX} of ` : ""}${count(each.length, noun, nouns)}`;
  const said = first.act.wordsAll ?? (some.every(({act}) => act.words === first.act.words) ? first.act.words : "");
  return {...first.act, id: `many_${first.act.id}`, label, title: label, words: said, undo: undefined, each: some, command: (values) => some.map((one) => one.act.command(values)).join("\n")};
}

// What can be done to how many of several: [act on many]. `each` is [{label, acts}].
export function group(each, noun, nouns) {
  const found = new Map();
  for (const {label, acts: can} of each) {
    for (const act of can) push(found, act.id, {label, act});
  }
  return [...found.values()].map((some) => (some.length > 1 ? many(some, noun, nouns) : some[0].act));
}

// --- what frees something ---

const REMEDIES = {
  decide: ([id], {tables}) => (tables.questions.has(id) ? ofQuestion(tables.questions.get(id)).filter((each) => each.id === "answer") : []),
  dereg: ([session], {tables}) => [end(tables.sessions.get(session) ?? {session})],
  register: ([, session], {tables}) => [end(tables.sessions.get(session) ?? {session})],
  // Whoever waits gets a lock that is released; one that is taken over would stay with the reader.
  steal: ([name], {tables}) => held(tables, name).map(release),
  preempt: ([name], {tables}) => held(tables, name).map(preempt),
  agent: ([, name], {project}) => [enable(project, name)],
  // The value before it is not known here.
  limits: ([, setting], {project}) => [{...setSetting({name: setting.split("=")[0], project}, setting.split("=")[1]), undo: undefined}],
  task: ([verb, name], {project, tables}) => ({retry, reset}[verb] ? [{retry, reset}[verb](tables.tasks.get(`${project}/${name}`) ?? {project, task: name})] : []),
  resume: () => [resume()],
  track: () => [],
  merge: () => [],
};
const held = (tables, name) => [...tables.locks.values()].filter((lock) => lock.resource === name || lock.resource === `file:${name}`);

// The acts that do what a remedy of the hub says, by the words of its command; [] where only a terminal can.
export const remedyActs = ([verb, ...words], known) => REMEDIES[verb]?.(words, known) ?? [];
