"""`coord` as a process: its streams, its exit codes, signals while it waits, and what it imports."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import coord as package
from coord.transports.cli.handlers import locks
from coord.transports.cli.main import main
from tests.support.cli import PROGRAM, Coord, started
from tests.support.terminals import Terminal


def run(*words: str, **options) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, **options)


def test_help_and_version_are_plain_text() -> None:
    """CLI-23, CLI-26: help and version answer on stdout with exit 0, and need no store."""
    assert run("--version").stdout == f"coord {package.__version__}\n"
    helped = run("lock", "--help")
    assert helped.returncode == 0
    assert helped.stdout.startswith("usage: coord lock")


def test_python_runs_the_package_itself() -> None:
    """`python -m coord` is the command, also where its program is not on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "coord", "version"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert (answer["ok"], answer["version"]) == (True, package.__version__)
    assert Path(answer["folder"]) == Path(package.__file__).parent
    assert done.stderr.startswith(f"coord {package.__version__} (Python {answer['python']}, in ")


@pytest.mark.parametrize("command", ["", "lock", "deregister", "task", "task next", "help"])
def test_help_is_a_command_too(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    """`coord help COMMAND` prints the same text as `coord COMMAND --help`."""
    assert main([*command.split(), "--help"]) == 0
    expected = capfd.readouterr()
    assert main(["help", *command.split()]) == 0
    assert capfd.readouterr() == expected
    assert expected.out.startswith(f"usage: coord {command}".replace("deregister", "dereg"))


@pytest.mark.parametrize(
    ("command", "message"), [("lokc", "unknown command 'lokc'"), ("task nxet", "task has no verb 'nxet'")]
)
def test_help_for_a_command_that_is_not_known_is_an_error(coord: Coord, command: str, message: str) -> None:
    """A mistyped command is the same error as without `help`."""
    code, answer, line = coord(f"ann help {command}")
    assert (code, answer["error"]["code"]) == (2, "invalid")
    assert line.startswith(f"coord: {message} (did you mean ")


def test_a_bad_line_is_answered_in_json_too() -> None:
    """DESIGN §8: every JSON reply has ok and error; nobody has to parse stderr."""
    done = run("lokc")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["hint"] == "did you mean lock?"
    assert done.stderr == "coord: unknown command 'lokc' (did you mean lock?)\n"


def test_a_terminal_gets_a_table_and_json_when_asked(coord: Coord) -> None:
    """AMB-24, DESIGN §8: aligned columns for a person, JSON with `--json`."""
    coord("ann lock src/app.py --reason rework")
    table = Terminal(*PROGRAM[1:], "--session", "s-bob", "locks")
    assert table.exit_code() == 0
    assert "RESOURCE" in table.shown
    assert "file:src/app.py  write" in table.shown
    assert "{" not in table.shown
    asked = Terminal(*PROGRAM[1:], "--session", "s-bob", "locks", "--json")
    assert asked.exit_code() == 0
    assert '{"ok":true,"locks":[' in asked.shown


def test_the_form_of_an_answer_can_be_chosen(coord: Coord, capfd, monkeypatch) -> None:
    """`-o table` in a pipe is the table of a terminal without colours; flags win over COORD_OUTPUT."""

    def printed(*words: str) -> str:
        assert main(["--session", "s-bob", "locks", *words]) == 0
        out: str = capfd.readouterr().out
        return out

    coord("ann lock src/app.py --reason rework")
    assert printed("-o", "table").startswith("RESOURCE         MODE   FENCE")
    assert "\x1b" not in printed("-o", "table")
    assert printed("-o=wide").startswith("RESOURCE         MODE   FENCE")
    assert printed("-o", "json").startswith('{"ok":true,"locks":[')
    monkeypatch.setenv("COORD_OUTPUT", "table")
    assert printed().startswith("RESOURCE")
    assert printed("-o", "json").startswith("{")
    assert printed("--json").startswith("{")


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        (["locks", "-o", "xml"], "", "-o: unknown value 'xml'"),
        (["locks", "-o"], "", "-o needs a value"),
        (["locks", "--json", "-o", "wide"], "", "--json and -o cannot be combined"),
        (["locks"], "xml", "COORD_OUTPUT: unknown value 'xml'"),
    ],
)
def test_an_unknown_form_is_an_error(
    coord: Coord, words: list[str], environ: str, message: str, monkeypatch, capfd
) -> None:
    """Whatever names the form, a form that does not exist is told with those that do."""
    monkeypatch.setenv("COORD_OUTPUT", environ)
    assert main(words) == 2
    assert message in capfd.readouterr().err


def test_a_person_is_told_who_is_in_the_way_and_gets_the_lock(coord: Coord) -> None:
    """Issue 3, part 4: on a terminal `lock` waits for ever, and says who holds it and the place in line."""
    coord("ann lock main-push")
    waiting = Terminal(*PROGRAM[1:], "--session", "s-bob", "lock", "main-push")
    waiting.wait_for("), position 1 in the queue")
    assert "s for main-push — held by ann (expires in " in waiting.shown
    assert coord("ann unlock main-push").code == 0
    waiting.wait_for("Lock acquired ✓ file:main-push, name:main-push")
    assert waiting.exit_code() == 0


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_withdraws_from_the_line(signum: signal.Signals, code: int, coord: Coord) -> None:
    """DESIGN §6: SIGTERM and SIGINT withdraw, so that the next in line is not kept waiting."""
    coord("ann lock main-push")
    process = started("bob", "lock", "main-push")
    waiters = coord("eve lock main-push --no-wait").answer["position"]
    while waiters < 2:
        assert process.poll() is None, "it ended without waiting"
        waiters = coord("eve lock main-push --no-wait").answer["position"]
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert "Traceback" not in err
    assert coord("eve lock main-push --no-wait").answer["position"] == 1


