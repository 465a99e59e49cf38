// The plan as the page draws it: states and progress from the live table, places from the layout of the hub.

import {derived, FINISHED, matches, taskState} from "./derive.js";

// The columns of the board, in the order of reading, with the words of `taskState` that belong there.
export const BOARD = [
  ["waiting", "Waiting", "idle", ["waiting", "retrying"]],
  ["ready", "Ready", "wait", ["ready", "expired"]],
  ["working", "In progress", "work", ["in progress"]],
  ["stuck", "Stuck", "bad", ["failed", "errored", "blocked"]],
  ["done", "Done", "ok", ["done", "skipped"]],
];
const COLUMN_OF = new Map(BOARD.flatMap(([name, , , words]) => words.map((word) => [word, name])));
const TONES = {waiting: "idle", retrying: "idle", ready: "wait", expired: "bad", "in progress": "work", failed: "bad", errored: "bad", blocked: "bad", done: "ok", skipped: "idle"};

export const columnOf = (word) => COLUMN_OF.get(word) ?? "waiting";
export const toneOf = (word) => TONES[word] ?? "idle";

// The projects with tasks, the largest first: [[project, count]].
export const projectsOf = derived(["tasks"], (state) => {
  const found = new Map();
  for (const task of state.tables.tasks.values()) found.set(task.project, (found.get(task.project) ?? 0) + 1);
  return [...found].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
});

const noCounts = () => ({total: 0, waiting: 0, ready: 0, working: 0, stuck: 0, done: 0});

// Returns {words: Map(task -> word), tracks: Map(track -> counts), all: counts, columns: {name: [task]}} of a project.
// `tick` is the time in steps: leases and retries end without an entry.
export const overview = derived(["tasks"], (state, project, tick) => {
  const words = new Map(), tracks = new Map(), all = noCounts();
  const columns = Object.fromEntries(BOARD.map(([name]) => [name, []]));
  for (const task of state.tables.tasks.values()) {
    if (task.project !== project) continue;
    const {word} = taskState(task, state, tick), column = columnOf(word), track = task.track ?? "";
    if (!tracks.has(track)) tracks.set(track, noCounts());
    for (const counts of [all, tracks.get(track)]) {
      counts.total += 1;
      counts[column] += 1;
    }
    words.set(task.task, word);
    columns[column].push(task);
  }
  return {words, tracks, all, columns};
});

// Returns a function that says when to ask for a layout again: its number grows if tasks, tracks or dependencies change.
export function structureWatch() {
  let known = new Map(), of = "", seen = null, number = 0;
  return (state, project) => {
    if (of === project && seen === state.tables.tasks && known.version === state.versions.tasks) return number;
    const next = new Map();
    let same = of === project;
    for (const task of state.tables.tasks.values()) {
      if (task.project !== project) continue;
      const before = known.get(task.task);
      same &&= before !== undefined && before.track === (task.track ?? "") && sameList(before.depends_on, task.depends_on);
      next.set(task.task, {track: task.track ?? "", depends_on: task.depends_on});
    }
    if (!same || next.size !== known.size) number += 1;
    next.version = state.versions.tasks;
    [known, of, seen] = [next, project, state.tables.tasks];
    return number;
  };
}

const sameList = (some = [], others = []) => some === others || (some.length === others.length && some.every((each, at) => each === others[at]));


