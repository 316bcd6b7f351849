# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t

from l0rt.ze.api cimport ze_device_handle_t, ze_driver_handle_t

# What a driver can do for one device, from three separate facts: the pointer is there, the extension is advertised,
# the build is trusted. A capability that is a flag counts only after one probing creation succeeded.
ctypedef struct l0rt_caps:
    bint inorder
    bint list_sync
    bint relaxed
    bint free_ext
    bint usable_mem
    bint memmap               # host memory that is there already can be imported
    bint vmm
    bint global_ts
    bint device_status
    bint device_sync          # the driver can wait for all queues of a device, also for those of other software
    bint init_drivers
    bint cb_pool              # event pools of counter-based events (for in-order immediate lists)
    bint event_ipc            # an event can be shared with another process
    bint memory_ipc           # so can memory
    bint range_ipc            # and addresses that physical memory is mapped to
    bint cb_events            # any way of counter-based events
    bint copy_offload         # an in-order list can be asked to give copies to a copy engine
    bint global_offset        # global ids of a launch can begin above 0
    bint mutable_lists        # launches in closed lists can be changed: all arguments, and both sizes
    bint graph                # lists can be recorded as a graph of the driver's, which is replayed as a whole
    bint graph_forks          # and others join the recording where they wait for it
    uint32_t api_version      # major << 16 | minor
    uint32_t driver_version   # as zeDriverGetProperties gives it
    uint32_t build            # Intel's build number, 0 for another driver


cdef int caps_probe(ze_driver_handle_t driver, ze_device_handle_t device, l0rt_caps* caps) except -1
cdef set extension_names(ze_driver_handle_t driver)
