// Notices as toasts and, if the reader turns them on, as notifications of the browser while nobody looks at the page.
// Of several pages of a browser only that one notifies at which somebody looked last.

import {visible} from "../core/format.js";
import {DEFAULTS, deskOf, endIn, gather, gathering, isOver, isQuiet, joined, LEVELS, noticeOf, taken, titleOf, WAYS} from "../core/notices.js";
import {go} from "../core/router.js";
import * as store from "../core/store.js";
import {html, nothing, option} from "./html.js";
import {learn, said, sentencesReady, words} from "./sentence.js";
import {noteAt, takeBack, toast} from "./toast.js";

const SECONDS = 10, BODY_MAX = 240, AGAIN_MS = 30_000;
const kept = store.remembered("notify", DEFAULTS);
const settings = () => ({...DEFAULTS, ...kept.value});
const looking = () => !document.hidden && document.hasFocus();
const soon = new Map(), later = new Map(); // until the end of a moment, and of the quiet hours
const open = new Map(); // notifications that may still be there
let waits = false, leads = 0; // how many locks it has: one more for a moment, while it takes one from itself

export function start() {
  const add = gathering(tell, soon);
  store.onEntry((entry, state) => {
    for (const event of entry.events ?? []) {
      end(event);
      const notice = noticeOf(store.liveNotices(), event, {state, who: store.who.peek()});
      if (notice && settings()[notice.level] !== "off") add(notice);
    }
  });
  lead(looking());
  for (const name of ["focus", "visibilitychange"]) addEventListener(name, look, true);
}

// Takes back what an event ends.
function end(event) {
  takeBack(({notice}) => notice && isOver(notice, event));
  endIn(soon, event);
  endIn(later, event);
  for (const [made, notice] of open) {
    if (isOver(notice, event)) {
      made.close();
      open.delete(made);
    }
  }
}

// The page that has this lock notifies; the others wait for it, in case that one is closed.
function lead(steal) {
  if (waits && !steal) return;
  waits ||= !steal;
  let granted = 0;
  navigator.locks?.request("coord.notify", {steal}, () => {
    leads += granted = 1;
    waits &&= steal;
    return new Promise(() => {});
  }).catch(() => {
    leads -= granted;
    if (granted) lead(false);
  });
}

function look() {
  if (!looking()) return;
  later.clear();
  if (!leads) lead(true);
}

async function tell(notice) {
  await sentencesReady();
  learn([notice.event]);
  note(notice);
  const when = leads ? deskOf(settings(), notice.level, {looking: looking(), now: Date.now()}) : "";
  if (when === "now") notify(titleOf(notice), words(notice.event, store.liveState()), notice);
  if (when === "later") {
    if (!later.size) setTimeout(afterQuiet, AGAIN_MS);
    gather(later, notice);
  }
}

function note(given) {
  const place = `notice ${given.kind}`, notice = joined(noteAt(place)?.notice, given), {path} = notice;
  toast(titleOf(notice), {tone: notice.tone, detail: said(notice.event, store.liveState()), seconds: SECONDS, place, notice,
    path: store.past.peek() ? `${path}${path.includes("?") ? "&" : "?"}at=` : path});
}

function afterQuiet() {
  if (isQuiet(settings(), Date.now()) && later.size) setTimeout(afterQuiet, AGAIN_MS);
  else {
    const found = taken(later);
    if (found.length && leads) notify("While it was quiet", found.map(titleOf).join(" · "), {key: "quiet", path: "/now"});
  }
}

function notify(title, body, notice) {
  const {key, path} = notice;
  if (permission() !== "granted") return;
  const name = store.hub.peek().repository;
  try {
    const made = new Notification(name ? `${title} · ${visible(name)}` : title, {body: visible(body).slice(0, BODY_MAX), tag: `coord ${key}`});
    made.onclose = () => open.delete(made);
    made.onclick = () => {
      focus();
      go(path);
      made.close();
    };
    if (notice.until) open.set(made, notice);
  } catch {
    change({on: false}); // phones show only those of installed pages
    toast("This browser shows no notifications of pages", {tone: "bad"});
  }
}

// --- settings ---

const permission = () => (!isSecureContext ? "insecure" : globalThis.Notification?.permission ?? "missing");
const change = (values) => { kept.value = {...settings(), ...values}; };
const STATES = {
  insecure: "Browsers show notifications only over https, or from 127.0.0.1: this page came over plain http.",
  missing: "This browser has no notifications of pages.",
  denied: "This browser blocks notifications of this page. Its settings of the site allow them again.",
};

async function turnOn() {
  if (await Notification.requestPermission() === "granted") {
    change({on: true});
    notify("Notifications are on", "They come while you look at something else.", {key: "on", path: "/now"});
  }
  store.touch();
}

// How the reader is notified, kept in this browser.
export function noticeSettings() {
  const now = settings(), state = permission(), on = now.on && state === "granted";
  const hour = (name, label) => html`<label>${label}<input type="time" required .value=${now[name]} @change=${(event) => { if (event.target.value) change({[name]: event.target.value}); }}></label>`;
  return html`<section class="panel pad" aria-label="Notices"><header class="heading"><h2>Notices</h2></header><div class="form"><p>${STATES[state] ?? html`<button type="button" class="button" @click=${() => (on ? change({on: false}) : turnOn())}>Turn ${on ? "off" : "on"} notifications of the browser</button>`}</p>
    ${LEVELS.map(([level, label]) => html`<label>${label}<select @change=${(event) => change({[level]: event.target.value})}>${
      WAYS.map(([way, text]) => option(way, text, now[level]))}</select></label>`)}
    <label class="inline"><input type="checkbox" .checked=${now.quiet} @change=${(event) => change({quiet: event.target.checked})}>Quiet hours: no notification of the browser</label>
    ${now.quiet ? html`${hour("begin", "From")}${hour("end", "Until")}` : nothing}</div></section>`;
}
