# SPDX-License-Identifier: Apache-2.0
"""What programs of others write and one compiler or the other does not take by itself: it compiles, and computes."""

import os

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config
from l0rt.kernels import compiler, zig

from helpers import compilers


@pytest.fixture(params=["ocloc", "zig"])
def kind(request):
    if request.param not in compilers.INSTALLED:
        pytest.skip(f"{request.param} is not installed: {compiler.COMPILERS[request.param].PACKAGE}")
    with config.patch({"compiler": request.param}):
        yield request.param


def check(body, expected, options="", before="", args=(), parameters=""):
    """Compile a kernel of this body, which stores ints, and compare what it stores."""
    to = l0rt.empty(64).fill(0)
    source = f"{before}\nkernel void k(global int *o{parameters}) {{ {body} }}"
    with l0rt.compile(source, options) as module:
        module["k"][1, 1](to, *args)
        acc.synchronize()
        if os.environ.get("L0RT_TEST_NO_DATA") != "1":
            assert to.numpy("i4")[: len(expected)].tolist() == expected


@pytest.mark.checks_data
def test_dot_products_of_whole_numbers(kind):
    """Intel's own driver without hardware has no such function."""
    a, b = np.array([1, 2, 3, -4], "i1"), np.array([1, -1, 2, 2], "i1")
    body = """
      o[0] = dot(a, b), o[1] = dot(as_uchar4(a), as_uchar4(b));
      o[2] = dot(a, as_uchar4(b)), o[3] = dot(as_uchar4(a), b);
      o[4] = (int)dot((float2)(1, 2), (float2)(3, 4)), o[5] = dot_acc_sat(a, b, 7);
      o[6] = dot_4x8packed_ss_int(as_uint(a), as_uint(b)), o[7] = (int)dot(2.0f, 3.0f);
    """
    signed = [array.astype(int) for array in (a, b)]
    unsigned = [array.view("u1").astype(int) for array in (a, b)]
    products = [signed[0] @ signed[1], unsigned[0] @ unsigned[1], signed[0] @ unsigned[1], unsigned[0] @ signed[1]]
    wanted = [*map(int, products), 11, int(products[0]) + 7, int(products[0]), 6]
    check(body, wanted, "-cl-std=CL3.0", args=(a, b), parameters=", char4 a, char4 b")


def test_a_function_named_dot_is_the_sources(kind):
    own = "int dot(int a, int b, int c) { return a * b + c; }"
    check("o[0] = dot(2, 3, 4), o[1] = (int)dot((float3)2, (float3)1);", [10, 6], "-cl-std=CL3.0", own)


@pytest.mark.checks_data
def test_vectors_of_one_component(kind):
    """libocloc makes them, and the specification has none: drivers of Intel's take them."""
    types = "".join(f"typedef {t} {t}1 __attribute__((ext_vector_type(1)));" for t in ("int", "float"))
    body = """
      int1 a, b; a.x = o[0] + 3; b = a + a; a = b * a - (int1)1; o[0] = a.x;
      float1 r; r.x = o[1] + 0.5f; r = r * r; o[1] = (int)(r.x * 16);
      o[2] = a.x > b.x; int1 c[2] = {a, b}; o[3] = c[o[4] + 1].x;
    """
    check(body, [17, 4, 1, 6], before=types)


@pytest.mark.parametrize("attribute", ["", "__attribute__((noinline))", "__attribute__((always_inline))"])
def test_plain_inline_functions_have_bodies(kind, attribute):
    before = f"inline {attribute} int f(int x);\ninline {attribute} int f(int x) {{ return x < 2 ? x : x + 40; }}"
    check("for (int i = 1; i < 4; i++) o[i] = f(i + o[0]);", [0, 1, 42, 43], before=before)


