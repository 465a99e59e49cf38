// The table of costs below the charts of Numbers: what agents, tasks, models and days used, as `coord cost` adds it up.

import {get} from "../core/api.js";
import {asked} from "../core/asked.js";
import {matches} from "../core/derive.js";
import {compact, number, spent} from "../core/format.js";
import {link, setQuery} from "../core/router.js";
import {choice, code, failed, foreign, html, nothing, skeleton} from "./html.js";

const BY = [["agent", "Agent"], ["task", "Task"], ["model", "Model"], ["day", "Day"]], ROWS_MAX = 100;
const ask = asked((key) => get("/v1/usage", JSON.parse(key)), {pauseMs: 2000});
const tokens = ({input = 0, output = 0, cache_read = 0, cache_write = 0}) => input + output + cache_read + cache_write;

// Changes with every report: what the sessions that are here have used.
function used({tables}) {
  let sum = 0;
  for (const {input = 0, output = 0, cost = 0, estimated = 0} of tables.sessions.values()) sum += input + output + cost + estimated;
  return sum;
}

export function costs({state, query, q, who}) {
  const per = BY.some(([name]) => name === query.per) ? query.per : "agent";
  const {value, error} = ask(JSON.stringify({per, project: who.project}), used(state));
  if (error && !value) return failed(error, ask.again);
  if (!value) return skeleton(3);
  const fits = value.totals.filter(({name, project}) => !q || matches(q, `${name} ${project}`));
  return html`<section aria-labelledby="costs"><header class="heading"><h2 id="costs">Costs</h2>
      <span class="detail">${value.totals.length ? `${spent(value.total) || "no price known"}, ${compact(tokens(value.total))} tokens in all` : ""}</span>
      <span class="actions">${choice("By", per, BY, (chosen) => setQuery({per: chosen === "agent" ? "" : chosen}))}</span></header>
    ${fits.length ? table(fits, per) : html`<p class="muted">${value.totals.length ? "Nothing fits. Press escape to see all of it." : html`Nobody has reported what it used: ${code("coord telemetry on")} lets agents do so.`}</p>`}</section>`;
}

const table = (rows, per) => html`<div class="table record"><table><thead><tr>${[BY.find(([name]) => name === per)[1], "Project", "Requests", "Tokens", "Cost"].map((each) => html`<th scope="col">${each}</th>`)}</tr></thead>
  <tbody>${rows.slice(0, ROWS_MAX).map((row) => line(row, per))}</tbody></table></div>
  ${rows.length > ROWS_MAX ? html`<p class="muted">and ${rows.length - ROWS_MAX} more</p>` : nothing}`;

const line = ({name, project, amounts}, per) => html`<tr data-row tabindex="-1"><td>${per === "task" && project ? html`<a href=${link.task(project, name)}>${foreign(name)}</a>` : foreign(name)}</td>
  <td class="muted">${foreign(project)}</td><td class="number">${number(amounts.requests)}</td><td class="number">${compact(tokens(amounts))}</td><td class="number">${spent(amounts) || "—"}</td></tr>`;
