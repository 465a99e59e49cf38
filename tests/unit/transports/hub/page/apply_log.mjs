// Applies recorded entries to a state, and prints what it makes of them: a line of JSON for each log.

import {readFileSync} from "node:fs";

import {applyEntry, fromSnapshot, toSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

const {rules, logs} = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const {begin, entries} of logs) {
  const state = fromSnapshot(begin);
  for (const entry of entries) applyEntry(state, rules, entry);
  console.log(JSON.stringify(toSnapshot(state)));
}
