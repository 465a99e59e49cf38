// Choose one of many by typing: the command palette, and other pickers.

import {matches} from "../core/derive.js";
import {visible} from "../core/format.js";
import {open} from "./dialog.js";
import {html, icon, live, nothing} from "./html.js";

const SHOWN_MAX = 50;

// Returns the choices that fit a text, those first whose label begins with it.
export function fitting(choices, text) {
  if (!text.trim()) return choices.slice(0, SHOWN_MAX);
  const low = text.trim().toLowerCase();
  const found = choices.filter((choice) => matches(text.trim(), `${choice.kind ?? ""} ${choice.label} ${choice.detail ?? ""}`));
  const rank = (choice) => (choice.label.toLowerCase().startsWith(low) ? 0 : choice.label.toLowerCase().includes(low) ? 1 : 2);
  return found.sort((one, other) => rank(one) - rank(other)).slice(0, SHOWN_MAX);
}

// Opens a picker; a choice is {label, detail, kind, icon, run}.
export function pick({title, placeholder, choices}) {
  let text = "", at = 0;
  open({
    title,
    size: "palette",
    body: (box) => {
      const found = fitting(choices, text);
      at = Math.min(at, Math.max(0, found.length - 1));
      const run = (choice) => {
        box.close();
        choice?.run();
      };
      const press = (event) => {
        const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
        if (step) {
          at = (at + step + found.length) % Math.max(1, found.length);
          box.draw();
          document.getElementById(`choice-${at}`)?.scrollIntoView({block: "nearest"});
        } else if (event.key === "Enter") run(found[at]);
        else return;
        event.preventDefault();
      };
      return html`
        <input type="text" autofocus role="combobox" aria-expanded="true" aria-controls="choices" aria-label=${title}
          aria-activedescendant=${found.length ? `choice-${at}` : nothing} placeholder=${placeholder} autocomplete="off" spellcheck="false"
          .value=${live(text)} @input=${(event) => { text = event.target.value; at = 0; box.draw(); }} @keydown=${press}>
        <ul id="choices" role="listbox" aria-label=${title}>${found.map((choice, place) => html`
          <li id="choice-${place}" role="option" aria-selected=${place === at} @click=${() => run(choice)}>${icon(choice.icon ?? "right")}
            <bdi dir="auto">${visible(choice.label)}</bdi><span class="muted">${visible(choice.detail ?? "")}</span>
            <span class="muted end">${choice.kind ?? ""}</span></li>`)}
          ${found.length ? nothing : html`<li class="muted">Nothing fits.</li>`}</ul>`;
    },
  });
}
