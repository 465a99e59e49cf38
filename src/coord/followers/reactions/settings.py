"""The reactions that a person has configured, and what is wrong with the others.

They stand in the user's own `coord.toml`, and in that of the repository's main worktree, which counts only
after a person has confirmed it (`coord trust`). One bad table is reported and left out; the others count.
"""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from coord.core.errors import CoordError, Invalid
from coord.core.ids import short_repr
from coord.followers.reactions.events import Pattern, check_arguments, read_pattern
from coord.followers.reactions.webhook import Webhook, check_url
from coord.host.config import read_configuration, user_configuration_file
from coord.host.consent import read_consented, state_folder
from coord.host.repository import Repository, repository_at
from coord.host.store_location import StoreLocation

TABLE = "on"
BUILT_IN = "reactions"
REACTIONS_MAX = 100
TIMEOUT_S, TIMEOUT_S_MAX = 600.0, 6 * 3600.0
ATTEMPTS_MAX = 20
ATTEMPTS_WEBHOOK, ATTEMPTS_OTHER, ATTEMPTS_RUN = 8, 3, 1
WORKTREE = "{worktree}"
"""The folder of a command that runs in the worktree of the session that the event is about."""
LEAD = "role:lead"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a secret is: an environment variable of the process that runs reactions, or a private file."""

    env: str = ""
    file: str = ""


class MessageTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to send."""

    to: str
    subject: str
    body: str = ""


class TaskTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task to add; its texts may have placeholders."""

    id: str = "reaction-{offset}"
    project: str = ""
    description: str = ""
    type: str = ""
    track: str = ""
    role: str = ""
    priority: int = 0
    needs: list[str] = []
    depends_on: list[str] = []


class OnTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[on]]` table."""

    event: str | list[str]
    name: str = ""
    where: dict[str, Any] = {}
    attempts: int = 0
    timeout_s: float = 0
    run: list[str] | None = None
    cwd: str = ""
    env: list[str] = []
    message: MessageTable | None = None
    task: TaskTable | None = None
    webhook: str | Secret | None = None
    secret: Secret | None = None
    format: Literal["json", "slack", "discord"] = "json"
    text: str = ""
    allow_private: bool = False


class Command(NamedTuple):
    """A command to run."""

    arguments: tuple[str, ...]
    cwd: str
    environ: tuple[str, ...] = ()
    """The names of further variables that it gets."""


class Reaction(NamedTuple):
    """What happens when an event happens."""

    name: str
    pattern: Pattern
    action: Command | MessageTable | TaskTable | Webhook
    attempts: int
    timeout_s: float
    source: str
    """The file that configures it."""
    confirmed_ms: int
    """Since when it counts."""
    may_miss: bool = False
    """Whether it is no failure if nobody is there to get its message."""

    @property
    def kind(self) -> str:
        """The name of its action."""
        kinds = {Command: "run", MessageTable: "message", TaskTable: "task", Webhook: "webhook"}
        return kinds[type(self.action)]


class Settings(NamedTuple):
    """The reactions of a store, and the problems of tables that do not count."""

    reactions: tuple[Reaction, ...] = ()
    problems: tuple[str, ...] = ()


class _Draft(NamedTuple):
    """A configuration file that counts."""

    file: str
    tables: Mapping[str, Any]
    confirmed_ms: int
    root: str


_read_before: dict[tuple[str, str], tuple[object, Settings]] = {}


class Files(NamedTuple):
    """The configuration files of a store: whose they are, and what shows that one has changed."""

    repository: Repository | None
    key: tuple[str, str]
    signature: list[tuple[int, int, int, int]]


def configuration_files(location: StoreLocation, environ: Mapping[str, str]) -> Files:
    """Return the files that count for a store, without reading them."""
    repository = main_worktree(location.repository)
    user = user_configuration_file(environ)
    key = (user, "" if repository is None else repository.root or "")
    files = [user] if repository is None else [user, f"{repository.root}/coord.toml"]
    signature = [*map(_signature, files)]
    if repository is not None:
        signature.append(_signature(f"{state_folder(environ)}/trusted"))
    return Files(repository, key, signature)


