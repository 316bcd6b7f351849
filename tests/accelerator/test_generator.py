# SPDX-License-Identifier: Apache-2.0
"""Generators: state, offsets, sharing, pickling, the default ones, and the numbers that they make."""

import contextlib
import copy
import pickle
import struct
from decimal import Decimal
from fractions import Fraction

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import philox

from helpers.process import run_python


@pytest.fixture(autouse=True)
def states_come_back():
    with acc.fork_rng():
        yield


def test_the_state_is_seed_and_offset_little_endian():
    generator = l0rt.Generator().manual_seed(0x0102030405060708)
    generator.set_offset(0x1112131415161718)
    assert generator.get_state() == bytes.fromhex("0807060504030201 1817161514131211")
    assert isinstance(generator.get_state(), bytes)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, "u1")])
def test_states_round_trip_through_anything_bytes_like(kind):
    generator = l0rt.Generator().manual_seed(7)
    generator.philox_engine_inputs(100)
    other = l0rt.Generator()
    other.set_state(kind(generator.get_state()))
    assert (other.initial_seed(), other.get_offset()) == (7, 100)
    other.set_state(kind(struct.pack("<Q", 9)))  # a seed alone: from the start
    assert (other.initial_seed(), other.get_offset()) == (9, 0)


@pytest.mark.parametrize("size", [0, 7, 9, 15, 17])
def test_a_state_of_another_size_is_refused(size):
    generator = l0rt.Generator().manual_seed(3)
    with pytest.raises(RuntimeError, match="^RNG state is wrong size"):
        generator.set_state(bytes(size))
    assert generator.get_state() == struct.pack("<QQ", 3, 0)


def test_offsets_are_multiples_of_four():
    generator = l0rt.Generator()
    for wrong in (1, 2, 3, 5, 2**64 - 1):
        with pytest.raises(RuntimeError, match="^offset must be a multiple of 4"):
            generator.set_offset(wrong)
    with pytest.raises(RuntimeError, match="^offset must be a multiple of 4"):
        generator.set_state(struct.pack("<QQ", 1, 2))
    for wrong in (-4, 2**64):
        with pytest.raises(RuntimeError):
            generator.set_offset(wrong)
    generator.set_offset(2**64 - 4)
    assert generator.get_offset() == 2**64 - 4


def test_a_new_one_starts_at_torchs_constant_and_seeding_resets_the_offset():
    generator = l0rt.Generator()
    assert (generator.initial_seed(), generator.get_offset()) == (67280421310721, 0)
    generator.set_offset(8)
    assert generator.manual_seed(5) is generator
    assert (generator.initial_seed(), generator.get_offset()) == (5, 0)
    assert generator.seed() == generator.initial_seed() != l0rt.Generator().seed()


def test_negative_seeds_wrap_and_wide_ones_are_refused():
    generator = l0rt.Generator()
    assert generator.manual_seed(-1).initial_seed() == 2**64 - 1
    assert generator.manual_seed(-(2**63)).initial_seed() == 2**63
    assert generator.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    for wide in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="^Overflow when unpacking long"):
            generator.manual_seed(wide)
    for wrong in ("3", 1.5, None, True):
        with pytest.raises(RuntimeError, match="^manual_seed expected a long, but got"):
            generator.manual_seed(wrong)


def test_increments_are_rounded_up():
    generator = l0rt.Generator().manual_seed(11)
    assert [generator.philox_engine_inputs(n) for n in (1, 4, 5, 0)] == [(11, 0), (11, 4), (11, 8), (11, 16)]
    assert generator.get_offset() == 16
    with pytest.raises(ValueError, match="an increment must be from 0"):
        generator.philox_engine_inputs(-1)


def test_a_clone_goes_its_own_way_and_a_shared_state_does_not():
    first = l0rt.Generator().manual_seed(1)
    clone, shared, other = first.clone_state(), first.graphsafe_get_state(), l0rt.Generator()
    other.graphsafe_set_state(first)
    first.philox_engine_inputs(4)
    assert [g.get_offset() for g in (first, clone, shared, other)] == [4, 0, 4, 4]
    other.manual_seed(2)
    assert [g.initial_seed() for g in (first, clone, shared, other)] == [2, 1, 2, 2]


