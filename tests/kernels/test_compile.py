# SPDX-License-Identifier: Apache-2.0
"""Compiling OpenCL C: kernels run as NumPy computes, errors tell file and line, options and headers are taken."""

import os
import signal
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config
from l0rt.kernels import compiler, ocloc, ocloc_child

from helpers import compilers
from helpers.process import run_python

SOURCE = Path(__file__).with_name("algorithms.cl")
HEADERS = {"sum.h": "inline TYPE sum(TYPE x, TYPE y) { return x + y; }\n"}
STORE = "kernel void store(global int *to) { to[get_global_id(0)] = VALUE; }\n"

needs_compiler = pytest.mark.skipif(not compilers.INSTALLED, reason=compilers.WITHOUT)


@pytest.fixture(params=["ocloc", "zig"])
def kind(request):
    if request.param not in compilers.INSTALLED:
        pytest.skip(f"{request.param} is not installed: {compiler.COMPILERS[request.param].PACKAGE}")
    with config.patch({"compiler": request.param}):
        yield request.param


def refused(*args, **kwargs):
    """Return the message of the error that compiling raises, which is its log too."""
    with pytest.raises(l0rt.ModuleBuildError) as caught:
        l0rt.compile(*args, **kwargs)
    assert caught.value.log in str(caught.value)
    return caught.value.log


def value_of(*args, **kwargs):
    """Return what the kernel ``store`` stores, or 7 where nothing is executed."""
    to = l0rt.empty(4).fill(7)
    with l0rt.compile(*args, **kwargs) as module:
        module["store"][1, 1](to)
        acc.synchronize()
    return to.numpy("i4", 1)[0] if os.environ.get("L0RT_TEST_NO_DATA") != "1" else None


def on_device(array):
    return l0rt.empty(array.nbytes).copy_from(array)


def check(buffer, expected):
    acc.synchronize()
    if os.environ.get("L0RT_TEST_NO_DATA") != "1":
        np.testing.assert_array_equal(buffer.numpy(expected.dtype, expected.shape), expected)


