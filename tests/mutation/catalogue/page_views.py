"""Mutants of the modules that the views of the page compute with; Node's tests must notice them."""

from tests.mutation.mutant import PageMutant

MUTANTS = [
    PageMutant(
        "heartbeats fill the feed",
        "core/activity.js",
        "!filter.all && !filter.kind && QUIET.has(item.event)",
        "false",
        "feeds",
    ),
    PageMutant(
        "a kind is the beginning of another", "core/activity.js", "`${filter.kind}.`", "filter.kind", "feeds"
    ),
    PageMutant(
        "an agent is found by its session only",
        "core/activity.js",
        " || nameOf(each) === filter.agent",
        "",
        "feeds",
    ),
    PageMutant(
        "the agent that an event names is overlooked",
        "core/activity.js",
        "item.agent !== filter.agent && ",
        "",
        "feeds",
    ),
    PageMutant(
        "who a message is for is no part of it", "core/activity.js", "...list(item.to), ", "", "feeds"
    ),
    PageMutant("a cycle has no members", "core/activity.js", ", ...list(item.cycle)]", "]", "feeds"),
    PageMutant(
        "only the first file of an event is found", "core/activity.js", ", ...list(item.files)]", "]", "feeds"
    ),
    PageMutant(
        "a task of another project fits",
        "core/activity.js",
        "`${item.project}/${item.task}` !== filter.task",
        "false",
        "feeds",
    ),
    PageMutant(
        "any word of a filter suffices",
        "core/derive.js",
        "filter.toLowerCase().split(/\\s+/).every",
        "filter.toLowerCase().split(/\\s+/).some",
        "feeds",
    ),
    PageMutant(
        "the feed does not begin again after a gap",
        "core/activity.js",
        "(!source && !whole)",
        "false",
        "feeds",
    ),
    PageMutant(
        "a reader of a project loses the feed at each gap",
        "core/activity.js",
        "!source && !whole",
        "!whole",
        "feeds",
    ),
    PageMutant(
        "a reader of a project misses what came between two snapshots",
        "core/activity.js",
        "source !== this.source || ",
        "",
        "feeds",
    ),
    PageMutant(
        "what had happened by a moment stays as it was",
        "core/activity.js",
        "this.cut?.of !== this.items || ",
        "",
        "feeds",
    ),
    PageMutant(
        "an entry is in the feed twice",
        "core/activity.js",
        "entries.filter((entry) => entry.offset > this.high)",
        "[...entries]",
        "feeds",
    ),
    PageMutant(
        "the feed grows without end",
        "core/activity.js",
        "this.items.length > ITEMS_MAX * 1.2",
        "false",
        "feeds",
    ),
    PageMutant(
        "the feed begins in the middle of an entry",
        "core/activity.js",
        "this.items = this.items.filter((item) => item.offset > this.low);",
        "this.items = this.items.slice(-ITEMS_MAX + 1);",
        "feeds",
    ),
    PageMutant(
        "an older event is there twice",
        "core/activity.js",
        "events.filter((each) => each.offset <= this.low)",
        "events",
        "feeds",
    ),
    PageMutant(
        "older entries are asked for without end",
        "core/activity.js",
        "after <= Math.max(0, first - 1)",
        "false",
        "feeds",
    ),
    PageMutant(
        "more is asked for than there is",
        "core/activity.js",
        "Math.max(0, first - 1, this.low - size)",
        "Math.max(0, this.low - size)",
        "feeds",
    ),
    PageMutant(
        "events of one entry share a key",
        "core/activity.js",
        "`${entry.offset}.${number}`",
        "`${entry.offset}`",
        "feeds",
    ),
    PageMutant("a claim that ended goes on in its lane", "core/activity.js", '"task.expired", ', "", "feeds"),
    PageMutant(
        "what ended before the window is drawn",
        "core/activity.js",
        "    if (at < from) return;\n",
        "",
        "feeds",
    ),
    PageMutant(
        "a bar begins before the window",
        "core/activity.js",
        "from: Math.max(from, start ?? from), to: at",
        "from: start ?? from, to: at",
        "feeds",
    ),
    PageMutant(
        "a bar that is open ends never",
        "core/activity.js",
        "to: until, item, open: true",
        "to: Infinity, item, open: true",
        "feeds",
    ),
    PageMutant(
        "what comes after the window is drawn",
        "core/activity.js",
        "    if (item.at > until) break;\n",
        "",
        "feeds",
    ),
    PageMutant(
        "a deadlock has no lane",
        "core/activity.js",
        'item.event === "lock.deadlock" ? item.victim : item.session',
        "item.session",
        "feeds",
    ),
    PageMutant(
        "a lock that moved stays with its first session",
        "core/activity.js",
        'else if (item.event === "lock.moved") move(lock, ',
        'else if (item.event === "lock.moved") String(lock, ',
        "feeds",
    ),
    PageMutant(
        "a claim that moved stays with its first session",
        "core/activity.js",
        '    else if (item.event === "task.moved") move(task, task, item);\n',
        "",
        "feeds",
    ),
    PageMutant(
        "each mark is drawn", "core/activity.js", "kind && last && item.at - last.at < near", "false", "feeds"
    ),
    PageMutant(
        "marks of different kinds are one",
        "core/activity.js",
        "(mark) => mark.kind === kind",
        "() => true",
        "feeds",
    ),
    PageMutant(
        "who did something last is at the bottom",
        "core/activity.js",
        "other.at - one.at || (one.session",
        "one.at - other.at || (one.session",
        "feeds",
    ),
    PageMutant(
        "a time axis forgets the zone",
        "core/activity.js",
        "getTimezoneOffset() * 60_000",
        "getTimezoneOffset() * 0 + 1",
        "feeds",
    ),
    PageMutant(
        "an axis of time has any number of marks", "core/activity.js", "<= many) ??", "<= 1000) ??", "feeds"
    ),
    PageMutant("the system is an agent", "core/activity.js", 'name && name !== "system"', "name", "feeds"),
    PageMutant(
        "an undelivered message is a message",
        "core/conversations.js",
        '    if (event.event === "message.undelivered") continue;\n',
        "",
        "feeds",
    ),
    PageMutant(
        "a text moves its message in time",
        "core/conversations.js",
        "at: found.get(message.id)?.at ?? message.sent_ms",
        "at: message.sent_ms",
        "feeds",
    ),
    PageMutant(
        "a text takes a message out of its group",
        "core/conversations.js",
        'group: found.get(message.id)?.group ?? "", at',
        'group: "", at',
        "feeds",
    ),
    PageMutant(
        "nobody sees that a message was lost",
        "core/conversations.js",
        "lost: [...(message.lost ?? []), {session: event.session, reason: event.reason}]",
        "",
        "feeds",
    ),
    PageMutant(
        "two directions are two conversations",
        "core/conversations.js",
        "[message.from, message.to[0]].sort()",
        "[message.from, message.to[0]]",
        "feeds",
    ),
    PageMutant(
        "a notice to one is for everybody",
        "core/conversations.js",
        "message.to.length === 1 ? `system:${message.to[0]}` : EVERYBODY",
        "EVERYBODY",
        "feeds",
    ),
    PageMutant(
        "coord is a party of a conversation", "core/conversations.js", "if (each !== SYSTEM) ", "", "feeds"
    ),
    PageMutant(
        "the oldest conversation is first",
        "core/conversations.js",
        "sort((one, other) => other.at - one.at)",
        "sort((one, other) => one.at - other.at)",
        "feeds",
    ),
    PageMutant(
        "what was seen counts as unread",
        "core/conversations.js",
        "message.at > (seen",
        "message.at >= (seen",
        "feeds",
    ),
    PageMutant(
        "marks of conversations grow without end", "core/conversations.js", ".slice(-most)", "", "feeds"
    ),
    PageMutant(
        "marks of lost conversations are kept",
        "core/conversations.js",
        "([key]) => keys.has(key)",
        "() => true",
        "feeds",
    ),
    PageMutant(
        "a line of a hunk is a header",
        "core/diff.js",
        "file !== null && (left > 0 || right > 0)",
        "false",
        "feeds",
    ),
    PageMutant(
        "a hunk without a length has none",
        "core/diff.js",
        "right = Number(hunk[4] ?? 1)",
        "right = Number(hunk[4] ?? 0)",
        "feeds",
    ),
    PageMutant(
        "a missing end of line is a line",
        "core/diff.js",
        'else if (sign === "\\\\") file.lines.push({kind: "note", text: line.slice(2)});',
        "",
        "feeds",
    ),
    PageMutant(
        "a deleted file has no name",
        "core/diff.js",
        "nameOf(names.slice((names.length + 1) / 2))",
        '""',
        "feeds",
    ),
    PageMutant(
        "a renamed file keeps its old name",
        "core/diff.js",
        'file[line[7] === "f" ? "oldPath" : "path"]',
        'file[line[7] === "f" ? "oldPath" : "gone"]',
        "feeds",
    ),
    PageMutant(
        "a deleted file is called dev/null", "core/diff.js", ' && line !== "+++ /dev/null"', "", "feeds"
    ),
    PageMutant(
        "a binary file has lines", "core/diff.js", "file.binary = true", "file.binary = false", "feeds"
    ),
    PageMutant(
        "a name in quotes keeps its escapes", "core/diff.js", """text[0] === '"' ? """, "false ? ", "feeds"
    ),
    PageMutant(
        "a message to a pair goes to its writer", "core/conversations.js", "each !== me", "each", "feeds"
    ),
    PageMutant(
        "an entry counts twice in the numbers",
        "core/series.js",
        "  if (entry.offset <= numbers.offset) return false;\n",
        "",
        "feeds",
    ),
    PageMutant(
        "any amount is added",
        "core/series.js",
        'typeof value === "number" && value > 0 && value < 1e15 ? value : 0',
        "value",
        "feeds",
    ),
    PageMutant(
        "names of the prototype are counted",
        "core/state.js",
        "Object.hasOwn(record, name) ? record[name] : undefined",
        "record[name]",
        "feeds",
    ),
    PageMutant(
        "a bound belongs to the next class", "core/series.js", "seconds <= bound", "seconds < bound", "feeds"
    ),
    PageMutant(
        "the window of the numbers grows without end",
        "core/series.js",
        "size() > (numbers.most ?? Infinity)",
        "false",
        "feeds",
    ),
    PageMutant(
        "the window rolls without its time",
        "core/series.js",
        "numbers.from_ms += numbers.width_ms;\n",
        "",
        "feeds",
    ),
    PageMutant(
        "a new bucket has no level", "core/series.js", "levels[name] ?? values.at(-1) ?? 0", "0", "feeds"
    ),
    PageMutant(
        "a time before the window is nowhere",
        "core/series.js",
        "Math.max(0, Math.floor((at - numbers.from_ms) / numbers.width_ms))",
        "Math.floor((at - numbers.from_ms) / numbers.width_ms)",
        "feeds",
    ),
    PageMutant("nothing has a median", "core/series.js", "  if (!total) return null;\n", "", "feeds"),
    PageMutant(
        "a quantile is the end of its class",
        "core/series.js",
        "(high - low) * (left / many)",
        "(high - low)",
        "feeds",
    ),
    PageMutant(
        "a part without a value is shown",
        "core/sentences.js",
        "when === null) return pieces.every((piece) => !piece.field || !isEmpty(ownOf(event, piece.field)))",
        "when === null) return true",
        "feeds",
    ),
    PageMutant(
        "a condition is not compared", "core/sentences.js", "found === when.value", "!isEmpty(found)", "feeds"
    ),
    PageMutant("not means so", "core/sentences.js", ") !== when.not", ") === when.not", "feeds"),
    PageMutant(
        "an unknown event is empty",
        "core/sentences.js",
        "return [{text: `${event} `}, ...rest",
        "return [...rest",
        "feeds",
    ),
    PageMutant(
        "where an event came from is a field", "core/sentences.js", 'name !== "origin" && ', "", "feeds"
    ),
    PageMutant(
        "an empty object is a value",
        "core/state.js",
        ' || (typeof value === "object" && Object.keys(value).length === 0)',
        "",
        "feeds",
    ),
    PageMutant("nobody asks again when a lease ends", "core/why.js", "return ++ends;", "return ends;", "why"),
    PageMutant("what has ended asks without end", "core/why.js", "    nextMs = Infinity;\n", "", "why"),
    PageMutant(
        "a remedy acts in another project",
        "core/why.js",
        '["task", "agent", "limits", "track"]',
        '["task"]',
        "why",
    ),
    PageMutant(
        "a file of git is a pattern",
        "core/format.js",
        r'path.replace(/[\\*?[{}]/g, "\\$&")',
        "path",
        "why",
    ),
    PageMutant("a merge explains another branch", "core/why.js", "event.branch === branch", "true", "why"),
    PageMutant("all files of a merge are reasons", "core/why.js", ".slice(0, 10)", "", "why"),
    PageMutant(
        "a chain has one level",
        "core/why.js",
        "open.length = Math.min(open.length, reason.depth);",
        "open.length = 0;",
        "why",
    ),
    PageMutant(
        "a chain never goes back",
        "core/why.js",
        "open.length = Math.min(open.length, reason.depth);",
        "",
        "why",
    ),
    PageMutant("the report of a hang ends it", "core/state.js", 'field === "" || ', "", "state"),
    PageMutant(
        "a lock that came by itself is a sign of life",
        "core/state.js",
        "(field !== undefined && !isEmpty(ownOf(event, field)))",
        "false",
        "state",
    ),
]
