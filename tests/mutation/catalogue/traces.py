"""Mutants of traces: nothing is lost, nothing leaves the machine by itself."""

from tests.mutation.mutant import Mutant

_FOLLOWER = "tests/unit/followers/traces/test_follower.py"
_SPANS = "tests/unit/followers/traces/test_spans.py"
_CLASS = "coord.followers.traces.follower:Traces"

MUTANTS = [
    Mutant(
        "spans that were not accepted are forgotten",
        f"{_CLASS}.offset_to_save",
        "min(offset, self._waiting[0].offset - 1) if self._waiting else offset",
        "offset",
        (f"{_FOLLOWER}::test_a_killed_process_repeats_spans_with_their_ids",),
    ),
    Mutant(
        "a refused batch counts as sent",
        f"{_CLASS}._finish",
        "if error is not None:",
        "if False:",
        (f"{_FOLLOWER}::test_a_collector_that_refuses_costs_time_and_no_span",),
    ),
    Mutant(
        "spans are sent to another machine",
        "coord.followers.traces.settings:_is_loopback",
        'ipaddress.ip_address(address.partition("%")[0]).is_loopback',
        "True",
        (f"{_FOLLOWER}::test_another_machine_is_refused",),
    ),
    Mutant(
        "spans of all tenants are sent",
        f"{_CLASS}.wanted",
        "if source.tenant != find_tenant(source.environ):",
        "if False:",
        (f"{_FOLLOWER}::test_only_the_tenant_of_the_person_is_traced",),
    ),
    Mutant(
        "two events of an entry have one span id",
        "coord.followers.traces.spans:span_of",
        "str(logged.offset), str(number)",
        "str(logged.offset)",
        (f"{_SPANS}::test_ids_name_the_event_and_the_store",),
    ),
    Mutant(
        "spans that wait fill the memory",
        f"{_CLASS}.apply",
        "len(self._waiting) > WAITING_MAX and not self._batch",
        "False",
        (f"{_FOLLOWER}::test_memory_is_bounded",),
    ),
]
