# SPDX-License-Identifier: Apache-2.0
"""Images and samplers: every format, order, addressing and filter, compared with a reference in NumPy."""

import gc
from pathlib import Path

import l0rt
import numpy as np
import pytest

from helpers.image_reference import CHANNELS, PACKED, Format, sample
from helpers.ledger import live
from helpers.process import run_python

MODULE = Path(__file__).parents[1] / "cpu_driver/kernels/images.spv"
NUMBERS = ("uint", "sint", "unorm", "snorm", "float")
FORMATS = [
    f"{order}{bits}{number}"
    for order in CHANNELS
    for bits in (8, 16, 32)
    for number in NUMBERS
    if not (bits == 8 and number == "float")
]
FORMATS += [f"rgb10a2{number}" for number in NUMBERS[:4]] + ["rg11b10float"]
FORMATS += [f"{stem}unorm" for stem in PACKED if stem not in ("rgb10a2", "rg11b10")]


WITHOUT = """
import l0rt
for make in (lambda: l0rt.Image((2, 2)), l0rt.Sampler):
    try:
        make()
    except l0rt.UnsupportedError as error:
        print(error)
"""


@pytest.fixture
def kernels():
    """Images are the device's; one without them, such as Ponte Vecchio, refuses them."""
    try:
        l0rt.Image((2, 2)).close()
    except l0rt.UnsupportedError as error:
        pytest.skip(str(error))
    with l0rt.Module(MODULE) as module:
        yield module


def filled(rng, image):
    """An array of any bits for an image; of floats, numbers."""
    array = image.numpy()
    shape = array.shape
    if image.dtype.kind == "f":
        return rng.uniform(-3, 3, shape).astype(image.dtype)
    return np.frombuffer(rng.bytes(array.nbytes), image.dtype).reshape(shape).copy()


@pytest.mark.checks_data
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_and_written_as_the_specification_says(kernels, name):
    rng = np.random.default_rng(FORMATS.index(name))
    form, shape = Format(name), (5, 7)
    with l0rt.Image(shape, name) as image:
        raw = filled(rng, image)
        image.copy_from(raw)
        assert (image.numpy() == raw).all()
        out = l0rt.empty(4 * 4 * 35).fill(0)
        kernels["read2" if form.is_float else "read2_int"][(7, 5), 1](image, out)
        found = out.numpy("f4" if form.is_float else "u4", (*shape, 4))
        np.testing.assert_array_equal(found, form.read(raw).view(found.dtype))
        if form.is_float:
            values = rng.uniform(-1.5, 1.5, (*shape, 4)).astype("f4")
            values[0, 0] = [np.nan, np.inf, -np.inf, 0.5] if form.number != "float" else [1e-6, 65504, 70000, -1e-8]
            if form.bits == (11, 11, 10):
                values = np.abs(values) % 4
        else:
            values = rng.integers(0, 1 << 32, (*shape, 4), dtype="u4")
            values[0] %= 300
        kernel = {"uint": "write2_uint", "sint": "write2_int"}.get(form.number, "write2")
        kernels[kernel][(7, 5), 1](image, l0rt.from_numpy(values))
        if form.bits == (11, 11, 10):  # NumPy has no such floats: what is written is read back as the nearest ones
            np.testing.assert_allclose(form.read(image.numpy())[..., :3], values[..., :3], rtol=2**-5, atol=2**-19)
        else:
            np.testing.assert_array_equal(form.components(image.numpy()), form.write(values))


def coordinates(rng, axes, normalized, shape, count=400):
    """Coordinates in and around an image, some of them on the edges of texels."""
    size = np.array([1] * axes if normalized else shape[::-1][:axes], "f4")
    at = rng.uniform(-1.6, 2.6, (count, axes)).astype("f4")
    at[::5] = np.round(at[::5] * 8) / 8
    return (at * size).astype("f4")


SHAPES = {
    "sample1": ((9,), False), "sample2": ((6, 9), False), "sample3": ((4, 5, 6), False),
    "sample1_array": ((3, 9), True), "sample2_array": ((4, 6, 9), True),
}  # fmt: skip
SAMPLERS = [
    (mode, kind, normalized)
    for mode in ("clamp", "border", "repeat", "mirror")
    for kind in ("nearest", "linear")
    for normalized in (False, True)
    if normalized or mode not in ("repeat", "mirror")
]


