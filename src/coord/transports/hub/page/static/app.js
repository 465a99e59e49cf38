// The entry of the page: the frame around the views, the keyboard, and one effect that draws everything.
// A view is {path, title, key, icon, order, render(context)}; `views/index.js` lists them. The context has
// state (tables, recent, versions), now, who, hub, values and query of the address, and the filter `q`.

import {acts, HOLDS} from "./core/acts.js";
import * as away from "./core/away.js";
import * as keys from "./core/keys.js";
import * as router from "./core/router.js";
import * as store from "./core/store.js";
import {nameOf, needsYou} from "./core/derive.js";
import {ago, clock, count, duration, resource, visible, when} from "./core/format.js";
import {isNearest} from "./core/travel.js";
import {command, perform} from "./parts/act.js";
import {start as startTitles} from "./parts/cut.js";
import {close, open} from "./parts/dialog.js";
import {chip, failed, html, icon, nothing, option, render, skeleton} from "./parts/html.js";
import {pick} from "./parts/menu.js";
import {start as startNotices} from "./parts/notify.js";
import {nextTheme, start as startTheme, theme, THEMES} from "./parts/theme.js";
import {playOrPause, stepBack, stepOn, timebar, toggle} from "./parts/timebar.js";
import {focusNewest, toast, toasts, undoLast} from "./parts/toast.js";
import {views} from "./views/index.js";

const listed = views.filter((view) => view.order !== undefined).sort((one, other) => one.order - other.order);
const root = document.getElementById("page");
const THEME_ICONS = {auto: "auto", light: "sun", dark: "moon", contrast: "contrast"};

function context(found) {
  return {
    state: store.shown.value, now: store.now.value, who: store.who.value, hub: store.hub.value,
    values: found.values, query: found.query, q: found.query.q ?? "", past: store.past.value,
  };
}

// --- the frame ---

function page() {
  void store.frame.value;
  const status = store.status.value;
  if (status.state === "denied") return stranger();
  const found = router.resolve(views, router.address.value);
  const made = context(found);
  const needs = made.past ? 0 : needsYou(made.state).length;
  const subject = Object.values(found.values).at(-1); // a task, an agent, or what Why is about
  document.title = `${needs ? `(${needs}) ` : ""}${found.view?.title ?? "Not found"}${subject ? ` ${visible(nameOf(made.state, subject))}` : ""} · ${repositoryName(made.hub) || "coord"}`;
  return html`
    <a class="skip" href="#content" data-plain>Skip to the content</a>
    <div class="frame">
      ${sidebar(found.view, made)}
      <div class="column">${header(made, status)}${banner(status, made)}
        <main id="content" tabindex="-1" data-view=${found.view?.path ?? ""}>${content(found, made, status)}</main>${timebar(made.past)}</div>
      ${toasts()}
    </div>`;
}

const instead = (found, shown) => html`<h1 class="hidden">${found.view.title}</h1>${shown}`;

function content(found, made, status) {
  if (!found.view) {
    return html`<div class="empty">${icon("question")}<h1 class="title">There is no such page</h1><p>${router.address.value.pathname}</p>
      <a class="button" href="/now">To the overview</a></div>`;
  }
  if (!store.loaded.value) return status.error ? instead(found, failed(status.error, store.reconnect)) : skeleton(8);
  if (made.past?.error) return instead(found, failed(made.past.error, () => void store.traveller.open(made.past.at)));
  if (made.past && !made.past.state) return skeleton(8);
  try {
    return found.view.render(made);
  } catch (error) {
    console.error(error);
    return instead(found, failed({message: `This view has a defect: ${error.message}`, hint: "Other views still work."}));
  }
}

function sidebar(current, made) {
  const needs = needsYou(made.state).length, alerts = made.state.tables.alerts.size;
  const badges = {"/now": needs, "/alerts": alerts};
  return html`<nav class="sidebar" aria-label="Views">
    <a class="brand" href="/now" aria-label="coord, overview"><svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8"></rect>
      <path d="M21.500 11.500a7 7 0 1 0 0 9"></path><circle cx="23" cy="16" r="2.600"></circle></svg><span>coord</span></a>
    <ul>${listed.map((view) => html`<li><a href=${view.path} aria-current=${view === current ? "page" : nothing}>${icon(view.icon)}<span>${view.title}</span>
      <kbd aria-hidden="true">${view.key ? `g ${view.key}` : ""}</kbd>
      ${badges[view.path] ? html`<b class="badge" aria-label=${count(badges[view.path], "item")}>${badges[view.path]}</b>` : nothing}</a></li>`)}</ul>
    <div class="foot"><button class="bare" @click=${palette} title="Jump to (:)">${icon("search")}<span>Jump to…</span><kbd aria-hidden="true">:</kbd></button>
      <button class="bare" @click=${showHelp} title="Keys (?)">${icon("help")}<span>Keys</span><kbd aria-hidden="true">?</kbd></button></div>
  </nav>`;
}

