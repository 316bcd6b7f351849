# SPDX-License-Identifier: Apache-2.0
"""What was compiled is kept: once for all threads and processes, within a limit, and never damaged or another user's.

A stand-in compiles here: see `helpers.compilers`.
"""

import errno
import os
import signal
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import l0rt
import pytest
from l0rt import config
from l0rt.kernels import cache, compiler, includes

from helpers.compilers import StandIn, forget
from helpers.process import run_python
from helpers.rings import TESTS

SOURCE = "kernel void add() {}\n"


@pytest.fixture(autouse=True)
def stand_in(tmp_path, monkeypatch):
    """A compiler that takes no time, an empty cache, and the memory of a new process."""
    made = StandIn(tmp_path / "builds")
    monkeypatch.setattr(compiler, "COMPILERS", {"ocloc": made})
    monkeypatch.setattr(compiler, "keeps_native", lambda about: False)  # each driver has the same entries
    monkeypatch.setattr(cache, "_told", set())
    monkeypatch.setenv("L0RT_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield made
    forget()


@pytest.fixture
def folder(tmp_path):
    return cache.Folder(str(tmp_path / "cache"), 1 << 30)


def compiled(source=SOURCE, *args, **kwargs):
    with l0rt.compile(source, *args, **kwargs) as made:
        assert made.kernels == ("add",)
        assert made["add"].arguments[0].name == "to"


def again(*args, **kwargs):
    """Compile as a new process would: nothing is in memory."""
    compiler._kept.clear()
    compiled(*args, **kwargs)


def entries(folder):
    return [Path(path) for _, _, path in folder.entries()]


def test_a_source_is_compiled_once(stand_in, folder):
    for _ in range(3):
        compiled()
    again()
    assert stand_in.builds == 1
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in entries(folder))


def test_each_thing_that_changes_the_result_is_compiled_for_itself(stand_in, tmp_path):
    (tmp_path / "a.h").touch()
    variants = [
        {"source": SOURCE},
        {"source": SOURCE + " "},
        {"options": "-DX"},
        {"options": "-DX=2"},
        {"options": "-cl-std=CL2.0"},
        {"headers": {"a.h": ""}},
        {"headers": {"a.h": "1"}},
        {"headers": {"b.h": "1"}},
        {"source": '#include "a.h"\n'},
        {"source": '#include "a.h"\n', "include_dirs": [tmp_path]},
    ]
    for i, variant in enumerate(variants, 1):
        for _ in range(2):
            again(**{"source": SOURCE, **variant})
        assert stand_in.builds == i
    stand_in.name = "its next build"
    forget()
    compiled()
    assert stand_in.builds == len(variants) + 1


def test_options_of_the_driver_need_no_other_compile(stand_in):
    for options in ("", "-ze-opt-disable"):
        again(options=options)
    assert stand_in.builds == 1


def test_code_of_the_driver_is_kept_with_what_the_source_tells(stand_in, folder, monkeypatch):
    monkeypatch.setattr(compiler, "keeps_native", lambda about: True)
    compiled()
    assert len(entries(folder)) == 2
    module = l0rt.Module
    seen = []
    monkeypatch.setattr(compiler, "Module", lambda code, *rest: seen.append(code.native) or module(code, *rest))
    again()
    again(constants={})
    assert stand_in.builds == 1
    assert all(seen)
    for path in entries(folder):  # a driver that does not take it any more
        key = path.parent.name + path.name
        spirv, native, log = folder.load(key)
        if native:
            folder.store(key, spirv, b"\0" * 100, log)
    again()
    assert seen[-2:] == [b"\0" * 100, None]
    again()
    assert seen[-1] not in (None, b"\0" * 100)
    assert stand_in.builds == 1


def test_threads_compile_a_source_once(stand_in, hasty):
    gate = threading.Barrier(8)

    def one(number):
        gate.wait()
        compiled()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    assert stand_in.builds == 1


