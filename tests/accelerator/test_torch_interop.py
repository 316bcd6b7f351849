# SPDX-License-Identifier: Apache-2.0
"""l0rt in torch's own registry of device interfaces; in a process of its own, since torch's import leaves traces."""

import os
import re

import pytest

from helpers.process import run_python
from helpers.source import ROOT
from helpers.torch_script import SCRIPT

CODE = """
import warnings
warnings.simplefilter("ignore")
import torch
from torch._dynamo.device_interface import DeviceInterface, get_interface_for_device, get_registered_device_interfaces
import l0rt.interface, l0rt.xpu, l0rt.accelerator as acc
from l0rt.interop.torch import register

theirs = get_interface_for_device("cuda")
ours = register()
assert get_interface_for_device("xpu") is get_interface_for_device("xpu:1") is ours
assert get_interface_for_device(torch.device("xpu", 1)) is ours is l0rt.interface.get_interface_for_device("xpu")
assert get_interface_for_device("cuda") is theirs and "cpu" in dict(get_registered_device_interfaces())
assert "xpu:2" not in dict(get_registered_device_interfaces())
assert issubclass(ours, DeviceInterface) and issubclass(ours, l0rt.interface.DeviceInterface)

assert ours.is_available() and ours.device_count() == 2
ours.set_device(1)
assert ours.current_device() == 1 and ours.exchange_device(0) == 1 and ours.maybe_exchange_device(1) == 0
stream, event = ours.Stream(), ours.Event(enable_timing=True)
with ours.stream(stream):
    assert ours.current_stream() == stream and ours.get_raw_stream(1) == stream.native_handle
    event.record()
event.synchronize()
ours.synchronize()
ours._set_stream_by_id(stream.stream_id, 1, "xpu")
assert ours.current_stream() == stream
with ours.device(0):
    assert ours.current_device() == 0
ours.Worker.set_device(1)
assert ours.Worker.current_device() == 1 and ours.Worker.get_device_properties(0).is_software
assert ours.get_device_properties(1).index == 1 and ours.get_compute_capability()
assert ours.memory_allocated() == 0 and ours.is_dtype_supported(torch.float32) and not ours.is_triton_capable()
assert isinstance(ours.is_bf16_supported(), bool)
missing = [n for n in dir(DeviceInterface) if n[0] != "_" and getattr(ours, n) is vars(DeviceInterface).get(n)]
assert missing == [], missing

from torch._inductor.runtime.hints import DeviceProperties
for index in range(2):
    found = DeviceProperties.create(torch.device("xpu", index))
    slices = acc.get_device_properties(index).gpu_subslice_count
    assert (found.type, found.index, found.multi_processor_count) == ("xpu", index, slices)
    assert found.warp_size == 32 and found.cc == ours.get_compute_capability(index)
print("done")
"""


