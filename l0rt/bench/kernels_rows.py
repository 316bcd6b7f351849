# SPDX-License-Identifier: Apache-2.0
"""The kernels' rows: launches beside the bare driver's, what specialising gains, how fast random numbers are."""

from functools import partial
from importlib.resources import files

import l0rt
import l0rt.accelerator as acc
import l0rt.bench.launch_loops as launch_loops
import l0rt.bench.reference as reference
from l0rt import config
from l0rt.bench.lab import Gated
from l0rt.bench.rows import MIB, Note, Skip, Work, python, suite
from l0rt.kernels import compiler

row = suite("kernels")
AT_ONCE = 512  # launches before a wait: few enough to queue


def launches(lab, language):
    """Launching one work-item with four arguments: two Buffers, a float and an int."""
    code = (files("l0rt.bench") / "saxpy.spv").read_bytes()
    with Gated(lab, acc.Stream()) as gated, l0rt.Module(code) as module:
        x, y = l0rt.empty(4).fill(0), l0rt.empty(4).fill(0)
        saxpy = launch_loops.Saxpy(lab.context, lab.device, code, y.ptr, x.ptr)
        if language == "churn":
            host = l0rt.empty(4, kind="host").fill(0)
            raw = partial(saxpy.raw_launch, lab.list, lab.events, host=host.ptr)
            yield Work(partial(saxpy.churn, host.ptr), raw, most=AT_ONCE)
            return
        if language == "c":
            yield Work(saxpy.launch, lambda n: saxpy.raw_launch(lab.list, lab.events, n), most=AT_ONCE)
            return
        loop = {
            "python": python("kernel[1, 1](y, x, 0.0, 1)", kernel=module["saxpy"], y=y, x=x),
            "bound": python("launch(y, x, 0.0, 1)", launch=module["saxpy"][1, 1], y=y, x=x),
        }[language]
        beside, finish = pyopencl_launches() if language == "python" else (None, lambda: None)

        def notes(figures):
            return {"pyopencl": Note(figures["beside"].median, "ns")} if beside else {}

        yield Work(
            gated.around(loop),
            lambda n: saxpy.raw_launch(lab.list, lab.events, n),
            beside,
            most=AT_ONCE,
            rest=finish,
            notes=notes,
        )


def pyopencl_launches():
    """Return a loop of pyopencl's launches of the same kernel, and what waits for them; without a device no loop."""
    try:
        import pyopencl as cl  # here, not above: programs without a use for it need not install it

        queue = cl.CommandQueue(cl.Context(cl.get_platforms()[0].get_devices()[:1]))
        kernel = cl.Program(queue.context, (files("l0rt.bench") / "saxpy.cl").read_text()).build().saxpy
        y, x = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4) for _ in range(2))
    except (ImportError, IndexError, RuntimeError):  # pyopencl's errors are RuntimeErrors
        return None, lambda: None
    kernel.set_scalar_arg_dtypes([None, None, "f4", "u4"])
    names = {"kernel": kernel, "queue": queue, "y": y, "x": x}
    return python("kernel(queue, (1,), (1,), y, x, 0.0, 1)", **names), queue.finish


RAW = "raw: 4 KernelSetArgumentValue, AppendLaunchKernel"
row("launch.append.c", f"l0rt_launch with four arguments; {RAW}", "c", over_raw=60)(launches)
# What the allocator, the copy and the launch may each take by themselves.
row(
    "launch.churn.c",
    "l0rt_malloc of 4 KiB, a copy there, l0rt_launch, l0rt_free; raw: AppendMemoryCopy and the launch, one block",
    "churn",
    over_raw=20 + 60 + 60,
)(launches)
row("launch.append.python", "kernel[1, 1](y, x, 0.0, 1)", "python", over_raw=500)(launches)
row("launch.append.bound.python", "launch(y, x, 0.0, 1), launch = kernel[1, 1]", "bound", over_raw=500)(launches)


