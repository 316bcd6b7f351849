# SPDX-License-Identifier: Apache-2.0
"""The keys of torch's `memory_stats`, of torch.cuda 2.13, as data, with `num_oom_fallback`, which is ours alone."""

POOLS = ("all", "large_pool", "small_pool")
KINDS = ("current", "peak", "allocated", "freed")
BY_POOL = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)
WHOLE = ("oversize_allocations", "oversize_segments")
NUMBERS = (
    "max_split_size",
    "num_alloc_retries",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "num_oom_fallback",
    "num_ooms",
    "num_sync_all_streams",
)
PRIVATE = "reserved_bytes_by_private_pools"


def keys(*pools):
    """Return the flat keys, where these private pools, by their ids, have had memory."""
    found = {f"{family}.{pool}.{kind}" for family in BY_POOL for pool in POOLS for kind in KINDS}
    found |= {f"{family}.{kind}" for family in WHOLE for kind in KINDS}
    found |= {f"{PRIVATE}.{a}_{b}.{pool}.{kind}" for a, b in pools for pool in POOLS for kind in KINDS}
    return found | set(NUMBERS)
