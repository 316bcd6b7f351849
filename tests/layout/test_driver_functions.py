# SPDX-License-Identifier: Apache-2.0
"""The page about the CPU driver's functions has each, and the source says what the specification says."""

import re

from pages.driver_functions import ABSENT, DONE, DRIVER, UNSUPPORTED, in_tables, page, specified, states

from helpers.source import plant


def test_the_page_has_every_function():
    assert len(specified()) == 405
    assert sorted(re.findall(r"`(ze\w+)`", page())) == sorted(name for _, _, name in specified())


def test_tables_are_those_of_the_specification():
    ours = in_tables()
    assert ours, "the tables are read, not skipped"
    filled = {table for table, _, _ in ours}
    assert sorted(ours) == sorted(row for row in specified() if row[0] in filled)
    for table in filled:  # the order is that of the entries
        assert [r for r in ours if r[0] == table] == [r for r in specified() if r[0] == table]


def test_what_is_in_a_table_is_there_and_nothing_else():
    filled = {name for _, _, name in in_tables()}
    assert {name for name, state in states().items() if state != ABSENT} == filled


def test_it_bites(tree):
    before = states(tree)
    absent = (tree / DRIVER / "base/absent.c").read_text()
    plant(tree, f"{DRIVER}/base/absent.c", absent.replace("ABSENT(zeDeviceReserveCacheExt)\n", ""))
    plant(tree, f"{DRIVER}/base/planted.c", "CPU_EXPORT ze_result_t zeRTASBuilderCreateExt(void) {\n")
    after = states(tree)
    assert (before["zeDeviceReserveCacheExt"], after["zeDeviceReserveCacheExt"]) == (UNSUPPORTED, ABSENT)
    assert (before["zeRTASBuilderCreateExt"], after["zeRTASBuilderCreateExt"]) == (ABSENT, DONE)
    assert page(tree) != page()