@row(
    "launch.specialized.python",
    "kernel[1, 1](y, x, 0.0, 1) of l0rt.specialize, with one predicate; raw: kernel[1, 1] of the same variant",
    over_raw=200,
)
def specialized(lab):
    """What choosing a variant that is built adds to a launch."""
    code = (files("l0rt.bench") / "saxpy.spv").read_bytes()
    with Gated(lab, acc.Stream()) as gated, l0rt.specialize(code, [(lambda y, x, a, n: n == 1, {})]) as module:
        x, y = l0rt.empty(4).fill(0), l0rt.empty(4).fill(0)
        kernel = module["saxpy"]
        variant = kernel.select(y, x, 0.0, 1)
        yield Work(
            gated.around(python("kernel[1, 1](y, x, 0.0, 1)", kernel=kernel, y=y, x=x)),
            gated.around(python("kernel[1, 1](y, x, 0.0, 1)", kernel=variant, y=y, x=x)),
            most=AT_ONCE,
        )


POWER = """
#if COUNT == 32
#define TWICE(step) step step
#define TIMES(count, step) TWICE(TWICE(TWICE(TWICE(TWICE(step)))))
#else
#define TIMES(count, step) for (uint k = 0; k < count; k++) { step }
#endif
kernel void power(global float *to, const global float *x, uint n) {
  size_t i = get_global_id(0);
  float product = 1, factor = x[i];
  TIMES(n, product *= factor;)
  to[i] = product;
}
"""


@row("specialize.fixed_loop.python", "65536 powers x**32, whose exponent is a fact; beside: the generic variant")
def fixed_loop(lab):
    """What a variant whose loop has a fixed length takes of the generic one's time: at most half."""
    groups, size, exponent = 1024, 64, 32
    try:
        facts = {"COUNT": exponent}
        module = l0rt.specialize(POWER, [(lambda to, x, n: n == exponent, facts)], "-D COUNT=0").prebuild()
    except l0rt.CompilerNotFoundError:
        raise Skip("no compiler of OpenCL C is installed") from None
    stream = acc.Stream()
    with stream, module:
        x, to = l0rt.empty(4 * groups * size).fill(0), l0rt.empty(4 * groups * size)

        def loop(kernel):
            names = {"launch": kernel[groups, size], "to": to, "x": x, "n": exponent, "wait": stream.synchronize}
            return python("launch(to, x, n); wait()", **names)

        def notes(figures):
            return {"share of the generic time": Note(figures["own"].median / figures["beside"].median, limit=0.5)}

        yield Work(
            loop(module["power"].select(to, x, exponent)), beside=loop(module["power"].select(to, x, 0)), notes=notes
        )


@row("random.uniform.64MiB.python", "x.uniform_() of 64 MiB of float32, with the wait; beside: scalar C, one thread")
def uniform(lab):
    nbytes = 64 * MIB
    x = l0rt.empty(nbytes)

    def notes(figures):
        if "beside" not in figures:
            return {}
        share = figures["own"].median / figures["beside"].median
        noise = share - figures["own"].quartiles[0] / figures["beside"].quartiles[1]
        return {"of scalar C's time": Note(share, "x", 0.6, noise=noise)}

    yield Work(
        python("x.uniform_(); wait()", x=x, wait=acc.synchronize),
        beside=lambda n: reference.philox(nbytes, n),
        n=1,
        rounds=7,
        notes=notes,
    )


@row("random.uniform.4KiB.python", "x.uniform_() of 4 KiB of float32", long=True)
def small_uniform(lab):
    x = l0rt.empty(4096)
    yield Work(python("x.uniform_()", x=x), most=AT_ONCE, rest=acc.synchronize)


@row("random.philox_engine_inputs.python", "generator.philox_engine_inputs(4)", ns=100)
def philox_engine_inputs(lab):
    """What a kernel's words of a generator cost: an offset goes on."""
    yield Work(python("draw(4)", draw=l0rt.Generator().philox_engine_inputs))


def compile_cached(lab, where):
    """What a compile takes that finds the SPIR-V; the driver builds the module each time."""
    source = (files("l0rt.bench") / "saxpy.cl").read_text()
    forget = compiler._kept.clear if where == "disk" else None
    if forget and not config.get("cache_size"):
        raise Skip("the cache is switched off")
    try:
        l0rt.compile(source)
    except l0rt.CompilerNotFoundError:
        raise Skip("no compiler of OpenCL C is installed") from None
    yield Work(python("forget(); compile(source)" if forget else "compile(source)",
                      compile=l0rt.compile, source=source, forget=forget))  # fmt: skip


COMPILED = "l0rt.compile of a source that was compiled before: its module"
row("compile.cached.python", COMPILED, "memory", ns=200_000)(compile_cached)
row("compile.cached.disk.python", f"{COMPILED}, in a new process", "disk", ns=200_000)(compile_cached)
