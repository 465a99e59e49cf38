// Short notes at the edge of the page, read out by screen readers: toast("Released", {tone: "ok", undo}). A note with a
// `place` takes that of the one before it there. While a pointer or the focus is on the notes, nothing moves there and
// no time passes; a hidden page keeps them, too.

import {may, signal} from "../core/store.js";
import {html, icon, nothing, repeat} from "./html.js";

const MOST = 4, TICK_MS = 250;
const notes = signal([]);
let coming = [], newest = 0, ticking = 0, undo = null;

export function toast(words, {tone = "ok", seconds = 6, ...more} = {}) {
  undo = more.undo ?? undo;
  coming = coming.filter((each) => !more.place || each.place !== more.place);
  coming.push({id: ++newest, words, tone, leftMs: seconds * 1000 * (tone === "bad" ? 2 : 1), ...more});
  arrive();
  ticking ||= setInterval(tick, TICK_MS);
}

// Undoes the newest act that can be undone, also after its note is gone; nobody can in the past, and it stays for later.
export function undoLast() {
  if (undo?.() !== false) undo = null;
}

// Returns the note at a place, or undefined.
export const noteAt = (place) => [...notes.peek(), ...coming].findLast((note) => note.place === place);

// Takes back notes for which `over(note)` holds.
export function takeBack(over) {
  coming = coming.filter((note) => !over(note));
  if (!touched() && notes.peek().some(over)) notes.value = notes.peek().filter((note) => !over(note));
}

const touched = () => document.querySelector(".toasts:is(:hover, :focus-within)") !== null;

function arrive() {
  if (!coming.length || touched()) return;
  notes.value = coming.reduce((shown, note) => {
    const at = note.place ? shown.findIndex((each) => each.place === note.place) : -1;
    return at < 0 ? [...shown, note].slice(-MOST) : shown.with(at, {...note, id: shown[at].id});
  }, notes.peek());
  coming = [];
}

function tick() {
  arrive();
  if (document.hidden || touched()) return;
  for (const note of notes.peek()) note.leftMs -= TICK_MS;
  const left = notes.peek().filter((note) => note.leftMs > 0);
  if (left.length < notes.peek().length) notes.value = left;
  if (!left.length) ticking = clearInterval(ticking);
}

function dismiss(id) {
  const focused = document.activeElement?.closest(".toast");
  notes.value = notes.peek().filter((note) => note.id !== id);
  if (focused && !focused.isConnected) (newestControl() ?? document.getElementById("content"))?.focus({preventScroll: true});
}

const newestControl = () => [...document.querySelectorAll(".toast :is(a, button)")].at(-1);
export const focusNewest = () => newestControl()?.focus();

const shown = (note) => {
  const leave = () => dismiss(note.id);
  return html`<div class="toast" data-tone=${note.tone} @keydown=${(event) => { if (event.key === "Escape") { event.preventDefault(); leave(); } }}>
    <div><strong>${note.words}</strong>${note.detail ? html`<p>${note.detail}</p>` : nothing}</div>
    ${note.path ? html`<a class="button small" href=${note.path} aria-label="Look: ${note.words}" @click=${leave}>Look</a>` : nothing}
    ${note.undo && may("view") ? html`<button class="button small" @click=${() => { leave(); if (undo === note.undo) undo = null; note.undo(); }}>Undo</button>` : nothing}
    <button class="bare" aria-label="Dismiss" @click=${leave}>${icon("close")}</button></div>`;
};

export const toasts = () => html`<div class="toasts">${[false, true].map((bad) => html`
  <div role=${bad ? nothing : "status"} aria-live=${bad ? "assertive" : "polite"} aria-atomic="false">${repeat(
    notes.value.filter((note) => (note.tone === "bad") === bad), (note) => note.id, shown)}</div>`)}</div>`;
