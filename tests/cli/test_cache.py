# SPDX-License-Identifier: Apache-2.0
"""`l0rt cache` shows the cache and empties it."""

import json

import pytest
from l0rt.cli import cache as command
from l0rt.kernels import cache
from l0rt.kernels.cache import NAME, Folder

from helpers.cli import complaint, l0rt


def filled(path):
    folder = Folder(str(path), 1 << 20)
    for i in range(3):
        folder.store(f"{i:040x}", b"code" * 100, b"", b"")
    return folder


def test_it_shows_what_is_there(tmp_path):
    nothing = l0rt("cache", env={"L0RT_CACHE_DIR": tmp_path / "none"})
    assert nothing.returncode == 0, nothing
    assert "0 bytes of 1 GiB, in 0 entries" in nothing.stdout
    assert not (tmp_path / "none").exists()
    folder = filled(tmp_path)
    nbytes = sum(size for _, size, _ in folder.entries())
    result = l0rt("cache", env={"L0RT_CACHE_DIR": tmp_path, "L0RT_CACHE_SIZE": "3MiB"})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert f"{tmp_path / NAME}\n" in result.stdout
    assert "1.3 KiB of 3 MiB, in 3 entries" in result.stdout
    assert "less than a minute ago" in result.stdout
    assert "compiler" in result.stdout
    found = json.loads(l0rt("cache", "--json", env={"L0RT_CACHE_DIR": tmp_path, "L0RT_CACHE_SIZE": "0"}).stdout)
    assert (found["entries"], found["bytes"], found["limit"], found["problem"]) == (3, nbytes, 0, None)


def test_it_empties_the_cache_and_removes_nothing_else(tmp_path):
    folder = filled(tmp_path)
    for name in ("mine.txt", f"{NAME}/mine.txt", f"{NAME}/00/mine.txt"):
        (tmp_path / name).touch()
    result = l0rt("cache", "--clear", env={"L0RT_CACHE_DIR": tmp_path})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.startswith("3 files removed, 1.3 KiB, from ")
    assert folder.entries() == []
    assert sorted(path.name for path in tmp_path.rglob("mine.txt")) == ["mine.txt"] * 3
    again = l0rt("cache", "--clear", "--json", env={"L0RT_CACHE_DIR": tmp_path})
    assert json.loads(again.stdout)["entries"] == 0


def test_a_folder_that_cannot_be_used_is_told_of(tmp_path):
    (tmp_path / NAME).touch()
    result = l0rt("cache", env={"L0RT_CACHE_DIR": tmp_path})
    assert result.returncode == 1
    assert "File exists" in result.stdout
    assert "Traceback" not in result.stderr
    assert l0rt("cache", "--clear", env={"L0RT_CACHE_DIR": tmp_path}).returncode == 1


def test_a_folder_that_cannot_be_made_is_told_of(tmp_path):
    (tmp_path / "file").touch()
    for name, says in ((tmp_path / "file", "Not a directory"), (tmp_path / "file" / "x", "Not a directory"),
                       (f"/{'x' * 300}", "File name too long"), ("/dev/null", "Not a directory")):  # fmt: skip
        for words in ((), ("--clear",)):
            result = l0rt("cache", *words, env={"L0RT_CACHE_DIR": name})
            assert (result.returncode, result.stderr) == (1, ""), result
            assert says in result.stdout, result


def test_a_folder_without_permission_is_told_of(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(cache.os, "access", lambda path, mode: asked.append(path))  # the superuser has every permission
    with pytest.raises(cache.Unusable, match="no permission to write to"):
        Folder(str(tmp_path / "a" / "b"), 1).check()
    folder = Folder(str(tmp_path), 1)
    (tmp_path / NAME).mkdir(0o700)
    with pytest.raises(cache.Unusable, match="cannot be read and written: its mode must be 0700"):
        folder.check()
    assert asked == [str(tmp_path), folder.path]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_bad_words_and_settings():
    assert "dance" in complaint(l0rt("cache", "dance"))
    assert "L0RT_CACHE_SIZE" in complaint(l0rt("cache", env={"L0RT_CACHE_SIZE": "much"}))
    assert "usage: l0rt cache" in l0rt("cache", "--help").stdout


def test_sizes_and_times_are_written_as_people_do(monkeypatch):
    assert [command.size_text(n) for n in (0, 1023, 1024, 1536, 1 << 30, 5 << 40)] == [
        "0 bytes", "1023 bytes", "1 KiB", "1.5 KiB", "1 GiB", "5120 GiB"]  # fmt: skip
    monkeypatch.setattr(command.time, "time", lambda: 1e9)
    assert [command.ago(1e9 - s) for s in (-5, 0, 60, 7200, 86_400 * 3)] == [
        "less than a minute ago", "less than a minute ago", "1 minute ago", "2 hours ago", "3 days ago"]  # fmt: skip
