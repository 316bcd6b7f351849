# SPDX-License-Identifier: Apache-2.0
"""Modules: from memory and files, constants, native binaries, and their end while work still runs."""

import gc
import os
import pickle
import struct
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.process import run_python

PATH = Path(__file__).with_name("basic.spv")
NAMES = {"vector_add", "axpy", "reduce", "histogram", "matmul", "values", "constants", "store", "wait_until", "divide",
         "where", "meet"}  # fmt: skip


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(PATH)
    kept = [made[name] for name in made]  # so that no test makes one that stays
    yield made
    del kept
    made.close()


def floats(buffer, count):
    out = np.empty(count, np.float32)
    buffer.copy_to(out)
    return out.tolist()


def test_code_is_read_from_files_that_end(tmp_path):
    with open(tmp_path / "large.cl", "wb") as file:
        file.truncate(2 << 40)
    for name, says in (("/dev/zero", "no regular file"), (tmp_path, "Is a directory"),
                       (tmp_path / "large.cl", r"2048\.00 GiB, and .* are the most")):  # fmt: skip
        for load in (l0rt.Module, lambda path: l0rt.compile(Path(path)), lambda path: l0rt.specialize(Path(path), ())):
            with pytest.raises(OSError, match=says):
                load(name)


def test_no_bytes_are_no_module_that_may_be_trusted():
    with pytest.raises(l0rt.ModuleBuildError, match="it has no bytes"):
        l0rt.Module(b"", trusted=True)


def test_the_error_of_a_kernel_that_is_asked_for_as_an_attribute_says_how(module):
    with pytest.raises(AttributeError, match=r"a kernel is an item, module\['vector_add'\]"):
        module.vector_add  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        module.nothing  # noqa: B018


@pytest.mark.parametrize("form", [str, Path, lambda path: path.read_bytes(), lambda path: bytearray(path.read_bytes()),
                                  lambda path: np.frombuffer(path.read_bytes(), np.uint32)])  # fmt: skip
def test_a_module_is_made_of_a_path_or_of_memory(form):
    with l0rt.Module(form(PATH)) as made:
        assert set(made.kernels) == NAMES == set(made)
        assert len(made) == len(NAMES)
        assert "store" in made
        assert "restore" not in made
        assert made["store"] is made["store"]
        assert made.device == l0rt.device(acc.current_accelerator().type, acc.current_device_index())
    assert made.closed


@pytest.fixture(params=[object, str, bytes])
def odd(request):
    """A function that makes a path with an index, which is a descriptor that nobody may read or close."""
    read, write = os.pipe()
    kind = request.param

    class Odd(kind):
        def __fspath__(self):
            return self if kind is not object else self.place

        def __index__(self):
            return read

    def made(path):
        found = Odd() if kind is object else Odd(str(path) if kind is str else os.fsencode(path))
        found.place = str(path)
        return found

    yield made
    os.close(write)
    assert os.read(read, 1) == b""  # neither was it read, nor closed
    os.close(read)


def test_a_path_with_an_index_is_no_descriptor(odd, tmp_path):
    with l0rt.Module(odd(PATH)) as made:
        assert set(made) == NAMES
    with l0rt.specialize(odd(PATH), ()) as made:
        assert set(made.kernels) == NAMES
    with acc.Graph() as graph:
        pass
    graph.debug_dump(odd(tmp_path / "graph.dot"))
    graph.to_html(odd(tmp_path / "graph.html"))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.checks_data
def test_a_traces_path_with_an_index_is_no_descriptor(odd, tmp_path):
    with l0rt.profiler.profile() as profile:
        pass
    profile.export_chrome_trace(odd(tmp_path / "trace.json"))
    assert len(list(tmp_path.iterdir())) == 1


