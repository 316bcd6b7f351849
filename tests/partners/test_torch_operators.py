# SPDX-License-Identifier: Apache-2.0
"""torch's operators by l0rt's kernels: equal to the CPU's, without a fallback; torch's own samples; a GPT."""

import ast
import re
import sys

import pytest

from helpers.process import run, run_python
from helpers.source import ROOT
from helpers.torch_extension import LONG, cache, variables

__all__ = ["cache"]

BEGIN = """
import warnings
warnings.simplefilter("ignore")
import torch
from torch import nn
from torch.nn import functional as F
import l0rt.interop.torch_device as door
torch.manual_seed(0)

def same(actual, expected, **limits):
    torch.testing.assert_close(actual.cpu(), expected, **limits)

def both(function, *arguments, **limits):
    there = [a.to("lzrt") if isinstance(a, torch.Tensor) else a for a in arguments]
    actual, expected = function(*there), function(*arguments)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for a, e in zip(actual, expected, strict=True):
        same(a, e, equal_nan=True, **limits)

def with_gradients(function, *arguments, **limits):
    def run(*arguments):
        leaves = [a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
                  for a in arguments]
        result = function(*leaves)
        (result * torch.linspace(-1, 2, result.numel()).view(result.shape).to(result)).sum().backward()
        return (result.detach(), *(a.grad for a in leaves if isinstance(a, torch.Tensor) and a.is_floating_point()))
    both(run, *arguments, **limits)

a, b = torch.randn(5, 7), torch.randn(5, 7)
door.forget_fallbacks()
"""

END = """
assert door.fallbacks() == [], door.fallbacks()
"""

