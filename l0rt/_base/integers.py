# SPDX-License-Identifier: Apache-2.0
"""Numbers: the check of every argument, setting and address, and sizes and times as text."""


def whole_number(value, what):
    """Return ``value`` as an int: an int, or an object with ``__index__``. A bool is refused, also as the result of
    ``__index__``.

    TypeError says ``what`` an int is expected for.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__") or _is_numpys_bool(type(value)):
        raise TypeError(f"{what} must be an int, got {type(value).__name__}")
    number = value if isinstance(value, int) else type(value).__index__(value)
    if isinstance(number, bool) or not isinstance(number, int):
        result = type(number).__name__
        raise TypeError(f"{what} must be an int, got {type(value).__name__}, whose __index__ returns a {result}")
    return int.__int__(number)


def real_number(value, what):
    """Return ``value`` as a float: a number, or an object with ``__float__`` or ``__index__``.

    Texts, bools, times and complex numbers are refused; of the latter NumPy would lose a half.
    """
    is_number = hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if not is_number or isinstance(value, (bool, str)) or (isinstance(kind, str) and kind in "bcmMSU"):
        raise TypeError(f"{what} must be a number, got {type(value).__name__}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large for a float") from None


def _is_numpys_bool(kind):
    """Before NumPy 2.3 its bool has an ``__index__``, which only warns."""
    return kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_")


_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_size(text):
    """Return the number of bytes that a text such as ``4096`` or ``4GiB`` says."""
    digits = text.rstrip("KMGTiB")
    unit = text[len(digits) :]
    if digits.isascii() and digits.isdigit() and len(digits) < 16 and unit in _UNITS:
        return int(digits) * _UNITS[unit]
    raise ValueError("a whole number of bytes, or a number with KiB, MiB, GiB or TiB")


def size_text(nbytes):
    """Return a size in the largest binary unit that leaves at least one, with two decimals."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.2f} {unit}"
    return f"{nbytes} bytes"


def time_text(ns):
    """Return nanoseconds with three digits and a unit that suits them; nothing for None."""
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * size:
            return f"{digits(ns / size)} {unit}"
    return f"{digits(ns)} ns"


def digits(value):
    """Return a figure with three digits that mean something, fewer below one."""
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
