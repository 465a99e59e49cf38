// A modal dialog: open({title, body, label}) shows a template in the native <dialog>, which keeps the focus inside
// and closes with escape. One dialog at a time; `body` is a function, so that it can be drawn again.

import {html, icon, render} from "./html.js";

let current = null;

export function open({title, body, size = "", onClose = () => {}}) {
  close();
  const element = document.createElement("dialog");
  element.className = `dialog ${size}`;
  element.setAttribute("aria-label", title);
  const before = document.activeElement;
  const draw = () => render(html`
    <header><h2>${title}</h2><button class="bare" aria-label="Close" @click=${close}>${icon("close")}</button></header>
    <div class="body">${body({close, draw})}</div>`, element);
  element.addEventListener("close", () => {
    element.remove();
    if (current?.element === element) current = null;
    onClose();
    if (before?.isConnected) before.focus();
  });
  element.addEventListener("click", (event) => {
    if (event.target === element) close();
  });
  draw();
  document.body.append(element);
  element.showModal();
  current = {element, draw};
  element.querySelector("[autofocus]")?.focus();
  return {close, draw};
}

export function close() {
  current?.element.close();
}
