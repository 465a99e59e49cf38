// "While you were away": since when the reader has not looked. The time of the last look is kept in this browser, one
// for each repository, and a page that was hidden for some minutes counts as left.

import {effect, hub, liveState, loaded, now, past, remembered, signal} from "./store.js";

const LEFT_MS = 5 * 60_000, SAVE_MS = 15_000;
const looks = remembered("looks", {});
export const awaySince = signal(0); // ms of the last look before this one, 0 if there is nothing to tell

const place = () => hub.peek().repository ?? "";

function look() {
  if (!loaded.peek() || document.hidden || past.peek()) return;
  looks.value = {...looks.peek(), [place()]: {at: now.peek(), offset: liveState().offset}};
}

// Since when there is something to tell, if the reader looked last at `last`: {at, offset}; 0 for nothing.
export const newsSince = (last, nowMs, offset) => (last && nowMs - last.at > LEFT_MS && offset > last.offset ? last.at : 0);

function arrive() {
  awaySince.value = newsSince(looks.peek()[place()], now.peek(), liveState().offset) || awaySince.peek();
  look();
}

export const dismiss = () => {
  awaySince.value = 0;
};

export function start() {
  let known = false;
  effect(() => {
    if (loaded.value && !known) {
      known = true;
      queueMicrotask(arrive);
    }
  });
  setInterval(look, SAVE_MS);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && known) queueMicrotask(arrive);
  });
}