@pytest.mark.parametrize("device", ["xpu:1", "xpu:9"])  # there need be no such device
def test_generators_are_pickled_with_their_state_and_device(device):
    generator = l0rt.Generator(device).manual_seed(-5)
    generator.set_offset(12)
    for again in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert again.get_state() == generator.get_state()
        assert again.device == l0rt.device(device)
        again.philox_engine_inputs(1)
    assert generator.get_offset() == 12


def test_a_generator_needs_no_driver():
    code = """
import l0rt, l0rt.accelerator as acc, l0rt.xpu as xpu
g = l0rt.Generator("xpu:1"); g.seed(); g.philox_engine_inputs(4)
acc.manual_seed(3); xpu.manual_seed_all(4); acc.manual_seed_all(5)
assert not xpu.is_initialized()
"""
    result = run_python(code, {"L0RT_DRIVER": "/nonexistent/libze.so"})
    assert result.returncode == 0, result


def test_what_was_seeded_before_the_driver_is_open_holds_after():
    code = """
import l0rt.accelerator as acc, l0rt.xpu as xpu
acc.manual_seed_all(5); acc.manual_seed(6)
assert xpu.default_generators == ()
xpu.init()
assert [g.initial_seed() for g in xpu.default_generators] == [6, 5]
assert acc.default_generator(1) is xpu.default_generators[1]
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    assert result.returncode == 0, result


def test_default_generators_are_seeded_from_entropy():
    code = "import l0rt.accelerator as acc; print(acc.initial_seed())"
    seeds = {run_python(code, {"L0RT_DRIVER": "cpu"}).stdout for _ in range(3)}
    assert len(seeds) == 3
    assert "67280421310721\n" not in seeds


@pytest.mark.parametrize("module", [acc, xpu])
def test_states_of_all_are_set_together_or_not_at_all(module):
    before, other = module.get_rng_state_all(), struct.pack("<QQ", 1, 4)
    with pytest.raises(ValueError, match=f"{acc.device_count()} devices, got {acc.device_count() + 1}"):
        module.set_rng_state_all([other] * (acc.device_count() + 1))
    with pytest.raises(RuntimeError, match="size"):
        module.set_rng_state_all([*[other] * (acc.device_count() - 1), b"short"])
    assert module.get_rng_state_all() == before


@pytest.mark.parametrize("module", [acc, xpu])
def test_the_family_of_functions(module):
    module.manual_seed(21)
    assert module.initial_seed() == 21
    state = module.get_rng_state()
    assert state == struct.pack("<QQ", 21, 0)
    assert len(module.get_rng_state_all()) == acc.device_count()
    module.manual_seed_all(22)
    assert set(module.get_rng_state_all()) == {struct.pack("<QQ", 22, 0)}
    module.set_rng_state(bytearray(state))
    assert module.initial_seed() == 21
    module.set_rng_state_all([struct.pack("<QQ", i, 4) for i in range(acc.device_count())])
    assert module.get_rng_state("xpu:0") == module.get_rng_state(0) == struct.pack("<QQ", 0, 4)
    module.seed()
    module.seed_all()
    assert len(set(module.get_rng_state_all())) == 1
    with pytest.raises(IndexError):
        module.get_rng_state(63)


def test_fork_rng_restores_on_any_exit_and_only_what_was_named():
    acc.manual_seed_all(1)
    with contextlib.suppress(KeyError), acc.fork_rng():
        acc.manual_seed_all(2)
        raise KeyError
    assert acc.initial_seed() == 1
    with acc.fork_rng(enabled=False):
        acc.manual_seed(3)
    assert acc.initial_seed() == 3
    with acc.fork_rng(devices=[]):
        acc.manual_seed(4)
    assert acc.initial_seed() == 4


def test_xpu_tells_and_sets_the_offset():
    xpu.manual_seed(1)
    xpu._set_rng_state_offset(8)
    assert xpu._get_rng_state_offset() == 8


# Salmon et al. 2011, as published with Random123: counter, key, cipher.
KNOWN = [
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "cipher"), KNOWN)
def test_philox_equals_the_published_vectors(counter, key, cipher):
    assert philox.philox4x32([counter], key).tolist() == [cipher]
    assert philox.philox4x32([counter] * 3, key).tolist() == [cipher] * 3


def test_any_part_of_a_stream_can_be_had_alone():
    whole = philox.words(12345678901234567890, 0, 1000)
    for start, count in ((0, 1), (1, 7), (4, 4), (997, 3), (500, 0)):
        assert philox.words(12345678901234567890, start, count).tolist() == whole[start : start + count].tolist()
    assert philox.words(0, 0, 4).tolist() == KNOWN[0][2]
    assert philox.words(3, 1 << 34, 4).tolist() == philox.philox4x32([[0, 1, 0, 0]], (3, 0))[0].tolist()
    assert philox.words((7 << 32) + 3, 0, 4).tolist() == philox.philox4x32([[0] * 4], (3, 7))[0].tolist()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_uniform_numbers_stay_in_their_interval(dtype):
    made = philox.uniform(1, 0, 100_000, dtype=dtype)
    assert made.dtype == dtype
    assert made.min() >= 0
    assert made.max() < 1
    assert abs(made.astype("f8").mean() - 0.5) < 0.005
    narrow = philox.uniform(1, 0, 10_000, 1.0, 1.0 + 2**-9, dtype)
    assert narrow.max() < 1.0 + 2**-9
    assert (philox.uniform(1, 0, 5, 3.0, 3.0, dtype) == 3).all()


def test_uniform_numbers_are_the_words_top_bits():
    words = philox.words(9, 0, 8)
    assert philox.uniform(9, 0, 8).tolist() == [(int(w) >> 8) / 2**24 for w in words]
    wide = [(int(high) << 32 | int(low)) >> 11 for low, high in words.reshape(-1, 2)]
    assert philox.uniform(9, 0, 4, dtype="f8").tolist() == [w / 2**53 for w in wide]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_bounds_of_uniform_numbers_are_numbers_of_the_type(dtype):
    most = float(np.finfo(dtype).max)
    for wrong in (np.inf, -np.inf, np.nan, *(() if dtype == "f8" else (1.001 * most, -1e300))):
        for bounds in ((wrong, 0.0), (0.0, wrong), (wrong, wrong)):
            with pytest.raises(ValueError, match="uniform expects"):
                philox.uniform(1, 0, 4, *bounds, dtype)
            with pytest.raises(ValueError, match="uniform expects"):
                l0rt.empty(64).uniform_(*bounds, dtype=dtype)
    made = philox.uniform(1, 0, 1000, most / 2, most, dtype)
    assert np.isfinite(made).all()
    assert (made >= np.dtype(dtype).type(most / 2)).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_normal_numbers_have_their_moments(dtype):
    made = philox.normal(2, 0, 200_001, 5.0, 2.0, dtype).astype("f8")
    assert abs(made.mean() - 5) < 0.02
    assert abs(made.std() - 2) < 0.02
    assert abs(((made - 5) ** 3).mean()) < 0.2
    assert np.isfinite(made).all()
    assert philox.normal(2, 0, 7, dtype=dtype).tolist() == philox.normal(2, 0, 8, dtype=dtype)[:7].tolist()


WHOLE = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@pytest.mark.parametrize("word", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_the_ends_of_every_range_hold_for_the_first_and_the_last_word(monkeypatch, word):
    monkeypatch.setattr(philox, "words", lambda seed, offset, count: np.full(count, word, np.uint32))
    for dtype in ("f2", "f4", "f8"):
        kind = np.dtype(dtype).type
        for low, high in ((0, 1), (-1, 1), (0, 2.0**-14), (1, 1.25), (-65504, 65504), (3, 3)):
            made = philox.uniform(0, 0, 4, low, high, dtype).astype("f8")
            assert ((low <= made) & ((made < high) | (low == high))).all(), (dtype, low, high, made)
        for rate in (1e-5, 1, 1e5, 1e30, 1e37, 1e300, 1e308):
            made = philox.exponential(0, 0, 4, rate, dtype)
            assert (made > 0).all(), (dtype, rate, made)
        assert np.isfinite(philox.normal(0, 0, 4, 0.0, 1.0, dtype)).all()
        assert (philox.normal(0, 0, 4, 3.0, 0.0, dtype) == kind(3)).all()
    for dtype in [*WHOLE, "?", "f2", "f4", "f8"]:
        assert (philox.bernoulli(0, 0, 4, 0.0, dtype) == 0).all()
        assert (philox.bernoulli(0, 0, 4, 1.0, dtype) == 1).all()
        assert (philox.bernoulli(0, 0, 4, 0.5, dtype) == (word < 0x80000000)).all()
    for dtype in WHOLE:
        limits = np.iinfo(dtype)
        least, most = limits.min, limits.max
        for low, high in ((least, most + 1), (least, least + 1), (most, most + 1)):
            made = philox.randint(0, 0, 4, low, high, dtype).tolist()
            assert all(low <= number < high for number in made), (dtype, low, high, made)


@pytest.mark.checks_data
@pytest.mark.parametrize("rate", [1e5, 2.0**24, 1e37])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_exponential_numbers_of_a_device_are_above_0_at_large_rates(dtype, rate):
    made = l0rt.empty(1 << 18).exponential_(rate, dtype=dtype, generator=l0rt.Generator().manual_seed(1)).numpy(dtype)
    assert (made > 0).all()
    expected = philox.exponential(1, 0, len(made), rate, dtype)
    step = 2.0**-24 if dtype == "f2" else 0
    np.testing.assert_allclose(made.astype("f8"), expected.astype("f8"), rtol=1e-2, atol=step)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_exponential_numbers_have_their_mean_and_are_above_0(dtype):
    made = philox.exponential(4, 0, 20_000, 2.0, dtype).astype("f8")
    assert abs(made.mean() - 0.5) < 0.02
    assert abs(made.std() - 0.5) < 0.02
    assert made.min() > 0


def test_a_complex_counter_is_refused():
    with pytest.raises(TypeError, match="must be whole numbers, got complex"):
        philox.philox4x32(np.zeros((1, 4), "c8"), (1, 2))


@pytest.mark.parametrize("p", [0.0, 2.0**-40, 0.1, 0.5, 1.0])
def test_bernoulli_numbers_have_their_probability(p):
    made = philox.bernoulli(5, 0, 20_000, p, "i8")
    assert abs(made.mean() - p) < 0.01
    assert set(made.tolist()) <= {0, 1}
    assert p not in (0.0, 1.0) or (made == p).all()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_whole_numbers_fill_their_interval(dtype):
    low = 0 if dtype[0] == "u" else -3
    made = philox.randint(3, 0, 20_000, low, low + 7, dtype)
    counts = np.bincount(made.astype("i8") - low)
    assert len(counts) == 7
    assert counts.min() > 2500
    limits = np.iinfo(dtype)
    whole = philox.randint(3, 0, 2000, int(limits.min), int(limits.max) + 1, dtype)
    assert (whole > limits.max // 2).any()
    assert (whole < limits.min // 2 + limits.max // 4).any()


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_buffers_hold_what_the_reference_makes(kind):
    generator = l0rt.Generator().manual_seed(42)
    buffer, read = l0rt.empty(4000, kind=kind), np.empty(4000, "u1")
    assert buffer.uniform_(-1, 1, generator=generator) is buffer
    buffer.copy_to(read)
    assert read.view("f4").tolist() == philox.uniform(42, 0, 1000, -1, 1).tolist()
    assert generator.get_offset() == 1000
    buffer.normal_(dtype="f8", generator=generator).copy_to(read)
    np.testing.assert_allclose(read.view("f8"), philox.normal(42, 1000, 500, dtype="f8"), rtol=0, atol=1e-14)
    assert generator.get_offset() == 2000
    buffer.randint_(0, 10, dtype="u1", generator=generator).copy_to(read)
    assert read.tolist() == philox.randint(42, 2000, 4000, 0, 10, "u1").tolist()
    assert generator.get_offset() == 6000
    buffer.exponential_(2, generator=generator).copy_to(read)
    np.testing.assert_allclose(read.view("f4"), philox.exponential(42, 6000, 1000, 2), rtol=1e-6)
    assert generator.get_offset() == 7000
    buffer.bernoulli_(0.25, dtype="f8", generator=generator).copy_to(read)
    assert read.view("f8").tolist() == philox.bernoulli(42, 7000, 500, 0.25, "f8").tolist()
    assert generator.get_offset() == 7500


@pytest.mark.checks_data
def test_buffers_draw_from_their_devices_default_generator():
    acc.manual_seed(8)
    read = np.empty(10, "i8")
    l0rt.empty(80).randint_(0, 1 << 40).copy_to(read)
    assert read.tolist() == philox.randint(8, 0, 10, 0, 1 << 40).tolist()
    assert xpu._get_rng_state_offset() == 20


@pytest.mark.parametrize(
    ("draw", "error"),
    [
        (lambda b, g: b.uniform_(2, 1, generator=g), ValueError),
        (lambda b, g: b.uniform_(dtype="i4", generator=g), TypeError),
        (lambda b, g: b.normal_(0, -1, generator=g), ValueError),
        (lambda b, g: b.randint_(3, 3, generator=g), ValueError),
        (lambda b, g: b.exponential_(0, generator=g), ValueError),
        (lambda b, g: b.exponential_(dtype="i4", generator=g), TypeError),
        (lambda b, g: b.bernoulli_(1.5, generator=g), ValueError),
        (lambda b, g: b.bernoulli_(dtype="c8", generator=g), TypeError),
        (lambda b, g: b.randint_(0, 300, dtype="u1", generator=g), ValueError),
        (lambda b, g: b.randint_(0, 3, dtype="i8", generator=g), ValueError),
    ],
)
def test_wrong_arguments_leave_the_generator_where_it_was(draw, error):
    generator = l0rt.Generator()
    with pytest.raises(error):
        draw(l0rt.empty(100), generator)
    assert generator.get_offset() == 0


HUGE = 10**400


@pytest.mark.parametrize("device", ["xpu:0", "cpu"])
def test_odd_limits_of_random_numbers_are_told(device):
    buffer = l0rt.empty(64, device=device)
    before = l0rt.Generator(device).manual_seed(1)
    state = before.get_state()
    for call, arguments, error in (
        (buffer.uniform_, (0, HUGE), ValueError),
        (buffer.uniform_, (-HUGE, 0.5), ValueError),
        (buffer.uniform_, (-1.7e308, 1.7e308), ValueError),
        (buffer.uniform_, (0.0, float("inf")), ValueError),
        (buffer.uniform_, (float("nan"), 1.0), ValueError),
        (buffer.uniform_, ("0", 1), TypeError),
        (buffer.uniform_, (0, None), TypeError),
        (buffer.uniform_, ([0], 1), TypeError),
        (buffer.normal_, (HUGE, 1.0), ValueError),
        (buffer.normal_, (0.0, HUGE), ValueError),
        (buffer.normal_, (0.0, "1"), TypeError),
        (buffer.exponential_, (-1.0,), ValueError),
        (buffer.exponential_, (float("nan"),), ValueError),
        (buffer.exponential_, (None,), TypeError),
        (buffer.bernoulli_, (float("nan"),), ValueError),
        (buffer.bernoulli_, ("0.5",), TypeError),
        (buffer.normal_, (object(), 1), TypeError),
        (buffer.randint_, (0, HUGE), ValueError),
        (buffer.randint_, (0, 1.5), TypeError),
        (buffer.randint_, (False, 5), TypeError),
    ):
        with pytest.raises(error) as told:
            call(*arguments, generator=before)
        assert len(str(told.value)) < 300
    assert before.get_state() == state  # nothing was drawn
    for limits in ((np.float32(0), np.int64(2)), (Fraction(1, 2), Decimal(3)), (0, 1)):
        buffer.uniform_(*limits)
