// An event as a sentence. The sentences are data of the hub (`core/page/sentences.py`): `{field}` is a field of the
// event, a part in brackets is shown only if all its fields have a value; `[?field …]`, `[!field …]` and
// `[?field=value …]` are conditions.

import {isEmpty, ownOf} from "./state.js";

const PART = /\[(?:([?!])(\w+)(?:=(\w+))? )?([^[\]]*)\]|\{(\w+)\}|([^[{]+)/g;
const known = new Map();

// Returns the pieces of a template: {text}, {field}, or {pieces, when} for a part in brackets.
export function parse(template) {
  if (!known.has(template)) {
    known.set(template, [...template.matchAll(PART)].map(([, sign, name, value, inner, field, text]) => {
      if (field) return {field};
      if (text !== undefined) return {text};
      return {pieces: parse(inner), when: sign ? {not: sign === "!", name, value} : null};
    }));
  }
  return known.get(template);
}

function isShown({pieces, when}, event) {
  if (when === null) return pieces.every((piece) => !piece.field || !isEmpty(ownOf(event, piece.field)));
  const found = ownOf(event, when.name);
  return (when.value === undefined ? !isEmpty(found) : found === when.value) !== when.not;
}

// Returns a sentence as [{text} | {field, value}].
export function sentence(templates, event) {
  const template = Object.hasOwn(templates, event.event) ? templates[event.event] : null;
  if (template === null) return unknown(event);
  const found = [];
  const add = (pieces) => {
    for (const piece of pieces) {
      if (piece.pieces) {
        if (isShown(piece, event)) add(piece.pieces);
      } else found.push(piece.field ? {field: piece.field, value: ownOf(event, piece.field)} : piece);
    }
  };
  add(parse(template));
  return found;
}

// What an older page does not know is shown with its fields.
function unknown({event, ...fields}) {
  const rest = Object.entries(fields).filter(([name, value]) => name !== "origin" && name !== "offset" && name !== "at" && !isEmpty(value));
  return [{text: `${event} `}, ...rest.flatMap(([name, value]) => [{text: ` ${name}=`}, {field: "", value}])];
}

// Fields that name a session, or several.
export const SESSIONS = new Set(["session", "by", "to", "holder", "victim", "successor", "parent", "sender", "by_session",
  "for_session", "cycle", "holders", "parties"]);
export const FILES = new Set(["resource", "resources", "files"]);
