// Activity: what happened, as sentences or as lanes by agent; older entries come as you scroll.

import {agentsOf, kindsOf, lanes, passes, Past, ticks} from "../core/activity.js";
import {get} from "../core/api.js";
import {derived, names} from "../core/derive.js";
import {clock, count, day, duration, moment, resource, when} from "../core/format.js";
import {go, link, setQuery} from "../core/router.js";
import {liveState, recentEntries, signal, touch} from "../core/store.js";
import {command, copy} from "../parts/act.js";
import {open} from "../parts/dialog.js";
import {choice, css, empty, failed, filterField, foreign, heading, html, icon, nothing, option, skeleton, svg, time} from "../parts/html.js";
import {list} from "../parts/list.js";
import {learn, nameFor, said, sentences, sentencesLoaded, words} from "../parts/sentence.js";

export const view = {path: "/activity", title: "Activity", key: "a", icon: "activity", order: 5, render};

const PAGE = 300, AUTOMATIC_PAGES = 6, ROW = 34, LANE = 46;
const past = new Past();
const loading = signal(""); // "", "loading", or what went wrong
let first = 0, automatic = 0, tried = "", shownItems = [], shownCount = 0, shownKey = "";

// --- the log ---

async function loadOlder() {
  if (loading.peek() === "loading" || past.trimmed) return;
  loading.value = "loading";
  try {
    const events = await past.load(get, PAGE, first);
    learn(events.map((each) => each.details));
    loading.value = "";
  } catch (error) {
    const begins = Number(/offset (\d+)/.exec(error.code === "trimmed" ? error.message : "")?.[1]);
    if (begins) {
      first = begins;
      past.trimmed = past.low < begins;
      loading.value = "";
      if (!past.trimmed) void loadOlder();
    } else loading.value = error.message;
  }
  touch();
}

// Asks for older entries while a filter finds little, but not without end.
function loadSome(found, wanted, key) {
  if (tried !== key) {
    tried = key;
    automatic = 0;
  }
  if (found < wanted && automatic < AUTOMATIC_PAGES && !past.trimmed && loading.peek() === "") {
    automatic += 1;
    void loadOlder();
  }
}

// --- the feed ---

function filtered(filter, state) {
  const known = past.upTo(state.offset), key = JSON.stringify([filter, past.low, sentencesLoaded(), names(state)]);
  if (key !== shownKey || known.length < shownCount) [shownKey, shownCount, shownItems] = [key, 0, []];
  if (shownCount < known.length) { // only what is new is looked at
    const nameOf = (session) => nameFor(state, session);
    const text = (item) => `${words(item, state)} ${item.event} ${item.task ?? ""}`;
    shownItems = known.slice(shownCount).filter((item) => passes(item, filter, nameOf, text)).reverse().concat(shownItems);
    shownCount = known.length;
  }
  return shownItems;
}

function follow({state, who, past: earlier}) {
  sentences();
  if (past.follow(recentEntries(), state.offset, who.project ? earlier?.run ?? liveState() : null)) learn(past.items.slice(-200));
}

// The newest events of a session, for its own page.
export function newestOf(session, many, context) {
  follow(context);
  const found = past.upTo(context.state.offset).filter((item) => item.session === session).slice(-many).reverse();
  loadSome(found.length, many, `of ${session}`);
  return found;
}

// What stands where none of them is loaded.
export const noneLoaded = () => (loading.value === "loading" ? skeleton(2) : loading.value ? failed({message: loading.value}, loadOlder)
  : html`<p class="muted">Nothing that is loaded.</p>`);

function render(context) {
  const {state, query} = context;
  follow(context);
  const filter = {agent: query.agent, kind: query.kind, file: query.file, task: query.task, q: query.q, all: query.all};
  const shape = query.shape === "lanes" ? "lanes" : "feed";
  return html`${heading("Activity", detail(context), html`${filterField(query.q ?? "", (text) => setQuery({q: text}), "Filter events")}
      ${choice("Shape", shape, [["feed", html`${icon("rows")} Feed`], ["lanes", html`${icon("activity")} Lanes`]], (value) => setQuery({shape: value === "feed" ? "" : value}))}`)}
    ${filters(filter, state)}
    ${shape === "lanes" ? laneView(context, filter) : feedView(context, filter)}`;
}

function detail({state, now}) {
  const known = past.upTo(state.offset);
  return html`${count(known.length, "event")} loaded${known.length ? html`, since ${when(known[0].at, now)}` : nothing}`;
}

const agents = derived([], (state, items) => agentsOf(items, (session) => nameFor(state, session)));
const kinds = derived([], (templates) => kindsOf(Object.keys(templates)));

