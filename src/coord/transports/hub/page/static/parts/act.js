// Buttons that act. Each shows the `coord …` command that does the same, asks for a reason where it hurts, and sends
// its request with an Idempotency-Key, so that a second attempt happens once. `core/acts.js` says what there is:
//
//   act(acts.release(lock), {small: true})          // a button; nothing if the reader's role does not allow it
//   actAll(tasks.map((task) => ({label: task.task, act: acts.retry(task)})), "task")      // one for all that match
//   more("ada", () => ofAgent(session, agents))     // a small button with a menu
//   perform(acts.message())                         // the dialog without a button

import {newKey, request as send} from "../core/api.js";
import {group, many} from "../core/acts.js";
import {count, visible} from "../core/format.js";
import {may, reconnect} from "../core/store.js";
import {open} from "./dialog.js";
import {html, icon, live, nothing} from "./html.js";
import {pick} from "./menu.js";
import {toast} from "./toast.js";

export function act(wanted, look = {}) {
  const spec = {...wanted, ...look};
  if (!may(spec.role ?? "operate")) return nothing;
  const name = `button ${spec.kind ?? ""} ${spec.small ? "small" : ""} ${spec.hurts ? "hurts" : ""}`;
  return html`<button type="button" data-act=${spec.id ?? ""} class=${name} title=${spec.title ?? spec.label}
    @click=${() => perform(spec)}>${
    spec.icon ? icon(spec.icon) : nothing}<span>${spec.label}</span></button>`;
}

export const actAll = (each, noun, nouns, look = {}) => (each.length > 1 ? act(many(each, noun, nouns), look) : each.length ? act(each[0].act, look) : nothing);

const button = (label, shown, choices) => html`<button type="button" data-act="more" class=${shown === nothing ? "bare more" : "button small"} aria-label=${label} title=${label} @click=${() => pick({
  title: label, placeholder: "What to do …", choices: choices().filter((spec) => may(spec.role)).map((spec) => ({label: spec.label, detail: spec.title === spec.label ? "" : spec.title, icon: "play", run: () => perform(spec)}))})}>${
  shown === nothing ? icon("more") : shown}</button>`;

// One button for everything that can be done to one thing; `choices` returns the acts.
export const more = (name, choices) => (may("operate") ? button(`Act on ${visible(name)}`, nothing, choices) : nothing);

// One button for all that match a filter: what can be done to how many of them. `each` returns [{label, acts}].
export function moreAll(total, noun, nouns, each) {
  const label = `Act on ${count(total, noun, nouns)}…`;
  return total && may("operate") ? button(label, label, () => group(each(), noun, nouns)) : nothing;
}

// Copies text, and says so.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied", {seconds: 2});
  } catch {
    toast("The browser did not copy it", {tone: "bad", detail: text});
  }
}

export const command = (text, label = "Copy the command") => html`
  <p class="command"><code dir="ltr">${text}</code><button type="button" class="bare" aria-label=${label}
    @click=${() => copy(text)}>${icon("copy")}</button></p>`;

// Opens the dialog of an act; returns false if the reader may not do it now.
export function perform(spec) {
  if (!may(spec.role ?? "operate")) return false;
  let key = newKey();
  const words = typeof spec.words === "function" ? spec.words() : spec.words;
  const fields = [...(spec.fields ?? [])];
  if (spec.reason) fields.push({name: spec.reason, label: spec.hurts ? "Reason" : "Reason (if you like)", required: Boolean(spec.hurts)});
  const values = Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""]));
  const run = {busy: false, error: null, unsure: false, sent: 0, done: 0, failed: [], secret: "", over: false};

  const start = async (box) => {
    const sent = {...values};
    Object.assign(run, {busy: true, error: null});
    box.draw();
    try {
      if (spec.each) await each(spec, sent, key, run, box);
      else finish(await sendAll([spec.request(sent)].flat(), key, run), sent, box);
    } catch (problem) {
      refused(problem, sent, box);
    }
    run.busy = false;
    box.draw();
    if (run.unsure || run.over) document.querySelector("dialog .primary")?.focus();
  };

  // Without an answer it may have happened: then "Try again" repeats the same request, whatever was typed meanwhile. A
  // refusal can be corrected.
  const refused = (problem, sent, box) => {
    Object.assign(run, {error: problem, unsure: unsure(problem)});
    if (run.unsure) Object.assign(values, sent);
    else if (!spec.each) key = newKey();
    if ([401, 403].includes(problem.status)) void reconnect();
    if (!box.isOpen()) toast(problem.message, {tone: "bad", detail: problem.hint});
  };

  const finish = (answer, sent, box) => {
    if (spec.secret) Object.assign(run, {secret: answer[spec.secret], over: true});
    else box.close();
    const undo = spec.undo?.(answer, sent);
    toast(spec.done ?? "Done", {undo: undo && may(undo.role ?? "operate") ? () => perform(undo) : null});
    spec.after?.(answer);
  };

  open({
    title: spec.title ?? spec.label,
    body: (box) => (run.over ? result(spec, run, box) : html`<form class="form" data-act=${spec.id ?? ""} @submit=${(event) => { event.preventDefault(); if (!run.busy) void start(box); }}>
      ${words ? html`<p class="muted">${words}</p>` : nothing}
      ${spec.each ? html`<ul class="preview" aria-label="These" tabindex="0">${spec.each.map((one) => html`<li><bdi dir="auto">${visible(one.label)}</bdi></li>`)}</ul>` : nothing}
      <fieldset ?disabled=${run.unsure}>${fields.map((field, place) => input({focus: place === 0, ...field}, values, box))}</fieldset>
      ${command(spec.command(values))}
      ${run.error ? html`<p class="problem" role="alert"><strong>${run.error.message}</strong> ${run.error.hint}</p>` : nothing}
      <footer>${spec.each && run.busy ? html`<progress max=${spec.each.length} .value=${run.done} aria-label="Progress"></progress>` : nothing}
        <button type="button" class="button" @click=${box.close}>Cancel</button>
        <button class="button primary ${spec.hurts ? "hurts" : ""}" aria-disabled=${run.busy}
          ?autofocus=${!fields.length}>${run.error ? "Try again" : spec.verb ?? spec.label}</button></footer></form>`),
  });
}

