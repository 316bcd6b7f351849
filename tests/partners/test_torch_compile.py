# SPDX-License-Identifier: Apache-2.0
"""torch.compile for the device type ``lzrt``. Each program is a process of its own; Inductor's cache is empty."""

import os
import sys

import pytest

from helpers.once import shared
from helpers.process import run, run_python
from helpers.source import ROOT

LONG = 900.0  # seconds: the extension's compiler reads torch's headers
GENERATOR = ROOT / "tests/helpers/compiled_programs.py"
PROGRAMS, TOGETHER = 200, 10

BEGIN = """
import torch
from torch import nn
import l0rt.interop.torch_device as torch_device
F = nn.functional
torch.manual_seed(0)
SUMS = {"rtol": 1e-5, "atol": 1e-4}     # of thousands of numbers, whose order differs

def same(actual, expected, **limits):
    torch.testing.assert_close(actual.cpu(), expected, **limits)

def agree(function, *tensors, limits={}, **options):
    there = [tensor.to("lzrt") for tensor in tensors]
    same(torch.compile(function, **options)(*there), function(*tensors), **limits)

def raises(kind, words, function, *args):
    try:
        function(*args)
    except kind as error:
        assert words in str(error), (words, error)
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")
"""

CODE = {
    "shapes": """
function = torch.compile(lambda x: (x * 2).sum(1) + x.shape[0], dynamic=True)
for size in (3, 17, 40, 300):
    x = torch.randn(size, size + 5)
    same(function(x.to("lzrt")), (x * 2).sum(1) + size, rtol=1e-4, atol=1e-4)
same(function(torch.zeros(0, 5, device="lzrt")), torch.zeros(0))
big = torch.randn(3000, 4)
agree(lambda x: x.sum(0) * 2 + x.std(0), big, limits=SUMS)          # a group for each result
agree(lambda x: (x * x).sum(0), torch.randn(40, 2500), limits=SUMS) # a work-item for each
agree(lambda x: torch.var_mean(x, 1)[1] + x.amax(1), big)
x = torch.arange(6.0, device="lzrt").view(2, 3).t()
same(torch.compile(lambda x: x + 1)(x), torch.arange(6.0).view(2, 3).t() + 1)
""",
    "places": """
def in_place(x):
    x.add_(1)
    return x * 2
x = torch.zeros(5, device="lzrt")
y = torch.compile(in_place)(x)
same(x, torch.ones(5))
same(y, torch.full((5,), 2.0))
if torch.accelerator.device_count() < 2:
    raise AssertionError("the test needs two devices")
x = torch.randn(5, 40).to("lzrt:1")
y = torch.compile(lambda x: (x * 2).sum(1) + torch.ones(5, device=x.device))(x)
assert y.device == x.device and torch.accelerator.current_device_index() == 0
same(y, (x.cpu() * 2).sum(1) + 1)
host = nn.BatchNorm1d(7)
norm = nn.BatchNorm1d(7).to("lzrt")
x = torch.randn(300, 7)
for _ in range(2):                                                  # one work-item of a group updates the statistics
    same(torch.compile(lambda x: norm(x) * norm.running_mean)(x.to("lzrt")), host(x) * host.running_mean)
    same(norm.running_var, host.running_var)
x = x.to("lzrt:1")
scale = torch.tensor(3.0)                                           # a value of the host
same(torch.compile(lambda x: x * scale)(x), x.cpu() * 3)
""",
    "indices": """
pick = torch.compile(lambda x, places: x[places] + 1)
x = torch.arange(6.0).to("lzrt")
same(pick(x, torch.tensor([-1, 5, -6]).to("lzrt")), torch.tensor([6.0, 6.0, 1.0]))
outside = pick(x, torch.tensor([0, 6, -7]).to("lzrt"))
raises(IndexError, "out of range", torch.accelerator.synchronize)
torch.accelerator.synchronize()                                     # it is reported once
same(outside[0], torch.tensor(1.0))
pick(x, torch.tensor([0, 6, 1]).to("lzrt"))
raises(IndexError, "out of range", lambda: x.cpu())
""",
    "sums": """
function = torch.compile(lambda x, places: x[:4].index_put((places,), x[4:], accumulate=True))
places = torch.tensor([0, 3, 0, 0, 1, 3])
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int16,
              torch.int32, torch.int64):
    torch._dynamo.reset()
    x = (torch.arange(90).reshape(10, 9) % 7 - 3 * (dtype != torch.uint8)).to(dtype)
    same(function(x.to("lzrt"), places.to("lzrt")), x[:4].index_put((places,), x[4:], accumulate=True))
table = torch.nn.Embedding(9, 5)
expected = table(places).square().sum()
expected.backward()
there = torch.nn.Embedding(9, 5).to("lzrt")
there.weight.data.copy_(table.weight.data)
torch.compile(lambda places: there(places).square().sum())(places.to("lzrt")).backward()
same(there.weight.grad, table.weight.grad)
""",
    "random": """
from l0rt import philox
def draw(x):
    return torch.rand_like(x), torch.randn_like(x), F.dropout(torch.ones_like(x), 0.25)
function = torch.compile(draw)
x = torch.empty(50, 40, device="lzrt")
torch.manual_seed(1)
uniform, normal, kept = (tensor.cpu() for tensor in function(x))
assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.03
assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
assert abs((kept == 0).float().mean() - 0.25) < 0.04 and set(kept.unique().tolist()) <= {0.0, kept.max().item()}
assert not torch.equal(function(x)[0].cpu(), uniform)
torch.manual_seed(1)
same(function(x)[0], uniform, rtol=0, atol=0)
# The numbers are those of the seed's Philox stream.
prims = torch.ops.prims
rand = torch.compile(lambda seeds: [
    prims.inductor_random([37], prims.inductor_lookup_seed(seeds, 0), "rand"),
    prims.inductor_random([37], prims.inductor_lookup_seed(seeds, 1), "randn"),
    prims.inductor_randint(-5, 1000, [37], prims.inductor_lookup_seed(seeds, 1)),
])
results = rand(torch.tensor([77, 1 << 40]).to("lzrt"))
same(results[0], torch.from_numpy(philox.uniform(77, 0, 37)), rtol=0, atol=0)
same(results[1], torch.from_numpy(philox.normal(1 << 40, 0, 37)))
same(results[2], torch.from_numpy(philox.randint(1 << 40, 0, 37, -5, 1000, dtype="int64")), rtol=0, atol=0)
""",
    "training": """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, time, 3, 4, 8).permute(2, 0, 3, 1, 4)
        later = torch.triu(torch.ones(time, time, dtype=torch.bool, device=x.device), 1)
        weights = ((q @ k.transpose(-1, -2)) / 8 ** 0.5).masked_fill(later, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(x)

def mlp():
    first = nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64)
    return nn.Sequential(*first, nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 32))

def train(make, loss_of, device):
    torch.manual_seed(3)
    model = make().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, target = torch.randn(4, 12, 32).to(device), torch.randint(0, 32, (4, 12)).to(device)
    step = lambda x: loss_of(model(x), target, x)
    step = torch.compile(step) if device != "cpu" else step
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = step(x)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

entropy = lambda y, target, x: F.cross_entropy(y.flatten(0, 1), target.flatten())
square = lambda y, target, x: F.mse_loss(y, x * 0.5)
for make, loss_of in ((mlp, entropy), (Block, square)):
    expected = train(make, loss_of, "cpu")
    torch_device.forget_fallbacks()
    losses = train(make, loss_of, "lzrt")
    worst = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    assert worst < 1e-5 and expected[-1] < expected[0] - 0.01, (worst, expected)
    assert torch_device.fallbacks() == [], torch_device.fallbacks()
""",
    "graphs": """
function = torch.compile(lambda x, y: (x * y).softmax(1).sum(0))
x, y = torch.randn(6, 30).to("lzrt"), torch.randn(6, 30).to("lzrt")
stream = torch.Stream("lzrt")
with stream:
    function(x, y)                                                  # compiles, and loads the kernels
    stream.synchronize()
    graph = torch.accelerator.Graph()
    graph.capture_begin()
    result = function(x, y)
    graph.capture_end()
    for _ in range(3):
        x.copy_(torch.randn(6, 30))
        graph.replay()
        stream.synchronize()
        same(result, (x.cpu() * y.cpu()).softmax(1).sum(0))
agree(lambda x: x.sin().sum(), torch.randn(4, 50), mode="reduce-overhead")
""",
    "fallbacks": """
torch_device.forget_fallbacks()
agree(lambda x: torch.digamma(x.abs() + 1) * 2, torch.randn(30))
agree(lambda x: x.sort().values * 2, torch.randn(30))
names = {row.name for row in torch_device.fallbacks()}
assert {"aten::digamma.out", "aten::sort.values_stable"} <= names, names
""",
    "caches": """
from torch._dynamo.utils import counters
from l0rt.interop.torch_device import registration
def hits():
    torch._dynamo.reset()
    counters.clear()
    agree(lambda x: x * 3 + 1, torch.randn(20))
    return counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"]
assert hits() == (0, 1)
assert hits() == (1, 0)
registration.Identity.uuid = lambda self: b"another version of l0rt"
assert hits() == (0, 1)
""",
    "workers": """
from torch._dynamo.device_interface import get_interface_for_device
from torch.lzrt import Scheduling                                   # as Inductor asks for it
interface = get_interface_for_device("lzrt")
assert interface is get_interface_for_device("lzrt:0") is get_interface_for_device("lzrt:1")
interface.Worker.set_device(1)
assert interface.Worker.current_device() == 1 and interface.device_count() == 2
import l0rt.xpu
assert not l0rt.xpu.is_initialized() and not torch.lzrt.is_initialized()
assert interface.Worker.get_device_properties("lzrt:1").multi_processor_count > 0
assert interface.current_device() == 0
""",
}