// The longest chain of tasks that are left, by estimate, or by count if nothing has one: {tasks, seconds, estimated}.
// The order of a layout is topological and its edges come in the order of their targets, so one pass is enough.
export function criticalPath(layout, tasks, words, project) {
  const estimates = layout.task.map((name) => tasks.get(`${project}/${name}`)?.estimate_s ?? 0);
  const known = estimates.filter((each) => each > 0);
  const usual = known.length ? known.reduce((sum, each) => sum + each, 0) / known.length : 1;
  const weight = layout.task.map((name, at) => (FINISHED.has(words.get(name)) ? 0 : estimates[at] || usual));
  const best = [...weight], from = new Int32Array(weight.length).fill(-1);
  for (const [one, other] of layout.edges) {
    if (weight[one] && weight[other] && best[one] + weight[other] > best[other]) {
      best[other] = best[one] + weight[other];
      from[other] = one;
    }
  }
  let end = -1;
  for (const [at, each] of best.entries()) if (weight[at] && (end < 0 || each > best[end])) end = at;
  const path = [];
  for (let at = end; at >= 0; at = from[at]) path.unshift(layout.task[at]);
  return {tasks: path, seconds: known.length && end >= 0 ? best[end] : 0, estimated: known.length > 0};
}

// --- places in pixels ---

export const SIZES = {
  large: {columnWidth: 208, rowHeight: 40, nodeWidth: 168, nodeHeight: 30, head: 34, gap: 10, left: 14},
  small: {columnWidth: 34, rowHeight: 18, nodeWidth: 20, nodeHeight: 12, head: 30, gap: 8, left: 14},
};

const NODE_MAX = 300;

// Returns a size with wider tasks, if all columns fit into a width.
export function fitted(size, columns, width) {
  const gap = size.columnWidth - size.nodeWidth, room = Math.floor((width - size.left) / Math.max(1, columns)) - gap;
  const nodeWidth = Math.max(size.nodeWidth, Math.min(NODE_MAX, room));
  return {...size, nodeWidth, columnWidth: nodeWidth + gap};
}

// Returns {width, height, tops, byRow} of a layout: where each lane begins, and the tasks of each row.
export function geometry(layout, size, closed) {
  const tops = [];
  let height = 0;
  for (const lane of layout.lanes) {
    tops.push(height);
    height += size.head + (closed.has(lane.track) ? 0 : lane.rows * size.rowHeight) + size.gap;
  }
  const byRow = new Map();
  for (const [at, row] of layout.row.entries()) {
    if (byRow.has(row)) byRow.get(row).push(at);
    else byRow.set(row, [at]);
  }
  return {width: layout.columns * size.columnWidth + size.left, height, tops, byRow};
}

// Where a task is drawn: {x, y}; in a closed lane all are in its head.
export function placeOf(layout, made, size, closed, at) {
  const lane = layout.lanes[layout.lane[at]], top = made.tops[layout.lane[at]];
  const x = size.left + layout.column[at] * size.columnWidth;
  if (closed.has(lane.track)) return {x, y: top + (size.head - size.nodeHeight) / 2, hidden: true};
  return {x, y: top + size.head + (layout.row[at] - lane.top) * size.rowHeight + (size.rowHeight - size.nodeHeight) / 2, hidden: false};
}

// The tasks within a window of the picture, by position in the layout: rows first, then their columns.
export function visibleTasks(layout, made, size, closed, {top, bottom, left, right}) {
  const found = [];
  for (const [number, lane] of layout.lanes.entries()) {
    const begin = made.tops[number] + size.head;
    if (closed.has(lane.track) || begin > bottom || begin + lane.rows * size.rowHeight < top) continue;
    const first = Math.max(0, Math.floor((top - begin) / size.rowHeight));
    const last = Math.min(lane.rows - 1, Math.floor((bottom - begin) / size.rowHeight));
    for (let row = lane.top + first; row <= lane.top + last; row += 1) {
      for (const at of made.byRow.get(row) ?? []) {
        const x = size.left + layout.column[at] * size.columnWidth;
        if (x + size.columnWidth >= left && x <= right) found.push(at);
      }
    }
  }
  return found;
}

