"""The last content that holders gave their files.

After a write of its session a hook saves the file byte for byte, together with its `stat`: as a blob under
`refs/coord/salvage/<session>/file-<digest>`, or as a private copy if git ignores the file, because it may be
a secret. While the stat is the same, so is the content.
"""

import os
import stat
from _thread import get_native_id  # a hub answers in many threads
from collections.abc import Sequence

import msgspec

from coord.integrations.git.run import Git
from coord.integrations.shell_effects.call_log import CallFolder, read_file, remove, short, write_file
from coord.integrations.shell_effects.worktree_state import FileStat, file_stat, read_content

BYTES_MAX = 8 << 20
"""Larger files are not saved."""
FILES_MAX = 64
"""How many files of one call are saved."""
REMEMBERED_MAX = 512
PRIVATE = "content-"
"""The name of a private copy starts with this; any other name is the id of a blob."""


class SavedFile(msgspec.Struct, frozen=True, array_like=True):
    """The content of a file at some time: the id of a blob, or the name of a private copy."""

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


def save_content(git: Git, folder: CallFolder, session: str, paths: Sequence[str]) -> dict[str, SavedFile]:
    """Save the present content of files that a session wrote and holds; return what could be saved."""
    wanted = list(dict.fromkeys(paths))[:FILES_MAX]
    saved = store_files(git, folder, wanted)
    _remember(git, folder, session, wanted, saved)
    return saved


def forget_content(git: Git, folder: CallFolder, session: str, paths: Sequence[str]) -> None:
    """Forget the saved content of files that may have changed since."""
    known = saved_by(folder, session)
    stale = [path for path in paths if os.fsencode(path) in known.files]
    if stale:
        _remember(git, folder, session, stale, {})


def store_files(git: Git, folder: CallFolder, paths: Sequence[str]) -> dict[str, SavedFile]:
    """Store the present content of files, byte for byte; a file that changes during that is left out."""
    found = {path: now for path in paths if (now := file_stat(git.folder, path)) is not None}
    small = {path: now for path, now in found.items() if now.size <= BYTES_MAX}
    ignored = ignored_files(git, list(small))
    blobs = _store(git, {path: now for path, now in small.items() if path not in ignored})
    for path in ignored:
        content = read_content(git.folder, path, BYTES_MAX)
        if content is not None:
            blobs[path] = keep_private(folder, content)
    return {
        path: SavedFile(found[path], blob)
        for path, blob in blobs.items()
        if found[path].same_stat(file_stat(git.folder, path))
    }


def keep_private(folder: CallFolder, content: bytes) -> str:
    """Keep a content outside of git, readable by this user only; return its name."""
    name = blob_name(content, PRIVATE)
    new = f"{folder.path}/{name}.{get_native_id()}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
    os.replace(new, f"{folder.path}/{name}")
    return name


def saved_bytes(git: Git, folder: CallFolder, saved: SavedFile) -> bytes | None:
    """Return a saved content; None if it is gone."""
    if not saved.blob.startswith(PRIVATE):
        done = git.run("cat-file", "blob", saved.blob)
        return None if done.code else done.out
    content = read_content(folder.path, saved.blob, BYTES_MAX)
    return content if content is not None and blob_name(content, PRIVATE) == saved.blob else None


def show_saved(folder: CallFolder, saved: SavedFile) -> str:
    """Return the command that prints a saved content."""
    if saved.blob.startswith(PRIVATE):
        return f"cat {folder.path}/{saved.blob}"
    return f"git cat-file blob {saved.blob}"


def _remember(
    git: Git, folder: CallFolder, session: str, paths: Sequence[str], saved: dict[str, SavedFile]
) -> None:
    """Write down the saved contents of a session, and forget those of its other paths."""
    known = saved_by(folder, session)
    orders: list[str] = []
    for path in paths:
        before, now, name = (
            known.files.pop(os.fsencode(path), None),
            saved.get(path),
            _ref(git, session, path),
        )
        if now is not None:
            known.files[os.fsencode(path)] = now
        if now is not None and not now.blob.startswith(PRIVATE):
            orders.append(f"update {name}\0{now.blob}\0\0")
        elif before is not None and not before.blob.startswith(PRIVATE):
            orders.append(f"delete {name}\0\0")
    while len(known.files) > REMEMBERED_MAX:
        path = os.fsdecode(next(iter(known.files)))
        del known.files[os.fsencode(path)]
        orders.append(f"delete {_ref(git, session, path)}\0\0")
    if orders:
        git.quick("update-ref", "--stdin", "-z", stdin="".join(orders).encode())
    if orders or saved:
        write_file(folder.file("saved", session), known)


def drop_content(git: Git, file: str) -> None:
    """Drop the saved files of a session that ended long ago."""
    known = read_file(file, SavedFiles)
    if known is not None:
        saved = ((path, each) for path, each in known.files.items() if not each.blob.startswith(PRIVATE))
        names = [_ref(git, known.session, os.fsdecode(path)) for path, _ in saved]
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
    """Return the object id of a content, by the same hash as another id; or the name of its private copy."""
    import hashlib

    if like.startswith(PRIVATE):
        return f"{PRIVATE}{hashlib.sha256(data).hexdigest()}"
    kind = hashlib.sha1 if len(like) == 40 else hashlib.sha256
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def mark_restored(folder: CallFolder, git: Git, session: str, path: str) -> None:
    """Record the new stat of a file that has its holder's content again."""
    known, now = saved_by(folder, session), file_stat(git.folder, path)
    before = known.of(path)
    if before is not None and now is not None and is_blob(git, path, before.blob):
        known.files[os.fsencode(path)] = SavedFile(now, before.blob)
        write_file(folder.file("saved", session), known)


def ignored_files(git: Git, paths: Sequence[str]) -> set[str]:
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
    from coord.integrations.git.salvage.salvage import PREFIX, ref_name  # slow to import

    return f"{PREFIX}/{ref_name(session)}/file-{short(f'{git.folder}{chr(0)}{path}')}"