PROGRAMS = {
    "reductions": """
t = torch.randn(3, 4, 5, 6)
for x in (t, t.transpose(0, 2), t[:, ::2, :, 1:], t.expand(2, 3, 4, 5, 6)):
    for dims in ((0,), (1, 3), (0, 2), (-1,), (0, 1, 2)):
        for function in (torch.sum, torch.mean, torch.amax, torch.amin, torch.var, torch.std):
            both(lambda x, f=function, d=dims: f(x, d), x)
            both(lambda x, f=function, d=dims: f(x, d, keepdim=True), x)
    for function in (torch.argmax, torch.argmin, torch.cumsum, torch.cumprod, torch.prod, torch.max, torch.min):
        both(lambda x, f=function: tuple(f(x, 1)) if f in (torch.max, torch.min) else f(x, 1), x)
    for function in (torch.sum, torch.mean, torch.prod, torch.max, torch.min, torch.argmax, torch.norm, torch.var):
        both(function, x, rtol=1e-5, atol=1e-5)
    both(lambda x: (x > 0).any(1), x)
    both(lambda x: (x > -9).all(), x)
both(torch.sum, torch.randn(1 << 17), rtol=1e-4, atol=1e-4)
both(lambda x: torch.linalg.vector_norm(x), torch.randn(1 << 17))
nan = torch.tensor([1.0, float("nan"), 3.0, float("nan")])
both(torch.argmax, nan)
both(torch.amax, nan)
whole = torch.randint(-9, 9, (4, 300))
both(torch.sum, whole)
both(lambda x: x.sum(1), whole > 0)
both(lambda x: x.max(1).indices, whole)
both(lambda x: x.cumsum(1), whole)
""",
    "types": """
for dtype in (torch.float16, torch.bfloat16, torch.float64):
    x, y = a.to(dtype), b.to(dtype)
    for function in (torch.add, torch.mul, torch.div, torch.maximum, torch.lt, torch.atan2):
        both(function, x, y)
        both(function, x.t(), y.t())
    for function in (torch.exp, torch.tanh, F.gelu, torch.sigmoid, torch.relu, lambda x: x.clamp(-0.5, 0.5)):
        both(function, x)
    both(lambda x, y: x @ y.t(), x, y)
    both(lambda x: x.sum(1), x)
    both(lambda x: x.softmax(1), x)
    wide = torch.randn(64, 100).to(dtype)
    both(lambda x: x @ x.t(), wide, **({"rtol": 2e-2, "atol": 0.2} if dtype == torch.bfloat16 else {}))
x, y = torch.randint(-9, 9, (6, 5)), torch.randint(1, 9, (6, 5))
for function in (torch.add, torch.sub, torch.mul, torch.div, torch.eq, torch.ge, torch.bitwise_and, torch.bitwise_xor):
    both(function, x, y)
    both(function, x.int(), y)
for function in (torch.neg, torch.abs, torch.sign, torch.bitwise_not, torch.exp, torch.sqrt, torch.logical_not):
    both(function, x)
both(torch.logical_and, x > 0, y > 4)
both(lambda x: ~(x > 0), x)
both(lambda x: x + 1.5, x)
both(lambda x: x * 2, x.to(torch.int8))
both(lambda x, y: x + y, x, a[:1, :5])
for dtype in (torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.bool, torch.float64):
    both(lambda x, d=dtype: x.to(d), 10 * a)
    both(lambda x, d=dtype: x.t().to(d), x)
""",
    "functions": """
for function in (torch.where, torch.lerp):
    both(lambda x, y, f=function: f(x > 0, x, y) if f is torch.where else f(x, y, 0.3), a, b)
both(lambda x, y: torch.where(x > 0, x, 0.0), a, b)
both(lambda x, y: x.masked_fill(y > 0, float("-inf")), a, b)
both(lambda x, y: torch.addcmul(x, x, y, value=0.5), a, b)
both(lambda x, y: torch.addcdiv(x, x, y, value=0.5), a, b)
both(lambda x: x.pow(2), a)
both(lambda x: 2 ** x, a)
both(lambda x: x.tril(1), a)
both(lambda x: x.triu(-1), a)
for function in (F.gelu, F.silu, torch.tanh, torch.sigmoid, F.relu, F.softplus, F.hardtanh, F.mish, F.elu, F.leaky_relu,
                 F.hardswish, F.hardsigmoid, lambda x: F.gelu(x, approximate="tanh"), lambda x: x.softmax(0),
                 lambda x: x.log_softmax(1), lambda x: x.softmax(1), lambda x: x.clamp(-1, 0.5)):
    with_gradients(function, a * 2)
with_gradients(F.mse_loss, a, b)
with_gradients(lambda x: F.layer_norm(x, (7,)), a)
with_gradients(lambda x, w, b: F.layer_norm(x, (7,), w, b), a, torch.randn(7), torch.randn(7), rtol=1e-4, atol=1e-5)
with_gradients(lambda x, w, b: F.layer_norm(x, (300,), w, b), torch.randn(4, 300), torch.randn(300), torch.randn(300),
               rtol=1e-4, atol=1e-4)
with_gradients(lambda x: F.cross_entropy(x, torch.tensor([1, 0, 6, 2, -100]).to(x.device)), a)
weights = b[0].abs()
with_gradients(lambda x: F.cross_entropy(x, torch.tensor([1, 0, 6, 2, 5]).to(x.device), weights.to(x.device)), a)
with_gradients(lambda x: F.nll_loss(x, torch.tensor([1, 0, 6, 2, 3]).to(x.device), reduction="none"), a)
with_gradients(lambda w: F.embedding(torch.tensor([[1, 2], [1, 0]]).to(w.device), w, padding_idx=0), a)
""",
    "indexing": """
i = torch.tensor([3, 0, 3, -1])
both(lambda x, i: x[i], a, i)
both(lambda x, i: x[:, i], a, i)
both(lambda x, i: x[i, i[:, None]], a, i)
t = torch.randn(4, 5, 6, 7)
both(lambda x, i: x[:, i[:, None], i], t, i)
both(lambda x, i: x[i, :, i], t, i)
both(lambda x, i: x.index_select(1, i), a, i.abs())
both(lambda x, i: x.gather(1, i), a, torch.randint(0, 7, (5, 9)))
both(lambda x, i, y: x.scatter(1, i, y), a, torch.stack([torch.randperm(7)[:4] for _ in range(5)]), b)
both(lambda x, i: x.scatter(1, i, 2.5), a, torch.randint(0, 7, (5, 4)))
both(lambda x, i, y: x.scatter_add(1, i, y), a, torch.randint(0, 7, (5, 4)), b)
both(lambda x, i, y: x.index_add(1, i, y[:, :4]), a, i.abs(), b)
def put(x, i, y):
    x = x.clone()
    x[i] = y[:3]
    x.index_put_((i,), y[:3], accumulate=True)
    return x
both(put, a, torch.tensor([4, 0, 2]), b)
both(lambda x, y: torch.cat([x, y.half(), x[:0]], 0), a, b)
both(lambda x, y: torch.stack([x, y], 1), a, b)
outside = a.to("lzrt")[torch.tensor([7, 1]).to("lzrt")].cpu()        # reads zeros, and nothing else
assert outside[0].tolist() == [0] * 7 and torch.equal(outside[1], a[1])
for arguments in ((10,), (2, 9, 3), (5, -5, -2), (0.0, 1.0, 0.1)):
    same(torch.arange(*arguments, device="lzrt"), torch.arange(*arguments))
""",
    "products": """
for rows, depth, columns in ((1, 3, 5), (33, 16, 40), (64, 64, 64), (130, 37, 65), (7, 200, 90)):
    x, y, z = torch.randn(rows, depth), torch.randn(depth, columns), torch.randn(rows, columns)
    limits = {"rtol": 1e-4, "atol": 1e-4}
    both(torch.matmul, x, y, **limits)
    both(lambda x, y: y.t() @ x.t(), x, y, **limits)
    both(lambda x, y, z: torch.addmm(z, x, y, alpha=2, beta=0.5), x, y, z, **limits)
    both(lambda x, y: x @ y[:, 0], x, y, **limits)
    both(lambda x, y: torch.dot(x[0], y[:, 0]), x, y, **limits)
    both(lambda x, y: x.half() @ y.half(), x, y, rtol=2e-3, atol=2e-2)
    both(lambda x, y: torch.stack([x, x + 1]) @ y, x, y, **limits)
image, kernel, bias = torch.randn(2, 4, 9, 8), torch.randn(6, 4, 3, 2), torch.randn(6)
limits = {"rtol": 1e-3, "atol": 1e-3}
with_gradients(F.conv2d, image, kernel, bias, **limits)
with_gradients(lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=(2, 1)), image, kernel, **limits)
with_gradients(lambda x, w: F.conv2d(x, w, groups=2), image, torch.randn(6, 2, 3, 3), **limits)
with_gradients(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1), image,
               torch.randn(4, 3, 3, 3), **limits)
with_gradients(F.conv1d, torch.randn(2, 3, 10), torch.randn(4, 3, 3), **limits)
with_gradients(F.conv3d, torch.randn(1, 2, 4, 5, 4), torch.randn(3, 2, 2, 2, 2), **limits)
def batch_norm(x):
    norm = nn.BatchNorm2d(4).to(x.device)
    y = norm(x)
    return y + norm.eval()(x) + norm.running_var.sum()
with_gradients(batch_norm, image, **limits)
""",
    "random": """
import l0rt, numpy as np
from l0rt import philox
def numbers(fill, dtype=torch.float32, count=1000):
    torch.manual_seed(7)
    x = torch.empty(count, dtype=dtype, device="lzrt")
    fill(x)
    fill(x)
    return x.cpu().numpy()
for dtype, name in ((torch.float32, "float32"), (torch.float16, "float16"), (torch.float64, "float64")):
    words = 2000 if name == "float64" else 1000
    for fill, expected in ((lambda x: x.uniform_(-1, 3), philox.uniform(7, words, 1000, -1, 3, name)),
                           (lambda x: x.normal_(2, 0.5), philox.normal(7, words, 1000, 2, 0.5, name))):
        np.testing.assert_allclose(numbers(fill, dtype), expected, rtol=2e-3 if name == "float16" else 1e-6, atol=1e-6)
assert (numbers(lambda x: x.random_(5, 900), torch.int64) == philox.randint(7, 2000, 1000, 5, 900)).all()
assert (numbers(lambda x: x.bernoulli_(0.3)) == philox.bernoulli(7, 1000, 1000, 0.3, "float32")).all()
x = torch.ones(4096, device="lzrt", requires_grad=True)
y = F.dropout(x, 0.25)
y.sum().backward()
assert 2800 < (y != 0).sum().item() < 3350 and torch.equal(y.detach().cpu(), x.grad.cpu())
assert torch.rand(1000, dtype=torch.bfloat16, device="lzrt").max().item() < 1
assert 0 <= torch.randint(3, 8, (1000,), device="lzrt").sub(3).min().item()
own = torch.Generator("lzrt")
own.manual_seed(3)
u = torch.rand(8, device="lzrt", generator=own)
own.manual_seed(3)
assert torch.equal(u.cpu(), torch.rand(8, device="lzrt", generator=own).cpu())
# A captured draw uses new numbers at each replay.
stream = torch.Stream("lzrt")
with stream:
    graph = torch.accelerator.Graph()
    graph.capture_begin()
    drawn = torch.rand(16, device="lzrt")
    graph.capture_end()
    graph.replay()
    first = drawn.cpu()
    graph.replay()
    assert not torch.equal(first, drawn.cpu())
""",
}

