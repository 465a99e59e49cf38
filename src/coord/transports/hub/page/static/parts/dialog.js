// A modal dialog: open({title, body, label}) shows a template in the native <dialog>, which keeps the focus inside
// and closes with escape. One dialog at a time; `body` is a function, so that it can be drawn again. Where what had the
// focus is gone afterwards, what took its place gets it.

import {holdFocus} from "../core/keys.js";
import {html, icon, render} from "./html.js";

let current = null;

export function open({title, body, size = "", onClose = () => {}}) {
  close();
  const element = document.createElement("dialog");
  element.className = `dialog ${size}`;
  element.setAttribute("aria-label", title);
  const back = holdFocus();
  const isOpen = () => element.open;
  const draw = () => render(html`
    <header><h2>${title}</h2><button class="bare" aria-label="Close" @click=${close}>${icon("close")}</button></header>
    <div class="body">${body(box)}</div>`, element);
  const box = {draw, isOpen, close: () => element.close()};
  element.addEventListener("close", () => {
    element.remove();
    if (current?.element === element) current = null;
    onClose();
    back();
  });
  element.addEventListener("click", (event) => {
    if (event.target === element) close();
  });
  draw();
  document.body.append(element);
  element.showModal();
  current = {element, draw};
  element.querySelector("[autofocus]")?.focus();
  return box;
}

export function close() {
  current?.element.close();
}