LENT = """
import gc, torch, l0rt
x = l0rt.empty(1024, kind="host").fill(0)
tensor = torch.from_dlpack(x).view(torch.float32)
assert tensor.data_ptr() == x.ptr and tensor.shape == (256,)
tensor += 1.5
assert x.numpy("f4").tolist() == [1.5] * 256
del x
gc.collect()
assert tensor.sum() == 384
back = l0rt.from_dlpack(tensor)
assert back.ptr == tensor.data_ptr() and back.nbytes == 1024
for kind in ("host", "shared"):
    whole = l0rt.empty(4096, kind=kind).fill(1)
    for part, first in ((whole, 0), (whole[1024:2048], 1024), (whole[1000:3000][24:1048], 1024)):
        seen = torch.from_dlpack(part)
        assert seen.data_ptr() == whole.ptr + first and seen.numel() == part.nbytes
        seen += 1
        assert part.numpy().sum() == seen.sum(dtype=torch.int64)
        again = l0rt.from_dlpack(seen[8:16])
        assert again.ptr == seen.data_ptr() + 8 and again.nbytes == 8
        try:
            whole.free()
        except BufferError:
            del seen, again
            continue
        raise AssertionError("freed while torch has it")
    assert whole.numpy().tolist() == [2] * 1024 + [4] * 1024 + [2] * 2048
    whole.free()
on_device = l0rt.from_dlpack(torch.arange(64, dtype=torch.int32), device="xpu")
assert on_device.numpy("i4").tolist() == list(range(64))
for refused in (torch.zeros(4, 4).t(), torch.zeros(4, requires_grad=True), torch.zeros(2).expand(3, 2)):
    try:
        l0rt.from_dlpack(refused)
    except BufferError:
        continue
    raise AssertionError(refused)
device = torch.from_dlpack(l0rt.empty(64).fill(7).numpy())
assert device.sum() == 7 * 64
print("done")
"""
MEMORY = """
import torch
import l0rt.interop.torch_memory

import l0rt
before = torch.accelerator.memory_allocated(1)
x = l0rt.empty(1 << 20, device=1)
device = torch.device("xpu", 1)
assert torch.accelerator.memory_allocated(device) == torch.xpu.memory_allocated(device) == before + (1 << 20)
assert torch.accelerator.memory.max_memory_allocated(1) >= 1 << 20 <= torch.xpu.memory.memory_reserved("xpu:1")
assert torch.xpu.memory_stats(1)["allocated_bytes.all.current"] == 1 << 20
assert torch.accelerator.memory_stats(1)["allocated_bytes.all.current"] == 1 << 20
free, total = torch.accelerator.get_memory_info(1)
assert torch.xpu.mem_get_info(1)[1] == total >= free > 0
torch.xpu.set_per_process_memory_fraction(0.5, 1)
assert torch.xpu.get_per_process_memory_fraction(1) == 0.5
pool = torch.xpu.MemPool()
with torch.xpu.use_mem_pool(pool):
    y = l0rt.empty(4096)
del x, y
torch.accelerator.empty_cache(), torch.accelerator.empty_host_cache(), torch.xpu.empty_cache()
torch.accelerator.reset_peak_memory_stats(1), torch.xpu.reset_accumulated_memory_stats(1)
assert torch.accelerator.memory_allocated(1) == 0
for name in torch.accelerator.memory.__all__:
    for module in (torch.accelerator, torch.accelerator.memory):
        assert getattr(module, name) is getattr(l0rt.accelerator, name), name
for name in torch.xpu.memory.__all__:
    assert getattr(torch.xpu.memory, name) is getattr(l0rt.xpu, name), name
l0rt.interop.torch_memory.restore()
assert torch.xpu.memory_allocated.__module__ == "torch.xpu.memory" != torch.accelerator.empty_cache.__module__
l0rt.interop.torch_memory.serve()
assert torch.xpu.memory_allocated is l0rt.xpu.memory_allocated
print("done")
"""
ASKED = "import torch._dynamo.device_interface as d; d.get_interface_for_device('cpu')\n"


def skip_without_torch():
    if run_python("import torch").returncode != 0:
        told = "needs torch beside l0rt: the extra `torch`"
        (pytest.fail if os.environ.get("L0RT_TEST_TORCH") == "1" else pytest.skip)(told)


def test_the_script_that_runs_here_uses_torchs_names_only():
    """tests/process/test_workers.py runs it with l0rt in torch's place."""
    skip_without_torch()
    names = sorted(set(re.findall(r"torch(?:\.\w+)+", SCRIPT)))
    result = run_python("import torch\n" + "\n".join(names), timeout=300)
    assert result.returncode == 0, result


@pytest.mark.parametrize("before", ["", ASKED])
def test_torchs_registry_gives_l0rts_interface_and_its_methods_work(before):
    skip_without_torch()
    result = run_python(before + CODE, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, timeout=300)
    assert result.returncode == 0, result
    assert result.stdout == "done\n"


def test_by_one_import_torchs_memory_functions_run_on_l0rt():
    skip_without_torch()
    result = run_python(MEMORY, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, timeout=300)
    assert result.returncode == 0, result
    assert result.stdout == "done\n"


def test_the_page_about_partners_shows_what_runs():
    skip_without_torch()
    page = (ROOT / "docs/partners.md").read_text()
    (block,) = re.findall(r"^```\n(import torch\n.*?)^```$", page, re.DOTALL | re.MULTILINE)
    result = run_python(block, {"L0RT_DRIVER": "cpu"}, timeout=300)
    assert (result.returncode, result.stdout) == (0, "0 0\n"), result


def test_tensors_and_buffers_share_memory():
    skip_without_torch()
    result = run_python(LENT, {"L0RT_DRIVER": "cpu"}, timeout=300)
    assert result.returncode == 0, result
    assert result.stdout == "done\n"
