// The bar under every view that shows the past: a slider over the log, steps, play, and a link to this moment.

import * as router from "../core/router.js";
import * as store from "../core/store.js";
import {SPEEDS} from "../core/travel.js";
import {count, when} from "../core/format.js";
import {copy} from "./act.js";
import {html, icon, nothing, option} from "./html.js";

const SEEK_MS = 120;
let seeking = null;

// Goes to an offset once the slider rests for a moment. It would not stay under the hand while something plays.
function seek(offset) {
  store.traveller.pause();
  clearTimeout(seeking);
  seeking = setTimeout(() => router.setQuery({at: String(offset)}), SEEK_MS);
}

// Opens the past at the newest entry, or returns to the live page.
export function toggle() {
  const inPast = router.address.peek().searchParams.get("at");
  router.setQuery({at: inPast ? "" : String(store.liveState().offset)}, {replace: false});
}

export const stepBack = () => {
  const state = store.past.peek()?.state;
  if (state) router.setQuery({at: String(Math.max(store.firstOffset.peek(), state.offset - 1))});
};
export const stepOn = () => void (store.past.peek()?.state && store.traveller.step(1));
export function playOrPause() {
  const found = store.past.peek();
  if (!found?.state) return;
  if (found.playing) store.traveller.pause();
  else void store.traveller.play();
}

// A time such as 2026-11-18T14:03 for the field, in the reader's zone.
function localTime(ms) {
  const shifted = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

function jump(event) {
  const ms = new Date(event.target.value).getTime();
  if (Number.isFinite(ms)) router.setQuery({at: `t${ms}`});
}

export function timebar(past) {
  if (!past) return nothing;
  const first = store.firstOffset.value, last = Math.max(store.liveState().offset, past.state?.offset ?? 0);
  const offset = past.state?.offset ?? first, at = past.state?.at ?? 0;
  return html`<section class="timebar" aria-label="Time">
    <div class="controls">
      <button class="button small" @click=${stepBack} aria-label="Entry before ([)" title="Entry before ([)" ?disabled=${offset <= first}>${icon("back")}</button>
      <button class="button small primary" @click=${playOrPause} aria-label=${past.playing ? "Pause (p)" : "Play (p)"} title="Play or pause (p)">${icon(past.playing ? "pause" : "play")}</button>
      <button class="button small" @click=${stepOn} aria-label="Next entry (])" title="Next entry (])" ?disabled=${offset >= last}>${icon("next")}</button>
      <label><span class="hidden">Speed</span><select @change=${(event) => void (past.playing ? store.traveller.play(Number(event.target.value)) : store.traveller.update({speed: Number(event.target.value)}))}>${
        SPEEDS.map((speed) => option(speed, `${speed} ×`, past.speed))}</select></label>
    </div>
    <label class="slider"><span class="hidden">Entry of the log, ${first} to ${last}</span><input type="range" min=${first} max=${last} step="1" .value=${String(offset)}
      aria-valuetext=${at ? `${when(at, Date.now())}, entry ${offset}` : `entry ${offset}`} @input=${(event) => seek(event.target.value)}></label>
    <div class="controls">
      <label><span class="hidden">Go to a time</span><input type="datetime-local" step="1" .value=${at ? localTime(at) : ""} @change=${jump}></label>
      <span class="muted" title=${count(last - offset, "entry", "entries")}>${offset} / ${last}</span>
      <button class="button small" @click=${() => copy(location.href)}>${icon("link")} Share</button>
      <button class="button small" @click=${toggle}>Live</button>
    </div>
  </section>`;
}
