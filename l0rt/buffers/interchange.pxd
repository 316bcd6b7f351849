# SPDX-License-Identifier: Apache-2.0
from l0rt.buffers.buffer cimport Buffer
from l0rt.buffers.dlpack cimport Loan

# The memory of a loan as a Buffer. BufferError if it is nowhere that l0rt reaches.
cdef Buffer buffer_of(Loan loan)
