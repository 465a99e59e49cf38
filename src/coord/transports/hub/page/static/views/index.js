// The views of the page; the first one is shown at "/". One line a view.

import {view as locks} from "./locks.js";
import {view as now} from "./now.js";

export const views = [now, locks];
