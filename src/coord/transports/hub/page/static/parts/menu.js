// Choose one of many by typing: the command palette, and other pickers.

import {fitting} from "../core/derive.js";
import {visible} from "../core/format.js";
import {open} from "./dialog.js";
import {html, icon, live, nothing} from "./html.js";

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
