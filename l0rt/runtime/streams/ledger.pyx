# SPDX-License-Identifier: Apache-2.0
"""The ledger: what a process tells others of the memory and the events that it exports, in a file without a name; and
the ledgers of others, which are opened through /proc.

The GIL is the lock of all records here. Nothing keeps a peer from ending in another thread, or a second record of it
from being made, while Python code runs: so pointers are looked up after the last of it.
"""

import os

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free, strtoull
from libc.string cimport strrchr

from l0rt.runtime.lazy cimport on_fork_child

from l0rt.errors import InvalidArgumentError
from l0rt.runtime.streams import handle

cdef extern from "<fcntl.h>" nogil:
    int open_file "open"(const char* path, int flags) noexcept
    enum:
        O_RDONLY, O_CLOEXEC, F_ADD_SEALS, F_GET_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* where, size_t nbytes, int protection, int flags, int file, int64_t offset) noexcept
    int munmap(void* where, size_t nbytes) noexcept
    void* MAP_FAILED
    enum:
        PROT_READ, PROT_WRITE, MAP_SHARED

cdef extern from "<sys/stat.h>" nogil:
    struct stat_record "stat":
        uint64_t st_ino
    int look_at "stat"(const char* path, stat_record* found) noexcept

cdef extern from "<errno.h>" nogil:
    int errno
    int ENOENT, ESRCH

cdef extern from "<unistd.h>" nogil:
    int close(int file) noexcept
    Py_ssize_t read(int file, void* bytes, size_t count) noexcept

cdef extern from "<stdio.h>" nogil:
    int snprintf(char* text, size_t size, const char* form, ...) noexcept

cdef enum:
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL   # no process can shorten what another has mapped
    EVENTS_AT = ENTRIES * 32                            # the size of an entry for a block
    LEDGER_SIZE = EVENTS_AT + ENTRIES * 16

cdef enum:
    UNKNOWN = -1                # no file may be opened, for one
    GONE = 0
    RUNS = 1
    HEADLESS = 2

cdef uint64_t LOOKED_NS = 10_000_000
cdef uint64_t _began = 0
cdef l0rt_peer* _peers = NULL
own.file = -1


cdef uint64_t began_here() except? 0:
    global _began
    if _began == 0:
        _began = process_began(os.getpid())
    return _began


cdef uint64_t process_began(uint64_t pid) noexcept nogil:
    cdef uint64_t began = 0
    return began if process_look(pid, &began) > 0 else 0


cdef int process_look(uint64_t pid, uint64_t* began) noexcept nogil:
    """When a process began. RUNS, HEADLESS: its first thread has ended, and not the last; GONE, UNKNOWN.

    A thread that has no address space any more has ended. Who looks for its files meanwhile, and is not root, is not
    told that they are closed, but that they are root's.
    """
    cdef char text[1024]
    cdef char* word
    cdef bint ended
    cdef int file, i
    cdef Py_ssize_t count
    cdef uint64_t number = 0, threads = 0
    snprintf(text, sizeof(text), "/proc/%llu/stat", <unsigned long long>pid)
    file = open_file(text, O_RDONLY | O_CLOEXEC)
    if file < 0:
        return GONE if errno == ENOENT or errno == ESRCH else UNKNOWN
    count = read(file, text, sizeof(text) - 1)
    close(file)
    text[max(count, 0)] = 0
    word = strrchr(text, c")")              # the name in front may have any characters
    if word == NULL or word[1] == 0:
        return GONE
    word += 2
    ended = word[0] == c"Z" or word[0] == c"X"
    for i in range(4, 24):                  # the number of a word, as in proc(5)
        while word[0] != c" " and word[0] != 0:
            word += 1
        if word[0] != 0:
            word += 1
        number = strtoull(word, NULL, 10)
        if i == 20:
            threads = number
        elif i == 22:
            began[0] = number
        elif i == 23 and number == 0:       # bytes of addresses
            ended = True
    return RUNS if not ended else HEADLESS if threads > 1 else GONE


def began(pid):
    """Return when a process began, in the kernel's ticks; 0 if it does not run. Another may have its number later.

    Returns
    -------
    int
    """
    return process_began(pid)


cdef int ledger_open() except -1:
    """The ledger of this process, which is made with the first export."""
    cdef l0rt_ledger made
    if own.entries != NULL:
        return 0
    file = os.memfd_create("l0rt-ipc", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, LEDGER_SIZE)
        fcntl(<int>file, F_ADD_SEALS, SEALS)
        made.inode = os.fstat(file).st_ino
        ledger_map(&made, file)
    except BaseException:
        os.close(file)
        raise
    if own.entries != NULL:                 # another thread was quicker
        ledger_close(&made)
    else:
        own.file, own.inode, own.entries, own.events = made.file, made.inode, made.entries, made.events
    return 0


