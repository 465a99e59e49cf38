// Prints the places where a module as it is served means something else than in the repository. Its input is
// {name: [original, served]}. `node --expose-internals` gives the parser that Node itself has.

import {createRequire} from "node:module";
import {readFileSync} from "node:fs";

const acorn = createRequire(import.meta.url)("internal/deps/acorn/acorn/dist/acorn");
const KEEPS_SPACE = /<(pre|textarea|code)\b[^>]*>[^<]*\n|class="[^"]*\b(pre|diff-line)\b[^"]*"[^>]*>[^<]*\n/;
const IN_ATTRIBUTE = /<[\w-]+(\s+[?.@]?[\w-]+(="[^"\n]*"|=[^\s"\n]*)?)*\s+[?.@]?[\w-]+="[^"\n]*\n/;

function parse(text) {
  const tokens = [];
  const program = acorn.parse(text, {ecmaVersion: "latest", sourceType: "module", onToken: tokens});
  return {program, tokens: tokens.map(({type, start, end}) => [type.label, text.slice(start, end)])};
}

// Templates of several lines are markup, where white space at the head of a line says nothing.
function* strange(node, tag = "") {
  if (!node || typeof node !== "object") return;
  if (node.type === "TemplateLiteral") {
    const text = node.quasis.map(({value}) => value.raw).join("x");
    if (text.includes("\n") && !["html", "svg"].includes(tag)) yield `several lines, and no markup: ${text}`;
    if (KEEPS_SPACE.test(text) || IN_ATTRIBUTE.test(text)) yield `white space counts here: ${text}`;
  }
  for (const [name, each] of Object.entries(node)) {
    const below = node.type === "TaggedTemplateExpression" && name === "quasi" ? node.tag.name : "";
    for (const child of Array.isArray(each) ? each : [each]) yield* strange(child, below);
  }
}

function compare(original, served) {
  const before = parse(original), after = parse(served), found = [...strange(before.program)];
  before.tokens.forEach(([label, text], place) => {
    const expected = label === "template" ? text.replace(/\n[ \t]+/g, "\n") : text;
    const [kind, given] = after.tokens[place] ?? [];
    if (kind !== label || given !== expected) found.push(`${expected} became ${given}`);
  });
  return found;
}

const modules = JSON.parse(readFileSync(0, "utf8"));
const found = Object.entries(modules).map(([name, pair]) => [name, compare(...pair)]);
console.log(JSON.stringify(Object.fromEntries(found.filter(([, each]) => each.length))));
