// An event as a sentence with links: agents, files, tasks.

import {get} from "../core/api.js";
import {count, duration, money, number, resource, when} from "../core/format.js";
import {link} from "../core/router.js";
import {FILES, SESSIONS, sentence} from "../core/sentences.js";
import {isEmpty} from "../core/state.js";
import {signal} from "../core/store.js";
import {code, foreign, html, nothing} from "./html.js";

const NAMED_MAX = 3, TIMES_FROM_MS = 1e11;
const templates = signal(null);
const learned = new Map(); // the agents of sessions that have ended, from their events
let asked = null;

export function learn(items) {
  for (const {session, agent: name} of items) if (session && name) learned.set(session, name);
}
export const nameFor = (state, session) => state.tables.sessions.get(session)?.agent ?? learned.get(session) ?? session;

// The sentences of the hub, which are loaded once; {} until they are here.
export function sentences() {
  void sentencesReady();
  return templates.value ?? {};
}
export const sentencesReady = () => (asked ??= get("/v1/page/sentences").then((found) => { templates.value = found; }, () => { asked = null; }));
export const sentencesLoaded = () => templates.value !== null;

function plain(field, value, state) {
  if (SESSIONS.has(field)) return names(value, state).join(", ");
  if (FILES.has(field)) return (Array.isArray(value) ? value : [value]).map(resource).join(", ");
  if (Array.isArray(value)) return value.join(", ");
  if (value && typeof value === "object") return Object.entries(value).map(([name, each]) => `${name} ${each}`).join(", ");
  if (typeof value === "number") {
    if (field.endsWith("_ms")) return value > TIMES_FROM_MS ? when(value) : duration(value / 1000);
    if (field.endsWith("_s")) return duration(value);
    if (field === "cost" || field === "estimated") return money(value);
    return number(value);
  }
  if (field === "commit" || field === "tip") return String(value ?? "").slice(0, 10);
  if (field === "end_reason" || field === "reason" || field === "status") return String(value ?? "").replaceAll("_", " ").replace(/^[A-Z ]+$/, (text) => text.toLowerCase());
  return String(value ?? "");
}

const names = (value, state) => (Array.isArray(value) ? value : [value]).filter(Boolean).map((each) => nameFor(state, each));

// The sentence as text, for filters and for screen readers.
export const words = (item, state) => sentence(sentences(), item).map((piece) => piece.text ?? plain(piece.field, piece.value, state)).join("");

// The sentence as a template.
export const said = (item, state) => html`${sentence(sentences(), item).map((piece) => (piece.text !== undefined ? piece.text : shown(piece, item, state)))}`;

function shown({field, value}, item, state) {
  if (isEmpty(value)) return field === "session" ? "somebody" : "";
  if (SESSIONS.has(field)) return several(value, (each) => agent(each, field === "session" ? item.agent : "", state));
  if (FILES.has(field)) return several(value, (each) => html`<a class="code" href=${(field === "files" ? link.file : link.lock)(each)}>${foreign(resource(each))}</a>`);
  if (field === "task") return html`<a href=${link.task(item.project, value)}><b>${foreign(value)}</b></a>`;
  if (field === "commit" || field === "tip") return code(plain(field, value, state));
  return foreign(plain(field, value, state));
}

function several(value, one) {
  const all = Array.isArray(value) ? value : [value];
  return html`${all.slice(0, NAMED_MAX).map((each, place) => html`${place ? ", " : nothing}${one(each)}`)}${
    all.length > NAMED_MAX ? ` and ${count(all.length - NAMED_MAX, "other")}` : nothing}`;
}

export const agent = (session, name, state) => (session === "system" ? "coord"
  : html`<a class="agent-name" href=${link.agent(session)}>${foreign(name || nameFor(state, session))}</a>`);
