"""Mutants of MCP: messages, who speaks, and what a token may do."""

from tests.mutation.mutant import Mutant

TESTS = "tests/system/hub/test_mcp.py"
BRIDGE_TESTS = "tests/system/hub/test_mcp_bridge.py"
PROTOCOL_TESTS = "tests/unit/transports/hub/mcp/test_protocol.py"
PROTOCOL = "coord.transports.hub.mcp.protocol"
ENDPOINT = "coord.transports.hub.mcp.endpoint"
CLIENT = "coord.transports.hub.mcp.hub_client:HubClient"

MUTANTS = [
    Mutant(
        "headers of MCP that contradict the body count for nothing",
        f"{PROTOCOL}:_check_headers",
        "given is None or _decoded(given) != value",
        "given is None",
        (f"{PROTOCOL_TESTS}::test_headers_that_contradict_the_body_are_refused",),
    ),
    Mutant(
        "a header of MCP may be missing",
        f"{PROTOCOL}:_check_headers",
        "given is None or _decoded(given) != value",
        "given is not None and _decoded(given) != value",
        (f"{PROTOCOL_TESTS}::test_headers_that_contradict_the_body_are_refused",),
    ),
    Mutant(
        "a modern request may have any version",
        f"{PROTOCOL}:_is_modern",
        "if stated != MODERN:",
        "if False:",
        (f"{PROTOCOL_TESTS}::test_a_modern_request_with_another_version_learns_which_there_are",),
    ),
    Mutant(
        "an id of any size is returned",
        f"{PROTOCOL}:_id",
        "type(number) is int and -ID_MAX <= number < ID_MAX",
        "type(number) is int",
        (f"{PROTOCOL_TESTS}::test_hostile_messages_get_an_error",),
    ),
    Mutant(
        "a notification gets an answer",
        f"{PROTOCOL}:Message.expects_reply",
        "self.id is not None",
        "True",
        (f"{PROTOCOL_TESTS}::test_notifications_and_replies_get_no_answer",),
    ),
    Mutant(
        "deep nesting ends a request without an answer",
        f"{PROTOCOL}:parse",
        "(msgspec.MsgspecError, RecursionError, ValueError)",
        "(msgspec.MsgspecError, ValueError)",
        (f"{PROTOCOL_TESTS}::test_hostile_messages_get_an_error",),
    ),
    Mutant(
        "a tool runs commands unchecked",
        "coord.transports.hub.mcp.tools:ToolEngine.call",
        "self._check(command)",
        "command",
        (f"{TESTS}::test_a_token_decides_what_a_call_may_do",),
    ),
    Mutant(
        "a call acts for a session that its token does not name",
        f"{ENDPOINT}:Sender._caller",
        "self._identity.check_session(session)",
        'session or "ida"',
        (f"{TESTS}::test_a_token_decides_what_a_call_may_do",),
        also=("coord.transports.hub.mcp.tools:ToolEngine.call", "self._check(command)", "command"),
    ),
    Mutant(
        "a repeated tool call runs twice",
        "coord.transports.hub.mcp.tools:ToolEngine.call",
        "if self.command_id and not command_id and not command.reads_only:",
        "if False:",
        (f"{TESTS}::test_a_repeated_call_runs_once",),
    ),
    Mutant(
        "a repeated submission over MCP is another command",
        "coord.transports.hub.mcp.tools:_task",
        'getattr(client.engine, "command_id", "")',
        '""',
        (f"{TESTS}::test_a_repeated_call_about_a_claim_gets_the_same_answer",),
    ),
    Mutant(
        "a client over TCP says who it is, as the bridge does",
        f"{ENDPOINT}:_bridge_call",
        'request.headers.get(HEADER.lower(), "") if request.peer.unix else ""',
        'request.headers.get(HEADER.lower(), "")',
        (f"{TESTS}::test_a_client_over_tcp_cannot_say_who_it_is",),
    ),
    Mutant(
        "a bridge says that it has a token",
        f"{ENDPOINT}:Sender._caller",
        ', token=""',
        "",
        (f"{BRIDGE_TESTS}::test_a_bridge_cannot_claim_to_have_a_token",),
    ),
    Mutant(
        "a hub serves a bridge from another store",
        f"{ENDPOINT}:_find_sender",
        "if bridge.store_id != store.database.store_id:",
        "if False:",
        (f"{BRIDGE_TESTS}::test_what_a_bridge_says_is_checked",),
    ),
    Mutant(
        "a token takes locks of the hub's machine",
        f"{CLIENT}.store_for",
        "self._elsewhere and any(self.are_of_host(resources))",
        "False",
        (f"{TESTS}::test_a_token_reaches_nothing_outside_of_its_store",),
    ),
    Mutant(
        "a token of one session reads the events of all",
        f"{CLIENT}.__init__",
        "identity.token is None or not (identity.token.project or identity.token.session)",
        "True",
        (f"{TESTS}::test_a_token_decides_what_a_call_may_do",),
    ),
    Mutant(
        "the description of a task stands unmarked in a result",
        "coord.transports.hub.mcp.tools:_described",
        "quote_lines(text)",
        "text",
        (f"{TESTS}::test_a_task_from_the_queue_to_its_result",),
    ),
    Mutant(
        "a message of MCP may come as a form of a web page",
        f"{ENDPOINT}:Endpoint.post",
        "if kind != JSON:",
        "if False:",
        (f"{TESTS}::test_what_is_no_json_is_refused",),
    ),
    Mutant(
        "a bridge ends with its hub",
        "coord.transports.hub.mcp.bridge:Bridge._ask_hub",
        "except (CoordError, Broken):\n            return None",
        'except (CoordError, Broken):\n            return b"{}"',
        (f"{BRIDGE_TESTS}::test_a_bridge_goes_on_when_its_hub_is_killed",),
    ),
    Mutant(
        "a call whose answer was lost gets another command id",
        "coord.transports.hub.mcp.bridge:Bridge._answer",
        "self._answer_here(line, command_id)",
        "self._answer_here(line, command_id[::-1])",
        (f"{BRIDGE_TESTS}::test_a_call_whose_answer_is_lost_runs_once",),
    ),
    Mutant(
        "a bridge never asks the hub",
        "coord.transports.hub.mcp.bridge:Bridge._ask_hub",
        "if not socket:",
        "if True:",
        (f"{BRIDGE_TESTS}::test_the_bridge_only_passes_messages_on",),
    ),
    Mutant(
        "a bridge without a session speaks for a terminal",
        "coord.transports.hub.mcp.bridge:find_call",
        "caller.terminal or not caller.session",
        "not caller.session",
        (f"{BRIDGE_TESTS}::test_a_bridge_speaks_for_the_session_of_its_agent",),
    ),
]