def read_settings(location: StoreLocation, environ: Mapping[str, str]) -> Settings:
    """Return the reactions of a store; files that have not changed are not read again."""
    files = configuration_files(location, environ)
    before = _read_before.get(files.key)
    if before is not None and before[0] == files.signature:
        return before[1]
    found = _read(files.repository, environ)
    _read_before[files.key] = (files.signature, found)
    return found


def main_worktree(repository: Repository | None) -> Repository | None:
    """Return a repository as its main worktree sees it: all processes then read the same file."""
    if repository is None:
        return None
    if repository.commondir.endswith("/.git"):
        found = repository_at(os.path.dirname(repository.commondir))
        if found is not None and found.commondir == repository.commondir:
            return found
    return repository if repository.root is not None else None


def _signature(path: str) -> tuple[int, int, int, int]:
    """Return what shows that a file was changed; whoever sets its time back changes the last number."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _read(repository: Repository | None, environ: Mapping[str, str]) -> Settings:
    reactions: dict[str, Reaction] = {}
    problems: list[str] = []
    for draft in _drafts(repository, environ, problems):
        for where, table in _tables(draft, problems):
            try:
                reaction = _reaction(table, draft)
                if reaction.name in reactions:
                    raise Invalid(
                        f"another reaction is called {reaction.name}", hint="give each its own name"
                    )
                if len(reactions) >= REACTIONS_MAX:
                    raise Invalid(f"there are more than {REACTIONS_MAX} reactions", hint="remove some")
                reactions[reaction.name] = reaction
            except CoordError as error:
                problems.append(f"{where} in {draft.file}: {error.message} ({error.hint})")
    return Settings(tuple(reactions.values()), tuple(problems))


def _drafts(
    repository: Repository | None, environ: Mapping[str, str], problems: list[str]
) -> Iterator[_Draft]:
    """Yield the files that count: the user's first, so that no repository can take a name from it."""
    file = user_configuration_file(environ)
    root = environ.get("HOME", "/") if repository is None else repository.root or "/"
    try:
        tables = read_configuration(file)
        if TABLE in tables or BUILT_IN in tables:
            _check_private(file)
            yield _Draft(file, tables, int(os.stat(file).st_mtime * 1000), root)
    except (CoordError, OSError) as error:
        problems.append(f"{getattr(error, 'message', error)}")
    if repository is None:
        return
    found = read_consented(repository, environ)
    if not found.confirmed and (found.problem or TABLE in found.proposed or BUILT_IN in found.proposed):
        problems.append(found.notice)
    elif found.tables and found.consent:
        confirmed_ms = int(os.stat(found.consent).st_mtime * 1000)
        yield _Draft(found.file, found.tables, confirmed_ms, repository.root or "/")


def _check_private(file: str) -> None:
    found = os.stat(file)
    if found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o022:
        raise Invalid(f"{file} can be changed by others, so its reactions do not count (chmod go-w)")


def _tables(draft: _Draft, problems: list[str]) -> Iterator[tuple[str, Any]]:
    tables = draft.tables.get(TABLE, [])
    if isinstance(tables, list):
        for number, table in enumerate(tables, 1):
            yield f"[[on]] {number}", table
    else:
        problems.append(f"[on] in {draft.file}: it is not a list of tables (write [[on]])")
    built_in = draft.tables.get(BUILT_IN, {})
    if not isinstance(built_in, dict) or set(built_in) - {"test", "summary"}:
        problems.append(f"[reactions] in {draft.file}: it has only test and summary")
        return
    if "test" in built_in:
        table = {"name": "test", "event": "git.committed", "run": built_in["test"], "cwd": WORKTREE}
        yield "[reactions] test", table
    if built_in.get("summary", False) is not False:
        yield "[reactions] summary", _summary(built_in["summary"])


