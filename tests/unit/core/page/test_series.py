"""The series of the page are about events and fields that exist."""

import msgspec

from coord.core.events import every_event
from coord.core.page.series import BOUNDS_S, COUNTED, COUNTS, EVENTS, LEVELS, SPANS

FIELDS = {
    str(kind.__struct_config__.tag): {field.encode_name for field in msgspec.structs.fields(kind)}
    for kind in every_event()
}


def test_every_rule_is_about_an_event_and_a_field_that_exist() -> None:
    """A field that was renamed would leave a chart empty without a word."""
    wanted = [(event, rule["field"]) for event, found in COUNTS.items() for rule in found if "field" in rule]
    wanted += [(event, rule["field"]) for event, rule in SPANS.items()]
    for level in LEVELS.values():
        begins, ends = level["begins"], level["ends"]
        wanted += [
            (event, name) for part in (begins, ends) for event, names in part.items() for name in names
        ]
        wanted += [(event, level["unless"]) for event in begins if "unless" in level]
    assert FIELDS.keys() >= EVENTS
    assert [each for each in wanted if each[1] not in FIELDS[each[0]]] == []


def test_bounds_rise_and_series_have_one_name() -> None:
    assert [*BOUNDS_S] == sorted({*BOUNDS_S})
    assert len(COUNTED) == len({*COUNTED})
