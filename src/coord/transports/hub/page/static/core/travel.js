// Time travel: the state at an earlier entry, steps from there, and play. It loads states and entries, and applies
// entries as the live page does; `show(found)` gets {at, state, rules, playing, speed, loading, error}.

import {applyEntry, copyState, fromSnapshot} from "./state.js";

export const SPEEDS = [1, 2, 5, 10, 30, 100];
const FRAME_MS = 100, PAGE = 500, AHEAD = 200, QUIET_MS = 1500;

// Returns the entries of `GET /v1/events`, whose events come one by one.
export function entriesOf(reply) {
  const found = [];
  for (const {offset, at_ms: at, event, details} of reply.events) {
    if (found.at(-1)?.offset !== offset) found.push({offset, at, events: []});
    found.at(-1).events.push({...details, event});
  }
  return found;
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

  // Shows the state of an address: "123" is an offset, "t1700000000000" a time.
  async open(at) {
    if (this.found?.at === at && this.found.state && !this.found.loading) return;
    const run = this.leave();
    this.update({at, loading: true, error: null, playing: false, speed: this.found?.speed ?? 10});
    try {
      const snapshot = await this.loadState(at.startsWith("t") ? {time: at.slice(1)} : {at});
      if (run !== this.run) return;
      this.update({at, state: fromSnapshot(snapshot), rules: snapshot.rules, loading: false});
    } catch (error) {
      if (run === this.run) this.update({loading: false, error});
    }
  }

  // Forgets what is under way; whatever still arrives of it counts for nothing.
  leave() {
    this.pause();
    this.ahead = [];
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
    this.pause();
    const run = this.run;
    await this.refill(run, count);
    if (run === this.run) this.take(this.ahead.slice(0, count));
  }

  async play(speed = this.found.speed) {
    const run = this.run;
    this.update({playing: true, speed});
    await this.refill(run, 1);
    if (run !== this.run || !this.found.playing) return;
    this.virtualMs = this.found.state.at;
    this.wallMs = this.now();
    this.timers.clearInterval(this.timer);
    this.timer = this.timers.setInterval(() => this.tick(run), FRAME_MS);
  }

  pause() {
    this.timers.clearInterval(this.timer);
    this.timer = null;
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
    this.update({at: String(state.offset), state});
  }

  // Loads entries until there are enough, or the log has no more now.
  refill(run, wanted) {
    this.loading ??= this.load(run, wanted).finally(() => { this.loading = null; });
    return this.loading;
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
