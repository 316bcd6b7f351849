# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 in NumPy, and the random numbers made from it. Device kernels must compute exactly the same numbers.

The algorithm is that of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11). The
stream of a seed is a sequence of 32-bit words: word ``i`` is word ``i % 4`` of the encrypted counter ``i // 4``, with
the seed as the key. So any part of the stream can be computed without the part before it. Each number uses 1 word, or
2 if its type has more than 32 bits.
"""

from __future__ import annotations

import math
from collections import namedtuple

from l0rt._base import lazynumpy as np
from l0rt._base.described import described
from l0rt._base.integers import real_number, whole_number

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

__all__ = ["bernoulli", "exponential", "normal", "philox4x32", "randint", "uniform", "words", "words_needed"]

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW = 0xFFFFFFFF
_HALF = 32


def philox4x32(counter: npt.ArrayLike, key: Any, rounds: int = 10) -> npt.NDArray[np.uint32]:
    """Return each row of ``counter`` encrypted with ``key``.

    Parameters
    ----------
    counter : array of uint32, (n, 4)
        The counters.
    key : pair of int
        The two words of the key.
    rounds : int, optional
        The number of rounds of the cipher.

    Returns
    -------
    array of uint32, (n, 4)

    Raises
    ------
    ValueError
        A word is not from 0 to 2**32 - 1.
    TypeError
        ``key`` is not two whole numbers, or ``counter`` is complex.

    Notes
    -----
    The algorithm and its constants (multipliers 0xD2511F53 and 0xCD9E8D57, key increments 0x9E3779B9 and 0xBB67AE85,
    10 rounds) are those of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC11), and of
    the authors' library Random123.
    """
    array = np.asarray(counter)
    if array.dtype.kind not in "iuO":
        raise TypeError(f"the words of a counter must be whole numbers, got {array.dtype}")
    if array.dtype.kind == "O":  # among them ints that no type of NumPy's holds
        checked = [whole_number(word, "a word of a counter") for word in array.reshape(-1).tolist()]
        array = np.array(checked, dtype=object)
    if array.size and not (array.min() >= 0 and array.max() < 1 << 32):
        raise ValueError("the words of a counter must be from 0 to 2**32 - 1")
    c0, c1, c2, c3 = array.astype(np.uint64).reshape(-1, 4).T
    try:
        k0, k1 = (whole_number(word, "a word of a key") for word in key)
    except (TypeError, ValueError):
        raise TypeError("a key must be two whole numbers") from None
    if not (0 <= k0 < 1 << 32 and 0 <= k1 < 1 << 32):
        raise ValueError(f"the words of a key must be from 0 to 2**32 - 1, got {k0} and {k1}")
    for _ in range(rounds):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _LOW, (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


_draws = described(
    seed=("int", "From 0 to 2**64 - 1."),
    offset=("int", "The number of 32-bit words that were used before, a multiple of 4."),
    count=("int", "The number of results."),
    dtype=("str or NumPy dtype", "The element type."),
)


@_draws
def words(seed: int, offset: int, count: int) -> npt.NDArray[np.uint32]:
    """Return ``count`` words of the stream of ``seed``, beginning with word ``offset``.

    Parameters
    ----------
    offset : int
        The number of the first word.

    Returns
    -------
    array of uint32

    Raises
    ------
    ValueError
        ``seed`` is not from 0 to 2**64 - 1.

    Notes
    -----
    Block ``i`` of four words is ``philox4x32`` of the 128-bit counter ``i`` with the two words of the seed as the key,
    low words first. torch's CUDA generator uses the same key; its counter also contains the number of the thread.
    """
    seed, offset = whole_number(seed, "a seed"), whole_number(offset, "an offset")
    count = whole_number(count, "a count")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"the seed of a stream must be from 0 to 2**64 - 1, got {seed}")
    first, last = offset // 4, (offset + count + 3) // 4
    steps = np.arange(last - first, dtype=np.uint64) + np.uint64(first & 0xFFFFFFFFFFFFFFFF)
    counter = np.zeros((last - first, 4), dtype=np.uint32)
    counter[:, 0], counter[:, 1] = steps & _LOW, steps >> _HALF
    blocks = philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))
    return blocks.reshape(-1)[offset - 4 * first :][:count]


def _dtype(dtype, kinds):
    dtype = np.dtype(dtype)
    is_numpys = np.dtype(dtype.type).isbuiltin == 1  # other packages' types may have the letter of one of NumPy's
    if dtype.kind not in kinds or dtype.itemsize > 8 or not is_numpys:
        raise TypeError(f"dtype {dtype} is not supported here")
    return dtype


def _digits(number):
    """``number`` in an error's text: the longest have more digits than Python writes down."""
    size = number.bit_length()
    return number if size <= 64 else f"{'-' * (number < 0)}2**{size - 1} or more"