// A layout of another time with the tasks that exist in a table, and the dependencies that they have there.
export function cutLayout(layout, tasks, project) {
  const found = layout.task.map((name) => tasks.get(`${project}/${name}`)), number = new Map(), pick = [];
  for (const [at, task] of found.entries()) {
    if (task) {
      number.set(at, pick.length);
      pick.push(at);
    }
  }
  const of = (list) => pick.map((at) => list[at]), lane = of(layout.lane), used = [...new Set(lane)].sort((one, other) => one - other);
  return {
    ...layout, task: of(layout.task), lane: lane.map((at) => used.indexOf(at)), column: of(layout.column), row: of(layout.row),
    lanes: used.map((at) => ({...layout.lanes[at], tasks: lane.filter((one) => one === at).length})),
    edges: layout.edges.filter(([one, other]) => number.has(one) && number.has(other) && found[other].depends_on?.includes(layout.task[one]))
      .map(([one, other]) => [number.get(one), number.get(other)]),
  };
}

// The dependencies of each task, both ways: {before: [[at]], after: [[at]]}.
export function neighbours(layout) {
  const before = layout.task.map(() => []), after = layout.task.map(() => []);
  for (const [one, other] of layout.edges) {
    before[other].push(one);
    after[one].push(other);
  }
  return {before, after};
}

// --- filter and the page of a task ---

export const searchText = (task, word) => [task.task, task.title, task.track, task.type, task.role, task.agent, task.assignee, word, ...(task.files ?? [])].join(" ");
export const fits = (q, task, word) => !q || matches(q, searchText(task, word));

// The tasks that wait for a task.
export const dependents = derived(["tasks"], (state, project, name) =>
  [...state.tables.tasks.values()].filter((task) => task.project === project && task.depends_on?.includes(name)));

// The claims of a task as bars over time: [{generation, agent, session, from, to, end, refused}]. `history` is what the
// hub knows of ended ones; the present claim comes from the live table.
export function claimBars(history, task, now) {
  const bars = (history ?? []).map((each) => ({
    generation: each.generation, agent: each.agent_id || each.session_id, session: each.session_id, from: each.acquired_ms, to: each.released_ms,
    end: String(each.release_reason ?? "").toLowerCase().replaceAll("_", " "), accepted: each.result_accepted, note: each.note ?? "", refused: zombies(each),
  }));
  if (task?.state === "in_progress" && !bars.some((bar) => bar.generation === task.generation)) {
    const expired = task.expires_ms && task.expires_ms < now;
    bars.push({generation: task.generation, agent: task.agent || task.session, session: task.session, from: task.claimed_ms, to: expired ? task.expires_ms : now,
      until: task.expires_ms, end: expired ? "expired" : "", accepted: false, note: "", refused: []});
  }
  return bars.filter((bar) => bar.from).sort((one, other) => one.generation - other.generation);
}

const zombies = (claim) => [
  ...(claim.rejected ?? []).map((each) => ({what: "result", reason: each.rejection_reason, at: each.submitted_ms, times: each.times ?? 1, agent: each.agent_id || each.session_id})),
  ...(claim.refused ?? []).map((each) => ({what: each.operation, reason: each.reason, at: each.refused_ms, times: each.times ?? 1, agent: each.agent_id || each.session_id})),
].sort((one, other) => one.at - other.at);

// What the hub knows of a task now, as it was at an earlier time: claims that had ended, and results that had come.
export function knownAt({spec, history, result}, task, at) {
  const ended = (each) => each.generation < (task.generation ?? 0) || (each.generation === task.generation && task.state !== "in_progress");
  const come = (list, field) => (list ?? []).filter((each) => each[field] <= at).map((each) => ({...each, times: 1}));
  return {spec: spec && {...spec, parts_done: undefined}, used: null, result: result?.submitted_ms <= at ? result : null,
    history: history.filter(ended).map((each) => ({...each, rejected: come(each.rejected, "submitted_ms"), refused: come(each.refused, "refused_ms")}))};
}

// The commits and merges of the sessions that claimed a task, while they had it: newest first.
export function commitsOf(recent, bars) {
  const within = (event) => bars.some((bar) => bar.session === event.session && event.at >= bar.from && event.at <= bar.to + 60_000);
  return [...(recent.commits ?? []), ...(recent.merges ?? [])].filter(within).sort((one, other) => other.at - one.at);
}
