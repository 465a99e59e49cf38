"""Processes of this machine: real children, real namespaces, real other users."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from coord.core.identity import Process, ProcessState
from coord.host.processes import ancestors, describe, end_process, group_runs, probe, this_machine
from tests.support.servers.server import poll_until

WAIT_FOR_END = "import sys; sys.stdin.read()"


@contextmanager
def child(code: str = WAIT_FOR_END, *before: str) -> Iterator[subprocess.Popen[str]]:
    """Run a Python child until the block ends; it lives as long as its standard input is open."""
    process = subprocess.Popen(
        [*before, sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()


def said(code: str, *before: str, about: Process | None = None) -> str:
    """Return what a Python child prints; it may ask for `process`."""
    known = f"import msgspec\nprocess = msgspec.json.decode({msgspec.json.encode(about)!r}, type=Process)\n"
    imports = "from coord.core.identity import Process\nfrom coord.host.processes import *\n"
    done = subprocess.run(
        [*before, sys.executable, "-c", imports + (known if about else "") + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    return done.stdout.strip()


def described(pid: int) -> Process:
    process = describe(pid)
    assert process is not None
    return process


def test_this_machine_is_known() -> None:
    """DESIGN §5: machine id, boot id and pid namespace are what Linux says, equal for every process.

    SES-26.
    """
    here = this_machine()
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert here.boot == file.read().strip()
    assert here.machine
    assert here.namespace.split(".")[0] == str(os.stat("/proc/self/ns/pid").st_ino)
    assert said("print(this_machine())") == str(here)


def test_a_process_is_described_by_pid_and_start() -> None:
    """DESIGN §5: pid and start time, with where they mean something; two processes never look the same."""
    with child() as one, child() as other:
        first, second = described(one.pid), described(other.pid)
        assert first == described(one.pid)
        assert (first.pid, second.pid) == (one.pid, other.pid)
        assert first.start > 0
        assert (first.machine, first.boot, first.namespace) == this_machine()
        assert described(os.getpid()).start <= first.start


@pytest.mark.parametrize("pid", [0, -1, 2**31, 10**30])
def test_what_has_no_process_is_not_described(pid: int) -> None:
    """What cannot be told is None."""
    assert describe(pid) is None


def test_a_name_full_of_parentheses_is_read() -> None:
    """engines.md §6: fields are counted from behind the last parenthesis, whatever the command is called."""
    code = """
        import sys
        with open("/proc/self/comm", "w") as file:
            file.write(") R 1 (x) 5")
        print("named", flush=True)
        sys.stdin.read()
    """
    with child() as plain, child(code) as odd:
        assert odd.stdout is not None
        assert odd.stdout.readline() == "named\n"
        assert described(odd.pid).start >= described(plain.pid).start
        assert ancestors(odd.pid)[0].pid == os.getpid()


def test_ancestors_are_nearest_first() -> None:
    """DESIGN §5: the caller is found through its ancestors, so the list begins with the parent."""
    found = ancestors()
    assert found[0] == described(os.getppid())
    with child() as process:
        assert ancestors(process.pid) == [described(os.getpid()), *found]
        assert ancestors(process.pid, most=1) == [described(os.getpid())]
    assert said("print(ancestors()[0].pid, len(ancestors()))") == (f"{os.getpid()} {len(found) + 1}")


def test_no_agent_runs_in_the_first_process() -> None:
    """Issue 15: everybody descends from pid 1, and it never ends: it is neither an ancestor nor a proof."""
    first = described(1)
    assert first not in ancestors()
    evidence = probe(first)
    assert evidence.life is ProcessState.FOREIGN
    assert "pid 1" in evidence.detail
    assert probe(msgspec.structs.replace(first, boot="another")).life is ProcessState.UNKNOWN


def test_ancestors_of_nothing() -> None:
    """A process that is gone has no ancestors that could be told."""
    with child() as process:
        pass
    assert ancestors(process.pid) == []


def test_a_running_process_is_alive_and_a_reaped_one_dead() -> None:
    """PRB-28, DESIGN §5: death is proven when the pid is gone; the evidence says so in words."""
    with child() as process:
        known = described(process.pid)
        assert probe(known).life is ProcessState.ALIVE
    evidence = probe(known)
    assert evidence.life is ProcessState.DEAD
    assert evidence.detail == f"pid {known.pid} started {known.start} is gone"


def test_a_pid_that_was_given_away_again_is_dead() -> None:
    """SES-20, engines.md §6: the same pid with another start time is another process."""
    with child() as process:
        known = described(process.pid)
        earlier = msgspec.structs.replace(known, start=known.start - 1)
        assert probe(earlier).life is ProcessState.DEAD
        assert str(known.start) in probe(earlier).detail


def test_a_zombie_is_dead() -> None:
    """A process that ended, but whose parent has not asked for its exit code yet, does nothing any more."""
    with child() as process:
        known = described(process.pid)
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert probe(known).life is ProcessState.DEAD


def test_a_first_thread_that_ended_is_not_the_death_of_its_process() -> None:
    """Linux shows a process as zombie when only its first thread has ended; the others still work."""
    code = """
        import ctypes, os, sys, threading
        main = os.getpid()
        def work():
            while open(f"/proc/{main}/stat").read().rpartition(")")[2].split()[0] != "Z":
                pass
            print("working", flush=True)
            sys.stdin.read()
            os._exit(0)
        threading.Thread(target=work).start()
        ctypes.CDLL(None).pthread_exit(None)
    """
    with child(code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        assert probe(described(process.pid)).life is ProcessState.ALIVE


def test_a_process_of_another_user_is_alive() -> None:
    """DESIGN §5: not being allowed to signal a process (EPERM) means that it is there."""
    with child() as process:
        known = described(process.pid)
        code = """
            import os
            try:
                os.kill(process.pid, 0)
                print("allowed")
            except PermissionError:
                print(probe(process).life)
        """
        as_nobody = f"import os; os.setuid(65534)\n{textwrap.dedent(code)}"
        assert said(as_nobody, about=known) == "alive"


@pytest.mark.parametrize("field", ["machine", "boot", "namespace"])
@pytest.mark.parametrize("value", ["", "elsewhere"])
def test_nothing_is_proven_from_elsewhere(field: str, value: str) -> None:
    """DESIGN §5: machine, boot and pid namespace must all equal the prober's; unknown never frees."""
    with child() as process:
        known = described(process.pid)
    assert probe(known).life is ProcessState.DEAD
    evidence = probe(msgspec.structs.replace(known, **{field: value}))
    assert evidence.life is ProcessState.UNKNOWN
    assert field in evidence.detail