# Torch's own samples of operators. An operator that has fewer samples is no less of an operator.
SAMPLES = """
from torch.testing._internal.common_methods_invocations import op_db
NAMES = '''{names}'''.split()
known = {{(op.name, op.variant_test_name): op for op in op_db}}
agree = count = 0
differing = set()
for name in NAMES:
    name, _, variant = name.partition("/")
    op = known[name, variant]
    for sample in op.sample_inputs("cpu", torch.float32):
        if count_of[name] >= {most}:
            break
        count_of[name] += 1
        move = lambda x: x.to("lzrt") if isinstance(x, torch.Tensor) else x
        there = sample.transform(move)
        expected = op(sample.input, *sample.args, **sample.kwargs)
        try:
            actual = op(there.input, *there.args, **there.kwargs)
            back = lambda x: x.cpu() if isinstance(x, torch.Tensor) else x
            actual = torch.utils._pytree.tree_map(back, actual)
            torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4, equal_nan=True)
            agree += 1
        except Exception as error:
            differing.add((name, str(error).splitlines()[0]))
        count += 1
print(agree, count, len(NAMES), sorted(differing))
"""
FORWARD = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv all amax amin any arange argmax argmin asin asinh atan atan2
atanh baddbmm bmm cat ceil clamp cos cosh cumprod cumsum div/no_rounding_mode eq erf erfc exp exp2 expand expm1 fill
flip floor fmax fmin fmod frac gather ge gt hypot index_add index_put index_select isnan le lerp log log10 log1p log2
log_softmax logical_and logical_not logical_or logical_xor logsumexp lt masked_fill matmul max/reduction_no_dim
maximum mean min/reduction_no_dim minimum mm mul mv ne neg nn.functional.conv2d nn.functional.cross_entropy
nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.hardsigmoid nn.functional.hardswish
nn.functional.hardtanh nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear nn.functional.mish
nn.functional.mse_loss nn.functional.nll_loss nn.functional.relu nn.functional.silu nn.functional.softplus pow prod
reciprocal remainder round rsqrt scatter scatter_add sigmoid sign sin sinh softmax sqrt stack std sub sum tan tanh
tril triu trunc var where xlogy
"""
GRADIENTS = """
functions = {{
    "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "div": lambda x, y: x / (y * y + 1),
    "sub": lambda x, y: x - y,
    "exp": lambda x, y: x.exp(), "log": lambda x, y: (x * x + 1).log(), "sqrt": lambda x, y: (x * x + 1).sqrt(),
    "sin": lambda x, y: x.sin(), "cos": lambda x, y: x.cos(), "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid(), "gelu": lambda x, y: F.gelu(x), "silu": lambda x, y: F.silu(x),
    "softplus": lambda x, y: F.softplus(x), "mish": lambda x, y: F.mish(x), "elu": lambda x, y: F.elu(x),
    "softmax": lambda x, y: x.softmax(1), "log_softmax": lambda x, y: x.log_softmax(0),
    "sum": lambda x, y: x.sum(0), "mean": lambda x, y: x.mean(1), "var": lambda x, y: x.var(1),
    "matmul": lambda x, y: x @ y.t(), "layer_norm": lambda x, y: F.layer_norm(x, (4,), y[0], y[1]),
    "cumsum": lambda x, y: x.cumsum(1), "cat": lambda x, y: torch.cat([x, y]), "tril": lambda x, y: x.tril(),
    "gather": lambda x, y: x.gather(1, torch.tensor([[1], [0], [3]]).to(x.device)), "pow": lambda x, y: x ** 3,
    "where": lambda x, y: torch.where(y.detach() > 0, x, y), "mse_loss": lambda x, y: F.mse_loss(x, y),
    "addcmul": lambda x, y: torch.addcmul(x, x, y), "erf": lambda x, y: x.erf(),
}}
assert len(functions) >= 30
for name, function in [*functions.items()][::{each}]:
    x, y = (torch.randn(3, 4, dtype=torch.float64).to("lzrt").requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(function, (x, y)), name
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_of_torch_run_by_kernels(cache, name, tmp_path):
    result = run_python(BEGIN + PROGRAMS[name] + END, variables(cache), cwd=tmp_path, timeout=LONG, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result


def test_samples_of_torch_agree_with_the_cpu(cache, tmp_path, extent):
    names = FORWARD.split()
    assert len(names) >= 100
    chosen = names[:: extent(12, 1, 1)]
    before = "from collections import Counter\ncount_of = Counter()\n"
    code = BEGIN + before + SAMPLES.format(names=" ".join(chosen), most=extent(4, 1000, 1000))
    result = run_python(code, variables(cache), cwd=tmp_path, timeout=2 * LONG, fresh=True)
    assert result.returncode == 0, result
    agree, count, operators, differing = result.stdout.strip().split(" ", 3)
    assert int(operators) == len(chosen), result
    assert int(count) >= len(chosen), result
    assert int(agree) >= 0.99 * int(count), differing


def test_gradients_are_those_of_differences(cache, tmp_path, extent):
    code = BEGIN + GRADIENTS.format(each=extent(6, 1, 1))
    result = run_python(code, variables(cache), cwd=tmp_path, timeout=2 * LONG, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result


def losses_of(cache, *options):
    command = [sys.executable, ROOT / "examples/torch_gpt.py", "--steps", "50", *options]
    result = run(command, variables(cache), timeout=2 * LONG)
    assert result.returncode == 0, result
    fallbacks = ast.literal_eval(re.search(r"^on the CPU: (.*)$", result.stdout, re.MULTILINE)[1])
    losses = re.search(r"^losses: (.*)$", result.stdout, re.MULTILINE)[1].split()
    return [float(loss) for loss in losses], fallbacks


def test_a_gpt_trains_with_the_losses_of_the_cpu(cache):
    expected, _ = losses_of(cache, "--device", "cpu")
    assert len(expected) == 50
    assert expected[-1] < expected[0] - 1
    for options in ((), ("--graph",), ("--device", "lzrt:1")):
        losses, fallbacks = losses_of(cache, *options)
        worst = max(abs(loss - other) for loss, other in zip(losses, expected, strict=True))
        assert worst < 1e-4, (options, worst)
        assert fallbacks == [], (options, fallbacks)
