// Addresses of the page: the History API, patterns such as "/task/:project/:task", and `?at=OFFSET` for the past.

import {fileResource} from "./format.js";
import {signal} from "../vendor/signals-core/signals-core.js";

// Returns the values of a path, or null if the pattern does not match.
export function match(pattern, path) {
  const wanted = pattern.split("/"), given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const values = {};
  for (const [number, part] of wanted.entries()) {
    if (part.startsWith(":")) {
      const value = unescaped(given[number]);
      if (!value) return null;
      values[part.slice(1)] = value;
    } else if (part !== given[number]) return null;
  }
  return values;
}

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

// Returns {view, values, query} of an address; the first view is shown at "/".
export function resolve(views, url) {
  const query = Object.fromEntries(url.searchParams);
  if (url.pathname === "/") return {view: views[0], values: {}, query};
  for (const view of views) {
    for (const pattern of [view.path, ...(view.also ?? [])]) {
      const values = match(pattern, url.pathname);
      if (values) return {view, values, query};
    }
  }
  return {view: null, values: {}, query};
}

// The address that is shown. A report is a file: there the part after `#` is the address.
const inBrowser = typeof location !== "undefined";
const inFile = inBrowser && location.protocol === "file:";
const shownAddress = () => (inFile ? new URL(location.hash.slice(1) || "/", "http://report/") : new URL(location.href));
export const address = signal(inBrowser ? shownAddress() : new URL("http://page/"));

// Each step says how many of this page lie before it, so that "back" never leaves the page.
const steps = () => history.state?.steps ?? 0;

function write(url, replace, soon = false) {
  if (!url.searchParams.get("at")) url.searchParams.delete("at");
  const state = {steps: steps() + (replace ? 0 : 1)};
  if (!soon) history[replace ? "replaceState" : "pushState"](state, "", inFile ? `#${url.pathname}${url.search}` : url);
  address.value = url;
}

// Returns to what was shown before; at the first step of this page, closes what is open, or goes to the overview.
export function back() {
  const open = ["on", "with", "diff"].filter((name) => address.peek().searchParams.has(name));
  if (steps() > 0) history.back();
  else if (open.length) setQuery(Object.fromEntries(open.map((name) => [name, ""])));
  else if (!["/", "/now"].includes(address.peek().pathname)) go("/now", {replace: true});
}

// Shows another address; `replace` leaves no step in the history. A moment of the past is kept.
export function go(target, {replace = false} = {}) {
  const url = new URL(target, address.peek());
  const at = address.peek().searchParams.get("at");
  if (at && !url.searchParams.has("at") && !target.startsWith("?")) url.searchParams.set("at", at);
  write(url, replace);
  if (!replace) globalThis.scrollTo?.(0, 0);
}

// Changes parameters of the address in place: setQuery({q: "auth"}); empty values disappear. What changes again
// `soon` is not in the browser's history yet, which takes few changes a second.
export function setQuery(values, {replace = true, soon = false} = {}) {
  const url = new URL(address.peek());
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  write(url, replace, soon);
}

// Lets links of this page change the address without a request.
export function start() {
  addEventListener("popstate", () => { address.value = shownAddress(); });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.target || link.origin !== location.origin || link.hasAttribute("data-plain")) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
}

const part = (name) => encodeURIComponent(typeof name === "string" ? name.toWellFormed() : "");
export const link = {
  task: (project, task) => `/task/${part(project)}/${part(task)}`,
  agent: (session) => `/agent/${part(session)}`,
  lock: (resource) => `/locks?on=${part(resource)}`,
  file: (path) => link.lock(fileResource(path)),
  why: (kind, id) => `/why/${part(kind)}/${part(id)}`,
};