@pytest.mark.checks_data
@pytest.mark.parametrize("kernel", SHAPES)
@pytest.mark.parametrize(("addressing", "kind", "normalized"), SAMPLERS)
@pytest.mark.parametrize(
    "name", ["rgba8unorm", "r32float", "bgra8unorm", "rg16snorm", "a16float", "i8unorm", "rgb32float"]
)
def test_every_sampler_samples_as_the_specification_says(kernels, kernel, addressing, kind, normalized, name):
    rng = np.random.default_rng(3)
    shape, array = SHAPES[kernel]
    form, axes = Format(name), len(shape) - array
    with (
        l0rt.Image(shape, name, array=array) as image,
        l0rt.Sampler(addressing, kind, normalized=normalized) as sampler,
    ):
        raw = filled(rng, image)
        image.copy_from(raw)
        at = coordinates(rng, axes, normalized, shape)
        if array:
            at = np.column_stack([at, rng.uniform(-1, shape[0] + 1, len(at)).astype("f4")])
        width = {1: 1, 2: 2}.get(at.shape[1], 4)
        padded = np.zeros((len(at), width), "f4")
        padded[:, : at.shape[1]] = at
        out = l0rt.empty(16 * len(at))
        kernels[kernel][len(at) // 50, 50](image, sampler, l0rt.from_numpy(padded), out)
        found = out.numpy("f4", (len(at), 4))
        texels = form.read(raw)
        texels = texels.reshape((1,) * (4 - texels.ndim) + texels.shape)
        want = sample(texels, form.border(), at, addressing, kind == "linear", normalized, axes, array)
        np.testing.assert_array_equal(found, want)


@pytest.mark.checks_data
def test_integers_are_sampled_and_their_border_is_one_of_integers(kernels):
    raw = np.arange(24, dtype="u4").reshape(4, 6)
    at = np.array([[-1, 0], [0.5, 0.5], [5.9, 3.9], [6.1, 0], [2.2, 9]], "f4")
    with l0rt.Image((4, 6), "r32uint") as image, l0rt.Sampler("border") as sampler:
        image.copy_from(raw)
        out = l0rt.empty(16 * 5)
        kernels["sample2_uint"][5, 1](image, sampler, l0rt.from_numpy(at), out)
        found = out.numpy("u4", (5, 4))
    assert found.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1], [23, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]


@pytest.mark.checks_data
def test_integer_coordinates_name_texels(kernels):
    at = np.array([[0, 0], [5, 3], [-1, 2], [6, 0], [2, -7], [1 << 30, -(1 << 31)]], "i4")
    raw = np.arange(24, dtype="f4").reshape(4, 6)
    with l0rt.Image((4, 6), "r32float") as image, l0rt.Sampler("clamp") as edge, l0rt.Sampler("border") as border:
        image.copy_from(raw)
        for sampler, want in ((edge, [0, 23, 12, 5, 2, 5]), (border, [0, 23, 0, 0, 0, 0])):
            out = l0rt.empty(16 * 6)
            kernels["sample2_int"][6, 1](image, sampler, l0rt.from_numpy(at), out)
            assert out.numpy("f4", (6, 4))[:, 0].tolist() == want


@pytest.mark.checks_data
@pytest.mark.parametrize(
    ("kernel", "shape", "array"),
    [("copy1", (13,), False), ("copy3", (3, 4, 5), False), ("copy1_array", (3, 7), True),
     ("copy2_array", (2, 3, 5), True)],
)  # fmt: skip
def test_images_of_other_shapes_are_read_and_written(kernels, kernel, shape, array):
    raw = np.random.default_rng(1).integers(0, 256, (*shape, 4), dtype="u1")
    with l0rt.Image(shape, array=array) as a, l0rt.Image(shape, array=array) as b:
        a.copy_from(raw)
        kernels[kernel][shape[::-1], 1](a, b)
        assert (b.numpy() == raw).all()


@pytest.mark.checks_data
def test_a_kernel_reads_and_writes_one_image(kernels):
    raw = np.arange(12, dtype="f4").reshape(3, 4)
    with l0rt.Image((3, 4), "r32float") as image:
        image.copy_from(raw)
        kernels["doubled"][(4, 3), 1](image)
        assert (image.numpy() == 2 * raw).all()


@pytest.mark.checks_data
def test_a_kernel_asks_for_sizes_and_formats(kernels):
    out = l0rt.empty(48)
    with (
        l0rt.Image((3, 4), "bgra8unorm") as two,
        l0rt.Image((5, 6, 7)) as three,
        l0rt.Image((2, 8, 9), array=True) as array,
        l0rt.Image((11, 12), array=True) as line,
    ):
        kernels["asked"][1, 1](two, three, array, line, out)
    found = out.numpy("i4").tolist()
    assert found[:2] == [4, 3]
    assert found[2:4] == [0x10B6, 0x10D2], "CLK_BGRA and CLK_UNORM_INT8"
    assert found[4:] == [7, 6, 5, 70605, 2, 908, 11, 12]


@pytest.mark.checks_data
def test_parts_and_buffers_are_copied_in_the_order_of_a_stream():
    image = new_image((6, 8), "r16uint")
    raw = np.arange(48, dtype="u2").reshape(6, 8)
    stream = l0rt.Stream()
    buffer = l0rt.from_numpy(raw)
    assert (buffer.numpy("u2", (6, 8)) == raw).all(), "the buffer's own stream is done with it"
    image.copy_from(buffer, stream=stream)
    part = np.full((2, 3), 999, "u2")
    image.copy_from(part, origin=(1, 2), stream=stream)
    raw[1:3, 2:5] = 999
    assert (image.numpy(stream=stream) == raw).all()
    corner = np.zeros((2, 2), "u2")
    assert (image.copy_to(corner, origin=(4, 6), stream=stream) == raw[4:, 6:]).all()
    back = l0rt.empty(raw.nbytes)
    assert image.copy_to(back, stream=stream) is back
    stream.synchronize()
    assert (back.numpy("u2", (6, 8)) == raw).all()
    image.close()


