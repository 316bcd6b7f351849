# SPDX-License-Identifier: Apache-2.0
"""Images as OpenCL's specification has them, in NumPy: conversions (8.3), addressing and filters (8.2), border colors.

Texels are arrays (elements or depth, height, width, 4) of channels, floats or integers, as a kernel reads them.
"""

import numpy as np

PACKED = {"rgb10a2": (10, 10, 10, 2), "rg11b10": (11, 11, 10), "r5g6b5": (5, 6, 5), "rgb5a1": (5, 5, 5, 1),
          "rgba4": (4, 4, 4, 4)}  # fmt: skip
CHANNELS = {
    "r": "R001", "rg": "RG01", "ra": "R00G", "rgb": "RGB1", "rgba": "RGBA", "bgra": "BGRA", "argb": "ARGB",
    "abgr": "ABGR", "a": "000R", "l": "RRR1", "i": "RRRR", "d": "R001",
}  # fmt: skip


class Format:
    """A format of l0rt.Image, as its components in memory and its channels."""

    def __init__(self, name):
        self.number = next(kind for kind in ("unorm", "snorm", "uint", "sint", "float") if name.endswith(kind))
        stem = name.removesuffix(self.number)
        if stem in PACKED:
            self.packed, self.bits = True, PACKED[stem]
            self.channels = "RGBA" if len(self.bits) == 4 else "RGB1"
        else:
            order = stem.rstrip("0123456789")
            self.packed, self.channels = False, CHANNELS[order]
            self.bits = (int(stem[len(order) :]),) * len({c for c in self.channels if c in "RGBA"})
        self.reversed = stem in ("r5g6b5", "rgb5a1", "rgba4")  # the first of three components is above the others

    @property
    def is_float(self):
        return self.number in ("unorm", "snorm", "float")

    def shifts(self):
        """Where each component of a packed texel begins."""
        order = [2, 1, 0, 3][: len(self.bits)] if self.reversed else range(len(self.bits))
        at, shifts = 0, {}
        for component in order:
            shifts[component] = at
            at += self.bits[component]
        return [shifts[c] for c in range(len(self.bits))]

    def components(self, raw):
        """The components of raw texels as unsigned numbers, in a last axis."""
        if self.packed:
            return np.stack(
                [raw.astype("u8") >> s & (1 << b) - 1 for s, b in zip(self.shifts(), self.bits, strict=True)], -1
            )
        raw = raw if len(self.bits) > 1 else raw[..., None]
        return raw.view(f"u{raw.itemsize}").astype("u8")

    def value(self, unsigned, bits):
        """The number that a component stands for."""
        signed = (unsigned.astype("i8") ^ 1 << (bits - 1)) - (1 << (bits - 1))
        if self.number == "uint":
            return unsigned.astype("u4")
        if self.number == "sint":
            return signed.astype("i4")
        if self.number == "unorm":
            return (unsigned / ((1 << bits) - 1)).astype("f4")
        if self.number == "snorm":
            return np.maximum(signed / ((1 << (bits - 1)) - 1), -1).astype("f4")
        if bits == 32:
            return unsigned.astype("u4").view("f4")
        return (unsigned << (15 - bits if bits < 16 else 0)).astype("u2").view("f2").astype("f4")

    def read(self, raw):
        """The four channels of raw texels."""
        parts = self.components(raw)
        values = [self.value(parts[..., c], bits) for c, bits in enumerate(self.bits)]
        one = np.ones_like(values[0])
        shown = {"0": one * 0, "1": one, "A": one, **dict(zip("RGBA", values, strict=False))}
        return np.stack([shown.get(channel, one * 0) for channel in self.channels], -1)

    def stored(self, values, bits):
        """The component that a channel's number becomes, as an unsigned number."""
        most, top = (1 << bits) - 1, (1 << (bits - 1)) - 1
        if self.number == "uint":
            return np.minimum(values.view("u4").astype("u8"), most)
        if self.number == "sint":
            return np.clip(values.view("i4").astype("i8"), -top - 1, top).astype("u8") & most
        if self.number == "float":
            with np.errstate(over="ignore"):
                return values.view("u4").astype("u8") if bits == 32 else values.astype("f2").view("u2").astype("u8")
        scale = np.float32(most if self.number == "unorm" else top)
        least, limit = (0, most) if self.number == "unorm" else (-top - 1, top)
        with np.errstate(invalid="ignore", over="ignore"):
            whole = np.rint((values * scale).astype("f4").astype("f8"))
        whole = np.where(np.isnan(whole), 0, np.clip(whole, least, limit))
        return whole.astype("i8").astype("u8") & most

    def write(self, values):
        """The raw components, in a last axis, that a kernel's channels become."""
        parts = []
        for c, bits in enumerate(self.bits):
            shown = self.channels.find("RGBA"[c])
            parts.append(self.stored(np.ascontiguousarray(values[..., shown]), bits))
        return np.stack(parts, -1)

    def border(self):
        opaque = "A" not in self.channels and self.channels[3] in "01"
        return np.array([0, 0, 0, 1 if opaque else 0], "f4" if self.is_float else "i4")