const repositoryName = (hub) => visible(hub.repository);

function header(made, status) {
  const {hub, who} = made;
  return html`<header class="top">
    <span class="where" title=${hub.repository || nothing}>${icon("branch")}<bdi dir="auto">${repositoryName(hub) || "coord"}</bdi>${
      hub.tenant && hub.tenant !== "local" ? html`<span class="muted">/ ${hub.tenant}</span>` : nothing}${
      who.project ? html`<span class="muted">/ ${who.project}</span>` : nothing}</span>
    <span class="space"></span>
    ${connection(status, made)}
    <button class="bare" @click=${toggle} aria-label="Look back in time" aria-pressed=${made.past ? "true" : "false"} title="Look back in time (h)">${icon("clock")}</button>
    <button class="bare" @click=${() => toast(nextTheme(), {seconds: 2, place: "theme"})} aria-label="Theme: ${THEMES.find(([name]) => name === theme.value)?.[1]}" title="Theme (t)">${icon(THEME_ICONS[theme.value] ?? "auto")}</button>
    <button class="who bare" @click=${showAccount} aria-label="You: ${who.user || who.label || "a browser"}, ${who.role}">${icon("agent")}<span>${who.user || who.label || "you"}</span>
      <span class="role">${who.role}</span></button>
  </header>`;
}

function connection(status, made) {
  if (made.past) return chip("wait", `at ${when(made.now, Date.now())}`);
  if (status.state === "report") return chip("idle", `Report of ${when(made.state.at)}`);
  if (status.state === "live") return html`<span class="connection" title="Entry ${made.state.offset}, ${made.state.at ? clock(made.state.at) : ""}">${chip("ok", "Live")}</span>`;
  if (status.state === "offline") return chip("bad", "Offline");
  return chip("wait", "Connecting");
}

function banner(status, made) {
  if (made.past) {
    return html`<div class="banner" data-tone="wait" role="status">${icon("clock")}<span>${moment(made.past)}${
      NEAREST[isNearest(made.past, Math.max(store.liveState().offset, made.past.state?.offset ?? 0))] ?? ""}${made.past.problem ? ` It does not go on: ${made.past.problem.message}.` : ""}</span>
      <button class="button small" @click=${() => router.setQuery({at: ""}, {replace: false})}>Back to live</button></div>`;
  }
  if (status.state === "offline" && store.loaded.value) {
    const seconds = Math.max(0, Math.round((status.retryMs - Date.now()) / 1000));
    return html`<div class="banner" data-tone="bad" role="alert">${icon("alert")}<span>The hub does not answer. You see what it was ${
      made.state.at ? html`at ${clock(made.state.at)} (${ago(made.state.at, made.now)})` : "earlier"}. Next attempt ${seconds ? `in ${duration(seconds)}` : "now"}.</span>
      <button class="button small" @click=${store.reconnect}>Try now</button></div>`;
  }
  if (store.outdated.value) {
    return html`<div class="banner" data-tone="wait" role="status">${icon("alert")}<span>The hub was upgraded. This page is of the version before.</span>
      <button class="button small" @click=${() => location.reload()}>Reload</button></div>`;
  }
  return nothing;
}

const moment = ({state}) => (state ? html`You see the state at ${when(state.at, Date.now()) || "the beginning"} <span class="muted">(entry ${state.offset})</span>. Nothing here changes.` : "You look at an earlier time.");
const NEAREST = {gone: " It is the earliest that is known: what was before is not in the log any more.", later: " It is the newest: the log has no later entry yet."};

// Somebody without a cookie, or whose token has ended.
function stranger() {
  document.title = "Log in · coord";
  return html`<main class="stranger" id="content"><section class="panel"><svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8"></rect>
      <path d="M21.500 11.500a7 7 0 1 0 0 9"></path><circle cx="23" cy="16" r="2.600"></circle></svg>
    <h1>This hub is running</h1><p>Run this in a terminal of the repository; its link logs this browser in.</p>${command("coord open")}
    <p class="muted">The link works once, for two minutes. <code>coord open --role view</code> is for somebody who may only look.</p>
    <button class="button" @click=${store.reconnect}>I have done that</button></section></main>`;
}

// --- keys, help, palette ---

