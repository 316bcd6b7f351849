# SPDX-License-Identifier: Apache-2.0
"""Inductor's operations, and its index expressions, as expressions of OpenCL C."""

import math

import torch
from sympy.printing.precedence import PRECEDENCE
from torch._inductor.codegen.common import OpOverrides
from torch._inductor.utils import get_bounds_index_expr
from torch._inductor.virtualized import OpsValue, V
from torch.utils._sympy.printers import ExprPrinter

__all__ = ["MEMORY_TYPES", "TYPES", "Operations", "Printer", "computed_type", "constant_text"]

# What a value of a torch type is in a kernel, and in memory.
TYPES = {
    torch.bool: "bool",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.int16: "short",
    torch.uint16: "ushort",
    torch.int32: "int",
    torch.uint32: "uint",
    torch.int64: "long",
    torch.uint64: "ulong",
    torch.float16: "float",
    torch.bfloat16: "float",
    torch.float32: "float",
    torch.float64: "double",
}
MEMORY_TYPES = {**TYPES, torch.bool: "uchar", torch.float16: "half", torch.bfloat16: "ushort"}


def constant_text(value, dtype):
    """Return a number as a constant of a type."""
    kind = TYPES[dtype]
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_floating_point:
        value = float(value)
        if math.isnan(value):
            text = "NAN"
        elif math.isinf(value):
            text = "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = repr(value) if kind == "double" else repr(value) + "f"
        return f"({kind}){text}" if value != value or math.isinf(value) else f"({text})"
    value = int(value)
    if value == -1 << 63:
        return "(-0x7FFFFFFFFFFFFFFFL - 1)"
    return f"(({kind}){value}{'UL' if value > (1 << 63) - 1 else 'L'})"


class Printer(ExprPrinter):
    """Prints index expressions. Their numbers are whole, except where the method's name has a Float."""

    def _print_Integer(self, expr):
        value = int(expr)
        return f"{value}L" if abs(value) >= 1 << 31 else str(value)

    def _print_FloorDiv(self, expr):
        number, divisor = expr.args
        if number.is_nonnegative and divisor.is_nonnegative:
            parts = (self.parenthesize(part, PRECEDENCE["Atom"]) for part in (number, divisor))
            return f"({' / '.join(parts)})"
        return f"div_floor((long)({self._print(number)}), (long)({self._print(divisor)}))"

    def _print_ModularIndexing(self, expr):
        number, divisor, modulus = expr.args
        text = f"({self._print(number)})"
        if divisor != 1:
            text = f"({text} / ({self._print(divisor)}))"
        return f"({text} % ({self._print(modulus)}))"

    def _print_PythonMod(self, expr):
        number, modulus = (self._print(arg) for arg in expr.args)
        return f"mod_floor((long)({number}), (long)({modulus}))"

    def _print_extreme(self, expr, comparison):
        text = f"({self._print(expr.args[0])})"
        for arg in expr.args[1:]:
            other = f"({self._print(arg)})"
            text = f"({text} {comparison} {other} ? {text} : {other})"
        return text

    def _print_Min(self, expr):
        return self._print_extreme(expr, "<")

    def _print_Max(self, expr):
        return self._print_extreme(expr, ">")

    def _print_Where(self, expr):
        condition, left, right = (self._print(arg) for arg in expr.args)
        return f"(({condition}) ? ({left}) : ({right}))"

    def _print_Piecewise(self, expr):
        text = "0"
        for value, condition in reversed(expr.args):
            text = f"(({self._print(condition)}) ? ({self._print(value)}) : ({text}))"
        return text

    def _print_And(self, expr):
        return " && ".join(f"({self._print(arg)})" for arg in expr.args)

    def _print_Or(self, expr):
        return " || ".join(f"({self._print(arg)})" for arg in expr.args)

    def _print_Not(self, expr):
        return f"!({self._print(expr.args[0])})"

    def _print_BooleanTrue(self, expr):
        return "true"

    def _print_BooleanFalse(self, expr):
        return "false"

    def _print_Abs(self, expr):
        return f"(long)abs((long)({self._print(expr.args[0])}))"

    def _print_PowByNatural(self, expr):
        base, exponent = (self._print(arg) for arg in expr.args)
        return f"power((long)({base}), (long)({exponent}))"

    def _print_ToFloat(self, expr):
        return f"(float)({self._print(expr.args[0])})"

    def _print_IntTrueDiv(self, expr):
        left, right = (self._print(arg) for arg in expr.args)
        return f"((float)({left}) / (float)({right}))"

    def _print_Float(self, expr):
        return constant_text(float(expr), torch.float32)

    def _print_FloatPow(self, expr):
        base, exponent = (self._print(arg) for arg in expr.args)
        return f"pow((float)({base}), (float)({exponent}))"

    def _rounded(self, expr, how):
        return f"(long){how}((float)({self._print(expr.args[0])}))"

    def _print_FloorToInt(self, expr):
        return self._rounded(expr, "floor")

    def _print_CeilToInt(self, expr):
        return self._rounded(expr, "ceil")

    def _print_TruncToInt(self, expr):
        return self._rounded(expr, "trunc")

    def _print_RoundToInt(self, expr):
        return self._rounded(expr, "rint")

    def _print_OpaqueUnaryFn_sqrt(self, expr):
        return f"sqrt((float)({self._print(expr.args[0])}))"

    def _print_Infinity(self, expr):
        return "INFINITY"

    def _print_NegativeInfinity(self, expr):
        return "-INFINITY"