const unsure = (problem) => !problem.status || problem.status >= 500;

// Does the same to each, the later ones as long as the dialog is open. A refusal is noted and the next one follows, but
// without a hub or its permission it ends; a later attempt goes on there.
async function each(spec, values, key, run, box) {
  for (; run.done < spec.each.length && box.isOpen(); run.done += 1) {
    const one = spec.each[run.done];
    try {
      await sendAll([one.act.request(values)].flat(), `${key}-${run.done}`, run);
    } catch (error) {
      if (unsure(error) || [401, 403].includes(error.status)) throw error;
      run.failed.push({label: one.label, error});
    }
    run.sent = 0;
    box.draw();
  }
  toast(`${run.done - run.failed.length} of ${spec.each.length} done`, {tone: run.failed.length ? "bad" : "ok"});
  spec.after?.();
  if (run.failed.length) run.over = true;
  else box.close();
}

const result = (spec, run, box) => html`<div class="form">
  ${run.secret ? html`<p>Copy it now: nobody can show it again.</p>${command(run.secret, "Copy the secret")}` : html`<p>${run.failed.length} of ${run.done} were refused:</p>
    <ul class="preview">${run.failed.map(({label, error}) => html`<li><bdi dir="auto">${visible(label)}</bdi>: ${error.message} <span class="muted">${error.hint}</span></li>`)}</ul>`}
  <footer><button type="button" class="button primary" autofocus @click=${box.close}>Close</button></footer></div>`;

// Sends requests one after the other; a later attempt repeats the one that failed, with its key. Returns the last answer.
async function sendAll(wanted, key, run) {
  for (let answer = null; ; run.sent += 1) {
    const one = wanted[run.sent];
    if (!one) return answer;
    answer = await send(one.path, {method: one.method ?? "POST", body: one.body, key: one.keyless ? "" : `${key}-${run.sent}`});
  }
}

function input(field, values, box) {
  const change = (event) => {
    values[field.name] = field.type === "checkbox" ? event.target.checked : event.target.value;
    box.draw();
  };
  if (field.options) {
    return html`<label>${field.label}<select @change=${change}>${field.options.map((each) => {
      const [value, words] = Array.isArray(each) ? each : [each, each];
      return html`<option value=${value} ?selected=${value === values[field.name]}>${words}</option>`;
    })}</select></label>`;
  }
  if (field.type === "checkbox") {
    return html`<label class="inline"><input type="checkbox" .checked=${live(Boolean(values[field.name]))} @change=${change}>${field.label}</label>`;
  }
  if (field.rows) {
    return html`<label>${field.label}<textarea rows=${field.rows} ?required=${field.required} ?autofocus=${field.focus ?? true}
      dir="auto" .value=${live(values[field.name])} @input=${change}></textarea></label>`;
  }
  return html`<label>${field.label}<input type=${field.type ?? "text"} ?required=${field.required} ?autofocus=${field.focus ?? true}
    min=${field.min ?? nothing} max=${field.max ?? nothing} dir="auto" .value=${live(values[field.name])} @input=${change}></label>`;
}
