# SPDX-License-Identifier: Apache-2.0
"""The pages of the site that are made from the source."""

from pages import c_functions, driver_functions, driver_instructions, python_names

WRITERS = {
    "c-api.md": c_functions.page,
    "cpu-driver-functions.md": driver_functions.page,
    "cpu-driver-instructions.md": driver_instructions.page,
}


def write(folder):
    """Write every page into the folder of the other pages."""
    texts = {name: writer() for name, writer in WRITERS.items()}
    texts |= {f"api/{name}.rst": text for name, text in python_names.pages().items()}
    for file in (folder / "api").glob("*.rst"):
        if f"api/{file.name}" not in texts:  # of a module that is gone
            file.unlink()
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text() != text:  # else Sphinx reads it again
            file.write_text(text)
