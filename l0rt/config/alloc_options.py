# SPDX-License-Identifier: Apache-2.0
"""The allocators' configuration: torch's grammar, with messages that say what is wrong, where, and what is allowed.

``key:value`` pairs after commas, blanks ignored, a list as ``[key:value,...]``.
"""

import os
import re
from collections import namedtuple

from l0rt._base.integers import real_number, whole_number

MIB = 1 << 20
UNLIMITED = None
INTERVALS = tuple(1 << power for power in range(16))  # of roundup_power2_divisions, in MiB


class _Wrong(ValueError):
    """What is allowed instead, maybe with a note; of a list also which entry is wrong and how, and its position."""

    def __init__(self, allowed, note="", entry=(), at=None):
        super().__init__(allowed)
        self.note, self.entry, self.at = note, entry, at

    def message(self, key, value):
        if self.entry:
            which, how = self.entry
            return f"entry {which} of {key} {how}; {key} is {self}"
        return f"{key} is {self}, not {value!r}{self.note}"


class _List(list):
    """A list's entries: size, steps, position."""

    def __repr__(self):
        return "[" + ",".join(f"{size}:{steps}" for size, steps, _ in self) + "]"


def _number(value):
    """Return ``value``, an int or the text of one, as an int; None if it is neither."""
    if hasattr(value, "__index__"):
        return None if isinstance(value, bool) else whole_number(value, "a value")
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if str(number) == str(value).strip() else None


def _whole(low, high=1 << 40):
    def parse(value):
        number = _number(value)
        if number is None or not low <= number <= high:
            raise _Wrong(f"a whole number from {low} on")
        return number

    return parse


def _byte(value):
    if hasattr(value, "__index__") and not isinstance(value, bool):
        number = whole_number(value, "a byte")
    else:
        number = int(value, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]+|0|[1-9][0-9]*", str(value)) else -1
    if 0 <= number <= 255:
        return number
    raise _Wrong("a byte, 0 to 255 or 0x00 to 0xFF")


def _flag(value):
    if isinstance(value, bool) or value in ("True", "False"):
        return value in (True, "True")
    raise _Wrong("True or False")


def _word(*words, torchs=None):
    """Take ``words``; ``torchs`` are those of torch, and the one of ``words`` that is most like each."""

    def parse(value):
        if value in words:
            return value
        like = (torchs or {}).get(str(value))
        raise _Wrong(" or ".join(words), f"; {like} is the nearest to torch's {value}" if like else "")

    return parse


def _fraction(high_closed):
    def parse(value):
        try:
            number = float(value) if isinstance(value, str) else real_number(value, "a fraction")
        except (TypeError, ValueError):
            number = -1.0
        if 0 < number < 1 or (number == 1 and high_closed):
            return number
        raise _Wrong(f"a number above 0 and {'up to' if high_closed else 'below'} 1")

    return parse


_DIVISIONS = (
    "a power of two, or a list such as [256:1,512:2,1024:4,>:8] of sizes in MiB, powers of two that ascend, then > for "
    "all above, and the steps of each; steps are a power of two up to 128, or 0"
)


def _divisions(value):
    """Return 16 numbers, one for each interval; from as many, a single one, or a dict or list of ``MiB: number``."""
    count = len(INTERVALS)
    if isinstance(value, (dict, _List)) and value:
        return _of_entries(value if isinstance(value, _List) else [(*pair, None) for pair in value.items()])
    if isinstance(value, tuple) and len(value) == count:
        for i, steps in enumerate(value):
            if _steps(steps) is None:
                raise _Wrong(_DIVISIONS, entry=(f"{i} of {count}", f"is {steps!r}"))
        return tuple(map(_steps, value))
    if _steps(value) is None:
        raise _Wrong(_DIVISIONS)
    return (_steps(value),) * count


