"""Mutants of clients and their hub: what runs once, which store it is, and what a lost hub leaves behind."""

from tests.mutation.mutant import Mutant

CLIENT = "tests/unit/sdk/remote"
HUB = "tests/unit/transports/hub"

MUTANTS = [
    Mutant(
        "a command goes out without an id",
        "coord.sdk.remote.engine:RemoteEngine._call_all",
        "command_id or os.urandom(12).hex()",
        "command_id",
        (f"{CLIENT}/test_engine.py::test_a_command_whose_answer_is_lost_runs_once",),
    ),
    Mutant(
        "a lost answer is forgotten when the hub cannot be reached later",
        "coord.sdk.remote.engine:RemoteEngine._call_all",
        "doubt = error if any(ids) else None",
        "doubt = None",
        (f"{CLIENT}/test_engine.py::test_a_lost_answer_stays_in_doubt_until_there_is_one",),
    ),
    Mutant(
        "a fallback that fails says that nothing was done",
        "coord.sdk.remote.engine:RemoteEngine._call_all",
        "_fail(doubt, error)\n            if time",
        "raise\n            if time",
        (f"{CLIENT}/test_engine.py::test_a_lost_answer_and_a_lost_store_is_doubt",),
    ),
    Mutant(
        "a client never falls back to the store",
        "coord.sdk.remote.database:RemoteDatabase.fall_back",
        "if self._open_direct is None:",
        "if True:",
        (f"{CLIENT}/test_engine.py::test_a_command_whose_answer_is_lost_runs_once",),
    ),
    Mutant(
        "a hub with another store gets the command",
        "coord.transports.hub.calls:_store",
        'target.store not in ("", store.database.store_id)',
        "False",
        (f"{CLIENT}/test_engine.py::test_another_store_or_version_behind_the_socket_is_left",),
    ),
    Mutant(
        "a hub of another version gets the command",
        "coord.transports.hub.calls:_store",
        'target.version not in ("", VERSION)',
        "False",
        (f"{CLIENT}/test_engine.py::test_another_store_or_version_behind_the_socket_is_left",),
    ),
    Mutant(
        "another tenant's log begins at the head of the first",
        "coord.sdk.remote.database:RemoteDatabase._open_log",
        "tenant == self.welcome.tenant",
        "True",
        (f"{CLIENT}/test_engine.py::test_each_tenant_has_its_own_head",),
    ),
    Mutant(
        "a late answer answers the next question",
        "coord.sdk.remote.channel:UnixChannel._take",
        "except OSError:\n                pass\n            connection.close()",
        "except OSError:\n                pass\n            return connection",
        (f"{CLIENT}/test_channels.py::test_what_comes_without_a_question_is_no_answer",),
    ),
    Mutant(
        "a child uses the connections of its parent",
        "coord.sdk.remote.channel:UnixChannel._take",
        "self._process != os.getpid()",
        "False",
        (f"{CLIENT}/test_channels.py::test_a_child_does_not_use_the_connections_of_its_parent",),
    ),
    Mutant(
        "the hub goes on with a store that its repository has left",
        "coord.transports.hub.stores:OpenStore.is_current",
        "signature(self.location) != self.signature",
        "False",
        (f"{HUB}/test_stores.py::test_a_store_that_the_repository_has_left_is_not_used",),
    ),
    Mutant(
        "one look at the pin of a store counts for ever",
        "coord.transports.hub.stores:OpenStore.is_current",
        "now - self._looked_s >= LOOKED_S",
        "self._looked_s < 0",
        (f"{HUB}/test_stores.py::test_a_store_that_the_repository_has_left_is_not_used",),
    ),
    Mutant(
        "a store that was left counts as looked at",
        "coord.transports.hub.stores:OpenStore.is_current",
        "    if signature(self.location) != self.signature:\n                return False\n",
        "    self._looked_s = now\n            if signature(self.location) != self.signature:\n"
        "                return False\n",
        (f"{HUB}/test_stores.py::test_requests_that_come_together_share_a_look_at_the_pin",),
    ),
    Mutant(
        "a store is closed under a request that uses it",
        "coord.transports.hub.stores:HubStores._close",
        "if store.users and not self.closed:",
        "if False:",
        (f"{HUB}/test_stores.py::test_a_store_that_the_repository_has_left_is_not_used",),
    ),
    Mutant(
        "a token of an idle store is not known any more",
        "coord.transports.hub.stores:HubStores._add",
        "_remember(self._known, location.folder, location)",
        "pass",
        (f"{HUB}/test_stores.py::test_an_idle_store_is_closed_and_opened_again",),
    ),
    Mutant(
        "the waits of a closed store go on",
        "coord.transports.hub.stores:HubStores._retire",
        "store.end_waits()",
        "pass",
        (f"{HUB}/test_stores.py::test_waits_end_when_their_store_is_left",),
    ),
    Mutant(
        "a waiter for a later entry hides an earlier one",
        "coord.transports.hub.wakeups:LogWatcher.wait",
        "args=(seen,)",
        "args=(after,)",
        (f"{HUB}/test_wakeups.py::test_a_waiter_for_a_later_entry_does_not_hide_an_earlier_one",),
    ),
    Mutant(
        "what a server announces is not read",
        "coord.transports.hub.wakeups:LogWatcher._watch",
        'self._log.load(["head"])',
        "pass",
        (f"{HUB}/test_wakeups.py::test_an_entry_that_the_server_announces_wakes",),
    ),
    Mutant(
        "a closed watcher lets new waiters wait",
        "coord.transports.hub.wakeups:LogWatcher.wait",
        "if seen > after or self._ended.is_set():",
        "if seen > after:",
        (f"{HUB}/test_wakeups.py::test_a_closed_watcher_lets_everybody_go",),
    ),
]
