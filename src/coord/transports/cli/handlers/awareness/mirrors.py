"""Switch mirrors on and off; import the tasks of a contract folder."""

from coord.core.messages.quoting import quote_names
from coord.sdk.client.client import Client
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of

COLUMNS = ("name", "on", "files", "folders", "changed")
NAMED_MAX = 5


class OnArgs(Args, frozen=True):
    """The arguments of `coord mirror on`."""

    name: str
    folder: str
    verbose: bool


def mirror_on(client: Client, args: OnArgs) -> Answer:
    """Switch a mirror on, and write it."""
    from coord.followers.mirrors import switching

    info = switching.mirror_on(client, args.name, client.project, folder=args.folder, verbose=args.verbose)
    return Answer(
        fields_of(info), f"{args.name} is on: {count(info.files, 'file')} in {', '.join(info.folders)}"
    )


class OffArgs(Args, frozen=True):
    """The arguments of `coord mirror off`."""

    name: str


def mirror_off(client: Client, args: OffArgs) -> Answer:
    """Switch a mirror off, and remove its files."""
    from coord.followers.mirrors import switching

    before = switching.mirror_off(client.location, args.name, client.log.now())
    return Answer(
        {"name": args.name, "on": False, "removed": before.files},
        f"{args.name} is off: removed {count(before.files, 'file')}" if before.on else f"{args.name} was off",
    )


def mirror_list(client: Client, _args: Args) -> Answer:
    """List all mirrors."""
    from coord.followers.mirrors.switching import list_mirrors

    found = fields_of(list_mirrors(client.location))
    on = [each["name"] for each in found if each["on"]]
    return Answer({"mirrors": found}, f"on: {', '.join(on)}" if on else "no mirror is on", found, COLUMNS)


class ImportArgs(Args, frozen=True):
    """The arguments of `coord import contract`."""

    folder: str
    dry_run: bool


def import_contract(client: Client, args: ImportArgs) -> Answer:
    """Add the tasks of a contract folder."""
    from coord.followers.mirrors.import_contract import import_tasks

    done = import_tasks(client, args.folder, dry_run=args.dry_run)
    verb = "Would add" if args.dry_run else "Added"
    line = f"{verb} {count(len(done.added), 'task')}"
    line += f": {quote_names(done.added, NAMED_MAX)}" if done.added else ""
    line += f"; {count(len(done.known), 'task')} known already" if done.known else ""
    return Answer(fields_of(done), line)