@pytest.mark.parametrize("form", ["spirv", "native"])
@pytest.mark.parametrize(("name", "dtype"), [("float", "f4"), ("int", "i4"), ("long", "i8")])
def test_algorithms_compute_what_numpy_does(kind, form, name, dtype):
    made = l0rt.compile(SOURCE, f"-D TYPE={name} -DTILE=8", headers=HEADERS)
    assert {"vector_add", "reduce", "histogram", "matmul"} <= set(made.kernels)
    assert [argument.kind for argument in made["reduce"].arguments] == ["pointer", "pointer", "value", "local"]
    assert made["matmul"].attributes["required_group_size"] == (8, 8, 1)
    if form == "native":
        made = l0rt.Module(made.native_binary())
    rng = np.random.default_rng(1)
    n = 1000
    x, y = (rng.integers(-50, 50, n).astype(dtype) for _ in range(2))  # sums are exact in each type
    to, count = l0rt.empty(x.nbytes), np.uint32(n)
    made["vector_add"][-(-n // 64), 64](to, on_device(x), on_device(y), count)
    check(to, x + y)
    sums = l0rt.empty(8 * x.itemsize)
    made["reduce"][8, 128](sums, on_device(x), count, l0rt.LocalMemory(128 * x.itemsize))
    check(sums, np.add.reduceat(x, range(0, n, 128)).astype(dtype))
    bytes_, counts = rng.integers(0, 256, 4096, dtype="u1"), l0rt.empty(4 * 256).fill(0)
    made["histogram"][64, 64](counts, on_device(bytes_))
    check(counts, np.bincount(bytes_, minlength=256).astype("u4"))
    a, b = (rng.integers(-9, 9, (32, 32)).astype(dtype) for _ in range(2))
    c = l0rt.empty(a.nbytes)
    made["matmul"][(4, 4), (8, 8)](c, on_device(a), on_device(b), np.uint32(32))
    check(c, a @ b)


@pytest.mark.parametrize("hint", ["opencl_unroll_hint", "opencl_unroll_hint(1)", "opencl_unroll_hint(4)"])
def test_loops_may_say_how_they_are_unrolled(kind, hint):
    loop = f"__attribute__(({hint})) for (int i = 0; i < n; i++) to[i] = i;"
    to = l0rt.empty(4 * 30)
    with l0rt.compile(f"kernel void count(global int *to, int n) {{ {loop} }}", "-cl-std=CL2.0") as made:
        made["count"][1, 1](to, 30)
        check(to, np.arange(30, dtype="i4"))


def test_errors_tell_file_line_and_the_lines_text(kind, tmp_path, capfd):
    log = refused("kernel void f() {\n  int x = nothing;\n}\n")
    assert "<source>:2:11: error: " in log
    assert "nothing" in log.split("\n", 1)[1]
    file = tmp_path / 'a "b" c.cl'
    file.write_text("\n\nkernel void f() { nothing(); }\n")
    assert f"{file}:3:19: error: " in refused(file)
    log = refused('#include "sub/wrong.h"\n', headers={"sub/wrong.h": "\nint x = nothing;"})
    assert "In file included from <source>:1:" in log
    assert "sub/wrong.h:2:" in log
    (tmp_path / "wrong.h").write_text("#define X\nint x = nothing;")
    assert f"{tmp_path / 'wrong.h'}:2:" in refused("#include <wrong.h>\n", include_dirs=[tmp_path])
    assert "<source>:1:10: fatal error: 'none.h' file not found" in refused('#include "none.h"\n')
    with pytest.raises(l0rt.ModuleBuildError, match="^<source> does not compile, 2 errors:\n<source>:1:1: error: "):
        l0rt.compile("x")
    assert capfd.readouterr() == ("", "")


def test_a_source_that_includes_itself_is_an_error(kind):
    cycle = {"a.h": '#include "b.h"\n', "b.h": '#include "a.h"\n'}
    assert "nested too deeply" in refused('#include "a.h"\n', headers=cycle)


def test_nothing_is_printed(kind, capfd):
    assert value_of(STORE, "-DVALUE=3") in (3, None)
    refused("broken")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ("-DVALUE=3", 3),
        ("-D VALUE=4 -cl-std=CL2.0", 4),
        ("-D VALUE", 1),
        ("'-DVALUE=2 + 3'", 5),
        ('-DVALUE="2 * 3"', 6),
        ("-D'TWICE(x)=(x + x)' -DVALUE=TWICE(4)", 8),
        ("-DVALUE=TEXT[1] '-DTEXT=\"a\\\\b\"'", ord("\\")),
        ("-DVALUE=1 -UVALUE -DVALUE=9", 9),
        ("-DVALUE=3 -cl-fast-relaxed-math -cl-mad-enable -w -Werror", 3),
        ("-DVALUE=5 -ze-opt-disable", 5),
    ],
)
def test_options_are_taken_as_a_shell_takes_them(kind, options, value):
    if "Werror" in options and kind == "zig":
        options = options.replace("-Werror", "")
    assert value_of(STORE, options) in (value, None)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("'-DX", "No closing quotation"),
        ("VALUE=3", "'VALUE=3' is none"),
        ("-o file", "'-o' is none"),
        ("-D", "-D takes a name or NAME=VALUE, got ''"),
        ("-D3=x", "got '3=x'"),
        ("-UX=3", "-U takes a name, got 'X=3'"),
        ("-DX=\0", "null character"),
        ("-DX=\ud800", "no text at character 4"),
    ],
)
def test_options_that_make_no_sense(options, why):
    with pytest.raises(ValueError, match=why):
        l0rt.compile(STORE, options)
    with pytest.raises(TypeError, match="options must be a str, got bytes"):
        l0rt.compile(STORE, b"-DX")


def test_an_option_that_the_compiler_does_not_know_is_its_error(kind):
    assert "-cl-nothing" in refused(STORE, "-DVALUE=3 -cl-nothing")


@pytest.mark.parametrize(
    ("source", "error", "why"),
    [
        (None, TypeError, "source must be a str or bytes, got NoneType"),
        (3, TypeError, "got int"),
        ("", ValueError, "source is empty"),
        (b" \n", ValueError, "source is empty"),
        ("kernel\n\0", ValueError, "source has a null character in line 2"),
        (b"\n\nint \xe4;", ValueError, "source is not UTF-8: byte 0xe4 in line 3"),
        ("\ud800", ValueError, "no text at character 0"),
        ("kernel.cl", ValueError, r"for a file give pathlib.Path\('kernel.cl'\)"),
        (str(SOURCE), ValueError, "for a file give"),
        (SOURCE.with_name("add.spv"), ValueError, "is SPIR-V, which needs no compiler: l0rt.Module loads it"),
        (SOURCE.with_name("add.spv").read_bytes(), ValueError, "l0rt.Module loads it"),
        (SOURCE.with_name("none.cl"), FileNotFoundError, "none.cl"),
        (SOURCE.parent, IsADirectoryError, "kernels"),
    ],
)
def test_sources_that_are_none(source, error, why):
    with pytest.raises(error, match=why):
        l0rt.compile(source)


