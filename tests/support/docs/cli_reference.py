"""Makes the pages of the command from its table: run `python -m tests.support.docs.cli_reference`."""

from collections.abc import Iterable, Iterator

from coord.transports import exit_codes as render
from coord.transports.cli.commands.flags import GLOBAL_FLAGS
from coord.transports.cli.commands.registry import GROUPS, commands_of
from coord.transports.cli.help import flag_shape
from coord.transports.cli.spec import CommandSpec, Flag
from tests.support.docs.pages import ROOT

PAGE = "docs/reference/cli.md"
TASKS_PAGE = "docs/reference/cli-tasks.md"
MAINTENANCE_PAGE = "docs/reference/cli-maintenance.md"
GIT_PAGE = "docs/reference/cli-git.md"
OF_TASKS = ("tasks", "plans", "agents")
OF_MAINTENANCE = ("records", "maintenance", "setup")
OF_GIT = ("git",)
"""The groups that have a page of their own."""

INTRODUCTION = """\
# The `coord` command

<!-- made by: python -m tests.support.docs.cli_reference -->

A command answers with one JSON object on standard output, `ok` first, and with one line for people on
standard error. On a terminal a table takes the place of the JSON, unless `--json` is given. When `ok` is
false there is an `error` with `code`, `message` and `hint`. Moments are RFC 3339 in UTC (`expires_at`),
durations are seconds (`expires_in_s`).

Durations are typed as seconds or with units: `90`, `90s`, `5m`, `1h`, `7d`, `1h30m`; a year at most. A
resource is typed as `file:…`, `name:…` or `project:…`; without one of these, a word with `/`, `.`, a glob
character (`*?[]{}`), or that is an existing path, is a file, and any other word is a name. `--` ends the
flags. Unknown flags and commands are errors.

A path that is a regular file is locked alone: beside a held `**/*.py` others get `README.md`. Any other path
means all that is or will be below it too, so it meets every glob that could match something there.

A command waits up to 5 seconds for a server that cannot be reached, then it ends with 69. Set
`COORD_CONNECT_TIMEOUT` to other seconds; 0 tries once ([more](errors.md#opening-a-store)).

Tasks, plans and agents have [a page of their own](cli-tasks.md), as have
[records, maintenance and setup](cli-maintenance.md), and [git](cli-git.md).
"""
TASKS_INTRODUCTION = """\
# The `coord` command: tasks, plans and agents

<!-- made by: python -m tests.support.docs.cli_reference -->

Answers, exit codes and the flags of every command are as [for the others](cli.md). A list is typed with
commas: `--depends-on A-001-schema,A-002-login`. A claim has a generation, and whoever renews, submits,
fails or releases states it: a worker that lost its task meanwhile cannot land anything.
"""
MAINTENANCE_INTRODUCTION = """\
# The `coord` command: records, maintenance and setup

<!-- made by: python -m tests.support.docs.cli_reference -->

Answers, exit codes and the flags of every command are as [for the others](cli.md).
"""
GIT_INTRODUCTION = """\
# The `coord` command: git

<!-- made by: python -m tests.support.docs.cli_reference -->

Answers, exit codes and the flags of every command are as [for the others](cli.md). Nothing here ever removes
work: what has to leave a worktree is first put into a commit under `refs/coord/salvage/`, from where
`coord salvage restore` or git itself brings it back.
"""


def pages() -> dict[str, str]:
    """Return each page as the table makes it."""
    others = [group for group in GROUPS if group not in (*OF_TASKS, *OF_MAINTENANCE, *OF_GIT)]
    texts = {
        PAGE: [*_beginning(), *_groups(others)],
        TASKS_PAGE: [TASKS_INTRODUCTION.rstrip(), *_groups(OF_TASKS)],
        MAINTENANCE_PAGE: [MAINTENANCE_INTRODUCTION.rstrip(), *_groups(OF_MAINTENANCE)],
        GIT_PAGE: [GIT_INTRODUCTION.rstrip(), *_groups(OF_GIT)],
    }
    return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}


def _beginning() -> Iterator[str]:
    yield INTRODUCTION
    yield "## Exit codes\n"
    yield from _table(("code", "means"), [(str(code), means) for code, means in render.EXIT_MEANINGS.items()])
    yield "\n## Flags of every command\n"
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
        yield from _table(("word", "is"), [(f"`{each.spelled}`", each.summary) for each in command.arguments])
        yield ""
    if command.flags:
        yield from _flags(command.flags)
        yield ""
    yield "```sh"
    yield from command.examples
    yield "```"


def _flags(flags: tuple[Flag, ...]) -> Iterator[str]:
    yield from _table(("flag", "does"), [(f"`{flag_shape(flag)}`", flag.summary) for flag in flags])


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> Iterator[str]:
    for left, right in (head, ("---", "---"), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (left, right)) + " |"


if __name__ == "__main__":
    for name, text in pages().items():
        (ROOT / name).write_text(text, encoding="utf-8")
