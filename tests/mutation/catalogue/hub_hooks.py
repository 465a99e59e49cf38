"""Mutants of hooks that a hub answers."""

from tests.mutation.mutant import Mutant

TESTS = "tests/system/hub/test_hooks.py"
UNIT_TESTS = "tests/unit/transports/hub/hooks/test_answers.py"

START_TESTS = "tests/system/hub/test_start.py"

MUTANTS = [
    Mutant(
        "an agent replaces the socket of the hub",
        "coord.integrations.hooks.protected_files:_own_folders",
        "(state_folder(environment()), runtime) if each]",
        "(state_folder(environment()),) if each]",
        (f"{TESTS}::test_an_agent_may_not_replace_the_socket",),
    ),
    Mutant(
        "a hub starts although nobody wants one",
        "coord.host.runtime.start_hub:start_hub",
        "if not is_wanted(environ):",
        "if False:",
        (f"{START_TESTS}::test_nobody_starts_a_hub_that_nobody_wants",),
    ),
    Mutant(
        "the command of an agent starts a hub in its sandbox",
        "coord.sdk.client.open:_start_hub",
        "if not shows_agent(environ):",
        "if True:",
        (f"{START_TESTS}::test_nobody_starts_a_hub_that_nobody_wants",),
    ),
    Mutant(
        "a hub keeps the environment of the agent that started it",
        "coord.host.runtime.start_hub:start_hub",
        "if name in KEPT or name.startswith(KEPT_PREFIXES)",
        "if True",
        (f"{START_TESTS}::test_the_first_hook_starts_a_hub_and_the_next_one_uses_it",),
    ),
    Mutant(
        "an agent decides that a hub is started",
        "coord.transports.cli.handlers.setup:init",
        "if args.hub and _tool():",
        "if False:",
        (f"{START_TESTS}::test_an_agent_cannot_ask_for_it",),
    ),
    Mutant(
        "a hub that was killed and not reaped still counts as running",
        "coord.sdk.remote.address:is_running",
        " and probe(now).life is ProcessState.ALIVE",
        "",
        ("tests/unit/sdk/remote/test_address.py",),
    ),
    Mutant(
        "a hook without an answer of the hub allows the call",
        "coord.integrations.hooks.hook:Hook._ask_hub",
        "if found is None:\n            return False",
        "if found is None:\n            return True",
        (f"{TESTS}::test_a_killed_hub_is_replaced_by_the_hook_itself",),
    ),
    Mutant(
        "a hook uses a socket in a folder that others can enter",
        "coord.host.runtime.hub_socket:runtime_folder",
        "not status.st_mode & 0o077",
        "True",
        (f"{TESTS}::test_a_socket_that_others_could_have_made_is_not_used",),
    ),
    Mutant(
        "a hook uses a link to a socket",
        "coord.host.runtime.hub_socket:_is_own_socket",
        "status = os.lstat(path)",
        "status = os.stat(path)",
        (f"{TESTS}::test_a_socket_that_others_could_have_made_is_not_used",),
    ),
    Mutant(
        "a hook goes to a socket that its environment names",
        "coord.integrations.hooks.hook:Hook._ask_hub",
        'path = "" if os.environ.get("COORD_HUB") else socket_of_user(os.environ)',
        'path = os.environ.get("COORD_HUB", "") or socket_of_user(os.environ)',
        (f"{TESTS}::test_the_environment_cannot_lead_a_hook_elsewhere",),
    ),
    Mutant(
        "a hook waits for a frozen hub",
        "coord.integrations.hooks.hub_client:_left",
        "return left",
        "return left + 60.0",
        (f"{TESTS}::test_a_frozen_hub_freezes_nobody",),
    ),
    Mutant(
        "a hub acts for a hook that does not wait any more",
        "coord.transports.hub.hooks.answers:HookRun.time_left",
        "if left <= 0:",
        "if False:",
        (f"{UNIT_TESTS}::test_what_the_hook_has_to_answer_itself",),
    ),
    Mutant(
        "a hook prints the answer of another version",
        "coord.integrations.hooks.hub_client:_read_answer",
        "version != VERSION or ",
        "",
        (f"{TESTS}::test_anything_but_a_whole_answer_is_no_answer",),
    ),
    Mutant(
        "a hook prints a refusal of the hub as its answer",
        "coord.integrations.hooks.hub_client:_read_answer",
        'if not head.startswith(b"HTTP/1.1 200 "):',
        "if False:",
        (f"{TESTS}::test_anything_but_a_whole_answer_is_no_answer",),
    ),
    Mutant(
        "a hook through the hub asks the hub before it reads",
        "coord.integrations.hooks.hook:Hook._answer",
        'payload.get("tool_name") in READ_ONLY_TOOLS',
        "False",
        (f"{TESTS}::test_reads_do_not_ask_the_hub",),
    ),
    Mutant(
        "messages count as received before the hook has printed them",
        "coord.transports.hub.hooks.answers:HookRun._reply",
        "if not waiting.wait(PRINT_S):",
        "if False:",
        (f"{TESTS}::test_a_message_that_nobody_printed_is_not_received",),
    ),
    Mutant(
        "a session answered by the hub lives in the hub's process",
        "coord.host.tool_process:find_tool",
        "lineage(None if hook is None else hook.pid)",
        "lineage()",
        (f"{UNIT_TESTS}::test_the_tool_is_found_above_the_process_that_asks",),
    ),
    Mutant(
        "git in the hub runs in the hub's environment",
        "coord.host.runtime.environment:environment",
        "return os.environ if given is None else given",
        "return os.environ",
        (UNIT_TESTS,),
    ),
    Mutant(
        "the hub answers a hook that sees other files",
        "coord.transports.hub.hooks.answers:HookRun._check_view",
        "if not answers.view or _view(str(self._pid)) != answers.view:",
        "if False:",
        (UNIT_TESTS,),
    ),
    Mutant(
        "the hub answers from a store that is not pinned any more",
        "coord.transports.hub.hooks.answers:HookRun._opened",
        'raise NotHere("another store is pinned now")',
        "pass",
        (UNIT_TESTS,),
    ),
]
