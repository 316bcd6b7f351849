# SPDX-License-Identifier: Apache-2.0
"""What other producers make of tests/kernels/producers.cl; ``python tests/helpers/producers.py`` writes it anew.

It needs Debian's clang-15, libclang-common-15-dev and llvm-spirv-15, and PyPI's llvmlite (0.50 made what is there).
"""

import re
import subprocess
import tempfile
from pathlib import Path

KERNELS = Path(__file__).parents[1] / "kernels"
SOURCE = KERNELS / "producers.cl"
CLANG = ["clang-15", "-cl-std=CL1.2", "-target", "spir64", "-Xclang", "-finclude-default-header", "-emit-llvm"]
TRIPLE = "spirv64-unknown-unknown"
MODULES = ("llvm-spirv-O0.spv", "llvm-spirv-O2.spv", "llvmlite.spv")


def translated(level, folder):
    """clang's bitcode through the translator, whose pointers have types."""
    bitcode = folder / "module.bc"
    words = [*CLANG, f"-O{level}", "-Xclang", "-no-opaque-pointers", "-c", SOURCE, "-o", bitcode]
    subprocess.run(words, check=True)
    subprocess.run(["llvm-spirv-15", bitcode, "-o", KERNELS / f"llvm-spirv-O{level}.spv"], check=True)


def emitted(folder):
    """The same source's LLVM IR through LLVM's own SPIR-V target, in llvmlite."""
    import llvmlite.binding as llvm

    text = folder / "module.ll"
    subprocess.run([*CLANG, "-O2", "-Xclang", "-opaque-pointers", "-S", SOURCE, "-o", text], check=True)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(re.sub('target triple = ".*"', f'target triple = "{TRIPLE}"', text.read_text()))
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(opt=2)
    (KERNELS / "llvmlite.spv").write_bytes(machine.emit_object(module))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for level in (0, 2):
            translated(level, Path(name))
        emitted(Path(name))
