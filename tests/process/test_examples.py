# SPDX-License-Identifier: Apache-2.0
"""The examples run, and print what docs/examples.md says; without a compiler they say what is missing."""

import re
import sys

import pytest

from helpers import compilers
from helpers.ci import skip_unless_ci
from helpers.process import run, run_python
from helpers.source import ROOT

FOLDER = ROOT / "examples"
# Those of torch: tests/partners/test_torch_device.py
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py") if "import torch" not in path.read_text())
PAGE = (ROOT / "docs/examples.md").read_text()
ANY_DRIVER = {"L0RT_DRIVER": None, "L0RT_CPU_DEVICES": None}
PNG = b"\x89PNG\r\n\x1a\n"
LIMITS = {"train_spirals.py": 60}  # seconds after which a run is ended: the page says so

needs_compiler = pytest.mark.skipif(not compilers.INSTALLED, reason=compilers.WITHOUT)


def rounded(text):
    """Return a text whose numbers with a point have as many digits as any compiler's code agrees on."""
    return re.sub(r"\d+\.\d+", lambda found: f"{float(found[0]):.1f}", text)


@needs_compiler
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_prints_what_the_page_says(name, tmp_path):
    shown = re.search(rf"^```\n\$ python examples/{name}(.*)\n((?:(?!```).*\n)*)```$", PAGE, re.MULTILINE)
    assert shown, f"docs/examples.md does not show examples/{name}"
    command = [sys.executable, "-W", "ignore", FOLDER / name, *shown[1].split()]
    result = run(command, ANY_DRIVER, tmp_path, timeout=LIMITS.get(name, 300))
    assert (result.returncode, result.stderr) == (0, ""), result
    assert rounded(result.stdout) == rounded(shown[2])


@needs_compiler
def test_the_training_draws_its_loss(tmp_path):
    if run([sys.executable, "-c", "import matplotlib"]).returncode != 0:
        skip_unless_ci("needs matplotlib: the extra `test`")
    code = f"""
import runpy
import numpy as np
made = runpy.run_path({str(FOLDER / "train_spirals.py")!r})
made["l0rt"].config.set("driver", "cpu")
points, labels = made["spirals"](8)
made["draw"]("loss.png", np.array([1.0, 0.5, 0.05]), made["Network"](), points, labels)
"""
    result = run_python(code, ANY_DRIVER, tmp_path, timeout=300)
    assert result.returncode == 0, result
    drawn, shown = (path.read_bytes() for path in (tmp_path / "loss.png", ROOT / "docs/spirals.png"))
    assert drawn.startswith(PNG)
    assert drawn[:24] == shown[:24], "docs/spirals.png has another size: python train_spirals.py ../docs/spirals.png"
    assert len(shown) < 150_000
    assert "](spirals.png)" in PAGE


@needs_compiler
def test_the_networks_products_go_by_the_precision(tmp_path):
    """Each layer's products, as NumPy computes them of inputs that are rounded to so many bits."""
    code = f"""
import runpy
import numpy as np
made = runpy.run_path({str(FOLDER / "train_spirals.py")!r})
l0rt = made["l0rt"]
l0rt.config.set("driver", "cpu")
points, labels = made["spirals"](64)

def rounded(x, dropped):
    bits = x.astype("f4").view("u4")
    if dropped:
        bits = bits + ((1 << dropped - 1) - 1 + (bits >> dropped & 1)).astype("u4") >> dropped << dropped
    return bits.astype("u4").view("f4")

errors = {{}}
for word, dropped in (("none", 0), ("ieee", 0), ("tf32", 13), ("bf16", 16)):
    with l0rt.config.patch({{"xpu.matmul.fp32_precision": word}}):
        network = made["Network"]()
    found = network.forward(l0rt.from_numpy(points), 64)
    for precision in (0, 13, 16):
        worst = 0
        for layer, x, to in zip(network.layers, found, found[1:]):
            x = x.numpy("f4", (64, layer.inputs))
            w = layer.weights.numpy("f4", (layer.inputs + 1, layer.outputs))
            product = rounded(x, precision).astype("f8") @ rounded(w[:-1], precision).astype("f8") + w[-1]
            expected = product if layer.is_last else np.tanh(product)
            worst = max(worst, abs(to.numpy("f4", (64, layer.outputs)) - expected).max())
        errors[word, precision] = worst
    best = min((0, 13, 16), key=lambda precision: errors[word, precision])
    assert best == dropped and errors[word, dropped] < 1e-5, errors
"""
    result = run_python(code, ANY_DRIVER, tmp_path, timeout=300)
    assert result.returncode == 0, result


@needs_compiler
def test_a_training_that_learns_nothing_fails(tmp_path):
    code = f"""
import runpy
main = runpy.run_path({str(FOLDER / "train_spirals.py")!r})["main"]
main.__globals__.update(EPOCHS=100, RATE=0.0, draw=lambda *args: None)
main()
"""
    result = run_python(code, ANY_DRIVER, tmp_path, timeout=300)
    assert result.returncode == 1, result
    assert re.search(r"^the loss is 0\.\d+, and should have fallen below 0\.1$", result.stderr, re.MULTILINE), result


@pytest.mark.parametrize("name", EXAMPLES)
def test_without_a_compiler_the_error_says_what_to_install(name, tmp_path):
    code = f"""
import runpy
from l0rt.kernels import compiler
for module in compiler.COMPILERS.values():
    module.find = lambda: None
runpy.run_path({str(FOLDER / name)!r}, run_name="__main__")
"""
    result = run_python(code, ANY_DRIVER, tmp_path)
    assert result.returncode == 1, result
    last = result.stderr.splitlines()[-1]
    assert last.startswith("l0rt.errors.CompilerNotFoundError: l0rt.compile needs a compiler of OpenCL C"), result
    assert "intel-o" in last  # a package of that name, by distribution
    assert "ziglang" in last


def test_the_page_shows_the_first_example_as_it_is():
    text = (FOLDER / "vector_add.py").read_text().split('"""\n\n', 1)[1]
    assert f"```python\n{text}```" in PAGE
