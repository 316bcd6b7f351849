# SPDX-License-Identifier: Apache-2.0
"""The function table: Level Zero's entry points, resolved once for the process."""

from l0rt.ze.api cimport l0rt_ze_table, ze_result_t

cdef extern from *:
    """
    #include "l0rt/ze_functions.h"
    typedef struct { const char *name, *since; int required; size_t offset; } l0rt_ze_entry;
    #define L0RT_REQUIRED(since, name, args) {#name, #since, 1, offsetof(l0rt_ze_table, name)},
    #define L0RT_OPTIONAL(since, name, args) {#name, #since, 0, offsetof(l0rt_ze_table, name)},
    static const l0rt_ze_entry l0rt_ze_entries[] = {L0RT_ZE_FUNCTIONS(L0RT_REQUIRED, L0RT_OPTIONAL)};
    #define L0RT_ZE_ENTRIES ((int)(sizeof(l0rt_ze_entries) / sizeof(l0rt_ze_entries[0])))
    static ze_result_t l0rt_ze_forked(void) { return ZE_RESULT_ERROR_UNINITIALIZED; }
    """
    ctypedef struct l0rt_ze_entry:
        const char* name
        const char* since
        int required
        size_t offset
    const l0rt_ze_entry l0rt_ze_entries[]
    int L0RT_ZE_ENTRIES
    ze_result_t l0rt_ze_forked() noexcept nogil

cdef l0rt_ze_table _table
ze = &_table
alive = 0
forked = 0


cdef void leave_driver() noexcept nogil:
    """In a forked child: what still calls the driver is answered here, for its threads and locks are the parent's."""
    global alive, forked
    cdef void** pointer
    cdef int i
    alive = 0
    forked = 1
    for i in range(L0RT_ZE_ENTRIES):
        pointer = <void**>(<char*>ze + l0rt_ze_entries[i].offset)
        if pointer[0] != NULL:
            pointer[0] = <void*>l0rt_ze_forked


def entry_points():
    """Return every entry point that l0rt may call: ``(name, since, required)``."""
    return [
        (l0rt_ze_entries[i].name.decode(), l0rt_ze_entries[i].since.decode().replace("_", "."),
         bool(l0rt_ze_entries[i].required))
        for i in range(L0RT_ZE_ENTRIES)
    ]


def fill(address):
    """Fill the table from ``address(name)``; return the required names that are missing, and fill nothing then."""
    found = [address(name) for name, _, _ in entry_points()]
    cdef int i
    cdef size_t pointer
    missing = [l0rt_ze_entries[i].name.decode() for i in range(L0RT_ZE_ENTRIES)
               if l0rt_ze_entries[i].required and not found[i]]
    if missing:
        return missing
    global alive
    for i in range(L0RT_ZE_ENTRIES):
        pointer = found[i]
        (<void**>(<char*>ze + l0rt_ze_entries[i].offset))[0] = <void*>pointer
    alive = 1
    return []


def missing():
    """Return the optional entry points that the loaded library does not have."""
    cdef int i
    return [l0rt_ze_entries[i].name.decode() for i in range(L0RT_ZE_ENTRIES)
            if (<void**>(<char*>ze + l0rt_ze_entries[i].offset))[0] == NULL]
