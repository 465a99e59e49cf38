// Why a merge does not go on: its refusals are in the log only, so the page explains them itself. The hub explains
// tasks, locks and sessions.

const WORDS = {conflict: "both sides changed the same lines", check_failed: "its check failed", refused: "it has changes that nobody made under a lock"};

// The newest merge of a branch, or null.
export const newestMerge = (recent, branch) => (recent.merges ?? []).findLast((event) => event.branch === branch) ?? null;

// Returns {answer, reasons, remedy} as the hub does for others.
export function whyMerge(recent, branch) {
  const event = newestMerge(recent, branch);
  if (!event) return {answer: `nobody has tried to merge ${branch} lately`, reasons: [], remedy: {text: "Merge it", command: ["merge", branch]}};
  const subject = {subject_kind: "session", subject: event.session};
  if (event.event === "git.merged") {
    return {answer: `${branch} is merged into ${event.into}`, reasons: [{kind: "merge", depth: 0, text: `${event.agent || event.session} merged it`, since_ms: event.at, until_ms: 0, ...subject}], remedy: null};
  }
  const reasons = [{kind: "merge", depth: 0, text: `the merge into ${event.into} was refused: ${WORDS[event.status] ?? (event.status || "no reason was given").replaceAll("_", " ")}`, since_ms: event.at, until_ms: 0, ...subject}];
  for (const party of event.parties ?? []) {
    reasons.push({kind: "session", depth: 1, text: `${party} changed the same`, since_ms: 0, until_ms: 0, subject_kind: "session", subject: party});
  }
  for (const file of (event.files ?? []).slice(0, 10)) {
    reasons.push({kind: "lock", depth: 1, text: file, since_ms: 0, until_ms: 0, subject_kind: "lock", subject: `file:${file}`});
  }
  if (event.detail) reasons.push({kind: "merge", depth: 1, text: event.detail, since_ms: 0, until_ms: 0, subject_kind: "", subject: ""});
  return {answer: `${branch} is not merged`, reasons, remedy: {text: "Resolve it in its worktree, then merge again", command: ["merge", branch]}};
}

// The chain as a tree: [{reason, children}].
export function treeOf(reasons) {
  const top = [], open = [];
  for (const reason of reasons) {
    const node = {reason, children: []};
    open.length = Math.min(open.length, reason.depth);
    (open.at(-1)?.children ?? top).push(node);
    open.push(node);
  }
  return top;
}
