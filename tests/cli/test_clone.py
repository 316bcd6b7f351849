# SPDX-License-Identifier: Apache-2.0
"""The console script works inside a clone, whose sources lie unbuilt in the working directory."""

import sys

import pytest

from helpers.process import run

SCRIPT = "import sys; from l0rt.cli import main; sys.exit(main())"


@pytest.mark.parametrize("words", [["doctor"], ["bench", "event.alive.100.*", "--smoke"]], ids=lambda words: words[0])
def test_other_sources_in_the_working_directory_are_not_used(words, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/l0rt").write_text(SCRIPT)
    (tmp_path / "clone/l0rt").mkdir(parents=True)
    (tmp_path / "clone/l0rt/__init__.py").write_text("raise ImportError('not built')")
    command = [sys.executable, tmp_path / "bin/l0rt", *words]
    result = run(command, {"L0RT_DRIVER": "cpu"}, tmp_path / "clone", timeout=120)
    assert result.returncode == 0, result
    assert "not built" not in result.stdout + result.stderr, result
