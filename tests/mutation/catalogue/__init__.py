"""All mutants, in one file for each part of the source."""

from tests.mutation.catalogue import (
    cli,
    damage,
    engine,
    gates,
    git,
    hooks,
    host,
    locks,
    messages,
    plans,
    sandbox,
    sdk,
    sessions,
    shell_effects,
    stores,
    tasks,
)

MUTANTS = [
    *cli.MUTANTS,
    *damage.MUTANTS,
    *engine.MUTANTS,
    *gates.MUTANTS,
    *git.MUTANTS,
    *hooks.MUTANTS,
    *host.MUTANTS,
    *locks.MUTANTS,
    *messages.MUTANTS,
    *plans.MUTANTS,
    *sandbox.MUTANTS,
    *sdk.MUTANTS,
    *sessions.MUTANTS,
    *shell_effects.MUTANTS,
    *stores.MUTANTS,
    *tasks.MUTANTS,
]
