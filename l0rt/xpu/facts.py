# SPDX-License-Identifier: Apache-2.0
"""Properties of a device, under torch's names and some more, and its capabilities."""

from __future__ import annotations

from types import SimpleNamespace as _Namespace

from l0rt._base.described import takes_device as _takes_device
from l0rt.runtime.current import stream as _stream
from l0rt.runtime.streams import devices as _devices
from l0rt.runtime.streams import naming as _naming
from l0rt.ze import affinity as _affinity
from l0rt.ze import pci as _pci
from l0rt.ze import quirks as _quirks

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    from l0rt.runtime.streams.naming import _Device

__all__ = [
    "affinity_mask",
    "can_device_access_peer",
    "find_device",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "is_bf16_supported",
    "is_tf32_supported",
]

_OCLOCS = {
    "alchemist": "dg2", "arrow lake": "arl-h", "battlemage": "bmg", "lunar lake": "lnl-m", "meteor lake": "mtl-h",
    "panther lake": "ptl-h", "ponte vecchio": "pvc",
}  # fmt: skip


@_takes_device
def get_device_name(device: _Device = None) -> str:
    """Return the name of ``device`` (the current one by default).

    Returns
    -------
    str
    """
    return get_device_properties(device).name


@_takes_device
def get_device_capability(device: _Device = None) -> dict[str, Any]:
    """Return the properties of ``device`` (the current one by default) as a dict.

    Returns
    -------
    dict
    """
    properties = vars(get_device_properties(device)).copy()
    for name in ("name", "uuid", "index"):
        del properties[name]
    return properties


def _has_xe_hpc(ip_version):
    """Whether this is Xe-HPC or Xe2 and later: graphics 12.60 and from 20 on."""
    architecture, release = ip_version >> 22, ip_version >> 14 & 0xFF
    return architecture >= 20 or (architecture == 12 and release >= 60 and release < 70)


class _Uuid(bytes):
    """A device's UUID: 16 bytes, which are ``bytes`` too. Its text has 36 characters."""

    @property
    def bytes(self):
        """The 16 bytes."""
        return self[:]

    def __str__(self):
        digits = self.hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class _XpuDeviceProperties(_Namespace):
    """What a device is; every field is an attribute."""


@_takes_device
def get_device_properties(device: _Device = None) -> _XpuDeviceProperties:
    """Return the properties of ``device``: those of torch under torch's names, and some more.

    Sizes are in bytes, and clock rates in MHz. ``is_software`` is True for a device of the CPU driver, which is not
    a GPU.

    Returns
    -------
    object
        An object with one attribute for each property.

    Notes
    -----
    The names are those of ``torch.xpu.get_device_properties``. The values come from Level Zero's
    ``ze_device_properties_t`` and from its structures of compute, module, memory and cache properties, such as
    ``ze_device_compute_properties_t``.
    """
    index = _stream.index_or_current(device)
    p = _devices.properties(index)
    subslices = p["slices"] * p["subslices_per_slice"]
    return _XpuDeviceProperties(
        name=p["name"],
        platform_name="Intel(R) oneAPI Unified Runtime over Level-Zero" if p["vendor_id"] == 0x8086 else p["name"],
        vendor="Intel(R) Corporation" if p["vendor_id"] == 0x8086 else f"{p['vendor_id']:#06x}",
        device_id=p["device_id"],
        driver_version=p["driver_version"],
        version="{}.{}".format(*p["api_version"]),
        max_compute_units=subslices * p["eus_per_subslice"],
        gpu_eu_count=subslices * p["eus_per_subslice"],
        gpu_subslice_count=subslices,
        max_work_group_size=p["max_work_group_size"],
        max_num_sub_groups=p["max_work_group_size"] // min(p["sub_group_sizes"] or [1]),
        sub_group_sizes=p["sub_group_sizes"],
        memory_clock_rate=p["memory_clock_mhz"],
        memory_bus_width=p["memory_bus_width"],
        local_mem_size=p["local_mem_size"],
        last_level_cache_size=p["cache_bytes"],
        total_memory=p["total_memory"],
        max_alloc_size=p["max_alloc"],
        core_clock_rate=p["core_clock_mhz"],
        has_fp16=p["has_fp16"],
        has_fp64=p["has_fp64"],
        has_atomic64=p["has_atomic64"],
        has_bfloat16_conversions=p["has_bfloat16"],
        has_subgroup_matrix_multiply_accumulate=p["has_dpas"],
        # Level Zero does not report these two; they came with Xe-HPC, and Alchemist lacks them.
        has_subgroup_matrix_multiply_accumulate_tensor_float32=p["has_dpas"] and _has_xe_hpc(p["ip_version"]),
        has_subgroup_2d_block_io=p["has_dpas"] and _has_xe_hpc(p["ip_version"]),
        architecture=p["ip_version"] << 8,  # SYCL's number of it; 0 where the driver does not report it
        xe_stack_count=p["tiles"],
        xe_regions_per_stack=1,
        xe_clusters_per_region=p["slices"],
        xe_cores_per_cluster=p["subslices_per_slice"],
        eus_per_xe_core=p["eus_per_subslice"],
        max_lanes_per_hw_thread=p["simd_width"],
        is_integrated_gpu=bool(p["integrated"]),
        is_software=p["is_software"],
        type="gpu",
        pci=p["pci"],
        uuid=_Uuid(p["uuid"]),
        index=index,
        queue_groups={"compute": p["compute_queues"], "copy": p["copy_queues"]},  # how many hardware queues each
        tiles=p["tiles"],
        memory_kinds=p["memory_kinds"],  # (name, bytes) of each
        peers=[i for i in range(_devices.device_count()) if i != index and _devices.can_access_peer(index, i)],
        **_pci.facts(p["pci"]),
    )


