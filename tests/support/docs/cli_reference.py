"""Writes the reference of the `coord` command: run `python -m tests.support.docs.cli_reference`."""

from collections.abc import Iterable, Iterator

from coord.transports import exit_codes
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import GROUPS, commands_of
from coord.transports.cli.help import flag_shape
from coord.transports.cli.spec import CommandSpec, Flag
from tests.support.docs.pages import ROOT

PAGE = "docs/reference/cli.md"
TASKS_PAGE = "docs/reference/cli-tasks.md"
MAINTENANCE_PAGE = "docs/reference/cli-maintenance.md"
GIT_PAGE = "docs/reference/cli-git.md"
MESSAGES_PAGE = "docs/reference/cli-messages.md"
OF_TASKS = ("tasks", "plans", "agents")
OF_MAINTENANCE = ("records", "mirrors", "maintenance", "tokens", "setup")
OF_GIT = ("git",)
OF_MESSAGES = ("messages", "questions")
"""The groups that are not on the first page."""

INTRODUCTION = """\
# The `coord` command

<!-- made by: python -m tests.support.docs.cli_reference -->

A command prints its answer to standard output and one line for people to standard error. In a pipe
the answer is one JSON object, `ok` first; on a terminal it is a table. `-o table`, `-o json` or `-o
wide` chooses, and so does `COORD_OUTPUT` in the environment. A table fits the terminal: if the
columns do not fit, each row becomes a block. `wide` cuts nothing and leaves nothing out. Colours
appear only on a terminal, and not if `NO_COLOR` is set or `TERM` is `dumb`.

While a command waits, a terminal shows one line on standard error that is rewritten in place: for
what it waits, behind whom, the position and the time. A message that arrives while `lock`, `guard`,
`task next`, `recv`, `merge` or `top` runs, and a lock that `guard` or `lock --hold` loses, can ring
the terminal's bell or show a notice on the desktop (`notify-send`). Both are off by default.
`COORD_NOTIFY=bell,desktop` turns them on, and so does `[notify]` with `bell = true` and `desktop =
true` in `~/.config/coord/coord.toml`.

If `ok` is false, `error` has a `code`, a `message` and a `hint`. In JSON, times are RFC 3339 in UTC
(`expires_at`), and durations are seconds (`expires_in_s`).

You type a duration in seconds or with units: `90`, `90s`, `5m`, `1h`, `7d`, `1h30m`; at most one
year. `--` ends the flags. Unknown flags and commands are errors.

You type a resource as `file:…`, `name:…` or `project:…`. Without such a prefix, a word that contains
`/`, `.` or a glob character (`*?[]{}\\`) is a file. Any other word, such as `LICENSE` or `main-push`,
means both the file and the name of that spelling: one commit locks both, and `unlock`, `renew` and
`handoff` use those that the session has. Write `./LICENSE` or `name:LICENSE` for one of them. Outside
of a worktree, and for names that all repositories of the machine share (`claude-config`), it is only
the name.

What a text covers does not depend on which files exist:

- A path covers everything below it, so it conflicts with every glob that could match something there.
  Hooks know that an edit writes a single file, so they lock no more than that.
- A glob covers what it matches, and also the path that is spelled exactly so. `app/[id]/*.tsx` covers
  `app/i/page.tsx` and `app/[id]/page.tsx`. With `--literal` the words are paths, without wildcards.
- Case and Unicode composition make no difference.

Only links are looked up on the disk. A folder or glob that contains symlinks or hard links also locks
what they lead to in the repository, and the reply names it. The reply also says what it cannot cover:
links to the outside, more than 32 targets, and whatever lies behind the first 20,000 files.

More pages: [tasks, plans and agents](cli-tasks.md), [records, maintenance, tokens
and setup](cli-maintenance.md), [git](cli-git.md), [messages and
questions](cli-messages.md).
"""
TASKS_INTRODUCTION = """\
# The `coord` command: tasks, plans and agents

<!-- made by: python -m tests.support.docs.cli_reference -->

Replies, exit codes and global flags are described [on the first page](cli.md). You type a list with
commas: `--depends-on A-001-schema,A-002-login`. Every claim has a generation, and you pass it to
renew, submit, fail or release. A worker that has lost its claim is rejected, because its generation
is too old.
"""
MAINTENANCE_INTRODUCTION = """\
# The `coord` command: records, maintenance, tokens and setup

<!-- made by: python -m tests.support.docs.cli_reference -->

Replies, exit codes and global flags are described [on the first page](cli.md).
"""
GIT_INTRODUCTION = """\
# The `coord` command: git

<!-- made by: python -m tests.support.docs.cli_reference -->

Replies, exit codes and global flags are described [on the first page](cli.md). These commands never
destroy work: before coord removes anything from a worktree, it saves it in a commit under
`refs/coord/salvage/`. You get it back with `coord salvage restore` or with git itself.
"""
MESSAGES_INTRODUCTION = """\
# The `coord` command: messages and questions

<!-- made by: python -m tests.support.docs.cli_reference -->

Replies, exit codes and global flags are described [on the first page](cli.md). Hooks show messages
to coding agents, and a terminal shows a message whole, however narrow it is. Emergencies come
first; the others come by priority, where a step is a head start of one minute. A message that
nobody acknowledges is shown again after a minute.
"""


def pages() -> dict[str, str]:
    """Return the text of each page."""
    others = [group for group in GROUPS if group not in (*OF_TASKS, *OF_MAINTENANCE, *OF_GIT, *OF_MESSAGES)]
    texts = {
        PAGE: [*_beginning(), *_groups(others)],
        TASKS_PAGE: [TASKS_INTRODUCTION.rstrip(), *_groups(OF_TASKS)],
        MAINTENANCE_PAGE: [MAINTENANCE_INTRODUCTION.rstrip(), *_groups(OF_MAINTENANCE)],
        GIT_PAGE: [GIT_INTRODUCTION.rstrip(), *_groups(OF_GIT)],
        MESSAGES_PAGE: [MESSAGES_INTRODUCTION.rstrip(), *_groups(OF_MESSAGES)],
    }
    return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}


def _beginning() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Exit codes\n"
    yield from _table(
        ("code", "meaning"), [(str(code), means) for code, means in exit_codes.EXIT_MEANINGS.items()]
    )
    yield "\n## Global flags\n"
    yield from _flags(GLOBAL_FLAGS)


def _groups(groups: Iterable[str]) -> Iterator[str]:
    for group in groups:
        yield f"\n## {GROUPS[group]}"
        for command in commands_of(group):
            yield from _command(command)


def _command(command: CommandSpec) -> Iterator[str]:
    alias = f" (also `{command.alias}`)" if command.alias else ""
    details = f" {command.details}" if command.details else ""
    yield f"\n### `{command.name}`\n"
    yield f"{command.summary[0].upper()}{command.summary[1:]}{alias}.{details}\n"
    yield "```sh"
    yield f"{command.usage}"
    yield "```\n"
    if command.arguments:
        yield from _table(
            ("argument", "meaning"), [(f"`{each.spelled}`", each.summary) for each in command.arguments]
        )
        yield ""
    if command.flags:
        yield from _flags(command.flags)
        yield ""
    yield "```sh"
    yield from command.examples
    yield "```"


def _flags(flags: tuple[Flag, ...]) -> Iterator[str]:
    yield from _table(("flag", "meaning"), [(f"`{flag_shape(flag)}`", flag.summary) for flag in flags])


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> Iterator[str]:
    for left, right in (head, ("---", "---"), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (left, right)) + " |"


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")
