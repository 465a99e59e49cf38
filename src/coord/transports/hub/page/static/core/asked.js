// What a view asks the hub for besides the state: once per key, and again when its stamp changes, at most one request
// at a time. An earlier answer stays while the next one is on its way.

import {signal} from "../vendor/signals-core/signals-core.js";

// Returns read(key, stamp) -> {value, error}; `load(key)` returns a promise.
export function asked(load, {pauseMs = 400, wait = setTimeout} = {}) {
  const answer = signal({key: null, value: null, error: null});
  let key = null, stamp = null, running = false, more = false;
  async function run() {
    const [forKey, forStamp] = [key, stamp];
    let found;
    more = false;
    try {
      found = {key: forKey, value: await load(forKey), error: null};
    } catch (error) {
      const known = answer.peek();
      found = {key: forKey, value: known.key === forKey ? known.value : null, error, again: read.again};
    }
    answer.value = found;
    running = more || key !== forKey || stamp !== forStamp;
    if (running) wait(run, pauseMs);
  }
  const begin = () => {
    if (!running) wait(run, 0);
    running = true;
  };
  const read = (newKey, newStamp = "") => {
    const found = answer.value;
    if (newKey !== key || newStamp !== stamp) {
      [key, stamp] = [newKey, newStamp];
      begin();
    }
    return found.key === newKey ? found : {key: newKey, value: null, error: null};
  };
  read.again = () => {
    more = true;
    begin();
  };
  return read;
}
