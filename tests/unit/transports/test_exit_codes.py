"""Errors as callers see them: exit code, code, message, hint."""

import pytest

from coord.core import errors
from coord.transports import exit_codes

CLASSES = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.CoordError)
]


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        (errors.Refused, 1),
        (errors.LimitReached, 1),
        (errors.Invalid, 2),
        (errors.NotFound, 4),
        (errors.Trimmed, 4),
        (errors.Unavailable, 69),
        (errors.Corrupt, 70),
        (errors.Busy, 75),
        (errors.Unknown, 75),
        (errors.Unsupported, 78),
    ],
)
def test_each_error_has_the_exit_code_of_the_design(kind: type[errors.CoordError], exit_code: int) -> None:
    """CLI-24, DESIGN §8: 1 refused, 2 invalid, 4 not found, 69, 70, 75, 78."""
    assert exit_codes.exit_code_of(kind) == exit_code


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_no_error_is_left_without_an_exit_code(kind: type[errors.CoordError]) -> None:
    """A class of errors added later has a base that is in the table."""
    named = any(base in exit_codes.EXIT_CODES for base in kind.__mro__)
    assert named or kind is errors.CoordError
    assert exit_codes.exit_code_of(kind) in exit_codes.EXIT_MEANINGS


def test_an_unknown_outcome_names_the_command_id_to_repeat() -> None:
    """DESIGN §8: outcome unknown is 75, and the same command id makes the second attempt harmless."""
    lost = exit_codes.failure(errors.Unknown(), "c-17")
    assert lost.exit_code == 75
    assert lost.as_error()["command_id"] == "c-17"
    assert "--command-id c-17" in lost.hint
    assert "command_id" not in exit_codes.failure(errors.Refused("no"), "c-17").as_error()


def test_a_defect_is_told_from_damage() -> None:
    """Any other exception is a defect of ours: 70, and where to look."""
    shown = exit_codes.failure(ZeroDivisionError("division by zero"))
    assert shown.exit_code == 70
    assert shown.code == "defect"
    assert "COORD_DEBUG" in shown.hint
    assert exit_codes.failure(KeyboardInterrupt()).exit_code == 130
