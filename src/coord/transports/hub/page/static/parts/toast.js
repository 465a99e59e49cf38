// Short notes at the edge of the page, read out by screen readers: toast("Released", {tone: "ok", undo}). A note with a
// `place` replaces the one before it there.

import {signal} from "../core/store.js";
import {html, icon, nothing, repeat} from "./html.js";

const notes = signal([]);
let newest = 0;

export function toast(words, {tone = "ok", detail = "", undo = null, seconds = 6, place = ""} = {}) {
  const note = {id: ++newest, words, tone, detail, undo, place};
  notes.value = [...notes.peek().filter((each) => !place || each.place !== place).slice(-3), note];
  setTimeout(() => dismiss(note.id), seconds * 1000 * (tone === "bad" ? 2 : 1));
}

const dismiss = (id) => {
  notes.value = notes.peek().filter((note) => note.id !== id);
};

export const toasts = () => html`
  <div class="toasts" role="status" aria-live="polite">${repeat(notes.value, (note) => note.id, (note) => html`
    <div class="toast" data-tone=${note.tone}><div><strong>${note.words}</strong>${note.detail ? html`<p>${note.detail}</p>` : nothing}</div>
      ${note.undo ? html`<button class="button small" @click=${() => { dismiss(note.id); note.undo(); }}>Undo</button>` : nothing}
      <button class="bare" aria-label="Dismiss" @click=${() => dismiss(note.id)}>${icon("close")}</button></div>`)}</div>`;