@pytest.mark.parametrize("name", ["/a.h", "../a.h", "a/../b.h", "./a.h", "a//b.h", "", ".", "a/", 'a".h', "a\n.h"])
def test_names_of_headers_that_are_refused(name):
    with pytest.raises(ValueError, match="a header's name must be a path such as"):
        l0rt.compile(STORE, headers={name: ""})


def test_headers_and_folders_that_are_none(tmp_path):
    wrong = (({1: ""}, "name must be a str, got int"), (["a.h"], "must be a dict"), ({"a.h": 1}, "'a.h' must"))
    for headers, why in wrong:
        with pytest.raises(TypeError, match=why):
            l0rt.compile(STORE, headers=headers)
    for text in ("\0", b"\xff"):
        with pytest.raises(ValueError, match="header 'a.h'"):
            l0rt.compile(STORE, headers={"a.h": text})
    for folders, why in (("folder", "a list of folders, got str"), (7, "got int"), ([7], "a str or a path, got int")):
        with pytest.raises(TypeError, match=f"include_dirs must be .*{why}"):
            l0rt.compile(STORE, include_dirs=folders)
    with pytest.raises(TypeError, match="constants must be a dict of SpecId to value, got list"):
        l0rt.compile(STORE, constants=[1])
    with pytest.raises(FileNotFoundError, match="'/no/such' is no folder"):
        l0rt.compile(STORE, "-I /no/such")
    for name in ('a"b', "a\tb", "a\\b", "a\n", ""):
        with pytest.raises(ValueError, match="without double quotes, backslashes, tabs and other control") as caught:
            l0rt.compile(STORE, include_dirs=[name])
        why = f", which has {name[1:2]!r}: a compiler's command line cannot carry it"
        assert str(caught.value).endswith(why) or not name


