# SPDX-License-Identifier: Apache-2.0
"""A script for torch.accelerator without tensors: streams, events, memory statistics, switching devices."""

SCRIPT = """
import torch

assert torch.accelerator.is_available()
kind = torch.accelerator.current_accelerator()
print(kind.type, kind.index, torch.accelerator.device_count())
for index in range(torch.accelerator.device_count()):
    with torch.accelerator.device_index(index):
        assert torch.accelerator.current_device_index() == index
        stream, event = torch.Stream(), torch.Event()
        with stream:
            assert torch.accelerator.current_stream() == stream
            stream.record_event(event)
        torch.accelerator.current_stream().wait_event(event)
        torch.accelerator.current_stream().wait_stream(stream)
        stream.synchronize()
        torch.accelerator.synchronize()
        assert event.query() and stream.query()
        stats = torch.accelerator.memory_stats(index)
        assert stats.get("allocated_bytes.all.current", 0) == torch.accelerator.memory_allocated(index)
        torch.accelerator.reset_peak_memory_stats(index)
        torch.accelerator.reset_accumulated_memory_stats(index)
        assert torch.accelerator.max_memory_allocated(index) == torch.accelerator.memory_allocated(index)
        assert torch.accelerator.memory.max_memory_reserved(index) >= torch.accelerator.memory.memory_reserved(index)
        free, total = torch.accelerator.get_memory_info(index)
        assert 0 <= free <= total
        assert torch.accelerator.get_device_capability()["supported_dtypes"]
start = torch.Event(kind, enable_timing=True)
end = torch.Event(kind, enable_timing=True)
start.record()
end.record()
end.synchronize()
assert start.elapsed_time(end) >= 0
torch.accelerator.set_device_index(0)
with torch.accelerator.device_index(1):
    assert torch.accelerator.current_device_index() == 1
assert torch.accelerator.current_device_index() == 0
with torch.accelerator.device_index(None):
    assert torch.accelerator.current_device_index() == 0
torch.accelerator.set_stream(torch.Stream(device="xpu:1"))
assert torch.accelerator.current_device_index() == 1
assert torch.accelerator.current_stream(torch.device("xpu", 1)).device == torch.device("xpu:1")
try:
    torch.accelerator.set_device_index(None)
except ValueError as e:
    assert "Expected a torch.device with a specified index or an integer" in str(e)
torch.accelerator.empty_cache()
torch.accelerator.empty_host_cache()
"""
