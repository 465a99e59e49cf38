"""The tokens that a hub has looked up lately, and the addresses that sent wrong ones.

A token is looked up by its hash in the log of the tenant that it names. What was found counts for one second.
The hub forgets it at once if it revokes a token itself. After several wrong tokens an address has to wait.
"""

import asyncio
import math
import time
from collections import OrderedDict
from typing import NamedTuple

from coord.core.errors import CoordError, Invalid, NotFound, Unsupported
from coord.core.keys import sha256
from coord.core.tokens.commands import FindToken, MarkTokenUsed, TokenInfo
from coord.core.tokens.text import TEXT_CHARS_MAX, ParsedToken, parse_token
from coord.transports.hub.problems import HttpError
from coord.transports.hub.stores import HubStores, OpenStore

REUSED_S = 1.0
KNOWN_MAX = 10_000
USED_EVERY_S = 3600.0
GUESSES, GUESS_S = 20, 60.0
"""How many wrong tokens an address may send in this time."""
LOOKUPS_MAX = 8
EMPTY_MAX, EMPTY_S = 100, 3600.0
"""How many tenants without an entry wrong tokens may open in this time."""


class KnownToken(NamedTuple):
    """A token that was looked up, and when."""

    info: TokenInfo
    store: OpenStore
    parsed: ParsedToken
    at_s: float


class Tokens:
    """Looks tokens up, and counts wrong ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownToken] = OrderedDict()
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()
        self._marked: dict[str, float] = {}
        self._empty: list[float] = []
        self._looking = asyncio.Semaphore(LOOKUPS_MAX)

    def forget(self) -> None:
        """Look every token up again: one was revoked or replaced."""
        for key, known in self._known.items():
            self._known[key] = known._replace(at_s=-math.inf)

    def check_guesses(self, address: str) -> None:
        """Refuse an address that has sent many wrong tokens."""
        since = time.monotonic() - GUESS_S
        recent = [each for each in self._wrong.get(address, ()) if each > since]
        if len(recent) >= GUESSES:
            wait = str(max(1, round(recent[0] - since)))
            raise HttpError(
                429,
                "too_many_guesses",
                "too many wrong tokens from this address",
                hint=f"wait {wait} s",
                headers={"Retry-After": wait},
            )

    def count_guess(self, address: str) -> None:
        """Count a wrong token."""
        times = self._wrong.setdefault(address, [])
        times.append(time.monotonic())
        del times[:-GUESSES]
        self._wrong.move_to_end(address)
        while len(self._wrong) > KNOWN_MAX:
            self._wrong.popitem(last=False)

    async def identify(self, stores: HubStores, text: str, address: str) -> KnownToken | None:
        """Return a valid token; None, and one guess more for this address, for any other text.

        A token that was valid before is no guess: nobody locks others out by guessing from their address.
        """
        known = self._known_before(text)
        if known is not None:
            if time.monotonic() - known.at_s < REUSED_S and known.store.is_current:
                return None if known.info.is_expired(round(time.time() * 1000)) else known
            return await self._look_up(stores, known.parsed)
        async with self._looking:  # so that few guesses are under way when the limit is reached
            self.check_guesses(address)
            found = await self.find(stores, text)
            if found is None:
                self.count_guess(address)
            return found

    async def find(self, stores: HubStores, text: str) -> KnownToken | None:
        """Look a token up, known or not; None for any text that is no valid one."""
        try:
            parsed = parse_token(text)
        except Invalid:
            return None
        return await self._look_up(stores, parsed)

    def _known_before(self, text: str) -> KnownToken | None:
        """Return a token that was valid before. The same hash is the same text, which was parsed then."""
        return self._known.get(sha256(text)) if len(text) <= TEXT_CHARS_MAX else None

    async def _look_up(self, stores: HubStores, parsed: ParsedToken) -> KnownToken | None:
        """Return a token that its store knows."""
        try:
            store = await stores.of_store_id(parsed.store_id)
            if store is None:
                return None
            is_open = store.known_engine(parsed.tenant) is not None
            if not is_open:
                self._check_empty()
            with store.in_use():
                engine = await stores.engine(store, parsed.tenant)
                info: TokenInfo | None = await engine.ask(FindToken(parsed.hash))
        except (Invalid, NotFound, Unsupported):
            return None
        if info is None:
            if not is_open and not store.log(parsed.tenant).seen.offset:
                self._empty.append(time.monotonic())
            self._known.pop(parsed.hash, None)
            return None
        found = KnownToken(info, store, parsed, time.monotonic())
        self._known[parsed.hash] = found
        while len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        await self._mark_used(stores, found)
        return found

    def _check_empty(self) -> None:
        """Refuse to open further tenants if lately many that strangers named had never been used."""
        since = time.monotonic() - EMPTY_S
        self._empty = [each for each in self._empty if each > since]
        if len(self._empty) >= EMPTY_MAX:
            raise HttpError(
                429,
                "too_many_guesses",
                "too many tokens of tenants that do not exist",
                hint="a process of this machine can use the tenant, which opens it",
                headers={"Retry-After": "60"},
            )

    async def _mark_used(self, stores: HubStores, found: KnownToken) -> None:
        """Record about once an hour that a token is in use."""
        now = time.monotonic()
        if now - self._marked.get(found.info.id, -USED_EVERY_S) < USED_EVERY_S:
            return
        self._marked[found.info.id] = now
        engine = await stores.engine(found.store, found.parsed.tenant)
        try:
            await engine.ask(MarkTokenUsed(found.info.id))
        except CoordError:  # a log that cannot be written now; the request itself may only read
            self._marked.pop(found.info.id, None)