def test_headers_are_found_in_the_order_of_c(kind, tmp_path):
    """The dict, the source's folder, include_dirs, then -I; a header in quotes first beside the one that names it."""
    for folder in ("here", "first one", "second/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "here/k.cl").write_text(f'#include "value.h"\n{STORE}')
    (tmp_path / "second/value.h").write_text('#include "deep/more.h"\n')
    more = '#include "beside.h"\n#include "../up.h"\n#define VALUE (BESIDE + UP)\n'
    (tmp_path / "second/deep/more.h").write_text(more)
    (tmp_path / "second/deep/beside.h").write_text("#define BESIDE 10\n")
    (tmp_path / "second/up.h").write_text("#define UP 1\n")
    options = f"-I {tmp_path}/second"
    assert value_of(tmp_path / "here/k.cl", options) in (11, None)
    (tmp_path / "first one/value.h").write_text("#define VALUE 2\n")
    assert value_of(tmp_path / "here/k.cl", options, include_dirs=[tmp_path / "first one"]) in (2, None)
    (tmp_path / "here/value.h").write_text("#define VALUE 3\n")
    assert value_of(tmp_path / "here/k.cl", options, include_dirs=[tmp_path / "first one"]) in (3, None)
    assert value_of(tmp_path / "here/k.cl", options, headers={"value.h": "#define VALUE 4\n"}) in (4, None)
    assert value_of(f'#include "{tmp_path}/second/up.h"\n{STORE}', "-DVALUE=UP") in (1, None)


def test_a_header_that_has_changed_is_compiled_anew(kind, tmp_path):
    header = tmp_path / "value.h"
    for value in (1, 2, 1):
        header.write_text(f"#define VALUE {value}\n")
        assert value_of(f"#include <value.h>\n{STORE}", include_dirs=[tmp_path]) in (value, None)
        computed = f"#include NAME\n{STORE}"  # whose headers nobody knows before: it is compiled each time
        assert value_of(computed, "-DNAME=<value.h>", include_dirs=[tmp_path]) in (value, None)


def test_warnings_are_told_each_time_and_stay_in_the_log(kind):
    source = f"#warning careful\n{STORE}"
    for _ in range(2):
        with pytest.warns(l0rt.ModuleBuildWarning, match="<source>:1:2: warning: careful") as caught:
            made = l0rt.compile(source, "-DVALUE=1")
        assert caught[0].filename == __file__
        assert "#warning careful" in made.build_log
    assert l0rt.compile(STORE, "-DVALUE=1").build_log == ""


def test_constants_are_chosen(kind):
    source = "int __attribute__((overloadable)) __spirv_SpecConstant(int id, int value);\n" + STORE
    options = "-DVALUE=__spirv_SpecConstant(1,5)"
    for _ in range(2):
        assert value_of(source, options) in (5, None)
        assert value_of(source, options, constants={1: 6}) in (6, None)
    with pytest.raises(ValueError, match="no specialisation constant 2"):
        l0rt.compile(source, options, constants={2: 6})


def test_a_byte_order_mark_and_comments_alone_are_sources(kind):
    assert value_of(b"\xef\xbb\xbf" + STORE.encode(), "-DVALUE=8") in (8, None)
    assert l0rt.compile("/* nothing */").kernels == ()


@pytest.mark.needs_two_devices
@needs_compiler
def test_the_device_is_chosen():
    for device in (0, 1):
        made = l0rt.compile(STORE, "-DVALUE=1", device)
        assert made.device.index == device
    with pytest.raises(IndexError):
        l0rt.compile(STORE, "-DVALUE=1", device=99)


def test_sub_groups_and_what_needs_extensions_of_spirv(kind):
    code = """
import l0rt, numpy as np
module = l0rt.compile('''
kernel void f(global uint *size, global uint *sum, global uint *swapped, global atomic_float *total) {
  uint i = get_global_id(0), x = 7 * i + 3;
  size[i] = get_sub_group_size();
  sum[i] = sub_group_reduce_add(x) + sub_group_broadcast((ushort)i, 1u);
  swapped[i] = sub_group_shuffle_xor(x, 1u) + bit_reverse(i);
  atomic_fetch_add_explicit(total, 0.5f, memory_order_relaxed, memory_scope_device);
}
''', "-cl-std=CL3.0")
size, sum, swapped, total = (l0rt.empty(256).fill(0) for _ in range(4))
module["f"][2, 32](size, sum, swapped, total)
width, x, i = int(size.numpy("u4")[0]), 7 * np.arange(64, dtype="u4") + 3, np.arange(64)
sums = x.reshape(-1, width).sum(1) + i[1::width]
assert (sum.numpy("u4") == sums.repeat(width)).all()
turned = [int(f"{n:032b}"[::-1], 2) for n in i]
assert (swapped.numpy("u4") == (x[i ^ 1] + np.array(turned, "u8")) % (1 << 32)).all()
print(width in (16, 32), total.numpy("f4")[0])
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_COMPILER": kind})
    assert (result.returncode, result.stdout) == (0, "True 32.0\n"), result


def test_dot_products_of_integers(kind):
    """Debian's libocloc leaves them to the driver, by their names; of `dot` it makes an instruction for floats."""
    code = """
import l0rt, numpy as np, os
WAYS = [(a, b) for a in "us" for b in "us"]
lines = []
for a, b in WAYS:
    kind = "uint" if a + b == "uu" else "int"
    types = [{"u": "uchar4", "s": "char4"}[w] for w in (a, b)]
    x, y = (f"as_{t}({n})" for t, n in zip(types, "xy"))
    calls = [f"dot_4x8packed_{a}{b}_{kind}(x, y)", f"dot_acc_sat_4x8packed_{a}{b}_{kind}(x, y, ({kind})z)",
             f"dot_acc_sat({x}, {y}, ({kind})z)", f"dot({x}, {y})"]
    if os.environ["L0RT_COMPILER"] == "ocloc":
        calls[3] = calls[0]
    for call in calls:
        lines.append(f"  to[16 * i + {len(lines)}] = (uint){call};")
source = ("kernel void f(global uint *to, global const uint *from) { uint i = get_global_id(0);\\n"
          "  uint x = from[3 * i], y = from[3 * i + 1], z = from[3 * i + 2];\\n" + "\\n".join(lines) + "}\\n")
words = np.random.default_rng(1).integers(0, 1 << 32, (256, 3), "u4")
words[::3, 2] = 0x7FFFFFFF - np.arange(86)
words[1::3, 2] = 0xFFFFFFFF - np.arange(85)
to = l0rt.empty(256 * 64)
l0rt.compile(source, "-cl-std=CL3.0")["f"][8, 32](to, l0rt.from_numpy(words))
got = to.numpy("u4").reshape(256, 4, 4)
for at, (a, b) in enumerate(WAYS):
    x, y = (np.ascontiguousarray(words[:, i]).view({"u": "u1", "s": "i1"}[w]).reshape(-1, 4).astype(int)
            for i, w in enumerate((a, b)))
    is_signed, product = a + b != "uu", (x * y).sum(1)
    z = words[:, 2].view("i4").astype(int) if is_signed else words[:, 2].astype(int)
    least, most = (-(1 << 31), (1 << 31) - 1) if is_signed else (0, (1 << 32) - 1)
    added = (product + z).clip(least, most)
    for way, expected in enumerate((product, added, added, product)):
        assert (got[:, at, way] == (expected % (1 << 32))).all(), (a, b, way)
print("right")
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_COMPILER": kind})
    assert (result.returncode, result.stdout) == (0, "right\n"), result


@needs_compiler
def test_the_cpu_device_takes_double():
    """Also where the compiler's other devices have none."""
    code = 'import l0rt; print(l0rt.compile("kernel void f(global double *x) { x[0] = sqrt(x[0]); }").kernels)'
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None})
    assert (result.returncode, result.stdout) == (0, "('f',)\n"), result


