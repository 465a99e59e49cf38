"""Deliberate defects of the page's modules: each one is put into a copy, and Node's tests must notice it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.mutation.catalogue.page_basics import MUTANTS as OF_BASICS
from tests.mutation.catalogue.page_past import OF_PAGE as OF_PAST
from tests.mutation.catalogue.page_views import MUTANTS as OF_VIEWS
from tests.mutation.mutant import PageMutant

ROOT = Path(__file__).resolve().parents[2]
STATIC = Path("src/coord/transports/hub/page/static")
TESTS = Path("tests/unit/transports/hub/page")
NODE = shutil.which("node") or ""
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(not NODE, reason="node is not installed")


MUTANTS = [
    *OF_VIEWS,
    *OF_BASICS,
    *OF_PAST,
    PageMutant(
        "a finished task is on the critical path",
        "core/plan.js",
        "FINISHED.has(words.get(name)) ? 0 : ",
        "",
        "plan",
    ),
    PageMutant(
        "a new dependency asks for no layout",
        "core/plan.js",
        " && sameList(before.depends_on, task.depends_on)",
        "",
        "plan",
    ),
    PageMutant(
        "every task is drawn", "core/plan.js", "x + size.columnWidth >= left && x <= right", "true", "plan"
    ),
    PageMutant(
        "a browser offers a token that outlives its own",
        "core/acts.js",
        "Math.floor(leftMs / HOUR_MS)",
        "720",
        "acts",
    ),
    PageMutant(
        "an undone setting keeps its value",
        "core/acts.js",
        'setting.source === "store" ? setting.value : "default"',
        "value(values)",
        "acts",
    ),
    PageMutant(
        "a lock that was several is given back",
        "core/acts.js",
        "(others().length ? undefined : giveBack(lock))",
        "giveBack(lock)",
        "acts",
    ),
    PageMutant(
        "an act on many speaks of the first one",
        "core/acts.js",
        "some.every(({act}) => act.words === first.act.words)",
        "true",
        "acts",
    ),
    PageMutant(
        "what a remedy changes is undone to no limit", "core/acts.js", ", undo: undefined}]", "}]", "acts"
    ),
    PageMutant(
        "an agent in its terminal gets an answer",
        "core/acts.js",
        'if (question.kind === "attention")',
        "if (false)",
        "acts",
    ),
    PageMutant(
        "an option loses its spaces",
        "core/acts.js",
        "chosen ?? line(values.answer)",
        "line(chosen ?? values.answer)",
        "acts",
    ),
    PageMutant(
        "a number that may be 0 is shown as 0",
        "core/settings.js",
        "value === 0 && low === 0",
        "false",
        "settings",
    ),
    PageMutant("an earlier merge explains a branch", "core/why.js", "findLast(", "find(", "why"),
    PageMutant(
        "a late answer is shown for another question",
        "core/asked.js",
        "return found.key === newKey ? found : {key: newKey, value: null, error: null};",
        "return found;",
        "why",
    ),
    PageMutant(
        "a gap in the log goes unnoticed",
        "core/feed.js",
        "this.everyEntry && entry.offset !== this.offset + 1",
        "false",
        "feed",
    ),
    PageMutant("an entry counts twice", "core/feed.js", "entry.offset <= this.offset", "false", "feed"),
    PageMutant(
        "a silent socket is trusted for ever",
        "core/feed.js",
        "now - this.heardMs > SILENT_MS || ",
        "",
        "feed",
    ),
    PageMutant(
        "nobody asks after a sleep", "core/feed.js", "} else if (slept) {", "} else if (false) {", "feed"
    ),
    PageMutant(
        "a late snapshot replaces a newer one",
        "core/feed.js",
        "      if (run !== this.run) return;\n      this.loading = null;\n      if (!",
        "      this.loading = null;\n      if (!",
        "feed",
    ),
    PageMutant(
        "a refused reader knocks again and again",
        "core/feed.js",
        'if (error.status === 401) this.tell("denied", error);\n      else ',
        "",
        "feed",
    ),
    PageMutant("all pages return at once", "core/feed.js", "* (0.5 + random / 2)", "", "feed"),
    PageMutant(
        "a message that cannot be read is passed over",
        "core/feed.js",
        "} catch (error) {\n      this.again(error);",
        "} catch {",
        "feed",
    ),
    PageMutant(
        "a page that is sent back hurries",
        "core/feed.js",
        "if (soon) this.later(error);\n    else ",
        "",
        "feed",
    ),
    PageMutant("a load may take for ever", "core/feed.js", "now - this.loadingMs > LOAD_MS", "false", "feed"),
    PageMutant("a load that was given up goes on", "core/feed.js", "this.loading?.abort();", "", "feed"),
    PageMutant(
        "a clock that went back hides a dead connection",
        "core/feed.js",
        "now < this.tickedMs",
        "false",
        "feed",
    ),
    PageMutant(
        "any answer is a snapshot", "core/feed.js", "!Number.isInteger(snapshot?.offset)", "false", "feed"
    ),
    PageMutant(
        "an entry that failed counts",
        "core/feed.js",
        "    this.on.entry(entry);\n    this.offset = entry.offset;",
        "    this.offset = entry.offset;\n    try { this.on.entry(entry); } catch { return; }",
        "feed",
    ),
    PageMutant("a resync is ignored", "core/feed.js", 'message.type === "resync"', "false", "feed"),
    PageMutant(
        "set begins records",
        "core/state.js",
        "  set: (state, operation, event, rules) => change(state, operation, event, rules, undefined)",
        "  set: (state, operation, event, rules) => change(state, operation, event, rules, {})",
        "state",
    ),
    PageMutant(
        "an empty list is a value",
        "core/state.js",
        "Object.keys(value).length === 0",
        "false",
        "state",
    ),
    PageMutant(
        "names of the prototype are rules",
        "core/state.js",
        "Object.hasOwn(record, name) ? record[name] : undefined",
        "record[name]",
        "state",
    ),
    PageMutant(
        "a record is changed in place",
        "core/state.js",
        "function added(state, operation, event, record) {\n  const made = {...record};",
        "function added(state, operation, event, record) {\n  const made = record;",
        "state",
    ),
    PageMutant("a list grows without end", "core/state.js", "list.length > operation.most", "false", "state"),
    PageMutant("priority does not count", "core/derive.js", "- 60_000 * (wait.priority ?? 0)", "", "derive"),
    PageMutant(
        "a folder covers its neighbours",
        "core/derive.js",
        "startsWith(`${short}/`)",
        "startsWith(short)",
        "derive",
    ),
    PageMutant(
        "a glob covers nothing",
        "core/derive.js",
        "if (GLOB.test(one) || GLOB.test(other))",
        "if (false)",
        "derive",
    ),
    PageMutant(
        "a failed dependency looks like one to wait for",
        "core/derive.js",
        "if (BROKEN.has(found) || stuck.has(key)) broken.push(id);\n    else if",
        "if",
        "derive",
    ),
    PageMutant("only a broken task blocks", "core/derive.js", " || stuck.has(key)", "", "derive"),
    PageMutant(
        "a split task waits for what it did",
        "core/derive.js",
        "task.parts ? Array",
        "false ? Array",
        "derive",
    ),
    PageMutant("a name has folders", "core/derive.js", '!name.startsWith("file:") || name', "name", "derive"),
    PageMutant(
        "a glob is a path in the queue",
        "core/derive.js",
        'name.startsWith("file:") && GLOB.test(name)',
        "false",
        "derive",
    ),
    PageMutant(
        "derived data is never computed again",
        "core/derive.js",
        "seen.some((value, place) => value !== key[place])",
        "false",
        "derive",
    ),
    PageMutant(
        "an override turns text around",
        "core/format.js",
        "\\u202a-\\u202e\\u2066-\\u2069\\u200b",
        "\\u2066-\\u2069\\u200b",
        "core",
    ),
    PageMutant("a quote ends a quoted word", "core/format.js", """.replaceAll("'", "'\\\\''")""", "", "core"),
    PageMutant(
        "a path is not escaped",
        "core/api.js",
        "encodeURIComponent(names[number - 1])",
        "names[number - 1]",
        "core",
    ),
    PageMutant(
        "own acts give notices",
        "core/notices.js",
        " || (who.token && event.origin?.token === who.token)",
        "",
        "notices",
    ),
    PageMutant(
        "a person who closes a terminal has crashed",
        "core/notices.js",
        "?.person === undefined",
        "",
        "notices",
    ),
    PageMutant(
        "an unknown condition of a newer hub holds",
        "core/notices.js",
        "ONLY[only]?.(event, {state, who})",
        "(ONLY[only] ?? (() => true))(event, {state, who})",
        "notices",
    ),
    PageMutant(
        "a message without recipients is for everybody",
        "core/notices.js",
        "Boolean(who.session) && ",
        "",
        "notices",
    ),
    PageMutant(
        "several things lead to the last of them",
        "core/notices.js",
        "one.path === other.path ? one.path : other.above",
        "other.path",
        "notices",
    ),
    PageMutant(
        "the same thing counts twice",
        "core/notices.js",
        "same ? one.count : one.count + other.count",
        "one.count + other.count",
        "notices",
    ),
    PageMutant("an answer ends several questions", "core/notices.js", "many === 1 && ", "", "notices"),
    PageMutant(
        "an answer ends every question",
        "core/notices.js",
        "event[name] === other[name]",
        "true",
        "notices",
    ),
    PageMutant(
        "levels are mixed", "core/notices.js", "${notice.level} ${notice.kind}", "${notice.kind}", "notices"
    ),
    PageMutant(
        "each notice begins a moment", "core/notices.js", "if (!found.size) wait(", "wait(", "notices"
    ),
    PageMutant(
        "quiet hours end at midnight",
        "core/notices.js",
        "clock >= begin || clock < end",
        "clock >= begin && clock < end",
        "notices",
    ),
    PageMutant(
        "quiet hours are those of Greenwich",
        "core/notices.js",
        "at.getHours()",
        "at.getUTCHours()",
        "notices",
    ),
    PageMutant("a notification comes while somebody looks", "core/notices.js", " || looking", "", "notices"),
    PageMutant("a notification comes unasked", "core/notices.js", " || !settings.on", "", "notices"),
    PageMutant("a write has no key", "core/api.js", 'if (key) headers["Idempotency-Key"] = key;', "", "core"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the modules and their tests, at the same distance from each other."""
    folder = tmp_path_factory.mktemp("page")
    for part in (STATIC, STATIC.with_name("static_report"), TESTS):
        shutil.copytree(ROOT / part, folder / part)
    return folder


def run(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    command = [NODE, str(folder / TESTS / f"{test}.test.mjs")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_of_the_page_is_noticed(copy: Path, mutant: PageMutant) -> None:
    file = copy / STATIC / mutant.module
    whole = file.read_text()
    assert whole.count(mutant.old) == 1, f"{mutant.module} has {mutant.old!r} {whole.count(mutant.old)} times"
    file.write_text(whole.replace(mutant.old, mutant.new))
    try:
        done = run(copy, mutant.test)
    finally:
        file.write_text(whole)
    assert done.returncode != 0, "no test noticed it"
    assert "SyntaxError" not in done.stdout + done.stderr


@pytest.mark.parametrize("test", sorted({mutant.test for mutant in MUTANTS}))
def test_the_copy_itself_passes(copy: Path, test: str) -> None:
    done = run(copy, test)
    assert done.returncode == 0, done.stdout
