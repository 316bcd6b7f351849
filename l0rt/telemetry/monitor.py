# SPDX-License-Identifier: Apache-2.0
"""A channel on which other processes of the same user ask what this one does: its memory, its streams, the sensors of
its devices. The setting ``monitor`` opens it.

The channel is a socket, ``PID.sock`` in a folder that only the user can enter. Whoever connects and ends what it sends
gets one object of JSON. `SENSORS` is all that may be sent: then the answer has the sensors, for which system management
is opened. Without it, asking opens no driver. `begin` is called by the import of l0rt if the variable is set. Nothing
costs while no process asks.
"""

import atexit
import json
import os
import socket
import stat
import struct
import sys
import threading
import time

from l0rt import config
from l0rt._base import callers
from l0rt.memory import memory_stats
from l0rt.runtime.current.waits import stuck_report
from l0rt.runtime.lazy import DRAIN, exit_time_left, on_exit
from l0rt.runtime.streams.devices import device_count, lazy, properties
from l0rt.telemetry import Meter

FORMAT = 1  # of the answer
PATIENCE = 2.0  # seconds for a process that asks and does not read
LONGEST = 100  # bytes of a socket's path, of which Linux allows 107
MOST_LINES = 200  # about streams
SENSORS = b"sensors\n"
_listener: socket.socket | None = None
_thread: threading.Thread | None = None
_meters: dict[int, Meter] = {}  # of the thread that answers
_address = ""


def folder():
    """Return the folder of the channels of this user's processes."""
    base = os.environ.get("XDG_RUNTIME_DIR") or ""
    if os.path.isabs(base) and os.path.isdir(base) and len(os.fsencode(base)) < LONGEST - 30:
        return os.path.join(base, "l0rt")
    return f"/tmp/l0rt-{os.getuid()}"


def path(pid):
    """Return the path of the channel of a process."""
    return os.path.join(folder(), f"{pid}.sock")


def is_private(place):
    """Whether a folder is this user's alone, and no link to one."""
    about = os.lstat(place)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077


def begin():
    """Open the channel, if the setting says so; a channel that cannot be opened is a warning."""
    global _listener, _thread, _address
    if not config.get("monitor") or _listener is not None:
        return
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        if not is_private(folder()):
            raise PermissionError(0, f"others may enter {folder()}")
        address = path(os.getpid())
        if os.path.lexists(address):  # of a process that had this number before
            os.unlink(address)
        listener.bind(address)
        listener.listen(8)
    except OSError as e:
        listener.close()
        callers.warn(f"L0RT_MONITOR: this process cannot be watched: {e.strerror or e}")
        return
    _listener, _address = listener, address
    atexit.register(_end, os.getpid())
    os.register_at_fork(after_in_child=_forget)
    on_exit(DRAIN, _rest)  # behind what drains, which may take seconds in which another process asks what it waits for
    _thread = threading.Thread(target=_serve, args=(listener,), name="l0rt-monitor", daemon=True)
    _thread.start()


def _serve(listener):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the end
            return
        with connection:
            try:
                connection.settimeout(PATIENCE)
                if peer(connection) in (os.getuid(), 0):
                    connection.sendall(answer(_request(connection)))
            except OSError:  # the process that asked has ended
                continue


def peer(connection):
    """Return the user at the other end of a connection."""
    size = struct.calcsize("3i")
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]


def _request(connection):
    """What is sent: nothing too, if it does not end in time."""
    request, end = b"", time.monotonic() + PATIENCE
    try:
        while len(request) < len(SENSORS) and (part := connection.recv(len(SENSORS) - len(request))):
            request += part
            connection.settimeout(max(end - time.monotonic(), 0.001))  # of all parts together
    except TimeoutError:
        request = b""
    connection.settimeout(PATIENCE)
    return request


def answer(request):
    """Return the answer's bytes. If there is no state now, they say why: the thread answers the next one."""
    try:
        document = state(request == SENSORS)
    except Exception as error:
        document = {"format": FORMAT, "pid": os.getpid(), "error": f"{type(error).__name__}: {error}"}
    return json.dumps(document).encode("ascii")


def state(with_sensors=False):
    """Return the state: the process, and of each device that is open the memory, the streams that are not idle with
    what they wait for, and the sensors, if they are asked for."""
    devices = []
    if lazy.initialized:
        for index in range(device_count()):
            about = properties(index)
            if with_sensors and index not in _meters:
                _meters[index] = Meter(index)
            devices.append(
                {
                    "index": index,
                    "name": about["name"],
                    "uuid": about["uuid"].hex(),
                    "is_software": about["is_software"],
                    "total_memory": about["total_memory"],
                    "memory": {key: value for key, value in memory_stats(index).items() if type(value) is int},
                    "streams": stuck_report(index).splitlines()[:MOST_LINES],
                    "sensors": _meters[index].read().as_dict() if with_sensors else {"missing": {}},
                }
            )
    return {
        "format": FORMAT,
        "pid": os.getpid(),
        "command": sys.orig_argv,
        "time": time.time(),
        "devices": devices,
    }


def _rest():
    """End the thread before the objects that it asks about are destroyed; True if it has ended in time."""
    if _listener is None or _thread is None:
        return True
    try:
        _listener.shutdown(socket.SHUT_RDWR)  # its accept fails
    except OSError:
        return False
    _thread.join(exit_time_left())
    return not _thread.is_alive()


def _forget():
    """A forked child is not watched: the channel is its parent's, and it has no thread that answers."""
    global _listener
    if _listener is not None:
        _listener.close()
        _listener = None


def _end(pid):
    if os.getpid() == pid and _listener is not None:
        try:
            os.unlink(_address)
        except FileNotFoundError:
            return
