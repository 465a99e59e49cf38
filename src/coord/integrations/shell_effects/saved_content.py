"""The last content that holders gave their files, and restoring it.

After a write of its session a hook saves the file byte for byte as a blob under
`refs/coord/salvage/<session>/file-<digest>`, together with its `stat`. While the stat is the same, so is the
content.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from coord.integrations.git.run import Git
from coord.integrations.git.salvage.salvage import PREFIX, ref_name
from coord.integrations.git.salvage.swap import open_folder, swap_file
from coord.integrations.shell_effects.call_log import CallFolder, read_file, remove, short, write_file
from coord.integrations.shell_effects.worktree_state import Change, FileStat, file_stat, read_content

BYTES_MAX = 8 << 20
"""Larger files are not saved."""
FILES_MAX = 64
"""How many files of one call are saved."""
REMEMBERED_MAX = 512


class SavedFile(msgspec.Struct, frozen=True, array_like=True):
    """The last content of a file by its holder."""

    file_stat: FileStat
    blob: str


class SavedFiles(msgspec.Struct):
    """The saved files of one session in one worktree, the newest last."""

    session: str
    files: dict[bytes, SavedFile] = {}

    def of(self, path: str) -> SavedFile | None:
        """Return the saved content of a file."""
        return self.files.get(os.fsencode(path))


def saved_by(folder: CallFolder, session: str) -> SavedFiles:
    """Return the saved files of a session."""
    return read_file(folder.file("saved", session), SavedFiles) or SavedFiles(session)


def save_content(git: Git, folder: CallFolder, session: str, paths: Sequence[str]) -> None:
    """Save the present content of files that a session wrote and holds."""
    known = saved_by(folder, session)
    wanted = list(dict.fromkeys(paths))[:FILES_MAX]
    found = {path: now for path in wanted if (now := file_stat(git.folder, path)) is not None}
    ignored = _ignored(git, list(found))
    small = {path: now for path, now in found.items() if now.size <= BYTES_MAX and path not in ignored}
    blobs = _store(git, small)
    orders: list[str] = []
    for path in wanted:
        before, now, name = (
            known.files.pop(os.fsencode(path), None),
            found.get(path),
            _ref(git, session, path),
        )
        if path in blobs and now is not None and now.same_stat(file_stat(git.folder, path)):
            known.files[os.fsencode(path)] = SavedFile(now, blobs[path])
            orders.append(f"update {name}\0{blobs[path]}\0\0")
        elif before is not None:
            orders.append(f"delete {name}\0\0")
    while len(known.files) > REMEMBERED_MAX:
        path = os.fsdecode(next(iter(known.files)))
        del known.files[os.fsencode(path)]
        orders.append(f"delete {_ref(git, session, path)}\0\0")
    if orders:
        git.quick("update-ref", "--stdin", "-z", stdin="".join(orders).encode())
        write_file(folder.file("saved", session), known)


def drop_content(git: Git, file: str) -> None:
    """Drop the saved files of a session that ended long ago."""
    known = read_file(file, SavedFiles)
    if known is not None:
        names = [_ref(git, known.session, os.fsdecode(path)) for path in known.files]
        git.must(
            "update-ref", "--stdin", "-z", stdin="".join(f"delete {each}\0\0" for each in names).encode()
        )
    remove(file)


def is_blob(git: Git, path: str, blob: str) -> bool | None:
    """Whether a file has exactly the content of a blob; None if it cannot be read."""
    data = read_content(git.folder, path, BYTES_MAX)
    if data is None:
        return None if os.path.lexists(f"{git.folder}/{path}") else False
    return blob_name(data, blob) == blob


def blob_name(data: bytes, like: str) -> str:
    """Return the object id of a content, by the same hash as another id."""
    import hashlib

    kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def content_before(git: Git, change: Change, index: str, saved: SavedFile | None) -> tuple[int, bytes] | None:
    """Return mode and content of a file before a change; None if they are not certain."""
    if change.was is not None:
        if saved is None or not saved.file_stat.same_stat(change.was):
            return None
        return saved.file_stat.mode, git.must("cat-file", "blob", saved.blob).out
    if not change.was_clean:
        return None
    entry = git.must(
        "ls-files", "--stage", "-z", "--", change.path, GIT_INDEX_FILE=index, GIT_LITERAL_PATHSPECS="1"
    )
    if len(entry.names) != 1:
        return None
    mode, blob, _ = entry.names[0].partition("\t")[0].split(" ")
    size = git.run("cat-file", "-s", blob)
    if size.code or int(size.text) > BYTES_MAX or mode not in ("100644", "100755", "120000"):
        return None
    shown = git.must("cat-file", "--filters", f":0:{change.path}", GIT_INDEX_FILE=index)
    return int(mode, 8), shown.out


def restore_content(git: Git, path: str, mode: int, content: bytes, blamed: bytes | None) -> bool:
    """Replace the blamed content (None: no file) if it is still there; return whether it was."""
    full = f"{git.folder}/{path}"
    if read_content(git.folder, path, BYTES_MAX) != blamed or (blamed is None and os.path.lexists(full)):
        return False
    folder = open_folder(git.folder, os.path.dirname(path))
    if folder is None:
        return False
    try:
        return _swap(folder, os.path.basename(path), mode, content, blamed)
    except OSError:  # the folder is not writable
        return False
    finally:
        os.close(folder)


def _swap(folder: int, name: str, mode: int, content: bytes, blamed: bytes | None) -> bool:
    """Swap a file; a content that is not the blamed one comes back, and later writes stay."""
    new = _write_beside(folder, mode, content)
    taken = f"{new}-taken"
    try:
        placed = swap_file(folder, name, new, taken)
        if placed and read_content("", taken, BYTES_MAX, folder) == blamed:
            return True
        if placed:
            os.unlink(new, dir_fd=folder)
            swap_file(folder, name, taken, new)
        else:
            with suppress(FileExistsError, FileNotFoundError):
                os.link(taken, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        return False
    finally:
        _remove_spare(folder, new, name, content)
        _remove_spare(folder, taken, name, blamed)


def _remove_spare(folder: int, spare: str, name: str, known: bytes | None) -> None:
    """Remove a spare file if its content is known or in place; any other stays beside the file."""
    with suppress(FileNotFoundError):
        found = os.stat(spare, dir_fd=folder, follow_symlinks=False)
        same = False
        with suppress(FileNotFoundError):
            same = os.path.samestat(found, os.stat(name, dir_fd=folder, follow_symlinks=False))
        if same or read_content("", spare, BYTES_MAX, folder) == known:
            os.unlink(spare, dir_fd=folder)


def mark_restored(folder: CallFolder, git: Git, session: str, path: str) -> None:
    """Record the new stat of a file that has its holder's content again."""
    known, now = saved_by(folder, session), file_stat(git.folder, path)
    before = known.of(path)
    if before is not None and now is not None and is_blob(git, path, before.blob):
        known.files[os.fsencode(path)] = SavedFile(now, before.blob)
        write_file(folder.file("saved", session), known)