PROCESS = """
from helpers.compilers import StandIn
from l0rt.kernels import compiler
import l0rt
compiler.keeps_native = lambda about: False
StandIn({path!r}).install()
for i in range(20):
    l0rt.compile(f"kernel void add() {{{{ }}}} // {{i}}").close()
"""


def test_processes_compile_a_source_once(stand_in, folder):
    code = PROCESS.format(path=stand_in.path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run_python(code, {"PYTHONPATH": str(TESTS)}), range(4)))
    assert [(result.returncode, result.stderr) for result in results] == [(0, "")] * 4, results[0]
    assert stand_in.builds == 20
    assert len(entries(folder)) == 20


def test_a_cached_compile_costs_little_more_than_the_module(stand_in, monkeypatch):
    """From memory and from the disk, measured in turn with what the driver takes for the same code."""
    code = (Path(__file__).with_name("add.spv")).read_bytes()
    compiled()

    def module():
        l0rt.Module(code).close()

    def from_memory():
        l0rt.compile(SOURCE).close()

    def from_disk():
        compiler._kept.clear()
        l0rt.compile(SOURCE).close()

    times = {act: [] for act in (module, from_memory, from_disk)}
    for _ in range(30):
        for act, found in times.items():
            begin = time.perf_counter()
            act()
            found.append(time.perf_counter() - begin)
    assert min(times[from_memory]) < 2 * min(times[module])
    assert min(times[from_disk]) < 3 * min(times[module])
    assert stand_in.builds == 1


def test_a_failed_compile_is_kept_by_nobody(stand_in):
    def fail():
        raise l0rt.ModuleBuildError("no")

    stand_in.before = fail
    for i in range(2):
        with pytest.raises(l0rt.ModuleBuildError, match="no"):
            compiled()
        assert stand_in.builds == i + 1
    stand_in.before = lambda: None
    compiled()


def test_what_is_no_module_reaches_no_driver_and_no_cache(stand_in, folder, monkeypatch):
    monkeypatch.setattr(stand_in, "build", lambda *rest: compiler.ocloc.Output(b"\3\2\x23\7" + bytes(40), ""))
    with pytest.raises(l0rt.ModuleBuildError, match="the module is not valid"):
        compiled()
    assert entries(folder) == []


@pytest.mark.parametrize("damage", ["cut", "empty", "long", "flip", "other", "folder", "link"])
def test_what_is_damaged_is_compiled_anew(stand_in, folder, damage, tmp_path):
    compiled()
    (entry,) = entries(folder)
    data = entry.read_bytes()
    found = [data[:-1], data[:30], data[:3]] if damage == "cut" else [data]
    found = {"empty": [b""], "long": [data + b"\0"]}.get(damage, found)
    if damage == "flip":
        found = [data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(0, len(data), 37)]
    if damage == "other":  # another's content under this name
        compiled(SOURCE + " ")
        found = [path.read_bytes() for path in entries(folder) if path != entry]
    for i, content in enumerate(found):
        builds = stand_in.builds
        entry.write_bytes(content)
        if damage in ("folder", "link"):
            entry.unlink()
            (tmp_path / "elsewhere").write_bytes(data)
            entry.mkdir() if damage == "folder" else entry.symlink_to(tmp_path / "elsewhere")
        if damage == "folder":
            with pytest.warns(RuntimeWarning, match="Is a directory"):
                again()
        else:
            again()
        assert stand_in.builds == builds + 1, i
        if damage != "folder":
            again()
            assert stand_in.builds == builds + 1
            assert entry.read_bytes() == data


@pytest.mark.parametrize("where", ["below a file", "a file", "in a folder of the system"])
def test_a_folder_that_cannot_be_written_is_told_of_once(stand_in, monkeypatch, tmp_path, where):
    (tmp_path / "file").touch()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / cache.NAME).touch()
    place = {"below a file": tmp_path / "file", "a file": tmp_path / "taken"}.get(where, "/proc/self/nothing")
    monkeypatch.setenv("L0RT_CACHE_DIR", str(place))
    with pytest.warns(RuntimeWarning, match=f"compiled anew in each process: {place}.*L0RT_CACHE_DIR names") as caught:
        compiled()
    assert [each.filename for each in caught] == [__file__]
    compiled()  # from memory
    again(SOURCE + " ")  # and no second warning, which would be an error
    assert stand_in.builds == 2


