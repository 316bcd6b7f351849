# SPDX-License-Identifier: Apache-2.0
"""Public calls as a user types them: `test_types.py` has mypy look at each expression. Nothing runs it."""

from __future__ import annotations

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
from l0rt import bench, config, errors, ipc, logs, memory, profiler, sanitizer, telemetry

SOURCE = "kernel void add(global float* x, float y) { x[get_global_id(0)] += y; }"


def devices() -> str:
    if not acc.is_available():
        return ""
    acc.init(lazy=True)
    acc.set_device_index(0)
    number: int = acc.device_count() + acc.current_device_index() + xpu.device_count()
    name: str = acc.get_device_name(0) + xpu.get_device_name()
    properties = xpu.get_device_properties(0)
    total: int = properties.total_memory
    here: l0rt.device | None = acc.current_accelerator()
    peer: bool = acc.can_device_access_peer(0, 0)
    where = l0rt.device("xpu", 0)
    return f"{number} {name} {total} {here} {peer} {where.index} {where.type}"


def streams() -> float:
    stream = acc.Stream(priority=-1)
    begin, end = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    with stream:
        begin.record()
        end.record(stream)
    stream.wait_stream(acc.current_stream())
    stream.wait_event(begin)
    done: l0rt.Event = stream.record_event()
    finished: bool = stream.query() and done.query()
    end.synchronize()
    stream.synchronize()
    with acc.stream(stream), acc.device_index(0):
        acc.synchronize()
    acc.set_stream(acc.default_stream())
    acc.wait_all(begin, end)
    first = acc.wait_any(begin, end, timeout=1.0)
    with acc.StreamGuard(stream), acc.DeviceGuard(0), acc.MultiStreamGuard([stream]):
        pass
    with acc.Timer() as timer:
        pass
    return begin.elapsed_time(end) + timer.elapsed_time() + float(finished) + float(first is not None)


def buffers() -> int:
    x = l0rt.empty(1 << 20)
    y = l0rt.empty(1 << 20, kind="host", device=0)
    x.fill(0).fill(pattern=bytes(4))
    x.copy_from(bytes(1 << 20)).copy_from(y, non_blocking=True)
    target: bytearray = x.copy_to(bytearray(1 << 20))
    part: l0rt.Buffer = x[16:32]
    l0rt.memcpy(x, y, 1 << 20)
    l0rt.memset(x, 0, 16)
    l0rt.memcpy2d(x, 10, y, 10, 10, 2)
    x.uniform_(0, 1).normal_().exponential_()
    x.record_stream(acc.current_stream())
    z = l0rt.from_dlpack(y)
    size: int = x.ptr + x.nbytes + len(part) + len(target) + z.nbytes
    text: str = x.kind + str(x.device)
    array = x.numpy(np.float32)
    again = l0rt.from_numpy(array, kind="host").numpy(np.dtype(np.float32), (2, -1))
    pinned = l0rt.pinned((4, 4), np.float32)
    count: int = array.size + again.nbytes + pinned.itemsize
    x.free()
    return size + count + len(text)


def kernels() -> str:
    try:
        module = l0rt.compile(SOURCE)
    except (l0rt.ModuleBuildError, l0rt.CompilerNotFoundError) as error:
        return str(error)
    kernel = module["add"]
    x = l0rt.empty(4096)
    kernel[16, 64](x, 2.0)
    kernel.launch(x, 1.0, groups=16, group_size=64, stream=acc.current_stream())
    names: list[str] = list(module)
    again = l0rt.Module(b"", device=0)
    return names[0] + kernel.name + str(again)


def graphs() -> int:
    graph = acc.Graph()
    with acc.graph(graph):
        l0rt.empty(16).fill(0)
    graph.replay()
    with graph:
        pass
    return len(graph.nodes) + len(graph.pools())


def statistics() -> int:
    acc.empty_cache()
    acc.reset_peak_memory_stats()
    acc.set_per_process_memory_fraction(0.5)
    free, total = acc.get_memory_info()
    print(acc.memory_summary(), memory.memory_reserved())
    pool = acc.MemPool()
    with acc.use_mem_pool(pool):
        pass
    stats: dict[str, int] = acc.memory_stats()
    return acc.memory_allocated() + acc.max_memory_reserved() + stats["num_ooms"] + free + total


def random() -> int:
    acc.manual_seed(1)
    generator = l0rt.Generator()
    generator.manual_seed(3)
    state: bytes = generator.get_state()
    with acc.fork_rng():
        acc.set_rng_state(state)
    return acc.initial_seed() + len(acc.get_rng_state())


def around() -> str:
    with config.patch({"fp32_precision": "tf32"}):
        config.set("driver", "cpu")
    value = config.explain()
    with profiler.profile() as profile:
        pass
    sanitizer.host_access(l0rt.empty(16, kind="host"), writes=False)
    measured = bench.time(acc.synchronize, repeats=3)
    print(len(measured.device), profile.table(), [event.name for event in profile.events])
    return value + l0rt.get_include() + l0rt.cpu_driver_path() + str(profile)


try:
    print(devices(), streams(), buffers(), kernels(), graphs(), statistics(), random(), around())
except errors.L0Error as error:
    print(error.code, ipc, logs, telemetry)