function filters(filter, state) {
  const found = agents(state, past.upTo(state.offset), names(state));
  const active = ["agent", "kind", "file", "task"].filter((name) => filter[name]);
  return html`<form class="filters" aria-label="Filters" @submit=${(event) => event.preventDefault()}>
    <label><span>Agent</span><select @change=${(event) => setQuery({agent: event.target.value})}>${
      [...new Set(["", ...found, filter.agent ?? ""])].map((name) => option(name, name || "Everybody", filter.agent))}</select></label>
    <label><span>Kind</span><select @change=${(event) => setQuery({kind: event.target.value})}>${option("", "What matters", filter.kind)}
      ${kinds(sentences()).map(([kind, events]) => html`<optgroup label=${kind}>${option(kind, `${kind}.*`, filter.kind)}${events.map((name) => option(name, name, filter.kind))}</optgroup>`)}</select></label>
    <label><span>File</span><input type="search" placeholder="src/…" .value=${filter.file ?? ""} @change=${(event) => setQuery({file: event.target.value})}></label>
    <label><span>Task</span><input type="search" placeholder="T-1" .value=${filter.task ?? ""} @change=${(event) => setQuery({task: event.target.value})}></label>
    <label class="inline"><input type="checkbox" .checked=${Boolean(filter.all)} @change=${(event) => setQuery({all: event.target.checked ? "1" : ""})}>Heartbeats too</label>
    ${active.length ? html`<button type="button" class="button small" @click=${() => setQuery({agent: "", kind: "", file: "", task: "", all: ""})}>Clear</button>` : nothing}</form>`;
}

function feedView(context, filter) {
  const {state} = context;
  const items = filtered(filter, state);
  loadSome(items.length, 60, JSON.stringify(filter));
  if (!items.length && loading.value === "loading") return skeleton(10);
  const end = past.trimmed ? "trimmed" : "more";
  const rows = [...items, {key: end, end}];
  return items.length || past.items.length === 0 && !past.trimmed || !past.trimmed
    ? html`<div class="table feed" @scroll=${{handleEvent: scrolled, capture: true, passive: true}}>
        ${list({items: rows, height: ROW, label: "What happened, newest first", key: (item) => item.key, row: (item, index) => row(item, rows[index - 1], context)})}</div>`
    : empty(filter.q || filter.kind || filter.agent || filter.file || filter.task ? "Nothing fits" : "Nothing has happened yet",
      filter.q ? "Press escape to see everything." : "Every lock, claim, commit and message appears here as it happens.");
}

function scrolled({target}) {
  if (target.scrollHeight - target.scrollTop - target.clientHeight < ROW * 20) void loadOlder();
}

const TONES = {task: "work", lock: "accent", git: "ok", question: "ask", alert: "bad", message: "ask", file: "idle", session: "idle"};
const BAD = /denied|refused|rejected|deadlock|expired|errored|failed|hung|restored|undelivered|exceeded|raised|superseded/;
const ICONS = {task: "task", lock: "locks", git: "merges", question: "question", alert: "alerts", message: "messages", file: "file", session: "session", reaction: "play", usage: "numbers", agent: "agent"};
const toneOf = (item) => (BAD.test(item.event) ? "bad" : TONES[item.event.split(".")[0]] ?? "idle");
const iconOf = (item) => ICONS[item.event.split(".")[0]] ?? "settings";

function row(item, before, {state}) {
  if (item.end) return endRow(item.end);
  const newDay = !before || before.end || new Date(before.at).toDateString() !== new Date(item.at).toDateString();
  return html`<div class="row" data-row data-tone=${toneOf(item)} tabindex="0" role="group" aria-label=${`${clock(item.at)} ${words(item, state)}: details`}
      @click=${(event) => { if (!event.target.closest("a")) showItem(item, state); }} @keydown=${(event) => { if (event.key === "Enter" && event.target === event.currentTarget) showItem(item, state); }}>
    <span class="when">${newDay && before ? html`<b>${day(item.at)}</b> ` : nothing}${time(item.at, clock(item.at))}</span>
    <span class="sign">${icon(iconOf(item))}</span><span class="cut said">${said(item, state)}</span><span class="muted kind">${item.event}</span></div>`;
}

function endRow(kind) {
  if (kind === "trimmed") return html`<div class="row end-row muted" role="note">${icon("stop")}<span>${past.low > 0 ? html`The log was trimmed here: entries up to ${past.low} are gone.` : "The log begins here."}</span></div>`;
  return html`<div class="row end-row">${loading.value === "loading" ? html`<span class="muted">Loading older entries …</span>`
    : html`<button type="button" class="button small" @click=${loadOlder}>Older entries</button>${loading.value ? html`<span class="problem" role="alert">${loading.value}</span>` : nothing}`}</div>`;
}

// The whole event: its sentence, the raw entry, and the way to that moment.
function showItem(item, state) {
  const {key, offset, at, ...event} = item;
  const raw = JSON.stringify(event, null, 2);
  open({title: item.event, size: "wide", body: (box) => html`<div class="raw">
    <p class="said">${said(item, state)}</p>
    <p class="muted">${moment(at)} · entry ${offset}${event.origin?.user ? html` · by ${foreign(event.origin.user)}${event.origin.address ? ` from ${event.origin.address}` : nothing}` : nothing}</p>
    <pre tabindex="0" dir="ltr">${foreign(raw)}</pre>
    ${command(`coord log tail --op ${item.event} -n 20`)}
    <footer><button type="button" class="button" @click=${() => copy(raw)}>${icon("copy")}Copy JSON</button>
      <button type="button" class="button" @click=${() => { box.close(); go(`/now?at=${offset}`); }}>${icon("clock")}See that moment</button></footer></div>`});
}

