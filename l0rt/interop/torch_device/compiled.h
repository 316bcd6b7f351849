/* SPDX-License-Identifier: Apache-2.0 */
// compiled.h: the kernels that torch.compile writes, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace l0rt_torch {

// Return a function that launches a kernel; compiled.cpp has what the arguments mean.
pybind11::object compiled_kernel(std::string name, std::string kinds, uint32_t group_size, bool is_grouped,
                                 pybind11::object load);

// Throw IndexError if a kernel has found an index out of range since the last call.
void check_errors(int device);

} // namespace l0rt_torch
