"""A corruption campaign on the files store: damage one file of the folder, and ask everything again."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from coord.stores.open import open_store
from tests.support.stores import damage

ROUNDS = 3_000 if os.environ.get("COORD_SOAK") else 40
KINDS: dict[str, damage.Damage] = {
    "zeroed sector": damage.zeroed(damage.SECTOR),
    "flipped bits": damage.flipped,
    "garbled sector": damage.garbled,
    "truncated": damage.truncated,
}


def test_no_damaged_file_gives_a_wrong_answer(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Zeroed, garbled, truncated files and flipped bits: refused, or answered as before."""
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    damage.fill(f"file://{whole}")

    def answers() -> damage.Answers:
        return damage.ask_all(lambda: open_store(f"file://{copy}"))

    shutil.copytree(whole, copy)
    campaign, rng = damage.Campaign(answers()), random.Random(15)
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    while campaign.rounds < ROUNDS:
        what, name = rng.choice(list(KINDS)), rng.choice(names)
        data = (whole / name).read_bytes()
        changed = KINDS[what](rng, data) if len(data) > 1 else data
        if changed != data:
            shutil.rmtree(copy)
            shutil.copytree(whole, copy)
            (copy / name).write_bytes(changed)
            campaign.add(f"round {campaign.rounds}, {what} in {name}", answers())
    record_property("campaign", str(campaign))
    assert campaign.wrong == []
    assert campaign.refused > campaign.rounds / 2