@_draws
def words_needed(dtype: npt.DTypeLike, count: int) -> int:
    """Return how many words of a stream are used for ``count`` numbers.

    Returns
    -------
    int

    Notes
    -----
    1 word for a type of up to 32 bits and 2 words for a type of 64 bits. This is a rule of l0rt: numbers do not depend
    on how many threads compute them.
    """
    return whole_number(count, "a count") * (2 if _dtype(dtype, "fiub").itemsize == 8 else 1)


def _wide(raw):
    """Pairs of words as uint64, the first word low."""
    return raw[0::2].astype(np.uint64) | raw[1::2].astype(np.uint64) << _HALF


def _unit(seed, offset, count, dtype):
    """Numbers in [0, 1) with as many random bits as the dtype's significand holds, as float64."""
    raw = words(seed, offset, words_needed(dtype, count))
    if dtype.itemsize == 8:
        return (_wide(raw) >> np.uint64(11)) * 2.0 ** -_BITS[8]
    return (raw >> np.uint32(32 - _BITS[dtype.itemsize])) * 2.0 ** -_BITS[dtype.itemsize]


_BITS = {2: 11, 4: 24, 8: 53}  # of a significand, by the size of the type
# The least exponential number, which no device flushes to 0: half has its subnormal numbers everywhere.
_LEAST = {2: 2.0**-24, 4: 2.0**-126, 8: 2.0**-1022}


@_draws
def uniform(
    seed: int, offset: int, count: int, low: float = 0.0, high: float = 1.0, dtype: npt.DTypeLike = "float32"
) -> npt.NDArray[Any]:
    """Return ``count`` uniform random numbers from [low, high).

    Parameters
    ----------
    low, high : float, optional
        The bounds. ``high`` itself is excluded.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        ``low`` is above ``high``, one of them is not finite or outside the range of the type, or ``high - low`` is
        not finite.

    Notes
    -----
    The result is ``low + (high - low) * u``, where ``u`` has as many random bits as the significand of the type: 53
    for float64, 24 for float32 and 11 for float16. The numbers of bits are those of torch's ``uniform_`` on the CPU.
    The product and the sum are rounded to float64 for float64, and to float32 otherwise, unless ``high - low`` is too
    large for float32. If rounding reaches ``high``, the result is the next smaller number of the type.
    """
    return Draw("uniform", count, low, high, dtype).numbers(seed, offset)


def _uniform(seed, offset, draw):
    work, low, span, last = _uniform_parameters(draw.first, draw.second, draw.dtype)
    unit = _unit(seed, offset, draw.count, draw.dtype).astype(work)
    return np.minimum(low + span * unit, last).astype(draw.dtype)


def _uniform_parameters(low, high, dtype):
    """Return the type in which the numbers are computed, and in that type ``low``, ``high - low`` and the largest
    number of the result's type that is below ``high``."""
    with np.errstate(over="ignore"):
        last = np.nextafter(dtype.type(high), dtype.type(low))
        work = np.float64 if dtype.itemsize == 8 or not np.isfinite(np.float32(high - low)) else np.float32
        return work, work(low), work(high - low), work(last)


@_draws
def normal(
    seed: int, offset: int, count: int, mean: float = 0.0, std: float = 1.0, dtype: npt.DTypeLike = "float32"
) -> npt.NDArray[Any]:
    """Return ``count`` normally distributed random numbers.

    Parameters
    ----------
    mean : float, optional
        The mean.
    std : float, optional
        The standard deviation.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        ``std`` is negative.

    Notes
    -----
    The method is that of Box and Muller, "A Note on the Generation of Random Normal Deviates" (1958): from two uniform
    numbers ``u`` and ``v``, ``sqrt(-2 log(1 - u))`` times ``cos(2 pi v)`` and times ``sin(2 pi v)`` are two
    independent normal numbers. Here they are computed in float64. A device computes them in the result's type (in
    float32 for float16): its numbers differ by up to 8 units in the last place of ``abs(mean) + 8 * std``.
    """
    return Draw("normal", count, mean, std, dtype).numbers(seed, offset)


