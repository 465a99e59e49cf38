// Prints of each pair of resources whether the page takes them for overlapping: node compare_overlaps.mjs, pairs on stdin.

import {readFileSync} from "node:fs";
import {overlaps} from "../../../../../src/coord/transports/hub/page/static/core/derive.js";

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(([one, other]) => overlaps(one, other))));