def _of_entries(entries):
    """As in torch: the first entry holds for what is below it too, and an interval that none names is 0."""
    result, count = [0] * len(INTERVALS), len(INTERVALS)
    last, before = -1, None
    for size, steps, at in entries:
        first = min(max(last, 0) + 1, count) if size == ">" else _interval(size)
        how = None
        if first is None:
            how = "has no power of two as its size"
        elif _steps(steps) is None:
            how = f"has {steps!r} steps"
        elif first <= last or first == count:
            end = f", and sizes of {INTERVALS[-1]} and more are one" if last == count - 1 <= first else ""
            how = f"comes after {before}{end}"
        if how:
            raise _Wrong(_DIVISIONS, entry=(f"{size}:{steps}", how), at=at)
        start, last = (first, count) if size == ">" else (0 if before is None else first, first)
        for i in range(start, min(last + 1, count)):
            result[i] = _steps(steps)
        before = size
    return tuple(result)


def _interval(size):
    number = _number(size)
    if number is None or number < 1 or number & (number - 1):
        return None
    return min(number.bit_length(), len(INTERVALS)) - 1


def _steps(value):
    number = _number(value)
    return number if number is not None and 0 <= number <= 128 and not number & (number - 1) else None


_FIELDS = {  # default and parser
    "backend": ("native", _word("native", "async", torchs={"cudaMallocAsync": "async"})),
    "expandable_segments": (True, _flag),
    "segments": ("fit", _word("fit", "torch")),
    "max_split_size_mb": (UNLIMITED, _whole(20)),
    "max_non_split_rounding_mb": (20, _whole(20)),
    "large_segment_size_mb": (20, _whole(11)),
    "small_segment_size_mb": (None, _whole(2, 1 << 10)),
    "range_growth_mb": (None, _whole(1, 1 << 20)),
    "range_move_mb": (None, _whole(1, 1 << 20)),
    "range_moving_ms": (None, _whole(1, 1 << 30)),
    "roundup_power2_divisions": ((0,) * len(INTERVALS), _divisions),
    "garbage_collection_threshold": (0.0, _fraction(high_closed=False)),
    "per_process_memory_fraction": (1.0, _fraction(high_closed=True)),
    "pinned_max_cached_size_mb": (UNLIMITED, _whole(1)),
    "pinned_cache_limit_mb": (None, _whole(0)),
    "pinned_use_background_threads": (False, _flag),
    "fill_uninitialized": (None, _byte),
}
KEYS = {name: parse for name, (_, parse) in _FIELDS.items()}
_TORCHS = {  # torch's keys that do not exist here, and their purpose
    "release_lock_on_cudamalloc": "CUDA",
    "pinned_use_cuda_host_register": "CUDA",
    "pinned_num_register_threads": "CUDA",
    "pinned_reserve_segment_size_mb": "CUDA",
    "graph_capture_record_stream_reuse": "CUDA",
    "pinned_free_catch_all": "CUDA",
    "throw_on_cudamalloc_oom": "CUDA",
    "expandable_segments_reserve": "CUDA",
    "expandable_segments_reserve_by_class": "CUDA",
    "release_lock_on_hipmalloc": "ROCm",
    "pinned_use_hip_host_register": "ROCm",
    "pinned_max_round_threshold_mb": "pinned memory in powers of two",
}


class AllocConf(namedtuple("AllocConf", _FIELDS, defaults=[default for default, _ in _FIELDS.values()])):
    """Everything that can be configured, under torch's names where torch has one; sizes in MiB."""

    __slots__ = ()  # not a dataclass: making one takes longer than all the rest of this module

    def __str__(self):
        """The text that gives this configuration: every key that is not at its default."""
        return self.text_of(name for name, (default, _) in _FIELDS.items() if getattr(self, name) != default)

    def text_of(self, names):
        """The text that gives these keys. None, which has no text, is always a default."""
        values = [(name, getattr(self, name)) for name in names]
        return ",".join(
            f"{name}:{_list_text(value) if isinstance(value, tuple) else value}"
            for name, value in values
            if value is not None
        )


def _list_text(divisions):
    pairs = zip((*INTERVALS[:-1], ">"), divisions, strict=True)
    return "[" + ",".join(f"{key}:{steps}" for key, steps in pairs) + "]"


def nearest(word, words):
    """Return the one of ``words`` that ``word`` is most likely a slip of, None if it is like none of them."""

    def likeness(name):
        """How many letters both have in common at their beginnings and ends."""
        return len(os.path.commonprefix([word, name])) + len(os.path.commonprefix([word[::-1], name[::-1]]))

    near = max(words, key=likeness)
    return near if likeness(near) > 0.8 * len(near) else None