def _normal(seed, offset, draw):
    unit = _unit(seed, offset, draw.count + draw.count % 2, draw.dtype)
    radius = np.sqrt(-2.0 * np.log1p(-unit[0::2]))
    angle = 2.0 * np.pi * unit[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[: draw.count]
    with np.errstate(over="ignore"):  # what is beyond the dtype is infinite
        return (draw.first + draw.second * pairs).astype(draw.dtype)


@_draws
def exponential(
    seed: int, offset: int, count: int, lambd: float = 1.0, dtype: npt.DTypeLike = "float32"
) -> npt.NDArray[Any]:
    """Return ``count`` exponentially distributed random numbers, all above 0.

    Parameters
    ----------
    lambd : float, optional
        The rate: the mean is ``1 / lambd``.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        ``lambd`` is not above 0.

    Notes
    -----
    The result is ``-log(1 - u) / lambd`` of a uniform number ``u`` with as many random bits as `uniform` has. Where
    ``u`` is 0, ``2**-bits`` stands for the logarithm. What would be 0 in the type is its least normal number, or
    ``2**-24`` for float16, and what is beyond the type is infinite. The name of the rate is torch's. A device computes
    them in the result's type (in float32 for float16): its numbers differ by up to 8 units in the last place.
    """
    return Draw("exponential", count, lambd, None, dtype).numbers(seed, offset)


def _exponential(seed, offset, draw):
    unit = _unit(seed, offset, draw.count, draw.dtype)
    least = 2.0 ** -_BITS[draw.dtype.itemsize]
    with np.errstate(over="ignore", under="ignore"):
        numbers = np.maximum(-np.log1p(-unit), least) / draw.first
        return np.maximum(numbers, _LEAST[draw.dtype.itemsize]).astype(draw.dtype)


@_draws
def bernoulli(seed: int, offset: int, count: int, p: float = 0.5, dtype: npt.DTypeLike = "float32") -> npt.NDArray[Any]:
    """Return ``count`` numbers that are 1 with probability ``p``, and otherwise 0.

    Parameters
    ----------
    p : float, optional
        The probability of 1, from 0 to 1.
    dtype : str or NumPy dtype, optional
        The element type: of floats, whole numbers or bool.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        ``p`` is not from 0 to 1.

    Notes
    -----
    A number is 1 if its word is below ``p * 2**32``, rounded up. So a type of any size uses 1 word for a number, and
    the probability differs from ``p`` by less than ``2**-32``. This is a rule of l0rt.
    """
    return Draw("bernoulli", count, p, None, dtype).numbers(seed, offset)


def _bernoulli(seed, offset, draw):
    raw = words(seed, offset, draw.words)
    return (raw < np.uint64(_bernoulli_limit(draw.first))).astype(draw.dtype)


def _bernoulli_limit(p):
    """Return the word from which on the result is 0, at most 2**32."""
    return math.ceil(p * 2**32)


@_draws
def randint(
    seed: int, offset: int, count: int, low: int, high: int, dtype: npt.DTypeLike = "int64"
) -> npt.NDArray[Any]:
    """Return ``count`` random whole numbers from [low, high).

    Parameters
    ----------
    low, high : int
        The bounds. ``high`` itself is excluded.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        ``low`` is not below ``high``, or the type cannot hold the bounds.

    Notes
    -----
    For types of up to 32 bits the result is ``low`` plus the high half of ``word * (high - low)`` (Lemire, "Fast
    Random Integer Generation in an Interval", ACM TOMACS 29 (1), 2019, without the rejection). For 64 bits it is
    ``low`` plus the remainder of the two words by ``high - low``. torch's ``random_`` does that too, but from a range
    of ``2**28`` on; below it takes the remainder of one word. The relative bias of both is at most
    ``(high - low) / 2**32``, or ``/ 2**64``.
    """
    return Draw("randint", count, low, high, dtype).numbers(seed, offset)


def _randint(seed, offset, draw):
    raw = words(seed, offset, draw.words)
    span = draw.second - draw.first
    if draw.dtype.itemsize < 8:
        steps = raw.astype(np.uint64) * np.uint64(span) >> _HALF  # the high half: no division, and no worse than %
    else:
        steps = _wide(raw) if span == 1 << 64 else _wide(raw) % np.uint64(span)
    return (steps + np.uint64(draw.first & 0xFFFFFFFFFFFFFFFF)).astype(draw.dtype)


# --- What the arguments of each kind must be.


def _check_uniform(low, high, dtype):
    dtype = _dtype(dtype, "f")
    low, high = real_number(low, "low"), real_number(high, "high")
    if not low <= high:
        raise ValueError(f"uniform expects low <= high, got low {low} and high {high}")
    most = float(np.finfo(dtype).max)
    for name, bound in (("low", low), ("high", high)):
        if not -most <= bound <= most:
            raise ValueError(f"uniform expects {name} from {-most:g} to {most:g} for {dtype}, got {bound}")
    if not high - low < math.inf:
        raise ValueError(f"uniform expects a finite high - low, got low {low} and high {high}")
    return dtype, low, high


def _check_normal(mean, std, dtype):
    dtype = _dtype(dtype, "f")
    mean, std = real_number(mean, "mean"), real_number(std, "std")
    if not std >= 0:
        raise ValueError(f"normal expects std >= 0.0, but found std {std}")
    return dtype, mean, std


def _check_exponential(lambd, _, dtype):
    dtype = _dtype(dtype, "f")
    lambd = real_number(lambd, "lambd")
    if not lambd > 0:
        raise ValueError(f"exponential expects lambda > 0.0, but found lambda={lambd}")
    return dtype, lambd, None


def _check_bernoulli(p, _, dtype):
    dtype = _dtype(dtype, "fiub")
    p = real_number(p, "p")
    if not 0 <= p <= 1:
        raise ValueError(f"bernoulli expects p to be in [0, 1], but got p={p}")
    return dtype, p, None


def _check_randint(low, high, dtype):
    dtype = _dtype(dtype, "iu")
    low, high = (whole_number(limit, "a limit of random whole numbers") for limit in (low, high))
    limits = np.iinfo(dtype)
    if not low < high:
        raise ValueError(f"randint expects low < high, got low {_digits(low)} and high {_digits(high)}")
    if low < limits.min or high - 1 > limits.max:
        raise ValueError(f"{dtype} can hold {limits.min} to {limits.max}, got [{_digits(low)}, {_digits(high)})")
    return dtype, low, high


_KINDS = {
    "uniform": (_check_uniform, _uniform),
    "normal": (_check_normal, _normal),
    "exponential": (_check_exponential, _exponential),
    "bernoulli": (_check_bernoulli, _bernoulli),
    "randint": (_check_randint, _randint),
}


class Draw(namedtuple("Draw", "kind count first second dtype")):
    """Numbers of a kind that are to be made: how many, of which type, and with which two parameters.

    Parameters
    ----------
    kind : str
        The name of one of this module's functions.
    count : int
        The number of results.
    first, second : number or None
        The parameters of the kind.
    dtype : str or NumPy dtype
        The element type.

    Raises
    ------
    TypeError
        A parameter is no number, or the kind has no numbers of this type.
    ValueError
        A parameter is out of range.
    """

    __slots__ = ()

    def __new__(cls, kind, count, first, second, dtype):
        dtype, first, second = _KINDS[kind][0](first, second, dtype)
        return super().__new__(cls, kind, count, first, second, dtype)

    @property
    def words(self):
        """How many words of a stream they use."""
        return self.count if self.kind == "bernoulli" else words_needed(self.dtype, self.count)

    def numbers(self, seed, offset):
        """Return the numbers from word ``offset`` of the stream of ``seed`` on, as an array."""
        return _KINDS[self.kind][1](seed, offset, self)


def draw(kind, generator, nbytes, first, second, dtype):
    """Return what is to be drawn from ``generator`` to fill ``nbytes``."""
    if not hasattr(generator, "philox_engine_inputs"):
        raise TypeError(f"generator must be a Generator or None, got {type(generator).__name__}")
    plan = Draw(kind, 0, first, second, dtype)
    count, rest = divmod(nbytes, plan.dtype.itemsize)
    if rest:
        raise ValueError(f"{nbytes} bytes are not a multiple of the size of {dtype}")
    return plan._replace(count=count)


def __dir__():
    return __all__
