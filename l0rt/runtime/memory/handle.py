# SPDX-License-Identifier: Apache-2.0
"""The bytes by which another process finds a Buffer: their format, strictly checked; and which process is which."""

import struct
from binascii import crc32

from l0rt.errors import InvalidArgumentError

# Magic, version, kind, checksum of the rest. The exporter: its process, when that began. The ledger: file, inode,
# entry, generation. The device's UUID. The driver's allocation: id, size. The block in it: offset, size. The bytes in
# the block: offset, size. Flags. The driver's handle.
_FORM = struct.Struct("<8sHHI QQ IQIQ 16s QQ QQ QQ I 64s")
_HEAD = struct.Struct("<8sHHI")
_MAGIC = b"l0rt-ipc"
VERSION = 1
EMPTY, DEVICE_MEMORY = 0, 1  # kinds: of no bytes, of device memory
IS_SENT = 1  # a flag: the exporter keeps the Buffer until one process has imported the handle
ENTRIES = 1 << 16  # of a ledger
NO_ENTRY = (0, 0, 0, 0)
NO_BYTES = (0, 0, 0, 0, 0, 0, 0, b"")
REMEDY = (
    "processes share memory if they belong to the same user and see each other in /proc: containers need one PID "
    "namespace (docker run --pid=host, or --pid=container:NAME), and where kernel.yama.ptrace_scope is not 0, a driver "
    "may need it to be 0, or prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY) in the process that exports"
)


def pack(kind, *fields):
    """Return the bytes of a handle."""
    made = _FORM.pack(_MAGIC, VERSION, kind, 0, *fields)
    rest = made[_HEAD.size :]
    return _HEAD.pack(_MAGIC, VERSION, kind, crc32(rest, kind)) + rest


def unpack(handle):
    """Return the kind of a handle and its fields, which make sense as far as one process can tell."""
    if not isinstance(handle, bytes):
        raise TypeError(f"a Buffer's handle must be bytes, got {type(handle).__name__}")
    if len(handle) < _HEAD.size or not handle.startswith(_MAGIC):
        raise ValueError("these bytes are no handle of a Buffer")
    _, version, kind, checksum = _HEAD.unpack_from(handle)
    if version != VERSION:
        raise ValueError(
            f"the handle has format {version}, and this l0rt knows format {VERSION}: both processes need the same l0rt"
        )
    if len(handle) != _FORM.size:
        raise ValueError(f"the handle is damaged: it has {len(handle)} bytes and not {_FORM.size}")
    if checksum != crc32(handle[_HEAD.size :], kind):
        raise ValueError("the handle is damaged: its checksum is wrong")
    fields = _FORM.unpack(handle)[4:]
    pid, _, _, _, entry, generation, _, _, size, block_offset, block_size, offset, nbytes, flags, _ = fields
    if kind == EMPTY:
        good = nbytes == offset == 0
    else:
        good = (
            kind == DEVICE_MEMORY
            and 0 < pid < 1 << 31
            and entry < ENTRIES
            and generation != 0
            and flags in (0, IS_SENT)
            and nbytes > 0
            and offset + nbytes <= block_size
            and block_offset + block_size <= size < 1 << 62
        )
    if not good:
        raise ValueError("the handle is damaged: its numbers contradict each other")
    return kind, *fields


def began(pid):
    """Return when a process began, in the kernel's ticks; 0 if it does not run. Another may have its number later."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 0 if words[0] in b"ZX" else int(words[19])


def stale():
    """The error for memory that its process has freed."""
    return InvalidArgumentError(
        "the handle is stale: the process that exported this memory has freed it. It has to keep the Buffer until the "
        "other process has imported it"
    )
