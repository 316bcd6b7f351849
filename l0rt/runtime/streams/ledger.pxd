# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<fcntl.h>" nogil:
    struct flock:
        short l_type
        short l_whence
        int64_t l_start
        int64_t l_len
        int l_pid
    int fcntl(int file, int command, ...) noexcept
    enum:
        F_OFD_SETLK, F_OFD_GETLK, F_RDLCK, F_WRLCK, F_UNLCK

cdef enum:
    ENTRIES = 1 << 16           # blocks that are exported at once, and events

cdef struct l0rt_entry:         # a block of memory
    uint64_t generation         # of the handles that are good; 0: none is
    uint64_t offset             # of the block, in the driver's allocation
    uint64_t nbytes
    int sent                    # handles that a process is still to import; atomic
    int unused

cdef struct l0rt_told:          # an event
    uint64_t generation         # of the handles that are good; 0: none is
    int orphaned                # its process has ended before it was signalled; atomic, and set by who finds that out
    int unused

cdef struct l0rt_ledger:
    int file                    # -1: there is none
    uint64_t inode
    l0rt_entry* entries         # NULL: there is none
    l0rt_told* events

cdef struct l0rt_peer:          # a process that exports: its ledger
    uint64_t pid
    uint64_t began
    uint64_t looked_ns          # when it was last seen alive
    int number                  # of the ledger's file there
    l0rt_ledger ledger
    int uses
    l0rt_peer* next

# The byte of the ledger's file that a process locks while its streams wait for an event.
cdef inline int64_t event_byte(const l0rt_ledger* ledger, const l0rt_told* told) noexcept nogil:
    return ENTRIES + (told - ledger.events)


cdef l0rt_ledger own            # of this process
cdef int ledger_open() except -1
# When this process began.
cdef uint64_t began_here() except? 0
# When a process began, in the kernel's ticks; 0: it has ended, or is not seen from here.
cdef uint64_t process_began(uint64_t pid) noexcept nogil
# The ledger of another process that is running, with a use of it; `what` it is to be opened for.
cdef l0rt_peer* peer_of(uint64_t pid, uint64_t began, int number, uint64_t inode, str what) except NULL
cdef void peer_drop(l0rt_peer* peer) noexcept
# Does it still run, as far as this process may see, and has it not become another program? Looked up anew every
# hundredth of a second.
cdef bint peer_lives(l0rt_peer* peer, uint64_t now_ns) noexcept nogil
