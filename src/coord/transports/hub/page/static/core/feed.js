// Follows the log: a snapshot, then a WebSocket with every later entry. A missing offset, a resync and every new
// connection load a new snapshot, so what is shown is always whole. What cannot be read counts as missing. An idle
// page sends one ping every 25 s.

export const PING_MS = 25_000, SILENT_MS = 40_000, TICK_MS = 5_000, JUMP_MS = 15_000, PROBE_MS = 10_000;
export const LOAD_MS = 60_000, AGAIN_MS = 5_000;
const FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 15_000;

// How long to wait before the next attempt; `random` is between 0 and 1.
export const backoff = (attempt, random) =>
  Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10)) * (0.5 + random / 2);

export class Feed {
  // `load(signal)` returns a snapshot, `connect(offset)` a WebSocket, `on` is told: snapshot(s), entry(e), status(s).
  constructor({load, connect, on, timers = globalThis, now = Date.now, random = Math.random}) {
    Object.assign(this, {load, connect, on, timers, now, random});
    this.attempt = 0;
    this.run = 0;
    this.offset = 0;
    this.everyEntry = true;
    this.socket = null;
    this.retry = null;
    this.loading = null;
    this.heardMs = this.tickedMs = this.pingedMs = this.loadingMs = this.againMs = 0;
    this.probeUntilMs = 0;
  }

  start() {
    this.tickedMs = this.now();
    this.ticking ??= this.timers.setInterval(() => this.tick(), TICK_MS);
    return this.open();
  }

  stop() {
    this.run += 1;
    this.timers.clearInterval(this.ticking);
    this.ticking = undefined;
    this.close();
  }

  // Loads a snapshot and follows it; a later call makes an earlier one give up.
  async open() {
    const run = ++this.run;
    this.close();
    this.tell("loading");
    this.loading = new AbortController();
    this.loadingMs = this.now();
    try {
      const snapshot = await this.load(this.loading.signal);
      if (run !== this.run) return;
      this.loading = null;
      if (!Number.isInteger(snapshot?.offset)) throw new Error("the answer is not the hub's");
      this.offset = snapshot.offset;
      this.everyEntry = !snapshot.who?.project;
      this.on.snapshot(snapshot);
      this.follow(run);
    } catch (error) {
      if (run !== this.run) return;
      this.loading = null;
      if (error.status === 401) this.tell("denied", error);
      else this.later(error);
    }
  }

  follow(run) {
    const socket = this.connect(this.offset);
    this.socket = socket;
    this.heardMs = this.pingedMs = this.now();
    socket.onmessage = (message) => {
      if (run === this.run) this.receive(message.data);
    };
    socket.onclose = () => {
      if (run === this.run) this.later();
    };
  }

  receive(text) {
    this.heardMs = this.now();
    this.probeUntilMs = 0;
    try {
      const message = JSON.parse(text);
      if (message.type === "begin") {
        this.attempt = 0;
        this.tell("live");
      } else if (message.type === "entry") {
        this.take(message);
      } else if (message.type === "resync") {
        this.again();
      }
    } catch (error) {
      this.again(error);
    }
  }

  // Loads a new snapshot at once, unless the one before did not last.
  again(error) {
    const soon = this.now() - this.againMs < AGAIN_MS;
    this.againMs = this.now();
    if (soon) this.later(error);
    else void this.open();
  }

  take(entry) {
    if (entry.offset <= this.offset) return;
    if (this.everyEntry && entry.offset !== this.offset + 1) {
      this.again();
      return;
    }
    this.on.entry(entry);
    this.offset = entry.offset;
  }

  // Called every few seconds. A laptop that slept, or a socket that died without a word, shows here.
  tick() {
    const now = this.now(), wentBack = now < this.tickedMs, slept = wentBack || now - this.tickedMs > JUMP_MS;
    this.tickedMs = now;
    if (wentBack) this.heardMs = this.pingedMs = this.loadingMs = now;
    if (this.loading && now - this.loadingMs > LOAD_MS) this.later(new Error("the hub does not answer"));
    if (this.socket === null) return;
    if (now - this.heardMs > SILENT_MS || (this.probeUntilMs && now > this.probeUntilMs)) {
      void this.open();
    } else if (slept) {
      this.probe();
    } else if (now - this.pingedMs >= PING_MS) {
      this.ping();
    }
  }

  // Asks for a sign of life; without one within ten seconds the connection counts as dead.
  probe() {
    if (this.socket === null) {
      if (this.retry !== null) void this.open();
      return;
    }
    this.probeUntilMs = this.now() + PROBE_MS;
    this.ping();
  }

  ping() {
    this.pingedMs = this.now();
    if (this.socket.readyState === 1) this.socket.send('{"type":"ping","id":1}');
  }

  later(error) {
    this.run += 1;
    this.close();
    const waitMs = backoff(this.attempt, this.random());
    this.attempt += 1;
    this.tell("offline", error, this.now() + waitMs);
    this.retry = this.timers.setTimeout(() => {
      this.retry = null;
      void this.open();
    }, waitMs);
  }

  close() {
    if (this.retry !== null) this.timers.clearTimeout(this.retry);
    this.retry = null;
    this.probeUntilMs = 0;
    this.loading?.abort();
    this.loading = null;
    const socket = this.socket;
    this.socket = null;
    if (socket !== null) {
      socket.onclose = socket.onmessage = null;
      socket.close();
    }
  }

  tell(state, error = null, retryMs = 0) {
    this.on.status({state, error, retryMs, attempt: this.attempt});
  }
}
