// What was done in a run, in all and by agent. Everything is pure.

const BY_AGENT = {"task.completed": "done", "git.committed": "commits", "git.merged": "merges", "lock.acquired": "locks"};

// Returns what counts entries up to an offset: {from, totals: {series: number}, agents: [{name, done, …}]}.
export function counterOf({entries, series}) {
  let next = 0, totals = {}, agents = new Map();
  const names = new Map(); // the agents of sessions
  for (const {events} of entries) for (const {session, agent} of events) if (session && agent) names.set(session, agent);
  return (offset) => {
    if (next && entries[next - 1].offset > offset) [next, totals, agents] = [0, {}, new Map()];
    for (; next < entries.length && entries[next].offset <= offset; next += 1) {
      for (const event of entries[next].events) {
        for (const {series: name, field} of Object.hasOwn(series.rules.counts, event.event) ? series.rules.counts[event.event] : []) {
          const amount = field ? event[field] : 1;
          if (Number.isFinite(amount) && amount > 0) totals[name] = (totals[name] ?? 0) + amount;
        }
        const what = Object.hasOwn(BY_AGENT, event.event) ? BY_AGENT[event.event] : null, name = event.agent || names.get(event.session) || event.session;
        if (!what || typeof name !== "string" || !name) continue;
        if (!agents.has(name)) agents.set(name, {name});
        agents.get(name)[what] = (agents.get(name)[what] ?? 0) + 1;
      }
    }
    const rank = (each) => 1000 * (each.done ?? 0) + (each.commits ?? 0);
    return {totals, agents: [...agents.values()].sort((one, other) => rank(other) - rank(one) || (one.name < other.name ? -1 : 1))};
  };
}