def test_without_a_compiler_the_error_names_both(monkeypatch):
    for module in compiler.COMPILERS.values():
        monkeypatch.setattr(module, "find", lambda: None)
    monkeypatch.setattr(compiler, "_found", {})
    told = r"libocloc \(.*(intel-opencl-icd|intel-ocloc).* or .*ziglang \(pip install 'l0rt\[zig\]'\)"
    with pytest.raises(l0rt.CompilerNotFoundError, match=told) as caught:
        l0rt.compile(STORE)
    assert isinstance(caught.value, l0rt.ModuleBuildError)
    with config.patch({"compiler": "zig"}), pytest.raises(l0rt.ModuleBuildError, match="compiler=zig"):
        l0rt.compile(STORE)


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with signal 11"),
        ("import sys; print('lost'); sys.exit('why it ended')", "ended with status 1: why it ended"),
        ("import os; os._exit(0)", "ended with status 0"),
    ],
)
def test_a_compiler_that_crashes_is_an_error(monkeypatch, tmp_path, program, how, capfd):
    child = tmp_path / "child.py"
    child.write_text(program.replace("print(", "sys.stderr.write('') or (lambda text: None)("))
    monkeypatch.setattr(ocloc_child, "__file__", str(child))
    with pytest.raises(l0rt.ModuleBuildError, match=how):
        ocloc.build("libocloc.so", b"", [], [], None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("known", [("skl",), ("pvc", "bmg"), ("bmg",), ("0xe20b", "skl"), ()])
@pytest.mark.parametrize("device", [None, "0xe20b"])
def test_the_target_is_one_that_the_compiler_knows(monkeypatch, known, device):
    tried = []

    def invoke(path, words, sources, headers):
        tried.append(words[words.index("-device") + 1])
        return (0, {"out.spv": b"code"}) if tried[-1] in known else (ocloc.UNKNOWN_DEVICE, {"stdout.log": b"none"})

    monkeypatch.setattr(ocloc, "_invoke", invoke)
    made = ocloc.build("libocloc.so", b"", [], [], device)
    assert tried[:1] == [device or ocloc.ANY_DEVICE[0]]
    assert made.code == (b"code" if known else None)
    assert made.log == ("" if known else "none")
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize(
    ("wrong", "known", "code"),
    [
        (("pvc",), ("skl", "bdw"), b"skl"),
        (("skl",), ("pvc", "bdw"), b"pvc"),
        (("skl",), ("bdw",), b"bdw"),
        (("pvc", "skl"), (), None),
        (("pvc", "bmg", "skl"), ("bdw",), b"bdw"),
        ((), ("pvc",), b"pvc"),
    ],
)
@pytest.mark.parametrize("device", [None, "pvc", "skl"])
def test_headers_that_are_wrong_for_a_target_are_another_targets(monkeypatch, wrong, known, code, device):
    tried = []
    log = b"In file included from <built-in>:1:\n./opencl-c.h:15436:46: error: use of type"

    def invoke(path, words, sources, headers):
        tried.append(words[words.index("-device") + 1])
        if tried[-1] in wrong:
            return -11, {"stdout.log": log}
        return (0, {"out.spv": tried[-1].encode()}) if tried[-1] in known else (ocloc.UNKNOWN_DEVICE, {})

    monkeypatch.setattr(ocloc, "_invoke", invoke)
    made = ocloc.build("libocloc.so", b"", [], [], device)
    assert made.code == (device.encode() if device in known else code)
    assert made.log == ("" if made.code else log.decode())
    assert len(tried) == len(set(tried))


def test_an_error_of_the_source_is_one_targets(monkeypatch):
    """A candidate of the headers that a note names is no error of theirs."""
    tried = []
    log = b"<source>:1:1: error: no matching function\n./opencl-c.h:6:9: note: candidate function"

    def invoke(path, words, sources, headers):
        tried.append(words[words.index("-device") + 1])
        return -11, {"stdout.log": log}

    monkeypatch.setattr(ocloc, "_invoke", invoke)
    assert ocloc.build("libocloc.so", b"", [], [], None) == (None, log.decode())
    assert tried == ["pvc"]


def test_what_is_no_compiler_is_an_error(tmp_path):
    library = tmp_path / "libocloc.so"
    library.write_text("no library")
    with pytest.raises(l0rt.ModuleBuildError, match=r"libocloc.so ended with status 1: (.|\n)*OSError"):
        ocloc.build(str(library), b"kernel void f() {}", [], [], None)
    with pytest.raises(l0rt.ModuleBuildError, match=r"cannot be started: .*none: No such file"):
        ocloc.run([str(tmp_path / "none")], b"")


def test_an_interrupt_ends_the_compiler(tmp_path):
    told = tmp_path / "pid"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ocloc.run(["sh", "-c", f"read line; echo $$ > {told}; kill -INT $PPID; exec sleep 600"], b"begin\n")
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


def test_the_search_reads_the_dynamic_linkers_configuration(monkeypatch, tmp_path):
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "ld.so.conf").write_text("# comment\ninclude conf.d/*.conf\ninclude ld.so.conf\n")
    (tmp_path / "conf.d/a.conf").write_text(f"relative\n{tmp_path}/lib # here\n")
    monkeypatch.setattr(ocloc, "CONFIGURATION", str(tmp_path / "ld.so.conf"))
    monkeypatch.setattr(ocloc, "DEFAULTS", ())
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    assert ocloc.find() is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libocloc.so.1").touch()
    assert ocloc.find() == str(tmp_path / "lib/libocloc.so.1")
    (tmp_path / "libocloc.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/none:{tmp_path}")
    assert ocloc.find() == str(tmp_path / "libocloc.so")
    before = ocloc.identity(ocloc.find())
    (tmp_path / "libigdfcl.so.2.0").touch()
    assert ocloc.identity(ocloc.find()) != before


