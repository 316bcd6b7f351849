# SPDX-License-Identifier: Apache-2.0
"""tinygrad on l0rt: its device, its compile workers, its graphs, and the module that runs a script."""

import importlib.util
import os
import re
import sys

import pytest

from helpers.process import run, run_python
from helpers.source import ROOT

PAGE = ROOT / "docs/partners.md"

BEGIN = """
import numpy as np
from l0rt.interop import tinygrad as door
door.register()
from tinygrad import Context, Device, Tensor, TinyJit, Variable, dtypes, nn
from tinygrad.engine.realize import graph_cache
assert Device.DEFAULT == "L0RT"
rng = np.random.default_rng(7)
"""

OPERATIONS = """
matrix = rng.normal(size=(6, 5))
two = rng.uniform(0.5, 2, size=(2, 4, 6))
one = two[:1]
CASES = {
    "add": (lambda x, y: x + y, None, two), "sub": (lambda x, y: x - y, None, two), "neg": (lambda x: -x, None, one),
    "mul": (lambda x, y: x * y, None, two), "div": (lambda x, y: x / y, None, two),
    "pow": (lambda x, y: x ** y, None, two), "square": (lambda x: x * x, None, one),
    "exp": (lambda x: x.exp(), np.exp, one), "exp2": (lambda x: x.exp2(), np.exp2, one),
    "log": (lambda x: x.log(), np.log, one), "log2": (lambda x: x.log2(), np.log2, one),
    "sqrt": (lambda x: x.sqrt(), np.sqrt, one), "reciprocal": (lambda x: x.reciprocal(), lambda x: 1 / x, one),
    "sin": (lambda x: x.sin(), np.sin, one), "cos": (lambda x: x.cos(), np.cos, one),
    "tanh": (lambda x: x.tanh(), np.tanh, one), "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x)), one),
    "relu": (lambda x: (x - 1.2).relu(), lambda x: np.maximum(x - 1.2, 0), one),
    "abs": (lambda x: (x - 1.2).abs(), lambda x: np.abs(x - 1.2), one),
    "maximum": (lambda x, y: x.maximum(y), np.maximum, two),
    "where": (lambda x, y: (x < y).where(x * y, x + y), lambda x, y: np.where(x < y, x * y, x + y), two),
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1), one), "mean": (lambda x: x.mean(0), lambda x: x.mean(0), one),
    "max": (lambda x: x.max(1), lambda x: x.max(1), one),
    "matmul": (lambda x: x @ Tensor(matrix.astype("f4")), lambda x: x @ matrix, one),
    "softmax": (lambda x: x.softmax(), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), one),
    "transpose": (lambda x: x.T * x.T, lambda x: x.T * x.T, one),
    "pad": (lambda x: x.pad(((1, 0), (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 2))), one),
}
assert len(CASES) >= 20

def gradient(function, values, weights):
    found = np.zeros_like(values)
    for place in np.ndindex(*values.shape):
        for step in (1e-6, -1e-6):
            moved = values.copy()
            moved[place] += step
            found[place] += (function(*moved) * weights).sum() / (2 * step)
    return found

wanted, made = {}, {}
for name, (theirs, numpy, values) in CASES.items():
    numpy = numpy or theirs
    result = numpy(*values)
    weights = rng.normal(size=result.shape)
    inputs = [Tensor(value.astype("f4")) for value in values]
    output = theirs(*inputs)
    gradients = (output * Tensor(weights.astype("f4"))).sum().gradient(*inputs)
    made[name] = [output, *gradients]
    wanted[name] = [result, *gradient(numpy, values, weights)]
Tensor.realize(*[tensor for row in made.values() for tensor in row])     # several kernels at a time, for the workers
for name, row in made.items():
    for mine, right in zip(row, wanted[name], strict=True):
        np.testing.assert_allclose(mine.numpy(), right, rtol=2e-4, atol=2e-4, err_msg=name)
for kind in (dtypes.half, dtypes.bfloat16, dtypes.double, dtypes.int8, dtypes.uint16, dtypes.int64):
    assert (Tensor([1, 2, 5], dtype=kind) * 3 + 1).float().tolist() == [4, 7, 16], kind
"""

