"""The allocators' configuration: torch's grammar, with messages that say what is wrong, where, and what is allowed.

``key:value`` pairs after commas, blanks ignored, a list as ``[key:value,...]``.
"""

import os
import re
from collections import namedtuple

MIB = 1 << 20
UNLIMITED = None
INTERVALS = tuple(1 << power for power in range(16))  # of roundup_power2_divisions, in MiB


class _Wrong(ValueError):
    """What is allowed instead."""


def _whole(low, high=1 << 40, power_of_two=False):
    def parse(value):
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = None
        good = number is not None and low <= number <= high and str(number) == str(value).strip()
        if not good or (power_of_two and number & (number - 1)):
            kind = "a power of two" if power_of_two else "a whole number"
            raise _Wrong(f"{kind} from {low} on" if high == 1 << 40 else f"{kind} from {low} to {high}")
        return number

    return parse


def _byte(value):
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        number = int(value, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]+|0|[1-9][0-9]*", str(value)) else -1
    if 0 <= number <= 255:
        return number
    raise _Wrong("a byte, 0 to 255 or 0x00 to 0xFF")


def _flag(value):
    if isinstance(value, bool) or value in ("True", "False"):
        return value in (True, "True")
    raise _Wrong("True or False")


def _word(*words):
    def parse(value):
        if value in words:
            return value
        raise _Wrong(" or ".join(words))

    return parse


def _fraction(low_open, high_closed):
    def parse(value):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = -1.0
        if 0 < number < 1 or (number == 0 and not low_open) or (number == 1 and high_closed):
            return number
        raise _Wrong(f"a number {'above' if low_open else 'from'} 0 and {'up to' if high_closed else 'below'} 1")

    return parse


def _divisions(value):
    """Return 16 numbers, one for each interval; from a single number, or a dict or list of ``MiB: number``."""
    allowed = "a power of two, or a list such as [256:1,512:2,1024:4,>:8] of a power of two in MiB and one of steps"
    if isinstance(value, tuple) and len(value) == len(INTERVALS):
        return value
    try:
        if not isinstance(value, dict):
            return (_power(value),) * len(INTERVALS) if int(value) else (0,) * len(INTERVALS)
        result = [0] * len(INTERVALS)
        last = 0
        for key, steps in value.items():
            end = len(INTERVALS) if key == ">" else INTERVALS.index(int(key)) + 1
            result[last:end] = [_power(steps)] * (end - last)
            last = max(last, end)
        if ">" not in value:
            result[last:] = [result[last - 1]] * (len(INTERVALS) - last)
    except (TypeError, ValueError):
        raise _Wrong(allowed) from None
    return tuple(result)


def _power(value):
    number = int(value)
    if number < 1 or number & (number - 1):
        raise ValueError
    return number


_FIELDS = {  # default and parser
    "backend": ("native", _word("native", "async")),
    "expandable_segments": (True, _flag),
    "segments": ("fit", _word("fit", "torch")),
    "max_split_size_mb": (UNLIMITED, _whole(20)),
    "max_non_split_rounding_mb": (20, _whole(20)),
    "large_segment_size_mb": (20, _whole(11)),
    "roundup_power2_divisions": ((0,) * len(INTERVALS), _divisions),
    "garbage_collection_threshold": (0.0, _fraction(True, False)),
    "per_process_memory_fraction": (1.0, _fraction(False, True)),
    "pinned_max_cached_size_mb": (UNLIMITED, _whole(1)),
    "pinned_cache_limit_mb": (None, _whole(0)),
    "pinned_use_background_threads": (False, _flag),
    "fill_uninitialized": (None, _byte),
}
KEYS = {name: parse for name, (_, parse) in _FIELDS.items()}


class AllocConf(namedtuple("AllocConf", _FIELDS, defaults=[default for default, _ in _FIELDS.values()])):
    """Everything that can be configured, under torch's names where torch has one; sizes in MiB."""

    __slots__ = ()  # not a dataclass: making one takes longer than all the rest of this module

    def __str__(self):
        """The text that gives this configuration: every key that is not at its default."""
        pairs = []
        for name, (default, _) in _FIELDS.items():
            value = getattr(self, name)
            if value != default:
                pairs.append(f"{name}:{_list_text(value) if isinstance(value, tuple) else value}")
        return ",".join(pairs)