def test_what_a_module_refuses(tmp_path):
    for wrong in (None, 7, 1.5, [1]):
        with pytest.raises(TypeError, match="a module must be bytes or a path, got"):
            l0rt.Module(wrong)
    with pytest.raises(FileNotFoundError):
        l0rt.Module(tmp_path / "none.spv")
    with pytest.raises(l0rt.ModuleBuildError, match="at least 5"):
        l0rt.Module(b"")
    with pytest.raises(IndexError):
        l0rt.Module(PATH, device=99)
    with pytest.raises(TypeError, match="options must be a str"):
        l0rt.Module(PATH, options=b"-cl-opt-disable")
    with pytest.raises(ValueError, match="null character"):
        l0rt.Module(PATH, options="\0")
    with pytest.raises(TypeError, match="objects or pointers"):
        l0rt.Module(np.array([None]))


def test_unknown_names_are_told_with_the_known_ones(module):
    with pytest.raises(KeyError, match=r"no kernel 'stor': it has .*store"):
        module["stor"]
    with pytest.raises(KeyError):
        module["store\0"]
    with pytest.raises(TypeError, match="a kernel's name must be a str, got int"):
        module[0]


def test_what_refuses_to_be_copied(module):
    for each in (module, module["store"]):
        with pytest.raises(TypeError, match="cannot be"):
            pickle.dumps(each)
    with pytest.raises(TypeError, match=r"module\[name\]"):
        l0rt.kernels.Kernel()


@pytest.mark.checks_data
@pytest.mark.parametrize(
    ("constants", "expected"),
    [(None, [10, 0.5]), ({}, [10, 0.5]), ({1: 3}, [3, 0.5]), ({2: 2}, [10, 2]),
     ({1: -1, 2: np.float32(0.25)}, [-1, 0.25]), ({np.int64(1): np.int16(7)}, [7, 0.5]), ({1: True}, [1, 0.5])],
)  # fmt: skip
def test_constants_are_chosen_by_their_numbers(constants, expected):
    out = l0rt.empty(8)
    with l0rt.Module(PATH, constants=constants) as made:
        made["constants"][1, 1](out)
        assert floats(out, 2) == expected


@pytest.mark.parametrize(
    ("constants", "error", "why"),
    [
        ([1], TypeError, "must be a dict"),
        ({"1": 1}, TypeError, "a SpecId must be an int"),
        ({3: 1}, ValueError, r"no specialisation constant 3: it has \[1, 2\]"),
        ({1: 1 << 32}, ValueError, "constant 1 must be from -2147483648 to 4294967295"),
        ({1: 1.5}, TypeError, "constant 1 must be an int, got float"),
        ({2: "x"}, TypeError, "constant 2 must be a float, got str"),
    ],
)
def test_constants_that_do_not_fit(constants, error, why):
    with pytest.raises(error, match=why):
        l0rt.Module(PATH, constants=constants)


def test_a_native_binary_makes_the_same_module_again(module):
    native = l0rt.Module(module.native_binary())
    assert set(native.kernels) == NAMES
    assert native["store"].arguments is None
    x = l0rt.empty(64).fill(0)
    native["store"][2, 8](x, np.int32(9))
    acc.synchronize()
    with pytest.raises(TypeError, match=r"a native module does not tell its types.*numpy\.int32\(1\), got int"):
        native["store"][2, 8](x, 9)
    with pytest.raises(ValueError, match="a native module has no specialisation constants"):
        l0rt.Module(module.native_binary(), constants={1: 1})
    if os.environ.get("L0RT_TEST_NO_DATA") != "1":
        out = np.empty(16, np.int32)
        x.copy_to(out)
        assert set(out) == {9}


REFUSED = """
import struct, l0rt
words = {words}
try:
    l0rt.Module(struct.pack(f"<{{len(words)}}I", *words), trusted=True)
except l0rt.ModuleBuildError as error:
    # Intel's compiler of 2026 knows no more.
    assert "4101" in error.log or "Internal Compiler Error" in error.log, error.log
    assert error.log in str(error) and "the module was not built" in str(error), str(error)
    print("refused")
"""


