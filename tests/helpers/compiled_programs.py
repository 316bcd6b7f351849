# SPDX-License-Identifier: Apache-2.0
"""Random programs of pointwise operators, reductions, indexing and views, for torch.compile: run as a script.

``python compiled_programs.py FIRST COUNT``: the programs FIRST to FIRST + COUNT, compiled for ``lzrt``, must equal
eager mode on the CPU. Ten programs are compiled together, as the outputs of one function: they share no operator.
"""

import random
import sys

import torch

TOGETHER = 10
ROWS, COLUMNS = 6, 20  # of the inputs; 20 is more than one work-item reduces alone


def inputs():
    """Return the inputs by name. Whole and rounded ones have equal values, so that order decides."""
    generator = torch.Generator().manual_seed(11)
    shape = ROWS, COLUMNS
    real = torch.randn(shape, generator=generator)
    whole = torch.randint(-9, 10, shape, generator=generator)
    return {
        "real": real,
        "other": torch.randn(shape, generator=generator),
        "row": torch.randn(COLUMNS, generator=generator),
        "positive": torch.rand(shape, generator=generator) + 0.5,
        "whole": whole,
        "small": whole.to(torch.int8),
        "byte": torch.randint(0, 256, shape, generator=generator).to(torch.uint8),
        "half": real.half(),
        "bfloat": real.bfloat16(),
        "double": real.double(),
        "truth": real > 0,
        "places": torch.randint(-ROWS, ROWS, (4,), generator=generator),
        "columns": torch.randint(0, COLUMNS, shape, generator=generator),
    }


REALS = ("real", "other", "positive", "half", "bfloat", "double")
WHOLES = ("whole", "small", "byte")

# What keeps small differences small, of a real tensor.
SMOOTH = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "exp": lambda x: x.clamp(-4, 2).exp(),
    "log1p": lambda x: x.abs().log1p(),
    "sqrt": lambda x: x.abs().sqrt(),
    "erf": torch.erf,
    "gelu": torch.nn.functional.gelu,
    "square": torch.square,
    "neg": torch.neg,
    "rsqrt": lambda x: (x.abs() + 1).rsqrt(),
    "silu": torch.nn.functional.silu,
    "atan": torch.atan,
    "softplus": torch.nn.functional.softplus,
    "half": lambda x: x * 0.5 - 0.25,
}
# What jumps: of inputs only, which are the same on both devices.
JUMPS = {
    "floor": torch.floor,
    "round": torch.round,
    "sign": torch.sign,
    "trunc": torch.trunc,
    "whole": lambda x: (x * 3).to(torch.int32),
    "truth": lambda x: x > 0.25,
    "ceil": lambda x: torch.ceil(x * 2),
    "frac": lambda x: torch.remainder(x, 0.5),
    "fmod": lambda x: torch.fmod(x, 0.5),
    "floor_divide": lambda x: torch.floor_divide(x, 0.5),
}
WHOLE = {
    "add": lambda x: x + 7,
    "mul": lambda x: x * 3,
    "floor_divide": lambda x: x // 3,
    "remainder": lambda x: x % 4,
    "fmod": lambda x: torch.fmod(x, 4),
    "shift": lambda x: x >> 1,
    "left": lambda x: x << 2,
    "and": lambda x: x & 5,
    "xor": lambda x: x ^ 3,
    "not": lambda x: ~x,
    "abs": torch.abs,
    "clamp": lambda x: x.clamp(1, 6),
    "real": lambda x: x.float() * 0.5,
    "narrow": lambda x: x.to(torch.int8),
    "equal": lambda x: x == 2,
    "true_divide": lambda x: x / 3,
    "square": torch.square,
}
BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "div": lambda x, y: x / (y.abs() + 1),
    "where": lambda x, y: torch.where(y > 0.1, x, y),
    "lerp": lambda x, y: torch.lerp(x.float(), y.float(), 0.3),
    "atan2": lambda x, y: torch.atan2(x.float(), y.float() + 3),
    "pow": lambda x, y: (x.float().abs() + 0.5).pow(y.float().clamp(-2, 2)),
    "hypot": lambda x, y: torch.hypot(x.float(), y.float()),
    "copysign": lambda x, y: torch.copysign(x.float(), y.float()),
}
VIEWS = {
    "transpose": lambda x: x.transpose(0, -1),
    "flatten": lambda x: x.reshape(-1),
    "split": lambda x: x.reshape(-1, 2),
    "step": lambda x: x[..., ::2],
    "first": lambda x: x[1:],
    "flip": lambda x: x.flip(-1),
    "unsqueeze": lambda x: x.unsqueeze(0).expand(3, *x.shape),
    "pad": lambda x: torch.nn.functional.pad(x, (2, 1)),
    "roll": lambda x: x.roll(2, -1),
    "cat": lambda x: torch.cat([x, x[:1]]),
    "stack": lambda x: torch.stack([x, x]),
    "unfold": lambda x: x.unfold(-1, 2, 1),
    "chunk": lambda x: x.chunk(2, -1)[0],
    "repeat": lambda x: x.repeat(2, *[1] * (x.dim() - 1)),
    "tril": lambda x: torch.tril(x) if x.dim() > 1 else x,
}
INDEXED = {
    "rows": lambda x, pool: x[pool["places"]],
    "pairs": lambda x, pool: x[pool["places"], pool["columns"][0, :4]],
    "gather": lambda x, pool: x.gather(1, pool["columns"]),
    "select": lambda x, pool: x.index_select(1, pool["columns"][0]),
    "add": lambda x, pool: torch.zeros_like(x).index_add(0, pool["places"] % ROWS, x[:4]),
    "put": lambda x, pool: x.index_put((pool["places"][:1],), x[:1] * 2),
    "mask": lambda x, pool: x.masked_fill(pool["truth"], 3),
    "scatter": lambda x, pool: torch.zeros_like(x).scatter(1, pool["columns"][:, :1], x[:, :1]),
    "take": lambda x, pool: x.take(pool["columns"]),
}
REDUCTIONS = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.float().mean(d),
    "amax": lambda x, d: x.amax(d),
    "amin": lambda x, d: x.amin(d, keepdim=True),
    "prod": lambda x, d: (x.float() * 0.1 + 1).prod(d),
    "any": lambda x, d: (x > 1).any(d),
    "all": lambda x, d: (x > -1).all(d),
    "var": lambda x, d: x.float().var(d),
    "std": lambda x, d: x.float().std(d, correction=0),
    "softmax": lambda x, d: x.float().softmax(d),
    "log_softmax": lambda x, d: x.float().log_softmax(d),
    "logsumexp": lambda x, d: x.float().logsumexp(d),
    "norm": lambda x, d: torch.linalg.vector_norm(x.float(), dim=d),
    "count": lambda x, d: torch.count_nonzero(x, d),
    "layer_norm": lambda x, d: torch.nn.functional.layer_norm(x.float(), x.shape[-1:]),
    "all_of_it": lambda x, d: x.sum(),
}
PLACES = {"argmax": lambda x, d: x.argmax(d), "argmin": lambda x, d: x.argmin(d), "max": lambda x, d: x.max(d).indices}