@pytest.mark.parametrize("name", ["", "MATMUL_", "CONV_", "RNN_"])
def test_a_source_reads_the_precision_in_effect(kind, name):
    read = f"-DVALUE=L0RT_{name}FP32_PRECISION"
    node = f"xpu.{name.replace('_', '.').lower()}fp32_precision"
    assert value_of(STORE, read) in (0, None)
    for number, word in enumerate(("none", "ieee", "tf32", "bf16")):
        with config.patch({"fp32_precision": word}):
            assert value_of(STORE, read) in (number, None)
            assert value_of(STORE, f"-DVALUE='{number} == L0RT_{word.upper()} && {read[8:]} == {number}'") in (1, None)
    with config.patch({"fp32_precision": "bf16", node: "ieee"}):
        assert value_of(STORE, read) in (1, None)
        assert value_of(f"#include <told.h>\n{STORE}", headers={"told.h": f"#define VALUE {read[8:]}\n"}) in (1, None)
        with config.patch({node.replace("xpu", "xpu:0"): "tf32"}):
            assert value_of(STORE, read) in (2, None)
        assert value_of(STORE, f"{read} -D{read[8:]}=9") in (9, None)


def test_the_precision_compiles_anew_only_what_reads_it(kind, monkeypatch):
    told = []
    monkeypatch.setattr(compiler, "tell", lambda shown, how, index, begun: told.append(how))
    monkeypatch.setattr(compiler, "watchers", [None])
    reads = "kernel void store(global int *to) { *to = L0RT_MATMUL_FP32_PRECISION; }\n"
    other = STORE.replace("VALUE", "61")
    for source in (reads, other):
        l0rt.compile(source)
    del told[:]
    with config.patch({"xpu.matmul.fp32_precision": "bf16"}):
        for source in (reads, other):
            l0rt.compile(source)
    assert told == [told[0], "taken from memory"]
    assert told[0] in (f"compiled by {kind}", "taken from the cache")
