# SPDX-License-Identifier: Apache-2.0
"""Inductor's kernels for the device type ``lzrt``: loops over tensors as OpenCL C.

A kernel without reductions has one work-item for each element. A kernel with reductions has one work-item, or one
group, for each result: it loops over what is reduced, and the work-items of a group combine what they have in local
memory. After that every work-item has the result, so that all code that follows is the same in both forms.
"""

import sympy
import torch
from torch._inductor.codegen.common import CSE, CSEVariable, DeferredLine, IndentedBuffer, SizeArg, TensorArg
from torch._inductor.codegen.simd import SIMDKernel, SIMDScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, pexpr
from torch._inductor.runtime.hints import ReductionHint
from torch._inductor.utils import get_kernel_metadata
from torch._inductor.virtualized import OpsValue, V
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.symbol import SymT, symbol_is_type

from l0rt.interop.torch_device.operations import (
    MEMORY_TYPES,
    TYPES,
    Operations,
    Printer,
    computed_type,
    constant_text,
)

__all__ = ["Kernel", "Scheduling", "Wrapper"]

GROUP = 64  # work-items of a group without reductions
MOST_REDUCING = 256  # work-items of a group that reduces
FEW = 16  # elements that one work-item reduces alone
MANY = 2048  # results, each of which one work-item reduces, if neighbours read neighbours

# What a reduction makes of two values.
_COMBINED = {
    "sum": "{a} + {b}",
    "prod": "{a} * {b}",
    "xor_sum": "{a} ^ {b}",
    "any": "{a} || {b}",
    "max": "maximum({a}, {b})",
    "min": "minimum({a}, {b})",
}

# What adds to memory that others add to.
_SUMS = dict.fromkeys((torch.int8, torch.uint8, torch.int16, torch.int32, torch.uint32, torch.int64), "atomic_sum")
_SUMS |= {torch.float32: "atomic_sum", torch.float64: "atomic_sum"}
_SUMS |= {torch.float16: "atomic_sum_half", torch.bfloat16: "atomic_sum_bf16"}


def _begin(reduction_type, dtype):
    """Return what a reduction of a type begins with."""
    if reduction_type in ("max", "argmax", "min", "argmin"):
        is_max = reduction_type.endswith("max")
        if dtype.is_floating_point:
            return constant_text(-torch.inf if is_max else torch.inf, dtype)
        if dtype == torch.bool:
            return constant_text(not is_max, dtype)
        limits = torch.iinfo(dtype)
        return constant_text(limits.min if is_max else limits.max, dtype)
    return constant_text(1 if reduction_type == "prod" else 0, dtype)


class _TypedCSE(CSE):
    """Declares each variable with the type of its value."""

    def generate(self, buffer, expr, *, dtype=None, **kwargs):
        expr = expr.value if isinstance(expr, OpsValue) else expr
        if not isinstance(expr, CSEVariable) and kwargs.get("assignment", True):
            if dtype is None:
                raise AssertionError(f"lzrt: the type of {expr} is not known")
            self.prefix = f"{TYPES[dtype]} "
        return super().generate(buffer, expr, dtype=computed_type(dtype) if dtype is not None else None, **kwargs)

    def augment_key(self, cache_key):
        return self.prefix + cache_key


