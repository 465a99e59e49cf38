"""The command as it is typed on two hosts, each in a clone of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.git_folders import git
from tests.support.network import Host, Network
from tests.support.servers.kinds import Servers
from tests.support.servers.redis import RedisServer

PATH = os.environ["PATH"]
COORD = str(Path(sys.executable).with_name("coord"))
ORIGIN = "https://git.example/shop.git"


def coord(host: Host, folder: Path, *words: str, open_s: float = 30) -> tuple[int, str]:
    """Run a command in the clone of a host; return its exit code and what it says.

    `open_s` is how long it tries to reach a server that is away.
    """
    surroundings = [
        "env",
        "-i",
        f"--chdir={folder}",
        f"HOME={folder}",
        f"PATH={PATH}",
        f"COORD_SESSION={host.name}",
        f"COORD_CONNECT_TIMEOUT={open_s}",
    ]
    command = [*host.enter, *surroundings, COORD, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_clones_on_two_hosts_share_their_locks(
    network: Network, far_servers: Servers, tmp_path: Path
) -> None:
    """STO-29: clones of one origin are one repository, wherever they are; a host without a way to the store
    is told so (69) and gets nothing."""
    url = far_servers.get(RedisServer).fresh_store_url()
    east, west = network.hosts
    clones = {}
    for host in network.hosts:
        clones[host] = folder = tmp_path / host.name
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "remote", "add", "origin", ORIGIN)
        assert coord(host, folder, "init", "--url", url)[0] == 0
    assert coord(east, clones[east], "lock", "src/a.py")[0] == 0
    code, output = coord(west, clones[west], "lock", "src/a.py", "--no-wait")
    assert code == 1
    assert "east" in output, "who holds it"
    east.unplug()
    assert coord(east, clones[east], "unlock", "src/a.py", open_s=0)[0] == 69
    east.heal()
    assert coord(east, clones[east], "unlock", "src/a.py")[0] == 0
    assert coord(west, clones[west], "lock", "src/a.py", "--no-wait")[0] == 0
