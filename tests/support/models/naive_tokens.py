"""Tokens as a child would keep them: a list of cards with what is written on each; none is thrown away."""

from typing import NamedTuple

ROLES = ("view", "operate", "admin")


class Card(NamedTuple):
    """A token that was created once."""

    name: str
    role: str
    project: str
    session: str
    created_ms: int
    expires_ms: int
    replaced_by: str = ""


class NaiveTokens:
    """What counts at a time, and who may create what; sessions are people, agents or sub-agents of agents."""

    def __init__(self, people: set[str], parents: dict[str, str]) -> None:
        self.cards: dict[str, Card] = {}
        self.people = people
        self.parents = parents

    def valid(self, name: str, now: int) -> Card | None:
        card = self.cards.get(name)
        return card if card is not None and (card.expires_ms == 0 or now < card.expires_ms) else None

    def shown(self, card: Card | None, now: int) -> list[str]:
        """The tokens that the holder of a card sees; without a card, all that count."""
        found = [each for each in self.cards.values() if self.valid(each.name, now)]
        if card is not None:
            found = [each for each in found if self.inside(card, each)]
        return [each.name for each in sorted(found, key=lambda each: each.created_ms)]

    @staticmethod
    def inside(outer: Card, inner: Card) -> bool:
        if ROLES.index(inner.role) > ROLES.index(outer.role):
            return False
        return all(
            limit == "" or limit == own
            for limit, own in ((outer.project, inner.project), (outer.session, inner.session))
        )

    def may(self, session: str, token: str, card: Card, now: int, *, grants: bool) -> bool:
        """Whether a session, or a request with a token, may manage a card; `grants`: it gets a secret."""
        if token:
            outer = self.valid(token, now)
            if outer is None or outer.role != "admin" or not self.inside(outer, card):
                return False
            if not grants or outer.expires_ms == 0:
                return True
            return card.expires_ms != 0 and card.expires_ms <= outer.expires_ms
        if session in self.people:
            return True
        return card.role != "admin" and card.session in (session, *self._below(session))

    def _below(self, session: str) -> list[str]:
        children = [name for name, parent in self.parents.items() if parent == session]
        return children + [name for child in children for name in self._below(child)]
