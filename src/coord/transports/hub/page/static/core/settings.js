// Settings and limits in words: groups, values with their units, and what a field of a form takes. Everything is pure.

import {bytes, count, duration, number} from "./format.js";

const GROUPS = [["Sessions", /^(suspect|stale|hung)_/], ["Locks", /^(project_lock|steal|progress)/], ["Log", /^log_/], ["Alerts", /^alert_/]];
const UNITS = [
  [/seconds$/, duration, "seconds"], [/percent$/, (value) => `${number(value)}%`, "percent"],
  [/days$/, (value) => count(value, "day"), "days"], [/bytes$/, bytes, "bytes"],
];

const unitOf = (name) => UNITS.find(([pattern]) => pattern.test(name));

// "alert_stuck_seconds" -> "Alert: stuck", because its group and its unit stand beside it.
export function title(name) {
  const words = name.replace(/^max_/, "most ").replace(/^min_/, "least ").replace(/_(seconds|percent|days|bytes)$/, "").replace(/^alert_/, "").replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

// A value as people say it; a number that may be 0 is switched off by it.
export function words({name, value, low = 1}) {
  if (value === 0 && low === 0) return "off";
  if (typeof value !== "number") return String(value).replaceAll("_", " ");
  return (unitOf(name)?.[1] ?? number)(value);
}

// The settings by group, without `max_agents`, which has a slider: [[group, [setting]]].
export function groups(settings) {
  const rest = settings.filter(({name}) => name !== "max_agents");
  const found = GROUPS.map(([group, pattern]) => [group, rest.filter(({name}) => pattern.test(name))]);
  return [...found, ["Other", rest.filter(({name}) => !GROUPS.some(([, pattern]) => pattern.test(name)))]].filter(([, each]) => each.length);
}

// The field in which a person types or chooses a new value.
export function field({name, value, choices = [], low, high}) {
  if (choices.length) return {name: "value", label: title(name), options: choices, value};
  const unit = unitOf(name)?.[2];
  const range = high ? `, ${number(low)} to ${number(high)}` : "";
  return {name: "value", label: `${title(name)}${unit ? `, in ${unit}` : ""}${range}`, type: "number", value: String(value), required: true, min: low, max: high || undefined};
}

// The projects of which a reader may set something, the busiest first; `home` is that of the repository.
export function projects(state, home) {
  const found = new Map(home ? [[home, 0]] : []);
  for (const table of [state.tables.sessions, state.tables.tasks]) {
    for (const {project} of table.values()) if (project) found.set(project, (found.get(project) ?? 0) + 1);
  }
  return [...found].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1)).map(([name]) => name);
}
