"""Mutants of what all views of the page stand on: questions to the hub, keys, addresses and words."""

from tests.mutation.mutant import PageMutant

MUTANTS = [
    PageMutant(
        "an answer is asked for at every look",
        "core/asked.js",
        "newKey !== key || newStamp !== stamp",
        "true",
        "why",
    ),
    PageMutant(
        "a stamp that changed asks for nothing",
        "core/asked.js",
        "newKey !== key || newStamp !== stamp",
        "newKey !== key",
        "why",
    ),
    PageMutant(
        "a failure takes the answer away",
        "core/asked.js",
        "known.key === forKey ? known.value : null",
        "null",
        "why",
    ),
    PageMutant(
        "a failure shows the answer to another question",
        "core/asked.js",
        "known.key === forKey ? known.value : null",
        "known.value",
        "why",
    ),
    PageMutant(
        "two requests run at a time",
        "core/asked.js",
        "if (!running) wait(run, 0);",
        "wait(run, 0);",
        "why",
    ),
    PageMutant(
        "what changed while a request ran is forgotten",
        "core/asked.js",
        "more || key !== forKey || stamp !== forStamp",
        "false",
        "why",
    ),
    PageMutant("asking again asks for nothing", "core/asked.js", "more = true;\n    begin();", "", "why"),
    PageMutant(
        "asking again during a request asks for nothing",
        "core/asked.js",
        "running = more || ",
        "running = ",
        "why",
    ),
    PageMutant(
        "what was missed looks unchanged",
        "core/state.js",
        "[...items];\n    state.versions[name] = ++version;",
        "[...items];\n    state.versions[name] = 1;",
        "state",
    ),
    PageMutant(
        "a table that was missed looks unchanged",
        "core/state.js",
        "(Object.entries(records));\n    state.versions[name] = ++version;",
        "(Object.entries(records));\n    state.versions[name] = 1;",
        "state",
    ),
    PageMutant(
        "a short look away is an absence", "core/away.js", "nowMs - last.at > LEFT_MS && ", "", "core"
    ),
    PageMutant("an absence without news is told", "core/away.js", " && offset > last.offset", "", "core"),
    PageMutant(
        "a sequence of keys never ends",
        "core/keys.js",
        'return {run: known.get(whole).run, started: ""}',
        "return {run: known.get(whole).run, started: whole}",
        "core",
    ),
    PageMutant(
        "a key that leads nowhere swallows the next one",
        "core/keys.js",
        'started ? next(known, "", key) : ',
        "",
        "core",
    ),
    PageMutant(
        "a key begins what only begins alike",
        "core/keys.js",
        "keys.startsWith(`${whole} `)",
        "keys.startsWith(whole)",
        "core",
    ),
    PageMutant(
        "a longer address fits",
        "core/router.js",
        "  if (wanted.length !== given.length) return null;\n",
        "",
        "core",
    ),
    PageMutant("an empty name is a name", "core/router.js", "      if (!value) return null;\n", "", "core"),
    PageMutant(
        "a slash at the end is another address", "core/router.js", '.replace(/(.)\\/$/, "$1")', "", "core"
    ),
    PageMutant(
        "another pattern of a view does not count", "core/router.js", "...(view.also ?? [])", "", "core"
    ),
    PageMutant(
        "an unknown address shows the first view",
        "core/router.js",
        "return {view: null, values: {}, query}",
        "return {view: views[0], values: {}, query}",
        "core",
    ),
    PageMutant(
        "a name with a slash is two",
        "core/router.js",
        "task: (project, task) => `/task/${part(project)}/${part(task)}`",
        "task: (project, task) => `/task/${project}/${task}`",
        "core",
    ),
    PageMutant(
        "a broken address breaks the page",
        "core/router.js",
        '  } catch {\n    return "";',
        "  } catch (error) {\n    throw error;",
        "core",
    ),
    PageMutant(
        "less than a cent is nothing", "core/format.js", "dollars > 0 && dollars < 0.01", "false", "core"
    ),
    PageMutant(
        "eleven ends like one", "core/format.js", "place % 100 > 10 && place % 100 < 14", "false", "core"
    ),
    PageMutant("what is over lasts on", "core/format.js", 'ms <= now ? "expired" : ', "", "core"),
    PageMutant(
        "a time of another day has no date",
        "core/format.js",
        "new Date(ms).toDateString() === new Date(now).toDateString()",
        "true",
        "core",
    ),
    PageMutant(
        "a control character is obeyed",
        "core/format.js",
        "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u202a",
        "\\u0000-\\u0008\\u007f-\\u009f\\u202a",
        "core",
    ),
    PageMutant(
        "what somebody typed is an option",
        "core/format.js",
        '...(dashed.length ? ["--", ...dashed] : [])',
        "...dashed",
        "core",
    ),
    PageMutant(
        "a terminal obeys a line that was copied",
        "core/format.js",
        "if (!/[\\u0000-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]/.test(text)) return",
        "return",
        "core",
    ),
    PageMutant(
        "ten minutes have seconds",
        "core/format.js",
        "  if (whole < 600) return",
        "  if (whole < 3600) return",
        "core",
    ),
]
