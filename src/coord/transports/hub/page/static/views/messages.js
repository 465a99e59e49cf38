// Messages: conversations between agents and with you. Looking at one delivers nothing: an agent still gets its mail.

import {acts} from "../core/acts.js";
import {get} from "../core/api.js";
import {addressOf, conversations, merge, pruned, unread} from "../core/conversations.js";
import {derived, matches} from "../core/derive.js";
import {clock, count, day, when} from "../core/format.js";
import {setQuery} from "../core/router.js";
import {hub, recentEntries, remembered, signal, touch} from "../core/store.js";
import {act, perform} from "../parts/act.js";
import {chip, empty, failed, filterField, foreign, heading, html, icon, nothing, repeat, skeleton, time} from "../parts/html.js";
import {agent, nameFor} from "../parts/sentence.js";

export const view = {path: "/messages", title: "Messages", key: "m", icon: "messages", order: 6, render, keys: [["c", "Write a message", () => perform(acts.message())]]};

const FOLDED_CHARS = 600, KEPT_MAX = 2000;
const stored = signal({key: "", messages: [], error: null, loaded: false});
const kept = new Map(); // texts that were seen: a message that was delivered since then stays readable here
const marks = remembered("messages.seen", {});
const unfolded = new Set();

let lookedAt = 0, changes = 0;

