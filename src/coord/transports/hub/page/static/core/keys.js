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

export const types = (element) =>
  Boolean(element?.closest?.("input, textarea, select, [contenteditable]")) && !["checkbox", "range"].includes(element.type);

const rowsShown = () => [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent !== null);
const CAN_FOCUS = "a[href], button, [tabindex]"; // in a text field, keys would be typed

// Puts the focus on the row before or after the one that has it.
export function moveFocus(step) {
  const rows = rowsShown();
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement?.closest?.("[data-row]"));
  focusRow(rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step))]);
}

function focusRow(row) {
  (row.matches(CAN_FOCUS) ? row : row.querySelector(CAN_FOCUS) ?? row).focus();
  row.scrollIntoView({block: "nearest"});
}

// Puts the focus on the first act of the row that has it, or of the view.
export function focusAct() {
  const row = document.activeElement?.closest?.("main li, main .line, main [data-row]");
  (row?.querySelector("[data-act]") ?? document.querySelector("main [data-act]"))?.focus();
}

// Returns a function that puts the focus back to where it is now: on the same element, or if that is gone, on the row
// that took the place of its row, or on what is left around it.
export function holdFocus() {
  const element = document.activeElement;
  if (!element || element === document.body || element.closest("dialog")) return () => {};
  const row = element.closest("[data-row]"), at = row ? rowsShown().indexOf(row) : -1, around = [];
  for (let each = element.parentElement; each; each = each.parentElement) around.push(each);
  return () => {
    if (document.activeElement === element) return;
    if (element.isConnected) return element.focus({preventScroll: true});
    const rows = at < 0 ? [] : rowsShown();
    if (rows.length) return focusRow(row.isConnected ? row : rows[Math.min(at, rows.length - 1)]);
    (around.find((each) => each.isConnected)?.querySelector(CAN_FOCUS) ?? document.getElementById("content"))?.focus();
  };
}

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.repeat && event.key === "Enter" && event.target.closest?.("dialog, [data-act]") && event.target.localName !== "textarea") event.preventDefault();
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
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