def _unknown(key, where=""):
    if key in _TORCHS:
        hint = f": it is torch's for {_TORCHS[key]} and has no meaning here"
    else:
        near = nearest(str(key), KEYS)
        hint = f" (did you mean {near}?)" if near else ""
    return ValueError(f"unknown key {key!r}{where}{hint}; the keys are {', '.join(KEYS)}")


def make(**values):
    """Return the configuration with these values. The ValueError names the key and its valid values."""
    parsed = {}
    for key, value in values.items():
        if key not in KEYS:
            raise _unknown(key)
        try:
            parsed[key] = value if value is None and _FIELDS[key][0] is None else KEYS[key](value)
        except _Wrong as wrong:
            raise ValueError(wrong.message(key, value)) from None
    return AllocConf(**parsed)


_SIGNS = (",", ":", "[", "]")
_TOKEN = r"\s*([\[\],:]|[^\s\[\],:]+)"  # compiled when there is something to read


class _Tokens:
    """The text's words and signs, each with its position, the first being 0."""

    def __init__(self, text):
        self.found = [(m.group(1), m.start(1)) for m in re.finditer(_TOKEN, text)]
        self.end = len(text)

    def peek(self):
        return self.found[0] if self.found else ("", self.end)

    def next(self):
        token = self.peek()
        self.found = self.found[1:]
        return token

    def expect(self, sign, after, key):
        token, at = self.next()
        if token != sign:
            text = repr(token) if token else "the end"
            raise _misplaced(at, f"{after} is followed by {sign!r}, not by {text}", key)

    def expect_word(self, what, key):
        token, at = self.next()
        if token in ("", *_SIGNS):
            text = repr(token) if token else "the end"
            raise _misplaced(at, f"{what} is expected in the list of {key}, not {text}", key)
        return token, at


def _misplaced(at, words, key):
    return ValueError(f"position {at}: {words}; {key} is {allowed(key)}")


def parse(text):
    """Return the configuration in ``text``."""
    tokens, values = _Tokens(text), {}
    while tokens.found:
        key, at = tokens.next()
        if key in _SIGNS:
            raise ValueError(f"position {at}: a key is expected, not {key!r}; the keys are {', '.join(KEYS)}")
        if key not in KEYS:
            raise _unknown(key, f" at position {at}")
        if key in values:
            raise ValueError(f"position {at}: {key} is given twice; each key stands there once")
        tokens.expect(":", f"the key {key}", key)
        value_at = tokens.peek()[1]
        text = _list(tokens, key) if tokens.peek()[0] == "[" else tokens.next()[0]
        if text in ("", *_SIGNS):
            raise _misplaced(value_at, f"{key} has no value", key)
        try:
            values[key] = KEYS[key](text)
        except _Wrong as wrong:
            at = value_at if wrong.at is None else wrong.at
            raise ValueError(f"position {at}: {wrong.message(key, text)}") from None
        if tokens.found:
            tokens.expect(",", f"the value of {key}", key)
            if not tokens.found:
                behind = f"a key is expected after the last comma, behind the value of {key}"
                raise ValueError(f"position {tokens.end}: {behind}; the keys are {', '.join(KEYS)}")
    return AllocConf(**values)


def value(key, text):
    """Return what ``text`` is as the value of ``key``; ValueError says what that takes."""
    tokens, note = _Tokens(text), ""
    try:
        text = _list(tokens, key) if tokens.peek()[0] == "[" else tokens.next()[0]
        if not tokens.found:
            return KEYS[key](text)
    except ValueError as wrong:
        note = getattr(wrong, "note", "")
    raise ValueError(allowed(key) + note)


def allowed(key):
    """Return the words for what ``key`` takes."""
    try:
        KEYS[key]("?")
    except _Wrong as words:
        return str(words)
    return "a value"


def _list(tokens, key):
    tokens.next()
    entries = _List()
    while True:
        size, at = tokens.expect_word("an entry", key)
        tokens.expect(":", f"{size} in the list of {key}", key)
        entries.append((size, tokens.expect_word(f"what {size} is to have", key)[0], at))
        sign, at = tokens.next()
        if sign == "]":
            return entries
        if sign != ",":
            raise _misplaced(at, f"the list of {key} goes on with ',' or ends with ']'", key)
