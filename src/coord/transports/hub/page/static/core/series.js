// Numbers over time: what the hub counted, and what later entries add to it. Everything is pure.

import {ownOf} from "./state.js";

const amountOf = (value) => (typeof value === "number" && value > 0 && value < 1e15 ? value : 0);

// Returns the number of the class that a duration belongs to.
export function classOf(bounds, seconds) {
  const found = bounds.findIndex((bound) => seconds <= bound);
  return found < 0 ? bounds.length : found;
}

// Adds an entry to the numbers; new buckets begin with the levels of the moment. Returns whether something changed.
export function extend(numbers, entry, levels = {}) {
  if (entry.offset <= numbers.offset) return false;
  numbers.offset = entry.offset;
  const place = grow(numbers, entry.at, levels);
  for (const event of entry.events ?? []) {
    for (const rule of ownOf(numbers.rules.counts, event.event) ?? []) {
      const amount = rule.field ? amountOf(ownOf(event, rule.field)) : 1;
      if (amount) numbers.counts[rule.series][place] += amount;
    }
    const span = ownOf(numbers.rules.spans, event.event);
    const taken = span && amountOf(ownOf(event, span.field));
    if (taken) {
      const classes = numbers.spans[span.series][place];
      if (!classes.length) classes.push(...new Array(numbers.rules.bounds_s.length + 1).fill(0));
      classes[classOf(numbers.rules.bounds_s, taken / span.scale)] += 1;
    }
  }
  return true;
}

// Makes room for a time; of more than `most` buckets it drops the first ones. Returns the place of that time.
export function grow(numbers, at, levels = {}) {
  const size = () => Object.values(numbers.counts)[0].length;
  let place = Math.max(0, Math.floor((at - numbers.from_ms) / numbers.width_ms));
  while (place >= size()) {
    for (const values of Object.values(numbers.counts)) values.push(0);
    for (const values of Object.values(numbers.spans)) values.push([]);
    for (const [name, values] of Object.entries(numbers.levels)) values.push(levels[name] ?? values.at(-1) ?? 0);
    if (size() > (numbers.most ?? Infinity)) {
      numbers.from_ms += numbers.width_ms;
      place -= 1;
      for (const values of [...Object.values(numbers.counts), ...Object.values(numbers.spans), ...Object.values(numbers.levels)]) values.shift();
    }
  }
  return place;
}

// The begins of the buckets, in seconds, as uPlot wants them.
export const times = (numbers) => Object.values(numbers.counts)[0].map((_, place) => (numbers.from_ms + place * numbers.width_ms) / 1000);

// Returns the duration that a share of the counted ones does not exceed, or null if none was counted.
export function quantile(bounds, classes, share) {
  const total = classes.reduce((sum, each) => sum + each, 0);
  if (!total) return null;
  let left = total * share;
  for (const [place, many] of classes.entries()) {
    if (many >= left) {
      const low = place ? bounds[place - 1] : 0, high = bounds[place] ?? bounds.at(-1) * 2;
      return low + (high - low) * (left / many);
    }
    left -= many;
  }
  return bounds.at(-1) * 2;
}

export const sum = (values) => values.reduce((total, each) => total + each, 0);
export const merged = (lists) => lists.reduce((total, each) => (each.length ? each.map((many, place) => many + (total[place] ?? 0)) : total), []);
