// A text that is cut shows itself whole when somebody points at it.

const titled = new WeakSet();

const isCut = (each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight;

function show({target}) {
  for (const each of [target.closest?.(".path bdi"), target.closest?.(".cut, .clamp, .said")]) {
    if (!each || (each.title && !titled.has(each))) continue;
    if (each.title || isCut(each)) each.title = isCut(each) ? each.innerText : "";
    titled.add(each);
  }
}

export const start = () => addEventListener("pointerover", show, {passive: true});
