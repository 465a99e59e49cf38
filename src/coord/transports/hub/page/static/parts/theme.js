// Light, dark, high contrast, or as the system says; the choice is kept in this browser.

import {effect, remembered} from "../core/store.js";

export const THEMES = [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"], ["contrast", "High contrast"]];
export const theme = remembered("theme", "auto");

export function start() {
  effect(() => {
    document.documentElement.dataset.theme = THEMES.some(([name]) => name === theme.value) ? theme.value : "auto";
  });
}

export function nextTheme() {
  const at = THEMES.findIndex(([name]) => name === theme.value);
  theme.value = THEMES[(at + 1) % THEMES.length][0];
  return THEMES.find(([name]) => name === theme.value)[1];
}

// Returns a colour of the theme as a canvas understands it: colour("--accent").
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
