"""Find the process at the other end of a TCP connection on this machine.

The kernel lists each end of a connection with its user and the number of its socket, and each process with
the sockets that it has. Both together name the process as surely as SO_PEERCRED does for a unix socket.
"""

import os
import socket
import sys

from coord.host.processes import lineage

TABLE = "/proc/net/tcp"
LOOPBACK = "127.0.0.1"
ESTABLISHED = "01"


def find_peer(port: int, own_port: int, name: bytes) -> int:
    """Return the process of this user that has the end `port` of a connection to `own_port`; 0 if in doubt.

    Only processes count whose name contains `name`. One that has just started a child may share the socket
    with it briefly: the parent counts.
    """
    inode = _inode(port, own_port)
    if not inode:
        return 0
    found = {pid: line[0].parent for pid in _processes(name) if _has(pid, inode) and (line := lineage(pid))}
    first = [pid for pid, parent in found.items() if parent not in found]
    return first[0] if len(first) == 1 else 0


def _inode(port: int, own_port: int) -> str:
    """Return the number of the socket at one end of a loopback connection; "" unless it is of this user."""
    address = int.from_bytes(socket.inet_aton(LOOPBACK), sys.byteorder)
    ends = [f"{address:08X}:{each:04X}" for each in (port, own_port)]
    try:
        with open(TABLE, encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if fields[1:3] == ends and fields[3] == ESTABLISHED and fields[7] == str(os.getuid()):
                    return fields[9]
    except (OSError, ValueError, IndexError):
        return ""
    return ""


def _processes(name: bytes) -> list[int]:
    found = []
    for each in os.listdir("/proc"):
        if not each.isdecimal():
            continue
        try:
            with open(f"/proc/{each}/comm", "rb") as file:
                if name in file.read(64):
                    found.append(int(each))
        except OSError:  # it has ended
            continue
    return found


def _has(pid: int, inode: str) -> bool:
    """Whether a process has a socket open."""
    folder, wanted = f"/proc/{pid}/fd", f"socket:[{inode}]"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") == wanted:
                return True
        except OSError:
            continue
    return False


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started; empty if it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = (each.partition(b"=") for each in file.read().split(b"\0") if b"=" in each)
            return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    except OSError:
        return {}