// Loads the texts again after an event about messages, and never without one.
function load({state, past}) {
  const entries = recentEntries();
  for (let place = entries.length - 1; place >= 0 && entries[place].offset > lookedAt; place -= 1) {
    if (entries[place].events?.some((event) => event.event.startsWith("message."))) changes += 1;
  }
  lookedAt = state.offset;
  const key = past ? "past" : `${state.versions.messages} ${changes}`;
  if (stored.peek().key === key || stored.peek().busy) return;
  stored.value = {...stored.peek(), key, busy: true};
  get("/v1/page/messages").then((messages) => {
    for (const each of kept.values()) each.gone = true;
    for (const each of messages) kept.set(each.id, each);
    while (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
    stored.value = {key, messages: [...kept.values()], error: null, loaded: true, busy: false};
  }, (error) => { stored.value = {...stored.peek(), error, loaded: true, busy: false}; }).finally(touch);
}

const found = derived(["messages"], (state, texts, before) => conversations(merge(state.recent.messages, texts, before)));

function title(one, state) {
  if (one.kind === "everybody") return "Everybody";
  if (one.kind === "group") return one.key.slice(6);
  const names = [...one.parties].map((each) => nameFor(state, each));
  return one.kind === "system" ? `coord & ${names[0]}` : names.join(" & ");
}

const seenKey = () => hub.value.repository ?? "";
const seenMarks = () => marks.value[seenKey()] ?? {};

function mark(one, all) {
  if (document.hidden || (seenMarks()[one.key] ?? 0) >= one.at) return;
  const keys = new Set(all.map((each) => each.key));
  queueMicrotask(() => { marks.value = {...marks.peek(), [seenKey()]: {...pruned(seenMarks(), keys), [one.key]: one.at}}; });
}

function render(context) {
  const {state, query, q, past} = context;
  load(context);
  const all = found(state, stored.value.messages, past ? state.at : undefined);
  const shown = all.filter((one) => !q || matches(q, `${title(one, state)} ${one.messages.map((message) => `${message.subject} ${message.body ?? ""}`).join(" ")}`));
  const chosen = all.find((one) => one.key === query.with) ?? (query.with ? null : shown[0]);
  if (chosen && !past && (query.with || matchMedia("(min-width: 721px)").matches)) mark(chosen, all);
  const forbidden = stored.value.error?.status === 403;
  return html`${heading("Messages", count(all.length, "conversation"), html`${filterField(q, (text) => setQuery({q: text}), "Filter messages")}
      ${writing("Write", undefined, null, {kind: "primary", icon: "send"})}`)}
    ${stored.value.error && !forbidden ? failed(stored.value.error, () => { stored.value = {...stored.value, key: ""}; touch(); }) : nothing}
    ${forbidden ? empty("Messages are not for this token", "It sees one project, and messages belong to none.")
      : !all.length ? (stored.value.loaded ? empty("Nobody has written yet", html`Agents write to each other with <code>coord send</code>; you write with the button above, or with the key <kbd>c</kbd>.`) : skeleton(6))
      : q && !shown.length ? empty("No message fits", "Press escape to see all of them.")
      : html`<div class="mail ${query.with ? "chosen" : ""}"><nav class="panel" aria-label="Conversations"><ul>${repeat(shown, (one) => one.key, (one) => entry(one, chosen, context))}</ul></nav>
        ${chosen ? thread(chosen, context) : html`<div class="panel thread"><p class="muted note">This conversation is not in the log any more.</p></div>`}</div>`}`;
}

const ICONS = {everybody: "messages", group: "cards", system: "settings", pair: "agent"};

function entry(one, chosen, {state, now, past}) {
  const last = one.messages.at(-1), fresh = past ? 0 : unread(one, seenMarks());
  return html`<li><button type="button" class="conversation" data-row aria-current=${one === chosen ? "true" : nothing} @click=${() => setQuery({with: one.key}, {replace: false})}>
    ${icon(ICONS[one.kind])}<span class="cut name">${foreign(title(one, state))}</span><span class="muted when">${time(one.at, when(one.at, now).replace(/:\d\d$/, ""))}</span>
    <span class="cut muted subject">${foreign(last.subject)}</span>${fresh ? html`<b class="badge" aria-label=${count(fresh, "new message")}>${fresh}</b>` : nothing}</button></li>`;
}

function thread(one, context) {
  const {state} = context;
  const messages = one.messages.slice(-200);
  return html`<section class="panel thread" aria-labelledby="thread"><header><button type="button" class="bare back" aria-label="All conversations" @click=${() => setQuery({with: ""})}>${icon("back")}</button>
      <h2 id="thread" class="clamp">${foreign(title(one, state))}</h2><span class="muted">${one.kind === "system" ? "notices of coord" : one.parties.size > 2 ? count(one.parties.size, "session") : ""}</span>
      ${one.kind === "system" ? nothing : writing("Write here", addressOf(one, context.who.session), null, {small: true, kind: "end", icon: "send"})}</header>
    <ol>${repeat(messages, (message) => message.id, (message, place) => html`${newDay(message, messages[place - 1]) ? html`<li class="day">${day(message.at)}</li>` : nothing}<li>${letter(message, one, context)}</li>`)}</ol></section>`;
}

const newDay = (message, before) => !before || new Date(before.at).toDateString() !== new Date(message.at).toDateString();

function letter(message, one, context) {
  const {state, who} = context;
  const mine = message.from === who.session;
  const long = (message.body?.length ?? 0) > FOLDED_CHARS && !unfolded.has(message.id);
  return html`<article class="letter ${mine ? "mine" : ""}" data-row data-tone=${message.kind === "emergency" ? "bad" : message.kind === "warn" ? "wait" : "idle"} tabindex="-1">
    <header>${agent(message.from, "", state)}${one.kind !== "pair" ? html`<span class="muted">to ${message.group ? `group ${message.group}` : message.to.length > 3 ? count(message.to.length, "session") : message.to.map((each, place) => html`${place ? ", " : ""}${agent(each, "", state)}`)}</span>` : nothing}
      <span class="tag">${message.kind}</span>${message.lost ? chip("bad", "not delivered", message.lost.map((each) => each.reason).join("; ")) : message.waiting && !message.gone ? chip("wait", "not read yet") : nothing}
      <span class="muted end">${time(message.at, clock(message.at))}</span></header>
    <h3>${foreign(message.subject)}</h3>
    ${message.body === undefined ? (stored.value.loaded ? nothing : skeleton(1)) : message.body ? html`<div class="text">${foreign(long ? `${message.body.slice(0, FOLDED_CHARS)}…` : message.body, "pre")}</div>
      ${long || message.cut ? html`<button type="button" class="button small" @click=${() => unfold(message)}>Show all of it</button>` : nothing}` : nothing}
    <footer>${message.from === "system" || mine ? nothing : writing("Reply", message.from, message, {small: true})}
      ${message.body === undefined && stored.value.loaded ? html`<span class="muted" title="The log keeps subjects; the text left with the message.">only the subject is left</span>` : nothing}</footer></article>`;
}

async function unfold(message) {
  unfolded.add(message.id);
  if (message.cut) {
    const [whole] = await get("/v1/page/messages", {id: message.id}).catch(() => []);
    if (whole) kept.set(whole.id, whole);
    stored.value = {...stored.value, messages: [...kept.values()]};
  }
  touch();
}

// A button that opens the form; `to` is a session, an agent, role:NAME, group:NAME, or "" for everybody; without it the form asks.
const writing = (label, to, answered, look) => act({...acts.message(to, to, answered), label, ...look});
