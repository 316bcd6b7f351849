# SPDX-License-Identifier: Apache-2.0
"""The site: ``make site`` builds it into build/site, from PyPI's packages alone."""

import sys
from pathlib import Path

import l0rt

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

project, author, copyright = "l0rt", "the l0rt developers", "the l0rt developers"
release = version = l0rt.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["pages"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
copybutton_prompt_text = "$ "

# Docstrings write `name` for a name of l0rt, and their sections are NumPy's.
default_role = "py:obj"
autodoc_typehints = "none"  # the text says what is taken
autodoc_member_order = "alphabetical"
autodoc_mock_imports = ["dask", "distributed", "dpctl", "mpi4py", "ray", "torch", "zict"]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "l0rt"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navbar_start": ["navbar-logo", "version-switcher"],
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "switcher": {"json_url": "_static/versions.json", "version_match": "development"},
    "check_switcher": False,
    "show_nav_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}


def fields(app, what, name, obj, options, lines):
    """Give a docstring to what cannot have one."""
    text = pages.python_names.FIELDS.get(name.removeprefix("l0rt."))
    if text and not any(lines):
        lines[:] = [text]


def setup(app):
    app.connect("builder-inited", lambda app: pages.write(HERE))
    app.connect("autodoc-process-docstring", fields)