OWN = {
    "smoothstep": ("float smoothstep(float a) { return a; }", "smoothstep(3.0f) + smoothstep(0.0f, 1.0f, 1.0f)", 4),
    "max": ("int max(int a, int b, int c) { return max(max(a, b), c); }", "max(1, 3, 2)", 3),
    "clamp": ("float clamp(float a) { return clamp(a, 0.0f, 1.0f); }", "clamp(7.0f)", 1),
    "mix": ("float mix(float2 v) { return mix(v.x, v.y, 0.5f); }", "mix((float2)(2, 4))", 3),
    "rotate": ("uint rotate(uint x) { return rotate(x, 31u); }", "rotate(6u)", 3),
    "dot": ("float dot(float a, float b, float c, float d) { return dot((float2)(a, b), (float2)(c, d)); }",
            "dot(1.0f, 2.0f, 3.0f, 4.0f)", 11),
    "length": ("float length(float a, float b) { return length((float2)(a, b)); }", "length(3.0f, 4.0f)", 5),
    "cross": ("float cross(float2 a, float2 b) { return cross((float3)(a, 0), (float3)(b, 0)).z; }",
              "cross((float2)(1, 2), (float2)(3, 4))", -2),
    "step": ("float step(float a) { return step(0.0f, a); }", "step(4.0f)", 1),
    "sin": ("float sin(float a, int b) { return sin(a) + b; }", "sin(0.0f, 4)", 4),
    "mul_hi": ("uint mul_hi(uint a) { return mul_hi(a, a); }", "mul_hi(0x30000u)", 9),
    "mad_sat": ("int mad_sat(int a, int b) { return mad_sat(a, b, 1); }", "mad_sat(2, 3)", 7),
    "clz": ("int clz(int a, int b) { return clz(a) + b; }", "clz(1, 2)", 33),
    "fmin": ("float fmin(float a) { return fmin(a, 2.0f); }", "fmin(9.0f)", 2),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_function_may_have_the_name_of_one_of_opencls_and_call_that(kind, name):
    own, call, value = OWN[name]
    check(f"o[0] = (int)({call});", [value], before=own)


@pytest.mark.skipif("zig" not in compilers.INSTALLED, reason=f"zig is not installed: {zig.PACKAGE}")
def test_every_shape_declares_what_opencl_has():
    """clang finds no other overload of a name that is declared, so that each call below is one of a declaration."""
    shapes = {shape: names.split()[0] for shape, names in zig.SHAPES.items()}
    calls = {
        "float1": "(x)", "float2": "(x, x)", "float3": "(x, x, x)",
        "int1": "(i)", "int2": "(i, i)", "int3": "(i, i, i)",
        "fbound": "(x, x.x) + f(x, x)", "bound": "(x, x.x) + f(x, x)", "clamp": "(x, x.x, x.y) + f(x, x, x)",
        "mix": "(x, x, x.x) + f(x, x, x)", "step": "(x.x, x) + f(x, x)", "smoothstep": "(x.x, x.y, x) + f(x, x, x)",
        "length": "(x)", "normalize": "(x)", "dot": "(x, x)", "cross": "(x, x)",
    }  # fmt: skip
    with config.patch({"compiler": "zig"}):
        for shape, name in shapes.items():
            call = (name + calls[shape]).replace("f(", f"{name}(")
            value = call if shape in ("length", "dot") else f"({call}).x"
            own = f"float {name}(float a, float b, float c, float d, float e) {{ return a; }}\n"
            l0rt.compile(own + f"kernel void k(float4 x, int4 i, global float *to) {{ to[0] = {value}; }}").close()


@pytest.mark.parametrize("version", ["CL1.1", "CL1.2", "CL2.0", "CL3.0"])
def test_every_version_of_the_language(kind, version):
    body = "o[0] = __OPENCL_C_VERSION__; barrier(CLK_LOCAL_MEM_FENCE); o[1] = (int)dot((float4)1, (float4)2);"
    check(body, [int(version[2:].replace(".", "")) * 10, 8], f"-cl-std={version}")


@pytest.mark.checks_data
def test_the_first_version_has_double_precision(kind):
    """The CPU device has it, and not every one of Intel's."""
    before = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable"
    check("double d = o[1] + 2.25; o[0] = (int)(sqrt(d) * 4);", [6], "-cl-std=CL1.1", before)
