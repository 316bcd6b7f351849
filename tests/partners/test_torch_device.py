# SPDX-License-Identifier: Apache-2.0
"""torch's own tensors on l0rt: devices, memory, tensors, graphs, training. Each program is a process of its own."""

import re
import sys
from importlib.util import find_spec

import pytest

from helpers.process import run, run_python
from helpers.source import ROOT
from helpers.torch_extension import LONG, cache, variables
from helpers.torch_script import SCRIPT

__all__ = ["cache"]

BEGIN = """
import gc, io, os, threading, time, warnings
warnings.simplefilter("ignore")
import torch
import l0rt.interop.torch_device as door
acc = torch.accelerator
torch.manual_seed(0)

def same(actual, expected, **limits):
    torch.testing.assert_close(actual.cpu(), expected, **limits)

def raises(kind, words, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert words in str(error), (words, error)
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")
"""

PROGRAMS = {
    "lazy": """
assert acc.current_accelerator() == torch.device("lzrt") and acc.device_count() == 2 and acc.is_available()
assert not torch.lzrt.is_initialized() and acc.memory_allocated() == 0
x = torch.ones(3, device="lzrt")
assert torch.lzrt.is_initialized() and x.device == torch.device("lzrt", 0) and x.is_lzrt
assert x.cpu().tolist() == [1, 1, 1] and repr(x) == "tensor([1., 1., 1.], device='lzrt:0')"
""",
    "devices": SCRIPT.replace("xpu", "lzrt")
    + """
acc.set_device_index(0)
x = torch.ones(4, device="lzrt:1")
assert x.get_device() == 1 and acc.current_device_index() == 0
with torch.lzrt.device(1):
    assert torch.empty(1, device="lzrt").get_device() == 1
    raises(ZeroDivisionError, "zero", lambda: 1 // 0)
assert acc.current_device_index() == 0
raises(RuntimeError, "The device index is out of range", torch.empty, 1, device="lzrt:5")
mine = torch.Stream("lzrt:1")
with mine:
    assert acc.current_stream(1) == mine and acc.current_device_index() == 1
assert acc.current_stream(1) != mine and acc.current_device_index() == 0
acc.set_stream(mine)
acc.set_device_index(0)
assert acc.current_stream(1) == mine
start, end = torch.Event("lzrt", enable_timing=True), torch.Event("lzrt", enable_timing=True)
raises(ValueError, "Both events must be recorded", start.elapsed_time, end)
start.record()
big = torch.zeros(1 << 22, device="lzrt")
for _ in range(8):
    big += 1
end.record()
end.synchronize()
assert 0 < start.elapsed_time(end) < 1e5 and big[-1].item() == 8
""",
    "memory": """
before = acc.memory_allocated()
x = torch.empty(1 << 20, dtype=torch.uint8, device="lzrt")
assert acc.memory_allocated() - before == 1 << 20 == torch.lzrt.memory_allocated() - before
stats = acc.memory_stats()
assert stats["allocation.all.current"] == 1 and stats["reserved_bytes.all.current"] >= 1 << 20
assert stats["allocated_bytes.small_pool.current"] + stats["allocated_bytes.large_pool.current"] == 1 << 20
del x
assert acc.memory_allocated() == before and acc.max_memory_allocated() == 1 << 20
acc.reset_peak_memory_stats()
assert acc.max_memory_allocated() == before
acc.synchronize()
acc.empty_cache()
assert acc.memory_reserved() == 0
free, total = acc.get_memory_info()
assert 0 < free <= total
raises(torch.OutOfMemoryError, "requested", torch.empty, 1 << 50, dtype=torch.uint8, device="lzrt")
failures = []
def fail():
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="lzrt")
    except torch.OutOfMemoryError as error:
        failures.append(error)
thread = threading.Thread(target=fail)
thread.start(); thread.join()
assert len(failures) == 1 and acc.memory_stats()["num_ooms"] >= 2

pinned = torch.arange(4096, dtype=torch.float32).pin_memory()
assert pinned.is_pinned() and not torch.zeros(4).is_pinned()
there = pinned.to("lzrt", non_blocking=True)
back = torch.empty(4096, pin_memory=True)
back.copy_(there, non_blocking=True)
acc.synchronize()
assert torch.equal(back, pinned)
side = torch.Stream("lzrt")
y = torch.full((1 << 16,), 3.0, device="lzrt")
side.wait_stream(acc.current_stream())
with side:
    z = y * 2
y.record_stream(side)
address = y.data_ptr()
del y
side.synchronize()
assert z.cpu().unique().tolist() == [6.0]
del pinned, back, there, z
acc.synchronize()
acc.empty_host_cache()
import l0rt.memory
assert l0rt.memory.host_memory_stats(0)["allocated_bytes.current"] == 0
""",
    "tensors": """
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
              torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128):
    host = torch.arange(24).reshape(2, 3, 4).to(dtype)
    x = host.to("lzrt")
    same(x, host)
    same(x.transpose(0, 2), host.transpose(0, 2))
    same(x.transpose(0, 2).contiguous(), host.transpose(0, 2).contiguous())
    same(x[:, 1:, ::2], host[:, 1:, ::2])
    y = torch.zeros(4, 3, 2, dtype=dtype, device="lzrt")
    y.transpose(0, 2).copy_(x)
    same(y, host.transpose(0, 2).contiguous())
    y.fill_(1)
    y[1].zero_()
    expected = torch.ones(4, 3, 2, dtype=dtype)
    expected[1] = 0
    same(y, expected)
    y.t_() if y.dim() == 2 else None
    same(x.to("lzrt:1"), host)
    same(x.transpose(0, 1).to("lzrt:1"), host.transpose(0, 1))
    same(x.view(6, 4), host.view(6, 4))
    same(x.reshape(4, 6).t().reshape(-1), host.reshape(4, 6).t().reshape(-1))
    same(x.expand(2, 2, 3, 4), host.expand(2, 2, 3, 4))
    strided = torch.zeros(3, 2, dtype=dtype).t()
    strided.copy_(x[:, :, 0])
    same(strided, host[:, :, 0])
    for other in (torch.float32, torch.int64, torch.float16):
        same(x.to(other), host.to(other))
    assert x[1, 2, 3].item() == host[1, 2, 3].item() and x.tolist() == host.tolist()
z = torch.tensor([1 + 2j, 3 - 4j])
same(z.to("lzrt").conj(), z.conj())
same(z.to("lzrt").conj().imag, z.conj().imag)
for target in (torch.zeros(2, dtype=z.dtype, device="lzrt"), torch.zeros(4, dtype=z.dtype, device="lzrt")[::2]):
    target.conj().copy_(z)
    same(target, z.conj())
    target.conj().copy_(z.to("lzrt"))
    same(target, z.conj())
    target.conj().imag.copy_(torch.tensor([5.0, 6.0]))
    same(target.imag, torch.tensor([-5.0, -6.0]))
pairs = torch.zeros(3, 2, device="lzrt")
torch.view_as_complex(pairs)[1] = 2 - 3j
same(pairs[1], torch.tensor([2.0, -3.0]))
pairs.view(-1).unfold(0, 2, 2)[2] = 9
same(pairs[2], torch.tensor([9.0, 9.0]))
x = torch.arange(6.0, device="lzrt")
same(x.resize_(2, 2), torch.arange(4.0).view(2, 2))
grown = torch.arange(3.0, device="lzrt").resize_(100)
same(grown[:3], torch.arange(3.0))
view = torch.empty(0, device="lzrt").set_(x.untyped_storage(), 1, (2,), (2,))
same(view, torch.tensor([1.0, 3.0]))
assert view.untyped_storage().device.type == "lzrt"
assert torch.empty(0, device="lzrt").sum().item() == 0
nine = torch.zeros([2] * 9, device="lzrt").transpose(0, 8)
nine.copy_(torch.arange(512.0).view([2] * 9))
same(nine, torch.arange(512.0).view([2] * 9))

file = io.BytesIO()
torch.save({"x": x, "on_1": torch.ones(2, device="lzrt:1")}, file)
file.seek(0)
loaded = torch.load(file)
assert loaded["on_1"].device == torch.device("lzrt:1") and loaded["x"].device == torch.device("lzrt:0")
same(loaded["x"], x.cpu())
file.seek(0)
assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"
file.seek(0)
assert torch.load(file, map_location="lzrt:1")["x"].device == torch.device("lzrt:1")
""",
    "generators": """
import l0rt
torch.manual_seed(7)
assert torch.lzrt.initial_seed() == 7
state = torch.lzrt.get_rng_state()
assert state.tolist() == [7] + [0] * 15
generator = torch.Generator(device="lzrt:1")
generator.manual_seed(42)
copy = generator.clone_state()
assert generator.initial_seed() == copy.initial_seed() == 42 and generator.device == torch.device("lzrt:1")
generator.set_offset(12)
assert generator.get_offset() == 12 and copy.get_offset() == 0
other = torch.Generator(device="lzrt:1")
other.set_state(generator.get_state())
assert other.get_offset() == 12 and other.initial_seed() == 42
assert generator.seed() == generator.initial_seed() != 42
raises(RuntimeError, "multiple of 4", generator.set_offset, 3)
l0rt.empty(64, device=0).uniform_(0, 1)
assert torch.lzrt.get_rng_state()[8:].tolist() != [0] * 8      # l0rt's own random numbers come from it too
torch.lzrt.set_rng_state(state)
assert torch.lzrt.get_rng_state().tolist() == state.tolist()
""",
    "operators": """
torch.manual_seed(1)
a, b = torch.randn(5, 7), torch.rand(5, 7) + 0.5
x, y = a.to("lzrt"), b.to("lzrt")
door.forget_fallbacks()
for name in ("neg", "abs", "exp", "tanh", "sigmoid", "relu", "sin", "cos", "reciprocal"):
    function = getattr(torch, name)
    same(function(x), function(a))
    same(function(x.t()), function(a.t()))
    same(function(x[:, ::2]), function(a[:, ::2]))
for name in ("log", "sqrt", "rsqrt"):
    same(getattr(torch, name)(y), getattr(torch, name)(b))
for name in ("add", "sub", "mul", "div", "maximum", "minimum"):
    function = getattr(torch, name)
    same(function(x, y), function(a, b))
    same(function(x.t(), y.t()), function(a.t(), b.t()))
    same(function(x, y[0]), function(a, b[0]))
    same(function(x[:, :1], y), function(a[:, :1], b))
    same(function(x.t(), y.t()[:, :1]), function(a.t(), b.t()[:, :1]))
    if name not in ("maximum", "minimum"):
        same(function(x, 2.5), function(a, 2.5))
        same(function(x.t(), 3), function(a.t(), 3))
same(1 / y, 1 / b)
same(2 - x, 2 - a)
same(x.add(y, alpha=-3), a.add(b, alpha=-3))
same(x.sub(y, alpha=0.5), a.sub(b, alpha=0.5))
same(x.clone().add_(1).mul_(y), (a + 1) * b)
nan = torch.tensor([float("nan"), 1.0, -1.0])
same(torch.relu(nan.to("lzrt")), torch.relu(nan), equal_nan=True)
same(torch.maximum(nan.to("lzrt"), torch.zeros(3, device="lzrt")), torch.maximum(nan, torch.zeros(3)), equal_nan=True)
for dims in ((), (0,), (1,), (-1,), (0, 1)):
    same(x.sum(dims), a.sum(dims)) if dims else same(x.sum(), a.sum())
    same(x.mean(dims, keepdim=True), a.mean(dims, keepdim=True)) if dims else same(x.mean(), a.mean())
same(torch.softmax(x, 1), torch.softmax(a, 1))
same(torch.log_softmax(x.t(), -1), torch.log_softmax(a.t(), -1))
for rows in (1, 2, 3, 4, 5, 9):
    m, n, bias = torch.randn(rows, 6), torch.randn(6, 11), torch.randn(11)
    u, v, w = m.to("lzrt"), n.to("lzrt"), bias.to("lzrt")
    same(u @ v, m @ n)
    same(v.t() @ u.t(), n.t() @ m.t())
    same(torch.addmm(w, u, v), torch.addmm(bias, m, n))
    same(torch.nn.functional.linear(u, v.t().contiguous(), w), torch.nn.functional.linear(m, n.t().contiguous(), bias))
batch, other = torch.randn(3, 5, 4), torch.randn(3, 4, 6)
same(batch.to("lzrt") @ other.to("lzrt"), batch @ other)
same(batch.to("lzrt").mT @ batch.to("lzrt"), batch.mT @ batch)
assert door.fallbacks() == [], door.fallbacks()

# What no kernel serves runs on the CPU, and is counted.
same(torch.sort(x, 0).values, torch.sort(a, 0).values)
same(x.to(torch.complex64) + 1j, a.to(torch.complex64) + 1j)
rows = {row.name: row for row in door.fallbacks()}
(sort,) = (row for name, row in rows.items() if name.startswith("aten::sort"))
assert sort.calls == 1 and sort.bytes >= 2 * 4 * 35 and sort.seconds > 0, rows
assert any(name.startswith("aten::add") for name in rows), rows
door.forget_fallbacks()
assert door.fallbacks() == []
""",
    "training": """
from torch import nn
def train(device):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, target = torch.randn(64, 8), torch.randint(0, 4, (64,))
    x, target = x.to(device), target.to(device)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
expected = train("cpu")
for device in ("lzrt:0", "lzrt:1"):
    losses = train(device)
    worst = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    assert worst < 1e-4, (device, worst)
assert expected[-1] < expected[0] - 0.05, expected
assert door.fallbacks() == [], door.fallbacks()
""",
    "graphs": """
from torch import nn
torch.manual_seed(5)
x = torch.randn(16, 8).to("lzrt")
weight = torch.randn(8, 8).to("lzrt").requires_grad_()
def step():
    return torch.tanh(x @ weight).sum()
stream = torch.Stream("lzrt")
with stream:
    step().backward()                                   # what is made at the first use is made before the capture
    weight.grad = None
    stream.synchronize()
    graph = torch.accelerator.Graph()
    graph.capture_begin()
    loss = step()
    loss.backward()                                     # autograd runs it in a thread of its own
    graph.capture_end()
    for seed in range(3):
        torch.manual_seed(seed)
        x.copy_(torch.randn(16, 8))
        graph.replay()
        stream.synchronize()
        host, w = x.cpu(), weight.detach().cpu().requires_grad_()
        expected = torch.tanh(host @ w).sum()
        expected.backward()
        same(loss.detach(), expected.detach(), rtol=1e-4, atol=1e-4)
        same(weight.grad, w.grad, rtol=1e-4, atol=1e-4)
    kept = torch.accelerator.Graph(keep_graph=True, pool=graph.pool())
    kept.capture_begin()
    y = x * 2
    kept.capture_end()
    assert kept.pool() == graph.pool() != (0, 0)
    kept.instantiate()
    kept.replay()
    stream.synchronize()
    same(y, x.cpu() * 2)
    raises(RuntimeError, "capture already", kept.capture_begin)
    kept.reset()
    raises(RuntimeError, "nothing captured", kept.replay)
""",
    "ending": """
x = torch.ones(8, device="lzrt")
if os.fork() == 0:
    try:
        torch.ones(8, device="lzrt")
    except RuntimeError as error:
        os._exit(7 if "forked subprocess" in str(error) else 8)
    os._exit(9)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
pinned = torch.ones(8).pin_memory()
graph = torch.accelerator.Graph()
event = torch.Event("lzrt")
event.record()
y = x.to("lzrt:1", non_blocking=True)
print("left")
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_on_l0rt(cache, name, tmp_path):
    result = run_python(BEGIN + PROGRAMS[name], variables(cache), cwd=tmp_path, timeout=LONG, fresh=True)
    assert result.returncode == 0, result
    assert result.stderr == "", result


def test_the_example_trains_as_it_stands(cache):
    result = run([sys.executable, ROOT / "examples/torch_mlp.py"], variables(cache), timeout=LONG)
    assert result.returncode == 0, result
    assert re.search(r"loss 0\.\d+ -> 0\.[012]\d+ on lzrt:0", result.stdout), result


def test_the_page_of_torch_runs(cache, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/torch.md").read_text(), re.DOTALL | re.MULTILINE)
    assert blocks
    result = run_python("\n".join(blocks), variables(cache), cwd=tmp_path, timeout=LONG, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result


NO_NINJA = "import torch.utils.cpp_extension as extension; extension.is_ninja_available = lambda: False; "


@pytest.mark.parametrize(
    ("before", "compiler", "words"), [("", "nothing", "there is no nothing"), (NO_NINJA, "sh", "there is no ninja")]
)
def test_a_tool_that_is_missing_is_named(cache, tmp_path, before, compiler, words):
    code = before + "import l0rt.interop.torch_device"
    result = run_python(code, variables(tmp_path / "new", CXX=compiler), timeout=LONG, fresh=True)
    assert result.returncode == 1, result
    assert words in result.stderr.splitlines()[-1], result
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_torch_that_is_missing_is_named():
    result = run_python("import l0rt.interop.torch_device", {"L0RT_DRIVER": "cpu"}, fresh=True)
    assert result.returncode == 1
    assert result.stderr.endswith("ImportError: l0rt.interop.torch_device needs torch: pip install 'l0rt[torch]'\n")


def test_l0rt_alone_imports_no_torch():
    code = """
import sys, l0rt.accelerator, l0rt.interop
assert not {"torch", "l0rt.interop.torch_device"} & {*sys.modules}
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result
