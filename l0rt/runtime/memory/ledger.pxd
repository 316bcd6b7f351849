# SPDX-License-Identifier: Apache-2.0
"""The ledger: what a process tells others of the memory that it exports, in a file without a name."""

from libc.stdint cimport int64_t, uint64_t

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
        F_ADD_SEALS, F_GET_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* where, size_t nbytes, int protection, int flags, int file, int64_t offset) noexcept
    int munmap(void* where, size_t nbytes) noexcept
    void* MAP_FAILED
    enum:
        PROT_READ, PROT_WRITE, MAP_SHARED

cdef extern from "<unistd.h>" nogil:
    int close(int file) noexcept

cdef enum:
    ENTRIES = 1 << 16           # blocks that are exported at once
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL   # no process can shorten what another has mapped

cdef struct l0rt_entry:
    uint64_t generation         # of the handles that are good; 0: none is
    uint64_t offset             # of the block, in the driver's allocation
    uint64_t nbytes
    int sent                    # handles that a process is still to import; atomic
    int unused

cdef enum:
    LEDGER_SIZE = ENTRIES * 32  # the size of an entry
