"""Save checkpoints of a session's work, and restore salvaged files."""

from collections.abc import Sequence

from coord.core.errors import Invalid, NotFound, NotOwner, Refused
from coord.core.locks.commands import ListLocks
from coord.integrations.git.changes import CoveredPaths, changes, write_locks
from coord.integrations.git.run import Git, as_text
from coord.integrations.git.salvage.salvage import PREFIX, head_of, save_to_ref
from coord.integrations.git.salvage.swap import is_blocked, swap_files
from coord.integrations.git.writable import require_writable_git
from coord.sdk.client.client import Client


def save_checkpoint(client: Client, why: str) -> str:
    """Save the changed files of this session in a ref and return it; "" if nothing changed."""
    require_writable_git(client.location.repository, "coord salvage keep")
    git, held = _git(client), _held(client)
    paths = [change.path for change in changes(git) if change.path in held]
    return save_to_ref(git, _name(client), paths, why or "a checkpoint")


def restore(client: Client, ref: str, files: Sequence[str] = ()) -> tuple[list[str], str]:
    """Restore files from a ref; return their paths, and the ref of their content before."""
    require_writable_git(client.location.repository, "coord salvage restore")
    git, held = _git(client), _held(client)
    ref = ref if ref.startswith(f"{PREFIX}/") else f"{PREFIX}/{ref}"
    if git.run("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}").code:
        raise NotFound(f"there is no {ref}", hint="coord salvage list shows the refs")
    base = (
        f"{ref}^1"
        if not git.run("rev-parse", "--quiet", "--verify", f"{ref}^1").code
        else git.must("mktree").text
    )
    wanted = CoveredPaths(client.resolve_paths(files))
    listed = git.must("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, ref).names
    paths = [path for path in listed if not files or path in wanted]
    if not paths:
        raise NotFound(f"{ref} has no such file", hint=f"git diff --name-only {base} {ref}")
    for path in paths:
        if path not in held:
            raise NotOwner(f"{as_text(path)} is not locked by this session", hint="run coord lock first")
        if is_blocked(git.folder, path):
            raise Refused(f"something else blocks {as_text(path)}", hint="move it away first")
    before = save_to_ref(git, _name(client), paths, f"before {ref} was restored")
    more, restored = swap_files(git, ref, paths, saved_in=before or head_of(git), name=_name(client))
    left = [path for path in paths if path not in restored]
    if left:
        raise Refused(
            f"{as_text(left[0])} changed during the restore and stays as it is",
            hint="stop the process that writes it",
        )
    return [as_text(path) for path in paths], more or before


def _git(client: Client) -> Git:
    repository = client.location.repository
    if repository is None or repository.root is None:
        raise Invalid("this folder is not a git worktree", hint="run the command inside one")
    return Git(repository.root)


def _held(client: Client) -> CoveredPaths:
    own = client.call(ListLocks(client.caller, own=True))
    return CoveredPaths(lock.resource for lock in write_locks(own))


def _name(client: Client) -> str:
    return client.caller.session or client.caller.agent or "session"