function showHelp() {
  const groups = Map.groupBy?.(keys.allKeys(), (each) => each.where) ?? new Map([["Keys", keys.allKeys()]]);
  open({title: "Keys", size: "wide", body: () => html`<div class="keys">${[...groups].map(([where, found]) => html`
    <section><h3>${where}</h3><dl>${found.map((each) => html`<div><dt>${each.keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</dt>
      <dd>${each.does}</dd></div>`)}</dl></section>`)}</div>`});
}

function showAccount() {
  const {user, role, label, project} = store.who.value, {version, store: kind, repository} = store.hub.value;
  const rows = [["User", user], ["Role", role], ["Token", label], ["Project", project || "all"], ["Repository", visible(repository)],
    ["Store", kind], ["Hub", version]].filter(([, value]) => value);
  const leave = async () => {
    await fetch("/logout", {method: "POST"});
    location.assign("/");
  };
  open({title: "You and this hub", body: () => html`<dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi dir="auto">${value}</bdi></dd></div>`)}</dl>
    <div class="form"><label>Theme<select @change=${(event) => { theme.value = event.target.value; }}>${
      THEMES.map(([name, words]) => option(name, words, theme.value))}</select></label>
    <footer><button class="button" @click=${leave}>Log out</button></footer></div>`});
}

function palette() {
  const {tables} = store.shown.peek();
  const jump = (target) => () => router.go(target);
  const choices = listed.map((view) => ({label: view.title, kind: "view", icon: view.icon, run: jump(view.path)}));
  for (const session of tables.sessions.values()) {
    choices.push({label: session.agent ?? session.session, detail: session.role ?? "", kind: "agent", icon: "agent", run: jump(router.link.agent(session.session))});
  }
  for (const task of tables.tasks.values()) {
    choices.push({label: task.task, detail: task.title ?? "", kind: "task", icon: "task", run: jump(router.link.task(task.project, task.task))});
  }
  for (const name of new Set([...tables.locks.values()].map((lock) => lock.resource))) {
    choices.push({label: resource(name), kind: "lock", icon: "file", run: jump(router.link.lock(name))});
  }
  const {tables: {held}} = store.liveState();
  for (const spec of [acts.message(), ...(held.size ? [acts.resume(held.get("")?.mode)] : []), ...Object.keys(HOLDS).filter((mode) => held.get("")?.mode !== mode).map(acts.hold)]) {
    if (store.may(spec.role)) choices.push({label: spec.title, kind: "act", icon: "play", run: () => perform(spec)});
  }
  choices.push({label: "Change the theme", kind: "action", icon: "sun", run: nextTheme});
  pick({title: "Jump to", placeholder: "An agent, a task, a file, a view …", choices});
}

function bindKeys() {
  keys.bind("?", "Show the keys", showHelp);
  keys.bind(":", "Jump to an agent, a task, a file or a view", palette);
  keys.bind("/", "Filter", () => document.querySelector("main [data-filter]")?.focus());
  keys.bind("j", "Next row", () => keys.moveFocus(1));
  keys.bind("k", "Row before", () => keys.moveFocus(-1));
  keys.bind("n", "To the newest notice", focusNewest);
  keys.bind("a", "To the acts of a row, or of the view", keys.focusAct);
  keys.bind("u", "Undo the last act, where it can be undone", undoLast);
  keys.bind("Escape", "Back, or out of a filter", back);
  keys.bind("h", "Look back in time, or return to what is now", toggle, "Time");
  keys.bind("[", "Entry before", stepBack, "Time");
  keys.bind("]", "Next entry", stepOn, "Time");
  keys.bind("p", "Play or pause", playOrPause, "Time");
  keys.bind("t", "Change the theme", () => toast(nextTheme(), {seconds: 2, place: "theme"}));
  for (const view of listed) if (view.key) keys.bind(`g ${view.key}`, view.title, () => router.go(view.path), "Go to");
  for (const view of views) for (const [key, does, run] of view.keys ?? []) keys.bind(key, does, run, view.title);
}

function back() {
  close();
  if (router.address.peek().searchParams.get("q")) router.setQuery({q: ""});
  else router.back();
}

// Another view takes the focus, so that a screen reader and the keys begin there.
function followFocus() {
  let shown = router.address.peek().pathname;
  store.effect(() => {
    const {pathname} = router.address.value;
    if (pathname === shown) return;
    shown = pathname;
    queueMicrotask(() => document.getElementById("content")?.focus({preventScroll: true}));
  });
}

startTheme();
startTitles();
router.start();
bindKeys();
keys.start();
away.start();
startNotices();
store.effect(() => {
  const back = keys.holdFocus();
  render(page(), root);
  back();
});
store.effect(() => { if (store.status.value.state === "denied") close(); });
followFocus();
void store.start();
