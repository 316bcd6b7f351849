# SPDX-License-Identifier: Apache-2.0

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport ze_command_list_handle_t

cdef l0rt_stream* pool_stream(l0rt_device* device, int priority) except NULL nogil
cdef l0rt_stream* stream_by_id(l0rt_device* device, int64_t id) except NULL nogil
# 1: all streams of the device are idle, but adopted ones unless `adopted`; 0: the time is up.
cdef int streams_synchronize(l0rt_device* device, uint64_t timeout_ns, bint adopted) except -1 nogil
cdef void context_rest(l0rt_device* device) noexcept nogil
# The device's streams one after another: NULL begins, NULL ends.
cdef l0rt_stream* next_stream(l0rt_device* device, l0rt_stream* last) noexcept nogil

# A stream for one holder, and its return. `copies`: on an engine that only copies, if the device has one.
cdef l0rt_stream* lease_stream(l0rt_device* device, int priority, bint copies) except NULL
cdef void return_stream(l0rt_stream* stream) noexcept
# A stream over a list of other software. Each adoption needs one release.
cdef l0rt_stream* adopt_list(l0rt_device* device, ze_command_list_handle_t list, owner) except NULL
# The stream over this list, l0rt's own or adopted; NULL for none.
cdef l0rt_stream* find_list(l0rt_device* device, ze_command_list_handle_t list) noexcept
cdef void hold_adopted(l0rt_stream* stream) noexcept
cdef void release_adopted(l0rt_stream* stream) noexcept

# Wait for all work of the device: of l0rt's streams, of adopted ones and, where the driver has the call, of queues
# that l0rt knows nothing of. 1: it is done, 0: the time is up. Interruptible by signals; a lost device raises.
cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil
