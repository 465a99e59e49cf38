// Time travel: the state at an earlier entry, steps from there, and play. It loads states and entries, and applies
// entries as the live page does; `show(found)` gets {at, first, state, rules, passed, playing, speed, loading, error,
// problem, run}. `passed` are the entries since the state that was loaded in this `run`; a problem keeps what is shown.

import {applyEntry, copyState, fromSnapshot} from "./state.js";

export const SPEEDS = [1, 2, 5, 10, 30, 100];
const FRAME_MS = 100, PAGE = 500, AHEAD = 200, QUIET_MS = 1500, PASSED_MAX = 3000;

// Returns what an address means: {at} an offset, {time} in milliseconds, or null if it means nothing.
export function momentOf(text) {
  const [, time, digits] = /^(t?)(\d{1,15})$/.exec(text) ?? [];
  return digits === undefined ? null : time ? {time: digits} : {at: digits};
}

// Returns the entries of `GET /v1/events`, whose events come one by one.
export function entriesOf(reply) {
  const found = [];
  for (const {offset, at_ms: at, event, details} of reply.events) {
    if (found.at(-1)?.offset !== offset) found.push({offset, at, events: []});
    found.at(-1).events.push({...details, event});
  }
  return found;
}

// Whether the state that is shown is only the nearest one: "gone" before the first that is known, "later" after the newest.
export function isNearest({at, first, state}, newest) {
  const {at: offset, time} = momentOf(at) ?? {};
  if (!state || !(offset ?? time)) return "";
  if (Number(offset) < first || (Number(time) < state.at && state.offset <= first)) return "gone";
  return Number(offset) > newest ? "later" : "";
}

export class Traveller {
  constructor({loadState, loadEntries, show, timers = globalThis, now = () => Date.now()}) {
    Object.assign(this, {loadState, loadEntries, show, timers, now});
    this.found = null;
    this.run = 0;
    this.ahead = []; // entries after the state that is shown
    this.end = false; // whether the log had no entry after those
    this.timer = null;
  }

  update(values) {
    this.found = {...this.found, ...values};
    this.show(this.found);
  }

  // Shows the state of an address: "123" is an offset, "t1700000000000" a time; the nearest one that is known.
  async open(at, {again = false} = {}) {
    if (this.found?.at === at && this.found.state && !this.found.loading && !again) return;
    const run = this.leave(), moment = momentOf(at);
    this.update({at, loading: true, error: null, problem: null, playing: false, speed: this.found?.speed ?? 10});
    try {
      if (!moment) throw Object.assign(new Error("This address names no time"), {hint: "?at=17 is an entry of the log, ?at=t1700000000000 a time in milliseconds."});
      const snapshot = await this.loadState({...moment, nearest: true});
      if (run !== this.run) return;
      this.update({at, first: snapshot.first_offset, state: fromSnapshot(snapshot), rules: snapshot.rules, passed: [], loading: false, run});
    } catch (error) {
      if (run === this.run) this.update({state: null, loading: false, error});
    }
  }

  // Forgets what is under way; whatever still arrives of it counts for nothing.
  leave() {
    this.halt();
    this.ahead = [];
    this.loading = null;
    this.end = false;
    return ++this.run;
  }

  close() {
    this.leave();
    this.found = null;
    this.show(null);
  }

  // Moves on by some entries that changed something.
  async step(count = 1) {
    if (this.found?.loading) return; // what comes belongs to another moment
    this.pause();
    const run = this.run;
    if (await this.refill(run, count)) this.take(this.ahead.slice(0, count));
  }

  async play(speed = this.found.speed) {
    if (this.found.loading) return;
    const run = this.run;
    this.update({playing: true, speed});
    if (!await this.refill(run, 1) || !this.found.playing) return;
    this.virtualMs = this.found.state.at;
    this.wallMs = this.now();
    this.timers.clearInterval(this.timer);
    this.timer = this.timers.setInterval(() => this.tick(run), FRAME_MS);
  }

  halt() {
    this.timers.clearInterval(this.timer);
    this.timer = null;
  }

  pause() {
    this.halt();
    if (this.found?.playing) this.update({playing: false});
  }

  // Applies what has happened by now on the clock of the past; a long quiet time is passed over.
  tick(run) {
    const wallMs = this.now();
    this.virtualMs += (wallMs - this.wallMs) * this.found.speed;
    this.wallMs = wallMs;
    const next = this.ahead[0];
    if (next && next.at - this.virtualMs > QUIET_MS * this.found.speed) this.virtualMs = next.at - QUIET_MS * this.found.speed / 3;
    let count = 0;
    while (count < this.ahead.length && this.ahead[count].at <= this.virtualMs) count += 1;
    if (count) this.take(this.ahead.slice(0, count));
    if (!this.ahead.length && this.end) this.pause();
    else if (this.ahead.length < AHEAD && !this.end) void this.refill(run, AHEAD);
  }

  take(entries) {
    if (!entries.length) return;
    const state = copyState(this.found.state);
    for (const entry of entries) applyEntry(state, this.found.rules, entry);
    this.ahead.splice(0, entries.length);
    this.update({at: String(state.offset), state, passed: [...this.found.passed, ...entries].slice(-PASSED_MAX)});
  }

  // Loads entries until there are enough, or the log has no more now. Without an answer it pauses and says why.
  // Returns whether somebody still wants them.
  async refill(run, wanted) {
    const loading = this.loading ??= this.load(run, wanted);
    try {
      await loading;
      if (run === this.run && this.found.problem) this.update({problem: null});
      return run === this.run;
    } catch (problem) {
      if (run === this.run) this.fail(problem);
      return false;
    } finally {
      if (this.loading === loading) this.loading = null;
    }
  }

  // What was trimmed in the meantime cannot be played: the nearest known state is shown instead.
  fail(problem) {
    this.pause();
    this.update({problem});
    if (problem.code === "trimmed") void this.open(String(this.found.state.offset), {again: true});
  }

  async load(run, wanted) {
    let after = this.ahead.at(-1)?.offset ?? this.found.state.offset;
    while (run === this.run && this.ahead.length < wanted) {
      const reply = await this.loadEntries({after, limit: PAGE});
      if (run !== this.run) return;
      this.ahead.push(...entriesOf(reply));
      this.end = reply.after === after;
      if (this.end) return;
      after = reply.after;
    }
  }
}
