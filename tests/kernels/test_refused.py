# SPDX-License-Identifier: Apache-2.0
"""What a device cannot run is refused at its launch; what has no body, or is not SPIR-V's, before a driver gets it."""

import re
import struct
from pathlib import Path

import l0rt
import pytest
from l0rt import config
from l0rt.kernels import compiler
from l0rt.launch.spirv import Spirv

from helpers import compilers
from helpers.process import run_python

PATH = Path(__file__).with_name("refused.spv")
IMPORTS = Path(__file__).parents[2] / "tests/cpu_driver/kernels/imports.spv"
SOURCE = PATH.with_suffix(".cl").read_text().splitlines()


@pytest.fixture
def module():
    """A module that Intel's driver of 2022 cannot build: its kernels enqueue others."""
    try:
        module = l0rt.Module(PATH)
    except l0rt.ModuleBuildError as error:
        if "the module was not built" not in str(error):  # l0rt itself reads it
            raise
        pytest.skip(f"the driver does not build it: {error}")
    with module:
        yield module


@pytest.mark.checks_data
def test_a_kernel_that_needs_nothing_refused_runs_beside_those_that_do(module):
    to = l0rt.empty(16).fill(0)
    module["plain"][1, 4](to, 9)
    assert (to.numpy("i4", 4) == 9).all()
    assert {"plain", "blur", "drain", "spread", "onto"} <= set(module)


@pytest.mark.parametrize(
    ("name", "number", "parameter", "kind"),
    [("drain", 1, "from", "pipe"), ("onto", 1, "queue", "queue")],
)
def test_an_argument_that_no_launch_can_give_is_named_with_its_line(module, name, number, parameter, kind):
    kernel = module[name]
    given = [l0rt.empty(16), *[None] * (len(kernel.arguments) - 1)]
    with pytest.raises(l0rt.UnsupportedError) as refused:
        kernel[1, 1](*given)
    found = re.fullmatch(
        rf"{name}\(\) argument {number} \({parameter}\) is {kind} \(refused\.cl:(\d+)\): "
        "pipes and queues are not supported",
        str(refused.value),
    )
    assert found, refused.value
    assert SOURCE[int(found[1]) - 2].startswith(f"kernel void {name}(")


def without_words(refused):
    """Whether the loader, one of 2022, passes no description of an error on; the CPU driver by itself has one."""
    is_bare = re.fullmatch(r"Level Zero answered \w+ \(0x\w+\)", str(refused.value)) is not None
    return is_bare and l0rt.config.get("driver") != "cpu"


@pytest.mark.checks_data
def test_what_the_engine_lacks_is_named_at_the_launch_with_kernel_and_line(module):
    """Data is checked: no other driver runs the CPU driver's engine."""
    with pytest.raises(l0rt.UnsupportedError, match="ERROR_UNSUPPORTED_FEATURE") as refused:
        module["spread"][1, 1](l0rt.empty(16), 3)
    found = re.search(r"kernel spread: offset \d+: .* is not supported \(refused\.cl:(\d+)\)", str(refused.value))
    assert without_words(refused) or found, refused.value
    assert without_words(refused) or "queue" in SOURCE[int(found[1]) - 1]
    assert "not valid" not in str(refused.value)
    to = l0rt.empty(4)
    module["plain"][1, 1](to, 4)
    assert to.numpy("i4", 1) == 4


def with_instruction(opcode):
    code = PATH.with_name("add.spv").read_bytes()
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    at = 5
    while words[at] & 0xFFFF != 248:
        at += words[at] >> 16
    words[at + 2 : at + 2] = [1 << 16 | opcode]
    return struct.pack(f"<{len(words)}I", *words)


def test_the_driver_gets_what_is_not_spirv_only_if_it_is_trusted():
    """Intel's driver ends the process on an instruction that it does not know."""
    given = []
    tell = compiler.watchers.append
    tell(lambda *facts: given.append(facts))
    try:
        with pytest.raises(l0rt.ModuleBuildError, match="not valid: .*there is no instruction 4101"):
            l0rt.Module(with_instruction(4101))
        assert not given
    finally:
        compiler.watchers.pop()


@pytest.mark.checks_data
def test_a_module_that_is_trusted_and_damaged_is_the_drivers_to_judge():
    """Data is checked, and in a process of its own: Intel's driver may end the process."""
    for code in (with_instruction(4101), PATH.read_bytes()[:-4]):
        result = run_python(f"import l0rt\nl0rt.Module({code!r}, trusted=True)")
        is_named = re.search("ModuleBuildError: the module was not built: (.|\n)*error: offset", result.stderr)
        ends = "(fatal_enqueues)" in result.stderr  # as a simulated device ends it, with Intel's defect
        assert is_named or ends or l0rt.config.get("driver") != "cpu", str(result)
        assert result.returncode != 0, str(result)


@pytest.mark.skipif(not compilers.INSTALLED, reason=compilers.WITHOUT)
@pytest.mark.parametrize("kind", ["ocloc", "zig"])
class TestDeclaredWithoutBody:
    @pytest.fixture(autouse=True)
    def chosen(self, kind):
        if kind not in compilers.INSTALLED:
            pytest.skip(f"{kind} is not installed")
        with config.patch({"compiler": kind}):
            yield

    @pytest.mark.parametrize("attribute", ["", "__attribute__((overloadable)) "])
    def test_is_named_with_its_line(self, kind, attribute):
        source = f"""// helper(3) is told of in a comment
{attribute}int  helper
(int x);
{attribute}int unused(int x);
kernel void f(global int *to) {{ to[0] = helper(2) + get_local_id(0); }}
"""
        with pytest.raises(l0rt.ModuleBuildError) as refused:
            l0rt.compile(source)
        assert str(refused.value).startswith("<source> does not compile, 1 error:\n<source>:"), refused.value
        assert "error: the function helper is declared and called, but has no body" in refused.value.log
        assert re.match(r"<source>:[23]: ", refused.value.log)
        assert "unused" not in str(refused.value)

    def test_of_a_header_is_named_with_the_headers_line(self, kind):
        source = '#include "lib.h"\nkernel void f(global int *to) { to[0] = helper(2); }\n'
        with pytest.raises(l0rt.ModuleBuildError, match=r"\nlib\.h:2: error: the function helper"):
            l0rt.compile(source, headers={"lib.h": "\nint helper(int x);\n"})

    def test_a_declaration_before_the_body_is_fine(self, kind):
        source = "int helper(int x);\nkernel void f(global int *to) { to[0] = helper(2); }\n"
        l0rt.compile(source + "int helper(int x) { return x + 1; }\n").close()


@pytest.mark.checks_data
def test_an_import_that_nothing_exports_is_named():
    """Data is checked: the text is the CPU driver's."""
    with l0rt.Module(IMPORTS) as module, pytest.raises(l0rt.L0Error, match="INVALID_MODULE_UNLINKED") as refused:
        module[module.kernels[0]]
    assert without_words(refused) or "the module calls twice, which has no body" in str(refused.value)


def test_what_a_module_imports_is_known():
    assert Spirv(IMPORTS.read_bytes()).imports == ("twice",)
    assert Spirv(IMPORTS.with_name("exports.spv").read_bytes()).imports == ()
    assert all("atomic_" in name for name in Spirv(PATH.with_name("zig.spv").read_bytes()).imports)
