// What every view needs to draw: lit-html, and small pieces that stay within the content security policy.

import {html, nothing, render, svg} from "../vendor/lit-html/lit-html.js";
import {Directive, directive} from "../vendor/lit-html/directive.js";
import {guard} from "../vendor/lit-html/directives/guard.js";
import {keyed} from "../vendor/lit-html/directives/keyed.js";
import {live} from "../vendor/lit-html/directives/live.js";
import {ref} from "../vendor/lit-html/directives/ref.js";
import {repeat} from "../vendor/lit-html/directives/repeat.js";
import {moment, visible} from "../core/format.js";
import {icon} from "./icons.js";

export {directive, Directive, guard, html, icon, keyed, live, nothing, ref, render, repeat, svg};

// Styles of an element by CSSOM, because the policy forbids style= attributes: <i ${css({width: "30%"})}>.
export const css = directive(class extends Directive {
  #set = {};

  render() {
    return nothing;
  }

  update(part, [styles]) {
    for (const [name, value] of Object.entries(styles)) {
      if (this.#set[name] !== value) part.element.style.setProperty(name, this.#set[name] = value);
    }
    return nothing;
  }
});

// Text that somebody else wrote: shown as text, in its own direction, with control characters made visible.
export const foreign = (value, name = "") => html`<bdi class=${name} dir="auto">${visible(value)}</bdi>`;

// A path: from left to right, whatever its letters are.
export const place = (value) => html`<bdi dir="ltr">${visible(value)}</bdi>`;

export const code = (value) => html`<code dir="ltr">${visible(value)}</code>`;

// A time that shows itself whole when pointed at.
export const time = (ms, words) => (ms ? html`<time datetime=${new Date(ms).toISOString()} title=${moment(ms)}>${words}</time>` : nothing);

// A word with a colour and a shape; `tone` is ok, work, wait, ask, bad, idle or accent.
export const chip = (tone, words, title = "") =>
  html`<span class="chip" data-tone=${tone} title=${title || nothing}><i class="dot" aria-hidden="true"></i>${words}</span>`;

export const empty = (title, words, more = nothing) => html`
  <div class="empty">${icon("calm")}<h2 class="title">${title}</h2><p>${words}</p>${more}</div>`;

export const failed = (error, retry) => html`
  <div class="empty" role="alert">${icon("alert")}<h2 class="title">${error.message}</h2>
    ${error.hint ? html`<p>${error.hint}</p>` : nothing}
    ${retry ? html`<button class="button" @click=${retry}>Try again</button>` : nothing}</div>`;

export const skeleton = (rows = 6) => html`
  <div class="skeleton" role="status" aria-label="Loading">${Array.from({length: rows}, () => html`<i></i>`)}</div>`;

// A bar between 0 and 1.
export const meter = (share, label, tone = "accent") => html`
  <span class="meter" data-tone=${tone} role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${Math.round(share * 100)}><i ${css({width: `${Math.min(100, Math.max(0, share * 100))}%`})}></i></span>`;

// The head of a view: a title, a count, and what can be done.
export const heading = (title, detail = nothing, actions = nothing) => html`
  <header class="heading"><h1>${title}</h1><span class="detail">${detail}</span><span class="actions">${actions}</span></header>`;

// A choice of a few: buttons of which one is pressed. `options` are [value, label] pairs.
export const choice = (label, value, options, choose) => html`
  <div class="choice" role="group" aria-label=${label}>${options.map(([each, words]) => html`
    <button type="button" aria-pressed=${each === value} @click=${() => choose(each)}>${words}</button>`)}</div>`;

// An option of a <select>. What is chosen is set on the element, because the attribute only says how it begins.
export const option = (value, label, chosen = "") => html`<option value=${value} .selected=${live(value === chosen)}>${label}</option>`;

// The field that `/` puts the focus on; it keeps its text in the address (?q=).
export const filterField = (value, change, label = "Filter") => html`
  <label class="filter">${icon("search")}<span class="hidden">${label}</span>
    <input type="search" data-filter placeholder=${label} autocomplete="off" spellcheck="false" .value=${live(value)}
      @input=${(event) => change(event.target.value)}><kbd aria-hidden="true">/</kbd></label>`;
