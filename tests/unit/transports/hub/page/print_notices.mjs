// Prints the notice of each event, for the table and the reader that it gets.
import {readFileSync} from "node:fs";
import {noticeOf, titleOf} from "../../../../../src/coord/transports/hub/page/static/core/notices.js";
import {fromSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

const {table, snapshot, who, events} = JSON.parse(readFileSync(process.argv[2], "utf8"));
const state = fromSnapshot(snapshot);
console.log(JSON.stringify(events.map((event) => {
  const found = noticeOf(table, event, {state, who});
  return found && {...found, shown: titleOf(found), event: event.event};
})));