TRAINING = """
import sys
import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, nn
from tinygrad.engine.realize import graph_cache
from tinygrad.nn.state import get_parameters

assert Device.DEFAULT == "L0RT" and sys.argv[1:] == ["30"] and __name__ == "__main__"
Tensor.manual_seed(1)
rng = np.random.default_rng(0)
labels = rng.integers(0, 10, 256).astype("i4")
images = (rng.normal(size=(10, 1, 28, 28))[labels] + 0.7 * rng.normal(size=(256, 1, 28, 28))).astype("f4")

class Net:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 4, 5, stride=2), nn.Conv2d(4, 8, 3, stride=2)
        self.last = nn.Linear(200, 10)

    def __call__(self, x):
        return self.last(self.second(self.first(x).relu()).relu().flatten(1).dropout(0.1))

net = Net()
optimizer = nn.optim.Adam(get_parameters(net), lr=4e-3)

@TinyJit
@Context(TRAINING=1)
def step(x, y):
    optimizer.zero_grad()
    loss = net(x).sparse_categorical_crossentropy(y).backward()
    return loss.realize(*optimizer.schedule_step())

losses = []
for _ in range(int(sys.argv[1])):
    chosen = rng.integers(0, 256, 64)
    losses.append(step(Tensor(images[chosen]).realize(), Tensor(labels[chosen]).realize()).item())
right = (net(Tensor(images)).argmax(1) == Tensor(labels)).mean().item()
assert losses[0] > 2 and losses[-1] < 0.3 and right > 0.95, (losses, right)
assert graph_cache and all(graph.graph.nodes for graph in graph_cache.values())
print("learned")
"""

WORKERS = """
import l0rt.kernels.compiler as compiler
def here(*args):
    raise AssertionError("compiled in this process")
x, y = Tensor(rng.random((16, 16), "f4")).realize(), Tensor(rng.random((16, 16), "f4")).realize()
kept, compiler._compiled = compiler._compiled, here
a, b, c = x @ y, (x + y).sum(0), (x * 3).exp()
Tensor.realize(a, b, c)
np.testing.assert_allclose(a.numpy(), x.numpy() @ y.numpy(), rtol=1e-5)
np.testing.assert_allclose(b.numpy(), (x.numpy() + y.numpy()).sum(0), rtol=1e-5)
from tinygrad.engine import worker
assert worker.worker_pool is not None
"""

SEVERAL = """
D = ("L0RT:0", "L0RT:1")
assert Device["L0RT"].count() == 2
x = rng.random((8, 8), "f4")
w = rng.random((8, 8), "f4")
there = Tensor(x).realize().to(D[1]).realize()
assert there.device == D[1] and (there.numpy() == x).all() and (there.to(D[0]).numpy() == x).all()

def host(tensor):
    return tensor.to("L0RT:0").numpy()

shared = Tensor(x).realize().shard(D, axis=0).realize()
weights = Tensor(w).realize().shard(D).realize()
np.testing.assert_allclose(host(shared @ weights + 1), x @ w + 1, rtol=1e-5)
np.testing.assert_allclose(host(shared.sum(0)), x.sum(0), rtol=1e-5)

@TinyJit
def step(x, w):
    y = (x @ w).relu()
    return y.sum(0).realize(), (y.T @ y).realize()

for _ in range(5):
    x = rng.normal(size=(8, 8)).astype("f4")
    sums, square = step(Tensor(x).realize().shard(D, axis=0).realize(), Tensor(w).realize().shard(D).realize())
    right = np.maximum(x @ w, 0)
    np.testing.assert_allclose(host(sums), right.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(host(square), right.T @ right, rtol=1e-4, atol=1e-5)
kinds = [{node.kind for node in graph.graph.nodes} for graph in graph_cache.values() if len(graph.devices) == 2]
assert any({"kernel", "copy"} <= found for found in kinds)
"""