def _is_real(value):
    return value.dtype is not None and value.dtype.is_floating_point


def _common(*values):
    """Return the values' common type in OpenCL C, for functions that need all of one type."""
    dtype = values[0].dtype
    for value in values[1:]:
        dtype = torch.promote_types(dtype, value.dtype)
    return TYPES[dtype]


def _of_one_type(function, *values):
    kind = _common(*values)
    kind = "uchar" if kind == "bool" else kind
    return f"{function}({', '.join(f'({kind}){value}' for value in values)})"


def _real(value):
    """Return a value as one of a real type."""
    return f"{value}" if _is_real(value) else f"(float){value}"


def _function(name):
    """Return an operation that is a function of reals."""
    return staticmethod(lambda *values: f"{name}({', '.join(_real(value) for value in values)})")


def _infix(operator):
    return staticmethod(lambda a, b: f"{a} {operator} {b}")


class Operations(OpOverrides):
    """Each method returns the expression of an operation; its type is that of the variable that it is assigned to."""

    exp, exp2, expm1, log, log2, log10, log1p = map(
        _function, ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p")
    )
    sqrt, rsqrt, erf, erfc, lgamma = map(_function, ("sqrt", "rsqrt", "erf", "erfc", "lgamma"))
    sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh = map(
        _function,
        ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    )
    atan2, hypot, copysign, nextafter, fma = map(_function, ("atan2", "hypot", "copysign", "nextafter", "fma"))
    add, sub, mul, lt, le, gt, ge, eq, ne = map(_infix, ("+", "-", "*", "<", "<=", ">", ">=", "==", "!="))
    and_, or_, xor, bitwise_and, bitwise_or, bitwise_xor = map(_infix, ("&", "|", "^", "&", "|", "^"))
    logical_and, logical_or = map(_infix, ("&&", "||"))
    mul_rn = mul

    @staticmethod
    def constant(value, dtype):
        return constant_text(value, dtype)

    @staticmethod
    def index_expr(expr, dtype):
        return _index_value(expr, dtype, V.kernel.get_index_dtype_as_torch_dtype())

    @staticmethod
    def value_expr(expr, dtype):
        return _index_value(expr, dtype, dtype)

    @staticmethod
    def to_dtype(x, dtype, src_dtype=None, use_compute_types=True):
        if dtype == torch.bool:
            return f"{x} != 0"
        if _is_real(x) and not dtype.is_floating_point and not dtype.is_signed:
            return f"({TYPES[dtype]})(long){x}"  # a negative number wraps
        return f"({TYPES[dtype]}){x}"

    @staticmethod
    def to_dtype_bitcast(x, dtype, src_dtype):
        if torch.float16 in (dtype, src_dtype) or torch.bfloat16 in (dtype, src_dtype):
            raise NotImplementedError(f"lzrt: the bits of {src_dtype} as {dtype}")
        return f"as_{TYPES[dtype]}(({TYPES[src_dtype]}){x})"

    @staticmethod
    def abs(x):
        if _is_real(x):
            return f"fabs({x})"
        return f"{x}" if not x.dtype.is_signed else f"{x} < 0 ? -{x} : {x}"

    @staticmethod
    def neg(x):
        return f"-{x}"

    @staticmethod
    def truediv(a, b):
        return f"{a} / {b}" if _is_real(a) or _is_real(b) else f"(float){a} / (float){b}"

    int_truediv = div_rn = truediv

    @staticmethod
    def reciprocal(x):
        return f"1 / {_real(x)}"

    @staticmethod
    def sigmoid(x):
        return f"1 / (1 + exp(-{_real(x)}))"

    @staticmethod
    def relu(x):
        return f"{x} < 0 ? 0 : {x}"

    @staticmethod
    def floordiv(a, b):
        return _of_one_type("div_floor", a, b)

    @staticmethod
    def truncdiv(a, b):
        return _of_one_type("div_trunc", a, b)

    @staticmethod
    def mod(a, b):
        return _of_one_type("mod_trunc", a, b)

    fmod = mod

    @staticmethod
    def remainder(a, b):
        return _of_one_type("mod_floor", a, b)

    @staticmethod
    def pow(a, b):
        return _of_one_type("power", a, b)

    @staticmethod
    def maximum(a, b):
        return _of_one_type("maximum", a, b)

    @staticmethod
    def minimum(a, b):
        return _of_one_type("minimum", a, b)

    @staticmethod
    def where(condition, a, b):
        return f"{condition} ? {a} : {b}"

    @staticmethod
    def logical_not(a):
        return f"{a} == 0"

    @staticmethod
    def logical_xor(a, b):
        return f"({a} != 0) != ({b} != 0)"

    @staticmethod
    def bitwise_not(x):
        return f"!{x}" if x.dtype == torch.bool else f"~{x}"

    @staticmethod
    def bitwise_left_shift(x, y):
        bits = torch.iinfo(x.dtype).bits
        return f"{y} < 0 || {y} >= {bits} ? 0 : {x} << {y}"

    @staticmethod
    def bitwise_right_shift(x, y):
        last = torch.iinfo(x.dtype).bits - 1
        return f"{x} >> ({y} < 0 || {y} > {last} ? {last} : (int){y})"

    lshift, rshift = bitwise_left_shift, bitwise_right_shift

    @staticmethod
    def floor(x):
        return f"floor({x})" if _is_real(x) else f"{x}"

    @staticmethod
    def ceil(x):
        return f"ceil({x})" if _is_real(x) else f"{x}"

    @staticmethod
    def trunc(x):
        return f"trunc({x})" if _is_real(x) else f"{x}"

    @staticmethod
    def round(x):
        return f"rint({x})" if _is_real(x) else f"{x}"

    @staticmethod
    def sign(x):
        return f"({x} > 0) - ({x} < 0)"

    @staticmethod
    def signbit(x):
        return f"signbit({x}) != 0" if _is_real(x) else f"{x} < 0"

    @staticmethod
    def isnan(x):
        return f"isnan({x}) != 0" if _is_real(x) else "false"

    @staticmethod
    def isinf(x):
        return f"isinf({x}) != 0" if _is_real(x) else "false"

    @staticmethod
    def ldexp(x, n):
        return f"ldexp({_real(x)}, (int){n})"

    @staticmethod
    def frexp(x):
        kind = TYPES[x.dtype]
        exponent = V.kernel.cse.newvar(dtype=torch.int32)
        mantissa = V.kernel.cse.newvar(dtype=x.dtype)
        V.kernel.compute.writeline(f"int {exponent};")
        V.kernel.compute.writeline(f"{kind} {mantissa} = frexp({x}, &{exponent});")
        return mantissa, exponent

    @staticmethod
    def masked(mask, body, other):
        with V.kernel.mask_loads(mask, other) as inner:
            value = body()
        value = value.value if isinstance(value, OpsValue) else value
        dtype = value.dtype
        other = constant_text(other, dtype) if isinstance(other, bool | int | float) else other
        return V.kernel.cse.generate(V.kernel.compute, f"{inner} ? {value} : {other}", dtype=dtype, shape=())

    @staticmethod
    def rand(seed, offset):
        V.kernel.headers.add("compiled_random.clh")
        return f"random_uniform((ulong){seed}, (ulong){offset})"

    @staticmethod
    def randn(seed, offset):
        V.kernel.headers.add("compiled_random.clh")
        return f"random_normal((ulong){seed}, (ulong){offset})"

    @staticmethod
    def randint64(seed, offset, low, high):
        V.kernel.headers.add("compiled_random.clh")
        return f"random_whole((ulong){seed}, (ulong){offset}, (long){low}, (long){high})"


def _index_value(expr, dtype, computed):
    """Return an index expression as a value."""
    index = V.kernel.prepare_indexing(expr)
    text = V.kernel.kexpr(V.kernel.rename_indexing(index))
    kind = dtype if dtype not in (torch.int32, torch.int64) else computed
    bounds = get_bounds_index_expr(expr)
    return V.kernel.cse.generate(V.kernel.compute, text, bounds=bounds, dtype=computed_type(kind), shape=())


def computed_type(dtype):
    """Return the type in which values of a type are computed."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


Operations._initialize_pointwise_overrides("halide")
