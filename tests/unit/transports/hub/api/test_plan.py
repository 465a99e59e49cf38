"""What the layout of a plan depends on, whatever other programs have written into the log."""

from coord.core.page.state import Table
from coord.transports.hub.api.endpoints.plan import _laid_out, structure_of


def test_a_number_of_any_size_is_part_of_the_structure() -> None:
    tasks: Table = {
        "shop/a": {"project": "shop", "task": "a", "added_ms": 10**30},
        "b": {"project": ["shop"]},
    }
    assert _laid_out(structure_of(tasks, "shop")).task == ["a"]
