# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels: a folder of entries that several processes share.

An entry is a file that appears whole, by a rename, and that has a checksum of its key and its content: whatever is
damaged is found, removed and compiled anew. The folder and the entries belong to the user alone, for drivers run what
is in them.
"""

import fcntl
import os
import stat
import struct
import time
from contextlib import contextmanager, suppress
from hashlib import blake2b

from l0rt import config
from l0rt._base import callers

__all__: list[str] = []  # no public names: `l0rt cache` is what users have

VERSION = 1  # of what an entry looks like
MOST_BYTES = 1 << 30  # of an entry
HEAD = struct.Struct("<8s32sIII")  # what it is, the checksum, and the sizes of its parts
MAGIC = b"l0rtkrn1"
NAME = f"kernels-{VERSION}"  # in the folder that the user names: other versions and other things have other names
ABANDONED = 3600.0  # seconds after which a file that is being written belongs to nobody any more
LOCK = "lock"  # a file of no bytes: who makes an entry locks the one at the place that its key tells
RANGE = struct.Struct("hhqqi4x")  # struct flock: type, whence, start, length, pid
DIGITS = set("0123456789abcdef")

_told = set[str]()  # what has been warned of


class Unusable(Exception):
    """Why there can be no cache in a folder."""


def digest(*parts):
    """Return the key of some texts and bytes: 40 hexadecimal digits."""
    found = blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogateescape")
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


def chosen():
    """Return the folder of the settings, or None where the cache is switched off; Unusable if it cannot be used."""
    limit = config.get("cache_size")
    return Folder(path(), limit) if limit else None


def warn_once(why):
    """Warn that kernels are compiled without a cache: once for each reason."""
    told = f"kernels are compiled anew in each process: {why}. L0RT_CACHE_DIR names another folder; L0RT_CACHE_SIZE=0 "
    if str(why) not in _told:
        _told.add(str(why))
        callers.warn(f"{told}switches the cache and this warning off", RuntimeWarning)


def path():
    """Return where the cache is: of the settings, else where the XDG Base Directory Specification says."""
    named = config.get("cache_dir")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification: others are ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):
        raise Unusable("this user has no home folder")
    return os.path.join(base, "l0rt")


class Folder:
    """The cache in a folder.

    Parameters
    ----------
    path : str
        The folder, which may hold other things too.
    limit : int
        The bytes that all entries together may have.
    """

    def __init__(self, path, limit):
        self.path = os.path.join(path, NAME)
        self.limit = limit
        self.largest = min(limit, MOST_BYTES)  # entry

    def load(self, key):
        """Return the three parts of an entry, or None: there is none, or it is damaged, and then it is removed."""
        path = self._place(key)
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            facts = os.fstat(file)
            if not _is_mine(facts) or not stat.S_ISREG(facts.st_mode):
                return None
            data = _read(file, facts.st_size) if facts.st_size <= self.largest else b""
            with suppress(OSError):
                os.utime(file)  # the time of its last use
        except OSError:
            return None
        finally:
            os.close(file)
        parts = _unpacked(key, data)
        if parts is None:
            with suppress(OSError):
                os.unlink(path)
        return parts

    def store(self, key, *parts):
        """Keep an entry of three parts, and drop those that were not used for longest. Unusable if it cannot be."""
        data = _packed(key, parts)
        if len(data) > self.largest:
            return
        path = self._place(key)
        written = f"{path}.{os.getpid()}.{time.monotonic_ns()}"
        self.prepare()
        try:
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            file = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(file, left) :]
            finally:
                os.close(file)
            os.replace(written, path)
        except OSError as error:
            raise Unusable(f"{self.path}: {error.strerror}") from None
        finally:
            with suppress(OSError):
                os.unlink(written)
        self.shrink()

    def check(self):
        """Unusable if the folder cannot be used, or if it is not there and cannot be made; nothing is made."""
        try:
            os.lstat(self.path)
        except FileNotFoundError:
            above = os.path.dirname(self.path)
            while not os.path.lexists(above):
                above = os.path.dirname(above)
            if not os.path.isdir(above):
                raise Unusable(f"{self.path}: {above} is no folder") from None
            if not os.access(above, os.W_OK | os.X_OK):
                raise Unusable(f"{self.path}: no permission to write to {above}") from None
        except OSError as error:
            raise Unusable(f"{self.path}: {error.strerror}") from None
        else:
            self.prepare()

    def prepare(self):
        """Make the folder if it is not there; return it. Unusable if it cannot be, or if others can write to it."""
        try:
            os.makedirs(self.path, 0o700, exist_ok=True)
            facts = os.lstat(self.path)
        except OSError as error:
            raise Unusable(f"{self.path}: {error.strerror}") from None
        if not stat.S_ISDIR(facts.st_mode):
            raise Unusable(f"{self.path} is no folder")
        if facts.st_uid != os.geteuid():
            raise Unusable(f"{self.path} belongs to user {facts.st_uid}, and this is user {os.geteuid()}")
        if not _is_mine(facts):
            raise Unusable(f"{self.path} can be written by others: its mode must be 0700")
        if not os.access(self.path, os.R_OK | os.W_OK | os.X_OK):
            raise Unusable(f"{self.path} cannot be read and written: its mode must be 0700")
        return self

    @contextmanager
    def locked(self, key):
        """Keep other processes from making the same entry; threads are the caller's.

        Without a lock where locks cannot be had: then the work may be done twice, and one of the results stays.
        """
        place = (self.path, key)
        if place in _held:  # by this thread, which a signal handler has interrupted
            yield
            return
        try:
            with suppress(OSError):
                path = os.path.join(self.path, LOCK)
                _held[place] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                _lock_byte(_held[place], key, fcntl.F_WRLCK)
            yield
        finally:
            file = _held.pop(place, None)
            if file is not None:
                with suppress(OSError):  # closing is not enough while a child that was just forked has a copy
                    _lock_byte(file, key, fcntl.F_UNLCK)
                os.close(file)

    def entries(self):
        """Return (last use, size, path) of each entry, those that were not used for longest first."""
        return sorted(found for found in self._files() if len(os.path.basename(found[2])) == 38)

    def shrink(self):
        """Drop what was not used for longest until the limit holds, and what a process left behind that was killed."""
        now, kept, total = time.time(), [], 0
        for used, size, path in self._files():
            if len(os.path.basename(path)) != 38:
                if now - used > ABANDONED:
                    _remove(path)
            else:
                kept.append((used, size, path))
                total += size
        for _, size, path in sorted(kept) if total > self.limit else ():
            if total <= self.limit:
                break
            _remove(path)
            total -= size

    def clear(self):
        """Remove all entries; return how many, and their bytes. What this user may not remove stays."""
        count, nbytes = 0, 0
        for _, size, path in self._files():
            if _remove(path):
                count += 1
                nbytes += size
        return count, nbytes

    def _place(self, key):
        return f"{self.path}/{key[:2]}/{key[2:]}"

    def _files(self):
        """Yield (last use, size, path) of every file that can be only the cache's own."""
        for folder in _listed(self.path):
            if len(folder.name) == 2 and DIGITS.issuperset(folder.name) and folder.is_dir(follow_symlinks=False):
                for file in _listed(folder.path):
                    if DIGITS.issuperset(file.name[:38]) and len(file.name) >= 38:
                        with suppress(OSError):
                            facts = file.stat(follow_symlinks=False)
                            yield facts.st_mtime, facts.st_size, file.path


