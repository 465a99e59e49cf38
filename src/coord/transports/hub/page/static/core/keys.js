// The keyboard: single keys and sequences ("g n"). Keys do nothing while somebody types or a dialog is open.

const bindings = new Map();
let begun = "", begunMs = 0;

// Adds a key; `where` groups it in the help.
export function bind(keys, does, run, where = "Everywhere") {
  bindings.set(keys, {keys, does, run, where});
}

export const allKeys = () => [...bindings.values()];

// Returns what a key press runs and the sequence that it begins: pure, for tests.
export function next(known, started, key) {
  const whole = started ? `${started} ${key}` : key;
  if (known.has(whole)) return {run: known.get(whole).run, started: ""};
  const begins = [...known.keys()].some((keys) => keys.startsWith(`${whole} `));
  if (begins) return {run: null, started: whole};
  return started ? next(known, "", key) : {run: null, started: ""};
}

const types = (element) =>
  element?.closest?.("input, textarea, select, [contenteditable]") && element.type !== "checkbox";

// Puts the focus on the row before or after the one that has it.
export function moveFocus(step) {
  const rows = [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement?.closest?.("[data-row]"));
  const row = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))];
  (row.matches("a, button, [tabindex]") ? row : row.querySelector("a, button") ?? row).focus();
  row.scrollIntoView({block: "nearest"});
}

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]")) return;
    if (types(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (Date.now() - begunMs > 1500) begun = "";
    const found = next(bindings, begun, event.key);
    begun = found.started;
    begunMs = Date.now();
    if (found.run) {
      event.preventDefault();
      found.run();
    }
  });
}
