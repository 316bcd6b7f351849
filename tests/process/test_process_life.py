# SPDX-License-Identifier: Apache-2.0
"""docs/process.md: the tests that its table names are there; and those that are nowhere else: programs that a process
starts by vfork, and a C program that has Python without a main thread of Python's."""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from helpers.process import run, run_python
from helpers.source import ROOT

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
SITE = Path(sysconfig.get_path("purelib"))
HOST = """
#include <Python.h>
#include <pthread.h>
static const char *code;
static void *life(void *failed) {
  Py_InitializeEx(0);
  *(int *)failed |= PyRun_SimpleString(code) != 0;
  *(int *)failed |= Py_FinalizeEx() != 0;
  return NULL;
}
int main(int count, char **words) {  /* code, how many lives one after another */
  int failed = 0, lives = count > 2 ? atoi(words[2]) : 1;
  code = words[1];
  while (lives--) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, life, &failed)) return 2;
    pthread_join(thread, NULL);
  }
  return failed;
}
"""


def test_every_row_of_the_table_names_tests_that_there_are():
    rows = re.findall(r"^\| .* \| `(tests/.*)` \|$", (ROOT / "docs/process.md").read_text(), re.MULTILINE)
    assert len(rows) >= 12
    for named in (name for row in rows for name in row.split("`, `")):
        file, _, test = named.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(), named


@pytest.mark.parametrize("way", ["subprocess", "posix_spawn"])
def test_a_program_that_is_started_by_vfork_disturbs_nothing_and_may_use_l0rt(way):
    """The child shares its parent's memory until it executes the program: no handler for forks runs in it."""
    program = "import l0rt; print(l0rt.empty(64).fill(7).numpy()[0], flush=True)"
    start = {
        # Since 3.14 nothing can forbid it, and the name is gone.
        "subprocess": "assert getattr(subprocess, '_USE_VFORK', True)\n"
        "status = subprocess.run(words, close_fds=True).returncode",
        "posix_spawn": "pid = os.posix_spawn(words[0], words, os.environ)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])",
    }[way]
    code = f"""
import os, subprocess, sys
import l0rt, l0rt.accelerator as acc
x, e, s = l0rt.empty(1 << 20), l0rt.Event(), acc.Stream()
x.fill(1, stream=s); e.record(s)
words = [sys.executable, "-c", {program!r}]
{start}
assert status == 0
s.synchronize()
assert e.query() and bytes(x.copy_to(bytearray(1 << 20))[:3]) == b"\\1" * 3
"""
    result = run_python(code, CPU)
    assert (result.returncode, result.stdout, result.stderr) == (0, "7\n", "")


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A C program with Python in it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("host") / "host"
    folder, version = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDVERSION")
    libraries = (sysconfig.get_config_var("LIBS") or "").split()
    words = [compiler, "-x", "c", "-", f"-I{sysconfig.get_path('include')}", "-o", path, f"-L{folder}",
             f"-L{sysconfig.get_config_var('LIBPL')}", f"-Wl,-rpath,{folder}", f"-lpython{version}", *libraries, "-lm",
             "-lpthread", "-ldl", "-Wl,-export-dynamic"]  # fmt: skip
    made = subprocess.run(words, input=HOST, text=True, capture_output=True)
    if made.returncode:
        pytest.skip(f"needs Python's library for C programs: {made.stderr[-200:]}")
    return path


def embedded(host, code, lives=1):
    environment = {**CPU, "PYTHONPATH": SITE, "PYTHONHOME": sys.base_prefix}
    return run([host, code, str(lives)], environment)


WORK = """
import threading
import l0rt, l0rt.accelerator as acc
x, s, e = l0rt.empty(1 << 20), acc.Stream(), l0rt.Event()
x.fill(3, stream=s)
e.record(s)
e.synchronize()
others = [threading.Thread(target=x.fill, args=(3,)) for _ in range(4)]
[t.start() for t in others]
[t.join() for t in others]
acc.synchronize()
print(bytes(x.copy_to(bytearray(1 << 20))[:3]), flush=True)
"""


def test_python_in_a_thread_of_a_c_program_works_and_ends(host):
    """The first thread that Python sees is not the process's main thread."""
    result = embedded(host, WORK)
    assert (result.returncode, result.stdout, result.stderr) == (0, "b'\\x03\\x03\\x03'\n", "")


def test_an_interpreter_after_another_is_refused_by_name(host):
    code = """
try:
    import l0rt.accelerator as acc
    acc.Stream().synchronize()
    print("works", flush=True)
except ImportError as error:
    print(str(error)[:60], flush=True)
"""
    result = embedded(host, code, lives=2)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.splitlines() == ["works", "l0rt was used in this process by an interpreter that has end"]


def test_a_process_that_can_open_no_more_files_goes_on():
    """As one that has given up rights, when what reads files has been used before."""
    code = """
import resource
import numpy as np
import l0rt, l0rt.accelerator as acc
l0rt.empty(64).uniform_()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
try:
    open("/dev/null")
except OSError as no_more:
    print(no_more.strerror)
s, e = acc.Stream(), l0rt.Event()
x = l0rt.from_numpy(np.arange(1 << 20, dtype="u4"))
with s:
    s.wait_stream(acc.default_stream())
    y = l0rt.empty(x.nbytes).copy_from(x)
    e.record()
e.synchronize()
assert (y.numpy("u4") == np.arange(1 << 20)).all()
pinned, shared = l0rt.pinned(4096), l0rt.empty(4096, kind="shared").fill(3)
acc.synchronize()
assert shared.numpy().sum() == 3 * 4096 and pinned.size == 4096
assert l0rt.empty(4000).uniform_().numpy("f4").max() < 1
"""
    result = run_python(code, CPU)
    assert (result.returncode, result.stdout, result.stderr) == (0, "Too many open files\n", "")