_held: dict[tuple[str, str], int] = {}  # the files of the locks by folder and key


def _lock_byte(file, key, kind):
    """Lock or unlock the byte of a key, for this opening of the file: other locks are the whole process's."""
    byte = RANGE.pack(kind, os.SEEK_SET, int(key[:15], 16), 1, 0)
    fcntl.fcntl(file, fcntl.F_OFD_SETLKW, byte)


def _forked():
    for file in _held.values():  # of threads that are not there: held here, they would outlast their owners
        with suppress(OSError):
            os.close(file)
    _held.clear()


os.register_at_fork(after_in_child=_forked)


def _is_mine(facts):
    return facts.st_uid == os.geteuid() and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _listed(path):
    try:
        with os.scandir(path) as found:
            return list(found)
    except OSError:
        return []


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _read(file, size):
    data = os.read(file, size + 1)
    while len(data) < size:
        more = os.read(file, size - len(data))
        if not more:
            break
        data += more
    return data


def _checksum(key, sizes, content):
    found = blake2b(f"{key} {sizes}".encode(), digest_size=32)
    found.update(content)
    return found.digest()


def _packed(key, parts):
    sizes = tuple(map(len, parts))
    content = b"".join(parts)
    return HEAD.pack(MAGIC, _checksum(key, sizes, content), *sizes) + content


def _unpacked(key, data):
    """Return the parts of an entry; None if it is damaged, or another's."""
    if len(data) < HEAD.size:
        return None
    magic, checksum, *sizes = HEAD.unpack_from(data)
    content = memoryview(data)[HEAD.size :]
    if magic != MAGIC or sum(sizes) != len(content) or _checksum(key, tuple(sizes), content) != checksum:
        return None
    first, second, _ = sizes
    return tuple(bytes(content[at:end]) for at, end in ((0, first), (first, first + second), (first + second, None)))
