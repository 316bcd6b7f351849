"""Beside the cache: which pool a thread allocates from, and what memory is filled with before somebody has it.

While any thread is in a pool, or memory is filled, no stream has an arena at hand: every allocation asks. So the hit
path needs not ask, and costs nothing more while there is neither. Who asks finds the arena in its own thread's
record: the default pool's, of the stream, or what the innermost route remembers. A route remembers for as long as it
is the innermost one, and holds its pool, so that what it remembers stays right.
"""

from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport load, load_int, mutex_lock, mutex_unlock, pthread_mutex_t, store, store_int
from l0rt.runtime.alloc.heap cimport block_free
from l0rt.runtime.current.thread cimport on_thread_end
from l0rt.runtime.streams.queue cimport lane_fill

from l0rt import config

cdef extern from *:
    """
    static pthread_mutex_t l0rt_routes_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t routes_lock "l0rt_routes_lock"

cdef enum:
    UNKNOWN = -2                    # not looked up yet

cdef int routes_active = 0          # routes of all threads, and one more while memory is filled
cdef l0rt_stream* streams_at_hand   # those that have an arena at hand
cdef l0rt_route* left_behind        # of threads that ended inside of a pool
filling = UNKNOWN
asking = 0


cdef l0rt_owner* routed(l0rt_thread* thread, int device) noexcept nogil:
    """The pool that a thread allocates from on a device; NULL: the default one."""
    cdef l0rt_route* route = <l0rt_route*>thread.routes if thread != NULL else NULL
    while route != NULL and 0 <= route.device != device:
        route = route.outer
    return route.owner if route != NULL else NULL


cdef void route_keep(l0rt_thread* thread, l0rt_stream* stream, l0rt_arena* arena) noexcept nogil:
    """Let the thread's next allocation for the stream find the arena; and everybody's, while nobody has to ask."""
    global streams_at_hand
    cdef l0rt_route_entry* entry
    if arena.owner == NULL:
        store(&stream.default_arena, arena)     # one a stream: a second writer writes the same
    if thread != NULL and thread.routes != NULL:
        entry = entry_of(<l0rt_route*>thread.routes, stream)
        entry.stream = stream
        entry.arena = arena
    if load_int(&routes_active) != 0:
        return
    mutex_lock(&routes_lock)
    if routes_active == 0 and stream.arena == NULL:
        stream.next_at_hand = streams_at_hand
        streams_at_hand = stream
        store(&stream.arena, arena)
    mutex_unlock(&routes_lock)


cdef void routes_change(int change) noexcept nogil:
    """Count routes, and what makes everybody ask like one. The lock is held."""
    global streams_at_hand
    cdef l0rt_stream* stream
    store_int(&routes_active, routes_active + change)
    store_int(&asking, routes_active != 0 and load_int(&filling) < 0)
    while routes_active != 0 and streams_at_hand != NULL:
        stream = streams_at_hand
        streams_at_hand = stream.next_at_hand
        store(&stream.arena, NULL)


cdef void routes_push(l0rt_thread* thread, l0rt_route* route) noexcept nogil:
    """The calling thread allocates from the route's pool from now on."""
    route.outer = <l0rt_route*>thread.routes
    thread.routes = route
    mutex_lock(&routes_lock)
    routes_change(1)
    mutex_unlock(&routes_lock)


cdef l0rt_route* routes_pop(l0rt_thread* thread) noexcept nogil:
    """The calling thread leaves its innermost route, which is the caller's from now on."""
    cdef l0rt_route* route = <l0rt_route*>thread.routes
    thread.routes = route.outer
    mutex_lock(&routes_lock)
    routes_change(-1)
    mutex_unlock(&routes_lock)
    return route


cdef void leave_behind(l0rt_thread* thread) noexcept nogil:
    """A thread ends: it is in no pool any more. Its routes wait for who may touch Python objects."""
    global left_behind
    cdef l0rt_route* route
    mutex_lock(&routes_lock)
    while thread.routes != NULL:
        route = <l0rt_route*>thread.routes
        thread.routes = route.outer
        route.outer = left_behind
        store(<void**>&left_behind, route)
        routes_change(-1)
    mutex_unlock(&routes_lock)


cdef l0rt_route* routes_left() noexcept nogil:
    """The routes of threads that ended inside of a pool: the caller's from now on."""
    global left_behind
    cdef l0rt_route* routes = NULL
    if load(<void**>&left_behind) != NULL:
        mutex_lock(&routes_lock)
        routes = left_behind
        store(<void**>&left_behind, NULL)
        mutex_unlock(&routes_lock)
    return routes


cdef int set_filling(byte) except -1:
    """Fill memory with this byte from now on; None: with nothing."""
    global filling
    cdef int before
    cdef int after = -1 if byte is None else byte
    with nogil:
        mutex_lock(&routes_lock)
        before = filling
        store_int(&filling, after)
        routes_change(<int>(after >= 0) - <int>(before >= 0))
        mutex_unlock(&routes_lock)
    return 0


cdef int fill_host(void* pointer, size_t nbytes) except -1:
    """Fill memory that the host writes to and no device uses, if the configuration says so."""
    cdef int byte
    if load_int(&filling) == UNKNOWN:
        set_filling(config.alloc_conf().fill_uninitialized)
    byte = load_int(&filling)
    if byte >= 0:
        with nogil:
            memset(pointer, byte, nbytes)
    return 0


cdef int fill_block(l0rt_stream* stream, l0rt_block* block, unsigned char byte) except -1 nogil:
    """Fill all of a block that nobody has yet, in the order of the stream that it is for."""
    if (<int (*)(l0rt_stream*, void*, const void*, size_t, size_t) noexcept nogil>lane_fill)(
            stream, block.ptr, &byte, 1, block.size) < 0:
        block_free(block)
        return -1
    return 0


on_thread_end(leave_behind)
