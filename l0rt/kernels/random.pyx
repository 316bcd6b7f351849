# SPDX-License-Identifier: Apache-2.0
"""Random numbers by kernels: the numbers of `l0rt.philox`, made where they are needed.

The kernels are in random.cl and random_fp64.cl. A device's modules are built at their first use. What no kernel can
make is made on the host and copied: for a stream of a copy engine or of another device, for addresses that are no
multiple of the type's size, for parameters beyond float, and where the device has no double precision.

Launches of a graph take the same kernels from random_graph.cl and random_graph_fp64.cl: where the numbers of a replay
begin, these read in memory of the graph's, which each replay writes anew.
"""

import functools
import os

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t

from l0rt.arguments cimport get_view
from l0rt.kernels.built cimport l0rt_kernel, l0rt_module, module_kernel, module_open, module_release
from l0rt.kernels.launch cimport kernel_launch, l0rt_arg
from l0rt.runtime.current.generator cimport CapturedState, Generator, captured_state, generator_advance
from l0rt.runtime.memory.transfer cimport operand_use, transfer_in
from l0rt.runtime.streams.capture cimport capture_refuse, captures
from l0rt.runtime.streams.hooks cimport KERNEL_ACCESS, call_hooks
from l0rt.runtime.streams.queue cimport about_to_wait, queue_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport ZE_MODULE_FORMAT_IL_SPIRV

from l0rt import callers, lazynumpy as np
from l0rt.errors import ModuleBuildError
from l0rt.philox import _bernoulli_limit, _uniform_parameters
from l0rt.runtime.current.generator import XpuGenerator
from l0rt.runtime.streams.devices import properties

cdef enum:
    MOST_PARAMETERS = 3
    GROUP = 256             # work-items

# By the device's index, and by which module it is.
cdef l0rt_module* _modules[L0RT_MAX_DEVICES][4]
cdef bint _unbuildable[L0RT_MAX_DEVICES][4]
cdef enum:
    FP64 = 1
    IN_GRAPH = 2
cdef tuple CODE = ("random.spv", "random_fp64.spv", "random_graph.spv", "random_graph_fp64.spv")
cdef dict FLOATS = {2: "half", 4: "float", 8: "double"}
cdef dict WHOLE = {1: "char", 2: "short", 4: "int", 8: "long"}


# Where the numbers begin: at a word of a seed's, or so many words behind the state that a capture has.
cdef struct l0rt_beginning:
    uint64_t word
    uint64_t seed
    size_t state            # its address; 0: outside of captures


cdef random_begins(wanted, generator, l0rt_stream* on):
    cdef bint captured = captures(on)
    if type(generator) is XpuGenerator or (captured and isinstance(generator, Generator)):
        return None
    if captured:
        capture_refuse(on, b"a draw from a generator that is not l0rt's")
    return generator.philox_engine_inputs(wanted.words)


cdef int random_fill(l0rt_operand* target, wanted, generator, begins, l0rt_stream* on, bint wait) except -1:
    cdef Py_buffer view
    cdef l0rt_beginning beginning
    if captures(on) and fill_captured(target, wanted, generator, on, wait):
        return 0
    if begins is None:
        seed, offset = (<Generator>generator).state.seed, generator_advance(generator, wanted.words)
    else:
        seed, offset = begins
    if target.nbytes == 0:
        return 0
    if not can_begin(&beginning, seed, offset) or not fill_by_kernel(target, wanted, &beginning, on):
        get_view(wanted.numbers(seed, offset), &view, PyBUF_C_CONTIGUOUS, wanted.kind)
        try:
            transfer_in(target, view.buf, NULL, on, False, wait)
        finally:
            PyBuffer_Release(&view)
    elif wait:
        about_to_wait("random numbers in host memory without non_blocking=True", on)
        with nogil:
            queue_synchronize(on, UINT64_MAX)
    return 0


cdef bint fill_captured(l0rt_operand* target, wanted, generator, l0rt_stream* on, bint wait) except -1:
    """False: the stream is captured no more."""
    cdef CapturedState state
    cdef l0rt_beginning beginning
    if not isinstance(generator, Generator):
        capture_refuse(on, b"a draw from a generator that is not l0rt's")
        return False
    if wait:
        capture_refuse(on, b"a draw into host memory without non_blocking=True")
        return False
    state = captured_state(generator, on)
    if state is None:
        return False
    beginning.word, beginning.seed, beginning.state = state.draw((wanted.words + 3) & ~3), 0, state.place
    if target.nbytes == 0 or fill_by_kernel(target, wanted, &beginning, on):
        return True
    capture_refuse(on, b"a draw that no kernel can make")
    return False


cdef bint can_begin(l0rt_beginning* beginning, seed, offset) except -1:
    """False: the two are not from a Generator of l0rt, and no kernel can begin there."""
    if type(seed) is not int or type(offset) is not int or offset % 4 or not 0 <= seed < 1 << 64 > offset >= 0:
        return False
    beginning.word, beginning.seed, beginning.state = offset, seed, 0
    return True


