// The views of the page; the first one is shown at "/". One line a view.

import {view as activity} from "./activity.js";
import {view as agent} from "./agent.js";
import {view as alerts} from "./alerts.js";
import {view as locks} from "./locks.js";
import {view as merges} from "./merges.js";
import {view as messages} from "./messages.js";
import {view as now} from "./now.js";
import {view as numbers} from "./numbers.js";
import {view as plan} from "./plan.js";
import {view as settings} from "./settings.js";
import {view as task} from "./task.js";
import {view as why} from "./why.js";

export const views = [now, plan, locks, task, agent, why, activity, messages, merges, alerts, numbers, settings];
