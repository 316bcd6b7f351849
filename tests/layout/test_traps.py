# SPDX-License-Identifier: Apache-2.0
"""Each known trap of Level Zero's drivers for streams and events has a test: here is where.

The numbers are those of the list that the design was made from; a trap is what has gone wrong for somebody else.
"""

import re

import pytest

from helpers.patches import PATCHES, WALKS
from helpers.source import ROOT, none_of

TRAPS = {
    2: ("a driver takes the in-order flag and ignores it", {
        "process/test_order.py": ["programs_equal_the_sequential_model", "a_program_without_its_waits_is_found_out"],
        "runtime/test_streams.py": ["work_of_one_stream_runs_in_order"],
    }),
    4: ("a function is there and refuses, or its pointer is NULL", {
        "process/test_traps.py": ["a_function_that_is_there_and_refuses_has_a_fallback"],
        "process/test_drivers.py": ["every_optional_function_has_a_fallback"],
    }),
    5: ("timestamps: bits, wraps, an end before the start, Hz", {
        "runtime/test_events.py": ["elapsed_ticks", "elapsed_time_of_work"],
        "process/test_traps.py": ["a_clock_that_wraps_in_the_middle_of_work"],
    }),
    6: ("elapsed time of events that are not recorded, not complete, not timed", {
        "runtime/test_events.py": ["elapsed_time_names_what_is_missing_in_torchs_order"],
    }),
    7: ("an event is recorded anew while a stream waits for it", {
        "runtime/test_events.py": ["recording_anew_leaves_those_who_wait_alone"],
        "process/test_order.py": ["programs_of_several_threads_on_the_same_streams"],
    }),
    8: ("an event is destroyed in flight", {
        "runtime/test_events.py": ["events_dropped_in_flight_are_recycled", "events_are_dropped_by_other_threads"],
    }),
    9: ("a stream goes with work pending", {
        "runtime/test_held_streams.py": ["a_lease_that_ends_with_work_pending", "an_adopted_stream_dropped_in_flight"],
        "process/test_lifecycle.py": ["exit_is_silent"],
    }),
    10: ("a wait for an event that was never recorded", {
        "runtime/test_events.py": ["an_event_that_was_never_recorded_is_complete_and_holds_nobody_up"],
    }),
    22: ("exit with work pending, live objects, daemon threads; a second interpreter", {
        "process/test_lifecycle.py": ["exit_is_silent", "a_hung_device_and_a_daemon_thread_are_left"],
        "process/test_traps.py": ["a_second_interpreter_is_refused"],
    }),
    23: ("a lost device stays lost, everywhere, and the process exits", {
        "process/test_lifecycle.py": ["a_lost_device_stays_lost_and_the_process_exits"],
        "runtime/test_waits.py": ["a_lost_device_ends_waits", "a_device_lost_in_any_call_stays_lost"],
    }),
    24: ("waits that Ctrl-C cannot interrupt", {
        "process/test_lifecycle.py": ["control_c_interrupts_a_wait_that_never_ends"],
    }),
    25: ("an append blocks, and holds the GIL", {
        "process/test_traps.py": ["an_append_that_blocks_lets_other_threads_run"],
    }),
    26: ("a pool of no events aborts the process", {
        "process/test_traps.py": ["a_pool_of_no_events_is_never_asked_for"],
    }),
    36: ("lists and pools use up the system's mappings", {
        "process/test_traps.py": ["ten_thousand_streams_and_events_do_not_exhaust_the_process"],
    }),
    39: ("the history of memory grows without bound", {
        "runtime/test_history.py": ["the_ring_keeps_the_last_entries"],
    }),
    40: ("an adopted list: who owns it, and for how long", {
        "runtime/test_held_streams.py": [
            "an_adopted_list_orders_its_work",
            "an_adopted_stream_dropped_in_flight",
            "a_current_stream_that_was_given_back",
        ],
    }),
}


@pytest.mark.parametrize("number", TRAPS)
def test_the_trap_has_its_tests(number):
    _, files = TRAPS[number]
    for file, names in files.items():
        text = (ROOT / "tests" / file).read_text()
        for name in names:
            assert re.search(rf"^def test_{name}", text, re.MULTILINE), f"trap {number}: no test_{name} in tests/{file}"


def test_none_is_forgotten():
    assert list(TRAPS) == [2, *range(4, 11), *range(22, 27), 36, 39, 40]


def test_each_line_that_is_changed_to_prove_a_test_is_where_it_was():
    none_of([complaint for patch in (*PATCHES, *WALKS) if (complaint := patch.complaint())])