@pytest.mark.parametrize("pid", [0, -1, 2**31, 10**30])
def test_a_number_that_is_no_pid_proves_nothing(pid: int) -> None:
    """A record may hold anything; 0 and -1 would even mean whole groups of processes."""
    assert probe(Process(pid, 1, *this_machine())).life is ProcessState.UNKNOWN


def test_another_pid_namespace_proves_nothing() -> None:
    """DESIGN §5: the pid 1 of a container is not ours; each side sees the other as unknown."""
    unshare = ("unshare", "--pid", "--fork", "--mount-proc")
    with child() as process:
        known = described(process.pid)
        assert said("print(probe(process).life)", *unshare, about=known) == "unknown"
    assert said("print(probe(process).life)", *unshare, about=known) == "unknown"
    code = "import os, msgspec; print(msgspec.json.encode(describe(os.getpid())).decode())"
    inside = msgspec.json.decode(said(code, *unshare), type=Process)
    assert inside.pid == 1
    assert probe(inside).life is ProcessState.UNKNOWN


def test_a_foreign_proc_describes_nobody() -> None:
    """Where /proc shows the pids of another namespace, they would be taken for ours: nothing can be told."""
    code = "import os; print(os.getpid(), describe(os.getpid()), ancestors(), repr(this_machine().namespace))"
    assert said(code, "unshare", "--pid", "--fork") == "1 None [] ''"


def test_shifted_time_proves_nothing() -> None:
    """A time namespace shifts the start times that Linux shows; they are not compared across it."""
    with child() as process:
        known = described(process.pid)
        code = f"print(describe({process.pid}).start, probe(process).life)"
        start, life = said(code, "unshare", "--time", "--boottime", "100000", "--fork", about=known).split()
        assert int(start) != known.start
        assert life == "unknown"


def sleeping(script: str = "echo ready; exec sleep 1000") -> "subprocess.Popen[str]":
    """A process that runs until it is ended."""
    process = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def collected(process: "subprocess.Popen[str]") -> int:
    process.communicate(timeout=60)
    return process.returncode


def test_a_process_that_is_proven_to_be_this_one_is_ended() -> None:
    """SIGTERM, and SIGCONT so that a stopped process gets it."""
    process = sleeping()
    process.send_signal(signal.SIGSTOP)
    described = describe(process.pid)
    assert described is not None
    assert end_process(described, 60)
    assert collected(process) == -signal.SIGTERM


def test_a_process_that_ignores_the_request_is_killed() -> None:
    process = sleeping("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    described = describe(process.pid)
    assert described is not None
    assert end_process(described, 0.1)
    assert collected(process) == -signal.SIGKILL


@pytest.mark.parametrize("other", [{"start": 1}, {"boot": "another"}, {"machine": "b"}, {"namespace": "1.1"}])
def test_another_process_with_the_same_pid_is_left_alone(other: dict[str, Any]) -> None:
    """A pid alone proves nothing: start time, boot, machine and namespace have to agree."""
    process = sleeping()
    described = describe(process.pid)
    assert described is not None
    assert not end_process(msgspec.structs.replace(described, **other), 0.1)
    assert process.poll() is None
    process.kill()
    collected(process)


def test_a_group_runs_until_its_last_process_has_ended() -> None:
    """A process that is dead but not collected yet does not count."""
    process = subprocess.Popen(["sleep", "1000"], process_group=0)
    assert group_runs(process.pid)
    process.kill()
    poll_until(lambda: not group_runs(process.pid), 30, "it still runs")
    assert process.wait(60) == -signal.SIGKILL
    assert not group_runs(process.pid)