def find_device(what: bytes | str) -> int:
    """Return the index of the device with this UUID, PCI address or DRM node.

    A PCI address is ``"0000:03:00.0"``, a node ``"/dev/dri/renderD128"`` or ``"/dev/dri/card0"``. These mean the same
    device in Level Zero, in its system management and in Linux; indexes do not. If several tiles share an address, the
    result is the first of them.

    Parameters
    ----------
    what : bytes or str
        A UUID, 16 bytes or their hex digits, a PCI address or a DRM node.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        There is no such device. The message lists the devices.

    Notes
    -----
    The UUID is that of ``ze_device_properties_t``, and the address that of ``zeDevicePciGetPropertiesExt``.
    """
    if not isinstance(what, (bytes, str)):
        raise TypeError(f"a device is found by the bytes of its UUID or by a str, got {type(what).__name__}")
    texts = []
    for index in range(_devices.device_count()):
        p = _devices.properties(index)
        linux = _pci.facts(p["pci"])
        names = (p["uuid"], p["uuid"].hex(), p["pci"], linux["render_node"], linux["card_node"])
        if (what.replace("-", "").lower() if isinstance(what, str) and "/" not in what else what) in names:
            return index
        ids = [f"UUID {p['uuid'].hex()}", p["pci"] and f"PCI address {p['pci']}", linux["render_node"]]
        texts.append(f"xpu:{index} ({', '.join(name for name in ids if name)})")
    raise ValueError(
        f"no device has the UUID, PCI address or DRM node {what!r}; there is {' and '.join(texts) or 'no device'}"
    )


@_takes_device
def can_device_access_peer(device: _Device, peer: _Device) -> bool:
    """Return whether ``device`` can read and write memory of ``peer`` directly.

    Parameters
    ----------
    peer : int, str, device or None
        The device that owns the memory.

    Returns
    -------
    bool

    Notes
    -----
    It calls ``zeDeviceCanAccessPeer`` of Level Zero.
    """
    return _devices.can_access_peer(_stream.index_or_current(device), _stream.index_or_current(peer))


def supported_dtypes(device: _Device = None) -> set[str]:
    """Return the names of the element types that ``device`` (the current one by default) computes with."""
    return _naming.supported_dtypes(_stream.index_or_current(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the current device computes with bfloat16. It is False if there is no device.

    Parameters
    ----------
    including_emulation : bool, optional
        Also count kernels that convert to float32. Every device has these.

    Returns
    -------
    bool

    Notes
    -----
    The contract is that of ``torch.xpu.is_bf16_supported``.
    """
    if not _devices.device_count():
        return False
    return bool(including_emulation) or get_device_properties().has_bfloat16_conversions


def is_tf32_supported() -> bool:
    """Return whether the current device multiplies matrices in TensorFloat-32. It is False if there is no device.

    Returns
    -------
    bool
    """
    return bool(_devices.device_count()) and (
        get_device_properties().has_subgroup_matrix_multiply_accumulate_tensor_float32
    )


def get_arch_list() -> list[str]:
    """Return the architectures of the GPUs in this process, for which `l0rt.compile` makes native code, as ocloc names
    them. The list is empty without a GPU.

    Returns
    -------
    list of str
    """
    if not _devices.device_count():
        return []
    properties = [_devices.properties(index) for index in range(_devices.device_count())]
    names = {_quirks.architecture(p["vendor_id"], p["device_id"]) for p in properties if not p["is_software"]}
    return sorted(_OCLOCS[name] for name in names if name is not None)


def get_gencode_flags() -> str:
    """Return the option of ocloc for `get_arch_list`, such as ``-device bmg``; an empty string without a GPU.

    Returns
    -------
    str
    """
    arches = get_arch_list()
    return f"-device {','.join(arches)}" if arches else ""


def affinity_mask() -> list[tuple[int, int | None]] | None:
    """Return the pairs of device and tile in ZE_AFFINITY_MASK, or None if it is not set.

    The tile is None for a whole device. ZE_FLAT_DEVICE_HIERARCHY decides what a device is: a card with ``COMPOSITE``,
    otherwise a tile. It opens no driver.

    Returns
    -------
    list of tuple, or None

    Notes
    -----
    The grammar is that of Level Zero's specification, section "Affinity Mask".
    """
    return _affinity.parse(_affinity.environment()[0])