def test_the_error_of_a_module_that_the_driver_refuses_has_its_log():
    """In a process without a handler of SIGSEGV: that compiler catches its own faults, and ends one that handles it."""
    code = PATH.with_name("add.spv").read_bytes()
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    label = next(at for at in instructions(words) if words[at] & 0xFFFF == 248)
    words[label + 2 : label + 2] = [1 << 16 | 4101]  # an extension's: no driver has it
    result = run_python(REFUSED.format(words=words), {"PYTHONFAULTHANDLER": None}, fresh=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "refused\n", ""), result


def instructions(words):
    at = 5
    while at < len(words):
        yield at
        at += words[at] >> 16


def test_native_binaries_that_are_none(module):
    whole = module.native_binary()
    for wrong in (whole[: len(whole) // 2], whole[:8], b"\x7fELF" + bytes(100), bytes(range(100))):
        with pytest.raises(l0rt.ModuleBuildError, match="the module"):
            l0rt.Module(wrong)


def test_a_closed_module_launches_nothing(module):
    made = l0rt.Module(PATH)
    kernel = made["store"]
    made.close()
    made.close()
    x = l0rt.empty(4)
    for act in (
        lambda: kernel[1, 1](x, 1),
        lambda: kernel.launch(x, 1, groups=1, group_size=1),
        lambda: kernel.attributes,
        lambda: kernel.suggest_group_size(8),
        lambda: made["store"],
        lambda: made.kernels,
        lambda: made.native_binary(),
    ):
        with pytest.raises(ValueError, match="the module was closed"):
            act()
    assert repr(made) == "<l0rt.Module closed>"


def test_the_attributes_are_the_drivers(module):
    facts = module["matmul"].attributes
    assert facts["argument_count"] == 4
    assert facts["required_group_size"] == (8, 8, 1)
    assert facts["local_memory"] >= 2 * 4 * 8 * 8
    assert module["store"].attributes["required_group_size"] is None
    size = module["store"].suggest_group_size((96, 6))
    assert len(size) == 3
    assert 96 % size[0] == 6 % size[1] == 0
    assert module["store"].max_cooperative_groups(8) >= 1


@pytest.mark.checks_data
def test_atomics_that_a_compiler_left_as_imports_count(module):
    counts = l0rt.empty(4 * 256).fill(0)
    data = np.random.default_rng(1).integers(0, 256, 4096, dtype="u1")
    with l0rt.Module(PATH.with_name("zig.spv")) as made:
        made["histogram"][64, 64](counts, l0rt.empty(4096).copy_from(data))
        assert (counts.numpy("u4", 256) == np.bincount(data, minlength=256)).all()


@pytest.mark.checks_data
@pytest.mark.parametrize("way", ["close", "drop"])
def test_a_module_that_goes_while_it_runs_ends_its_work_first(way):
    """A kernel waits for a word of host memory that is written only after its module went."""
    flag = l0rt.empty(4, kind="host")
    word = np.frombuffer(flag, np.int32)
    word[0] = 0
    stream = acc.Stream()
    made = l0rt.Module(PATH)
    made["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=stream)
    made["store"].launch(flag, 2, groups=1, group_size=1, stream=stream)
    if way == "close":
        made.close()
    del made
    gc.collect()
    other = l0rt.Module(PATH)  # looks whether the first can go
    assert not stream.query()
    word[0] = 1
    stream.synchronize()
    assert word[0] == 2
    other.close()


def test_modules_come_and_go_without_a_trace():
    for _ in range(20):
        made = l0rt.Module(PATH)
        made["store"][1, 1](l0rt.empty(64), 1)
        if _ % 2:
            made.close()
        del made
    acc.synchronize()
    l0rt.Module(PATH).close()


def test_the_log_of_a_launch_names_the_kernel():
    code = f"""
import l0rt, l0rt.accelerator as acc
x = l0rt.empty(4 * 96)
l0rt.Module({str(PATH)!r})["store"][(2, 3), (4, 2)](x, 1)
acc.synchronize()
"""
    result = run_python(code, {"L0RT_LOGS": "kernel"})
    assert result.returncode == 0, result
    assert "launches store (<string>:4)" in result.stderr, result
