"""Actions are command lines: what is shown is what runs, whatever the names and texts contain."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.lifecycle.commands import Overview, QueueCounts
from coord.core.locks.commands import LockInfo
from coord.core.messages.commands import MessageInfo
from coord.core.plans.commands import QueueReply
from coord.sdk.client.client import connect
from coord.transports.cli.args import Options
from coord.transports.cli.parser import parse
from coord.transports.cli.top import actions
from coord.transports.cli.top.actions import Action
from coord.transports.cli.top.sections import Item
from coord.transports.cli.top.snapshot import Snapshot

NO_SNAPSHOT = Snapshot(
    "shop", "s-ann", Overview(0, [], 0, QueueCounts()), [], [], QueueReply([], [], []), [], [], [], 0, 0.0
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30),
    st.sampled_from(
        ["-", "--", "--force", "-rf", "--reason=x", "a b", "$(x)", "'", '"', "`x`", "=", "--help", "-h"]
    ),
)


def lock_item(resource: str, owner: str = "s-bob", fence: int = 7) -> Item:
    lock = LockInfo(resource, "write", fence, owner, "", 1, 2, 60.0, "file", "", 0, "repository")
    return Item("lock", f"{resource} {owner}", {}, lock)


def typed(action: Action, text: str = "") -> list[tuple[str, dict[str, object]]]:
    """Parse what is shown, as a shell and coord would."""
    lines = actions.shown(action.commands(text)).split(" && coord ")
    assert shlex.split(lines[0])[0] == "coord"
    requests = [parse(words) for words in action.commands(text)]
    if len(lines) == 1:
        assert parse(shlex.split(lines[0])[1:]) == requests[0]
    return [(each.command.name if each.command else "", each.values) for each in requests]


@given(TEXTS, TEXTS)
def test_a_reason_and_a_name_arrive_as_they_are(reason: str, name: str) -> None:
    """A text is never taken for a flag, a second word or a command."""
    with connect("memory:", session="s-ann", project="shop") as client:
        item = lock_item(f"name:{name}")
        found = actions.steal(client, NO_SNAPSHOT, item)
        assert isinstance(found, Action)
        ((command, values),) = typed(found, reason)
    assert command == "steal"
    assert (values["resource"], values["reason"], values["force"]) == (f"name:{name}", reason, True)
    assert values["fence"] == 7


@given(TEXTS, TEXTS)
def test_a_message_arrives_as_it_is(sender: str, text: str) -> None:
    with connect("memory:", session="s-ann", project="shop") as client:
        message = MessageInfo("17-0", sender, "s-ann", 1, "request", "hi", "", {}, 0, 0, "", "new", 0)
        found = actions.message(client, NO_SNAPSHOT, Item("message", "17-0", {}, message))
        assert isinstance(found, Action)
        ((command, values),) = typed(found, text)
    assert (command, values["to"], values["subject"], values["reply_to"]) == ("send", sender, text, "17-0")


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([("s-bob", 7)], ""),
        ([("s-bob", 9)], "file:a is now with s-bob"),
        ([("s-cid", 8)], "file:a is now with s-cid"),
        ([], "file:a is free now"),
    ],
)
def test_a_lock_is_the_same_only_with_its_fence(now: list[tuple[str, int]], said: str) -> None:
    """Bob may have released it and taken it again since the user looked."""
    locks = [lock_item("file:a", owner, fence).about for owner, fence in now]
    assert actions.changed(NO_SNAPSHOT._replace(locks=locks), lock_item("file:a")) == said


def test_shown_commands_carry_the_global_flags() -> None:
    """Another terminal does the same with them: the form of the answer is no part of it."""
    options = Options("wide", True, "s-ann", "ann", "", "shop", "", "", 7, "")
    words = actions.global_words(options)
    assert words == ["--session", "s-ann", "--agent", "ann", "--project", "shop", "--pid", "7"]
    assert (
        actions.shown([["locks"]], words) == "coord --session s-ann --agent ann --project shop --pid 7 locks"
    )
