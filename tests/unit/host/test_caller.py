"""In whose name a command comes."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from coord.core.errors import Invalid
from coord.core.identity import Caller, Process
from coord.core.ids import check_id
from coord.host.caller import Flags, find_caller, find_tenant, made_id
from coord.host.processes import ancestors, describe
from tests.support.git_folders import added_worktree, made_repository

CLAUDE = {"CLAUDE_CODE_SESSION_ID": "7c2b5f84-1", "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
ASK = """
import msgspec, os, sys
from coord.host.caller import find_caller
sys.stdout.write(msgspec.json.encode(find_caller(dict(os.environ))).decode() + "\\n")
"""

SHELL = ("sh", "-c", '"$0" "$@"; true')
"""A shell that stays while the command runs."""


def asked(*before: str, **environ: str) -> Caller:
    """Return whom a command of its own process takes for its caller."""
    plain = {"PATH": os.environ["PATH"], "USER": "ada", **environ}
    done = subprocess.run(
        [*before, sys.executable, "-c", ASK], env=plain, capture_output=True, text=True, check=True
    )
    return msgspec.json.decode(done.stdout.splitlines()[0], type=Caller)


def this_process() -> Process:
    process = describe(os.getpid())
    assert process is not None
    return process


def test_a_person_is_the_leader_of_a_terminal_session() -> None:
    """DESIGN §5: `user@host:<leader pid>-<start>`, the same for every command of one terminal."""
    caller = asked("setsid", "--wait", *SHELL)
    leader = caller.process
    assert leader is not None
    assert leader == caller.process_ancestors[0]
    assert caller.session == f"ada@{os.uname().nodename}:{leader.pid}-{leader.start}"
    assert (caller.user, caller.tool) == ("ada", "")
    assert asked().session == asked().session != caller.session
    assert check_id("session", caller.session)


def test_a_terminal_outside_of_the_namespace_is_known_by_the_outermost_process() -> None:
    """DESIGN §5: in a container whose terminal session began outside of it, the leader's pid reads 0."""
    caller = asked("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *SHELL, *SHELL)
    assert caller.session.startswith(f"ada@{os.uname().nodename}:1-")
    assert caller.terminal
    assert caller.process is None, "pid 1 ends with everything in its container, so it proves no death"
    assert 1 not in [each.pid for each in caller.process_ancestors]


def test_two_terminals_are_two_owners() -> None:
    """DESIGN §5: two session leaders of one user, as two terminals have them; each with two commands."""
    ask = f"{sys.executable} -c '{ASK}'"
    callers = []
    for _ in range(2):
        done = subprocess.run(
            ["setsid", "--wait", "sh", "-c", f"{ask}; {ask}; true"],
            capture_output=True,
            text=True,
            check=True,
        )
        callers.append([msgspec.json.decode(line, type=Caller) for line in done.stdout.splitlines()])
    (a, again), (b, _) = callers
    assert a.session == again.session != b.session
    assert a.process is not None
    assert a.process == again.process == a.process_ancestors[0]


def test_a_command_that_leads_its_own_session_is_not_its_owner() -> None:
    """lessons.md bug 9: the pid of a one-shot command is never the session's; its parent is."""
    first, second = asked("setsid", "--wait"), asked("setsid", "--wait")
    assert first.process is not None
    assert first.process == first.process_ancestors[0]
    command = f"[sys.executable, '-c', {ASK!r}]"
    code = f"import subprocess, sys\nfor _ in 'ab': subprocess.run({command}, start_new_session=True)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    one, two = (msgspec.json.decode(line, type=Caller) for line in done.stdout.splitlines())
    assert one.session == two.session not in (first.session, second.session)


def test_nobody_can_be_told() -> None:
    """Doubt refuses: a command without any ancestor is not taken for everybody."""
    code = "from coord.host.caller import *\ntry:\n find_caller({})\nexcept Invalid as error: print(error)"
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "setsid", "--wait", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "COORD_SESSION_ID" in done.stdout


def test_an_explicit_session_is_first_and_takes_no_pid_from_the_tool() -> None:
    """lessons.md bug 5: a sub-agent named by COORD_SESSION_ID shares the tool's process, but is not it.

    SES-43.
    """
    environ = {**CLAUDE, "CLAUDE_PID": str(os.getppid()), "COORD_SESSION_ID": "child-1"}
    caller = find_caller(environ)
    assert (caller.session, caller.process, caller.tool) == ("child-1", None, "claude")
    caller = find_caller(environ, Flags(session="flag-1"))
    assert (caller.session, caller.process) == ("flag-1", None)


def test_the_tool_names_its_session_and_process() -> None:
    """DESIGN §5: the agent tool's own variable; its pid is an ancestor of the command."""
    caller = asked(**CLAUDE, CLAUDE_PID=str(os.getpid()))
    assert (caller.session, caller.tool) == ("7c2b5f84-1", "claude")
    assert caller.process == this_process()


@pytest.mark.parametrize("pid", ["1234567", "x", "", "-1", "self"])
def test_a_pid_that_is_no_ancestor_is_not_believed(pid: str) -> None:
    """A variable outlives its process and crosses namespaces; only an ancestor is what it says."""
    caller = find_caller({**CLAUDE, "CLAUDE_PID": str(os.getpid()) if pid == "self" else pid})
    assert (caller.session, caller.process) == ("7c2b5f84-1", None)


@pytest.mark.parametrize(
    ("environ", "session", "tool"),
    [
        ({"CODEX_THREAD_ID": "01a1e0eb-2", "CODEX_SANDBOX": "seatbelt"}, "01a1e0eb-2", "codex"),
        ({"GEMINI_SESSION_ID": "g-3", "GEMINI_CLI": "1"}, "g-3", "gemini"),
        ({"COPILOT_AGENT_SESSION_ID": "c-4", "COPILOT_CLI": "1"}, "c-4", "copilot"),
        ({**CLAUDE, "AI_AGENT": "claude"}, "7c2b5f84-1", "claude"),
        ({"CLAUDECODE": "1"}, "", "claude"),
        ({"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, "", "codex"),
        ({"GEMINI_CLI": "1"}, "", "gemini"),
        ({"CURSOR_AGENT": "1"}, "", "cursor"),
        ({"OPENCODE": "1"}, "", "opencode"),
        ({"AI_AGENT": "new"}, "", "agent"),
        ({**CLAUDE, "CODEX_THREAD_ID": "01a1e0eb-2"}, "", "claude+codex"),
        ({**CLAUDE, "CURSOR_AGENT": "1"}, "", "claude+cursor"),
    ],
)
def test_signs_of_a_tool_never_make_a_person(environ: dict[str, str], session: str, tool: str) -> None:
    """DESIGN §5: signs of an agent tool but no session, or of two tools: left to the registered ancestors."""
    caller = find_caller(environ)
    assert (caller.session, caller.tool) == (session, tool)


@pytest.mark.parametrize(
    "environ", [{"CODEX_HOME": "/x"}, {"GEMINI_API_KEY": "k"}, {"ANTHROPIC_API_KEY": "k"}]
)
def test_settings_of_a_tool_are_no_signs_of_it(environ: dict[str, str]) -> None:
    """A person who has configured a tool is still a person."""
    assert find_caller({"USER": "ada", **environ}).session.startswith("ada@")


def test_a_process_is_given() -> None:
    """SES-3, Issue 3: the session's pid is given by `--pid`, for whatever kind of caller."""
    for environ in ({}, CLAUDE, {"COORD_SESSION_ID": "s"}, {"CLAUDECODE": "1"}):
        assert find_caller(environ, Flags(pid=os.getppid())).process == describe(os.getppid())


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 10**20])
def test_a_number_that_is_no_process_is_refused(pid: int) -> None:
    """A mistyped pid would be a session that is dead from the start."""
    with pytest.raises(Invalid, match="--pid"):
        find_caller({}, Flags(pid=pid))


def test_a_process_that_is_gone_is_refused() -> None:
    """The same for one that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    with pytest.raises(Invalid, match="no such process"):
        find_caller({}, Flags(pid=process.pid))


def test_the_rest_comes_from_the_environment_and_flags() -> None:
    """DESIGN §5: each variable has a flag, which is stronger."""
    environ = {
        "COORD_SESSION_ID": "s",
        "COORD_AGENT": "builder",
        "COORD_ROLE": "worker",
        "COORD_PROJECT": "shop",
        "COORD_PARENT_SESSION": "p",
        "COORD_TENANT": "acme",
        "USER": "ada",
    }
    caller = find_caller(environ, cwd="/here")
    assert (caller.agent, caller.role, caller.project, caller.parent) == ("builder", "worker", "shop", "p")
    assert (caller.user, caller.cwd, caller.host) == ("ada", "/here", os.uname().nodename)
    assert caller.process_ancestors == tuple(ancestors())
    assert find_tenant(environ) == "acme"
    flags = Flags(session="S", agent="A", role="R", project="P", parent="Q")
    caller = find_caller(environ, flags)
    assert (caller.session, caller.agent, caller.role, caller.project, caller.parent) == (
        "S",
        "A",
        "R",
        "P",
        "Q",
    )
    assert find_tenant(environ, "other") == "other"
    assert find_tenant({}) == "local"


def test_the_project_is_the_repository(tmp_path: Path) -> None:
    """DESIGN §5: by default the repository's name, equal in every worktree; there is one outside too.

    CFL-31.
    """
    main = made_repository(tmp_path / "my shop!")
    worktree = added_worktree(tmp_path / "my shop!", tmp_path / "feature")
    assert find_caller(CLAUDE, repository=main).project == "my-shop"
    assert find_caller(CLAUDE, repository=worktree).project == "my-shop"
    assert find_caller(CLAUDE).project == "default"


@pytest.mark.parametrize(
    "variable",
    [
        *(
            "COORD_SESSION_ID",
            "COORD_PARENT_SESSION",
            "COORD_AGENT",
            "COORD_ROLE",
            "COORD_PROJECT",
            "COORD_TENANT",
        ),
        *("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID"),
    ],
)
@pytest.mark.parametrize("value", ["a b", "../x", "a\nb", "x" * 129, "-x", "é"])
def test_a_bad_value_is_refused_by_its_name(variable: str, value: str) -> None:
    """lessons.md bug 12: whatever comes from outside is checked, and the error says where it came from."""
    with pytest.raises(Invalid, match=f"is not a valid {variable}"):
        _ = find_caller({variable: value}), find_tenant({variable: value})


def test_a_bad_flag_is_refused_by_its_name() -> None:
    """The same for flags."""
    with pytest.raises(Invalid, match="is not a valid --agent"):
        find_caller({}, Flags(agent="a b"))


def test_a_user_without_variables_has_the_name_of_the_account() -> None:
    """As in a container or a job of cron; the session keeps the number, which no directory server changes."""
    caller = find_caller({})
    assert caller.user == made_id(pwd.getpwuid(os.getuid()).pw_name, "")
    assert caller.session.startswith(f"uid{os.getuid()}@")


def test_a_user_without_an_account_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run processes under a uid that no file names."""
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    assert find_caller({}).user == "uid3999999999"


@pytest.mark.parametrize("user", ["DOMAIN\\ada", "ada lovelace", "", "äöü", "-", "x" * 300, ".@+"])
def test_an_odd_user_still_has_a_session(user: str) -> None:
    """What the system calls a person is not the person's fault."""
    caller = find_caller({"USER": user})
    assert check_id("session", caller.session)
    assert check_id("user", caller.user)


@pytest.mark.parametrize(
    ("text", "made"), [("shop", "shop"), ("a b", "a-b"), (".x", "x"), ("日本", "z"), ("", "z")]
)
def test_an_id_is_made_of_a_name(text: str, made: str) -> None:
    """As near to the name as an id can be."""
    assert made_id(text, "z") == made


@pytest.mark.parametrize(("given", "number"), [("", 0), ("1", 1), ("8", 8), ("20", 20)])
def test_the_environment_limits_agents(given: str, number: int) -> None:
    """CFL-36: MAX_AGENTS is 1 to 20; without it nothing is limited."""
    assert find_caller({"USER": "ada", "MAX_AGENTS": given}).max_agents == number


@pytest.mark.parametrize("given", ["0", "21", "-1", "x", "1.5", "٣", " 5", "9" * 5000])
def test_another_number_of_agents_is_refused(given: str) -> None:
    """CFL-36: a typing error is no limit."""
    with pytest.raises(Invalid, match="MAX_AGENTS"):
        find_caller({"USER": "ada", "MAX_AGENTS": given})


@pytest.mark.parametrize(
    ("environ", "person"),
    [
        ({}, True),
        ({"COORD_SESSION_ID": "s1"}, False),
        ({"COORD_AGENT": "otto"}, False),
        ({"AI_AGENT": "1"}, False),
        (CLAUDE, False),
    ],
)
def test_a_person_is_no_agent(environ: dict[str, str], person: bool) -> None:
    """CFL-36: only a terminal without any sign of an agent counts as a person."""
    assert find_caller({"USER": "ada", **environ}).person is person