def _list_text(divisions):
    pairs = zip((*INTERVALS[:-1], ">"), divisions, strict=True)
    return "[" + ",".join(f"{key}:{steps or 1}" for key, steps in pairs) + "]"


def nearest(word, known):
    """Return the one of ``known`` that ``word`` is most likely a slip of, None if it is like none of them."""

    def likeness(name):
        """How many letters both have in common at their beginnings and ends."""
        return len(os.path.commonprefix([word, name])) + len(os.path.commonprefix([word[::-1], name[::-1]]))

    near = max(known, key=likeness)
    return near if likeness(near) > 0.8 * len(near) else None


def _unknown(key, where=""):
    near = nearest(str(key), KEYS)
    meant = f" (did you mean {near}?)" if near else ""
    return ValueError(f"unknown key {key!r}{where}{meant}; the keys are {', '.join(KEYS)}")


def make(**values):
    """Return the configuration with these values; ValueError names the key and what it takes."""
    parsed = {}
    for key, value in values.items():
        if key not in KEYS:
            raise _unknown(key)
        try:
            parsed[key] = value if value is None and _FIELDS[key][0] is None else KEYS[key](value)
        except _Wrong as words:
            raise ValueError(f"{key} is {words}, not {value!r}") from None
    return AllocConf(**parsed)


_TOKEN = re.compile(r"\s*([\[\],:]|[^\s\[\],:]+)")


class _Tokens:
    """The text's words and signs, each with its position, the first being 0."""

    def __init__(self, text):
        self.found = [(m.group(1), m.start(1)) for m in _TOKEN.finditer(text)]
        self.end = len(text)

    def peek(self):
        return self.found[0] if self.found else ("", self.end)

    def next(self):
        token = self.peek()
        self.found = self.found[1:]
        return token

    def expect(self, sign, after):
        token, at = self.next()
        if token != sign:
            told = f"{token!r}" if token else "the end"
            raise ValueError(f"position {at}: {after} is followed by {sign!r}, not by {told}")


def parse(text):
    """Return the configuration in ``text``."""
    tokens, values = _Tokens(text), {}
    while tokens.found:
        key, at = tokens.next()
        if key in (",", ":", "[", "]"):
            raise ValueError(f"position {at}: a key is expected, not {key!r}; the keys are {', '.join(KEYS)}")
        if key not in KEYS:
            raise _unknown(key, f" at position {at}")
        if key in values:
            raise ValueError(f"position {at}: {key} is given twice")
        tokens.expect(":", f"the key {key}")
        value_at = tokens.peek()[1]
        values[key] = _list(tokens, key) if tokens.peek()[0] == "[" else tokens.next()[0]
        if values[key] in ("", ",", ":", "]"):
            raise ValueError(f"position {value_at}: {key} has no value; it is {allowed(key)}")
        try:
            KEYS[key](values[key])
        except _Wrong as words:
            raise ValueError(f"position {value_at}: {key} is {words}, not {values[key]!r}") from None
        if tokens.found:
            tokens.expect(",", f"the value of {key}")
            if not tokens.found:
                raise ValueError(f"position {tokens.end}: a key is expected after the last comma")
    return make(**values)


def value(key, text):
    """Return what ``text`` is as the value of ``key``; ValueError says what that takes."""
    tokens = _Tokens(text)
    try:
        given = _list(tokens, key) if tokens.peek()[0] == "[" else tokens.next()[0]
        if not tokens.found:
            return KEYS[key](given)
    except ValueError:
        pass
    raise ValueError(allowed(key))


def allowed(key):
    """Return the words for what ``key`` takes."""
    try:
        KEYS[key]("?")
    except _Wrong as words:
        return str(words)
    return "a value"


def _list(tokens, key):
    tokens.next()
    pairs = {}
    while True:
        name = tokens.next()[0]
        tokens.expect(":", f"{name or 'an entry'} in the list of {key}")
        pairs[name] = tokens.next()[0]
        sign, at = tokens.next()
        if sign == "]":
            return pairs
        if sign != ",":
            raise ValueError(f"position {at}: the list of {key} goes on with ',' or ends with ']'")
