"""Any sequence of commands about tokens agrees with a naive model, swept or not."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from coord.core.errors import CoordError, NotFound, Refused
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.sweep import Sweep
from tests.conftest import SOAK
from tests.support.models.naive_tokens import ROLES, Card, NaiveTokens
from tests.support.token_harness import ADMIN, TokenHarness

PARENTS = {"kid": "bob", "grandkid": "kid"}
AGENTS = ("ann", "bob", "kid", "grandkid")
NEVER_MS = 2**60
TTLS = st.sampled_from([0, 0, 1_000, 5_000, 60_000, 600_000])
PROJECTS = st.sampled_from(["", "", "shop", "yard"])
SESSIONS = st.sampled_from(["", "", *AGENTS])
CALLERS = st.sampled_from([ADMIN.session, ADMIN.session, *AGENTS, "#", "#", "#"])
"""`#` is a request that came with one of the tokens."""
PICKS = st.integers(0, 99)
MET: Counter[str] = Counter()


class TokenMachine(RuleBasedStateMachine):
    """The rules on the memory store, beside the model."""

    @initialize(sweeps=st.booleans())
    def begin(self, sweeps: bool) -> None:
        self.harness = TokenHarness()
        self.model = NaiveTokens({ADMIN.session}, PARENTS)
        self.sweeps = sweeps
        self.number = 0
        for name in AGENTS:
            self.harness.engine.call(Register(caller=Caller(name, parent=PARENTS.get(name, ""))))
        for project, session, ttl in (("", "", 0), ("shop", "", 60_000), ("", "bob", 0)):
            self.create(ADMIN.session, 0, "admin", project, session, ttl)

    def _call(self) -> None:
        if not self.sweeps:
            self.harness.engine._sweep_at = NEVER_MS

    def _caller(self, who: str, pick: int) -> tuple[Caller, str]:
        """Return a caller, and the name of the token with which it came."""
        names = sorted(self.model.cards)
        if who == "#" and names:
            token = names[pick % len(names)]
            return self.harness.with_token(token, "bob"), token
        if who in ("#", ADMIN.session):
            return ADMIN, ""
        return Caller(who, parent=PARENTS.get(who, "")), ""

    def _pick(self, pick: int) -> str:
        """Return a token that was created once, or never."""
        names = [*sorted(self.model.cards), "never"]
        return names[pick % len(names)]

    def _next(self) -> str:
        self.number += 1
        self.harness.pass_time(1)  # two tokens of one time have no order
        self._call()
        return f"t{self.number}"

    @rule(who=CALLERS, by=PICKS, role=st.sampled_from(ROLES), project=PROJECTS, session=SESSIONS, ttl=TTLS)
    def create(self, who: str, by: int, role: str, project: str, session: str, ttl: int) -> None:
        name, now = self._next(), self.harness.now
        caller, token = self._caller(who, by)
        card = Card(name, role, project, session, now, now + ttl if ttl else 0)
        may = self.model.may(caller.session, token, card, now, grants=True)
        try:
            self.harness.create(name, role, by=caller, project=project, session=session, ttl=ttl)
            assert may, f"{caller.session} with {token or 'no token'} created {card}"
            self.model.cards[name] = card
        except Refused:
            assert not may, f"{caller.session} with {token or 'no token'} could not create {card}"
        MET[f"create {who[:1]} {may}"] += 1

    @rule(who=CALLERS, by=PICKS, pick=PICKS, grace=TTLS, ttl=TTLS)
    def rotate(self, who: str, by: int, pick: int, grace: int, ttl: int) -> None:
        name, now = self._next(), self.harness.now
        caller, token = self._caller(who, by)
        old = self.model.valid(self._pick(pick), now)
        if old is None:
            self._is_unknown(lambda: self.harness.rotate(self._pick(pick), name, by=caller))
            return
        new = old._replace(name=name, created_ms=now, expires_ms=now + ttl if ttl else old.expires_ms)
        may = not old.replaced_by and self.model.may(caller.session, token, old, now, grants=False)
        may = may and self.model.may(caller.session, token, new, now, grants=True)
        try:
            self.harness.rotate(old.name, name, by=caller, grace=grace, ttl=ttl)
            assert may, f"{caller.session} with {token or 'no token'} rotated {old}"
            ends = now + grace if old.expires_ms == 0 else min(old.expires_ms, now + grace)
            self.model.cards[old.name] = old._replace(expires_ms=ends, replaced_by=name)
            self.model.cards[name] = new
        except Refused:
            assert not may, f"{caller.session} with {token or 'no token'} could not rotate {old}"
        MET[f"rotate {who[:1]} {may}"] += 1

    @rule(who=CALLERS, by=PICKS, pick=PICKS)
    def revoke(self, who: str, by: int, pick: int) -> None:
        self._call()
        now = self.harness.now
        caller, token = self._caller(who, by)
        card = self.model.valid(self._pick(pick), now)
        if card is None:
            self._is_unknown(lambda: self.harness.revoke(self._pick(pick), by=caller))
            return
        may = self.model.may(caller.session, token, card, now, grants=False)
        try:
            self.harness.revoke(card.name, by=caller)
            assert may, f"{caller.session} with {token or 'no token'} revoked {card}"
            self.model.cards[card.name] = card._replace(expires_ms=now)
        except Refused:
            assert not may, f"{caller.session} with {token or 'no token'} could not revoke {card}"
        MET[f"revoke {who[:1]} {may}"] += 1

    def _is_unknown(self, act) -> None:
        """A token that does not count is not found, whoever asks."""
        try:
            act()
        except (NotFound, Refused) as error:
            MET[f"unknown {type(error).__name__}"] += 1
        else:
            raise AssertionError("a token that does not count was managed")

    @rule(ms=st.sampled_from([1, 1_000, 5_000, 60_000]))
    def time_passes(self, ms: int) -> None:
        self.harness.pass_time(ms)

    @rule(past=st.sampled_from([-1, 0, 1]))
    def a_deadline_comes(self, past: int) -> None:
        now = self.harness.now
        deadlines = [card.expires_ms for card in self.model.cards.values() if card.expires_ms > now]
        self.harness.pass_time(max(0, min(deadlines, default=now) + past - now))

    @rule()
    def sweep(self) -> None:
        self.harness.engine.call(Sweep("local", 32))
        now = self.harness.now
        for event in self.harness.events("token.expired"):
            assert event["expires_ms"] <= now
        left = {f"token/{self.harness.id(name)}" for name in self.model.cards if self.model.valid(name, now)}
        found = self.harness.store.load([f"token/{self.harness.id(name)}" for name in self.model.cards])
        assert {key for key, record in found.items() if record.value} == left, "the sweep removes the others"

    @invariant()
    def everybody_sees_the_same(self) -> None:
        if not hasattr(self, "harness"):
            return
        self._call()
        now = self.harness.now
        for name in [*self.model.cards, "never"]:
            card, found = self.model.valid(name, now), self.harness.find(name)
            assert (card is None) == (found is None), name
            if card is not None and found is not None:
                shown = (found.role, found.project, found.session, found.expires_ms, found.replaced_by)
                replaced = card.replaced_by and self.harness.id(card.replaced_by)
                assert shown == (card.role, card.project, card.session, card.expires_ms, replaced)
        assert self.harness.listed() == [self.harness.id(name) for name in self.model.shown(None, now)]
        for name in list(self.model.cards)[-3:]:
            card = self.model.valid(name, now)
            try:
                seen = self.harness.listed(self.harness.with_token(name))
            except CoordError:
                assert card is None
            else:
                assert card is not None
                assert seen == [self.harness.id(each) for each in self.model.shown(card, now)]

    def teardown(self) -> None:
        if hasattr(self, "harness"):
            self.harness.engine.close()


def test_tokens_agree_with_the_model() -> None:
    """What counts, what is listed, and who may create, rotate and revoke are those of the model."""
    MET.clear()
    run_state_machine_as_test(
        TokenMachine,
        settings=settings(max_examples=3_000 if SOAK else 80, stateful_step_count=30, deadline=None),
    )
    wanted = {f"{act} # {may}" for act in ("create", "rotate", "revoke") for may in (True, False)}
    assert set(MET) >= wanted | {"create i True", "create b True", "create b False", "unknown NotFound"}