class Kernel(SIMDKernel):
    """Writes one kernel."""

    overrides = Operations
    suffix = ";"
    inside_reduction: bool
    kexpr = Printer().doprint
    sexpr = kexpr

    def __init__(self, tiling, **kwargs):
        super().__init__(tiling, **kwargs)
        self.cse = _TypedCSE(self.newvar_prefix, self.suffix)
        self.combines = IndentedBuffer()  # behind the loop: the work-items of a group combine what they have
        self.beginnings = IndentedBuffer()  # before the loop
        self.scratches = {}
        self.has_stored = self.stores_before = False  # a group's work-items have stored, and before the loop
        self.headers = OrderedSet()
        self.checks_indices = False
        self.group_size = self._reducing_group()
        self.is_grouped = self.group_size > 0

    def _reducing_group(self):
        """Return the work-items that reduce to one result together; 0 if one does it alone."""
        if not self.features.is_reduction():
            return 0
        reduced = V.graph.sizevars.optimization_hint(self.features.reduction_numel, fallback=4096)
        results = V.graph.sizevars.optimization_hint(self.features.numel, fallback=1)
        is_outer = self.features.get_reduction_hint() == ReductionHint.OUTER
        if reduced <= FEW or (is_outer and results >= MANY):
            return 0
        return min(MOST_REDUCING, max(FEW, 1 << ((reduced // 4).bit_length() - 1)))

    def dtype_to_str(self, dtype):
        if dtype not in TYPES:
            raise NotImplementedError(f"lzrt: kernels with {dtype}")
        return TYPES[dtype]

    def codegen_iteration_ranges_entry(self, entry):
        line = f"{self.index_dtype} {entry.name} = {self.kexpr(self.rename_indexing(entry.expr))};"
        (self.indexing_code if entry.root.is_loop else self.body).writeline(line)

    def load(self, name, index):
        pointer = self.args.input(name)
        return self._loaded(name, f"{self.index_to_str(self.prepare_indexing(index))}", pointer)

    def indirect_load(self, name, index):
        return self.load(name, index)

    def _loaded(self, name, index, pointer):
        dtype = V.graph.get_dtype(name)
        text = f"{pointer}[{index}]"
        if dtype == torch.float16:
            text = f"vload_half({index}, {pointer})"
        elif dtype == torch.bfloat16:
            text = f"bf16_load({text})"
        elif dtype == torch.bool:
            text = f"({text} != 0)"
        self.dtype_to_str(dtype)
        if self._load_mask is not None:
            other = self._load_other
            if not isinstance(other, CSEVariable | str):
                other = constant_text(other or 0, dtype)
            text = f"{self._load_mask} ? {text} : {other}"
        # What a computed index is made of stands in the code of computations; so do a mask, and what was stored.
        return self.cse.generate(self.compute, text, dtype=computed_type(dtype), shape=())

    def store(self, name, index, value, mode=None):
        dtype = V.graph.get_dtype(name)
        pointer = self.args.output(name)
        place = self.index_to_str(self.prepare_indexing(index))
        if mode == "atomic_add":
            self.atomic_add_found = True
            line = self._added(pointer, place, value, dtype)
        elif mode is None:
            line = self._stored(pointer, place, value, dtype)
        else:
            raise NotImplementedError(f"lzrt: stores in the mode {mode}")
        if self.is_grouped and not self.inside_reduction:
            if name in self.args.inplace_buffers or name in self.args.input_buffers:
                self.compute.writeline("barrier(CLK_GLOBAL_MEM_FENCE);")  # all work-items have loaded what was there
            line = f"if (get_local_id(0) == 0) {line}"
        self.has_stored = self.is_grouped
        self.compute.writeline(DeferredLine(name, line))

    @staticmethod
    def _stored(pointer, place, value, dtype):
        if dtype == torch.float16:
            return f"vstore_half_rte({value}, {place}, {pointer});"
        if dtype == torch.bfloat16:
            return f"{pointer}[{place}] = bf16_store({value});"
        if dtype == torch.bool:
            return f"{pointer}[{place}] = {value} != 0;"
        return f"{pointer}[{place}] = {value};"

    def _added(self, pointer, place, value, dtype):
        if dtype not in _SUMS:
            raise NotImplementedError(f"lzrt: atomic sums of {dtype}")
        if dtype in (torch.int64, torch.float64):
            self.headers.add("compiled_wide.clh")
        return f"{_SUMS[dtype]}({pointer} + {place}, ({TYPES[dtype]}){value});"

    def store_reduction(self, name, index, value):
        dtype = V.graph.get_dtype(name)
        pointer = self.args.output(name)
        prior, self.inside_reduction = self.inside_reduction, False
        try:
            place = self.index_to_str(self.prepare_indexing(index))
        finally:
            self.inside_reduction = prior
        line = self._stored(pointer, place, value, dtype)
        if self.is_grouped:
            line = f"if (get_local_id(0) == 0) {line}"
        self.has_stored = self.is_grouped
        self.stores.writeline(DeferredLine(name, line))

    def check_bounds(self, expr, size, lower, upper):
        if not (lower or upper):
            return
        index, limit = self.kexpr(expr), self.index_to_str(size)
        parts = [f"0 <= {index}"] * lower + [f"{index} < {limit}"] * upper
        condition = " && ".join(parts)
        if self._load_mask is not None:
            # Where the mask takes the value out, no index is wrong.
            self.compute.writeline(f"if (!({self._load_mask}) && !({condition})) {index} = 0;")
        self.checks_indices = True
        self.compute.writeline(f"CHECKED({index}, {condition}, error)")

    def device_assert_async(self, cond, msg):
        raise NotImplementedError("lzrt: assertions in kernels")

    def reduction(self, dtype, src_dtype, reduction_type, value):
        key = src_dtype, reduction_type, value
        if key not in self.cse.reduction_cache:
            self.cse.reduction_cache[key] = self._reduced(dtype, src_dtype, reduction_type, value)
        return self.cse.reduction_cache[key]

    def _reduced(self, dtype, src_dtype, reduction_type, value):
        if reduction_type in ("welford_reduce", "welford_combine"):
            return self._moments(dtype, value)
        if reduction_type in ("argmax", "argmin"):
            return self._place(src_dtype, reduction_type, value)
        if reduction_type not in _COMBINED:
            raise NotImplementedError(f"lzrt: the reduction {reduction_type}")
        dtype = computed_type(torch.bool if reduction_type == "any" else dtype)
        kind = TYPES[dtype]
        result = self.cse.newvar(dtype=dtype, shape=())
        self.beginnings.writeline(f"{kind} {result} = {_begin(reduction_type, dtype)};")
        combined = _COMBINED[reduction_type]
        self.compute.writeline(f"{result} = {combined.format(a=result, b=f'({kind}){value}')};")
        self._combine(kind, result, combined.format(a="a", b="b"))
        return result

    def _combine(self, kind, variable, combined):
        """Let the work-items of a group combine a variable, behind the loop."""
        if self.is_grouped:
            memory = "uchar" if kind == "bool" else kind
            scratch = self.scratches.setdefault(memory, f"scratch_{len(self.scratches)}")
            self.combines.writeline(f"COMBINE({memory}, {variable}, {scratch}, {combined})")

    def _place(self, dtype, reduction_type, value):
        """Reduce to the place of an extreme; of equal ones, to the first."""
        is_max = int(reduction_type == "argmax")
        dtype = computed_type(dtype)
        kind = "uchar" if dtype == torch.bool else TYPES[dtype]
        result = self.cse.newvar(dtype=torch.int64, shape=())
        struct = f"place_{kind}"
        best = f"{result}_best"
        (tree,) = (tree for tree in self.range_trees if tree.is_reduction)
        self.beginnings.writeline(f"{struct} {best} = {{{_begin(reduction_type, dtype)}, LONG_MAX}};")
        order = f"({kind}){value}, (long){tree.name}, {best}.value, {best}.index, {is_max}"
        self.compute.writeline(f"if (is_before({order})) {{")
        self.compute.writeline(f"  {best}.value = {value}; {best}.index = {tree.name};")
        self.compute.writeline("}")
        self._combine(struct, best, f"is_before(a.value, a.index, b.value, b.index, {is_max}) ? a : b")
        self.combines.writeline(f"long {result} = {best}.index;")
        return result

    def _moments(self, dtype, value):
        """Reduce to the mean, the sum of squared differences from it, and the weight: Welford's."""
        dtype = computed_type(dtype)
        kind = TYPES[dtype]
        struct, variable = f"moments_{kind}", self.cse.newvar(dtype=dtype, shape=())
        single = ", ".join(str(part) for part in value) if isinstance(value, tuple) else f"{value}, 0, 1"
        self.beginnings.writeline(f"{struct} {variable} = {{0, 0, 0}};")
        self.compute.writeline(f"{variable} = combine({variable}, ({struct}){{{single}}});")
        self._combine(struct, variable, "combine(a, b)")
        results = tuple(self.cse.newvar(dtype=dtype, shape=()) for _ in range(3))
        for result, field in zip(results, ("mean", "m2", "weight"), strict=True):
            self.combines.writeline(f"{kind} {result} = {variable}.{field};")
        return results

    def codegen_body(self):
        """Move to the body what was written since the last time; inside a reduction, as a loop."""
        buffers = self.indexing_code, self.loads, self.compute, self.beginnings, self.combines, self.stores
        if not any(buffers):
            return
        if self.inside_reduction:
            self._codegen_loop()
            self.stores_before = self.has_stored
        else:
            for buffer in (self.indexing_code, self.loads, self.compute, self.stores):
                self.body.splice(buffer)
            self.stores_before = self.has_stored
        for buffer in buffers:
            buffer.clear()

    def _codegen_loop(self):
        (tree,) = (tree for tree in self.range_trees if tree.is_reduction)
        if self.stores_before:
            self.body.writeline("barrier(CLK_GLOBAL_MEM_FENCE);")  # another work-item may have stored what is loaded
        self.body.splice(self.beginnings)
        first, step = ("get_local_id(0)", self.group_size) if self.is_grouped else ("0", 1)
        kind, name = self.index_dtype, tree.name
        self.body.writeline(f"for ({kind} {name} = {first}; {name} < {self._numel(tree)}; {name} += {step}) {{")
        with self.body.indent():
            for buffer in (self.indexing_code, self.loads, self.compute):
                self.body.splice(buffer)
        self.body.writeline("}")
        self.body.splice(self.combines)
        self.body.splice(self.stores)
        reductions = OrderedSet()
        for result in self.cse.reduction_cache.values():
            reductions.update(result if isinstance(result, tuple) else (result,))
        self.cse.invalidate(reductions)
        tree.cache_clear()

    def _numel(self, tree):
        return self.kexpr(self.rename_indexing(tree.numel))

    def codegen_kernel(self, name="KERNEL"):
        """Return the text of the kernel."""
        self.codegen_body()
        (results,) = (tree for tree in self.range_trees if not tree.is_reduction)
        numel = {tree.prefix: self._numel(tree) for tree in self.range_trees}  # may add arguments
        _, _, arguments, _ = self.args.python_argdefs()
        parameters = [self._parameter(argument) for argument in arguments]
        parameters += ["global int *error"] * self.checks_indices + ["long results"]
        size = self.group_size or GROUP
        code = IndentedBuffer()
        for header in self.headers:
            code.writeline(f'#include "{header}"')
        code.writeline(f"__attribute__((reqd_work_group_size({size}, 1, 1)))")
        code.writeline(f"kernel void {name}({', '.join(parameters)}) {{")
        with code.indent():
            number = "get_group_id(0)" if self.is_grouped else "get_global_id(0)"
            code.writeline(f"{self.index_dtype} {results.name} = {number};")
            for kind, scratch in self.scratches.items():
                code.writeline(f"local {kind} {scratch}[{size}];")
            if not self.is_grouped:
                code.writeline(f"if ({results.name} >= {numel[results.prefix]}) return;")
            code.splice(self.body)
        code.writeline("}")
        return code.getvalue()

    def _parameter(self, argument):
        if isinstance(argument, TensorArg):
            if argument.dtype not in MEMORY_TYPES:
                raise NotImplementedError(f"lzrt: kernels with {argument.dtype}")
            return f"global {MEMORY_TYPES[argument.dtype]} *{argument.name}"
        if isinstance(argument, SizeArg):
            return f"{'double' if _is_real(argument.expr) else 'long'} {argument.name}"
        raise NotImplementedError(f"lzrt: kernels with an argument {argument}")

    def kinds(self):
        """Return what the arguments are, as compiled.cpp has it."""
        _, _, arguments, _ = self.args.python_argdefs()
        kinds = ["p" if isinstance(each, TensorArg) else "d" if _is_real(each.expr) else "q" for each in arguments]
        return "".join(kinds) + "e" * self.checks_indices + "q"

    def call_kernel(self, name, node=None, deallocate_ws=True):
        """Write the call of the kernel."""
        wrapper = V.graph.wrapper_code
        for symbol in self.args.sizevars:
            wrapper.ensure_size_computed(symbol)
        _, call_args, _, _ = self.args.python_argdefs()
        (results,) = (tree for tree in self.range_trees if not tree.is_reduction)
        texts = [arg if isinstance(arg, str) else pexpr(arg) for arg in call_args]
        wrapper.writeline(f"{name}({', '.join([*texts, pexpr(results.numel)])})")


def _is_real(expr):
    return isinstance(expr, sympy.Symbol) and symbol_is_type(expr, SymT.UNBACKED_FLOAT)


class Scheduling(SIMDScheduling):
    """Writes the kernels of a graph."""

    kernel_type = Kernel

    @classmethod
    def get_tiling_and_scores(cls, node_schedule, numel, reduction_numel=sympy.S.One, coalesce_analysis=None):
        return cls.create_tiling([numel], [reduction_numel]), None

    def define_kernel(self, src_code, node_schedule, kernel):
        wrapper = V.graph.wrapper_code
        key = src_code, kernel.kinds()
        if key not in wrapper.src_to_kernel:
            name = f"lzrt_kernel_{wrapper.next_kernel_suffix()}"
            wrapper.src_to_kernel[key] = name
            size = kernel.group_size or GROUP
            origins, details = get_kernel_metadata(node_schedule, wrapper)
            source = src_code.replace("void KERNEL(", f"void {name}(")
            body = f"lzrt_program.kernel({name!r}, {kernel.kinds()!r}, {size}, {kernel.is_grouped}, r'''\n{source}''')"
            wrapper.define_kernel(name, body, f"{origins}\n{details}")
        return wrapper.src_to_kernel[key]


class Wrapper(PythonWrapperCodegen):
    """Writes the Python code that allocates, launches and frees."""

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return PythonWrapperCodegen.create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures)
        return Wrapper()

    def make_allocation(self, name, device, *args, **kwargs):
        text = super().make_allocation(name, device, *args, **kwargs)
        return text.replace("device='lzrt'", f"device='lzrt:{device.index}'")  # no guard makes the device current

    def write_header(self):
        super().write_header()
        self.header.splice("from l0rt.interop.torch_device.programs import Program\nlzrt_program = Program()")
