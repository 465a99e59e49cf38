// Counts the messages of a stream, as the page does: a line of JSON for each line that it reads.

import {createInterface} from "node:readline";

import {extend} from "../../../../../src/coord/transports/hub/page/static/core/series.js";

for await (const line of createInterface({input: process.stdin})) {
  const {numbers, messages} = JSON.parse(line), found = JSON.parse(numbers);
  for (const message of messages) extend(found, JSON.parse(message));
  console.log(JSON.stringify({counts: found.counts, spans: found.spans}));
}
