# SPDX-License-Identifier: Apache-2.0
# The two functions of what an adaptor takes as its upstream, other than an adaptor; TypeError: it is none.
cdef tuple upstream_functions(upstream)
# The number of a device that somebody names, None for the current one.
cdef int index_named(device) except -1
