# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint32_t

from l0rt.core.driver cimport Context
from l0rt.core.device cimport Device
from l0rt.core.event cimport EventPool
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream


cdef int ensure() except -1 nogil
cdef int device_total() noexcept nogil
cdef l0rt_device* device_at(int index) except NULL nogil
# Unchecked: the index is below device_total().
cdef l0rt_device* device_record(int index) noexcept nogil
cdef void fill_stream(l0rt_stream* stream, l0rt_device* device, int64_t id, int priority, bint copies) noexcept
# The device with this UUID, which `what` from another process is on.
cdef l0rt_device* device_of_uuid(bytes uuid, str what) except NULL
# What a pickle keeps of a device beside its index, None where nothing more is known; and which index here is meant by
# both: that of the same UUID, else the same; -1 if this process has neither. A forked child looks at what it inherited.
cdef bytes pickled_uuid(int index)
cdef int pickled_index(int index, bytes uuid) except -2
cdef Device core_device(int index)
cdef Context core_context(int index)
cdef EventPool event_pool_for(int index, uint32_t count, bint counter_based, bint interprocess)