def _summary(given: object) -> object:
    """Return the table of the summaries for the lead; `true` means the sessions with the role lead."""
    to = LEAD if given is True else given
    subject = "{agent} completed {task} of {project}"
    return {"name": "summary", "event": "task.completed", "message": {"to": to, "subject": subject}}


def _reaction(given: object, draft: _Draft) -> Reaction:
    table = _converted(given)
    name = table.name or _made_name(given, table)
    if not _NAME.fullmatch(name):
        raise Invalid(f"{short_repr(name)} is no name", hint="letters, digits, _ . -, at most 60")
    actions = [each for each in (table.run, table.message, table.task, table.webhook) if each is not None]
    if len(actions) != 1:
        raise Invalid(f"it has {len(actions)} actions", hint="one of run, message, task, webhook")
    if not 0 <= table.attempts <= ATTEMPTS_MAX:
        raise Invalid(f"attempts is {table.attempts}", hint=f"from 1 to {ATTEMPTS_MAX}")
    if not 0 <= table.timeout_s <= TIMEOUT_S_MAX:
        raise Invalid(f"timeout_s is {table.timeout_s}", hint=f"seconds, at most {TIMEOUT_S_MAX:.0f}")
    action, attempts = _action(table, draft)
    return Reaction(
        name,
        read_pattern(table.event, table.where),
        action,
        table.attempts or attempts,
        table.timeout_s or TIMEOUT_S,
        draft.file,
        draft.confirmed_ms,
        may_miss=name == "summary",
    )


def _converted(given: object) -> OnTable:
    try:
        return msgspec.convert(given, OnTable)
    except msgspec.ValidationError as error:
        raise Invalid(str(error), hint="docs/reference/reactions.md describes the fields") from error


def _made_name(given: object, table: OnTable) -> str:
    """Return a name that stays the same while the table does."""
    event = table.event if isinstance(table.event, str) else "events"
    digest = sha256(msgspec.json.encode(given, order="sorted")).hexdigest()[:8]
    return f"{re.sub(r'[^a-z0-9]+', '-', event.lower()).strip('-')[:40] or 'all'}-{digest}"


def _action(table: OnTable, draft: _Draft) -> tuple[Command | MessageTable | TaskTable | Webhook, int]:
    """Return what a reaction does, and how often it is tried unless the table says so."""
    if table.run is not None:
        check_arguments(table.run)
        if not table.run:
            raise Invalid("run is empty", hint='run = ["npm", "test"]')
        for name in table.env:
            if not _VARIABLE.fullmatch(name):
                raise Invalid(f"env has {short_repr(name)}", hint="names of environment variables")
        cwd = table.cwd if table.cwd == WORKTREE else os.path.join(draft.root, table.cwd)
        return Command(tuple(table.run), cwd, tuple(table.env)), ATTEMPTS_RUN
    if table.message is not None:
        return table.message, ATTEMPTS_OTHER
    if table.task is not None:
        return table.task, ATTEMPTS_OTHER
    assert table.webhook is not None, "one of the four"
    _check_secret(table.secret)
    if isinstance(table.webhook, str):
        check_url(table.webhook)
        where = Webhook(table.webhook)
    else:
        _check_secret(table.webhook)
        where = Webhook("", table.webhook.env, table.webhook.file)
    secret = table.secret or Secret()
    return (
        where._replace(
            secret_env=secret.env,
            secret_file=secret.file,
            format=table.format,
            text=table.text,
            allow_private=table.allow_private,
        ),
        ATTEMPTS_WEBHOOK,
    )


def _check_secret(secret: Secret | None) -> None:
    if secret is not None and bool(secret.env) == bool(secret.file):
        raise Invalid("a secret has one place", hint='{ env = "NAME" } or { file = "/path" }')
