# SPDX-License-Identifier: Apache-2.0
"""The bytes by which another process finds a Buffer or an Event: their format, strictly checked."""

import os
import struct
from binascii import crc32

from l0rt.errors import InvalidArgumentError

# Magic, version, kind, checksum of the rest. The exporter: its process, when that began. The ledger: file, inode,
# entry, generation. The device's UUID. Of memory: the driver's allocation: id, size; the block in it: offset, size; the
# bytes in the block: offset, size; flags; the number of its private pool, or 0. The driver's handle. A pool has the
# first two and its number.
_HEAD = struct.Struct("<8sHHI")
_MEMORY = struct.Struct("<QQ IQIQ 16s QQ QQ QQ IQ 64s")
_EVENT = struct.Struct("<QQ IQIQ 16s 64s")
_POOL = struct.Struct("<QQ IQ Q")
_MAGIC = b"l0rt-ipc"
VERSION = 3
EMPTY, DEVICE_MEMORY, EVENT, POOL = 0, 1, 2, 3  # kinds: of no bytes, of device memory, of an event, of a pool
_FORMS = {EMPTY: _MEMORY, DEVICE_MEMORY: _MEMORY, EVENT: _EVENT, POOL: _POOL}
_NAMES = {_MEMORY: "a Buffer", _EVENT: "an Event", _POOL: "a MemPool"}
IS_SENT = 1  # a flag: the exporter keeps the Buffer until one process has imported the handle
ENTRIES = 1 << 16  # of a ledger
NO_ENTRY = (0, 0, 0, 0)
NO_BYTES = (0, 0, 0, 0, 0, 0, 0, 0, b"")
REMEDY = (
    "processes share memory if they belong to the same user and see each other in /proc: containers need one PID "
    "namespace (docker run --pid=host, or --pid=container:NAME), and where kernel.yama.ptrace_scope is not 0, a driver "
    "may need it to be 0, or prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) in the process that exports"
)
YAMA = "/proc/sys/kernel/yama"


def event_remedy():
    """Return what may help where the driver does not open an event of another process."""
    if os.path.exists(YAMA):
        return REMEDY
    return (
        f"Intel's driver shares events from 26.18 on only where the kernel has the Yama security module "
        f"(CONFIG_SECURITY_YAMA), which this one lacks: there is no {YAMA}. Memory is shared without it. And {REMEDY}"
    )


def pack(kind, *fields):
    """Return the bytes of a handle."""
    rest = _FORMS.get(kind, _MEMORY).pack(*fields)
    return _HEAD.pack(_MAGIC, VERSION, kind, crc32(rest, kind)) + rest


def _fields(handle, form):
    """Return the kind of a handle, and its fields as far as its bytes are those that were made."""
    if not isinstance(handle, bytes):
        raise TypeError(f"{_NAMES[form]}'s handle must be bytes, got {type(handle).__name__}")
    if len(handle) < _HEAD.size or not handle.startswith(_MAGIC):
        raise ValueError(f"these bytes are no handle of {_NAMES[form]}")
    _, version, kind, checksum = _HEAD.unpack_from(handle)
    if version != VERSION:
        raise ValueError(
            f"the handle has format {version}, and this l0rt knows format {VERSION}: both processes need the same l0rt"
        )
    rest = handle[_HEAD.size :]
    own = _FORMS.get(kind, form)
    if len(rest) != own.size:
        raise ValueError(f"the handle is damaged: it has {len(handle)} bytes and not {_HEAD.size + own.size}")
    if checksum != crc32(rest, kind):
        raise ValueError("the handle is damaged: its checksum is wrong")
    if own is not form:
        raise ValueError(f"this is a handle of {_NAMES[own]}, and one of {_NAMES[form]} was expected")
    return kind, form.unpack(rest)


def _names_a_ledger(pid, file):
    return 0 < pid < 1 << 31 and file < 1 << 31


def _names_an_entry(pid, file, entry, generation):
    return _names_a_ledger(pid, file) and entry < ENTRIES and generation != 0


def unpack(handle):
    """Return the kind of a handle of memory and its fields, which make sense as far as one process can tell."""
    kind, fields = _fields(handle, _MEMORY)
    pid, _, file, _, entry, generation, _, _, size, block_offset, block_size, offset, nbytes, flags, _, _ = fields
    if kind == EMPTY:
        good = nbytes == offset == 0
    else:
        good = (
            kind == DEVICE_MEMORY
            and _names_an_entry(pid, file, entry, generation)
            and flags in (0, IS_SENT)
            and nbytes > 0
            and offset + nbytes <= block_size
            and block_offset + block_size <= size < 1 << 62
        )
    if not good:
        raise ValueError("the handle is damaged: its numbers contradict each other")
    return kind, *fields


def unpack_event(handle):
    """Return the fields of an event's handle, which make sense as far as one process can tell."""
    _, fields = _fields(handle, _EVENT)
    pid, _, file, _, entry, generation, _, _ = fields
    if not _names_an_entry(pid, file, entry, generation):
        raise ValueError("the handle is damaged: its numbers contradict each other")
    return fields


def unpack_pool(handle):
    """Return the fields of a pool's handle, which make sense as far as one process can tell."""
    _, fields = _fields(handle, _POOL)
    pid, _, file, _, number = fields
    if not _names_a_ledger(pid, file) or number == 0:
        raise ValueError("the handle is damaged: its numbers contradict each other")
    return fields


def ended(pid, what):
    """The error for a process that is not there any more."""
    return InvalidArgumentError(
        f"the process {pid} that exported this {what} has ended, or is not seen from here: {REMEDY}"
    )


def stale(what="memory", kept="Buffer"):
    """The error for what its process has freed."""
    return InvalidArgumentError(
        f"the handle is stale: the process that exported this {what} has freed it. It has to keep the {kept} until the "
        "other process has imported it"
    )