def test_a_full_disk_is_told_of_and_leaves_nothing(stand_in, folder, monkeypatch):
    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    folder.prepare()
    with monkeypatch.context() as patched:
        patched.setattr(cache.os, "write", full)
        patched.setattr(stand_in, "build", lambda *rest: compiler.ocloc.Output(StandInCode, ""))
        with pytest.warns(RuntimeWarning, match="No space left on device"):
            compiled()
    assert list(folder._files()) == []
    again()
    assert len(entries(folder)) == 1


StandInCode = Path(__file__).with_name("add.spv").read_bytes()


def test_a_folder_of_another_user_or_for_others_is_not_used(stand_in, folder, monkeypatch):
    folder.prepare()
    with monkeypatch.context() as patched:
        patched.setattr(cache.os, "geteuid", lambda: 12345)
        with pytest.warns(RuntimeWarning, match=f"belongs to user {os.getuid()}, and this is user 12345"):
            compiled()
    os.chmod(folder.path, 0o777)
    with pytest.warns(RuntimeWarning, match="can be written by others: its mode must be 0700"):
        again()
    os.chmod(folder.path, 0o700)
    assert stand_in.builds == 2
    again()
    (entry,) = entries(folder)
    entry.chmod(0o666)  # somebody else may have written it
    again()
    assert stand_in.builds == 4


