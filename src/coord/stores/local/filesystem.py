"""On what kind of file system a store is: locks and syncs over a network do not always hold what they say."""

import os

from coord.stores.health import Check

NETWORK = (
    *(
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "davfs",
        "fuse.davfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
    ),
    *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs"),
)
MOUNTS = "/proc/self/mountinfo"


def place_check(path: str, mounts: str = MOUNTS) -> Check:
    """Look on what kind of file system a path is."""
    kind = file_system_of(os.path.realpath(path), mounts)
    if kind in NETWORK:
        hint = "use a disk of this machine, or a server: coord migrate --to-url URL"
        return Check("place", well=False, text=f"{path} is on a network file system ({kind})", hint=hint)
    return Check("place", well=True, text=f"{path} is on {kind}" if kind else f"{path} is a path here")


def file_system_of(path: str, mounts: str = MOUNTS) -> str:
    """Return the kind of the file system that a real path is on; empty where that cannot be told."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            rows = [line.split(" ") for line in lines]
    except OSError:
        return ""
    best, kind = "", ""
    for row in rows:
        point = _unescaped(row[4])
        if len(point) >= len(best) and f"{path}/".startswith(f"{point.rstrip('/')}/"):  # the last one covers
            best, kind = point, row[row.index("-") + 1]
    return kind


def _unescaped(text: str) -> str:
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text
