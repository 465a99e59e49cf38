"""Find tasks that resemble each other: a warning, never a refusal."""

from collections.abc import Iterable

from coord.core import keys
from coord.core.plans.commands import FindSimilarTasks, SimilarTask
from coord.core.similar_words import SIMILAR_ABOVE, overlap, words_of
from coord.core.tasks.schema import Spec
from coord.core.transaction import Transaction

WARNINGS_MAX = 5
COMPARED_MAX = 500


def find_similar_tasks(tx: Transaction, command: FindSimilarTasks, _now: int) -> list[SimilarTask]:
    """Return the unfinished tasks that resemble the given ones, most similar first.

    At most `COMPARED_MAX` are compared: claimed tasks first, then the others in the order of their ids.
    """
    exclude = frozenset(command.exclude)
    others = [name for name in _unfinished(tx, command.project) if name not in exclude]
    theirs = _words(tx, command.project, others[:COMPARED_MAX])
    found = [
        SimilarTask(name, to, share, sorted(mine & words))
        for to, mine in _words(tx, command.project, command.tasks).items()
        for name, words in theirs.items()
        if (share := overlap(mine, words)) > SIMILAR_ABOVE
    ]
    return sorted(found, key=lambda similar: (-similar.share, similar.to, similar.task_id))[:WARNINGS_MAX]


def _unfinished(tx: Transaction, project: str) -> list[str]:
    """Return the first claimed tasks of a project, then its first unfinished ones."""
    claims = [keys.parts(found.key)[2:] for found in tx.scan(keys.BY_SESSION_PREFIX, limit=COMPARED_MAX)]
    claimed = [name for of, name in claims if of == project]
    prefix = keys.unfinished_prefix(project)
    page = tx.scan(prefix, limit=COMPARED_MAX)
    return list(dict.fromkeys((*claimed, *(found.key[len(prefix) :] for found in page))))


def _words(tx: Transaction, project: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the distinctive words of each task that has any."""
    names = list(names)
    tx.prefetch(*(keys.spec(project, name) for name in names))
    specs = {name: tx.get(keys.spec(project, name), Spec) for name in names}
    words = {name: words_of(spec.description) for name, spec in specs.items() if spec is not None}
    return {name: found for name, found in words.items() if found}
