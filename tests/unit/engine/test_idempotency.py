"""Commands with an id are carried out once: asked again within the hour, they get the same reply."""

import pytest

from coord.core.errors import CoordError, Invalid, Unknown
from coord.core.tasks import types
from coord.core.tasks.commands import ClaimTask
from coord.engine.idempotency import KEPT_MS
from coord.stores.contract import Commit
from tests.support.engine_probes import Append, Look, Once, Refuse
from tests.support.stores.steps import by_key, everything
from tests.unit.engine.conftest import NOW, MakeStage, Stage

CLAIM = ClaimTask("local", "shop", "A-001-login", "agent", "session", 60_000)


def test_the_same_command_gets_the_same_reply_and_writes_nothing(stage: Stage) -> None:
    """A command id asked again with the same content: the same reply, nothing written again."""
    assert stage.engine.call(Append("a", "x"), command_id="id-1") == "x"
    before = everything(stage.store)
    for _ in range(3):
        assert stage.engine.call(Append("a", "x"), command_id="id-1") == "x"
    assert everything(stage.store) == before


def test_the_reply_outlives_the_engine(make_stage: MakeStage, shared_url: str) -> None:
    """Another process that sends the command again gets the reply that the first one would have got."""
    first = make_stage(shared_url).engine.call(CLAIM, command_id="claim-1")
    again = make_stage(shared_url).engine.call(CLAIM, command_id="claim-1")
    assert isinstance(again, types.ClaimResult)
    assert again == first
    assert again.success
    assert again.claim is not None
    assert again.claim.generation == 1


def test_another_content_is_invalid(stage: Stage) -> None:
    """A command id used for something else is refused, and nothing is written."""
    stage.engine.call(Append("a", "x"), command_id="id-1")
    before = everything(stage.store)
    for other in (Append("a", "y"), Append("b", "x"), Once("a", "x")):
        with pytest.raises(Invalid, match="id-1"):
            stage.engine.call(other, command_id="id-1")
    assert everything(stage.store) == before


def test_twice_in_one_batch(stage: Stage) -> None:
    """The same command twice in one batch is carried out once, too."""
    with stage.engine._batch_lock:
        futures = [stage.engine.submit(Append("a", "x"), command_id="id-1") for _ in range(3)]
    assert [future.result(60) for future in futures] == ["x", "x", "x"]
    assert stage.engine.call(Look("a")) == "x"


def test_different_ids_are_different_commands(stage: Stage) -> None:
    """Without an id, or with another one, the same content is a new command."""
    replies = [stage.engine.call(Append("a", "x"), command_id=name) for name in ("one", "two", "", "")]
    assert replies == ["x", "xx", "xxx", "xxxx"]


def test_a_refusal_is_not_remembered(stage: Stage) -> None:
    """What wrote nothing leaves no trace, and may turn out otherwise the next time."""
    stage.engine.call(Append("a", "theirs"))
    assert stage.engine.call(Once("a", "mine"), command_id="id-1") == "theirs"
    with pytest.raises(CoordError):
        stage.engine.call(Refuse("b", "x"), command_id="id-2")
    assert by_key(stage.store, "done/") == []


def test_an_id_is_forgotten_after_an_hour(stage: Stage) -> None:
    """The reply is kept for an hour; then the id is free again."""
    stage.engine._sweep_at = 0
    assert stage.engine.call(Append("a", "x"), command_id="id-1") == "x"
    stage.now = NOW + KEPT_MS - 1
    assert stage.engine.call(Append("a", "x"), command_id="id-1") == "x"
    stage.now = NOW + KEPT_MS
    assert stage.engine.call(Append("a", "x"), command_id="id-1") == "xx"
    stage.now += KEPT_MS
    assert stage.engine.call(Append("b", "other"), command_id="id-1") == "other"
    assert by_key(stage.store, "done/") == ["done/id-1"]


def test_a_client_settles_an_unknown_outcome_by_asking_again(stage: Stage) -> None:
    """Who was told `Unknown` sends the same command with the same id: it happens once, landed or not."""

    def lose_and_leave(_: Commit) -> None:
        stage.store.away = True
        raise Unknown

    for landed in (True, False):
        name = f"landed-{landed}"
        (stage.store.after_commit if landed else stage.store.before_commit).append(lose_and_leave)
        with pytest.raises(Unknown):
            stage.engine.call(Append(name, "x"), command_id=name, timeout=1)
        stage.store.away = False
        assert stage.engine.call(Append(name, "x"), command_id=name) == "x"
        assert stage.engine.call(Look(name)) == "x"
