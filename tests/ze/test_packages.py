# SPDX-License-Identifier: Apache-2.0
"""What l0rt says of distributions' packages: by the machine's release, and the same in the docs."""

import re

import pytest
from l0rt.ze.packages import PACKAGES, advice

from helpers.source import ROOT


def system(root, text):
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('PRETTY_NAME="Debian 12"\nID=debian\nVERSION_ID="12"\n', "apt install intel-opencl-icd"),
        ('ID=debian\nVERSION_ID="14"\n', "apt install libze-intel-gpu1"),
        ("ID=debian\nVERSION_CODENAME=forky\n", "apt install libze-intel-gpu1"),
        ("ID=debian\n", "apt install libze-intel-gpu1"),
    ],
)
def test_a_release_of_debian_has_its_package(text, says, tmp_path):
    assert advice("driver", system(tmp_path, text)) == says


def test_a_release_without_a_package_says_where_there_is_one(tmp_path):
    root = system(tmp_path, 'ID=debian\nVERSION_ID="13"\n')
    assert advice("driver", root).startswith("Debian 13 has no package of it, Debian 14 (forky) has libze-intel-gpu1")
    assert advice("loader", root) == "apt install libze1"


@pytest.mark.parametrize("text", ['ID=ubuntu\nVERSION_ID="24.04"\n', 'ID=debian\nVERSION_ID="9"\n', "", "\0=\n"])
def test_another_system_is_told_all_and_that_they_are_not_tried(text, tmp_path):
    said = advice("ocloc", system(tmp_path, text))
    assert said.startswith("Debian 12: apt install intel-opencl-icd; Debian 14: apt install intel-ocloc; ")
    assert said.endswith("not tried")
    assert advice("loader", str(tmp_path / "nowhere")).startswith("Debian: apt install libze1; ")


def test_the_page_for_a_first_gpu_has_the_same_table():
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", (ROOT / "docs/start.md").read_text(), re.MULTILINE)
    shown = {what: tuple(cell.strip("`") for cell in cells.split(" | ")) for what, cells in rows if what in PACKAGES}
    assert shown == {what: tuple(name or "none" for name in names) for what, names in PACKAGES.items()}
