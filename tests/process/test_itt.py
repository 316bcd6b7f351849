# SPDX-License-Identifier: Apache-2.0
"""ITT tasks: a collector that exports its functions, one that fills in a table, and none."""

import os
import subprocess

import pytest

from helpers.process import run_python

COLLECTOR = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned long long d1, d2, d3; } id;
typedef struct domain { int flags; const char *name; void *wide; int e1; void *e2; struct domain *next; } domain;
typedef struct string { const char *text; void *wide; int e1; void *e2; struct string *next; } string;
static void say(const char *what, const domain *d, const string *s) {
  printf("%s %s %s\n", what, d->name, s == NULL ? "" : s->text);
  fflush(stdout);
}
#ifdef MAKES
static domain *make_domain(const char *name) {
  domain *d = calloc(1, sizeof *d);
#ifndef OFF
  d->flags = 1;
#endif
  d->name = strdup(name);
  return d;
}
static string *make_string(const char *text) {
  string *s = calloc(1, sizeof *s);
  s->text = strdup(text);
  return s;
}
#endif
static void begin(const domain *d, id task, id parent, string *s) {
  if (task.d1 || task.d2 || task.d3 || parent.d1 || parent.d2 || parent.d3) abort();
  say("begin", d, s);
}
static void end(const domain *d) { say("end", d, NULL); }
static void mark(const domain *d, id i, string *s, int scope) {
  if (i.d1 || i.d2 || i.d3 || scope < 1 || scope > 5) abort();
  say("mark", d, s);
}
#ifdef TABLE
typedef struct { const char *name; void **address; void *at_first, *without; int group; } entry;
typedef struct {
  unsigned char magic[8];
  unsigned long major, minor, build;
  volatile long initialized, mutex_initialized, counter;
  char mutex[40];
  void *library, *error_handler;
  const char **path;
  entry *entries;
} table;
void __itt_api_init(table *t, int groups) {
  if (t->magic[0] != 0xED || t->magic[7] != 0x30 || t->major != 3 || groups != -1 || t->library == NULL) abort();
  for (entry *e = t->entries; e->name != NULL; e++) {
    if (strcmp(e->name, "__itt_task_begin") == 0) *e->address = begin;
    if (strcmp(e->name, "__itt_task_end") == 0) *e->address = end;
    if (strcmp(e->name, "__itt_marker") == 0) *e->address = mark;
#ifdef MAKES
    if (strcmp(e->name, "__itt_domain_create") == 0) *e->address = make_domain;
    if (strcmp(e->name, "__itt_string_handle_create") == 0) *e->address = make_string;
#endif
  }
}
#elif defined(NAMES)
void __itt_task_begin(const domain *d, id task, id parent, string *s) { begin(d, task, parent, s); }
void __itt_task_end(const domain *d) { end(d); }
void __itt_marker(const domain *d, id i, string *s, int scope) { mark(d, i, s, scope); }
#ifdef MAKES
domain *__itt_domain_create(const char *name) { return make_domain(name); }
string *__itt_string_handle_create(const char *text) { return make_string(text); }
#endif
#endif
"""
PROGRAM = """
from l0rt import profiler
profiler.range_push("outer")
with profiler.range("in ner"):
    profiler.mark("moment")
profiler.range_pop()
@profiler.range("called")
def function():
    pass
function()
"""
SAID = """begin l0rt outer
begin l0rt in ner
mark l0rt moment
end l0rt \nend l0rt \nbegin l0rt called
end l0rt \n"""


@pytest.fixture
def collector(tmp_path):
    def make(*words):
        source, library = tmp_path / "collector.c", tmp_path / "libcollector.so"
        source.write_text(COLLECTOR)
        flags = [f"-D{word}" for word in words]
        compiler = os.environ.get("CC", "gcc").split()
        subprocess.run([*compiler, "-shared", "-fPIC", *flags, "-o", library, source], check=True)
        return library

    return make


def said(path, switch="1"):
    result = run_python(PROGRAM, {"L0RT_DRIVER": "cpu", "L0RT_ITT": switch, "INTEL_LIBITTNOTIFY64": path})
    assert result.returncode == 0, result
    return result.stdout, result.stderr


@pytest.mark.parametrize("words", [("NAMES", "MAKES"), ("NAMES",), ("TABLE", "MAKES"), ("TABLE",)])
def test_ranges_and_marks_are_tasks_and_markers(collector, words):
    assert said(collector(*words)) == (SAID, "")


def test_a_tool_switches_the_domain_off(collector):
    assert said(collector("TABLE", "MAKES", "OFF")) == ("", "")


def test_nothing_is_told_without_the_variable(collector):
    for switch in ("0", None):
        assert said(collector("NAMES", "MAKES"), switch) == ("", "")


@pytest.mark.parametrize("path", ["/nowhere/libitt.so", "", None])
def test_a_collector_that_is_not_there_is_a_warning_and_no_more(path):
    out, err = said(path)
    assert out == ""
    assert err.count("L0RT_ITT=1 has no effect") == 1


def test_a_library_that_is_no_collector_is_a_warning(collector):
    out, err = said(collector())
    assert out == ""
    assert "has no __itt_task_begin and no __itt_task_end" in err