def test_without_a_home_there_is_no_cache(stand_in, monkeypatch):
    monkeypatch.delenv("L0RT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.os.path, "expanduser", lambda path: path)
    with pytest.warns(RuntimeWarning, match="this user has no home folder"):
        compiled()


def test_the_folder_is_the_one_of_the_xdg_specification(monkeypatch, tmp_path):
    monkeypatch.delenv("L0RT_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    for base, expected in (("", ".cache/l0rt"), ("relative", ".cache/l0rt"), (str(tmp_path / "base"), "base/l0rt")):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache.path() == str(tmp_path / expected)
    monkeypatch.setenv("L0RT_CACHE_DIR", "~/mine")
    assert cache.path() == str(tmp_path / "mine")


def test_those_that_were_not_used_for_longest_go_first(stand_in, folder, monkeypatch):
    compiled("kernel void a() {}")
    (entry,) = entries(folder)
    size = entry.stat().st_size
    for name in "bcd":
        compiled(f"kernel void {name}() {{}}")
    for age, path in enumerate(reversed(entries(folder))):
        os.utime(path, (1e9 + age, 1e9 + age))
    oldest, second, *newer = entries(folder)
    abandoned, fresh = (folder._place(f"{n:040x}") + ".1.1" for n in (1, 2))
    for path in (abandoned, fresh):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_bytes(b"half")
    os.utime(abandoned, (1e9, 1e9))
    used = {oldest.parent.name + oldest.name: "the oldest is used now"}
    assert folder.load(*used)
    with config.patch({"cache_size": 4 * size + 10}):
        compiled("kernel void e() {}")
    assert set(entries(folder)) >= {oldest, *newer}
    assert second not in entries(folder)
    assert len(entries(folder)) == 4
    assert not os.path.exists(abandoned)
    assert os.path.exists(fresh)
    with config.patch({"cache_size": size - 1}):
        compiled("kernel void f() {}")  # larger than the limit: nothing goes for it
    assert len(entries(folder)) == 4


def test_a_limit_of_0_switches_everything_off(stand_in, folder):
    with config.patch({"cache_size": 0}):
        compiled()
        compiled()
    assert stand_in.builds == 2
    assert not os.path.lexists(folder.path)


@pytest.mark.parametrize("limit", [1 << 30, 1 << 45])
def test_an_entry_that_is_larger_than_any_is_removed_unread(stand_in, folder, limit):
    compiled()
    (entry,) = entries(folder)
    os.truncate(entry, 2 << 40)  # without that memory anywhere
    with config.patch({"cache_size": limit}):
        again()
        assert stand_in.builds == 2
        assert entry.stat().st_size < 1 << 20
        again()
    assert stand_in.builds == 2


@pytest.mark.parametrize("name", ["x" * 5000, "/dev/null/x", "/proc/nothing"])
def test_a_folder_that_no_name_can_have_is_warned_of(stand_in, name):
    with config.patch({"cache_dir": name}), pytest.warns(RuntimeWarning, match="kernels are compiled anew in each"):
        compiled()
    assert stand_in.builds == 1


@pytest.mark.parametrize("size", ["", "1.5GiB", "-1", "1 GiB", "GiB", "1GB", "٣"])
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError, match="expected a whole number of bytes, or a number with KiB"):
        config.set("cache_size", size)


def test_memory_has_a_limit_too(stand_in, monkeypatch):
    monkeypatch.setattr(compiler, "MOST_KEPT", 3)
    for i in range(5):
        compiled(f"kernel void add() {{}} // {i}")
    assert len(compiler._kept) == 3
    monkeypatch.setattr(compiler, "MOST_BYTES", 1)
    compiled(SOURCE)
    assert len(compiler._kept) == 0


def test_a_signal_handler_may_compile_the_same_source(stand_in):
    """While its thread does: it holds the locks already."""
    done = []

    def handler(number, frame):
        stand_in.before = lambda: None
        compiled()
        done.append(number)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        stand_in.before = lambda: signal.raise_signal(signal.SIGUSR1)
        compiled()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done == [signal.SIGUSR1]
    assert cache._held == {}


TAKE = """
import signal
from l0rt.kernels import cache
signal.alarm({})
with cache.Folder({!r}, 1).locked({!r}):
    assert cache._held
"""


def test_a_lock_keeps_the_same_entry_and_no_other_one(folder):
    """Also where the keys begin alike. The other process is ended by its alarm."""
    keys = "0" * 40, "0" * 14 + "1" * 26
    folder.prepare()
    with folder.locked(keys[0]):
        place = os.path.dirname(folder.path)
        same, other = run_python(TAKE.format(1, place, keys[0])), run_python(TAKE.format(60, place, keys[1]))
    assert (same.returncode, other.returncode) == (-signal.SIGALRM, 0)


def test_a_child_that_was_forked_meanwhile_holds_no_lock(stand_in, folder):
    """It outlives its parent's compile, and another process can make the same entry."""
    key = "0" * 40
    folder.prepare()
    reading, writing = os.pipe()
    with folder.locked(key):
        pid = os.fork()
        if pid == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent says so
            os._exit(0)
    os.close(reading)
    try:
        result = run_python(TAKE.format(60, os.path.dirname(folder.path), key))
        assert result.returncode == 0, result
    finally:
        os.close(writing)
        os.waitpid(pid, 0)


def test_hostile_includes_read_no_devices(tmp_path):
    """Devices, pipes and folders are no headers, and a path that leaves the root stays in it."""
    os.mkfifo(tmp_path / "pipe.h")
    (tmp_path / "folder.h").mkdir()
    names = ["/dev/zero", "pipe.h", "folder.h", "../" * 40 + "dev/zero", "../" * 40 + "none", "\xff", "a" * 5000, '\\"']
    source = "".join(f"#include <{name}>\n" for name in names).encode()
    found = includes.headers_of(source, None, [str(tmp_path)], {})
    assert found.files == []
    assert found.is_whole
    big = tmp_path / "big.h"
    with big.open("wb") as file:
        file.truncate(includes.MOST_BYTES + 1)
    with pytest.raises(ValueError, match="header .*big.h' has 67108865 bytes, more than"):
        includes.headers_of(b"#include <big.h>\n", None, [str(tmp_path)], {})
