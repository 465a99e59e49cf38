// Applies the messages of a stream to a state, as the page does: a line of JSON for each line that it reads.

import {createInterface} from "node:readline";

import {applyEntry, fromSnapshot, toSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

for await (const line of createInterface({input: process.stdin})) {
  const {snapshot, messages} = JSON.parse(line), begin = JSON.parse(snapshot);
  const state = fromSnapshot(begin);
  for (const message of messages) applyEntry(state, begin.rules, JSON.parse(message));
  console.log(JSON.stringify(toSnapshot(state)));
}