GRAPHS = """
import pickle
import l0rt.accelerator as acc

@TinyJit
def both(x):
    return (x + 1).realize(), (x.reshape(16, 16) @ x.reshape(16, 16)).realize()

kept = []
for _ in range(6):
    kept.append(Tensor(rng.random(256, "f4")).realize())        # another address each time
    first, second = both(kept[-1])
    x = kept[-1].numpy()
    np.testing.assert_allclose(first.numpy(), x + 1, rtol=1e-6)
    np.testing.assert_allclose(second.numpy(), x.reshape(16, 16) @ x.reshape(16, 16), rtol=1e-5)
(graph,) = graph_cache.values()
assert [node.kind for node in graph.graph.nodes] == ["kernel", "kernel"] and len(graph.nodes) == 2

again = pickle.loads(pickle.dumps(both))
np.testing.assert_allclose(again(kept[0])[0].numpy(), kept[0].numpy() + 1, rtol=1e-6)
with Context(DEBUG=2):                                          # tinygrad's own times
    both(kept[1])
taken = graph(tuple(u for u in [kept[1].uop]), {}, wait=True)
assert 0 < taken < 60

@TinyJit
def symbolic(x):
    return (x * 2 + 1).sum(1).realize(), (x.relu() * 3).sum(0).realize()

whole = Tensor(rng.normal(size=(20, 16)).astype("f4")).realize()
number = Variable("i", 1, 20)
for i in range(1, 9):
    rows, columns = symbolic(whole[: number.bind(i)])
    np.testing.assert_allclose(columns.numpy(), np.maximum(whole.numpy()[:i], 0).sum(0) * 3, rtol=1e-4, atol=1e-5)
assert any(graph.vars == ["i"] and graph.sizes for graph in graph_cache.values())

before = acc.memory_allocated()
both.captured.free_intermediates()
del both, again, graph, first, second, kept, symbolic
import gc
gc.collect()
Device["L0RT"].synchronize()
assert acc.memory_allocated() < before
"""

ERRORS = """
import l0rt
from tinygrad.device import CompileError
from l0rt.interop.tinygrad.renderer import L0RTCompiler

def refused(kind, text, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"no {kind.__name__}")

refused(RuntimeError, "there is no device L0RT:9: l0rt has 1", lambda: Device["L0RT:9"])
refused(CompileError, "error:", L0RTCompiler().compile, "kernel void f() { nothing(); }")
error = refused(MemoryError, "Allocation of", lambda: Tensor.empty(1 << 26).realize().uop.buffer.ensure_allocated())
assert isinstance(error.__cause__, l0rt.OutOfMemoryError)
assert (Tensor([1, 2]) + 1).tolist() == [2, 3]                  # it goes on
held = Tensor.empty(4, dtype=dtypes.int32).uop.buffer.allocate(external_ptr=(memory := l0rt.empty(64)).ptr)
memory.fill(1)
assert held.numpy().tolist() == [0x01010101] * 4
assert door.register() is door.L0RTDevice is Device.get_class("L0RT")
import tinygrad.runtime.ops_l0rt
"""


TINYGRAD = importlib.util.find_spec("tinygrad") is not None


def needed(text="needs tinygrad beside l0rt: the extra `partners`"):
    if not TINYGRAD:
        (pytest.fail if os.environ.get("L0RT_TEST_PARTNERS") == "1" else pytest.skip)(text)


@pytest.fixture
def settings(tmp_path):
    """What every process of tinygrad's needs: nothing of it goes into the user's folders."""
    needed()
    return {"DEV": "L0RT", "L0RT_DRIVER": "cpu", "PARALLEL": 0, "CACHEDB": tmp_path / "cache.db", "CI": None}