def build(folder):
    command = [sys.executable, "-m", "l0rt.interop.torch_device", "build"]
    result = run(command, variables(folder, None), timeout=2 * LONG)
    assert result.returncode == 0, result


def variables(folder, inductor):
    more = {} if inductor is None else {"TORCHINDUCTOR_CACHE_DIR": inductor, "TORCHINDUCTOR_COMPILE_THREADS": 1}
    return {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CACHE_DIR": folder, **more}


@pytest.fixture(scope="module")
def cache():
    """A cache with the compiled extension: TESTS_TORCH_CACHE names one that is there."""
    if "L0RT_TEST_TORCH" not in os.environ:
        pytest.skip("needs torch: set L0RT_TEST_TORCH=1 where pip has installed it")
    return os.environ.get("TESTS_TORCH_CACHE") or shared("torch_device", build)


@pytest.mark.parametrize("name", CODE)
def test_torch_compile_on_l0rt(cache, name, tmp_path):
    given = variables(cache, tmp_path / "inductor")
    result = run_python(BEGIN + CODE[name], given, cwd=tmp_path, timeout=LONG, fresh=True)
    assert result.returncode == 0, result


def test_random_programs_equal_eager_mode_on_the_cpu(cache, extent, tmp_path):
    count = extent(20, PROGRAMS)
    count -= count % TOGETHER
    command = [sys.executable, GENERATOR, "0", str(count)]
    result = run(command, variables(cache, tmp_path / "inductor"), timeout=4 * LONG)
    assert result.returncode == 0, result
    assert f"{count} of {count} programs agree" in result.stdout, result