cdef int ledger_map(l0rt_ledger* ledger, int file) except -1:
    cdef void* where = mmap(NULL, LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    if where == MAP_FAILED:
        raise MemoryError("a list of what processes export cannot be mapped")
    ledger.file = file
    ledger.entries = <l0rt_entry*>where
    ledger.events = <l0rt_told*>(<char*>where + EVENTS_AT)
    return 0


cdef void ledger_close(l0rt_ledger* ledger) noexcept nogil:
    munmap(ledger.entries, LEDGER_SIZE)
    close(ledger.file)


cdef l0rt_peer* peer_of(uint64_t pid, uint64_t began, int number, uint64_t inode, str what) except NULL:
    cdef l0rt_peer* found
    cdef l0rt_peer made
    if process_began(pid) != began:
        raise handle.ended(pid, what)
    found = peer_known(pid, began, inode)
    if found != NULL:
        return found
    try:
        file = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except PermissionError as refused:
        if process_look(pid, &began) != RUNS:   # it has ended just now
            raise handle.ended(pid, what) from None
        raise PermissionError(
            refused.errno, f"this process must not open what process {pid} exports: {handle.REMEDY}") from None
    except OSError as refused:
        raise InvalidArgumentError(
            f"the process {pid} that exported this {what} has ended, or shares none any more ({refused})") from None
    try:
        check_ledger(file, inode)
        ledger_map(&made.ledger, file)
    except BaseException:
        os.close(file)
        raise
    found = peer_known(pid, began, inode)   # by now another thread may have made it
    if found != NULL:
        ledger_close(&made.ledger)
        return found
    return peer_new(&made.ledger, pid, began, number, inode)


cdef l0rt_peer* peer_known(uint64_t pid, uint64_t began, uint64_t inode) noexcept:
    cdef l0rt_peer* peer = _peers
    while peer != NULL and (peer.pid != pid or peer.began != began or peer.ledger.inode != inode):
        peer = peer.next
    if peer != NULL:
        peer.uses += 1
    return peer


cdef int check_ledger(file, uint64_t inode) except -1:
    status = os.fstat(file)
    if (status.st_ino != inode or <size_t>status.st_size != LEDGER_SIZE or status.st_nlink != 0
            or fcntl(<int>file, F_GET_SEALS) & SEALS != SEALS):
        raise InvalidArgumentError("the handle names a file of another process that is no list of what it exports")
    return 0


cdef l0rt_peer* peer_new(l0rt_ledger* ledger, uint64_t pid, uint64_t began, int number, uint64_t inode) except NULL:
    global _peers
    cdef l0rt_peer* peer = <l0rt_peer*>calloc(1, sizeof(l0rt_peer))
    if peer == NULL:
        ledger_close(ledger)
        raise MemoryError("no host memory for the record of another process")
    peer.pid, peer.began, peer.number, peer.ledger, peer.uses = pid, began, number, ledger[0], 1
    peer.ledger.inode = inode
    peer.next = _peers
    _peers = peer
    return peer


cdef void peer_drop(l0rt_peer* peer) noexcept:
    global _peers
    cdef l0rt_peer** link = &_peers
    peer.uses -= 1
    if peer.uses != 0:
        return
    while link[0] != peer:
        link = &link[0].next
    link[0] = peer.next
    ledger_close(&peer.ledger)
    free(peer)


cdef bint peer_lives(l0rt_peer* peer, uint64_t now_ns) noexcept nogil:
    cdef char path[64]
    cdef stat_record found
    cdef uint64_t began = 0
    cdef int seen
    cdef bint is_sought = now_ns == UINT64_MAX
    if not is_sought and now_ns - peer.looked_ns < LOOKED_NS:
        return True
    seen = process_look(peer.pid, &began)
    if seen == GONE or (seen == HEADLESS and is_sought) or (seen > 0 and began != peer.began):
        return False
    if seen == RUNS:    # one that executes another program keeps its number, and loses its ledger
        snprintf(path, sizeof(path), "/proc/%llu/fd/%d", <unsigned long long>peer.pid, peer.number)
        if look_at(path, &found) == 0:
            if found.st_ino != peer.ledger.inode:
                return False
        elif errno == ENOENT or errno == ESRCH:
            return False
    if not is_sought:
        peer.looked_ns = now_ns
    return True


cdef void _forget() noexcept nogil:
    """In a forked child: the ledger is the parent's, as are those that it had opened. What is mapped stays."""
    global _peers, _began
    cdef l0rt_peer* peer = _peers
    if own.entries != NULL:
        close(own.file)
    own.file, own.entries, own.events = -1, NULL, NULL
    while peer != NULL:
        close(peer.ledger.file)
        peer = peer.next
    _peers = NULL
    _began = 0


on_fork_child(_forget)
