// Buttons that act. Each shows the `coord …` command that does the same, asks for a reason where it hurts, and sends
// its request with an Idempotency-Key, so that a second attempt happens once.
//
//   act({label: "Release", title: "Release src/a.py", command: "coord steal src/a.py", role: "operate", hurts: true,
//        reason: "reason",                         // the field of the body that the reason goes to
//        fields: [{name: "text", label: "Answer", value: "", rows: 3}],   // what else to ask for
//        request: (values) => ({method: "POST", path: "/v1/…", body: {…}}),   // or a list of them
//        done: "Released", undo: (answer) => {…}})
//
// `act` returns nothing if the reader's role does not allow it. `perform(spec)` opens the dialog without a button.

import {newKey, request as send} from "../core/api.js";
import {may, remembered, who} from "../core/store.js";
import {open} from "./dialog.js";
import {html, icon, live, nothing} from "./html.js";
import {toast} from "./toast.js";

export function act(spec) {
  if (!may(spec.role ?? "operate")) return nothing;
  const name = `button ${spec.kind ?? ""} ${spec.small ? "small" : ""} ${spec.hurts ? "hurts" : ""}`;
  return html`<button type="button" class=${name} title=${spec.title ?? spec.label}
    @click=${(event) => { event.preventDefault(); event.stopPropagation(); perform(spec); }}>${
    spec.icon ? icon(spec.icon) : nothing}<span>${spec.label}</span></button>`;
}

// Who acts, for requests that need a session: {session, agent}. The session is this browser's; "page-" marks it as one
// of a person, which no view lists among the agents.
const session = remembered("session", "");
export function actor() {
  if (!session.peek()) session.value = newKey().slice(0, 21);
  const {user} = who.peek();
  return {session: session.peek(), ...(/^[A-Za-z0-9_][\w.:@+=,~#-]{0,127}$/.test(user ?? "") ? {agent: user} : {})};
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

export const command = (text) => html`
  <p class="command"><code dir="ltr">${text}</code><button type="button" class="bare" aria-label="Copy the command"
    @click=${() => copy(text)}>${icon("copy")}</button></p>`;

export function perform(spec) {
  const key = newKey();
  const fields = [...(spec.fields ?? [])];
  if (spec.reason) fields.push({name: spec.reason, label: "Reason", rows: 2, required: Boolean(spec.hurts)});
  const values = Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""]));
  let busy = false, error = null;
  const text = () => (typeof spec.command === "function" ? spec.command(values) : spec.command);

  const run = async (box) => {
    busy = true;
    error = null;
    box.draw();
    try {
      const answer = await sendAll([typeof spec.request === "function" ? spec.request(values) : spec.request].flat(), key);
      box.close();
      toast(spec.done ?? "Done", {undo: spec.undo ? () => spec.undo(answer) : null});
      spec.after?.(answer);
    } catch (problem) {
      error = problem;
      busy = false;
      box.draw();
    }
  };

  open({
    title: spec.title ?? spec.label,
    body: (box) => html`<form class="form" @submit=${(event) => { event.preventDefault(); if (!busy) void run(box); }}>
      ${spec.words ? html`<p class="muted">${spec.words}</p>` : nothing}
      ${fields.map((field) => input(field, values, box))}
      ${text() ? command(text()) : nothing}
      ${error ? html`<p class="problem" role="alert"><strong>${error.message}</strong> ${error.hint}</p>` : nothing}
      <footer><button type="button" class="button" @click=${box.close}>Cancel</button>
        <button class="button primary ${spec.hurts ? "hurts" : ""}" ?disabled=${busy}
          ?autofocus=${!fields.length}>${error ? "Try again" : spec.verb ?? spec.label}</button></footer></form>`,
  });
}

// Sends requests one after the other; a later attempt repeats them with the same keys. Returns the last answer; one that
// is `optional` may fail.
async function sendAll(wanted, key) {
  let answer = null;
  for (const [place, each] of wanted.entries()) {
    try {
      answer = await send(each.path, {method: each.method ?? "POST", body: each.body, key: `${key}-${place}`});
    } catch (error) {
      if (!each.optional) throw error;
    }
  }
  return answer;
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
