// Merges: what was merged, what was refused and why, and the diff of each.

import {get} from "../core/api.js";
import {byResource, derived, matches} from "../core/derive.js";
import {diffRows, parseDiff} from "../core/diff.js";
import {ago, count, ordinal, quoted} from "../core/format.js";
import {isReport} from "../core/report.js";
import {link, setQuery} from "../core/router.js";
import {ownOf} from "../core/state.js";
import {past, signal, touch} from "../core/store.js";
import {command} from "../parts/act.js";
import {chip, choice, code, empty, failed, filterField, foreign, heading, html, icon, nothing, repeat, skeleton, time} from "../parts/html.js";
import {list} from "../parts/list.js";
import {agent, nameFor} from "../parts/sentence.js";

export const view = {path: "/merges", title: "Merges", key: "b", icon: "merges", order: 7, render};

const STATUS = {
  conflict: ["bad", "conflict", "Both sides changed the same lines."], check_failed: ["bad", "check failed", "The command that checks a merge did not succeed."],
  refused: ["bad", "refused", "A gate refused it: a lock or a fence stands against it."],
};
const diff = signal({key: "", found: null, rows: [], error: null});

const kindOf = (item) => (item.event === "git.merged" ? "merged" : item.event === "git.committed" ? "commit" : "refused");
const everything = derived(["merges", "commits", "refusals"], (state) => [...state.recent.merges, ...state.recent.commits,
  ...state.recent.refusals.filter((item) => item.event === "git.commit_refused")].sort((one, other) => other.offset - one.offset));

function render(context) {
  const {state, query, q} = context;
  const which = ["merged", "refused", "commit"].includes(query.show) ? query.show : "";
  const all = everything(state), counts = {};
  for (const item of all) counts[kindOf(item)] = (counts[kindOf(item)] ?? 0) + 1;
  const shown = all.filter((item) => (which ? kindOf(item) === which : kindOf(item) !== "commit" || !counts.merged && !counts.refused)
    && (!q || matches(q, [item.branch, item.into, item.subject, item.status, item.detail, nameFor(state, item.session), ...(item.files ?? [])].join(" "))));
  const chosen = query.diff ? all.find((item) => String(item.offset) === query.diff && request(item)) : null;
  return html`${heading("Merges", `${counts.merged ?? 0} merged · ${counts.refused ?? 0} refused · ${count(counts.commit ?? 0, "commit")}`, html`${filterField(q, (text) => setQuery({q: text}), "Filter merges")}
      ${choice("Show", which, [["", "Merges"], ["refused", "Refused"], ["commit", "Commits"]], (value) => setQuery({show: value, diff: ""}))}`)}
    ${waiting(context)}
    ${shown.length ? html`<div class="split ${chosen ? "open diffs" : ""}"><ul class="merges">${repeat(shown.slice(0, 200), (item) => `${item.offset} ${item.branch}`, (item) => html`<li>${card(item, chosen, context)}</li>`)}</ul>
        ${chosen ? diffPanel(chosen, context) : nothing}</div>`
      : q || which ? empty("Nothing fits", q ? "Press escape to see everything." : "Nothing of this kind has happened yet.")
      : empty("Nothing was merged yet", html`${code("coord merge BRANCH")} merges a branch after it has checked locks, fences and tests; what it refuses is explained here.`)}`;
}

// Merges run one after the other, under a lock: who has it, and who waits for it.
const QUEUE = "name:pr-merge-queue";

function waiting({state, now}) {
  const found = byResource(state).find((row) => row.resource === QUEUE);
  if (!found) return nothing;
  const line = (each, words) => html`<li>${agent(each.session, each.agent, state)} <span class="muted">${words}, ${time(each.since_ms, ago(each.since_ms, now))}</span></li>`;
  return html`<section class="panel pad" aria-label="Queue"><h2>Queue</h2><ol class="lines">${found.locks.map((lock) => line(lock, html`merges now: ${foreign(lock.reason || "a branch")}`))}${
    found.waits.map((wait, place) => line(wait, `waits, ${ordinal(place + 1)}`))}</ol></section>`;
}

