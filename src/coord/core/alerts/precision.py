"""How often a rule is right, and when it is muted.

A rule is muted if it was wrong more than `WRONG_MAX` times in its last `WINDOW` alerts that have an outcome:
its precision over them is below 80 %, or can only be so once there are that many. Its alerts are then for
information only, still get outcomes, and take the mute away when they are right often enough.
"""

import msgspec

from coord.core.alerts.schema import RuleRecord

WINDOW = 20
PRECISION_MIN = 0.8
WRONG_MAX = round(WINDOW * (1 - PRECISION_MIN))


def precision(record: RuleRecord) -> float | None:
    """Return the share of right alerts among the newest that have an outcome."""
    outcomes = [right for _, right in record.newest]
    return sum(outcomes) / len(outcomes) if outcomes else None


def with_outcome(record: RuleRecord, number: int, right: bool) -> RuleRecord:
    """Return the record of a rule after an alert got its outcome, for the first time or another one."""
    before = dict(record.newest)
    if number in before:
        changed = 0 if before[number] is right else 1
        counted = (record.right + changed, record.wrong - changed)
        if not right:
            counted = (record.right - changed, record.wrong + changed)
        newest = tuple((each, right if each == number else known) for each, known in record.newest)
    else:
        counted = (record.right + right, record.wrong + (not right))
        newest = (*record.newest, (number, right))[-WINDOW:]
    wrong = sum(not known for _, known in newest)
    return msgspec.structs.replace(
        record, right=counted[0], wrong=counted[1], newest=newest, muted=wrong > WRONG_MAX
    )