def texel(texels, border, x, y, z):
    """The texels at integers, and the border's color beyond."""
    depth, height, width = texels.shape[:3]
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height) & (z >= 0) & (z < depth)
    found = texels[np.clip(z, 0, depth - 1), np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
    return np.where(inside[..., None], found, border)


def along(coordinate, size, addressing, linear, normalized):
    """The two texels along one axis, and the share of the second."""
    one, size = np.float32(1), np.float32(size)
    if addressing == "repeat":
        u = (coordinate - np.floor(coordinate)) * size
    elif addressing == "mirror":
        u = np.abs(coordinate - np.float32(2) * np.rint(np.float32(0.5) * coordinate)) * size
    else:
        u = coordinate * size if normalized else coordinate
    size = int(size)
    if not linear:
        near = np.floor(u).astype("i8")
        if addressing == "repeat":
            near = np.where(near > size - 1, near - size, near)
        return address(near, size, addressing), None, None
    below = np.floor(u - one / 2)
    near, part = below.astype("i8"), ((u - one / 2) - below).astype("f4")
    after = near + 1
    if addressing == "repeat":
        near = np.where(near < 0, near + size, near)
        after = np.where(after > size - 1, after - size, after)
    return address(near, size, addressing), address(after, size, addressing), part


def address(x, size, addressing):
    return np.clip(x, -1, size) if addressing in ("border", "none") else np.clip(x, 0, size - 1)


def sample(texels, border, coordinates, addressing, linear, normalized, axes, array):
    """What read_imagef returns at coordinates, an array (n, axes), and the element of an array behind them."""
    coordinates = coordinates.astype("f4")
    sides = [along(coordinates[:, d], texels.shape[2 - d], addressing, linear, normalized) for d in range(axes)]
    element = np.zeros(len(coordinates), "i8")
    if array:
        element = np.clip(np.rint(coordinates[:, axes]), 0, texels.shape[0 if axes == 2 else 1] - 1).astype("i8")
    zero = np.zeros(len(coordinates), "i8")

    def at(corner):
        x, y, z = [sides[d][corner >> d & 1] if d < axes else zero for d in range(3)]
        if array and axes == 2:
            z = element
        if array and axes == 1:
            y = element
        return texel(texels, border, x, y, z)

    if not linear:
        return at(0)
    total = np.zeros((len(coordinates), 4), "f4")
    for corner in range(1 << axes):
        weight = np.ones(len(coordinates), "f4")
        for d in range(axes):
            weight = weight * (sides[d][2] if corner >> d & 1 else np.float32(1) - sides[d][2])
        total = total + weight[:, None] * at(corner)
    return total
