"""Two hosts on a network of their own: each is a set of Linux namespaces at the end of a virtual cable.

A host has its own network, name and machine id, so that nobody takes its processes for neighbours; servers
run on this machine and listen on `Network.address`. Packets are lost by sending them to a machine that is
not there: nobody is told, as on a real network. All of it is gone when the process that made it is.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NUMBERS = range(1, 255)
NOWHERE = "02:00:00:00:00:99"
CABLE = "eth0"
PROGRAMS = ("ip", "unshare", "nsenter", "mount")
ESTABLISHED = "01"

MOVE_IN = """
echo {name} > /proc/sys/kernel/hostname
if [ -e /etc/machine-id ]; then mount --bind {folder}/{name} /etc/machine-id; fi
echo ready
exec cat
"""
"""What the first process of a host does; it ends with whoever started it, and with it the host."""


class Host:
    """One of the hosts."""

    def __init__(self, name: str, folder: Path, far_end: str, address: str, server: str) -> None:
        self.name = name
        self._far_end = far_end
        self._address = address
        self._server = server
        (folder / name).write_text(f"{uuid.uuid4().hex}\n")
        self._first = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "sh", "-ec", MOVE_IN.format(name=name, folder=folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._first.stdout is not None
        try:
            said = self._first.stdout.readline()
            if said != b"ready\n":
                raise OSError(f"no host could be made: {said!r}")
            self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        pid, server, address = str(self._first.pid), self._server, self._address
        ip("link", "add", self._far_end, "type", "veth", "peer", "name", CABLE, "netns", pid)
        ip("address", "add", server, "peer", address, "dev", self._far_end)
        ip("link", "set", self._far_end, "up")
        self._ip("link", "set", "lo", "up")
        self._ip("address", "add", address, "peer", server, "dev", CABLE)
        self._ip("link", "set", CABLE, "up")

    @property
    def enter(self) -> tuple[str, ...]:
        """What to put before a command to run it on this host, as the same process."""
        inside = f"/proc/{self._first.pid}/ns"
        namespaces = [f"--net={inside}/net", f"--mount={inside}/mnt", f"--uts={inside}/uts"]
        return ("nsenter", *namespaces, "env", f"--chdir={ROOT}")

    def lose_questions(self) -> None:
        """From now on nothing that this host sends arrives anywhere."""
        self._ip("neighbour", "replace", self._server, "lladdr", NOWHERE, "dev", CABLE, "nud", "permanent")

    def lose_answers(self) -> None:
        """From now on nothing arrives at this host."""
        ip("neighbour", "replace", self._address, "lladdr", NOWHERE, "dev", self._far_end, "nud", "permanent")

    def cut_off(self) -> None:
        """From now on nothing passes in either direction, and nobody is told."""
        self.lose_questions()
        self.lose_answers()

    def unplug(self) -> None:
        """Take the cable out: whoever sends is told that there is no way."""
        self._ip("link", "set", CABLE, "down")

    def heal(self) -> None:
        """Let everything pass again; what was being sent is sent again, for so TCP does it."""
        self._ip("link", "set", CABLE, "up")
        self._ip("neighbour", "flush", "dev", CABLE, "nud", "all")
        ip("neighbour", "flush", "dev", self._far_end, "nud", "all")

    def connections(self) -> set[str]:
        """Return the ports of this host that are connected to somewhere."""
        lines = Path(f"/proc/{self._first.pid}/net/tcp").read_text().splitlines()[1:]
        return {words[1] for words in map(str.split, lines) if words[3] == ESTABLISHED}

    def close(self) -> None:
        """Remove the host; its processes have ended before."""
        assert self._first.stdin is not None
        assert self._first.stdout is not None
        self._first.stdin.close()
        self._first.stdout.close()
        self._first.wait()
        with contextlib.suppress(OSError):  # else the kernel removes it, some time after the last process
            ip("link", "delete", self._far_end)

    def _ip(self, *words: str) -> None:
        run(*self.enter, "ip", *words)


class Network:
    """The hosts, and the address at which they find the servers."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        number = own_number(stack)
        self.address = f"198.18.{number}.1"
        self.hosts: list[Host] = []
        for at, name in enumerate(("east", "west"), start=2):
            host = Host(name, folder, f"coord-{number}-{at}", f"198.18.{number}.{at}", self.address)
            stack.callback(host.close)
            self.hosts.append(host)

    def heal(self) -> None:
        """Let everything pass again."""
        for host in self.hosts:
            host.heal()


def own_number(stack: contextlib.ExitStack) -> int:
    """Return a number that no other test run on this network has, as long as `stack` is open."""
    for number in NUMBERS:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0coord-hosts-{number}")  # such names belong to a network, as addresses do
        except OSError:
            claim.close()
            continue
        stack.enter_context(claim)
        return number
    raise OSError("no number is left for another network")


def run(*command: str) -> None:
    """Run a program to its end, which must be a good one."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def ip(*words: str) -> None:
    """Change the network of this machine."""
    run("ip", *words)


@contextlib.contextmanager
def networked(folder: Path) -> Iterator[Network]:
    """Two hosts; skip where they cannot be had."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(
            f"hosts of their own take root and {', '.join(missing or PROGRAMS)} (tools/setup servers)"
        )
    with contextlib.ExitStack() as stack:
        try:
            network = Network(folder, stack)
        except OSError as error:
            pytest.skip(f"hosts of their own are not allowed here: {error}")
        yield network