def test_a_defect_is_one_line_and_a_traceback_only_when_asked(coord: Coord, monkeypatch, capfd) -> None:
    """A defect is answered in the agreed form (70); COORD_DEBUG=1 shows where it is."""

    def broken(_client: object, _args: locks.LocksArgs) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(locks, "locks", broken)
    code, answer, line = coord("ann locks")
    assert (code, answer["error"]["code"]) == (70, "defect")
    assert line.startswith("coord: ZeroDivisionError: a defect")
    assert "\n" not in line
    monkeypatch.setenv("COORD_DEBUG", "1")
    assert "Traceback" in coord("ann locks").line


def test_an_unreadable_store_is_told_with_its_exit_code(coord: Coord, repository: Path) -> None:
    """DESIGN §2, rule 4: doubt refuses: a damaged store is never taken for one without locks."""
    coord("ann lock a.py")
    (repository / ".git/coord/store/coord.db").write_bytes(b"this is no database" * 100)
    for log in (repository / ".git/coord/store").glob("coord.db-*"):
        log.unlink()
    code, answer, _ = coord("bob check a.py")
    assert (code, answer["error"]["code"]) == (70, "corrupt")


def imported(*words: str) -> set[str]:
    """Return the modules that a command line brings in, in a fresh process."""
    show = (
        f"import sys; from coord.transports.cli.main import main; main({list(words)!r}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_a_command_imports_only_what_it_uses(coord: Coord) -> None:
    """Issue 3, speed: help needs no store; a check needs no parser, process or network module of others."""
    assert not imported("--help") & {"msgspec", "sqlite3", "coord.sdk.client.client", "argparse", "json"}
    coord("bob lock b.py")
    brought = imported("--session", "s-ann", "check", "a.py")
    assert {"msgspec", "sqlite3", "coord.transports.cli.handlers.locks"} <= brought
    assert not brought & {
        *("argparse", "asyncio", "subprocess", "psycopg", "typing_extensions", "difflib", "dataclasses"),
        *("hashlib", "json", "pathlib", "random", "socket", "tempfile", "urllib.parse"),
        *("platform", "textwrap", "msgspec.inspect", "msgspec.toml", "msgspec.yaml"),
        *(
            "coord.transports.cli.handlers.guard",
            "coord.transports.cli.handlers.messages",
            "coord.transports.cli.help",
            "coord.transports.cli.waiting.notices",
            "coord.transports.cli.table",
            "coord.transports.cli.waiting.line",
        ),
    }
    brought = imported("--session", "s-ann", "lock", "a.py", "--no-wait")
    assert "coord.core.locks.acquire" in brought
    assert not brought & {"coord.core.locks.deadlock", "coord.sdk.validation.tasks"}
    other_domains = ("tasks", "plans", "routing", "lifecycle", "messages.commands")
    assert not {name for name in brought if name.startswith(tuple(f"coord.core.{d}" for d in other_domains))}


def test_what_msgspec_imports_later_is_there_when_asked_for() -> None:
    """Issue 5, speed: modules that msgspec rarely needs are stood in for, and are the real ones when used."""
    ask = (
        "from coord.host.startup import import_msgspec; import_msgspec(); import msgspec, platform, textwrap;"
        "print(msgspec.json.schema(int), msgspec.inspect.type_info(str), msgspec.toml.decode('a = 1'),"
        "platform.machine() != '', textwrap.dedent(' x'))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("{'type': 'integer'} StrType(")
    assert done.stdout.endswith("{'a': 1} True x\n")


def test_main_without_words_reads_those_of_the_process(monkeypatch, capfd) -> None:
    """What `run`, the entry point of the package, runs: the words of the process are the command line."""
    monkeypatch.setattr(sys, "argv", ["coord", "--version"])
    assert main() == 0
    assert capfd.readouterr().out == f"coord {package.__version__}\n"


def test_the_process_ends_with_the_code_and_all_that_was_said() -> None:
    """`run` leaves at once, without Python's own farewell: nothing that was printed may be lost by that."""
    words = [sys.executable, "-m", "coord.transports.cli.main", "lock", "--no-such-flag"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert msgspec.json.decode(done.stdout)["error"]["code"] == "invalid"
    assert "--no-such-flag" in done.stderr


@pytest.mark.parametrize(
    "command", ["locks", "lock a.py", "doctor", "worktree list", "merge topic", "salvage list", "init --yes"]
)
def test_a_deleted_folder_is_named(coord: Coord, repository: Path, monkeypatch, command: str) -> None:
    """After somebody removed the folder one stands in, each command says so; it is no defect of coord."""
    coord("ann lock a.py")
    folder = repository / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    code, answer, line = coord(f"ann {command}")
    assert (code, answer["error"]["code"]) == (2, "invalid")
    assert line == "coord: the current folder was deleted (cd to a folder that exists)"
