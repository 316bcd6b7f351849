# SPDX-License-Identifier: Apache-2.0
# Placing: memory on a node of the machine, by Linux's memory policies, without libnuma. A refusal changes nothing: the
# memory is then where Linux puts it.

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <unistd.h>
    #define L0RT_NODES 1024
    #define L0RT_NODE_BITS (8 * sizeof(unsigned long))
    #define L0RT_PREFERRED 1  /* MPOL_PREFERRED: another node where this one is full */
    #define L0RT_MOVE 2       /* MPOL_MF_MOVE: pages that are there already, too */

    typedef struct {
      unsigned long old[L0RT_NODES / (8 * sizeof(unsigned long))];
      unsigned long wanted[L0RT_NODES / (8 * sizeof(unsigned long))];
      int mode;
      int is_set;
    } l0rt_placing;

    /* What this thread allocates from now on comes from the node: a driver may fill memory when it is allocated. */
    static void l0rt_placing_begin(l0rt_placing *placing, int node) {
      unsigned i;
      for (i = 0; i < L0RT_NODES / L0RT_NODE_BITS; i++) placing->old[i] = placing->wanted[i] = 0;
      placing->is_set = 0;
      placing->mode = 0;
      if (node < 0 || node >= L0RT_NODES) return;
      placing->wanted[node / L0RT_NODE_BITS] = 1UL << (node % L0RT_NODE_BITS);
      if (syscall(SYS_get_mempolicy, &placing->mode, placing->old, L0RT_NODES + 1UL, 0UL, 0UL) == 0)
        placing->is_set = syscall(SYS_set_mempolicy, L0RT_PREFERRED, placing->wanted, L0RT_NODES + 1UL) == 0;
    }

    /* The thread's policy is what it was; what was allocated, NULL for nothing, gets the node's for pages to come. */
    static void l0rt_placing_end(l0rt_placing *placing, void *ptr, size_t nbytes) {
      unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
      unsigned long first = ((unsigned long)ptr + page - 1) & ~(page - 1);
      unsigned long last = ((unsigned long)ptr + nbytes) & ~(page - 1);
      if (!placing->is_set) return;
      syscall(SYS_set_mempolicy, placing->mode, placing->old, L0RT_NODES + 1UL);
      if (ptr != NULL && last > first)
        syscall(SYS_mbind, first, last - first, L0RT_PREFERRED, placing->wanted, L0RT_NODES + 1UL, L0RT_MOVE);
    }

    /* Whether whoever started this process or thread has given it a policy, as numactl does; -1: Linux does not say. */
    static int l0rt_placing_is_given(void) {
      int mode = 0;
      if (syscall(SYS_get_mempolicy, &mode, NULL, 0UL, 0UL, 0UL) != 0) return -1;
      return mode != 0;
    }
    """
    ctypedef struct l0rt_placing:
        pass
    void l0rt_placing_begin(l0rt_placing* placing, int node) noexcept nogil
    void l0rt_placing_end(l0rt_placing* placing, void* ptr, size_t nbytes) noexcept nogil
    int l0rt_placing_is_given() noexcept nogil
