# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport l0rt_device


# Wait for all work of the device: of l0rt's streams, of adopted ones and, where the driver can be told to, of queues
# that l0rt knows nothing of. 1: it is done, 0: the time is up. Interruptible by signals; a lost device raises.
cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil
