# SPDX-License-Identifier: Apache-2.0
"""ZE_AFFINITY_MASK: which devices and tiles the driver shows this process. It is the driver's; this reads it.

The mask is a list of ``device`` or ``device.tile`` numbers. ZE_FLAT_DEVICE_HIERARCHY says what a device is: with
``COMPOSITE`` a card, whose tiles are its sub-devices; with ``FLAT`` and ``COMBINED`` every tile is a device of its own
and is numbered through all cards.
"""

import os

HIERARCHIES = ("COMPOSITE", "FLAT", "COMBINED")


def parse(mask):
    """Return the (device, tile) pairs of a mask, tile None for the whole device; None for an empty mask: everything.

    ValueError names the entry that is neither ``N`` nor ``N.M``.
    """
    if not mask:
        return None
    entries = []
    for entry in mask.split(","):
        numbers = entry.strip().split(".")
        if len(numbers) > 2 or not all(n.isascii() and n.isdigit() for n in numbers):
            raise ValueError(f"ZE_AFFINITY_MASK={mask!r}: {entry.strip()!r} is neither a device N nor a tile N.M")
        entries.append((int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else None))
    return entries


def visible(mask, hierarchy, tiles):
    """Return what is visible of cards with so many ``tiles`` each: for each device, its (card, tile) pairs.

    Entries that name nothing on this machine are passed over, and the order is the machine's, as the driver has it.
    """
    if hierarchy not in HIERARCHIES:
        raise ValueError(f"ZE_FLAT_DEVICE_HIERARCHY={hierarchy!r}: expected one of {', '.join(HIERARCHIES)}")
    entries = parse(mask)
    cards = [[(card, tile) for tile in range(count)] for card, count in enumerate(tiles)]
    if hierarchy != "COMPOSITE":
        flat = [[pair] for card in cards for pair in card]
        wanted = {device for device, tile in entries if tile in (None, 0)} if entries is not None else range(len(flat))
        return [pair for index, pair in enumerate(flat) if index in wanted]
    if entries is None:
        return cards
    chosen = [[p for p in card if (p[0], None) in entries or p in entries] for card in cards]
    return [card for card in chosen if card]


def environment():
    """Return (mask, hierarchy) as this process's environment has them; None for what is not set."""
    return os.environ.get("ZE_AFFINITY_MASK") or None, os.environ.get("ZE_FLAT_DEVICE_HIERARCHY") or None
