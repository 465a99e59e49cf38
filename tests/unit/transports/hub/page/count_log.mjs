// Prints the numbers that a report shows of a log: node count_log.mjs, with {base, series, entries, queries} on stdin.

import {readFileSync} from "node:fs";
import {numbersOf} from "../../../../../src/coord/transports/hub/page/static_report/answers.js";

const {base, series, entries, queries} = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(queries.map((query) => numbersOf({base, series}, entries, query))));