// --- lanes ---

const SPANS = [["900", "15m"], ["3600", "1h"], ["21600", "6h"], ["86400", "1d"]];
const BAR_WORDS = {claim: "task", lock: "lock", wait: "waits for"};

function laneView(context, filter) {
  const {state, query} = context, now = context.past ? state.at : Math.floor(context.now / 5000) * 5000 + 5000;
  const span = SPANS.find(([value]) => value === query.span)?.[0] ?? "3600", from = now - Number(span) * 1000;
  const known = past.upTo(state.offset), oldest = known[0]?.at ?? now;
  loadSome(oldest > from ? 0 : 1, 1, `lanes ${span}`);
  const nameOf = (session) => nameFor(state, session);
  const near = (now - from) / 160;
  const rows = lanes(known, from, now, near).filter((row) => !filter.agent || row.session === filter.agent || nameOf(row.session) === filter.agent);
  const share = (at) => `${Math.max(0, Math.min(100, ((at - from) / (now - from)) * 100)).toFixed(3)}%`;
  return html`<section class="panel lanes" aria-label="Lanes by agent" dir="ltr">
    <header><div class="legend">${[["claim", "task"], ["lock", "lock"], ["wait", "waits"], ["commit", "commit"], ["bad", "refused"], ["ask", "question"], ["message", "message"]].map(([kind, label]) => html`
        <span><i class="swatch ${kind}"></i>${label}</span>`)}</div>
      ${choice("Time", span, SPANS, (value) => setQuery({span: value === "3600" ? "" : value}))}</header>
    <div class="axis" aria-hidden="true">${ticks(from, now).map((at) => html`<span ${css({"inset-inline-start": share(at)})}>${clock(at).slice(0, 5)}</span>`)}</div>
    ${rows.length ? list({items: rows, height: LANE, label: "Lanes", key: (lane) => lane.session, row: (lane) => laneRow(lane, {from, now, share, state})})
      : empty("Nobody did anything in this time", "Choose a longer one.")}
    ${oldest > from && !past.trimmed ? html`<p class="muted note">${loading.value === "loading" ? "Loading …" : html`Loaded from ${clock(oldest)} on. <button type="button" class="button small" @click=${loadOlder}>Older entries</button>`}</p>` : nothing}
  </section>`;
}

function laneRow(lane, {from, now, share, state}) {
  const width = (bar) => `${Math.max(0.15, ((bar.to - bar.from) / (now - from)) * 100).toFixed(3)}%`;
  const y = {claim: 7, wait: 21, lock: 21}, high = {claim: 11, wait: 9, lock: 6};
  const label = `${nameFor(state, lane.session)}: ${count(lane.bars.filter((bar) => bar.kind === "claim").length, "task")}, ${count(lane.bars.filter((bar) => bar.kind === "lock").length, "lock")}, ${count(lane.marks.length, "event")}`;
  return html`<div class="lane" data-row><a class="cut agent-name" href=${link.agent(lane.session)}>${foreign(nameFor(state, lane.session))}</a>
    <svg role="img" aria-label=${label}>${ticks(from, now).map((at) => svg`<line class="tick" x1=${share(at)} x2=${share(at)} y2="45"></line>`)}${lane.bars.slice(-400).map((bar) => svg`<rect class="bar ${bar.kind} ${bar.open ? "open" : ""}" x=${share(bar.from)} y=${y[bar.kind]} width=${width(bar)} height=${high[bar.kind]} rx="2"
        @click=${() => showItem(bar.item, state)}><title>${BAR_WORDS[bar.kind]} ${bar.item.task ?? resource(bar.item.resource ?? bar.item.resources?.[0])}, ${duration((bar.to - bar.from) / 1000)}</title></rect>`)}
      ${lane.marks.slice(-300).map((mark) => svg`<g class="mark ${mark.kind}" @click=${() => showItem(mark.items.at(-1), state)}>${glyph(mark, share(mark.at))}<title>${clock(mark.at)} ${mark.items.length > 1 ? `${mark.items.length} × ` : ""}${words(mark.items.at(-1), state)}</title></g>`)}</svg></div>`;
}

const glyph = (mark, x) => (mark.kind === "bad" ? svg`<rect x=${x} y="31" width="7" height="7" rx="1"></rect>`
  : mark.kind === "edit" || mark.kind === "begin" || mark.kind === "end" ? svg`<rect x=${x} y="30" width="2" height="9"></rect>`
  : svg`<circle cx=${x} cy="35" r=${Math.min(5.5, 3.4 + Math.log2(mark.items.length) * 0.5)}></circle>`);