def _ignored(git: Git, paths: list[str]) -> set[str]:
    """Return the ignored files: they may be secrets, which must not get into a repository."""
    if not paths:
        return set()
    words = ("--literal-pathspecs", "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--")
    return set(git.quick(*words, *paths).names)


def _store(git: Git, files: dict[str, FileStat]) -> dict[str, str]:
    """Write files into git as they are, and return the ids of the blobs."""
    plain = [path for path, found in files.items() if stat.S_ISREG(found.mode)]
    blobs: dict[str, str] = {}
    if plain:
        done = git.quick("hash-object", "-w", "--no-filters", "--", *(f"./{path}" for path in plain))
        blobs.update(zip(plain, done.text.split(), strict=True))
    for path, found in files.items():
        target = read_content(git.folder, path, BYTES_MAX) if stat.S_ISLNK(found.mode) else None
        if target is not None:
            blobs[path] = git.must("hash-object", "-w", "--no-filters", "--stdin", stdin=target).text
    return blobs


def _ref(git: Git, session: str, path: str) -> str:
    return f"{PREFIX}/{ref_name(session)}/file-{short(f'{git.folder}{chr(0)}{path}')}"


def _write_beside(folder: int, mode: int, content: bytes) -> str:
    """Write a new file beside the one that it will replace, and return its name."""
    new = f".coord-{os.urandom(8).hex()}"
    if stat.S_ISLNK(mode):
        os.symlink(os.fsdecode(content), new, dir_fd=folder)
        return new
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(new, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
    return new
