"""Print a long listing page by page: the first page comes at once, and memory stays small."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from coord.core.errors import CoordError
from coord.transports import exit_codes
from coord.transports.cli import output


class Page(NamedTuple):
    """A part of a listing; `after` asks for the next part, and is empty on the last one."""

    items: Sequence[Any]
    after: str = ""


class Listing(NamedTuple):
    """A listing by its name in JSON, the noun to count, its table, and a remark behind the count."""

    name: str
    noun: str
    columns: tuple[str, ...]
    rows: Callable[[Sequence[Any]], list[dict[str, Any]]]
    remark: str = ""


def show_pages(listing: Listing, pages: Iterator[Page]) -> output.Answer | int:
    """Return the answer if it is one page; otherwise print page after page and return the exit code."""
    first = next(pages)
    second = next(pages, None) if first.after else None
    if second is not None:
        return _print(listing, chain((first, second), pages))
    items, after = first
    fields = {listing.name: output.fields_of(items), **_next(after)}
    return output.Answer(fields, _summary(listing, len(items), after), listing.rows(items), listing.columns)


def _print(listing: Listing, pages: Iterator[Page]) -> int:
    """Print pages. JSON stays one document: the error of a later page stands behind the items."""
    as_json = output.form() == "json"
    opening = f'{{"{listing.name}":[' if as_json else ""
    shown, after, failure = 0, "", None
    try:
        for page in pages:
            after = page.after
            if not page.items:
                continue
            unread = output.show_part(opening + _text(listing, page.items, as_json=as_json))
            if unread is not None:
                return unread
            shown += len(page.items)
            opening = "," if as_json else ""
    except CoordError as error:
        failure = exit_codes.failure(error)
    answer = output.failed(failure) if failure else output.Answer(line=_summary(listing, shown, after))
    output.say(answer.line)
    if as_json:
        rest = {"ok": failure is None, **_next(after), **({"error": failure.as_error()} if failure else {})}
        output.show_part(f"{opening if not shown else ''}],{output.json_of(rest)[1:]}\n")
    return answer.exit_code


def _text(listing: Listing, items: Sequence[Any], *, as_json: bool) -> str:
    if as_json:
        return output.json_of(output.fields_of(items))[1:-1]
    return output.table_of(listing.rows(items), listing.columns)


def _next(after: str) -> dict[str, str]:
    return {"next": after} if after else {}


def _summary(listing: Listing, shown: int, after: str) -> str:
    more = f"; the next ones: --after {after}" if after else ""
    return f"{output.count(shown, listing.noun)}{listing.remark}{more}"
