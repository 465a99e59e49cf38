// The entry of a report: unpacks what the file holds, and begins the page with it.

import {use} from "../static/core/report.js";
import {reportOf} from "./answers.js";
import {runOf} from "./run.js";

const packed = Uint8Array.from(atob(document.getElementById("coord-report").textContent.trim()), (each) => each.charCodeAt(0));
const whole = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
const found = JSON.parse(await new Response(whole).text());
use({...reportOf(found), run: runOf(found)});
await import("../static/app.js");
