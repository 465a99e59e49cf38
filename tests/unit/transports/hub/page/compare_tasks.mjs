// Prints the word of the page for each task of a state, by task: node compare_tasks.mjs, a snapshot on stdin.

import {readFileSync} from "node:fs";
import {taskState} from "../../../../../src/coord/transports/hub/page/static/core/derive.js";
import {fromSnapshot} from "../../../../../src/coord/transports/hub/page/static/core/state.js";

const words = JSON.parse(readFileSync(0, "utf8")).map((snapshot) => {
  const state = fromSnapshot(snapshot);
  return Object.fromEntries([...state.tables.tasks.values()].map((task) => [task.task, taskState(task, state, state.at).word]));
});
process.stdout.write(JSON.stringify(words));
