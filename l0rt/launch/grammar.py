# SPDX-License-Identifier: Apache-2.0
"""What the words of SPIR-V's instructions are, for the instructions that compilers of OpenCL C and SYCL make.

`GRAMMAR` has a `Row` for each opcode. The CPU driver has a table of what it runs, cpu_driver/spirv/grammar.h; this one
tells values from types and labels, and has what only other drivers run: images, pipes, queues. A test compares both.
"""

from collections import namedtuple

# One letter for each operand: T result type, R result id, t type, v value, l label, f function, i any id, n a number,
# s a string. Behind + stands what may follow any number of times. Specification of SPIR-V, section 3.49.
_PATTERNS = {
    "": "0 56 253 255 317",
    "TR": "1 41 42 46 48 49 55 299 303",
    "s": "2 4 10 330",
    "nn+n": "3",
    "is": "5",
    "ins": "6",
    "Rs": "7 11 31",
    "inn": "8",
    "TRin+n": "12",
    "nn": "14",
    "nfs+i": "15",
    "in+n": "16 71 332 5632",
    "n": "17",
    "R": "19 20 26 34-37 73 248 322 327",
    "Rnn": "21",
    "Rn+n": "22",
    "Rtn": "23 24",
    "Rtnnnnnn+n": "25",
    "Rt": "27 29",
    "Rtv": "28",
    "R+t": "30",
    "Rnt": "32",
    "Rt+t": "33",
    "Rn": "38",
    "in": "39",
    "TRn+n": "43 50 52",
    "TR+v": "44 51 80",
    "TRnnn": "45 323",
    "TRnt": "54",
    "TRf+v": "57",
    "TRn+v": "59",
    "TRvvv": "60 78 169 202 203 227 232 233 263 283 284 304 318 337 341 345-348 5572 5573",
    "TRv+n": "61 81",
    "vv+n": "62 63",
    "vvv+n": "64",
    "TRv+v": "65 66",
    "TRvv+v": "67 70",
    "TRvn": "123",
    "TRv": "69 83 84 100-102 104 106 107 109-122 124 126 127 154-160 168 200 204 205 282 300 324 333 400 5575"
    " 6116 6117",
    "inn+n": "72",
    "i+i": "74",
    "i+n": "75",
    "TRvv": "77 86 103 105 128-152 161-167 170-191 194-199 261 262 334-336 338-340 343 344 401-403 5571 5574 5631",
    "TRvv+n": "79 82 87 88 91 92 95 98 4450-4452",
    "TRvvv+n": "89 90 93 94 96 97 4453-4455",
    "TRvvv+v": "4431",
    "vvv+n ": "99",
    "TRvvvv": "201 229 234-242 274 275 278 279 295 296 326 5614 5615 6035",
    "vvv": "224 260 302 319 329",
    "vv": "225 301 5576",
    "vvvv": "228 280 281",
    "TRvvvvvv": "230 231 259 276 277",
    "TR+i": "245",
    "lln+n": "246",
    "ln": "247",
    "l": "249",
    "vll+n": "250",
    "vl+n": "251",
    "v": "254 297 298 5630",
    "vn": "256 257",
    "TRvnv+v": "349-364",
    "TRvvvvv": "285 286 293 294 325",
    "vvvvv": "287 288",
    "TRvvvvvvvvvv+v": "292",
    "TRvvvv ": "291",
    "TRt": "321",
    "in+i": "331",
    "TRvnv": "264-271 342 6401-6408",
    "R+i": "5911-5913",
    "+n": "5887",
}
# What ends a block.
TERMINATORS = frozenset((249, 250, 251, 253, 254, 255))
VENDORS = 4096  # from here on opcodes are of extensions: those that are not in the table are let through

# The words of an instruction at the least, and at the most (0: any number); where its result type and its result are
# (0: none); the words that are values (from, to; to 0: the end); what else there is, as (letter, from, to).
Row = namedtuple("Row", "least most type result values others")


def _row(pattern):
    head, _, tail = pattern.strip().partition("+")
    groups: list[tuple[str, int, int]] = []
    for at, letter in enumerate(head, 1):
        if letter in "tvlfis":
            if letter == "v" and groups and groups[-1][0] == "v" and groups[-1][2] == at:
                groups[-1] = ("v", groups[-1][1], at + 1)
            else:
                groups.append((letter, at, at + 1))
    least = len(head) + 1
    if tail and tail != "n":
        if tail == "v" and groups and groups[-1][0] == "v" and groups[-1][2] == least:
            groups[-1] = ("v", groups[-1][1], 0)
        else:
            groups.append((tail, least, 0))
    values = next(((a, b) for letter, a, b in groups if letter == "v"), None)
    others = tuple(group for group in groups if (group[1], group[2]) != values)
    most = 0 if tail or "s" in head else least
    return Row(least, most, head.find("T") + 1, head.find("R") + 1, values, others)


def _opcodes(text):
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


GRAMMAR = {opcode: _row(pattern) for pattern, text in _PATTERNS.items() for opcode in _opcodes(text)}