def program(seed):
    """Return a random program as a function of the inputs, and its text."""
    chosen = random.Random(seed)

    def one_of(table):
        name = chosen.choice(sorted(table))
        return table[name], name

    steps, text = [], []
    is_whole = chosen.random() < 0.25
    start = chosen.choice(WHOLES if is_whole else REALS)
    text.append(start)
    kind = chosen.random()
    if kind < 0.15:
        (place, name), axis = one_of(PLACES), chosen.choice((0, 1))
        return (lambda pool: place(pool[start], axis)), f"{start} {name}({axis})"
    if kind < 0.4:
        function, name = one_of(INDEXED)
        steps.append(function)
        text.append(f"indexed.{name}")
    elif kind < 0.6 and not is_whole:
        function, name = one_of(JUMPS)
        steps.append(lambda x, pool, function=function: function(x))
        text.append(name)
    for _ in range(chosen.randint(1, 4)):
        part = chosen.random()
        if part < 0.4:
            (smooth, name), (whole, other) = one_of(SMOOTH), one_of(WHOLE)
            steps.append(lambda x, pool, a=smooth, b=whole: a(x) if x.is_floating_point() else b(x.int()))
            text.append(f"{name}|{other}")
        elif part < 0.6:
            function, name = one_of(BINARY)
            partner = chosen.choice(("real", "other", "positive", "half", "double"))
            steps.append(lambda x, pool, f=function, p=partner: f(x, pool[p] if x.shape == pool[p].shape else x.cos()))
            text.append(f"{name}({partner})")
        elif part < 0.8:
            function, name = one_of(VIEWS)
            steps.append(lambda x, pool, f=function: f(x) if x.dim() and x.numel() % 2 == 0 else x)
            text.append(f"view.{name}")
        else:
            function, name = one_of(REDUCTIONS)
            axis = chosen.choice((0, -1))
            steps.append(lambda x, pool, f=function, d=axis: f(x, d) if x.dim() and x.shape[d] > 1 else x)
            text.append(f"reduction.{name}({axis})")

    def run(pool):
        value = pool[start]
        for step in steps:
            value = step(value, pool)
        return value

    return run, " ".join(text)


def limits(dtype, start):
    """Return the tolerances: those of the input's type, for what was computed from it."""
    if "half" in start or "bfloat" in start or dtype in (torch.float16, torch.bfloat16):
        return {"rtol": 4e-2, "atol": 4e-2}
    return {"rtol": 2e-4, "atol": 2e-5} if dtype.is_floating_point else {"rtol": 0, "atol": 0}


def main(first, count):
    import l0rt.interop.torch_device  # noqa: F401 - it registers the device type

    pool = inputs()
    there = {name: tensor.to("lzrt") for name, tensor in pool.items()}
    failures = []
    for begin in range(first, first + count, TOGETHER):
        programs = [program(seed) for seed in range(begin, min(begin + TOGETHER, first + count))]
        torch._dynamo.reset()
        functions = [run for run, _ in programs]
        results = torch.compile(lambda pool, functions=functions: [run(pool) for run in functions])(there)
        for number, ((run, text), result) in enumerate(zip(programs, results, strict=True), begin):
            expected = run(pool)
            try:
                bounds = limits(expected.dtype, text)
                torch.testing.assert_close(result.cpu(), expected, equal_nan=True, **bounds)
            except AssertionError as error:
                failures.append(f"program {number}: {text}: {error}")
    print(*failures, sep="\n")
    print(f"{count - len(failures)} of {count} programs agree")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
