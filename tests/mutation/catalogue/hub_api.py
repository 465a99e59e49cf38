"""Mutants of the public HTTP API: who may use a route, what it takes, and what its events say."""

from tests.mutation.mutant import Mutant

TESTS = "tests/unit/transports/hub/api"
EVERY = f"{TESTS}/test_every_route.py"
ENDPOINT = "coord.transports.hub.api.endpoint"
COMMANDS = "coord.transports.hub.api.endpoints.commands"

MUTANTS = [
    Mutant(
        "a route looks at no role",
        f"{ENDPOINT}:Endpoint.__call__",
        "identity.require(self.role)",
        "pass",
        (f"{TESTS}/test_rpc.py", f"{EVERY}::test_a_role_suffices_for_no_more_than_it_says"),
    ),
    Mutant(
        "a route believes the tenant in its path",
        f"{ENDPOINT}:Endpoint.__call__",
        'identity.check_tenant(request.parameters.get("tenant", ""))',
        'request.parameters.get("tenant", "")',
        (f"{EVERY}::test_a_token_reaches_no_other_tenant",),
    ),
    Mutant(
        "a request runs its commands unchecked",
        f"{ENDPOINT}:Asking.ask",
        "command = check_command(self.identity, command)",
        "pass",
        (f"{EVERY}::test_a_token_of_a_project_reaches_no_other",),
    ),
    Mutant(
        "a batch runs its commands unchecked",
        f"{ENDPOINT}:Asking.ask_many",
        "[check_command(self.identity, command) for command in commands]",
        "list(commands)",
        (f"{TESTS}/test_batches.py::test_a_batch_stays_inside_the_project_of_its_token",),
    ),
    Mutant(
        "a session of another token may be named where there is no caller",
        "coord.transports.hub.identity:_as_session",
        "not isinstance(command, OF_CLAIMS)",
        "True",
        (f"{TESTS}/test_batches.py::test_a_token_claims_for_no_session_that_is_not_its_own",),
    ),
    Mutant(
        "a form of a foreign page is read as JSON",
        f"{ENDPOINT}:check_is_json",
        "content == FORM and by_program",
        "content == FORM",
        (f"{TESTS}/test_calls.py::test_curl_need_not_say_that_its_body_is_json",),
    ),
    Mutant(
        "a claim does not bind its session to the token",
        "coord.core.tasks.as_session:as_session",
        "session = ensure_session(tx, caller, now)",
        'session = __import__("coord.core.sessions.identify").core.sessions.identify.new_session('
        "tx, caller.session, caller, now)",
        (f"{TESTS}/test_batches.py::test_a_claim_binds_its_session_to_the_token",),
    ),
    Mutant(
        "a token acts for a session that was never registered",
        "coord.core.sessions.identify:_token_of",
        "if session is None and caller.token and",
        "if False and",
        (f"{TESTS}/test_batches.py::test_a_claim_binds_its_session_to_the_token",),
    ),
    Mutant(
        "an operator claims by force inside of another command",
        "coord.transports.hub.identity:check_command",
        'isinstance(command, AsSession) and getattr(command.command, "force", False)',
        "False",
        (f"{TESTS}/test_batches.py::test_a_wrapped_claim_by_force_needs_an_admin",),
    ),
    Mutant(
        "a token acts for any session that a request names",
        f"{COMMANDS}:caller_of",
        'session = identity.check_session(given.get("session", ""))',
        'session = given.get("session", "")',
        (f"{TESTS}/test_offsets.py::test_a_request_without_a_session_is_that_of_its_token",),
    ),
    Mutant(
        "an operator takes locks by force",
        "coord.transports.hub.identity:check_command",
        'getattr(command, "force", False)',
        "False",
        (f"{TESTS}/test_offsets.py::test_a_forced_claim_needs_an_admin",),
    ),
    Mutant(
        "a claim names the user that its sender made up",
        "coord.transports.hub.identity:_in_name_of",
        "return replace(command, **dict.fromkeys(names, user)) if names else command",
        "return command",
        (f"{TESTS}/test_offsets.py::test_events_name_user_token_and_address",),
    ),
    Mutant(
        "an event does not say where it came from",
        "coord.engine.engine:Engine._run_one",
        "if job.origin:",
        "if False:",
        (f"{TESTS}/test_offsets.py::test_events_name_user_token_and_address",),
    ),
    Mutant(
        "a part of a path may be any text",
        f"{ENDPOINT}:_check_path",
        'if name != "path":',
        "if False:",
        (f"{EVERY}::test_no_part_of_a_path_makes_the_hub_fail",),
    ),
    Mutant(
        "a header names any text as the repository",
        "coord.transports.hub.authentication:authenticate",
        "    if repository:\n        check_id",
        "    if False:\n        check_id",
        (f"{EVERY}::test_a_huge_offset_or_a_bad_key_is_refused",),
    ),
    Mutant(
        "a path may leave the repository",
        "coord.transports.hub.api.resources:_path",
        "if not names:",
        "if False:",
        (f"{TESTS}/test_founding.py::test_a_path_outside_of_the_repository_is_refused",),
    ),
    Mutant(
        "a client reads a state that is older than what it knows",
        f"{ENDPOINT}:_wait_for_offset",
        "if text is None:",
        "if True:",
        (f"{TESTS}/test_offsets.py::test_a_client_reads_nothing_older_than_it_knows",),
    ),
    Mutant(
        "a key of a request makes nothing happen once",
        f"{ENDPOINT}:Asking.__init__",
        'request.headers.get("idempotency-key", "")',
        '""',
        (f"{TESTS}/test_clock.py::test_the_key_of_a_request_makes_it_happen_once",),
    ),
    Mutant(
        "a token of a project sees the events of all",
        "coord.transports.hub.api.endpoints.events:is_visible",
        "token is None or not token.project or",
        "True or",
        (f"{TESTS}/test_offsets.py::test_a_token_of_a_project_sees_the_events_of_no_other",),
    ),
    Mutant(
        "reports show all projects to a token of one",
        "coord.transports.hub.api.endpoints.rpc:_report",
        "token is not None and token.project",
        "False",
        (f"{TESTS}/test_rpc.py::test_reports_about_the_tenant_are_not_for_a_project",),
    ),
    Mutant(
        "a wait that ended stays in the queue",
        "coord.transports.hub.api.endpoints.waiting:_wait_in_queue",
        'await asking.ask(WithdrawWait(caller, key), command_id="")',
        "pass",
        (f"{TESTS}/test_offsets.py::test_when_nothing_can_be_waited_for_no_request_stays_in_the_queue",),
    ),
    Mutant(
        "a notification is answered",
        "coord.transports.hub.api.endpoints.rpc:_answer",
        "    if request.id is msgspec.UNSET:\n        return None\n",
        "",
        (f"{TESTS}/test_rpc.py::test_notifications_are_carried_out_and_not_answered",),
    ),
    Mutant(
        "the inner protocol takes any text as a name",
        "coord.transports.hub.identity:check_command",
        "check_names(command)",
        "pass",
        (f"{TESTS}/test_calls.py::test_the_inner_protocol_refuses_names_that_are_no_ids",),
    ),
    Mutant(
        "a command inside a command has any names",
        "coord.sdk.validation.commands:check_names",
        "elif isinstance(found, msgspec.Struct):",
        "elif False:",
        ("tests/unit/sdk/validation/test_commands.py",),
    ),
    Mutant(
        "an agent that sends its token as a cookie is a person",
        "coord.transports.hub.identity:Identity.person_session",
        "if token is None or not self.by_cookie or token.session:",
        "if token is None or not self.by_cookie:",
        ("tests/unit/transports/hub/test_identity.py::test_a_token_of_a_session_is_no_person",),
    ),
    Mutant(
        "the person behind a browser looks like an agent",
        "coord.transports.hub.identity:_in_name_of",
        "user=user, person=person",
        "user=user",
        (
            "tests/unit/transports/hub/page/test_acts.py::test_every_act_works_and_the_log_names_its_person_and_address",
        ),
    ),
    Mutant(
        "everybody who may work may stop everybody",
        "coord.transports.hub.identity:role_for",
        "Role.ADMIN if kind.__name__ in ADMIN_COMMANDS else Role.OPERATE",
        "Role.OPERATE",
        ("tests/unit/transports/hub/page/test_acts.py::test_a_role_below_is_refused_each_act",),
    ),
]
