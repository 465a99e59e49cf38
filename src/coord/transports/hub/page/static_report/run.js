// What a run was: the head of a report, for somebody who reads a pull request.

import {compact, count, duration, money, number, when} from "../static/core/format.js";
import {foreign, html, nothing} from "../static/parts/html.js";
import {counterOf} from "./count.js";

const AGENTS_MAX = 12;
const COLUMNS = [["done", "Tasks done"], ["commits", "Commits"], ["merges", "Merges"], ["locks", "Locks"]];

// Returns run(context), which draws it.
export function runOf(found) {
  const counted = counterOf(found), from = found.entries[0]?.at ?? found.base.at;
  return ({state}) => {
    const {totals, agents} = counted(state.offset), of = (name) => totals[name] ?? 0;
    const tasks = [...state.tables.tasks.values()], done = tasks.filter((task) => task.state === "done").length, until = Math.max(from, state.at);
    const prevented = of("denied") + of("merges_refused") + of("commits_refused");
    const tiles = [
      ["Took", duration((until - from) / 1000), count(agents.length, "agent")],
      ["Tasks done", number(of("tasks_done")), tasks.length ? `${done} of ${tasks.length} in the plan` : ""],
      ["Commits", number(of("commits")), of("merges") ? count(of("merges"), "merge") : ""],
      ["Collisions prevented", number(prevented), `${number(of("denied"))} locks, ${number(of("merges_refused") + of("commits_refused"))} by git`],
      ["Undone", number(of("files_restored")), "files restored"],
      ["Late results", number(of("results_rejected")), "refused"],
      ["Deadlocks", number(of("deadlocks")), of("leases_expired") ? count(of("leases_expired"), "lease expired", "leases expired") : ""],
      ["Cost", of("cost") ? money(of("cost")) : "—", of("tokens") ? `${compact(of("tokens"))} tokens` : ""],
    ];
    return html`<section class="panel pad" aria-labelledby="run"><header class="heading"><h2 id="run">This run</h2><span class="detail">${when(from, until)} to ${when(until, until)}</span></header>
      ${found.whole ? nothing : html`<p class="muted">The log was trimmed: what began earlier and did not change since is missing.</p>`}
      <dl class="tiles">${tiles.map(([name, value, more]) => html`<div class="panel"><dt>${name}</dt><dd><b>${value}</b><span class="muted">${more}</span></dd></div>`)}</dl>
      ${agents.length ? html`<div class="table record"><table><thead><tr><th scope="col">Agent</th>${COLUMNS.map(([, words]) => html`<th scope="col">${words}</th>`)}</tr></thead>
        <tbody>${agents.slice(0, AGENTS_MAX).map((each) => html`<tr><td>${foreign(each.name)}</td>${COLUMNS.map(([name]) => html`<td class="number">${number(each[name] ?? 0)}</td>`)}</tr>`)}</tbody></table></div>` : nothing}
      ${agents.length > AGENTS_MAX ? html`<p class="muted">and ${count(agents.length - AGENTS_MAX, "other agent")}</p>` : nothing}</section>`;
  };
}