cdef bint fill_by_kernel(l0rt_operand* target, wanted, const l0rt_beginning* beginning, l0rt_stream* on) except -1:
    """False: no kernel can do that."""
    # what every kernel begins with: the memory, the count, the block and the seed, or the words and the state before
    cdef uint64_t[4] fixed
    cdef l0rt_arg[4 + MOST_PARAMETERS] args
    cdef uint32_t[3] groups = [1, 1, 1]
    cdef uint32_t[3] size = [1, 1, 1]
    cdef uint64_t blocks, count = wanted.count, block_count
    cdef uint32_t used = 4
    cdef l0rt_module* module
    cdef l0rt_kernel* kernel
    cdef bint captured = beginning.state != 0
    cdef size_t i
    cdef bint fits = (on.device == target.device and on.ordinal == on.device.info.compute_ordinal
                      and wanted.dtype.isnative)    # the host swaps bytes
    if not fits or <size_t>target.pointer % <size_t>wanted.dtype.itemsize != 0:
        return False
    name, is_double, block_count, parameters = _kernel_of(wanted.kind, wanted.first, wanted.second, wanted.dtype)
    if parameters is None:
        return False
    module = module_of(on.device, FP64 * is_double + IN_GRAPH * captured)
    if module == NULL:
        return False
    blocks = (count - 1) // block_count + 1
    size[0] = min(<uint32_t>GROUP, module.most_items[0], module.most_items_of_group)
    if (blocks - 1) // size[0] >= module.most_groups[0]:
        return False
    groups[0] = (blocks - 1) // size[0] + 1
    fixed = [<uint64_t>target.pointer, count, beginning.word, beginning.state]
    if not captured:
        fixed[2], fixed[3] = beginning.word // 4, beginning.seed
    for i in range(4):
        args[i] = l0rt_arg(&fixed[i], sizeof(uint64_t))
    for value in parameters:
        args[used] = l0rt_arg(<const char*><bytes>value, len(value))
        used += 1
    kernel = module_kernel(module, name)
    operand_use(target, on)
    with nogil:
        kernel_launch(kernel, groups, size, NULL, args, used, False, on)
    if not captured:
        call_hooks(KERNEL_ACCESS, <uint64_t>on, <uint64_t>target.pointer, target.nbytes, 2)
    return True


@functools.lru_cache(maxsize=256)
def _kernel_of(kind, first, second, dtype):
    """Return the kernel of a `Draw`: its name, whether it is in the module of type double, how many numbers it makes
    of a block, and the bytes of its last arguments, None where its arithmetic cannot have them."""
    is_float = kind in ("uniform", "normal", "exponential")
    name = (FLOATS if is_float else WHOLE)[dtype.itemsize]
    values = parameters_of(kind, first, second, dtype)
    taken = None if values is None else tuple([value.tobytes() for value in values])
    return f"{kind}_{name}".encode(), name == "double", 2 if dtype.itemsize == 8 and kind != "bernoulli" else 4, taken


cdef tuple parameters_of(kind, first, second, dtype):
    work = np.float64 if dtype.itemsize == 8 else np.float32
    if kind == "randint":
        return np.uint64(first & 0xFFFFFFFFFFFFFFFF), np.uint64((second - first) & 0xFFFFFFFFFFFFFFFF)
    if kind == "bernoulli":
        one = np.ones(1, dtype).tobytes()
        return np.uint64(_bernoulli_limit(first)), np.uint64(int.from_bytes(one, "little"))
    if kind == "uniform":
        computed_in, *made = _uniform_parameters(first, second, dtype)
        return tuple(made) if computed_in is work else None
    with np.errstate(over="ignore", under="ignore"):
        made = tuple([work(value) for value in (first, second) if value is not None])
    fits = np.isfinite(made).all() and not (kind == "exponential" and made[0] == 0)
    return made if fits else None


cdef l0rt_module* module_of(l0rt_device* device, int which) except? NULL:
    """NULL: the device cannot have it."""
    cdef l0rt_module* made
    if _modules[device.index][which] != NULL or _unbuildable[device.index][which]:
        return _modules[device.index][which]
    if which & FP64 and not properties(device.index)["has_fp64"]:
        _unbuildable[device.index][which] = True
        return NULL
    with open(os.path.join(os.path.dirname(__file__), CODE[which]), "rb") as file:
        code = file.read()
    try:
        made = module_open(device, ZE_MODULE_FORMAT_IL_SPIRV, code, b"", {})
    except ModuleBuildError as error:
        _unbuildable[device.index][which] = True
        callers.warn(f"the host makes the random numbers of device {device.index}, since its driver does not build "
                     f"the kernels for them: {error}", RuntimeWarning)
        return NULL
    if _modules[device.index][which] == NULL:
        _modules[device.index][which] = made
    else:                       # another thread was first
        module_release(made)
    return _modules[device.index][which]


def built():
    """Return how many modules and kernels there are for random numbers; they stay."""
    cdef l0rt_kernel* kernel
    made = {"module": 0, "kernel": 0}
    for device in range(L0RT_MAX_DEVICES):
        for which in range(4):
            if _modules[device][which] != NULL:
                made["module"] += 1
                kernel = _modules[device][which].kernels
                while kernel != NULL:
                    made["kernel"] += 1
                    kernel = kernel.next
    return made
