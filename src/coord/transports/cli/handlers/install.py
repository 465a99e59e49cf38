"""`coord install`: prepare a store, and say which rights that takes."""

import os
from types import SimpleNamespace

from coord.core.errors import Invalid
from coord.sdk.admin.install import Prepared, prepare, rights
from coord.transports.cli.output import Answer, fields_of

COLUMNS = ("url", "tenant", "made", "store_id", "epoch")


def install(options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Prepare a store; again without harm."""
    if given.url and options.url:
        raise Invalid("the url is given twice", hint="leave out --url")
    url = given.url or options.url
    if given.grants:
        return _rights(rights(os.getcwd(), os.environ, url=url, tenant=options.tenant))
    prepared = prepare(os.getcwd(), os.environ, url=url, tenant=options.tenant, dry_run=given.dry_run)
    fields = fields_of(prepared)
    return Answer(fields, _line(prepared, dry_run=given.dry_run), [fields], COLUMNS)


def _rights(statements: list[str]) -> Answer:
    line = "Run these as they say" if statements else "This store takes no rights but those of its files"
    return Answer({"grants": statements}, line, drawn=lambda: "".join(f"{each}\n" for each in statements))


def _line(prepared: Prepared, *, dry_run: bool) -> str:
    whose = f"The store of tenant {prepared.tenant}" if prepared.tenant else "The store"
    if dry_run:
        return f"{whose}, {prepared.url}, {'would be made' if prepared.made else 'is there already'}"
    return f"{whose}, {prepared.url}, {'is made' if prepared.made else 'was there already, and is renewed'}"
