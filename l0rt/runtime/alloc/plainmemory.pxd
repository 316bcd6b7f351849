# SPDX-License-Identifier: Apache-2.0
"""Plain host memory as a device: the smallest example of a memory's operations."""

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.allocator cimport Memory
from l0rt.runtime.alloc.atomics cimport pthread_mutex_t


cdef struct l0rt_plain_event:
    void* stream
    uint64_t number                 # events, orders and work are counted together
    bint is_done
    l0rt_plain_event* older


cdef struct l0rt_plain_order:       # what the stream was given after `number` waits for the other one's event `behind`
    void* stream
    uint64_t number
    void* other
    uint64_t behind
    l0rt_plain_order* older


cdef struct l0rt_plain_note:        # what happened: a record, an order, an event that is complete, memory taken away
    int kind
    uint64_t subject                # the stream, or the address
    uint64_t number                 # of the event, or bytes


cdef struct l0rt_plain:
    pthread_mutex_t mutex
    uint64_t capacity
    uint64_t used
    uint64_t skew
    int64_t reserves
    int64_t releases
    int64_t records
    int64_t waits
    int64_t drops
    int64_t ranges
    int64_t physicals
    int64_t maps
    int64_t unmaps
    int map_refusals                # after so many more maps, one is refused
    int unmap_refusals              # the same of unmaps
    bint is_held
    int refusal
    int refusals
    int record_code
    int wait_code
    int order_code
    int64_t orders
    l0rt_plain_event* newest       # of those that are not complete
    l0rt_plain_order* newest_order
    uint64_t number
    bint keeps_notes
    l0rt_plain_note* notes
    int64_t note_count
    int64_t note_capacity


cdef class PlainMemory(Memory):
    cdef l0rt_plain plain