function card(item, chosen, {state, now}) {
  const kind = kindOf(item), [tone, word, why] = kind === "merged" ? ["ok", "merged", ""] : kind === "commit" ? ["work", "commit", ""] : ownOf(STATUS, item.status) ?? ["bad", item.hook ? "commit refused" : "refused", ""];
  const files = item.files ?? [];
  return html`<article class="card merge" data-tone=${tone} data-row tabindex="-1" aria-current=${item === chosen ? "true" : nothing}>
    <header>${chip(tone, word, why)}${kind === "commit" ? html`<h2 class="cut title">${foreign(item.subject)}</h2>` : item.branch ? html`<h2 class="cut title">${icon("branch")}${foreign(item.branch)} <span class="muted">into</span> ${foreign(item.into)}</h2>` : html`<h2 class="cut title">${foreign(item.hook ?? "")}</h2>`}
      <span class="muted end">${time(item.at, ago(item.at, now))}</span></header>
    ${item.detail || why ? html`<p class="reason">${foreign(item.detail || why, "pre")}</p>` : nothing}
    ${item.parties?.length ? html`<p class="parties">${icon("agent")}<span>The same was changed by ${item.parties.map((each, place) => html`${place ? ", " : ""}${foreign(nameFor(state, each))}`)}.</span></p>` : nothing}
    ${files.length ? html`<p class="files cut">${icon("file")}${files.slice(0, 4).map((file, place) => html`${place ? ", " : ""}<a class="code" href=${link.file(file)}>${foreign(file)}</a>`)}${
      (item.file_count ?? files.length) > 4 ? html` <span class="muted">and ${(item.file_count ?? files.length) - 4} more</span>` : nothing}</p>` : nothing}
    <footer>${item.session ? html`<span>${icon("agent")}${agent(item.session, item.agent, state)}</span>` : nothing}
      ${item.commit || item.tip ? html`<span>${code((item.commit || item.tip).slice(0, 10))}</span>` : nothing}
      ${item.branch && kind === "commit" ? html`<span>${icon("branch")}${foreign(item.branch)}</span>` : nothing}
      ${kind === "refused" && item.branch ? html`<a class="button small end" href=${link.why("merge", item.branch)}>Why?</a>` : nothing}
      ${request(item) ? html`<button type="button" class="button small end" aria-pressed=${item === chosen} @click=${() => setQuery({diff: item === chosen ? "" : item.offset}, {replace: false})}>${item === chosen ? "Hide the diff" : "Diff"}</button>` : nothing}</footer></article>`;
}

// What to ask the hub for the diff of an item. A report has none, and a branch of an earlier time is not what it was.
const request = (item) => (isReport() ? null : item.commit ? {commit: item.commit} : item.tip && item.into && !past.value ? {branch: item.tip, into: item.into} : null);

function load(item) {
  const key = JSON.stringify(request(item));
  if (diff.peek().key === key) return;
  diff.value = {key, found: null, rows: [], error: null};
  get("/v1/page/diff", request(item)).then(
    (found) => { if (diff.peek().key === key) diff.value = {key, found, rows: diffRows(parseDiff(found.text)), error: null}; },
    (error) => { if (diff.peek().key === key) diff.value = {key, found: null, rows: [], error}; }).finally(touch);
}

function diffPanel(item) {
  load(item);
  const {found, rows, error} = diff.value;
  const added = found?.files.reduce((sum, file) => sum + Math.max(0, file.added), 0), deleted = found?.files.reduce((sum, file) => sum + Math.max(0, file.deleted), 0);
  return html`<aside class="panel diff" aria-label="Diff"><header><h2 class="cut">${foreign(item.subject ?? item.branch)}</h2>
      ${found ? html`<span class="muted">${count(found.files.length, "file")} <b class="plus">+${added}</b> <b class="minus">−${deleted}</b></span>` : nothing}
      <button type="button" class="bare end" aria-label="Close the diff" @click=${() => setQuery({diff: ""})}>${icon("close")}</button></header>
    ${error ? failed(error, () => { diff.value = {...diff.value, key: ""}; touch(); }) : found === null ? skeleton(8)
      : rows.length ? html`${found.whole ? nothing : html`<p class="banner" data-tone="wait">The diff is too long; this is its beginning.</p>`}
        ${list({items: rows, height: 20, label: "Lines of the diff", whole: 0, stamp: diff.value.key, key: (_, index) => index, row: diffLine})}`
      : html`<p class="muted note">It changes nothing any more: the branch has nothing that ${foreign(item.into ?? "its base")} lacks.</p>`}
    ${item.branch && !item.commit ? command(`git diff ${quoted(item.into)}...${quoted(item.branch)}`) : item.commit ? command(`git show --first-parent ${item.commit.slice(0, 12)}`) : nothing}</aside>`;
}

const SIGNS = {add: "+", del: "−", same: " ", note: "\\"};
const diffLine = (row) => (row.kind === "file" ? html`<div class="diff-file">${icon("file")}${foreign(row.file.path)}${row.file.oldPath ? html` <span class="muted">from ${foreign(row.file.oldPath)}</span>` : nothing}</div>`
  : row.kind === "hunk" ? html`<div class="diff-line hunk"><code>${foreign(row.text)}</code></div>`
  : html`<div class="diff-line ${row.kind}"><span class="no">${row.old ?? ""}</span><span class="no">${row.new ?? ""}</span><span class="sign">${SIGNS[row.kind]}</span><code>${foreign(row.text)}</code></div>`);

