// Why a merge does not go on: its refusals are in the log only, so the page explains them itself. The hub explains
// tasks, locks and sessions of the present; of an earlier time the page shows what its tables say.

import {holdersOf, nameOf, overlaps, questionsBySession, sessionState, taskState, tasksBySession, waitsBySession, waitWords} from "./derive.js";
import {commandLine, fileResource, resource} from "./format.js";
import {ownOf} from "./state.js";

const DEPTH_MAX = 8, REASONS_MAX = 200;

const WORDS = {conflict: "both sides changed the same lines", check_failed: "its check failed", refused: "it has changes that nobody made under a lock"};

const reason = (depth, kind, text, subject_kind = "", subject = "", since_ms = 0, until_ms = 0) => ({kind, depth, text, subject_kind, subject, since_ms, until_ms});

// The newest merge of a branch, or null.
export const newestMerge = (recent, branch) => (recent.merges ?? []).findLast((event) => event.branch === branch) ?? null;

// Returns {answer, reasons, remedy} as the hub does for others.
export function whyMerge(recent, branch) {
  const event = newestMerge(recent, branch);
  if (!event) return {answer: `nobody has tried to merge ${branch} lately`, reasons: [], remedy: {text: "Merge it", command: ["merge", branch]}};
  const tried = (text) => reason(0, "merge", text, "session", event.session, event.at);
  if (event.event === "git.merged") return {answer: `${branch} is merged into ${event.into}`, reasons: [tried(`${event.agent || event.session} merged it`)], remedy: null};
  const reasons = [tried(`the merge into ${event.into} was refused: ${ownOf(WORDS, event.status) ?? (event.status || "no reason was given").replaceAll("_", " ")}`)];
  for (const party of event.parties ?? []) reasons.push(reason(1, "session", `${party} changed the same`, "session", party));
  for (const file of (event.files ?? []).slice(0, 10)) reasons.push(reason(1, "lock", file, "lock", fileResource(file)));
  if (event.detail) reasons.push(reason(1, "merge", event.detail));
  return {answer: `${branch} is not merged`, reasons, remedy: {text: "Resolve it in its worktree, then merge again", command: ["merge", branch]}};
}

// What held something up at the time of a state: {answer, reasons, remedy}. Limits and routing are not in the tables.
export function whyThen(kind, id, state, now) {
  const {tasks, locks, sessions} = state.tables, reasons = [], seen = new Set();
  const isNew = (key, depth) => depth <= DEPTH_MAX && reasons.length < REASONS_MAX && !seen.has(key) && seen.add(key);
  const add = (...given) => reasons.push(reason(...given));
  const addSession = (name, depth) => {
    if (!isNew(`session ${name}`, depth)) return;
    const who = nameOf(state, name);
    for (const each of questionsBySession(state).get(name) ?? []) add(depth, "question", `${who} asked: ${each.text}`, "session", name, each.asked_ms);
    for (const wait of waitsBySession(state).get(name) ?? []) {
      add(depth, "wait", `${who} was ${waitWords(wait, state, now)}`, "session", name, wait.since_ms);
      for (const lock of holdersOf(wait, state)) addLock(lock, depth + 1);
    }
  };
  const addLock = (lock, depth) => {
    add(depth, "lock", `${nameOf(state, lock.session, lock.agent)} held ${resource(lock.resource)}`, "lock", lock.resource, lock.since_ms, lock.expires_ms);
    addSession(lock.session, depth + 1);
  };
  const addTask = (task, depth) => {
    if (!isNew(`task ${task.project}/${task.task}`, depth)) return;
    if (task.state === "in_progress") {
      add(depth, "claim", `${nameOf(state, task.session, task.agent)} had claimed ${task.task}`, "session", task.session, task.claimed_ms, task.expires_ms);
      addSession(task.session, depth + 1);
    }
    for (const name of taskState(task, state, now).by) {
      const key = `${task.project}/${name}`, other = tasks.get(key);
      add(depth, "task", `${task.task} needs ${name}, which was ${other ? taskState(other, state, now).word : "missing"}`, "task", key);
      if (other) addTask(other, depth + 1);
    }
  };
  const answers = {
    task: () => {
      const task = tasks.get(id);
      if (task) addTask(task, 0);
      return task ? `${task.task} was ${taskState(task, state, now).word}` : `there was no task ${id}`;
    },
    lock: () => {
      const found = [...locks.values()].filter((lock) => overlaps(lock.resource, id));
      for (const lock of found) addLock(lock, 0);
      return `${resource(id)} was ${found.length ? "locked" : "free"}`;
    },
    agent: () => {
      const session = sessions.get(id), task = tasksBySession(state).get(id);
      addSession(id, 0);
      if (task) addTask(task, 0);
      if (!session) return `there was no session ${id}`;
      const {word, words} = sessionState(session, state, now);
      return `${nameOf(state, id)}: ${word}${words ? `, ${words}` : ""}`;
    },
  };
  return {answer: answers[kind](), reasons, remedy: undefined};
}

// The command that does what a remedy says, in a terminal of the repository, whose project may be another.
const IN_PROJECT = ["task", "agent", "limits", "track"];
export const lineOf = (words, project) => commandLine(["coord", ...(project && IN_PROJECT.includes(words[0]) ? ["--project", project] : []), ...words]);

// Returns ends(answer, now): one more each time that something ends of which an answer says until when it lasts.
export function endsOf() {
  let known = null, nextMs = Infinity, ends = 0;
  return (answer, now) => {
    if (answer !== known) [known, nextMs] = [answer, Math.min(...(answer?.reasons ?? []).map((each) => each.until_ms).filter((ms) => ms > now))];
    if (now < nextMs) return ends;
    nextMs = Infinity;
    return ++ends;
  };
}

// The chain as a tree: [{reason, children}].
export function treeOf(reasons) {
  const top = [], open = [];
  for (const reason of reasons) {
    const node = {reason, children: []};
    open.length = Math.min(open.length, reason.depth);
    (open.at(-1)?.children ?? top).push(node);
    open.push(node);
  }
  return top;
}
