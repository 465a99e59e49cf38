// Messages as conversations: pure. `events` come from the log (subjects), `stored` from the hub (texts that still exist).

export const EVERYBODY = "everybody", SYSTEM = "system";

// Returns messages, oldest first, each once: what the log says, and the text where it is known. With `before`, a time,
// a message that the log does not name yet counts only if it was sent earlier.
export function merge(events, stored, before = Infinity) {
  const found = new Map();
  for (const event of events) {
    if (event.event === "message.undelivered") continue;
    found.set(event.id, {id: event.id, from: event.session, to: event.to ?? [], group: event.group ?? "", kind: event.kind,
      subject: event.subject ?? "", at: event.at, offset: event.offset});
  }
  for (const message of stored) {
    if (!found.has(message.id) && message.sent_ms >= before) continue;
    found.set(message.id, {...found.get(message.id), id: message.id, from: message.sender, to: message.to, kind: message.kind, subject: message.subject,
      group: found.get(message.id)?.group ?? "", at: found.get(message.id)?.at ?? message.sent_ms, body: message.body, cut: message.cut, waiting: message.waiting,
      reply_to: message.reply_to, gone: message.gone});
  }
  for (const event of events) {
    if (event.event === "message.undelivered" && found.has(event.id)) {
      const message = found.get(event.id);
      found.set(event.id, {...message, lost: [...(message.lost ?? []), {session: event.session, reason: event.reason}]});
    }
  }
  return [...found.values()].sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1));
}

// The conversation that a message belongs to: a group, everybody, coord's own notices to one session, or two sessions.
export function keyOf(message) {
  if (message.group) return `group:${message.group}`;
  if (message.from === SYSTEM) return message.to.length === 1 ? `system:${message.to[0]}` : EVERYBODY;
  if (message.to.length !== 1) return EVERYBODY;
  return [message.from, message.to[0]].sort().join("\n");
}

// Returns [{key, kind, parties, messages, at}], the newest first.
export function conversations(messages) {
  const found = new Map();
  for (const message of messages) {
    const key = keyOf(message);
    if (!found.has(key)) {
      const kind = key === EVERYBODY ? "everybody" : key.startsWith("group:") ? "group" : key.startsWith("system:") ? "system" : "pair";
      found.set(key, {key, kind, parties: new Set(), messages: [], at: 0});
    }
    const one = found.get(key);
    one.messages.push(message);
    one.at = Math.max(one.at, message.at);
    for (const each of [message.from, ...message.to]) if (each !== SYSTEM) one.parties.add(each);
  }
  return [...found.values()].sort((one, other) => other.at - one.at);
}

// To whom somebody writes in a conversation: the group, everybody (""), or the other one of a pair.
export const addressOf = ({kind, key, parties}, me) =>
  (kind === "group" ? key : kind === "everybody" ? "" : [...parties].findLast((each) => each !== me) ?? "");

// How many messages are newer than what the reader has seen of a conversation.
export const unread = (conversation, seen) => conversation.messages.filter((message) => message.at > (seen[conversation.key] ?? 0) && message.kind !== "undelivered").length;

// Keeps the marks of conversations that still exist, so that they do not grow without end.
export const pruned = (seen, keys, most = 500) => Object.fromEntries(Object.entries(seen).filter(([key]) => keys.has(key)).slice(-most));
