# SPDX-License-Identifier: Apache-2.0
"""What the examples of this folder share: data in four parts, a model with two kernels, and one process's result."""

from functools import cache
from pathlib import Path

import l0rt
import numpy as np

PARTS, ROWS, FEATURES, STEPS, RATE = 4, 512, 16, 20, 1.0


@cache
def kernels():
    """Return the kernels, compiled once in each process."""
    return l0rt.compile(Path(__file__).with_suffix(".cl"))


def load(part):
    """Return the rows and labels of one part, on the current device."""
    generator = np.random.default_rng(part)
    x = generator.standard_normal((ROWS, FEATURES), dtype="f4")
    y = (x @ np.linspace(-1, 1, FEATURES, dtype="f4") > 0).astype("f4")
    return l0rt.from_numpy(x), l0rt.from_numpy(y)


def gradient(weights, data):
    """Return what one part of the data makes of the weights, as a Buffer."""
    x, y = data
    error, found = l0rt.empty(4 * ROWS), l0rt.empty(4 * FEATURES)
    kernels()["compare"][ROWS // 64, 64](error, x, y, l0rt.from_numpy(weights), FEATURES)
    kernels()["derive"][1, FEATURES](found, x, error, ROWS)
    return found


def descend(weights, total):
    """Return the weights after a step down the sum of all gradients."""
    return weights - np.float32(RATE / (PARTS * ROWS)) * total


def start():
    """Return the weights to begin with."""
    return np.zeros(FEATURES, "f4")


def alone():
    """Return what one process learns on one device."""
    parts, weights = [load(part) for part in range(PARTS)], start()
    for _ in range(STEPS):
        weights = descend(weights, sum(gradient(weights, data).numpy("f4") for data in parts))
    return weights