def new_image(*args, **options):
    try:
        return l0rt.Image(*args, **options)
    except l0rt.UnsupportedError as error:
        pytest.skip(str(error))


def test_what_is_wrong_is_refused_by_name():
    image = new_image((4, 5))
    for wrong, error, text in [
        (lambda: l0rt.Image((4, 5), "rgba9unorm"), ValueError, "there is no image format 'rgba9unorm'"),
        (lambda: l0rt.Image((4, 5), "r8float"), ValueError, "there is no image format 'r8float'"),
        (lambda: l0rt.Image((4, 5), 3), TypeError, "an image's format must be a str, got int"),
        (
            lambda: l0rt.Image((1, 2, 3, 4)),
            ValueError,
            r"an image's shape must have 1 to 3 extents, got \(1, 2, 3, 4\)",
        ),
        (lambda: l0rt.Image((4,), array=True), ValueError, "an image's shape must have 2 or 3 extents"),
        (lambda: l0rt.Image((4, 1 << 20)), l0rt.UnsupportedError, "has 1 to 16384 texels"),
        (lambda: l0rt.Image((4, 0)), l0rt.UnsupportedError, "has 1 to 16384 texels"),
        (lambda: l0rt.Sampler("wrapped"), ValueError, "a sampler's addressing must be one of"),
        (lambda: l0rt.Sampler("clamp", "cubic"), ValueError, "nearest or linear, got 'cubic'"),
        (lambda: l0rt.Sampler("repeat"), ValueError, "addressing 'repeat' needs normalized=True"),
        (lambda: image.copy_from(np.zeros((4, 5, 4), "f4")), TypeError, "the array must be of uint8, got float32"),
        (lambda: image.copy_from(np.zeros((4, 5), "u1")), ValueError, r"must have the shape \(4, 5, 4\)"),
        (lambda: image.copy_from(np.zeros((2, 5, 4), "u1")), ValueError, r"must have the shape \(4, 5, 4\)"),
        (lambda: image.copy_from(np.zeros((2, 5, 4), "u1"), origin=(3, 0)), ValueError, r"got \(2, 5, 4\) at \(3, 0\)"),
        (lambda: image.copy_from(np.zeros((2, 5, 4), "u1"), origin=(-1, 0)), ValueError, r"at \(-1, 0\)"),
        (lambda: image.copy_from(l0rt.empty(79)), ValueError, "the image has 80 bytes, got a buffer of 79"),
        (lambda: image.copy_to(bytearray(80)), TypeError, "to a NumPy array or a Buffer, got bytearray"),
        (lambda: image.copy_to(np.zeros((4, 5, 8), "u1")[..., ::2]), ValueError, "the array must be contiguous"),
    ]:
        with pytest.raises(error, match=text):
            wrong()
    image.close()
    image.close()
    assert image.closed
    assert "closed" in repr(image)
    with pytest.raises(ValueError, match="the image was closed"):
        image.numpy()


def test_a_kernel_refuses_what_is_no_image(kernels):
    kernel, out = kernels["read2"], l0rt.empty(16)
    with pytest.raises(TypeError, match=r"read2\(\) argument 0 \(from\) must be a l0rt.Image, got Buffer"):
        kernel[1, 1](out, out)
    with l0rt.Sampler() as sampler, pytest.raises(TypeError, match="must be a l0rt.Image, got Sampler"):
        kernel[1, 1](sampler, out)
    image = l0rt.Image((1, 1))
    image.close()
    with pytest.raises(ValueError, match="the image was closed"):
        kernel[1, 1](image, out)


def test_a_closed_image_stays_until_the_work_that_uses_it_is_complete(kernels):
    before = live()
    raw = np.random.default_rng(1).integers(0, 256, (512, 512, 4), dtype="u1")
    out = l0rt.empty(512 * 512 * 16)
    for _ in range(8):
        image, sampler = l0rt.Image((512, 512)), l0rt.Sampler()
        image.copy_from(raw)
        kernels["read2"][(64, 512), 8](image, out)
        del image, sampler
    out.numpy()
    with l0rt.Image((1, 1)):  # sweeps
        pass
    gc.collect()
    del out
    if before is not None:
        after = live()
        assert (after["image"], after["sampler"]) == (before["image"], before["sampler"])


@pytest.mark.checks_data
def test_a_launch_with_an_image_is_replayed_by_a_graph(kernels):
    raw = np.arange(12, dtype="f4").reshape(3, 4)
    with l0rt.Image((3, 4), "r32float") as image:
        image.copy_from(raw)
        graph = l0rt.accelerator.Graph()
        graph.capture_begin()
        kernels["doubled"][(4, 3), 1](image)
        graph.capture_end()
        graph.replay()
        graph.replay()
        assert (image.numpy() == 4 * raw).all()


def test_a_device_without_images_says_so():
    done = run_python(WITHOUT, env={"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "pvc"})
    assert done.stdout.splitlines() == ["xpu:0 has no images", "xpu:0 has no samplers"], done.stderr
