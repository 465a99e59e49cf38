"""The disk of a store: whether it can be written, and whether it is in this machine.

Over a network, locks and syncs do not always keep their promise.
"""

import errno
import os
import tempfile

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
READ_ONLY_HINT = (
    "in a sandbox: a person runs coord init outside of it, which lets Codex write this folder; "
    "elsewhere: check who owns the folder"
)

PROBE_BYTES = 64 * 1024
NEARLY_FULL_BYTES = 64 * 1024 * 1024
NEARLY_FULL_FILES = 1_000
FREE_HINT = "free some space: on a full disk nothing can be locked or released"


def disk_check(folder: str) -> Check:
    """Check that the folder of a store can be written: by a file beside the store, which has no name.

    Permissions are not enough: root has them on a read-only disk, and everybody on a full one.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as probe:
            probe.write(os.urandom(PROBE_BYTES))
            os.fsync(probe.fileno())
        disk = os.statvfs(folder)
    except OSError as error:
        hint = FREE_HINT if error.errno in (errno.ENOSPC, errno.EDQUOT) else READ_ONLY_HINT
        return Check("disk", False, f"{folder} cannot be written: {error.strerror}", hint, stops=True)
    free = disk.f_bavail * disk.f_frsize
    text = f"{folder} can be written; {free // 1024**2} MiB are free"
    if free < NEARLY_FULL_BYTES:
        return Check("disk", False, text, FREE_HINT)
    if disk.f_files and disk.f_favail < NEARLY_FULL_FILES:
        return Check("disk", False, f"{text}, for {disk.f_favail} files", FREE_HINT)
    return Check("disk", True, text)


def location_check(path: str, mounts: str = MOUNTS) -> Check:
    """Check that a path is not on a network file system."""
    kind = file_system_of(os.path.realpath(path), mounts)
    if kind in NETWORK:
        hint = "use a local disk, or migrate to a server: coord migrate --to-url URL"
        return Check("location", well=False, text=f"{path} is on a network file system ({kind})", hint=hint)
    return Check("location", well=True, text=f"{path} is on {kind}" if kind else f"{path} is a local path")


def file_system_of(path: str, mounts: str = MOUNTS) -> str:
    """Return the kind of the file system of a real path; empty if it is unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            rows = [line.split(" ") for line in lines]
    except OSError:
        return ""
    best, kind = "", ""
    for row in rows:
        point = _unescaped(row[4])
        if len(point) >= len(best) and f"{path}/".startswith(
            f"{point.rstrip('/')}/"
        ):  # the last mount covers earlier ones
            best, kind = point, row[row.index("-") + 1]
    return kind


def _unescaped(text: str) -> str:
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text
