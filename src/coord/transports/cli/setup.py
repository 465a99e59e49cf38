"""Commands that prepare: the store of a repository, completion in a shell."""

import os
from collections.abc import Iterable
from types import SimpleNamespace

from coord.transports.cli.connection import connected
from coord.transports.cli.output import Answer


def init(options: SimpleNamespace, given: SimpleNamespace) -> Answer:
    """Prepare and pin the store of this repository."""
    from coord.sdk.opening import initialise
    from coord.stores.url import shown

    place = initialise(os.getcwd(), os.environ, url=options.url, new_store=given.new_store)
    fields = {
        "url": shown(place.url),
        "store_id": place.store_id,
        "epoch": place.epoch,
        "repository_id": place.repository_id,
    }
    return Answer(fields, f"The store of this repository is {shown(place.url)}")


def completion(options: SimpleNamespace, given: SimpleNamespace) -> str:
    """Return the script for a shell, or the words that such a script asks for."""
    from coord.transports.cli.completion import SCRIPTS, candidates, quietly

    if given.shell in SCRIPTS:
        return SCRIPTS[given.shell]

    def ask(what: str) -> Iterable[str]:
        with connected(options) as client:
            if what == "tasks":
                return [task.task_id for task in client.task_list()]
            if what == "held":
                return [lock.resource for lock in client.locks()]
            return [peer.session_id for peer in client.peers()]

    return "".join(f"{word}\n" for word in candidates(given.word, quietly(ask)))
