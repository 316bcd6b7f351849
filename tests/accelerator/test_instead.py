# SPDX-License-Identifier: Apache-2.0
"""What somebody types who knows torch or CuPy works, or the error has the line to type instead."""

import l0rt
import l0rt.accelerator as acc
import numpy as np  # noqa: F401 - what is typed uses it
import pytest

from helpers.process import run_python

X = "l0rt.from_numpy(np.arange(6, dtype='f4').reshape(2, 3))"
WORKS = [
    "acc.is_available()", "acc.device_count()", "acc.current_stream()", "acc.synchronize()", "acc.manual_seed(1)",
    "acc.memory_allocated()", "acc.empty_cache()", "acc.Event(enable_timing=True)", "len(l0rt.empty(16))",
    "acc.Stream().synchronize()", "acc.mem_get_info()", "acc.Stream().wait_stream(acc.current_stream())",
    "l0rt.device('xpu:0')",
]  # fmt: skip
INSTEAD = {  # what is typed: what the error says
    "l0rt.zeros(4)": "l0rt.empty(nbytes).fill(0)",
    "l0rt.ones(4)": "l0rt.from_numpy(array)",
    "l0rt.array([1])": "l0rt.from_numpy(array)",
    "l0rt.tensor([1])": "l0rt.from_numpy(array)",
    "l0rt.randn(4)": "l0rt.empty(nbytes).normal_()",
    "l0rt.synchronize()": "l0rt.accelerator.synchronize",
    "l0rt.cuda": "l0rt.accelerator",
    "acc.set_device(0)": "l0rt.accelerator.set_device_index(index)",
    "acc.current_device()": "l0rt.accelerator.current_device_index()",
    "acc.device(0)": "with l0rt.accelerator.device_index(index):",
    f"{X}.shape": "x.numpy(dtype, shape)",
    f"{X}.dtype": "x.numpy(dtype, shape)",
    f"{X}.size": "x.nbytes",
    f"{X}.item()": "x.numpy(dtype)[0]",
    f"{X}.cpu()": "x.numpy(dtype, shape)",
    f"{X}.to('cpu')": "l0rt.empty(x.nbytes, device=...).copy_from(x)",
    f"{X}.clone()": "l0rt.empty(x.nbytes).copy_from(x)",
    f"{X}.zero_()": "x.fill(0)",
    f"{X}.data_ptr()": "x.ptr",
    f"{X}.fill(1.5)": "fill(pattern=numpy.float32(value).tobytes())",
    f"{X}[0]": "x[a:b]",
    f"np.asarray({X})": "x.numpy(dtype, shape)",
    "l0rt.empty((4, 4))": "the product of the shape and the item size",
    "l0rt.from_numpy([1, 2])": "takes a NumPy array",
}


@pytest.mark.parametrize("text", WORKS)
def test_it_works(text):
    eval(text)


@pytest.mark.parametrize("text", INSTEAD)
def test_the_error_has_the_line_to_type(text):
    with pytest.raises((AttributeError, TypeError)) as failed:
        eval(text)
    assert INSTEAD[text] in str(failed.value)


def test_a_name_that_nobody_knows_has_no_hint():
    for owner in (l0rt, acc, l0rt.empty(4)):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            owner.nothing  # noqa: B018
        assert not hasattr(owner, "nothing")


def test_what_a_buffer_has_not_is_not_listed():
    x = l0rt.empty(4)
    assert "fill" in dir(x)
    assert not {"shape", "to", "cpu"} & {*dir(x)}
    assert not any(hasattr(x, name) for name in ("shape", "to", "cpu"))


def test_a_timer_shows_its_times():
    timer = acc.Timer()
    assert repr(timer) == "<l0rt.accelerator.Timer without a block>"
    with timer:
        assert repr(timer) == "<l0rt.accelerator.Timer in its block>"
    timer.elapsed_time()
    assert repr(timer).endswith(" on the host>")


def test_the_driver_is_named_in_any_case():
    code = "import l0rt.accelerator as acc; print(acc.device_count())"
    result = run_python(code, {"L0RT_DRIVER": "CPU", "L0RT_CPU_DEVICES": 3})
    assert (result.returncode, result.stdout) == (0, "3\n"), result