def succeed(code, settings, **more):
    result = run_python(BEGIN + code, {**settings, **more}, timeout=300)
    assert result.returncode == 0, result


def test_twenty_operations_and_their_gradients_are_numpys(settings):
    succeed(OPERATIONS, settings)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_net_of_mnists_size_learns_in_a_script_that_knows_nothing_of_l0rt(settings, tmp_path, workers, extent):
    if not workers:
        extent.skip_unless_whole()
    (tmp_path / "learn.py").write_text(TRAINING)
    args = [sys.executable, "-m", "l0rt.interop.tinygrad", tmp_path / "learn.py", "30"]
    result = run(args, {**settings, "PARALLEL": workers}, timeout=300)
    assert result.returncode == 0, result
    assert result.stdout == "learned\n"


def test_tinygrads_workers_compile_without_a_device(settings, tmp_path):
    succeed(WORKERS, settings, PARALLEL=2, L0RT_CACHE_DIR=tmp_path / "kernels")


def test_tensors_are_sharded_over_two_devices(settings):
    succeed(SEVERAL, settings, L0RT_CPU_DEVICES=2)


def test_captured_steps_are_graphs_whose_inputs_and_sizes_change(settings):
    succeed(GRAPHS, settings)


def test_errors_are_tinygrads_and_say_what_is_wrong(settings):
    succeed(ERRORS, settings, L0RT_CPU_DEVICES=1, L0RT_CPU_MEMORY="64MiB")


def test_the_program_of_the_docs_runs(settings):
    (program,) = re.findall(r"^```\n(import l0rt.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    result = run_python(program, {**settings, "DEV": None})
    assert (result.returncode, result.stdout) == (0, "[2, 4, 6]\n"), result


def test_a_search_for_the_fastest_kernel_uses_workers_and_the_devices_clock(settings, extent, tmp_path):
    extent.skip_unless_whole()
    code = "a = Tensor(rng.random((64, 64), 'f4')).realize(); b = (a @ a).numpy(); "
    code += "np.testing.assert_allclose(b, a.numpy() @ a.numpy(), rtol=1e-4)"
    succeed(code, settings, PARALLEL=2, BEAM=2, L0RT_CACHE_DIR=tmp_path / "kernels")


def test_without_a_device_the_error_is_l0rts(settings):
    result = run_python(BEGIN + "Tensor([1]).tolist()", {**settings, "L0RT_DRIVER": "/nowhere/libze.so"})
    assert result.returncode == 1, result
    assert "DriverNotFoundError" in result.stderr
    assert "L0RT_DRIVER=cpu" in result.stderr


def test_the_module_says_how_it_is_used(settings):
    for args in ([], ["--help"]):
        result = run([sys.executable, "-m", "l0rt.interop.tinygrad", *args], settings)
        assert result.returncode == 1, result
        assert result.stderr.startswith("usage: DEV=L0RT python -m")
    result = run([sys.executable, "-m", "l0rt.interop.tinygrad", "none.py"], settings)
    assert result.returncode == 1, result
    assert "none.py: there is no such file" in result.stderr


@pytest.mark.parametrize("found", [None, "0.13.0"])
def test_another_version_of_tinygrad_is_refused_before_anything_of_it_is_imported(found):
    code = f"""
from importlib import metadata
real, found = metadata.version, {found!r}
def version(name):
    if name == "tinygrad":
        if found is None:
            raise metadata.PackageNotFoundError(name)
        return found
    return real(name)
metadata.version = version
import sys
try:
    import l0rt.interop.tinygrad
except ImportError as error:
    print(error)
assert "tinygrad" not in sys.modules
"""
    result = run_python(code)
    told = "which is not installed" if found is None else "and 0.13.0 is installed"
    assert result.stdout.startswith("l0rt.interop.tinygrad needs tinygrad 0.14.0, "), result
    assert told in result.stdout
    assert "l0rt[partners]" in result.stdout
